//! Which rows there are, and in which order.

use datafusion::arrow::datatypes::DataType;
use datafusion::functions_nested::expr_fn as nested;
use datafusion::logical_expr as df;
use datafusion::logical_expr::JoinType;

use crate::error::Result;
use crate::frame::expr::{Columns, Expr, chance_of, col, count_rows, lit, row_number, when};
use crate::frame::{AnyFrame, FrameState, LazyFrame};

/// Farther than any row; DataFusion counts rows in 64 bits with a sign.
const ALL: usize = i64::MAX as usize / 2;

/// Which of several rows of equal values stays; see [`AnyFrame::unique`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UniqueKeep {
    /// The first of them.
    First,
    /// The last of them.
    Last,
    /// None: only rows that have no equal stay.
    None,
}

/// How many rows; see [`AnyFrame::sample`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SampleSize {
    /// So many.
    Rows(usize),
    /// A share of all rows, rounded down.
    Fraction(f64),
}

/// How rows are drawn; see [`AnyFrame::sample`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SampleOptions {
    /// Seed of the draw. Equal seeds draw equal rows; without a seed each call draws others.
    pub seed: Option<u64>,
    /// A row may be drawn more than once.
    pub with_replacement: bool,
    /// In an order of chance; otherwise in that of the frame.
    pub shuffle: bool,
}

