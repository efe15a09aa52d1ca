//! Casts of texts to dates and timestamps that Arrow (59.3) refuses, and DuckDB and PostgreSQL take.
//!
//! ```text
//!   '2024-01-31 10:15', '2024-01-31T10:15+02:00'   as a timestamp or date: it wants the seconds
//! ```

use std::borrow::Cow;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, StringViewArray};
use datafusion::arrow::compute::{CastOptions, cast, cast_with_options};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::format::DEFAULT_CAST_OPTIONS;
use datafusion::error::Result;

/// Whether a cast is one of those.
pub(super) fn reads(from: &DataType, to: &DataType) -> bool {
    is_text(from) && is_read(to)
}

/// Whether texts are read otherwise as values of a type.
pub(super) fn is_read(to: &DataType) -> bool {
    matches!(to, DataType::Date32 | DataType::Date64 | DataType::Timestamp(_, _))
}

fn is_text(dtype: &DataType) -> bool {
    match dtype {
        DataType::Dictionary(_, values) => is_text(values),
        dtype => dtype.is_string(),
    }
}

/// The values that texts say; of what says none, null, or an error.
pub(super) fn read(texts: &ArrayRef, to: &DataType, or_null: bool) -> Result<ArrayRef> {
    let views = cast(texts, &DataType::Utf8View)?;
    let options = CastOptions { safe: or_null, ..DEFAULT_CAST_OPTIONS };
    Ok(match with_seconds(views.as_string_view()) {
        Some(given) => cast_with_options(&given, to, &options)?,
        None => cast_with_options(texts, to, &options)?,
    })
}

/// Texts of timestamps with their seconds; themselves where all have them.
pub(super) fn whole_minutes(texts: &ArrayRef) -> Result<ArrayRef> {
    let views = cast(texts, &DataType::Utf8View)?;
    Ok(match with_seconds(views.as_string_view()) {
        Some(whole) => cast(&(Arc::new(whole) as ArrayRef), texts.data_type())?,
        None => texts.clone(),
    })
}

fn with_seconds(texts: &StringViewArray) -> Option<StringViewArray> {
    texts.iter().flatten().any(lacks_seconds).then(|| {
        let whole = |text| match lacks_seconds(text) {
            true => Cow::Owned(format!("{}:00{}", &text[..MINUTE_END], &text[MINUTE_END..])),
            false => Cow::Borrowed(text),
        };
        texts.iter().map(|text| text.map(whole)).collect()
    })
}

/// Where the minutes of a timestamp end: `2024-01-31 10:15`.
const MINUTE_END: usize = 16;

/// Whether a text says a time of day behind a date, but no seconds. The byte before
/// [`MINUTE_END`] is a digit then, so that it lies between characters.
fn lacks_seconds(text: &str) -> bool {
    let bytes = text.as_bytes();
    let digits =
        [11, 12, 14, 15].iter().all(|at| bytes.get(*at).is_some_and(|byte| byte.is_ascii_digit()));
    let goes_on = matches!(bytes.get(MINUTE_END), Some(b':' | b'.' | b'0'..=b'9'));
    digits && bytes[13] == b':' && !goes_on
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_set_in_where_they_lack() {
        let texts = [
            ("2024-01-31 10:15", Some("2024-01-31 10:15:00")),
            ("2024-01-31T10:15Z", Some("2024-01-31T10:15:00Z")),
            ("2024-01-31 10:15 Europe/Berlin", Some("2024-01-31 10:15:00 Europe/Berlin")),
            ("2024-01-31 10:15:16", None),
            ("2024-01-31 10:15.5", None),
            ("2024-01-31 10:159", None),
            ("2024-01-31 1:15", None),
            ("2024-01-31", None),
            ("éééééé 10:15", None),
        ];
        for (text, whole) in texts {
            let array = StringViewArray::from_iter_values([text]);
            let set = with_seconds(&array);
            assert_eq!(set.as_ref().map(|set| set.value(0)), whole, "{text}");
        }
    }
}
