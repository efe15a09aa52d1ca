//! Groups of regular expressions: `regexp_match`, and replacements that refer to groups
//! (`kernels/captures.cuh`).
//!
//! A tagged automaton finds what the groups matched (`tagged.rs`). Of a pattern that has none, which
//! looks at words or lines, a machine follows all ways at once, the preferred first. A row that
//! needs more ways than there is room for goes to the host.

use crate::codegen::device_function::KernelHeader;
use regex_automata::nfa::thompson::{self, NFA, State};
use regex_automata::util::interpolate;
use regex_automata::util::look::Look;
use regex_automata::util::primitives::{PatternID, StateID};

use super::automaton::{ScanDirection, of_bounded_size, with_flags};
use super::tagged::TaggedAutomaton;
use super::*;
use crate::column::item_of;

/// States and slots that a thread has room for, and words for ways with their slots: every thread
/// that a GPU can hold has that much local memory, some two kilobytes.
const MOST_STATES: usize = 2048;
const MOST_SLOTS: usize = 20;
const WAY_WORDS: usize = 192;

const RANGES: u32 = 0;
const SPLIT: u32 = 1;
const SAVE: u32 = 2;
const LOOK: u32 = 3;
const MATCH: u32 = 4;

const LITERAL: u32 = 1 << 31;

/// A pattern as a program that tells what some of its groups matched.
struct Program {
    words: Vec<u32>,
    states: usize,
    /// The groups, each with two slots.
    groups: Vec<usize>,
}

impl Program {
    /// Of `wanted` groups; of those that the pattern has.
    fn of(nfa: &NFA, groups: Vec<usize>) -> Option<Program> {
        let slot = |group: usize, end: usize| {
            groups.iter().position(|of| *of == group).map(|at| 2 * at + end)
        };
        // Where each state's words begin.
        let length = |state: &State| match state {
            State::ByteRange { .. } => 4,
            State::Sparse(sparse) => 2 + 2 * sparse.transitions.len(),
            State::Dense(_) => 2 + 2 * 256,
            State::Union { alternates } => 2 + alternates.len(),
            State::BinaryUnion { .. } => 4,
            State::Look { .. } | State::Capture { .. } => 3,
            State::Fail => 2,
            State::Match { .. } => 1,
        };
        let begins: Vec<u32> = (nfa.states().iter())
            .scan(1, |next, state| {
                *next += length(state) as u32;
                Some(*next - length(state) as u32)
            })
            .collect();
        let at = |state: StateID| begins[state.as_usize()];
        let mut words = vec![at(nfa.start_anchored())];
        for (number, state) in nfa.states().iter().enumerate() {
            let op = |op: u32| op | (number as u32) << 8;
            match state {
                State::ByteRange { trans } => {
                    words.extend([
                        op(RANGES),
                        1,
                        u32::from(trans.start) | u32::from(trans.end) << 8,
                        at(trans.next),
                    ]);
                }
                State::Sparse(sparse) => {
                    words.extend([op(RANGES), sparse.transitions.len() as u32]);
                    let range = |t: &thompson::Transition| {
                        [u32::from(t.start) | u32::from(t.end) << 8, at(t.next)]
                    };
                    words.extend(sparse.transitions.iter().flat_map(range));
                }
                State::Dense(dense) => {
                    words.extend([op(RANGES), 256]);
                    // No transition is one to state 0, which fails or begins: a range that holds no
                    // byte is none.
                    let range = |(byte, next): (usize, &StateID)| match *next == StateID::ZERO {
                        true => [1, 0],
                        false => [byte as u32 | (byte as u32) << 8, at(*next)],
                    };
                    words.extend(dense.transitions.iter().enumerate().flat_map(range));
                }
                State::Union { alternates } => {
                    words.extend([op(SPLIT), alternates.len() as u32]);
                    words.extend(alternates.iter().map(|next| at(*next)));
                }
                State::BinaryUnion { alt1, alt2 } => {
                    words.extend([op(SPLIT), 2, at(*alt1), at(*alt2)])
                }
                State::Look { look, next } => {
                    words.extend([op(LOOK), look_code(*look)?, at(*next)])
                }
                State::Capture { next, group_index, slot: of, .. } => {
                    match slot(group_index.as_usize(), of.as_usize() % 2) {
                        Some(slot) => words.extend([op(SAVE), slot as u32, at(*next)]),
                        None => words.extend([op(SPLIT), 1, at(*next)]),
                    }
                }
                State::Fail => words.extend([op(RANGES), 0]),
                State::Match { .. } => words.push(op(MATCH)),
            }
        }
        Some(Program { words, states: nfa.states().len(), groups })
    }

