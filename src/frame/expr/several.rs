//! What stands for several columns or keys: one of them, a list, or nothing.

use std::collections::{BTreeSet, HashSet, VecDeque};
use std::iter::{Chain, Cloned, Copied, Filter, FilterMap, FlatMap, Map, Once, Rev, Skip, Take};
use std::{array, slice, vec};

use datafusion::logical_expr as df;

use super::{Expr, IntoColumn, IntoSortKey};

/// Expressions, or names of columns: what `select` and `group_by` take. One of them stands for
/// itself, and `()` for none.
///
/// Lists are arrays, slices, vectors, sets, and the iterators that the methods of Rust's iterators
/// make; others go through `collect::<Vec<_>>()`. Rust does not know what `[]` is a list of: `()`
/// is written in its place.
///
/// ```
/// # use warpframe::prelude::*;
/// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
/// let frame = session.sql("SELECT 1 AS a, 2 AS b, 3 AS c")?;
/// assert_eq!(frame.select(["a", "b"])?.schema(), frame.select([col("a"), col("b")])?.schema());
/// assert_eq!(frame.select(all().exclude("c"))?.schema(), frame.select(["a", "b"])?.schema());
/// assert_eq!(frame.select("a")?.column_names(), ["a"]);
/// assert_eq!(frame.group_by(()).agg(count_rows())?.collect()?.num_rows(), 1);
/// # Ok::<(), warpframe::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not stand for columns",
    label = "names of columns or expressions are wanted here",
    note = "write `\"name\"`, `col(\"name\")`, a list of one of them such as `[\"a\", \"b\"]`, a \
            selector such as `all()`, or `()` for none",
    note = "an iterator goes through `collect::<Vec<_>>()`, and names and expressions in one list \
            are all written with `col`"
)]
pub trait Columns {
    /// As expressions.
    fn into_columns(self) -> Vec<Expr>;
}

impl Columns for () {
    fn into_columns(self) -> Vec<Expr> {
        vec![]
    }
}

/// Keys to sort by. One of them stands for itself, and `()` for none; lists are those of
/// [`Columns`].
///
/// ```
/// # use warpframe::prelude::*;
/// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
/// let frame = session.sql("VALUES (1, 'a'), (2, 'b')")?;
/// let (by_name, by_names) = (frame.sort("column1")?, frame.sort(["column1"])?);
/// let by_key = frame.sort(desc("column2"))?;
/// let by_keys = frame.sort([desc("column2"), asc("column1")])?;
/// # Ok::<(), warpframe::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not stand for keys to sort by",
    label = "keys are wanted here",
    note = "write `\"name\"`, `asc(\"name\")`, `desc(\"name\")`, or a list of one kind of these, \
            such as `[asc(\"a\"), desc(\"b\")]`",
    note = "an iterator goes through `collect::<Vec<_>>()`"
)]
pub trait SortKeys {
    /// As keys.
    fn into_keys(self) -> Vec<df::SortExpr>;
}

impl SortKeys for () {
    fn into_keys(self) -> Vec<df::SortExpr> {
        vec![]
    }
}

macro_rules! one {
    ($($trait:ident $method:ident $of:ident $item:ty: $($one:ty),*;)*) => {
        $($(impl $trait for $one {
            fn $method(self) -> Vec<$item> {
                vec![self.$of()]
            }
        })*)*
    };
}

one! {
    Columns into_columns into_column Expr: Expr, &Expr, df::Expr, &str, &&str, String, &String;
    SortKeys into_keys into_key df::SortExpr:
        df::SortExpr, &df::SortExpr, Expr, &Expr, &str, &&str, String, &String;
}

// By name: of all that can be iterated over, `&str` might be one some day, and could not stand for
// itself.
macro_rules! lists {
    ($([$($generics:tt)*] $list:ty),* $(,)?) => {
        $(impl<$($generics)*> Columns for $list
        where
            $list: IntoIterator<Item: IntoColumn>,
        {
            fn into_columns(self) -> Vec<Expr> {
                self.into_iter().map(IntoColumn::into_column).collect()
            }
        }

        impl<$($generics)*> SortKeys for $list
        where
            $list: IntoIterator<Item: IntoSortKey>,
        {
            fn into_keys(self) -> Vec<df::SortExpr> {
                self.into_iter().map(IntoSortKey::into_key).collect()
            }
        })*
    };
}

lists!(
    [T, const N: usize] [T; N],
    ['a, T, const N: usize] &'a [T; N],
    ['a, T] &'a [T],
    [T] Vec<T>,
    ['a, T] &'a Vec<T>,
    [T] Option<T>,
    [T] VecDeque<T>,
    [T] BTreeSet<T>,
    ['a, T] &'a BTreeSet<T>,
    [T, H] HashSet<T, H>,
    ['a, T, H] &'a HashSet<T, H>,
    [T, const N: usize] array::IntoIter<T, N>,
    ['a, T] slice::Iter<'a, T>,
    [T] vec::IntoIter<T>,
    [T] Once<T>,
    [I, F] Map<I, F>,
    [I, F] Filter<I, F>,
    [I, F] FilterMap<I, F>,
    [I, U: IntoIterator, F] FlatMap<I, U, F>,
    [I, J] Chain<I, J>,
    [I] Cloned<I>,
    [I] Copied<I>,
    [I] Rev<I>,
    [I] Skip<I>,
    [I] Take<I>,
);
