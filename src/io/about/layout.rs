//! How CSV files are laid out, as reading them finds out.

use std::path::PathBuf;
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, BooleanArray, ListArray, RecordBatch, StringViewArray, StructArray,
    UInt64Array,
};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::datatypes::{DataType, Field, Fields};

use super::{batch, texts};
use crate::error::Result;
use crate::io::csv::{CsvOptions, CsvTable};
use crate::io::path_columns::PathColumns;
use crate::sql::type_name;

pub(super) fn sniffed(files: &[PathBuf], options: &CsvOptions) -> Result<RecordBatch> {
    let table = CsvTable::open(files, options, PathColumns::default())?;
    let grammar = &table.dialect.grammar;
    let shown = |byte: Option<u8>| match byte {
        None | Some(0) => "(empty)".to_string(),
        Some(b'\t') => "\\t".into(),
        Some(byte) => char::from(byte).to_string(),
    };
    let names: Vec<&str> =
        table.schema.fields().iter().map(|field| field.name().as_str()).collect();
    let types: Vec<String> =
        table.schema.fields().iter().map(|field| type_name(field.data_type())).collect();
    let quoted = |text: &str| format!("'{}'", text.replace('\'', "''"));
    let option = |byte: Option<u8>| match byte {
        None | Some(0) => "''".to_string(),
        Some(b'\t') => "'\\t'".into(),
        Some(byte) => quoted(&char::from(byte).to_string()),
    };
    let columns: Vec<String> = names
        .iter()
        .zip(&types)
        .map(|(name, of)| format!("{}: {}", quoted(name), quoted(of)))
        .collect();
    let paths: Vec<String> = files.iter().map(|file| quoted(&file.to_string_lossy())).collect();
    let paths = match &paths[..] {
        [one] => one.clone(),
        several => format!("[{}]", several.join(", ")),
    };
    let prompt = format!(
        "FROM read_csv({paths}, auto_detect=false, delim={}, quote={}, escape={}, comment={}, skip={}, \
         header={}, columns={{{}}})",
        option(Some(grammar.delimiter)),
        option(Some(grammar.quote)),
        option(grammar.escape),
        option(grammar.comment),
        options.skip,
        table.dialect.has_header,
        columns.join(", ")
    );
    let one = |text: String| texts([Some(text)].into_iter());
    let given = |text: &Option<String>| texts([text.clone()].into_iter());
    batch(vec![
        ("Delimiter", one(shown(Some(grammar.delimiter)))),
        ("Quote", one(shown(Some(grammar.quote)))),
        // A doubled quote is one, whatever else is.
        ("Escape", one(shown(grammar.escape.or(Some(grammar.quote))))),
        ("NewLineDelimiter", one(line_end(&table)?.into())),
        ("Comment", one(shown(grammar.comment))),
        ("SkipRows", Arc::new(UInt64Array::from(vec![options.skip as u64]))),
        ("HasHeader", Arc::new(BooleanArray::from(vec![table.dialect.has_header]))),
        ("Columns", list_of_columns(&names, &types)?),
        ("DateFormat", given(&options.date_format)),
        ("TimestampFormat", given(&options.timestamp_format)),
        ("Prompt", one(prompt)),
    ])
}

/// How the first line ends.
fn line_end(table: &CsvTable) -> Result<&'static str> {
    /// Bytes that are looked at.
    const HEAD: u64 = 64 << 10;
    let mut head = vec![];
    if let Some(file) = table.files.first() {
        file.text.reader()?.read(0..file.text.bytes().min(HEAD), &mut head)?;
    }
    let end = head.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
    Ok(match end.map(|end| &head[end..]) {
        Some([b'\r', b'\n', ..]) => "\\r\\n",
        Some([b'\r', ..]) => "\\r",
        _ => "\\n",
    })
}

/// One list of names and types.
fn list_of_columns(names: &[&str], types: &[String]) -> Result<ArrayRef> {
    let field = |name: &str| Field::new(name, DataType::Utf8View, true);
    let fields: Fields = [field("name"), field("type")].into_iter().collect();
    let names: StringViewArray = names.iter().map(|name| Some(*name)).collect();
    let types: StringViewArray = types.iter().map(|of| Some(of.as_str())).collect();
    let columns = StructArray::try_new(fields, vec![Arc::new(names), Arc::new(types)], None)?;
    let item = Arc::new(Field::new_list_field(DataType::Struct(columns.fields().clone()), true));
    let whole = OffsetBuffer::from_lengths([columns.len()]);
    Ok(Arc::new(ListArray::try_new(item, whole, Arc::new(columns), None)?))
}
