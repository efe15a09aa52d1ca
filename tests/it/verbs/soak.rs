//! Every verb again and again: by plans that are found, without memory that stays in use, and on
//! several threads at once.
//!
//! `WARPFRAME_SOAK_SECONDS` says how long random verbs run (2), `WARPFRAME_SOAK_THREADS` on how
//! many threads (4), and `WARPFRAME_SOAK_SEED` which ones.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use warpframe::Result;
use warpframe::arrow::array::{
    ArrayRef, Date32Array, Float64Array, Int64Array, RecordBatch, StringArray,
};
use warpframe::prelude::*;

use super::every::{EVERY_VERB, EveryVerb, RowOrder};
use crate::differential::{Pair, Rows};

/// Rows of the frames: none, one, a warp's and one more, some tiles' and one.
const SIZES: [usize; 5] = [0, 1, 33, 700, 4_097];

/// A batch whose floats are quarters: their sums do not depend on an order.
fn batch(rows: usize, seed: u64) -> RecordBatch {
    let mut chance = StdRng::seed_from_u64(seed);
    let mut some = |odds: f64| chance.random_bool(odds);
    let known: Vec<[bool; 3]> = (0..rows).map(|_| [some(0.9), some(0.85), some(0.9)]).collect();
    let number: Vec<[i64; 3]> =
        (0..rows).map(|_| [0, 1, 2].map(|_| chance.random_range(-20..60))).collect();
    let texts = ["a", "b", "", "é", "a text of more than twelve bytes"];
    let k = (0..rows)
        .map(|row| known[row][0].then(|| texts[number[row][0].unsigned_abs() as usize % 5]));
    let x = (0..rows).map(|row| known[row][1].then(|| number[row][1]));
    let f = (0..rows).map(|row| {
        known[row][2].then(|| match number[row][2] {
            59 => f64::NAN,
            quarters => quarters as f64 / 4.0,
        })
    });
    let d = (0..rows).map(|row| Some(19_000 + number[row][0] as i32));
    let columns: [(&str, ArrayRef); 4] = [
        ("k", Arc::new(StringArray::from_iter(k))),
        ("x", Arc::new(Int64Array::from_iter(x))),
        ("f", Arc::new(Float64Array::from_iter(f))),
        ("d", Arc::new(Date32Array::from_iter(d))),
    ];
    RecordBatch::try_from_iter_with_nullable(columns.map(|(name, array)| (name, array, true)))
        .expect("columns fit")
}

/// The frames of all sizes, two of each.
fn frames(session: &Session) -> Result<Vec<[DataFrame; 2]>> {
    let of = |rows: usize, seed| session.from_arrow([batch(rows, seed)]);
    SIZES.iter().map(|&rows| Ok([of(rows, 1)?, of(rows, 2)?])).collect()
}

/// A whole number of the environment.
fn setting(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => {
            text.parse().unwrap_or_else(|_| panic!("{name} is a whole number, not {text:?}"))
        }
        Err(_) => default,
    }
}

#[test]
fn verbs_that_come_again_find_their_plans() -> Result<()> {
    let session = crate::plans::strict();
    let device = session.device().expect("a device").clone();
    for EveryVerb { name, run, .. } in EVERY_VERB {
        // Values become columns and bounds of classes: of others there are other plans, so the
        // second frame has the same, in another order.
        let of = |frame: RecordBatch| session.from_arrow([frame]);
        let (first, other) = (batch(500, 1), batch(300, 2));
        drop(run(&of(first.clone())?, &of(other.clone())?)?);
        let before = device.counters().plans_made;
        let found = run(&of(first)?, &of(other)?)?;
        assert_eq!(device.counters().plans_made - before, 0, "{name} is planned again");
        assert!(found.is_on_device(), "{name}");
    }
    Ok(())
}

/// Writes the frames and what each verb makes of them into the folder of `WARPFRAME_POLARS_DIR`,
/// for `scripts/check-frames.py`, which asks Polars the same.
#[test]
fn results_are_written_for_polars() -> Result<()> {
    let Ok(folder) = std::env::var("WARPFRAME_POLARS_DIR") else { return Ok(()) };
    let folder = std::path::Path::new(&folder);
    let session = crate::plans::strict();
    let [left, right] = [1, 2].map(|seed| session.from_arrow([batch(700, seed)]));
    let (left, right) = (left?, right?);
    left.write_parquet(folder.join("t.parquet"))?;
    right.write_parquet(folder.join("u.parquet"))?;
    for EveryVerb { name, run, .. } in EVERY_VERB {
        run(&left, &right)?.write_parquet(folder.join(format!("{name}.result.parquet")))?;
    }
    Ok(())
}

#[test]
fn random_verbs_on_several_threads_answer_as_the_cpu_and_leave_no_memory_in_use() -> Result<()> {
    let pair = Pair::new();
    let (seconds, threads) =
        (setting("WARPFRAME_SOAK_SECONDS", 2), setting("WARPFRAME_SOAK_THREADS", 4));
    let seed = setting("WARPFRAME_SOAK_SEED", rand::rng().random_range(0..1 << 32));
    let (cpu, device) = (frames(&pair.cpu)?, frames(&pair.device)?);
    let expected = |verb: &EveryVerb, size: usize| {
        let [left, right] = &cpu[size];
        (verb.run)(left, right).map(|frame| Rows::of(&frame)).map_err(|error| error.to_string())
    };
    let check = |verb: &EveryVerb, size: usize| {
        let origin = || format!("{} of {} rows, seed {seed}", verb.name, SIZES[size]);
        let [left, right] = &device[size];
        let found = (verb.run)(left, right).map(|frame| Rows::of(&frame));
        match (expected(verb, size), found) {
            (Ok(expected), Ok(found)) => {
                if let Some(difference) = expected.difference(&found, verb.order == RowOrder::Kept)
                {
                    panic!("{}: {difference}", origin());
                }
            }
            (Err(_), Err(_)) => {}
            (Err(error), Ok(_)) => panic!("{}: the CPU alone fails: {error}", origin()),
            (Ok(_), Err(error)) => panic!("{}: the device alone fails: {error}", origin()),
        }
    };
    // What is made once stays: the first round is not counted.
    EVERY_VERB.iter().for_each(|verb| check(verb, 2));
    let memory = pair.gpu().memory();
    let end = Instant::now() + Duration::from_secs(seconds);
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let check = &check;
            scope.spawn(move || {
                let mut chance = StdRng::seed_from_u64(seed.wrapping_add(thread));
                while Instant::now() < end {
                    let verb = &EVERY_VERB[chance.random_range(0..EVERY_VERB.len())];
                    check(verb, chance.random_range(0..SIZES.len()));
                }
            });
        }
    });
    let after = pair.gpu().memory();
    assert_eq!((after.used, after.allocations), (memory.used, memory.allocations), "seed {seed}");
    Ok(())
}
