//! Where rows and values begin and end in a CSV file: an automaton of seven states over its bytes.
//!
//! ```text
//!   a , " b " " c " \n        bytes
//!  R P V Q Q C Q Q C R        states: Row Plain Value Quoted Quoted Closed Quoted Quoted Closed Row
//! ```
//!
//! A state says what the bytes so far mean for the next one. A block of a file maps the state at
//! its begin to the one at its end ([`Grammar::end_states`]), so blocks are looked at in any order,
//! and the states at their begins follow ([`begin_states`]). The device's kernels compose the same
//! maps.

use memchr::{memchr, memchr2, memchr3};

/// The bytes that have a meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Grammar {
    pub(crate) delimiter: u8,
    pub(crate) quote: u8,
    /// Inside quotes, it and the byte behind it are that byte.
    pub(crate) escape: Option<u8>,
    /// As a row's first byte, it makes the line a comment.
    pub(crate) comment: Option<u8>,
}

/// What the bytes before a place mean for the byte there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum State {
    /// A row begins.
    Row,
    /// A value begins that is not the first of its row.
    Value,
    /// Inside an unquoted value, or behind a closed quote and further bytes.
    Plain,
    /// Inside quotes.
    Quoted,
    /// Behind a quote inside quotes: another one would double it, anything else leaves it closed.
    Closed,
    /// Behind an escape inside quotes.
    Escaped,
    /// Inside a line that is a comment.
    Comment,
}

/// What a byte may mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Class {
    Other,
    Delimiter,
    RowEnd,
    Quote,
    Escape,
    Comment,
}

/// All states, by number.
pub(crate) const STATES: [State; 7] = [
    State::Row,
    State::Value,
    State::Plain,
    State::Quoted,
    State::Closed,
    State::Escaped,
    State::Comment,
];

/// The state behind a byte: by the state before it, by the byte's class.
#[rustfmt::skip]
pub(crate) const TRANSITIONS: [[State; 6]; 7] = {
    use State::*;
    [
        // Other   Delimiter RowEnd  Quote    Escape   Comment
        [Plain,    Value,    Row,    Quoted,  Plain,   Comment], // Row
        [Plain,    Value,    Row,    Quoted,  Plain,   Plain  ], // Value
        [Plain,    Value,    Row,    Plain,   Plain,   Plain  ], // Plain
        [Quoted,   Quoted,   Quoted, Closed,  Escaped, Quoted ], // Quoted
        [Plain,    Value,    Row,    Quoted,  Plain,   Plain  ], // Closed
        [Quoted,   Quoted,   Quoted, Quoted,  Quoted,  Quoted ], // Escaped
        [Comment,  Comment,  Row,    Comment, Comment, Comment], // Comment
    ]
};

/// The state at a block's end for each state at its begin.
pub(crate) type EndStates = [State; 7];

impl Grammar {
    pub(crate) fn class(&self, byte: u8) -> Class {
        match byte {
            b'\n' | b'\r' => Class::RowEnd,
            _ if byte == self.delimiter => Class::Delimiter,
            _ if byte == self.quote => Class::Quote,
            _ if Some(byte) == self.escape => Class::Escape,
            _ if Some(byte) == self.comment => Class::Comment,
            _ => Class::Other,
        }
    }

    pub(crate) fn step(&self, state: State, byte: u8) -> State {
        TRANSITIONS[state as usize][self.class(byte) as usize]
    }

    /// The state behind the bytes. Only quotes are looked for where no comment may come: outside of
    /// them, a byte alone says what state is behind it.
    pub(crate) fn run(&self, mut state: State, bytes: &[u8]) -> State {
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            let rest = &bytes[at..];
            let next = match state {
                State::Quoted => match self.escape {
                    Some(escape) => memchr2(self.quote, escape, rest),
                    None => memchr(self.quote, rest),
                },
                State::Plain if self.comment.is_some() => {
                    memchr3(self.delimiter, b'\n', b'\r', rest)
                }
                State::Comment => memchr2(b'\n', b'\r', rest),
                State::Row | State::Value | State::Plain if self.comment.is_none() => {
                    match memchr(self.quote, rest) {
                        Some(0) => Some(0),
                        Some(next) => {
                            state = self.step(State::Plain, rest[next - 1]);
                            Some(next)
                        }
                        None => return self.step(State::Plain, rest[rest.len() - 1]),
                    }
                }
                _ => {
                    state = self.step(state, byte);
                    at += 1;
                    continue;
                }
            };
            let Some(next) = next else { return state };
            state = self.step(state, rest[next]);
            at += next + 1;
        }
        state
    }

    /// What a block makes of each state. Behind the first byte few states differ, so the rest is
    /// looked at two or three times.
    pub(crate) fn end_states(&self, bytes: &[u8]) -> EndStates {
        let Some((first, rest)) = bytes.split_first() else { return STATES };
        let mut known: [Option<State>; 7] = [None; 7];
        STATES.map(|begin| {
            let second = self.step(begin, *first);
            *known[second as usize].get_or_insert_with(|| self.run(second, rest))
        })
    }

    /// Where a row begins in bytes of which nobody knows whether they begin inside quotes: behind
    /// the place where it no longer matters. A quote opens a value only at its begin, so few quotes
    /// settle it. Bytes without any are taken to lie outside.
    pub(crate) fn some_row(&self, bytes: &[u8]) -> Option<usize> {
        if memchr(self.quote, bytes).is_none() {
            return self.first_row(State::Plain, bytes);
        }
        let mut states = STATES;
        let settled = bytes.iter().position(|byte| {
            states = states.map(|state| self.step(state, *byte));
            states.iter().all(|state| *state == states[0])
        })?;
        let rest = &bytes[settled + 1..];
        self.first_row(states[0], rest).map(|first| settled + 1 + first)
    }

    /// Where the first row begins in bytes before which the state is this one.
    pub(crate) fn first_row(&self, mut state: State, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        while state != State::Row {
            let rest = &bytes[at..];
            let next = match state {
                State::Quoted => match self.escape {
                    Some(escape) => memchr2(self.quote, escape, rest),
                    None => memchr(self.quote, rest),
                },
                State::Plain => memchr3(self.delimiter, b'\n', b'\r', rest),
                State::Comment => memchr2(b'\n', b'\r', rest),
                _ => (!rest.is_empty()).then_some(0),
            }?;
            state = self.step(state, rest[next]);
            at += next + 1;
        }
        Some(at)
    }
}

