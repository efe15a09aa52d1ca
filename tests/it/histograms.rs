//! `histogram`, with weights and without.

use std::sync::Arc;

use warpframe::arrow::array::*;

use crate::differential::{Pair, Rows, builder, run};
use crate::tables::columns;

/// Values in and around the bins from 0 to 4, null and NaN among them, with weights and groups.
fn values(rows: usize) -> Pair {
    let x = |row: usize| match row % 13 {
        0 => None,
        1 => Some(f64::NAN),
        2 => Some(f64::INFINITY),
        3 => Some(-0.0),
        4 => Some(4.0),
        5 => Some(-1e-9),
        _ => Some((row * 37 % 101) as f64 / 22.0),
    };
    // Sums of which are exact, for they are compared as texts.
    let weight = |row: usize| (row % 7 != 3).then(|| (row * 29 % 97) as f64 / 8.0 - 5.0);
    let wild = |row: usize| {
        (row % 7 != 3).then(|| (row as f64 * 0.1).sin() * 10f64.powi(row as i32 % 9 - 4))
    };
    let text = |row: usize| (!row.is_multiple_of(11)).then(|| ["a", "b", "cc"][row % 3]);
    Pair::of(columns(vec![
        ("id", Arc::new(Int64Array::from_iter_values(0..rows as i64)) as ArrayRef),
        ("x", Arc::new(Float64Array::from_iter((0..rows).map(x)))),
        ("w", Arc::new(Float64Array::from_iter((0..rows).map(weight)))),
        ("u", Arc::new(Float64Array::from_iter((0..rows).map(wild)))),
        ("k", Arc::new(StringArray::from_iter((0..rows).map(text)))),
    ]))
    .from(format!("{rows} rows"))
}

fn lists(pair: &Pair, sql: &str) -> Vec<String> {
    let [cpu, device] = [&pair.cpu, &pair.device].map(|session| {
        let rows =
            Rows::of(&run(session, sql).unwrap_or_else(|error| panic!("{error}\n  {sql}"))).rows;
        rows.iter().map(|row| format!("{row:?}")).collect::<Vec<_>>()
    });
    assert_eq!(cpu, device, "{sql}");
    device
}

#[test]
fn values_are_counted_by_bins() {
    let x = Float64Array::from(vec![
        Some(0.0),
        Some(0.5),
        Some(1.0),
        None,
        Some(f64::NAN),
        Some(2.0),
        Some(2.5),
        Some(-1.0),
    ]);
    let w = Float64Array::from(vec![
        Some(1.5),
        None,
        Some(2.0),
        Some(9.0),
        Some(9.0),
        Some(0.25),
        Some(9.0),
        Some(9.0),
    ]);
    let pair =
        Pair::new().and("t", columns(vec![("x", Arc::new(x) as ArrayRef), ("w", Arc::new(w))]));
    let of = |sql: &str| lists(&pair, &format!("SELECT {sql} AS h FROM t"));
    assert_eq!(of("histogram(x, 0, 2, 2)"), ["[Text(\"[2, 2]\")]"]);
    assert_eq!(of("histogram(x, 0, 2, 4)"), ["[Text(\"[1, 1, 1, 1]\")]"]);
    assert_eq!(of("histogram(x, 0, 2, 2, w)"), ["[Text(\"[1.5, 2.25]\")]"]);
    assert_eq!(of("histogram(x, -2, 8.0, 1)"), ["[Text(\"[6]\")]"]);
    assert_eq!(of("histogram(x, 0, 2, 2) FILTER (WHERE w > 1)"), ["[Text(\"[1, 1]\")]"]);
    assert_eq!(of("histogram(x, 10, 20, 3)"), ["[Text(\"[0, 0, 0]\")]"]);
    let sql =
        "SELECT histogram(x, 0, 2, 3) AS h, histogram(x, 0, 2, 3, w) AS g FROM t WHERE x > 100";
    assert_eq!(lists(&pair, sql), ["[Text(\"[0, 0, 0]\"), Text(\"[0.0, 0.0, 0.0]\")]"]);
}

#[test]
fn groups_have_histograms_of_their_own() {
    for rows in [0, 1, 33, 700, 3000] {
        values(rows).check_all(&[
            "SELECT histogram(x, 0, 4, 10) AS h FROM t",
            "SELECT k, histogram(x, 0, 4, 10) AS h FROM t GROUP BY k",
            "SELECT k, histogram(x, 0, 4, 7, w) AS h, count(*) AS n, sum(w) AS s FROM t GROUP BY k",
            "SELECT id % 50 AS g, histogram(x, -1, 2.5, 100) AS h, histogram(id, 0, 10, 3) AS i FROM t GROUP BY id % 50",
            "SELECT k, histogram(x, 0, 4, 5) FILTER (WHERE id % 2 = 0) AS h, median(x) AS m FROM t GROUP BY k",
            "SELECT k, id % 3 AS g, histogram(x, 0, 4, 5, w) AS h FROM t GROUP BY ROLLUP (k, id % 3)",
            "SELECT k FROM t GROUP BY k HAVING histogram(x, 0, 4, 2)[1] > 1",
            "SELECT n FROM (SELECT unnest(histogram(x, 0, 4, 10)) AS n FROM t) u",
            "SELECT histogram(x, 0, 1e-300, 3) AS h FROM t",
            "SELECT k, list_transform(histogram(x, 0, 4, 4), n -> n * 100) AS h FROM t GROUP BY k",
        ]);
    }
}

/// Sums of weights have equal bits, in whatever order the rows come.
#[test]
fn sums_of_weights_do_not_depend_on_the_order_of_rows() -> warpframe::Result<()> {
    let pair = values(3000);
    let bits = |sql: &str| -> warpframe::Result<Vec<u64>> {
        let frame = run(&pair.device, &format!("SELECT unnest(h) AS n FROM ({sql}) u"))?;
        Ok(frame.column("n")?.to_vec::<f64>()?.into_iter().map(f64::to_bits).collect())
    };
    let forward = bits("SELECT k, histogram(x, 0, 4, 9, u) AS h FROM t GROUP BY k ORDER BY k")?;
    let backward = bits(
        "SELECT k, histogram(x, 0, 4, 9, u) AS h FROM (SELECT * FROM t ORDER BY id DESC) r GROUP BY k ORDER BY k",
    )?;
    assert!(forward.len() == 36 && forward == backward);
    Ok(())
}

#[test]
fn bins_that_are_none_are_refused() {
    let pair = values(10);
    let session = builder().build().expect("a session that may fall back");
    let x = Arc::new(Float64Array::from(vec![1.0])) as ArrayRef;
    session.register_batches("t", columns(vec![("x", x)])).expect("a table");
    for (call, words) in [
        ("histogram(x, 0, 4, 0)", "0 bins"),
        ("histogram(x, 0, 4, -3)", "-3 bins"),
        ("histogram(x, 4, 4, 3)", "between 4 and 4"),
        ("histogram(x, 5, 4, 3)", "between 5 and 4"),
        ("histogram(x, 0, x, 3)", "constants"),
        ("histogram(x, 0, 4)", "histogram"),
        ("histogram('a', [1], 4, 4)", "histogram"),
    ] {
        for session in [&pair.cpu, &pair.device, &session] {
            let sql = format!("SELECT {call} AS h FROM t");
            let error = run(session, &sql).expect_err(&sql).to_string();
            assert!(error.contains(words), "{sql}: {error}");
        }
    }
}
