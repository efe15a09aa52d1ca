//! Plans of eager verbs, and of the expressions in them.

use warpframe::arrow::array::AsArray;
use warpframe::arrow::datatypes::{Float64Type, Int64Type};

use super::*;

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
