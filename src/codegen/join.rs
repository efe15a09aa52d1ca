//! What a join's build side notes of its keys, and of the rows of pairs.

use std::sync::Arc;

use datafusion::logical_expr::Expr;

use super::emit::Emitter;
use super::flow::Probe;
use super::generator::Generator;
use super::keys::KeyLayout;
use super::value::Value;
use crate::column::NO_ROW;
use crate::error::Result;
use warpframe_device::Buffer;

/// A build row's key as a word, null where it cannot match anything.
pub(crate) fn build_key(
    layout: &KeyLayout,
    keys: &[Expr],
    generator: &mut Generator<'_>,
    out: &mut Emitter,
) -> Result<Value> {
    let values = keys.iter().map(|key| generator.expr(key, out)).collect::<Result<Vec<_>>>()?;
    let (key, _) = layout.emit(&values, &mut generator.params, out);
    let skipped = values.iter().zip(&layout.fields).filter(|(_, field)| !field.nullable);
    let valid: Vec<_> = skipped.filter_map(|(value, _)| value.valid.clone()).collect();
    let valid = (!valid.is_empty()).then(|| out.let_("bool", valid.join(" && ")));
    Ok(Value { valid, ..Value::word(key) })
}

/// Sets the byte of a key, unless that is null.
pub(crate) fn note_key(
    key: &Value,
    seen: &Buffer,
    generator: &mut Generator<'_>,
    out: &mut Emitter,
) {
    let seen = generator.params.borrowed("u8", seen);
    let valid = key.valid.as_ref().map_or(String::new(), |valid| format!("if ({valid}) "));
    out.line(format_args!("{valid}{seen}[{}] = 1;", key.code));
}

/// Sets a word (`u32`), which is zero before, where a key is null.
pub(crate) fn note_null_key(
    key: &Value,
    seen: &Arc<Buffer>,
    generator: &mut Generator<'_>,
    out: &mut Emitter,
) {
    generator.touch(seen);
    let seen = generator.params.pointer("u32", seen, 0);
    out.line(format_args!("if (!{}) *{seen} = 1;", key.validity()));
}

/// Where a probe row's candidates begin, and how many they are. `padded`: a row without any has one
/// that is no row.
pub(crate) fn candidates(
    lookup: &Probe,
    padded: bool,
    generator: &mut Generator<'_>,
    out: &mut Emitter,
) -> Result<Vec<Value>> {
    let range = generator.candidates(lookup, out)?;
    if padded {
        out.line(format_args!(
            "if ({0} == 0) {{\n{0} = 1;\n{1} = {NO_ROW};\n}}",
            range.count, range.begin
        ));
    }
    Ok(vec![Value::number(range.begin), Value::number(range.count)])
}

/// Sets the byte of the row that a pair has (`u32`), where it has one.
pub(crate) fn note_match(
    rows: &Buffer,
    marks: &Buffer,
    generator: &mut Generator<'_>,
    out: &mut Emitter,
) {
    let rows = generator.params.borrowed("const u32", rows);
    let marks = generator.params.borrowed("u8", marks);
    let row = out.let_("u32", format_args!("{rows}[row]"));
    out.line(format_args!("if ({row} != {NO_ROW}) {marks}[{row}] = 1;"));
}
