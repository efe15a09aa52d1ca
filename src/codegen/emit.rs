//! Statements of generated code, fresh names, and how generated code reports a failed row.

use std::fmt::{Display, Write};

use crate::error::{Error, ErrorKind};

/// Why a row failed; a bit of the kernel's `status` word (the constants of `kernels/arith.cuh`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failure {
    DivideByZero,
    Overflow,
    Cast,
    /// A function outside of its domain: the root of a negative number, a negative length.
    Domain,
    /// Characters beyond ASCII in a function that knows no others: not an error of the query.
    NotAscii,
    /// A text that only the host can judge, likewise: a time zone's name, more digits than 64 bits hold, words in Unicode.
    Beyond,
    /// A subquery of one value has several rows.
    Rows,
    /// A string or a list would be longer than their lengths count.
    Length,
}

impl Failure {
    /// First what is no error: the CPU will find those.
    const ALL: [Failure; 8] = [
        Failure::NotAscii,
        Failure::Beyond,
        Failure::DivideByZero,
        Failure::Overflow,
        Failure::Cast,
        Failure::Domain,
        Failure::Rows,
        // Last: what is made of a string that was not is no reason.
        Failure::Length,
    ];

    /// The bit of the status word.
    pub(crate) fn bit(self) -> u32 {
        match self {
            Failure::DivideByZero => 1,
            Failure::Overflow => 2,
            Failure::Cast => 4,
            Failure::Domain => 8,
            Failure::NotAscii => 16,
            Failure::Beyond => 32,
            Failure::Rows => 64,
            Failure::Length => 128,
        }
    }

    fn device_name(self) -> &'static str {
        match self {
            Failure::DivideByZero => "FAIL_DIVIDE_BY_ZERO",
            Failure::Overflow => "FAIL_OVERFLOW",
            Failure::Cast => "FAIL_CAST",
            Failure::Domain => "FAIL_DOMAIN",
            Failure::NotAscii => "FAIL_NOT_ASCII",
            Failure::Beyond => "FAIL_BEYOND",
            Failure::Rows => "FAIL_ROWS",
            Failure::Length => "FAIL_LENGTH",
        }
    }

    /// The error that a kernel's final status word stands for; `None` where no row failed. `culprit` says, after "cannot
    /// cast string", which text failed.
    pub(crate) fn error(status: u32, culprit: &[u8]) -> Option<Error> {
        let failure = Failure::ALL.into_iter().find(|f| status & f.bit() != 0)?;
        let what = match failure {
            Failure::NotAscii => {
                return Some(Error::unsupported(
                    "upper, lower or initcap",
                    "of characters beyond ASCII is not on the device yet",
                ));
            }
            Failure::Beyond => {
                return Some(Error::unsupported(
                    "a value that only the CPU can read (the name of a time zone, a float of more than 19 digits, a word beyond ASCII, more ways to match than a thread follows)",
                    "is not on the device",
                ));
            }
            Failure::DivideByZero => "Divide by zero error",
            Failure::Overflow => "Arithmetic overflow",
            Failure::Cast if !culprit.is_empty() => {
                let what = format!("Cast error: Cannot cast string {}", String::from_utf8_lossy(culprit));
                return Some(ErrorKind::Arithmetic { what }.into());
            }
            Failure::Cast => "Cast error: a value is outside of the range of the type it is cast to",
            Failure::Rows => "a scalar subquery yields more than one row",
            Failure::Length => "a string of more than 2147483647 bytes, or a list of more elements",
            Failure::Domain => "a function was called with a value outside of its domain",
        };
        Some(ErrorKind::Arithmetic { what: what.into() }.into())
    }
}

/// Appends a number's digits. Formatting one takes several times as long, and a kernel's text has many: texts are put together
/// from their pieces wherever every query comes by.
pub(crate) fn push_number(text: &mut String, number: usize) {
    if number >= 10 {
        push_number(text, number / 10);
    }
    text.push(char::from(b'0' + (number % 10) as u8));
}

/// Statements under construction. All statements are free of side effects but for `fail`, so that a compiler may drop
/// what nobody reads.
#[derive(Debug, Default)]
pub(crate) struct Emitter {
    body: String,
    /// Statements that belong to places in `body`, by the order in which they were made.
    inserted: Vec<(Place, String)>,
    next: usize,
    prefix: &'static str,
    guards: Vec<String>,
    may_fail: bool,
}

