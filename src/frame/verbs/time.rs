//! Rows by times: groups of windows, and the nearest row of another frame.

use datafusion::arrow::datatypes::{DataType, IntervalMonthDayNano, Schema, TimeUnit};
use datafusion::functions::expr_fn;
use datafusion::logical_expr as df;
use datafusion::logical_expr::JoinType;
use datafusion::scalar::ScalarValue;

use crate::error::{Error, ErrorKind, Result};
use crate::frame::expr::{
    Columns, Expr, IntoColumn, col, distance, first_start, list, lit, unknown, when,
};
use crate::frame::{AnyFrame, FrameState, GroupBy, LazyFrame};

/// Windows of [`AnyFrame::group_by_dynamic`].
///
/// ```
/// # use warpframe::prelude::*;
/// let hours = DynamicWindows { label: Edge::Right, ..DynamicWindows::every("1h") };
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DynamicWindows {
    /// How far apart windows begin, as in `"1h"`, `"2d"`, `"1mo"`.
    pub every: String,
    /// How long they are; `every`, if nothing is said.
    pub period: Option<String>,
    /// How far windows begin after 1970-01-01, those of weeks after Monday, 1970-01-05.
    pub offset: Option<String>,
    /// Which of its ends belongs to a window.
    pub closed: Edge,
    /// Which of its ends a window is called by.
    pub label: Edge,
}

impl DynamicWindows {
    /// Windows that follow one another, with their starts and called by them.
    pub fn every(every: &str) -> DynamicWindows {
        let every = every.to_string();
        DynamicWindows { every, period: None, offset: None, closed: Edge::Left, label: Edge::Left }
    }
}

impl From<&str> for DynamicWindows {
    fn from(every: &str) -> DynamicWindows {
        DynamicWindows::every(every)
    }
}

impl From<&DynamicWindows> for DynamicWindows {
    fn from(windows: &DynamicWindows) -> DynamicWindows {
        windows.clone()
    }
}

/// An end of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edge {
    /// Its start.
    Left,
    /// Its end.
    Right,
}

/// Which row of the right frame belongs to a row of the left; see [`AnyFrame::join_asof`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AsofStrategy {
    /// The last whose key is not greater.
    #[default]
    Backward,
    /// The first whose key is not less.
    Forward,
    /// The one whose key is nearest; of two that are equally near the later.
    Nearest,
}

/// How [`AnyFrame::join_asof`] joins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AsofOptions {
    /// Which row belongs to a row.
    pub strategy: AsofStrategy,
    /// Columns of both frames that must be equal, too.
    pub by: Vec<String>,
    /// The greatest distance of keys: a time such as `"10m"`, or a number.
    pub tolerance: Option<String>,
    /// Whether a key that is equal counts as nearest, too.
    pub exact: bool,
    /// What is put behind the name of a column of the right frame that the left one has too.
    pub suffix: String,
}

impl Default for AsofOptions {
    fn default() -> Self {
        let suffix = "_right".into();
        AsofOptions {
            strategy: AsofStrategy::Backward,
            by: vec![],
            tolerance: None,
            exact: true,
            suffix,
        }
    }
}

