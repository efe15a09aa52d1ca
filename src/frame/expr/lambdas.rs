//! Functions of lists that compute something of each element: the closure makes an expression of
//! what stands for the element.

use std::cell::Cell;

use datafusion::functions_nested::array_any_match::array_any_match_higher_order_function;
use datafusion::functions_nested::array_filter::array_filter_higher_order_function;
use datafusion::functions_nested::array_transform::array_transform_higher_order_function;
use datafusion::logical_expr as df;
use datafusion::logical_expr::expr::HigherOrderFunction;

use super::{Expr, IntoColumn, IntoValue, ListMethods};
use crate::host::arrays_zip::arrays_zip;
use crate::host::histogram::histogram;
use crate::host::lambdas::array_reduce;
use crate::host::list_combinations::list_combinations;

thread_local! {
    /// How many closures are under way, one within another: each has parameters of its own, which
    /// are called the same whenever the same is asked, so that queries are known again.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// A closure is under way for as long as this is there.
struct ClosureLevel(usize);

impl ClosureLevel {
    fn enter() -> ClosureLevel {
        ClosureLevel(DEPTH.replace(DEPTH.get() + 1))
    }

    fn parameter(&self, name: &str) -> Expr {
        let name = format!("{name}{}", self.0);
        Expr { tree: df::lambda_var(&name), name: Some(name) }
    }
}

impl Drop for ClosureLevel {
    fn drop(&mut self) {
        DEPTH.set(self.0);
    }
}

fn lambda<const N: usize>(names: [&str; N], body: impl FnOnce([Expr; N]) -> Expr) -> df::Expr {
    let level = ClosureLevel::enter();
    let parameters = names.map(|name| level.parameter(name));
    let names = parameters.clone().map(|parameter| parameter.tree.to_string());
    df::lambda(names, body(parameters).tree)
}

fn call(function: std::sync::Arc<df::HigherOrderUDF>, arguments: Vec<df::Expr>) -> df::Expr {
    df::Expr::HigherOrderFunction(HigherOrderFunction::new(function, arguments))
}

impl ListMethods {
    /// What is computed of each element, as a list. The expression may look at the row's columns,
    /// too, and at the elements of lists around.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = session.sql("SELECT [1, 2, 3] AS l, 10 AS k")?;
    /// let frame = frame.select([col("l").list().transform(|x| x * col("k"))])?;
    /// assert_eq!(frame.filter(col("l").list().sum().eq(60))?.collect()?.num_rows(), 1);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn transform(self, body: impl FnOnce(Expr) -> Expr) -> Expr {
        let lambda = lambda(["x"], |[x]| body(x));
        self.0.map(|list| call(array_transform_higher_order_function(), vec![list, lambda]))
    }

    /// What is computed of each element: [`ListMethods::transform`] as Polars calls it.
    pub fn eval(self, body: impl FnOnce(Expr) -> Expr) -> Expr {
        self.transform(body)
    }

    /// The elements for which a condition holds.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = session.sql("SELECT [1, 2, 3] AS l")?.select([col("l").list().filter(|x| x.gt(1))])?;
    /// assert_eq!(frame.filter(col("l").list().len().eq(2))?.collect()?.num_rows(), 1);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn filter(self, condition: impl FnOnce(Expr) -> Expr) -> Expr {
        let lambda = lambda(["x"], |[x]| condition(x));
        self.0.map(|list| call(array_filter_higher_order_function(), vec![list, lambda]))
    }

    /// Whether a condition holds for some element.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = session.sql("SELECT [1, 2, 3] AS l")?.filter(col("l").list().any(|x| x.gt(2)))?;
    /// assert_eq!(frame.collect()?.num_rows(), 1);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn any(self, condition: impl FnOnce(Expr) -> Expr) -> Expr {
        let lambda = lambda(["x"], |[x]| condition(x));
        self.0.map(|list| call(array_any_match_higher_order_function(), vec![list, lambda]))
    }

    /// What is left of a list when all elements, from the first on, were put together with what an
    /// initial value has become by those before them.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = session.sql("SELECT [1, 2, 3] AS l")?;
    /// let frame = frame.select([col("l").list().reduce(0, |so_far, x| so_far * 10 + x)])?;
    /// assert_eq!(frame.collect()?.column("l")?.to_vec::<i64>()?, [123]);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn reduce(self, initial: impl IntoValue, body: impl FnOnce(Expr, Expr) -> Expr) -> Expr {
        let lambda = lambda(["so_far", "x"], |[so_far, x]| body(so_far, x));
        self.0.with(initial, |list, initial| call(array_reduce(), vec![list, lambda, initial]))
    }

    /// All lists of `n` elements, from 1 to 4, in the order of their places.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = session.sql("SELECT [1, 2, 3] AS l")?;
    /// let products = col("l").list().combinations(2).list().transform(|p| p.clone().list().get(0) * p.list().get(1));
    /// let frame = frame.select([products])?;
    /// assert_eq!(frame.filter(col("l").list().sum().eq(11))?.collect()?.num_rows(), 1);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn combinations(self, n: usize) -> Expr {
        let n = df::lit(i64::try_from(n).unwrap_or(i64::MAX));
        self.0.map(|list| list_combinations().call(vec![list, n]))
    }

    /// Structs of the elements of both lists in one place, in fields `1` and `2`. Where one list is
    /// shorter, its elements are null.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = session.sql("SELECT [1, 2] AS a, [3, 4] AS b")?;
    /// let sum = |z: Expr| z.clone().structs().field("1") + z.structs().field("2");
    /// let sums = col("a").list().zip("b").list().transform(sum).list().sum();
    /// assert_eq!(frame.select([sums])?.collect()?.column("a")?.to_vec::<f64>()?, [10.0]);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn zip(self, other: impl IntoColumn) -> Expr {
        self.0.with(other.into_column(), |own, other| arrays_zip().call(vec![own, other]))
    }
}

impl Expr {
    /// How many values lie in each of `bins` bins of one width between two bounds, as a list. A bin
    /// holds its lower bound, the last its upper one, too; null, NaN and what lies outside is in
    /// none.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = session.sql("VALUES (0.5), (1.0), (2.0), (7.0)")?;
    /// let frame = frame.select([col("column1").histogram(0.0, 2.0, 2)])?.explode(["column1"])?;
    /// assert_eq!(frame.collect()?.column("column1")?.to_vec::<i64>()?, [1, 2]);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn histogram(self, low: f64, high: f64, bins: usize) -> Expr {
        self.map(|value| histogram().call(binned(value, low, high, bins)))
    }

    /// The sum of the values' weights in each of `bins` bins of one width between two bounds, as a
    /// list. The bins are those of [`Expr::histogram`].
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = session.sql("VALUES (0.5, 2.0), (1.0, 3.0), (2.0, 0.5)")?;
    /// let frame = frame.select([col("column1").histogram_of(0.0, 2.0, 2, "column2")])?.explode(["column1"])?;
    /// assert_eq!(frame.collect()?.column("column1")?.to_vec::<f64>()?, [2.0, 3.5]);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn histogram_of(self, low: f64, high: f64, bins: usize, weight: impl IntoColumn) -> Expr {
        self.with(weight.into_column(), |value, weight| {
            let mut arguments = binned(value, low, high, bins);
            arguments.push(weight);
            histogram().call(arguments)
        })
    }
}

fn binned(value: df::Expr, low: f64, high: f64, bins: usize) -> Vec<df::Expr> {
    vec![value, df::lit(low), df::lit(high), df::lit(i64::try_from(bins).unwrap_or(i64::MAX))]
}
