//! Primitives of a dataframe through SQL: `cargo bench --bench primitives -- [ROWS] [FILTER]` (default 1000000).
//!
//! Names and shapes are those of the peers' benchmark (group sum of f64 by i64 keys, sort, filter, join, distinct, …). Data is
//! resident; every result is checked against a reference computed on the host before it is timed. One JSON line an
//! operation: device time (sum over kernels) and end-to-end time until the result lies on the device, medians of 7 runs, the
//! least bytes the operation must move, and the share of this device's copy bandwidth that this comes to.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use warpframe::arrow::array::{ArrayRef, AsArray, Float64Array, Int64Array};
use warpframe::arrow::datatypes::{Float64Type, Int64Type};
use warpframe::arrow::record_batch::RecordBatch;
use warpframe::prelude::*;

type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

const RUNS: usize = 7;
/// Copy bandwidth of an H200 in bytes a millisecond: the floor of an operation is its least bytes over this.
const COPY: f64 = 4.1e9;

struct Bench {
    session: Session,
    rows: usize,
    filter: String,
}

fn main() -> Outcome {
    let words: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    let rows = words.first().map_or(Ok(1_000_000), |text| text.parse())?;
    let filter = words.get(1).cloned().unwrap_or_default();
    let bench = Bench { session: Session::builder().strict(true).build()?, rows, filter };
    let mut random = StdRng::seed_from_u64(42);
    bench.scalars(&mut random)?;
    bench.sorts(&mut random)?;
    bench.groups(&mut random)?;
    bench.joins(&mut random)
}

impl Bench {
    fn wants(&self, names: &[&str]) -> bool {
        names.iter().any(|name| name.contains(&self.filter) || self.filter.contains(name))
    }

    fn table(&self, name: &str, columns: Vec<(&str, ArrayRef)>) -> Outcome {
        let _ = self.session.deregister(name);
        Ok(self.session.register_batches(name, [RecordBatch::try_from_iter(columns)?])?)
    }

    /// Times `sql` after `check` has approved of its result.
    fn time(&self, name: &str, least_bytes: usize, sql: &str, check: impl FnOnce(&RecordBatch) -> bool) -> Outcome {
        if !name.contains(&self.filter) {
            return Ok(());
        }
        let device = self.session.device().ok_or("a benchmark needs a device")?;
        let result = self.session.sql(sql)?.collect()?.to_arrow()?;
        let schema = result.first().ok_or("no batch")?.schema();
        let whole = warpframe::arrow::compute::concat_batches(&schema, &result)?;
        if !check(&whole) {
            return Err(format!("{name}: wrong result").into());
        }
        drop((result, whole));
        let (mut ends, mut sums, mut kernels) = (vec![], vec![], String::new());
        for _ in 0..RUNS {
            let start = Instant::now();
            let frame = self.session.sql(sql)?.collect()?;
            device.synchronize()?;
            ends.push(start.elapsed().as_secs_f64() * 1e3);
            drop(frame);
        }
        for _ in 0..RUNS {
            device.start_profile();
            let frame = self.session.sql(sql)?.collect()?;
            let profile = device.take_profile()?;
            drop(frame);
            sums.push(profile.iter().map(|kernel| f64::from(kernel.ms)).sum::<f64>());
            kernels = profile.iter().map(|kernel| format!(" {}={:.3}", kernel.name, kernel.ms)).collect();
        }
        let ms = median(&mut sums);
        println!(
            "{{\"bench\":{name:?},\"rows\":{},\"device_ms\":{ms:.4},\"wall_ms\":{:.4},\"gb_s\":{:.0},\"floor_ms\":{:.3},\"share\":{:.2}}}",
            self.rows,
            median(&mut ends),
            least_bytes as f64 / ms / 1e6,
            least_bytes as f64 / COPY,
            least_bytes as f64 / COPY / ms,
        );
        eprintln!("{name}:{kernels}");
        Ok(())
    }

