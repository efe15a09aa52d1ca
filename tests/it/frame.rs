//! The verbs of lazy and eager frames, strictly on the device, against the CPU.

use std::sync::Arc;

use warpframe::arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use warpframe::arrow::datatypes::{DataType, TimeUnit};
use warpframe::prelude::*;
use warpframe::{ErrorKind, Result};

use crate::differential::{Cell, Pair, Rows, builder, data};
use crate::tables::{Shape, columns};

fn pair() -> Pair {
    Pair::of(Shape::random(3000, 61).batches()).and("u", Shape::random(400, 62).batches())
}

#[test]
fn every_lazy_verb_agrees_with_the_cpu() {
    let pair = pair();
    type Query = fn(&Session) -> Result<LazyFrame>;
    let queries: &[(&str, Query)] = &[
        ("select", |s| {
            s.table("t")?.select([col("id"), (col("x") * lit(2.0)).alias("twice"), col("s")])
        }),
        ("with_columns", |s| {
            s.table("t")?.select([col("id"), col("x"), col("k")])?.with_columns([
                (col("x") + lit(1.0)).alias("x"),
                (col("k") + col("k")).alias("added"),
                col("x").alias("before"),
            ])
        }),
        ("filter", |s| s.table("t")?.filter(col("x").gt(lit(0.0)).and(col("s").is_not_null()))),
        ("filter twice", |s| {
            s.table("t")?.filter(col("k").gt(lit(2)))?.filter(col("k").lt(lit(5)))
        }),
        ("group_by", |s| {
            s.table("t")?.group_by([col("k"), col("s")]).agg([
                sum(col("x")),
                count(col("d")),
                max(col("sv")),
            ])
        }),
        ("group_by an expression", |s| {
            s.table("t")?
                .group_by([(col("k") + lit(1)).alias("next")])
                .agg([count_rows().alias("n")])
        }),
        ("group_by nothing", |s| {
            s.table("t")?.group_by([] as [&str; 0]).agg([
                mean(col("x")),
                min(col("d")),
                count_rows(),
            ])
        }),
        ("sort ORDER BY k nulls last, id", |s| s.table("t")?.sort([asc(col("k")), asc(col("id"))])),
        ("sort ORDER BY s desc nulls first, id desc", |s| {
            s.table("t")?.sort([desc(col("s")), desc(col("id"))])
        }),
        ("sort ORDER BY x nulls first, id", |s| {
            s.table("t")?.sort([col("x").sort(true, true), asc(col("id"))])
        }),
        ("join", |s| {
            let u = s.table("u")?.select([col("id"), col("x"), col("s")])?;
            s.table("t")?.select([col("id"), col("x")])?.join(&u, JoinType::Inner, ["id"], ["id"])
        }),
        ("join on two columns", |s| {
            let u = s.table("u")?.select([col("k"), col("s"), col("id")])?;
            s.table("t")?.select([col("k"), col("s"), col("x")])?.join(
                &u,
                JoinType::Inner,
                ["k", "s"],
                ["k", "s"],
            )
        }),
        ("limit ORDER BY id", |s| s.table("t")?.sort([desc(col("id"))])?.limit(5, 20)),
        ("distinct", |s| s.table("t")?.select([col("k"), col("b")])?.distinct()),
        ("union", |s| {
            let u = s.table("u")?.select([col("x"), col("s")])?;
            s.table("t")?.select([col("x"), col("s")])?.union(&u)
        }),
        ("a whole query ORDER BY total", |s| {
            s.table("t")?
                .filter(col("k").is_not_null())?
                .join(
                    &s.table("u")?.select([col("id"), col("k2").alias("factor")])?,
                    JoinType::Inner,
                    ["id"],
                    ["id"],
                )?
                .with_columns([(col("x") * col("factor")).alias("y")])?
                .group_by([col("k")])
                .agg([sum(col("y")).alias("total"), count_rows().alias("n")])?
                .sort([asc(col("total")), asc(col("k"))])?
                .limit(0, 4)
        }),
    ];
    for (name, query) in queries {
        pair.check_frame(name, query);
    }
}

