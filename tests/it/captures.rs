//! Groups of regular expressions.

use std::sync::Arc;

use warpframe::arrow::array::*;

use crate::differential::Pair;
use crate::tables::columns;

/// Texts with numbers, words, lines and é in them; of few distinct values as `d`.
fn pair(rows: usize) -> Pair {
    let parts =
        ["", "ab", "key=value", "é", "2024-05-17", " ", "aab", "http://www.example.org/a/b?c", "\n", "x1y22", "_"];
    let text = |row: usize| {
        let words: Vec<&str> = (0..row % 6).map(|k| parts[(row * 7 + k * k * 5 + k) % parts.len()]).collect();
        (!row.is_multiple_of(13))
            .then(|| format!("{}{}", words.join(["", " ", "-"][row % 3]), if row.is_multiple_of(4) { "" } else { "7" }))
    };
    let many: Vec<_> = (0..rows).map(|row| text(row).map(|text| format!("{text}{}", row / 3))).collect();
    Pair::of(columns(vec![
        ("id", Arc::new(Int64Array::from_iter_values(0..rows as i64)) as ArrayRef),
        ("s", Arc::new(StringViewArray::from_iter(many.clone()))),
        ("u", Arc::new(StringArray::from_iter(many))),
        ("d", Arc::new(StringArray::from_iter((0..rows).map(|row| text(row % 31))))),
    ]))
}

const PATTERNS: [&str; 16] = [
    "(a+)(b)?",
    "([a-z]+)=([a-z]+)",
    "(\\d{4})-(\\d\\d)-(\\d\\d)",
    "^https?://(?:www\\.)?([^/]+)/.*$",
    "(a|ab)(c|bcd|b)?(d*)",
    "(?:(a)|(b)|é)+",
    "(a*)*",
    "(.*?)-(.*)",
    "(?-u:\\b)([a-z0-9]+)(?-u:\\b)",
    "(?m)^(.)(.*)$",
    "(é+)|(\\d+)",
    "x(?<first>\\d)y(?<second>\\d+)",
    "()",
    "",
    "((a)|(b))((c)?)",
    "zzz(a)",
];

#[test]
fn groups_of_the_first_match_are_a_list() {
    for (rows, patterns) in [(700, &PATTERNS[..]), (1, &PATTERNS[..1]), (0, &PATTERNS[..1])] {
        let pair = pair(rows);
        for pattern in patterns {
            pair.check(&format!(
                "SELECT id, regexp_match(s, '{pattern}') AS a, regexp_match(u, '{pattern}')[1] AS b FROM t"
            ));
        }
        pair.check("SELECT id, regexp_match(d, '(A)(b)', 'i') AS a, regexp_match(s || 'é', '(.)$') AS b FROM t");
        pair.check("SELECT regexp_match(s, '(a+)')[1] AS a, count(*) FROM t GROUP BY 1");
        pair.check("SELECT id FROM t WHERE regexp_match(s, '(\\d+)-')[1] = '17' OR array_length(regexp_match(u, '(a)(b)?')) = 1");
    }
}

#[test]
fn replacements_refer_to_groups() {
    for (rows, patterns) in [(700, &PATTERNS[..]), (1, &PATTERNS[..1])] {
        let pair = pair(rows);
        for pattern in patterns {
            pair.check(&format!(
                "SELECT id, regexp_replace(s, '{pattern}', '<\\2|\\1>', 'g') AS a,
                regexp_replace(u, '{pattern}', '${{1}}é and more than fits') AS b,
                regexp_replace(s, '{pattern}', '\\0$1a$$', 'g') AS c FROM t"
            ));
        }
        pair.check("SELECT id, regexp_replace(d, '(a)(.)', '\\2\\1') AS a FROM t");
        pair.check(
            "SELECT id, regexp_replace(s, 'x(?<n>.)', '[$n]', 'gi') AS a, regexp_replace(s, 'a', '\\\\n') AS b FROM t",
        );
        pair.check("SELECT regexp_replace(s, '^(.).*$', '\\1') AS a, count(*) FROM t GROUP BY 1 ORDER BY a");
    }
}
