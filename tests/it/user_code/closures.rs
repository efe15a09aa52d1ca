//! Functions that are closures alone.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use warpframe::arrow::array::{Array, ArrayRef, AsArray, Int64Array, StringArray};
use warpframe::arrow::datatypes::Int64Type;

use super::*;

/// Fails where it sees a null: it is not called for such rows.
fn shouted() -> ScalarFunction {
    let inputs = [("a text", DataType::Utf8), ("times", DataType::Int64)];
    ScalarFunction::from_closure("shouted", inputs, DataType::Utf8, |arrays| {
        let (texts, times) = (arrays[0].as_string::<i32>(), arrays[1].as_primitive::<Int64Type>());
        assert_eq!((texts.null_count(), times.null_count()), (0, 0));
        let value = |(text, times): (Option<&str>, Option<i64>)| {
            Some(text?.to_uppercase().repeat(times? as usize))
        };
        Ok(Arc::new(texts.iter().zip(times).map(value).collect::<StringArray>()) as ArrayRef)
    })
}

/// How many values a list has, nulls among them; -1 of no list.
fn count_of() -> ScalarFunction {
    let list = DataType::new_list(DataType::Int64, true);
    ScalarFunction::from_closure("count_of", [("l", list)], DataType::Int64, |arrays| {
        let lists = arrays[0].as_list::<i32>();
        let counts = lists.iter().map(|list| list.map_or(-1, |list| list.len() as i64));
        Ok(Arc::new(counts.collect::<Int64Array>()) as ArrayRef)
    })
    .called_on_null()
}

/// The numbers below one.
fn below() -> ScalarFunction {
    let list = DataType::new_list(DataType::Int64, true);
    ScalarFunction::from_closure("below", [("n", DataType::Int64)], list, |arrays| {
        let numbers = arrays[0].as_primitive::<Int64Type>();
        let lists = numbers.iter().map(|n| n.map(|n| (0..n).map(Some)));
        Ok(Arc::new(warpframe::arrow::array::ListArray::from_iter_primitive::<Int64Type, _, _>(
            lists,
        )) as ArrayRef)
    })
}

fn registered(session: &Session) {
    for function in [shouted(), count_of(), below()] {
        session.register_function(function).expect("it is a function");
    }
}

const ROWS: &str = "(VALUES ('a', 2, [1, NULL]), (NULL, 1, []), ('é', NULL, NULL), ('b', 0, [7]))";

#[test]
fn a_closure_is_a_function_of_strings_and_lists() {
    let (cpu, device) = (
        Session::builder().device(DeviceChoice::Cpu).build().expect("a session"),
        builder().strict(false).build().expect("the device opens"),
    );
    for session in [&cpu, &device] {
        registered(session);
        let rows = |query: &str| {
            let query = query.replace("<rows>", &format!("{ROWS} AS t(s, n, l)"));
            Rows::of(&run(session, &query).unwrap_or_else(|error| panic!("{query}: {error}"))).rows
        };
        let text = |text: &str| Cell::Text(text.into());
        assert_eq!(
            rows("SELECT shouted(s, n) FROM <rows>").concat(),
            [text("AA"), Cell::Null, Cell::Null, text("")]
        );
        assert_eq!(
            rows("SELECT count_of(l) FROM <rows>").concat(),
            [Cell::Int(2), Cell::Int(0), Cell::Int(-1), Cell::Int(1)]
        );
        assert_eq!(
            rows("SELECT sum(x) FROM (SELECT unnest(below(n + 3)) AS x FROM <rows>)").concat(),
            [Cell::Int(10 + 6 + 3)]
        );
        // Beside what the device computes, above and below it.
        assert_eq!(
            rows(
                "SELECT count(*), max(m) FROM (SELECT shouted(s, n) AS m, sum(n) AS x FROM <rows>
                  GROUP BY s, n) WHERE m <> '' OR m IS NULL"
            )
            .concat(),
            [Cell::Int(3), text("AA")]
        );
        // All rows null, none, and a constant.
        assert_eq!(rows("SELECT shouted(s, n) FROM <rows> WHERE s IS NULL").concat(), [Cell::Null]);
        assert!(rows("SELECT shouted(s, n) FROM <rows> WHERE n > 9").is_empty());
        assert_eq!(rows("SELECT shouted('x', 3)").concat(), [text("XXX")]);
        let frame = session.sql(&format!("FROM {ROWS} AS t(s, n, l)")).expect("it is planned");
        let call = session.call("count_of", [col("l")]).expect("it is registered");
        let counts = frame.select([call.alias("c")]).and_then(|frame| frame.collect());
        let counts = counts.and_then(|frame| frame.column("c")?.to_vec::<i64>());
        assert_eq!(counts.expect("it runs"), [2, 0, -1, 1]);
    }
    // A plan says why the device does not run a part of it.
    let query = format!("SELECT sum(n) FROM {ROWS} AS t(s, n, l) GROUP BY shouted(s, n)");
    let plan = device.sql(&query).and_then(|frame| frame.explain()).expect("it is planned");
    assert!(plan.contains("function shouted is a closure"), "{plan}");
    assert!(
        device.take_fallback_reasons().is_empty(),
        "nothing was planned for the device in vain"
    );
}

