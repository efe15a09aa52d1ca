//! What lazy and eager frames have in common: the verbs, each of which is written once.
//!
//! ```text
//!   AnyFrame<S>             the verbs of verbs/, in a file for each family      base.rs
//!     LazyFrame = AnyFrame<Lazy>     a plan; a verb makes a longer one        lazy.rs
//!     DataFrame = AnyFrame<Eager>    rows; a verb is planned and runs at once eager.rs
//! ```
//!
//! A verb is one of `query::Verb`, which a session recognizes when it comes again, or it is made of
//! others: [`AnyFrame::made`] has these written for a lazy frame, and an eager one runs them as one
//! query.

use std::sync::Arc;

use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::logical_expr as df;

use super::base::AnyFrame;
use super::expr::{Columns, Expr, SortKeys, expanded, fitted, unknown};
use super::lazy::{Lazy, LazyFrame};
use crate::error::{Error, Result};
use crate::query::Verb;

/// Whether a frame is lazy or eager; nothing else is one.
pub trait FrameState: StateOfFrame {}

impl<S: StateOfFrame> FrameState for S {}

/// What a verb needs to know of a frame's state.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no state of a frame",
    label = "`Lazy` or `Eager` is wanted here",
    note = "a `LazyFrame` is an `AnyFrame<Lazy>`, and a `DataFrame` an `AnyFrame<Eager>`"
)]
pub trait StateOfFrame: Clone + Sized {
    /// What a verb makes of this frame, or of it and another.
    fn grow(
        frame: &AnyFrame<Self>,
        verb: Verb,
        right: Option<&AnyFrame<Self>>,
    ) -> Result<AnyFrame<Self>>;

    /// The frame as a plan.
    fn lazy(frame: &AnyFrame<Self>) -> Result<LazyFrame>;

    /// A plan as such a frame.
    fn done(frame: LazyFrame) -> Result<AnyFrame<Self>>;

    /// The names of the columns, and the types that the planner tells.
    fn columns(&self) -> SchemaRef;

    /// The names of the columns, and the types of their rows.
    fn schema(frame: &AnyFrame<Self>) -> SchemaRef;

    /// The number of rows, where that is known without running anything.
    fn rows(&self) -> Option<usize>;
}

impl StateOfFrame for Lazy {
    fn grow(frame: &LazyFrame, verb: Verb, right: Option<&LazyFrame>) -> Result<LazyFrame> {
        frame.grow(verb, right)
    }

    fn lazy(frame: &LazyFrame) -> Result<LazyFrame> {
        Ok(frame.clone())
    }

    fn done(frame: LazyFrame) -> Result<LazyFrame> {
        Ok(frame)
    }

    fn columns(&self) -> SchemaRef {
        Arc::new(self.schema.as_arrow().clone())
    }

    fn schema(frame: &LazyFrame) -> SchemaRef {
        frame.agreed_schema()
    }

    fn rows(&self) -> Option<usize> {
        None
    }
}

impl<S: FrameState> AnyFrame<S> {
    /// The names and types of the columns.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// assert_eq!(session.sql("SELECT 1 AS one")?.schema().field(0).name(), "one");
    /// assert_eq!(session.sql("SELECT 1 AS one")?.collect()?.schema().field(0).name(), "one");
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn schema(&self) -> SchemaRef {
        S::schema(self)
    }

    /// The names of the columns.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// assert_eq!(session.sql("SELECT 1 AS a, 2 AS b")?.column_names(), ["a", "b"]);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn column_names(&self) -> Vec<String> {
        self.state.columns().fields().iter().map(|field| field.name().clone()).collect()
    }

    /// A verb that a session recognizes.
    pub(super) fn verb(&self, verb: Verb, right: Option<&Self>) -> Result<Self> {
        let name = verb.name();
        S::grow(self, verb, right).map_err(|error| error.in_verb(name))
    }

    /// A verb that is made of others, which an eager frame runs as one query. What is drawn in the
    /// frame's rows is drawn once, however often the others read it.
    pub(super) fn made(
        &self,
        verb: &'static str,
        make: impl FnOnce(LazyFrame) -> Result<LazyFrame>,
    ) -> Result<Self> {
        let made = S::lazy(self).and_then(LazyFrame::drawn_once).and_then(make);
        let made = made.and_then(LazyFrame::with_own_rows).and_then(S::done);
        made.map_err(|error| error.in_verb(verb))
    }

    /// A verb of two frames that is made of others, which an eager frame runs as one query. What is
    /// drawn in the frames' rows is drawn once.
    pub(super) fn made_with(
        &self,
        verb: &'static str,
        other: &Self,
        make: impl FnOnce(LazyFrame, LazyFrame) -> Result<LazyFrame>,
    ) -> Result<Self> {
        self.made(verb, |frame| make(frame, S::lazy(other)?.drawn_once()?))
    }

    /// The expressions, with a column's in place of a selector's.
    pub(super) fn exprs(&self, columns: impl Columns) -> Result<Vec<df::Expr>> {
        Ok(self.known(columns)?.into_iter().map(Into::into).collect())
    }

    /// The expressions as columns of a result, under their names.
    pub(super) fn results(&self, columns: impl Columns) -> Result<Vec<df::Expr>> {
        Ok(self.known(columns)?.into_iter().map(Expr::into_result).collect())
    }

    /// What only the columns decide of expressions, decided.
    fn known(&self, columns: impl Columns) -> Result<Vec<Expr>> {
        let schema = self.state.columns();
        fitted(expanded(columns.into_columns(), || Schema::clone(&schema))?, &schema)
    }

    /// The names of columns of this frame that expressions stand for: names and selectors.
    pub(super) fn names(&self, columns: impl Columns) -> Result<Vec<String>> {
        let schema = self.state.columns();
        let named = |expr: df::Expr| match expr {
            df::Expr::Column(column) if schema.column_with_name(&column.name).is_none() => {
                Err(unknown(&column.name, &schema))
            }
            df::Expr::Column(column) => Ok(column.name),
            other => Err(Error::unsupported(
                format!("{other}"),
                "names of columns are wanted here, or selectors",
            )),
        };
        self.exprs(columns)?.into_iter().map(named).collect()
    }

    /// Keys to sort by.
    pub(super) fn keys(
        &self,
        verb: &'static str,
        keys: impl SortKeys,
    ) -> Result<Vec<df::SortExpr>> {
        // Moved: to clone what is deep takes more stack than there may be.
        let key = |df::SortExpr { expr, asc, nulls_first }: df::SortExpr| {
            let exprs = self.exprs([expr])?;
            Ok(exprs.into_iter().map(move |expr| df::SortExpr { expr, asc, nulls_first }))
        };
        let keys = keys.into_keys().into_iter().map(key).collect::<Result<Vec<_>>>();
        Ok(keys.map_err(|error| error.in_verb(verb))?.into_iter().flatten().collect())
    }

    /// A name that no column has.
    pub(super) fn unused_name(&self, stem: &str) -> String {
        let schema = self.state.columns();
        let mut name = stem.to_string();
        while schema.column_with_name(&name).is_some() {
            name.push('_');
        }
        name
    }
}
