//! Types of the columns of JSON rows: by all rows, on all cores.
//!
//! | seen in all rows | type |
//! |---|---|
//! | nothing but null | VARCHAR |
//! | truth values | BOOLEAN |
//! | numbers | as CSV has them (`io/csv/seen.rs`) |
//! | strings | as CSV has them where all of them are dates, or timestamps; otherwise VARCHAR |
//! | arrays | a list of the type of all elements |
//! | objects | a struct with the fields of all, in the order in which they come up |
//! | objects without fields, and values of several of these kinds | VARCHAR: the text of the JSON |
//!
//! Rows are values, too: where all of them are objects with fields, these are the columns. Otherwise
//! the rows are the one column `json`.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};

use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use parking_lot::Mutex;

use super::cursor::{Cursor, JsonWord, Wrong, unescaped};
use super::rows::{RowBlock, RowBlocks};
use crate::error::{Error, Result};
use crate::io::csv::Seen;
use warpframe_device::cores::cores;
use warpframe_device::interrupt;

/// What was seen at a place of rows.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Shape {
    boolean: bool,
    string: Seen,
    number: Seen,
    list: Option<Box<Shape>>,
    object: Option<Box<ObjectShape>>,
}

/// The fields of objects, in the order in which they came up.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct ObjectShape {
    pub(super) fields: Vec<(String, Shape)>,
    places: HashMap<String, usize>,
}

/// How values become those of a column.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum JsonType {
    Value(DataType),
    /// Text: that of the JSON, whatever it is.
    Json,
    /// Text: that of the JSON with the blanks between its parts.
    Written,
    /// Text: a string is itself, everything else the text of the JSON.
    Text,
    List(Box<JsonType>),
    Struct(Vec<(String, JsonType)>),
}

impl Shape {
    fn see(&mut self, cursor: &mut Cursor) -> std::result::Result<(), Wrong> {
        match cursor.peek() {
            b'{' => self.object.get_or_insert_default().see(cursor)?,
            b'[' => {
                let item = self.list.get_or_insert_default();
                cursor.array(|cursor| item.see(cursor))?;
            }
            b'"' => self.string.add_json_string(cursor.string()?.as_bytes()),
            _ => match cursor.scalar()? {
                JsonWord::Null => {}
                JsonWord::Boolean => self.boolean = true,
                JsonWord::Number(number) | JsonWord::Special(number) => {
                    self.number.merge(Seen::of_json_number(number.as_bytes()));
                }
            },
        }
        Ok(())
    }

    /// Whether there are values of several kinds.
    fn is_mixed(&self) -> bool {
        let kinds = [
            self.boolean,
            self.string.is_any(),
            self.number.is_any(),
            self.list.is_some(),
            self.object.is_some(),
        ];
        kinds.into_iter().filter(|kind| *kind).count() > 1
    }

    /// The columns of rows; `None` of rows that are other values than objects with fields.
    pub(super) fn columns(&self) -> Option<&ObjectShape> {
        let object = self.object.as_deref().filter(|object| !object.fields.is_empty());
        object.filter(|_| !self.is_mixed())
    }

    pub(super) fn merge(&mut self, other: Shape) {
        self.boolean |= other.boolean;
        self.string.merge(other.string);
        self.number.merge(other.number);
        if let Some(list) = other.list {
            self.list.get_or_insert_default().merge(*list);
        }
        if let Some(object) = other.object {
            self.object.get_or_insert_default().merge(*object);
        }
    }
}

impl ObjectShape {
    fn see(&mut self, cursor: &mut Cursor) -> std::result::Result<(), Wrong> {
        // Most objects have the keys of the one before, in its order.
        let mut expected = 0;
        cursor.object(|cursor, key| {
            let place = match self.fields.get(expected) {
                Some((name, _)) if name == key => expected,
                _ => self.place(&unescaped(key)),
            };
            expected = place + 1;
            self.fields[place].1.see(cursor)
        })
    }

