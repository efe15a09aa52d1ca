//! Tables that are cut at the same keys: their joins and groups move no rows.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::file::properties::{EnabledStatistics, WriterProperties};
use rand::rngs::StdRng;
use rand::seq::{IndexedRandom, SliceRandom};
use rand::{Rng, SeedableRng};
use tempfile::TempDir;
use warpframe::arrow::array::{ArrayRef, Date32Array, Int32Array, Int64Array, StringArray};
use warpframe::arrow::compute::concat_batches;
use warpframe::arrow::datatypes::DataType;
use warpframe::arrow::record_batch::RecordBatch;
use warpframe::prelude::col;
use warpframe::{ErrorKind, Session};

use super::{is_simulated, pair, sent, tpch};
use crate::differential::{Agreement, Pair, run};
use crate::random::{queries_and_seed, query_of, tables_of};

/// Rows of keys and their numbers.
fn batch(keys: &[Option<i64>], dtype: &DataType) -> RecordBatch {
    let key: ArrayRef = match dtype {
        DataType::Int32 => {
            Arc::new(Int32Array::from_iter(keys.iter().map(|key| key.map(|key| key as i32))))
        }
        DataType::Date32 => {
            Arc::new(Date32Array::from_iter(keys.iter().map(|key| key.map(|key| key as i32))))
        }
        _ => Arc::new(Int64Array::from_iter(keys.iter().copied())),
    };
    let numbers = Int64Array::from_iter_values(0..keys.len() as i64);
    let texts: StringArray =
        (0..keys.len()).map(|row| (row % 7 != 3).then(|| format!("row {}", row % 31))).collect();
    let columns: Vec<(&str, ArrayRef)> =
        vec![("k", key), ("i", Arc::new(numbers)), ("s", Arc::new(texts))];
    let columns = columns.into_iter().map(|(name, array)| (name, array, true));
    RecordBatch::try_from_iter_with_nullable(columns).expect("a batch")
}

fn write(path: &Path, rows: &RecordBatch, group: usize, statistics: EnabledStatistics) {
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(group))
        .set_statistics_enabled(statistics)
        .build();
    let file = std::fs::File::create(path).expect("the file can be made");
    let mut writer = ArrowWriter::try_new(file, rows.schema(), Some(properties)).expect("a writer");
    writer.write(rows).expect("rows can be written");
    writer.close().expect("the file is whole");
}

fn register(pair: &Pair, name: &str, path: &Path) {
    for session in [&pair.cpu, &pair.device] {
        session.register_parquet(name, path).expect("a table");
    }
}

/// A file of such keys.
fn table(pair: &Pair, folder: &TempDir, name: &str, keys: &[Option<i64>], group: usize) -> PathBuf {
    let path = folder.path().join(format!("{name}.parquet"));
    write(&path, &batch(keys, &DataType::Int64), group, EnabledStatistics::Chunk);
    register(pair, name, &path);
    path
}

/// Bytes that a query, whose answer is right, moves between devices.
fn moved(pair: &Pair, sql: &str) -> u64 {
    let before = sent(&pair.device);
    pair.check(sql);
    sent(&pair.device) - before
}

fn explained(session: &Session, sql: &str) -> String {
    session.sql(sql).and_then(|frame| frame.explain()).expect("it is planned")
}

/// A few rows come to the first device.
const RESULT: u64 = 200;

