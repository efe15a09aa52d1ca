//! Numbers in classes.

use datafusion::arrow::array::{Array, AsArray};
use datafusion::arrow::compute::{cast, concat_batches};
use datafusion::arrow::datatypes::{DataType, Float64Type};

use crate::error::{Error, Result};
use crate::frame::expr::{Expr, col, list, lit, when};
use crate::frame::{AnyFrame, FrameState};

/// Classes of a histogram; see [`AnyFrame::hist`].
#[derive(Debug, Clone, PartialEq)]
pub enum Bins {
    /// So many of one width, from the least to the greatest value.
    Count(usize),
    /// Between these numbers, which ascend.
    Edges(Vec<f64>),
}

impl Expr {
    /// The class of a number, as text: those up to the first break, those above it up to the
    /// second, and so on. Without labels a class is called by its bounds, as in `"(1, 2.5]"`. NaN
    /// belongs to the last class, null to none.
    ///
    /// # Errors
    /// Breaks that do not ascend; labels of another number than breaks and one.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = session.sql("VALUES (1), (2), (9)")?;
    /// let frame = frame.select([col("column1").cut(&[1.0, 5.0], None)?.alias("class")])?;
    /// assert_eq!(frame.filter(col("class").eq("(1, 5]"))?.collect()?.num_rows(), 1);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn cut(self, breaks: &[f64], labels: Option<&[&str]>) -> Result<Expr> {
        ascending(breaks).map_err(|error| error.in_verb("cut"))?;
        let labels: Vec<String> = match labels {
            Some(labels) if labels.len() == breaks.len() + 1 => {
                labels.iter().map(|label| label.to_string()).collect()
            }
            Some(labels) => {
                let what = format!("{} labels for {} classes", labels.len(), breaks.len() + 1);
                return Err(Error::unsupported(what, "each class has one").in_verb("cut"));
            }
            None => {
                let ends = breaks
                    .iter()
                    .map(f64::to_string)
                    .chain(["inf".to_string()])
                    .collect::<Vec<_>>();
                let starts =
                    std::iter::once("-inf".to_string()).chain(breaks.iter().map(f64::to_string));
                starts.zip(&ends).map(|(start, end)| format!("({start}, {end}]")).collect()
            }
        };
        let mut labels = labels.into_iter();
        let mut classes = when(self.clone().is_null()).then(None::<String>);
        for (at, label) in breaks.iter().zip(labels.by_ref()) {
            classes = classes.when(self.clone().lt_eq(*at)).then(label);
        }
        Ok(classes.otherwise(labels.next().unwrap_or_default()).called_as(&self))
    }
}

