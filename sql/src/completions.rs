//! `--completions`: what bash, zsh or fish reads to complete this command's options.

use std::io::Write;

use clap::{Arg, ArgAction, Command, CommandFactory, ValueHint};
use clap_complete::aot;

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
    let bench = Bench::command().name("bench").mut_args(hinted);
    let mut command = Arguments::command().mut_args(hinted).subcommand(bench);
    let script = script(shell, &mut command);
    Ok(out.write_all(&script)?)
}

fn script(shell: Shell, command: &mut Command) -> Vec<u8> {
    let mut script = vec![];
    let generator = match shell {
        Shell::Bash => aot::Shell::Bash,
        Shell::Zsh => aot::Shell::Zsh,
        Shell::Fish => aot::Shell::Fish,
    };
    aot::generate(generator, command, "warpframe", &mut script);
    script
}

/// The option with what may stand behind it: files, folders, or the names of devices.
fn hinted(arg: Arg) -> Arg {
    if !matches!(arg.get_action(), ArgAction::Set | ArgAction::Append) {
        return arg;
    }
    let title = arg.get_value_names().and_then(|names| names.first());
    match title.map_or("", |name| name.as_str()) {
        "DEVICE" => arg.value_parser(["auto", "cuda", "sim", "cpu"]),
        "FILE" | "FILES" => arg.value_hint(ValueHint::FilePath),
        "DIR" => arg.value_hint(ValueHint::DirPath),
        _ => arg,
    }
}