#[test]
fn eager_verbs_are_lazy_verbs_done_at_once_and_stay_on_the_device() -> Result<()> {
    let pair = pair();
    let (t, u) = (pair.device.table("t")?.collect()?, pair.device.table("u")?.collect()?);
    let small = |frame: &DataFrame| frame.select([col("id"), col("k"), col("x")]);
    let (t, u) = (small(&t)?, small(&u)?);
    let steps: Vec<(&str, DataFrame, LazyFrame)> = vec![
        ("select", t.select([col("k")])?, t.lazy()?.select([col("k")])?),
        (
            "with_columns",
            t.with_columns([lit(1).alias("x")])?,
            t.lazy()?.with_columns([lit(1).alias("x")])?,
        ),
        ("filter", t.filter(col("k").eq(lit(3)))?, t.lazy()?.filter(col("k").eq(lit(3)))?),
        (
            "group_by",
            t.group_by([col("k")]).agg([max(col("id"))])?,
            t.lazy()?.group_by([col("k")]).agg([max(col("id"))])?,
        ),
        ("sort ORDER BY", t.sort([desc(col("id"))])?, t.lazy()?.sort([desc(col("id"))])?),
        (
            "join",
            t.join(&u, JoinType::Inner, ["id"], ["id"])?,
            t.lazy()?.join(&u.lazy()?, JoinType::Inner, ["id"], ["id"])?,
        ),
        ("limit ORDER BY", t.limit(7, 3)?, t.lazy()?.limit(7, 3)?),
        ("head ORDER BY", t.head(3)?, t.lazy()?.limit(0, 3)?),
        ("distinct", t.select([col("k")])?.distinct()?, t.lazy()?.select([col("k")])?.distinct()?),
        ("union", t.union(&u)?, t.lazy()?.union(&u.lazy()?)?),
    ];
    for (name, eager, lazy) in steps {
        assert!(eager.is_on_device(), "{name}");
        pair.rows_agree(&lazy.collect()?, &eager, name);
        eager.show()?;
    }
    Ok(())
}

#[test]
fn a_column_that_is_not_there_is_named_with_those_that_are() -> Result<()> {
    let pair = pair();
    for session in [&pair.device, &pair.cpu] {
        let frame = session.table("t")?.select([col("id"), col("x")])?;
        let missing = || col("nobody");
        let errors = [
            ("select", frame.select([missing() + lit(1)]).err()),
            ("with_columns", frame.with_columns([missing().alias("y")]).err()),
            ("filter", frame.filter(missing().gt(lit(0))).err()),
            ("group_by", frame.group_by([missing()]).agg([sum(col("x"))]).err()),
            ("agg", frame.group_by([col("id")]).agg([sum(missing())]).err()),
            ("sort", frame.sort([asc(missing())]).err()),
            ("join left", frame.join(&frame, JoinType::Inner, ["nobody"], ["id"]).err()),
            ("join right", frame.join(&frame, JoinType::Inner, ["id"], ["nobody"]).err()),
            ("sql", session.sql("SELECT nobody FROM (SELECT id, x FROM t)").err()),
        ];
        for (verb, error) in errors {
            let error = error.unwrap_or_else(|| panic!("{verb} took an unknown column"));
            match error.kind() {
                ErrorKind::ColumnNotFound { name, known } => {
                    assert_eq!(name, "nobody", "{verb}");
                    assert!(
                        known.iter().any(|k| k == "id") && known.iter().any(|k| k == "x"),
                        "{verb}: {known:?}"
                    );
                }
                other => panic!("{verb}: {other:?}"),
            }
        }
    }
    Ok(())
}

/// Keys that match once, several times, never, and nulls; a column of the same name on both sides.
fn sides() -> [Vec<RecordBatch>; 2] {
    let key = |keys: &[Option<i64>]| Arc::new(Int64Array::from(keys.to_vec())) as ArrayRef;
    let text = |texts: &[&str]| Arc::new(StringArray::from(texts.to_vec())) as ArrayRef;
    [
        columns(vec![
            ("k", key(&[Some(1), Some(2), Some(2), Some(3), None])),
            ("v", text(&["a", "b", "c", "d", "e"])),
        ]),
        columns(vec![
            ("k", key(&[Some(2), Some(2), Some(3), Some(9), None])),
            ("v", text(&["p", "q", "r", "s", "t"])),
        ]),
    ]
}

