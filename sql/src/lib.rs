//! The `warpframe` command: SQL over Parquet and CSV files, in a shell or from the command line. It is
//! a library for `warpframe-cluster`, whose `shell` is this one with a session on a cluster.
//!
//! [`arguments`] says what was asked for, [`files`] which tables files become, [`statement`] splits
//! SQL, and [`run`] runs it through the engine's public API. [`output`] writes results, which
//! [`pager`] shows where they are long, [`outlet`] puts into files, and [`plot`] draws. [`bench`] times
//! a statement. [`completions`] and [`man`] tell others of the options, [`report`] what went wrong,
//! and [`shell`] does all that with a person.

mod analyze;
mod arguments;
mod bench;
mod cluster;
mod completions;
mod elsewhere;
mod files;
mod interrupt;
mod man;
mod outlet;
mod output;
mod pager;
mod plot;
mod prepare;
mod progress;
mod report;
mod run;
mod shell;
mod stages;
mod text;
mod units;

use std::ffi::OsString;
use std::io::{self, BufWriter, IsTerminal, Write as _};
use std::path::Path;
use std::sync::Arc;

use arguments::{Arguments, Asked, Job};
use cluster::on_cluster;
use outlet::Outlet;
use output::{Format, Style};
use pager::Paging;
use report::{Failure, Source};
use run::{Runner, Settings};
use shell::Next;
use warpframe::device;
use warpframe::plugin::Cluster;
use warpframe::timeline::{self, Part, span};

/// Makes a cluster of its URL, or of none.
pub type Connect = fn(Option<&str>) -> Result<Arc<dyn Cluster>, warpframe::Error>;

/// A panic of a session's threads becomes the error of its query; nothing is said of it besides.
fn leave_panics_to_errors() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !std::thread::current().name().is_some_and(|name| name.starts_with("warpframe-")) {
            usual(panic);
        }
    }));
}

/// Does what the words of a command line ask for, the first one being the command's name, and ends
/// the process. `connect` makes clusters; without it another program is asked to.
pub fn main(words: Vec<OsString>, connect: Option<Connect>) -> ! {
    let main = span(Part::Main, String::new);
    leave_panics_to_errors();
    let (asked, jobs) = Arguments::from_words(words);
    let mut messages = io::stderr();
    let mut out = BufWriter::with_capacity(1 << 16, io::stdout());
    let result = run(&asked, jobs, connect, &mut out, &mut messages);
    drop(main);
    if let Err(error) = timeline::write() {
        complain(&mut messages, &error.into());
    }
    let code = result.map_or_else(|failure| failure.exit_code().into(), |()| 0);
    // What was to be told of writing results was told.
    let _ = out.flush();
    // What libraries do at the end takes longer than many a query, and nobody has use for it.
    device::close_all();
    signal_hook::low_level::exit(interrupt::ending().unwrap_or(code))
}

/// Does what the command line asks for. Failures have been reported.
fn run(
    asked: &Asked,
    jobs: Vec<Job>,
    connect: Option<Connect>,
    out: &mut dyn io::Write,
    messages: &mut dyn io::Write,
) -> Result<(), Failure> {
    let arguments = asked.arguments();
    if let (Some(url), None) = (&arguments.cluster, connect) {
        return on_cluster(url).inspect_err(|failure| complain(messages, failure));
    }
    if arguments.man || arguments.completions.is_some() || arguments.prepare {
        return tell(arguments, out).inspect_err(|failure| complain(messages, failure));
    }
    let is_bench = matches!(asked, Asked::Bench(_));
    let reads_sql = jobs.is_empty() && !is_bench || jobs.contains(&Job::Script("-".into()));
    if reads_sql && arguments.files.iter().any(|file| file == Path::new("-")) {
        let failure = Failure::usage("standard input is the table stdin: give SQL by -c or -f");
        complain(messages, &failure);
        return Err(failure);
    }
    let bench = match asked {
        Asked::Bench(bench) => {
            let setup =
                bench::setup(bench, &jobs).inspect_err(|failure| complain(messages, failure))?;
            Some((bench, setup))
        }
        Asked::Statements(_) => None,
    };
    let session = arguments.session(connect).inspect_err(|failure| complain(messages, failure))?;
    if let Some(notice) = session.notice().filter(|_| io::stderr().is_terminal()) {
        let _ = writeln!(messages, "{notice}");
    }
    let shell = jobs.is_empty() && !is_bench && io::stdin().is_terminal();
    if !shell {
        interrupt::watch(&session);
    }
    let wrong = arguments.register(&session).inspect_err(|failure| complain(messages, failure))?;
    for failure in wrong {
        let _ = writeln!(messages, "note: {}; it is no table", report::shown(&failure.to_string()));
    }
    for note in session.take_file_notes() {
        let _ = writeln!(messages, "note: {}", report::shown(&note));
    }
    let (outlet, format) = arguments.outlet().inspect_err(|failure| complain(messages, failure))?;
    let settings = settings(arguments, format, shell);
    if let Some((bench, setup)) = bench {
        return match outlet {
            None => bench::run(bench, &setup, &session, out, messages, &settings),
            Some(mut outlet) => {
                bench::run(bench, &setup, &session, &mut outlet, messages, &settings)?;
                outlet.end(true).inspect_err(|failure| complain(messages, failure))
            }
        };
    }
    let mut runner = Runner::new(session, settings, out, messages);
    runner.send_at_first(outlet);
    let result = if shell { shell::run(&mut runner) } else { run_jobs(&mut runner, jobs) };
    // A person who leaves has seen what failed, and who goes on after that wants the rest.
    let ended = runner.finish(shell || result.is_ok() || !runner.settings.bail);
    result.and(ended)
}

