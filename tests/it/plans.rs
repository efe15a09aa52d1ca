//! Plans that are found again: when they are, when they must not be, and that answers are those of
//! plans made anew.

use std::sync::Arc;

use datafusion::logical_expr::{ColumnarValue, ScalarUDF, Volatility, create_udf};
use warpframe::arrow::array::{
    ArrayRef, AsArray, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray,
};
use warpframe::arrow::datatypes::{DataType, Field, Float64Type, Int64Type, Schema};
use warpframe::prelude::*;
use warpframe::{ErrorKind, Result};

use crate::differential::{Cell, Pair, Rows, builder, data, run, scalar};
use crate::tables::Shape;

/// Plans made, and found, since the session began.
fn plans(session: &Session) -> (u64, u64) {
    let counters = session.device().expect("the session has a device").counters();
    (counters.plans_made, counters.plans_found)
}

/// Does something, and says how many plans it made and found.
fn counted<T>(session: &Session, work: impl FnOnce() -> Result<T>) -> (T, (u64, u64)) {
    let before = plans(session);
    let done = work().expect("a query that runs");
    let after = plans(session);
    (done, (after.0 - before.0, after.1 - before.1))
}

const MADE: (u64, u64) = (1, 0);
const FOUND: (u64, u64) = (0, 1);

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter(columns).expect("columns of one length")
}

pub fn integers(name: &str, values: impl IntoIterator<Item = i64>) -> RecordBatch {
    batch(vec![(name, Arc::new(Int64Array::from_iter_values(values)))])
}

pub fn strict() -> Session {
    builder().strict(true).build().expect("the device opens")
}

type EagerVerb = fn(&DataFrame, &DataFrame) -> Result<DataFrame>;

const VERBS: [(&str, EagerVerb); 14] = [
    ("select", |t, _| t.select([col("id"), (col("k") * lit(2)).alias("twice"), col("s")])),
    ("with_columns", |t, _| {
        t.with_columns([(col("k") + lit(1)).alias("k"), col("s").alias("copy")])
    }),
    ("filter", |t, _| t.filter(col("k").gt(lit(2)))),
    ("filter a string", |t, _| t.filter(col("s").is_not_null().and(col("s").not_eq(lit("a"))))),
    ("group_by", |t, _| {
        t.group_by([col("k"), col("s")]).agg([sum(col("x")), count_rows(), max(col("id"))])
    }),
    ("group_by nothing", |t, _| t.group_by([] as [&str; 0]).agg([sum(col("k")), min(col("s"))])),
    ("sort ORDER BY", |t, _| t.sort([desc(col("k")), asc(col("id"))])),
    ("arg_sort ORDER BY", |t, _| t.arg_sort([desc(col("s")), asc(col("k")), asc(col("id"))])),
    ("top_k ORDER BY", |t, _| t.top_k(20, [desc(col("k")), asc(col("id"))])),
    ("join", |t, u| t.join(u, JoinType::Inner, ["k"], ["k"])),
    ("left join", |t, u| t.join(u, JoinType::Left, ["id"], ["id"])),
    ("limit ORDER BY", |t, _| t.limit(3, 20)),
    ("distinct", |t, _| t.distinct()),
    ("union", |t, u| t.union(u)),
];

/// The same columns with what statistics and encodings make of them: ranges, nulls, repeated or
/// unique values, few or many strings.
pub fn variants() -> Vec<RecordBatch> {
    let of = |rows: usize, shape: u64| {
        let number = |row: usize| match shape {
            0 => row as i64 % 7,
            1 => row as i64 * 1_000_003,
            _ => -(row as i64),
        };
        let null = |row: usize| shape == 2 && row % 5 == 3;
        let rows = 0..rows;
        let k = Int64Array::from_iter(rows.clone().map(|row| (!null(row)).then(|| number(row))));
        let x = Float64Array::from_iter(
            rows.clone().map(|row| (!null(row)).then(|| row as f64 / (shape + 1) as f64)),
        );
        let s = rows.clone().map(|row| {
            (!null(row + 1)).then(|| match shape {
                0 => ["a", "b", "é"][row % 3].to_string(),
                _ => format!("a string of its own {row}"),
            })
        });
        let columns: [(&str, ArrayRef); 4] = [
            ("id", Arc::new(Int32Array::from_iter_values(rows.map(|row| row as i32)))),
            ("k", Arc::new(k)),
            ("x", Arc::new(x)),
            ("s", Arc::new(StringArray::from_iter(s))),
        ];
        let fields =
            columns.iter().map(|(name, array)| Field::new(*name, array.data_type().clone(), true));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        RecordBatch::try_new(schema, columns.into_iter().map(|(_, array)| array).collect())
            .expect("columns fit")
    };
    vec![of(500, 0), of(300, 1), of(700, 2), of(0, 0), of(1, 1), of(900, 0)]
}