#[test]
fn joins_of_all_kinds_agree_with_the_cpu() -> Result<()> {
    use JoinType::*;
    let [left, right] = sides();
    let pair = Pair::new().and("l", left).and("r", right);
    let expected: &[(JoinType, usize, &[&str])] = &[
        (Inner, 5, &["k", "v", "v_right"]),
        (Left, 7, &["k", "v", "v_right"]),
        (Right, 7, &["k", "v", "v_right"]),
        (Full, 9, &["k", "v", "v_right"]),
        (LeftSemi, 3, &["k", "v"]),
        (LeftAnti, 2, &["k", "v"]),
        (RightSemi, 3, &["k", "v"]),
        (RightAnti, 2, &["k", "v"]),
        (LeftMark, 5, &["k", "v"]),
        (RightMark, 5, &["k", "v"]),
    ];
    for (kind, rows, names) in expected {
        let join = |session: &Session| {
            session.table("l")?.join(&session.table("r")?, *kind, ["k"], ["k"])?.collect()
        };
        let (cpu, device) = (join(&pair.cpu)?, join(&pair.device)?);
        let found: Vec<_> =
            device.schema().fields().iter().map(|field| field.name().clone()).collect();
        assert_eq!(
            (device.num_rows(), found.iter().map(String::as_str).collect::<Vec<_>>()),
            (*rows, names.to_vec()),
            "{kind}"
        );
        pair.rows_agree(&cpu, &device, &kind.to_string());
    }
    Ok(())
}

#[test]
fn joins_of_columns_that_do_not_pair_up_are_refused() -> Result<()> {
    let [left, right] = sides();
    let pair = Pair::new().and("l", left).and("r", right);
    let (l, r) = (pair.device.table("l")?, pair.device.table("r")?);
    let none: [&str; 0] = [];
    for error in [
        l.join(&r, JoinType::Inner, none, none).expect_err("no keys"),
        l.join(&r, JoinType::Inner, ["k", "v"], ["k"]).expect_err("two keys and one"),
    ] {
        assert!(matches!(error.kind(), ErrorKind::Unsupported { .. }), "{error:?}");
    }
    Ok(())
}

#[test]
fn results_on_the_device_are_used_where_they_lie() -> Result<()> {
    let pair = pair();
    let kept = pair.device.sql("SELECT id, k, x, s FROM t WHERE k > 1")?.collect()?;
    pair.device.register_table("kept", &kept)?;
    pair.cpu.register_table(
        "kept",
        &pair.cpu.sql("SELECT id, k, x, s FROM t WHERE k > 1")?.collect()?,
    )?;
    let before = pair.gpu().counters();
    let frames = [
        pair.device.sql("SELECT k, sum(x) FROM kept GROUP BY k")?.collect()?,
        kept.filter(col("x").gt(lit(0.0)))?,
        kept.sort([asc(col("x"))])?.head(10)?,
    ];
    assert!(frames.iter().all(DataFrame::is_on_device));
    let after = pair.gpu().counters();
    // Parameters and constants of kernels are not rows.
    let uploaded = after.bytes_uploaded - before.bytes_uploaded;
    assert!(uploaded < 4096, "{uploaded} bytes went up for {} rows", kept.num_rows());
    assert!(after.launches > before.launches);
    pair.check("SELECT k, s, sum(x) FROM kept GROUP BY k, s");
    Ok(())
}

#[test]
fn columns_are_read_to_the_device_once() -> Result<()> {
    let pair = Pair::new().samples();
    let count = |session: &Session| {
        session.sql("SELECT sum(l_quantity) FROM lineitem WHERE l_tax > 0.02")?.collect()
    };
    count(&pair.device)?;
    let before = pair.gpu().counters().bytes_uploaded;
    count(&pair.device)?;
    let uploaded = pair.gpu().counters().bytes_uploaded - before;
    assert!(uploaded < 4096, "{uploaded} bytes went up again");
    Ok(())
}

#[test]
fn frames_of_another_session_are_copied() -> Result<()> {
    let (one, other) = (pair(), pair());
    let frame = one.device.sql("SELECT id, k FROM t WHERE k = 2")?.collect()?;
    assert!(frame.is_on_device());
    other.device.register_table("kept", &frame)?;
    other.cpu.register_table("kept", &frame)?;
    other.check("SELECT k, count(*), sum(id) FROM kept GROUP BY k");
    let joined = other.device.table("t")?.collect()?.select([col("id")])?;
    let joined = joined.join(&frame, JoinType::Inner, ["id"], ["id"])?;
    assert_eq!(joined.num_rows(), frame.num_rows());
    drop(one);
    assert_eq!(frame.filter(col("k").eq(lit(2)))?.num_rows(), frame.num_rows());
    Ok(())
}

