//! A program as somebody writes it who comes from Polars: files, verbs, groups, joins, windows of
//! time, results. `docs/from-polars.md` has what is called otherwise.
//!
//! ```sh
//! cargo run --release --example polars_user
//! ```

use warpframe::prelude::*;

fn main() -> warpframe::Result<()> {
    let [by_size, wide, ranked, monthly] = program(&Session::new()?)?;
    println!("{by_size}\n{wide}\n{ranked}\n{monthly}");
    Ok(())
}

/// Large orders by size, mean orders of nations by priority, the priority of each nation's dearest
/// orders, and orders by month.
pub fn program(session: &Session) -> warpframe::Result<[DataFrame; 4]> {
    let data = |name: &str| std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    let orders = session.read_parquet(data("data/tpch/orders.parquet"))?;
    let customers = session.read_parquet(data("data/tpch/customer.parquet"))?;
    let nations = session.read_parquet(data("data/tpch/nation.parquet"))?;
    let jets = session.read_csv(data("data/jets.csv"))?;
    println!("{:?}: {} rows, {} columns", orders.shape(), orders.height(), orders.width());
    println!("{:?} {:?}", orders.get_column_names(), orders.dtypes());
    println!("{}", orders.head(5)?);

    // Verbs return a Result, those of lazy frames too: names and types are checked at once.
    let size = when(col("o_totalprice").gt(300_000)).then("huge").otherwise("big");
    let big = orders
        .lazy()?
        .filter(col("o_totalprice").gt(lit(200_000)))?
        .filter(col("o_orderdate").is_between(date(1995, 1, 1)?, date(1996, 12, 31)?))?
        .with_column(col("o_orderdate").dt().year().alias("year"))?
        .with_columns([
            col("o_orderpriority").str().slice(0, Some(1)).cast(DataType::Int32).alias("priority"),
            col("o_orderdate").dt().truncate("1mo").alias("month"),
            size.alias("size"),
        ])?
        .drop("o_comment")?
        .collect()?;
    let by_size = big
        .group_by("size")
        .agg([col("o_totalprice").sum().alias("total"), col("year").n_unique(), len()])?
        .sort("total")?;

    let per_nation = orders
        .lazy()?
        .select(["o_custkey", "o_totalprice", "o_orderpriority"])?
        .join(&customers.lazy()?, JoinType::Inner, "o_custkey", "c_custkey")?
        .join(&nations.lazy()?, JoinType::Left, "c_nationkey", "n_nationkey")?
        .group_by(["n_name", "o_orderpriority"])
        .agg(col("o_totalprice").mean().round(2))?
        .sort(["n_name", "o_orderpriority"])?
        .collect()?;
    let wide = per_nation
        .pivot("o_orderpriority", "n_name", "o_totalprice", Expr::first)?
        .sort("n_name")?;
    let ranked = per_nation
        .with_column((-col("o_totalprice")).rank().over("n_name").alias("place"))?
        .filter(col("place").eq(1))?
        .sort([asc("n_name"), desc("o_totalprice")])?
        .unique("n_name", UniqueKeep::First)?;

    let monthly = orders
        .group_by_dynamic("o_orderdate", (), DynamicWindows::every("1mo"))?
        .agg([col("o_totalprice").sum(), count_rows().alias("orders")])?;
    monthly.write_csv(std::env::temp_dir().join("monthly.csv"))?;

    let energy = jets.column("E")?;
    let (sum, mean): (f64, f64) = (energy.sum()?, energy.mean()?);
    println!("{sum:.1} {mean:.3} {:?} {:?}", energy.min::<f64>()?, energy.max::<f64>()?);
    let words =
        customers.select([col("c_name").str().split("#").alias("words"), col("c_custkey")])?;
    println!("{} words", words.explode("words")?.height());
    let few = jets.head(100)?;
    assert_eq!(few.vstack(&few)?, concat([&few, &few])?);
    println!("{}", ranked.head(3)?.to_json()?);
    Ok([by_size, wide, ranked, monthly])
}
