//! Long bodies of kernels, cut into parts that are compiled one by one.
//!
//! Compilers take more than twice the time for a function of twice the length: 3,000 conditions of
//! a CASE in one take NVRTC 36 seconds, and 3 in thirty functions (13.0, sm_90, quickly). A part is
//! a lambda that is not inlined. What it computes and a later part asks for is declared before it:
//!
//! ```text
//!   do {                                    do {
//!   const i64 v0 = p.k1[row];               i64 v0; i32 v1{};
//!   i32 v1;                                 if (![&, row](i64& v0_, i32& v1_) WF_PART {
//!   if (v0 > 0) break;             ─▶           i32 v1 = v1_;
//!   …                                           const i64 v0 = p.k1[row];
//!   if (v0 == p.k2) v1 = 7;                     if (v0 > 0) return false;
//!   …                                           v0_ = v0; v1_ = v1; return true;
//!   p.k3[row] = v1;                         }(v0, v1)) break;
//!   } while (0);                            …
//! ```
//!
//! Constants of former parts are captured by value: a reference would have to be read again after
//! every store.

use std::collections::HashMap;
use std::fmt::Write;
use std::ops::Range;

use super::statements::{BlockKind, Code, Declaration, KnownStatement, LEAVE, StatementKind, ends};

/// Bytes of a body from which on it is cut.
const LONG: usize = 48 << 10;
/// Bytes of a part: some hundred conditions.
const PART: usize = 16 << 10;

/// Types of what parts hand on. Others (lists under construction, arrays) stay within one part.
const HANDED_ON: [&str; 14] = [
    "bool", "i8", "i16", "i32", "i64", "i128", "u8", "u16", "u32", "u64", "u128", "f32", "f64",
    "view",
];

/// Whether a kernel's body is one to be cut.
pub(super) fn is_long(body: &Code) -> bool {
    body.text().len() >= LONG
}

/// The body with the statements for a row, which stand between `do {` and `} while (0);`, in parts
/// where they are long.
pub(super) fn in_parts(body: &Code) -> String {
    let ends = ends(body);
    let of = Pieces { text: body.text(), statements: body.statements(), ends: &ends };
    let mut text = String::with_capacity(body.text().len() + body.text().len() / 4);
    of.scopes(0..of.statements.len(), &mut text);
    text
}

/// Statements, and where each ends.
#[derive(Clone, Copy)]
struct Pieces<'a> {
    text: &'a str,
    statements: &'a [KnownStatement],
    ends: &'a [usize],
}

/// One statement of a scope, with what is in its block.
struct Unit<'a> {
    /// Which it is of all statements.
    pieces: Range<usize>,
    text: &'a str,
    declares: Option<Declared<'a>>,
    kind: StatementKind,
    /// Whether it can stand in a function: only a whole statement leaves the scope.
    movable: bool,
}

/// What a statement declares.
#[derive(Clone, Copy)]
struct Declared<'a> {
    name: &'a str,
    /// `None` of what cannot be handed on.
    ctype: Option<&'a str>,
    constant: bool,
    initialized: bool,
}

impl<'a> Declared<'a> {
    fn of(declaration: Declaration, text: &'a str) -> Self {
        let (ctype, name) = declaration.of(text);
        let ctype = Some(ctype).filter(|ctype| declaration.is_value && HANDED_ON.contains(ctype));
        let Declaration { constant, initialized, .. } = declaration;
        Declared { name, ctype, constant, initialized }
    }
}

/// A name of the scope: which units declare it and ask for it last.
struct KnownName<'a> {
    declared: Declared<'a>,
    at: usize,
    last: usize,
}