#[test]
fn joins_and_groups_of_tables_that_are_cut_alike_move_no_rows() {
    for count in [2, 3] {
        let (pair, _files) = tpch(count);
        for sql in [
            "SELECT count(*), sum(l_quantity) FROM orders JOIN lineitem ON o_orderkey = l_orderkey",
            "SELECT count(*), sum(q) FROM (SELECT l_orderkey, sum(l_quantity) AS q FROM lineitem GROUP BY l_orderkey)",
            "SELECT count(*), sum(n) FROM (SELECT l_orderkey, l_partkey, count(DISTINCT l_suppkey) AS n FROM lineitem GROUP BY l_orderkey, l_partkey)",
            "SELECT count(*), max(m) FROM (SELECT o_orderkey AS k, o_orderdate, median(l_quantity) AS m FROM orders LEFT JOIN lineitem ON o_orderkey = l_orderkey AND l_tax > 0.02 GROUP BY o_orderkey, o_orderdate)",
            "SELECT count(*) FROM orders FULL JOIN lineitem ON o_orderkey = l_orderkey AND l_quantity > 40",
            "SELECT count(*) FROM orders WHERE NOT EXISTS (SELECT 1 FROM lineitem WHERE l_orderkey = o_orderkey AND l_quantity > 40)",
            "SELECT count(*) FROM orders WHERE o_orderkey IN (SELECT l_orderkey FROM lineitem GROUP BY l_orderkey HAVING sum(l_quantity) > 200)",
            "SELECT max(r) FROM (SELECT row_number() OVER (PARTITION BY l_orderkey ORDER BY l_linenumber) AS r FROM lineitem)",
            "SELECT count(*) FROM (SELECT DISTINCT l_orderkey, l_returnflag FROM lineitem)",
        ] {
            let bytes = moved(&pair, sql);
            assert!(bytes <= RESULT * count as u64, "{bytes} bytes on {count} devices: {sql}");
        }
        // By other keys rows move.
        let sql = "SELECT count(*), sum(q) FROM (SELECT l_suppkey, sum(l_quantity) AS q FROM lineitem GROUP BY l_suppkey)";
        assert!(moved(&pair, sql) > 1000, "a group by another key is on several devices");
    }
}

#[test]
fn rows_of_one_side_move_to_keys_that_stay() {
    let (pair, _files) = tpch(2);
    // Customers lie by their keys, and orders do not.
    let sql = "SELECT count(*), sum(n) FROM (SELECT c_custkey, count(o_orderkey) AS n FROM customer LEFT JOIN orders ON c_custkey = o_custkey GROUP BY c_custkey)";
    let text = explained(&pair.device, sql);
    assert!(text.contains("its part of customer, cut by c_custkey"), "{text}");
    let bytes = moved(&pair, sql);
    if is_simulated() {
        assert!(text.contains("exchanged by where o_custkey lies"), "{text}");
        // Half of the orders' keys of both kinds, of eight bytes each, and few more.
        assert!((60_000..160_000).contains(&bytes), "{bytes}");
    }
}

