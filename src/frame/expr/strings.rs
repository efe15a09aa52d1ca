//! Functions of strings.

use datafusion::arrow::datatypes::DataType;
use datafusion::functions::expr_fn;
use datafusion::functions_nested::expr_fn as nested;
use datafusion::logical_expr as df;
use datafusion::scalar::ScalarValue;

use super::{Expr, IntoValue, methods, when};

/// Functions of strings; see [`Expr::str`]. Characters are Unicode's, not bytes. Patterns that are
/// called regular expressions are those of crate `regex`; for the device they must be constants.
///
/// ```
/// # use warpframe::prelude::*;
/// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
/// let frame = session.sql("VALUES ('  Anna-7'), ('Bert-12')")?;
/// let text = col("column1").str().strip_chars();
/// let frame = frame.select([
///     text.clone().str().split_part("-", 1).str().to_uppercase().alias("name"),
///     text.str().extract("-([0-9]+)", 1).cast(DataType::Int64).alias("number"),
/// ])?;
/// assert_eq!(frame.filter(col("name").eq("ANNA").and(col("number").eq(7)))?.collect()?.num_rows(), 1);
/// # Ok::<(), warpframe::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct StringMethods(Expr);

impl Expr {
    /// Functions of strings.
    pub fn str(self) -> StringMethods {
        StringMethods(self)
    }
}

