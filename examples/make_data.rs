//! Makes the sample data again, at any scale: the eight TPC-H tables as Parquet, and particles in
//! jets as CSV.
//!
//! ```text
//! cargo run --release --example make_data                   # what is in data/: scale factor 0.01
//! cargo run --release --example make_data -- 10 /tmp/data   # scale factor 10, elsewhere
//! ```

use std::error::Error;
use std::f64::consts::PI;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::mpsc;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rand_distr::{Distribution, Exp, Normal, Poisson};
use tpchgen::generators::*;
use tpchgen_arrow::*;
use warpframe::arrow::array::RecordBatch;
use warpframe::arrow::error::ArrowError;

use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::basic::{Compression, ZstdLevel};
use datafusion::parquet::file::properties::WriterProperties;

type Outcome<T = ()> = Result<T, Box<dyn Error + Send + Sync>>;

/// Rows of the jets file, whatever the scale factor.
const PARTICLES: usize = 100_000;
const SEED: u64 = 20;

fn main() -> Outcome {
    let mut arguments = std::env::args().skip(1);
    let scale: f64 = arguments.next().map_or(Ok(0.01), |text| text.parse())?;
    let out = arguments.next().unwrap_or_else(|| "data".into());
    let tpch = Path::new(&out).join("tpch");
    fs::create_dir_all(&tpch)?;

    // Large tables are generated in parts, side by side, and written in order.
    let parts = (scale.ceil() as i32).clamp(1, 1000);
    std::thread::scope(|scope| {
        let tables = [
            scope.spawn(|| {
                table(&tpch, "region", 1, |p, n| {
                    RegionArrow::new(RegionGenerator::new(scale, p, n))
                })
            }),
            scope.spawn(|| {
                table(&tpch, "nation", 1, |p, n| {
                    NationArrow::new(NationGenerator::new(scale, p, n))
                })
            }),
            scope.spawn(|| {
                table(&tpch, "supplier", 1, |p, n| {
                    SupplierArrow::new(SupplierGenerator::new(scale, p, n))
                })
            }),
            scope.spawn(|| {
                table(&tpch, "customer", 1, |p, n| {
                    CustomerArrow::new(CustomerGenerator::new(scale, p, n))
                })
            }),
            scope.spawn(|| {
                table(&tpch, "part", 1, |p, n| PartArrow::new(PartGenerator::new(scale, p, n)))
            }),
            scope.spawn(|| {
                table(&tpch, "partsupp", 1, |p, n| {
                    PartSuppArrow::new(PartSuppGenerator::new(scale, p, n))
                })
            }),
            scope.spawn(|| {
                table(&tpch, "orders", parts, |p, n| {
                    OrderArrow::new(OrderGenerator::new(scale, p, n))
                })
            }),
            scope.spawn(|| {
                table(&tpch, "lineitem", parts, |p, n| {
                    LineItemArrow::new(LineItemGenerator::new(scale, p, n))
                })
            }),
        ];
        tables.into_iter().try_for_each(|table| table.join().expect("a generator panicked"))
    })?;
    jets(&Path::new(&out).join("jets.csv"))
}

/// Writes one table, generating up to four parts at a time.
fn table<I>(
    directory: &Path,
    name: &str,
    parts: i32,
    make: impl Fn(i32, i32) -> I + Sync,
) -> Outcome
where
    I: Iterator<Item = Result<RecordBatch, ArrowError>>,
{
    const AHEAD: i32 = 4;
    let path = directory.join(format!("{name}.parquet"));
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(6)?))
        .build();
    let mut writer = None;
    let mut rows = 0;
    for first in (1..=parts).step_by(AHEAD as usize) {
        std::thread::scope(|scope| {
            let make = &make;
            let receivers: Vec<_> = (first..(first + AHEAD).min(parts + 1))
                .map(|part| {
                    let (sender, receiver) = mpsc::sync_channel(64);
                    // A send fails only when the writer has failed and says why.
                    scope.spawn(move || make(part, parts).try_for_each(|batch| sender.send(batch)));
                    receiver
                })
                .collect();
            for batch in receivers.into_iter().flatten() {
                let batch = batch?;
                rows += batch.num_rows();
                if writer.is_none() {
                    let file = BufWriter::new(File::create(&path)?);
                    writer =
                        Some(ArrowWriter::try_new(file, batch.schema(), Some(properties.clone()))?);
                }
                if let Some(writer) = &mut writer {
                    writer.write(&batch)?;
                }
            }
            Outcome::Ok(())
        })?;
    }
    writer.ok_or("no rows")?.close()?;
    println!("{}: {rows} rows", path.display());
    Ok(())
}

/// Particles of a few GeV around the axes of jets, about ten in each: `jetid` is the running sum of
/// Poisson(0.1), so that some numbers have no particles. Energies in GeV, rounded to 0.1 MeV such
/// that E ≥ |p| still holds.
fn jets(path: &Path) -> Outcome {
    const MASSES: [(f64, f64); 3] = [(0.80, 0.13957), (0.92, 0.49368), (1.0, 0.93827)]; // π, K, p by cumulative share
    let mut random = StdRng::seed_from_u64(SEED);
    let step = Poisson::new(0.1)?;
    let spread = Normal::new(0.0, 0.15)?;
    let softness = Exp::new(0.35)?;
    let mut file = BufWriter::new(File::create(path)?);
    writeln!(file, "jetid,px,py,pz,E")?;
    let mut jet = 0u64;
    let mut axis = (0.0, 0.0);
    let mut last = None;
    for _ in 0..PARTICLES {
        let hop: f64 = step.sample(&mut random);
        jet += hop as u64;
        if last != Some(jet) {
            axis = (random.random_range(-2.5..2.5), random.random_range(-PI..PI));
            last = Some(jet);
        }
        let pt = 0.2 + softness.sample(&mut random);
        let eta: f64 = axis.0 + spread.sample(&mut random);
        let phi = axis.1 + spread.sample(&mut random);
        let round = |x: f64| (x * 1e4).round() / 1e4;
        let (px, py, pz) = (round(pt * phi.cos()), round(pt * phi.sin()), round(pt * eta.sinh()));
        let kind: f64 = random.random();
        let mass =
            MASSES.iter().find(|(share, _)| kind < *share).map_or(0.13957, |(_, mass)| *mass);
        let energy = ((px * px + py * py + pz * pz + mass * mass).sqrt() * 1e4).ceil() / 1e4;
        writeln!(file, "{jet},{px},{py},{pz},{energy}")?;
    }
    file.flush()?;
    println!("{}: {PARTICLES} rows", path.display());
    Ok(())
}