#[test]
fn strict_mode_names_the_closure() {
    let session = builder().strict(true).build().expect("the device opens");
    registered(&session);
    let error = run(&session, &format!("SELECT shouted(s, n) FROM {ROWS} AS t(s, n, l)"))
        .expect_err("the device has no body");
    assert!(matches!(error.kind(), ErrorKind::Unsupported { .. }), "{error:?}");
    assert!(error.to_string().contains("function shouted is a closure"), "{error}");
}

#[test]
fn closures_are_named_as_others_are() {
    let number = |name: &str, argument: &str| {
        let inputs = [("x", DataType::Int64), (argument, DataType::Int64)];
        ScalarFunction::from_closure(name, inputs, DataType::Int64, |arrays| Ok(arrays[1].clone()))
    };
    let session = Session::builder().device(DeviceChoice::Cpu).build().expect("a session");
    for (function, why) in [
        (number("abs", "y"), "a function of the engine's"),
        (number("", "y"), "without a name"),
        (number("second", "x"), "two arguments are named"),
    ] {
        let error = session.register_function(function).expect_err(why);
        assert!(error.to_string().contains(why), "{error}");
    }
    session.register_function(number("second", "the other")).expect("nobody compiles the name");
    assert_eq!(scalar(&session, "SELECT second(1, 2)"), Cell::Int(2));
    for (query, why) in [
        ("SELECT second(1)", "takes (x BIGINT, the other BIGINT), not (BIGINT)"),
        ("SELECT second(1, 'a')", "takes (x BIGINT, the other BIGINT)"),
    ] {
        let error = run(&session, query).expect_err(why);
        assert!(error.to_string().contains(why), "{error}");
    }
    // It replaces a user's function, and may be replaced by one.
    let twice =
        ScalarFunction::new("second", [("n", DataType::Int64)], DataType::Int64, "return n;")
            .on_host(|arrays| Ok(arrays[0].clone()));
    session.register_function(twice).expect("the closure does its work");
    assert_eq!(scalar(&session, "SELECT second(5)"), Cell::Int(5));
}

#[test]
fn volatile_closures_are_called_for_each_row() {
    for session in [
        Session::builder().device(DeviceChoice::Cpu).build().expect("a session"),
        builder().strict(false).build().expect("the device opens"),
    ] {
        let calls = AtomicI64::new(0);
        let inputs: [(&str, DataType); 0] = [];
        let ticks = ScalarFunction::from_closure("ticks", inputs, DataType::Int64, move |_| {
            let tick = calls.fetch_add(1, Ordering::Relaxed);
            Ok(Arc::new(Int64Array::from(vec![tick])) as ArrayRef)
        });
        session.register_function(ticks.clone().volatile()).expect("it is a function");
        let rows = "(SELECT generate_series, ticks() AS t FROM generate_series(1, 5000))";
        let distinct = format!("SELECT count(DISTINCT t) FROM {rows}");
        assert_eq!(scalar(&session, &distinct), Cell::Int(5000));
        // What was computed once stays.
        let both = format!("SELECT count(*) FROM {rows} WHERE t % 2 = 0 AND t % 2 = 1");
        assert_eq!(scalar(&session, &both), Cell::Int(0));
        let groups = format!(
            "SELECT sum(n) FROM (SELECT t % 10 AS d, count(*) AS n FROM {rows} GROUP BY d)"
        );
        assert_eq!(scalar(&session, &groups), Cell::Int(5000));
        // One that is not volatile has one value.
        session.register_function(ticks).expect("it is a function");
        assert_eq!(scalar(&session, &distinct), Cell::Int(1));
    }
}
