//! What is said of a whole frame: aggregates of its columns, and how often values come.

use datafusion::arrow::datatypes::DataType;

use crate::error::Result;
use crate::frame::expr::{Columns, Expr, IntoColumn, col, corr, count_rows, list, lit, row_number};
use crate::frame::{AnyFrame, FrameState};

/// What [`AnyFrame::describe`] says of numbers.
const QUANTILES: [(&str, f64); 3] = [("25%", 0.25), ("50%", 0.5), ("75%", 0.75)];

macro_rules! of_columns {
    ($($(#[$doc:meta])* $name:ident $takes:expr, $aggregate:expr;)*) => {
        $($(#[$doc])*
        ///
        /// ```
        /// # use warpframe::prelude::*;
        /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
        /// let frame = session.sql("SELECT column1 AS x, 'a' AS s FROM (VALUES (1.5), (2.5))")?;
        #[doc = concat!("assert_eq!(frame.", stringify!($name), "()?.collect()?.num_rows(), 1);")]
        /// # Ok::<(), warpframe::Error>(())
        /// ```
        pub fn $name(&self) -> Result<Self> {
            self.of_columns(stringify!($name), $takes, $aggregate)
        }
        )*
    };
}

impl<S: FrameState> AnyFrame<S> {
    of_columns! {
        /// One row: the sum of each column of numbers. The sum of no values is null.
        sum DataType::is_numeric, Expr::sum;
        /// One row: the mean of each column of numbers.
        mean DataType::is_numeric, Expr::mean;
        /// One row: the median of each column of numbers.
        median DataType::is_numeric, Expr::median;
        /// One row: the standard deviation of each column of numbers.
        std DataType::is_numeric, Expr::std;
        /// One row: the variance of each column of numbers.
        var DataType::is_numeric, Expr::var;
        /// One row: the least value of each column.
        min |_| true, Expr::min;
        /// One row: the greatest value of each column.
        max |_| true, Expr::max;
        /// One row: the number of values of each column that are not null.
        count |_| true, Expr::count;
        /// One row: the number of different values of each column, null being one.
        n_unique |_| true, Expr::n_unique;
    }

    /// One row: the quantile of each column of numbers; see [`Expr::quantile`].
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = session.sql("VALUES (1.0), (2.0)")?.quantile(0.25)?;
    /// assert_eq!(frame.filter(col("column1").eq(1.25))?.collect()?.num_rows(), 1);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn quantile(&self, share: f64) -> Result<Self> {
        self.of_columns("quantile", DataType::is_numeric, |column| column.quantile(share))
    }

    /// How often each combination of values of these columns comes: the columns, and their `count`,
    /// the most frequent first; equally frequent ones in the order of their first rows.
    ///
    /// # Errors
    /// Unknown columns ([`crate::ErrorKind::ColumnNotFound`]).
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = session.sql("VALUES ('b'), ('a'), ('a')")?.value_counts(["column1"])?;
    /// assert_eq!(frame.head(1)?.filter(col("column1").eq("a").and(col("count").eq(2)))?.collect()?.num_rows(), 1);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn value_counts(&self, columns: impl Columns) -> Result<Self> {
        let names = self.names(columns).map_err(|error| error.in_verb("value_counts"))?;
        self.made("value_counts", |frame| {
            let row = frame.unused_name("row");
            let counted = frame
                .with_columns([row_number().alias(&row)])?
                .group_by(&names)
                .agg([count_rows().alias("count"), col(&row).min().alias(&row)])?;
            counted
                .sort([col("count").sort(false, false), col(&row).sort(true, true)])?
                .drop([&row])
        })
    }

    /// A row for each of `count`, `null_count`, `mean`, `std`, `min`, `25%`, `50%`, `75%` and
    /// `max`, which is in the column `statistic`. Numbers and booleans are described in floats of
    /// 64 bits; of columns of other types there are counts, the least and the greatest value, as
    /// text.
    ///
    /// # Errors
    /// A frame that has a column `statistic`.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = session.sql("VALUES (1, 'a'), (3, 'b'), (NULL, 'c')")?.describe()?;
    /// let found = frame.filter(col("statistic").eq("mean").and(col("column1").eq(2.0)))?;
    /// assert_eq!(found.collect()?.num_rows(), 1);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn describe(&self) -> Result<Self> {
        self.made("describe", |frame| {
            let mut names = vec!["count", "null_count", "mean", "std", "min"];
            names.extend(QUANTILES.map(|(name, _)| name));
            names.push("max");
            let mut lists = vec![list(names.into_iter().map(lit)).alias("statistic")];
            for field in frame.schema().fields() {
                let column = col(field.name());
                let described = match field.data_type() {
                    dtype if dtype.is_numeric() || *dtype == DataType::Boolean => {
                        of_number(column, dtype)
                    }
                    dtype => of_other(column, dtype),
                };
                lists.push(list(described).alias(field.name()));
            }
            let names = frame.column_names();
            // Lists of equal length, unnested together.
            let described = frame.select(lists)?;
            described
                .explode(std::iter::once("statistic".to_string()).chain(names).collect::<Vec<_>>())
        })
    }

    /// Pearson's correlations of all columns of numbers: a row for each, whose name is in the
    /// column `column`.
    ///
    /// # Errors
    /// A column of numbers that is named `column`.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = session.sql("SELECT column1 AS a, column2 AS b FROM (VALUES (1, 6), (2, 4), (3, 2))")?.corr()?;
    /// assert_eq!(frame.column_names(), ["column", "a", "b"]);
    /// assert_eq!(frame.filter(col("column").eq("a").and(col("b").lt(-0.999)))?.collect()?.num_rows(), 1);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn corr(&self) -> Result<Self> {
        self.made("corr", |frame| {
            let schema = frame.schema();
            let numbers = schema.fields().iter().filter(|field| field.data_type().is_numeric());
            let names: Vec<&String> = numbers.map(|field| field.name()).collect();
            let value = |name: &&String| col(*name).cast(DataType::Float64);
            let mut lists = vec![list(names.iter().map(|name| lit(name.as_str()))).alias("column")];
            for one in &names {
                let row = names.iter().map(|other| corr(value(one), value(other)));
                lists.push(list(row.collect::<Vec<_>>()).alias(*one));
            }
            let all = std::iter::once("column").chain(names.iter().map(|name| name.as_str()));
            frame.select(lists)?.explode(all.collect::<Vec<_>>())
        })
    }

    fn of_columns(
        &self,
        verb: &'static str,
        takes: impl Fn(&DataType) -> bool,
        aggregate: impl Fn(Expr) -> Expr,
    ) -> Result<Self> {
        let schema = self.schema();
        let fields = schema.fields().iter().filter(|field| takes(field.data_type()));
        let aggregates: Vec<Expr> =
            fields.map(|field| aggregate(col(field.name())).alias(field.name())).collect();
        self.made(verb, |frame| frame.select(aggregates))
    }
}

