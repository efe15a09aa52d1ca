//! Sums of runs of equal keys in sorted order: GROUP BY a column that is known to ascend.

use super::data::{Domain, below, fill};
use super::group::{GroupShape, Groups, named_sum};
use super::harness::{Bench, Outcome};

pub fn all(bench: &Bench, rows: usize) -> Outcome {
    let groups = 10_000_000.min(rows.div_ceil(10));
    let name = format!("group_sum sorted i64→f64 groups={groups}");
    if rows == 0 || !bench.wants([&name]) {
        return Ok(());
    }
    let mut ids = fill(rows, |row| below(3, row, groups as u64) as u32);
    sort_by_counting(&mut ids, groups);
    named_sum(
        bench,
        &Groups::of(bench, GroupShape::plain(rows, groups, Domain::Dense), &ids)?,
        name,
    );
    Ok(())
}

fn sort_by_counting(ids: &mut [u32], groups: usize) {
    let mut counts = vec![0usize; groups];
    ids.iter().for_each(|id| counts[*id as usize] += 1);
    let mut at = 0;
    for (id, count) in counts.into_iter().enumerate() {
        ids[at..at + count].fill(id as u32);
        at += count;
    }
}
