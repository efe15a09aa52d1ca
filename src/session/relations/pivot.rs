//! `PIVOT`: a column for each value; `UNPIVOT`: a row for each column.
//!
//! Without a list of values (`IN (ANY)`, which the statement without `IN` means) the query runs to
//! learn which there are: they come in order, NULL left out. Rows are grouped by the columns of
//! GROUP BY, or by all that neither the values nor the aggregates are of.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, ScalarValue};
use datafusion::error::Result;
use datafusion::logical_expr::planner::{PlannedRelation, RelationPlannerContext};
use datafusion::logical_expr::utils::find_aggregate_exprs;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, cast, lit};
use datafusion::sql::sqlparser::ast::{
    Expr as Sql, ExprWithAlias, FunctionArg, FunctionArgExpr, FunctionArguments, NullInclusion,
    PivotValueSource, Spanned, TableFactor,
};

use super::{outside, refused};
use crate::frame::LazyFrame;
use crate::frame::expr::col;
use crate::query::Core;
use crate::session::syntax::{ALL_BUT, GROUPS, is_mark};

/// Most columns that values become.
const MOST: usize = 10_000;

/// `table PIVOT (aggregate [AS name], … FOR column IN (value, …))`.
pub(super) fn wide(
    core: &Arc<Core>,
    factor: TableFactor,
    context: &mut dyn RelationPlannerContext,
) -> Result<PlannedRelation> {
    let place = factor.span().start;
    let TableFactor::Pivot {
        table,
        aggregate_functions,
        value_column,
        value_source,
        default_on_null,
        alias,
    } = factor
    else {
        return refused("no PIVOT", place);
    };
    let input = context.plan(*table)?;
    let schema = input.schema().clone();
    let on = value_column
        .into_iter()
        .map(|expr| context.sql_to_expr(expr, &schema))
        .collect::<Result<Vec<_>>>()?;
    let mut aggregates = vec![];
    for ExprWithAlias { expr, alias } in aggregate_functions {
        let (text, at) = (expr.to_string(), expr.span().start);
        let expr = context.sql_to_expr(expr, &schema)?;
        if find_aggregate_exprs([&expr]).is_empty() {
            return refused(format!("PIVOT: {text} is no aggregate"), at);
        }
        aggregates.push((expr, alias.map(|alias| context.normalize_ident(alias)), text));
    }
    let groups = match default_on_null {
        None => others(&schema, on.iter().chain(aggregates.iter().map(|(expr, ..)| expr)))?,
        Some(marker) => match arguments(&marker, GROUPS) {
            Some(groups) => groups
                .into_iter()
                .map(|expr| context.sql_to_expr(expr, &schema))
                .collect::<Result<_>>()?,
            None => {
                return refused(
                    "PIVOT … DEFAULT ON NULL: write coalesce where the columns are read",
                    place,
                );
            }
        },
    };
    let values = match value_source {
        PivotValueSource::List(list) => listed(list, &on, &schema, context)?,
        PivotValueSource::Any(_) => found(core, &input, &on)?,
        PivotValueSource::Subquery(query) => {
            return refused(format!("PIVOT … IN ({query}): list the values"), place);
        }
    };
    if values.is_empty() {
        return refused("PIVOT: there are no values to make columns of", place);
    }

    let (mut computed, mut columns): (Vec<Expr>, Vec<Expr>) = (vec![], vec![]);
    columns.extend(
        groups.iter().map(|group| Expr::Column(Column::from_name(group.schema_name().to_string()))),
    );
    for (value, title) in &values {
        let is_it = on.iter().zip(value).map(|(on, value)| match value {
            Expr::Literal(value, _) if value.is_null() => on.clone().is_null(),
            value => on.clone().eq(value.clone()),
        });
        let Some(is_it) = is_it.reduce(Expr::and) else { continue };
        for (aggregate, name, text) in &aggregates {
            let filtered = with_filter(aggregate.clone(), &is_it)?;
            computed.extend(find_aggregate_exprs([&filtered]));
            let title = match (name, aggregates.len()) {
                (Some(name), _) => format!("{title}_{name}"),
                (None, 1) => title.clone(),
                (None, _) => format!("{title}_{text}"),
            };
            columns.push(of_results(filtered)?.alias(title));
        }
    }
    computed.dedup();
    // Groups are found by their names behind the aggregation, where a column keeps its table's.
    for (column, group) in columns.iter_mut().zip(&groups) {
        *column = match group {
            Expr::Column(own) => Expr::Column(own.clone()).alias(own.name.clone()),
            other => Expr::Column(Column::from_name(other.schema_name().to_string())),
        };
    }
    let plan =
        LogicalPlanBuilder::from(input).aggregate(groups, computed)?.project(columns)?.build()?;
    Ok(PlannedRelation::new(plan, alias))
}

