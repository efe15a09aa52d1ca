//! Users' functions for the CPU engine: the simulator runs them, a batch at a time.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{Array, ArrayRef, new_empty_array};
use datafusion::arrow::datatypes::DataType;
use datafusion::logical_expr::{Expr, ScalarUDF};
use datafusion::prelude::col;

use super::run::anonymous;
use crate::codegen::{Codes, Flow, FlowSource, materialize};
use crate::column::{Column, Relation};
use crate::device::{Device, MemoryLimit, SimOptions};
use crate::error::{Error, ErrorKind, Result};
use crate::user_code::CudaFunction;

const OPERATOR: &str = "a user's function";

/// The simulator that computes users' functions where the CPU engine asks for them; one in a process.
///
/// # Errors
/// [`ErrorKind::DeviceUnavailable`] where there is no C++ compiler.
pub(crate) fn host_device(function: &str) -> Result<&'static Device> {
    static DEVICE: LazyLock<Result<Device>> =
        LazyLock::new(|| Device::sim(SimOptions::default(), MemoryLimit::default()));
    DEVICE.as_ref().map_err(|error| match error.kind() {
        ErrorKind::DeviceUnavailable { why, .. } => ErrorKind::DeviceUnavailable {
            device: "cpu".into(),
            why: format!("function {function} has no closure for the CPU engine, and nothing compiles it here: {why}"),
        }
        .into(),
        _ => Error::internal(format!("function {function}: {error}")),
    })
}

/// What a function makes of arrays of so many rows, whose types are those of its arguments.
pub(crate) fn compiled_on_host(function: &CudaFunction, arrays: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    if rows == 0 {
        return Ok(new_empty_array(function.output()));
    }
    let device = host_device(function.definition().name())?;
    let types: Vec<DataType> = function.inputs().iter().map(|(_, dtype)| dtype.clone()).collect();
    let column =
        |(array, dtype): (&ArrayRef, &DataType)| Column::from_arrays(device, dtype, std::slice::from_ref(array));
    let columns = arrays.iter().zip(&types).map(column);
    let columns = columns.collect::<Result<Vec<_>>>()?;
    let arguments = (0..columns.len()).map(|at| col(format!("c{at}"))).collect();
    let flow = Flow::new(FlowSource::Relation(Relation::dense(rows as u64, columns)?), anonymous(&types)?);
    let call: Expr = Arc::new(ScalarUDF::from(function.clone())).call(arguments);
    let (_, columns) =
        materialize(device, OPERATOR, &flow, Codes::Keep, |generator, out| Ok(vec![generator.expr(&call, out)?]))?;
    let made = columns.iter().map(|column| column.to_arrays(rows)).collect::<Result<Vec<_>>>()?;
    let made = made.into_iter().flatten().next().filter(|made| made.len() == rows);
    made.ok_or_else(|| Error::internal(format!("{OPERATOR} made no values")))
}
