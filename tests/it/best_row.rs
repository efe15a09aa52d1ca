//! The least and the greatest text of all rows, which are found by comparing rows. The texts of a
//! column are more than there may be codes for, or codes would be compared.

use std::sync::Arc;

use warpframe::arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray, StringViewArray};

use crate::differential::Pair;
use crate::tables::columns;

/// Some thirty tiles.
const ROWS: i64 = 30_000;
/// As long as what two texts of a report often share.
const COMMON: &str = "2024-01-01T00:00:00.000Z";

/// Columns whose best rows lie in different places.
fn table() -> Vec<RecordBatch> {
    let scattered = |row: i64| row * 7919 % 1_000_003;
    let texts = |of: &dyn Fn(i64) -> Option<String>| -> ArrayRef {
        Arc::new(StringArray::from_iter((0..ROWS).map(of)))
    };
    let giant = "giant".repeat(600 << 10);
    columns(vec![
        ("id", Arc::new(Int64Array::from_iter_values(0..ROWS))),
        ("early", texts(&|row| Some(format!("{:06}{COMMON}", scattered(row))))),
        ("late", texts(&|row| Some(format!("{COMMON}{:06}", scattered(row))))),
        ("up", texts(&|row| Some(format!("{COMMON}{row:06}")))),
        ("down", texts(&|row| Some(format!("{COMMON}{:06}", ROWS - row)))),
        // Of the best texts there are thousands.
        (
            "ties",
            texts(&|row| {
                Some(match row % 3 {
                    0 => format!("{COMMON}999999"),
                    1 => format!("{COMMON}000000"),
                    _ => format!("{COMMON}{:06}", 1 + row),
                })
            }),
        ),
        (
            "nulls",
            texts(&|row| {
                (row % 2 == 0 && row > 999).then(|| format!("{COMMON}{}", scattered(row)))
            }),
        ),
        // Some are the beginning of others, and one is empty.
        (
            "parts",
            texts(&|row| {
                let text = format!("{COMMON}{COMMON}é{row}");
                let cut = (row % 48) as usize;
                Some(if row % 2 == 0 { text } else { text[..cut].into() })
            }),
        ),
        // Among short texts three of 3 MB, which differ in their last byte.
        (
            "giants",
            texts(&|row| {
                Some(match row {
                    7000 | 14_000 | 29_999 => format!("{giant}{}", row / 7000),
                    row if row % 2 == 0 => format!("{giant:.30}{:06}", scattered(row)),
                    row => scattered(row).to_string(),
                })
            }),
        ),
    ])
}

const TEXTS: [&str; 8] = ["early", "late", "up", "down", "ties", "nulls", "parts", "giants"];

fn extremes(of: &str) -> String {
    let both = TEXTS.map(|text| format!("min({text}){of}, max({text}){of}"));
    both.join(", ")
}

#[test]
fn the_best_row_lies_anywhere() {
    let pair = Pair::of(table());
    let all = extremes("");
    pair.check(&format!("SELECT {all} FROM t"));
    for text in TEXTS {
        pair.check(&format!("SELECT max({text}) FROM t"));
        pair.check(&format!("SELECT min({text}), count(*), avg(id), sum(id) FROM t"));
    }
    for condition in ["id < 0", "id = 29999", "id % 5000 = 4999"] {
        pair.check(&format!("SELECT {all} FROM t WHERE {condition}"));
        pair.check(&format!("SELECT {}, count(*) FROM t", {
            extremes(&format!(" FILTER (WHERE {condition})"))
        }));
    }
    let launches = pair.gpu().launches();
    assert!(launches.iter().any(|(name, _)| name.starts_with("reduce")), "{launches:?}");
    assert!(!launches.iter().any(|(name, _)| name.starts_with("sort")), "{launches:?}");
}

/// Whose texts are seen through row numbers.
#[test]
fn the_best_row_of_tables_of_few_rows() {
    let pair = Pair::of(table());
    let all = extremes("");
    for rows in [0, 1, 2, 31, 32, 33, 255, 256, 257, 511, 512, 513, 2047, 2048, 2049] {
        for first in [0, 6990] {
            let part = format!("SELECT * FROM t LIMIT {rows} OFFSET {first}");
            pair.check(&format!("SELECT {all} FROM ({part})"));
        }
    }
    pair.check(&format!("SELECT {all} FROM (SELECT * FROM t ORDER BY late LIMIT 3000)"));
    pair.check(&format!("SELECT {all} FROM (SELECT * FROM t ORDER BY id DESC)"));
}

/// Texts of the same beginning and every length, at every distance from the words of memory.
#[test]
fn texts_are_compared_byte_by_byte() {
    const LONGEST: usize = 42;
    let letters: Vec<char> = "common beginnings, ééé, and then a lot more".chars().collect();
    let beginning = |length: usize| letters[..length].iter().collect::<String>();
    let mut pairs = vec![];
    for length in 0..=LONGEST {
        for other in 0..=LONGEST {
            pairs.push((beginning(length), beginning(other)));
            // One of them goes on with what is nothing in a word that is filled up.
            pairs.push((beginning(length), beginning(length) + &"\0".repeat(other % 19)));
        }
        for at in 0..length {
            for letter in ['\0', 'a', 'z', '\u{7f}', 'è', '\u{10ffff}'] {
                let mut changed = letters[..length].to_vec();
                changed[at] = letter;
                pairs.push((beginning(length), changed.into_iter().collect()));
            }
        }
    }
    // So many that there are no codes.
    let filler = pairs.len();
    pairs.extend((0..filler).map(|row| (format!("{row} left"), format!("{row} right"))));
    let text = |of: fn(&(String, String)) -> &String| pairs.iter().map(of);
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..pairs.len() as i64));
    for views in [false, true] {
        let [a, b]: [ArrayRef; 2] = [text(|pair| &pair.0), text(|pair| &pair.1)].map(|texts| {
            if views {
                Arc::new(StringViewArray::from_iter_values(texts)) as ArrayRef
            } else {
                Arc::new(StringArray::from_iter_values(texts)) as ArrayRef
            }
        });
        let pair = Pair::of(columns(vec![("id", ids.clone()), ("a", a), ("b", b)]));
        pair.check(
            "SELECT id, a < b AS l, a <= b AS le, a > b AS g, b >= a AS ge, a = b AS e FROM t",
        );
    }
}
