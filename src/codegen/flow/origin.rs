//! Where the columns of a flow come from.

use datafusion::logical_expr::Expr;

use super::{BuildSide, Flow, FlowSource, FlowStage, Keep, Probe};
use crate::column::{Column, Relation};

/// A column of the rows behind a probe, which have the columns of both sides.
pub(crate) enum SideColumn {
    /// A column of the build side, by position.
    Build(usize),
    /// A column of the probe's side, by position.
    Probe(usize),
}

impl Probe {
    /// The side that column `at` comes from. The probe's side has `before` columns.
    pub(crate) fn column(&self, at: usize, before: usize) -> SideColumn {
        let build = self.build.columns.len();
        match self.place {
            BuildSide::Left if at < build => SideColumn::Build(at),
            BuildSide::Left => SideColumn::Probe(at - build),
            BuildSide::Right if at >= before => SideColumn::Build(at - before),
            BuildSide::Right => SideColumn::Probe(at),
        }
    }
}

impl Flow {
    /// The source's column that column `at` of what comes out is, unchanged, and the index of the
    /// source's row numbers through which it is seen. `None` if the column is computed or comes
    /// from a build side. Rows may still be lost on the way.
    pub(crate) fn origin(&self, at: usize) -> Option<(usize, Column)> {
        let at = self.source_column(at)?;
        match &self.source {
            FlowSource::Relation(relation) => Some(relation.columns[at].clone()),
            FlowSource::Groups(_) | FlowSource::EqualSteps(_) => None,
        }
    }

    /// The position of column `at` among the source's columns. `None` if the column is computed or
    /// comes from a build side.
    pub(crate) fn source_column(&self, at: usize) -> Option<usize> {
        let mut at = at;
        for (i, (step, _)) in self.steps.iter().enumerate().rev() {
            let schema = if i == 0 { &self.source_schema } else { &self.steps[i - 1].1 };
            match step {
                FlowStage::Filter(_) => {}
                FlowStage::Project(exprs) => {
                    let mut expr = &exprs[at];
                    while let Expr::Alias(alias) = expr {
                        expr = &alias.expr;
                    }
                    let Expr::Column(name) = expr else { return None };
                    at = schema.index_of_column(name).ok()?;
                }
                FlowStage::Probe(probe) => match probe.keep {
                    Keep::All | Keep::Matched => match probe.column(at, schema.fields().len()) {
                        SideColumn::Build(_) => return None,
                        SideColumn::Probe(below) => at = below,
                    },
                    Keep::Mark if at == schema.fields().len() => return None,
                    Keep::Mark | Keep::Semi | Keep::Anti | Keep::NotIn { .. } => {}
                },
            }
        }
        Some(at)
    }

    /// The relation that is the source, and in it the position of the column that an expression of
    /// the flow is, unchanged. Row numbers of the source are those of the relation.
    pub(crate) fn stored_column(&self, expr: &Expr) -> Option<(&Relation, usize)> {
        match (expr, &self.source) {
            (Expr::Alias(alias), _) => self.stored_column(&alias.expr),
            (Expr::Column(name), FlowSource::Relation(relation)) => {
                let at = self.schema().index_of_column(name).ok()?;
                Some((relation, self.source_column(at)?))
            }
            _ => None,
        }
    }

    /// Whether the rows are known to come in the order of an expression: it is a column of the
    /// source, unchanged, that ascends.
    pub(crate) fn is_in_order_of(&self, expr: &Expr) -> bool {
        self.stored_column(expr).is_some_and(|(relation, at)| {
            let (index, column) = &relation.columns[at];
            relation.indices[*index].is_none() && column.stats.ascending
        })
    }
}