impl<'a> Pieces<'a> {
    fn text(&self, of: Range<usize>) -> &'a str {
        let begin = |at: usize| if at == 0 { 0 } else { self.ends[at - 1] };
        &self.text[begin(of.start)..begin(of.end)]
    }

    /// The statement that closes the block that this one opens.
    fn closing(&self, open: usize) -> usize {
        let mut depth = 0;
        for at in open..self.statements.len() {
            match self.statements[at].kind {
                StatementKind::Opens(_) => depth += 1,
                StatementKind::Closes => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return at;
            }
        }
        self.statements.len()
    }

    /// Copies statements, with the scopes among them cut.
    fn scopes(&self, of: Range<usize>, text: &mut String) {
        let mut at = of.start;
        while at < of.end {
            text.push_str(self.text(at..at + 1));
            if self.statements[at].kind == StatementKind::Opens(BlockKind::Scope) {
                let end = self.closing(at);
                self.scope(at + 1..end, text);
                at = end;
            } else {
                at += 1;
            }
        }
    }

    fn scope(&self, of: Range<usize>, text: &mut String) {
        let whole = self.text(of.clone());
        if whole.len() < LONG {
            text.push_str(whole);
            return;
        }
        let units = stores_moved_up(self.units(of));
        let names = names(&units);
        let mut first = 0;
        while first < units.len() {
            let end = end_of_part(&units, &names, first);
            match &units[first..end] {
                // Alone because it is long: perhaps a scope itself.
                [unit] => self.scopes(unit.pieces.clone(), text),
                _ => part(&units, first..end, &names, text),
            }
            first = end;
        }
    }

    /// The statements of a scope.
    fn units(&self, of: Range<usize>) -> Vec<Unit<'a>> {
        let mut units = vec![];
        let mut at = of.start;
        while at < of.end {
            let kind = self.statements[at].kind;
            let opens = matches!(kind, StatementKind::Opens(_));
            let end = if opens { self.closing(at) + 1 } else { at + 1 };
            let text = self.text(at..end);
            let declares = match kind {
                StatementKind::Declares(declaration) | StatementKind::First(declaration) => {
                    Some(Declared::of(declaration, text))
                }
                _ => None,
            };
            let movable =
                kind != StatementKind::Opens(BlockKind::Branch) || !self.leaves(at + 1..end);
            units.push(Unit { pieces: at..end, text, declares, kind, movable });
            at = end;
        }
        units
    }

    /// Whether one of these statements leaves what they are in.
    fn leaves(&self, of: Range<usize>) -> bool {
        let mut at = of.start;
        while at < of.end {
            at = match self.statements[at].kind {
                StatementKind::Leaves => return true,
                StatementKind::Opens(BlockKind::Loop | BlockKind::Scope) => self.closing(at) + 1,
                _ => at + 1,
            };
        }
        false
    }
}

/// The names in a text, as often as they occur.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.split(move |c: char| !is_of_name(c)).filter(|word| !word.is_empty())
}

fn names<'a>(units: &[Unit<'a>]) -> HashMap<&'a str, KnownName<'a>> {
    let mut names: HashMap<&str, KnownName<'_>> = HashMap::new();
    for (at, unit) in units.iter().enumerate() {
        if let Some(declared) = unit.declares {
            names.insert(declared.name, KnownName { declared, at, last: at });
        }
        for word in words(unit.text) {
            if let Some(known) = names.get_mut(word) {
                known.last = at;
            }
        }
    }
    names
}

