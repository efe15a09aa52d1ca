//! The arguments of functions that users write: their names, and what is cast to their types.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::plan_err;
use datafusion::error::Result as PlanResult;

use super::definition::is_identifier;
use crate::error::{Error, ErrorKind, Result};

/// Where the names of arguments stand.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ArgumentNames {
    /// In C++.
    InBodies,
    /// Nobody but a reader takes them.
    InMessages,
}

/// Refuses names that C++ or SQL has not.
pub(super) fn named(
    function: &str,
    inputs: &[(String, DataType)],
    names: ArgumentNames,
) -> Result<()> {
    let wrong = |message: String| Error::from(ErrorKind::Plan { message, location: None });
    if function.is_empty() {
        return Err(wrong("a function without a name".into()));
    }
    for (at, (name, _)) in inputs.iter().enumerate() {
        if names == ArgumentNames::InBodies && !is_identifier(name) {
            return Err(wrong(format!(
                "function {function}: {name:?} is no name of an argument in C++"
            )));
        }
        if inputs[..at].iter().any(|(other, _)| other == name) {
            return Err(wrong(format!("function {function}: two arguments are named {name:?}")));
        }
    }
    Ok(())
}

/// Whether an argument of this type may be handed on as one of another, by a cast: not where digits
/// behind the point would be lost in silence.
pub(super) fn is_coerced(from: &DataType, to: &DataType) -> bool {
    use DataType::*;
    let is_text = |dtype: &DataType| matches!(dtype, Utf8 | LargeUtf8 | Utf8View);
    let is_octets =
        |dtype: &DataType| matches!(dtype, Binary | LargeBinary | BinaryView | FixedSizeBinary(_));
    match (from, to) {
        _ if from == to => true,
        (Null, _) => true,
        (Dictionary(_, values), _) => is_coerced(values, to),
        _ if from.is_integer() => to.is_numeric(),
        _ if from.is_floating() => to.is_floating(),
        (Decimal128(..) | Decimal32(..) | Decimal64(..), _) => {
            to.is_floating() || matches!(to, Decimal128(..))
        }
        (Date32 | Date64, Date32 | Date64 | Timestamp(..)) => true,
        (Timestamp(..), Timestamp(..)) | (Time32(_) | Time64(_), Time32(_) | Time64(_)) => true,
        (Duration(_), Duration(_)) | (Interval(_), Interval(_)) => true,
        _ if is_text(from) => is_text(to),
        _ if is_octets(from) => is_octets(to),
        (List(from) | LargeList(from) | FixedSizeList(from, _), List(to) | LargeList(to)) => {
            is_coerced(from.data_type(), to.data_type())
        }
        _ => false,
    }
}

/// The types that arguments are cast to.
pub(super) fn coerced(
    name: &str,
    inputs: &[(String, DataType)],
    types: &[DataType],
) -> PlanResult<Vec<DataType>> {
    let fits = |((_, to), from): (&(String, DataType), &DataType)| is_coerced(from, to);
    if types.len() != inputs.len() || !inputs.iter().zip(types).all(fits) {
        let list = |types: &mut dyn Iterator<Item = String>| types.collect::<Vec<_>>().join(", ");
        let wanted = list(&mut inputs.iter().map(|(name, dtype)| format!("{name} {dtype}")));
        let found = list(&mut types.iter().map(ToString::to_string));
        return plan_err!("function {name} takes ({wanted}), not ({found})");
    }
    Ok(inputs.iter().map(|(_, dtype)| dtype.clone()).collect())
}
