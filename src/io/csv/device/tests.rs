//! Stretches of any width, and files of other columns, against the host's reader.

use std::path::PathBuf;

use datafusion::arrow::array::{ArrayRef, RecordBatch};
use datafusion::arrow::compute::concat_batches;
use datafusion::arrow::datatypes::Schema;

use super::*;
use crate::io::csv::host::CsvProvider;
use crate::io::csv::options::CsvOptions;
use crate::io::path_columns::PathColumns;
use warpframe_device::{MemoryLimit, SimOptions};

fn device() -> Device {
    Device::sim(SimOptions::default(), MemoryLimit::Bytes(1 << 30)).expect("the simulator opens")
}

fn opened(paths: &[PathBuf], options: &CsvOptions) -> CsvTable {
    CsvTable::open(paths, options, PathColumns::default()).unwrap()
}

/// The rows of columns as the host's reader has them.
fn expected(table: &Arc<CsvTable>, columns: &[usize]) -> RecordBatch {
    let schema = Arc::new(table.schema.project(columns).unwrap());
    let batches = CsvProvider::new(table.clone()).rows(columns).unwrap();
    concat_batches(&schema, &batches).unwrap()
}

fn found(device: &Device, table: &CsvTable, columns: &[usize], stretch: u64) -> Vec<ArrayRef> {
    match read_by(device, table, columns, None, stretch).unwrap() {
        DeviceRead::Rows(rows, found) => {
            let array = |column: &Column| column.to_arrays(rows.max(1) as usize).unwrap().remove(0);
            found.iter().map(array).collect()
        }
        other => panic!("{other:?}"),
    }
}

fn written(directory: &tempfile::TempDir, texts: &[String]) -> Vec<PathBuf> {
    let path = |at: usize| directory.path().join(format!("{at}.csv"));
    texts.iter().enumerate().for_each(|(at, text)| std::fs::write(path(at), text).unwrap());
    (0..texts.len()).map(path).collect()
}

#[test]
fn rows_go_over_the_ends_of_stretches() {
    let device = device();
    let directory = tempfile::tempdir().unwrap();
    let row = |n: usize| {
        let day = n % 28 + 1;
        let text = ["plain", "\"a \"\"quoted\"\" one, with\nlines\"", "", "\"\"", "häßlich"][n % 5];
        format!("{n},{}.5,2024-02-{day:02},{text},{}\r\n", n * 7, "long ".repeat(n % 4))
    };
    let whole: String = (0..60).map(row).collect();
    let texts = [
        format!("a,b,c,d,e\n{whole}"),
        "a,b,c,d,e\n".into(),
        format!("a,b,c,d,e\n{}", row(3).trim_end()),
    ];
    let table = Arc::new(opened(&written(&directory, &texts), &CsvOptions::default()));
    let columns = [0, 1, 2, 3, 4];
    let expected = expected(&table, &columns);
    assert_eq!(expected.num_rows(), 61);
    for stretch in [13, 63, 64, 65, 1000, 1 << 20] {
        assert_eq!(
            found(&device, &table, &columns, stretch),
            expected.columns(),
            "stretches of {stretch} bytes"
        );
    }
    let counted = read_by(&device, &table, &[], None, 50).unwrap();
    assert!(matches!(counted, DeviceRead::Rows(61, columns) if columns.is_empty()));
    let first = read_by(&device, &table, &[0], Some(2), 50).unwrap();
    assert!(matches!(&first, DeviceRead::Rows(2..61, _)));
    drop(first);
    assert_eq!(device.memory().used, 0);
}

#[test]
fn files_of_other_columns_are_read_by_stretches_of_any_width() {
    let device = device();
    let directory = tempfile::tempdir().unwrap();
    let row = |n: usize| format!("{n},\"a text, of row {n}\",{n}.5\n");
    let turned = |n: usize| format!("another text of row {n},{n}\n");
    let texts = [
        format!("a,s,f\n{}", (0..40).map(row).collect::<String>()),
        format!("s,a\n{}", (0..30).map(turned).collect::<String>()),
        "f\n".into(),
        format!("z\n{}", "only here\n".repeat(20)),
    ];
    let table = Arc::new(opened(
        &written(&directory, &texts),
        &CsvOptions { has_header: Some(true), ..CsvOptions::default() },
    ));
    for columns in [&[0, 1, 2, 3][..], &[1], &[2, 0], &[3]] {
        let expected = expected(&table, columns);
        assert_eq!(expected.num_rows(), 90);
        for stretch in [13, 64, 100, 1 << 20] {
            assert_eq!(
                found(&device, &table, columns, stretch),
                expected.columns(),
                "stretches of {stretch} bytes"
            );
        }
    }
    let some = table.of_files(&[1, 3]);
    assert!(
        matches!(read_by(&device, &some, &[], None, 50).unwrap(), DeviceRead::Rows(50, columns) if columns.is_empty())
    );
    let none = table.of_files(&[]);
    assert!(
        matches!(read_by(&device, &none, &[1, 0], None, 50).unwrap(), DeviceRead::Rows(0, columns) if columns.len() == 2)
    );
    assert_eq!(device.memory().used, 0);
}

