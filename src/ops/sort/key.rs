//! What a sort reads: a column's values, or words made before.

use crate::device::{Argument, Buffer, Slice};

/// What the rows of a key are, and so how their bits order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyKind {
    /// `u64`, ascending as it is: a word of normalised bits.
    Word,
    U32,
    I32,
    I64,
    F32,
    F64,
}

/// A column to sort by, without nulls.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SortKey<'a> {
    /// Rows of the kind's width.
    pub(crate) data: Slice<'a>,
    pub(crate) kind: KeyKind,
    pub(crate) descending: bool,
    /// Least key of the order (of descending keys, after their bits are flipped), or anything below it.
    pub(crate) base: u64,
    /// Bits that `key − base` may take.
    pub(crate) bits: u32,
}

/// One word of a composite sort key.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SortWord<'a> {
    /// `u64 × rows`, ascending as unsigned integers in the order wanted; zero above `bits`.
    pub(crate) keys: &'a Buffer,
    /// Significant low bits.
    pub(crate) bits: u32,
}

impl<'a> From<SortWord<'a>> for SortKey<'a> {
    fn from(word: SortWord<'a>) -> Self {
        let SortWord { keys, bits } = word;
        SortKey { data: keys.slice(0), kind: KeyKind::Word, descending: false, base: 0, bits }
    }
}

impl KeyKind {
    /// Bytes of a row.
    pub(crate) fn width(self) -> usize {
        match self {
            KeyKind::U32 | KeyKind::I32 | KeyKind::F32 => 4,
            KeyKind::Word | KeyKind::I64 | KeyKind::F64 => 8,
        }
    }
}

impl<'a> SortKey<'a> {
    /// Values of which nothing is known.
    pub(crate) fn new(data: Slice<'a>, kind: KeyKind, descending: bool) -> Self {
        SortKey { data, kind, descending, base: 0, bits: kind.width() as u32 * 8 }
    }

    /// The same of values known to be integers from `low` to `high`; bounds that say nothing are ignored.
    pub(crate) fn within(self, low: i128, high: i128) -> Self {
        let (first, last) = if self.descending { (high, low) } else { (low, high) };
        match (self.of_integer(first), self.of_integer(last)) {
            (Some(base), Some(end)) if base <= end => SortKey { base, bits: 64 - (end - base).leading_zeros(), ..self },
            _ => self,
        }
    }

    /// The bits that sort, of an integer.
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

    /// `SortKey` of the kernels, with other data of the same kind or of travelling keys.
    pub(super) fn arguments_of(&self, data: Slice<'_>) -> [Argument; 4] {
        let kind: u64 = match self.kind {
            KeyKind::Word | KeyKind::I64 => 0,
            KeyKind::U32 | KeyKind::I32 => 1,
            KeyKind::F64 => 2,
            KeyKind::F32 => 3,
        };
        [data.into(), kind.into(), self.flip().into(), self.base.into()]
    }

    /// `SortKey` of the kernels.
    pub(in crate::ops) fn arguments(&self) -> [Argument; 4] {
        self.arguments_of(self.data)
    }
}
