//! Floats in arrays and constants: NaN in its one form, zeros in theirs, and floats as integers in
//! their order.

use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayData, ArrayRef, ArrowPrimitiveType, AsArray, Float16Array, Float32Array,
    Float64Array, Int16Array, Int32Array, Int64Array, PrimitiveArray, make_array,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{
    DataType, Float16Type, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type,
};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use half::f16;

/// What becomes of the floats in a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum FloatForm {
    /// Every NaN is the positive quiet one without a payload.
    OneNan,
    /// And −0.0 is 0.0: equal values have equal bits.
    Equal,
}

/// Whether values of the type are floats or hold floats.
pub(crate) fn holds_floats(dtype: &DataType) -> bool {
    use DataType::*;
    match dtype {
        Float16 | Float32 | Float64 => true,
        List(field)
        | LargeList(field)
        | ListView(field)
        | LargeListView(field)
        | FixedSizeList(field, _)
        | Map(field, _) => holds_floats(field.data_type()),
        Struct(fields) => fields.iter().any(|field| holds_floats(field.data_type())),
        Union(fields, _) => fields.iter().any(|(_, field)| holds_floats(field.data_type())),
        Dictionary(_, values) => holds_floats(values),
        RunEndEncoded(_, values) => holds_floats(values.data_type()),
        _ => false,
    }
}

/// A float by its bits.
trait FloatBits: Copy {
    /// The float in a form, or `None` where it is in it.
    fn formed(self, form: FloatForm) -> Option<Self>;
}

macro_rules! bits {
    ($($float:ty, $bits:ty, $nan:expr);+) => {
        $(impl FloatBits for $float {
            fn formed(self, form: FloatForm) -> Option<Self> {
                const NAN: $bits = $nan;
                let bits = self.to_bits();
                if self.is_nan() {
                    return (bits != NAN).then(|| <$float>::from_bits(NAN));
                }
                (form == FloatForm::Equal && bits != 0 && bits << 1 == 0).then(|| <$float>::from_bits(0))
            }
        })+
    };
}

bits!(f16, u16, 0x7e00; f32, u32, 0x7fc0_0000; f64, u64, 0x7ff8_0000_0000_0000);

/// The array with its floats in a form; `None` where they are in it, as most are.
pub(crate) fn formed(array: &dyn Array, form: FloatForm) -> Option<ArrayRef> {
    match array.data_type() {
        DataType::Float16 => formed_floats::<Float16Type>(array, form),
        DataType::Float32 => formed_floats::<Float32Type>(array, form),
        DataType::Float64 => formed_floats::<Float64Type>(array, form),
        other if holds_floats(other) => formed_children(&array.to_data(), form).map(make_array),
        _ => None,
    }
}

fn formed_floats<T: ArrowPrimitiveType>(array: &dyn Array, form: FloatForm) -> Option<ArrayRef>
where
    T::Native: FloatBits,
{
    let floats = array.as_primitive::<T>();
    if !floats.values().iter().any(|value| value.formed(form).is_some()) {
        return None;
    }
    Some(Arc::new(
        floats.unary::<_, T>(|value| value.formed(form).unwrap_or(value)) as PrimitiveArray<T>
    ))
}

/// Lists, structs and the like: what lies in their children.
fn formed_children(data: &ArrayData, form: FloatForm) -> Option<ArrayData> {
    let mut changed = false;
    let children = data.child_data().iter().map(|child| {
        let formed = formed(&make_array(child.clone()), form);
        changed |= formed.is_some();
        formed.map_or_else(|| child.clone(), |formed| formed.to_data())
    });
    let children = children.collect();
    // Types, lengths and offsets are those of `data`, which was valid.
    changed.then(|| {
        data.clone().into_builder().child_data(children).build().unwrap_or_else(|_| data.clone())
    })
}

/// A constant with its floats in a form; `None` where they are in it.
pub(crate) fn formed_scalar(value: &ScalarValue, form: FloatForm) -> Option<ScalarValue> {
    match value {
        ScalarValue::Float16(Some(float)) => Some(ScalarValue::Float16(Some(float.formed(form)?))),
        ScalarValue::Float32(Some(float)) => Some(ScalarValue::Float32(Some(float.formed(form)?))),
        ScalarValue::Float64(Some(float)) => Some(ScalarValue::Float64(Some(float.formed(form)?))),
        ScalarValue::Float16(None) | ScalarValue::Float32(None) | ScalarValue::Float64(None) => {
            None
        }
        other if holds_floats(&other.data_type()) => {
            let formed = formed(&other.to_array().ok()?, form)?;
            ScalarValue::try_from_array(&formed, 0).ok()
        }
        _ => None,
    }
}

/// The type of integers that stand for floats of a type.
pub(crate) fn order_type(dtype: &DataType) -> Option<DataType> {
    Some(match dtype {
        DataType::Float16 => DataType::Int16,
        DataType::Float32 => DataType::Int32,
        DataType::Float64 => DataType::Int64,
        _ => return None,
    })
}

/// The type of floats that integers of a type stand for.
pub(crate) fn float_type(dtype: &DataType) -> Option<DataType> {
    Some(match dtype {
        DataType::Int16 => DataType::Float16,
        DataType::Int32 => DataType::Float32,
        DataType::Int64 => DataType::Float64,
        _ => return None,
    })
}

