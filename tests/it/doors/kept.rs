//! What stays of files between queries, and what does not once they change.

use super::*;

/// What a session's queries cost: plans made, and bytes brought to the device.
fn costs(session: &Session, query: &str) -> (u64, u64) {
    let counters = || session.device().expect("the session has a device").counters();
    let before = counters();
    run(session, query).unwrap_or_else(|error| panic!("{query}: {error}"));
    let after = counters();
    (after.plans_made - before.plans_made, after.bytes_uploaded - before.bytes_uploaded)
}

#[test]
fn a_file_that_is_named_again_is_the_same_table() {
    let (files, session) = (Files::new(), builder().build().expect("the device opens"));
    let content: String = (0..5000).map(|i| format!("{i},{}\n", i * 7)).collect();
    let path = files.write("t.csv", format!("a,b\n{content}"));
    let sums = format!("SELECT sum(a) FROM '{path}'");
    let (made, first) = costs(&session, &sums);
    assert_eq!(made, 1);
    assert!(first > 0);
    // The plan is found by its text, and the column is there.
    let (made, again) = costs(&session, &sums);
    assert_eq!(made, 0);
    assert!(again < first, "{again} {first}");
    // Another text, other spellings of path and options: the same column.
    let directory = files.0.path().display();
    for query in [
        format!("SELECT min(a) FROM '{directory}/./t.csv'"),
        format!("SELECT max(a) FROM read_csv('{path}')"),
        format!("SELECT count(*) FROM '{path}' x JOIN '{path}' y ON x.a = y.a"),
    ] {
        let (made, bytes) = costs(&session, &query);
        assert!(made > 0 && bytes < first / 2, "{query}: {made} {bytes} {first}");
    }
    // Other options: another table.
    assert_eq!(
        scalar(&session, &format!("SELECT count(a) FROM read_csv('{path}', nullstr => '7')")),
        Cell::Int(4999)
    );
    assert_eq!(scalar(&session, &format!("SELECT count(a) FROM '{path}'")), Cell::Int(5000));
}

#[test]
fn a_changed_file_is_never_read_by_an_old_plan() {
    let (files, pair) = (Files::new(), Pair::new());
    let path = files.write("t.csv", "a,b\n1,2\n");
    let (all, sum) = (format!("SELECT * FROM '{path}'"), format!("SELECT sum(a) FROM '{path}'"));
    for (content, expected) in [
        ("a,b\n1,2\n", Cell::Int(1)),
        // Rows, types, columns.
        ("a,b\n1,2\n10,20\n", Cell::Int(11)),
        ("a,b\n1.5,x\n", Cell::Float(1.5)),
        ("c,a,b\n7,8,2024-01-01\n", Cell::Int(8)),
        ("a\n5\n6\n", Cell::Int(11)),
    ] {
        files.write("t.csv", content);
        for _ in 0..3 {
            agree(&pair, &all);
            assert_eq!(scalar(&pair.device, &sum), expected, "{content:?}");
            assert_eq!(scalar(&pair.cpu, &sum), expected, "{content:?}");
        }
    }
    files.write("t.csv", "b\n1\n");
    assert!(
        matches!(refused(&pair.device, &sum).kind(), ErrorKind::ColumnNotFound { name, .. } if name == "a")
    );
    std::fs::remove_file(&path).expect("it is there");
    assert!(matches!(refused(&pair.device, &sum).kind(), ErrorKind::Io { .. }));

    let path = files.parquet("t.parquet", "SELECT 1 AS a");
    let all = format!("SELECT * FROM '{path}'");
    for query in ["SELECT 1 AS a", "SELECT 2 AS a", "SELECT 'x' AS a", "SELECT 1 AS b, 2 AS a"] {
        files.parquet("t.parquet", query);
        assert_eq!(agree(&pair, &all), 1);
        assert_eq!(agree(&pair, &all), 1);
    }
}

#[test]
fn more_files_than_stay_are_read() {
    let (files, session) = (Files::new(), builder().build().expect("the device opens"));
    let path = |at: usize| files.path(&format!("{at}.csv")).display().to_string();
    for at in 0..70 {
        files.write(&format!("{at}.csv"), format!("a\n{at}\n"));
    }
    for _ in 0..2 {
        for at in 0..70 {
            assert_eq!(
                scalar(&session, &format!("SELECT a FROM '{}'", path(at))),
                Cell::Int(at as i128)
            );
        }
    }
    let all: Vec<String> = (0..70).map(|at| format!("SELECT a FROM '{}'", path(at))).collect();
    let all = format!("SELECT sum(a) FROM ({})", all.join(" UNION ALL "));
    assert_eq!(scalar(&session, &all), Cell::Int(69 * 70 / 2));
    // Frames keep their files.
    let frame = session.sql(&format!("SELECT a FROM '{}'", path(1))).expect("it is planned");
    scalar(&session, &all);
    assert_eq!(frame.collect().expect("its file is there").num_rows(), 1);
}