impl<S: FrameState> AnyFrame<S> {
    /// Groups of rows by windows of time, and by other columns (`()` for none): their aggregates
    /// come in order of these columns and then of time, which is the start or the end of the
    /// window. Windows without rows are not there, and rows whose time is null are in none.
    /// `windows` is a [`DynamicWindows`], or how far apart windows begin, such as `"1h"`.
    ///
    /// # Errors
    /// Unknown columns ([`ErrorKind::ColumnNotFound`]), a column of no times, texts that are no
    /// distances.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = session.sql("SELECT column1 AS day, column2 AS n \
    ///     FROM (VALUES (DATE '2024-01-03', 1), (DATE '2024-01-30', 2), (DATE '2024-02-01', 4))")?;
    /// let months = frame.group_by_dynamic("day", (), "1mo")?;
    /// let sums = months.agg([col("n").sum().alias("n")])?;
    /// assert_eq!(sums.head(1)?.filter(col("n").eq(3).and(col("day").eq(date(2024, 1, 1)?)))?.collect()?.num_rows(), 1);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn group_by_dynamic(
        &self,
        time: &str,
        by: impl Columns,
        windows: impl Into<DynamicWindows>,
    ) -> Result<GroupBy<AnyFrame<S>>> {
        let windows = windows.into();
        let in_verb = |error: Error| error.in_verb("group_by_dynamic");
        let mut keys = self.names(by).map_err(in_verb)?;
        let schema = self.schema();
        let starts = window_starts(&schema, time, &windows).map_err(in_verb)?;
        keys.push(time.to_string());
        let frame = self.made("group_by_dynamic", |frame| {
            let Starts { starts, is_within, label } = starts;
            let (window, at) = (frame.unused_name("window"), frame.unused_name("at"));
            let frame =
                frame.filter(col(time).is_not_null())?.with_columns([col(time).alias(&at)])?;
            let within = match &starts[..] {
                [start] => frame.with_columns([start.clone().alias(&window)])?,
                _ => frame.with_columns([list(&starts).alias(&window)])?.explode([&window])?,
            };
            let within = match is_within {
                Some(is_within) => within.filter(is_within(col(&at), col(&window)))?,
                None => within,
            };
            within.with_columns([label(col(&window)).alias(time)])?.drop([&window, &at])
        })?;
        Ok(frame.group_by(keys).sorted())
    }

    /// Each row with the row of another frame whose key is nearest in one direction: `left_on` and
    /// `right_on` are numbers or times, which need not be sorted. A row without such a partner has
    /// nulls in the other frame's columns, of which the key and those of `by` are left out. The
    /// order of the rows stays.
    ///
    /// # Errors
    /// Unknown columns ([`ErrorKind::ColumnNotFound`]), keys that are neither numbers nor times, a
    /// tolerance that is no distance of such keys.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let trades = session.sql("SELECT column1 AS at FROM (VALUES (5), (9), (1))")?;
    /// let quotes = session.sql("SELECT column1 AS at, column2 AS price FROM (VALUES (2, 20), (6, 60))")?;
    /// let found = trades.join_asof(&quotes, "at", "at", &AsofOptions::default())?;
    /// assert_eq!(found.filter(col("at").eq(9).and(col("price").eq(60)))?.collect()?.num_rows(), 1);
    /// assert_eq!(found.filter(col("price").is_null())?.collect()?.num_rows(), 1);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn join_asof(
        &self,
        right: &Self,
        left_on: &str,
        right_on: &str,
        options: &AsofOptions,
    ) -> Result<Self> {
        self.made_with("join_asof", right, |left, right| {
            asof(&left, &right, left_on, right_on, options)
        })
    }
}

type OfTwo = Box<dyn Fn(Expr, Expr) -> Expr>;

/// The windows that a row may be in.
struct Starts {
    starts: Vec<Expr>,
    /// Of the time and the start of a window, where windows overlap or have gaps.
    is_within: Option<OfTwo>,
    /// What a window is called, by its start.
    label: Box<dyn Fn(Expr) -> Expr>,
}