    fn bytes(&self) -> Vec<u8> {
        self.words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    /// The parameters of the kernels' templates.
    fn template(&self) -> String {
        let slots = 2 * self.groups.len();
        format!("{}, {slots}, {}", self.states, self.states.min(WAY_WORDS / (slots + 1)))
    }
}

/// What is true of a place, as the kernels say it. `None` of lines that end with a carriage return.
fn look_code(look: Look) -> Option<u32> {
    // Of words before and behind: none, only behind, only before, both.
    let words = |allowed: u32, unicode: bool| Some(4 | if unicode { 16 } else { 0 } | allowed << 8);
    match look {
        Look::Start => Some(0),
        Look::End => Some(1),
        Look::StartLF => Some(2),
        Look::EndLF => Some(3),
        Look::StartCRLF | Look::EndCRLF => None,
        Look::WordAscii => words(0b0110, false),
        Look::WordUnicode => words(0b0110, true),
        Look::WordAsciiNegate => words(0b1001, false),
        Look::WordUnicodeNegate => words(0b1001, true),
        Look::WordStartAscii => words(0b0010, false),
        Look::WordStartUnicode => words(0b0010, true),
        Look::WordEndAscii => words(0b0100, false),
        Look::WordEndUnicode => words(0b0100, true),
        Look::WordStartHalfAscii => words(0b0011, false),
        Look::WordStartHalfUnicode => words(0b0011, true),
        Look::WordEndHalfAscii => words(0b0101, false),
        Look::WordEndHalfUnicode => words(0b0101, true),
    }
}

/// What finds groups in kernels.
enum GroupFinder {
    Tagged(TaggedAutomaton),
    AllWays(Program),
}

impl GroupFinder {
    /// Where the slots of a group begin; those of the wanted groups follow one another.
    fn slot(&self, group: usize) -> usize {
        match self {
            GroupFinder::Tagged(automaton) => automaton.slot(group),
            GroupFinder::AllWays(program) => {
                2 * program.groups.iter().position(|of| *of == group).unwrap_or(0)
            }
        }
    }

    fn slots(&self) -> usize {
        match self {
            GroupFinder::Tagged(automaton) => 2 * automaton.groups.len(),
            GroupFinder::AllWays(program) => 2 * program.groups.len(),
        }
    }
}

fn nfa(pattern: &str) -> Result<NFA> {
    let refused = |why: String| {
        Error::unsupported(format!("groups of the regular expression '{pattern}'"), why)
    };
    let nfa = NFA::compiler()
        .configure(of_bounded_size())
        .build(pattern)
        .map_err(|error| refused(error.to_string()))?;
    match nfa.states().len() <= MOST_STATES {
        true => Ok(nfa),
        false => Err(refused("it has too many states".into())),
    }
}

/// A piece of a replacement.
#[derive(Debug, PartialEq, Eq)]
enum ReplacementPiece {
    Literal(String),
    Group(usize),
}

/// The pieces of a replacement as DataFusion reads it: `\1` is `${1}`, and groups that there are
/// not are nothing.
fn pieces(replacement: &str, nfa: &NFA) -> Vec<ReplacementPiece> {
    let replacement = with_braces(replacement);
    let groups = nfa.group_info().group_len(PatternID::ZERO);
    let (mut text, mut found) = (String::new(), vec![]);
    let name = |name: &str| nfa.group_info().to_index(PatternID::ZERO, name);
    // A group is appended as nothing: where it was is remembered.
    interpolate::string(
        &replacement,
        |group, text| found.push((text.len(), group)),
        name,
        &mut text,
    );
    let (mut pieces, mut begin) = (vec![], 0);
    for (end, group) in found {
        if end > begin {
            pieces.push(ReplacementPiece::Literal(text[begin..end].into()));
            begin = end;
        }
        if group < groups {
            pieces.push(ReplacementPiece::Group(group));
        }
    }
    if begin < text.len() {
        pieces.push(ReplacementPiece::Literal(text[begin..].into()));
    }
    pieces
}

/// `\1` or `\\1` as `${1}`.
fn with_braces(replacement: &str) -> String {
    let mut out = String::new();
    let mut rest = replacement;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let slashes = rest.chars().take_while(|c| *c == '\\').count();
        let digits = rest[slashes..].chars().take_while(|c| c.is_ascii_digit()).count();
        let (kept, taken) = if digits == 0 {
            (slashes, slashes)
        } else {
            (slashes.saturating_sub(2), slashes + digits)
        };
        out.push_str(&rest[..kept]);
        if digits > 0 {
            out.push_str(&format!("${{{}}}", &rest[slashes..slashes + digits]));
        }
        rest = &rest[taken..];
    }
    out + rest
}