fn of_number(column: Expr, dtype: &DataType) -> Vec<Expr> {
    let number = match dtype {
        DataType::Boolean => column.clone().cast(DataType::Int32).cast(DataType::Float64),
        _ => column.clone().cast(DataType::Float64),
    };
    let mut all = vec![
        column.clone().count(),
        column.null_count(),
        number.clone().mean(),
        number.clone().std(),
        number.clone().min(),
    ];
    all.extend(QUANTILES.map(|(_, share)| number.clone().quantile(share)));
    all.push(number.max());
    all.into_iter().map(|value| value.cast(DataType::Float64)).collect()
}

fn of_other(column: Expr, dtype: &DataType) -> Vec<Expr> {
    let nothing = || lit(None::<bool>);
    // Neither has an order that is shown as text.
    let ordered = !dtype.is_nested()
        && !matches!(dtype, DataType::Binary | DataType::LargeBinary | DataType::BinaryView);
    let extreme = |value: Expr| if ordered { value } else { nothing() };
    let (min, max) = (extreme(column.clone().min()), extreme(column.clone().max()));
    let mut all = vec![column.clone().count(), column.null_count(), nothing(), nothing(), min];
    all.extend(QUANTILES.map(|_| nothing()));
    all.push(max);
    all.into_iter().map(|value| value.into_column().cast(DataType::Utf8View)).collect()
}
