//! Sort keys: columns, directions and places of nulls become words of bits that sort as unsigned
//! numbers.
//!
//! ```text
//!   ORDER BY status (−1..=1, nulls last) DESC, price (f64, never null)
//!   piece   1 − status, null = 3          2 bits
//!           order-preserving bits        64 bits
//!   words   [piece 0, 62 bits of piece 1] [2 bits of piece 1]
//! ```

use datafusion::arrow::datatypes::DataType;

use super::device_function::{SORT_F32, SORT_F64, VIEW_WORD};
use super::emit::Emitter;
use super::params::Params;
use super::value::{Value, both};
use crate::column::Repr;
use crate::error::{Error, Result};

/// Direction of a sort key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Ascending,
    Descending,
}

/// Where a sort key puts nulls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NullsPlace {
    First,
    Last,
}

/// Longest strings, in bytes, that are sorted by their characters in place.
pub(crate) const LONGEST_SORTED: u32 = 256;

/// Longest keys of bytes that are sorted in place, which lists become ([`super::order_bytes`]):
/// some 64 elements of 8 bytes.
pub(crate) const LONGEST_BYTES: u32 = 640;

struct KeyPiece {
    code: String,
    bits: u32,
}

/// The words of a sort key, most significant first.
#[derive(Debug, Default)]
pub(crate) struct KeyWords {
    pub(crate) words: Vec<Value>,
    /// How many low bits of each word count.
    pub(crate) bits: Vec<u32>,
    /// How many bits, the highest of all words together, are of the leading keys.
    pub(crate) leading: u32,
}

impl KeyWords {
    fn push(&mut self, word: String, bits: u32) {
        self.words.push(Value::word(word));
        self.bits.push(bits);
    }
}

/// Emits the words of a sort key.
pub(crate) fn emit_words(
    keys: &[(Value, Direction, NullsPlace)],
    params: &mut Params,
    out: &mut Emitter,
) -> Result<KeyWords> {
    emit_words_of(keys, 0, params, out)
}

/// Emits the words of a sort key whose first `leading` keys lead.
pub(crate) fn emit_words_of(
    keys: &[(Value, Direction, NullsPlace)],
    leading: usize,
    params: &mut Params,
    out: &mut Emitter,
) -> Result<KeyWords> {
    let mut pieces: Vec<KeyPiece> = vec![];
    let mut key = KeyWords::default();
    for (at, (value, direction, nulls)) in keys.iter().enumerate() {
        emit_pieces(value, *direction, *nulls, params, out, &mut pieces)?;
        if at < leading {
            key.leading = pieces.iter().map(|piece| piece.bits).sum();
        }
    }
    for piece in pieces.into_iter().filter(|p| p.bits > 0) {
        match key.words.last_mut().zip(key.bits.last_mut()) {
            Some((word, bits)) if *bits + piece.bits <= 64 => {
                word.code = out
                    .let_("u64", format_args!("{} << {} | {}", word.code, piece.bits, piece.code));
                *bits += piece.bits;
            }
            // The first word is filled: a sort looks at its high bits first, and often needs no
            // more.
            Some((word, bits)) if *bits < 64 => {
                let room = 64 - *bits;
                let rest = piece.bits - room;
                word.code = out.let_(
                    "u64",
                    format_args!("{} << {room} | {} >> {rest}", word.code, piece.code),
                );
                *bits = 64;
                let low =
                    out.let_("u64", format_args!("{} & {:#x}ull", piece.code, (1u64 << rest) - 1));
                key.push(low, rest);
            }
            _ => key.push(piece.code, piece.bits),
        }
    }
    Ok(key)
}

