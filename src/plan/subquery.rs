//! Scalar subqueries that might have several rows, which is an error when they run.
//!
//! The optimizer makes joins of scalar subqueries, and a join with several rows would only yield
//! more. So such a subquery is made to have one row, and to fail where it had more:
//!
//! ```text
//!   (SELECT p FROM t WHERE i = 1)
//!   (SELECT one_row_value(first_value(p), count(*)) AS p
//!      FROM (SELECT p FROM t WHERE i = 1 LIMIT 2))
//! ```
//!
//! Of correlated ones, those that need not have one row by their form become joins before
//! (`session/rules/subqueries/dependent.rs`), by the same function.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::AsArray;
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, exec_err};
use datafusion::error::Result;
use datafusion::functions_aggregate::expr_fn::{count, first_value};
use datafusion::logical_expr::{
    ColumnarValue, Expr, LogicalPlan, LogicalPlanBuilder, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, Subquery, Volatility, lit,
};

/// The function's name, as `codegen/expr/functions/conditional.rs` has it.
const ONE_ROW_VALUE: &str = "one_row_value";
/// The column that counts the rows.
const ROWS: &str = "rows of the subquery";

/// The plan, in which uncorrelated scalar subqueries that need not have a row are nullable.
/// DataFusion (55.2) takes the value for never null where the subquery's column never is, so that
/// `(SELECT id FROM t WHERE id = 77) IS NULL` would be false without a row. SQL says null.
///
/// `joins`: they become joins. Where they stay subqueries, no rule may compute what makes a constant
/// nullable: `(SELECT 5 FROM t WHERE id = 77)` is null without a row, too, and `trim('B')`, which is
/// nullable, may become a constant.
pub(crate) fn with_nullable(plan: &LogicalPlan, joins: bool) -> Result<LogicalPlan> {
    let is_scalar = |node: &Expr| Ok(matches!(node, Expr::ScalarSubquery(_)));
    let mut concerned = false;
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            concerned |= expr.exists(is_scalar)?;
            Ok(if concerned { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })
    })?;
    if !concerned {
        return Ok(plan.clone());
    }
    let whole = plan.clone().transform_up_with_subqueries(|node| {
        let node = node.map_expressions(|expr| {
            expr.transform_up(|expr| match expr {
                Expr::ScalarSubquery(subquery)
                    if subquery.outer_ref_columns.is_empty()
                        && !(joins && subquery.subquery.schema().field(0).is_nullable())
                        && !has_a_row(&subquery.subquery) =>
                {
                    Ok(Transformed::yes(Expr::ScalarSubquery(nullable(subquery, joins)?)))
                }
                other => Ok(Transformed::no(other)),
            })
        })?;
        // What stands above is nullable where this is.
        node.map_data(LogicalPlan::recompute_schema)
    })?;
    Ok(whole.data)
}

/// Whether the plan has a row by its form.
fn has_a_row(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Projection(node) => has_a_row(&node.input),
        LogicalPlan::SubqueryAlias(node) => has_a_row(&node.input),
        LogicalPlan::Aggregate(node) => node.group_expr.is_empty(),
        LogicalPlan::EmptyRelation(node) => node.produce_one_row,
        LogicalPlan::Values(_) => true,
        _ => false,
    }
}

fn nullable(subquery: Subquery, joins: bool) -> Result<Subquery> {
    static NOT_COMPUTED: LazyLock<Arc<ScalarUDF>> =
        LazyLock::new(|| Arc::new(ScalarUDF::from(OneRowValue::new(Volatility::Volatile))));
    let (qualifier, field) = subquery.subquery.schema().qualified_field(0);
    let value = Expr::Column(Column::new(qualifier.cloned(), field.name()));
    let value = match joins {
        true => one_row_value(value, lit(1i64)),
        false => NOT_COMPUTED.call(vec![value, lit(1i64)]),
    };
    let value = value.alias_qualified(qualifier.cloned(), field.name());
    let plan = LogicalPlanBuilder::from(subquery.subquery.as_ref().clone()).project([value])?;
    Ok(Subquery { subquery: Arc::new(plan.build()?), ..subquery })
}

/// The plan, in which no uncorrelated scalar subquery can have several rows without failing.
pub(crate) fn with_one_row(plan: &LogicalPlan) -> Result<LogicalPlan> {
    let whole = plan.clone().transform_up_with_subqueries(|node| {
        node.map_expressions(|expr| {
            expr.transform_up(|expr| match expr {
                Expr::ScalarSubquery(subquery)
                    if subquery.outer_ref_columns.is_empty()
                        && subquery.subquery.max_rows().is_none_or(|rows| rows > 1) =>
                {
                    Ok(Transformed::yes(Expr::ScalarSubquery(one_row(subquery)?)))
                }
                other => Ok(Transformed::no(other)),
            })
        })
    })?;
    Ok(whole.data)
}

/// The value of the one row, null where there is none; it fails where there are more `rows`.
pub(crate) fn one_row_value(value: Expr, rows: Expr) -> Expr {
    static FUNCTION: LazyLock<Arc<ScalarUDF>> =
        LazyLock::new(|| Arc::new(ScalarUDF::from(OneRowValue::new(Volatility::Immutable))));
    FUNCTION.call(vec![value, rows])
}

fn one_row(subquery: Subquery) -> Result<Subquery> {
    let (qualifier, field) = subquery.subquery.schema().qualified_field(0);
    let value = Column::new(qualifier.cloned(), field.name());
    let name = field.name().clone();
    // An error tells this name.
    let only = value.flat_name();
    let of = |name: &str| Expr::Column(Column::new_unqualified(name));
    let plan = LogicalPlanBuilder::from(subquery.subquery.as_ref().clone())
        .limit(0, Some(2))?
        .aggregate(
            Vec::<Expr>::new(),
            [first_value(Expr::Column(value), vec![]).alias(&only), count(lit(1i64)).alias(ROWS)],
        )?
        .project([one_row_value(of(&only), of(ROWS)).alias(name)])?
        .build()?;
    Ok(Subquery { subquery: Arc::new(plan), ..subquery })
}

/// Whether a function is that of [`one_row_value`].
pub(crate) fn is_one_row(function: &ScalarUDF) -> bool {
    function.inner().downcast_ref::<OneRowValue>().is_some()
}

/// The function of a name, if it is that of [`one_row_value`].
#[cfg(feature = "proto")]
pub(crate) fn one_row_function(name: &str) -> Option<Arc<ScalarUDF>> {
    let function = || Arc::new(ScalarUDF::from(OneRowValue::new(Volatility::Immutable)));
    (name == ONE_ROW_VALUE).then(function)
}

/// `one_row_value(value, rows)`: the value of the one row, null where there is none.
#[derive(Debug, PartialEq, Eq, Hash)]
struct OneRowValue {
    signature: Signature,
}

impl OneRowValue {
    fn new(volatility: Volatility) -> Self {
        OneRowValue { signature: Signature::any(2, volatility) }
    }
}

impl ScalarUDFImpl for OneRowValue {
    fn name(&self) -> &str {
        ONE_ROW_VALUE
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types[0].clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.args[1].to_array(args.number_rows)?;
        if rows.as_primitive::<Int64Type>().iter().flatten().any(|rows| rows > 1) {
            return exec_err!("a scalar subquery yields more than one row");
        }
        Ok(args.args[0].clone())
    }
}
