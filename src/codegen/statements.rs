//! Statements of generated code as values: their text, and what whoever wrote them knew of each, so
//! that nobody has to read the text again.

use std::fmt::{Display, Write};
use std::sync::Arc;

use super::device_function::{DIVISION, DeviceFunction, KernelHeader, KernelHeaders, LEAVING};
use crate::user_code::Definition;

/// Statements, one behind the other.
#[derive(Debug, Clone, Default)]
pub(crate) struct Code {
    text: String,
    statements: Vec<KnownStatement>,
    /// Values of 16 bytes are computed.
    wide: bool,
    /// Device code that is called.
    headers: KernelHeaders,
    /// What that takes to compile besides its characters.
    effort: usize,
    /// What users wrote of it, each once.
    definitions: Vec<Arc<Definition>>,
}

/// What is known of a statement.
#[derive(Debug, Clone, Copy)]
pub(super) struct KnownStatement {
    /// Bytes of its text, which follows that of the statement before.
    pub(super) bytes: usize,
    pub(super) kind: StatementKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StatementKind {
    /// Computes, assigns or reports.
    Plain,
    Declares(Declaration),
    /// Leaves the scope or the loop that it is in. Its text ends with [`LEAVE`].
    Leaves,
    /// Stores a result, which no statement reads.
    Stores,
    /// Asks for nothing but the row: may stand before all others.
    First(Declaration),
    Opens(BlockKind),
    /// Closes the innermost block that is open.
    Closes,
}

/// What opens a block of statements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BlockKind {
    Branch,
    Loop,
    /// `do { … } while (0)`, which statements leave.
    Scope,
}

/// What a statement `[const ]type name…` declares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Declaration {
    pub(super) constant: bool,
    /// It has a value at once.
    pub(super) initialized: bool,
    /// It holds a value of its type, and is no array or other object.
    pub(super) is_value: bool,
    /// Bytes of the type and of the name.
    ctype: usize,
    name: usize,
}

const CONST: &str = "const ";
/// How a statement ends that leaves.
pub(super) const LEAVE: &str = "break;\n";

impl Declaration {
    /// Type and name, in the statement's text.
    pub(super) fn of(self, text: &str) -> (&str, &str) {
        let begin = if self.constant { CONST.len() } else { 0 };
        let name = begin + self.ctype + 1;
        (&text[begin..begin + self.ctype], &text[name..name + self.name])
    }
}

impl Code {
    pub(crate) fn with_capacity(bytes: usize) -> Self {
        let statements = Vec::with_capacity(bytes / 32);
        Code { text: String::with_capacity(bytes), statements, ..Code::default() }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    pub(super) fn statements(&self) -> &[KnownStatement] {
        &self.statements
    }

    /// Whether values of 16 bytes are computed.
    pub(super) fn is_wide(&self) -> bool {
        self.wide
    }

    /// Whether a statement leaves the scope that all are in, or one among them.
    pub(super) fn leaves(&self) -> bool {
        self.statements.iter().any(|statement| statement.kind == StatementKind::Leaves)
    }

    pub(super) fn headers(&self) -> KernelHeaders {
        self.headers
    }

    /// How many characters of plain arithmetic take as long to compile.
    pub(super) fn effort(&self) -> usize {
        self.text.len() + self.effort
    }

    pub(super) fn definitions(&self) -> &[Arc<Definition>] {
        &self.definitions
    }

    /// Notes the call of a function, which is to be written with this name.
    pub(super) fn calls(&mut self, function: DeviceFunction) -> &'static str {
        function.header.into_iter().for_each(|header| self.needs(header));
        self.effort += function.effort;
        function.name
    }

    /// Notes a call of something of a header.
    pub(super) fn needs(&mut self, header: KernelHeader) {
        self.headers.add(header);
    }

    /// Notes so many operators `/` and `%`.
    pub(super) fn divides(&mut self, times: usize) {
        self.effort += times * DIVISION;
    }

    /// Has the kernel define what a user wrote. Its symbol, which the statements name, is a hash
    /// of its text, so that kernels are told apart by their statements alone.
    pub(super) fn defines(&mut self, definition: &Arc<Definition>) {
        if !self.definitions.iter().any(|known| known.symbol() == definition.symbol()) {
            self.definitions.push(definition.clone());
        }
    }

    /// Notes what other statements need.
    fn learn_from(&mut self, other: &Code) {
        self.wide |= other.wide;
        self.headers = self.headers.and(other.headers);
        self.effort += other.effort;
        other.definitions.iter().for_each(|definition| self.defines(definition));
    }

    /// How many statements there are.
    pub(super) fn count(&self) -> usize {
        self.statements.len()
    }

    /// Appends one statement, or a piece of text whose blocks are closed.
    pub(super) fn line(&mut self, statement: impl Display) {
        self.push(StatementKind::Plain, statement);
    }

    /// Appends text that ends as a line does.
    pub(super) fn raw(&mut self, text: &str) {
        if !text.is_empty() {
            self.text.push_str(text);
            self.statements.push(KnownStatement { bytes: text.len(), kind: StatementKind::Plain });
        }
    }

    /// Declares a constant.
    pub(super) fn constant(&mut self, ctype: &str, name: &str, value: impl Display) {
        let declaration = Declaration { constant: true, ..self.declaration(ctype, name) };
        // Written in place: most of the time to generate a kernel goes into allocations.
        self.written(StatementKind::Declares(declaration), |text| {
            [CONST, ctype, " ", name, " = "].iter().for_each(|piece| text.push_str(piece));
            let _ = write!(text, "{value}");
            text.push(';');
        });
    }