/// A place between statements, see [`Emitter::insert`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place(usize);

impl Emitter {
    /// Names made here begin with `prefix`: give two emitters whose statements share a scope different ones.
    pub(crate) fn new(prefix: &'static str) -> Self {
        Emitter { prefix, body: String::with_capacity(1024), ..Emitter::default() }
    }

    /// A name not used before.
    pub(crate) fn fresh(&mut self) -> String {
        let mut name = String::with_capacity(8);
        name.push_str(if self.prefix.is_empty() { "v" } else { self.prefix });
        push_number(&mut name, self.next);
        self.next += 1;
        name
    }

    /// Appends one statement as it is.
    pub(crate) fn line(&mut self, statement: impl Display) {
        // Without a string of its own: allocations are most of what generating a kernel costs.
        let _ = writeln!(self.body, "{statement}");
    }

    /// Where the next statement will stand.
    pub(crate) fn place(&self) -> Place {
        Place(self.body.len())
    }

    /// Puts a statement to an earlier place, behind others that were put there: its text follows from later ones.
    pub(crate) fn insert(&mut self, at: Place, statement: String) {
        self.inserted.push((at, statement));
    }

    /// Declares a constant of type `ctype` and returns its name.
    pub(crate) fn let_(&mut self, ctype: &str, rvalue: impl Display) -> String {
        let name = self.fresh();
        for piece in ["const ", ctype, " ", &name, " = "] {
            self.body.push_str(piece);
        }
        let _ = write!(self.body, "{rvalue}");
        self.body.push_str(";\n");
        name
    }

    /// Failures below are reported only where `condition` (a name) holds, until [`Emitter::unguard`]. For rows that
    /// were filtered out, and for branches not taken.
    pub(crate) fn guard(&mut self, condition: impl Into<String>) {
        self.guards.push(condition.into());
    }

    /// Ends the innermost [`Emitter::guard`].
    pub(crate) fn unguard(&mut self) {
        self.guards.pop();
    }

    /// Takes all guards out of force, for what is computed whoever asks for it; [`Emitter::restore_guards`] ends that.
    pub(crate) fn lift_guards(&mut self) -> Vec<String> {
        std::mem::take(&mut self.guards)
    }

    pub(crate) fn restore_guards(&mut self, guards: Vec<String>) {
        self.guards = guards;
    }

    /// The conjunction of the guards in force, if any.
    pub(crate) fn guarded(&self) -> Option<String> {
        (!self.guards.is_empty()).then(|| self.guards.join(" && "))
    }

    /// Reports `failure` for this row where `condition` and all guards hold.
    pub(crate) fn fail_if(&mut self, condition: impl Display, failure: Failure) {
        self.may_fail = true;
        self.begin_test(condition);
        self.line(format_args!("fail(status, {});", failure.device_name()));
    }

    /// Reports that `text` cannot be read as the type that the view `target` names, where `condition` and all guards hold.
    pub(crate) fn refuse_if(&mut self, condition: impl Display, text: &str, target: &str) {
        self.may_fail = true;
        self.begin_test(condition);
        self.line(format_args!("cast_fail(status, culprit, {text}, {target});"));
    }

    /// `if (guards and condition) `.
    fn begin_test(&mut self, condition: impl Display) {
        self.body.push_str("if (");
        for guard in &self.guards {
            self.body.push_str(guard);
            self.body.push_str(" && ");
        }
        let _ = write!(self.body, "({condition})) ");
    }

    /// Whether a row may have failed. What it computes from there on may lie outside of the range stated for it.
    pub(crate) fn may_fail(&self) -> bool {
        self.may_fail
    }

    /// The statements so far; the emitter goes on with fresh names.
    pub(crate) fn take(&mut self) -> String {
        let body = std::mem::take(&mut self.body);
        let mut inserted = std::mem::take(&mut self.inserted);
        if inserted.is_empty() {
            return body;
        }
        inserted.sort_by_key(|(at, _)| *at);
        let mut whole = String::with_capacity(body.len() + 32 * inserted.len());
        let mut from = 0;
        for (Place(at), statement) in inserted {
            whole.push_str(&body[from..at]);
            whole.push_str(&statement);
            whole.push('\n');
            from = at;
        }
        whole.push_str(&body[from..]);
        whole
    }
}
