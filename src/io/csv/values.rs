//! How numbers, dates and times are written in CSV files.
//!
//! The forms here are those that inference knows: each is the whole text of a value, and is read as
//! `CAST` reads it. Nothing is dropped: a date with a time of day is no date, seven digits of a
//! second do not fit microseconds. `CAST` takes further forms; columns whose type the user gave
//! have them, too.

use std::borrow::Cow;

use chrono::format::{Fixed, Item, Numeric, StrftimeItems};
use chrono::{DateTime, NaiveDate, NaiveDateTime};

use super::options::CsvOptions;
use crate::error::{ErrorKind, Result};

/// What a user says of how values are written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Notation {
    /// Numbers have a comma where others have a point.
    pub(crate) decimal_comma: bool,
    /// Between groups of three digits.
    pub(crate) thousands: Option<u8>,
    pub(crate) date_format: Option<String>,
    pub(crate) timestamp_format: Option<String>,
    /// Whether the format of timestamps has an offset from UTC.
    pub(crate) zoned: bool,
}

/// A time of day on a date.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Timestamp {
    /// Since 1970-01-01, in UTC.
    pub(crate) seconds: i64,
    pub(crate) nanos: u32,
    /// Whether its digits say nanoseconds.
    pub(crate) is_fine: bool,
    /// Whether it says its offset from UTC.
    pub(crate) is_zoned: bool,
}

impl Notation {
    /// # Errors
    /// Formats that are none.
    pub(crate) fn of(options: &CsvOptions) -> Result<Notation> {
        for format in options.date_format.iter().chain(&options.timestamp_format) {
            if format.is_empty() || StrftimeItems::new(format).any(|item| item == Item::Error) {
                let message = format!("the format {format:?} of dates or timestamps is none");
                return Err(ErrorKind::Plan { message, location: None }.into());
            }
        }
        Ok(Notation {
            decimal_comma: options.decimal_comma,
            thousands: options.thousands,
            date_format: options.date_format.clone(),
            timestamp_format: options.timestamp_format.clone(),
            zoned: options.timestamp_format.as_deref().is_some_and(has_offset),
        })
    }

    /// Whether all values are written as this module and `CAST` have them.
    pub(crate) fn is_plain(&self) -> bool {
        *self == Notation::default()
    }

    /// A number with a point and without groups; `None` where it breaks its notation.
    pub(crate) fn number<'a>(&self, text: &'a [u8]) -> Option<Cow<'a, [u8]>> {
        if !self.decimal_comma && self.thousands.is_none() {
            return Some(Cow::Borrowed(text));
        }
        let point = if self.decimal_comma { b',' } else { b'.' };
        let mut plain: Vec<u8> = Vec::with_capacity(text.len());
        // Digits since the last separator of groups; `None` before any.
        let (mut group, mut is_whole): (Option<u32>, bool) = (None, true);
        for &byte in text {
            if is_whole && Some(byte) == self.thousands {
                let digits = plain.iter().filter(|byte| byte.is_ascii_digit()).count();
                if digits == 0
                    || group.is_none() && digits > 3
                    || group.is_some_and(|digits| digits != 3)
                {
                    return None;
                }
                group = Some(0);
            } else if is_whole && byte.is_ascii_digit() {
                group = group.map(|digits| digits + 1);
                plain.push(byte);
            } else {
                if byte == b'.' && self.decimal_comma {
                    return None;
                }
                if !matches!(byte, b'-' | b'+') && group.is_some_and(|digits| digits != 3) {
                    return None;
                }
                is_whole &= matches!(byte, b'-' | b'+');
                plain.push(if byte == point { b'.' } else { byte });
            }
        }
        (!(is_whole && group.is_some_and(|digits| digits != 3))).then_some(Cow::Owned(plain))
    }

    pub(crate) fn date(&self, text: &[u8]) -> Option<i32> {
        match &self.date_format {
            None => date(text),
            Some(format) => {
                let date =
                    NaiveDate::parse_from_str(std::str::from_utf8(text).ok()?, format).ok()?;
                i32::try_from(date.signed_duration_since(NaiveDate::default()).num_days()).ok()
            }
        }
    }

    pub(crate) fn timestamp(&self, text: &[u8]) -> Option<Timestamp> {
        let Some(format) = &self.timestamp_format else { return timestamp(text) };
        let text = std::str::from_utf8(text).ok()?;
        let time = match self.zoned {
            true => DateTime::parse_from_str(text, format).ok()?.to_utc(),
            false => NaiveDateTime::parse_from_str(text, format)
                .ok()
                .or_else(|| midnight_of(text, format))?
                .and_utc(),
        };
        let nanos = time.timestamp_subsec_nanos();
        let is_fine = !nanos.is_multiple_of(1000);
        Some(Timestamp { seconds: time.timestamp(), nanos, is_fine, is_zoned: self.zoned })
    }
}