/// The bits of a float as an integer of its order, and back: of negative ones all bits but the sign
/// are flipped.
macro_rules! turned {
    ($bits:expr, $unsigned:ty, $signed:ty) => {{
        let bits = $bits as $signed;
        bits ^ (((bits >> (<$signed>::BITS - 1)) as $unsigned) >> 1) as $signed
    }};
}

/// Integers in the order of the floats, which are in the form of equal bits.
pub(crate) fn ordered(array: &ArrayRef) -> Result<ArrayRef> {
    let array = formed(array, FloatForm::Equal).unwrap_or_else(|| array.clone());
    Ok(match array.data_type() {
        DataType::Float16 => {
            let floats = array.as_primitive::<Float16Type>();
            Arc::new(floats.unary::<_, Int16Type>(|float| turned!(float.to_bits(), u16, i16))
                as Int16Array)
        }
        DataType::Float32 => {
            let floats = array.as_primitive::<Float32Type>();
            Arc::new(floats.unary::<_, Int32Type>(|float| turned!(float.to_bits(), u32, i32))
                as Int32Array)
        }
        _ => {
            let array = cast(&array, &DataType::Float64)?;
            let floats = array.as_primitive::<Float64Type>();
            Arc::new(floats.unary::<_, Int64Type>(|float| turned!(float.to_bits(), u64, i64))
                as Int64Array)
        }
    })
}

/// The floats that integers of [`ordered`] stand for.
pub(crate) fn unordered(array: &ArrayRef) -> Result<ArrayRef> {
    Ok(match array.data_type() {
        DataType::Int16 => {
            let orders = array.as_primitive::<Int16Type>();
            Arc::new(
                orders.unary::<_, Float16Type>(|order| {
                    f16::from_bits(turned!(order, u16, i16) as u16)
                }) as Float16Array,
            )
        }
        DataType::Int32 => {
            let orders = array.as_primitive::<Int32Type>();
            Arc::new(
                orders.unary::<_, Float32Type>(|order| {
                    f32::from_bits(turned!(order, u32, i32) as u32)
                }) as Float32Array,
            )
        }
        _ => {
            let array = cast(array, &DataType::Int64)?;
            let orders = array.as_primitive::<Int64Type>();
            Arc::new(
                orders.unary::<_, Float64Type>(|order| {
                    f64::from_bits(turned!(order, u64, i64) as u64)
                }) as Float64Array,
            )
        }
    })
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{ListArray, StructArray};
    use datafusion::arrow::buffer::OffsetBuffer;
    use datafusion::arrow::datatypes::Field;

    use super::*;

    const NAN: u64 = 0x7ff8_0000_0000_0000;

    fn odd() -> Vec<f64> {
        let bits = [NAN, NAN | 1 << 63, 0x7ff0_0000_0000_0001, 0xffff_ffff_ffff_ffff, 1 << 63, 0];
        bits.into_iter().map(f64::from_bits).collect()
    }

    #[test]
    fn every_nan_has_one_form_within_lists_and_structs_too() {
        let floats: ArrayRef = Arc::new(Float64Array::from(odd()));
        let field = Arc::new(Field::new_list_field(DataType::Float64, true));
        let lists: ArrayRef = Arc::new(ListArray::new(
            field,
            OffsetBuffer::from_lengths([2, 0, 4]),
            floats.clone(),
            None,
        ));
        let fields =
            vec![(Arc::new(Field::new("l", lists.data_type().clone(), true)), lists.slice(1, 2))];
        let nested: ArrayRef = Arc::new(StructArray::from(fields));
        let inner = |array: &ArrayRef| {
            let lists = array.as_struct().column(0).clone();
            let list = lists.as_list::<i32>().value(1);
            list.as_primitive::<Float64Type>()
                .values()
                .iter()
                .map(|float| float.to_bits())
                .collect::<Vec<_>>()
        };
        let once = formed(&nested, FloatForm::OneNan).expect("NaN of other forms");
        assert_eq!(inner(&once), [NAN, NAN, 1 << 63, 0]);
        let equal = formed(&once, FloatForm::Equal).expect("a negative zero");
        assert_eq!(inner(&equal), [NAN, NAN, 0, 0]);
        assert!(
            formed(&once, FloatForm::OneNan).is_none()
                && formed(&equal, FloatForm::Equal).is_none()
        );
        let scalar = ScalarValue::try_from_array(&lists, 0).expect("a list");
        let scalar = formed_scalar(&scalar, FloatForm::OneNan).expect("NaN of another form");
        assert!(formed_scalar(&scalar, FloatForm::OneNan).is_none());
    }

    #[test]
    fn integers_order_as_floats_do() {
        let mut floats =
            vec![f64::NEG_INFINITY, -1.5, -5e-324, 0.0, 5e-324, 2.5, f64::INFINITY, f64::NAN];
        let orders =
            ordered(&(Arc::new(Float64Array::from(floats.clone())) as ArrayRef)).expect("floats");
        assert!(orders.as_primitive::<Int64Type>().values().is_sorted());
        let back = unordered(&orders).expect("integers");
        let back: Vec<u64> =
            back.as_primitive::<Float64Type>().values().iter().map(|x| x.to_bits()).collect();
        floats[7] = f64::from_bits(NAN);
        assert_eq!(back, floats.iter().map(|x| x.to_bits()).collect::<Vec<_>>());
        let same = ordered(&(Arc::new(Float64Array::from(odd())) as ArrayRef)).expect("floats");
        let same = same.as_primitive::<Int64Type>();
        assert!(
            (0..4).all(|row| same.value(row) == same.value(0)) && same.value(4) == same.value(5)
        );
    }
}
