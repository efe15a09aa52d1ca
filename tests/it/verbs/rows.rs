//! Which rows, and in which order.

use std::sync::Arc;

use warpframe::Result;
use warpframe::arrow::array::{ArrayRef, Int64Array};
use warpframe::prelude::*;

use super::{all_four, gives, printed, small};

#[test]
fn rows_are_removed_and_their_order_is_told() -> Result<()> {
    let pair = small();
    gives!(pair, |t| t.select(["x"])?.remove(col("x").gt(2)), ["x"], ["1", "-", "1"]);
    gives!(pair, |t| t.arg_sort([desc("x")]), ["row"], ["2", "5", "3", "0", "1", "4"]);
    gives!(
        pair,
        |t| t.arg_sort([asc("k"), col("x").sort(true, true)]),
        ["row"],
        ["2", "0", "5", "1", "4", "3"]
    );
    for session in [&pair.cpu, &pair.device] {
        let frame = session.table("t")?.collect()?;
        assert_eq!((frame.shape(), frame.is_empty()), ((6, 3), false));
        assert!(frame.take(&frame.arg_sort(["x"])?)?.equals(&frame.sort(["x"])?)?);
        assert!(!frame.equals(&frame.rename([("x", "y")])?)?);
        assert!(!frame.equals(&frame.cast(["x"], DataType::Int32)?)?);
    }
    Ok(())
}

#[test]
fn rows_are_taken_from_either_end() {
    let pair = small();
    gives!(pair, |t| t.select(["x"])?.tail(2), ["x"], ["1", "5"]);
    gives!(pair, |t| t.select(["x"])?.tail(0), ["x"], []);
    gives!(pair, |t| t.select(["x"])?.tail(99), ["x"], ["3", "1", "-", "4", "1", "5"]);
    gives!(pair, |t| t.select(["x"])?.slice(1, Some(2)), ["x"], ["1", "-"]);
    gives!(pair, |t| t.select(["x"])?.slice(4, None), ["x"], ["1", "5"]);
    gives!(pair, |t| t.select(["x"])?.slice(-3, Some(2)), ["x"], ["4", "1"]);
    // What lies before the first row counts, and is not there.
    gives!(pair, |t| t.select(["x"])?.slice(-8, Some(3)), ["x"], ["3"]);
    gives!(pair, |t| t.select(["x"])?.slice(-2, None), ["x"], ["1", "5"]);
    gives!(pair, |t| t.select(["x"])?.gather_every(4), ["x"], ["3", "1"]);
    gives!(pair, |t| t.select(["x"])?.reverse(), ["x"], ["5", "1", "4", "-", "1", "3"]);
    gives!(
        pair,
        |t| t.select(["x"])?.with_row_index("n", 10)?.tail(2),
        ["n", "x"],
        ["14|1", "15|5"]
    );
    // A verb's own names give way to those of columns.
    gives!(pair, |t| t.select([col("x").alias("row")])?.reverse()?.head(2), ["row"], ["5", "1"]);
}

#[test]
fn equal_rows_are_found() {
    let pair = small();
    gives!(
        pair,
        |t| t.unique(["k"], UniqueKeep::First)?.select(["k", "x"]),
        ["k", "x"],
        ["a|3", "b|1", "-|4"]
    );
    gives!(
        pair,
        |t| t.unique(["k"], UniqueKeep::Last)?.select(["k", "x"]),
        ["k", "x"],
        ["-|4", "b|1", "a|5"]
    );
    gives!(pair, |t| t.unique(["k"], UniqueKeep::None)?.select(["k", "x"]), ["k", "x"], ["-|4"]);
    gives!(
        pair,
        |t| t.unique(["k", "x"], UniqueKeep::First)?.select(["k", "x"]),
        ["k", "x"],
        ["a|3", "b|1", "a|-", "-|4", "a|5"]
    );
    // Zeros of both signs are equal.
    gives!(
        pair,
        |t| t.select(["f"])?.unique(["f"], UniqueKeep::None)?.fill_nan(["f"], 9.0),
        ["f"],
        ["0.5", "-", "9", "2.5"]
    );
    gives!(
        pair,
        |t| t.select(["x"])?.is_duplicated(all()),
        ["x", "is_duplicated"],
        ["3|0", "1|1", "-|0", "4|0", "1|1", "5|0"]
    );
    gives!(
        pair,
        |t| t.select(["x"])?.is_unique(["x"]),
        ["x", "is_unique"],
        ["3|1", "1|0", "-|1", "4|1", "1|0", "5|1"]
    );
}