/// The begin of a day, in a format that has no time of day.
fn midnight_of(text: &str, format: &str) -> Option<NaiveDateTime> {
    let is_of_day = |item: Item| match item {
        Item::Numeric(of, _) => matches!(
            of,
            Numeric::Hour
                | Numeric::Hour12
                | Numeric::Minute
                | Numeric::Second
                | Numeric::Nanosecond
                | Numeric::Timestamp
        ),
        Item::Fixed(of) => {
            use Fixed::{LongMonthName, LongWeekdayName, ShortMonthName, ShortWeekdayName};
            !matches!(of, LongMonthName | LongWeekdayName | ShortMonthName | ShortWeekdayName)
        }
        _ => false,
    };
    let date = NaiveDate::parse_from_str(text, format).ok()?;
    (!StrftimeItems::new(format).any(is_of_day)).then(|| date.and_hms_opt(0, 0, 0)).flatten()
}

/// Whether a format has an offset from UTC: `%z`, `%:z`, `%#z` and their kin, or `%+`.
fn has_offset(format: &str) -> bool {
    let mut rest = format;
    while let Some((_, behind)) = rest.split_once('%') {
        let item = behind.trim_start_matches([':', '#']);
        if item.starts_with(['z', '+']) {
            return true;
        }
        rest = behind.strip_prefix('%').unwrap_or(behind);
    }
    false
}

/// The text without the spaces and tabs around it.
pub(crate) fn without_blanks(mut text: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] = text {
        text = rest;
    }
    while let [rest @ .., b' ' | b'\t'] = text {
        text = rest;
    }
    text
}

pub(crate) fn boolean(text: &[u8]) -> Option<bool> {
    if text.eq_ignore_ascii_case(b"true") {
        return Some(true);
    }
    text.eq_ignore_ascii_case(b"false").then_some(false)
}

fn signed(text: &[u8]) -> (bool, &[u8]) {
    match text {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, text),
    }
}

/// Digits, with a minus before them or not, that fit 64 bits.
pub(crate) fn integer(text: &[u8]) -> Option<i64> {
    let (negative, digits) = signed(text);
    // 18 digits cannot overflow.
    if digits.len() > 18 || digits.is_empty() {
        let is_number = digits.first().is_some_and(u8::is_ascii_digit);
        return std::str::from_utf8(text).ok().filter(|_| is_number)?.parse().ok();
    }
    let mut value = 0i64;
    for byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value * 10 + i64::from(digit);
    }
    Some(if negative { -value } else { value })
}

/// What a text of digits says: `[-] digits [. digits] [e [sign] digits]`, of which either digits
/// may miss, but not both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Digits {
    pub(crate) negative: bool,
    /// All digits before the exponent as one integer, while 128 bits hold it.
    pub(crate) unscaled: Option<u128>,
    /// Digits before the point, without zeros at their begin.
    pub(crate) whole: u32,
    /// Digits behind the point.
    pub(crate) fraction: u32,
    pub(crate) has_point: bool,
    pub(crate) has_exponent: bool,
}

