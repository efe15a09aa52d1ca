//! The sample data: TPC-H's queries, all of them whole on the device, and jets.

use warpframe::prelude::*;

use crate::differential::{Pair, data};

fn query(number: u32) -> String {
    std::fs::read_to_string(data(&format!("queries/q{number}.sql"))).expect("the sample is there")
}

#[test]
fn tpch_queries_run_whole_on_the_device() {
    let pair = Pair::new().samples();
    for number in 1..=22 {
        let rows = pair.check(query(number).trim().trim_end_matches(';'));
        assert!(rows > 0, "Q{number} says nothing at this scale");
    }
}

#[test]
fn parts_of_tpch_queries_13_16_and_22() {
    Pair::new().samples().check_all(&[
        "SELECT o_custkey, count(*) FROM orders WHERE o_comment NOT LIKE '%special%requests%' GROUP BY o_custkey",
        "SELECT p_brand, p_type, p_size, count(DISTINCT ps_suppkey) AS suppliers FROM partsupp JOIN part ON p_partkey = ps_partkey
         WHERE p_brand <> 'Brand#45' AND p_type NOT LIKE 'MEDIUM POLISHED%' AND p_size IN (49, 14, 23, 45, 19, 3, 36, 9)
         GROUP BY p_brand, p_type, p_size",
        "SELECT substring(c_phone FROM 1 FOR 2) AS code, count(*), sum(c_acctbal), stddev(c_acctbal), median(c_acctbal) FROM customer
         WHERE substring(c_phone FROM 1 FOR 2) IN ('13', '31', '23', '29', '30', '18', '17') GROUP BY code",
    ]);
}

#[test]
fn tpch_by_verbs() {
    let pair = Pair::new().samples();
    let money = || col("l_extendedprice") * (lit(1) - col("l_discount"));
    pair.check_frame("q3 ORDER BY", |session| {
        let customer =
            session.table("customer")?.filter(col("c_mktsegment").eq(lit("BUILDING")))?;
        let day = || cast(lit("1995-03-15"), warpframe::arrow::datatypes::DataType::Date32);
        let orders = session.table("orders")?.filter(col("o_orderdate").lt(day()))?;
        let lineitem = session.table("lineitem")?.filter(col("l_shipdate").gt(day()))?;
        customer
            .join(&orders, JoinType::Inner, ["c_custkey"], ["o_custkey"])?
            .join(&lineitem, JoinType::Inner, ["o_orderkey"], ["l_orderkey"])?
            .group_by([col("o_orderkey"), col("o_orderdate"), col("o_shippriority")])
            .agg([sum(money()).alias("revenue")])?
            .sort([desc(col("revenue")), asc(col("o_orderdate"))])?
            .limit(0, 10)
    });
    pair.check_frame("q1", |session| {
        session.table("lineitem")?.group_by([col("l_returnflag"), col("l_linestatus")]).agg([
            sum(col("l_quantity")),
            sum(money()).alias("revenue"),
            mean(col("l_discount")),
            count_rows(),
        ])
    });
}

#[test]
fn jets_are_summed_and_ordered() {
    let pair = Pair::new().samples();
    pair.check_all(&[
        "SELECT jetid, sum(px), sum(py), sum(pz), sum(\"E\"), count(*) FROM jets GROUP BY jetid",
        "SELECT jetid, sqrt(px * px + py * py) AS pt, \"E\" FROM jets WHERE \"E\" > 50 ORDER BY pt DESC, \"E\" LIMIT 50",
        "SELECT n, count(*) FROM (SELECT jetid, count(*) AS n FROM jets GROUP BY jetid) GROUP BY n",
    ]);
    pair.check_frame("jets by verbs ORDER BY", |session| {
        session
            .table("jets")?
            .filter(col("E").gt(lit(10.0)))?
            .with_columns([(col("px") * col("px") + col("py") * col("py")).alias("pt2")])?
            .group_by([col("jetid")])
            .agg([sum(col("pt2")).alias("pt2"), max(col("E")), count_rows().alias("n")])?
            .sort([desc(col("n")), asc(col("jetid"))])?
            .limit(3, 20)
    });
}