    /// Declares the place of a row that keeps its own.
    pub(super) fn place_of_row(&mut self) {
        let declaration = Declaration { constant: true, ..self.declaration("u64", "at") };
        self.push(StatementKind::First(declaration), "const u64 at = row;");
    }

    /// Declares a variable with its first value.
    pub(super) fn variable(&mut self, ctype: &str, name: &str, value: impl Display) {
        let declaration = self.declaration(ctype, name);
        let statement = format_args!("{ctype} {name} = {value};");
        self.push(StatementKind::Declares(declaration), statement);
    }

    /// Declares a variable that gets its value later.
    pub(super) fn unset(&mut self, ctype: &str, name: &str) {
        let declaration = Declaration { initialized: false, ..self.declaration(ctype, name) };
        self.push(StatementKind::Declares(declaration), format_args!("{ctype} {name};"));
    }

    /// Declares what `behind` the name says: how many elements it has, or what it is made of.
    pub(super) fn object(&mut self, ctype: &str, name: &str, behind: impl Display) {
        let declaration = Declaration { is_value: false, ..self.declaration(ctype, name) };
        let statement = format_args!("{ctype} {name}{behind};");
        self.push(StatementKind::Declares(declaration), statement);
    }

    /// Of a variable with a value.
    fn declaration(&mut self, ctype: &str, name: &str) -> Declaration {
        self.wide |= matches!(ctype, "i128" | "u128" | "view");
        self.headers.add_of_type(ctype);
        let (ctype, name) = (ctype.len(), name.len());
        Declaration { constant: false, initialized: true, is_value: true, ctype, name }
    }

    /// Stores a result that no statement reads.
    pub(super) fn store(&mut self, target: &str, value: impl Display) {
        self.push(StatementKind::Stores, format_args!("{target}[at] = {value};"));
    }

    /// Leaves the scope that the statement is in.
    pub(super) fn leave(&mut self) {
        self.leave_by("break;");
    }

    /// Leaves it where the condition holds.
    pub(super) fn leave_if(&mut self, condition: impl Display) {
        self.leave_by(format_args!("if ({condition}) break;"));
    }

    fn leave_by(&mut self, statement: impl Display) {
        self.effort += LEAVING;
        self.push(StatementKind::Leaves, statement);
    }

    /// Opens a block. Up to the [`Code::close`] that ends it statements may be in pieces.
    pub(super) fn open(&mut self, block: BlockKind, head: impl Display) {
        self.push(StatementKind::Opens(block), head);
    }

    /// Opens a branch.
    pub(super) fn branch(&mut self, condition: impl Display) {
        self.open(BlockKind::Branch, format_args!("if ({condition}) {{"));
    }

    /// Opens a loop.
    pub(super) fn repeat(&mut self, head: impl Display) {
        self.open(BlockKind::Loop, format_args!("{head} {{"));
    }

    /// Opens a loop over numbers, of 32 bits.
    pub(super) fn count_up(&mut self, number: &str, from: impl Display, to: impl Display) {
        self.repeat(format_args!("for (u32 {number} = {from}; {number} < {to}; {number}++)"));
    }

    /// Opens what statements leave.
    pub(super) fn scope(&mut self, head: &str) {
        self.open(BlockKind::Scope, format_args!("{head}do {{"));
    }

    pub(super) fn close(&mut self, end: impl Display) {
        self.push(StatementKind::Closes, end);
    }

    /// Appends statements.
    pub(super) fn append(&mut self, other: &Code) {
        self.text.push_str(&other.text);
        self.statements.extend_from_slice(&other.statements);
        self.learn_from(other);
    }

    /// These statements with others among them, each behind so many of these.
    pub(super) fn with_inserted(self, others: &Code, places: &[usize]) -> Code {
        let mut order: Vec<usize> = (0..places.len()).collect();
        order.sort_by_key(|at| places[*at]);
        let ends = ends(others);
        let mut whole = Code::with_capacity(self.text.len() + others.text.len());
        [&self, others].iter().for_each(|code| whole.learn_from(code));
        let (mut from, mut next) = (0, order.into_iter().peekable());
        for at in 0..=self.statements.len() {
            while let Some(other) = next.next_if(|other| places[*other] == at) {
                let statement = others.statements[other];
                whole.text.push_str(&others.text[ends[other] - statement.bytes..ends[other]]);
                whole.statements.push(statement);
            }
            if let Some(statement) = self.statements.get(at) {
                whole.text.push_str(&self.text[from..from + statement.bytes]);
                whole.statements.push(*statement);
                from += statement.bytes;
            }
        }
        whole
    }

    fn push(&mut self, kind: StatementKind, statement: impl Display) {
        self.written(kind, |text| {
            let _ = write!(text, "{statement}");
        });
    }

    /// Appends what `write` writes, without the end of its line.
    pub(super) fn written(&mut self, kind: StatementKind, write: impl FnOnce(&mut String)) {
        let begin = self.text.len();
        write(&mut self.text);
        self.text.push('\n');
        self.statements.push(KnownStatement { bytes: self.text.len() - begin, kind });
    }
}

/// Where each statement ends.
pub(super) fn ends(code: &Code) -> Vec<usize> {
    let mut end = 0;
    let ends = code.statements.iter().map(|statement| {
        end += statement.bytes;
        end
    });
    ends.collect()
}
