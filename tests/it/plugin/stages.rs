//! Plans in stages, run by DataFusion in one process.

use warpframe::plugin::Plugin;

use super::{Both, tpch};
use crate::differential::{builder, data, number};
use crate::slt_datafusion::orders_its_rows;

/// Sessions whose plans are cut into stages of so many tasks.
fn both(tasks: usize, broadcast: u64) -> Both {
    let plugin = Plugin::new(builder().strict(false)).expect("the device opens");
    let plugin = plugin.with_stages(tasks > 1).with_broadcast_limit(broadcast);
    Both::with(plugin, tasks).files(&data("tpch"))
}

/// The queries of a sample agree; all of TPC-H with `WARPFRAME_ALL_QUERIES=1`.
fn queries_agree(tasks: usize, broadcast: u64, sample: &[u32]) {
    let both = both(tasks, broadcast);
    let numbers = match number("WARPFRAME_ALL_QUERIES", 0) {
        0 => sample.to_vec(),
        _ => (1..=22).collect(),
    };
    let left: Vec<u32> = numbers.into_iter().filter(|number| !both.check(&tpch(*number))).collect();
    assert_eq!(left, [0u32; 0], "parts of these queries ran on the CPU");
}

#[test]
fn tpch_in_stages_of_two_tasks_by_broadcasts() {
    queries_agree(2, 1 << 30, &[1, 3, 5, 9, 13, 18, 22]);
}

#[test]
fn tpch_in_stages_of_seven_tasks_by_exchanges() {
    queries_agree(7, 0, &[2, 4, 11, 15, 16, 20, 21]);
}

#[test]
fn what_stages_are_made_of() {
    let both = both(3, 0);
    let text = |sql: &str| {
        let plan = both.plan(sql);
        datafusion::physical_plan::displayable(plan.as_ref()).indent(false).to_string()
    };
    let stages = |text: &str| text.matches("DeviceStageExec").count();
    let grouped = text("SELECT o_custkey, count(*) FROM orders GROUP BY o_custkey");
    assert_eq!(stages(&grouped), 2, "{grouped}");
    assert!(grouped.contains("Hash([k0@0], 3)"), "{grouped}");
    let summed = text("SELECT sum(o_totalprice) FROM orders");
    assert!(stages(&summed) == 2 && summed.contains("CoalescePartitionsExec"), "{summed}");
    let joined =
        text("SELECT o_orderkey, l_partkey FROM orders JOIN lineitem ON o_orderkey = l_orderkey");
    assert!(stages(&joined) == 3 && joined.matches("RepartitionExec").count() == 2, "{joined}");
    let sorted = text("SELECT o_orderkey FROM orders ORDER BY o_totalprice % 7 DESC, o_orderkey");
    let merged = sorted.find("SortPreservingMergeExec").expect("parts are merged");
    assert!(stages(&sorted) == 1 && merged < sorted.find("DeviceStageExec").unwrap(), "{sorted}");
    let computed =
        text("SELECT o_orderkey + 1 FROM (SELECT * FROM orders ORDER BY o_comment NULLS FIRST)");
    assert!(!computed.contains("SortExec"), "{computed}");
    for sql in [
        "SELECT upper(o_comment) FROM orders ORDER BY o_orderpriority, o_totalprice DESC, o_orderkey",
        "SELECT CASE WHEN o_custkey % 3 > 0 THEN o_orderkey END AS k, o_orderkey FROM orders
         ORDER BY k NULLS FIRST, o_orderkey DESC",
        "SELECT CASE WHEN o_custkey % 3 > 0 THEN o_orderkey END AS k, o_orderkey FROM orders
         ORDER BY k DESC NULLS LAST, o_orderkey",
        "SELECT o_orderkey FROM orders ORDER BY o_totalprice::DOUBLE DESC, o_orderkey",
        "SELECT o_orderkey FROM orders UNION ALL SELECT l_orderkey FROM lineitem ORDER BY 1 DESC",
        "SELECT o_orderstatus, count(*) AS n FROM orders GROUP BY 1 ORDER BY n, 1",
        "SELECT o_custkey, count(*) FROM orders GROUP BY o_custkey",
        "SELECT sum(o_totalprice), count(DISTINCT o_custkey) FROM orders",
        "SELECT o_orderkey, o_orderpriority, row_number() OVER (PARTITION BY o_orderpriority ORDER BY o_orderkey) AS r
         FROM orders",
        "SELECT o_orderkey FROM orders ORDER BY o_totalprice DESC, o_orderkey LIMIT 7",
        "SELECT o_orderkey FROM orders ORDER BY o_totalprice DESC, o_orderkey",
        "SELECT count(*) FROM (SELECT o_orderkey FROM orders LIMIT 100)",
        "SELECT o_orderkey AS k FROM orders UNION ALL SELECT sum(l_orderkey) FROM lineitem",
        "SELECT count(*) FROM orders FULL JOIN customer ON o_custkey = c_custkey",
        "SELECT count(*) FROM orders CROSS JOIN nation",
        "SELECT count(*) FROM customer WHERE c_custkey NOT IN (SELECT o_custkey FROM orders)",
        "SELECT DISTINCT o_orderpriority, o_orderstatus FROM orders",
        "SELECT median(o_totalprice) FROM orders",
        "SELECT c_custkey, o_orderkey FROM customer LEFT JOIN orders
         ON c_custkey = o_custkey AND o_totalprice > 100000",
    ] {
        both.check(sql);
    }
}