fn window_starts(schema: &Schema, time: &str, windows: &DynamicWindows) -> Result<Starts> {
    let field = schema.field_with_name(time).map_err(|_| unknown(time, schema))?;
    let dtype = field.data_type().clone();
    let wide = match &dtype {
        DataType::Date32 | DataType::Date64 => DataType::Timestamp(TimeUnit::Microsecond, None),
        DataType::Timestamp(..) => dtype.clone(),
        other => {
            let (what, expected) =
                (format!("windows of column {time:?}"), "a date or a timestamp".into());
            return Err(ErrorKind::TypeMismatch { what, expected, found: other.to_string() }.into());
        }
    };
    let every = interval(&windows.every)?;
    let period = windows.period.as_deref().map(interval).transpose()?;
    let offset = windows.offset.as_deref().map(interval).transpose()?;
    let origin = literal(ScalarValue::TimestampNanosecond(Some(first_start(every)), None));
    // What belongs to its end belongs to the window that begins just before it.
    let tick = match (&dtype, windows.closed) {
        (_, Edge::Left) => None,
        (DataType::Timestamp(TimeUnit::Second, _), _) => Some(1_000_000_000),
        (DataType::Timestamp(TimeUnit::Millisecond, _), _) => Some(1_000_000),
        (DataType::Timestamp(TimeUnit::Nanosecond, _), _) => Some(1),
        _ => Some(1_000),
    };
    let span = |nanoseconds| IntervalMonthDayNano { months: 0, days: 0, nanoseconds };
    let mut at = col(time).cast(wide.clone());
    if let Some(offset) = offset {
        at = at - literal(ScalarValue::IntervalMonthDayNano(Some(offset)));
    }
    if let Some(tick) = tick {
        at = at - literal(ScalarValue::IntervalMonthDayNano(Some(span(tick))));
    }
    let by = move |interval| literal(ScalarValue::IntervalMonthDayNano(Some(interval)));
    let bin = expr_fn::date_bin(by(every).into(), at.into(), origin.into());
    let mut first = Expr::from(bin).cast(wide.clone());
    if let Some(offset) = offset {
        first = first + by(offset);
    }
    let number = |times: i64| -> Option<IntervalMonthDayNano> {
        Some(IntervalMonthDayNano {
            months: every.months.checked_mul(i32::try_from(times).ok()?)?,
            days: every.days.checked_mul(i32::try_from(times).ok()?)?,
            nanoseconds: every.nanoseconds.checked_mul(times)?,
        })
    };
    let (starts, is_within): (Vec<Expr>, Option<OfTwo>) = match period
        .filter(|period| *period != every)
    {
        None => (vec![first], None),
        Some(period) => {
            // At most so many windows hold a time; a month may have 31 days, or 28 where windows
            // follow sooner.
            let most = (length(period, 31) / length(every, 28).max(1.0)).ceil() as i64;
            if most > MOST_WINDOWS {
                let what = format!("windows of {:?} every {:?}", windows.period, windows.every);
                return Err(Error::unsupported(
                    what,
                    format!("a row would be in more than {MOST_WINDOWS} of them"),
                ));
            }
            let earlier = |times| {
                number(times).map(|back| first.clone() - by(back)).unwrap_or_else(|| first.clone())
            };
            let (closed, wide) = (windows.closed, wide.clone());
            let is_within = move |at: Expr, start: Expr| {
                let (at, end) = (at.cast(wide.clone()), start + by(period));
                match closed {
                    Edge::Left => at.lt(end),
                    Edge::Right => at.lt_eq(end),
                }
            };
            ((0..most.max(1)).map(earlier).collect(), Some(Box::new(is_within)))
        }
    };
    let (label, length) = (windows.label, period.unwrap_or(every));
    let label = move |start: Expr| match label {
        Edge::Left => start.cast(dtype.clone()),
        Edge::Right => (start + by(length)).cast(dtype.clone()),
    };
    Ok(Starts { starts, is_within, label: Box::new(label) })
}

/// Most windows that a row may be in.
const MOST_WINDOWS: i64 = 1000;

/// An interval in nanoseconds, with months of so many days.
fn length(interval: IntervalMonthDayNano, month: i32) -> f64 {
    let days = f64::from(interval.months) * f64::from(month) + f64::from(interval.days);
    days * 86_400e9 + interval.nanoseconds as f64
}

fn interval(text: &str) -> Result<IntervalMonthDayNano> {
    match distance(text)? {
        ScalarValue::IntervalMonthDayNano(Some(interval)) if length(interval, 28) > 0.0 => {
            Ok(interval)
        }
        _ => Err(Error::unsupported(
            format!("windows of {text:?}"),
            "a time is wanted, such as \"1h\"",
        )),
    }
}

