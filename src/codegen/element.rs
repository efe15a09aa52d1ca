//! Elements of lists: loads from the child that a list's view points into (`kernels/list.cuh`).

use datafusion::arrow::datatypes::{DataType, FieldRef};

use super::device_function::KernelHeader;
use super::emit::Emitter;
use super::value::{Value, not_yet, repr_of};
use crate::column::item_of;
use crate::error::Result;

/// The element of a list at `place`, a C++ `u32`. Null if the list has no such place, or is null.
pub(crate) fn element_at(list: &Value, place: &str, out: &mut Emitter) -> Result<Value> {
    let Some(item) = item_of(&list.dtype) else {
        return Err(not_yet(format!("{} as a list", list.dtype)));
    };
    let view = out.let_("view", list.stored());
    let inside = out.let_("bool", format_args!("{place} < {view}.length"));
    slot(&view, list.longest, item.data_type(), &mut 0, (place, Some(&inside)), out)
}

/// The element at `place`, which must be inside of the list. `view` is the C++ name of the list's
/// view. `None` if the value is no list.
pub(crate) fn element_of(
    list: &Value,
    view: &str,
    place: &str,
    out: &mut Emitter,
) -> Option<Value> {
    let item = item_of(&list.dtype)?;
    slot(view, list.longest, item.data_type(), &mut 0, (place, None), out).ok()
}

/// The element in slot `next` of the list's child, and in the slots behind it that belong to the
/// same value. Advances `next` past them. Where `inside` does not hold the element does not exist,
/// and the value is null.
pub(super) fn slot(
    view: &str,
    longest: Option<u32>,
    dtype: &DataType,
    next: &mut u32,
    (place, inside): (&str, Option<&str>),
    out: &mut Emitter,
) -> Result<Value> {
    let number = *next;
    *next += 1;
    let guard = inside.map_or(String::new(), |inside| format!("{inside} && "));
    out.needs(KernelHeader::List);
    let valid = out.let_("bool", format_args!("{guard}list_valid({view}, {number}, {place})"));
    if let DataType::Struct(fields) = dtype {
        let field =
            |field: &FieldRef| slot(view, longest, field.data_type(), next, (place, inside), out);
        let fields = fields.iter().map(field).collect::<Result<_>>()?;
        return Ok(Value::of_fields(dtype.clone(), fields, Some(valid)));
    }
    let repr = repr_of(dtype)?;
    let ctype = repr.device_type();
    let read = format!("list_value<{ctype}>({view}, {number}, {place})");
    let code = out.let_(
        ctype,
        inside.map_or(read.clone(), |inside| format!("{inside} ? {read} : {ctype}{{}}")),
    );
    let mut value = Value::new(dtype.clone(), repr, code, Some(valid));
    value.longest = longest;
    Ok(value)
}
