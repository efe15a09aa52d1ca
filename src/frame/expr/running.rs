//! Values of other rows, places among them, and running aggregates: all in the order of the
//! frame's rows, unless [`Expr::over_sorted`] says another one.

use datafusion::arrow::datatypes::{DataType, IntervalMonthDayNano};
use datafusion::functions_window::expr_fn as places;
use datafusion::scalar::ScalarValue;

use super::windows::{RowsBound, rows_frame};
use super::{
    Expr, IntoColumn, WindowFrame, WindowFrameBound, WindowFrameUnits, chance_of, count_rows, lit,
    row_number, when,
};
use crate::error::{Error, Result};

/// What numbers equal values get; see [`Expr::rank_with`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RankMethod {
    /// The mean of the places that they take: a float.
    #[default]
    Average,
    /// The least of these places.
    Min,
    /// The greatest of these places.
    Max,
    /// One number, and the next value gets the next number.
    Dense,
    /// Each its own place, in the order of the rows.
    Ordinal,
    /// Each its own place; chance orders equal values, the same for the same seed.
    Random {
        /// Says which chance.
        seed: u64,
    },
}

/// A window of so many rows; see [`Expr::rolling`].
///
/// ```
/// # use warpframe::prelude::*;
/// let week = Rolling { min_samples: 1, ..Rolling::rows(7) };
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rolling {
    /// Rows of the window.
    pub rows: usize,
    /// With fewer values than these, null counting as none, the result is null.
    pub min_samples: usize,
    /// The row is in the middle of its window, not at its end.
    pub center: bool,
}

impl Rolling {
    /// The row and the `rows − 1` before it, all of which must have values.
    pub fn rows(rows: usize) -> Rolling {
        Rolling { rows, min_samples: rows, center: false }
    }
}

impl From<usize> for Rolling {
    fn from(rows: usize) -> Rolling {
        Rolling::rows(rows)
    }
}

