//! Lists and structs: carried along by every operator, taken apart and made.

use std::sync::Arc;

use warpframe::DataFrame;
use warpframe::arrow::array::*;
use warpframe::arrow::buffer::{NullBuffer, OffsetBuffer};
use warpframe::arrow::compute::cast;
use warpframe::arrow::datatypes::{DataType, Field, Fields};
use warpframe::prelude::*;

use crate::differential::{Pair, Rows, builder, run};

/// Numbers that look random, and are the same every time.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
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

/// An array of any type: nulls at each level, with something beneath them, empty lists, few distinct values.
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
            let child = |field: &Arc<Field>| masked(&array(field.data_type(), rows, numbers), &nulls);
            let children = fields.iter().map(child).collect();
            return Arc::new(StructArray::new(fields.clone(), children, Some(nulls)));
        }
        DataType::Boolean => Arc::new(BooleanArray::from_iter((0..rows).map(|_| Some(numbers.below(2) == 1)))),
        DataType::Utf8 | DataType::Utf8View | DataType::Dictionary(_, _) => {
            let text = |n: u64| ["", "é", "b", "thirteen byte", "a string that does not fit its view"][n as usize];
            let texts = StringArray::from_iter_values((0..rows).map(|_| text(numbers.below(5))));
            cast(&texts, dtype).expect("strings of a type")
        }
        DataType::Float64 => {
            let float = |n: u64| [0.0, -0.0, 1.5, f64::NAN, f64::INFINITY, -2.25][n as usize];
            Arc::new(Float64Array::from_iter_values((0..rows).map(|_| float(numbers.below(6)))))
        }
        other => {
            let integers = Int64Array::from_iter_values((0..rows).map(|_| numbers.below(9) as i64 - 4));
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
fn types() -> Vec<(&'static str, DataType)> {
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
        ("st", structure(&[("a", DataType::Int64), ("b", DataType::Utf8View), ("c", list(DataType::Int32))])),
        ("ss", structure(&[("p", point), ("f", DataType::Float64), ("t", DataType::Boolean)])),
    ]
}

fn batch(rows: usize, seed: u64) -> RecordBatch {
    let mut numbers = Numbers(seed);
    let mut columns: Vec<(&str, ArrayRef)> = vec![("id", Arc::new(Int64Array::from_iter_values(0..rows as i64)))];
    let mut of = |dtype: DataType| array(&dtype, rows, &mut numbers);
    columns.extend([("i", of(DataType::Int64)), ("s", of(DataType::Utf8)), ("x", of(DataType::Float64))]);
    columns.extend(types().into_iter().map(|(name, dtype)| (name, of(dtype))));
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, name != "id")))
        .expect("a batch")
}

/// So many rows in slices of one batch, of which the first does not begin where the batch does.
fn pair(rows: usize, seed: u64) -> Pair {
    let whole = batch(rows + 7, seed);
    let cut = rows / 3;
    Pair::of(vec![whole.slice(5, cut), whole.slice(5 + cut, rows - cut)]).from(format!("{rows} rows of seed {seed}"))
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
    pair.check("SELECT * FROM t WHERE id % 7 < 3 AND s <> 'b' ORDER BY x DESC, id LIMIT 100 OFFSET 7");
    for (name, _) in types() {
        let check = |sql: &str| pair.check(&sql.replace("NAME", name));
        check("SELECT id, NAME FROM t WHERE NAME IS NOT NULL AND i > 0");
        check("SELECT a.id, a.NAME, b.NAME AS other FROM t a JOIN t b ON a.id = b.id + 1 WHERE a.i < 3");
        check("SELECT a.id, a.NAME, b.id AS j, b.NAME AS other FROM t a JOIN t b ON a.i = b.i AND b.id < 60");
        check("SELECT a.id, b.NAME FROM t a LEFT JOIN (SELECT * FROM t WHERE i > 1) b ON a.id = b.id");
        check("SELECT a.NAME, b.NAME AS other FROM t a FULL JOIN (SELECT * FROM t WHERE i > 1) b ON a.id = b.id - 500");
        check("SELECT id, NAME FROM t WHERE id IN (SELECT i FROM t)");
        check("SELECT id, NAME FROM t WHERE i > 2 UNION ALL SELECT -id, NAME FROM t WHERE s = 'b'");
        check("SELECT id, CASE WHEN i > 0 THEN NAME WHEN i < -2 THEN NULL ELSE NAME END AS c FROM t");
        check("SELECT a.id, coalesce(a.NAME, b.NAME) AS c FROM t a JOIN t b ON a.id = b.id + 1");
        check("SELECT s, count(NAME), count(*) FROM t GROUP BY s");
        check("SELECT s, first_value(NAME ORDER BY id), last_value(NAME ORDER BY id) FROM t GROUP BY s");
        check("SELECT first_value(NAME ORDER BY id DESC) FROM t WHERE i > 100");
        check("SELECT id, lag(NAME) OVER (PARTITION BY s ORDER BY id) AS l, row_number() OVER (ORDER BY id) FROM t");
        check("SELECT id, NAME, sum(i) OVER (PARTITION BY s ORDER BY id) FROM t");
    }
}

