//! Texts of statements and of commands that begin with a dot, as in files and at the prompt.

use super::{Next, dot};
use crate::report::{Failure, Source};
use crate::run::Runner;
use crate::text;

/// Runs a text. A line that begins with a dot, where no statement is unfinished, is a command.
///
/// # Errors
/// The last failure, already reported. The first one ends the text, unless `.bail off` was said.
pub fn run(runner: &mut Runner<'_>, source: &Source) -> Result<Next, Failure> {
    let mut sql = String::new();
    let mut failed = None;
    let mut line_number = 0;
    // A byte order mark is no part of the text.
    let text = source.text.strip_prefix('\u{feff}').unwrap_or(&source.text);
    let mut lines = text.split_inclusive('\n').peekable();
    while let Some(line) = lines.next() {
        line_number += 1;
        let is_command = line.trim_start().starts_with('.') && text::is_whole(&sql);
        if !is_command {
            sql.push_str(line);
            if lines.peek().is_some() {
                continue;
            }
        }
        let before = std::mem::take(&mut sql);
        if !before.trim().is_empty() {
            // Lines of the source before it, so that places are the source's.
            let lines_of = before.matches('\n').count() + usize::from(!before.ends_with('\n'));
            let skipped = line_number - usize::from(is_command) - lines_of;
            let text = "\n".repeat(skipped) + &before;
            runner.last = before.trim().into();
            if let Err(failure) = runner.run(&Source { name: source.name.clone(), text }) {
                if runner.settings.bail || failure.is_broken_pipe() {
                    return Err(failure);
                }
                failed = Some(failure);
            }
        }
        if !is_command {
            continue;
        }
        if runner.settings.echo {
            runner.tell(&format!("{}\n", line.trim()))?;
        }
        match dot::obey(runner, line.trim().trim_start_matches('.')) {
            Ok(Next::Quit) => return failed.map_or(Ok(Next::Quit), Err),
            Ok(Next::Entry) => {}
            Err(failure) => {
                runner.complain_of_line(&failure, source, line_number);
                if runner.settings.bail || failure.is_broken_pipe() {
                    return Err(failure);
                }
                failed = Some(failure);
            }
        }
    }
    failed.map_or(Ok(Next::Entry), Err)
}
