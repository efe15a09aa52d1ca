//! Which of two values comes first, lists and structs among them: element by element, and then the
//! shorter.

use super::device_function::{DeviceFunction, SORT_F32, SORT_F64};
use super::element::element_of;
use super::emit::Emitter;
use super::order::NullsPlace;
use super::statements::BlockKind;
use super::value::{Value, widen};
use crate::column::Repr;

/// How values compare.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Comparing {
    /// Where nulls come.
    pub(crate) nulls: NullsPlace,
    /// Whether −0.0 is 0.0, or comes before it.
    pub(crate) one_zero: bool,
}

/// C++ name of an `i32`, negative where `left` comes first, and 0 where neither does. Of values of
/// one type.
pub(crate) fn emit_compare(
    left: &Value,
    right: &Value,
    by: Comparing,
    out: &mut Emitter,
) -> String {
    let order = out.fresh();
    out.variable("i32", &order, "0");
    compare(left, right, by, &order, out);
    order
}

/// Sets `order`, which is 0, by values that may be null.
fn compare(left: &Value, right: &Value, by: Comparing, order: &str, out: &mut Emitter) {
    let (v, w) = (left.validity(), right.validity());
    let null = if by.nulls == NullsPlace::First { -1 } else { 1 };
    if (v, w) == ("true", "true") {
        return compare_valid(left, right, by, order, out);
    }
    let by_null = format!("if ({v} != {w}) {order} = {v} ? {} : {null};", -null);
    out.open(BlockKind::Branch, format_args!("{by_null}\nelse if ({v}) {{"));
    compare_valid(left, right, by, order, out);
    out.close("}");
}

fn compare_valid(left: &Value, right: &Value, by: Comparing, order: &str, out: &mut Emitter) {
    let (a, b) = (&left.code, &right.code);
    let words = |a: String, b: String| format!("{order} = ({a} > {b}) - ({a} < {b});");
    let float = |apart: DeviceFunction, alike: &'static str, out: &mut Emitter| {
        // Of both values.
        let name = if by.one_zero { alike } else { [apart; 2].map(|apart| out.calls(apart))[0] };
        words(format!("{name}({a})"), format!("{name}({b})"))
    };
    let statement = match left.repr {
        Repr::View => format!("{order} = compare_views({a}, {b});"),
        Repr::F64 => float(SORT_F64, "order_f64", out),
        Repr::F32 => float(SORT_F32, "order_f32", out),
        Repr::Bool => words(format!("(u32)(bool){a}"), format!("(u32)(bool){b}")),
        Repr::Struct => {
            for (left, right) in left.fields.iter().zip(&right.fields) {
                out.branch(format_args!("{order} == 0"));
                compare(left, right, by, order, out);
                out.close("}");
            }
            return;
        }
        Repr::List => {
            let (one, two) = (out.let_("view", left.stored()), out.let_("view", right.stored()));
            let (place, shorter) = (out.fresh(), out.fresh());
            out.constant(
                "u32",
                &shorter,
                format_args!("{one}.length < {two}.length ? {one}.length : {two}.length"),
            );
            out.repeat(format_args!(
                "for (u32 {place} = 0; {order} == 0 && {place} < {shorter}; {place}++)"
            ));
            let elements =
                [(left, &one), (right, &two)].map(|(of, list)| element_of(of, list, &place, out));
            if let [Some(left), Some(right)] = elements {
                compare(&left, &right, by, order, out);
            }
            out.close("}");
            let (one, two) = (format!("{one}.length"), format!("{two}.length"));
            format!("if ({order} == 0) {}", words(one, two))
        }
        _ => words(widen(left, Repr::I128), widen(right, Repr::I128)),
    };
    out.line(statement);
}
