//! Particles to jets: momenta and energies summed over each jet, in SQL and in verbs, which must
//! agree.
//!
//! ```sh
//! # The device that WARPFRAME_DEVICE names, else a GPU, else the CPU.
//! cargo run --release --example jets
//! cargo run --release --example jets -- sim        # auto, cuda, cuda:N, sim, cpu
//! ```

use warpframe::arrow::array::AsArray;
use warpframe::arrow::datatypes::{Float64Type, Int64Type};
use warpframe::prelude::*;

const SQL: &str =
    r#"SELECT jetid, sum(px), sum(py), sum(pz), sum("E") FROM jets GROUP BY jetid ORDER BY jetid"#;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut builder = Session::builder();
    if let Some(device) = std::env::args().nth(1) {
        builder = builder.device(device.parse()?);
    }
    let session = builder.build()?;
    if let Some(notice) = session.notice() {
        eprintln!("{notice}");
    }
    let (sql, verbs) = jets(&session)?;
    if !agree(&sql, &verbs)? {
        return Err("SQL and verbs disagree".into());
    }
    verbs.show()?;
    Ok(())
}

/// The sums over each jet: from SQL, and from verbs.
pub fn jets(session: &Session) -> warpframe::Result<(DataFrame, DataFrame)> {
    session.register_csv("jets", sample("jets.csv"))?;
    let sql = session.sql(SQL)?.collect()?;
    let verbs = session
        .table("jets")?
        .group_by([col("jetid")])
        .agg(["px", "py", "pz", "E"].map(|component| sum(col(component))))?
        .sort([asc(col("jetid"))])?
        .collect()?;
    Ok((sql, verbs))
}

/// Whether two results have the same jets with the same sums, but for the rounding of additions in
/// another order.
pub fn agree(one: &DataFrame, other: &DataFrame) -> warpframe::Result<bool> {
    let (one, other) = (rows(one)?, rows(other)?);
    let close = |a: &f64, b: &f64| (a - b).abs() <= 1e-9 * a.abs().max(b.abs()).max(1.0);
    Ok(one.len() == other.len()
        && one.iter().zip(&other).all(|((jet, sums), (other_jet, other_sums))| {
            jet == other_jet && sums.iter().zip(other_sums).all(|(a, b)| close(a, b))
        }))
}

fn rows(frame: &DataFrame) -> warpframe::Result<Vec<(i64, [f64; 4])>> {
    let mut rows = vec![];
    for batch in frame.to_arrow()? {
        let jets = batch.column(0).as_primitive::<Int64Type>();
        let sums = [1, 2, 3, 4].map(|at| batch.column(at).as_primitive::<Float64Type>());
        rows.extend(
            (0..batch.num_rows()).map(|row| (jets.value(row), sums.map(|sum| sum.value(row)))),
        );
    }
    Ok(rows)
}

/// A file of the sample data, wherever the program was started.
fn sample(path: &str) -> std::path::PathBuf {
    let beside_sources = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("data");
    let data = if beside_sources.is_dir() { beside_sources } else { "data".into() };
    data.join(path)
}
