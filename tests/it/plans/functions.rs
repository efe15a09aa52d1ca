//! Plans that call functions whose values change, or that only the CPU runs.

use datafusion::logical_expr::{ColumnarValue, ScalarUDF, Volatility, create_udf};
use warpframe::arrow::array::AsArray;
use warpframe::arrow::datatypes::{DataType, Int64Type};

use super::*;
use crate::tables::Shape;

#[test]
fn functions_of_time_and_chance_are_called_each_time() -> Result<()> {
    let session = builder().strict(false).build()?;
    session.register_batches("t", [integers("x", 0..3)])?;
    for sql in [
        "SELECT now()",
        "SELECT max(random()) FROM t",
        "SELECT uuid()",
        "SELECT x FROM t WHERE now() > now()",
    ] {
        let one = |_| counted(&session, || run(&session, sql));
        let [(first, a), (second, b)] = [0, 1].map(one);
        assert_eq!((a, b), (MADE, MADE), "{sql}");
        if !sql.contains("WHERE") {
            assert_ne!(Rows::of(&first).rows[0][0], Rows::of(&second).rows[0][0], "{sql}");
        }
    }
    Ok(())
}

#[test]
fn what_the_device_does_not_run_is_found_too_and_stays_refused_where_it_is() -> Result<()> {
    let shape = || Shape::random(300, 5).batches();
    let pair = Pair::with(builder().strict(false)).and("t", shape());
    for session in [&pair.cpu, &pair.device] {
        session.context().register_udf(adding(1));
    }
    let sql = "SELECT added(w) AS r, k FROM t WHERE k > 1 ORDER BY id";
    for expected in [MADE, FOUND] {
        let (found, counts) = counted(&pair.device, || run(&pair.device, sql));
        assert_eq!(counts, expected);
        pair.rows_agree(&run(&pair.cpu, sql)?, &found, sql);
    }
    // The data is what the device cannot do.
    let names = (0..3000).map(|row| format!("é number {row}")).collect::<Vec<_>>();
    let beyond = batch(vec![("s", Arc::new(StringArray::from(names)))]);
    let (session, cpu) = (&pair.device, &pair.cpu);
    let (frame, expected) = (session.from_arrow([beyond.clone()])?, cpu.from_arrow([beyond])?);
    let initials = |frame: &DataFrame| frame.select([col("s").str().to_titlecase().alias("i")]);
    for times in 1..4 {
        pair.rows_agree(&initials(&expected)?, &initials(&frame)?, "initcap");
        assert_eq!(pair.gpu().counters().fallbacks, times);
    }
    let strict = strict();
    strict.register_batches("t", shape())?;
    strict.context().register_udf(adding(1));
    for _ in 0..2 {
        let error = run(&strict, sql).expect_err("strict");
        assert!(matches!(error.kind(), ErrorKind::Unsupported { .. }), "{error:?}");
    }
    Ok(())
}

/// A function `added` of integers, which only the CPU runs.
fn adding(what: i64) -> ScalarUDF {
    let add = move |arguments: &[ColumnarValue]| {
        let values = ColumnarValue::values_to_arrays(arguments)?;
        let sum = values[0]
            .as_primitive::<Int64Type>()
            .unary::<_, Int64Type>(|value| value.wrapping_add(what));
        Ok(ColumnarValue::Array(Arc::new(sum)))
    };
    create_udf(
        "added",
        vec![DataType::Int64],
        DataType::Int64,
        Volatility::Immutable,
        Arc::new(add),
    )
}

#[test]
fn functions_that_are_registered_again_are_called() -> Result<()> {
    let session = builder().strict(false).build()?;
    session.register_batches("t", [integers("x", 5..6)])?;
    for what in [1, 100, 7] {
        session.context().register_udf(adding(what));
        for counts in [MADE, FOUND] {
            let (found, counted) = counted(&session, || run(&session, "SELECT added(x) FROM t"));
            assert_eq!(
                (Rows::of(&found).rows[0][0].clone(), counted),
                (Cell::Int(5 + i128::from(what)), counts)
            );
        }
    }
    session.context().deregister_udf("added");
    assert!(run(&session, "SELECT added(x) FROM t").is_err());
    Ok(())
}