    /// The place of a field, which comes up where it is not known.
    fn place(&mut self, name: &str) -> usize {
        match self.places.get(name) {
            Some(place) => *place,
            None => {
                self.places.insert(name.into(), self.fields.len());
                self.fields.push((name.into(), Shape::default()));
                self.fields.len() - 1
            }
        }
    }

    fn merge(&mut self, other: ObjectShape) {
        for (name, shape) in other.fields {
            let place = self.place(&name);
            self.fields[place].1.merge(shape);
        }
    }
}

impl JsonType {
    pub(super) fn of(shape: &Shape) -> JsonType {
        if shape.is_mixed() {
            return JsonType::Json;
        }
        match shape {
            Shape { list: Some(item), .. } => JsonType::List(Box::new(JsonType::of(item))),
            Shape { object: Some(object), .. } if object.fields.is_empty() => JsonType::Json,
            Shape { object: Some(object), .. } => {
                let field = |(name, shape): &(String, Shape)| (name.clone(), JsonType::of(shape));
                JsonType::Struct(object.fields.iter().map(field).collect())
            }
            Shape { boolean: true, .. } => JsonType::Value(DataType::Boolean),
            Shape { number, .. } if number.is_any() => match number.data_type() {
                DataType::Utf8View => JsonType::Json,
                dtype => JsonType::Value(dtype),
            },
            _ => JsonType::Value(shape.string.data_type()),
        }
    }

    /// Of a column that a user gave this type.
    pub(super) fn given(dtype: &DataType) -> JsonType {
        match dtype {
            DataType::List(item) => JsonType::List(Box::new(JsonType::given(item.data_type()))),
            DataType::Struct(fields) => {
                let field =
                    |field: &FieldRef| (field.name().clone(), JsonType::given(field.data_type()));
                JsonType::Struct(fields.iter().map(field).collect())
            }
            _ => JsonType::Text,
        }
    }

    pub(super) fn data_type(&self) -> DataType {
        match self {
            JsonType::Value(dtype) => dtype.clone(),
            JsonType::Json | JsonType::Written | JsonType::Text => DataType::Utf8View,
            JsonType::List(item) => {
                DataType::List(Arc::new(Field::new_list_field(item.data_type(), true)))
            }
            JsonType::Struct(fields) => {
                let field =
                    |(name, of): &(String, JsonType)| Field::new(name, of.data_type(), true);
                DataType::Struct(fields.iter().map(field).collect())
            }
        }
    }

    /// Whether there is a text of JSON in it.
    pub(super) fn has_json(&self) -> bool {
        match self {
            JsonType::Value(_) => false,
            JsonType::Json | JsonType::Written | JsonType::Text => true,
            JsonType::List(item) => item.has_json(),
            JsonType::Struct(fields) => fields.iter().any(|(_, of)| of.has_json()),
        }
    }
}

/// A file's rows.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct RowsShape {
    pub(super) row: Shape,
    pub(super) rows: usize,
    /// Lines that are left out, as they are no JSON.
    pub(super) left_out: u64,
    /// Whether there are numbers that JSON does not have.
    pub(super) has_special: bool,
}

impl RowsShape {
    fn merge(&mut self, other: RowsShape) {
        self.row.merge(other.row);
        self.rows += other.rows;
        self.left_out += other.left_out;
        self.has_special |= other.has_special;
    }
}