#[test]
fn files_written_are_read_back() -> Result<()> {
    let pair = pair();
    let directory = tempfile::tempdir().expect("a directory");
    let frame = pair.device.sql("SELECT * FROM t ORDER BY id")?.collect()?;

    let path = directory.path().join("t.parquet");
    frame.write_parquet(&path)?;
    pair.rows_agree(
        &pair.cpu.read_parquet(&path)?,
        &pair.device.read_parquet(&path)?,
        "ORDER BY parquet",
    );
    let read = pair.device.read_parquet(&path)?;
    let (mut before, after) = (Rows::of(&frame).rows, Rows::of(&read).rows);
    // The format has no seconds: they are written as milliseconds.
    let is_seconds = |dtype: &DataType| matches!(dtype, DataType::Timestamp(TimeUnit::Second, _));
    let seconds = frame.schema().fields().iter().position(|field| is_seconds(field.data_type()));
    for row in &mut before {
        if let Some(Cell::Int(value)) = seconds.and_then(|at| row.get_mut(at)) {
            *value *= 1000;
        }
    }
    assert_eq!(
        format!("{before:?}"),
        format!("{after:?}"),
        "what was written is not what was read"
    );

    let path = directory.path().join("t.csv");
    let plain = frame.select([col("id"), col("k"), col("x"), col("d"), col("b")])?;
    plain.write_csv(&path)?;
    let read = pair.device.read_csv(&path)?;
    assert_eq!(format!("{:?}", Rows::of(&plain).rows), format!("{:?}", Rows::of(&read).rows));
    // No rows are a header.
    plain.filter(lit(false))?.write_csv(&path)?;
    assert_eq!(std::fs::read_to_string(&path).expect("it was written"), "id,k,x,d,b\n");
    Ok(())
}

#[test]
fn a_file_that_cannot_be_written_is_named_and_nothing_is_left() -> Result<()> {
    let pair = pair();
    let directory = tempfile::tempdir().expect("a directory");
    let frame = pair.device.sql("SELECT id FROM t")?.collect()?;
    let path = directory.path().join("nowhere").join("t.csv");
    for error in [
        frame.write_csv(&path).expect_err("no folder"),
        frame.write_parquet(&path).expect_err("no folder"),
    ] {
        assert!(
            matches!(error.kind(), ErrorKind::Io { path: named, .. } if *named == path),
            "{error:?}"
        );
    }
    assert_eq!(std::fs::read_dir(directory.path()).expect("it is there").count(), 0);
    Ok(())
}

#[test]
fn arrow_in_and_out_keeps_every_type() -> Result<()> {
    let batches = Shape::random(3000, 63).batches();
    let session = builder().strict(true).build()?;
    let frame = session.from_arrow(batches.clone())?;
    assert!(frame.is_on_device());
    assert_eq!(*frame.schema(), *batches[0].schema());
    let back = frame.to_arrow()?;
    let back = warpframe::arrow::compute::concat_batches(&frame.schema(), &back)?;
    assert_eq!(back, batches[0]);
    assert!(session.from_arrow([]).is_err());
    let other = session.from_arrow([
        batches[0].clone(),
        columns(vec![("id", batches[0].column(1).clone())]).remove(0),
    ]);
    assert!(matches!(other.expect_err("two schemas").kind(), ErrorKind::TypeMismatch { .. }));
    Ok(())
}

#[test]
fn plans_are_explained() -> Result<()> {
    let session = builder().build()?;
    session.register_parquet("nation", data("tpch/nation.parquet"))?;
    let frame = session.table("nation")?.filter(col("n_regionkey").eq(lit(1)))?;
    let text = frame.explain()?;
    assert!(text.lines().all(|line| line.starts_with("device")), "{text}");
    let text = session
        .sql("SELECT approx_percentile_cont_with_weight(n_nationkey, 1, 0.5) FROM nation")?
        .explain()?;
    assert!(
        text.starts_with("cpu") && text.contains("_with_weight is not on the device yet"),
        "{text}"
    );
    Ok(())
}