    fn scalars(&self, random: &mut StdRng) -> Outcome {
        if !self.wants(&["sum f64", "quadratic", "filter"]) {
            return Ok(());
        }
        let n = self.rows;
        let x: Vec<f64> = (0..n).map(|_| random.random()).collect();
        let key: Vec<i64> = (0..n).map(|_| random.random()).collect();
        let (a, b, c): (Vec<f64>, Vec<f64>, Vec<f64>) = (
            x.iter().map(|x| x * 5.0 + 5.0).collect(),
            x.iter().map(|x| (1.0 - x) * 10.0 + 10.0).collect(),
            x.iter().map(|x| x * 0.2 - 0.1).collect(),
        );
        self.table(
            "t",
            vec![("x", f64s(x.clone())), ("k", i64s(key)), ("a", f64s(a)), ("b", f64s(b)), ("c", f64s(c))],
        )?;
        let total: f64 = x.iter().sum();
        self.time("sum f64", 8 * n, "SELECT sum(x) FROM t", |r| close(f64_at(r, 0, 0), total))?;
        let quadratic = "SELECT (-b + sqrt(b*b - 4*a*c)) / (2*a) AS q FROM t";
        self.time("quadratic f64", 32 * n, quadratic, |r| r.num_rows() == n)?;
        for percent in [1, 10, 50, 90] {
            let bound = f64::from(percent) / 100.0;
            let kept: Vec<f64> = x.iter().copied().filter(|x| *x < bound).collect();
            let sql = format!("SELECT k, a FROM t WHERE x < {bound}");
            let bytes = 8 * n + 32 * kept.len();
            self.time(&format!("filter x<c of (i64,f64) kept={percent}%"), bytes, &sql, |r| {
                let a = r.column(1).as_primitive::<Float64Type>();
                r.num_rows() == kept.len() && a.values().iter().zip(&kept).all(|(a, x)| *a == x * 5.0 + 5.0)
            })?;
        }
        Ok(())
    }

    fn sorts(&self, random: &mut StdRng) -> Outcome {
        if !self.wants(&["sort", "top"]) {
            return Ok(());
        }
        let n = self.rows;
        let key: Vec<i64> = (0..n).map(|_| random.random()).collect();
        let f: Vec<f64> = (0..n).map(|_| random.random::<f64>() * 5.0 + 5.0).collect();
        let small: Vec<i64> = (0..n).map(|_| random.random_range(0..1000)).collect();
        self.table("t", vec![("k", i64s(key.clone())), ("f", f64s(f.clone())), ("s", i64s(small))])?;
        let mut sorted = key.clone();
        sorted.sort_unstable();
        let keys = |r: &RecordBatch| r.column(0).as_primitive::<Int64Type>().values().to_vec();
        self.time("sort i64", 16 * n, "SELECT k FROM t ORDER BY k", |r| keys(r) == sorted)?;
        self.time("sort i64 key with one f64", 32 * n, "SELECT k, f FROM t ORDER BY k", |r| keys(r) == sorted)?;
        self.time("top 100 of i64", 8 * n, "SELECT k FROM t ORDER BY k LIMIT 100", |r| {
            keys(r) == sorted[..100.min(n)]
        })?;
        self.time("sort (i64<1000, i64)", 32 * n, "SELECT s, k FROM t ORDER BY s, k", |r| {
            let (s, k) = (r.column(0).as_primitive::<Int64Type>(), r.column(1).as_primitive::<Int64Type>());
            (1..n).all(|i| (s.value(i - 1), k.value(i - 1)) <= (s.value(i), k.value(i)))
        })?;
        let mut floats = f;
        floats.sort_unstable_by(f64::total_cmp);
        self.time("sort f64", 16 * n, "SELECT f FROM t ORDER BY f", |r| {
            r.column(0).as_primitive::<Float64Type>().values().to_vec() == floats
        })
    }