#[test]
fn they_are_keys_of_groups_and_joins() {
    for (rows, seed) in [(300, 2), (0, 1), (1, 5), (2100, 6)] {
        let pair = pair(rows, seed);
        for (name, _) in types().iter().filter(|(name, _)| !["lf", "ss"].contains(name)) {
            let check = |sql: &str| pair.check(&sql.replace("NAME", name));
            check("SELECT NAME, count(*) AS n, min(id) AS least, sum(i) FROM t GROUP BY NAME");
            check("SELECT DISTINCT NAME FROM t");
            check("SELECT s, count(DISTINCT NAME) FROM t GROUP BY s");
            check("SELECT NAME, i, count(*) FROM t WHERE id % 3 > 0 GROUP BY NAME, i HAVING count(*) > 1");
        }
        for name in ["li", "ls", "fl", "lb", "st"] {
            let check = |sql: &str| pair.check(&sql.replace("NAME", name));
            check("SELECT a.id, b.id AS other FROM t a JOIN t b ON a.NAME = b.NAME WHERE a.id < 100");
            check("SELECT id FROM t WHERE NAME IN (SELECT NAME FROM t WHERE i > 0)");
            check("SELECT NAME FROM t WHERE i > 0 INTERSECT SELECT NAME FROM t WHERE i < 0");
            check("SELECT a.id, a.NAME = b.NAME AS e, a.NAME <> b.NAME AS n FROM t a JOIN t b ON a.id = b.id + 1");
        }
        pair.check("SELECT id FROM t WHERE li = [1] OR li = [] OR ls <> ['b']");
        pair.check("SELECT [s, s] AS k, {'a': i > 0, 'b': [i]} AS m, count(*) FROM t GROUP BY 1, 2");
        pair.check("SELECT array_length(array_agg(DISTINCT li)) AS n FROM t");
    }
}

#[test]
fn their_order_is_left_to_the_cpu() {
    let pair = pair(50, 2);
    for name in ["li", "st"] {
        for sql in [
            "SELECT id FROM t ORDER BY NAME",
            "SELECT id FROM t WHERE NAME < NAME",
            "SELECT max(NAME) FROM t",
            "SELECT rank() OVER (ORDER BY NAME) FROM t",
            "SELECT count(*) OVER (PARTITION BY NAME) FROM t",
        ] {
            let sql = sql.replace("NAME", name);
            if let Ok(frame) = pair.device.sql(&sql).and_then(|frame| frame.collect()) {
                panic!("{} rows: {sql}", frame.num_rows());
            }
        }
    }
}

#[test]
fn frames_keep_slice_and_gather_them() -> warpframe::Result<()> {
    let session = builder().strict(true).build()?;
    session.register_batches("t", vec![batch(400, 9)])?;
    let frame = run(&session, "SELECT * FROM t")?;
    // As text, for NaN is not NaN.
    let lines = |frame: &DataFrame| Rows::of(frame).rows.iter().map(|row| format!("{row:?}")).collect::<Vec<_>>();
    let all = lines(&frame);
    assert!(lines(&frame.limit(13, 50)?) == all[13..63]);
    let filtered = frame.limit(13, 300)?.filter(col("id").gt(lit(100)))?;
    assert!(lines(&filtered) == all[101..313]);
    Ok(())
}

