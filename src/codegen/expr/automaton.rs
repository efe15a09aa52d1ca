//! Regular expressions: conditions, counts and replacements by automata that the host builds
//! (`kernels/automaton.cuh`).

use std::collections::HashMap;

use regex_automata::dfa::dense::{self, DFA};
use regex_automata::dfa::{Automaton, StartKind};
use regex_automata::nfa::thompson;
use regex_automata::util::primitives::StateID;
use regex_automata::util::start;
use regex_automata::{Anchored, MatchKind};

use super::*;
use crate::codegen::device_function::KernelHeader;

/// Most bytes of an automaton, and of the one that it is made from, whose repetitions are written
/// out: what beyond it blows up stays with the CPU.
const MOST_BYTES: usize = 1 << 20;

const MATCH: u32 = 1 << 31;
const DEAD: u32 = 1 << 30;
const QUIT: u32 = 1 << 29;

/// Which way the automaton reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ScanDirection {
    /// From any place on, to the first match's end.
    Ahead,
    /// From a match's end back to its beginning.
    Back,
}

/// The table of a pattern, in the layout of `kernels/automaton.cuh`.
fn table(pattern: &str, direction: ScanDirection) -> Result<Vec<u8>> {
    let back = direction == ScanDirection::Back;
    let config = dense::Config::new()
        .start_kind(if back { StartKind::Anchored } else { StartKind::Unanchored })
        .match_kind(if back { MatchKind::All } else { MatchKind::LeftmostFirst })
        // Words in Unicode are the host's affair: the automaton quits at a byte beyond ASCII.
        .unicode_word_boundary(true)
        .dfa_size_limit(Some(MOST_BYTES))
        .determinize_size_limit(Some(2 * MOST_BYTES));
    let built = dense::Builder::new()
        .configure(config)
        .thompson(of_bounded_size().reverse(back))
        .build(pattern);
    let dfa = built.map_err(|error| {
        Error::unsupported(format!("regular expression '{pattern}'"), error.to_string())
    })?;
    Ok(AutomatonTable::of(&dfa, if back { Anchored::Yes } else { Anchored::No }).bytes())
}

/// How a pattern is compiled; without a bound `((a{1000}){1000}){1000}` would take all memory.
pub(super) fn of_bounded_size() -> thompson::Config {
    thompson::Config::new().nfa_size_limit(Some(MOST_BYTES))
}

/// States by number, as they are found.
struct AutomatonTable {
    starts: Vec<u32>,
    /// Of each state for each byte and the end of text.
    transitions: Vec<[u32; 257]>,
}

impl AutomatonTable {
    fn of(dfa: &DFA<Vec<u32>>, anchored: Anchored) -> AutomatonTable {
        let mut found = DfaStates { dfa, numbers: HashMap::new(), states: vec![] };
        let begin = |behind: Option<u8>| {
            dfa.start_state(&start::Config::new().anchored(anchored).look_behind(behind))
        };
        let starts = (0..=255u8)
            .map(Some)
            .chain([None])
            .map(|behind| begin(behind).map_or(QUIT, |state| found.number(state)));
        let starts = starts.collect();
        let mut transitions = vec![];
        while transitions.len() < found.states.len() {
            let state = found.states[transitions.len()];
            let mut row = [0; 257];
            for byte in 0..=255u8 {
                row[usize::from(byte)] = found.number(dfa.next_state(state, byte));
            }
            row[256] = found.number(dfa.next_eoi_state(state));
            transitions.push(row);
        }
        AutomatonTable { starts, transitions }
    }

    /// Bytes that no state tells apart share a class.
    fn bytes(&self) -> Vec<u8> {
        let mut classes: HashMap<Vec<u32>, u8> = HashMap::new();
        let mut representatives = vec![];
        let mut class_of = [0u8; 256];
        for byte in 0..256 {
            let column: Vec<u32> = self.transitions.iter().map(|row| row[byte]).collect();
            let next = representatives.len() as u8;
            class_of[byte] = *classes.entry(column).or_insert_with(|| {
                representatives.push(byte);
                next
            });
        }
        representatives.push(256);
        let width = representatives.len() as u32;
        let mut bytes: Vec<u8> =
            [width].iter().chain(&self.starts).flat_map(|word| word.to_le_bytes()).collect();
        bytes.extend(class_of);
        let rows =
            self.transitions.iter().flat_map(|row| representatives.iter().map(|class| row[*class]));
        bytes.extend(rows.flat_map(u32::to_le_bytes));
        bytes
    }
}

struct DfaStates<'a> {
    dfa: &'a DFA<Vec<u32>>,
    numbers: HashMap<StateID, u32>,
    states: Vec<StateID>,
}

