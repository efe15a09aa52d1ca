//! The tables of `docs/sql.md` say what the engine does: every example in them is planned, and
//! those on the device are run there and on the CPU.

use std::sync::Arc;

use warpframe::ErrorKind;
use warpframe::arrow::array::*;

use crate::differential::{Agreement, Pair, builder};
use crate::tables::columns;

const PAGE: &str = include_str!("../../docs/sql.md");

/// The second and third cells of each row with an example: whether it is on the device, and the
/// example.
fn examples() -> Vec<(bool, String)> {
    let rows = PAGE.lines().filter(|line| line.starts_with("| "));
    let mut examples = vec![];
    for row in rows {
        let cells = row.replace("\\|", "\u{1}");
        let cells: Vec<String> =
            cells.split('|').map(|cell| cell.trim().replace('\u{1}', "|")).collect();
        let on_device = match cells[2].as_str() {
            "yes" => true,
            "no" => false,
            "device" => continue,
            other => panic!("{other:?} is neither yes nor no: {row}"),
        };
        if cells[3].is_empty() {
            continue;
        }
        let sql = cells[3].strip_prefix('`').and_then(|sql| sql.strip_suffix('`'));
        examples.push((on_device, sql.unwrap_or_else(|| panic!("no example: {row}")).to_string()));
    }
    examples
}

/// The table of the page's examples.
fn pair() -> Pair {
    let decimals = Decimal128Array::from(vec![Some(1250), None, Some(-399), Some(100), Some(0)]);
    let strings =
        |values: &[Option<&str>]| Arc::new(StringViewArray::from(values.to_vec())) as ArrayRef;
    let table = columns(vec![
        (
            "i",
            Arc::new(Int64Array::from(vec![Some(1), Some(2), None, Some(4), Some(5)])) as ArrayRef,
        ),
        ("j", Arc::new(Int64Array::from(vec![Some(5), Some(4), Some(3), None, Some(1)]))),
        (
            "d",
            Arc::new(Date32Array::from(vec![
                Some(0),
                Some(11_016),
                None,
                Some(19_000),
                Some(18_321),
            ])),
        ),
        (
            "ts",
            Arc::new(TimestampMicrosecondArray::from(vec![
                Some(0),
                None,
                Some(1_600_000_000_000_000),
                Some(-1),
                Some(7),
            ])),
        ),
        ("m", Arc::new(decimals.with_precision_and_scale(15, 2).expect("they fit"))),
        (
            "x",
            Arc::new(Float64Array::from(vec![Some(0.5), Some(-2.25), None, Some(1e6), Some(3.0)])),
        ),
        (
            "y",
            Arc::new(Float64Array::from(vec![Some(2.0), Some(1.0), Some(4.5), None, Some(0.25)])),
        ),
        ("s", strings(&[Some("a quite long string bc"), Some("b"), None, Some(""), Some(" éa ")])),
        ("p", strings(&[Some("bc"), Some("b"), Some("a"), None, Some("é")])),
        (
            "b",
            Arc::new(BooleanArray::from(vec![
                Some(true),
                Some(false),
                None,
                Some(true),
                Some(false),
            ])),
        ),
    ]);
    Pair::with(builder().strict(true)).and("t", table)
}

#[test]
fn the_page_on_sql_is_right() {
    let (pair, mut wrong) = (pair(), vec![]);
    let examples = examples();
    assert!(examples.len() > 60, "the tables are not found");
    for (on_device, sql) in &examples {
        let result = pair.device.sql(sql).and_then(|frame| frame.collect());
        match (on_device, &result) {
            // Both sessions must be able to plan it.
            _ if pair.cpu.sql(sql).is_err() => {
                wrong.push(format!("{:?}: {sql}", pair.cpu.sql(sql).err()))
            }
            (true, Ok(_)) => assert!(matches!(pair.agreement(sql), Agreement::Rows(_)), "{sql}"),
            (false, Err(error)) if matches!(error.kind(), ErrorKind::Unsupported { .. }) => {}
            (_, Ok(_)) => wrong.push(format!("is on the device: {sql}")),
            (_, Err(error)) => wrong.push(format!("{error}: {sql}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
