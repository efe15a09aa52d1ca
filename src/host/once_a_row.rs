//! Values that are computed once for a row, however often an expression looks at them.
//!
//! ```text
//!   random() BETWEEN a AND b      drawn_once(random(), (v) -> v BETWEEN a AND b)
//! ```
//!
//! Rules that write `v` out twice, as two comparisons, leave what it stands for alone. No user calls
//! the function: `session/rules/volatile.rs` puts it around expressions.
//!
//! `"drawn alike"(number, value)` is one value wherever it stands with its number in an operator. It
//! is there while a statement is planned, where a function is written out as an expression in which
//! an argument stands twice.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Result, internal_err, plan_err};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, HigherOrderFunctionArgs, HigherOrderReturnFieldArgs, HigherOrderSignature,
    HigherOrderUDF, HigherOrderUDFImpl, LambdaParametersProgress, ReturnFieldArgs,
    ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, ValueOrLambda, Volatility, lit,
};

/// The name of [`drawn_once`].
pub(crate) const DRAWN_ONCE: &str = "drawn_once";
/// The name of [`drawn_alike`].
pub(crate) const DRAWN_ALIKE: &str = "drawn alike";

/// `drawn_once(value, …, (name, …) -> expression)`: the expression, in which the names are the
/// values. `nullable`: whether it may be null, which stays as it was when the rules begin, for the
/// operators above that were told so.
pub(crate) fn drawn_once(nullable: bool) -> Arc<HigherOrderUDF> {
    static SHARED: LazyLock<[Arc<HigherOrderUDF>; 2]> = LazyLock::new(|| {
        [false, true].map(|nullable| {
            let signature = HigherOrderSignature::user_defined(Volatility::Immutable);
            Arc::new(HigherOrderUDF::new_from_impl(DrawnOnce { nullable, signature }))
        })
    });
    SHARED[usize::from(nullable)].clone()
}

/// What a name in the expression is. Rules find that a value is never null where it could be
/// before, but that a name is told once.
pub(crate) fn name_of_value(name: &str, value: &DataType) -> FieldRef {
    Arc::new(Field::new(name, value.clone(), true))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct DrawnOnce {
    nullable: bool,
    signature: HigherOrderSignature,
}

impl HigherOrderUDFImpl for DrawnOnce {
    fn name(&self) -> &str {
        DRAWN_ONCE
    }

    fn signature(&self) -> &HigherOrderSignature {
        &self.signature
    }

    fn coerce_value_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        Ok(types.to_vec())
    }

    fn lambda_parameters(
        &self,
        _: usize,
        fields: &[ValueOrLambda<FieldRef, Option<FieldRef>>],
    ) -> Result<LambdaParametersProgress> {
        let value = |field: &ValueOrLambda<FieldRef, Option<FieldRef>>| match field {
            ValueOrLambda::Value(field) => Some(name_of_value(field.name(), field.data_type())),
            ValueOrLambda::Lambda(_) => None,
        };
        Ok(LambdaParametersProgress::Complete(vec![fields.iter().filter_map(value).collect()]))
    }

    fn return_field_from_args(&self, args: HigherOrderReturnFieldArgs) -> Result<FieldRef> {
        match args.arg_fields.last() {
            Some(ValueOrLambda::Lambda(made)) => {
                Ok(Arc::new(Field::new("", made.data_type().clone(), self.nullable)))
            }
            _ => plan_err!("{DRAWN_ONCE} takes values and a lambda"),
        }
    }

    fn invoke_with_args(&self, args: HigherOrderFunctionArgs) -> Result<ColumnarValue> {
        let Some((ValueOrLambda::Lambda(lambda), values)) = args.args.split_last() else {
            return internal_err!("{DRAWN_ONCE} takes values and a lambda");
        };
        let mut arrays: Vec<ArrayRef> = vec![];
        for value in values {
            match value {
                ValueOrLambda::Value(value) => arrays.push(value.to_array(args.number_rows)?),
                ValueOrLambda::Lambda(_) => return internal_err!("{DRAWN_ONCE} takes one lambda"),
            }
        }
        let given: Vec<_> = arrays.iter().map(|array| || Ok(array.clone())).collect();
        let given: Vec<&dyn Fn() -> Result<ArrayRef>> =
            given.iter().map(|array| array as &dyn Fn() -> Result<ArrayRef>).collect();
        lambda.evaluate(&given, |captured| Ok(captured.to_vec()))
    }
}

/// A number of values that are drawn alike, which no others have.
pub(crate) fn number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Relaxed)
}

/// The expression, as one value however often it stands in an operator.
pub(crate) fn alike(expr: Expr) -> Expr {
    match expr.is_volatile() {
        true => Expr::ScalarFunction(ScalarFunction {
            func: drawn_alike(),
            args: vec![lit(number()), expr],
        }),
        false => expr,
    }
}

/// `"drawn alike"(number, value)`.
pub(crate) fn drawn_alike() -> Arc<ScalarUDF> {
    static SHARED: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
        let signature = Signature::any(2, Volatility::Volatile);
        Arc::new(ScalarUDF::from(DrawnAlike { signature }))
    });
    SHARED.clone()
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct DrawnAlike {
    signature: Signature,
}

impl ScalarUDFImpl for DrawnAlike {
    fn name(&self) -> &str {
        DRAWN_ALIKE
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [_, of] => Ok(of.clone()),
            _ => plan_err!("no function named {DRAWN_ALIKE:?}"),
        }
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        match args.arg_fields {
            [_, of] => Ok(of.clone()),
            _ => plan_err!("no function named {DRAWN_ALIKE:?}"),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match args.args.as_slice() {
            [_, value] => Ok(value.clone()),
            _ => internal_err!("{DRAWN_ALIKE} takes a number and a value"),
        }
    }
}
