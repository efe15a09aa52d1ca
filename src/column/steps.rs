//! Integers at equal distances.

/// The integers `start`, `start + step`, …, as many as there are rows. All of them are `i64`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EqualSteps {
    pub(crate) start: i64,
    pub(crate) step: i64,
    pub(crate) rows: u64,
}

impl EqualSteps {
    /// The integer of a row, which there is.
    pub(crate) fn value(self, row: u64) -> i64 {
        (self.start as u64).wrapping_add(row.wrapping_mul(self.step as u64)) as i64
    }

    /// The least and the greatest, where there is any.
    pub(crate) fn range(self) -> Option<(i128, i128)> {
        let last = i128::from(self.value(self.rows.checked_sub(1)?));
        let first = i128::from(self.start);
        Some((first.min(last), first.max(last)))
    }

    /// Those of some of the rows.
    pub(crate) fn slice(self, rows: std::ops::Range<u64>) -> EqualSteps {
        EqualSteps { start: self.value(rows.start), rows: rows.end - rows.start, ..self }
    }
}
