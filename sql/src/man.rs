//! `--man`: the manual page, made of what `--help` and `.help` are made of.

use std::io::Write;

use clap::{Arg, ArgAction, Command, CommandFactory};

use crate::arguments::{Arguments, EXIT_CODES};
use crate::bench::Bench;
use crate::report::Failure;
use crate::shell;

/// Variables of the shell; those of sessions are in the README.
const ENVIRONMENT: [(&str, &str); 9] = [
    ("WARPFRAME_DEVICE", "Where queries run if --device does not say so."),
    ("WARPFRAME_CACHE_DIR", "Where compiled kernels are kept."),
    ("WARPFRAME_HISTORY", "The file of the shell's history."),
    ("WARPFRAMERC", "What a shell runs when it begins, instead of ~/.warpframerc."),
    ("VISUAL, EDITOR", "The editor of .edit; vi otherwise."),
    ("PAGER", "Shows results that are longer than the terminal; less or more otherwise."),
    ("LESS", "Options of less; FRSX otherwise."),
    ("NO_COLOR", "If set, nothing has a colour."),
    ("COLUMNS", "How wide tables may be on a terminal."),
];

/// Writes the page.
///
/// # Errors
/// It cannot be written.
pub fn run(out: &mut dyn Write) -> Result<(), Failure> {
    let (mut command, mut bench) = (Arguments::command(), Bench::command());
    command.build();
    bench.build();
    Ok(out.write_all(page(&command, &bench).as_bytes())?)
}

fn page(command: &Command, bench: &Command) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let mut page = format!(".TH WARPFRAME 1 \"\" \"warpframe {version}\" \"User Commands\"\n");
    let text =
        |text: Option<&clap::builder::StyledStr>| text.map(ToString::to_string).unwrap_or_default();
    let about = text(command.get_about());
    page.push_str(&format!(".SH NAME\nwarpframe \\- {}\n", escaped(about.trim_end_matches('.'))));
    page.push_str(".SH SYNOPSIS\n.B warpframe\n[OPTIONS] [FILES]...\n.br\n");
    page.push_str(".B warpframe bench\n[OPTIONS] QUERY [FILES]...\n.SH DESCRIPTION\n");
    paragraphs(
        &mut page,
        text(command.get_long_about().or(command.get_about()))
            .trim_start_matches(&about)
            .trim_start_matches('.'),
    );
    let is_heading = |arg: &&Arg, heading: Option<&str>| arg.get_help_heading() == heading;
    page.push_str(".SH OPTIONS\n");
    command
        .get_arguments()
        .filter(|arg| is_heading(arg, None))
        .for_each(|arg| option(&mut page, arg));
    let headings = command.get_arguments().filter_map(Arg::get_help_heading);
    let mut headings: Vec<&str> = headings.collect();
    headings.dedup();
    for heading in headings {
        page.push_str(&format!(".SS {heading}\n"));
        command
            .get_arguments()
            .filter(|arg| is_heading(arg, Some(heading)))
            .for_each(|arg| option(&mut page, arg));
    }
    page.push_str(".SH BENCHMARKS\n");
    paragraphs(&mut page, &text(bench.get_long_about().or(bench.get_about())));
    let known: Vec<&str> = command.get_arguments().map(|arg| arg.get_id().as_str()).collect();
    let own = bench.get_arguments().filter(|arg| !known.contains(&arg.get_id().as_str()));
    own.for_each(|arg| option(&mut page, arg));
    page.push_str(".SH COMMANDS OF THE SHELL\nThey stand in lines of their own, in files of statements, too.\n");
    for (command, what) in shell::commands() {
        entry(&mut page, &format!("\\fB{}\\fR", escaped(&command)), &what);
    }
    page.push_str(".SH EXIT STATUS\n");
    EXIT_CODES.iter().for_each(|(code, what)| entry(&mut page, &format!("\\fB{code}\\fR"), what));
    page.push_str(".SH ENVIRONMENT\n");
    ENVIRONMENT
        .iter()
        .for_each(|(name, what)| entry(&mut page, &format!("\\fB{}\\fR", escaped(name)), what));
    page
}

fn option(page: &mut String, arg: &Arg) {
    let value: String =
        arg.get_value_names().into_iter().flatten().map(|name| name.as_str()).collect();
    let takes =
        matches!(arg.get_action(), ArgAction::Set | ArgAction::Append) && !arg.is_positional();
    let short = arg.get_short().map(|short| format!("-{short}"));
    let names: Vec<String> =
        short.into_iter().chain(arg.get_long().map(|long| format!("--{long}"))).collect();
    let mut title: Vec<String> =
        names.iter().map(|name| format!("\\fB{}\\fR", escaped(name))).collect();
    if arg.is_positional() {
        title.push(format!("\\fI{}\\fR", escaped(&value)));
    }
    let title = title.join(", ")
        + &if takes { format!(" \\fI{}\\fR", escaped(&value)) } else { String::new() };
    let mut what = arg.get_help().map(ToString::to_string).unwrap_or_default().replace('\n', " ");
    let words: Vec<String> =
        arg.get_possible_values().iter().map(|value| value.get_name().to_string()).collect();
    if takes && !words.is_empty() {
        what.push_str(&format!(": {}", words.join(", ")));
    }
    let usual: Vec<&str> =
        arg.get_default_values().iter().filter_map(|value| value.to_str()).collect();
    if takes && !usual.is_empty() {
        what.push_str(&format!(" (default: {})", usual.join(",")));
    }
    entry(page, &title, &what);
}

fn entry(page: &mut String, title: &str, what: &str) {
    page.push_str(&format!(".TP\n{title}\n{}\n", escaped(what)));
}

fn paragraphs(page: &mut String, text: &str) {
    for (number, paragraph) in text.trim().split("\n\n").enumerate() {
        if number > 0 {
            page.push_str(".PP\n");
        }
        page.push_str(&format!("{}\n", escaped(&paragraph.replace('\n', " "))));
    }
}

/// A line of text: hyphens that are copied as such, and nothing at its begin that commands.
fn escaped(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-");
    if text.starts_with(['.', '\'']) { format!("\\&{text}") } else { text }
}
