//! Columns by the rows before and after: the expressions of the same names, for whole columns.

use crate::error::Result;
use crate::frame::expr::{Columns, RankMethod, all};
use crate::frame::{AnyFrame, FrameState};

macro_rules! of_columns {
    ($($(#[$doc:meta])* $name:ident ($($argument:ident: $type:ty = $example:literal),*);)*) => {
        $($(#[$doc])*
        /// The order of the rows stays.
        ///
        /// # Errors
        /// Unknown columns ([`crate::ErrorKind::ColumnNotFound`]), types that the expression does
        /// not take.
        ///
        /// ```
        /// # use warpframe::prelude::*;
        /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
        /// let frame = session.sql("VALUES (4, 'a'), (1, 'b'), (3, 'c')")?;
        #[doc = concat!("let frame = frame.", stringify!($name), "(integers()", $(", ", $example,)* ")?;")]
        /// assert_eq!(frame.collect()?.num_rows(), 3);
        /// # Ok::<(), warpframe::Error>(())
        /// ```
        pub fn $name(&self, columns: impl Columns, $($argument: $type),*) -> Result<Self> {
            self.each(stringify!($name), columns, |column| column.$name($($argument),*))
        }
        )*
    };
}

impl<S: FrameState> AnyFrame<S> {
    /// All columns moved down by so many rows, or up by a negative number; nulls take their places.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = session.sql("VALUES (1), (2)")?.shift(1)?;
    /// assert_eq!(frame.filter(col("column1").eq(1))?.collect()?.num_rows(), 1);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn shift(&self, rows: i64) -> Result<Self> {
        self.each("shift", all(), |column| column.shift(rows))
    }

    of_columns! {
        /// These columns as what they are more than so many rows before; see [`crate::Expr::diff`].
        diff(rows: i64 = "1");
        /// These columns as what they are more than so many rows before, as a share of that; see
        /// [`crate::Expr::pct_change`].
        pct_change(rows: i64 = "1");
        /// These columns as their sums up to each row; see [`crate::Expr::cum_sum`].
        cum_sum();
        /// These columns as their least values up to each row; see [`crate::Expr::cum_min`].
        cum_min();
        /// These columns as their greatest values up to each row; see [`crate::Expr::cum_max`].
        cum_max();
        /// These columns as the numbers of their values up to each row; see
        /// [`crate::Expr::cum_count`].
        cum_count();
        /// These columns as their products up to each row; see [`crate::Expr::cum_prod`].
        cum_prod();
        /// These columns as the places of their values; see [`crate::Expr::rank`].
        rank();
        /// These columns as the places of their values, by a method; see
        /// [`crate::Expr::rank_with`].
        rank_with(method: RankMethod = "RankMethod::Min", descending: bool = "false");
    }
}