impl Compiler<'_> {
    /// `regexp_replace` with references to groups.
    pub(super) fn regex_expanded(
        &mut self,
        value: Value,
        pattern: &str,
        to: &str,
        all: bool,
        dtype: &DataType,
    ) -> Result<Value> {
        let nfa = nfa(pattern)?;
        let pieces = pieces(to, &nfa);
        let mut groups: Vec<usize> = vec![];
        for piece in &pieces {
            if let ReplacementPiece::Group(group) = piece
                && !groups.contains(group)
            {
                groups.push(*group);
            }
        }
        // A machine has a slot at least.
        if groups.is_empty() {
            groups.push(0);
        }
        let finder = self.group_finder(&nfa, pattern, groups)?;
        let (mut codes, mut literals): (Vec<u32>, Vec<&str>) = (vec![], vec![]);
        for piece in &pieces {
            match piece {
                ReplacementPiece::Group(group) => codes.push(finder.slot(*group) as u32),
                ReplacementPiece::Literal(text) => {
                    codes.push(literals.len() as u32 | LITERAL);
                    literals.push(text);
                }
            }
        }
        let view = self.text(&value)?;
        let count = codes.len();
        codes.push(0);
        let codes: Vec<u8> = codes.iter().flat_map(|code| code.to_le_bytes()).collect();
        let codes = self.inputs.constant(&codes);
        literals.push("");
        let literals = self.inputs.strings(&literals);
        self.inputs.arena();
        let arguments = format!("arena, {view}, {literals}, (const u32*)({codes}), {count}, {all}");
        let made = self.by_groups("view", "replaced", &arguments, &finder, pattern, &value)?;
        self.made(dtype, made, value.valid, None)
    }

    /// `regexp_match(text, pattern[, flags])`: what the groups of the first match matched, or,
    /// where there are none, the match.
    pub(super) fn regexp_match(&mut self, arguments: &[Expr], dtype: &DataType) -> Result<Value> {
        let flags = self.regex_flags(arguments.get(2))?;
        let pattern = as_literal(&arguments[1]).and_then(literal::text);
        let Some(pattern) = pattern else {
            return Err(not_yet("regexp_match with such a pattern"));
        };
        let Some(item) = item_of(dtype) else { return Err(not_yet(format!("a list as {dtype}"))) };
        let value = self.value(&arguments[0])?;
        let view = self.text(&value)?;
        let pattern = with_flags(pattern, &flags);
        let nfa = nfa(&pattern)?;
        let groups = nfa.group_info().group_len(PatternID::ZERO);
        let groups: Vec<usize> = if groups > 1 { (1..groups).collect() } else { vec![0] };
        let (slots, count, of_groups) = (self.out.fresh(), self.out.fresh(), groups.len());
        let first = groups[0];
        let finder = self.group_finder(&nfa, &pattern, groups)?;
        self.out.object("u32", &slots, format_args!("[{}]", finder.slots()));
        let arguments = format!("{view}, {slots}");
        let found = self.by_groups("bool", "first", &arguments, &finder, &pattern, &value)?;
        let slot = |end: usize| format!("{slots}[2 * k + {}]", finder.slot(first) + end);
        let (begin, end) = (slot(0), slot(1));
        let valid = self.out.let_("bool", format_args!("{} && {found}", value.validity()));
        self.out.variable("u32", &count, "0");
        self.out.line(format_args!(
            "for (u32 k = 0; {valid} && k < {of_groups}; k++)\n    \
             {count} += {begin} != CAPTURES_NONE;"
        ));
        let builder = self.build(item.data_type(), &count)?;
        self.out.line(format_args!("{count} = 0;"));
        self.out.repeat(format_args!("for (u32 k = 0; {valid} && k < {of_groups}; k++)"));
        self.out.line(format_args!("if ({begin} == CAPTURES_NONE) continue;"));
        let part = format!("slice({view}, {begin}, {end} - {begin})");
        let part =
            Value::new(item.data_type().clone(), Repr::View, self.out.let_("view", part), None);
        self.put(&builder, &count, part)?;
        self.out.line(format_args!("{count}++;"));
        self.out.close("}");
        Ok(self.built(&builder, dtype, Some(valid), value.longest))
    }

    /// What finds the wanted groups, of which there is at least one.
    fn group_finder(
        &mut self,
        nfa: &NFA,
        pattern: &str,
        groups: Vec<usize>,
    ) -> Result<GroupFinder> {
        if let Some(automaton) = TaggedAutomaton::of(nfa, &groups) {
            return Ok(GroupFinder::Tagged(automaton));
        }
        let program = (2 * groups.len() <= MOST_SLOTS).then(|| Program::of(nfa, groups)).flatten();
        program
            .map(GroupFinder::AllWays)
            .ok_or_else(|| not_yet(format!("the groups of the regular expression '{pattern}'")))
    }

    /// What a function of the finder's kernels makes of a text's groups, of type `ctype`;
    /// `arguments` are those before the finder's own.
    fn by_groups(
        &mut self,
        ctype: &str,
        function: &str,
        arguments: &str,
        finder: &GroupFinder,
        pattern: &str,
        text: &Value,
    ) -> Result<String> {
        match finder {
            GroupFinder::Tagged(automaton) => {
                let table = self.inputs.constant(&automaton.bytes());
                let template = automaton.template();
                self.out.needs(KernelHeader::Tagged);
                let call =
                    format!("tagged_{function}<{template}>({arguments}, (const u32*)({table}))");
                Ok(self.out.let_(ctype, call))
            }
            GroupFinder::AllWays(program) => {
                let (ahead, back) = (
                    self.automaton(pattern, ScanDirection::Ahead)?,
                    self.automaton(pattern, ScanDirection::Back)?,
                );
                let words = self.inputs.constant(&program.bytes());
                let template = program.template();
                self.out.needs(KernelHeader::Captures);
                let call = |lost: &str| {
                    format!(
                        "captures_{function}<{template}>({arguments}, {ahead}, {back}, \
                         (const u32*)({words}), {lost})"
                    )
                };
                Ok(self.unless_lost(ctype, &text.valid, call).0)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replacements_are_read_as_datafusion_does() {
        let nfa = nfa("(?<y>a)(b)").expect("a pattern");
        let text = |text: &str| ReplacementPiece::Literal(text.into());
        assert_eq!(
            pieces("x\\2-${1}$$", &nfa),
            [
                text("x"),
                ReplacementPiece::Group(2),
                text("-"),
                ReplacementPiece::Group(1),
                text("$")
            ]
        );
        assert_eq!(
            pieces("$1a\\\\1$y", &nfa),
            [ReplacementPiece::Group(1), ReplacementPiece::Group(1)]
        );
        assert_eq!(pieces("\\7é\\n", &nfa), [text("é\\n")]);
        assert_eq!(with_braces("\\\\\\1\\"), "\\${1}\\");
    }
}