/// The state at the begin of each block, and behind the last, of blocks that follow one another
/// from the begin of a row.
pub(crate) fn begin_states(blocks: &[EndStates]) -> Vec<State> {
    let mut state = State::Row;
    let mut begins = vec![state];
    for ends in blocks {
        state = ends[state as usize];
        begins.push(state);
    }
    begins
}

/// The line that the byte behind these lies in, as an editor counts: `\r\n` is one line's end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lines {
    line: u64,
    /// The last byte was a carriage return.
    returned: bool,
}

impl Lines {
    pub(crate) fn new() -> Lines {
        Lines { line: 1, returned: false }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        for at in memchr::memchr2_iter(b'\n', b'\r', bytes) {
            let follows = if at == 0 { self.returned } else { bytes[at - 1] == b'\r' };
            self.line += u64::from(!(bytes[at] == b'\n' && follows));
        }
        self.returned = bytes.last().map_or(self.returned, |last| *last == b'\r');
    }

    pub(crate) fn line(self) -> u64 {
        self.line
    }
}

#[cfg(test)]
mod tests {
    use super::super::oracle::{grammars, odd_text};
    use super::*;

    #[test]
    fn states_behind_blocks_are_those_behind_their_bytes() {
        for seed in 0..400 {
            let grammar = grammars()[seed as usize % grammars().len()];
            let text = odd_text(seed, &grammar);
            for begin in STATES {
                let slow = text.iter().fold(begin, |state, byte| grammar.step(state, *byte));
                assert_eq!(
                    grammar.run(begin, &text),
                    slow,
                    "{grammar:?} {:?}",
                    String::from_utf8_lossy(&text)
                );
                let mut state = begin;
                let first = text.iter().position(|byte| {
                    let is_row = state == State::Row;
                    state = grammar.step(state, *byte);
                    is_row
                });
                let first = first.or((state == State::Row).then_some(text.len()));
                assert_eq!(grammar.first_row(begin, &text), first);
            }
            for width in [1, 2, 3, 7, 64] {
                let blocks: Vec<EndStates> =
                    text.chunks(width).map(|block| grammar.end_states(block)).collect();
                let begins = begin_states(&blocks);
                let slow = (0..=blocks.len()).map(|block| {
                    let before = &text[..text.len().min(block * width)];
                    before.iter().fold(State::Row, |state, byte| grammar.step(state, *byte))
                });
                assert_eq!(begins, slow.collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn a_row_that_is_found_anywhere_is_one() {
        let mut found = 0;
        for seed in 0..400 {
            let grammar = grammars()[seed as usize % grammars().len()];
            let text = odd_text(seed, &grammar);
            for begin in 0..text.len() {
                let rest = &text[begin..];
                if let Some(row) = grammar.some_row(rest).filter(|_| rest.contains(&grammar.quote))
                {
                    assert_eq!(grammar.run(State::Row, &text[..begin + row]), State::Row);
                    found += 1;
                }
            }
        }
        assert!(found > 1000, "{found}");
    }

    #[test]
    fn lines_are_those_of_an_editor() {
        for (text, line) in
            [("", 1), ("a\n", 2), ("a\r\nb", 2), ("a\rb\r", 3), ("\n\r\r\n", 4), ("\r\n\r\n", 3)]
        {
            for width in 1..4 {
                let mut lines = Lines::new();
                text.as_bytes().chunks(width).for_each(|part| lines.push(part));
                assert_eq!(lines.line(), line, "{text:?}");
            }
        }
    }
}