/// The aggregates of an expression over those rows for which a condition holds.
fn with_filter(expr: Expr, condition: &Expr) -> Result<Expr> {
    let filtered = expr.transform_up(|node| {
        Ok(match node {
            Expr::AggregateFunction(mut call) => {
                call.params.filter = Some(Box::new(match call.params.filter.take() {
                    Some(own) => own.and(condition.clone()),
                    None => condition.clone(),
                }));
                Transformed::yes(Expr::AggregateFunction(call))
            }
            other => Transformed::no(other),
        })
    })?;
    Ok(filtered.data)
}

/// An expression over the results of its aggregates.
fn of_results(expr: Expr) -> Result<Expr> {
    let over = expr.transform_down(|node| {
        Ok(match node {
            Expr::AggregateFunction(_) => {
                let name = node.schema_name().to_string();
                Transformed::new(
                    Expr::Column(Column::from_name(name)),
                    true,
                    TreeNodeRecursion::Jump,
                )
            }
            other => Transformed::no(other),
        })
    })?;
    Ok(over.data)
}

/// The columns that none of these expressions is of.
fn others<'a>(schema: &DFSchema, used: impl Iterator<Item = &'a Expr>) -> Result<Vec<Expr>> {
    let mut columns = vec![];
    for expr in used {
        columns.extend(expr.column_refs().into_iter().cloned());
    }
    let of_none = |column: &Column| !columns.contains(column);
    Ok(schema.columns().into_iter().filter(of_none).map(Expr::Column).collect())
}

/// The values of a column's, or of several columns', and what their column is called.
type Values = Vec<(Vec<Expr>, String)>;

fn listed(
    list: Vec<ExprWithAlias>,
    on: &[Expr],
    schema: &DFSchema,
    context: &mut dyn RelationPlannerContext,
) -> Result<Values> {
    let mut values = vec![];
    for ExprWithAlias { expr, alias } in list {
        let at = expr.span().start;
        let (parts, text) = match expr {
            Sql::Tuple(parts) => {
                let texts: Vec<String> = parts.iter().map(shown).collect();
                (parts, texts.join("_"))
            }
            one => {
                let text = shown(&one);
                (vec![one], text)
            }
        };
        if parts.len() != on.len() {
            return refused(format!("PIVOT: {} for {} columns", parts.len(), on.len()), at);
        }
        let title = alias.map_or(text, |alias| context.normalize_ident(alias));
        let parts = parts
            .into_iter()
            .map(|part| context.sql_to_expr(part, schema))
            .collect::<Result<Vec<_>>>()?;
        if let Some(other) = parts.iter().find(|part| !part.column_refs().is_empty()) {
            return refused(format!("PIVOT: {other} is a column; values are constants"), at);
        }
        values.push((parts, title));
    }
    Ok(values)
}

/// A value as a column is called.
fn shown(value: &Sql) -> String {
    match value {
        Sql::Value(value) => match value.value.clone().into_string() {
            Some(text) => text,
            None => value.value.to_string(),
        },
        other => other.to_string(),
    }
}

/// The values that there are: of several columns all combinations of theirs.
fn found(core: &Arc<Core>, input: &LogicalPlan, on: &[Expr]) -> Result<Values> {
    let mut all: Values = vec![(vec![], String::new())];
    for expr in on {
        let plan = LogicalPlanBuilder::from(input.clone())
            .project([expr.clone().alias("value")])?
            .build()?;
        let values = distinct(core, plan).map_err(outside)?;
        if all.len().saturating_mul(values.len()) > MOST {
            let what = format!("PIVOT of more than {MOST} values");
            return Err(outside(crate::Error::unsupported(what, "each would become a column")));
        }
        all = all
            .iter()
            .flat_map(|(before, title)| {
                values.iter().map(move |(value, text)| {
                    let mut parts = before.clone();
                    parts.push(lit(value.clone()));
                    let title =
                        if title.is_empty() { text.clone() } else { format!("{title}_{text}") };
                    (parts, title)
                })
            })
            .collect();
    }
    Ok(all)
}