impl<S: FrameState> AnyFrame<S> {
    /// The last `n` rows.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = session.sql("VALUES (1), (2), (3)")?;
    /// assert_eq!(frame.tail(2)?.filter(col("column1").gt(1))?.collect()?.num_rows(), 2);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn tail(&self, n: usize) -> Result<Self> {
        match self.state.rows() {
            Some(rows) => self.made("tail", |frame| frame.limit(rows.saturating_sub(n), n)),
            None => self.made("tail", |frame| frame.filter(rows_behind().lt(rows(n)))),
        }
    }

    /// The rows from a place on, 0 being the first: `length` of them, or all. A negative place
    /// counts from the end.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = session.sql("VALUES (1), (2), (3), (4)")?;
    /// let middle = frame.slice(-3, Some(2))?;
    /// assert_eq!(middle.filter(col("column1").is_in([2, 3]))?.collect()?.num_rows(), 2);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn slice(&self, offset: i64, length: Option<usize>) -> Result<Self> {
        let length = length.unwrap_or(ALL).min(ALL);
        if let Ok(skip) = usize::try_from(offset) {
            return self.made("slice", |frame| frame.limit(skip, length));
        }
        let back = usize::try_from(offset.unsigned_abs()).unwrap_or(ALL).min(ALL);
        match self.state.rows() {
            Some(rows) => {
                // Before the first row there are none, but they count.
                let (start, end) =
                    (rows.saturating_sub(back), (rows + length).saturating_sub(back));
                self.made("slice", |frame| frame.limit(start, end.saturating_sub(start)))
            }
            None => {
                let (first, last) = (rows(back), rows(back) - rows(length));
                self.made("slice", |frame| {
                    frame.filter(rows_behind().lt(first).and(rows_behind().gt_eq(last)))
                })
            }
        }
    }

    /// Every `n`th row, beginning with the first.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = session.sql("VALUES (1), (2), (3)")?.gather_every(2)?;
    /// assert_eq!(frame.filter(col("column1").is_in([1, 3]))?.collect()?.num_rows(), 2);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn gather_every(&self, n: usize) -> Result<Self> {
        let place = (row_number() - 1u64) % n.max(1) as u64;
        self.made("gather_every", |frame| frame.filter(place.eq(0u64)))
    }

    /// The rows from last to first.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = session.sql("VALUES (1), (2), (3)")?.reverse()?.head(1)?;
    /// assert_eq!(frame.filter(col("column1").eq(3))?.collect()?.num_rows(), 1);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn reverse(&self) -> Result<Self> {
        self.made("reverse", |frame| {
            let row = frame.unused_name("row");
            frame.numbered(&row)?.sort([col(&row).sort(false, false)])?.drop([&row])
        })
    }

    /// The numbers of the rows, from `offset` on, as a first column.
    ///
    /// # Errors
    /// A frame that has a column of this name.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = session.sql("VALUES ('a'), ('b')")?.with_row_index("row", 0)?;
    /// assert_eq!(frame.column_names(), ["row", "column1"]);
    /// assert_eq!(frame.filter(col("row").eq(1).and(col("column1").eq("b")))?.collect()?.num_rows(), 1);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn with_row_index(&self, name: &str, offset: u64) -> Result<Self> {
        let number = row_number() - 1u64 + offset;
        self.made("with_row_index", |frame| {
            frame.select([number.alias(name), crate::frame::expr::all()])
        })
    }

    /// One row of each set of rows that are equal in these columns; null equals null. The order of
    /// the rows stays. [`AnyFrame::distinct`] is faster, where neither matters.
    ///
    /// # Errors
    /// Unknown columns ([`crate::ErrorKind::ColumnNotFound`]).
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = session.sql("VALUES ('a', 1), ('b', 2), ('a', 3)")?;
    /// let last = frame.unique(["column1"], UniqueKeep::Last)?;
    /// assert_eq!(last.filter(col("column2").gt(1))?.collect()?.num_rows(), 2);
    /// assert_eq!(frame.unique(["column1"], UniqueKeep::None)?.collect()?.num_rows(), 1);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn unique(&self, columns: impl Columns, keep: UniqueKeep) -> Result<Self> {
        let keys = self.equality_keys(columns).map_err(|error| error.in_verb("unique"))?;
        // Aggregates of groups, which need no sort, unlike the place among equal rows.
        let is_kept = match keep {
            UniqueKeep::First => row_number().eq(row_number().min().over(keys)),
            UniqueKeep::Last => row_number().eq(row_number().max().over(keys)),
            UniqueKeep::None => count_rows().over(keys).eq(1i64),
        };
        self.made("unique", |frame| frame.filter(is_kept))
    }

    /// Whether another row is equal in these columns, as a column `is_duplicated` behind the
    /// others; null equals null. The order of the rows stays.
    ///
    /// # Errors
    /// Unknown columns ([`crate::ErrorKind::ColumnNotFound`]).
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = session.sql("VALUES (1), (2), (1)")?.is_duplicated(all())?;
    /// assert_eq!(frame.filter(col("is_duplicated"))?.collect()?.num_rows(), 2);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn is_duplicated(&self, columns: impl Columns) -> Result<Self> {
        let keys = self.equality_keys(columns).map_err(|error| error.in_verb("is_duplicated"))?;
        let found = count_rows().over(keys).gt(1i64).alias("is_duplicated");
        self.made("is_duplicated", |frame| frame.with_columns([found]))
    }

    /// Whether no other row is equal in these columns, as a column `is_unique` behind the others;
    /// null equals null. The order of the rows stays.
    ///
    /// # Errors
    /// Unknown columns ([`crate::ErrorKind::ColumnNotFound`]).
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = session.sql("VALUES (1), (2), (1)")?.is_unique(all())?;
    /// assert_eq!(frame.filter(col("is_unique"))?.collect()?.num_rows(), 1);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn is_unique(&self, columns: impl Columns) -> Result<Self> {
        let keys = self.equality_keys(columns).map_err(|error| error.in_verb("is_unique"))?;
        let found = count_rows().over(keys).eq(1i64).alias("is_unique");
        self.made("is_unique", |frame| frame.with_columns([found]))
    }

    /// Rows that chance picks: without replacement, all where there are no more than wanted.
    ///
    /// The numbers are made of the rows' places and the seed by a hash: good for samples, not for
    /// secrets.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = session.sql("VALUES (1), (2), (3), (4)")?;
    /// let options = SampleOptions { seed: Some(7), ..SampleOptions::default() };
    /// assert_eq!(frame.sample(SampleSize::Rows(3), options)?.distinct()?.collect()?.num_rows(), 3);
    /// assert_eq!(frame.sample(SampleSize::Fraction(0.5), options)?.collect()?.num_rows(), 2);
    /// let many = SampleOptions { with_replacement: true, ..options };
    /// assert_eq!(frame.sample(SampleSize::Rows(9), many)?.collect()?.num_rows(), 9);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn sample(&self, size: SampleSize, options: SampleOptions) -> Result<Self> {
        let seed = options.seed.unwrap_or_else(any_seed);
        let size = match (size, self.state.rows()) {
            (SampleSize::Fraction(share), Some(rows)) => {
                SampleSize::Rows((rows as f64 * share.max(0.0)).floor() as usize)
            }
            (size, _) => size,
        };
        self.made("sample", |frame| match options.with_replacement {
            true => frame.drawn_again(size, seed),
            false => frame.drawn(size, seed, options.shuffle),
        })
    }

    /// All rows, in an order of chance; see [`AnyFrame::sample`].
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = session.sql("VALUES (1), (2), (3), (4)")?;
    /// assert_eq!(frame.shuffle(Some(7))?.collect()?.num_rows(), 4);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn shuffle(&self, seed: Option<u64>) -> Result<Self> {
        let seed = seed.unwrap_or_else(any_seed);
        self.made("shuffle", |frame| frame.drawn(SampleSize::Fraction(1.0), seed, true))
    }

    /// Columns as keys of windows. These tell −0.0 from 0.0, as sorts do, which are equal.
    pub(super) fn equality_keys(&self, columns: impl Columns) -> Result<Vec<Expr>> {
        let schema = self.schema();
        let key = |name: String| match schema.field_with_name(&name) {
            Ok(field) if field.data_type().is_floating() => {
                let value = col(&name);
                let zero = lit(0.0).cast(field.data_type().clone());
                when(value.clone().eq(zero.clone())).then(zero).otherwise(value)
            }
            _ => col(&name),
        };
        Ok(self.names(columns)?.into_iter().map(key).collect())
    }
}

