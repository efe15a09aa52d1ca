//! Data that any thread can make from a row's number alone. Keys tell which number they stand for,
//! so that a result is checked by arrays instead of hash tables.

use std::ops::Range;
use std::sync::Arc;

use warpframe::arrow::array::{
    ArrayRef, AsArray, Float64Array, Int32Array, Int64Array, RecordBatch, UInt32Array,
};
use warpframe::arrow::buffer::NullBuffer;
use warpframe::arrow::datatypes::{Float64Type, Int64Type, UInt32Type};

/// The finaliser of SplitMix64: a bijection without pattern.
pub fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// The inverse of [`mix`].
pub fn unmix(x: u64) -> u64 {
    let x = (x ^ (x >> 31) ^ (x >> 62)).wrapping_mul(0x3196_42B2_D24D_8EC3);
    let x = (x ^ (x >> 27) ^ (x >> 54)).wrapping_mul(0x96DE_1B17_3F11_9089);
    x ^ (x >> 30) ^ (x >> 60)
}

/// Random bits of a row; each stream is another sequence.
pub fn random(stream: u64, row: u64) -> u64 {
    mix(mix(stream).wrapping_add(row.wrapping_mul(0x9E37_79B9_7F4A_7C15)))
}

/// A random number of a row in `0..bound`.
pub fn below(stream: u64, row: u64, bound: u64) -> u64 {
    ((u128::from(random(stream, row)) * u128::from(bound)) >> 64) as u64
}

/// A random float of a row in `0..1`.
pub fn unit(stream: u64, row: u64) -> f64 {
    (random(stream, row) >> 11) as f64 / (1u64 << 53) as f64
}

/// Whether a row belongs to a random share of `percent`.
pub fn among(stream: u64, row: u64, percent: u64) -> bool {
    below(stream, row, 100) < percent
}

/// Which keys stand for the numbers 0, 1, 2, …
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Domain {
    /// The numbers themselves.
    Dense,
    /// Any of 64 bits: no pattern that a range of values or a weak hash could use.
    Scattered,
}

impl Domain {
    pub const BOTH: [Domain; 2] = [Domain::Dense, Domain::Scattered];

    pub fn name(self) -> &'static str {
        match self {
            Domain::Dense => "dense",
            Domain::Scattered => "scattered",
        }
    }

    pub fn key(self, number: u64) -> i64 {
        match self {
            Domain::Dense => number as i64,
            Domain::Scattered => mix(number) as i64,
        }
    }

    pub fn number(self, key: i64) -> u64 {
        match self {
            Domain::Dense => key as u64,
            Domain::Scattered => unmix(key as u64),
        }
    }
}

/// A permutation of `0..rows`: a bijection of the next power of two, applied until the number is in
/// range.
#[derive(Debug, Clone, Copy)]
pub struct Permutation {
    rows: u64,
    bits: u32,
}

impl Permutation {
    pub fn of(rows: usize) -> Permutation {
        Permutation {
            rows: rows as u64,
            bits: (64 - (rows as u64).saturating_sub(1).leading_zeros()).max(1),
        }
    }

    pub fn at(self, row: u64) -> u64 {
        let (mask, shift) = (u64::MAX >> (64 - self.bits), self.bits / 2 + 1);
        let mut x = row;
        loop {
            for factor in [0xBF58_476D_1CE4_E5B9, 0x94D0_49BB_1331_11EB, 0x9E37_79B9_7F4A_7C15u64] {
                x = x.wrapping_mul(factor).wrapping_add(factor >> 32) & mask;
                x ^= x >> shift;
            }
            if x < self.rows {
                return x;
            }
        }
    }
}

/// Does a share of `0..len` on each core; yields what the shares made, in order.
pub fn parallel<T: Send>(len: usize, work: impl Fn(Range<usize>) -> T + Sync) -> Vec<T> {
    let share = len.div_ceil(threads()).max(1);
    std::thread::scope(|scope| {
        let work = &work;
        let starts = (0..len).step_by(share);
        let threads: Vec<_> =
            starts.map(|at| scope.spawn(move || work(at..len.min(at + share)))).collect();
        threads.into_iter().map(|thread| thread.join().expect("no share panics")).collect()
    })
}

/// A value for each row.
pub fn fill<T: Copy + Default + Send>(rows: usize, value: impl Fn(u64) -> T + Sync) -> Vec<T> {
    let mut values = vec![T::default(); rows];
    let share = rows.div_ceil(threads()).max(1);
    std::thread::scope(|scope| {
        let value = &value;
        for (part, values) in values.chunks_mut(share).enumerate() {
            let first = (part * share) as u64;
            scope.spawn(move || (first..).zip(values).for_each(|(row, place)| *place = value(row)));
        }
    });
    values
}

/// Whether all rows have a property.
pub fn every(rows: usize, holds: impl Fn(usize) -> bool + Sync) -> bool {
    parallel(rows, |mut range| range.all(&holds)).into_iter().all(|part| part)
}

/// The number of rows that have a property.
pub fn rows_where(rows: usize, holds: impl Fn(u64) -> bool + Sync) -> usize {
    parallel(rows, |range| range.filter(|row| holds(*row as u64)).count()).into_iter().sum()
}

/// A sum over rows that wraps.
pub fn checksum(rows: usize, value: impl Fn(u64) -> u64 + Sync) -> u64 {
    let part =
        |range: Range<usize>| range.fold(0u64, |sum, row| sum.wrapping_add(value(row as u64)));
    parallel(rows, part).into_iter().fold(0, u64::wrapping_add)
}

fn threads() -> usize {
    std::thread::available_parallelism().map_or(4, usize::from)
}

pub fn i32s(values: Vec<i32>) -> ArrayRef {
    Arc::new(Int32Array::from(values))
}

pub fn i64s(values: Vec<i64>) -> ArrayRef {
    Arc::new(Int64Array::from(values))
}

pub fn u32s(values: Vec<u32>) -> ArrayRef {
    Arc::new(UInt32Array::from(values))
}

pub fn f64s(values: Vec<f64>) -> ArrayRef {
    Arc::new(Float64Array::from(values))
}

/// Floats of which a random share of `percent` is null.
pub fn f64s_with_nulls(values: Vec<f64>, stream: u64, percent: u64) -> ArrayRef {
    let nulls = (percent > 0)
        .then(|| NullBuffer::from(fill(values.len(), |row| !among(stream, row, percent))));
    Arc::new(Float64Array::new(values.into(), nulls))
}

pub fn i64_column(batch: &RecordBatch, at: usize) -> &[i64] {
    batch.column(at).as_primitive::<Int64Type>().values()
}

pub fn u32_column(batch: &RecordBatch, at: usize) -> &[u32] {
    batch.column(at).as_primitive::<UInt32Type>().values()
}

pub fn f64_column(batch: &RecordBatch, at: usize) -> &[f64] {
    batch.column(at).as_primitive::<Float64Type>().values()
}
