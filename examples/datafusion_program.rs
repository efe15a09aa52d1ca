//! A DataFusion program that runs its queries on a GPU: one line more than without.
//!
//! `cargo run --example datafusion_program`

use datafusion::error::Result;
use datafusion::execution::SessionStateBuilder;
use datafusion::prelude::SessionContext;
use warpframe::plugin::WithWarpframe;

#[tokio::main]
async fn main() -> Result<()> {
    let state = SessionStateBuilder::new_with_default_features()
        // This one. Without a GPU it changes nothing; WARPFRAME_DEVICE=sim takes the simulator.
        .with_warpframe()?
        .build();
    let context = SessionContext::new_with_state(state);
    for table in ["orders", "customer", "nation"] {
        let path = format!("data/tpch/{table}.parquet");
        context.register_parquet(table, path, Default::default()).await?;
    }
    let sql = "SELECT n_name, count(*) AS orders, sum(o_totalprice) AS total
               FROM nation JOIN customer ON c_nationkey = n_nationkey
               JOIN orders ON o_custkey = c_custkey
               WHERE o_orderdate >= DATE '1995-01-01'
               GROUP BY n_name ORDER BY total DESC LIMIT 5";
    context.sql(sql).await?.show().await?;
    // What runs on the device, and why not the rest.
    context.sql(&format!("EXPLAIN {sql}")).await?.show().await
}
