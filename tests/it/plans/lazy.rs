//! Plans of lazy frames, whose verbs become one query.

use warpframe::arrow::array::AsArray;
use warpframe::arrow::datatypes::Int64Type;

use super::*;

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
        let within = in_subquery(col("x"), &session.table("u")?)?;
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