fn emit_pieces(
    value: &Value,
    direction: Direction,
    nulls: NullsPlace,
    params: &mut Params,
    out: &mut Emitter,
    pieces: &mut Vec<KeyPiece>,
) -> Result<()> {
    if value.repr == Repr::Struct {
        if let Some(valid) = &value.valid {
            let code = if nulls == NullsPlace::First { "1ull : 0ull" } else { "0ull : 1ull" };
            pieces.push(KeyPiece {
                code: out.let_("u64", format_args!("{valid} ? {code}")),
                bits: 1,
            });
        }
        for field in &value.fields {
            // Structs that are null are equal, whatever lies beneath.
            let field = Value { valid: both(&value.valid, &field.valid, out), ..field.clone() };
            emit_pieces(&field, direction, nulls, params, out, pieces)?;
        }
        return Ok(());
    }
    let descending = direction == Direction::Descending;
    if let Some((code, low, high)) = integer(value) {
        let span = high.checked_sub(low).map(|span| span as u128);
        if let Some(span) = span.filter(|s| *s < u128::from(u64::MAX)) {
            let span = span as u64;
            let base = params.word("u64", if descending { high as u64 } else { low as u64 });
            let plain = if descending {
                format!("{base} - (u64){code}")
            } else {
                format!("(u64){code} - {base}")
            };
            let code = match (&value.valid, nulls) {
                (None, _) => out.let_("u64", plain),
                (Some(valid), NullsPlace::First) => {
                    out.let_("u64", format_args!("{valid} ? {plain} + 1 : 0ull"))
                }
                (Some(valid), NullsPlace::Last) => {
                    let null = params.word("u64", span + 1);
                    out.let_("u64", format_args!("{valid} ? {plain} : {null}"))
                }
            };
            let greatest = span + u64::from(value.valid.is_some());
            pieces.push(KeyPiece { code, bits: 64 - greatest.leading_zeros() });
            return Ok(());
        }
    }
    if let Some(valid) = &value.valid {
        let code = match nulls {
            NullsPlace::First => format!("{valid} ? 1ull : 0ull"),
            NullsPlace::Last => format!("{valid} ? 0ull : 1ull"),
        };
        pieces.push(KeyPiece { code: out.let_("u64", code), bits: 1 });
    }
    let mut piece = |plain: String, bits: u32, out: &mut Emitter| {
        let mask = if bits == 64 { u64::MAX } else { (1 << bits) - 1 };
        let plain = if descending { format!("(({plain}) ^ {mask:#x}ull)") } else { plain };
        let code = match &value.valid {
            Some(valid) => format!("{valid} ? {plain} : 0ull"),
            None => plain,
        };
        pieces.push(KeyPiece { code: out.let_("u64", code), bits });
    };
    let code = &value.code;
    match value.repr {
        Repr::F64 => piece(format!("{}({code})", out.calls(SORT_F64)), 64, out),
        Repr::F32 => piece(format!("{}({code})", out.calls(SORT_F32)), 32, out),
        Repr::View => {
            let most = if value.dtype == DataType::Binary { LONGEST_BYTES } else { LONGEST_SORTED };
            let longest = value.longest.filter(|longest| *longest <= most).ok_or_else(|| {
                Error::unsupported("ORDER BY of strings", format!("longer than {most} bytes"))
            })?;
            let whole = out.let_("view", code);
            for at in (0..longest).step_by(8) {
                let bits = 8 * (longest - at).min(8);
                let word = format!("{}({whole}, {at})", out.calls(VIEW_WORD));
                piece(
                    if bits == 64 { word } else { format!("({word} >> {})", 64 - bits) },
                    bits,
                    out,
                );
            }
            // Zeros at the end of a string do not show in its words.
            piece(format!("(u64){whole}.length"), 32 - longest.leading_zeros(), out);
        }
        Repr::I128 => {
            piece(format!("((u64)((u128){code} >> 64) ^ (1ull << 63))"), 64, out);
            piece(format!("(u64)(u128){code}"), 64, out);
        }
        Repr::U64 => piece(format!("(u64){code}"), 64, out),
        Repr::List | Repr::Struct => {
            return Err(Error::unsupported("ORDER BY", format!("{} in place", value.dtype)));
        }
        _ => piece(format!("((u64)(i64){code} ^ (1ull << 63))"), 64, out),
    }
    Ok(())
}

/// A value that is an integer of known bounds, dictionary codes among them.
fn integer(value: &Value) -> Option<(String, i128, i128)> {
    if let Some(input) = &value.dictionary {
        return Some((input.code.clone(), 0, (input.dictionary.values.len() as i128 - 1).max(0)));
    }
    match value.repr {
        Repr::Bool => Some((format!("({} ? 1 : 0)", value.code), 0, 1)),
        Repr::F32 | Repr::F64 | Repr::View | Repr::List | Repr::Struct => None,
        _ => {
            let (low, high) = value.bounds();
            Some((format!("({})", value.code), low, high))
        }
    }
}
