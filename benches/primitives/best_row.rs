//! The greatest text: of all rows by how many bytes the texts begin with alike and by their order,
//! and of groups.

use std::sync::Arc;

use warpframe::arrow::array::{ArrayRef, AsArray, LargeStringArray};
use warpframe::arrow::buffer::{Buffer, OffsetBuffer};
use warpframe::prelude::*;

use super::data::*;
use super::harness::{Bench, Case, Outcome, each_chunk, ensure};

/// Bytes of a text, and of the number that no other row has.
const LENGTH: usize = 32;
const DIGITS: usize = 8;
const GROUPS: u64 = 1000;

/// Names, whether the number stands behind what all texts share, and whether numbers ascend.
const ALL_ROWS: [(&str, bool, bool); 3] = [
    ("max text shared=0B", false, false),
    ("max text shared=24B", true, false),
    ("max text shared=24B ascending", true, true),
];
const OF_GROUPS: &str = "group_max text shared=24B groups=1000 dense";

pub fn all(bench: &Bench, rows: usize) -> Outcome {
    for (name, behind, ascending) in ALL_ROWS {
        if bench.wants([name]) {
            of_all_rows(bench, rows, name, behind, ascending)?;
        }
    }
    if bench.wants([OF_GROUPS]) { of_groups(bench, rows) } else { Ok(()) }
}

fn of_all_rows(bench: &Bench, rows: usize, name: &str, behind: bool, ascending: bool) -> Outcome {
    let shuffled = Permutation::of(rows);
    let number = |row| if ascending { row } else { shuffled.at(row) };
    let frame = bench.frame([("s", texts(rows, |row| text(number(row), behind)))])?;
    // Where texts differ in their first bytes, those are in the views.
    let case = Case::new(name, rows, rows * if behind { 16 + LENGTH } else { 16 });
    bench.time(
        case,
        || frame.select([max(col("s"))]),
        |result| {
            each_chunk(result, |_, batch| {
                let found = batch.column(0).as_string::<i64>().value(0);
                let greatest = text(rows as u64 - 1, behind);
                ensure(found.as_bytes() == greatest, format!("{found} is not the greatest"))
            })?;
            ensure(result.num_rows() == 1, "a maximum is one row")
        },
    );
    Ok(())
}

fn of_groups(bench: &Bench, rows: usize) -> Outcome {
    // The greatest number of group g is the last one that leaves g.
    let shuffled = Permutation::of(rows);
    let key = |row| (shuffled.at(row) % GROUPS) as i64;
    let frame = bench.frame([
        ("k", i64s(fill(rows, key))),
        ("s", texts(rows, |row| text(shuffled.at(row), true))),
    ])?;
    let groups = rows.min(GROUPS as usize);
    let case = Case::new(OF_GROUPS, rows, rows * (8 + 16 + LENGTH));
    bench.time(
        case,
        || frame.group_by([col("k")]).agg([max(col("s"))]),
        |result| {
            each_chunk(result, |_, batch| {
                let found = batch.column(1).as_string::<i64>();
                for (row, key) in i64_column(batch, 0).iter().enumerate() {
                    let last = (rows as u64 - 1 - *key as u64) / GROUPS * GROUPS + *key as u64;
                    let right = found.value(row).as_bytes() == text(last, true);
                    ensure(right, format!("{} of group {key}", found.value(row)))?;
                }
                Ok(())
            })?;
            ensure(result.num_rows() == groups, "groups are missing")
        },
    );
    Ok(())
}

/// The text of a number, in whose order texts lie.
fn text(number: u64, behind: bool) -> [u8; LENGTH] {
    let mut text = *b"2024-01-01T00:00:00.000Z--------";
    let at = if behind { LENGTH - DIGITS } else { 0 };
    for digit in 0..DIGITS {
        let value = (number >> (4 * (DIGITS - 1 - digit)) & 15) as u8;
        text[at + digit] = if value < 10 { b'0' + value } else { b'a' + value - 10 };
    }
    text
}

fn texts(rows: usize, text: impl Fn(u64) -> [u8; LENGTH] + Sync) -> ArrayRef {
    let offsets = OffsetBuffer::from_lengths(std::iter::repeat_n(LENGTH, rows));
    let bytes = Buffer::from_vec(fill(rows, text).into_flattened());
    Arc::new(LargeStringArray::new(offsets, bytes, None))
}