impl LazyFrame {
    fn drawn(&self, size: SampleSize, seed: u64, shuffle: bool) -> Result<LazyFrame> {
        let (row, chance) = (self.unused_name("row"), self.unused_name("chance"));
        let keyed =
            self.numbered(&row)?.with_columns([chance_of(col(&row), seed).alias(&chance)])?;
        let order = || [col(&chance).sort(true, true), col(&row).sort(true, true)];
        let drawn = match size {
            SampleSize::Rows(n) => keyed.top_k(n, order())?,
            SampleSize::Fraction(share) if share >= 1.0 => keyed,
            SampleSize::Fraction(share) => {
                let place =
                    row_number().over_sorted([] as [Expr; 0], order()).cast(DataType::Float64);
                keyed.filter(
                    place.lt_eq((count_rows().cast(DataType::Float64) * share.max(0.0)).floor()),
                )?
            }
        };
        let sorted = if shuffle { drawn.sort(order())? } else { drawn.sort([&row])? };
        sorted.drop([&row, &chance])
    }

    fn drawn_again(&self, size: SampleSize, seed: u64) -> Result<LazyFrame> {
        let (row, draw) = (self.unused_name("row"), self.unused_name("draw"));
        let rows_of_all = col(&row);
        let wanted = match size {
            SampleSize::Rows(n) => rows(n),
            SampleSize::Fraction(share) => (rows_of_all.clone().cast(DataType::Float64)
                * share.max(0.0))
            .floor()
            .cast(DataType::Int64),
        };
        // Of one row, whose list is made where the query runs: a constant one would be in the plan.
        let wanted = when(rows_of_all.clone().gt(0)).then(wanted).otherwise(0i64);
        let places: df::Expr = nested::range(df::lit(0i64), wanted.into(), df::lit(1i64));
        let draws = self.select([count_rows().alias(&row)])?;
        let draws = draws.with_columns([Expr::from(places).alias(&draw)])?.explode([&draw])?;
        // Without the sign, so that the rest is none either.
        let chance = chance_of(col(&draw), seed).bitwise_and(i64::MAX);
        let draws = draws.filter(col(&draw).is_not_null())?;
        let draws = draws.select([
            ((chance % rows_of_all).cast(DataType::UInt64) + 1u64).alias(&row),
            col(&draw),
        ])?;
        let drawn = draws.join(&self.numbered(&row)?, JoinType::Inner, [&row], [&row])?;
        drawn.sort([&draw])?.drop([&row, &draw])
    }
}

fn rows(n: usize) -> Expr {
    lit(n.min(ALL) as i64)
}

/// How many rows come after a row.
fn rows_behind() -> Expr {
    count_rows() - row_number().cast(DataType::Int64)
}

/// A seed that differs each time.
fn any_seed() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(0u64)
}
