//! What statements say of a table's columns besides their types: `NOT NULL`, `DEFAULT`, `PRIMARY
//! KEY`, `UNIQUE`, `CHECK`. `INSERT`, `UPDATE`, `COPY … FROM`, `ALTER TABLE` and `Session::append`
//! keep them: a statement that breaks one fails, and changes nothing (`checks.rs`).
//!
//! Expressions are kept as they were parsed, and planned anew by each statement.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    ColumnOption, ColumnOptionDef, Expr, IndexColumn, NullsDistinctOption, TableConstraint, Visit,
    VisitMut, Visitor, VisitorMut,
};

use crate::error::{Error, Result};
use crate::sql::ast::folded;
use crate::sql::quoted_name;

/// What is said of a table, by the names of its columns.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Constraints {
    /// Columns that are `NOT NULL`, besides those of the primary key.
    required: Vec<String>,
    /// Columns with what they are where nothing else is said.
    pub(super) defaults: Vec<(String, Expr)>,
    pub(super) keys: Vec<UniqueColumns>,
    /// Conditions that no row makes false.
    pub(super) checks: Vec<Expr>,
}

/// Columns whose values together are in one row at most.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct UniqueColumns {
    pub(super) columns: Vec<String>,
    pub(super) is_primary: bool,
}

impl UniqueColumns {
    pub(super) fn text(&self) -> String {
        let columns: Vec<String> = self.columns.iter().map(|name| quoted_name(name)).collect();
        let kind = if self.is_primary { "PRIMARY KEY" } else { "UNIQUE" };
        format!("{kind} ({})", columns.join(", "))
    }
}

const NOBODY_LOOKS: &str = "no part of the engine would look at it";

impl Constraints {
    /// Adds what stands behind a column's type.
    ///
    /// # Errors
    /// Options that no statement would keep.
    pub(super) fn add_options(&mut self, column: &str, options: &[ColumnOptionDef]) -> Result<()> {
        for ColumnOptionDef { option, .. } in options {
            let own = || vec![column.to_string()];
            match option {
                ColumnOption::Null => {}
                ColumnOption::NotNull => self.require(column),
                ColumnOption::Default(expr) => self.set_default(column, Some(expr.clone())),
                ColumnOption::Unique(of)
                    if of.characteristics.is_none() && is_plain(of.nulls_distinct) =>
                {
                    self.keys.push(UniqueColumns { columns: own(), is_primary: false });
                }
                ColumnOption::PrimaryKey(of) if of.characteristics.is_none() => {
                    self.keys.push(UniqueColumns { columns: own(), is_primary: true });
                }
                ColumnOption::Check(check) if check.enforced.is_none() => {
                    self.checks.push((*check.expr).clone());
                }
                other => {
                    let what = format!("{other} of column {column:?}");
                    return Err(Error::unsupported(what, NOBODY_LOOKS));
                }
            }
        }
        Ok(())
    }

    /// Adds what stands behind the columns, or behind ADD.
    ///
    /// # Errors
    /// Constraints that no statement would keep.
    pub(super) fn add(&mut self, constraint: &TableConstraint) -> Result<()> {
        let refused = || Err(Error::unsupported(constraint.to_string(), NOBODY_LOOKS));
        let (columns, is_primary) = match constraint {
            TableConstraint::Unique(of)
                if of.index_type.is_none()
                    && of.index_options.is_empty()
                    && of.characteristics.is_none()
                    && is_plain(of.nulls_distinct) =>
            {
                (&of.columns, false)
            }
            TableConstraint::PrimaryKey(of)
                if of.index_type.is_none()
                    && of.index_options.is_empty()
                    && of.characteristics.is_none() =>
            {
                (&of.columns, true)
            }
            TableConstraint::Check(check) if check.enforced.is_none() => {
                self.checks.push((*check.expr).clone());
                return Ok(());
            }
            _ => return refused(),
        };
        let column = |of: &IndexColumn| match (&of.column.expr, &of.column.options) {
            (Expr::Identifier(name), options)
                if options.asc.is_none() && options.nulls_first.is_none() =>
            {
                Some(folded(name))
            }
            _ => None,
        };
        let Some(columns) = columns.iter().map(column).collect::<Option<Vec<_>>>() else {
            return refused();
        };
        self.keys.push(UniqueColumns { columns, is_primary });
        Ok(())
    }

    pub(super) fn require(&mut self, column: &str) {
        if !self.required.iter().any(|known| known == column) {
            self.required.push(column.into());
        }
    }

    pub(super) fn no_longer_require(&mut self, column: &str) {
        self.required.retain(|known| known != column);
    }

    /// What a column is where nothing else is said; nothing: NULL.
    pub(super) fn set_default(&mut self, column: &str, value: Option<Expr>) {
        self.defaults.retain(|(known, _)| known != column);
        self.defaults.extend(value.map(|value| (column.to_string(), value)));
    }

