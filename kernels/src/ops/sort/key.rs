//! What a sort reads: a column's values, or words made before, and how their bits order.

use crate::{Argument, Buffer, Slice};

/// The type of a key's rows, which says how their bits order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyKind {
    /// `u64`: a column, or words of bits that order as they are.
    Word,
    U32,
    I32,
    I64,
    F32,
    F64,
}

/// A column to sort by, without nulls.
#[derive(Debug, Clone, Copy)]
pub struct SortKey<'a> {
    /// Rows of the kind's width.
    pub data: Slice<'a>,
    pub kind: KeyKind,
    pub descending: bool,
    /// At most the least of the keys, which are taken after the bits of a descending column are
    /// flipped.
    pub base: u64,
    /// `key − base` has at most this many bits.
    pub bits: u32,
}

/// One word of a composite sort key.
#[derive(Debug, Clone, Copy)]
pub struct SortWord<'a> {
    /// `u64 × rows`, ascending as unsigned integers in the order wanted; zero above `bits`.
    pub keys: &'a Buffer,
    /// Significant low bits.
    pub bits: u32,
}

impl<'a> From<SortWord<'a>> for SortKey<'a> {
    fn from(word: SortWord<'a>) -> Self {
        let SortWord { keys, bits } = word;
        SortKey { data: keys.slice(0), kind: KeyKind::Word, descending: false, base: 0, bits }
    }
}

impl KeyKind {
    /// Bytes of a row.
    pub fn width(self) -> usize {
        match self {
            KeyKind::U32 | KeyKind::I32 | KeyKind::F32 => 4,
            KeyKind::Word | KeyKind::I64 | KeyKind::F64 => 8,
        }
    }
}

impl<'a> SortKey<'a> {
    /// A column whose values are not known to lie in a range.
    pub fn new(data: Slice<'a>, kind: KeyKind, descending: bool) -> Self {
        SortKey { data, kind, descending, base: 0, bits: kind.width() as u32 * 8 }
    }

    /// States that the column's values are integers from `low` to `high`. Bounds beyond the type's
    /// are ignored.
    pub fn within(self, low: i128, high: i128) -> Self {
        let (first, last) = if self.descending { (high, low) } else { (low, high) };
        match (self.of_integer(first), self.of_integer(last)) {
            (Some(base), Some(end)) if base <= end => {
                SortKey { base, bits: 64 - (end - base).leading_zeros(), ..self }
            }
            _ => self,
        }
    }

    /// The ordered bits of an integer.
    fn of_integer(&self, value: i128) -> Option<u64> {
        let raw = match self.kind {
            KeyKind::Word => u64::try_from(value).ok()?,
            KeyKind::U32 => u64::from(u32::try_from(value).ok()?),
            KeyKind::I32 => u64::from(i32::try_from(value).ok()? as u32),
            KeyKind::I64 => i64::try_from(value).ok()? as u64,
            KeyKind::F32 | KeyKind::F64 => return None,
        };
        Some(raw ^ self.flip())
    }

    fn flip(&self) -> u64 {
        let all = if self.kind.width() == 4 { u64::from(u32::MAX) } else { u64::MAX };
        let sign = match self.kind {
            KeyKind::I32 => 1 << 31,
            KeyKind::I64 => 1 << 63,
            _ => 0,
        };
        if self.descending { sign ^ all } else { sign }
    }

    /// `SortKey` of the kernels, with other data: rows of the same kind, or keys on their way
    /// through the passes.
    pub(super) fn arguments_of(&self, data: Slice<'_>) -> [Argument; 4] {
        let kind: u64 = match self.kind {
            KeyKind::Word | KeyKind::I64 => 0,
            KeyKind::U32 | KeyKind::I32 => 1,
            KeyKind::F64 => 2,
            KeyKind::F32 => 3,
        };
        [data.into(), kind.into(), self.flip().into(), self.base.into()]
    }

    /// Panics unless there are `rows` rows and the range has at most 64 bits: kernels read all of
    /// them.
    pub(in crate::ops) fn check(&self, rows: u64) {
        assert!(
            self.data.len() as u64 / self.kind.width() as u64 >= rows,
            "a sort key of fewer than {rows} rows"
        );
        assert!(self.bits <= 64, "a sort key of {} bits", self.bits);
    }

    /// `SortKey` of the kernels.
    pub(in crate::ops) fn arguments(&self) -> [Argument; 4] {
        self.arguments_of(self.data)
    }
}
