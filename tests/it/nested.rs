//! Lists and structs: carried along by every operator, and keys of some.

use std::sync::Arc;

use warpframe::arrow::array::*;
use warpframe::arrow::buffer::{NullBuffer, OffsetBuffer};
use warpframe::arrow::compute::cast;
use warpframe::arrow::datatypes::{DataType, Field, Fields};
use warpframe::prelude::*;
use warpframe::{DataFrame, ErrorKind};

use crate::differential::{Agreement, Cell, Pair, Rows, builder, run};
use crate::tables::{Shape, share};

/// Numbers that look random, and are the same every time.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}

fn item(dtype: DataType) -> Arc<Field> {
    Arc::new(Field::new("item", dtype, true))
}

fn list(dtype: DataType) -> DataType {
    DataType::List(item(dtype))
}

fn structure(fields: &[(&str, DataType)]) -> DataType {
    let field = |(name, dtype): &(&str, DataType)| Field::new(*name, dtype.clone(), true);
    DataType::Struct(fields.iter().map(field).collect::<Fields>())
}

/// An array of any type: nulls at each level, with something beneath them, empty lists, few
/// distinct values.
fn array(dtype: &DataType, rows: usize, numbers: &mut Numbers) -> ArrayRef {
    let nulls = NullBuffer::from_iter((0..rows).map(|_| numbers.below(6) > 0));
    let values: ArrayRef = match dtype {
        DataType::List(item) | DataType::LargeList(item) => {
            let lengths: Vec<usize> = (0..rows).map(|_| numbers.below(5) as usize).collect();
            let values = array(item.data_type(), lengths.iter().sum(), numbers);
            if matches!(dtype, DataType::List(_)) {
                let offsets = OffsetBuffer::<i32>::from_lengths(lengths);
                return Arc::new(ListArray::new(item.clone(), offsets, values, Some(nulls)));
            }
            let offsets = OffsetBuffer::<i64>::from_lengths(lengths);
            return Arc::new(LargeListArray::new(item.clone(), offsets, values, Some(nulls)));
        }
        DataType::FixedSizeList(item, size) => {
            let values = array(item.data_type(), rows * *size as usize, numbers);
            return Arc::new(FixedSizeListArray::new(item.clone(), *size, values, Some(nulls)));
        }
        DataType::Struct(fields) => {
            // What DataFusion says of a field of a null struct is what lies beneath.
            let child =
                |field: &Arc<Field>| masked(&array(field.data_type(), rows, numbers), &nulls);
            let children = fields.iter().map(child).collect();
            return Arc::new(StructArray::new(fields.clone(), children, Some(nulls)));
        }
        DataType::Boolean => {
            Arc::new(BooleanArray::from_iter((0..rows).map(|_| Some(numbers.below(2) == 1))))
        }
        DataType::Utf8 | DataType::Utf8View | DataType::Dictionary(_, _) => {
            let text = |n: u64| {
                ["", "é", "b", "thirteen byte", "a string that does not fit its view"][n as usize]
            };
            let texts = StringArray::from_iter_values((0..rows).map(|_| text(numbers.below(5))));
            cast(&texts, dtype).expect("strings of a type")
        }
        DataType::Float64 => {
            let float = |n: u64| [0.0, -0.0, 1.5, f64::NAN, f64::INFINITY, -2.25][n as usize];
            Arc::new(Float64Array::from_iter_values((0..rows).map(|_| float(numbers.below(6)))))
        }
        other => {
            let integers =
                Int64Array::from_iter_values((0..rows).map(|_| numbers.below(9) as i64 - 4));
            cast(&integers, other).expect("integers of a type")
        }
    };
    let data = values.to_data().into_builder().nulls(Some(nulls));
    make_array(data.build().expect("an array"))
}

/// The array with nulls in further places, and in the fields of what is then null.
fn masked(array: &ArrayRef, nulls: &NullBuffer) -> ArrayRef {
    let nulls = NullBuffer::union(array.nulls(), Some(nulls)).expect("one of them");
    if let Some(structs) = array.as_any().downcast_ref::<StructArray>() {
        let children = structs.columns().iter().map(|child| masked(child, &nulls)).collect();
        return Arc::new(StructArray::new(structs.fields().clone(), children, Some(nulls)));
    }
    make_array(array.to_data().into_builder().nulls(Some(nulls)).build().expect("an array"))
}

