//! `to_char` of dates, times and timestamps, by a constant pattern (`kernels/moment.cuh`).

use chrono::format::{Fixed, Item, Numeric, Pad, StrftimeItems};
use datafusion::arrow::datatypes::TimeUnit;

use super::calendar::per_second;
use super::*;
use crate::codegen::device_function::KernelHeader;

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const WEEKDAYS: [&str; 7] =
    ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/// What an item counts; numbers of the kernels.
const LITERAL: u32 = 0;
const YEAR: u32 = 1;
const MONTH: u32 = 8;
const WEEKDAY: u32 = 13;
const HOUR: u32 = 16;
const NANOS: u32 = 20;
const MICROS: u32 = 21;
const MILLIS: u32 = 22;
const SECONDS: u32 = 23;
const FRACTION: u32 = 24;
const NAMES: u32 = 32;

/// A pattern taken apart.
#[derive(Debug, Default, PartialEq)]
struct MomentPattern {
    /// Two words an item.
    items: Vec<u32>,
    literals: Vec<String>,
    /// Whether it asks for the day, and for the time of day.
    day: bool,
    time: bool,
    longest: u64,
}

impl MomentPattern {
    /// `None` where it has items that the kernels do not know.
    fn of(pattern: &str) -> Option<MomentPattern> {
        let mut made = MomentPattern::default();
        for item in StrftimeItems::new(pattern) {
            match item {
                Item::Literal(text) | Item::Space(text) => made.literal(text),
                Item::OwnedLiteral(text) | Item::OwnedSpace(text) => made.literal(&text),
                Item::Numeric(numeric, pad) => made.number(&numeric, pad)?,
                Item::Fixed(fixed) => made.fixed(&fixed)?,
                Item::Error => return None,
            }
        }
        Some(made)
    }

    fn literal(&mut self, text: &str) {
        self.items.extend([LITERAL, self.literals.len() as u32]);
        self.literals.push(text.into());
        self.longest += text.len() as u64;
    }

    fn number(&mut self, numeric: &Numeric, pad: Pad) -> Option<()> {
        let (what, width) = match numeric {
            Numeric::Year => (YEAR, 4),
            Numeric::YearDiv100 => (2, 2),
            Numeric::YearMod100 => (3, 2),
            Numeric::IsoYear => (4, 4),
            Numeric::IsoYearDiv100 => (5, 2),
            Numeric::IsoYearMod100 => (6, 2),
            Numeric::Quarter => (7, 1),
            Numeric::Month => (MONTH, 2),
            Numeric::Day => (9, 2),
            Numeric::WeekFromSun => (10, 2),
            Numeric::WeekFromMon => (11, 2),
            Numeric::IsoWeek => (12, 2),
            Numeric::NumDaysFromSun => (WEEKDAY, 1),
            Numeric::WeekdayFromMon => (14, 1),
            Numeric::Ordinal => (15, 3),
            Numeric::Hour => (HOUR, 2),
            Numeric::Hour12 => (17, 2),
            Numeric::Minute => (18, 2),
            Numeric::Second => (19, 2),
            Numeric::Nanosecond => (NANOS, 9),
            Numeric::Timestamp => (SECONDS, 9),
            _ => return None,
        };
        let pad = match pad {
            Pad::None => 0,
            Pad::Zero => 1,
            Pad::Space => 2,
        };
        self.digits(what, width, pad);
        Some(())
    }

    fn digits(&mut self, what: u32, width: u32, pad: u32) {
        self.day |= what < HOUR || what == SECONDS;
        self.time |= what >= HOUR;
        self.items.extend([what | pad << 8 | width << 16, 0]);
        self.longest += 20;
    }

    fn fixed(&mut self, fixed: &Fixed) -> Option<()> {
        let short = |names: &[&str]| names.iter().map(|name| name[..3].to_string()).collect();
        let long = |names: &[&str]| names.iter().map(|name| name.to_string()).collect();
        match fixed {
            Fixed::ShortMonthName => self.names(MONTH, short(&MONTHS)),
            Fixed::LongMonthName => self.names(MONTH, long(&MONTHS)),
            Fixed::ShortWeekdayName => self.names(WEEKDAY, short(&WEEKDAYS)),
            Fixed::LongWeekdayName => self.names(WEEKDAY, long(&WEEKDAYS)),
            Fixed::LowerAmPm => self.names(HOUR, long(&["am", "pm"])),
            Fixed::UpperAmPm => self.names(HOUR, long(&["AM", "PM"])),
            Fixed::Nanosecond => self.digits(FRACTION, 0, 0),
            Fixed::Nanosecond3 => self.fraction(MILLIS, 3),
            Fixed::Nanosecond6 => self.fraction(MICROS, 6),
            Fixed::Nanosecond9 => self.fraction(NANOS, 9),
            // What these are has no name outside of their crate.
            internal if is("%3f", internal) => self.digits(MILLIS, 3, 1),
            internal if is("%6f", internal) => self.digits(MICROS, 6, 1),
            internal if is("%9f", internal) => self.digits(NANOS, 9, 1),
            _ => return None,
        }
        Some(())
    }

