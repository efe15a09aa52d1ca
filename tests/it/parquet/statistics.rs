//! Statistics: of floats, which leave NaN out, and of some row groups.

use datafusion::parquet::file::metadata::{
    ParquetMetaDataReader, ParquetMetaDataWriter, RowGroupMetaData,
};

use super::*;

/// Statistics leave NaN out, and the field that says how many there are is read by nobody.
#[test]
fn statistics_of_floats_are_not_believed() {
    let directory = directory();
    let path = directory.path().join("t.parquet");
    let nan = f64::NAN;
    let constant = vec![2.5, nan, 2.5];
    let floats: Vec<f32> = constant.iter().map(|x| *x as f32).collect();
    let groups = [
        vec![Values::Double(constant), Values::Float(floats), Values::Int32(vec![1, 1, 1])],
        vec![
            Values::Double(vec![0.5, 1.0, nan]),
            Values::Float(vec![0.5, 1.0, f32::NAN]),
            Values::Int32(vec![2; 3]),
        ],
    ];
    let columns = "required double x; required float y; required int32 k;";
    let small = || {
        plain()
            .set_bloom_filter_enabled(true)
            .set_data_page_row_count_limit(1)
            .set_write_batch_size(1)
    };
    for (groups, properties) in
        [(&groups[..1], plain()), (&groups[..], plain()), (&groups[..], small())]
    {
        write(&path, columns, groups, properties);
        for session in both(&path) {
            let many = groups.len() as i128;
            for column in ["x", "y"] {
                let ask = |what: &str| scalar(&session, &what.replace("$", column));
                let Cell::Float(max) = ask("SELECT max($) FROM t") else { panic!("a float") };
                assert!(max.is_nan(), "{column}: {max}");
                assert_eq!(ask("SELECT count(*) FROM t WHERE $ > 2.5"), Cell::Int(many));
                assert_eq!(ask("SELECT count(*) FROM t WHERE $ <> 2.5 AND k = 1"), Cell::Int(1));
                assert_eq!(ask("SELECT count(*) FROM t WHERE $ = 0.5"), Cell::Int(many - 1));
                assert_eq!(ask("SELECT count(*) FROM t WHERE isnan($)"), Cell::Int(many));
                let found = rows(&session, &format!("SELECT {column} FROM t WHERE k = 1"));
                let nans = found
                    .iter()
                    .filter(|row| matches!(row[0], Cell::Float(x) if x.is_nan()))
                    .count();
                assert_eq!((found.len(), nans), (3, 1), "{found:?}");
            }
            // Statistics of other types still are.
            assert_eq!(
                scalar(&session, "SELECT count(*) FROM t WHERE k > 1"),
                Cell::Int(3 * (many - 1))
            );
        }
    }
}

/// Files put together from others may have statistics in some of their row groups.
#[test]
fn statistics_of_some_row_groups_are_not_those_of_all() {
    let directory = directory();
    let path = directory.path().join("t.parquet");
    let group =
        |n: i32, s: &'static [u8]| vec![Values::Int32(vec![n, n + 1]), Values::Bytes(vec![s, s])];
    let groups = [group(1, b"m"), group(-9, b"a"), group(70, b"z")];
    write(&path, "required int32 n; required binary s (STRING);", &groups, plain());
    let bytes = std::fs::read(&path).expect("it was written");
    let length = bytes.len() - 8;
    let begin = length
        - u32::from_le_bytes(bytes[length..length + 4].try_into().expect("four bytes")) as usize;
    let metadata =
        ParquetMetaDataReader::decode_metadata(&bytes[begin..length]).expect("it is whole");
    let kept = |(number, group): (usize, &RowGroupMetaData)| {
        let columns = group.columns().iter().map(|column| match number {
            0 => column.clone(),
            _ => column.clone().into_builder().clear_statistics().build().expect("a column"),
        });
        group
            .clone()
            .into_builder()
            .set_column_metadata(columns.collect())
            .build()
            .expect("a row group")
    };
    let groups = metadata.row_groups().iter().enumerate().map(kept).collect();
    let metadata = metadata
        .into_builder()
        .set_row_groups(groups)
        .set_column_index(None)
        .set_offset_index(None)
        .build();
    let mut file = bytes[..begin].to_vec();
    ParquetMetaDataWriter::new(&mut file, &metadata).finish().expect("a footer can be written");
    std::fs::write(&path, file).expect("the file can be written");
    for session in both(&path) {
        let found = rows(&session, "SELECT min(n), max(n), min(s), max(s), count(*) FROM t");
        let expected = [
            Cell::Int(-9),
            Cell::Int(71),
            Cell::Text("a".into()),
            Cell::Text("z".into()),
            Cell::Int(6),
        ];
        assert_eq!(found, [expected.to_vec()]);
        assert_eq!(
            scalar(&session, "SELECT count(*) FROM t WHERE n > 2 AND s > 'm'"),
            Cell::Int(2)
        );
    }
}

#[test]
fn our_own_copies_keep_nan() -> Result<()> {
    let directory = directory();
    let path = directory.path().join("t.parquet");
    let values = "(2.5, {'a': 2.5, 'b': [2.5]}), ('NaN', {'a': 'NaN', 'b': ['NaN']}), (2.5, {'a': 2.5, 'b': [2.5]})";
    let sql = format!(
        "SELECT CAST(x AS double) AS x, {{'a': CAST(s['a'] AS double)}} AS s, [CAST(s['a'] AS double)] AS l \
         FROM (VALUES {values}) AS v (x, s)"
    );
    let cpu = Session::builder().device(DeviceChoice::Cpu).build()?;
    let sql = match run(&cpu, &sql) {
        Ok(_) => sql,
        Err(_) => {
            "SELECT x, {'a': x} AS s, [x] AS l FROM (SELECT CASE WHEN i = 2 THEN CAST('NaN' AS double) ELSE 2.5 END \
                   AS x FROM (VALUES (1), (2), (3)) AS v (i))"
                .into()
        }
    };
    run(&cpu, &sql)?.write_parquet(&path)?;
    for session in both(&path) {
        let nan = |sql: &str| matches!(scalar(&session, sql), Cell::Float(x) if x.is_nan());
        assert!(
            nan("SELECT max(x) FROM t")
                && nan("SELECT max(s['a']) FROM t")
                && nan("SELECT max(l[1]) FROM t")
        );
        assert_eq!(scalar(&session, "SELECT count(*) FROM t WHERE x > 2.5"), Cell::Int(1));
        assert_eq!(scalar(&session, "SELECT count(*) FROM t WHERE s['a'] > 2.5"), Cell::Int(1));
        assert_eq!(scalar(&session, "SELECT count(*) FROM t WHERE l[1] > 2.5"), Cell::Int(1));
    }
    Ok(())
}
