//! Tables in FROM that DataFusion's planner does not plan: samples, ASOF and positional joins,
//! UNNEST of the columns of tables before it, PIVOT and UNPIVOT, functions of files.
//!
//! The planner asks [`Relations`] first. Each becomes a frame whose columns have numbers for names,
//! goes through the verb of frames that does the same, and gets its names back.
//!
//! | file | what |
//! |---|---|
//! | `about_files` | `glob('*.csv')`, `parquet_metadata('f.parquet')` |
//! | `asof` | `a ASOF JOIN b ON …` |
//! | `lateral` | `t, unnest(t.l)` |
//! | `outer_names` | `LATERAL (SELECT t.i)` |
//! | `pivot` | `t PIVOT (sum(x) FOR c IN (…))`, `t UNPIVOT (v FOR n IN (…))` |
//! | `positional` | `a POSITIONAL JOIN b` |
//! | `sample` | `t TABLESAMPLE (10 PERCENT)` |

mod about_files;
mod asof;
mod lateral;
mod outer_names;
mod pivot;
mod positional;
mod sample;

use std::ops::ControlFlow;
use std::sync::{Arc, Weak};

use datafusion::common::{Column, TableReference};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::planner::{
    PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning,
};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};
use datafusion::sql::sqlparser::ast::{
    self, Join, JoinOperator, PivotValueSource, TableFactor, TableSampleKind, TableWithJoins,
    Visit, Visitor,
};

pub(super) use self::lateral::{all_empty, elements, with_an_element};
pub(super) use self::sample::is_sample;
use crate::error::Error;
use crate::frame::LazyFrame;
use crate::query::Core;
use crate::session::files::NamedFiles;

/// Plans such tables. The session's core owns it, by way of DataFusion's state.
#[derive(Debug)]
pub(super) struct Relations {
    pub(super) core: Weak<Core>,
    pub(super) files: Arc<NamedFiles>,
}

impl RelationPlanner for Relations {
    fn plan_relation(
        &self,
        factor: TableFactor,
        context: &mut dyn RelationPlannerContext,
    ) -> Result<RelationPlanning> {
        let Some(core) = self.core.upgrade() else {
            return Ok(RelationPlanning::Original(Box::new(factor)));
        };
        let planned = match factor {
            TableFactor::Table { sample: Some(_), .. }
            | TableFactor::Derived { sample: Some(_), .. } => {
                sample::planned(&core, factor, context)?
            }
            TableFactor::NestedJoin { table_with_joins, alias }
                if asof::is_one(&table_with_joins) =>
            {
                PlannedRelation::new(asof::planned(&core, *table_with_joins, context)?, alias)
            }
            TableFactor::NestedJoin { table_with_joins, alias }
                if lateral::is_one(&table_with_joins) =>
            {
                PlannedRelation::new(lateral::planned(*table_with_joins, context)?, alias)
            }
            TableFactor::Derived { lateral: true, .. } => outer_names::planned(factor, context)?,
            TableFactor::Pivot { .. } => pivot::wide(&core, factor, context)?,
            TableFactor::Unpivot { .. } => pivot::long(factor, context)?,
            TableFactor::Table { ref alias, .. } => match about_files::function(&factor) {
                Some(function) => {
                    about_files::planned(&core, &self.files, function, alias.clone())?
                }
                None => return Ok(RelationPlanning::Original(Box::new(factor))),
            },
            other => return Ok(RelationPlanning::Original(Box::new(other))),
        };
        Ok(RelationPlanning::Planned(Box::new(planned)))
    }
}

/// Makes of each join that the planner does not plan, and all that is joined before it, a table in
/// parentheses, as which the planner asks for it.
pub(super) fn nest(from: &mut Vec<TableWithJoins>) {
    lateral::join(from);
    from.iter_mut().for_each(nest_joins);
}