/// What a file's rows are.
///
/// # Errors
/// A text that cannot be read or is no JSON, by its line.
pub(super) fn of_rows(path: &Path, mut blocks: RowBlocks) -> Result<RowsShape> {
    let Some(first) = blocks.next()? else { return Ok(RowsShape::default()) };
    let mut all = of_block(path, first)?;
    let Some(second) = blocks.next()? else { return Ok(all) };
    let threads = cores();
    let (send, receive) = sync_channel::<(usize, RowBlock)>(threads);
    let receive = Mutex::new(receive);
    let mut found = std::thread::scope(|scope| -> Result<Vec<(usize, RowsShape)>> {
        let workers: Vec<_> =
            (0..threads).map(|_| scope.spawn(|| of_blocks(path, &receive))).collect();
        let (mut number, mut block, mut read) = (0, Some(second), Ok(()));
        while let Some(next) = block.take() {
            // A worker that failed takes no more: the others do.
            if send.send((number, next)).is_err() {
                break;
            }
            number += 1;
            match interrupt::check().map_err(Error::from).and_then(|()| blocks.next()) {
                Ok(next) => block = next,
                Err(error) => read = Err(error),
            }
        }
        drop(send);
        let join = |worker: std::thread::ScopedJoinHandle<'_, _>| {
            worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        let (mut found, mut failed): (Vec<_>, Vec<_>) = (vec![], vec![]);
        for worker in workers.into_iter().map(join) {
            match worker {
                Ok(shapes) => found.extend(shapes),
                Err(error) => failed.push(error),
            }
        }
        // What is wrong with a row is before what is wrong with the text behind it.
        if let Some((_, error)) = failed.into_iter().min_by_key(|(number, _)| *number) {
            return Err(error);
        }
        read.map(|()| found)
    })?;
    found.sort_by_key(|(number, _)| *number);
    found.into_iter().for_each(|(_, shape)| all.merge(shape));
    Ok(all)
}

/// Looks at blocks until there are no more; after an error, which comes with the number of its
/// block, the rest goes by unread.
fn of_blocks(
    path: &Path,
    blocks: &Mutex<Receiver<(usize, RowBlock)>>,
) -> std::result::Result<Vec<(usize, RowsShape)>, (usize, Error)> {
    let mut found = Ok(vec![]);
    loop {
        let next = blocks.lock().recv();
        let Ok((number, block)) = next else { return found };
        if let Ok(shapes) = &mut found {
            match of_block(path, block) {
                Ok(shape) => shapes.push((number, shape)),
                Err(error) => found = Err((number, error)),
            }
        }
    }
}

