//! Units of time, and the calendar's limits: what casts, arithmetic and zones share.
//!
//! Arrow's calendar has the years −262143 to 262142.

use datafusion::arrow::datatypes::TimeUnit;

use super::arithmetic::wide;
use super::*;
use crate::codegen::device_function::FLOOR_QUOTIENT;

/// First and last day of Arrow's calendar, counted from 1970-01-01.
pub(super) const CALENDAR: (i128, i128) = (-96_465_292, 95_026_236);
/// Nanoseconds in a day of 24 hours.
pub(super) const NANOS_PER_DAY: i128 = 86_400_000_000_000;

/// Ticks in a second.
pub(super) fn per_second(unit: &TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => 1_000_000_000,
    }
}

/// Whether the local time of a zone is UTC, in which timestamps are stored.
pub(super) fn is_utc(zone: &str) -> bool {
    matches!(zone, "UTC" | "+00:00" | "Z" | "+00" | "Etc/UTC")
}

/// C++ `bool`: a day lies outside of the calendar; `None` where none does.
pub(super) fn outside_calendar(days: &Value) -> Option<String> {
    (!within(days.bounds(), CALENDAR))
        .then(|| format!("({0} < {1} || {0} > {2})", days.code, CALENDAR.0, CALENDAR.1))
}

impl Compiler<'_> {
    /// Fails rows whose day lies outside of the calendar.
    pub(super) fn within_calendar(&mut self, days: &Value, valid: &Option<String>) {
        if let Some(outside) = outside_calendar(days) {
            self.fail_if(valid, &outside, Failure::Overflow);
        }
    }

    /// The day of a timestamp, as an integer of at most 64 bits.
    pub(super) fn floor_days(&mut self, value: &Value, unit: TimeUnit) -> Value {
        let per_day = i128::from(per_second(&unit)) * 86_400;
        let (low, high) = value.bounds();
        let range = (low.div_euclid(per_day), high.div_euclid(per_day));
        let repr =
            if within(range, (i32::MIN.into(), i32::MAX.into())) { Repr::I32 } else { Repr::I64 };
        let rvalue = format!(
            "({}){}<i64>((i64){}, {per_day}ll)",
            repr.device_type(),
            self.out.calls(FLOOR_QUOTIENT),
            value.code
        );
        self.result(wide(), repr, rvalue, value.valid.clone()).with_range(Some(range))
    }
}
