//! Values in generated code, and where the generated code gets its inputs from.

use std::sync::Arc;

use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::datatypes::DataType;
use datafusion::logical_expr::Expr;

use super::emit::Emitter;
use super::sites::Operand;
use crate::column::{Dictionary, Repr, decimal_bound, value_type};
use crate::error::{Error, Result};

/// A value in generated code.
#[derive(Debug, Clone)]
pub(crate) struct Value {
    /// Logical type.
    pub(crate) dtype: DataType,
    /// Type of `code`. May be narrower or wider than `Repr::of(dtype)`; [`widen`] converts at a
    /// sink.
    pub(crate) repr: Repr,
    /// A C++ identifier or literal of type `repr.device_type()`, cheap to mention repeatedly.
    /// Undefined (but safe to compute with) where the value is null. Where `dictionary` is set it
    /// may be any expression without side effects, see [`DictionaryInput`].
    pub(super) code: String,
    /// C++ `bool` identifier or literal; `None` = never null.
    pub(super) valid: Option<String>,
    /// Bounds of the valid integer values where known, else those of type and representation hold.
    pub(crate) range: Option<(i128, i128)>,
    /// Bound on the magnitude of valid floats where known; `None` = unknown, or NaN or an infinity
    /// may occur.
    pub(crate) magnitude: Option<f64>,
    /// Valid floats are multiples of 2 to this power; `None` = unknown.
    pub(crate) unit: Option<i32>,
    /// Set for a column of dictionary-encoded strings that is untouched.
    pub(super) dictionary: Option<DictionaryInput>,
    /// Most bytes in a string, where known; of a list, in its strings.
    pub(crate) longest: Option<u32>,
    /// The fields of a struct, whose `code` is empty. Where the struct is null they are undefined,
    /// as any value.
    pub(crate) fields: Vec<Value>,
}

/// The code beneath a dictionary-encoded string column. The column's `Value::code` is then an
/// expression that looks the view up (and must be safe where the row is null, whose code may be
/// garbage); expressions that can work on codes do not mention it.
#[derive(Debug, Clone)]
pub(crate) struct DictionaryInput {
    /// C++ identifier of the `u32` code; undefined where null.
    pub(crate) code: String,
    pub(crate) dictionary: Arc<Dictionary>,
}

/// Where compiled expressions get columns and constants from; implemented by pipelines.
pub(crate) trait Inputs {
    /// The value of a column in this row: emits its load at first use, and remembers it.
    fn column(&mut self, column: &datafusion::common::Column, out: &mut Emitter) -> Result<Value>;
    /// A C++ expression of type `u64` that holds `bits` at run time. Constants pass through here so
    /// that pipelines that differ in constants only share one kernel.
    fn parameter(&mut self, bits: u64) -> String;
    /// A C++ expression of type `view` of a constant string.
    fn string(&mut self, text: &str) -> String;
    /// A C++ expression of type `view` of constant bytes.
    fn octets(&mut self, bytes: &[u8]) -> String;
    /// A C++ expression of type `const u8*`: the device address, aligned to 16, of constant bytes.
    fn constant(&mut self, bytes: &[u8]) -> String;
    /// A C++ expression of type `const view*`: a table of constant strings.
    fn strings(&mut self, texts: &[&str]) -> String;
    /// A C++ expression of type `view`: the list that an array of one row holds.
    fn list(&mut self, list: &ArrayRef) -> String;
    /// Notes that the expression takes memory for characters or elements from `arena`.
    fn arena(&mut self);
}

/// Least and greatest value of an integer representation.
pub(crate) fn repr_bounds(repr: Repr) -> (i128, i128) {
    match repr {
        Repr::I8 => (i8::MIN.into(), i8::MAX.into()),
        Repr::I16 => (i16::MIN.into(), i16::MAX.into()),
        Repr::I32 => (i32::MIN.into(), i32::MAX.into()),
        Repr::I64 => (i64::MIN.into(), i64::MAX.into()),
        Repr::U8 => (0, u8::MAX.into()),
        Repr::U16 => (0, u16::MAX.into()),
        Repr::U32 => (0, u32::MAX.into()),
        Repr::U64 => (0, u64::MAX.into()),
        Repr::Bool => (0, 1),
        Repr::I128 | Repr::F32 | Repr::F64 | Repr::View | Repr::List | Repr::Struct => {
            (i128::MIN, i128::MAX)
        }
    }
}

/// Least and greatest value of a type, in its representation. Decimals of up to 37 digits keep
/// their precision under arithmetic (result types grow with the values); with 38 digits Arrow only
/// watches for overflow of 128 bits.
pub(super) fn type_bounds(dtype: &DataType) -> (i128, i128) {
    match dtype {
        DataType::Decimal128(_, _) => {
            decimal_bound(dtype).map_or((i128::MIN, i128::MAX), |bound| (-bound, bound))
        }
        _ => Repr::of(dtype).map_or((i128::MIN, i128::MAX), repr_bounds),
    }
}

/// The narrowest representation that holds all of `values`, so that they can be compared or chosen
/// from: their own if all share it, else 32, 64 or 128 bits.
pub(super) fn common_repr(values: &[&Value]) -> Repr {
    let first = values[0].repr;
    if values.iter().all(|v| v.repr == first) {
        return first;
    }
    let fits = |repr| values.iter().all(|v| within(v.bounds(), repr_bounds(repr)));
    [Repr::I32, Repr::I64, Repr::U64].into_iter().find(|repr| fits(*repr)).unwrap_or(Repr::I128)
}

/// Whether `inner` lies in `outer`.
pub(super) fn within(inner: (i128, i128), outer: (i128, i128)) -> bool {
    inner.0 >= outer.0 && inner.1 <= outer.1
}

