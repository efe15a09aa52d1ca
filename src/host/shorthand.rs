//! Functions of DuckDB's that are expressions of others, which depend on the types of their
//! arguments. They are written out while constants are folded.
//!
//! ```text
//!   len(l), len(s)             array_length(l), character_length(s)
//!   concat([1], [2])           array_concat([1], [2])
//!   hex(i)                     upper(to_hex(i))
//!   epoch_us(ts)               CAST(CAST(ts AS TIMESTAMP(6)) AS BIGINT)
//!   strftime(d, '%d.%m.%Y')    to_char(d, '%d.%m.%Y')
//!   printf('%d: %s', i, s)     CAST(i AS VARCHAR) || ': ' || s
//! ```

pub(crate) mod formats;
pub(crate) mod middles;
pub(crate) mod moments;
mod patterns;
pub(crate) mod strptime;

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, FieldRef, TimeUnit};
use datafusion::common::tree_node::TreeNode;
use datafusion::common::{Column, DFSchema, Result, ScalarValue, internal_err, plan_err};
use datafusion::functions::expr_fn::{
    abs, character_length, encode, get_field, isnan, named_struct, to_hex, trunc, upper,
};
use datafusion::functions_nested::expr_fn::{self, array_concat, array_has, array_length};
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, Volatility, cast, lit, when,
};
use datafusion::optimizer::analyzer::type_coercion::TypeCoercionRewriter;

use crate::sql::type_name;

use super::utf8::bytes_of;

pub(super) use patterns::{Item, OF_CLOCK, items};
pub(crate) use patterns::{TimePattern, chrono_pattern};

/// What makes an expression of arguments and their types; nothing of others than it takes.
pub(crate) type WrittenByTypes = fn(&[Expr], &[DataType]) -> Result<Option<Expr>>;

/// The function of a name that is written out so.
pub(crate) fn shorthand(
    name: &'static str,
    takes: &'static str,
    written: WrittenByTypes,
) -> ScalarUDF {
    let signature = Signature::variadic_any(Volatility::Immutable);
    ScalarUDF::from(Shorthand { name, takes, written, signature })
}

#[derive(Debug)]
struct Shorthand {
    name: &'static str,
    takes: &'static str,
    written: WrittenByTypes,
    signature: Signature,
}

impl PartialEq for Shorthand {
    fn eq(&self, other: &Shorthand) -> bool {
        self.name == other.name
    }
}

impl Eq for Shorthand {}

impl Hash for Shorthand {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl Shorthand {
    fn written_out(&self, args: &[Expr], schema: &DFSchema) -> Result<Expr> {
        let types =
            args.iter().map(|arg| arg.get_type(schema)).collect::<Result<Vec<DataType>>>()?;
        match (self.written)(args, &types)? {
            Some(expr) => Ok(expr.rewrite(&mut TypeCoercionRewriter::new(schema))?.data),
            None => {
                let types: Vec<String> = types.iter().map(type_name).collect();
                plan_err!("{} {}, not ({})", said(self.name), self.takes, types.join(", "))
            }
        }
    }
}

impl ScalarUDFImpl for Shorthand {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        internal_err!("{}: the type of its value depends on constants", self.name)
    }

    /// The type of what it is written out as.
    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let name = |at: usize| at.to_string();
        let fields = args.arg_fields.iter().enumerate().map(|(at, field)| {
            let field = Field::new(name(at), field.data_type().clone(), field.is_nullable());
            (None, Arc::new(field))
        });
        let schema = DFSchema::new_with_metadata(fields.collect(), Default::default())?;
        let value = |(at, scalar): (usize, &Option<&ScalarValue>)| match scalar {
            Some(value) => Expr::Literal((*value).clone(), None),
            None => Expr::Column(Column::from_name(name(at))),
        };
        let values: Vec<Expr> = args.scalar_arguments.iter().enumerate().map(value).collect();
        let expr = self.written_out(&values, &schema)?;
        let (dtype, nullable) = (expr.get_type(&schema)?, expr.nullable(&schema)?);
        Ok(Arc::new(Field::new(self.name, dtype, nullable)))
    }

    fn simplify(&self, args: Vec<Expr>, context: &SimplifyContext) -> Result<ExprSimplifyResult> {
        Ok(ExprSimplifyResult::Simplified(self.written_out(&args, context.schema())?))
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        internal_err!("{} was not written out", self.name)
    }
}

/// The function that a query called for, where this one is a part of what it is written out as.
fn said(name: &str) -> &str {
    match name {
        "median_argument" | "median_of" => "median",
        "sum_of_none" => "list_sum",
        name => name,
    }
}

/// The text of a constant.
fn constant_text(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Literal(value, _) => value.try_as_str().flatten(),
        _ => None,
    }
}

