//! What travels of a row to its partition: a few 32-bit words, its key first. The partitions of
//! aggregates and of joins have such records.

use super::statements::Code;
use super::value::Value;
use crate::column::Repr;

/// Words of a record: more, and a tile holds too few rows.
const MOST_WORDS: usize = 16;

/// How a value travels in a record.
#[derive(Debug, Clone, Copy)]
enum Carry {
    /// The low 32 bits of an integer, extended with its sign or with zeros.
    Signed32,
    Unsigned32,
    F32,
    Word64,
    F64,
    Word128,
}

impl Carry {
    fn of(value: &Value) -> Carry {
        if value.dictionary.is_some() {
            return Carry::Unsigned32;
        }
        let (low, high) = value.bounds();
        match value.repr {
            Repr::F32 => Carry::F32,
            Repr::F64 => Carry::F64,
            _ if low >= i128::from(i32::MIN) && high <= i128::from(i32::MAX) => Carry::Signed32,
            _ if low >= 0 && high <= i128::from(u32::MAX) => Carry::Unsigned32,
            Repr::I128 if i64::try_from(low).is_err() || i64::try_from(high).is_err() => {
                Carry::Word128
            }
            _ => Carry::Word64,
        }
    }

    fn words(self) -> usize {
        match self {
            Carry::Signed32 | Carry::Unsigned32 | Carry::F32 => 1,
            Carry::Word64 | Carry::F64 => 2,
            Carry::Word128 => 4,
        }
    }
}

/// What a record holds behind its key.
pub(super) struct Record {
    /// Words of the key: one of a dense key, two of a mixed one.
    pub(super) key: usize,
    /// Code of each value, how it is carried, and its first word.
    values: Vec<(String, Carry, usize)>,
    /// Conditions, a bit each, in the last word.
    flags: Vec<String>,
    pub(super) words: usize,
}

/// How a value is called where the pipeline computes it.
fn code_of(value: &Value) -> &str {
    value.dictionary.as_ref().map_or(&value.code, |input| &input.code)
}

impl Record {
    /// A record of nothing but a key: of one word where it is dense, else mixed, of two.
    pub(super) fn keyed(dense: bool) -> Record {
        let key = if dense { 1 } else { 2 };
        Record { key, values: vec![], flags: vec![], words: key }
    }

    /// Takes a value along, without its validity. Not where it has no fixed width.
    #[must_use]
    pub(super) fn takes(&mut self, value: &Value) -> bool {
        if matches!(value.repr, Repr::View | Repr::List | Repr::Struct)
            && value.dictionary.is_none()
        {
            return false;
        }
        let code = code_of(value).to_string();
        if !self.values.iter().any(|(known, ..)| *known == code) {
            let carry = Carry::of(value);
            let last = self.values.last().map_or(self.key, |(_, carry, at)| at + carry.words());
            self.values.push((code, carry, last));
            self.words += carry.words();
        }
        true
    }

    /// Takes a condition along.
    pub(super) fn takes_flag(&mut self, condition: &str) {
        if !self.flags.iter().any(|flag| flag == condition) {
            self.words += usize::from(self.flags.is_empty());
            self.flags.push(condition.to_string());
        }
    }

    /// Whether it is narrow enough.
    pub(super) fn fits(&self) -> bool {
        self.words <= MOST_WORDS && self.flags.len() <= 32
    }

    /// Statements that store a row's key to the array `to` of words; `secret` mixes it.
    pub(super) fn emit_key(&self, key: &str, secret: &str, to: &str, out: &mut Code) {
        if self.key == 1 {
            return out.line(format_args!("{to}[0] = (u32){key};"));
        }
        out.constant("u64", "mixed", format_args!("hash_mix({key}, {secret})"));
        out.line(format_args!("{to}[0] = (u32)mixed;"));
        out.line(format_args!("{to}[1] = (u32)(mixed >> 32);"));
    }

    /// Statements that store what is behind the key.
    pub(super) fn emit_values(&self, to: &str, out: &mut Code) {
        for (code, carry, at) in &self.values {
            let mut word = |offset: usize, value: String| {
                out.line(format_args!("{to}[{}] = {value};", at + offset))
            };
            match carry {
                Carry::Signed32 | Carry::Unsigned32 => word(0, format!("(u32)({code})")),
                Carry::F32 => word(0, format!("bits({code})")),
                Carry::F64 => {
                    word(0, format!("(u32)bits({code})"));
                    word(1, format!("(u32)(bits({code}) >> 32)"));
                }
                Carry::Word64 | Carry::Word128 => {
                    for offset in 0..carry.words() {
                        word(offset, format!("(u32)({code} >> {})", 32 * offset));
                    }
                }
            }
        }
        if !self.flags.is_empty() {
            let bits = self
                .flags
                .iter()
                .enumerate()
                .map(|(bit, f)| format!("({f} ? {}u : 0u)", 1u32 << bit));
            let bits = bits.collect::<Vec<_>>().join(" | ");
            out.line(format_args!("{to}[{}] = {bits};", self.words - 1));
        }
    }

    /// Statements that give the values of the record `from` names again, which begin with `prefix`.
    pub(super) fn emit_load(&self, from: &str, prefix: &str, out: &mut Code) {
        let wide = |at: usize| format!("((u64){from}[{at}] | (u64){from}[{}] << 32)", at + 1);
        for (i, (_, carry, at)) in self.values.iter().enumerate() {
            let (ctype, value) = match carry {
                Carry::Signed32 => ("i64", format!("(i64)(i32){from}[{at}]")),
                Carry::Unsigned32 => ("u32", format!("{from}[{at}]")),
                Carry::F32 => ("f32", format!("float_of_bits({from}[{at}])")),
                Carry::F64 => ("f64", format!("double_of_bits({})", wide(*at))),
                Carry::Word64 => ("u64", wide(*at)),
                Carry::Word128 => {
                    ("i128", format!("i128(make_u128({}, {}))", wide(at + 2), wide(*at)))
                }
            };
            out.constant(ctype, &format!("{prefix}{i}"), value);
        }
        for bit in 0..self.flags.len() {
            let flag = format!("({from}[{}] >> {bit} & 1) != 0", self.words - 1);
            out.constant("bool", &format!("{prefix}_flag{bit}"), flag);
        }
    }

    /// The value as it is called behind [`Record::emit_load`]. Its validity is called as before.
    pub(super) fn loaded(&self, value: &Value, prefix: &str) -> Value {
        let at = self.values.iter().position(|(code, ..)| *code == code_of(value));
        let at = at.expect("every value is in the record");
        let mut value = value.clone();
        match &mut value.dictionary {
            Some(input) => input.code = format!("{prefix}{at}"),
            None => value.code = format!("(({}){prefix}{at})", value.repr.device_type()),
        }
        value
    }

    /// The condition as it is called behind [`Record::emit_load`].
    pub(super) fn loaded_flag(&self, condition: &str, prefix: &str) -> String {
        let bit = self.flags.iter().position(|flag| flag == condition);
        format!("{prefix}_flag{}", bit.expect("every condition is in the record"))
    }
}
