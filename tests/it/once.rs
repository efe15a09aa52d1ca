//! Rows that come in no promised order, numbered or chosen by the order that they come in, and read
//! twice: both readers see the same ones, whatever order the simulator's blocks run in.

use warpframe::Result;
use warpframe::device::SimOptions;
use warpframe::prelude::*;

use crate::differential::{Cell, builder, scalar, seed};

/// Rows of several blocks, so that their groups come in another order each time.
const ROWS: usize = 6000;

/// Sessions with a table `t` of `k` (each number twice, far from one another: groups of numbers side
/// by side need no hash table, which is what orders them by chance) and `v = 7 * k`, on several
/// seeds of the simulator and on the CPU.
fn sessions() -> Vec<(String, Session)> {
    let on_cpu = Session::builder().device(DeviceChoice::Cpu).cpu_partitions(4);
    let seeds = [2, 3, seed().max(2)];
    let on_device = seeds.map(|seed| {
        let options = SimOptions::with_seed(seed);
        (format!("seed {seed}"), builder().sim_options(options).strict(true))
    });
    let all = on_device.into_iter().chain([("cpu".to_string(), on_cpu)]);
    let opened = all.map(|(name, builder)| {
        let session = builder.build().expect("a session");
        let sql = format!(
            "CREATE TABLE t AS SELECT x AS k, 7 * x AS v \
             FROM (SELECT generate_series % {ROWS} * 1000003 + 5 AS x FROM generate_series(1, {}))",
            2 * ROWS
        );
        session.execute(&sql).expect("a table");
        let view = "CREATE VIEW numbered AS SELECT k, row_number() OVER () AS r FROM \
                    (SELECT k FROM t GROUP BY k)";
        session.execute(view).expect("a view");
        (name, session)
    });
    opened.collect()
}

/// Statements that count rows of which their two readers saw different ones.
#[rustfmt::skip]
const DIFFERENCES: &[&str] = &[
    "WITH c AS (SELECT *, row_number() OVER () AS r FROM (SELECT k, max(v) AS v FROM t GROUP BY k)) \
     SELECT count(*) FROM c a JOIN c b ON a.r = b.r WHERE a.k <> b.k",
    "WITH c AS (SELECT k, v, row_number() OVER (ORDER BY k % 3) AS r FROM (SELECT k, max(v) AS v FROM t GROUP BY k)) \
     SELECT count(*) FROM (SELECT r, k FROM c) a JOIN (SELECT r, v FROM c) b ON a.r = b.r WHERE a.k * 7 <> b.v",
    "SELECT count(*) FROM numbered a JOIN numbered b ON a.r = b.r WHERE a.k <> b.k",
    "WITH c AS (SELECT k FROM t GROUP BY k LIMIT 500) \
     SELECT count(*) FROM c a FULL JOIN c b ON a.k = b.k WHERE a.k IS NULL OR b.k IS NULL",
    "WITH c AS (SELECT k FROM t GROUP BY k ORDER BY k % 5 LIMIT 500 OFFSET 30) \
     SELECT count(*) FROM c WHERE k NOT IN (SELECT k FROM c)",
    "WITH c AS (SELECT DISTINCT a.k FROM t a JOIN t b ON a.k = b.k) \
     SELECT count(*) FROM (SELECT k FROM c LIMIT 400) x JOIN (SELECT k FROM c OFFSET 400) y ON x.k = y.k",
    "WITH c AS (SELECT DISTINCT ON (k % 100) k % 100 AS g, k FROM (SELECT k FROM t GROUP BY k)) \
     SELECT count(*) FROM c a JOIN c b ON a.g = b.g WHERE a.k <> b.k",
    "WITH c AS (SELECT k % 100 AS g, first_value(k) AS f FROM (SELECT k FROM t GROUP BY k) GROUP BY 1) \
     SELECT count(*) FROM c a JOIN c b ON a.g = b.g WHERE a.f <> b.f",
    "WITH c AS (SELECT k % 100 AS g, array_agg(k) AS l FROM (SELECT k FROM t GROUP BY k) GROUP BY 1) \
     SELECT count(*) FROM c a JOIN c b ON a.g = b.g WHERE a.l[1] <> b.l[1] OR a.l[7] <> b.l[7]",
    "WITH c AS (SELECT k, lag(k) OVER () AS l FROM (SELECT k FROM t GROUP BY k)) \
     SELECT count(*) FROM c a JOIN c b ON a.k = b.k WHERE a.l <> b.l",
    "WITH c AS (SELECT k, sum(k) OVER (ROWS UNBOUNDED PRECEDING) AS s FROM (SELECT k FROM t GROUP BY k)) \
     SELECT count(*) FROM c a JOIN c b ON a.k = b.k WHERE a.s <> b.s",
    "SELECT count(*) FROM (SELECT k FROM t GROUP BY k HAVING k % 9 = 0) a \
     ASOF JOIN (SELECT k, max(v) AS v, min(v) AS w FROM t GROUP BY k HAVING k % 9 = 0) b ON a.k >= b.k \
     WHERE a.k <> b.k OR b.v <> 7 * a.k OR b.w <> 7 * a.k",
    "SELECT count(*) FROM (SELECT k, k % 11 AS g FROM t GROUP BY k) a \
     ASOF LEFT JOIN (SELECT k % 11 AS g, k, max(v) AS v FROM t GROUP BY 1, 2) b ON a.g = b.g AND a.k >= b.k \
     WHERE b.v IS DISTINCT FROM 7 * a.k",
    "WITH c AS (SELECT k, max(v) AS v FROM t GROUP BY k) \
     SELECT count(*) FROM (SELECT k FROM c) a POSITIONAL JOIN (SELECT v FROM c) b WHERE v <> 7 * k",
    "WITH c AS (SELECT * FROM (SELECT k, max(v) AS v FROM t GROUP BY k) TABLESAMPLE (300 ROWS) REPEATABLE (7)) \
     SELECT count(*) FROM c a FULL JOIN c b ON a.k = b.k WHERE a.k IS NULL OR b.k IS NULL",
    "WITH c AS (SELECT * FROM (SELECT k, max(v) AS v FROM t GROUP BY k) TABLESAMPLE (10 PERCENT)) \
     SELECT count(*) FROM c WHERE NOT EXISTS (SELECT 1 FROM c d WHERE d.k = c.k AND d.v = c.v)",
    "WITH c AS (SELECT k, row_number() OVER () AS r FROM (SELECT k FROM t GROUP BY k)) \
     SELECT count(*) FROM c WHERE k <> (SELECT max(d.k) FROM c d WHERE d.r = c.r)",
    "WITH c AS (SELECT k, row_number() OVER () AS r FROM (SELECT k FROM t GROUP BY k)) \
     SELECT count(*) FROM c, LATERAL (SELECT d.k AS other FROM c d WHERE d.r = c.r) x WHERE k <> other",
    "WITH c AS (SELECT k, row_number() OVER () AS r FROM (SELECT k FROM t GROUP BY k)), \
          d AS (SELECT * FROM c WHERE r <= 1000 UNION ALL SELECT * FROM c WHERE r > 1000) \
     SELECT count(*) - count(DISTINCT k) FROM d",
    "WITH c AS (SELECT k FROM t GROUP BY k), d AS (SELECT k, row_number() OVER () AS r FROM c) \
     SELECT count(*) FROM (SELECT * FROM d UNION ALL SELECT * FROM d) x \
     JOIN (SELECT k, row_number() OVER () AS r FROM c) y ON x.r = y.r WHERE x.k <> y.k",
    // What is drawn in the right table is drawn once, too.
    "SELECT count(*) FROM (SELECT 0.5 AS x FROM t LIMIT 50) a \
     ASOF JOIN (SELECT r, r AS s FROM (SELECT random() AS r FROM t LIMIT 500)) b ON a.x >= b.r \
     WHERE b.r > 0.5 OR b.s > 0.5",
];

