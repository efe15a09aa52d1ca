//! The bits of integers and of texts.
//!
//! ```text
//!   bit_count(7)     3        bit_count(-1::TINYINT)    8
//!   bin(5)           101      bin(-1)                   64 ones
//!   bin('a')         01100001
//! ```

use std::fmt::Write;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Int8Array, StringArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Int64Type, UInt64Type};
use datafusion::common::{Result, ScalarValue, internal_err, plan_err};
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Expr, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility, lit,
};

use super::calls::HostCall;

pub(crate) fn bit_count() -> Arc<ScalarUDF> {
    BitFunction::of(Bits::Count)
}

pub(crate) fn bin() -> Arc<ScalarUDF> {
    BitFunction::of(Bits::Digits)
}

/// All bits of an integer turned: those that differ from ones.
pub(crate) fn turned(args: &[Expr], types: &[DataType]) -> Result<Option<Expr>> {
    let ([value], [dtype]) = (args, types) else { return Ok(None) };
    let ones = match dtype {
        DataType::Null => ScalarValue::Int64(Some(-1)),
        dtype if dtype.is_signed_integer() => ScalarValue::Int64(Some(-1)).cast_to(dtype)?,
        dtype if dtype.is_unsigned_integer() => {
            ScalarValue::UInt64(Some(ones(dtype))).cast_to(dtype)?
        }
        _ => return Ok(None),
    };
    Ok(Some(Expr::BinaryExpr(BinaryExpr {
        left: Box::new(value.clone()),
        op: Operator::BitwiseXor,
        right: Box::new(lit(ones)),
    })))
}

/// What is told of bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Bits {
    /// How many are set, of as many as the type has.
    Count,
    /// The bits as digits: of an integer from the first that is set on, of a text eight a byte.
    Digits,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct BitFunction {
    of: Bits,
    signature: Signature,
}

impl BitFunction {
    fn of(of: Bits) -> Arc<ScalarUDF> {
        let signature = Signature::user_defined(Volatility::Immutable);
        Arc::new(ScalarUDF::from(BitFunction { of, signature }))
    }
}

/// A number of as many ones as an integer of the type has bits.
fn ones(dtype: &DataType) -> u64 {
    let bytes = dtype.primitive_width().unwrap_or(8) as u32;
    u64::MAX >> (64 - 8 * bytes.min(8))
}

/// The 64 bits of each integer, of a negative one with ones before.
fn words(integers: &ArrayRef) -> Result<Vec<Option<u64>>> {
    Ok(match integers.data_type().is_unsigned_integer() {
        true => cast(integers, &DataType::UInt64)?.as_primitive::<UInt64Type>().iter().collect(),
        false => {
            let signed = cast(integers, &DataType::Int64)?;
            let signed = signed.as_primitive::<Int64Type>().iter();
            signed.map(|value| value.map(|value| value as u64)).collect()
        }
    })
}

/// The bits of bytes, eight a byte.
fn digits_of_bytes(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(8 * bytes.len()), |mut text, byte| {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:08b}");
        text
    })
}

impl ScalarUDFImpl for BitFunction {
    fn name(&self) -> &str {
        match self.of {
            Bits::Count => "bit_count",
            Bits::Digits => "bin",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        match (self.of, types) {
            (_, [dtype]) if dtype.is_integer() => Ok(vec![dtype.clone()]),
            (_, [DataType::Null]) => Ok(vec![DataType::Int64]),
            (Bits::Digits, [dtype]) if dtype.is_string() => Ok(vec![DataType::Utf8]),
            (Bits::Digits, _) => plan_err!("bin takes an integer or a string"),
            (Bits::Count, _) => plan_err!("bit_count takes an integer"),
        }
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(match self.of {
            Bits::Count => DataType::Int8,
            Bits::Digits => DataType::Utf8,
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let call = HostCall::of(&args)?;
        let [values] = call.arrays.as_slice() else {
            return internal_err!("{} of {} arguments", self.name(), call.arrays.len());
        };
        let found: ArrayRef = match self.of {
            Bits::Count => {
                let ones = ones(values.data_type());
                let count = |word: Option<u64>| word.map(|word| (word & ones).count_ones() as i8);
                Arc::new(words(values)?.into_iter().map(count).collect::<Int8Array>())
            }
            Bits::Digits if values.data_type().is_string() => {
                let digits = |text: Option<&str>| text.map(|text| digits_of_bytes(text.as_bytes()));
                Arc::new(values.as_string::<i32>().iter().map(digits).collect::<StringArray>())
            }
            Bits::Digits => {
                let digits = |word: Option<u64>| word.map(|word| format!("{word:b}"));
                Arc::new(words(values)?.into_iter().map(digits).collect::<StringArray>())
            }
        };
        call.yields(found)
    }
}