#[test]
fn sides_that_are_parted_alike_have_no_other_input_beside_them() {
    // Only nation is small enough to be given whole to each task.
    let both = both(3, 3_000);
    let stages = |sql: &str| {
        let plan = both.plan(sql);
        let text = datafusion::physical_plan::displayable(plan.as_ref()).indent(false).to_string();
        (text.matches("DeviceStageExec").count(), text)
    };
    let sql = "SELECT o_orderkey, c_name, n_name
               FROM orders FULL JOIN customer ON o_custkey = c_custkey
               JOIN nation ON coalesce(o_custkey, c_custkey) % 25 = n_nationkey";
    let (count, text) = stages(sql);
    assert_eq!(count, 5, "two sides, their join, nation and the join with it: {text}");
    assert!(both.check(sql));
    // A table of one partition, whose rows all tasks have to find.
    let batch = both.run(&both.stock, "SELECT c_custkey AS k, c_name AS name FROM customer");
    let batch = batch.expect("rows").remove(0);
    for context in [&both.stock, &both.ours] {
        context.register_batch("few", batch.clone()).expect("a table");
    }
    for sql in [
        "SELECT o_orderkey, name, n_name FROM orders FULL JOIN few ON o_custkey = k
         JOIN nation ON k % 25 = n_nationkey",
        "SELECT o_orderkey, name FROM orders FULL JOIN few ON o_custkey = k
         UNION ALL SELECT c_custkey, name FROM customer FULL JOIN few ON c_custkey = k + 3",
        "SELECT count(*) FROM orders FULL JOIN (SELECT k FROM few LIMIT 10) f ON o_custkey = k",
    ] {
        both.check(sql);
    }
}

/// `WARPFRAME_TPCDS` and `WARPFRAME_TPCDS_QUERIES` name folders, as `tpcds.rs` says; without them
/// nothing runs.
#[test]
fn tpcds_in_stages() {
    let variable = |name| std::env::var(name).ok().filter(|text: &String| !text.is_empty());
    let (Some(tables), Some(queries)) =
        (variable("WARPFRAME_TPCDS"), variable("WARPFRAME_TPCDS_QUERIES"))
    else {
        eprintln!("skipped: WARPFRAME_TPCDS and WARPFRAME_TPCDS_QUERIES name no folders");
        return;
    };
    let tasks = variable("WARPFRAME_TASKS").map_or(2, |text| text.parse().expect("a number"));
    let plugin = Plugin::new(builder().strict(false)).expect("the device opens");
    let plugin = plugin.with_stages(tasks > 1).with_broadcast_limit(100_000);
    let both = Both::with(plugin, tasks).files(tables.as_ref());
    let numbers: Vec<u32> = match variable("WARPFRAME_TPCDS_NUMBERS") {
        Some(text) => text.split(',').map(|number| number.parse().expect("a number")).collect(),
        None => (1..=99).collect(),
    };
    let (mut whole, mut failed) = (vec![], vec![]);
    for number in numbers {
        let path = std::path::Path::new(&queries).join(format!("q{number:02}.sql"));
        let text = std::fs::read_to_string(&path).expect("a query");
        for sql in text.split(';').map(str::trim).filter(|sql| !sql.is_empty()) {
            if both.run(&both.stock, sql).is_err() {
                println!("Q{number}: DataFusion does not run it");
                continue;
            }
            // Two rows without an id in the same channel.
            let ordered = number != 77 && orders_its_rows(&sql.to_lowercase());
            let checked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                both.check_in_order(sql, ordered)
            }));
            match checked {
                Ok(true) => whole.push(number),
                Ok(false) => println!("Q{number}: parts on the CPU"),
                Err(_) => failed.push(number),
            }
        }
    }
    println!("{} whole on the device: {whole:?}", whole.len());
    assert_eq!(failed, [0u32; 0]);
}