fn nest_joins(table: &mut TableWithJoins) {
    let is_ours = |join: &Join| {
        matches!(join.join_operator, JoinOperator::AsOf { .. }) || lateral::is_join(join)
    };
    while let Some(at) = table.joins.iter().position(is_ours) {
        let rest = table.joins.split_off(at + 1);
        let own: Vec<_> = table.joins.split_off(at);
        let before = std::mem::take(&mut table.joins);
        let relation = std::mem::replace(&mut table.relation, own[0].relation.clone());
        let both = TableWithJoins { relation: nested(relation, before), joins: own };
        table.relation = TableFactor::NestedJoin { table_with_joins: Box::new(both), alias: None };
        table.joins = rest;
    }
}

/// Tables as one, in parentheses where they are several.
fn nested(relation: TableFactor, joins: Vec<Join>) -> TableFactor {
    if joins.is_empty() {
        return relation;
    }
    let table_with_joins = Box::new(TableWithJoins { relation, joins });
    TableFactor::NestedJoin { table_with_joins, alias: None }
}

/// Whether a statement's plan is the same each time: no sample is drawn anew, and no columns are
/// made of values.
pub(super) fn is_constant(statement: &ast::Statement) -> bool {
    Visit::visit(statement, &mut Changing).is_continue()
}

/// Breaks off at a table whose plan depends on more than the text.
struct Changing;

impl Visitor for Changing {
    type Break = ();

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        let drawn = |kind: &TableSampleKind| sample::of(kind).seed.is_none();
        let changes = match factor {
            // Files change.
            factor if about_files::function(factor).is_some() => true,
            TableFactor::Table { sample, .. } | TableFactor::Derived { sample, .. } => {
                sample.as_ref().is_some_and(drawn)
            }
            TableFactor::Pivot { value_source, .. } => {
                !matches!(value_source, PivotValueSource::List(_))
            }
            _ => false,
        };
        if changes { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// Columns of a plan under numbers: names may come twice, of several tables.
struct Numbered {
    frame: LazyFrame,
    names: Vec<(Option<TableReference>, String)>,
}

impl Numbered {
    /// The columns of a plan, and further ones.
    fn of(
        core: &Arc<Core>,
        plan: LogicalPlan,
        prefix: &str,
        more: Vec<(Expr, String)>,
    ) -> Result<Numbered> {
        let schema = plan.schema().clone();
        let names =
            schema.iter().map(|(table, field)| (table.cloned(), field.name().clone())).collect();
        let columns = schema.columns().into_iter().enumerate();
        let own = columns.map(|(at, column)| Expr::Column(column).alias(format!("{prefix}{at}")));
        let exprs: Vec<Expr> =
            own.chain(more.into_iter().map(|(expr, name)| expr.alias(name))).collect();
        let plan = LogicalPlanBuilder::from(plan).project(exprs)?.build()?;
        Ok(Numbered { frame: LazyFrame::of_plan(core, plan).map_err(outside)?, names })
    }

    /// The plan of a frame, whose columns of this prefix have their names again.
    fn named(&self, prefix: &str, left_out: &[usize]) -> Vec<Expr> {
        let names = self.names.iter().enumerate().filter(|(at, _)| !left_out.contains(at));
        let name = |(at, (table, name)): (usize, &(Option<TableReference>, String))| {
            Expr::Column(Column::from_name(format!("{prefix}{at}")))
                .alias_qualified(table.clone(), name)
        };
        names.map(name).collect()
    }
}

/// The plan of a frame, with these columns.
fn plan_of(frame: &LazyFrame, columns: Vec<Expr>) -> Result<LogicalPlan> {
    let plan = frame.plan().map_err(outside)?.clone();
    LogicalPlanBuilder::from(plan).project(columns)?.build()
}

/// An error of ours within the planner.
fn outside(error: Error) -> DataFusionError {
    error.into()
}

fn refused<T>(
    message: impl Into<String>,
    at: datafusion::sql::sqlparser::tokenizer::Location,
) -> Result<T> {
    let location = (at.line > 0).then_some((at.line, at.column));
    let kind = crate::error::ErrorKind::Plan { message: message.into(), location };
    Err(outside(kind.into()))
}
