//! `--man`: the manual page, made of what `--help` and `.help` are made of.

use std::io::Write;

use clap::CommandFactory;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

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
    Ok(out.write_all(&page()?)?)
}

fn page() -> std::io::Result<Vec<u8>> {
    let mut page = vec![];
    let command = Man::new(Arguments::command()).title("WARPFRAME").manual("User Commands");
    command.render_title(&mut page)?;
    command.render_name_section(&mut page)?;
    command.render_synopsis_section(&mut page)?;
    command.render_description_section(&mut page)?;
    command.render_options_section(&mut page)?;
    // What `bench` takes besides the options above.
    let bench = Bench::command().mut_args(|arg| {
        let is_known = Arguments::command().get_arguments().any(|it| it.get_id() == arg.get_id());
        arg.hide(is_known)
    });
    let text = bench.get_long_about().or(bench.get_about()).map(ToString::to_string);
    let mut about = Roff::new();
    about.control("SH", ["BENCHMARKS"]);
    for paragraph in text.unwrap_or_default().split("\n\n") {
        about.text([roman(paragraph.replace('\n', " "))]).control("PP", []);
    }
    page.extend(about.to_roff().as_bytes());
    let mut options = vec![];
    Man::new(bench).render_options_section(&mut options)?;
    // A section of its own would part them from what is said of them.
    page.extend(String::from_utf8_lossy(&options).replace(".SH OPTIONS\n", "").as_bytes());

    let codes = EXIT_CODES.map(|(code, what)| (code.to_string(), what.to_string()));
    let variables = ENVIRONMENT.map(|(name, what)| (name.to_string(), what.to_string()));
    for section in [
        entries("COMMANDS OF THE SHELL", shell::commands()),
        entries("EXIT STATUS", codes),
        entries("ENVIRONMENT", variables),
    ] {
        page.extend(section.to_roff().as_bytes());
    }
    Ok(page)
}

/// A section of names and what they mean.
fn entries(title: &str, rows: impl IntoIterator<Item = (String, String)>) -> Roff {
    let mut section = Roff::new();
    section.control("SH", [title]);
    for (name, what) in rows {
        section.control("TP", []).text([bold(name)]).text([roman(what)]);
    }
    section
}
