//! Which of two values comes first, lists and structs among them: element by element, and then the
//! shorter.

use super::element::element_of;
use super::emit::Emitter;
use super::order::NullsPlace;
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
    out.line(format_args!("i32 {order} = 0;"));
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
    out.line(format_args!("if ({v} != {w}) {order} = {v} ? {} : {null};\nelse if ({v}) {{", -null));
    compare_valid(left, right, by, order, out);
    out.line("}");
}

fn compare_valid(left: &Value, right: &Value, by: Comparing, order: &str, out: &mut Emitter) {
    let (a, b) = (&left.code, &right.code);
    let words = |a: String, b: String| format!("{order} = ({a} > {b}) - ({a} < {b});");
    let zeros = if by.one_zero { "order" } else { "sort" };
    let statement = match left.repr {
        Repr::View => format!("{order} = compare_views({a}, {b});"),
        Repr::F64 => words(format!("{zeros}_f64({a})"), format!("{zeros}_f64({b})")),
        Repr::F32 => words(format!("{zeros}_f32({a})"), format!("{zeros}_f32({b})")),
        Repr::Bool => words(format!("(u32)(bool){a}"), format!("(u32)(bool){b}")),
        Repr::Struct => {
            for (left, right) in left.fields.iter().zip(&right.fields) {
                out.line(format_args!("if ({order} == 0) {{"));
                compare(left, right, by, order, out);
                out.line("}");
            }
            return;
        }
        Repr::List => {
            let (one, two) = (out.let_("view", left.stored()), out.let_("view", right.stored()));
            let (place, shorter) = (out.fresh(), out.fresh());
            out.line(format_args!(
                "const u32 {shorter} = {one}.length < {two}.length ? {one}.length : {two}.length;"
            ));
            out.line(format_args!(
                "for (u32 {place} = 0; {order} == 0 && {place} < {shorter}; {place}++) {{"
            ));
            let elements =
                [(left, &one), (right, &two)].map(|(of, list)| element_of(of, list, &place, out));
            if let [Some(left), Some(right)] = elements {
                compare(&left, &right, by, order, out);
            }
            out.line("}");
            let (one, two) = (format!("{one}.length"), format!("{two}.length"));
            format!("if ({order} == 0) {}", words(one, two))
        }
        _ => words(widen(left, Repr::I128), widen(right, Repr::I128)),
    };
    out.line(statement);
}