#[test]
fn eager_verbs_find_their_plans_and_answer_as_the_cpu_on_other_data() -> Result<()> {
    let pair = Pair::new();
    for (name, verb) in VERBS {
        for (at, (left, right)) in variants().iter().zip(variants().iter().rev()).enumerate() {
            let frames = |session: &Session| -> Result<_> {
                Ok((session.from_arrow([left.clone()])?, session.from_arrow([right.clone()])?))
            };
            let ((cpu_left, cpu_right), (left, right)) =
                (frames(&pair.cpu)?, frames(&pair.device)?);
            let expected = verb(&cpu_left, &cpu_right)?;
            let (found, counts) = counted(&pair.device, || verb(&left, &right));
            assert_eq!(counts, if at == 0 { MADE } else { FOUND }, "{name}, variant {at}");
            assert!(found.is_on_device(), "{name}");
            assert_eq!(expected.schema().fields().len(), found.schema().fields().len());
            if !name.starts_with("limit") {
                pair.rows_agree(&expected, &found, name);
            }
            // As when it is planned as a whole query.
            let lazy = left.lazy()?;
            assert_eq!(
                found.schema().field(0).name(),
                expected.schema().field(0).name(),
                "{name}: {lazy:?}"
            );
        }
    }
    Ok(())
}

#[test]
fn a_plan_that_is_found_launches_the_kernels_and_waits_as_often_as_one_that_is_made() -> Result<()>
{
    let session = strict();
    let [left, right] = [0, 2].map(|at| session.from_arrow([variants()[at].clone()]));
    let (left, right) = (left?, right?);
    let device = session.device().expect("a device").clone();
    for (name, verb) in VERBS {
        let mut costs = vec![];
        for _ in 0..3 {
            let before = device.counters();
            drop(verb(&left, &right)?);
            let after = device.counters();
            costs.push([
                after.launches - before.launches,
                after.synchronizations - before.synchronizations,
                after.allocations - before.allocations,
            ]);
        }
        assert_eq!(costs[0], costs[1], "{name}");
        assert_eq!(costs[1], costs[2], "{name}");
    }
    Ok(())
}

#[test]
fn schemas_that_differ_make_plans_of_their_own() -> Result<()> {
    let session = strict();
    let of = |name: &str, array: ArrayRef, nullable: bool| {
        let schema = Schema::new(vec![Field::new(name, array.data_type().clone(), nullable)]);
        session.from_arrow([RecordBatch::try_new(Arc::new(schema), vec![array]).expect("a column")])
    };
    let long = || Arc::new(Int64Array::from(vec![1, 2, 3])) as ArrayRef;
    let frames = [
        of("x", long(), true)?,
        of("x", long(), false)?,
        of("x", Arc::new(Int32Array::from(vec![1, 2, 3])), true)?,
        of("x", Arc::new(Float64Array::from(vec![1.0, 2.0, 3.0])), true)?,
        of("x", Arc::new(StringArray::from(vec!["1", "2", "3"])), true)?,
    ];
    for expected in [MADE, FOUND] {
        for frame in &frames {
            let (kept, counts) = counted(&session, || frame.filter(col("x").gt(lit(1))));
            assert_eq!((kept.num_rows(), counts), (2, expected), "{}", frame.schema());
            assert_eq!(kept.schema(), frame.schema());
        }
    }
    let error = of("y", long(), true)?.filter(col("x").gt(lit(1))).expect_err("no such column");
    assert!(
        matches!(error.kind(), ErrorKind::ColumnNotFound { name, .. } if name == "x"),
        "{error:?}"
    );
    Ok(())
}

