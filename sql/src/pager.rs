//! Results that are longer than the terminal, shown by a pager.

use std::env;
use std::io::{self, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use warpframe::frame::terminal_size;

use crate::interrupt::Lent;
use crate::report::Failure;

/// Which results a pager shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paging {
    /// None.
    Off,
    /// Those that are longer than the terminal.
    Auto,
    /// All.
    On,
}

impl Paging {
    /// As it is named.
    pub fn name(self) -> &'static str {
        match self {
            Paging::Off => "off",
            Paging::Auto => "auto",
            Paging::On => "on",
        }
    }

    /// The one of a name.
    pub fn named(name: &str) -> Option<Paging> {
        [Paging::Off, Paging::Auto, Paging::On]
            .into_iter()
            .find(|paging| paging.name().eq_ignore_ascii_case(name))
    }
}

/// What runs where `PAGER` says nothing.
const USUAL: &str = "if command -v less >/dev/null; then exec less; else exec more; fi";
/// How `less` runs where `LESS` says nothing: it leaves the screen as it is, shows colours, and
/// lines that are too long run beyond the edge.
const LESS: &str = "FRSX";
/// What a shell of the system exits with where there is no such program, or it cannot be run.
const NO_PROGRAM: [i32; 2] = [126, 127];

/// Holds back what is written until it is longer than the terminal: then a pager gets it, and what
/// follows as it is written.
pub struct Pager<'a> {
    out: &'a mut dyn Write,
    /// Of the terminal.
    columns: usize,
    lines: usize,
    /// Whether even short results go to the pager.
    always: bool,
    /// Whether the pager may run other programs.
    programs: bool,
    held: Vec<u8>,
    /// Lines of the terminal that what is held takes, and characters of the last one.
    taken: (usize, usize),
    program: Option<(Child, Lent, Instant)>,
}

impl<'a> Pager<'a> {
    /// One that writes short results to `out`, the terminal. Whether its program may run others is
    /// part of the settings.
    pub fn new(out: &'a mut dyn Write, (paging, programs): (Paging, bool)) -> Pager<'a> {
        let (columns, lines) = terminal_size().unwrap_or((80, 24));
        let always = paging == Paging::On;
        Pager { out, columns, lines, always, programs, held: vec![], taken: (0, 0), program: None }
    }

    /// Writes what was held back, or waits for the person to leave the pager, which is no failure
    /// of what was still to be written. Beside what came of it, how long the pager ran.
    ///
    /// # Errors
    /// What writing came to; a pager that cannot be run.
    pub fn finish(mut self, written: Result<(), Failure>) -> (Result<(), Failure>, Duration) {
        if self.always
            && self.program.is_none()
            && !self.held.is_empty()
            && let Err(error) = self.start()
        {
            return (Err(error.into()), Duration::ZERO);
        }
        match self.program.take() {
            Some((child, _lent, start)) => (wait(child, written), start.elapsed()),
            None => {
                let out = self.out.write_all(&self.held).and_then(|()| self.out.flush());
                (out.map_err(Failure::from).and(written), Duration::ZERO)
            }
        }
    }

    fn start(&mut self) -> io::Result<()> {
        let program = env::var("PAGER").ok().filter(|program| !program.trim().is_empty());
        let mut command = Command::new("sh");
        command.arg("-c").arg(program.as_deref().unwrap_or(USUAL)).stdin(Stdio::piped());
        if env::var_os("LESS").is_none() {
            command.env("LESS", LESS);
        }
        if !self.programs {
            command.env("LESSSECURE", "1");
        }
        self.out.flush()?;
        let (lent, start) = (Lent::begin(), Instant::now());
        let mut child = command.spawn()?;
        let held = std::mem::take(&mut self.held);
        let result = child.stdin.as_mut().map_or(Ok(()), |pipe| pipe.write_all(&held));
        self.program = Some((child, lent, start));
        result
    }

    /// Counts lines as the terminal breaks them.
    fn count(&mut self, bytes: &[u8]) {
        for byte in bytes {
            let (lines, characters) = self.taken;
            self.taken = match byte {
                b'\n' => (lines + 1, 0),
                // The rest of a character of several bytes.
                0x80..0xc0 => (lines, characters),
                _ if characters == self.columns => (lines + 1, 1),
                _ => (lines, characters + 1),
            };
        }
    }
}

/// Waits for the person to leave a pager.
fn wait(mut child: Child, written: Result<(), Failure>) -> Result<(), Failure> {
    drop(child.stdin.take());
    let status = child.wait()?;
    if status.code().is_some_and(|code| NO_PROGRAM.contains(&code)) {
        let program = env::var("PAGER").unwrap_or_default();
        let message = format!(
            "the pager {program:?} cannot be run ({status}): PAGER names another, .pager off none"
        );
        return Err(Failure::sql(message, None));
    }
    match written {
        Err(failure) if failure.is_broken_pipe() => Ok(()),
        written => written,
    }
}

impl Write for Pager<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.program {
            Some((child, ..)) => match &mut child.stdin {
                Some(pipe) => pipe.write(bytes),
                None => Ok(bytes.len()),
            },
            None => {
                self.held.extend_from_slice(bytes);
                self.count(bytes);
                // The prompt takes the last line.
                if self.taken.0 >= self.lines {
                    self.start()?;
                }
                Ok(bytes.len())
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.program {
            Some((child, ..)) => child.stdin.as_mut().map_or(Ok(()), Write::flush),
            None => Ok(()),
        }
    }
}
