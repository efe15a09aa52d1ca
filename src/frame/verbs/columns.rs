//! Which columns there are, in which order, under which names and of which types.

use datafusion::arrow::datatypes::DataType;
use datafusion::logical_expr as df;

use crate::error::Result;
use crate::frame::expr::{Columns, col};
use crate::frame::{AnyFrame, FrameState};
use crate::query::Verb;

impl<S: FrameState> AnyFrame<S> {
    /// All columns but these.
    ///
    /// # Errors
    /// Unknown columns ([`crate::ErrorKind::ColumnNotFound`]).
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = session.sql("SELECT 1 AS a, 2 AS b, 'x' AS s")?;
    /// assert_eq!(frame.drop(["a", "s"])?.column_names(), ["b"]);
    /// assert_eq!(frame.drop(numeric())?.column_names(), ["s"]);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn drop(&self, columns: impl Columns) -> Result<Self> {
        let dropped = self.names(columns).map_err(|error| error.in_verb("drop"))?;
        let kept = self.column_names().into_iter().filter(|name| !dropped.contains(name));
        self.columns_as("drop", kept.map(|name| col(name).into()).collect())
    }

    /// All columns, some under new names: pairs of the old and the new name.
    ///
    /// # Errors
    /// Unknown columns ([`crate::ErrorKind::ColumnNotFound`]); two columns of one name.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = session.sql("SELECT 1 AS a, 2 AS b")?.rename([("a", "b"), ("b", "a")])?;
    /// assert_eq!(frame.column_names(), ["b", "a"]);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn rename(
        &self,
        names: impl IntoIterator<Item = (impl AsRef<str>, impl Into<String>)>,
    ) -> Result<Self> {
        let names: Vec<(String, String)> =
            names.into_iter().map(|(old, new)| (old.as_ref().to_string(), new.into())).collect();
        self.names(names.iter().map(|(old, _)| old)).map_err(|error| error.in_verb("rename"))?;
        let renamed = self.column_names().into_iter().map(|name| {
            let new = names.iter().rev().find(|(old, _)| *old == name);
            match new {
                Some((_, new)) => col(&name).alias(new).into(),
                None => col(&name).into(),
            }
        });
        self.columns_as("rename", renamed.collect())
    }

    /// All columns, under names that a function makes of the old ones.
    ///
    /// # Errors
    /// Two columns of one name.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = session.sql("SELECT 1 AS a, 2 AS b")?.rename_with(|name| name.to_uppercase())?;
    /// assert_eq!(frame.column_names(), ["A", "B"]);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn rename_with(&self, rename: impl Fn(&str) -> String) -> Result<Self> {
        let renamed =
            self.column_names().into_iter().map(|name| col(&name).alias(rename(&name)).into());
        self.columns_as("rename", renamed.collect())
    }

    /// These columns as another type.
    ///
    /// # Errors
    /// Unknown columns ([`crate::ErrorKind::ColumnNotFound`]), casts that there are not; where the
    /// query runs, values that do not fit ([`crate::ErrorKind::Arithmetic`]).
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = session.sql("SELECT 1 AS a, 2 AS b, 'x' AS s")?.cast(numeric(), DataType::Float32)?;
    /// assert_eq!(frame.schema().field(1).data_type(), &DataType::Float32);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn cast(&self, columns: impl Columns, dtype: DataType) -> Result<Self> {
        let cast = self.names(columns).map_err(|error| error.in_verb("cast"))?;
        let columns =
            cast.into_iter().map(|name| col(&name).cast(dtype.clone()).alias(&name).into());
        let verb = Verb::WithColumns(columns.collect());
        S::grow(self, verb, None).map_err(|error| error.in_verb("cast"))
    }

    /// All columns, these first, in their order.
    ///
    /// # Errors
    /// Unknown columns ([`crate::ErrorKind::ColumnNotFound`]).
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = session.sql("SELECT 1 AS a, 2 AS b, 3 AS c")?.reorder(["c", "b"])?;
    /// assert_eq!(frame.column_names(), ["c", "b", "a"]);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn reorder(&self, columns: impl Columns) -> Result<Self> {
        let mut names = self.names(columns).map_err(|error| error.in_verb("reorder"))?;
        let others = self
            .column_names()
            .into_iter()
            .filter(|name| !names.contains(name))
            .collect::<Vec<_>>();
        names.extend(others);
        self.columns_as("reorder", names.into_iter().map(|name| col(name).into()).collect())
    }

    fn columns_as(&self, verb: &'static str, columns: Vec<df::Expr>) -> Result<Self> {
        S::grow(self, Verb::Select(columns), None).map_err(|error| error.in_verb(verb))
    }
}
