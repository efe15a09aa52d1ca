//! Functions of DataFusion's (55.2) whose arguments are checked first. Where lists of keys and
//! values differ in length, its `map` pairs keys with values of other rows. Its `to_timestamp`
//! turns seconds that no timestamp holds into the greatest timestamp. Here both are errors.

use std::sync::Arc;

use datafusion::arrow::array::{Array, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, FieldRef, Float64Type};
use datafusion::common::config::ConfigOptions;
use datafusion::common::{Result, exec_err};
use datafusion::logical_expr::{
    ColumnarValue, Documentation, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature,
};

use super::calls::HostCall;
use super::lists::Lists;

/// Every timestamp of nanoseconds lies less than these seconds before or behind 1970.
pub(crate) const MOST_SECONDS: f64 = 9_223_372_036.0;

pub(crate) fn map() -> Arc<ScalarUDF> {
    checked(datafusion::functions_nested::map::map_udf(), |call| {
        let [keys, values] = call.arrays.as_slice() else { return Ok(()) };
        let (Ok(keys), Ok(values)) = (Lists::of("map", keys), Lists::of("map", values)) else {
            return Ok(());
        };
        for row in 0..call.rows {
            let (keys_of, values_of) = (keys.length(row), values.length(row));
            if !keys.is_null(row) && !values.is_null(row) && keys_of != values_of {
                return exec_err!("map of {keys_of} keys and {values_of} values");
            }
        }
        Ok(())
    })
}

pub(crate) fn to_timestamp() -> Arc<ScalarUDF> {
    let inner = datafusion::functions::datetime::to_timestamp(&ConfigOptions::default());
    checked(inner, |call| {
        let Some(seconds) = call.arrays.first().filter(|of| of.data_type().is_floating()) else {
            return Ok(());
        };
        let seconds = cast(seconds, &DataType::Float64)?;
        let seconds = seconds.as_primitive::<Float64Type>();
        let is_out = |seconds: &f64| seconds.is_nan() || seconds.abs() >= MOST_SECONDS;
        match seconds.iter().flatten().find(is_out) {
            Some(seconds) => exec_err!("to_timestamp: {seconds} seconds are no timestamp"),
            None => Ok(()),
        }
    })
}

type Check = fn(&HostCall) -> Result<()>;

fn checked(inner: Arc<ScalarUDF>, check: Check) -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::from(Checked { inner, check }))
}

#[derive(Debug)]
struct Checked {
    inner: Arc<ScalarUDF>,
    check: Check,
}

impl PartialEq for Checked {
    fn eq(&self, other: &Checked) -> bool {
        self.inner == other.inner
    }
}

impl Eq for Checked {}

impl std::hash::Hash for Checked {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.inner.hash(state);
    }
}

impl ScalarUDFImpl for Checked {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.inner.documentation()
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.inner.coerce_types(types)
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.inner.return_type(types)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        self.inner.return_field_from_args(args)
    }

    fn with_updated_config(&self, config: &ConfigOptions) -> Option<ScalarUDF> {
        let inner = Arc::new(self.inner.inner().with_updated_config(config)?);
        Some(ScalarUDF::from(Checked { inner, check: self.check }))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        (self.check)(&HostCall::of(&args)?)?;
        self.inner.invoke_with_args(args)
    }
}