pub(crate) fn len(args: &[Expr], types: &[DataType]) -> Result<Option<Expr>> {
    let ([value], [dtype]) = (args, types) else { return Ok(None) };
    let length = match dtype {
        list if is_list(list) => array_length(value.clone()),
        DataType::Null => value.clone(),
        text if text.is_string() => character_length(value.clone()),
        _ => return Ok(None),
    };
    Ok(Some(cast(length, DataType::Int64)))
}

/// As `len`, and of what DataFusion takes for a text.
pub(crate) fn length(args: &[Expr], types: &[DataType]) -> Result<Option<Expr>> {
    match (args, types) {
        ([_], [list]) if is_list(list) => len(args, types),
        ([value], [dtype]) if !dtype.is_nested() => {
            Ok(Some(cast(character_length(value.clone()), DataType::Int64)))
        }
        _ => Ok(None),
    }
}

pub(crate) fn concat(args: &[Expr], types: &[DataType]) -> Result<Option<Expr>> {
    match types.iter().any(is_list) {
        true => concat_lists(args, types),
        false => Ok(Some(datafusion::functions::expr_fn::concat(args.to_vec()))),
    }
}

/// Of lists, of which those that are null count for nothing, their elements one after another.
pub(crate) fn concat_lists(args: &[Expr], types: &[DataType]) -> Result<Option<Expr>> {
    if types.iter().all(DataType::is_null) {
        return Ok(args.first().cloned());
    }
    if !types.iter().all(|dtype| is_list(dtype) || dtype.is_null()) {
        return Ok(None);
    }
    let lists = args.iter().zip(types).filter(|(_, dtype)| is_list(dtype));
    Ok(Some(array_concat(lists.map(|(list, _)| list.clone()).collect())))
}

/// The elements of a list's lists. A list of untyped nulls has none.
pub(crate) fn flatten(args: &[Expr], types: &[DataType]) -> Result<Option<Expr>> {
    let ([list], [dtype]) = (args, types) else { return Ok(None) };
    Ok(match dtype {
        DataType::List(item) if item.data_type().is_null() => {
            let none = ScalarValue::List(ScalarValue::new_list(&[], &DataType::Null, true));
            Some(when(list.clone().is_not_null(), lit(none)).end()?)
        }
        DataType::Null => Some(list.clone()),
        dtype if is_list(dtype) => Some(expr_fn::flatten(list.clone())),
        _ => None,
    })
}

/// A struct with more fields behind its own: of it, and of the name and the value of each.
pub(crate) fn struct_insert(args: &[Expr], types: &[DataType]) -> Result<Option<Expr>> {
    let ([of, more @ ..], [DataType::Struct(fields), ..]) = (args, types) else { return Ok(None) };
    let mut all = vec![];
    for field in fields {
        let name = field.name().as_str();
        all.extend([lit(name), get_field(of.clone(), name)]);
    }
    for pair in more.chunks(2) {
        let ([_, _], Some(text)) = (pair, pair.first().and_then(constant_text)) else {
            return Ok(None);
        };
        if all.iter().step_by(2).any(|known| constant_text(known) == Some(text)) {
            return plan_err!("struct_insert: there are two fields {text:?}");
        }
        all.extend_from_slice(pair);
    }
    Ok(Some(named_struct(all)))
}

/// The values of a key in a map, in a list, which is empty where there is none.
pub(crate) fn map_extract(args: &[Expr], types: &[DataType]) -> Result<Option<Expr>> {
    let ([map, key], [dtype, key_type]) = (args, types) else { return Ok(None) };
    let DataType::Map(entries, _) = dtype else {
        return Ok(dtype.is_null().then(|| map.clone()));
    };
    let DataType::Struct(fields) = entries.data_type() else { return Ok(None) };
    let [_, value] = &fields[..] else { return Ok(None) };
    let none = lit(ScalarValue::List(ScalarValue::new_list(&[], value.data_type(), true)));
    if key_type.is_null() {
        return Ok(Some(when(map.clone().is_not_null(), none).end()?));
    }
    let has = array_has(expr_fn::map_keys(map.clone()), key.clone());
    let found = expr_fn::map_extract(map.clone(), key.clone());
    let null = lit(ScalarValue::Null);
    Ok(Some(when(map.clone().is_null(), null).when(has, found).otherwise(none)?))
}

/// What the elements of a list are added to: nothing, of the type of such sums.
pub(crate) fn sum_of_none(args: &[Expr], types: &[DataType]) -> Result<Option<Expr>> {
    let item = match types {
        [DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _)] => {
            item
        }
        [DataType::Null] => return Ok(args.first().cloned()),
        _ => return Ok(None),
    };
    Ok(match item.data_type() {
        integer if integer.is_integer() => Some(lit(ScalarValue::Decimal128(Some(0), 38, 0))),
        DataType::Decimal128(_, scale) => Some(lit(ScalarValue::Decimal128(Some(0), 38, *scale))),
        float if float.is_floating() => Some(lit(0f64)),
        DataType::Null => Some(lit(0i64)),
        _ => None,
    })
}