#[test]
fn other_expressions_make_other_plans() -> Result<()> {
    let session = strict();
    let frame = session.from_arrow([integers("x", 0..100)])?;
    for (bound, left) in [(3, 96), (50, 49), (3, 96), (99, 0)] {
        assert_eq!(frame.filter(col("x").gt(lit(bound)))?.num_rows(), left);
        assert_eq!(frame.filter(col("x").gt(lit(bound as i64)))?.num_rows(), left);
    }
    for zero in [0.0f64, -0.0, 0.0] {
        let zeros = frame.limit(0, 1)?.select([lit(zero).alias("zero")])?.to_arrow()?;
        assert_eq!(
            zeros[0].column(0).as_primitive::<Float64Type>().value(0).to_bits(),
            zero.to_bits()
        );
    }
    let (_, counts) = counted(&session, || frame.filter(col("x").gt(lit(3))));
    assert_eq!(counts, FOUND);
    Ok(())
}

#[test]
fn sql_is_planned_once_and_follows_its_tables() -> Result<()> {
    let session = strict();
    let sql = "SELECT sum(x) FROM t WHERE x > 1";
    session.register_batches("t", [integers("x", 0..5)])?;
    let sum = |expected: i64, counts: (u64, u64), why: &str| {
        let (found, counted) = counted(&session, || run(&session, sql));
        assert_eq!(
            (Rows::of(&found).rows[0][0].clone(), counted),
            (Cell::Int(expected.into()), counts),
            "{why}"
        );
    };
    sum(9, MADE, "new");
    sum(9, FOUND, "again");
    session.register_batches("t", [integers("x", 0..50)])?;
    sum(1224, FOUND, "another table of the same schema");
    session.register_batches("t", [integers("x", -50..0)])?;
    let (found, counts) = counted(&session, || run(&session, sql));
    assert_eq!((Rows::of(&found).rows[0][0].clone(), counts), (Cell::Null, FOUND), "nothing left");

    let nullable = Int64Array::from(vec![Some(7), None]);
    let schema = Schema::new(vec![Field::new("x", DataType::Int64, true)]);
    let nullable =
        RecordBatch::try_new(Arc::new(schema), vec![Arc::new(nullable)]).expect("a column");
    session.register_batches("t", [nullable])?;
    sum(7, MADE, "nullable");
    session.register_batches("t", [batch(vec![("x", Arc::new(Int32Array::from(vec![2, 3])))])])?;
    sum(5, MADE, "another type");
    session.register_table("t", &session.from_arrow([integers("x", 0..4)])?)?;
    sum(5, FOUND, "a kept result with the first schema");

    session.deregister("t")?;
    let error = run(&session, sql).expect_err("it is gone");
    assert!(
        matches!(error.kind(), ErrorKind::TableNotFound { name, .. } if name == "t"),
        "{error:?}"
    );
    session.register_batches("t", [integers("y", 0..4)])?;
    let error = run(&session, sql).expect_err("another column");
    assert!(
        matches!(error.kind(), ErrorKind::ColumnNotFound { name, .. } if name == "x"),
        "{error:?}"
    );
    session.register_batches("t", [integers("x", 0..4)])?;
    sum(5, FOUND, "the first schema again");
    Ok(())
}