#[test]
fn what_devices_do_is_explained() {
    let (pair, _files) = tpch(2);
    let text = explained(
        &pair.device,
        "SELECT o_orderkey, sum(l_quantity) AS q FROM orders JOIN lineitem ON o_orderkey = l_orderkey GROUP BY o_orderkey ORDER BY q DESC, o_orderkey LIMIT 3",
    );
    for part in [
        "on 2 devices, in 2 stages",
        "stage 1, on device 0: Sort:",
        "all rows of stage 0",
        "stage 0, on each device: ",
        "its part of orders, cut by o_orderkey at ",
        "its part of lineitem, cut by l_orderkey at ",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    let cut = |table: &str| {
        let line = text.lines().find(|line| line.contains(&format!("its part of {table}")));
        line.and_then(|line| line.split(" at ").nth(1)).map(str::to_string)
    };
    assert_eq!(cut("orders"), cut("lineitem"));
    let text = explained(
        &pair.device,
        "SELECT n_name, count(*) FROM nation JOIN customer ON n_nationkey = c_nationkey GROUP BY n_name",
    );
    assert!(text.contains("all of nation"), "{text}");
    assert!(!is_simulated() || text.contains("by a hash of k0"), "{text}");
    pair.device.execute("CREATE TABLE kept AS SELECT * FROM nation").expect("made");
    let text = explained(&pair.device, "SELECT sum(n_nationkey) FROM kept");
    assert!(text.contains("its part of kept, kept on device 0"), "{text}");
    let text = explained(&pair.device, "SELECT count(*) FROM nation WHERE random() < 0.5");
    assert!(text.contains("on device 0 of 2 alone: "), "{text}");
    let json = pair
        .device
        .sql("SELECT sum(l_quantity) FROM lineitem")
        .and_then(|frame| frame.explain_as(warpframe::ExplainFormat::Json))
        .expect("it is planned");
    assert!(json.contains("\"count\": 2") && json.contains("\"on_each_device\": true"), "{json}");
}

const QUERIES: [&str; 14] = [
    "SELECT count(*), sum(a.i), sum(b.i) FROM a JOIN b ON a.k = b.k",
    "SELECT a.k, a.i, b.i AS j, b.s FROM a JOIN b ON a.k = b.k AND a.s = b.s",
    "SELECT a.k, count(b.i), min(b.s) FROM a LEFT JOIN b ON a.k = b.k AND b.i % 3 = 0 GROUP BY a.k",
    "SELECT b.k, count(a.i) FROM a RIGHT JOIN b ON a.k = b.k GROUP BY b.k",
    "SELECT a.k AS x, b.k AS y, count(*) FROM a FULL JOIN b ON a.k = b.k AND a.i % 2 = 1 GROUP BY a.k, b.k",
    "SELECT k, i FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND b.i > a.i)",
    "SELECT k, i FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND b.i % 5 = 1)",
    "SELECT k, i FROM b WHERE k NOT IN (SELECT k FROM a WHERE i % 4 = 0)",
    "SELECT k, count(DISTINCT s), median(i), sum(i) FROM a GROUP BY k",
    "SELECT k, i, row_number() OVER (PARTITION BY k ORDER BY i) AS r FROM a",
    "SELECT k, n FROM (SELECT k, count(*) AS n FROM a GROUP BY k UNION ALL SELECT k, i FROM b) ORDER BY k NULLS FIRST, n LIMIT 50",
    "SELECT x.k, count(*) FROM (SELECT DISTINCT k, s FROM a) x JOIN (SELECT k, max(i) AS m FROM b GROUP BY k) y ON x.k = y.k GROUP BY x.k",
    "SELECT k, s, count(*) FROM a GROUP BY ROLLUP (k, s)",
    "SELECT k + 1 AS n, count(*) FROM (SELECT a.k FROM a JOIN b ON a.k = b.k + 1) GROUP BY k + 1",
];

/// Runs of equal keys that reach over row groups, few keys, tables of other ranges.
#[test]
fn keys_at_the_borders_of_row_groups_are_of_one_device() {
    let mut random = StdRng::seed_from_u64(66);
    for round in 0..4 {
        let count = 2 + round % 2;
        let (pair, folder) = (pair(count), tempfile::tempdir().expect("a folder"));
        for name in ["a", "b"] {
            let rows = random.random_range(300..900);
            let (mut key, mut keys) = (random.random_range(-50..50), vec![]);
            let longest = *[1, 3, 40, 400].choose(&mut random).expect("one");
            while keys.len() < rows {
                let run = random.random_range(1..=longest);
                keys.extend(std::iter::repeat_n(Some(key), run));
                key += random.random_range(0..4);
            }
            let group = *[17, 64, 150].choose(&mut random).expect("one");
            table(&pair, &folder, name, &keys, group);
        }
        for sql in QUERIES {
            pair.check(sql);
        }
    }
}

/// What does not ascend, or has nulls, or no statistics, is dealt out by bytes.
#[test]
fn tables_that_cannot_be_cut_are_exchanged() {
    let mut random = StdRng::seed_from_u64(67);
    let ascending: Vec<Option<i64>> = (0..600).map(|row| Some(row / 3)).collect();
    // Ranges of row groups ascend, and rows within them do not.
    let mut within = ascending.clone();
    within.chunks_mut(50).for_each(|group| group.shuffle(&mut random));
    let mut shuffled = ascending.clone();
    shuffled.shuffle(&mut random);
    let nulls: Vec<_> = (0..600).map(|row| (row % 90 != 4).then_some(row / 3)).collect();
    for (keys, group, is_cut) in [
        (&ascending, 64, true),
        (&within, 50, true),
        (&shuffled, 64, false),
        (&nulls, 64, false),
        (&ascending, 600, false),
    ] {
        let (pair, folder) = (pair(2), tempfile::tempdir().expect("a folder"));
        table(&pair, &folder, "a", keys, group);
        table(&pair, &folder, "b", &ascending, 70);
        let sql = "SELECT count(*), sum(a.i) FROM a JOIN b ON a.k = b.k";
        pair.check(sql);
        let text = explained(&pair.device, sql);
        let cut =
            text.contains("its part of a, cut by k") || text.contains("its part of a, cut by i");
        assert!(cut == is_cut || keys != &ascending, "{text}");
        // The others differ in where they are cut, not in what devices do then.
        for sql in QUERIES.iter().take(if is_cut { 2 } else { QUERIES.len() }) {
            pair.check(sql);
        }
    }
    let (pair, folder) = (pair(2), tempfile::tempdir().expect("a folder"));
    for name in ["a", "b"] {
        let path = folder.path().join(format!("{name}.parquet"));
        write(&path, &batch(&ascending, &DataType::Int64), 64, EnabledStatistics::None);
        register(&pair, name, &path);
    }
    for sql in QUERIES {
        pair.check(sql);
    }
}

#[test]
fn keys_of_several_types_are_cut() {
    let keys: Vec<Option<i64>> = (0..500).map(|row| Some(row / 4 - 30)).collect();
    for dtype in [DataType::Int32, DataType::Date32, DataType::Int64] {
        let (pair, folder) = (pair(3), tempfile::tempdir().expect("a folder"));
        for (name, group) in [("a", 40), ("b", 55)] {
            let path = folder.path().join(format!("{name}.parquet"));
            write(&path, &batch(&keys, &dtype), group, EnabledStatistics::Page);
            register(&pair, name, &path);
        }
        let sql = "SELECT count(*), sum(a.i), sum(b.i) FROM a JOIN b ON a.k = b.k";
        assert!(moved(&pair, sql) <= 3 * RESULT, "{dtype}");
        pair.check(
            "SELECT a.k, count(*) FROM a LEFT JOIN b ON a.k = b.k AND b.i > 100 GROUP BY a.k",
        );
    }
}

/// Random queries (`random.rs`) over files whose ids ascend, in small row groups.
#[test]
fn random_queries_over_tables_that_are_cut_agree() {
    let (count, first) = queries_and_seed(15);
    let (mut failed, mut rows, mut others) = (vec![], 0, 0);
    for seed in first..first + count {
        let (pair, folder) = (pair(2 + seed as usize % 2), tempfile::tempdir().expect("a folder"));
        for (name, batches) in ["t", "u"].into_iter().zip(tables_of(seed)) {
            let path = folder.path().join(format!("{name}.parquet"));
            let whole = concat_batches(&batches[0].schema(), &batches).expect("one schema");
            write(&path, &whole, 64, EnabledStatistics::Chunk);
            register(&pair, name, &path);
        }
        let pair = pair.from(format!("seed {seed}"));
        match catch_unwind(AssertUnwindSafe(|| pair.agreement(&query_of(seed)))) {
            Ok(Agreement::Rows(n)) => rows += n,
            Ok(_) => others += 1,
            Err(_) => failed.push(seed),
        }
    }
    println!("{count} queries, {rows} rows; {others} yielded none");
    assert!(failed.is_empty(), "WARPFRAME_RANDOM_SEED of the queries that failed: {failed:?}");
    assert!(count < 10 || rows > 0 && others * 3 < count, "the queries say little");
}

/// A file that is written anew while the session is open is cut anew.
#[test]
fn a_changed_file_is_cut_anew() {
    let (pair, folder) = (pair(2), tempfile::tempdir().expect("a folder"));
    let keys = |from: i64| (0..600).map(|row| Some(from + row / 3)).collect::<Vec<_>>();
    let path = table(&pair, &folder, "a", &keys(0), 50);
    table(&pair, &folder, "b", &keys(0), 50);
    let sql = "SELECT count(*), sum(a.i), min(b.k) FROM a JOIN b ON a.k = b.k";
    pair.check(sql);
    for from in [100, -150, 5000] {
        std::thread::sleep(std::time::Duration::from_millis(20));
        write(&path, &batch(&keys(from), &DataType::Int64), 50, EnabledStatistics::Chunk);
        pair.check(sql);
        pair.check("SELECT a.k, count(*) FROM a GROUP BY a.k");
    }
}

/// A plan is kept for tables of equal sizes. These have the same cut in different rows.
#[test]
fn a_plan_that_is_found_again_takes_each_table_as_it_is_cut() {
    let (pair, folder) = (pair(2), tempfile::tempdir().expect("a folder"));
    let even = (0..600).map(|row| (row / 3, 5));
    let uneven = (0..600).map(|row| match row < 200 {
        true => (row / 2, 35),
        false => (100 + (row - 200) / 4, 5),
    });
    let even: Vec<(i64, usize)> = even.collect();
    let uneven: Vec<(i64, usize)> = uneven.collect();
    let mut paths = vec![];
    for (name, rows) in [("even", even), ("uneven", uneven)] {
        let keys = Int64Array::from_iter_values(rows.iter().map(|(key, _)| *key));
        let numbers = Int64Array::from_iter_values(0..600);
        let texts = rows.iter().enumerate().map(|(row, (_, length))| format!("{row:length$}"));
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("k", Arc::new(keys)),
            ("i", Arc::new(numbers)),
            ("s", Arc::new(StringArray::from_iter_values(texts))),
        ];
        let batch = RecordBatch::try_from_iter(columns).expect("a batch");
        let properties = WriterProperties::builder()
            .set_max_row_group_row_count(Some(50))
            .set_dictionary_enabled(false)
            .build();
        let path = folder.path().join(format!("{name}.parquet"));
        let file = std::fs::File::create(&path).expect("the file can be made");
        let mut writer =
            ArrowWriter::try_new(file, batch.schema(), Some(properties)).expect("a writer");
        writer.write(&batch).expect("rows can be written");
        writer.close().expect("the file is whole");
        paths.push(path);
    }
    let answer = |session: &Session, path: &Path| {
        let frame = session.scan_parquet(path).expect("a file").group_by(["k"]);
        let sums = [col("i").sum().alias("total"), col("i").count().alias("n")];
        frame.agg(sums).and_then(|frame| frame.collect()).expect("an answer")
    };
    let explained = |path: &Path| {
        let frame = pair.device.scan_parquet(path).expect("a file").group_by(["k"]);
        frame.agg([col("i").sum()]).and_then(|frame| frame.explain()).expect("it is planned")
    };
    for path in [&paths[0], &paths[1], &paths[0], &paths[1]] {
        let name = path.display().to_string();
        pair.compare_unordered(&answer(&pair.cpu, path), &answer(&pair.device, path), &name);
        let text = explained(path);
        assert!(text.contains("cut by k at 100"), "{text}");
    }
}

