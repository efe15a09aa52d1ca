//! The verbs of frames, each lazy and eager, on the CPU and strictly on the device: all four must
//! give the rows that are written down here, or agree with one another on the conformance columns.

mod asof;
mod columns;
mod errors;
mod every;
mod expressions;
mod fitted;
mod frame_aggregates;
mod groups;
mod joins;
mod names;
mod one;
mod reshape;
mod rows;
mod running;
mod sets;
mod shapes;
mod soak;
mod times;

use warpframe::{DataFrame, Result, Session};

use crate::differential::{Cell, Pair, Rows};

/// Runs a verb on the table `t` of all four frames, and yields their results, the CPU's lazy one
/// first.
macro_rules! all_four {
    ($pair:expr, |$frame:ident| $verb:expr) => {{
        let run = |session: &warpframe::Session| -> warpframe::Result<[warpframe::DataFrame; 2]> {
            let lazy = {
                let $frame = session.table("t")?;
                $verb?.collect()?
            };
            let eager = {
                let $frame = session.table("t")?.collect()?;
                $verb?
            };
            Ok([lazy, eager])
        };
        crate::verbs::on_both(&$pair, stringify!($verb), run)
    }};
}

/// All four must give these rows, in their order; `name` is what the columns are called.
macro_rules! gives {
    ($pair:expr, |$frame:ident| $verb:expr, [$($name:literal),*], [$($row:literal),* $(,)?]) => {{
        let found = crate::verbs::all_four!($pair, |$frame| $verb);
        crate::verbs::check_rows(&found, stringify!($verb), &[$($name),*], &[$($row),*]);
    }};
}

/// All four must agree; in the order of rows, too, where `ordered` says so.
macro_rules! agrees {
    ($pair:expr, $ordered:expr, |$frame:ident| $verb:expr) => {{
        let found = crate::verbs::all_four!($pair, |$frame| $verb);
        crate::verbs::check_agree(&$pair, &found, stringify!($verb), $ordered);
    }};
}

pub(crate) use {agrees, all_four, gives};

/// The CPU's and then the device's results.
pub fn on_both(
    pair: &Pair,
    verb: &str,
    run: impl Fn(&Session) -> Result<[DataFrame; 2]>,
) -> Vec<DataFrame> {
    let cpu = run(&pair.cpu)
        .unwrap_or_else(|error| panic!("the CPU: {error}\n  {verb}\n  {}", pair.origin));
    let device = run(&pair.device)
        .unwrap_or_else(|error| panic!("the device: {error}\n  {verb}\n  {}", pair.origin));
    cpu.into_iter().chain(device).collect()
}

const NAMES: [&str; 4] =
    ["lazy on the CPU", "eager on the CPU", "lazy on the device", "eager on the device"];

pub fn check_rows(found: &[DataFrame], verb: &str, names: &[&str], rows: &[&str]) {
    for (frame, name) in found.iter().zip(NAMES) {
        assert_eq!(frame.column_names(), names, "{name}: {verb}");
        let printed = printed(frame);
        assert!(printed == rows, "{name}: {verb}\n  expected {rows:?}\n  found    {printed:?}");
    }
}

pub fn check_agree(pair: &Pair, found: &[DataFrame], verb: &str, ordered: bool) {
    let first = Rows::of(&found[0]);
    for (frame, name) in found.iter().zip(NAMES).skip(1) {
        if let Some(difference) = first.difference(&Rows::of(frame), ordered) {
            panic!("{name}: {difference}\n  {verb}\n  {}", pair.origin);
        }
    }
}

/// Rows as texts: values with a bar between, `-` for null.
pub fn printed(frame: &DataFrame) -> Vec<String> {
    let cell = |cell: &Cell| match cell {
        Cell::Null => "-".to_string(),
        Cell::Int(value) => value.to_string(),
        // Enough digits to be told apart, and few enough to be written down.
        Cell::Float(value) => format!("{}", (value * 1e6).round() / 1e6),
        Cell::Text(text) => text.clone(),
    };
    Rows::of(frame)
        .rows
        .iter()
        .map(|row| row.iter().map(cell).collect::<Vec<_>>().join("|"))
        .collect()
}

/// A table of one key column and two of values, with nulls.
pub fn small() -> Pair {
    use std::sync::Arc;
    use warpframe::arrow::array::{ArrayRef, Float64Array, Int64Array, StringArray};
    let k: ArrayRef = Arc::new(StringArray::from(vec![
        Some("a"),
        Some("b"),
        Some("a"),
        None,
        Some("b"),
        Some("a"),
    ]));
    let x: ArrayRef =
        Arc::new(Int64Array::from(vec![Some(3), Some(1), None, Some(4), Some(1), Some(5)]));
    let f = [Some(0.5), None, Some(f64::NAN), Some(-0.0), Some(0.0), Some(2.5)];
    let f: ArrayRef = Arc::new(Float64Array::from(f.to_vec()));
    Pair::of(crate::tables::columns(vec![("k", k), ("x", x), ("f", f)]))
}