/// The columns of lists, in each of which `x` is a literal of an element's type.
const LISTS: [(&str, &str); 10] = [
    ("li", "3"),
    ("ls", "'thirteen byte'"),
    ("lv", "'é'"),
    ("lf", "CAST('NaN' AS double)"),
    ("fl", "CAST(2 AS int)"),
    ("lb", "true"),
    ("lm", "CAST(-1 AS decimal(10, 2))"),
    ("lw", "CAST(4 AS decimal(30, 2))"),
    ("ld", "DATE '1970-01-03'"),
    ("lf", "-0.0"),
];

#[test]
fn elements_are_found_from_either_end() {
    let pair = pair(300, 21);
    for (name, _) in types().iter().filter(|(_, dtype)| !matches!(dtype, DataType::Struct(_))) {
        pair.check(&format!("SELECT id, {name}[1] AS a, {name}[-2] AS b, {name}[i] AS c, {name}[0] AS d FROM t"));
        pair.check(&format!("SELECT id, {name}[2147483647] AS a, {name}[CAST(NULL AS bigint)] AS b FROM t"));
        pair.check(&format!("SELECT id, {name}[2:3] AS a, {name}[i:2] AS b, {name}[-3:-2] AS c FROM t"));
        pair.check(&format!("SELECT id, array_pop_front({name}) AS a, array_pop_back({name}) AS b FROM t"));
        pair.check(&format!("SELECT id FROM t WHERE {name}[1] IS NULL"));
    }
    pair.check("SELECT id, ll[1][2] AS a, lp[1]['x'] AS b, st['c'][1] AS c, fp[2]['y'] AS d FROM t");
    pair.check("SELECT ls[1] AS k, count(*), sum(li[2]) FROM t GROUP BY ls[1]");
    pair.check("SELECT id, ls[1] AS k FROM t ORDER BY ls[1], id");
}

#[test]
fn lists_are_measured_and_searched() {
    let pair = pair(300, 5);
    for (name, x) in LISTS {
        let check = |sql: &str| pair.check(&sql.replace("NAME", name).replace("NEEDLE", x));
        check("SELECT id, array_length(NAME), array_length(NAME, 1), cardinality(NAME), empty(NAME) FROM t");
        check("SELECT id, array_has(NAME, NEEDLE) AS a, array_position(NAME, NEEDLE) AS b FROM t");
        check("SELECT id, array_has(NAME, NAME[2]) AS a, array_position(NAME, NAME[-1]) AS b FROM t");
        check("SELECT id, array_min(NAME) AS a, array_max(NAME) AS b FROM t");
        check("SELECT id FROM t WHERE array_has(NAME, NEEDLE) OR array_max(NAME) = NEEDLE");
    }
    pair.check("SELECT id, cardinality(ll), array_length(lp), cardinality(fp) FROM t");
    for name in ["li", "lf", "fl", "lm", "lw"] {
        pair.check(&format!("SELECT id, array_sum({name}), array_avg({name}), array_product({name}) FROM t"));
    }
    pair.check("SELECT s, sum(array_length(li)), max(array_max(li)), avg(array_sum(lf[1:2])) FROM t GROUP BY s");
}

#[test]
fn structs_are_taken_apart_and_made() {
    let pair = pair(300, 8);
    pair.check("SELECT id, st['a'] AS a, st['b'] AS b, st['c'] AS c, ss['p']['x'] AS x, ss['t'] AS t FROM t");
    pair.check("SELECT st['b'] AS b, count(*), sum(st['a']), max(ss['p']['x']) FROM t GROUP BY st['b']");
    pair.check("SELECT a.id, b.id AS other FROM t a JOIN t b ON a.st['a'] = b.ss['p']['x'] WHERE a.id < 20");
    pair.check("SELECT id, named_struct('x', i, 'y', s, 'l', li) AS n, struct(i, st, x > 0) AS u FROM t");
    pair.check("SELECT id, {'x': i + 1, 'y': {'z': s}} AS n FROM t WHERE i > 0");
    pair.check("SELECT id, n['y']['z'] AS z FROM (SELECT id, {'x': i, 'y': {'z': s}} AS n FROM t) WHERE n['x'] > 1");
    pair.check("SELECT id, CASE WHEN i > 0 THEN {'x': i, 'y': s} WHEN i < 0 THEN {'x': 0, 'y': 'no'} END AS c FROM t");
    pair.check("SELECT id, {'k': 1, 'v': 'constant'} AS c, {'k': CAST(NULL AS int), 'v': [1, 2]} AS d FROM t");
    pair.check("SELECT id, st['b'] FROM t ORDER BY st['b'] DESC, ss['p']['x'], id");
}

