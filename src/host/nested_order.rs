//! Comparisons of lists and structs in which nulls within are greatest, as ORDER BY and DuckDB have
//! them.
//!
//! ```text
//!   [1, 3] < [NULL, 2]     {'a': 1} < {'a': NULL}
//! ```
//!
//! DataFusion (55.2) has them as the least (`apply_cmp_for_nested`), while its `max` of lists and
//! its ORDER BY have not. A list or struct that is null itself compares to null.

use std::cmp::Ordering;
use std::sync::Arc;

use datafusion::arrow::array::{Array, BooleanArray, make_comparator};
use datafusion::arrow::buffer::{BooleanBuffer, NullBuffer};
use datafusion::arrow::compute::SortOptions;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{ScalarValue, exec_err, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Expr, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility, when,
};

/// A comparison, as a function of its sides.
#[derive(Debug, PartialEq, Eq, Hash)]
struct NestedOrder {
    op: Operator,
    signature: Signature,
}

/// Whether an operator is one of those.
pub(super) fn is_order(op: Operator) -> bool {
    matches!(op, Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq)
}

/// `left op right` of lists or structs.
pub(super) fn nested_order(left: Expr, op: Operator, right: Expr) -> Expr {
    let signature = Signature::any(2, Volatility::Immutable);
    ScalarUDF::from(NestedOrder { op, signature }).call(vec![left, right])
}

/// The comparison that a function is, if it is one.
pub(super) fn plain(call: ScalarFunction) -> Result<BinaryExpr, ScalarFunction> {
    let Some(NestedOrder { op, .. }) = call.func.inner().downcast_ref() else { return Err(call) };
    let op = *op;
    match <[Expr; 2]>::try_from(call.args) {
        Ok([left, right]) => Ok(BinaryExpr::new(Box::new(left), op, Box::new(right))),
        Err(args) => Err(ScalarFunction { func: call.func, args }),
    }
}

/// The argument that no other is ahead of by `op`, of those that are not null.
pub(super) fn extreme(op: Operator, arguments: Vec<Expr>) -> Result<Option<Expr>> {
    let mut best: Option<Expr> = None;
    for other in arguments {
        let Some(so_far) = best else {
            best = Some(other);
            continue;
        };
        let stays = nested_order(so_far.clone(), op, other.clone());
        let chosen = when(so_far.clone().is_null(), other.clone())
            .when(other.clone().is_null().or(stays), so_far)
            .otherwise(other)?;
        best = Some(chosen);
    }
    Ok(best)
}

impl ScalarUDFImpl for NestedOrder {
    fn name(&self) -> &str {
        match self.op {
            Operator::Lt => "nested_less",
            Operator::LtEq => "nested_less_equal",
            Operator::Gt => "nested_greater",
            _ => "nested_greater_equal",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [_, _] => Ok(DataType::Boolean),
            _ => plan_err!("{} takes two values", self.name()),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let constant = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let [left, right] = &arrays[..] else {
            return exec_err!("{} takes two values", self.name());
        };
        let nulls_last = SortOptions { descending: false, nulls_first: false };
        let order = make_comparator(left, right, nulls_last)?;
        let holds = |at| match (self.op, order(at, at)) {
            (Operator::Lt, order) => order == Ordering::Less,
            (Operator::LtEq, order) => order != Ordering::Greater,
            (Operator::Gt, order) => order == Ordering::Greater,
            (_, order) => order != Ordering::Less,
        };
        let nulls = NullBuffer::union(left.nulls(), right.nulls());
        let compared = BooleanArray::new(BooleanBuffer::collect_bool(left.len(), holds), nulls);
        Ok(match constant {
            true => ColumnarValue::Scalar(ScalarValue::try_from_array(&compared, 0)?),
            false => ColumnarValue::Array(Arc::new(compared)),
        })
    }
}
