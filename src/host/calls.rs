//! What calls of the host's scalar functions have in common.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

/// A call's arguments as arrays of as many rows as it has. A call of constants alone has one row,
/// and yields a constant.
pub(crate) struct HostCall {
    pub(crate) arrays: Vec<ArrayRef>,
    pub(crate) rows: usize,
    is_constant: bool,
}

impl HostCall {
    pub(super) fn of(args: &ScalarFunctionArgs) -> Result<HostCall> {
        let is_constant = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let rows = if is_constant { 1 } else { args.number_rows };
        let arrays = args.args.iter().map(|arg| arg.to_array(rows)).collect::<Result<Vec<_>>>()?;
        Ok(HostCall { arrays, rows, is_constant })
    }

    /// What the call yields, of a value for each of its rows.
    pub(super) fn yields(&self, found: ArrayRef) -> Result<ColumnarValue> {
        match self.is_constant {
            true => Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&found, 0)?)),
            false => Ok(ColumnarValue::Array(found)),
        }
    }
}

/// What computes a function's values, one for each row of its call.
pub(crate) type Computed = fn(&HostCall) -> Result<ArrayRef>;

/// A function of arguments of these types that follows from them alone.
pub(crate) fn host_function(
    name: &'static str,
    arguments: &[DataType],
    value: &DataType,
    computed: Computed,
) -> Arc<ScalarUDF> {
    let signature = match arguments {
        [] => Signature::nullary(Volatility::Immutable),
        _ => Signature::exact(arguments.to_vec(), Volatility::Immutable),
    };
    let of = ComputedFunction { name, signature, value: value.clone(), computed };
    Arc::new(ScalarUDF::from(of))
}

/// Functions are told apart by their names.
#[derive(Debug)]
struct ComputedFunction {
    name: &'static str,
    signature: Signature,
    value: DataType,
    computed: Computed,
}

impl PartialEq for ComputedFunction {
    fn eq(&self, other: &ComputedFunction) -> bool {
        self.name == other.name
    }
}

impl Eq for ComputedFunction {}

impl Hash for ComputedFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl ScalarUDFImpl for ComputedFunction {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.value.clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let call = HostCall::of(&args)?;
        call.yields((self.computed)(&call)?)
    }
}