fn literal(value: ScalarValue) -> Expr {
    Expr::from(df::Expr::Literal(value, None))
}

/// Keys of both frames in one column, sorted. Each key of the left takes the last key of the right
/// before it, or the first one behind it.
///
/// ```text
///   key   left row   right row   right row at or before
///    2        -          0                 0
///    5        0          -                 0
///    6        -          1                 1
///    9        1          -                 1
/// ```
fn asof(
    left: &LazyFrame,
    right: &LazyFrame,
    left_on: &str,
    right_on: &str,
    options: &AsofOptions,
) -> Result<LazyFrame> {
    let key_type = |frame: &LazyFrame, name: &str| {
        let schema = frame.schema();
        let dtype =
            schema.field_with_name(name).map_err(|_| unknown(name, &schema))?.data_type().clone();
        match dtype.is_numeric() || dtype.is_temporal() {
            true => Ok(dtype),
            false => {
                let (what, expected) = (format!("key {name:?}"), "numbers or times".into());
                Err(Error::from(ErrorKind::TypeMismatch {
                    what,
                    expected,
                    found: dtype.to_string(),
                }))
            }
        }
    };
    let (left_type, _) = (key_type(left, left_on)?, key_type(right, right_on)?);
    let (by, _) = (left.names(&options.by)?, right.names(&options.by)?);
    let names: Vec<String> =
        ["left row", "right row", "key", "right key", "before", "after"].map(String::from).into();
    let unused = |name: &String| left.unused_name(&right.unused_name(name));
    let [left_row, right_row, key, right_key, before, after] =
        <[String; 6]>::try_from(names.iter().map(unused).collect::<Vec<_>>())
            .expect("as many as names");

    let (left, right) = (left.numbered(&left_row)?, right.numbered(&right_row)?);
    let no_row = || lit(None::<u64>);
    let keys = |frame: &LazyFrame, on: &str, left: Expr, right: Expr| {
        let own = [col(on).alias(&key), left.alias(&left_row), right.alias(&right_row)];
        frame.select(by.iter().map(col).chain(own).collect::<Vec<_>>())
    };
    let of_right = right.filter(col(right_on).is_not_null())?;
    let both = keys(&left, left_on, col(&left_row), no_row())?.union(&keys(
        &of_right,
        right_on,
        no_row(),
        col(&right_row),
    )?)?;
    let schema = both.schema();
    let both_type = schema.field_with_name(&key)?.data_type().clone();
    // Differences of times are compared as numbers.
    let number = match &both_type {
        dtype if dtype.is_temporal() => in_ticks(col(&key), dtype),
        _ => col(&key),
    };
    let both = both.with_columns([number.alias(&key)])?;
    let both =
        both.with_columns([col(&key).only_where(col(&right_row).is_not_null()).alias(&right_key)])?;
    let found = |forward: bool| {
        // Whether the right's rows come before the left's rows of an equal key. The search back
        // finds rows before, and the search forward rows behind: equal keys must lie on the side
        // that is searched if `exact`, and on the other side if not. Where both are searched, the
        // search back finds equal keys.
        let right_first = match options.strategy {
            AsofStrategy::Nearest => options.exact || forward,
            _ => options.exact != forward,
        };
        let order = [
            // A null key of the left finds no row: it comes first if the rows before it are
            // searched, and last if the rows behind it are. `Nearest` searches both ways with null
            // keys first, and drops below what the forward search finds for them.
            col(&key).sort(true, !forward || options.strategy == AsofStrategy::Nearest),
            col(&right_row).is_null().sort(right_first, true),
        ];
        let fill = |name: &String| match forward {
            true => col(name).backward_fill().over_sorted(&by, order.clone()),
            false => col(name).forward_fill().over_sorted(&by, order.clone()),
        };
        (fill(&right_row), fill(&right_key))
    };
    let matched = match options.strategy {
        AsofStrategy::Backward | AsofStrategy::Forward => {
            let (row, at) = found(options.strategy == AsofStrategy::Forward);
            both.with_columns_in_any_order([row.alias(&before), at.alias(&after)])?
        }
        AsofStrategy::Nearest => {
            let ((row, at), (next_row, next_at)) = (found(false), found(true));
            let (next_row, next_at) = (
                next_row.only_where(col(&key).is_not_null()),
                next_at.only_where(col(&key).is_not_null()),
            );
            let (later_row, later_at) =
                (both.unused_name("later row"), both.unused_name("later key"));
            let both = both.with_columns_in_any_order([
                row.alias(&before),
                at.alias(&after),
                next_row.alias(&later_row),
                next_at.alias(&later_at),
            ])?;
            let is_first = || {
                let (back, on) = (col(&key) - col(&after), col(&later_at) - col(&key));
                col(&later_at)
                    .is_null()
                    .or(back.clone().lt(on))
                    .or(back.eq(0))
                    .and(col(&after).is_not_null())
            };
            both.with_columns([
                when(is_first()).then(col(&before)).otherwise(col(&later_row)).alias(&before),
                when(is_first()).then(col(&after)).otherwise(col(&later_at)).alias(&after),
            ])?
        }
    };
    let matched = matched.filter(col(&left_row).is_not_null())?;
    let row = match &options.tolerance {
        None => col(&before),
        Some(tolerance) => {
            let most = in_type(tolerance, &left_type, &both_type)?;
            let apart = when(col(&key).gt_eq(col(&after)))
                .then(col(&key) - col(&after))
                .otherwise(col(&after) - col(&key));
            col(&before).only_where(apart.lt_eq(most))
        }
    };
    let matched = matched.select([col(&left_row), row.alias(&right_row)])?;
    let mut others = options.by.clone();
    others.push(right_on.to_string());
    let right = right.drop(others)?;
    let suffix = super::JoinOptions { suffix: options.suffix.clone(), ..Default::default() };
    // Each row of the left has one match. A left join does not move rows, so that the sort below
    // finds them in order.
    let joined = left.join(&matched, JoinType::Left, [&left_row], [&left_row])?.join_with(
        &right,
        JoinType::Left,
        [&right_row],
        [&right_row],
        suffix,
    )?;
    joined.sort([&left_row])?.drop([&left_row, &right_row])
}

