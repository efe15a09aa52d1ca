//! Tables of columns of every type, and what is left of those that find no memory.

use datafusion::arrow::array::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::{Field, Schema};

use super::*;

/// One column of every type, twice: with nulls and without.
fn every_type(rows: &[(u64, bool)]) -> (SchemaRef, Vec<ArrayRef>) {
    let valid: Vec<(u64, bool)> = rows.iter().map(|&(raw, _)| (raw, true)).collect();
    let types = types();
    let fields = types.iter().flat_map(|dtype| {
        [
            Field::new(format!("{dtype} with nulls"), dtype.clone(), true),
            Field::new(format!("{dtype}"), dtype.clone(), true),
        ]
    });
    let schema = Schema::new(fields.collect::<Vec<_>>());
    let arrays =
        types.iter().flat_map(|dtype| [array(dtype, rows), array(dtype, &valid)]).collect();
    (Arc::new(schema), arrays)
}

fn sample(rows: u64) -> Vec<(u64, bool)> {
    (0..rows).map(|row| (row.wrapping_mul(0x9e37_79b9_7f4a_7c15), row % 3 != 1)).collect()
}

#[test]
fn tables_come_back_as_batches() {
    let device = device();
    let (schema, arrays) = every_type(&sample(100));
    let batch = RecordBatch::try_new(schema.clone(), arrays).unwrap();
    let batches = [batch.slice(0, 33), batch.slice(33, 0), batch.slice(33, 67)];
    let table = Table::from_batches(&device, schema.clone(), &batches).unwrap();
    assert_eq!(table.rows, 100);
    for (each, sizes) in
        [(32, vec![32, 32, 32, 4]), (100, vec![100]), (8192, vec![100]), (0, vec![1; 100])]
    {
        let back = table.to_batches(each).unwrap();
        assert_eq!(back.iter().map(RecordBatch::num_rows).collect::<Vec<_>>(), sizes);
        for (index, field) in schema.fields().iter().enumerate() {
            let chunks: Vec<ArrayRef> =
                back.iter().map(|batch| batch.column(index).clone()).collect();
            assert_eq!(
                &joined(field.data_type(), &chunks),
                &decoded(batch.column(index)),
                "{field}"
            );
        }
    }
}

#[test]
fn tables_without_rows_or_columns_are_tables() {
    let device = device();
    let (schema, _) = every_type(&[]);
    let empty = Table::empty(&device, schema).unwrap();
    assert_eq!((empty.rows, empty.to_batches(10).unwrap().len()), (0, 0));
    assert!(empty.columns.iter().all(|column| column.to_array().unwrap().is_empty()));

    let schema: SchemaRef = Arc::new(Schema::empty());
    let options = RecordBatchOptions::new().with_row_count(Some(7));
    let batch = RecordBatch::try_new_with_options(schema.clone(), vec![], &options).unwrap();
    let table = Table::from_batches(&device, schema, &[batch.clone(), batch]).unwrap();
    let rows: Vec<usize> =
        table.to_batches(10).unwrap().iter().map(RecordBatch::num_rows).collect();
    assert_eq!((table.rows, rows), (14, vec![10, 4]));
}

#[test]
fn tables_are_checked() {
    let device = device();
    let numbers = |count: i32| {
        let array: ArrayRef = Arc::new(Int32Array::from_iter_values(0..count));
        Column::from_arrays(&device, &DataType::Int32, &[array]).unwrap()
    };
    let schema = |types: &[DataType]| -> SchemaRef {
        Arc::new(Schema::new(
            types.iter().map(|dtype| Field::new("x", dtype.clone(), true)).collect::<Vec<_>>(),
        ))
    };
    let two = schema(&[DataType::Int32, DataType::Int32]);
    assert_eq!(
        Table::with_rows(&device, two.clone(), vec![numbers(3), numbers(3)], 3).unwrap().rows,
        3
    );
    let wrong = [
        Table::with_rows(&device, two.clone(), vec![numbers(3)], 3),
        Table::with_rows(&device, two, vec![numbers(3), numbers(4)], 3),
        Table::with_rows(&device, schema(&[DataType::Date32]), vec![numbers(3)], 3),
    ];
    for table in wrong {
        assert!(matches!(table.unwrap_err().kind(), ErrorKind::TypeMismatch { .. }));
    }
}

#[test]
fn failed_allocations_leave_nothing_behind() {
    let device = device();
    let mut rows = sample(700);
    let (_, valid) = rows.split_at_mut(300);
    valid.iter_mut().for_each(|(raw, _)| *raw |= 7);
    let (schema, arrays) = every_type(&rows);
    let batch = RecordBatch::try_new(schema.clone(), arrays).unwrap();
    let before = device.counters().allocations;
    let table = Table::from_batches(&device, schema.clone(), std::slice::from_ref(&batch)).unwrap();
    let steps = device.counters().allocations - before;
    assert!(table.columns.iter().any(|column| column.dictionary().is_some()));
    assert!(
        table.columns.iter().any(|column| !column.characters.is_empty()),
        "plain strings take part"
    );
    let used = device.memory().used;
    for step in 0..steps {
        device.fail_allocation_after(step);
        let error =
            Table::from_batches(&device, schema.clone(), std::slice::from_ref(&batch)).unwrap_err();
        assert!(
            matches!(error.kind(), ErrorKind::OutOfDeviceMemory { operator: "import", .. }),
            "step {step}: {error}"
        );
        assert_eq!(device.memory().used, used, "step {step}");
    }
    // The device stays usable.
    let again = Table::from_batches(&device, schema, &[batch]).unwrap();
    assert_eq!(again.to_batches(1000).unwrap(), table.to_batches(1000).unwrap());
    drop((table, again));
    assert_eq!((device.memory().used, device.memory().allocations), (0, 0));
}