#[test]
fn tables_that_change_places_are_not_mistaken() -> Result<()> {
    let session = strict();
    let (a, b) = (integers("x", 0..10), integers("x", 5..30));
    session.register_batches("a", [a.clone()])?;
    session.register_batches("b", [b.clone()])?;
    let sql = "SELECT count(*) FROM a WHERE x NOT IN (SELECT x FROM b)";
    assert_eq!(scalar(&session, sql), Cell::Int(5));
    assert_eq!(
        scalar(&session, "SELECT count(*) FROM a JOIN a AS c ON a.x = c.x + 1"),
        Cell::Int(9)
    );
    session.register_batches("a", [b])?;
    session.register_batches("b", [a])?;
    let (found, counts) = counted(&session, || run(&session, sql));
    assert_eq!((Rows::of(&found).rows[0][0].clone(), counts), (Cell::Int(20), FOUND));
    // Two names of one table are one, of two tables two.
    let both = "SELECT count(*) FROM a JOIN b ON a.x = b.x";
    assert_eq!(scalar(&session, both), Cell::Int(5));
    let table = session.context();
    let provider = table.deregister_table("a").expect("a catalog").expect("registered");
    table.deregister_table("b").expect("a catalog");
    table.register_table("a", provider.clone()).expect("a catalog");
    table.register_table("b", provider).expect("a catalog");
    assert_eq!(scalar(&session, both), Cell::Int(25));
    Ok(())
}

#[test]
fn lazy_frames_find_plans_of_their_form() -> Result<()> {
    let session = strict();
    let mut sums = vec![];
    for rows in [100, 1000] {
        let frame = session.from_arrow([integers("x", 0..rows)])?;
        let query =
            || frame.lazy()?.filter(col("x").lt(lit(500)))?.select([sum(col("x"))])?.collect();
        let (found, counts) = counted(&session, query);
        assert_eq!(counts, if rows == 100 { MADE } else { FOUND });
        sums.push(found.to_arrow()?[0].column(0).as_primitive::<Int64Type>().value(0));
    }
    assert_eq!(sums, [4950, 124_750]);
    Ok(())
}

type LazyVerb = fn(&LazyFrame, &LazyFrame) -> Result<LazyFrame>;

const LAZY_VERBS: [(&str, LazyVerb); 10] = [
    ("select", |t, _| {
        t.select([col("id"), (col("k") * lit(2)).alias("twice"), col("s")])?
            .filter(col("twice").gt(lit(3)))
    }),
    ("with_columns", |t, _| {
        t.with_columns([(col("k") + lit(1)).alias("k")])?.select([col("k"), col("x")])
    }),
    ("group_by", |t, _| {
        t.filter(col("k").gt(lit(2)))?
            .group_by([col("s")])
            .agg([sum(col("x")).alias("x"), count_rows()])
    }),
    ("sort ORDER BY", |t, _| t.distinct()?.sort([desc(col("k")), asc(col("id"))])),
    ("top_k ORDER BY", |t, _| {
        t.with_columns([(col("x") + col("k")).alias("y")])?
            .top_k(20, [desc(col("y")), asc(col("id"))])
    }),
    ("join", |t, u| t.join(u, JoinType::Inner, ["k"], ["k"])?.select([col("id"), col("x_right")])),
    ("join of one", |t, _| {
        t.join(t, JoinType::Inner, ["id"], ["id"])?.filter(col("k").eq(col("k_right")))
    }),
    ("join of a part", |t, u| {
        t.join(&u.filter(col("id").lt(lit(9)))?, JoinType::Left, ["id"], ["id"])
    }),
    ("union", |t, u| t.union(u)?.group_by([col("k")]).agg([count_rows()])),
    ("union of one", |t, _| t.union(t)?.group_by([col("k")]).agg([count_rows()])),
];

#[test]
fn lazy_verbs_find_their_plans_and_answer_as_the_cpu_on_other_data() -> Result<()> {
    let pair = Pair::new();
    for (name, verb) in LAZY_VERBS {
        let mut forms = vec![];
        for (at, (left, right)) in variants().iter().zip(variants().iter().rev()).enumerate() {
            let grown = |session: &Session| -> Result<_> {
                let (left, right) =
                    (session.from_arrow([left.clone()])?, session.from_arrow([right.clone()])?);
                verb(&left.lazy()?, &right.lazy()?)
            };
            let (expected, grown) = (grown(&pair.cpu)?, grown(&pair.device)?);
            assert_eq!(grown.schema(), expected.schema(), "{name}");
            let (found, counts) = counted(&pair.device, || grown.collect());
            assert_eq!(counts, if at == 0 { MADE } else { FOUND }, "{name}, variant {at}");
            assert!(found.is_on_device(), "{name}");
            pair.rows_agree(&expected.collect()?, &found, name);
            forms.push((format!("{grown:?}"), grown.explain()?.lines().nth(1).map(String::from)));
        }
        assert!(forms.iter().all(|form| *form == forms[0]), "{forms:?}");
    }
    Ok(())
}