macro_rules! binary {
    ($($(#[$doc:meta])* $name:ident $function:expr;)*) => {
        $($(#[$doc])*
        pub fn $name(self, other: impl IntoValue) -> Expr {
            let of: fn(df::Expr, df::Expr) -> df::Expr = $function;
            self.0.with(other, of)
        })*
    };
}

impl StringMethods {
    methods! {
        /// In capital letters.
        to_uppercase expr_fn::upper;
        /// In small letters.
        to_lowercase expr_fn::lower;
        /// The first letter of each word in capitals, the others small.
        to_titlecase expr_fn::initcap;
        /// The number of characters.
        len_chars expr_fn::character_length;
        /// The number of bytes.
        len_bytes expr_fn::octet_length;
        /// The characters from last to first.
        reverse expr_fn::reverse;
        /// Without blanks at both ends.
        strip_chars |text| expr_fn::trim(vec![text]);
        /// Without blanks at the start.
        strip_chars_start |text| expr_fn::ltrim(vec![text]);
        /// Without blanks at the end.
        strip_chars_end |text| expr_fn::rtrim(vec![text]);
    }

    binary! {
        /// Whether a text is somewhere in it, character by character; see
        /// [`StringMethods::matches`].
        contains expr_fn::contains;
        /// Whether it begins with a text.
        starts_with expr_fn::starts_with;
        /// Whether it ends with a text.
        ends_with expr_fn::ends_with;
        /// Without any of these characters at both ends.
        strip expr_strip;
        /// The number of edits that make the other text of it.
        levenshtein expr_fn::levenshtein;
        /// The first `n` characters; of a negative number all but the last.
        head expr_fn::left;
        /// The last `n` characters; of a negative number all but the first.
        tail expr_fn::right;
        /// The text so many times.
        repeat expr_fn::repeat;
    }

    /// The parts between a separator, as a list; of an empty text one part, which is empty.
    pub fn split(self, separator: impl IntoValue) -> Expr {
        let text = self.0;
        let null = df::lit(ScalarValue::Utf8(None));
        let parts =
            text.clone().with(separator, |text, by| nested::string_to_array(text, by, null));
        let empty = Expr::from(nested::make_array(vec![df::lit("")]));
        when(text.clone().eq("")).then(empty).otherwise(parts).called_as(&text)
    }

    /// Whether one of these texts is somewhere in it, character by character.
    pub fn contains_any(self, texts: impl IntoIterator<Item: IntoValue>) -> Expr {
        let found = texts.into_iter().map(|text| self.0.clone().str().contains(text));
        found.reduce(|any, one| any.or(one)).unwrap_or_else(|| super::lit(false)).called_as(&self.0)
    }

    /// Whether a regular expression matches somewhere.
    pub fn matches(self, pattern: &str) -> Expr {
        self.0.map(|value| expr_fn::regexp_like(value, df::lit(pattern), None))
    }

    /// How often a regular expression matches.
    pub fn count_matches(self, pattern: &str) -> Expr {
        self.0.map(|value| expr_fn::regexp_count(value, df::lit(pattern), None, None))
    }

    /// What a group of a regular expression matches, 0 being all of it; null where it does not.
    pub fn extract(self, pattern: &str, group: usize) -> Expr {
        // The groups of a match are a list; without groups it holds the match itself.
        let (pattern, place) = match group {
            0 => (format!("({pattern})"), 1),
            group => (pattern.to_string(), group as i64),
        };
        self.0.map(|text| {
            let matched = expr_fn::regexp_match(text, df::lit(pattern), None);
            nested::array_element(matched, df::lit(place))
        })
    }

    /// With the first occurrence of what a regular expression matches replaced; `$1`, or `\1`, is
    /// what its first group matched.
    pub fn replace(self, pattern: &str, replacement: impl IntoValue) -> Expr {
        self.0.map(|value| {
            expr_fn::regexp_replace(value, df::lit(pattern), replacement.into_value().tree, None)
        })
    }

    /// With all occurrences of a plain text replaced.
    pub fn replace_all(self, text: impl IntoValue, replacement: impl IntoValue) -> Expr {
        self.0.map(|value| {
            expr_fn::replace(value, text.into_value().tree, replacement.into_value().tree)
        })
    }

    /// With all that a regular expression matches replaced.
    pub fn replace_matches(self, pattern: &str, replacement: impl IntoValue) -> Expr {
        self.0.map(|value| {
            expr_fn::regexp_replace(
                value,
                df::lit(pattern),
                replacement.into_value().tree,
                Some(df::lit("g")),
            )
        })
    }

    /// With each of these characters replaced by the one at its place in `to`; those for which
    /// there is none are left out.
    pub fn translate(self, from: &str, to: &str) -> Expr {
        self.0.map(|text| expr_fn::translate(text, df::lit(from), df::lit(to)))
    }

    /// The characters from a place on, 0 being the first; a negative place counts from the end.
    /// `length` characters, or all.
    pub fn slice(self, offset: i64, length: Option<u64>) -> Expr {
        let text = self.0;
        let tail = match offset {
            // What lies before the first character counts, and is not there.
            ..0 if length.is_some() => {
                let length = i64::try_from(length.unwrap_or_default()).unwrap_or(i64::MAX);
                let start = text.clone().str().len_chars().cast(DataType::Int64) + offset + 1;
                return text.map(|text| expr_fn::substring(text, start.tree, df::lit(length)));
            }
            0 => text,
            1.. => text.map(|text| expr_fn::substr(text, df::lit(offset.saturating_add(1)))),
            _ => text.map(|text| expr_fn::right(text, df::lit(offset.saturating_neg()))),
        };
        match length {
            Some(length) => tail.str().head(i64::try_from(length).unwrap_or(i64::MAX)),
            None => tail,
        }
    }

    /// The part of this number, from 1 on, between a separator; a negative number counts from the
    /// end, and a part that is not there is empty.
    pub fn split_part(self, separator: impl IntoValue, part: i64) -> Expr {
        self.0.map(|value| expr_fn::split_part(value, separator.into_value().tree, df::lit(part)))
    }

    /// Where a text is in it, 0 being the first character; null where it is not.
    pub fn find(self, text: impl IntoValue) -> Expr {
        let place = self.0.with(text, expr_fn::strpos);
        when(place.clone().gt(0)).then(place - 1).end()
    }

    /// With a character put before it until it has so many.
    pub fn pad_start(self, length: u32, fill: char) -> Expr {
        self.padded(length, |text, length| {
            expr_fn::lpad(vec![text, length, df::lit(fill.to_string())])
        })
    }

    /// With a character put behind it until it has so many.
    pub fn pad_end(self, length: u32, fill: char) -> Expr {
        self.padded(length, |text, length| {
            expr_fn::rpad(vec![text, length, df::lit(fill.to_string())])
        })
    }

    /// With zeros put before it until it has so many characters; a sign stays in front.
    pub fn zfill(self, length: u32) -> Expr {
        let text = self.0.clone();
        let sign = text.clone().str().head(1);
        let rest = text.str().slice(1, None).str().pad_start(length.saturating_sub(1), '0');
        let signed = super::concat(vec![sign.clone(), rest]);
        let name = self.0.name.clone();
        when(sign.is_in(["-", "+"]))
            .then(signed)
            .otherwise(self.pad_start(length, '0'))
            .called(name)
    }

    /// Without a text that it begins with.
    pub fn strip_prefix(self, prefix: impl IntoValue) -> Expr {
        let (text, prefix) = (self.0, prefix.into_value());
        let rest = text.clone().with(prefix.clone().str().len_chars() + 1, expr_fn::substr);
        when(text.clone().str().starts_with(prefix)).then(rest).otherwise(text)
    }

    /// Without a text that it ends with.
    pub fn strip_suffix(self, suffix: impl IntoValue) -> Expr {
        let (text, suffix) = (self.0, suffix.into_value());
        let length = text.clone().str().len_chars() - suffix.clone().str().len_chars();
        let rest = text.clone().str().head(length.cast(DataType::Int64));
        when(text.clone().str().ends_with(suffix)).then(rest).otherwise(text)
    }

    /// Texts of a group, with something between them, in the order of the rows: an aggregate.
    pub fn join(self, separator: &str) -> Expr {
        let udaf = datafusion::functions_aggregate::string_agg::string_agg_udaf();
        self.0.map(|text| udaf.call(vec![text, df::lit(separator)]))
    }

    /// The date that it is the text of, as in `2024-01-31`.
    pub fn to_date(self) -> Expr {
        self.0.cast(DataType::Date32)
    }

    /// The time that it is the text of, in microseconds, as in `2024-01-31 12:30:00`.
    pub fn to_datetime(self) -> Expr {
        self.0.cast(DataType::Timestamp(datafusion::arrow::datatypes::TimeUnit::Microsecond, None))
    }

    /// The time that it is the text of, in microseconds, by a pattern of crate `chrono`:
    /// `"%d.%m.%Y %H:%M:%S"`. The CPU reads such texts; the device those of
    /// [`StringMethods::to_datetime`].
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = session.sql("VALUES ('29.02.2024 12:30:00')")?;
    /// let day = col("column1").str().strptime("%d.%m.%Y %H:%M:%S").dt().date();
    /// assert_eq!(frame.filter(day.eq(date(2024, 2, 29)?))?.collect()?.num_rows(), 1);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn strptime(self, pattern: &str) -> Expr {
        self.0.map(|text| expr_fn::to_timestamp_micros(vec![text, df::lit(pattern)]))
    }

    /// The time of day that it is the text of, as in `12:30:00`.
    pub fn to_time(self) -> Expr {
        self.0.cast(DataType::Time64(datafusion::arrow::datatypes::TimeUnit::Nanosecond))
    }

    /// The decimal number that it is the text of, with so many digits behind the point.
    pub fn to_decimal(self, scale: u8) -> Expr {
        self.0.cast(DataType::Decimal128(38, i8::try_from(scale).unwrap_or(i8::MAX)))
    }

    /// The number that it is the text of.
    pub fn to_integer(self) -> Expr {
        self.0.cast(DataType::Int64)
    }

    /// Longer texts stay as they are.
    fn padded(self, length: u32, pad: impl Fn(df::Expr, df::Expr) -> df::Expr) -> Expr {
        let chars = self.0.clone().str().len_chars().cast(DataType::Int64).fill_null(0i64);
        let padded = self.0.clone().with(i64::from(length), pad);
        when(chars.lt(i64::from(length))).then(padded).otherwise(self.0)
    }
}

fn expr_strip(text: df::Expr, characters: df::Expr) -> df::Expr {
    expr_fn::trim(vec![text, characters])
}