#[test]
fn both_readers_of_rows_in_no_order_see_the_same_rows() {
    for (name, session) in sessions() {
        for sql in DIFFERENCES {
            assert_eq!(scalar(&session, sql), Cell::Int(0), "{name}: {sql}");
        }
    }
}

/// Frames whose rows would be those of no row, if two readers of the groups saw another order each.
fn differences(session: &Session) -> Result<Vec<(&'static str, LazyFrame)>> {
    let groups = session.table("t")?.group_by([col("k")]).agg([max(col("v")).alias("v")])?;
    let beside = [groups.select(["k"])?, groups.select(["v"])?];
    let beside = LazyFrame::concat(&beside, Concat::Horizontal)?;
    let numbered = groups.with_row_index("r", 0)?;
    let joined = numbered.join_on(&numbered, JoinType::Inner, ["r"])?;
    let other = groups.rename([("v", "w")])?;
    let nearest = groups.join_asof(&other, "k", "k", &AsofOptions::default())?;
    let options = SampleOptions { seed: Some(7), ..SampleOptions::default() };
    let drawn = groups.sample(SampleSize::Rows(300), options)?;
    let found = drawn.is_in(&drawn, ["k", "v"])?;
    let again = SampleOptions { with_replacement: true, ..options };
    let again = groups.sample(SampleSize::Fraction(0.1), again)?;
    let wrong = || col("v").not_eq(col("k") * 7);
    Ok(vec![
        ("concat", beside.filter(wrong())?),
        ("with_row_index", joined.filter(col("k").not_eq(col("k_right")))?),
        ("join_asof", nearest.filter(col("w").is_null().or(col("w").not_eq(col("k") * 7)))?),
        ("sample", found.filter(col("is_in").eq(false))?),
        ("sample with replacement", again.filter(wrong())?),
        ("reverse", groups.reverse()?.filter(wrong())?),
    ])
}

#[test]
fn both_readers_of_a_frame_in_no_order_see_the_same_rows() -> Result<()> {
    for (name, session) in sessions() {
        for (verb, frame) in differences(&session)? {
            assert_eq!(frame.collect()?.num_rows(), 0, "{name}: {verb}");
        }
    }
    Ok(())
}