fn distinct(core: &Arc<Core>, plan: LogicalPlan) -> crate::Result<Vec<(ScalarValue, String)>> {
    let frame = LazyFrame::of_plan(core, plan)?.filter(col("value").is_not_null())?;
    let frame = frame.group_by(["value"]).agg([crate::frame::expr::count_rows().alias("rows")])?;
    let found = frame.sort(["value"])?.select(["value"])?.limit(0, MOST + 1)?.collect()?;
    let mut values = vec![];
    for batch in found.to_arrow()? {
        for row in 0..batch.num_rows() {
            let text =
                datafusion::arrow::util::display::array_value_to_string(batch.column(0), row)?;
            values.push((ScalarValue::try_from_array(batch.column(0), row)?, text));
        }
    }
    Ok(values)
}

/// The arguments of a call that stands for something else.
fn arguments(expr: &Sql, name: &str) -> Option<Vec<Sql>> {
    let Sql::Function(function) = expr else { return None };
    let is_it = matches!(&function.name.0[..], [part] if part.as_ident().is_some_and(|ident| is_mark(ident, name)));
    let FunctionArguments::List(list) = &function.args else { return None };
    let exprs = list.args.iter().map(|argument| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr.clone()),
        _ => None,
    });
    exprs.collect::<Option<Vec<_>>>().filter(|_| is_it)
}

/// `table UNPIVOT [INCLUDE NULLS] (value FOR name IN (column, …))`.
pub(super) fn long(
    factor: TableFactor,
    context: &mut dyn RelationPlannerContext,
) -> Result<PlannedRelation> {
    let place = factor.span().start;
    let TableFactor::Unpivot { table, value, name, columns, null_inclusion, alias } = factor else {
        return refused("no UNPIVOT", place);
    };
    let Sql::Identifier(value) = value else {
        return refused("UNPIVOT: the values get one column", place);
    };
    let (value, name) = (context.normalize_ident(value), context.normalize_ident(name));
    let input = context.plan(*table)?;
    let schema = input.schema().clone();
    let mut chosen: Vec<(Expr, String)> = vec![];
    for ExprWithAlias { expr, alias } in columns {
        if let Some(but) = arguments(&expr, ALL_BUT) {
            let but = but
                .into_iter()
                .map(|expr| context.sql_to_expr(expr, &schema))
                .collect::<Result<Vec<_>>>()?;
            let all = schema
                .columns()
                .into_iter()
                .map(|column| (Expr::Column(column.clone()), column.name));
            chosen.extend(all.filter(|(column, _)| !but.contains(column)));
            continue;
        }
        let at = expr.span().start;
        let expr = context.sql_to_expr(expr, &schema)?;
        let Expr::Column(column) = &expr else {
            return refused(format!("UNPIVOT: {expr} is no column"), at);
        };
        let called = alias.map_or(column.name.clone(), |alias| context.normalize_ident(alias));
        chosen.push((expr, called));
    }
    let left = others(&schema, chosen.iter().map(|(expr, _)| expr))?;
    let mut common = None;
    for (expr, called) in &chosen {
        let own = expr.get_type(&schema)?;
        common = match common {
            None => Some(own),
            Some(before) => {
                let both = datafusion::logical_expr::type_coercion::binary::comparison_coercion(
                    &before, &own,
                );
                let Some(both) = both else {
                    return refused(
                        format!("UNPIVOT: {called} is {own}, and columns before it {before}"),
                        place,
                    );
                };
                Some(both)
            }
        };
    }
    let Some(common) = common else {
        return refused("UNPIVOT: there are no columns to make rows of", place);
    };
    let mut plan: Option<LogicalPlanBuilder> = None;
    for (expr, called) in chosen {
        let own = [lit(called).alias(&name), cast(expr, common.clone()).alias(&value)];
        let kept = left.iter().map(|column| match column {
            Expr::Column(own) => column.clone().alias(&own.name),
            other => other.clone(),
        });
        let part = LogicalPlanBuilder::from(input.clone())
            .project(kept.chain(own).collect::<Vec<_>>())?
            .build()?;
        plan = Some(match plan {
            None => LogicalPlanBuilder::from(part),
            Some(before) => before.union(part)?,
        });
    }
    let Some(plan) = plan else {
        return refused("UNPIVOT: there are no columns to make rows of", place);
    };
    let plan = match null_inclusion {
        Some(NullInclusion::IncludeNulls) => plan.build()?,
        _ => {
            let value = Expr::Column(Column::from_name(value));
            plan.filter(value.is_not_null())?.build()?
        }
    };
    Ok(PlannedRelation::new(plan, alias))
}