/// A time as its type counts.
fn in_ticks(time: Expr, dtype: &DataType) -> Expr {
    match dtype {
        DataType::Date32 | DataType::Time32(_) => {
            time.into_column().cast(DataType::Int32).cast(DataType::Int64)
        }
        _ => time.into_column().cast(DataType::Int64),
    }
}

/// A distance as a key's type counts.
fn in_type(text: &str, left: &DataType, dtype: &DataType) -> Result<Expr> {
    let wrong = |why: &str| Error::unsupported(format!("a tolerance of {text:?} of {left}"), why);
    if !dtype.is_temporal() {
        return text.parse::<f64>().map(lit).map_err(|_| wrong("a number is wanted"));
    }
    let ScalarValue::IntervalMonthDayNano(Some(interval)) = distance(text)? else {
        return Err(wrong("a time is wanted, such as \"10m\""));
    };
    if interval.months != 0 {
        return Err(wrong("months are not all of one length"));
    }
    let all = i128::from(interval.days) * 86_400_000_000_000 + i128::from(interval.nanoseconds);
    let tick = match dtype {
        DataType::Date32 => 86_400_000_000_000,
        DataType::Timestamp(TimeUnit::Second, _) | DataType::Time32(TimeUnit::Second) => {
            1_000_000_000
        }
        DataType::Timestamp(TimeUnit::Millisecond, _) | DataType::Time32(_) | DataType::Date64 => {
            1_000_000
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) | DataType::Time64(TimeUnit::Microsecond) => {
            1_000
        }
        DataType::Timestamp(TimeUnit::Nanosecond, _) | DataType::Time64(_) => 1,
        _ => return Err(wrong("it is neither a date nor a time")),
    };
    Ok(lit(i64::try_from(all / tick).unwrap_or(i64::MAX)))
}
