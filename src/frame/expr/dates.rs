//! Functions of dates, times and durations.

use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::functions::expr_fn;
use datafusion::logical_expr as df;
use datafusion::scalar::ScalarValue;

use super::Expr;
use super::running::{distance, first_start};
use crate::error::Result;
use crate::host::date_trunc::date_trunc;

/// Functions of dates and times; see [`Expr::dt`].
///
/// ```
/// # use warpframe::prelude::*;
/// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
/// let frame = session.sql("VALUES (DATE '2024-02-29'), (DATE '2023-12-31')")?;
/// let day = || col("column1").dt();
/// let frame = frame.select([day().year().alias("year"), day().weekday().alias("weekday"), day().month_end().alias("end")])?;
/// assert_eq!(frame.filter(col("weekday").eq(4).and(col("end").eq(date(2024, 2, 29)?)))?.collect()?.num_rows(), 1);
/// # Ok::<(), warpframe::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct DateMethods(Expr);

impl Expr {
    /// Functions of dates and times.
    pub fn dt(self) -> DateMethods {
        DateMethods(self)
    }
}

macro_rules! parts {
    ($($(#[$doc:meta])* $name:ident $part:literal;)*) => {
        $($(#[$doc])*
        pub fn $name(self) -> Expr {
            self.part($part)
        })*
    };
}

impl DateMethods {
    parts! {
        /// The year.
        year "year";
        /// The quarter, from 1 on.
        quarter "quarter";
        /// The month, from 1 on.
        month "month";
        /// The week of ISO 8601, from 1 on.
        week "week";
        /// The day of the month, from 1 on.
        day "day";
        /// The day of the year, from 1 on.
        ordinal_day "doy";
        /// The day of the week: Monday is 1, Sunday 7.
        weekday "isodow";
        /// The year that its week of ISO 8601 belongs to.
        iso_year "isoyear";
        /// The hour.
        hour "hour";
        /// The minute.
        minute "minute";
        /// Seconds since 1970 in UTC, with their fraction.
        epoch "epoch";
    }

    /// The second, without its fraction.
    pub fn second(self) -> Expr {
        self.part("second").cast(DataType::Int32)
    }

    /// The thousandths of a second that go with the second.
    pub fn millisecond(self) -> Expr {
        self.part("millisecond") % 1000
    }

    /// The millionths of a second that go with the second.
    pub fn microsecond(self) -> Expr {
        self.part("microsecond") % 1_000_000
    }

    /// The day.
    pub fn date(self) -> Expr {
        self.0.cast(DataType::Date32)
    }

    /// The time of day.
    pub fn time(self) -> Expr {
        self.0.cast(DataType::Time64(TimeUnit::Nanosecond))
    }

    /// The number of days of its month.
    pub fn days_in_month(self) -> Expr {
        self.month_end().dt().day()
    }

    /// Whether its year has 366 days.
    pub fn is_leap_year(self) -> Expr {
        let year = self.year();
        let divides = |by: i32| (year.clone() % by).eq(0);
        (divides(4) & !divides(100)) | divides(400)
    }

    /// Microseconds since 1970 in UTC.
    pub fn timestamp(self) -> Expr {
        self.datetime().cast(DataType::Int64)
    }

    /// Converts a time that has a time zone to another one; the instant stays.
    pub fn convert_time_zone(self, zone: &str) -> Expr {
        self.0.cast(DataType::Timestamp(TimeUnit::Microsecond, Some(zone.into())))
    }

    /// The instant at which clocks of a time zone show this time, which has none.
    pub fn replace_time_zone(self, zone: &str) -> Expr {
        self.0.cast(DataType::Timestamp(TimeUnit::Microsecond, Some(zone.into())))
    }

    /// The start of the unit that it is in: `"year"` or `"1y"`, `"quarter"` or `"1q"`, `"month"` or
    /// `"1mo"`, `"week"` or `"1w"`, `"day"` or `"1d"`, `"hour"` or `"1h"`, `"minute"` or `"1m"`,
    /// `"second"` or `"1s"`. Other steps, such as `"15m"`, are those of [`DateMethods::every`]:
    /// timestamps.
    ///
    /// # Errors
    /// A text that is neither is an error of the verb.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = session.sql("VALUES (TIMESTAMP '2024-01-31 10:20:00')")?;
    /// let at = || col("column1").dt();
    /// let same = |step, unit| frame.filter(at().truncate(step).eq(at().truncate(unit)))?.collect();
    /// assert_eq!(same("1mo", "month")?.num_rows(), 1);
    /// assert_eq!(same("30m", "hour")?.num_rows(), 1);
    /// assert!(frame.select([at().truncate("soon")]).and_then(|frame| frame.collect()).is_err());
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn truncate(self, step: &str) -> Expr {
        let unit = match step {
            "1y" => "year",
            "1q" => "quarter",
            "1mo" => "month",
            "1w" => "week",
            "1d" => "day",
            "1h" => "hour",
            "1m" => "minute",
            "1s" => "second",
            "1ms" => "millisecond",
            "1us" => "microsecond",
            // Units have no digits, and what is no step is refused as a unit.
            _ => match self.clone().every(step) {
                Ok(start) => return start,
                Err(_) => step,
            },
        };
        self.0.map(|time| date_trunc().call(vec![df::lit(unit), time]))
    }

    /// The start of the step that it is in, a timestamp: of steps such as `"15m"` since 1970, and of
    /// steps of weeks since a Monday, 1970-01-05.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Unsupported`] where the step is no such text.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = session.sql("VALUES (TIMESTAMP '2024-01-01 10:20:00'), (TIMESTAMP '2024-01-01 10:29:00')")?;
    /// assert_eq!(frame.select([col("column1").dt().every("15m")?])?.distinct()?.collect()?.num_rows(), 1);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn every(self, step: &str) -> Result<Expr> {
        let step = distance(step)?;
        let start = match &step {
            ScalarValue::IntervalMonthDayNano(Some(step)) => first_start(*step),
            _ => 0,
        };
        let origin = ScalarValue::TimestampNanosecond(Some(start), None);
        let [stride, origin] = [step, origin].map(|value| df::Expr::Literal(value, None));
        Ok(self.0.map(|time| expr_fn::date_bin(stride, time, origin)))
    }

    /// The first day of its month.
    pub fn month_start(self) -> Expr {
        self.truncate("month").cast(DataType::Date32)
    }

    /// The last day of its month.
    pub fn month_end(self) -> Expr {
        let interval = |months, days| {
            let by =
                datafusion::arrow::datatypes::IntervalMonthDayNano { months, days, nanoseconds: 0 };
            df::Expr::Literal(ScalarValue::IntervalMonthDayNano(Some(by)), None)
        };
        self.month_start()
            .map(|start| start + interval(1, 0) - interval(0, 1))
            .cast(DataType::Date32)
    }

    /// Moved by a time such as `"1mo"` or `"-2d"`.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Unsupported`] where it is no such text.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = session.sql("VALUES (DATE '2024-01-31')")?;
    /// let later = frame.filter(col("column1").dt().offset_by("1mo")?.eq(date(2024, 2, 29)?))?;
    /// assert_eq!(later.collect()?.num_rows(), 1);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn offset_by(self, by: &str) -> Result<Expr> {
        Ok(match by.strip_prefix('-') {
            Some(by) => self.0 - distance(by)?,
            None => self.0 + distance(by)?,
        })
    }

    /// As text, by a pattern of crate `chrono`: `"%Y-%m-%d %H:%M"`.
    pub fn strftime(self, pattern: &str) -> Expr {
        self.0.map(|value| expr_fn::to_char(value, df::lit(pattern)))
    }

    /// As a timestamp in microseconds.
    pub fn datetime(self) -> Expr {
        self.0.cast(DataType::Timestamp(TimeUnit::Microsecond, None))
    }

    /// As whole days of a duration, towards zero.
    pub fn total_days(self) -> Expr {
        self.total(86_400_000_000)
    }

    /// As whole hours of a duration, towards zero.
    pub fn total_hours(self) -> Expr {
        self.total(3_600_000_000)
    }

    /// As whole minutes of a duration, towards zero.
    pub fn total_minutes(self) -> Expr {
        self.total(60_000_000)
    }

    /// As whole seconds of a duration, towards zero.
    pub fn total_seconds(self) -> Expr {
        self.total(1_000_000)
    }

    /// As whole milliseconds of a duration, towards zero.
    pub fn total_milliseconds(self) -> Expr {
        self.total(1_000)
    }

    /// As whole microseconds of a duration, towards zero.
    pub fn total_microseconds(self) -> Expr {
        self.total(1)
    }

    fn part(self, part: &str) -> Expr {
        self.0.map(|time| expr_fn::date_part(df::lit(part), time))
    }

    fn total(self, microseconds: i64) -> Expr {
        self.0.cast(DataType::Duration(TimeUnit::Microsecond)).cast(DataType::Int64) / microseconds
    }
}
