//! `--cluster`: the program `warpframe-cluster` has sessions on clusters, and this very shell.

use std::convert::Infallible;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::process::Command;

use crate::report::Failure;

/// The program, which is a package of its own.
const PROGRAM: &str = "warpframe-cluster";

/// Goes on as that program, with the words of this command line.
///
/// # Errors
/// Where there is none, or it does not start.
pub fn on_cluster<T>(url: &str) -> Result<T, Failure> {
    let program = program();
    let mut command = Command::new(&program);
    command.arg("shell").args(std::env::args_os().skip(1));
    let error = match replaced(&mut command) {
        Ok(never) => match never {},
        Err(error) => error,
    };
    Err(match error.kind() {
        ErrorKind::NotFound => Failure::usage(format!(
            "--cluster {url}: the program {PROGRAM} is neither beside this one nor on PATH; \
             docs/cluster.md says how it is made"
        )),
        _ => Failure::file(&program, error),
    })
}

/// The program beside this one, or else the one on PATH.
fn program() -> PathBuf {
    let beside = std::env::current_exe().ok();
    let beside = beside.map(|own| own.with_file_name(PROGRAM));
    beside.filter(|path| path.is_file()).unwrap_or_else(|| PROGRAM.into())
}

/// Becomes the command, so that signals and the terminal are its own.
#[cfg(unix)]
fn replaced(command: &mut Command) -> Result<Infallible, std::io::Error> {
    use std::os::unix::process::CommandExt as _;
    Err(command.exec())
}

/// Runs the command and ends as it does.
#[cfg(not(unix))]
fn replaced(command: &mut Command) -> Result<Infallible, std::io::Error> {
    std::process::exit(command.status()?.code().unwrap_or(1))
}