#[test]
fn lists_are_made() {
    let pair = pair(300, 13);
    pair.check("SELECT id, [i, id, NULL, i + 1] AS a, make_array(s, 'x', s || '-' || s || ' and more') AS b FROM t");
    pair.check(
        "SELECT id, [x, 1.5] AS a, [i > 0, true] AS b, [[i, 1], [2]] AS c, [{'x': i, 'y': s}, NULL] AS d FROM t",
    );
    pair.check("SELECT id, [li, [id]] AS a, [ls, ls] AS b, [st, st] AS c FROM t WHERE i IS NOT NULL");
    pair.check(
        "SELECT id, [1, 2, 3] AS a, ['é', NULL, 'a string that does not fit its view'] AS b, [[1], []] AS c FROM t",
    );
    pair.check("SELECT id, [id, i][2] AS a, [s, 'z'][1] AS b, array_length([i, i, i]) AS c FROM t");
    pair.check("SELECT id, array_sum([i, id, 2]) AS a, array_max([s, 'c']) AS b, array_has([s, 'b'], 'b') AS c FROM t");
    pair.check("SELECT id, CAST(li AS varchar[]) AS a, CAST(li AS double[]) AS b, CAST(ls AS varchar[]) AS c FROM t");
    pair.check("SELECT id, CAST(lm AS decimal(20, 4)[]) AS a, CAST([i, 2] AS smallint[]) AS b FROM t");
    pair.check("SELECT id, [i] AS a FROM t UNION ALL SELECT -id, li FROM t");
    pair.check("SELECT a.id, [a.i, b.i] AS p FROM t a JOIN t b ON a.id = b.id + 3 WHERE a.i > b.i");
    pair.check("SELECT id, CASE WHEN i > 0 THEN [i] WHEN i < 0 THEN li ELSE [0, 0] END AS c FROM t");
    assert!(pair.check_error("SELECT id, CAST(['1', s] AS int[]) AS a FROM t").to_string().contains("cast"));
}

#[test]
fn lists_and_structs_are_unnested() {
    for (rows, seed) in [(300, 31), (0, 1), (1, 2), (2100, 4)] {
        let pair = pair(rows, seed);
        for (name, _) in types() {
            pair.check(&format!("SELECT id, unnest({name}) FROM t WHERE i > -2"));
        }
        pair.check("SELECT id, unnest(li) AS a, unnest(ls) AS b, unnest(fl) AS c, s, st FROM t");
        pair.check("SELECT id, unnest(unnest(ll)) AS a, unnest(li) AS b FROM t");
        pair.check("SELECT id, unnest(ll) AS a, unnest(unnest(ll)) AS b FROM t");
        pair.check("SELECT id, unnest(unnest(lp)) FROM t");
        pair.check("SELECT a, count(*), sum(id) FROM (SELECT id, unnest(ls) AS a FROM t) u GROUP BY a ORDER BY a");
        pair.check("SELECT a.id, t.s FROM (SELECT id, unnest(li) AS a FROM t) a JOIN t ON a.a = t.id");
        pair.check("SELECT id, unnest([i, id, NULL]) AS a FROM t WHERE s <> 'b'");
        pair.check("SELECT id, a FROM (SELECT id, unnest(li) AS a FROM t) u WHERE a > 1 LIMIT 1000");
    }
    let pair = pair(20, 1);
    pair.check("SELECT unnest([1, 2, 3]) AS a, unnest(['x', 'y']) AS b");
    pair.check("SELECT * FROM unnest([1, 2, NULL]) AS u(a)");
}