/// Takes a number apart.
pub(crate) fn digits(text: &[u8]) -> Option<Digits> {
    let (negative, text) = signed(text);
    let mut found = Digits {
        negative,
        unscaled: Some(0),
        whole: 0,
        fraction: 0,
        has_point: false,
        has_exponent: false,
    };
    let mut any = false;
    let mut rest = text;
    while let [byte, behind @ ..] = rest {
        let digit = byte.wrapping_sub(b'0');
        if digit <= 9 {
            any = true;
            found.unscaled =
                found.unscaled.and_then(|v| v.checked_mul(10)?.checked_add(u128::from(digit)));
            if found.has_point {
                found.fraction += 1;
            } else if found.whole > 0 || digit > 0 {
                found.whole += 1;
            }
        } else if *byte == b'.' && !found.has_point {
            found.has_point = true;
        } else {
            break;
        }
        rest = behind;
    }
    if let [b'e' | b'E', exponent @ ..] = rest {
        let exponent =
            exponent.strip_prefix(b"-").or_else(|| exponent.strip_prefix(b"+")).unwrap_or(exponent);
        if exponent.is_empty() || !exponent.iter().all(u8::is_ascii_digit) {
            return None;
        }
        found.has_exponent = true;
        rest = &[];
    }
    (any && rest.is_empty()).then_some(found)
}

/// Whether a text is an infinity or not a number.
pub(crate) fn is_special(text: &[u8]) -> bool {
    let (_, word) = signed(text);
    word.eq_ignore_ascii_case(b"inf")
        || word.eq_ignore_ascii_case(b"infinity")
        || text.eq_ignore_ascii_case(b"nan")
}

