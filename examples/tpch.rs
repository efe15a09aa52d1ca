//! TPC-H Q1, Q3 and Q6 over the sample tables: as the specification's SQL, and as verbs, which must
//! agree.
//!
//! ```sh
//! # The device that WARPFRAME_DEVICE names, else a GPU, else the CPU.
//! cargo run --release --example tpch
//! cargo run --release --example tpch -- sim        # auto, cuda, cuda:N, sim, cpu
//! ```

use warpframe::arrow::compute::concat_batches;
use warpframe::prelude::*;

/// A query in verbs.
type Verbs = fn(&Session) -> warpframe::Result<LazyFrame>;

/// The queries, and what each is called.
pub const QUERIES: [(&str, Verbs); 3] = [("q1", q1), ("q3", q3), ("q6", q6)];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut builder = Session::builder();
    if let Some(device) = std::env::args().nth(1) {
        builder = builder.device(device.parse()?);
    }
    let session = builder.build()?;
    if let Some(notice) = session.notice() {
        eprintln!("{notice}");
    }
    for (name, verbs) in QUERIES {
        let (sql, verbs) = both(&session, name, verbs)?;
        if !same(&sql, &verbs)? {
            return Err(format!("{name}: SQL and verbs disagree").into());
        }
        println!("{name}");
        verbs.show()?;
    }
    Ok(())
}

/// A query's answer: from SQL, and from verbs.
pub fn both(
    session: &Session,
    name: &str,
    verbs: Verbs,
) -> warpframe::Result<(DataFrame, DataFrame)> {
    for table in ["lineitem", "orders", "customer"] {
        if !session.table_names().iter().any(|known| known == table) {
            session.register_parquet(table, sample(&format!("tpch/{table}.parquet")))?;
        }
    }
    let path = sample(&format!("queries/{name}.sql"));
    let text = std::fs::read_to_string(&path)
        .map_err(|source| warpframe::Error::from(warpframe::ErrorKind::Io { path, source }))?;
    Ok((session.sql(&text)?.collect()?, verbs(session)?.collect()?))
}

/// Whether two results have the same rows, whatever their columns are called.
pub fn same(one: &DataFrame, other: &DataFrame) -> Result<bool, Box<dyn std::error::Error>> {
    let one = concat_batches(&one.schema(), &one.to_arrow()?)?;
    let other = concat_batches(&other.schema(), &other.to_arrow()?)?;
    Ok(one.columns() == other.columns())
}

/// Pricing summary report.
fn q1(session: &Session) -> warpframe::Result<LazyFrame> {
    let price = || col("l_extendedprice");
    let discounted = || price() * (lit(1) - col("l_discount"));
    session
        .table("lineitem")?
        .filter(col("l_shipdate").lt_eq(date("1998-09-02")))?
        .group_by([col("l_returnflag"), col("l_linestatus")])
        .agg([
            sum(col("l_quantity")).alias("sum_qty"),
            sum(price()).alias("sum_base_price"),
            sum(discounted()).alias("sum_disc_price"),
            sum(discounted() * (lit(1) + col("l_tax"))).alias("sum_charge"),
            mean(col("l_quantity")).alias("avg_qty"),
            mean(price()).alias("avg_price"),
            mean(col("l_discount")).alias("avg_disc"),
            count_rows().alias("count_order"),
        ])?
        .sort([asc(col("l_returnflag")), asc(col("l_linestatus"))])
}

/// Shipping priority: the ten unshipped orders of greatest value.
fn q3(session: &Session) -> warpframe::Result<LazyFrame> {
    let building = session.table("customer")?.filter(col("c_mktsegment").eq(lit("BUILDING")))?;
    let placed = session.table("orders")?.filter(col("o_orderdate").lt(date("1995-03-15")))?;
    session
        .table("lineitem")?
        .filter(col("l_shipdate").gt(date("1995-03-15")))?
        .join(&placed, JoinType::Inner, ["l_orderkey"], ["o_orderkey"])?
        .join(&building, JoinType::Inner, ["o_custkey"], ["c_custkey"])?
        .group_by([col("l_orderkey"), col("o_orderdate"), col("o_shippriority")])
        .agg([sum(col("l_extendedprice") * (lit(1) - col("l_discount"))).alias("revenue")])?
        .select([col("l_orderkey"), col("revenue"), col("o_orderdate"), col("o_shippriority")])?
        .top_k(10, [desc(col("revenue")), asc(col("o_orderdate"))])
}

/// Forecasting revenue change.
fn q6(session: &Session) -> warpframe::Result<LazyFrame> {
    let in_1994 =
        col("l_shipdate").gt_eq(date("1994-01-01")).and(col("l_shipdate").lt(date("1995-01-01")));
    let cheap = col("l_discount").between(lit(0.05), lit(0.07)).and(col("l_quantity").lt(lit(24)));
    session
        .table("lineitem")?
        .filter(in_1994.and(cheap))?
        .select([sum(col("l_extendedprice") * col("l_discount")).alias("revenue")])
}

/// A date such as `1994-01-01`; the planner folds the cast.
fn date(text: &str) -> Expr {
    cast(lit(text), warpframe::arrow::datatypes::DataType::Date32)
}

/// A file of the sample data, wherever the program was started.
fn sample(path: &str) -> std::path::PathBuf {
    let beside_sources = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("data");
    let data = if beside_sources.is_dir() { beside_sources } else { "data".into() };
    data.join(path)
}
