//! Intervals and their parts.

use datafusion::sql::sqlparser::ast::{DataType as TreeType, Expr as Tree, Interval};

use super::*;
use crate::host::interval_times::interval_times;
use crate::sql::ast::{call, cast, text};

pub(super) const FAMILY: &[Function] = &[
    row("interval_times")
        .on_host(interval_times)
        .two(|c, interval, factor, dtype| c.interval_times(interval, factor, dtype)),
    row("justified").one(|c, interval, dtype| c.justified(interval, dtype)).total(),
    row("interval_part")
        .several(1..=1, |c, call| c.interval_part(call.function, &call.args[0], call.dtype))
        .total(),
    row("in_unit").one(|c, time, dtype| c.in_unit(time, dtype)).total(),
    number_of_units("to_centuries"),
    number_of_units("to_days"),
    number_of_units("to_decades"),
    number_of_units("to_hours"),
    number_of_units("to_microseconds"),
    number_of_units("to_millennia"),
    number_of_units("to_milliseconds"),
    number_of_units("to_minutes"),
    number_of_units("to_months"),
    number_of_units("to_nanoseconds"),
    number_of_units("to_quarters"),
    number_of_units("to_seconds"),
    number_of_units("to_weeks"),
    number_of_units("to_years"),
];

#[cfg(test)]
pub(super) const PAGE: &[Line] = &[yes(
    "`INTERVAL (k) DAY`, `to_days(k)`, … `to_years`, `to_months`, `to_hours`, `to_seconds`, \
     an interval times a number or divided by one",
    "`SELECT d + INTERVAL (i) DAY, ts - INTERVAL i MONTH, ts + to_seconds(x), ts + INTERVAL \
     '1 hour' * i, ts + INTERVAL 1 DAY / 2 FROM t`",
    "units from the minute up count whole numbers; a date and a part of a day are a \
     timestamp; beside time zones other than UTC, not on the device",
)];

const fn number_of_units(name: &'static str) -> Function {
    row(name).written("takes a number", |name, args| match args {
        [number] => of_units(number.clone(), name.strip_prefix("to_")?),
        _ => None,
    })
}

/// Units that intervals are counted in, and one of each.
const UNITS: [(&str, &str); 14] = [
    ("centuries", "1200 months"),
    ("days", "1 day"),
    ("decades", "120 months"),
    ("hours", "1 hour"),
    ("microseconds", "1 microsecond"),
    ("millennia", "12000 months"),
    ("milliseconds", "1 millisecond"),
    ("minutes", "1 minute"),
    ("months", "1 month"),
    ("nanoseconds", "1 nanosecond"),
    ("quarters", "3 months"),
    ("seconds", "1 second"),
    ("weeks", "7 days"),
    ("years", "12 months"),
];

/// An interval of so many units, as the parser's tree; `None` of a word that is no unit. Seconds
/// and milliseconds may have a fraction, all others are whole, as in DuckDB.
pub(crate) fn of_units(number: Tree, units: &str) -> Option<Tree> {
    let (_, one) = UNITS.iter().find(|(name, _)| *name == units)?;
    let one = Tree::Interval(Interval {
        value: Box::new(text(one)),
        leading_field: None,
        leading_precision: None,
        last_field: None,
        fractional_seconds_precision: None,
    });
    let number = match units {
        "seconds" | "milliseconds" => number,
        _ => cast(call("whole_part", vec![number]), TreeType::BigInt(None)),
    };
    Some(call("interval_times", vec![one, number]))
}
