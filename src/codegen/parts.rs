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
pub(super) fn is_long(body: &str) -> bool {
    body.len() >= LONG
}

/// The body with the statements for a row, which stand between `do {` and `} while (0);`, in parts
/// where they are long.
pub(super) fn in_parts(body: &str) -> String {
    let mut text = String::with_capacity(body.len() + body.len() / 4);
    scopes(body, &mut text);
    text
}

/// Copies lines, with the scopes among them cut.
fn scopes(body: &str, text: &mut String) {
    let lines: Vec<&str> = body.lines().collect();
    let mut at = 0;
    while at < lines.len() {
        let end = if lines[at].ends_with("do {") { end_of_scope(&lines, at) } else { None };
        push_line(text, lines[at]);
        if let Some(end) = end {
            scope(&lines[at + 1..end], text);
            push_line(text, lines[end]);
            at = end;
        }
        at += 1;
    }
}

/// The line that closes the scope that this one opens.
fn end_of_scope(lines: &[&str], open: usize) -> Option<usize> {
    let mut depth = 0;
    for (at, line) in lines.iter().enumerate().skip(open) {
        depth += depth_of(line);
        if depth <= 0 && at > open {
            return line.starts_with("} while (0);").then_some(at);
        }
    }
    None
}

fn depth_of(line: &str) -> i64 {
    line.bytes().map(|byte| i64::from(byte == b'{') - i64::from(byte == b'}')).sum()
}

fn push_line(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}

/// One statement of a scope.
struct Unit<'a> {
    lines: &'a [&'a str],
    bytes: usize,
    declares: Option<Declared<'a>>,
    /// Whether it can stand in a function: what leaves the scope is a whole line.
    movable: bool,
}

/// What a statement declares.
#[derive(Clone, Copy)]
struct Declared<'a> {
    name: &'a str,
    /// `None` of what cannot be handed on.
    ctype: Option<&'a str>,
    constant: bool,
    /// Whether it is given a value at once.
    initialized: bool,
}

/// A name of the scope: which units declare it and ask for it last.
struct KnownName<'a> {
    declared: Declared<'a>,
    at: usize,
    last: usize,
}

fn scope(lines: &[&str], text: &mut String) {
    let bytes: usize = lines.iter().map(|line| line.len() + 1).sum();
    if bytes < LONG {
        lines.iter().for_each(|line| push_line(text, line));
        return;
    }
    let units = stores_moved_up(units(lines));
    let names = names(&units);
    let mut first = 0;
    while first < units.len() {
        let end = end_of_part(&units, &names, first);
        match &units[first..end] {
            // Alone because it is long: perhaps a scope itself.
            [unit] => scopes(&(unit.lines.join("\n") + "\n"), text),
            _ => part(&units, first..end, &names, text),
        }
        first = end;
    }
}

/// The statements of a scope.
fn units<'a>(lines: &'a [&'a str]) -> Vec<Unit<'a>> {
    let mut units = vec![];
    let mut first = 0;
    let mut depth = 0;
    for (at, line) in lines.iter().enumerate() {
        depth += depth_of(line);
        let goes_on = lines.get(at + 1).is_some_and(|next| next.trim_start().starts_with("else"));
        if depth > 0 || goes_on || !line.ends_with([';', '}']) {
            continue;
        }
        units.push(unit(&lines[first..=at]));
        first = at + 1;
    }
    if first < lines.len() {
        units.push(unit(&lines[first..]));
    }
    units
}

fn unit<'a>(lines: &'a [&'a str]) -> Unit<'a> {
    let bytes = lines.iter().map(|line| line.len() + 1).sum();
    let loops = ["for ", "while ", "do "].iter().any(|keyword| lines[0].starts_with(keyword));
    let leaves = |line: &&str| line.contains("break;") || line.contains("continue;");
    let movable = loops || lines.len() == 1 && is_leaving(lines[0]) || !lines.iter().any(leaves);
    Unit {
        lines,
        bytes,
        declares: if lines.len() == 1 { declared(lines[0]) } else { None },
        movable,
    }
}

/// Whether the line, which is a statement, leaves the scope, perhaps under a condition.
fn is_leaving(line: &str) -> bool {
    line == "break;" || line.starts_with("if (") && line.ends_with(") break;")
}

/// What a line declares: `[const] type name …`.
fn declared(line: &str) -> Option<Declared<'_>> {
    const STATEMENTS: [&str; 8] =
        ["if", "for", "while", "do", "else", "return", "break", "continue"];
    let (constant, rest) = match line.strip_prefix("const ") {
        Some(rest) => (true, rest),
        None => (false, line),
    };
    let length = rest.find(|c: char| !is_of_name(c))?;
    let ctype = &rest[..length];
    if ctype.is_empty() || STATEMENTS.contains(&ctype) {
        return None;
    }
    let mut behind = &rest[length..];
    let mut plain = true;
    if behind.starts_with('<') {
        plain = false;
        behind = &behind[closing(behind)?..];
    }
    let name = behind.trim_start_matches([' ', '*', '&']);
    plain &= behind.len() == name.len() + 1;
    if name.len() == behind.len() {
        return None;
    }
    // What follows the name.
    let end = name.find(|c: char| !is_of_name(c)).unwrap_or(name.len());
    let (name, behind) = name.split_at(end);
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let initialized = behind.starts_with(" = ");
    let single = behind == ";" || initialized && (constant || !behind.contains(", "));
    let handed_on = plain && single && HANDED_ON.contains(&ctype);
    Some(Declared { name, ctype: handed_on.then_some(ctype), constant, initialized })
}

/// Behind the `>` that closes the `<` that the text begins with.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0;
    for (at, byte) in text.bytes().enumerate() {
        depth += i32::from(byte == b'<') - i32::from(byte == b'>');
        if depth == 0 {
            return Some(at + 1);
        }
    }
    None
}

fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// The names in a text, as often as they occur.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !is_of_name(c)).filter(|word| !word.is_empty())
}

fn names<'a>(units: &[Unit<'a>]) -> HashMap<&'a str, KnownName<'a>> {
    let mut names: HashMap<&str, KnownName<'_>> = HashMap::new();
    for (at, unit) in units.iter().enumerate() {
        if let Some(declared) = unit.declares {
            names.insert(declared.name, KnownName { declared, at, last: at });
        }
        for word in unit.lines.iter().flat_map(|line| words(line)) {
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
    if let Some(at) = units.iter().position(|unit| unit.lines == [PLACE_OF_ROW]) {
        let place = units.remove(at);
        units.insert(0, place);
    }
    let is_store = |unit: &Unit<'_>| matches!(unit.lines, [line] if line.starts_with("p.k") && line.contains("[at] = "));
    // Behind which unit a name has its value, and whether it has that as soon as it is declared.
    let mut known: HashMap<&str, (usize, bool)> = HashMap::new();
    let mut left = 0;
    for (at, unit) in units.iter().enumerate().filter(|(_, unit)| !is_store(unit)) {
        if let Some(declared) = unit.declares {
            known.insert(declared.name, (at, declared.constant));
        }
        for word in unit.lines.iter().flat_map(|line| words(line)) {
            if let Some((known, false)) = known.get_mut(word) {
                *known = at;
            }
        }
        if unit.lines.iter().any(|line| line.contains("break;")) {
            left = at;
        }
    }
    let mut order: Vec<(usize, Unit<'_>)> = vec![];
    for (at, unit) in units.into_iter().enumerate() {
        let asked = |line: &&str| words(line).filter_map(|word| Some(known.get(word)?.0)).max();
        let behind = unit.lines.iter().filter_map(asked).max().unwrap_or(0).max(left);
        order.push((if is_store(&unit) { behind.min(at) } else { at }, unit));
    }
    order.sort_by_key(|(at, _)| *at);
    order.into_iter().map(|(_, unit)| unit).collect()
}

/// Where a row of a source that loses none goes, see `materialize.rs`.
const PLACE_OF_ROW: &str = "const u64 at = row;";

/// Where the part that begins with unit `first` ends.
fn end_of_part(units: &[Unit<'_>], names: &HashMap<&str, KnownName<'_>>, first: usize) -> usize {
    if !units[first].movable {
        return first + 1;
    }
    let mut bytes = 0;
    // What is declared and cannot be handed on is asked for up to here.
    let mut held = first;
    for (at, unit) in units.iter().enumerate().skip(first) {
        if !unit.movable || bytes + unit.bytes > PART && at > held {
            return at.max(first + 1);
        }
        bytes += unit.bytes;
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
    for word in units[range.clone()].iter().flat_map(|unit| unit.lines).flat_map(|line| words(line))
    {
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
        match unit.lines {
            [line] if is_leaving(line) => {
                leaves = true;
                push_line(
                    &mut body,
                    &(line[..line.len() - "break;".len()].to_string() + "return false;"),
                );
            }
            lines => lines.iter().for_each(|line| push_line(&mut body, line)),
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
    fn chain(length: usize) -> String {
        let mut body =
            String::from("for (;;) {\nif (row < rows) do {\nconst i64 v0 = p.k0[row];\ni32 c;\n");
        for at in 1..=length {
            let _ = writeln!(body, "const i64 v{at} = wrap_add<i64>(v{}, p.k{at});", at - 1);
            if at % 100 == 0 {
                let _ = writeln!(body, "if (v{at} == 7) c = {at};\nif (!(v{at} > 0)) break;");
            }
        }
        body + "p.out[row] = c;\n} while (0);\n}\n"
    }

    #[test]
    fn short_bodies_stay_as_they_are() {
        let body = chain(10);
        assert!(!is_long(&body));
        assert_eq!(in_parts(&body), body);
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
        assert!(cut.len() < body.len() + parts * 300);
    }

    #[test]
    fn stores_follow_what_they_store() {
        let mut body = String::from("do {\nif (p.k0[row] > 3) break;\n");
        (0..1000).for_each(|at| {
            body.push_str(&format!("const i64 v{at} = plenty_of_text(p.k{at}[row]);\n"))
        });
        body.push_str("i32 c;\nif (v3 > 1) c = 3;\nif (v4 > 1) c = 4;\nif (v5 > 1) c = 5;\nconst u64 at = row;\n");
        (0..1000).for_each(|at| body.push_str(&format!("p.k{}[at] = v{at};\n", 1000 + at)));
        let cut = in_parts(&(body + "p.k9[at] = c;\n} while (0);\n"));
        // Between two parts `at` goes on, and what was stored last perhaps.
        let handed_on: Vec<_> = cut.lines().filter(|line| line.ends_with("{};")).collect();
        assert!(handed_on.len() <= cut.matches("WF_PART").count() + 2, "{handed_on:?}");
        let at = |text: &str| cut.find(text).unwrap_or_else(|| panic!("{text}"));
        assert!(
            at("const u64 at = row;") < at("return false;")
                && at("return false;") < at("p.k1000[at]")
        );
        assert!(
            at("p.k1000[at] = v0;") < at("const i64 v900 ") && at("c = 5;") < at("p.k9[at] = c;")
        );
    }

    #[test]
    fn what_cannot_be_handed_on_stays_in_one_part() {
        let mut body =
            String::from("do {\nlist_builder<view> v0(arena, 9);\nu32 v1 = 0, v2 = 0;\n");
        (3..2000)
            .for_each(|at| body.push_str(&format!("const u32 v{at} = plenty_of_text(p.k{at});\n")));
        let rest = "v0.shorten(v2);\n";
        body.push_str(rest);
        (2000..4000)
            .for_each(|at| body.push_str(&format!("const u32 v{at} = plenty_of_text(p.k{at});\n")));
        let cut = in_parts(&(body + "} while (0);\n"));
        let first = &cut[..cut.find("return true;").unwrap()];
        assert!(first.contains("list_builder") && first.contains(rest), "{}", &cut[..200]);
        assert!(cut.matches("WF_PART").count() > 2);
    }

    #[test]
    fn declarations_are_told_from_other_statements() {
        let of = |line| declared(line).map(|d| (d.name, d.ctype, d.constant));
        assert_eq!(of("const bool v1 = a && b;"), Some(("v1", Some("bool"), true)));
        assert_eq!(of("i128 v2;"), Some(("v2", Some("i128"), false)));
        assert_eq!(of("u32 v3 = 0, v4 = 0;"), Some(("v3", None, false)));
        assert_eq!(of("u32 v3[4];"), Some(("v3", None, false)));
        assert_eq!(of("list_builder<u32, view> v5(arena, 3);"), Some(("v5", None, false)));
        assert_eq!(of("const u8* v6 = p.k1;"), Some(("v6", None, true)));
        for other in [
            "v1 = 3;",
            "acc0 += (i64)v2;",
            "if (a) v1 = 3;",
            "fail(status, X);",
            "v0.shorten(v2);",
            "break;",
        ] {
            assert_eq!(of(other), None, "{other}");
        }
    }
}
