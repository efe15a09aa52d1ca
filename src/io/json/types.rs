//! Types of the columns of JSON rows, which stand in a line each: by all rows, on all cores.
//!
//! A thread cuts the text into blocks of whole lines, and others infer the types of each block with
//! the crate arrow-json. What the blocks say becomes one by its rules, too: rows are made up that
//! have the types of a block, and the types of these are inferred.

use std::io::{Cursor, Read};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Mutex, PoisonError};

use datafusion::arrow::datatypes::{DataType, Fields, Schema};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::json::reader::{infer_json_schema, infer_json_schema_from_iterator};
use memchr::memrchr;
use serde_json::{Map, Value, json};

use crate::cores::cores;
use crate::error::Result;
use crate::interrupt;

/// Bytes of a block; one has at least a line.
const BLOCK: usize = 4 << 20;

/// The columns of rows, in the order in which they come up.
///
/// # Errors
/// Text that cannot be read or is no JSON; a column that is an object in one row and none in
/// another.
pub(super) fn of_lines(mut text: impl Read) -> Result<Schema> {
    let mut blocks = LineBlocks { rest: vec![], ended: false };
    let first = blocks.next(&mut text)?;
    if blocks.ended {
        return Ok(of_block(&first)?);
    }
    let threads = cores();
    let (send, receive) = sync_channel::<(usize, Vec<u8>)>(threads);
    let receive = Mutex::new(receive);
    let mut inferred = std::thread::scope(|scope| -> Result<Vec<(usize, Schema)>> {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(|| inferred(&receive))).collect();
        let (mut number, mut block, mut read) = (0, first, Ok(()));
        // A worker that failed takes no more: the others do.
        while !block.is_empty() && send.send((number, block)).is_ok() {
            number += 1;
            match interrupt::check().and_then(|()| blocks.next(&mut text)) {
                Ok(next) => block = next,
                Err(error) => {
                    read = Err(error);
                    break;
                }
            }
        }
        drop(send);
        let join =
            |worker: std::thread::ScopedJoinHandle<'_, std::result::Result<_, ArrowError>>| {
                worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
        let workers: Vec<_> = workers.into_iter().map(join).collect();
        read?;
        let found = workers.into_iter().collect::<std::result::Result<Vec<Vec<_>>, _>>()?;
        Ok(found.into_iter().flatten().collect())
    })?;
    inferred.sort_by_key(|(number, _)| *number);
    let rows = inferred.iter().flat_map(|(_, schema)| rows_of(schema.fields()));
    Ok(infer_json_schema_from_iterator(rows.map(Ok::<_, ArrowError>))?)
}

/// Infers blocks until there are no more; after an error the rest goes by unread.
fn inferred(
    blocks: &Mutex<Receiver<(usize, Vec<u8>)>>,
) -> std::result::Result<Vec<(usize, Schema)>, ArrowError> {
    let mut found = Ok(vec![]);
    loop {
        let next = blocks.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok((number, block)) = next else { return found };
        if let Ok(schemas) = &mut found {
            match of_block(&block) {
                Ok(schema) => schemas.push((number, schema)),
                Err(error) => found = Err(error),
            }
        }
    }
}

fn of_block(block: &[u8]) -> std::result::Result<Schema, ArrowError> {
    Ok(infer_json_schema(Cursor::new(block), None)?.0)
}

/// A text in blocks of whole lines.
struct LineBlocks {
    /// The begin of the next block.
    rest: Vec<u8>,
    ended: bool,
}

impl LineBlocks {
    /// The next lines; none at the end.
    fn next(&mut self, text: &mut impl Read) -> Result<Vec<u8>> {
        let mut block = std::mem::take(&mut self.rest);
        let mut wanted = BLOCK;
        while !self.ended {
            let seen = block.len();
            let read = text
                .by_ref()
                .take(wanted as u64)
                .read_to_end(&mut block)
                .map_err(ArrowError::from)?;
            self.ended = read < wanted;
            if self.ended {
                break;
            }
            if let Some(end) = memrchr(b'\n', &block[seen..]) {
                self.rest = block.split_off(seen + end + 1);
                break;
            }
            // A line that is longer than a block.
            wanted = block.len();
        }
        Ok(block)
    }
}

