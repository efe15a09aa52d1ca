//! Names, types and order of columns; nulls.

use warpframe::Result;
use warpframe::prelude::*;

use super::{all_four, gives, small};

#[test]
fn columns_are_dropped_renamed_moved_and_cast() -> Result<()> {
    let pair = small();
    gives!(pair, |t| t.drop(["x"])?.head(1), ["k", "f"], ["a|0.5"]);
    gives!(pair, |t| t.drop(floats())?.drop(matches("^x"))?.head(2), ["k"], ["a", "b"]);
    gives!(pair, |t| t.rename([("k", "x"), ("x", "k")])?.head(1), ["x", "k", "f"], ["a|3|0.5"]);
    gives!(
        pair,
        |t| t.rename_with(|name| name.to_uppercase())?.head(1),
        ["K", "X", "F"],
        ["a|3|0.5"]
    );
    gives!(pair, |t| t.reorder(["f", "x"])?.head(1), ["f", "x", "k"], ["0.5|3|a"]);
    gives!(pair, |t| t.select(["x", "k"])?.head(1), ["x", "k"], ["3|a"]);
    for frame in all_four!(pair, |t| t.cast(["x"], DataType::Float32)) {
        assert_eq!(frame.schema().field(1).data_type(), &DataType::Float32);
    }
    Ok(())
}

#[test]
fn nulls_are_filled_dropped_and_counted() {
    let pair = small();
    gives!(pair, |t| t.select(["x"])?.fill_null(all(), 9), ["x"], ["3", "1", "9", "4", "1", "5"]);
    gives!(
        pair,
        |t| t.select(["k"])?.fill_null(strings(), "?"),
        ["k"],
        ["a", "b", "a", "?", "b", "a"]
    );
    gives!(
        pair,
        |t| t.select(["k", "x"])?.fill_null_with(all(), Fill::Forward),
        ["k", "x"],
        ["a|3", "b|1", "a|1", "a|4", "b|1", "a|5"]
    );
    gives!(
        pair,
        |t| t.select(["k", "x"])?.fill_null_with(["x"], Fill::Backward),
        ["k", "x"],
        ["a|3", "b|1", "a|4", "-|4", "b|1", "a|5"]
    );
    gives!(
        pair,
        |t| t.select(["x"])?.fill_null_with(["x"], Fill::Min),
        ["x"],
        ["3", "1", "1", "4", "1", "5"]
    );
    gives!(
        pair,
        |t| t.select(["x"])?.fill_null_with(["x"], Fill::Max),
        ["x"],
        ["3", "1", "5", "4", "1", "5"]
    );
    gives!(
        pair,
        |t| t.select(["x"])?.fill_null_with(["x"], Fill::Zero),
        ["x"],
        ["3", "1", "0", "4", "1", "5"]
    );
    gives!(
        pair,
        |t| t.select(["x"])?.fill_null_with(["x"], Fill::Mean),
        ["x"],
        ["3", "1", "2.8", "4", "1", "5"]
    );
    gives!(
        pair,
        |t| t.select(["f"])?.fill_nan(["f"], 7.0),
        ["f"],
        ["0.5", "-", "7", "-0", "0", "2.5"]
    );
    gives!(pair, |t| t.drop_nulls(all()), ["k", "x", "f"], ["a|3|0.5", "b|1|0", "a|5|2.5"]);
    gives!(pair, |t| t.drop_nulls(["k"])?.select(["x"]), ["x"], ["3", "1", "-", "1", "5"]);
    gives!(pair, |t| t.drop_nans(floats())?.select(["f"]), ["f"], ["0.5", "-", "-0", "0", "2.5"]);
    gives!(pair, |t| t.null_count(), ["k", "x", "f"], ["1|1|1"]);
    gives!(pair, |t| t.select(["x"])?.interpolate(["x"]), ["x"], ["3", "1", "2.5", "4", "1", "5"]);
}
