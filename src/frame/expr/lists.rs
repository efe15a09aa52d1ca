//! Functions of lists and structs.

use datafusion::functions::expr_fn;
use datafusion::functions_nested::expr_fn as nested;
use datafusion::logical_expr as df;

use super::{Expr, IntoColumn, IntoValue};

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
pub struct ListMethods(Expr);

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
pub fn list(values: impl IntoIterator<Item: IntoColumn>) -> Expr {
    Expr(nested::make_array(values.into_iter().map(|value| value.into_column().0).collect()))
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
    let named = |(name, value): (_, _)| [df::lit(Into::<String>::into(name)), IntoColumn::into_column(value).0];
    Expr(expr_fn::named_struct(fields.into_iter().flat_map(named).collect()))
}

macro_rules! of_lists {
    ($($(#[$doc:meta])* $name:ident $function:expr;)*) => {
        $($(#[$doc])*
        pub fn $name(self) -> Expr {
            let of: fn(df::Expr) -> df::Expr = $function;
            Expr(of(self.0.0))
        })*
    };
}

impl ListMethods {
    of_lists! {
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
        Expr(nested::array_element(self.0.0, df::lit(place)))
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
        Expr(nested::array_has(self.0.0, value.into_value().0))
    }

    /// The elements in order; nulls come last.
    pub fn sort(self, descending: bool) -> Expr {
        let order = if descending { "DESC" } else { "ASC" };
        Expr(nested::array_sort(self.0.0, df::lit(order), df::lit("NULLS LAST")))
    }

    /// `length` elements from a place on, 0 being the first.
    pub fn slice(self, offset: u32, length: u32) -> Expr {
        let first = i64::from(offset) + 1;
        let last = i64::from(offset) + i64::from(length);
        Expr(nested::array_slice(self.0.0, df::lit(first), df::lit(last), None))
    }

    /// The first `n` elements.
    pub fn head(self, n: u32) -> Expr {
        self.slice(0, n)
    }

    /// The elements as one text, with something between them; nulls are left out.
    pub fn join(self, separator: &str) -> Expr {
        Expr(nested::array_to_string(self.0.0, df::lit(separator)))
    }

    /// With an element behind the others.
    pub fn append(self, value: impl IntoValue) -> Expr {
        Expr(nested::array_append(self.0.0, value.into_value().0))
    }

    /// With another list behind it.
    pub fn concat(self, other: impl IntoColumn) -> Expr {
        Expr(nested::array_concat(vec![self.0.0, other.into_column().0]))
    }

    /// Elements of both lists, each once.
    pub fn set_union(self, other: impl IntoColumn) -> Expr {
        Expr(nested::array_union(self.0.0, other.into_column().0))
    }

    /// Elements that the other list has too, each once.
    pub fn set_intersection(self, other: impl IntoColumn) -> Expr {
        Expr(nested::array_intersect(self.0.0, other.into_column().0))
    }

    /// Elements that the other list has not, each once.
    pub fn set_difference(self, other: impl IntoColumn) -> Expr {
        Expr(nested::array_except(self.0.0, other.into_column().0))
    }
}

impl StructMethods {
    /// The field of a name.
    pub fn field(self, name: &str) -> Expr {
        Expr(expr_fn::get_field(self.0.0, name))
    }
}
