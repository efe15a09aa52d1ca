//! Functions of lists and structs.

use datafusion::functions::expr_fn;
use datafusion::functions_nested::expr_fn as nested;
use datafusion::logical_expr as df;

use super::functions::of_all;
use super::{Columns, Expr, IntoColumn, IntoValue, methods};

/// Functions of lists; see [`Expr::list`].
///
/// ```
/// # use warpframe::prelude::*;
/// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
/// let frame = session.sql("VALUES ([3, 1, 2]), ([7])")?;
/// let frame = frame.select([
///     col("column1").list().sum().alias("sum"),
///     col("column1").list().get(-1).alias("last"),
///     col("column1").list().contains(1).alias("has one"),
/// ])?;
/// assert_eq!(frame.filter(col("sum").eq(6).and(col("last").eq(2)).and(col("has one")))?.collect()?.num_rows(), 1);
/// # Ok::<(), warpframe::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct ListMethods(pub(super) Expr);

/// Functions of structs; see [`Expr::structs`].
///
/// ```
/// # use warpframe::prelude::*;
/// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
/// let frame = session.sql("SELECT {'a': 1, 'b': 'x'} AS s")?;
/// assert_eq!(frame.filter(col("s").structs().field("a").eq(1))?.collect()?.num_rows(), 1);
/// # Ok::<(), warpframe::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct StructMethods(Expr);

impl Expr {
    /// Functions of lists.
    pub fn list(self) -> ListMethods {
        ListMethods(self)
    }

    /// Functions of structs.
    pub fn structs(self) -> StructMethods {
        StructMethods(self)
    }
}

/// A list of these values of each row.
///
/// ```
/// # use warpframe::prelude::*;
/// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
/// let frame = session.sql("SELECT 1 AS a, 2 AS b")?.select([list(["a", "b"]).alias("both")])?;
/// assert_eq!(frame.filter(col("both").list().len().eq(2))?.collect()?.num_rows(), 1);
/// # Ok::<(), warpframe::Error>(())
/// ```
pub fn list(values: impl Columns) -> Expr {
    of_all(values.into_columns(), nested::make_array)
}

/// A struct of these values of each row, by the names of its fields.
///
/// ```
/// # use warpframe::prelude::*;
/// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
/// let frame = session.sql("SELECT 1 AS a, 2 AS b")?.select([structs([("x", col("a")), ("y", col("b"))]).alias("s")])?;
/// assert_eq!(frame.filter(col("s").structs().field("y").eq(2))?.collect()?.num_rows(), 1);
/// # Ok::<(), warpframe::Error>(())
/// ```
pub fn structs(fields: impl IntoIterator<Item = (impl Into<String>, impl IntoColumn)>) -> Expr {
    let (names, values): (Vec<String>, Vec<Expr>) =
        fields.into_iter().map(|(name, value)| (name.into(), value.into_column())).unzip();
    let name = names.first().cloned();
    let named = |values: Vec<df::Expr>| {
        names.into_iter().zip(values).flat_map(|(name, value)| [df::lit(name), value])
    };
    of_all(values, |values| expr_fn::named_struct(named(values).collect())).called(name)
}

impl ListMethods {
    methods! {
        /// The number of elements.
        len nested::array_length;
        /// The sum of the elements.
        sum nested::array_sum;
        /// The mean of the elements.
        mean nested::array_avg;
        /// The least element.
        min nested::array_min;
        /// The greatest element.
        max nested::array_max;
        /// The elements from last to first.
        reverse nested::array_reverse;
        /// Each element once.
        unique nested::array_distinct;
        /// Without nulls.
        drop_nulls nested::array_compact;
        /// The lists in it, behind one another.
        flatten nested::flatten;
    }

    /// The number of different elements.
    pub fn n_unique(self) -> Expr {
        self.unique().list().len()
    }

    /// The element at a place, 0 being the first; a negative place counts from the end. Null where
    /// there is none.
    pub fn get(self, place: i64) -> Expr {
        let place = if place < 0 { place } else { place.saturating_add(1) };
        self.0.map(|value| nested::array_element(value, df::lit(place)))
    }

    /// The first element.
    pub fn first(self) -> Expr {
        self.get(0)
    }

    /// The last element.
    pub fn last(self) -> Expr {
        self.get(-1)
    }

    /// Whether a value is among the elements.
    pub fn contains(self, value: impl IntoValue) -> Expr {
        self.0.with(value, nested::array_has)
    }

    /// The elements in order; nulls come last.
    pub fn sort(self, descending: bool) -> Expr {
        let order = if descending { "DESC" } else { "ASC" };
        self.0.map(|value| nested::array_sort(value, df::lit(order), df::lit("NULLS LAST")))
    }

    /// `length` elements from a place on, 0 being the first.
    pub fn slice(self, offset: u32, length: u32) -> Expr {
        let first = i64::from(offset) + 1;
        let last = i64::from(offset) + i64::from(length);
        self.0.map(|value| nested::array_slice(value, df::lit(first), df::lit(last), None))
    }

    /// The first `n` elements.
    pub fn head(self, n: u32) -> Expr {
        self.slice(0, n)
    }

    /// The last `n` elements.
    pub fn tail(self, n: u32) -> Expr {
        self.reverse().list().head(n).list().reverse()
    }

    /// The elements as one text, with something between them; nulls are left out.
    pub fn join(self, separator: &str) -> Expr {
        self.0.map(|value| nested::array_to_string(value, df::lit(separator)))
    }

    /// With an element behind the others.
    pub fn append(self, value: impl IntoValue) -> Expr {
        self.0.with(value, nested::array_append)
    }

    /// With another list behind it.
    pub fn concat(self, other: impl IntoColumn) -> Expr {
        self.0.with(other.into_column(), |own, other| nested::array_concat(vec![own, other]))
    }

    /// Elements of both lists, each once.
    pub fn set_union(self, other: impl IntoColumn) -> Expr {
        self.0.with(other.into_column(), nested::array_union)
    }

    /// Elements that the other list has too, each once.
    pub fn set_intersection(self, other: impl IntoColumn) -> Expr {
        self.0.with(other.into_column(), nested::array_intersect)
    }

    /// Elements that one of both lists has, and not both, each once.
    pub fn set_symmetric_difference(self, other: impl IntoColumn) -> Expr {
        let other = other.into_column();
        let others = other.clone().list().set_difference(self.0.clone());
        self.set_difference(other).list().set_union(others)
    }

    /// Elements that the other list has not, each once.
    pub fn set_difference(self, other: impl IntoColumn) -> Expr {
        self.0.with(other.into_column(), nested::array_except)
    }
}

impl StructMethods {
    /// The field of a name.
    pub fn field(self, name: &str) -> Expr {
        self.0.map(|value| expr_fn::get_field(value, name)).called(Some(name.to_string()))
    }
}