fn of_block(path: &Path, block: RowBlock) -> Result<RowsShape> {
    let (block, left_out) = block.without_bad_lines();
    let text = block.text(path)?;
    let (mut cursor, mut row) = (Cursor::new(text), Shape::default());
    while cursor.peek() != 0 {
        row.see(&mut cursor).map_err(|Wrong { at, what }| block.wrong(path, at, what))?;
    }
    if cursor.at() < text.len() {
        return Err(block.wrong(path, cursor.at(), "a zero byte"));
    }
    Ok(RowsShape { row, rows: block.rows, left_out, has_special: cursor.has_special() })
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::datatypes::TimeUnit::{Microsecond, Nanosecond};

    use super::*;
    use crate::io::json::rows::JsonLayout;

    fn of(text: &str) -> Result<Vec<(String, DataType)>> {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("t.json");
        std::fs::write(&path, text).expect("a file");
        let shape = of_rows(&path, RowBlocks::open(&path, None, JsonLayout::default())?)?;
        let column =
            |(name, shape): &(String, Shape)| (name.clone(), JsonType::of(shape).data_type());
        let columns = shape.row.columns().expect("rows are objects");
        Ok(columns.fields.iter().map(column).collect())
    }

    fn list(item: DataType) -> DataType {
        DataType::List(Arc::new(Field::new_list_field(item, true)))
    }

    fn fields(of: Vec<(&str, DataType)>) -> DataType {
        let field = |(name, dtype): (&str, DataType)| Field::new(name, dtype, true);
        DataType::Struct(of.into_iter().map(field).collect())
    }

    #[test]
    fn types_are_those_of_the_table() {
        use DataType as T;
        let text = || T::Utf8View;
        for (values, expected) in [
            (vec!["null"], text()),
            (vec!["true", "null"], T::Boolean),
            (vec!["1", "-2"], T::Int64),
            (vec!["1", "0.5", "1e3"], T::Float64),
            (vec!["9007199254740993", "18446744073709551615"], T::Decimal128(38, 0)),
            (vec!["9007199254740993", "0.25"], T::Decimal128(38, 2)),
            (vec!["1e3", "9007199254740993"], text()),
            (vec!["\"x\""], text()),
            (vec!["\"2024-02-29\"", "null"], T::Date32),
            (vec!["\"2024-02-29\"", "\"2024-02-29T12:30\""], T::Timestamp(Microsecond, None)),
            (vec!["\"2024-02-29 12:30:00.123456789\""], T::Timestamp(Nanosecond, None)),
            (
                vec!["\"2024-02-29T12:30:00Z\"", "\"2024-02-29 12:30:00+0130\""],
                T::Timestamp(Microsecond, Some("+00:00".into())),
            ),
            (vec!["[\"2024-02-29\", null]"], list(T::Date32)),
            (vec!["\"2024-02-29\"", "\"\""], text()),
            (vec!["\"2024-02-29\"", "\" 2024-02-29\""], text()),
            (vec!["\"2024-02-30\""], text()),
            (vec!["\"2024-02-29\"", "1"], text()),
            (vec!["1", "NaN", "-Infinity"], T::Float64),
            (vec!["1", "\"x\""], text()),
            (vec!["true", "1"], text()),
            (vec!["[]"], list(text())),
            (vec!["[]", "[1, null]"], list(T::Int64)),
            (vec!["[1, \"x\"]"], list(text())),
            (vec!["1", "[1]"], text()),
            (vec!["{}"], text()),
            (
                vec!["{\"z\": 1}", "{\"a\": [true], \"z\": 0.5}"],
                fields(vec![("z", T::Float64), ("a", list(T::Boolean))]),
            ),
            (vec!["[{\"x\": 1}, null]"], list(fields(vec![("x", T::Int64)]))),
            (vec!["{\"x\": 1}", "2"], text()),
        ] {
            let rows: String = values.iter().map(|value| format!("{{\"c\": {value}}}\n")).collect();
            assert_eq!(of(&rows).unwrap(), [("c".to_string(), expected)], "{values:?}");
        }
    }

    #[test]
    fn columns_come_in_the_order_of_the_file() {
        let names = |text: &str| -> Vec<String> {
            of(text).unwrap().into_iter().map(|(name, _)| name).collect()
        };
        assert_eq!(
            names("{\"name\": 1, \"city\": 2}\n{\"a\": 1, \"city\": 3}"),
            ["name", "city", "a"]
        );
        assert_eq!(names("{\"\\u0061\": 1}\n{\"a\": 2}"), ["a"]);
    }

    #[test]
    fn types_of_blocks_become_those_of_all_rows() {
        let pad = "x".repeat(1000);
        let line = |row: usize| match row {
            7 => "{\"z\": 1}\n".into(),
            20_000 => "{\"late\": {\"y\": [1]}, \"a\": 0.5}\n".to_string(),
            29_999 => "{\"late\": {\"x\": 1}, \"p\": 7}\n".to_string(),
            _ => format!("{{\"a\": {row}, \"p\": \"{pad}\"}}\n"),
        };
        let text: String = (0..30_000).map(line).collect();
        let late = fields(vec![("y", list(DataType::Int64)), ("x", DataType::Int64)]);
        let expected = [
            ("a".to_string(), DataType::Float64),
            ("p".to_string(), DataType::Utf8View),
            ("z".to_string(), DataType::Int64),
            ("late".to_string(), late),
        ];
        assert_eq!(of(&text).unwrap(), expected);
        let bad = [&text[..], "{\"a\": tru}\n", &text].concat();
        let error = of(&bad).unwrap_err().to_string();
        assert!(error.contains("line 30001: a value is expected"), "{error}");
    }
}
