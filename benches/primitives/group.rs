//! Group by one key: a sum, and five aggregates at once.

use warpframe::arrow::array::{Array, RecordBatch};
use warpframe::prelude::*;

use super::data::*;
use super::distinct;
use super::harness::{Bench, Case, Outcome, close, each_chunk, ensure};

/// A table to group: `rows` of a key `k` and a value `v`.
#[derive(Debug, Clone, Copy)]
pub struct GroupShape {
    pub rows: usize,
    /// Keys to choose from.
    pub groups: usize,
    pub domain: Domain,
    /// Percent of the rows that have one key.
    pub hot: Option<u64>,
    /// Percent of the values that are null.
    pub nulls: Option<u64>,
}

/// What the rows of a key come to.
#[derive(Debug, Clone, Copy)]
pub struct Group {
    pub rows: u64,
    count: u64,
    sum: f64,
    least: f64,
    greatest: f64,
}

/// The table, and what each group comes to.
pub struct Groups {
    pub shape: GroupShape,
    pub frame: DataFrame,
    pub expected: Vec<Group>,
}

pub fn all(bench: &Bench, rows: usize) -> Outcome {
    for groups in [10, 1000, 100_000, 10_000_000] {
        for domain in Domain::BOTH {
            one(bench, GroupShape::plain(rows, groups, domain))?;
        }
    }
    Ok(())
}

/// Sum, five aggregates and distinct keys of a table that has rows enough.
pub fn one(bench: &Bench, shape: GroupShape) -> Outcome {
    let names =
        [shape.name("group_sum i64→f64"), shape.name("group_5 i64→f64"), distinct::name(shape)];
    if shape.groups > shape.rows || !bench.wants(names) {
        return Ok(());
    }
    let data = Groups::new(bench, shape)?;
    sum_of(bench, &data);
    five(bench, &data);
    distinct::time(bench, &data);
    Ok(())
}

impl GroupShape {
    pub fn plain(rows: usize, groups: usize, domain: Domain) -> GroupShape {
        GroupShape { rows, groups, domain, hot: None, nulls: None }
    }

    pub fn name(&self, operation: &str) -> String {
        let part = |name: &str, percent: Option<u64>| {
            percent.map_or(String::new(), |p| format!(" {name}={p}%"))
        };
        let (hot, nulls) = (part("hot", self.hot), part("nulls", self.nulls));
        format!("{operation} groups={} {}{hot}{nulls}", self.groups, self.domain.name())
    }

    /// The number of the row's group.
    fn group(&self, row: u64) -> u64 {
        match self.hot {
            Some(percent) if among(5, row, percent) => 0,
            _ => below(3, row, self.groups as u64),
        }
    }
}

impl Groups {
    pub fn new(bench: &Bench, shape: GroupShape) -> Outcome<Groups> {
        let ids = fill(shape.rows, |row| shape.group(row) as u32);
        Groups::of(bench, shape, &ids)
    }

    /// The table of rows whose groups have these numbers.
    pub fn of(bench: &Bench, shape: GroupShape, ids: &[u32]) -> Outcome<Groups> {
        let values = fill(shape.rows, |row| unit(4, row) * 5.0 + 5.0);
        let nulls = shape.nulls.unwrap_or(0);
        // Each core looks at all rows for the groups that are its own.
        let expected = parallel(shape.groups, |range| {
            let none = Group {
                rows: 0,
                count: 0,
                sum: 0.0,
                least: f64::INFINITY,
                greatest: f64::NEG_INFINITY,
            };
            let mut groups = vec![none; range.len()];
            for (row, (id, value)) in ids.iter().zip(&values).enumerate() {
                let Some(group) =
                    (*id as usize).checked_sub(range.start).and_then(|at| groups.get_mut(at))
                else {
                    continue;
                };
                group.rows += 1;
                if nulls == 0 || !among(6, row as u64, nulls) {
                    group.count += 1;
                    group.sum += value;
                    group.least = group.least.min(*value);
                    group.greatest = group.greatest.max(*value);
                }
            }
            groups
        })
        .concat();
        let keys = i64s(fill(shape.rows, |row| shape.domain.key(ids[row as usize].into())));
        let frame = bench.frame([("k", keys), ("v", f64s_with_nulls(values, 6, nulls))])?;
        Ok(Groups { shape, frame, expected })
    }

    /// Groups that have rows.
    pub fn present(&self) -> usize {
        self.expected.iter().filter(|group| group.rows > 0).count()
    }

    /// Whether the result has each group once; `agrees` compares its row of the batch with the
    /// group.
    pub fn check(
        &self,
        result: &DataFrame,
        agrees: impl Fn(&RecordBatch, usize, &Group) -> bool,
    ) -> Outcome {
        let mut seen = vec![false; self.expected.len()];
        each_chunk(result, |_, batch| {
            for (row, key) in i64_column(batch, 0).iter().enumerate() {
                let id = self.shape.domain.number(*key) as usize;
                let group = self.expected.get(id).filter(|group| group.rows > 0);
                let group = group.ok_or_else(|| format!("no row has the key {key}"))?;
                ensure(!std::mem::replace(&mut seen[id], true), "a key twice")?;
                ensure(agrees(batch, row, group), format!("key {key} has {group:?}"))?;
            }
            Ok(())
        })?;
        ensure(result.num_rows() == self.present(), "groups are missing")
    }
}

/// Times the sum of each group.
pub fn sum_of(bench: &Bench, data: &Groups) {
    named_sum(bench, data, data.shape.name("group_sum i64→f64"));
}

pub fn named_sum(bench: &Bench, data: &Groups, name: String) {
    let rows = data.shape.rows;
    let case = Case::new(name, rows, 16 * rows + 16 * data.present());
    let run = || data.frame.group_by([col("k")]).agg([sum(col("v"))]);
    bench.time(case, run, |result| {
        data.check(result, |batch, row, group| match group.count {
            0 => batch.column(1).is_null(row),
            _ => close(f64_column(batch, 1)[row], group.sum),
        })
    });
}

fn five(bench: &Bench, data: &Groups) {
    let rows = data.shape.rows;
    let case = Case::new(data.shape.name("group_5 i64→f64"), rows, 16 * rows + 48 * data.present());
    let v = || col("v");
    let run = || {
        // Results of one frame have different names.
        let five = [
            sum(v()).alias("sum"),
            min(v()).alias("min"),
            max(v()).alias("max"),
            mean(v()).alias("mean"),
            count(v()).alias("count"),
        ];
        data.frame.lazy()?.group_by([col("k")]).agg(five)?.collect()
    };
    bench.time(case, run, |result| {
        data.check(result, |batch, row, group| {
            let float = |at| f64_column(batch, at)[row];
            i64_column(batch, 5)[row] as u64 == group.count
                && (group.count == 0
                    || close(float(1), group.sum)
                        && (float(2), float(3)) == (group.least, group.greatest)
                        && close(float(4), group.sum / group.count as f64))
        })
    });
}