/// Columns of nested types, by name.
pub fn types() -> Vec<(&'static str, DataType)> {
    let point = structure(&[("x", DataType::Int32), ("y", DataType::Utf8)]);
    vec![
        ("li", list(DataType::Int64)),
        ("ls", list(DataType::Utf8)),
        ("lv", list(DataType::Utf8View)),
        ("lf", DataType::LargeList(item(DataType::Float64))),
        ("fl", DataType::FixedSizeList(item(DataType::Int32), 3)),
        ("lb", list(DataType::Boolean)),
        ("lm", list(DataType::Decimal128(10, 2))),
        ("lw", list(DataType::Decimal128(30, 2))),
        ("ld", list(DataType::Date32)),
        ("lc", list(DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8)))),
        ("ll", list(list(DataType::Int64))),
        ("lp", list(point.clone())),
        ("fp", DataType::FixedSizeList(item(point.clone()), 2)),
        (
            "st",
            structure(&[
                ("a", DataType::Int64),
                ("b", DataType::Utf8View),
                ("c", list(DataType::Int32)),
            ]),
        ),
        ("ss", structure(&[("p", point), ("f", DataType::Float64), ("t", DataType::Boolean)])),
    ]
}

fn batch(rows: usize, seed: u64) -> RecordBatch {
    let mut numbers = Numbers(seed);
    let mut columns: Vec<(&str, ArrayRef)> =
        vec![("id", Arc::new(Int64Array::from_iter_values(0..rows as i64)))];
    let mut of = |dtype: DataType| array(&dtype, rows, &mut numbers);
    columns.extend([
        ("i", of(DataType::Int64)),
        ("s", of(DataType::Utf8)),
        ("x", of(DataType::Float64)),
    ]);
    columns.extend(types().into_iter().map(|(name, dtype)| (name, of(dtype))));
    RecordBatch::try_from_iter_with_nullable(
        columns.into_iter().map(|(name, array)| (name, array, name != "id")),
    )
    .expect("a batch")
}

/// So many rows in slices of one batch, of which the first does not begin where the batch does.
pub fn pair(rows: usize, seed: u64) -> Pair {
    let whole = batch(rows + 7, seed);
    let cut = rows / 3;
    Pair::of(vec![whole.slice(5, cut), whole.slice(5 + cut, rows - cut)])
        .from(format!("{rows} rows of seed {seed}"))
}

#[test]
fn they_pass_through_tables_of_every_size() {
    for rows in [0, 1, 31, 33, 300, 2500] {
        pair(rows, 3).check("SELECT * FROM t ORDER BY id");
    }
}

#[test]
fn every_operator_carries_them_along() {
    let pair = pair(700, 11);
    pair.check(
        "SELECT * FROM t WHERE id % 7 < 3 AND s <> 'b' ORDER BY x DESC, id LIMIT 100 OFFSET 7",
    );
    for (name, _) in types() {
        let check = |sql: &str| pair.check(&sql.replace("NAME", name));
        check("SELECT id, NAME FROM t WHERE NAME IS NOT NULL AND i > 0");
        check(
            "SELECT a.id, a.NAME, b.NAME AS other FROM t a JOIN t b ON a.id = b.id + 1 WHERE a.i < 3",
        );
        check(
            "SELECT a.id, a.NAME, b.id AS j, b.NAME AS other FROM t a JOIN t b ON a.i = b.i AND b.id < 60",
        );
        check(
            "SELECT a.id, b.NAME FROM t a LEFT JOIN (SELECT * FROM t WHERE i > 1) b ON a.id = b.id",
        );
        check(
            "SELECT a.NAME, b.NAME AS other FROM t a FULL JOIN (SELECT * FROM t WHERE i > 1) b ON a.id = b.id - 500",
        );
        check("SELECT id, NAME FROM t WHERE id IN (SELECT i FROM t)");
        check("SELECT id, NAME FROM t WHERE i > 2 UNION ALL SELECT -id, NAME FROM t WHERE s = 'b'");
        check(
            "SELECT id, CASE WHEN i > 0 THEN NAME WHEN i < -2 THEN NULL ELSE NAME END AS c FROM t",
        );
        check("SELECT a.id, coalesce(a.NAME, b.NAME) AS c FROM t a JOIN t b ON a.id = b.id + 1");
        check("SELECT s, count(NAME), count(*) FROM t GROUP BY s");
        check(
            "SELECT s, first_value(NAME ORDER BY id), last_value(NAME ORDER BY id) FROM t GROUP BY s",
        );
        check("SELECT first_value(NAME ORDER BY id DESC) FROM t WHERE i > 100");
        check(
            "SELECT id, lag(NAME) OVER (PARTITION BY s ORDER BY id) AS l, row_number() OVER (ORDER BY id) FROM t",
        );
        check("SELECT id, NAME, sum(i) OVER (PARTITION BY s ORDER BY id) FROM t");
    }
}

