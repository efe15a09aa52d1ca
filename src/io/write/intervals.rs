//! Intervals as Parquet has them.
//!
//! ```text
//!   12 bytes   months u32 │ days u32 │ milliseconds u32, the least significant byte first
//! ```

use datafusion::arrow::array::{FixedSizeBinaryArray, IntervalMonthDayNanoArray};
use datafusion::arrow::datatypes::{DataType, IntervalMonthDayNano, IntervalUnit};
use datafusion::arrow::util::display::FormatOptions;

use crate::error::{Error, Result};
use crate::host::value_texts;
use crate::sql::type_name;

/// Intervals as the engine has them.
pub(super) const INTERVAL: DataType = DataType::Interval(IntervalUnit::MonthDayNano);
/// What they are in files.
pub(super) const BYTES: DataType = DataType::FixedSizeBinary(LENGTH);
const LENGTH: i32 = 12;

/// The bytes of a column's intervals.
///
/// # Errors
/// A part that is negative or too large, and parts of milliseconds.
pub(super) fn in_bytes(
    column: &str,
    intervals: &IntervalMonthDayNanoArray,
) -> Result<FixedSizeBinaryArray> {
    let mut bytes = Vec::with_capacity(intervals.len());
    for (row, interval) in intervals.iter().enumerate() {
        bytes.push(match interval.map(held) {
            Some(None) => {
                let texts = value_texts(intervals, &FormatOptions::new())?;
                let what = format!("{} as a value", texts.value(row).try_to_string()?);
                return Err(unwritten(column, &INTERVAL, &what));
            }
            interval => interval.flatten(),
        });
    }
    Ok(FixedSizeBinaryArray::try_from_sparse_iter_with_size(bytes.into_iter(), LENGTH)?)
}

/// The bytes of an interval; `None` where the format does not hold it.
fn held(interval: IntervalMonthDayNano) -> Option<[u8; LENGTH as usize]> {
    const NANOSECONDS: i64 = 1_000_000;
    let millis = interval.nanoseconds / NANOSECONDS;
    if millis * NANOSECONDS != interval.nanoseconds {
        return None;
    }
    let parts = [interval.months.into(), interval.days.into(), millis];
    let mut bytes = [0; LENGTH as usize];
    for (part, bytes) in parts.into_iter().zip(bytes.as_chunks_mut::<4>().0) {
        *bytes = u32::try_from(part).ok()?.to_le_bytes();
    }
    Some(bytes)
}

/// The error of a column that the format does not hold.
pub(super) fn unwritten(column: &str, dtype: &DataType, what: &str) -> Error {
    Error::unsupported(
        format!("column {column:?} of type {} in Parquet: {what}", type_name(dtype)),
        "its intervals are columns, have whole milliseconds and no sign; text holds all: \
         CAST(… AS VARCHAR)",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_without_signs_are_held() {
        let of = |months, days, nanos| held(IntervalMonthDayNano::new(months, days, nanos));
        let [one, two, three] = [1u32, 2, 3].map(u32::to_le_bytes);
        assert_eq!(of(1, 2, 3_000_000).map(Vec::from), Some([one, two, three].concat()));
        assert_eq!(
            of(0, 0, 4_294_967_295_000_000).map(|bytes| bytes[8..] == [0xff; 4]),
            Some(true)
        );
        for (months, days, nanos) in
            [(-1, 0, 0), (0, -1, 0), (0, 0, -1_000_000), (0, 0, 1), (0, 0, 4_294_967_296_000_000)]
        {
            assert_eq!(of(months, days, nanos), None);
        }
    }
}
