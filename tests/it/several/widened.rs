//! Files that come, or are replaced, once their table is registered: with columns of wider types.

use warpframe::ErrorKind;
use warpframe::prelude::*;

use super::*;

fn decimals(digits: u8, scale: i8, values: Vec<i128>) -> ArrayRef {
    Arc::new(
        Decimal128Array::from(values).with_precision_and_scale(digits, scale).expect("they have"),
    )
}

fn narrow() -> Vec<(&'static str, ArrayRef)> {
    vec![
        ("i", Arc::new(Int32Array::from(vec![1, 2]))),
        ("f", Arc::new(Float32Array::from(vec![0.5, 1.5]))),
        ("d", decimals(7, 2, vec![100, 250])),
        ("s", texts(&["a", "b"])),
    ]
}

fn wide() -> Vec<(&'static str, ArrayRef)> {
    vec![
        ("i", Arc::new(Int64Array::from(vec![Some(1 << 40), None]))),
        ("f", Arc::new(Float64Array::from(vec![1e300, 0.1]))),
        ("d", decimals(12, 4, vec![1, 20_000])),
        ("s", texts(&["c", "a"])),
    ]
}

/// What queries of every kind yield, by texts that came before and by frames that were made before.
fn answers(session: &Session, frames: &[LazyFrame]) -> Vec<Vec<Vec<Cell>>> {
    let mut found = vec![];
    for sql in [
        "SELECT count(*), count(i), sum(i), min(f), max(d) FROM t",
        "SELECT * FROM t ORDER BY i, f",
        "SELECT s, sum(i), sum(d) FROM t GROUP BY s ORDER BY s",
        "SELECT i + 1, d * 2 FROM t WHERE i IS NOT NULL ORDER BY i",
        "SELECT max(i) FROM t WHERE i > (SELECT min(i) FROM t)",
        "SELECT a.s, b.i FROM t a JOIN t b ON a.i = b.i ORDER BY b.i",
    ] {
        found.push(rows(session, sql));
    }
    for frame in frames {
        found.push(
            Rows::of(&frame.clone().collect().expect("a frame of a table that became wider")).rows,
        );
    }
    found
}

fn frames(session: &Session) -> Result<Vec<LazyFrame>> {
    let table = || session.table("t");
    Ok(vec![
        table()?
            .select([col("i") + lit(1), col("f")])?
            .sort([col("i").sort(true, true), col("f").sort(true, true)])?,
        table()?.select([sum(col("i")), max(col("d"))])?,
    ])
}

#[test]
fn tables_become_wider_with_their_files() -> Result<()> {
    let pair = Pair::new();
    let mut of_sessions = vec![];
    for session in [&pair.cpu, &pair.device] {
        let directory = directory();
        file(&directory, "1.parquet", narrow());
        session.register_parquet("t", directory.path())?;
        let made = frames(session)?;
        let mut all = vec![answers(session, &made)];
        // Another file.
        file(&directory, "2.parquet", wide());
        all.push(answers(session, &made));
        let fresh = Pair::new();
        let fresh = if session.device().is_some() { &fresh.device } else { &fresh.cpu };
        fresh.register_parquet("t", directory.path())?;
        assert_eq!(*all.last().expect("some"), answers(fresh, &frames(fresh)?));
        assert_eq!(session.schema("t")?, fresh.schema("t")?);
        // The first file gets wider columns once more.
        let unsigned: ArrayRef = Arc::new(Int64Array::from(vec![None, Some(i64::MAX / 4)]));
        let columns =
            vec![("i", unsigned), ("f", wide()[1].1.clone()), ("d", decimals(20, 6, vec![3, 4]))];
        let mut columns: Vec<(&str, ArrayRef)> = columns;
        columns.push(("s", texts(&["x", "y"])));
        file(&directory, "1.parquet", columns);
        all.push(answers(session, &made));
        assert_eq!(*session.schema("t")?.field(2).data_type(), DataType::Decimal128(20, 6));
        // A file that lacks a column makes NULLs.
        file(&directory, "3.parquet", vec![("i", ints([5]))]);
        assert_eq!(
            rows(session, "SELECT count(*), count(s), count(i) FROM t"),
            [[5, 4, 3].map(Cell::Int)]
        );
        of_sessions.push(all);
    }
    assert_eq!(of_sessions[0], of_sessions[1]);
    Ok(())
}

#[test]
fn what_no_type_holds_is_an_error_of_the_query() -> Result<()> {
    let pair = Pair::new();
    for session in [&pair.cpu, &pair.device] {
        let directory = directory();
        file(&directory, "1.parquet", vec![("i", ints([1, 2]))]);
        session.register_parquet("t", directory.path())?;
        assert_eq!(scalar(session, "SELECT sum(i) FROM t"), Cell::Int(3));
        let second = file(&directory, "2.parquet", vec![("i", texts(&["x"]))]);
        let error = run(session, "SELECT sum(i) FROM t").expect_err("text beside integers");
        assert!(
            matches!(error.kind(), ErrorKind::File { path, .. } if *path == second),
            "{error:?}"
        );
        // Columns that come besides are those of another table.
        file(&directory, "2.parquet", vec![("i", ints([3])), ("more", ints([4]))]);
        let error = run(session, "SELECT sum(i) FROM t").expect_err("another column");
        assert!(error.to_string().contains("register the table again"), "{error}");
        std::fs::remove_file(&second).expect("it was written");
        assert_eq!(scalar(session, "SELECT sum(i) FROM t"), Cell::Int(3));
    }
    Ok(())
}