/// Writes what the command tells of itself or does without a session.
fn tell(arguments: &Arguments, out: &mut dyn io::Write) -> Result<(), Failure> {
    let write = |out: &mut dyn io::Write| match arguments.completions {
        _ if arguments.man => man::run(out),
        Some(shell) => completions::run(shell, out),
        None => prepare::run(arguments, out),
    };
    let Some(path) = &arguments.output else { return write(out) };
    let mut outlet = Outlet::file(path, None)?;
    write(&mut outlet)?;
    outlet.end(true)
}

/// What the command line says of how statements run and results look.
fn settings(arguments: &Arguments, format: Format, shell: bool) -> Settings {
    let terminal = io::stdout().is_terminal() && arguments.output.is_none();
    Settings {
        format_said: arguments.format().is_some(),
        terminal,
        colour: terminal && has_colours(),
        pager: if shell { Paging::Auto } else { Paging::Off },
        talkative: shell,
        progress: !arguments.no_progress,
        bail: shell || !arguments.keep_going,
        programs: !arguments.no_user_code,
        files: !arguments.no_files,
        variables: arguments.variables.iter().cloned().collect(),
        style: Style {
            headers: !arguments.no_names,
            null: arguments.null.clone(),
            ..format.into()
        },
        ..Settings::of(format)
    }
}

/// Runs what the command line or standard input says. Failures have been reported.
fn run_jobs(runner: &mut Runner<'_>, jobs: Vec<Job>) -> Result<(), Failure> {
    let goes_on = !runner.settings.bail;
    let jobs = if jobs.is_empty() { vec![Job::Script("-".into())] } else { jobs };
    let mut failed = None;
    for job in jobs {
        let source = source(&job).inspect_err(|failure| runner.complain(failure))?;
        match shell::script::run(runner, &source) {
            Ok(Next::Entry) => {}
            Ok(Next::Quit) => break,
            Err(failure) if goes_on && !failure.is_broken_pipe() => failed = Some(failure),
            Err(failure) => return Err(failure),
        }
    }
    failed.map_or(Ok(()), Err)
}

/// Whether the terminal is to show colours (<https://no-color.org>).
fn has_colours() -> bool {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    !is_set("NO_COLOR") && std::env::var_os("TERM").is_some_and(|term| term != "dumb")
}

fn source(job: &Job) -> Result<Source, Failure> {
    match job {
        Job::Command(text) => Ok(Source { name: Some("-c".into()), text: text.clone() }),
        Job::Script(path) if path == Path::new("-") => {
            Ok(Source { name: Some("standard input".into()), text: run::read_standard_input()? })
        }
        Job::Script(path) => {
            let text = std::fs::read_to_string(path).map_err(|error| Failure::file(path, error))?;
            Ok(Source { name: Some(path.display().to_string()), text })
        }
    }
}

fn complain(messages: &mut dyn io::Write, failure: &Failure) {
    let _ = messages.write_all(failure.report(None, None).as_bytes());
}