/// A footer that says wrong things is found out when the keys are read.
#[test]
fn wrong_statistics_are_an_error_and_no_wrong_answer() {
    const STRAY: i64 = 0x0102_0304_0506;
    let (pair, folder) = (pair(2), tempfile::tempdir().expect("a folder"));
    let mut keys: Vec<Option<i64>> = (0..400).map(Some).collect();
    keys[20] = Some(STRAY);
    let path = folder.path().join("a.parquet");
    write(&path, &batch(&keys, &DataType::Int64), 50, EnabledStatistics::Chunk);
    let mut bytes = std::fs::read(&path).expect("the file");
    let end = bytes.len() - 8;
    let length = u32::from_le_bytes(bytes[end..end + 4].try_into().expect("four bytes")) as usize;
    let (stray, said) = (STRAY.to_le_bytes(), 49i64.to_le_bytes());
    let mut found = 0;
    for at in end - length..end - 8 {
        if bytes[at..at + 8] == stray {
            bytes[at..at + 8].copy_from_slice(&said);
            found += 1;
        }
    }
    assert!(found > 0, "the footer says the greatest key of the first row group");
    std::fs::write(&path, bytes).expect("the file can be written");
    let file = &pair.device;
    file.register_parquet("a", &path).expect("a table");
    let error = run(file, "SELECT k, count(*) FROM a GROUP BY k").expect_err("the footer is wrong");
    match error.kind() {
        ErrorKind::File { path: of, message } => {
            assert_eq!(of, &path);
            assert!(message.contains("column \"k\""), "{message}");
        }
        other => panic!("{other:?}"),
    }
    // Who does not look at the keys gets the rows.
    run(file, "SELECT sum(i) FROM a").expect("other columns are right");
}
