//! What was seen of a column's values, and the type that fits all of it.
//!
//! A value is of one class. The classes of a column's values, and how many digits its numbers have,
//! are all that its type depends on: so samples and whole files are judged alike, parts of files in
//! any order, and a type is widened by what else was seen.

use datafusion::arrow::datatypes::{DataType, TimeUnit};

use super::values::{Notation, Timestamp, boolean, digits, is_special, without_blanks};

/// What was seen of a column.
///
/// | seen | type |
/// |---|---|
/// | nothing but nulls | text |
/// | truth values | BOOLEAN |
/// | integers of 64 bits | BIGINT |
/// | integers of at most 38 digits | DECIMAL(38, 0) |
/// | numbers with a point or an exponent, infinities, NaN | DOUBLE |
/// | the same without exponents, and integers beyond 2^53 | DECIMAL(38, digits behind the point), if all digits fit |
/// | dates | DATE |
/// | timestamps, and dates | TIMESTAMP of microseconds, or nanoseconds |
/// | timestamps with a zone | the same in UTC |
/// | nothing but values of a given format of dates or timestamps | DATE or TIMESTAMP |
/// | anything else, and everything together | text |
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    classes: u16,
    /// The most digits before and behind the point, of numbers without exponents.
    whole: u32,
    fraction: u32,
}

const BOOLEAN: u16 = 1;
/// Of 64 bits.
const INTEGER: u16 = 1 << 1;
/// Integers beyond 2^53, which doubles may not hold.
const BEYOND_DOUBLE: u16 = 1 << 2;
/// Integers beyond 64 bits.
const WIDE: u16 = 1 << 3;
const FRACTION: u16 = 1 << 4;
/// With an exponent, infinite, or not a number.
const FLOAT: u16 = 1 << 5;
const DATE: u16 = 1 << 6;
const TIMESTAMP: u16 = 1 << 7;
const ZONED: u16 = 1 << 8;
/// A timestamp whose digits are of nanoseconds.
const NANOS: u16 = 1 << 9;
/// A date or timestamp that nanoseconds of 64 bits do not reach.
const BEYOND_NANOS: u16 = 1 << 10;
const TEXT: u16 = 1 << 11;
/// Values that are, and are not, of the format of dates that was given: whatever else they are.
const FORMATTED_DATE: u16 = 1 << 12;
const NO_DATE: u16 = 1 << 13;
/// And of timestamps.
const FORMATTED_TIME: u16 = 1 << 14;
const NO_TIME: u16 = 1 << 15;

const MOST_DIGITS: u32 = 38;
/// What a column is called in UTC.
pub(crate) const UTC: &str = "+00:00";

impl Seen {
    /// Adds a value that is not NULL.
    pub(crate) fn add(&mut self, text: &[u8], notation: &Notation) {
        // Nothing more can come of it.
        if self.classes & TEXT == 0 {
            self.merge(Seen::of(text, notation));
        }
    }

    /// What one value is.
    pub(crate) fn of(text: &[u8], notation: &Notation) -> Seen {
        let text = without_blanks(text);
        if text.is_empty() {
            return Seen::default();
        }
        let mut seen = match boolean(text) {
            Some(_) => Seen::class(BOOLEAN),
            None => Seen::of_number(text, notation)
                .or_else(|| Seen::of_time(text, notation))
                .unwrap_or(Seen::class(TEXT)),
        };
        seen.classes |= formats(text, notation);
        seen
    }

    /// What a number as JSON writes it is.
    pub(in crate::io) fn of_json_number(text: &[u8]) -> Seen {
        Seen::of_number(text, &Notation::default()).unwrap_or(Seen::class(TEXT))
    }

    /// Adds what a string of JSON holds, escapes as they are written: a date or a timestamp is one by
    /// all of its text.
    pub(in crate::io) fn add_json_string(&mut self, text: &[u8]) {
        if self.classes & TEXT == 0 {
            let time = Seen::of_time(text, &Notation::default());
            self.merge(time.unwrap_or(Seen::class(TEXT)));
        }
    }

    /// Whether some value was seen.
    pub(crate) fn is_any(&self) -> bool {
        self.classes != 0
    }

    /// Whether some value is of the format of dates, or of timestamps, that was given.
    pub(crate) fn has_formatted(&self, dates: bool) -> bool {
        self.classes & if dates { FORMATTED_DATE } else { FORMATTED_TIME } != 0
    }

    fn class(classes: u16) -> Seen {
        Seen { classes, ..Seen::default() }
    }

