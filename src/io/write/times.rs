//! How dates and timestamps are written, where the options say so.

use datafusion::arrow::util::display::FormatOptions;

use crate::error::Result;
use crate::host::{TimePattern, chrono_pattern};

/// Patterns as chrono has them; nothing where times are written as Arrow does.
#[derive(Debug, Default)]
pub(super) struct TimeFormats {
    pub(super) date: Option<String>,
    pub(super) timestamp: Option<String>,
}

impl TimeFormats {
    /// # Errors
    /// Patterns with letters that are not known.
    pub(super) fn of(date: Option<&str>, timestamp: Option<&str>) -> Result<TimeFormats> {
        let pattern = |of: TimePattern, option, pattern: Option<&str>| {
            pattern.map(|pattern| chrono_pattern(of, option, pattern)).transpose()
        };
        Ok(TimeFormats {
            date: pattern(TimePattern::OfDates, "dateformat", date)?,
            timestamp: pattern(TimePattern::OfTimes, "timestampformat", timestamp)?,
        })
    }

    pub(super) fn options(&self) -> FormatOptions<'_> {
        let (date, timestamp) = (self.date.as_deref(), self.timestamp.as_deref());
        FormatOptions::default()
            .with_date_format(date)
            .with_datetime_format(date)
            .with_timestamp_format(timestamp)
            .with_timestamp_tz_format(timestamp)
    }
}
