//! Columns of set operations, whose types in all parts are those of which one value is chosen
//! (`comparisons.rs`).
//!
//! ```text
//!   d UNION ALL ts      timestamps; DataFusion's planner (55.2) makes them nanoseconds
//!   m UNION ALL x       doubles, for a decimal m and a double x
//!   m EXCEPT x          doubles, too: the planner joins both parts, and yields what the first has
//! ```

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, Fields};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, DFSchema, JoinType, NullEquality};
use datafusion::error::Result;
use datafusion::logical_expr::logical_plan::Join;
use datafusion::logical_expr::type_coercion::binary::type_union_coercion;
use datafusion::logical_expr::{
    Distinct, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Union, cast,
};
use datafusion::optimizer::AnalyzerRule;

use super::comparisons::{self, agree};
use super::numbers::decimal_of;

#[derive(Debug)]
pub(super) struct AgreedTypes;

impl AnalyzerRule for AgreedTypes {
    fn name(&self) -> &str {
        "agreed_types"
    }

    /// What is compared above a set operation sees the types that it yields, and the other way
    /// round.
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let agreed = plan.transform_up_with_subqueries(|node| match node {
            LogicalPlan::Union(union) => of_union(union),
            LogicalPlan::Join(join) if is_set(&join) => {
                Ok(of_join(join)?.update_data(LogicalPlan::Join))
            }
            node => comparisons::of_node(node),
        })?;
        Ok(agreed.data)
    }
}

/// The parts of a union with their types made to agree.
fn of_union(mut union: Union) -> Result<Transformed<LogicalPlan>> {
    if let Some(types) = agreed(&union.inputs)? {
        for (input, types) in union.inputs.iter_mut().zip(types) {
            *input = with_types(input, &types)?;
        }
    }
    // What a union within yields may be another type now.
    let own = union.schema;
    let union = Union::try_new_with_loose_types(union.inputs)?;
    let changed = own.fields() != union.schema.fields();
    Ok(Transformed::new_transformed(LogicalPlan::Union(union), changed))
}

/// Whether a join stands for INTERSECT or EXCEPT. The planner gives no other join this equality of
/// nulls.
fn is_set(join: &Join) -> bool {
    matches!(join.join_type, JoinType::LeftSemi | JoinType::LeftAnti)
        && join.null_equality == NullEquality::NullEqualsNull
        && join.filter.is_none()
        && join.on.len() == join.left.schema().fields().len()
        && join.on.len() == join.right.schema().fields().len()
}

/// Such a join with types of both sides made to agree.
pub(super) fn of_join(join: Join) -> Result<Transformed<Join>> {
    let sides = [join.left.clone(), join.right.clone()];
    let own = |side: usize, at: usize| sides[side].schema().field(at).data_type().clone();
    let mut types = match agreed(&sides)? {
        Some(types) => types,
        None => [0, 1].map(|side| (0..join.on.len()).map(|at| own(side, at)).collect()).into(),
    };
    let is_plain = |dtype: &DataType| dtype.is_numeric() || dtype.is_temporal() || dtype.is_null();
    for at in 0..join.on.len() {
        let (left, right) = (&types[0][at], &types[1][at]);
        // Texts in several forms are compared as they are, and so are nested values.
        if (is_plain(left) && (is_plain(right) || right.is_string())
            || left.is_string() && is_plain(right))
            && let Some(common) = type_union_coercion(left, right)
        {
            types.iter_mut().for_each(|types| types[at] = common.clone());
        }
    }
    let differs = |side: usize| (0..join.on.len()).any(|at| types[side][at] != own(side, at));
    if !differs(0) && !differs(1) {
        return Ok(Transformed::no(join));
    }
    let (left, right) = (with_types(&sides[0], &types[0])?, with_types(&sides[1], &types[1])?);
    let columns = |side: &LogicalPlan| side.schema().columns().into_iter().map(Expr::Column);
    let on = columns(&left).zip(columns(&right)).collect();
    let Join { filter, join_type, join_constraint, null_equality, null_aware, .. } = join;
    let join = Join::try_new(
        left,
        right,
        on,
        filter,
        join_type,
        join_constraint,
        null_equality,
        null_aware,
    )?;
    Ok(Transformed::yes(join))
}

/// The types of each part's columns; `None` where they stay as they are.
fn agreed(parts: &[Arc<LogicalPlan>]) -> Result<Option<Vec<Vec<DataType>>>> {
    let own = |part: &Arc<LogicalPlan>| -> Vec<DataType> {
        part.schema().fields().iter().map(|field| field.data_type().clone()).collect()
    };
    let mut types: Vec<Vec<DataType>> = parts.iter().map(own).collect();
    let columns = types.iter().map(Vec::len).min().unwrap_or_default();
    let mut changed = false;
    for at in 0..columns {
        if types.iter().all(|of| of[at] == types[0][at]) {
            continue;
        }
        let name = |part: usize| format!("part {part}");
        let field = |(part, types): (usize, &Vec<DataType>)| {
            Field::new(name(part), types[at].clone(), true)
        };
        let fields: Fields = types.iter().enumerate().map(field).collect();
        let schema = DFSchema::from_unqualified_fields(fields, HashMap::new())?;
        let value = |(part, plan): (usize, &Arc<LogicalPlan>)| {
            literal(plan, at).unwrap_or_else(|| Expr::Column(Column::new_unqualified(name(part))))
        };
        let mut values: Vec<Expr> = parts.iter().enumerate().map(value).collect();
        if agree(values.iter_mut().collect(), &schema, false)? {
            changed = true;
            for (types, value) in types.iter_mut().zip(&values) {
                types[at] = value.get_type(&schema)?;
            }
        }
    }
    Ok(changed.then_some(types))
}

/// The number with a point that a column is in all rows, which agrees as the decimal that it says.
fn literal(plan: &LogicalPlan, at: usize) -> Option<Expr> {
    let LogicalPlan::Projection(projection) = plan else { return None };
    let value = projection.expr.get(at)?.clone().unalias();
    decimal_of(&value).map(|_| value)
}

/// A part whose columns have these types, cast below a DISTINCT.
fn with_types(part: &Arc<LogicalPlan>, types: &[DataType]) -> Result<Arc<LogicalPlan>> {
    if part.schema().fields().iter().zip(types).all(|(field, dtype)| field.data_type() == dtype) {
        return Ok(part.clone());
    }
    if let LogicalPlan::Distinct(Distinct::All(rows)) = part.as_ref() {
        return Ok(Arc::new(LogicalPlan::Distinct(Distinct::All(with_types(rows, types)?))));
    }
    let schema = part.schema().clone();
    let columns = schema.columns().into_iter().zip(schema.fields()).zip(types);
    let columns = columns.map(|((column, field), dtype)| {
        let (relation, name) = (column.relation.clone(), column.name.clone());
        match field.data_type() == dtype {
            true => Expr::Column(column),
            false => cast(Expr::Column(column), dtype.clone()).alias_qualified(relation, name),
        }
    });
    let columns: Vec<Expr> = columns.collect();
    Ok(Arc::new(LogicalPlanBuilder::from(part.clone()).project(columns)?.build()?))
}