    fn fraction(&mut self, what: u32, width: u32) {
        self.literal(".");
        self.digits(what, width, 1);
    }

    fn names(&mut self, what: u32, names: Vec<String>) {
        self.day |= what < HOUR;
        self.time |= what >= HOUR;
        self.items.extend([what + NAMES, self.literals.len() as u32]);
        self.literals.extend(names);
        self.longest += 9;
    }
}

/// Whether a pattern is this item.
fn is(pattern: &str, fixed: &Fixed) -> bool {
    StrftimeItems::new(pattern).next().is_some_and(|item| item == Item::Fixed(fixed.clone()))
}

impl Compiler<'_> {
    /// `to_char(moment, pattern)`.
    pub(super) fn moment_text(
        &mut self,
        value: &Expr,
        pattern: &Expr,
        dtype: &DataType,
    ) -> Result<Value> {
        let Some(pattern) = as_literal(pattern).and_then(literal::text) else {
            return Err(not_yet("to_char by a computed pattern"));
        };
        let value = self.value(value)?;
        let Some(made) = MomentPattern::of(pattern) else {
            return Err(not_yet(format!("to_char by '{pattern}'")));
        };
        let code = &value.code;
        let moment = match &value.dtype {
            DataType::Date32 => {
                self.within_calendar(&value, &value.valid.clone());
                format!("moment{{{code}, 0, 0}}")
            }
            DataType::Timestamp(unit, _) => {
                let local = self.local_time(value.clone())?;
                let days = self.floor_days(&local, *unit);
                self.within_calendar(&days, &value.valid.clone());
                let clock = self.clock(&local, *unit)?;
                format!("moment{{(i32){}, {}}}", days.code, seconds_and_nanos(&clock.code, unit))
            }
            DataType::Time32(unit) | DataType::Time64(unit) if !made.day => {
                let outside = format!("({code} < 0 || {code} >= {}ll)", per_second(unit) * 86_400);
                self.fail_if(&value.valid, &outside, Failure::Cast);
                format!("moment{{0, {}}}", seconds_and_nanos(code, unit))
            }
            other => return Err(not_yet(format!("to_char of {other} by '{pattern}'"))),
        };
        let items: Vec<u8> =
            made.items.iter().chain([&0]).flat_map(|word| word.to_le_bytes()).collect();
        let items = self.inputs.constant(&items);
        let mut literals: Vec<&str> = made.literals.iter().map(String::as_str).collect();
        literals.push("");
        let literals = self.inputs.strings(&literals);
        self.inputs.arena();
        let count = made.items.len() / 2;
        let text =
            format!("moment_text(arena, {moment}, (const u32*)({items}), {count}u, {literals})");
        // Of a null there are no characters to be asked for.
        let asked = [value.valid.clone(), self.out.guarded()]
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
            .join(" && ");
        self.out.needs(KernelHeader::Moment);
        let text =
            if asked.is_empty() { text } else { format!("{asked} ? {text} : view{{0, 0, 0}}") };
        self.made(dtype, text, value.valid, Some(made.longest))
    }
}

/// C++ `u32, u32` of ticks since midnight.
fn seconds_and_nanos(ticks: &str, unit: &TimeUnit) -> String {
    let per_second = per_second(unit);
    let nanos = 1_000_000_000 / per_second;
    format!(
        "(u32)((i64){ticks} / {per_second}ll), (u32)((i64){ticks} % {per_second}ll * {nanos}ll)"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_taken_apart() {
        let made = MomentPattern::of("%-d. %B %H").expect("a pattern");
        assert_eq!(made.items[..4], [9 | 2 << 16, 0, LITERAL, 0]);
        assert!(made.day && made.time && made.literals.len() > 13);
        assert_eq!(MomentPattern::of("%z"), None);
        assert_eq!(MomentPattern::of("%"), None);
        assert!(!MomentPattern::of("%T%.3f%p").expect("a time").day);
    }
}