    fn groups(&self, random: &mut StdRng) -> Outcome {
        if !self.wants(&["group", "distinct"]) {
            return Ok(());
        }
        let n = self.rows;
        for (groups, dense) in [10, 1000, 100_000, 10_000_000].into_iter().flat_map(|g| [(g, true), (g, false)]) {
            if groups > n {
                continue;
            }
            // Scattered keys: no pattern that a range of values or a weak hash could use.
            let name = |g: u64| if dense { g as i64 } else { scatter(g) };
            let ids: Vec<u64> = (0..n).map(|_| random.random_range(0..groups as u64)).collect();
            let v: Vec<f64> = (0..n).map(|_| random.random::<f64>() * 5.0 + 5.0).collect();
            let mut sums: HashMap<i64, f64> = HashMap::new();
            ids.iter().zip(&v).for_each(|(id, v)| *sums.entry(name(*id)).or_default() += v);
            self.table("t", vec![("k", i64s(ids.iter().map(|id| name(*id)).collect())), ("v", f64s(v))])?;
            let kind = if dense { "dense" } else { "scattered" };
            let right = |r: &RecordBatch| {
                let (k, s) = (r.column(0).as_primitive::<Int64Type>(), r.column(1).as_primitive::<Float64Type>());
                k.len() == sums.len() && k.values().iter().zip(s.values()).all(|(k, s)| close(*s, sums[k]))
            };
            let bytes = 16 * n + 16 * sums.len();
            let label = format!("group_sum i64→f64 groups={groups} {kind}");
            self.time(&label, bytes, "SELECT k, sum(v) FROM t GROUP BY k", right)?;
            let label = format!("group_5 i64→f64 groups={groups} {kind}");
            let sql = "SELECT k, sum(v), min(v), max(v), avg(v), count(v) FROM t GROUP BY k";
            self.time(&label, 16 * n + 48 * sums.len(), sql, right)?;
            let label = format!("distinct i64 groups={groups} {kind}");
            self.time(&label, 8 * n + 8 * sums.len(), "SELECT DISTINCT k FROM t", |r| r.num_rows() == sums.len())?;
        }
        Ok(())
    }

    fn joins(&self, random: &mut StdRng) -> Outcome {
        if !self.wants(&["join"]) {
            return Ok(());
        }
        let n = self.rows;
        for (build, dense) in [1000, 1_000_000, 10_000_000, n].into_iter().flat_map(|b| [(b, true), (b, false)]) {
            if build > n {
                continue;
            }
            let name = |g: u64| if dense { g as i64 } else { scatter(g) };
            let mut keys: Vec<u64> = (0..build as u64).collect();
            keys.shuffle(random);
            let probes: Vec<u64> = (0..n).map(|_| random.random_range(0..build as u64)).collect();
            // Payloads tell the key, so that the check needs no table.
            let sum: f64 = probes.iter().map(|id| *id as f64).sum();
            let payload = |ids: &[u64]| f64s(ids.iter().map(|id| *id as f64).collect());
            let named = |ids: &[u64]| i64s(ids.iter().map(|id| name(*id)).collect());
            self.table("b", vec![("k", named(&keys)), ("w", payload(&keys))])?;
            self.table("t", vec![("k", named(&probes)), ("v", payload(&probes))])?;
            let kind = if dense { "dense" } else { "scattered" };
            let label = format!("join build={build} {kind}, one column from each side");
            let sql = "SELECT t.v, b.w FROM t JOIN b ON t.k = b.k";
            self.time(&label, 16 * (n + build) + 16 * n, sql, |r| {
                let (v, w) = (r.column(0).as_primitive::<Float64Type>(), r.column(1).as_primitive::<Float64Type>());
                v.len() == n && v.values() == w.values() && close(v.values().iter().sum(), sum)
            })?;
            let label = format!("join build={build} {kind}, fused into a sum");
            let sql = "SELECT sum(b.w) FROM t JOIN b ON t.k = b.k";
            self.time(&label, 8 * (n + build), sql, |r| close(f64_at(r, 0, 0), sum))?;
        }
        Ok(())
    }
}

/// A bijection without pattern (the finaliser of SplitMix64).
fn scatter(x: u64) -> i64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    (x ^ (x >> 31)) as i64
}

fn i64s(values: Vec<i64>) -> ArrayRef {
    Arc::new(Int64Array::from(values))
}

fn f64s(values: Vec<f64>) -> ArrayRef {
    Arc::new(Float64Array::from(values))
}

fn f64_at(batch: &RecordBatch, column: usize, row: usize) -> f64 {
    batch.column(column).as_primitive::<Float64Type>().value(row)
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * b.abs().max(1.0)
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