    fn of_number(text: &[u8], notation: &Notation) -> Option<Seen> {
        if is_special(text) {
            return Some(Seen::class(FLOAT));
        }
        let number = notation.number(text)?;
        let found = digits(&number)?;
        if found.has_exponent {
            return Some(Seen::class(FLOAT));
        }
        let (whole, fraction) = (found.whole, found.fraction);
        if found.has_point {
            return Some(Seen { classes: FRACTION, whole, fraction });
        }
        // Texts of more digits than any number are none.
        let value = found.unscaled.filter(|_| whole <= MOST_DIGITS)?;
        let least = i64::MAX as u128 + u128::from(found.negative);
        let classes = match value {
            value if value > least => WIDE | BEYOND_DOUBLE,
            value if value > 1 << f64::MANTISSA_DIGITS => INTEGER | BEYOND_DOUBLE,
            _ => INTEGER,
        };
        Some(Seen { classes, whole, fraction })
    }

    fn of_time(text: &[u8], notation: &Notation) -> Option<Seen> {
        if let Some(days) = notation.date(text) {
            let nanos = i64::from(days).checked_mul(86_400_000_000_000);
            return Some(Seen::class(DATE | if nanos.is_none() { BEYOND_NANOS } else { 0 }));
        }
        let time = notation.timestamp(text)?;
        Some(Seen::class(reach(time)? | if time.is_zoned { ZONED } else { TIMESTAMP }))
    }

    /// Adds what else was seen of the column.
    pub(crate) fn merge(&mut self, other: Seen) {
        self.classes |= other.classes;
        self.whole = self.whole.max(other.whole);
        self.fraction = self.fraction.max(other.fraction);
    }

    /// The type that holds all that was seen, without loss.
    pub(crate) fn data_type(&self) -> DataType {
        let has = |class: u16| self.classes & class != 0;
        let mut seen = self.classes & !(FORMATTED_DATE | NO_DATE | FORMATTED_TIME | NO_TIME);
        // Numbers may be of the format of timestamps, too.
        if seen & (DATE | TIMESTAMP | ZONED) == 0 {
            seen &= !(NANOS | BEYOND_NANOS);
        }
        let only = |classes: u16| seen & !classes == 0;
        let time = |zone: Option<&str>| {
            let unit = if has(NANOS) { TimeUnit::Nanosecond } else { TimeUnit::Microsecond };
            DataType::Timestamp(unit, zone.map(Into::into))
        };
        match seen {
            0 => DataType::Utf8View,
            _ if has(FORMATTED_DATE) && !has(NO_DATE) => DataType::Date32,
            _ if has(FORMATTED_TIME) && !has(NO_TIME) => match (has(NANOS), has(BEYOND_NANOS)) {
                (true, true) => DataType::Utf8View,
                _ => time(has(ZONED).then_some(UTC)),
            },
            _ if only(BOOLEAN) => DataType::Boolean,
            _ if only(INTEGER | BEYOND_DOUBLE) => DataType::Int64,
            _ if only(INTEGER | BEYOND_DOUBLE | WIDE) => DataType::Decimal128(38, 0),
            _ if only(INTEGER | FRACTION | FLOAT) => DataType::Float64,
            _ if only(INTEGER | BEYOND_DOUBLE | WIDE | FRACTION)
                && self.whole + self.fraction <= MOST_DIGITS =>
            {
                DataType::Decimal128(38, self.fraction as i8)
            }
            _ if only(DATE | BEYOND_NANOS) => DataType::Date32,
            _ if has(NANOS) && has(BEYOND_NANOS) => DataType::Utf8View,
            _ if only(DATE | TIMESTAMP | NANOS | BEYOND_NANOS) => time(None),
            _ if only(ZONED | NANOS | BEYOND_NANOS) => time(Some(UTC)),
            _ => DataType::Utf8View,
        }
    }

    /// The least that was seen of a column of this inferred type.
    fn of_type(inferred: &DataType) -> Seen {
        let unit = |unit: &TimeUnit| if *unit == TimeUnit::Nanosecond { NANOS } else { 0 };
        match inferred {
            DataType::Boolean => Seen::class(BOOLEAN),
            DataType::Int64 => Seen::class(INTEGER),
            DataType::Decimal128(_, scale) => {
                let fraction = u32::try_from(*scale).unwrap_or(0);
                let point = if fraction > 0 { FRACTION } else { 0 };
                Seen { classes: INTEGER | BEYOND_DOUBLE | WIDE | point, whole: 0, fraction }
            }
            DataType::Float64 => Seen::class(FRACTION),
            DataType::Date32 => Seen::class(DATE),
            DataType::Timestamp(of, None) => Seen::class(TIMESTAMP | unit(of)),
            DataType::Timestamp(of, Some(_)) => Seen::class(ZONED | unit(of)),
            _ => Seen::class(TEXT),
        }
    }
}