#[test]
fn one_table_is_not_taken_for_two_nor_verbs_for_others() -> Result<()> {
    let session = strict();
    let [few, many] = [0..10, 0..100].map(|range| session.from_arrow([integers("x", range)]));
    let (few, many) = (few?, many?);
    for _ in 0..2 {
        let (one, other) = (few.lazy()?, many.lazy()?);
        assert_eq!(one.union(&one)?.collect()?.num_rows(), 20);
        assert_eq!(one.union(&other)?.collect()?.num_rows(), 110);
        assert_eq!(other.union(&one)?.union(&one)?.collect()?.num_rows(), 120);
        assert_eq!(other.union(&one.union(&one)?)?.limit(0, 115)?.collect()?.num_rows(), 115);
        assert_eq!(one.join(&other, JoinType::LeftSemi, ["x"], ["x"])?.collect()?.num_rows(), 10);
        assert_eq!(one.join(&other, JoinType::RightAnti, ["x"], ["x"])?.collect()?.num_rows(), 90);
        let error = one.filter(col("y").gt(lit(1))).expect_err("no such column");
        assert!(
            matches!(error.kind(), ErrorKind::ColumnNotFound { name, .. } if name == "y"),
            "{error:?}"
        );
        let error = one.join(&other, JoinType::Inner, ["x"], ["y"]).expect_err("no such column");
        assert!(
            matches!(error.kind(), ErrorKind::ColumnNotFound { name, .. } if name == "y"),
            "{error:?}"
        );
    }
    Ok(())
}

#[test]
fn tables_of_subqueries_in_verbs_are_neither_mistaken_nor_kept() -> Result<()> {
    let session = strict();
    let device = session.device().expect("a device").clone();
    let frame = session.from_arrow([integers("x", 0..100)])?;
    let before = device.memory().used;
    for rows in [3, 30, 50] {
        session.register_table("u", &session.from_arrow([integers("x", 0..rows)])?)?;
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let inner = runtime
            .block_on(session.context().table("u"))
            .expect("the table is there")
            .into_unoptimized_plan();
        let within = in_subquery(col("x"), Arc::new(inner));
        for _ in 0..2 {
            assert_eq!(frame.lazy()?.filter(within.clone())?.collect()?.num_rows(), rows as usize);
            assert_eq!(frame.lazy()?.filter(within.clone())?.limit(0, 2)?.collect()?.num_rows(), 2);
            assert_eq!(frame.filter(within.clone())?.num_rows(), rows as usize);
        }
        session.deregister("u")?;
    }
    assert_eq!(device.memory().used, before);
    Ok(())
}

#[test]
fn settings_that_change_are_heeded() -> Result<()> {
    let session = strict();
    let nulls = batch(vec![("x", Arc::new(Int64Array::from(vec![Some(1), None])))]);
    session.register_batches("t", [nulls.clone()])?;
    let sql = "SELECT x FROM t ORDER BY x LIMIT 1";
    assert_eq!(scalar(&session, sql), Cell::Int(1));
    assert_eq!(scalar(&session, sql), Cell::Int(1));
    let set = |order: &str| {
        let state = session.context().state_ref();
        let mut state = state.write();
        state
            .config_mut()
            .options_mut()
            .set("datafusion.sql_parser.default_null_ordering", order)
            .expect("a setting");
    };
    set("nulls_min");
    assert_eq!(scalar(&session, sql), Cell::Null);
    set("nulls_max");
    assert_eq!(scalar(&session, sql), Cell::Int(1));
    session.set_join_order(false);
    let (_, counts) = counted(&session, || run(&session, sql));
    assert_eq!(counts, FOUND, "the order of joins is no part of a plan");
    Ok(())
}

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

