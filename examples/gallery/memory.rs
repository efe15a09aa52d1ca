//! A query over a table larger than the memory that it may have: it runs in parts.
//!
//! `SessionBuilder::memory_limit` sets the limit. Where a query finds no memory, the device reads
//! the table in chunks, and merges what they yield. The answer is the same.

use std::sync::Arc;

use warpframe::arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch};
use warpframe::device::MemoryLimit;

use super::{Answer, Gallery, Lesson, Outcome, same, timed_in};

pub(crate) const LESSON: Lesson = Lesson {
    name: "memory",
    about: "a query in parts under a limit of memory",
    rows: 400_000,
    needs_device: true,
    run,
};

const QUERY: &str = "SELECT k, sum(x) AS x FROM numbers GROUP BY k ORDER BY k";
const GROUPS: i64 = 10;
const LEAST: usize = 1_000;
/// Rows of a batch of the table.
const BATCH: usize = 50_000;

fn run(gallery: &Gallery, rows: usize) -> Outcome<Answer> {
    if rows < LEAST {
        return Err(
            format!("--rows {rows}: fewer than {LEAST} have no half that is worth a part").into()
        );
    }
    let mut batches = vec![];
    for from in (0..rows).step_by(BATCH) {
        let numbers = || (from..rows.min(from + BATCH)).map(|number| number as i64);
        let k = Arc::new(Int64Array::from_iter_values(numbers().map(|number| number % GROUPS)))
            as ArrayRef;
        let x = Arc::new(Float64Array::from_iter_values(
            numbers().map(|number| (number % 1000) as f64),
        ));
        batches.push(RecordBatch::try_from_iter([("k", k), ("x", x as ArrayRef)])?);
    }
    let mut answer = Answer::default();
    let mut sums = vec![];
    let mut limit = None;
    let mut needed = 0;
    for _ in 0..2 {
        let mut builder = gallery.builder().strict(true);
        if let Some(limit) = limit {
            builder = builder.memory_limit(MemoryLimit::Bytes(limit));
        }
        let session = builder.build()?;
        session.register_batches("numbers", batches.clone())?;
        let (frame, time) = timed_in(&session, || Ok(session.sql(QUERY)?.collect()?))?;
        sums.push((frame.column("k")?.to_vec::<i64>()?, frame.column("x")?.to_vec::<f64>()?));
        // Reading the table in chunks is a step, merging what they yielded another one.
        let steps = session.progress().map(|progress| progress.step);
        let peak = session.device().map_or(0, |device| device.memory().peak);
        match limit {
            None => {
                same("steps in parts without a limit", steps, None)?;
                needed = peak;
            }
            Some(limit) if steps.is_none() || peak > limit => {
                let how = if steps.is_none() { "whole" } else { "in parts" };
                return Err(format!("it ran {how} with {peak} bytes, of {limit} allowed").into());
            }
            Some(_) => {}
        }
        let how = steps.map_or("whole".into(), |steps| format!("in {steps} steps"));
        let way = limit
            .map_or("no limit".into(), |limit| format!("at most {:.2} MB", limit as f64 / 1e6));
        answer = answer.way(way, format!("{rows}, {how}"), time);
        limit = Some(needed / 2);
    }
    let mut expected = vec![0.0; GROUPS as usize];
    (0..rows).for_each(|number| expected[number % GROUPS as usize] += (number % 1000) as f64);
    let keys = (0..GROUPS.min(rows as i64)).collect::<Vec<_>>();
    expected.truncate(keys.len());
    same("sums without a limit", &sums[0], &(keys.clone(), expected.clone()))?;
    same("sums under a limit", &sums[1], &(keys, expected))?;
    answer.text = format!(
        "what took {:.2} MB is done in half of that, with the same sums",
        needed as f64 / 1e6
    );
    Ok(answer)
}