/// The classes of a value by the formats that were given.
fn formats(text: &[u8], notation: &Notation) -> u16 {
    let mut classes = 0;
    if notation.date_format.is_some() {
        classes |= if notation.date(text).is_some() { FORMATTED_DATE } else { NO_DATE };
    }
    if notation.timestamp_format.is_some() {
        let reach = notation.timestamp(text).and_then(reach);
        classes |= reach.map_or(NO_TIME, |reach| reach | FORMATTED_TIME);
    }
    classes
}

/// The class of a timestamp by the units that hold it; `None` where none does.
fn reach(time: Timestamp) -> Option<u16> {
    match (time.nanos(), time.is_fine) {
        (Some(_), true) => Some(NANOS),
        (Some(_), false) => Some(0),
        (None, false) => Some(BEYOND_NANOS),
        (None, true) => None,
    }
}

/// The type that a column gets whose type was inferred from some of its values, once all were seen.
pub(crate) fn widen(from: &DataType, seen: &Seen) -> DataType {
    // Numbers that were taken for dates are numbers again.
    if seen.has_formatted(true) || seen.has_formatted(false) {
        return seen.data_type();
    }
    let mut all = Seen::of_type(from);
    // Of a column of nulls nothing was inferred.
    if *from == DataType::Utf8View && seen.classes == 0 {
        return DataType::Utf8View;
    }
    all.merge(*seen);
    all.data_type()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(values: &[&str]) -> Seen {
        let mut seen = Seen::default();
        values.iter().for_each(|value| seen.add(value.as_bytes(), &Notation::default()));
        seen
    }

    const MICROS: DataType = DataType::Timestamp(TimeUnit::Microsecond, None);
    const NANOSECONDS: DataType = DataType::Timestamp(TimeUnit::Nanosecond, None);

    fn cases() -> Vec<(Vec<&'static str>, DataType)> {
        let utc = |unit| DataType::Timestamp(unit, Some(UTC.into()));
        let wide = "12345678901234567890";
        let digits_38 = "99999999999999999999999999999999999999";
        vec![
            (vec![], DataType::Utf8View),
            (vec!["", " "], DataType::Utf8View),
            (vec!["true", "FALSE"], DataType::Boolean),
            (vec!["true", "1"], DataType::Utf8View),
            (vec!["1", " -2\t", "007"], DataType::Int64),
            (vec!["9223372036854775807", "-9223372036854775808"], DataType::Int64),
            (vec!["+1"], DataType::Utf8View),
            (vec!["1", wide], DataType::Decimal128(38, 0)),
            (vec!["-9223372036854775809", digits_38], DataType::Decimal128(38, 0)),
            (vec!["999999999999999999999999999999999999999"], DataType::Utf8View),
            (vec!["1", "2.5"], DataType::Float64),
            (vec!["1.", ".5", "1e5", "NaN", "-inf", "Infinity"], DataType::Float64),
            (vec!["9007199254740992", "0.5"], DataType::Float64),
            (vec!["9007199254740993", "0.25"], DataType::Decimal128(38, 2)),
            (vec![wide, "0.5"], DataType::Decimal128(38, 1)),
            (vec![digits_38, "0.5"], DataType::Utf8View),
            (vec![wide, "1e5"], DataType::Utf8View),
            (vec!["2020-01-31", ""], DataType::Date32),
            (vec!["2020-01-31", "0000-00-00"], DataType::Utf8View),
            (vec!["2020-01-31", "2020-01-31 12:34"], MICROS),
            (vec!["2020-01-31T12:34:56", "2020-01-31 12:34:56.123456"], MICROS),
            (vec!["2020-01-31 12:34:56", "2020-01-31 12:34:56.1234567"], NANOSECONDS),
            (vec!["9999-12-31 00:00:00"], MICROS),
            (vec!["9999-12-31", "2020-01-31 12:34:56.1234567"], DataType::Utf8View),
            (vec!["9999-12-31 00:00:00.1234567"], DataType::Utf8View),
            (
                vec!["2020-01-31 12:34:56Z", "2020-01-31T12:34:56.5+0130"],
                utc(TimeUnit::Microsecond),
            ),
            (vec!["2020-01-31 12:34:56.123456789-01:00"], utc(TimeUnit::Nanosecond)),
            (vec!["2020-01-31 12:34:56Z", "2020-01-31 12:34:56"], DataType::Utf8View),
            (vec!["2020-01-31 12:34:56 ERROR disk full"], DataType::Utf8View),
            (vec!["2003-07-08 16:49:45,896"], DataType::Utf8View),
            (vec!["12:30 PM"], DataType::Utf8View),
            (vec!["2020-01-31", "1"], DataType::Utf8View),
            (vec!["1", "x"], DataType::Utf8View),
        ]
    }

    #[test]
    fn types_are_those_of_the_table() {
        for (values, expected) in cases() {
            assert_eq!(seen(&values).data_type(), expected, "{values:?}");
        }
    }

    #[test]
    fn what_was_seen_in_parts_is_what_was_seen_together() {
        for (values, expected) in cases() {
            for cut in 0..=values.len() {
                let (mut one, other) = (seen(&values[cut..]), seen(&values[..cut]));
                one.merge(other);
                assert_eq!(one.data_type(), expected, "{values:?}");
                // A sample's type, widened by all values, is the type of all.
                let sampled = seen(&values[..cut]);
                if sampled != Seen::default() && sampled.data_type() != DataType::Utf8View {
                    assert_eq!(
                        widen(&sampled.data_type(), &seen(&values)),
                        expected,
                        "{values:?} {cut}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_type_is_widened_to_one_that_holds_it() {
        for (from, values, to) in [
            (DataType::Int64, vec!["2.5"], DataType::Float64),
            (DataType::Int64, vec!["x"], DataType::Utf8View),
            (DataType::Int64, vec!["1", "12345678901234567890"], DataType::Decimal128(38, 0)),
            (DataType::Date32, vec!["2020-01-31 12:00:00"], MICROS),
            (MICROS, vec!["2020-01-31 12:00:00.123456789"], NANOSECONDS),
            (DataType::Boolean, vec!["maybe"], DataType::Utf8View),
            (
                DataType::Decimal128(38, 0),
                vec!["12345678901234567890", "0.5"],
                DataType::Decimal128(38, 1),
            ),
            (DataType::Float64, vec!["1"], DataType::Float64),
            (DataType::Utf8View, vec!["1"], DataType::Utf8View),
            (DataType::Utf8View, vec![], DataType::Utf8View),
        ] {
            assert_eq!(widen(&from, &seen(&values)), to, "{from} {values:?}");
        }
    }

    #[test]
    fn values_of_a_given_format_are_dates_and_timestamps_whatever_else_they_are() {
        let seen = |notation: &Notation, values: &[&str]| {
            let mut seen = Seen::default();
            values.iter().for_each(|value| seen.add(value.as_bytes(), notation));
            seen
        };
        let dates = Notation { date_format: Some("%Y%m%d".into()), ..Notation::default() };
        for (values, expected) in [
            (vec!["20200131", "20191231"], DataType::Date32),
            (vec!["20200131", "5"], DataType::Int64),
            (vec!["20200131", "x"], DataType::Utf8View),
            (vec!["20200131", "0.5"], DataType::Float64),
            (vec!["2020-01-31"], DataType::Utf8View),
            (vec!["x"], DataType::Utf8View),
        ] {
            assert_eq!(seen(&dates, &values).data_type(), expected, "{values:?}");
            assert_eq!(widen(&DataType::Date32, &seen(&dates, &values)), expected, "{values:?}");
        }
        let format = Some("%Y%m%d%H%M%S".into());
        let times = Notation { timestamp_format: format, ..Notation::default() };
        for (values, expected) in [
            (vec!["20200131120000", "99991231235959"], MICROS),
            (vec!["99991231235959", "7"], DataType::Int64),
            (vec!["20200131120000", "2020"], DataType::Int64),
        ] {
            assert_eq!(seen(&times, &values).data_type(), expected, "{values:?}");
        }
        let days = Notation { timestamp_format: Some("%Y%m%d".into()), ..Notation::default() };
        assert_eq!(seen(&days, &["20200131"]).data_type(), MICROS);
        assert!(!seen(&days, &["2020-01-31"]).has_formatted(false));
    }

    #[test]
    fn numbers_and_dates_are_seen_in_their_notation() {
        let german = Notation { decimal_comma: true, thousands: Some(b'.'), ..Notation::default() };
        let of = |text: &str| Seen::of(text.as_bytes(), &german).data_type();
        assert_eq!(of("1.234,5"), DataType::Float64);
        assert_eq!(of("1.234"), DataType::Int64);
        assert_eq!(of("1.23"), DataType::Utf8View);
    }
}
