//! What tests compare readers with: odd texts, and rows found one byte at a time.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::grammar::{Grammar, State};

/// Grammars that differ in what they know.
pub(crate) fn grammars() -> Vec<Grammar> {
    let plain = Grammar { delimiter: b',', quote: b'"', escape: None, comment: None };
    vec![
        plain,
        Grammar { comment: Some(b'#'), ..plain },
        Grammar { escape: Some(b'\\'), ..plain },
        Grammar { delimiter: b'\t', quote: b'\'', escape: Some(b'\\'), comment: Some(b'#') },
        Grammar { delimiter: b'|', ..plain },
    ]
}

/// A text of odd rows: quotes where they open and where they do not, doubled ones, escapes, all row
/// ends inside quotes and outside, comments, blank lines, values long enough to cross windows.
pub(crate) fn odd_text(seed: u64, grammar: &Grammar) -> Vec<u8> {
    let mut random = StdRng::seed_from_u64(seed);
    let mut text = vec![];
    let (delimiter, quote) = (grammar.delimiter, grammar.quote);
    let pieces: Vec<Vec<u8>> = vec![
        vec![delimiter],
        vec![quote],
        vec![quote, quote],
        vec![delimiter, quote],
        vec![quote, delimiter],
        b"\n".to_vec(),
        b"\r\n".to_vec(),
        b"\r".to_vec(),
        b"a".to_vec(),
        b"12".to_vec(),
        b"\\".to_vec(),
        vec![b'\\', quote],
        b"#".to_vec(),
        b"\n#".to_vec(),
        "é".as_bytes().to_vec(),
        b" ".to_vec(),
        b"x".repeat(70),
    ];
    for _ in 0..random.random_range(0..60) {
        text.extend_from_slice(&pieces[random.random_range(0..pieces.len())]);
    }
    text
}

/// What rows a text has.
#[derive(Debug, Default)]
pub(crate) struct SlowRows {
    /// Each value with whether it was quoted.
    pub(crate) complete: Vec<Vec<(bool, Vec<u8>)>>,
    /// Where a quote opens that nothing closes.
    pub(crate) unclosed: Option<usize>,
}

/// The rows of a text whose last row has an end, by the automaton, one byte at a time.
pub(crate) fn rows(text: &[u8], grammar: &Grammar) -> SlowRows {
    let mut found = SlowRows::default();
    let (mut row, mut value, mut quoted, mut opened) = (vec![], vec![], false, 0);
    let mut state = State::Row;
    for (at, &byte) in text.iter().enumerate() {
        let next = grammar.step(state, byte);
        match (state, next) {
            (State::Comment, _) | (_, State::Comment) | (State::Row, State::Row) => {}
            (_, State::Value | State::Row) => {
                row.push((std::mem::take(&mut quoted), std::mem::take(&mut value)));
                if next == State::Row {
                    found.complete.push(std::mem::take(&mut row));
                }
            }
            (State::Row | State::Value, State::Quoted) => (quoted, opened) = (true, at),
            // The quote may close; the escape says nothing itself.
            (State::Quoted, State::Closed | State::Escaped) => {}
            _ => value.push(byte),
        }
        state = next;
    }
    found.unclosed = matches!(state, State::Quoted | State::Escaped).then_some(opened);
    found
}