/// The double nearest to a number.
pub(crate) fn double(text: &[u8]) -> Option<f64> {
    /// Powers of ten that are doubles without rounding.
    const TENS: [f64; 23] = [
        1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
        1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
    ];
    let (negative, number) = signed(text);
    let (mut mantissa, mut count, mut fraction, mut has_point) = (0u64, 0, 0usize, false);
    // Fifteen digits are a double without rounding, and one division rounds right (W. Clinger, "How
    // to read floating point numbers accurately").
    let is_short = number.len() <= 16
        && number.iter().all(|byte| {
            let digit = byte.wrapping_sub(b'0');
            if digit <= 9 {
                mantissa = mantissa * 10 + u64::from(digit);
                count += 1;
                fraction += usize::from(has_point);
                return true;
            }
            *byte == b'.' && !std::mem::replace(&mut has_point, true)
        });
    if is_short && (1..=15).contains(&count) {
        let value = mantissa as f64 / TENS[fraction];
        return Some(if negative { -value } else { value });
    }
    if digits(text).is_none() && !is_special(text) {
        return None;
    }
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// The double nearest to a number of a column whose type was inferred. `None` of integers beyond
/// 2^53, of which doubles hold not all.
pub(crate) fn inferred_double(text: &[u8]) -> Option<f64> {
    const EXACT: u128 = 1 << f64::MANTISSA_DIGITS;
    let is_beyond = || {
        let found = digits(text).filter(|found| !found.has_point && !found.has_exponent);
        found.is_some_and(|found| found.unscaled.is_none_or(|value| value > EXACT))
    };
    double(text).filter(|value| value.abs() < EXACT as f64 || !is_beyond())
}

/// A number in units of 10^-scale, if it has no digits below them, and at most `precision` in all.
pub(crate) fn decimal(text: &[u8], precision: u8, scale: i8) -> Option<i128> {
    let (negative, number) = signed(text);
    let (mut value, mut fraction, mut has_point) = (0u64, 0, false);
    // 18 digits cannot overflow.
    let is_short = number.len() <= 18
        && number.iter().all(|byte| {
            let digit = byte.wrapping_sub(b'0');
            if digit <= 9 {
                value = value * 10 + u64::from(digit);
                fraction += u32::from(has_point);
                return true;
            }
            *byte == b'.' && !std::mem::replace(&mut has_point, true)
        });
    let any = number.len() > usize::from(has_point);
    let (unscaled, fraction) = match is_short && any {
        true => (i128::from(value), fraction),
        false => {
            let found = digits(text).filter(|found| !found.has_exponent)?;
            (i128::try_from(found.unscaled?).ok()?, found.fraction)
        }
    };
    let more = u32::try_from(i64::from(scale) - i64::from(fraction)).ok()?;
    let value = unscaled.checked_mul(10i128.checked_pow(more)?)?;
    let bound = 10i128.checked_pow(u32::from(precision))?;
    (value < bound).then_some(if negative { -value } else { value })
}

fn two(text: &[u8], at: usize) -> Option<u32> {
    let digit =
        |at: usize| text.get(at).map(|byte| byte.wrapping_sub(b'0')).filter(|digit| *digit <= 9);
    Some(u32::from(digit(at)?) * 10 + u32::from(digit(at + 1)?))
}

/// Days from 1970-01-01 to `YYYY-MM-DD`.
pub(crate) fn date(text: &[u8]) -> Option<i32> {
    if text.len() != 10 || text[4] != b'-' || text[7] != b'-' {
        return None;
    }
    let (year, month, day) = (two(text, 0)? * 100 + two(text, 2)?, two(text, 5)?, two(text, 8)?);
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let days = match month {
        2 => 28 + u32::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        _ => return None,
    };
    if day == 0 || day > days {
        return None;
    }
    // Years begin in March: the leap day is the last (H. Hinnant, "chrono-compatible low-level date
    // algorithms").
    let year = year as i32 - i32::from(month <= 2);
    let era = year.div_euclid(400);
    let of_era = year - era * 400;
    let of_year = (153 * ((month as i32 + 9) % 12) + 2) / 5 + day as i32 - 1;
    Some(era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468)
}

/// `date hh:mm[:ss[.fraction]][zone]`, with a space or T between date and time, up to nine digits
/// of a fraction, and a zone of `Z` or `±hh[[:]mm]`.
pub(crate) fn timestamp(text: &[u8]) -> Option<Timestamp> {
    let days = date(text.get(..10)?)?;
    if !matches!(text.get(10)?, b' ' | b'T') || *text.get(13)? != b':' {
        return None;
    }
    let (hour, minute) = (two(text, 11)?, two(text, 14)?);
    let mut rest = &text[16..];
    let mut second = 0;
    let (mut nanos, mut is_fine) = (0, false);
    if let [b':', ..] = rest {
        second = two(rest, 1)?;
        rest = &rest[3..];
        if let [b'.', fraction @ ..] = rest {
            let count = fraction.iter().take_while(|byte| byte.is_ascii_digit()).count();
            if !(1..=9).contains(&count) {
                return None;
            }
            let value =
                fraction[..count].iter().fold(0, |value, byte| value * 10 + u32::from(byte - b'0'));
            nanos = value * 10u32.pow(9 - count as u32);
            is_fine = count > 6;
            rest = &fraction[count..];
        }
    }
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let east = offset(rest)?;
    let seconds = i64::from(days) * 86_400 + i64::from(hour * 3600 + minute * 60 + second)
        - east.unwrap_or(0);
    Some(Timestamp { seconds, nanos, is_fine, is_zoned: east.is_some() })
}

/// Seconds to the east of Greenwich; none where no zone is said.
fn offset(zone: &[u8]) -> Option<Option<i64>> {
    let (sign, minutes) = match zone {
        [] => return Some(None),
        b"Z" => return Some(Some(0)),
        [sign @ (b'+' | b'-'), _, _, b':', _, _] => (sign, two(zone, 4)?),
        [sign @ (b'+' | b'-'), _, _, _, _] => (sign, two(zone, 3)?),
        [sign @ (b'+' | b'-'), _, _] => (sign, 0),
        _ => return None,
    };
    let hours = two(zone, 1)?;
    if hours > 23 || minutes > 59 {
        return None;
    }
    let seconds = i64::from(hours * 3600 + minutes * 60);
    Some(Some(if *sign == b'-' { -seconds } else { seconds }))
}

impl Timestamp {
    /// Microseconds since 1970, where its digits fit them.
    pub(crate) fn micros(self) -> Option<i64> {
        if self.is_fine {
            return None;
        }
        self.seconds.checked_mul(1_000_000)?.checked_add(i64::from(self.nanos / 1000))
    }

    /// Nanoseconds since 1970, where 64 bits hold them.
    pub(crate) fn nanos(self) -> Option<i64> {
        let nanos = i128::from(self.seconds) * 1_000_000_000 + i128::from(self.nanos);
        i64::try_from(nanos).ok()
    }
}

#[cfg(test)]
mod tests;
