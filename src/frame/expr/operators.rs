//! Arithmetic, comparisons and logic, with plain values on either side.

use std::ops::{Add, BitAnd, BitOr, Div, Mul, Neg, Not, Rem, Sub};

use datafusion::arrow::datatypes::DataType;
use datafusion::logical_expr as df;

use super::{Expr, IntoValue};

macro_rules! arithmetic {
    ($($trait:ident $method:ident $operator:tt),*) => {
        $(impl<T: IntoValue> $trait<T> for Expr {
            type Output = Expr;

            fn $method(self, other: T) -> Expr {
                self.with(other, |left, right| left $operator right)
            }
        })*
    };
}

arithmetic!(Add add +, Sub sub -, Mul mul *, Div div /, Rem rem %);

macro_rules! plain_left {
    ($($type:ty),*) => {
        $(plain_left!(@ $type, Add add +, Sub sub -, Mul mul *, Div div /, Rem rem %);)*
    };
    (@ $type:ty, $($trait:ident $method:ident $operator:tt),*) => {
        $(impl $trait<Expr> for $type {
            type Output = Expr;

            fn $method(self, other: Expr) -> Expr {
                self.into_value() $operator other
            }
        })*
    };
}

// One of integers and one of floats, so that a literal's type is plain: `10 - col("x")`.
plain_left!(i32, f64);

impl Neg for Expr {
    type Output = Expr;

    fn neg(self) -> Expr {
        self.map(Neg::neg)
    }
}

impl Not for Expr {
    type Output = Expr;

    fn not(self) -> Expr {
        self.map(Not::not)
    }
}

impl<T: IntoValue> BitAnd<T> for Expr {
    type Output = Expr;

    fn bitand(self, other: T) -> Expr {
        self.and(other)
    }
}

impl<T: IntoValue> BitOr<T> for Expr {
    type Output = Expr;

    fn bitor(self, other: T) -> Expr {
        self.or(other)
    }
}