    pub(super) fn default_of(&self, column: &str) -> Option<&Expr> {
        self.defaults.iter().find(|(known, _)| known == column).map(|(_, value)| value)
    }

    pub(super) fn is_empty(&self) -> bool {
        *self == Constraints::default()
    }

    /// The columns of the primary key.
    pub(super) fn primary(&self) -> &[String] {
        match self.keys.iter().find(|key| key.is_primary) {
            Some(key) => &key.columns,
            None => &[],
        }
    }

    /// Columns that are never null.
    pub(super) fn never_null(&self) -> impl Iterator<Item = &String> {
        let own = self.required.iter().filter(|name| !self.primary().contains(name));
        own.chain(self.primary())
    }

    /// A key or a condition in which a column is, as it is written.
    pub(super) fn depends_on(&self, column: &str) -> Option<String> {
        let key = self.keys.iter().find(|key| key.columns.iter().any(|known| known == column));
        key.map(UniqueColumns::text).or_else(|| self.check_of(column))
    }

    /// A condition that has a column, as it is written.
    pub(super) fn check_of(&self, column: &str) -> Option<String> {
        let has = |check: &&Expr| ColumnNames::of(check).iter().any(|name| name == column);
        self.checks.iter().find(has).map(|check| format!("CHECK ({check})"))
    }

    /// Has what is said of a column be of one of another name. No condition is of it.
    pub(super) fn rename(&mut self, column: &str, to: &str) {
        let own = self.required.iter_mut().chain(self.defaults.iter_mut().map(|(name, _)| name));
        for name in own.chain(self.keys.iter_mut().flat_map(|key| &mut key.columns)) {
            if name == column {
                *name = to.into();
            }
        }
    }

    /// Forgets a column, of which there is neither a key nor a condition.
    pub(super) fn forget(&mut self, column: &str) {
        self.no_longer_require(column);
        self.set_default(column, None);
    }

    /// Takes the table's name away from before those of columns: it may get another.
    pub(super) fn take_table(&mut self, table: &str) {
        for check in &mut self.checks {
            let ControlFlow::Continue(()) = VisitMut::visit(check, &mut OfTable(table));
        }
    }

    /// What stands behind a column's type in CREATE TABLE.
    pub(super) fn text_of_column(&self, column: &str) -> String {
        let required = self.required.iter().any(|known| known == column);
        let required = if required { " NOT NULL" } else { "" };
        let default = self.default_of(column).map(|value| format!(" DEFAULT {value}"));
        format!("{required}{}", default.unwrap_or_default())
    }

    /// What stands behind the columns in CREATE TABLE.
    pub(super) fn texts(&self) -> Vec<String> {
        let checks = self.checks.iter().map(|check| format!("CHECK ({check})"));
        self.keys.iter().map(UniqueColumns::text).chain(checks).collect()
    }

    /// The statements that say all of this of a table.
    pub(super) fn statements(&self, table: &str) -> Vec<String> {
        let of_column = |column: &str, what: String| {
            format!("ALTER TABLE {table} ALTER COLUMN {} SET {what};\n", quoted_name(column))
        };
        let required = self.required.iter().map(|name| of_column(name, "NOT NULL".into()));
        let defaults =
            self.defaults.iter().map(|(name, value)| of_column(name, format!("DEFAULT {value}")));
        let more =
            self.texts().into_iter().map(|text| format!("ALTER TABLE {table} ADD {text};\n"));
        required.chain(defaults).chain(more).collect()
    }
}

fn is_plain(nulls: NullsDistinctOption) -> bool {
    matches!(nulls, NullsDistinctOption::None | NullsDistinctOption::Distinct)
}

/// Takes a table's name away from before those of columns.
struct OfTable<'t>(&'t str);

impl VisitorMut for OfTable<'_> {
    type Break = std::convert::Infallible;

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Self::Break> {
        if let Expr::CompoundIdentifier(names) = expr
            && names.first().is_some_and(|name| folded(name) == self.0)
        {
            names.remove(0);
            if let [name] = &names[..] {
                *expr = Expr::Identifier(name.clone());
            }
        }
        ControlFlow::Continue(())
    }
}

/// Names of columns in an expression, in lower case unless they are quoted.
#[derive(Default)]
struct ColumnNames(Vec<String>);

impl Visitor for ColumnNames {
    type Break = std::convert::Infallible;

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<Self::Break> {
        match expr {
            Expr::Identifier(name) => self.0.push(folded(name)),
            Expr::CompoundIdentifier(names) => self.0.extend(names.iter().map(folded)),
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

impl ColumnNames {
    fn of(expr: &Expr) -> Vec<String> {
        let mut names = ColumnNames::default();
        let ControlFlow::Continue(()) = expr.visit(&mut names);
        names.0
    }
}