impl Value {
    /// A value of which nothing but type, representation and validity is known.
    pub(super) fn new(
        dtype: DataType,
        repr: Repr,
        code: impl Into<String>,
        valid: Option<String>,
    ) -> Self {
        Value {
            dtype: value_type(&dtype).clone(),
            repr,
            code: code.into(),
            valid,
            range: None,
            magnitude: None,
            unit: None,
            dictionary: None,
            longest: None,
            fields: vec![],
        }
    }

    /// A struct of these fields.
    pub(super) fn of_fields(dtype: DataType, fields: Vec<Value>, valid: Option<String>) -> Self {
        Value { fields, ..Value::new(dtype, Repr::Struct, "", valid) }
    }

    /// A null of a type; an untyped one poses as a boolean. `None` where the device has no such
    /// type.
    pub(crate) fn null(dtype: &DataType) -> Option<Self> {
        let repr = if dtype.is_null() { Repr::Bool } else { Repr::of(dtype)? };
        let mut value = Value::new(dtype.clone(), repr, "", Some("false".into()));
        match repr {
            Repr::Bool => value.code = "false".into(),
            Repr::View | Repr::List => (value.code, value.longest) = ("view{}".into(), Some(0)),
            Repr::Struct => {}
            other => value.code = format!("(({})0)", other.device_type()),
        }
        match repr {
            Repr::F32 | Repr::F64 => value.magnitude = Some(0.0),
            repr if repr.is_integer() => value.range = Some((0, 0)),
            _ => {}
        }
        if let DataType::Struct(fields) = dtype {
            value.fields =
                fields.iter().map(|field| Value::null(field.data_type())).collect::<Option<_>>()?;
        }
        Some(value)
    }

    /// The C++ expression that a column of the type stores. A view under a null is empty, so that
    /// its address is never followed.
    pub(super) fn stored(&self) -> String {
        let repr = Repr::of(&self.dtype).unwrap_or(self.repr);
        match &self.valid {
            Some(valid) if repr.points() => format!("({valid} ? {} : view{{0, 0, 0}})", self.code),
            _ => widen(self, repr),
        }
    }

    /// A 64-bit word of this name, never null: a normalised key.
    pub(super) fn word(name: impl Into<String>) -> Self {
        Value::new(DataType::UInt64, Repr::U64, name, None)
    }

    /// A number of 32 bits, never null: that of a row or a slot.
    pub(super) fn number(code: impl Into<String>) -> Self {
        Value::new(DataType::UInt32, Repr::U32, code, None)
    }

    /// The value as one of a logical type that is represented alike.
    pub(crate) fn with_type(mut self, dtype: &DataType) -> Self {
        self.dtype = value_type(dtype).clone();
        self
    }

    /// The value of a row of which it is known not to be null.
    pub(crate) fn known(mut self) -> Self {
        self.valid = None;
        self
    }

    /// Whether it can be null.
    pub(crate) fn may_be_null(&self) -> bool {
        self.valid.is_some()
    }

    pub(crate) fn with_range(mut self, range: Option<(i128, i128)>) -> Self {
        self.range = range;
        self
    }

    /// Bounds of the valid integer values: what is known, within representation and type.
    pub(crate) fn bounds(&self) -> (i128, i128) {
        let by_type = type_bounds(&self.dtype);
        let by_repr = repr_bounds(self.repr);
        let (low, high) = self.range.unwrap_or((i128::MIN, i128::MAX));
        let (low, high) = (low.max(by_type.0).max(by_repr.0), high.min(by_type.1).min(by_repr.1));
        // A column without valid rows may state an empty range.
        if low > high { (0, 0) } else { (low, high) }
    }

    /// The value as an operand that a failing row reports: the value of `expr`, if that is known.
    pub(super) fn operand(&self, expr: Option<&Expr>) -> Option<Operand> {
        Operand::new(expr, &self.dtype, self.repr, &self.code)
    }

    /// C++ `bool`: the value is true (not false, not null). For booleans.
    pub(super) fn truth(&self) -> String {
        match &self.valid {
            Some(valid) => format!("({valid} && {})", self.code),
            None => self.code.clone(),
        }
    }

    /// C++ `bool`: the value is not null.
    pub(super) fn validity(&self) -> &str {
        self.valid.as_deref().unwrap_or("true")
    }
}

/// The C++ expression of type `repr.device_type()` that stands for an integer, float or boolean
/// value whose bounds fit `repr` (checked by construction for `Repr::of(value.dtype)`); views pass
/// unchanged.
pub(super) fn widen(value: &Value, repr: Repr) -> String {
    if value.repr == repr {
        value.code.clone()
    } else {
        format!("(({}){})", repr.device_type(), value.code)
    }
}

/// The representation of a type; `Unsupported` if it has none.
pub(super) fn repr_of(dtype: &DataType) -> Result<Repr> {
    Repr::of(dtype).ok_or_else(|| not_yet(format!("type {dtype}")))
}

/// The error for what generated code does not compute yet.
pub(super) fn not_yet(what: impl Into<String>) -> Error {
    Error::unsupported(what, "is not on the device yet")
}

/// The C++ `bool` that holds where both are valid.
pub(super) fn both(
    left: &Option<String>,
    right: &Option<String>,
    out: &mut Emitter,
) -> Option<String> {
    match (left, right) {
        (None, None) => None,
        (Some(one), None) | (None, Some(one)) => Some(one.clone()),
        (Some(left), Some(right)) if left == right => Some(left.clone()),
        (Some(left), Some(right)) => Some(out.let_("bool", format_args!("{left} && {right}"))),
    }
}