macro_rules! binary {
    ($($(#[$doc:meta])* $name:ident)*) => {
        $($(#[$doc])*
        pub fn $name(self, other: impl IntoValue) -> Expr {
            self.with(other, df::Expr::$name)
        })*
    };
}

macro_rules! unary {
    ($($(#[$doc:meta])* $name:ident)*) => {
        $($(#[$doc])*
        pub fn $name(self) -> Expr {
            self.map(df::Expr::$name)
        })*
    };
}

/// Comparisons and logic. As in SQL, they are null where an operand is, but for those whose name
/// says otherwise.
///
/// ```
/// # use warpframe::prelude::*;
/// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
/// let frame = session.sql("VALUES (1, 'a'), (5, 'b'), (NULL, 'c')")?;
/// let kept = frame.filter(col("column1").gt(2).or(col("column2").eq("c")) & col("column2").not_eq("x"))?;
/// assert_eq!(kept.collect()?.num_rows(), 2);
/// # Ok::<(), warpframe::Error>(())
/// ```
impl Expr {
    binary! {
        /// Whether both are equal.
        eq
        /// Whether they differ.
        not_eq
        /// Whether this is greater.
        gt
        /// Whether this is greater or equal.
        gt_eq
        /// Whether this is less.
        lt
        /// Whether this is less or equal.
        lt_eq
        /// Whether both are true.
        and
        /// Whether one of both is true.
        or
        /// Whether a text matches a pattern of SQL: `%` is any characters, `_` is one.
        like
        /// Whether it does not.
        not_like
        /// [`Expr::like`] without regard to case.
        ilike
        /// Whether it does not.
        not_ilike
    }

    unary! {
        /// Whether there is no value.
        is_null
        /// Whether there is a value.
        is_not_null
        /// Whether it is true, and not null.
        is_true
        /// Whether it is false or null.
        is_not_true
        /// Whether it is false, and not null.
        is_false
        /// Whether it is true or null.
        is_not_false
        /// Whether a condition is null.
        is_unknown
        /// Whether a condition is not null.
        is_not_unknown
    }

    /// Whether both are equal, where null equals null: Polars' `eq_missing`.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = session.sql("VALUES (1, 1), (NULL, NULL), (1, NULL)")?;
    /// assert_eq!(frame.filter(col("column1").eq_missing(col("column2")))?.collect()?.num_rows(), 2);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn eq_missing(self, other: impl IntoValue) -> Expr {
        self.with(other, |left, right| {
            df::binary_expr(left, df::Operator::IsNotDistinctFrom, right)
        })
    }

    /// Whether both differ, where null equals null: Polars' `ne_missing`.
    pub fn ne_missing(self, other: impl IntoValue) -> Expr {
        self.with(other, |left, right| df::binary_expr(left, df::Operator::IsDistinctFrom, right))
    }

    /// The bits that both integers have. (`&` is of conditions.)
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = session.sql("VALUES (5), (6), (8)")?;
    /// assert_eq!(frame.filter(col("column1").bitwise_and(4).gt(0))?.collect()?.num_rows(), 2);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn bitwise_and(self, other: impl IntoValue) -> Expr {
        self.with(other, |left, right| df::binary_expr(left, df::Operator::BitwiseAnd, right))
    }

    /// The bits that one of both integers has.
    pub fn bitwise_or(self, other: impl IntoValue) -> Expr {
        self.with(other, |left, right| df::binary_expr(left, df::Operator::BitwiseOr, right))
    }

    /// The bits that one of both integers has, and not both.
    pub fn bitwise_xor(self, other: impl IntoValue) -> Expr {
        self.with(other, |left, right| df::binary_expr(left, df::Operator::BitwiseXor, right))
    }

    /// Whether one of both is true, and not both.
    pub fn xor(self, other: impl IntoValue) -> Expr {
        let other = other.into_value();
        self.not_eq(other)
    }

    /// Whether this lies between two values, or equals one of them.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = session.sql("VALUES (1), (5), (9)")?;
    /// assert_eq!(frame.filter(col("column1").between(2, 9))?.collect()?.num_rows(), 2);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn between(self, low: impl IntoValue, high: impl IntoValue) -> Expr {
        self.map(|value| value.between(low.into_value().tree, high.into_value().tree))
    }

    /// Polars' name of [`Expr::between`].
    pub fn is_between(self, low: impl IntoValue, high: impl IntoValue) -> Expr {
        self.between(low, high)
    }

    /// Whether it does not.
    pub fn not_between(self, low: impl IntoValue, high: impl IntoValue) -> Expr {
        self.map(|value| value.not_between(low.into_value().tree, high.into_value().tree))
    }

    /// Whether this equals one of these values.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = session.sql("VALUES ('a'), ('b'), ('c')")?;
    /// assert_eq!(frame.filter(col("column1").is_in(["a", "c", "x"]))?.collect()?.num_rows(), 2);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn is_in(self, values: impl IntoIterator<Item: IntoValue>) -> Expr {
        let values = values.into_iter().map(|value| value.into_value().tree).collect();
        self.map(|value| value.in_list(values, false))
    }

    /// [`Expr::is_in`] as DataFusion has it.
    pub fn in_list(self, values: Vec<Expr>, negated: bool) -> Expr {
        self.map(|value| value.in_list(values.into_iter().map(Into::into).collect(), negated))
    }

    /// The value as another type.
    ///
    /// # Errors
    /// A value that does not fit is an error when the query runs; [`Expr::try_cast`] yields null.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = session.sql("VALUES ('1'), ('2')")?.select([col("column1").cast(DataType::Int64).alias("n")])?;
    /// assert_eq!(frame.schema().field(0).data_type(), &DataType::Int64);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn cast(self, dtype: DataType) -> Expr {
        self.map(|value| df::cast(value, dtype))
    }

    /// The value as another type, null where it does not fit.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = session.sql("VALUES ('1'), ('x')")?;
    /// let kept = frame.filter(col("column1").try_cast(DataType::Int64).is_not_null())?;
    /// assert_eq!(kept.collect()?.num_rows(), 1);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn try_cast(self, dtype: DataType) -> Expr {
        self.map(|value| df::try_cast(value, dtype))
    }
}
