//! The first steps: a table from a file, a question in SQL, the same question in verbs, and a
//! result that is kept.
//!
//! ```sh
//! cargo run --release --example quickstart
//! WARPFRAME_DEVICE=cpu cargo run --release --example quickstart
//! ```

use warpframe::prelude::*;

fn main() -> warpframe::Result<()> {
    let session = Session::new()?;
    let (sql, verbs) = big_orders(&session)?;
    sql.show()?;
    verbs.show()?;
    match session.device() {
        Some(device) => {
            println!(
                "{}: {} kernels launched",
                device.properties().name,
                device.counters().launches
            );
            println!("{}", session.table("urgent")?.filter(col("orders").gt(lit(1)))?.explain()?);
        }
        None => println!("{}", session.notice().unwrap_or("queries ran on the CPU, as asked")),
    }
    Ok(())
}

/// Orders above 200,000 by priority: from SQL, and from verbs.
pub fn big_orders(session: &Session) -> warpframe::Result<(DataFrame, DataFrame)> {
    // A table is a name for files. Columns are read when a query needs them and stay on the device.
    session.register_parquet("orders", sample("tpch/orders.parquet"))?;
    let sql = session
        .sql(
            "SELECT o_orderpriority, count(*) AS orders, sum(o_totalprice) AS total
             FROM orders WHERE o_totalprice > 200000 GROUP BY o_orderpriority ORDER BY o_orderpriority",
        )?
        .collect()?;

    let verbs = session
        .table("orders")?
        .filter(col("o_totalprice").gt(lit(200_000)))?
        .group_by([col("o_orderpriority")])
        .agg([count_rows().alias("orders"), sum(col("o_totalprice")).alias("total")])?
        .sort([asc(col("o_orderpriority"))])?
        .collect()?;

    // A result is a table like any other: later queries read it where it lies.
    session.register_table("urgent", &verbs.filter(col("o_orderpriority").eq(lit("1-URGENT")))?)?;
    Ok((sql, verbs))
}

/// A file of the sample data, wherever the program was started.
fn sample(path: &str) -> std::path::PathBuf {
    let beside_sources = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("data");
    let data = if beside_sources.is_dir() { beside_sources } else { "data".into() };
    data.join(path)
}
