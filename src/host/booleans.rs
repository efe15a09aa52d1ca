//! `sum` and `avg` that take booleans, too: as 0 and 1. DataFusion's (55.2) refuse them.
//!
//! The functions here only decide which types are taken. Once the types agree,
//! [`NumbersOfBooleans`] puts DataFusion's functions in their places.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Result, plan_err};
use datafusion::functions_aggregate::average::avg_udaf;
use datafusion::functions_aggregate::sum::sum_udaf;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::type_coercion::functions::fields_with_udf;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Documentation, Expr, LogicalPlan, Signature,
    Volatility, WindowFunctionDefinition,
};
use datafusion::optimizer::AnalyzerRule;

/// `sum(x)`.
pub(crate) fn sum() -> Arc<AggregateUDF> {
    static SHARED: LazyLock<Arc<AggregateUDF>> = LazyLock::new(|| of(sum_udaf()));
    SHARED.clone()
}

/// `avg(x)`.
pub(crate) fn avg() -> Arc<AggregateUDF> {
    static SHARED: LazyLock<Arc<AggregateUDF>> = LazyLock::new(|| of(avg_udaf()));
    SHARED.clone()
}

fn of(inner: Arc<AggregateUDF>) -> Arc<AggregateUDF> {
    let signature = Signature::user_defined(Volatility::Immutable);
    Arc::new(AggregateUDF::from(OfBooleans { inner, signature }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct OfBooleans {
    /// What computes it.
    inner: Arc<AggregateUDF>,
    signature: Signature,
}

impl AggregateUDFImpl for OfBooleans {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let numbers = types.iter().map(|dtype| match dtype {
            DataType::Boolean => DataType::Int64,
            other => other.clone(),
        });
        let fields: Vec<FieldRef> =
            numbers.map(|dtype| Arc::new(Field::new("value", dtype, true))).collect();
        match fields_with_udf(&fields, self.inner.as_ref()) {
            Ok(fields) => Ok(fields.iter().map(|field| field.data_type().clone()).collect()),
            Err(_) => {
                let types: Vec<String> = types.iter().map(ToString::to_string).collect();
                let (name, types) = (self.name(), types.join(", "));
                plan_err!("{name} takes one number, boolean or duration, not ({types})")
            }
        }
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.inner.return_type(types)
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        self.inner.state_fields(args)
    }

    /// Of plans that another context runs, which has not the session's rules.
    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        self.inner.accumulator(args)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.inner.documentation()
    }
}

/// DataFusion's function in the place of one that takes booleans.
fn inner(function: &AggregateUDF) -> Option<Arc<AggregateUDF>> {
    function.inner().downcast_ref::<OfBooleans>().map(|function| function.inner.clone())
}

/// Runs behind the coercion of types.
#[derive(Debug)]
pub(crate) struct NumbersOfBooleans;

impl AnalyzerRule for NumbersOfBooleans {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let mut concerned = false;
        plan.apply_with_subqueries(|node| {
            node.apply_expressions(|expr| {
                concerned |= expr.exists(|node| Ok(plain(node).is_some()))?;
                Ok(if concerned { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
            })
        })?;
        if !concerned {
            return Ok(plan);
        }
        // Names and types stay, so that the schemas of operators do.
        let all = plan.transform_up_with_subqueries(|node| {
            node.map_expressions(|expr| {
                expr.transform_up(|node| match plain(&node) {
                    Some(function) => Ok(Transformed::yes(with_function(node, function))),
                    None => Ok(Transformed::no(node)),
                })
            })
        })?;
        Ok(all.data)
    }

    fn name(&self) -> &str {
        "numbers_of_booleans"
    }
}

fn plain(node: &Expr) -> Option<Arc<AggregateUDF>> {
    match node {
        Expr::AggregateFunction(call) => inner(&call.func),
        Expr::WindowFunction(call) => match &call.fun {
            WindowFunctionDefinition::AggregateUDF(function) => inner(function),
            WindowFunctionDefinition::WindowUDF(_) => None,
        },
        _ => None,
    }
}

fn with_function(node: Expr, function: Arc<AggregateUDF>) -> Expr {
    match node {
        Expr::AggregateFunction(mut call) => {
            call.func = function;
            Expr::AggregateFunction(call)
        }
        Expr::WindowFunction(mut call) => {
            call.fun = WindowFunctionDefinition::AggregateUDF(function);
            Expr::WindowFunction(call)
        }
        other => other,
    }
}