macro_rules! rolling {
    ($($(#[$doc:meta])* $name:ident $method:ident;)*) => {
        $($(#[$doc])*
        pub fn $name(self, window: impl Into<Rolling>) -> Expr {
            let values = self.clone();
            values.rolled(self.$method(), window.into())
        })*
    };
}

/// Values of other rows, places among them, and running aggregates. With [`Expr::over`] they are
/// of each row's partition.
///
/// ```
/// # use warpframe::prelude::*;
/// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
/// let frame = session.sql("VALUES (1, 10), (1, 30), (2, 20), (1, NULL)")?.with_columns([
///     col("column2").shift(1).alias("before"),
///     col("column2").diff(1).over(["column1"]).alias("change"),
///     col("column2").cum_sum().alias("sum"),
///     col("column2").rank_with(RankMethod::Min, false).alias("place"),
///     col("column2").rolling_mean(2).alias("mean"),
/// ])?;
/// assert_eq!(frame.filter(col("change").eq(20).and(col("place").eq(3)))?.collect()?.num_rows(), 1);
/// # Ok::<(), warpframe::Error>(())
/// ```
impl Expr {
    /// The value so many rows before; a negative number is so many rows after. Null where there is
    /// no such row.
    pub fn shift(self, rows: i64) -> Expr {
        self.shifted(rows, None)
    }

    /// [`Expr::shift`] with a value where there is no such row.
    pub fn shift_or(self, rows: i64, default: ScalarValue) -> Expr {
        self.shifted(rows, Some(default))
    }

    /// What it is more than so many rows before. Differences of unsigned integers are signed.
    pub fn diff(self, rows: i64) -> Expr {
        let before = self.clone().shift(rows);
        self - before
    }

    /// What it is more than so many rows before, as a share of that. Floats of 64 bits.
    pub fn pct_change(self, rows: i64) -> Expr {
        let value = self.cast(DataType::Float64);
        let before = value.clone().shift(rows);
        value / before - 1.0
    }

    /// The sum up to and with the row. A null stays null and adds nothing.
    pub fn cum_sum(self) -> Expr {
        let sum = self.clone().sum();
        self.running(sum)
    }

    /// The least value up to and with the row. A null stays null.
    pub fn cum_min(self) -> Expr {
        let min = self.clone().min();
        self.running(min)
    }

    /// The greatest value up to and with the row. A null stays null.
    pub fn cum_max(self) -> Expr {
        let max = self.clone().max();
        self.running(max)
    }

    /// The number of values up to and with the row, nulls not counted.
    pub fn cum_count(self) -> Expr {
        windowed(self.count(), rows_frame(RowsBound::First, RowsBound::Here))
    }

    /// The product up to and with the row, in floats of 64 bits and by logarithms: its last digits
    /// may be off. A null stays null.
    pub fn cum_prod(self) -> Expr {
        let (name, value) = (self.name.clone(), self.cast(DataType::Float64));
        let running = |of: Expr| windowed(of, rows_frame(RowsBound::First, RowsBound::Here));
        let is_zero = value.clone().eq(0.0);
        let size = running(value.clone().abs().ln().only_where(!is_zero.clone()).sum())
            .fill_null(0.0)
            .exp();
        let zeros = running(lit(1i64).only_where(is_zero).count());
        let negative = running(lit(1i64).only_where(value.clone().lt(0.0)).count());
        let signed = when((negative % 2i64).eq(1i64)).then(-size.clone()).otherwise(size);
        when(value.is_null())
            .then(None::<f64>)
            .when(zeros.gt(0i64))
            .then(0.0)
            .otherwise(signed)
            .called(name)
    }

    /// The place of the value among all from the least on, the first being 1; null stays null.
    /// Equal values share the mean of their places: a float. [`Expr::rank_with`] has other methods.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = frame!(session; "x" => [30, 10, 10])?.select(col("x").rank())?;
    /// assert_eq!(frame.column("x")?.to_vec::<f64>()?, [3.0, 1.5, 1.5]);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn rank(self) -> Expr {
        self.rank_with(RankMethod::Average, false)
    }

    /// The place of the value among all, from 1 on; null stays null. Equal values get numbers as
    /// the method says.
    pub fn rank_with(self, method: RankMethod, descending: bool) -> Expr {
        let mut order = vec![self.tree.clone().sort(!descending, false)];
        if let RankMethod::Random { seed } = method {
            order.push(chance_of(row_number(), seed).sort(true, true));
        }
        let ordered = |call: Expr| {
            call.windowed(|window| {
                window.params.order_by = order.clone();
                window.params.window_frame = WindowFrame::new(Some(false));
            })
        };
        let (least, greatest) = (|| ordered(super::rank()), || ordered(count_rows()));
        let place = match method {
            RankMethod::Average => (least().cast(DataType::Float64) + greatest()) / 2.0,
            RankMethod::Min => least(),
            RankMethod::Max => greatest(),
            RankMethod::Dense => ordered(super::dense_rank()),
            RankMethod::Ordinal | RankMethod::Random { .. } => ordered(row_number()),
        };
        let name = self.name.clone();
        place.only_where(self.is_not_null()).called(name)
    }

    /// Whether another row has the same value; null equals null.
    pub fn is_duplicated(self) -> Expr {
        self.among_equals(count_rows()).gt(1i64)
    }

    /// Whether no other row has the same value; null equals null.
    pub fn is_unique(self) -> Expr {
        self.among_equals(count_rows()).eq(1i64)
    }

    /// Whether no row before has the same value; null equals null.
    pub fn is_first_distinct(self) -> Expr {
        self.among_equals(row_number()).eq(1u64)
    }

    /// Whether no row after has the same value; null equals null.
    pub fn is_last_distinct(self) -> Expr {
        let rows = self.clone().among_equals(count_rows());
        self.among_equals(row_number()).cast(DataType::Int64).eq(rows)
    }

    rolling! {
        /// The mean of a window of rows.
        rolling_mean mean;
        /// The sum of a window of rows.
        rolling_sum sum;
        /// The least value of a window of rows.
        rolling_min min;
        /// The greatest value of a window of rows.
        rolling_max max;
        /// The standard deviation of a window of rows.
        rolling_std std;
        /// The variance of a window of rows.
        rolling_var var;
        /// The median of a window of rows.
        rolling_median median;
    }

    /// Aggregates over a window of rows, whatever its nulls are.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = session.sql("VALUES (1), (5), (2)")?;
    /// let range = (col("column1").max() - col("column1").min()).rolling(2);
    /// assert_eq!(frame.filter(range.gt_eq(3))?.collect()?.num_rows(), 2);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn rolling(self, window: impl Into<Rolling>) -> Expr {
        let frame = window.into().frame();
        self.windowed(|window| window.params.window_frame = frame.clone())
    }

    /// Aggregates over the rows whose key is at most so much less than the row's: `"7d"`,
    /// `"1h30m"`, `"1mo"`, or a plain number for numbers. What is just so far away counts, as in
    /// SQL (Polars' `closed="both"`). Rows with the same key see one another.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Unsupported`] where the window is no such text.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = session.sql("VALUES (DATE '2024-01-01', 1), (DATE '2024-01-02', 2), (DATE '2024-01-09', 4)")?;
    /// let week = col("column2").sum().rolling_by("column1", "7d")?;
    /// assert_eq!(frame.filter(week.eq(6))?.collect()?.num_rows(), 1);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn rolling_by(self, key: impl IntoColumn, window: &str) -> Result<Expr> {
        let distance = distance(window)?;
        let key = key.into_column();
        let frame = WindowFrame::new_bounds(
            WindowFrameUnits::Range,
            WindowFrameBound::Preceding(distance),
            WindowFrameBound::CurrentRow,
        );
        Ok(self.windowed(|window| {
            window.params.order_by = vec![key.tree.clone().sort(true, true)];
            window.params.window_frame = frame.clone();
        }))
    }

    /// A running aggregate of this, null where this is.
    fn running(self, aggregate: Expr) -> Expr {
        windowed(aggregate, rows_frame(RowsBound::First, RowsBound::Here))
            .only_where(self.is_not_null())
    }

    fn rolled(self, aggregate: Expr, window: Rolling) -> Expr {
        let values = windowed(self.count(), window.frame());
        windowed(aggregate, window.frame())
            .only_where(values.gt_eq(window.min_samples.max(1) as i64))
    }

    /// A function over the rows with the same value.
    fn among_equals(self, function: Expr) -> Expr {
        function
            .windowed(|window| window.params.partition_by = vec![self.tree.clone()])
            .called(self.name)
    }

    fn shifted(self, rows: i64, default: Option<ScalarValue>) -> Expr {
        self.map(|value| match rows {
            ..0 => places::lead(value, Some(-rows), default),
            _ => places::lag(value, Some(rows), default),
        })
    }
}

