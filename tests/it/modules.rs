//! Kernel modules: what of them is found where, and what is made ready ahead.

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
    assert_eq!((again.compilations + again.disk_hits, again.compile_time), (made, first.compile_time));
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
