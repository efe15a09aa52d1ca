//! Kernel modules: what of them is found where, and what is made ready ahead.

use std::sync::Arc;

use warpframe::arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch};
use warpframe::device::DeviceKind;

use crate::differential::{Pair, run};

const JOINED: &str = "SELECT n_name, count(*), sum(o_totalprice) FROM nation JOIN customer ON c_nationkey = n_nationkey \
                      JOIN orders ON o_custkey = c_custkey WHERE o_orderdate > DATE '1995-01-01' AND c_acctbal > 0 \
                      GROUP BY n_name ORDER BY n_name";

#[test]
fn modules_are_counted_by_where_they_were_found() {
    let pair = Pair::new().samples();
    let before = pair.gpu().counters();
    pair.check(JOINED);
    let first = pair.gpu().counters();
    let (made, memory) = (first.compilations + first.disk_hits, first.memory_hits);
    assert!(before.memory_hits == 0 && made > 5, "{first:?}");
    assert!(first.prepared_ahead <= made && !first.module_wait.is_zero(), "{first:?}");
    assert_eq!(first.compilations == 0, first.compile_time.is_zero(), "{first:?}");
    // Nothing of the first run goes on behind it; the second finds everything.
    for _ in 0..2 {
        run(&pair.device, JOINED).expect("it ran before");
    }
    let again = pair.gpu().counters();
    assert_eq!(
        (again.compilations + again.disk_hits, again.compile_time),
        (made, first.compile_time)
    );
    assert_eq!(again.prepared_ahead, first.prepared_ahead);
    assert!(again.memory_hits > memory + 10, "{again:?}");
}

#[test]
fn rehearsals_leave_no_trace_in_counters_and_memory() {
    let pair = Pair::new().samples();
    let gpu = pair.gpu();
    pair.check(JOINED);
    let (tables, first) = (gpu.memory().used, gpu.counters());
    // Another plan of the same kernels is rehearsed; the same plan is not.
    let other = JOINED.replace("1995-01-01", "1995-01-02");
    let spent = |sql: &str| {
        let before = gpu.counters();
        run(&pair.device, sql).expect("it runs");
        let after = gpu.counters();
        (after.launches - before.launches, after.synchronizations - before.synchronizations)
    };
    assert_eq!(spent(&other), spent(&other));
    assert_eq!((gpu.memory().used, gpu.counters().compilations), (tables, first.compilations));
}

/// Kernels are compiled quickly first, and again once they are used again: no bit of an answer may
/// tell.
#[test]
fn answers_do_not_depend_on_how_kernels_were_compiled() {
    let gpu = Pair::new();
    let rows = if gpu.gpu().kind() == DeviceKind::Sim { 5_000 } else { 3_000_000 };
    let x = Float64Array::from_iter_values(
        (0..rows).map(|i: i32| f64::from(i.wrapping_mul(7919) % 1009) / 7.3 - 41.0),
    );
    let y = Float64Array::from_iter_values(
        (0..rows).map(|i: i32| 1e-3 * f64::from(i.wrapping_mul(31) % 65537).sqrt() + 0.1),
    );
    let k = Int64Array::from_iter_values((0..i64::from(rows)).map(|i| i * 2654435761 % 977));
    let columns = [("x", Arc::new(x) as ArrayRef), ("y", Arc::new(y)), ("k", Arc::new(k))];
    let pair = gpu.and("floats", vec![RecordBatch::try_from_iter(columns).unwrap()]);
    let queries = [
        "SELECT sum(x * y + x / 3.7), avg(y * y - x), sum(CAST(x AS FLOAT) * y) FROM floats",
        "SELECT k, sum(x * y - y), stddev(x * 1.25 + y), corr(x, y * y + x) FROM floats GROUP BY k ORDER BY k",
        "SELECT k, x, sin(x) * cos(y) + exp(y) * x, ln(y + 2.5) / (x * x + 1), power(y, 1.7) * x - y, atan2(x, y) \
         FROM floats WHERE x * y + y > 1.5 AND tan(x) < 2 ORDER BY k, x, y LIMIT 4000",
        "SELECT k, sum(x * y) OVER (PARTITION BY k ORDER BY x, y ROWS BETWEEN 5 PRECEDING AND CURRENT ROW) AS s, \
         avg(y + x * x) OVER (PARTITION BY k) AS a FROM floats WHERE k < 40 ORDER BY k, s, a LIMIT 4000",
    ];
    let answers = || -> Vec<Vec<RecordBatch>> {
        queries
            .iter()
            .map(|sql| run(&pair.device, sql).and_then(|frame| frame.to_arrow()).expect(sql))
            .collect()
    };
    let before = pair.gpu().counters();
    let first = answers();
    pair.gpu().settle();
    let between = pair.gpu().counters();
    let later = answers();
    let set = |name: &str| std::env::var_os(name).is_some();
    if pair.gpu().kind() != DeviceKind::Sim
        && !set("WARPFRAME_QUICK_KERNELS")
        && !set("WARPFRAME_NVRTC_OPTIONS")
    {
        assert!(between.improved > before.improved + 5, "{between:?}");
    }
    assert_eq!(pair.gpu().counters().compilations, between.compilations);
    assert!(first.iter().all(|batches| batches.iter().any(|batch| batch.num_rows() > 0)));
    for (sql, (first, later)) in queries.iter().zip(first.iter().zip(&later)) {
        assert_eq!(first, later, "{sql}");
    }
}