/// Stores of results, which stand behind all that is computed, behind what each of them asks for:
/// hundreds of columns are not handed on from part to part then. None goes before something that
/// leaves the row.
fn stores_moved_up(mut units: Vec<Unit<'_>>) -> Vec<Unit<'_>> {
    if let Some(at) = units.iter().position(|unit| matches!(unit.kind, StatementKind::First(_))) {
        let place = units.remove(at);
        units.insert(0, place);
    }
    let is_store = |unit: &Unit<'_>| unit.kind == StatementKind::Stores;
    // Behind which unit a name has its value, and whether it has that as soon as it is declared.
    let mut known: HashMap<&str, (usize, bool)> = HashMap::new();
    let mut left = 0;
    for (at, unit) in units.iter().enumerate().filter(|(_, unit)| !is_store(unit)) {
        if let Some(declared) = unit.declares {
            known.insert(declared.name, (at, declared.constant));
        }
        for word in words(unit.text) {
            if let Some((known, false)) = known.get_mut(word) {
                *known = at;
            }
        }
        if unit.kind == StatementKind::Leaves || !unit.movable {
            left = at;
        }
    }
    let mut order: Vec<(usize, Unit<'_>)> = vec![];
    for (at, unit) in units.into_iter().enumerate() {
        let asked = words(unit.text).filter_map(|word| Some(known.get(word)?.0)).max();
        let behind = asked.unwrap_or(0).max(left);
        order.push((if is_store(&unit) { behind.min(at) } else { at }, unit));
    }
    order.sort_by_key(|(at, _)| *at);
    order.into_iter().map(|(_, unit)| unit).collect()
}

/// Where the part that begins with unit `first` ends.
fn end_of_part(units: &[Unit<'_>], names: &HashMap<&str, KnownName<'_>>, first: usize) -> usize {
    if !units[first].movable {
        return first + 1;
    }
    let mut bytes = 0;
    // What is declared and cannot be handed on is asked for up to here.
    let mut held = first;
    for (at, unit) in units.iter().enumerate().skip(first) {
        if !unit.movable || bytes + unit.text.len() > PART && at > held {
            return at.max(first + 1);
        }
        bytes += unit.text.len();
        if let Some(known) = unit.declares.and_then(|declared| names.get(declared.name))
            && known.declared.ctype.is_none()
        {
            held = held.max(known.last);
        }
    }
    units.len()
}

/// Writes the statements `range` as a part, behind what it hands on.
fn part(
    units: &[Unit<'_>],
    range: Range<usize>,
    names: &HashMap<&str, KnownName<'_>>,
    text: &mut String,
) {
    let (mut captured, mut handed) = (vec![], vec![]);
    let mut body = String::new();
    let mut row = false;
    let mut mentioned: HashMap<&str, ()> = HashMap::new();
    for word in units[range.clone()].iter().flat_map(|unit| words(unit.text)) {
        row |= word == "row" && !names.contains_key(word);
        if mentioned.insert(word, ()).is_some() {
            continue;
        }
        let Some(KnownName { declared, at, last }) = names.get(word) else { continue };
        let Some(ctype) = declared.ctype else { continue };
        let (own, later) = (range.contains(at), *last >= range.end);
        match (own, declared.constant) {
            (true, _) if !later => {}
            (false, true) => captured.push(*declared),
            _ => {
                if own {
                    let _ = writeln!(text, "{ctype} {}{{}};", declared.name);
                }
                // What has no value yet when it is declared has the one that it is handed.
                if !own || !declared.initialized {
                    let _ = writeln!(body, "{ctype} {0} = {0}_;", declared.name);
                }
                handed.push(*declared);
            }
        }
    }
    let mut leaves = false;
    for unit in &units[range] {
        let moved = handed
            .iter()
            .any(|of| unit.declares.is_some_and(|own| own.name == of.name && !own.initialized));
        if moved {
            continue;
        }
        body.push_str(match unit.kind {
            StatementKind::Leaves => {
                leaves = true;
                &unit.text[..unit.text.len() - LEAVE.len()]
            }
            _ => unit.text,
        });
        if unit.kind == StatementKind::Leaves {
            body.push_str("return false;\n");
        }
    }
    for name in handed.iter().map(|of| of.name) {
        let _ = writeln!(body, "{name}_ = {name};");
    }
    let list = |names: Vec<String>| names.join(", ");
    let row = if row { ", row" } else { "" };
    let by_value: String = captured.iter().map(|of| format!(", {}", of.name)).collect();
    let parameters =
        handed.iter().filter_map(|of| Some(format!("{}& {}_", of.ctype?, of.name))).collect();
    let arguments = handed.iter().map(|of| of.name.to_string()).collect();
    let (before, behind) = if leaves { ("if (!", ") break;") } else { ("", ";") };
    let _ = writeln!(
        text,
        "{before}[&{row}{by_value}]({}) WF_PART {{\n{body}return true;\n}}({}){behind}",
        list(parameters),
        list(arguments)
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Statements of which each asks for the one before.
    fn chain(length: usize) -> Code {
        let mut body = Code::default();
        body.scope("for (;;) {\nif (row < rows) ");
        body.constant("i64", "v0", "p.k0[row]");
        body.unset("i32", "c");
        for at in 1..=length {
            let sum = format!("wrap_add<i64>(v{}, p.k{at})", at - 1);
            body.constant("i64", &format!("v{at}"), sum);
            if at % 100 == 0 {
                body.line(format_args!("if (v{at} == 7) c = {at};"));
                body.leave_if(format_args!("!(v{at} > 0)"));
            }
        }
        body.line("p.out[row] = c;");
        body.close("} while (0);\n}");
        body
    }

    /// Many constants that take some room.
    fn plenty(of: Range<usize>, body: &mut Code) {
        of.for_each(|at| {
            body.constant("u32", &format!("v{at}"), format!("plenty_of_text(p.k{at})"))
        });
    }

    #[test]
    fn short_bodies_stay_as_they_are() {
        let body = chain(10);
        assert!(!is_long(&body));
        assert_eq!(in_parts(&body), body.text());
    }

    #[test]
    fn long_ones_are_cut_and_hand_on_what_is_asked_for() {
        let body = chain(4000);
        let cut = in_parts(&body);
        let parts = cut.matches("WF_PART").count();
        assert!((8..=40).contains(&parts), "{parts}");
        assert_eq!(cut.matches(" return false;").count(), 40);
        // Between two parts one constant goes on, and `c` goes through all.
        assert_eq!(cut.lines().filter(|line| line.ends_with("{};")).count(), parts);
        assert!(
            cut.contains("i32 c{};\n") && !cut.contains("\ni32 c;\n") && cut.contains("c_ = c;\n")
        );
        assert_eq!(cut.matches("wrap_add").count(), 4000, "nothing is lost");
        assert!(cut.len() < body.text().len() + parts * 300);
    }

    #[test]
    fn stores_follow_what_they_store() {
        let mut body = Code::default();
        body.scope("");
        body.leave_if("p.k0[row] > 3");
        plenty(0..1000, &mut body);
        body.unset("i32", "c");
        for at in 3..6 {
            body.line(format_args!("if (v{at} > 1) c = {at};"));
        }
        body.place_of_row();
        (0..1000).for_each(|at| body.store(&format!("p.k{}", 1000 + at), format!("v{at}")));
        body.store("p.k9", "c");
        body.close("} while (0);");
        let cut = in_parts(&body);
        // Between two parts `at` goes on, and what was stored last perhaps.
        let handed_on: Vec<_> = cut.lines().filter(|line| line.ends_with("{};")).collect();
        assert!(handed_on.len() <= cut.matches("WF_PART").count() + 2, "{handed_on:?}");
        let at = |text: &str| cut.find(text).unwrap_or_else(|| panic!("{text}"));
        assert!(
            at("const u64 at = row;") < at("return false;")
                && at("return false;") < at("p.k1000[at]")
        );
        assert!(
            at("p.k1000[at] = v0;") < at("const u32 v900 ") && at("c = 5;") < at("p.k9[at] = c;")
        );
    }

    #[test]
    fn what_cannot_be_handed_on_stays_in_one_part() {
        let mut body = Code::default();
        body.scope("");
        body.object("list_builder<view>", "v0", "(arena, 9)");
        body.variable("u32", "v1", 0);
        plenty(3..2000, &mut body);
        let rest = "v0.shorten(v1);";
        body.line(rest);
        plenty(2000..4000, &mut body);
        body.close("} while (0);");
        let cut = in_parts(&body);
        let first = &cut[..cut.find("return true;").unwrap()];
        assert!(first.contains("list_builder") && first.contains(rest), "{}", &cut[..200]);
        assert!(cut.matches("WF_PART").count() > 2);
    }

    #[test]
    fn what_leaves_from_within_a_branch_stays_where_it_is() {
        let mut body = Code::default();
        body.scope("");
        plenty(0..1000, &mut body);
        for (block, head) in [(BlockKind::Branch, "if (v1 > 0) {"), (BlockKind::Loop, "for (;;) {")]
        {
            body.open(block, head);
            body.leave_if("v2 > 0");
            body.close("}");
        }
        plenty(1000..2000, &mut body);
        body.close("} while (0);");
        let cut = in_parts(&body);
        assert!(
            cut.contains("if (v1 > 0) {\nif (v2 > 0) break;\n}\n")
                && !cut.contains("return false;")
        );
        let behind = &cut[cut.find("if (v1 > 0)").unwrap()..];
        assert!(behind.find("WF_PART") < behind.find("for (;;)"));
    }
}