/// The CPU's operators run side by side, and DataFusion takes rows as they come.
#[test]
fn several_partitions_of_the_cpu_keep_the_order_of_rows() -> Result<()> {
    let batch = |at: i64| {
        let values: ArrayRef = Arc::new(Int64Array::from_iter_values(at * 100..(at + 1) * 100));
        crate::tables::columns(vec![("x", values)]).remove(0)
    };
    let session = Session::builder().device(DeviceChoice::Cpu).cpu_partitions(4).build()?;
    session.register_batches("t", (0..40).map(batch).collect::<Vec<_>>())?;
    let lazy = session.table("t")?.filter((col("x") % 2).eq(0))?;
    let eager = lazy.collect()?;
    assert_eq!(eager.num_rows(), 2000);
    for _ in 0..5 {
        for frame in [&lazy, &eager.lazy()?] {
            let wrong = frame.with_row_index("n", 0)?.filter((col("n") * 2).not_eq(col("x")))?;
            assert_eq!(wrong.collect()?.num_rows(), 0);
            let jumps = frame.filter(col("x").diff(1).not_eq(2))?;
            assert_eq!(jumps.collect()?.num_rows(), 0);
            assert_eq!(printed(&frame.limit(700, 2)?.collect()?), ["1400", "1402"]);
            assert_eq!(printed(&frame.tail(2)?.collect()?), ["3996", "3998"]);
            let twice = frame.union(frame)?.with_row_index("n", 0)?;
            let wrong = twice.filter((col("n") % 2000 * 2).not_eq(col("x")))?;
            assert_eq!(wrong.collect()?.num_rows(), 0);
        }
        assert_eq!(printed(&eager.slice(1999, None)?), ["3998"]);
    }
    Ok(())
}

#[test]
fn samples_are_of_the_rows_there_are() -> Result<()> {
    let pair = small();
    let once = SampleOptions { seed: Some(11), ..SampleOptions::default() };
    let again = SampleOptions { with_replacement: true, ..once };
    let numbered = |session: &Session| session.table("t")?.with_row_index("n", 0)?.select(["n"]);
    let run = |session: &Session| -> Result<Vec<Vec<String>>> {
        let frame = numbered(session)?;
        let samples = [
            frame.sample(SampleSize::Rows(4), once)?,
            frame.sample(SampleSize::Fraction(0.5), once)?,
            frame.sample(SampleSize::Rows(20), again)?,
            frame.sample(SampleSize::Fraction(2.0), again)?,
            frame.shuffle(Some(11))?,
            frame.filter(lit(false))?.sample(SampleSize::Rows(3), again)?,
        ];
        samples.iter().map(|sample| Ok(printed(&sample.collect()?))).collect()
    };
    let (cpu, device) = (run(&pair.cpu)?, run(&pair.device)?);
    assert_eq!(cpu, device, "the same seed draws the same rows everywhere");
    assert_eq!(cpu.iter().map(Vec::len).collect::<Vec<_>>(), [4, 3, 20, 12, 6, 0]);
    let distinct = |rows: &[String]| {
        let mut rows = rows.to_vec();
        rows.sort();
        rows.dedup();
        rows.len()
    };
    assert_eq!((distinct(&cpu[0]), distinct(&cpu[4])), (4, 6));
    assert!(cpu[0].is_sorted() && !cpu[4].is_sorted(), "{cpu:?}");
    // Seeds differ in what they draw, and of many draws every row is among them.
    let frame = numbered(&pair.cpu)?;
    let other = SampleOptions { seed: Some(12), ..again };
    assert_ne!(printed(&frame.sample(SampleSize::Rows(20), other)?.collect()?), cpu[2]);
    let many = frame.sample(SampleSize::Rows(6000), again)?.value_counts(["n"])?.collect()?;
    assert_eq!(many.num_rows(), 6);
    assert_eq!(many.filter(col("count").between(800, 1200))?.num_rows(), 6);
    all_four!(pair, |t| t.sample(SampleSize::Rows(2), SampleOptions::default()));
    Ok(())
}
