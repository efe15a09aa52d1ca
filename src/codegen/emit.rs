//! Statements of generated code, fresh names, and how generated code reports a failed row.

use std::cell::RefCell;
use std::fmt::{Display, Write};
use std::ops::{Deref, DerefMut};

use datafusion::arrow::datatypes::DataType;
use datafusion::logical_expr::Expr;

use super::failure::Failure;
use super::sites::{MOST_OPERANDS, Operand, Sites};
use super::statements::{Code, StatementKind};

/// Appends a number's digits. `write!` takes several times as long, and every query generates text
/// with many numbers.
pub(crate) fn push_number(text: &mut String, number: usize) {
    if number >= 10 {
        push_number(text, number / 10);
    }
    text.push(char::from(b'0' + (number % 10) as u8));
}

/// Statements under construction. No statement but a failure report has side effects, so the
/// compiler may drop what is not read.
#[derive(Debug, Default)]
pub(crate) struct Emitter {
    code: Code,
    /// Statements to be inserted among those of `code`, in the order in which they were added, and
    /// behind how many of these each goes.
    inserted: (Code, Vec<usize>),
    next: usize,
    prefix: &'static str,
    guards: Vec<String>,
    /// Where rows may fail.
    sites: RefCell<Sites>,
    /// How many sites of the kernel other emitters have. This one's numbers follow theirs.
    sites_before: usize,
}

/// A place between statements, see [`Emitter::insert`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct InsertionPoint(usize);

/// An emitter writes statements as [`Code`] does.
impl Deref for Emitter {
    type Target = Code;

    fn deref(&self) -> &Code {
        &self.code
    }
}

impl DerefMut for Emitter {
    fn deref_mut(&mut self) -> &mut Code {
        &mut self.code
    }
}

impl Emitter {
    /// An emitter whose names begin with `prefix`. Two emitters whose statements share a scope need
    /// different prefixes.
    pub(crate) fn new(prefix: &'static str) -> Self {
        Emitter { prefix, code: Code::with_capacity(1024), ..Emitter::default() }
    }

    /// An emitter for a kernel in which `other`, which is complete, has sites too. Its sites are
    /// numbered behind those of `other`.
    pub(crate) fn behind(prefix: &'static str, other: &Emitter) -> Self {
        Emitter { sites_before: other.sites_before + other.sites(), ..Emitter::new(prefix) }
    }

    /// An emitter whose sites are numbered behind `sites` others.
    pub(crate) fn behind_sites(prefix: &'static str, sites: usize) -> Self {
        Emitter { sites_before: sites, ..Emitter::new(prefix) }
    }

    /// A name not used before.
    pub(super) fn fresh(&mut self) -> String {
        let mut name = String::with_capacity(8);
        name.push_str(if self.prefix.is_empty() { "v" } else { self.prefix });
        push_number(&mut name, self.next);
        self.next += 1;
        name
    }

    /// Where the next statement will stand.
    pub(super) fn place(&self) -> InsertionPoint {
        InsertionPoint(self.code.count())
    }

    /// Writes one statement that goes to an earlier place, behind others that were inserted there.
    /// For statements that depend on later ones.
    pub(super) fn insert(&mut self, at: InsertionPoint, write: impl FnOnce(&mut Code)) {
        let (code, places) = &mut self.inserted;
        write(code);
        places.resize(code.count(), at.0);
    }

    /// Declares a constant of type `ctype` and returns its name.
    pub(super) fn let_(&mut self, ctype: &str, rvalue: impl Display) -> String {
        let name = self.fresh();
        self.code.constant(ctype, &name, rvalue);
        name
    }

    /// Until [`Emitter::unguard`], failures are reported only where `condition`, a C++ name, holds.
    /// For rows that are filtered out, and for branches that are not taken.
    pub(super) fn guard(&mut self, condition: impl Into<String>) {
        self.guards.push(condition.into());
    }

    /// Ends the innermost [`Emitter::guard`].
    pub(super) fn unguard(&mut self) {
        self.guards.pop();
    }

    /// Removes all guards, for a value that is computed for all rows. [`Emitter::restore_guards`]
    /// puts them back.
    pub(super) fn lift_guards(&mut self) -> Vec<String> {
        std::mem::take(&mut self.guards)
    }

    pub(super) fn restore_guards(&mut self, guards: Vec<String>) {
        self.guards = guards;
    }

    /// The conjunction of the guards in force, if any.
    pub(super) fn guarded(&self) -> Option<String> {
        (!self.guards.is_empty()).then(|| self.guards.join(" && "))
    }

    /// Reports `failure` for this row where `condition` and all guards hold, with the values of
    /// `operands`. `target`: the type that the first of them cannot be cast to.
    pub(super) fn fail_if(
        &mut self,
        condition: impl Display,
        failure: Failure,
        operands: &[Operand],
        target: Option<&DataType>,
    ) {
        let operands = &operands[..operands.len().min(MOST_OPERANDS)];
        self.sites.get_mut().add(failure, operands, target);
        let number = self.sites_before + self.sites();
        let guards = &self.guards;
        self.code.written(StatementKind::Plain, |text| {
            text.push_str("if (");
            for guard in guards {
                text.push_str(guard);
                text.push_str(" && ");
            }
            let _ = write!(text, "({condition})) WF_FAIL({}, ", failure.device_name());
            push_number(text, number);
            for operand in operands {
                text.push_str(", ");
                text.push_str(&operand.code);
            }
            text.push_str(");");
        });
    }

    /// How many sites there are.
    pub(crate) fn sites(&self) -> usize {
        self.sites.borrow().len()
    }

    /// Describes the sites from `first` on that are not described yet as sites of `expr`.
    pub(crate) fn describe_sites(&mut self, first: usize, expr: &Expr) {
        if first < self.sites() {
            self.sites.get_mut().describe(first, expr);
        }
    }

    /// Describes these sites by a name only.
    pub(crate) fn name_sites(&mut self, first: usize, name: impl FnOnce() -> String) {
        if first < self.sites() {
            self.sites.get_mut().name(first, &name());
        }
    }

    /// Reports a failure where `made`, a C++ view of the string or list that the function `name`
    /// made, says that the result would be too long.
    pub(super) fn fail_if_too_long(&mut self, made: &str, name: &str) {
        let first = self.sites();
        self.fail_if(format_args!("too_long({made})"), Failure::Length, &[], None);
        self.name_sites(first, || name.to_string());
    }

    /// Takes the sites out of the emitter.
    pub(crate) fn take_sites(&self) -> Sites {
        self.sites.take()
    }

    /// Whether a row may have failed. Values that a failed row computes afterwards may lie outside
    /// of their stated range.
    pub(crate) fn may_fail(&self) -> bool {
        self.sites() > 0
    }

    /// The statements so far; the emitter goes on with fresh names.
    pub(crate) fn take(&mut self) -> Code {
        let code = std::mem::take(&mut self.code);
        let (inserted, places) = std::mem::take(&mut self.inserted);
        if places.is_empty() { code } else { code.with_inserted(&inserted, &places) }
    }
}