impl DfaStates<'_> {
    /// The state's number, and what is true of it.
    fn number(&mut self, state: StateID) -> u32 {
        let next = self.states.len() as u32;
        let number = *self.numbers.entry(state).or_insert_with(|| {
            self.states.push(state);
            next
        });
        let flag = |holds: bool, flag: u32| if holds { flag } else { 0 };
        number
            | flag(self.dfa.is_match_state(state), MATCH)
            | flag(self.dfa.is_dead_state(state), DEAD)
            | flag(self.dfa.is_quit_state(state), QUIT)
    }
}

/// A LIKE pattern as a regular expression of the whole text.
pub(crate) fn of_like(pattern: &str) -> String {
    let mut regex = String::from("(?s)^");
    let mut characters = pattern.chars();
    while let Some(c) = characters.next() {
        let c = match c {
            '%' => {
                regex.push_str(".*");
                continue;
            }
            '_' => {
                regex.push('.');
                continue;
            }
            '\\' => characters.next().unwrap_or('\\'),
            c => c,
        };
        regex.push_str(&format!("\\x{{{:x}}}", u32::from(c)));
    }
    regex + "$"
}

impl Compiler<'_> {
    /// `text ~ 'pattern'` and its like; `flags` go before the pattern.
    pub(super) fn regex_match(
        &mut self,
        text: &Expr,
        pattern: &Expr,
        flags: &str,
        negated: bool,
    ) -> Result<Value> {
        let Some(pattern) = as_literal(pattern) else {
            return Err(not_yet("a computed regular expression"));
        };
        let value = self.value(text)?;
        if pattern.is_null() || value.dtype.is_null() {
            return self.null(&DataType::Boolean);
        }
        let Some(pattern) = literal::text(pattern) else {
            return Err(not_yet("a regular expression that is no string"));
        };
        let found = self.regex_test(value, &with_flags(pattern, flags))?;
        Ok(if negated { self.negated(&found) } else { found })
    }

    /// Whether a regular expression matches somewhere in a string.
    pub(super) fn regex_test(&mut self, value: Value, pattern: &str) -> Result<Value> {
        let view = self.text(&value)?;
        let ahead = self.automaton(pattern, ScanDirection::Ahead)?;
        self.out.needs(KernelHeader::Automaton);
        let (test, _) = self.unless_lost("bool", &value.valid, |lost| {
            format!("automaton_matches({view}, {ahead}, {lost})")
        });
        Ok(Value::new(DataType::Boolean, Repr::Bool, test, value.valid))
    }

    /// `regexp_like(text, pattern[, flags])`.
    pub(super) fn regexp_like(&mut self, arguments: &[Expr]) -> Result<Value> {
        let flags = self.regex_flags(arguments.get(2))?;
        self.regex_match(&arguments[0], &arguments[1], &flags, false)
    }

    /// `regexp_count(text, pattern[, start[, flags]])`.
    pub(super) fn regexp_count(&mut self, arguments: &[Expr], dtype: &DataType) -> Result<Value> {
        let flags = self.regex_flags(arguments.get(3))?;
        let start = match arguments.get(2).map(as_literal) {
            None => 1,
            Some(start) => start
                .and_then(literal::integer)
                .filter(|start| *start >= 1)
                .ok_or_else(|| not_yet("regexp_count from such a place"))?,
        };
        let pattern =
            as_literal(&arguments[1]).and_then(literal::text).filter(|pattern| !pattern.is_empty());
        let Some(pattern) = pattern else { return Err(not_yet("regexp_count of such a pattern")) };
        let value = self.value(&arguments[0])?;
        let view = self.text(&value)?;
        // The text begins at its start.
        let view = if start == 1 {
            view
        } else {
            self.out.let_("view", format_args!("substring({view}, {start}, I64_MAX)"))
        };
        let pattern = with_flags(pattern, &flags);
        let (ahead, back) = (
            self.automaton(&pattern, ScanDirection::Ahead)?,
            self.automaton(&pattern, ScanDirection::Back)?,
        );
        self.out.needs(KernelHeader::Automaton);
        let (count, _) = self.unless_lost("i64", &value.valid, |lost| {
            format!("automaton_count({view}, 0u, {ahead}, {back}, {lost})")
        });
        Ok(Value::new(dtype.clone(), Repr::I64, count, value.valid)
            .with_range(Some((0, i32::MAX.into()))))
    }

    /// `regexp_instr(text, pattern)`.
    pub(super) fn regexp_position(
        &mut self,
        text: &Expr,
        pattern: &Expr,
        dtype: &DataType,
    ) -> Result<Value> {
        let pattern =
            as_literal(pattern).and_then(literal::text).filter(|pattern| !pattern.is_empty());
        let Some(pattern) = pattern else { return Err(not_yet("regexp_instr of such a pattern")) };
        let value = self.value(text)?;
        let view = self.text(&value)?;
        let (ahead, back) = (
            self.automaton(pattern, ScanDirection::Ahead)?,
            self.automaton(pattern, ScanDirection::Back)?,
        );
        let call = |lost: &str| format!("automaton_position({view}, {ahead}, {back}, {lost})");
        self.out.needs(KernelHeader::Automaton);
        let (place, _) = self.unless_lost("i64", &value.valid, call);
        Ok(Value::new(dtype.clone(), Repr::I64, place, value.valid)
            .with_range(Some((0, i32::MAX.into()))))
    }

    /// `regexp_replace(text, pattern, replacement[, flags])`.
    pub(super) fn regexp_replace(&mut self, arguments: &[Expr], dtype: &DataType) -> Result<Value> {
        let constants: Option<Vec<&str>> =
            arguments[1..].iter().map(|e| as_literal(e).and_then(literal::text)).collect();
        let Some(constants) = constants else {
            return Err(not_yet("regexp_replace with computed arguments"));
        };
        let (pattern, to, flags) =
            (constants[0], constants[1], constants.get(2).copied().unwrap_or(""));
        let value = self.value(&arguments[0])?;
        let all = flags.contains('g');
        let pattern = with_flags(pattern, &flags.replace('g', ""));
        if to.contains(['$', '\\']) {
            return self.regex_expanded(value, &pattern, to, all, dtype);
        }
        let view = self.text(&value)?;
        let (ahead, back) = (
            self.automaton(&pattern, ScanDirection::Ahead)?,
            self.automaton(&pattern, ScanDirection::Back)?,
        );
        let replacement = self.inputs.string(to);
        self.inputs.arena();
        let call = |lost: &str| {
            format!(
                "automaton_replaced(arena, {view}, {replacement}, {all}, {ahead}, {back}, {lost})"
            )
        };
        self.out.needs(KernelHeader::Automaton);
        let (made, _) = self.unless_lost("view", &value.valid, call);
        let longest = value.longest.map(|longest| (u64::from(longest) + 1) * (to.len() as u64 + 1));
        self.made(dtype, made, value.valid, longest)
    }

    /// Flags of an expression, which the pattern begins with; those that only `regexp_replace`
    /// knows are an error elsewhere.
    pub(super) fn regex_flags(&mut self, flags: Option<&Expr>) -> Result<String> {
        let Some(flags) = flags else { return Ok(String::new()) };
        let text = as_literal(flags).and_then(literal::text).filter(|flags| !flags.contains('g'));
        text.map(String::from).ok_or_else(|| not_yet("a regular expression with such flags"))
    }

    /// C++ `const u32*`: the table of a pattern.
    pub(super) fn automaton(&mut self, pattern: &str, direction: ScanDirection) -> Result<String> {
        let table = table(pattern, direction)?;
        Ok(format!("(const u32*)({})", self.inputs.constant(&table)))
    }

    /// A value of type `ctype` by a call that is told where to say that only the host knows.
    pub(super) fn unless_lost(
        &mut self,
        ctype: &str,
        valid: &Option<String>,
        call: impl FnOnce(&str) -> String,
    ) -> (String, String) {
        let lost = self.out.fresh();
        self.out.variable("bool", &lost, "false");
        let value = self.out.let_(ctype, call(&format!("&{lost}")));
        self.fail_if(valid, &lost, Failure::Beyond);
        (value, lost)
    }
}

pub(super) fn with_flags(pattern: &str, flags: &str) -> String {
    if flags.is_empty() { pattern.to_string() } else { format!("(?{flags}){pattern}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn automata_that_would_blow_up_are_refused() {
        assert!(table("(?i)straße", ScanDirection::Ahead).is_ok());
        assert!(table("[01]*1[01]{20}", ScanDirection::Ahead).is_err());
        assert!(table("(", ScanDirection::Ahead).is_err());
        for pattern in ["((a{1000}){1000}){1000}", "(((a|b){900}){900}c){900}", "(\\w{500}){500}"] {
            let start = std::time::Instant::now();
            let error = table(pattern, ScanDirection::Back).expect_err("it is too large");
            assert!(error.to_string().contains(pattern), "{error}");
            assert!(start.elapsed().as_secs() < 5, "{pattern} took {:?}", start.elapsed());
        }
        assert_eq!(of_like("a%_\\%é"), "(?s)^\\x{61}.*.\\x{25}\\x{e9}$");
    }
}
