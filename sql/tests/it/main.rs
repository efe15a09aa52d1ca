//! The command's contract, tested through the binary: what goes in, what comes out on which stream,
//! with which exit code.

mod cluster;
mod command_line;
mod databases;
mod doors;
mod errors;
mod interrupt;
mod mistakes;
mod outlet;
mod output;
mod shell;
mod statements;
mod terminal;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Both ways to run a query that every machine with a C++ compiler has.
const DEVICES: [&str; 2] = ["sim", "cpu"];

/// What a run of the command left.
#[derive(Debug)]
struct Run {
    out: String,
    messages: String,
    code: Option<i32>,
}

impl Run {
    /// The results of a run that went well and had nothing to say besides.
    #[track_caller]
    fn results(self) -> String {
        assert_eq!((self.code, self.messages.as_str()), (Some(0), ""), "{}", self.out);
        self.out
    }

    /// The messages of a run that failed so.
    #[track_caller]
    fn failure(self, code: i32) -> String {
        assert_eq!(self.code, Some(code), "{}{}", self.out, self.messages);
        self.messages
    }
}

/// The repository, where the sample data is.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the package lies in the repository")
        .to_path_buf()
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_warpframe"));
    command.args(arguments).current_dir(root());
    for variable in ["WARPFRAME_DEVICE", "WARPFRAME_STRICT", "WARPFRAME_MEMORY_LIMIT"] {
        command.env_remove(variable);
    }
    command
}

/// Runs the command with nothing on standard input.
fn warpframe(arguments: &[&str]) -> Run {
    run_with_input(arguments, "")
}

fn run_with_input(arguments: &[&str], input: &str) -> Run {
    finish(command(arguments), input)
}

fn finish(mut command: Command, input: &str) -> Run {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the binary starts");
    // A command that fails early reads none of it.
    let _ = child.stdin.take().expect("it is piped").write_all(input.as_bytes());
    let output = child.wait_with_output().expect("it ends");
    let text = |bytes| String::from_utf8(bytes).expect("all output is text");
    Run { out: text(output.stdout), messages: text(output.stderr), code: output.status.code() }
}

/// A directory of files for one test.
struct Files(tempfile::TempDir);

impl Files {
    fn new() -> Files {
        Files(tempfile::tempdir().expect("a directory for temporary files"))
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().expect("its name is text").to_string()
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.path(name);
        std::fs::write(&path, content).expect("the directory can be written to");
        path
    }
}