#[test]
fn errors_of_rows_are_reported_by_found_plans_and_the_session_goes_on() -> Result<()> {
    let session = strict();
    let frame = |values: Vec<i64>| session.from_arrow([integers("x", values)]);
    let divided = |frame: &DataFrame| frame.select([lit(10i64) / col("x")]);
    assert_eq!(divided(&frame(vec![1, 2])?)?.num_rows(), 2);
    for _ in 0..2 {
        let error = divided(&frame(vec![1, 0])?).expect_err("a division by zero");
        assert!(matches!(error.kind(), ErrorKind::Arithmetic { .. }), "{error:?}");
    }
    assert_eq!(divided(&frame(vec![5])?)?.num_rows(), 1);
    Ok(())
}

#[test]
fn plans_that_are_kept_keep_no_memory_of_the_device() -> Result<()> {
    let session = strict();
    let device = session.device().expect("a device").clone();
    let before = device.memory().used;
    for _ in 0..2 {
        let frame = session.from_arrow([integers("x", 0..10_000)])?;
        session.register_table("t", &frame)?;
        assert_eq!(scalar(&session, "SELECT max(x) FROM t"), Cell::Int(9999));
        for _ in 0..3 {
            assert_eq!(frame.select([sum(col("x"))])?.num_rows(), 1);
        }
        assert_eq!(frame.filter(col("x").lt(lit(10)))?.num_rows(), 10);
        assert_eq!(frame.lazy()?.limit(0, 3)?.collect()?.num_rows(), 3);
        session.deregister("t")?;
    }
    assert_eq!(device.memory().used, before);
    Ok(())
}

#[test]
fn more_forms_than_are_kept_are_answered_all_the_same() -> Result<()> {
    let session = strict();
    let frame = session.from_arrow([integers("x", 0..1000)])?;
    for _ in 0..2 {
        for bound in 0..300 {
            assert_eq!(frame.filter(col("x").lt(lit(bound)))?.num_rows(), bound as usize);
        }
    }
    Ok(())
}

#[test]
fn many_lazy_verbs_are_answered_all_the_same() -> Result<()> {
    let session = strict();
    let frame = session.from_arrow([integers("x", 0..1000)])?;
    for _ in 0..2 {
        let mut lazy = frame.lazy()?;
        for at in 0..130 {
            lazy = lazy.limit(1, 1000 - at)?;
        }
        assert_eq!(lazy.collect()?.num_rows(), 870);
    }
    Ok(())
}

#[test]
fn deep_expressions_run_on_a_small_stack() -> Result<()> {
    let session = strict();
    let frame = session.from_arrow([integers("x", 0..10)])?;
    for depth in [30, 60, 100] {
        let deep = (0..depth).fold(col("x"), |sum, _| sum + col("x"));
        for _ in 0..2 {
            let sums = frame.select([deep.clone().alias("y")])?.to_arrow()?;
            assert_eq!(sums[0].column(0).as_primitive::<Int64Type>().value(9), 9 * (depth + 1));
        }
    }
    Ok(())
}

#[test]
fn whole_queries_are_found_and_answer_as_the_cpu() {
    let pair = Pair::new().samples();
    for query in ["q3", "q13", "q16", "q22"] {
        let sql = std::fs::read_to_string(data(&format!("queries/{query}.sql")))
            .expect("the query is there");
        for counts in [MADE, FOUND, FOUND] {
            let (_, counted) = counted(&pair.device, || Ok(pair.check(&sql)));
            assert_eq!(counted, counts, "{query}");
        }
    }
}

#[test]
fn deep_queries_are_found_on_a_small_stack() {
    let session = strict();
    session.register_batches("t", [integers("x", 0..10)]).expect("batches");
    for depth in [5, 12, 20] {
        // Limits keep the filters apart.
        let nested =
            |sql: String, level| format!("SELECT x FROM ({sql}) WHERE x + {level} > 3 LIMIT 100");
        let sql = (0..depth).fold("SELECT x FROM t".to_string(), nested);
        for _ in 0..3 {
            assert_eq!(
                run(&session, &sql).expect("a query that runs").num_rows(),
                6,
                "{depth} levels"
            );
        }
    }
}
