//! Inner joins on one key, with columns from both sides.

use warpframe::prelude::*;

use super::data::*;
use super::harness::{Bench, Case, Outcome, each_chunk, ensure};
use super::pipeline::probe_sum;
use super::sort::{PAYLOAD, check_payload, payload};

/// Two tables: `rows` of a foreign key `k` and its number `v`, and `build` of a unique key `k` with
/// payload columns.
#[derive(Debug, Clone, Copy)]
pub struct JoinShape {
    pub rows: usize,
    pub build: usize,
    pub domain: Domain,
    /// Percent of the probes that find a match.
    pub matching: u64,
    /// Percent of the probes that have one key.
    pub hot: Option<u64>,
    /// Columns of the build side besides the key.
    pub columns: usize,
}

pub struct Sides {
    pub shape: JoinShape,
    pub probe: DataFrame,
    pub build: DataFrame,
}

pub fn all(bench: &Bench, rows: usize) -> Outcome {
    let mut builds = vec![1000, 1_000_000, 10_000_000, rows];
    builds.retain(|build| *build <= rows);
    for (build, domain) in
        builds.into_iter().flat_map(|build| Domain::BOTH.map(|domain| (build, domain)))
    {
        one(bench, JoinShape::plain(rows, build, domain))?;
    }
    for domain in Domain::BOTH {
        one(
            bench,
            JoinShape { matching: 10, ..JoinShape::plain(rows, rows.min(10_000_000), domain) },
        )?;
    }
    Ok(())
}

/// A join, and a sum over it.
pub fn one(bench: &Bench, shape: JoinShape) -> Outcome {
    let (join, sum) = (shape.name("join"), shape.name("join into a sum"));
    if bench.wants([&join, &sum]) {
        let sides = Sides::new(bench, shape)?;
        sides.time(bench, join);
        probe_sum(bench, &sides, sum);
    }
    Ok(())
}

impl JoinShape {
    pub fn plain(rows: usize, build: usize, domain: Domain) -> JoinShape {
        JoinShape { rows, build, domain, matching: 100, hot: None, columns: 1 }
    }

    fn name(&self, operation: &str) -> String {
        let mut name = format!("{operation} build={} {}", self.build, self.domain.name());
        if self.matching < 100 {
            name.push_str(&format!(" matching={}%", self.matching));
        }
        if let Some(percent) = self.hot {
            name.push_str(&format!(" hot={percent}%"));
        }
        name
    }

    /// The number that the row's key stands for; the build side has those below `build`.
    fn number(&self, row: u64) -> u64 {
        match self.hot {
            Some(percent) if among(5, row, percent) => 0,
            _ => below(12, row, (self.build * 100) as u64 / self.matching),
        }
    }

    fn matches(&self, row: u64) -> bool {
        self.number(row) < self.build as u64
    }
}

impl Sides {
    pub fn new(bench: &Bench, shape: JoinShape) -> Outcome<Sides> {
        let JoinShape { rows, build, domain, columns, .. } = shape;
        let permutation = Permutation::of(build);
        let keys = i64s(fill(build, |row| domain.key(permutation.at(row))));
        let more = (0..columns)
            .map(|at| (PAYLOAD[at], f64s(fill(build, |row| payload(permutation.at(row), at)))));
        let build = bench.frame(std::iter::once(("k", keys)).chain(more))?;
        let keys = i64s(fill(rows, |row| domain.key(shape.number(row))));
        let numbers = f64s(fill(rows, |row| shape.number(row) as f64));
        Ok(Sides { shape, probe: bench.frame([("k", keys), ("v", numbers)])?, build })
    }

    /// Probes that find a match.
    pub fn matches(&self) -> usize {
        rows_where(self.shape.rows, |row| self.shape.matches(row))
    }

    /// A sum over the probes that find a match.
    pub fn sum_of(&self, value: impl Fn(u64) -> u64 + Sync) -> u64 {
        checksum(self.shape.rows, |row| {
            if self.shape.matches(row) { value(self.shape.number(row)) } else { 0 }
        })
    }

    pub fn joined(&self) -> warpframe::Result<LazyFrame> {
        self.probe.lazy()?.join(&self.build.lazy()?, JoinType::Inner, ["k"], ["k"])
    }

    pub fn time(&self, bench: &Bench, name: String) {
        let JoinShape { rows, build, columns, .. } = self.shape;
        let found = self.matches();
        // The keys of all probes; where few match, the other columns of few.
        let bytes = 8 * rows + 8 * found + 8 * (1 + columns) * (build + found);
        let outputs = || ["v"].into_iter().chain(PAYLOAD[..columns].iter().copied()).map(col);
        bench.time(
            Case::new(name, rows, bytes),
            || self.joined()?.select(outputs())?.collect(),
            |result| {
                ensure(
                    result.num_rows() == found,
                    format!("{} rows instead of {found}", result.num_rows()),
                )?;
                let mut sum = 0u64;
                each_chunk(result, |_, batch| {
                    let numbers = f64_column(batch, 0);
                    check_payload(batch, 1..1 + columns, |at| numbers[at] as u64)?;
                    sum = sum.wrapping_add(checksum(numbers.len(), |at| {
                        mix(numbers[at as usize] as u64)
                    }));
                    Ok(())
                })?;
                ensure(sum == self.sum_of(mix), "other rows than those that match")
            },
        );
    }
}

/// A build side of which each key has several rows; as many rows come out whatever their number.
pub fn duplicates(bench: &Bench, rows: usize, copies: usize) -> Outcome {
    let name = format!("join build={} copies={copies}", rows.min(1_000_000));
    let (keys, probes) = (rows.min(1_000_000) / copies, rows / copies);
    if keys == 0 || !bench.wants([&name]) {
        return Ok(());
    }
    let permutation = Permutation::of(keys * copies);
    let key = |row| permutation.at(row) % keys as u64;
    let build = bench.frame([
        ("k", i64s(fill(keys * copies, |row| key(row) as i64))),
        ("p0", f64s(fill(keys * copies, |row| payload(key(row), 0)))),
    ])?;
    let number = |row| below(12, row, keys as u64);
    let probe = bench.frame([
        ("k", i64s(fill(probes, |row| number(row) as i64))),
        ("v", f64s(fill(probes, |row| number(row) as f64))),
    ])?;
    let found = probes * copies;
    let run = || {
        let joined = probe.lazy()?.join(&build.lazy()?, JoinType::Inner, ["k"], ["k"])?;
        joined.select([col("v"), col("p0")])?.collect()
    };
    // As a share of rows that come out.
    bench.time(Case::new(name, found, 16 * (probes + keys * copies + found)), run, |result| {
        ensure(
            result.num_rows() == found,
            format!("{} rows instead of {found}", result.num_rows()),
        )?;
        let mut sum = 0u64;
        each_chunk(result, |_, batch| {
            let numbers = f64_column(batch, 0);
            check_payload(batch, 1..2, |at| numbers[at] as u64)?;
            sum = sum.wrapping_add(checksum(numbers.len(), |at| mix(numbers[at as usize] as u64)));
            Ok(())
        })?;
        let expected = checksum(probes, |row| mix(number(row)).wrapping_mul(copies as u64));
        ensure(sum == expected, "other rows than those that match")
    });
    Ok(())
}