#[test]
fn groups_are_collected_into_lists() {
    for (rows, seed) in [(300, 41), (0, 1), (1, 2), (2100, 3)] {
        let pair = pair(rows, seed);
        for name in ["i", "s", "x", "li", "ls", "st", "lp"] {
            let check = |sql: &str| pair.check(&sql.replace("NAME", name));
            check("SELECT s, array_agg(NAME ORDER BY id) AS a, count(*) FROM t GROUP BY s");
            check("SELECT array_agg(NAME ORDER BY id DESC) AS a FROM t");
            check("SELECT array_agg(NAME ORDER BY id) AS a FROM t WHERE id < 0");
            check("SELECT i, array_agg(NAME ORDER BY id) FILTER (WHERE x > 0) AS a FROM t GROUP BY i");
            check("SELECT i, array_agg(NAME ORDER BY s NULLS FIRST, id) IGNORE NULLS AS a, sum(id) FROM t GROUP BY i");
        }
        for name in ["i", "s"] {
            let check = |sql: &str| pair.check(&sql.replace("NAME", name));
            check("SELECT i, array_agg(DISTINCT NAME ORDER BY NAME) AS a FROM t GROUP BY i");
            check("SELECT array_agg(DISTINCT NAME ORDER BY NAME DESC NULLS LAST) FILTER (WHERE id > 10) AS a FROM t");
        }
        pair.check("SELECT i, cardinality(array_agg(DISTINCT s)) AS n FROM t GROUP BY i");
        pair.check("SELECT s, array_agg(i ORDER BY id)[2] AS a, array_sum(array_agg(i)) AS b FROM t GROUP BY s");
        pair.check("SELECT s, unnest(l) AS u FROM (SELECT s, array_agg(id ORDER BY id) AS l FROM t GROUP BY s) g");
        pair.check("SELECT s, array_agg(i ORDER BY id) AS a FROM t GROUP BY ROLLUP (s)");
        pair.check("SELECT id, array_sum(array_agg(i) OVER (PARTITION BY s)) AS a FROM t");
    }
}

#[test]
fn lists_are_made_of_lists() {
    // Where a list is null DataFusion appends to, and flattens, the elements beneath it.
    let pair = pair(300, 17);
    for (name, x) in LISTS {
        let check = |sql: &str| pair.check(&sql.replace("NAME", name).replace("NEEDLE", x));
        check(
            "SELECT id, array_append(NAME, NEEDLE) AS a, array_prepend(NEEDLE, NAME) AS b FROM t WHERE NAME IS NOT NULL",
        );
        check("SELECT id, array_append(NAME, NAME[2]) AS a FROM t WHERE NAME IS NOT NULL");
        check("SELECT a.id, array_concat(a.NAME, b.NAME, a.NAME) AS c FROM t a JOIN t b ON a.id = b.id + 1");
        check("SELECT id, array_reverse(NAME) AS a FROM t");
        check("SELECT id, array_remove_all(NAME, NEEDLE) AS a, array_positions(NAME, NEEDLE) AS b FROM t");
        check(
            "SELECT a.id, array_has_any(a.NAME, b.NAME) AS c, array_has_all(a.NAME, b.NAME[1:1]) AS d
            FROM t a JOIN t b ON a.id = b.id + 1",
        );
    }
    pair.check("SELECT id, li || [i] AS a, ls || ls AS b, i || li AS c, li || i AS d FROM t WHERE li IS NOT NULL");
    pair.check(
        "SELECT id, flatten([li, [id]]) AS a, flatten([ls, lv, ['z']]) AS b, flatten(li) AS c FROM t WHERE i IS NOT NULL",
    );
    pair.check("SELECT id, array_reverse(lp) AS a, array_concat(lp, lp) AS b, array_compact(li) AS c FROM t");
    pair.check("SELECT id, array_has_all(li, [1, 2]) AS a, li @> [1] AS b, array_has_any(ls, ['b', NULL]) AS c FROM t");
}

#[test]
fn texts_are_split_and_put_together() {
    let pair = pair(300, 19);
    pair.check(
        "SELECT id, string_to_array(s, ' ') AS a, string_to_array(s, 'that') AS b, string_to_array(s, '') AS c FROM t",
    );
    pair.check("SELECT id, string_to_array(s, NULL) AS a, string_to_array(s || ',' || id, ',', 'b') AS b FROM t");
    pair.check("SELECT id, string_to_array(s, ls[1]) AS a FROM t WHERE ls[1] IS NOT NULL");
    pair.check("SELECT id, array_to_string(ls, ', ') AS a, array_to_string(li, '-', '?') AS b FROM t");
    pair.check("SELECT id, array_to_string(ld, s) AS a, array_to_string(lm, ' ', NULL) AS b, array_to_string(lb, '') AS c FROM t");
    pair.check("SELECT w, count(*) FROM (SELECT unnest(string_to_array(s, ' ')) AS w FROM t) u GROUP BY w ORDER BY w");
    pair.check(
        "SELECT id, array_length(string_to_array(s, ' ')) AS n FROM t WHERE array_has(string_to_array(s, ' '), 'fit')",
    );
}