impl Rolling {
    fn frame(self) -> WindowFrame {
        let rows = self.rows.max(1) as u64;
        let after = if self.center { (rows - 1) / 2 } else { 0 };
        rows_frame(RowsBound::Before(rows - 1 - after), RowsBound::After(after))
    }
}

fn windowed(aggregate: Expr, frame: WindowFrame) -> Expr {
    aggregate.windowed(|window| window.params.window_frame = frame.clone())
}

/// The instant from which steps of times are counted, in nanoseconds since 1970: for weeks a
/// Monday.
pub(in crate::frame) fn first_start(step: IntervalMonthDayNano) -> i64 {
    let is_weeks = step.months == 0 && step.nanoseconds == 0 && step.days % 7 == 0;
    if is_weeks { 4 * 86_400_000_000_000 } else { 0 }
}

/// A distance of times or numbers.
pub(in crate::frame) fn distance(text: &str) -> Result<ScalarValue> {
    let wrong = || {
        let why =
            "a number, or numbers with units: ns, us, ms, s, m, h, d, w, mo, q, y (\"1d12h\")";
        Error::unsupported(format!("a distance of {text:?}"), why)
    };
    if let Ok(number) = text.parse::<i64>() {
        return Ok(ScalarValue::Int64(Some(number)));
    }
    let (mut months, mut days, mut nanoseconds, mut rest) = (0i32, 0i32, 0i64, text);
    while !rest.is_empty() {
        let digits = rest.find(|letter: char| !letter.is_ascii_digit()).ok_or_else(wrong)?;
        let (number, behind) = rest.split_at(digits);
        let number: i64 = number.parse().map_err(|_| wrong())?;
        let unit = behind.find(|letter: char| letter.is_ascii_digit()).unwrap_or(behind.len());
        let (unit, behind) = behind.split_at(unit);
        rest = behind;
        let small =
            |times: i32| i32::try_from(number).ok().and_then(|number| number.checked_mul(times));
        let nanos = |times: i64| number.checked_mul(times);
        let added = match unit {
            "y" => small(12).and_then(|more| months.checked_add(more)).map(|sum| months = sum),
            "q" => small(3).and_then(|more| months.checked_add(more)).map(|sum| months = sum),
            "mo" => small(1).and_then(|more| months.checked_add(more)).map(|sum| months = sum),
            "w" => small(7).and_then(|more| days.checked_add(more)).map(|sum| days = sum),
            "d" => small(1).and_then(|more| days.checked_add(more)).map(|sum| days = sum),
            unit => {
                let times = match unit {
                    "h" => 3_600_000_000_000,
                    "m" => 60_000_000_000,
                    "s" => 1_000_000_000,
                    "ms" => 1_000_000,
                    "us" | "µs" => 1_000,
                    "ns" => 1,
                    _ => return Err(wrong()),
                };
                nanos(times)
                    .and_then(|more| nanoseconds.checked_add(more))
                    .map(|sum| nanoseconds = sum)
            }
        };
        added.ok_or_else(wrong)?;
    }
    match text.is_empty() {
        true => Err(wrong()),
        false => Ok(ScalarValue::IntervalMonthDayNano(Some(IntervalMonthDayNano {
            months,
            days,
            nanoseconds,
        }))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_read() {
        let interval = |months, days, nanoseconds| {
            ScalarValue::IntervalMonthDayNano(Some(IntervalMonthDayNano {
                months,
                days,
                nanoseconds,
            }))
        };
        let read = |text| distance(text).expect("a distance");
        assert_eq!(read("7d"), interval(0, 7, 0));
        assert_eq!(read("1y2mo1w3d"), interval(14, 10, 0));
        assert_eq!(read("1h30m"), interval(0, 0, 5_400_000_000_000));
        assert_eq!(read("12"), ScalarValue::Int64(Some(12)));
        for wrong in ["", "d", "1x", "1.5d", "99999999999999999999d", "9999999999y"] {
            assert!(distance(wrong).is_err(), "{wrong}");
        }
    }
}