#[test]
fn the_text_of_a_stretch_goes_once_nothing_points_into_it() {
    let device = device();
    let directory = tempfile::tempdir().unwrap();
    // Strings are a small part of the text, and each of them is another one.
    let row = |n: usize| format!("{n:0>400},a text of row number {n}\n");
    let text = format!("n,s\n{}", (0..20_000).map(row).collect::<String>());
    let bytes = text.len() as u64;
    let table = opened(&written(&directory, &[text]), &CsvOptions::default());
    for columns in [&[0][..], &[0, 1]] {
        device.reset_peak_memory();
        let read = read_by(&device, &table, columns, None, bytes / 40).unwrap();
        assert!(matches!(read, DeviceRead::Rows(20_000, _)));
        let peak = device.memory().peak;
        assert!(peak < bytes * 3 / 4, "{peak} of {bytes} bytes");
    }
}

#[test]
fn rows_may_be_longer_than_the_room_for_them() {
    let device = device();
    let directory = tempfile::tempdir().unwrap();
    let row = |n: usize| {
        format!("{n},\"{}\"\n", "word, ".repeat(if n == 1 { 3 * REST / 6 } else { 4 * n }))
    };
    let text: String = (0..4).map(row).collect();
    let table = opened(&written(&directory, &[format!("a,b\n{text}")]), &CsvOptions::default());
    let table = Arc::new(table);
    let expected = expected(&table, &[1, 0]);
    for stretch in [REST as u64 / 3, REST as u64 - 1, REST as u64 + 1] {
        assert_eq!(found(&device, &table, &[1, 0], stretch), expected.columns());
    }
}

#[test]
fn what_does_not_fit_is_said_and_what_the_host_knows_better_is_left_to_it() {
    let device = device();
    let directory = tempfile::tempdir().unwrap();
    let numbers: String = (0..3000).map(|n| format!("{n},{n}\n")).collect();
    let of = |text: String, options: CsvOptions| {
        let table = opened(&written(&directory, &[text]), &options);
        read_by(&device, &table, &[0, 1], None, 1000).unwrap()
    };
    let few = CsvOptions { sample_size: Some(1), ..CsvOptions::default() };
    let late = format!("a,b\n{numbers}x,1\n{numbers}");
    assert!(
        matches!(of(late.clone(), few.clone()), DeviceRead::Refused(columns) if columns == [0])
    );
    let by_host = |read: DeviceRead, what: &str| {
        assert!(matches!(&read, DeviceRead::ByHost(reason) if reason.contains(what)), "{read:?}");
    };
    by_host(of(late, CsvOptions { widen: false, ..few.clone() }), "one of its values");
    let typed = |first: DataType| {
        let field = |name: &str, dtype| datafusion::arrow::datatypes::Field::new(name, dtype, true);
        let schema = Schema::new(vec![field("a", first), field("b", DataType::Utf8View)]);
        CsvOptions { schema: Some(Arc::new(schema)), ..few.clone() }
    };
    by_host(of(format!("a,b\n{numbers}1,\"x\n"), typed(DataType::Int64)), "a quote is not closed");
    by_host(
        of(format!("a,b\n{numbers}1\n{numbers}"), typed(DataType::Int64)),
        "another number of values",
    );
    by_host(
        of("a,b\n1,2\n".into(), CsvOptions { ragged: Ragged::Skip, ..few.clone() }),
        "left out",
    );
    by_host(of("a,b\n1,2\n".into(), typed(DataType::Binary)), "type Binary");
    by_host(of("a,b\n1,2\n".into(), CsvOptions { thousands: Some(b'_'), ..few }), "how numbers");
}
