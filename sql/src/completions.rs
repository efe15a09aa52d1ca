//! `--completions`: what bash, zsh or fish reads to complete this command's options.

use std::fmt::Write as _;
use std::io::Write;

use clap::{Arg, ArgAction, CommandFactory};

use crate::arguments::Arguments;
use crate::bench::Bench;
use crate::report::Failure;

/// Shells of the system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Shell {
    /// `eval "$(warpframe --completions bash)"` in ~/.bashrc.
    Bash,
    /// A file `_warpframe` in a folder of $fpath.
    Zsh,
    /// ~/.config/fish/completions/warpframe.fish.
    Fish,
}

/// Writes the script of a shell.
pub fn run(shell: Shell, out: &mut dyn Write) -> Result<(), Failure> {
    let (mut command, mut bench) = (Arguments::command(), Bench::command());
    command.build();
    bench.build();
    let mut options: Vec<Flag> =
        command.get_arguments().filter(|arg| !arg.is_positional()).map(Flag::of).collect();
    let of_bench = bench.get_arguments().filter(|arg| !arg.is_positional()).map(Flag::of);
    let own: Vec<Flag> = of_bench
        .filter(|flag| !options.iter().any(|other| other.names() == flag.names()))
        .collect();
    options.extend(own.into_iter().map(|flag| Flag { of_bench: true, ..flag }));
    let script = match shell {
        Shell::Bash => bash(&options),
        Shell::Zsh => zsh(&options),
        Shell::Fish => fish(&options),
    };
    Ok(out.write_all(script.as_bytes())?)
}

/// What stands behind an option.
#[derive(Debug, PartialEq, Eq)]
enum Value {
    None,
    Words(Vec<String>),
    File,
    Folder,
    Other(String),
}

#[derive(Debug)]
struct Flag {
    short: Option<char>,
    long: Option<String>,
    help: String,
    value: Value,
    repeats: bool,
    /// Whether only `warpframe bench` takes it.
    of_bench: bool,
}

impl Flag {
    fn of(arg: &Arg) -> Flag {
        let takes = matches!(arg.get_action(), ArgAction::Set | ArgAction::Append);
        let title =
            arg.get_value_names().and_then(|names| names.first()).map_or("", |name| name.as_str());
        let words: Vec<String> =
            arg.get_possible_values().iter().map(|value| value.get_name().into()).collect();
        let value = match (takes, title) {
            (false, _) => Value::None,
            _ if !words.is_empty() => Value::Words(words),
            (_, "DEVICE") => {
                Value::Words(["auto", "cuda", "sim", "cpu"].map(String::from).to_vec())
            }
            (_, "FILE") => Value::File,
            (_, "DIR") => Value::Folder,
            (_, other) => Value::Other(other.into()),
        };
        let help =
            arg.get_help().map(|help| help.to_string().replace('\n', " ")).unwrap_or_default();
        Flag {
            short: arg.get_short(),
            long: arg.get_long().map(String::from),
            help,
            value,
            // Lists of values are one.
            repeats: matches!(arg.get_action(), ArgAction::Append)
                && arg.get_value_delimiter().is_none(),
            of_bench: false,
        }
    }

    /// As it is written: `-v` and `--variable`.
    fn names(&self) -> Vec<String> {
        let short = self.short.map(|short| format!("-{short}"));
        short.into_iter().chain(self.long.iter().map(|long| format!("--{long}"))).collect()
    }
}

fn bash(options: &[Flag]) -> String {
    let mut cases = String::new();
    for option in options {
        let completed = match &option.value {
            Value::None => continue,
            Value::Words(words) => {
                format!("COMPREPLY=($(compgen -W $'{}' -- \"$word\"))", words.join("\\n"))
            }
            Value::File => "COMPREPLY=($(compgen -f -- \"$word\"))".into(),
            Value::Folder => "COMPREPLY=($(compgen -d -- \"$word\"))".into(),
            Value::Other(_) => String::new(),
        };
        let _ = writeln!(cases, "        {}) {completed}; return ;;", option.names().join("|"));
    }
    let cases = cases.replace(") ; return", ") return");
    let names = |of_bench: bool| -> String {
        let names: Vec<String> = options
            .iter()
            .filter(|option| option.of_bench == of_bench)
            .flat_map(Flag::names)
            .collect();
        names.join("\\n")
    };
    format!(
        "_warpframe() {{
    local IFS=$'\\n' word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}}
    local bench=
    [ ${{COMP_WORDS[1]}} = bench ] && bench=$'\\n{}'
    case $before in
{cases}    esac
    case $word in
        -*) COMPREPLY=($(compgen -W $'{}'\"$bench\" -- \"$word\")) ;;
        b*) COMPREPLY=($([ $COMP_CWORD = 1 ] && compgen -W bench -- \"$word\"; compgen -f -- \"$word\")) ;;
        *) COMPREPLY=($(compgen -f -- \"$word\")) ;;
    esac
}}
complete -o filenames -F _warpframe warpframe
",
        names(true),
        names(false)
    )
}

fn zsh(options: &[Flag]) -> String {
    let mut script = String::from("#compdef warpframe\n_arguments \\\n");
    for option in options {
        let value = match &option.value {
            Value::None => String::new(),
            Value::Words(words) => format!(":value:({})", words.join(" ")),
            Value::File => ":file:_files".into(),
            Value::Folder => ":folder:_files -/".into(),
            Value::Other(title) => format!(":{title}: "),
        };
        let help = option.help.replace('\\', "\\\\").replace('[', "\\[").replace(']', "\\]");
        let help = if option.of_bench { format!("bench: {help}") } else { help };
        let repeats = if option.repeats { "*" } else { "" };
        for name in option.names() {
            let quoted = format!("{repeats}{name}[{help}]{value}").replace('\'', "'\\''");
            let _ = writeln!(script, "    '{quoted}' \\");
        }
    }
    script + "    '*:file:_files'\n"
}

fn fish(options: &[Flag]) -> String {
    let mut script = String::from(
        "complete -c warpframe -n __fish_use_subcommand -a bench -d 'Time a statement'\n",
    );
    for option in options {
        script.push_str("complete -c warpframe");
        if option.of_bench {
            script.push_str(" -n '__fish_seen_subcommand_from bench'");
        }
        if let Some(short) = option.short {
            let _ = write!(script, " -s {short}");
        }
        if let Some(long) = &option.long {
            let _ = write!(script, " -l {long}");
        }
        match &option.value {
            Value::None => {}
            Value::Words(words) => script.push_str(&format!(" -x -a '{}'", words.join(" "))),
            Value::File => script.push_str(" -r -F"),
            Value::Folder => script.push_str(" -x -a '(__fish_complete_directories)'"),
            Value::Other(_) => script.push_str(" -x"),
        }
        let help = option.help.replace('\\', "\\\\").replace('\'', "\\'");
        let _ = writeln!(script, " -d '{help}'");
    }
    script
}
