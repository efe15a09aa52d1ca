//! Aggregates of all rows that are launched again over the columns that they were made of before,
//! and over no others.

use warpframe::Result;
use warpframe::arrow::array::AsArray;
use warpframe::arrow::datatypes::Int64Type;
use warpframe::prelude::*;

use crate::differential::Pair;
use crate::plans::{integers, strict, variants};

type Totals = fn(&DataFrame) -> Result<DataFrame>;

const TOTALS: [(&str, Totals); 3] = [
    ("a sum of floats", |t| t.select([sum(col("x"))])),
    ("several", |t| t.select([sum(col("k")), min(col("x")), max(col("id")), count_rows()])),
    ("of expressions", |t| {
        t.select([max(col("k") * lit(3) + col("id")), sum(col("x") * lit(0.5))])
    }),
];

#[test]
fn aggregates_of_all_rows_are_launched_again_over_the_same_columns() -> Result<()> {
    let pair = Pair::new();
    let counters = || pair.gpu().counters();
    let mut frames = vec![];
    for variant in variants() {
        let [on_cpu, on_device] =
            [&pair.cpu, &pair.device].map(|session| session.from_arrow([variant.clone()]));
        frames.push((on_cpu?, on_device?));
    }
    for (name, totals) in TOTALS {
        for (on_cpu, on_device) in &frames {
            let expected = totals(on_cpu)?;
            // Planned, then known, then launched again; known at once where the plan is found.
            for run in 0..4 {
                let before = counters();
                pair.rows_agree(&expected, &totals(on_device)?, name);
                let after = counters();
                // What may overflow is looked at after each launch.
                if name != "of expressions" && run != 1 {
                    let again = run > 1 && on_device.num_rows() > 0;
                    assert_eq!(
                        after.replays - before.replays,
                        u64::from(again),
                        "{name}, run {run}"
                    );
                }
                assert!(after.launches > before.launches, "{name}");
            }
        }
        // In turn, so that what is kept is of the other.
        for (on_cpu, on_device) in frames.iter().chain(&frames) {
            pair.rows_agree(&totals(on_cpu)?, &totals(on_device)?, name);
        }
    }
    Ok(())
}

#[test]
fn aggregates_of_parts_of_a_table_are_not_taken_for_those_of_the_whole() -> Result<()> {
    let session = strict();
    let replays = || session.device().expect("a device").counters().replays;
    let whole = session.from_arrow([integers("x", 0..1000)])?;
    let total = |frame: &DataFrame| -> Result<i64> {
        let batches = frame.select([sum(col("x"))])?.to_arrow()?;
        Ok(batches[0].column(0).as_primitive::<Int64Type>().value(0))
    };
    for _ in 0..3 {
        assert_eq!(total(&whole)?, 499_500);
    }
    assert_eq!(replays(), 2);
    // Other rows of these buffers; then as many rows of other buffers.
    assert_eq!(total(&whole.limit(10, 100)?)?, 5950);
    assert_eq!(total(&whole.limit(20, 100)?)?, 6950);
    assert_eq!(total(&whole.limit(0, 999)?)?, 498_501);
    assert_eq!(total(&session.from_arrow([integers("x", 1000..2000)])?)?, 1_499_500);
    assert_eq!(replays(), 2);
    // A table that takes another's place in memory.
    for round in 0..6 {
        let frame = session.from_arrow([integers("x", round..round + 1000)])?;
        for _ in 0..3 {
            assert_eq!(total(&frame)?, 499_500 + 1000 * round);
        }
    }
    assert_eq!(replays(), 14);
    Ok(())
}

#[test]
fn aggregates_are_launched_again_from_several_threads() -> Result<()> {
    let session = strict();
    let frames = [
        session.from_arrow([integers("x", 0..5000)])?,
        session.from_arrow([integers("x", 5000..9000)])?,
    ];
    std::thread::scope(|scope| {
        for at in 0..4 {
            let (frame, expected) = (&frames[at % 2], [12_497_500i64, 27_998_000][at % 2]);
            scope.spawn(move || {
                for _ in 0..20 {
                    let found = frame
                        .select([sum(col("x"))])
                        .and_then(|sum| sum.to_arrow())
                        .expect("a sum");
                    assert_eq!(found[0].column(0).as_primitive::<Int64Type>().value(0), expected);
                }
            });
        }
    });
    Ok(())
}