impl<S: FrameState> AnyFrame<S> {
    /// A column of numbers as the classes of [`Expr::cut`].
    ///
    /// # Errors
    /// As [`Expr::cut`]; unknown columns ([`crate::ErrorKind::ColumnNotFound`]).
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = session.sql("VALUES (1), (2), (9)")?.cut("column1", &[5.0], Some(&["low", "high"]))?;
    /// assert_eq!(frame.filter(col("column1").eq("low"))?.collect()?.num_rows(), 2);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn cut(&self, column: &str, breaks: &[f64], labels: Option<&[&str]>) -> Result<Self> {
        let classes = col(column).cut(breaks, labels)?;
        self.each("cut", [column], |_| classes.clone())
    }

    /// A column of numbers as classes that hold shares of its values: `[0.25, 0.5, 0.75]` makes
    /// quarters. The query of this frame runs to learn their bounds; equal bounds are one.
    ///
    /// # Errors
    /// As [`AnyFrame::cut`]; shares outside of 0 to 1.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = session.sql("VALUES (1.0), (2.0), (3.0), (40.0)")?;
    /// let halves = frame.qcut("column1", &[0.5], Some(&["low", "high"]))?;
    /// assert_eq!(halves.filter(col("column1").eq("low"))?.collect()?.num_rows(), 2);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn qcut(&self, column: &str, shares: &[f64], labels: Option<&[&str]>) -> Result<Self> {
        let breaks = self.quantiles(column, shares).map_err(|error| error.in_verb("qcut"))?;
        self.cut(column, &breaks, labels).map_err(|error| error.in_verb("qcut"))
    }

    /// How many values of a column of numbers are in each class: their upper bound in `breakpoint`,
    /// their bounds in `category`, their number in `count`. The least value belongs to the first
    /// class; values outside of all classes, and NaN, are not counted. The query of this frame runs
    /// to learn the bounds, where they are not said.
    ///
    /// # Errors
    /// Unknown columns ([`crate::ErrorKind::ColumnNotFound`]), edges that do not ascend, no
    /// classes.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = session.sql("VALUES (0.0), (1.0), (2.0), (10.0)")?.hist("column1", Bins::Count(2))?;
    /// assert_eq!(frame.filter(col("category").eq("[0, 5]").and(col("count").eq(3)))?.collect()?.num_rows(), 1);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn hist(&self, column: &str, bins: Bins) -> Result<Self> {
        let in_verb = |error: Error| error.in_verb("hist");
        let edges = match bins {
            Bins::Edges(edges) => edges,
            Bins::Count(count) => self.even_edges(column, count).map_err(in_verb)?,
        };
        ascending(&edges).map_err(in_verb)?;
        if edges.len() < 2 {
            return Err(in_verb(Error::unsupported(
                "a histogram of no classes",
                "it has one, and two edges, at least",
            )));
        }
        self.made("hist", |frame| {
            let value = || col(column).cast(DataType::Float64);
            let (mut ends, mut names, mut counts) = (vec![], vec![], vec![]);
            for (at, pair) in edges.windows(2).enumerate() {
                let [low, high] = [pair[0], pair[1]];
                let (above, bracket) = match at {
                    0 => (value().gt_eq(low), '['),
                    _ => (value().gt(low), '('),
                };
                ends.push(lit(high));
                names.push(lit(format!("{bracket}{low}, {high}]")));
                counts.push(when(above.and(value().lt_eq(high))).then(1i64).end().count());
            }
            let lists = [
                list(ends).alias("breakpoint"),
                list(names).alias("category"),
                list(counts).alias("count"),
            ];
            frame.select(lists)?.explode(["breakpoint", "category", "count"])
        })
    }

    fn even_edges(&self, column: &str, count: usize) -> Result<Vec<f64>> {
        let value = || col(column).cast(DataType::Float64);
        let finite = || value().only_where(!value().is_nan());
        let ends =
            self.floats_of(vec![finite().min().alias("low"), finite().max().alias("high")])?;
        let [Some(low), Some(high)] = ends[..] else { return Ok(vec![0.0, 1.0]) };
        // One value has a class around it.
        let (low, high) = if low == high { (low - 0.5, high + 0.5) } else { (low, high) };
        let step = (high - low) / count.max(1) as f64;
        Ok((0..=count).map(|at| if at == count { high } else { low + step * at as f64 }).collect())
    }

    fn quantiles(&self, column: &str, shares: &[f64]) -> Result<Vec<f64>> {
        if let Some(share) = shares.iter().find(|share| !(0.0..=1.0).contains(*share)) {
            return Err(Error::unsupported(
                format!("a share of {share}"),
                "shares lie between 0 and 1",
            ));
        }
        let value = || col(column).cast(DataType::Float64);
        let wanted = shares
            .iter()
            .enumerate()
            .map(|(at, share)| value().quantile(*share).alias(format!("share {at}")));
        let mut breaks: Vec<f64> = match shares.is_empty() {
            true => vec![],
            false => self.floats_of(wanted.collect())?.into_iter().flatten().collect(),
        };
        breaks.sort_by(f64::total_cmp);
        breaks.dedup();
        Ok(breaks)
    }

    /// Aggregates that are floats, once the query ran.
    fn floats_of(&self, aggregates: Vec<Expr>) -> Result<Vec<Option<f64>>> {
        let found = self.looked_at(|frame| frame.select(aggregates))?;
        let row = concat_batches(&found.schema(), &found.to_arrow()?)?;
        let value = |column: &datafusion::arrow::array::ArrayRef| {
            let value = cast(column, &DataType::Float64)?;
            let value = value.as_primitive::<Float64Type>();
            Ok((!value.is_null(0)).then(|| value.value(0)))
        };
        row.columns().iter().map(value).collect()
    }
}

fn ascending(breaks: &[f64]) -> Result<()> {
    match breaks
        .windows(2)
        .find(|pair| pair[0].partial_cmp(&pair[1]) != Some(std::cmp::Ordering::Less))
    {
        Some(pair) => {
            let what = format!("a break of {} before one of {}", pair[0], pair[1]);
            Err(Error::unsupported(what, "breaks ascend"))
        }
        None => Ok(()),
    }
}