/// Rows of these types, whose columns come up in this order.
fn rows_of(fields: &Fields) -> Vec<Value> {
    let row = |name: &String, value| Value::Object(Map::from_iter([(name.clone(), value)]));
    fields
        .iter()
        .flat_map(|field| {
            values_of(field.data_type()).into_iter().map(|value| row(field.name(), value))
        })
        .collect()
}

/// Values that together have this type.
fn values_of(dtype: &DataType) -> Vec<Value> {
    match dtype {
        DataType::Boolean => vec![json!(true)],
        DataType::Int64 => vec![json!(1)],
        DataType::Float64 => vec![json!(0.5)],
        DataType::Utf8 => vec![json!("text")],
        DataType::Struct(fields) if fields.is_empty() => vec![json!({})],
        DataType::Struct(fields) => rows_of(fields),
        DataType::List(item) if item.data_type().is_null() => vec![json!([])],
        DataType::List(item) => {
            values_of(item.data_type()).into_iter().map(|value| json!([value])).collect()
        }
        _ => vec![Value::Null],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The types of all rows at once.
    fn at_once(lines: &[String]) -> Schema {
        infer_json_schema(Cursor::new(lines.concat()), None).expect("it is JSON").0
    }

    #[test]
    fn types_of_blocks_become_those_of_all_rows() {
        let pad = "x".repeat(1000);
        let line = |row: usize| match row % 10_000 {
            0 => format!("{{\"a\": {row}, \"l\": [], \"p\": \"{pad}\"}}\n"),
            7 if row > 9000 => {
                format!(
                    "{{\"late\": {{\"z\": 1, \"y\": [{{\"q\": true}}]}}, \"a\": 0.5, \"p\": \"{pad}\"}}\n"
                )
            }
            9 if row > 20_000 => {
                "{\"late\": {\"y\": [], \"x\": null, \"z\": 2.5}, \"n\": null, \"b\": {}}\n"
                    .to_string()
            }
            11 => format!(
                "{{\"m\": {}, \"p\": \"{pad}\"}}\n",
                if row > 15_000 { "\"text\"" } else { "3" }
            ),
            13 => format!(
                "{{\"l\": [1, 2], \"s\": {}, \"p\": \"{pad}\"}}\n",
                if row > 15_000 { "[7]" } else { "7" }
            ),
            _ => format!("{{\"a\": null, \"p\": \"{pad}\"}}\n"),
        };
        let lines: Vec<String> = (0..30_000).map(line).collect();
        let text = lines.concat();
        assert!(text.len() > 6 * BLOCK);
        let found = of_lines(Cursor::new(&text)).expect("it is JSON");
        assert_eq!(found, at_once(&lines));
        assert!(found.field_with_name("late").is_ok() && found.fields().len() == 8, "{found:?}");
        // The last line need not end, and a line may be longer than a block.
        assert_eq!(of_lines(Cursor::new(text.trim_end())).expect("it is JSON"), found);
        let long = format!("{{\"a\": \"{}\"}}\n{{\"b\": 1}}", "y".repeat(3 * BLOCK));
        assert_eq!(of_lines(Cursor::new(long)).expect("it is JSON").fields().len(), 2);
        assert_eq!(of_lines(Cursor::new("")).expect("it has no rows").fields().len(), 0);
    }

    #[test]
    fn text_that_is_no_json_is_an_error_wherever_it_stands() {
        let pad = "x".repeat(1000);
        let good = format!("{{\"a\": 1, \"p\": \"{pad}\"}}\n").repeat(20_000);
        for (at, bad) in
            [(0, "{\"a\": \n"), (good.len() / 2, "nonsense\n"), (good.len(), "{\"a\": 1")]
        {
            let at = at - at % (good.len() / 20_000);
            let text = [&good[..at], bad, &good[at..]].concat();
            of_lines(Cursor::new(text)).expect_err(bad);
        }
        let text = [good.as_str(), "{\"a\": {\"b\": 1}}\n"].concat();
        of_lines(Cursor::new(text)).expect_err("an object beside a number");
    }
}
