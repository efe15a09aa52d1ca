//! Values by conditions.

use datafusion::logical_expr as df;

use super::{Expr, IntoValue};

/// A condition that waits for its value; see [`when`].
#[derive(Debug, Clone)]
#[must_use = "then says the value"]
pub struct When {
    branches: Branches,
    condition: df::Expr,
}

/// Conditions with their values; see [`when`].
#[derive(Debug, Clone)]
#[must_use = "end or otherwise makes an expression of it"]
pub struct Then {
    branches: Branches,
}

/// Conditions with their values, and the first of these, whose name is that of all.
#[derive(Debug, Clone, Default)]
struct Branches {
    all: Vec<(df::Expr, df::Expr)>,
    name: Option<String>,
}

/// The value of the first condition that is true:
/// `when(a).then(x).when(b).then(y).otherwise(z)`.
///
/// ```
/// # use warpframe::prelude::*;
/// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
/// let frame = session.sql("VALUES (1), (5), (9)")?;
/// let size = when(col("column1").gt(7)).then("large").when(col("column1").gt(3)).then("middling").otherwise("small");
/// assert_eq!(frame.group_by([size.alias("size")]).agg([count_rows()])?.collect()?.num_rows(), 3);
/// # Ok::<(), warpframe::Error>(())
/// ```
pub fn when(condition: impl IntoValue) -> When {
    When { branches: Branches::default(), condition: condition.into_value().tree }
}

impl When {
    /// The value where the condition is true, and none before it.
    pub fn then(mut self, value: impl IntoValue) -> Then {
        let value = value.into_value();
        if self.branches.all.is_empty() {
            self.branches.name = value.name;
        }
        self.branches.all.push((self.condition, value.tree));
        Then { branches: self.branches }
    }
}

impl Then {
    /// Another condition.
    pub fn when(self, condition: impl IntoValue) -> When {
        When { branches: self.branches, condition: condition.into_value().tree }
    }

    /// The value where no condition is true.
    pub fn otherwise(self, value: impl IntoValue) -> Expr {
        let value = value.into_value().tree;
        self.case(Some(value))
    }

    /// Null where no condition is true.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// let positive = when(col("x").gt(0)).then(col("x")).end();
    /// ```
    pub fn end(self) -> Expr {
        self.case(None)
    }

    fn case(self, otherwise: Option<df::Expr>) -> Expr {
        let boxed =
            |(condition, value): (df::Expr, df::Expr)| (Box::new(condition), Box::new(value));
        let Branches { all, name } = self.branches;
        let branches = all.into_iter().map(boxed).collect();
        Expr { tree: df::Expr::Case(df::Case::new(None, branches, otherwise.map(Box::new))), name }
    }
}
