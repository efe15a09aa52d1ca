//! Pairs of rows of two frames.

use datafusion::logical_expr::JoinType;

use crate::error::{Error, ErrorKind, Result};
use crate::frame::expr::{Columns, IntoValue, coalesce, col, count_rows};
use crate::frame::{AnyFrame, FrameState};
use crate::query::Verb;

/// How frames are joined, besides the kind and the keys.
///
/// ```
/// # use warpframe::prelude::*;
/// let options = JoinOptions { validate: Validate::ManyToOne, ..JoinOptions::default() };
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JoinOptions {
    /// What is put behind the name of a column of the right frame that the left one has too.
    pub suffix: String,
    /// Null equals null in keys.
    pub nulls_equal: bool,
    /// On which sides a key may come once only.
    pub validate: Validate,
}

impl Default for JoinOptions {
    fn default() -> Self {
        JoinOptions { suffix: "_right".into(), nulls_equal: false, validate: Validate::ManyToMany }
    }
}

/// On which sides of a join a key may come once only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Validate {
    /// On none.
    #[default]
    ManyToMany,
    /// On the right.
    ManyToOne,
    /// On the left.
    OneToMany,
    /// On both.
    OneToOne,
}

impl<S: FrameState> AnyFrame<S> {
    /// The values of another frame in place of this one's: of the columns that both have, in rows
    /// whose columns `on` are equal, where they are not null there. The order of the rows stays;
    /// rows of the other frame that match none are left out, and where several match, there are as
    /// many rows.
    ///
    /// # Errors
    /// Unknown columns ([`ErrorKind::ColumnNotFound`]), values of types that do not fit.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let prices = session.sql("SELECT column1 AS k, column2 AS price FROM (VALUES ('a', 1), ('b', 2))")?;
    /// let news = session.sql("SELECT 'b' AS k, 7 AS price")?;
    /// let updated = prices.update(&news, ["k"])?;
    /// assert_eq!(updated.filter(col("price").is_in([1, 7]))?.collect()?.num_rows(), 2);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn update(&self, other: &Self, on: impl Columns) -> Result<Self> {
        let on = self.names(on).map_err(|error| error.in_verb("update"))?;
        self.made_with("update", other, |frame, other| {
            let (own, others) = (frame.column_names(), other.column_names());
            let shared = |name: &String| others.contains(name) && !on.contains(name);
            let row = frame.unused_name(&other.unused_name("row"));
            let new = |name: &str| frame.unused_name(&format!("{name} of the other"));
            let news =
                own.iter().filter(|name| shared(name)).map(|name| col(name).alias(new(name)));
            let other = other.select(on.iter().map(col).chain(news).collect::<Vec<_>>())?;
            let joined =
                frame.numbered(&row)?.join(&other, JoinType::Left, &on, &on)?.sort([&row])?;
            joined.select(own.iter().map(|name| match shared(name) {
                true => coalesce(vec![col(new(name)), col(name)]).alias(name),
                false => col(name),
            }))
        })
    }

    /// Pairs of rows, one of each frame, whose columns `left_on` and `right_on` are equal, in order
    /// of the lists; null equals nothing. What becomes of rows without a partner, `kind` says.
    ///
    /// The columns are those of both frames. A key that has the same name on both sides appears
    /// once; any other column of the right frame whose name the left one has too gets the suffix
    /// `_right`. Semi and anti joins have one side's columns. The order of the rows is not
    /// promised.
    ///
    /// # Errors
    /// Unknown columns; lists of different length, or empty.
    ///
    /// ```
    /// use warpframe::prelude::*;
    /// let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let nation = session.scan_parquet("data/tpch/nation.parquet")?;
    /// let region = session.scan_parquet("data/tpch/region.parquet")?.filter(col("r_name").eq("ASIA"))?;
    /// let asian = nation.join(&region, JoinType::Inner, ["n_regionkey"], ["r_regionkey"])?;
    /// assert_eq!(asian.collect()?.num_rows(), 5);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn join(
        &self,
        right: &Self,
        kind: JoinType,
        left_on: impl Columns,
        right_on: impl Columns,
    ) -> Result<Self> {
        self.join_with(right, kind, left_on, right_on, JoinOptions::default())
    }

    /// [`AnyFrame::join`] on columns of the same names.
    ///
    /// # Errors
    /// As [`AnyFrame::join`].
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let left = session.sql("SELECT 1 AS k, 'a' AS x")?.collect()?;
    /// let right = session.sql("SELECT 1 AS k, 'b' AS x")?.collect()?;
    /// assert_eq!(left.join_on(&right, JoinType::Inner, ["k"])?.column_names(), ["k", "x", "x_right"]);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn join_on(&self, right: &Self, kind: JoinType, on: impl Columns) -> Result<Self> {
        let on = on.into_columns();
        self.join_with(right, kind, &on, &on, JoinOptions::default())
    }

    /// [`AnyFrame::join`] with options. Where keys are to come once, the query of that side runs to
    /// see whether they do.
    ///
    /// # Errors
    /// As [`AnyFrame::join`]; [`ErrorKind::Unsupported`] where a key comes more than once.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let left = session.sql("VALUES (1), (NULL)")?;
    /// let options = JoinOptions { nulls_equal: true, validate: Validate::OneToOne, ..JoinOptions::default() };
    /// let both = left.join_with(&left, JoinType::Inner, ["column1"], ["column1"], options)?;
    /// assert_eq!(both.collect()?.num_rows(), 2);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn join_with(
        &self,
        right: &Self,
        kind: JoinType,
        left_on: impl Columns,
        right_on: impl Columns,
        options: JoinOptions,
    ) -> Result<Self> {
        let in_verb = |error: Error| error.in_verb("join");
        let left_on = self.names(left_on).map_err(in_verb)?;
        let right_on = right.names(right_on).map_err(in_verb)?;
        let JoinOptions { suffix, nulls_equal, validate } = options;
        if matches!(validate, Validate::OneToOne | Validate::OneToMany) {
            self.has_keys_once(&left_on, "left").map_err(in_verb)?;
        }
        if matches!(validate, Validate::OneToOne | Validate::ManyToOne) {
            right.has_keys_once(&right_on, "right").map_err(in_verb)?;
        }
        self.verb(Verb::Join { kind, left_on, right_on, suffix, nulls_equal }, Some(right))
    }

    /// Pairs of rows, one of each frame, for which a condition is true. In it, a column of the
    /// right frame whose name the left one has too is called by its name and `_right`, as in the
    /// result.
    ///
    /// # Errors
    /// Unknown columns; a condition that is none.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let events = session.sql("SELECT column1 AS at FROM (VALUES (5), (25))")?;
    /// let spans = session.sql("SELECT column1 AS start, column2 AS stop FROM (VALUES (0, 10), (20, 30), (40, 50))")?;
    /// let within = events.join_where(&spans, JoinType::Inner, col("at").between(col("start"), col("stop")))?;
    /// assert_eq!(within.collect()?.num_rows(), 2);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn join_where(
        &self,
        right: &Self,
        kind: JoinType,
        condition: impl IntoValue,
    ) -> Result<Self> {
        let on = condition.into_value().into();
        self.verb(Verb::JoinWhere { kind, on, suffix: "_right".into() }, Some(right))
    }

    /// All pairs of rows, one of each frame.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let one = session.sql("VALUES (1), (2)")?;
    /// assert_eq!(one.cross_join(&one)?.collect()?.num_rows(), 4);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn cross_join(&self, right: &Self) -> Result<Self> {
        let suffix = "_right".into();
        let verb = Verb::JoinWhere {
            kind: JoinType::Inner,
            on: datafusion::logical_expr::lit(true),
            suffix,
        };
        S::grow(self, verb, Some(right)).map_err(|error| error.in_verb("cross_join"))
    }

    /// Whether no key comes twice; null is no key.
    fn has_keys_once(&self, on: &[String], side: &str) -> Result<()> {
        let known = self.column_names();
        if let Some(name) = on.iter().find(|name| !known.contains(name)) {
            return Err(ErrorKind::ColumnNotFound { name: name.clone(), known }.into());
        }
        let rows = self.unused_name("rows");
        let twice = self.looked_at(|frame| {
            frame
                .select(on)?
                .drop_nulls(on)?
                .group_by(on)
                .agg([count_rows().alias(&rows)])?
                .filter(col(&rows).gt(1))?
                .limit(0, 1)
        })?;
        match twice.num_rows() {
            0 => Ok(()),
            _ => {
                let what = format!("a join whose {side} keys are to come once");
                Err(Error::unsupported(
                    what,
                    format!("({}) has the same values in several rows", on.join(", ")),
                ))
            }
        }
    }
}
