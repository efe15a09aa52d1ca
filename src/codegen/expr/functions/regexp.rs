//! Regular expressions.

use datafusion::sql::sqlparser::ast::{Expr as Tree, Value as Constant};

use super::*;
use crate::sql::ast::{call, case, is_null, nested, number, text};

pub(super) const FAMILY: &[Function] = &[
    row("regexp_like")
        .also(&["regexp_matches"])
        .written_instead(LIKE, |name, args| with_options(name, args, 2))
        .several(2..=3, |c, call| c.regexp_like(call.args))
        .fails(pattern_fails),
    row("regexp_count").several(2..=4, |c, call| c.regexp_count(call.args, call.dtype)),
    row("regexp_instr").two(|c, text, pattern, dtype| c.regexp_position(text, pattern, dtype)),
    row("regexp_match")
        .written_instead(LIKE, |name, args| with_options(name, args, 2))
        .several(2..=3, |c, call| c.regexp_match(call.args, call.dtype))
        .fails(pattern_fails),
    row("regexp_replace")
        .written_instead(REPLACE, |name, args| with_options(name, args, 3))
        .several(3..=4, |c, call| c.regexp_replace(call.args, call.dtype))
        .fails(|args, _| match args {
            [_, pattern, _, more @ ..] => !(is_constant(pattern) && more.iter().all(is_constant)),
            _ => true,
        }),
    row("regexp_extract").written(
        "takes a text, a constant pattern, and the number of a group, from 0 on",
        |_, args| extracted(args),
    ),
    row("regexp_full_match")
        .written("takes a text, a constant pattern, and options", |_, args| full_match(args)),
];

const LIKE: &str = "takes a text, a pattern, and options that are not NULL";
const REPLACE: &str =
    "takes a text, a pattern, what is put in its place, and options that are not NULL";

/// The call itself, of so many arguments or of options more, which NULL is none of, as in DuckDB.
fn with_options(name: &str, args: &[Tree], plain: usize) -> Option<Tree> {
    let takes = plain..=plain + 1;
    let is_null = args.get(plain).is_some_and(is_null);
    (takes.contains(&args.len()) && !is_null).then(|| call(name, args.to_vec()))
}

#[cfg(test)]
pub(super) const PAGE: &[Line] = &[yes(
    "`regexp_like`, `regexp_count`, `regexp_instr`, `regexp_replace` with constant patterns, \
     `regexp_match`",
    "`SELECT regexp_like(s, 'a+', 'i'), regexp_count(s, '[ab]'), regexp_instr(s, '[ab]'), \
     regexp_replace(s, 'a+', '-', 'g'), regexp_replace(s, '(a)(.)', '\\2\\1'), regexp_match(s, \
     '([a-z]+) ([a-z]+)') FROM t`",
    "an automaton of more than 1 MiB; more than 10 groups that are asked for; a row beyond \
     ASCII, where the pattern has word boundaries in Unicode, sends the query to the CPU",
)];

fn pattern_fails(args: &[Expr], _: TypeOf<'_>) -> bool {
    !args.iter().skip(1).all(is_constant)
}

/// Whether the pattern, which is constant, matches the whole text.
fn full_match(args: &[Tree]) -> Option<Tree> {
    let [subject, Tree::Value(pattern), options @ ..] = args else { return None };
    let pattern = pattern.value.clone().into_string()?;
    let mut whole = vec![subject.clone(), text(&format!(r"\A(?:{pattern})\z"))];
    whole.extend(options.iter().cloned());
    (options.len() < 2 && !options.iter().any(is_null)).then(|| call("regexp_like", whole))
}

/// A group of the first match, and the empty text where there is none.
fn extracted(args: &[Tree]) -> Option<Tree> {
    let constant = |expr: &Tree| match expr {
        Tree::Value(value) => Some(value.value.clone()),
        _ => None,
    };
    let (subject, pattern, group) = match args {
        [subject, pattern] => (subject, constant(pattern)?.into_string()?, 0),
        [subject, pattern, group] => match constant(group)? {
            Constant::Number(digits, _) => {
                (subject, constant(pattern)?.into_string()?, digits.parse::<u8>().ok()?)
            }
            _ => return None,
        },
        _ => return None,
    };
    let groups = call("regexp_match", vec![subject.clone(), text(&format!("({pattern})"))]);
    let place = number(&(u32::from(group) + 1).to_string());
    let found = call("array_element", vec![groups, place]);
    let found = call("coalesce", vec![found, text("")]);
    Some(case(Tree::IsNotNull(Box::new(nested(subject.clone()))), found, None))
}