#[test]
fn they_are_keys_of_groups_and_joins() {
    for (at, (rows, seed)) in [(300, 2), (0, 1), (1, 5), (2100, 6)].into_iter().enumerate() {
        let pair = pair(rows, seed);
        for (name, _) in share(types().iter().filter(|(name, _)| !["lf", "ss"].contains(name)), at)
        {
            let check = |sql: &str| pair.check(&sql.replace("NAME", name));
            check("SELECT NAME, count(*) AS n, min(id) AS least, sum(i) FROM t GROUP BY NAME");
            check("SELECT DISTINCT NAME FROM t");
            check("SELECT s, count(DISTINCT NAME) FROM t GROUP BY s");
            check(
                "SELECT NAME, i, count(*) FROM t WHERE id % 3 > 0 GROUP BY NAME, i HAVING count(*) > 1",
            );
        }
        for name in share(["li", "ls", "fl", "lb", "st"], at) {
            let check = |sql: &str| pair.check(&sql.replace("NAME", name));
            check(
                "SELECT a.id, b.id AS other FROM t a JOIN t b ON a.NAME = b.NAME WHERE a.id < 100",
            );
            check("SELECT id FROM t WHERE NAME IN (SELECT NAME FROM t WHERE i > 0)");
            check("SELECT NAME FROM t WHERE i > 0 INTERSECT SELECT NAME FROM t WHERE i < 0");
            check(
                "SELECT a.id, a.NAME = b.NAME AS e, a.NAME <> b.NAME AS n FROM t a JOIN t b ON a.id = b.id + 1",
            );
        }
        pair.check("SELECT id FROM t WHERE li = [1] OR li = [] OR ls <> ['b']");
        pair.check(
            "SELECT [s, s] AS k, {'a': i > 0, 'b': [i]} AS m, count(*) FROM t GROUP BY 1, 2",
        );
        pair.check("SELECT array_length(array_agg(DISTINCT li)) AS n FROM t");
    }
}

#[test]
fn fields_of_columns_that_have_two_names() {
    let pair = Pair::of(Shape::random(300, 77).batches());
    let of = "SELECT id, {'x': a, 'y': c} AS st, b FROM (SELECT id, k AS a, k AS b, s AS c FROM t)";
    pair.check_all(&[
        &format!("SELECT id, st.x, b, st.y FROM ({of}) WHERE st.y IS NOT NULL"),
        &format!("SELECT st.x, max(b), count(st.y) FROM ({of}) WHERE st.x > 2 GROUP BY st.x"),
        &format!("SELECT id, st.x + b AS n FROM ({of} ORDER BY a, id LIMIT 50) ORDER BY st.y, id"),
        &format!(
            "SELECT q.id, q.st.x, t.id AS other FROM ({of}) q JOIN t ON q.st.x = t.k2 AND q.b < t.k"
        ),
    ]);
    // Columns of unions that have several types.
    let of = "SELECT st, n FROM (SELECT {'x': i8} AS st, i8 AS n FROM t) a WHERE st.x > 0 \
              UNION ALL SELECT {'x': i32}, i32 FROM t";
    pair.check_all(&[
        &format!("SELECT st.x, n FROM ({of})"),
        &format!("SELECT max(st.x), count(n) FROM ({of}) z"),
        &format!("SELECT max(st.x), count(n), count(DISTINCT st) FROM ({of}) WHERE st.x <> n"),
    ]);
}

