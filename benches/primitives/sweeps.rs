//! How time goes with one property of the data, all others kept.

use super::data::Domain;
use super::harness::{Bench, Outcome};
use super::{filter, group, join, reduce, sort};

/// A sweep's steps over tables of so many rows.
type Sweep = fn(&Bench, usize);

pub const SWEEPS: [(&str, Sweep); 8] = [
    ("cardinality", cardinality),
    ("duplicates", duplicates),
    ("skew", skew),
    ("width", width),
    ("order", order),
    ("nulls", nulls),
    ("payload", payload),
    ("scale", scale),
];

/// Groups, and build rows, of tables in which something else varies.
const MANY: usize = 1_000_000;

pub fn run(bench: &Bench, name: &'static str, rows: usize) {
    if let Some((_, sweep)) = SWEEPS.iter().find(|(known, _)| *known == name) {
        bench.sweeping(name, || sweep(bench, rows));
    }
}

/// Does each step; those that fail, for want of memory say, are reported.
fn steps<T: Copy>(
    bench: &Bench,
    rows: usize,
    at: impl IntoIterator<Item = T>,
    step: impl Fn(T) -> Outcome,
) {
    at.into_iter().for_each(|at| bench.attempt(rows, || step(at)));
}

/// Group by, from one group to as many as there are rows.
fn cardinality(bench: &Bench, rows: usize) {
    let groups = (0..=8).map(|power| 10usize.pow(power)).filter(|groups| *groups <= rows);
    let shapes = groups.flat_map(|groups| {
        Domain::BOTH.map(|domain| group::GroupShape::plain(rows, groups, domain))
    });
    steps(bench, rows, shapes, |shape| group::one(bench, shape));
}

/// Joins in which each key of the build side has several rows, and as many rows come out.
fn duplicates(bench: &Bench, rows: usize) {
    let copies = [1, 2, 5, 10, 100, 1000, 10_000, 50_000];
    steps(bench, rows, copies, |copies| join::duplicates(bench, rows, copies));
}

/// Group by and join, by the share of rows that have one key.
fn skew(bench: &Bench, rows: usize) {
    steps(
        bench,
        rows,
        [0, 50, 90, 99].into_iter().flat_map(|hot| Domain::BOTH.map(|d| (hot, d))),
        |(hot, domain)| {
            let shape = group::GroupShape {
                hot: Some(hot),
                ..group::GroupShape::plain(rows, MANY.min(rows), domain)
            };
            group::one(bench, shape)?;
            join::one(
                bench,
                join::JoinShape {
                    hot: Some(hot),
                    ..join::JoinShape::plain(rows, MANY.min(rows), domain)
                },
            )
        },
    );
}

/// Orders by wider and wider keys.
fn width(bench: &Bench, rows: usize) {
    steps(bench, rows, [()], |()| sort::widths(bench, rows));
}

/// Sorts, by what the keys are and how they lie.
fn order(bench: &Bench, rows: usize) {
    steps(bench, rows, sort::ORDERS, |(name, key)| sort::order_of(bench, rows, name, key));
}

/// Sum, filter and group by, by the share of nulls.
fn nulls(bench: &Bench, rows: usize) {
    steps(bench, rows, [0, 1, 10, 50, 90], |percent| {
        reduce::nulls(bench, rows, percent)?;
        filter::nulls(bench, rows, percent)?;
        let shape = group::GroupShape::plain(rows, 1000.min(rows), Domain::Dense);
        group::one(bench, group::GroupShape { nulls: Some(percent), ..shape })
    });
}

/// Filter, sort and join, by the columns they carry along.
fn payload(bench: &Bench, rows: usize) {
    steps(bench, rows, [1, 2, 4, 8], |columns| {
        filter::payloads(bench, rows, columns)?;
        sort::with_payload(bench, rows, columns, &format!("sort i64 key payload={columns}"))?;
        let shape = join::JoinShape {
            columns,
            ..join::JoinShape::plain(rows, MANY.min(rows), Domain::Dense)
        };
        let name = format!("join build={} payload={columns}", shape.build);
        if bench.wants([&name]) {
            join::Sides::new(bench, shape)?.time(bench, name);
        }
        Ok(())
    });
}

/// All primitives at 1, 10, 100 and 1000 million rows; `--rows` says the largest.
fn scale(bench: &Bench, most: usize) {
    let sizes = [1_000_000, 10_000_000, 100_000_000, 1_000_000_000];
    let below = sizes.into_iter().filter(|rows| *rows < most);
    let sizes: Vec<usize> = below.chain([most]).collect();
    let each = |step: fn(&Bench, usize) -> Outcome| {
        sizes.iter().for_each(|rows| bench.attempt(*rows, || step(bench, *rows)));
    };
    each(reduce::all);
    each(|bench, rows| filter::payloads(bench, rows, 1));
    each(|bench, rows| group::one(bench, group::GroupShape::plain(rows, 1000, Domain::Dense)));
    each(sort::i64_keys);
    each(|bench, rows| {
        join::one(bench, join::JoinShape::plain(rows, MANY.min(rows), Domain::Dense))
    });
}
