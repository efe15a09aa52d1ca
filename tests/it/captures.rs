//! Groups of regular expressions.

use std::sync::Arc;

use warpframe::arrow::array::*;

use crate::differential::{Pair, builder, run};
use crate::tables::columns;

/// Texts with numbers, words, lines and é in them; of few distinct values as `d`.
fn pair(rows: usize) -> Pair {
    let parts = [
        "",
        "ab",
        "key=value",
        "é",
        "2024-05-17",
        " ",
        "aab",
        "http://www.example.org/a/b?c",
        "\n",
        "x1y22",
        "_",
    ];
    let text = |row: usize| {
        let words: Vec<&str> =
            (0..row % 6).map(|k| parts[(row * 7 + k * k * 5 + k) % parts.len()]).collect();
        (!row.is_multiple_of(13)).then(|| {
            format!(
                "{}{}",
                words.join(["", " ", "-"][row % 3]),
                if row.is_multiple_of(4) { "" } else { "7" }
            )
        })
    };
    let many: Vec<_> =
        (0..rows).map(|row| text(row).map(|text| format!("{text}{}", row / 3))).collect();
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

/// Patterns whose repetitions, written out, would take all memory, are errors that name them, and
/// soon.
#[test]
fn patterns_that_are_too_large_are_refused_by_name() {
    let table = || columns(vec![("s", Arc::new(StringArray::from(vec!["aaab", "b"])) as ArrayRef)]);
    let strict = Pair::of(table());
    let lenient = Pair::with(builder()).and("t", table());
    let forms = [
        "SELECT s ~ '{}' AS x FROM t",
        "SELECT count(*) FROM t WHERE s !~* '{}'",
        "SELECT s SIMILAR TO '{}' AS x FROM t",
        "SELECT regexp_like(s, '{}') FROM t",
        "SELECT regexp_count(s, '{}') FROM t",
        "SELECT regexp_instr(s, '{}') FROM t",
        "SELECT regexp_match(s, '{}') FROM t",
        "SELECT regexp_replace(s, '{}', 'x') FROM t",
    ];
    let refused = |pattern: &str, form: &str| {
        let sql = form.replace("{}", pattern);
        for session in [&strict.cpu, &strict.device, &lenient.device] {
            let start = std::time::Instant::now();
            let error = run(session, &sql).expect_err(&sql);
            assert!(error.to_string().contains(pattern), "{error}\n  {sql}");
            assert!(start.elapsed().as_secs() < 20, "{:?}\n  {sql}", start.elapsed());
        }
    };
    forms.iter().for_each(|form| refused("((a{1000}){1000}){1000}", form));
    refused("(((a|b){999}c){999}){999}", forms[0]);
    refused("(\\w{1000}){1000}", forms[6]);
    // Large, and not too large.
    let all = lenient.check("SELECT s FROM t WHERE s ~ 'a{3}b{1,2}' AND s LIKE '%a%a%a%_'");
    assert_eq!(all, 1);
    let long = "_".repeat(40_000);
    let sql = format!("SELECT s FROM t WHERE s LIKE '%{long}%a%' OR s LIKE '%b'");
    let error = run(&lenient.cpu, &sql).expect_err("more than the CPU compiles");
    assert!(error.to_string().contains(&long), "{}", &error.to_string()[..100]);
    // The device follows a text of any length, or says why not.
    match run(&lenient.device, &sql) {
        Ok(found) => assert_eq!(found.num_rows(), 2),
        Err(error) => assert!(error.to_string().contains(&long), "{}", &error.to_string()[..100]),
    }
}