#[test]
fn frames_keep_slice_and_gather_them() -> warpframe::Result<()> {
    let session = builder().strict(true).build()?;
    session.register_batches("t", vec![batch(400, 9)])?;
    let frame = run(&session, "SELECT * FROM t")?;
    // As text, for NaN is not NaN.
    let lines = |frame: &DataFrame| {
        Rows::of(frame).rows.iter().map(|row| format!("{row:?}")).collect::<Vec<_>>()
    };
    let all = lines(&frame);
    assert!(lines(&frame.limit(13, 50)?) == all[13..63]);
    let filtered = frame.limit(13, 300)?.filter(col("id").gt(lit(100)))?;
    assert!(lines(&filtered) == all[101..313]);
    let taken = frame.take(&run(&session, "VALUES (7), (NULL), (399), (7)")?)?;
    assert!(lines(&taken)[0] == all[7] && lines(&taken)[2..] == [all[399].clone(), all[7].clone()]);
    assert!(Rows::of(&taken).rows[1].iter().all(|cell| *cell == Cell::Null));
    Ok(())
}

#[test]
fn parquet_files_hold_them() -> warpframe::Result<()> {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("t.parquet");
    let pair = pair(1500, 23);
    run(&pair.device, "SELECT * FROM t WHERE id % 5 > 0")?.write_parquet(&path)?;
    for session in [&pair.cpu, &pair.device] {
        session.register_parquet("p", &path)?;
    }
    pair.check("SELECT * FROM p ORDER BY id");
    pair.check("SELECT id, li, st['b'] AS b, unnest(ls) AS s FROM p WHERE array_length(li) > 1");
    Ok(())
}

#[test]
fn what_the_device_has_no_types_for_is_left_to_the_cpu() -> warpframe::Result<()> {
    let pair = pair(40, 29);
    let fallback = Pair::with(builder()).and("t", vec![batch(40, 29)]);
    for sql in [
        "SELECT id, [] AS a, [NULL] AS b FROM t ORDER BY id",
        "SELECT id, MAP {'k': i} AS m FROM t ORDER BY id",
        "SELECT id, array_length(ll, 2) FROM t WHERE array_length(ll) > 0 AND ll[1] IS NOT NULL ORDER BY id",
        "SELECT id, array_min(ll) AS a FROM t ORDER BY id",
    ] {
        assert_eq!(pair.agreement(sql), Agreement::Unsupported, "{sql}");
        let (expected, found) = (run(&fallback.cpu, sql)?, run(&fallback.device, sql)?);
        fallback.rows_agree(&expected, &found, sql);
    }
    Ok(())
}

#[test]
fn exhausted_memory_is_an_error_and_the_session_goes_on() {
    let pair = pair(2000, 7);
    for limit in ["64kB", "200kB", "400kB", "700kB", "1MB", "2MB"] {
        pair.gpu().set_memory_limit(limit.parse().expect("a limit"));
        for sql in [
            "SELECT * FROM t",
            "SELECT unnest(ls) AS a, st FROM t",
            "SELECT s, array_agg(ls ORDER BY id) AS a FROM t GROUP BY s",
            "SELECT array_concat(ls, ls, ls) AS a, {'x': li} AS b FROM t",
        ] {
            if let Err(error) = run(&pair.device, sql).and_then(|frame| frame.to_arrow()) {
                assert!(
                    matches!(error.kind(), ErrorKind::OutOfDeviceMemory { .. }),
                    "{sql}: {error:?}"
                );
            }
        }
    }
    pair.gpu().set_memory_limit("1GB".parse().expect("a limit"));
    pair.check("SELECT s, array_agg(ls ORDER BY id) AS a FROM t GROUP BY s");
}
