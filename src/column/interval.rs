//! Intervals as integers that order as they do: by months, then days, then parts of a day.
//!
//! ```text
//!   DayTime         days × 2³² + (milliseconds + 2³¹)                              64 bits
//!   MonthDayNano    months × 2⁹⁶ + (days + 2³¹) × 2⁶⁴ + (nanoseconds + 2⁶³)       128 bits
//! ```

use datafusion::arrow::datatypes::{IntervalDayTime, IntervalMonthDayNano};

/// Half of the values of 32 and of 64 bits: what makes the least of them 0.
const HALF_32: i128 = 1 << 31;
const HALF_64: i128 = 1 << 63;

pub(crate) fn packed_day_time(value: IntervalDayTime) -> i64 {
    (i64::from(value.days) << 32) + (i64::from(value.milliseconds) + HALF_32 as i64)
}

pub(crate) fn packed_month_day_nano(value: IntervalMonthDayNano) -> i128 {
    let days = i128::from(value.days) + HALF_32;
    (i128::from(value.months) << 96) + (days << 64) + (i128::from(value.nanoseconds) + HALF_64)
}

pub(crate) fn day_time(packed: i64) -> IntervalDayTime {
    IntervalDayTime::new((packed >> 32) as i32, (i128::from(packed as u32) - HALF_32) as i32)
}

pub(crate) fn month_day_nano(packed: i128) -> IntervalMonthDayNano {
    let days = i128::from((packed >> 64) as u32) - HALF_32;
    let nanoseconds = i128::from(packed as u64) - HALF_64;
    IntervalMonthDayNano::new((packed >> 96) as i32, days as i32, nanoseconds as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_intervals_order_and_unpack() {
        let ends = [i32::MIN, -1, 0, 1, i32::MAX];
        let day_times: Vec<_> = ends
            .iter()
            .flat_map(|days| ends.iter().map(|ms| IntervalDayTime::new(*days, *ms)))
            .collect();
        assert!(day_times.iter().map(|value| packed_day_time(*value)).is_sorted());
        assert!(day_times.iter().all(|value| day_time(packed_day_time(*value)) == *value));
        let nanos = [i64::MIN, -1, 0, 1, i64::MAX];
        let mut all = vec![];
        for months in ends {
            for days in ends {
                all.extend(
                    nanos.iter().map(|nanos| IntervalMonthDayNano::new(months, days, *nanos)),
                );
            }
        }
        assert!(all.iter().map(|value| packed_month_day_nano(*value)).is_sorted());
        assert!(all.iter().all(|value| month_day_nano(packed_month_day_nano(*value)) == *value));
    }
}
