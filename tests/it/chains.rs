//! Expressions of thousands of operators, in statements and in frames.

use std::sync::Arc;

use warpframe::ErrorKind;
use warpframe::arrow::array::{ArrayRef, Int64Array};
use warpframe::prelude::*;

use crate::differential::{Cell, Pair, Rows};
use crate::tables::columns;

fn pair() -> Pair {
    let numbers: Vec<(&str, ArrayRef)> =
        vec![("a", Arc::new(Int64Array::from_iter_values(0..100)))];
    Pair::of(columns(numbers))
}

fn too_deep(error: &warpframe::Error) {
    assert!(matches!(error.kind(), ErrorKind::Unsupported { .. }), "{error:?}");
    assert!(error.to_string().contains("more than 2000 operators one within another"), "{error}");
}

/// However many conditions, a frame is filtered as a statement is, on any thread's stack.
#[test]
fn frames_are_filtered_by_chains_of_any_length() {
    let pair = pair();
    let any = || {
        (0..3000i64)
            .map(|at| (col("a") * lit(3i64)).eq(lit(at * 7)))
            .reduce(Expr::or)
            .expect("conditions")
    };
    for session in [&pair.cpu, &pair.device] {
        let table = session.table("t").expect("a table");
        let frame = table.filter(any()).and_then(|frame| frame.select([col("a")])).expect("a plan");
        assert_eq!(frame.collect().expect("rows").num_rows(), 15);
    }
    // DataFusion takes these apart and would put them together one within another.
    let all = (0..20_000i64)
        .map(|at| (col("a") + lit(at)).not_eq(lit(50i64)))
        .reduce(Expr::and)
        .expect("conditions");
    let table = pair.cpu.table("t").expect("a table");
    assert_eq!(table.filter(all).and_then(|frame| frame.collect()).expect("rows").num_rows(), 49);
}

/// Other chains are no deeper than the limit, which the error names.
#[test]
fn sums_of_too_many_terms_are_refused() {
    let pair = pair();
    let sum =
        |terms: usize| (0..terms).map(|_| col("a")).reduce(|sum, term| sum + term).expect("terms");
    for session in [&pair.cpu, &pair.device] {
        let table = session.table("t").expect("a table");
        too_deep(&table.select([sum(20_000)]).expect_err("too deep"));
        too_deep(&table.filter(sum(20_000).gt(lit(1i64))).expect_err("too deep"));
        too_deep(&table.sort([asc(sum(20_000))]).expect_err("too deep"));
        let text = vec!["a"; 20_000].join(" + ");
        too_deep(&session.sql(&format!("SELECT {text} FROM t")).expect_err("too deep"));
        // The session goes on.
        let frame = table
            .select([sum(200).alias("s")])
            .and_then(|frame| frame.filter(col("s").eq(lit(200i64))));
        assert_eq!(
            Rows::of(&frame.and_then(|frame| frame.collect()).expect("a row")).rows,
            [[Cell::Int(200)]]
        );
    }
}