fn is_list(dtype: &DataType) -> bool {
    matches!(dtype, DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..))
}

pub(crate) fn hex(args: &[Expr], types: &[DataType]) -> Result<Option<Expr>> {
    let ([value], [dtype]) = (args, types) else { return Ok(None) };
    let digits = match dtype {
        DataType::UInt64 => to_hex(value.clone()),
        DataType::Null => to_hex(cast(value.clone(), DataType::Int64)),
        integer if integer.is_integer() => to_hex(cast(value.clone(), DataType::Int64)),
        DataType::Binary | DataType::BinaryView | DataType::LargeBinary => {
            encode(value.clone(), lit("hex"))
        }
        text if text.is_string() => encode(bytes_of(value.clone()), lit("hex")),
        _ => return Ok(None),
    };
    Ok(Some(upper(digits)))
}

/// Of a time the milliseconds since 1970, and of such the time.
pub(crate) fn epoch_ms(args: &[Expr], types: &[DataType]) -> Result<Option<Expr>> {
    match (args, types) {
        ([value], [integer]) if integer.is_integer() => {
            let millis = cast(value.clone(), DataType::Int64);
            let time = cast(millis, DataType::Timestamp(TimeUnit::Millisecond, None));
            Ok(Some(cast(time, MICROS)))
        }
        _ => epoch(args, types, 1000),
    }
}

const MICROS: DataType = DataType::Timestamp(TimeUnit::Microsecond, None);

/// Microseconds since 1970.
pub(crate) fn epoch_us(args: &[Expr], types: &[DataType]) -> Result<Option<Expr>> {
    epoch(args, types, 1)
}

/// Nanoseconds since 1970.
pub(crate) fn epoch_ns(args: &[Expr], types: &[DataType]) -> Result<Option<Expr>> {
    epoch(args, types, 0)
}

/// Since 1970, in units of so many microseconds, and nanoseconds where that is none.
fn epoch(args: &[Expr], types: &[DataType], micros: i64) -> Result<Option<Expr>> {
    let ([time], [dtype]) = (args, types) else { return Ok(None) };
    let zone = match dtype {
        DataType::Timestamp(_, zone) => zone.clone(),
        DataType::Date32 | DataType::Null => None,
        _ => return Ok(None),
    };
    let unit = if micros == 0 { TimeUnit::Nanosecond } else { TimeUnit::Microsecond };
    let ticks = cast(cast(time.clone(), DataType::Timestamp(unit, zone)), DataType::Int64);
    if micros <= 1 {
        return Ok(Some(ticks));
    }
    // To the nearest, halves away from zero, as in DuckDB.
    let rounded = ticks.clone() % lit(micros) / lit(micros / 2);
    Ok(Some(ticks / lit(micros) + rounded))
}

/// Whether a number is neither infinite nor NaN. Dates and timestamps are finite.
pub(crate) fn is_finite(args: &[Expr], types: &[DataType]) -> Result<Option<Expr>> {
    let ([value], [dtype]) = (args, types) else { return Ok(None) };
    let value = value.clone();
    Ok(match dtype {
        float if float.is_floating() => {
            let size = abs(cast(value.clone(), DataType::Float64));
            Some(isnan(value).is_not_true().and(size.lt(lit(f64::INFINITY))))
        }
        DataType::Date32 | DataType::Timestamp(..) | DataType::Null => {
            Some(when(value.is_not_null(), lit(true)).end()?)
        }
        number if number.is_numeric() => Some(when(value.is_not_null(), lit(true)).end()?),
        _ => None,
    })
}

/// The names of a struct's fields.
pub(crate) fn struct_keys(args: &[Expr], types: &[DataType]) -> Result<Option<Expr>> {
    let ([value], [DataType::Struct(fields)]) = (args, types) else { return Ok(None) };
    let name = |field: &FieldRef| ScalarValue::from(field.name().as_str());
    let names: Vec<ScalarValue> = fields.iter().map(name).collect();
    let names = ScalarValue::List(ScalarValue::new_list(&names, &DataType::Utf8, true));
    Ok(Some(when(value.clone().is_not_null(), lit(names)).end()?))
}

/// A number without what is behind the point, which a cast would round.
pub(crate) fn whole_part(args: &[Expr], types: &[DataType]) -> Result<Option<Expr>> {
    let ([value], [dtype]) = (args, types) else { return Ok(None) };
    let value = value.clone();
    Ok(Some(match dtype.is_floating() || dtype.is_decimal() {
        true => trunc(vec![value]),
        false => value,
    }))
}

pub(crate) fn type_of(args: &[Expr], types: &[DataType]) -> Result<Option<Expr>> {
    match (args, types) {
        ([_], [dtype]) => Ok(Some(lit(type_name(dtype)))),
        _ => Ok(None),
    }
}
