//! Functions of numbers; values of DuckDB 2.0.1.

use std::sync::Arc;

use warpframe::arrow::array::{ArrayRef, Decimal128Array, Float64Array};
use warpframe::prelude::col;

use super::check_rows;
use crate::differential::Pair;
use crate::tables::{Shape, columns};

fn decimal(digits: [Option<i128>; 6], precision: u8, scale: i8) -> ArrayRef {
    let array = Decimal128Array::from(digits.to_vec()).with_precision_and_scale(precision, scale);
    Arc::new(array.expect("they fit"))
}

#[test]
fn decimals_in_values_stay_what_they_are() {
    let pair = Pair::of(Shape::random(3, 97).batches());
    let rows = "(VALUES (10.50::DECIMAL(10,2), 1.5), (20.25, 2.5), (-3.5, 1), (1, 2)) v(x, y)";
    check_rows(
        &pair,
        &format!("SELECT x::VARCHAR, typeof(x), y, typeof(y) FROM {rows} ORDER BY x"),
        &[
            "-3.50|DECIMAL(22,2)|1|DOUBLE",
            "1.00|DECIMAL(22,2)|2|DOUBLE",
            "10.50|DECIMAL(22,2)|1.5|DOUBLE",
            "20.25|DECIMAL(22,2)|2.5|DOUBLE",
        ],
    );
}

#[test]
fn whole_numbers_of_decimals_fit_their_type() {
    let digits = [Some(999), Some(-999), Some(990), Some(-1), None, Some(0)];
    let wide = digits.map(|digits| digits.map(|digits| digits * 10i128.pow(35) + 1));
    let pair = Pair::of(columns(vec![
        ("a", decimal(digits, 3, 1)),
        ("b", decimal(digits, 3, 3)),
        ("c", decimal(wide, 38, 36)),
        ("d", decimal(digits, 4, 0)),
        ("x", Arc::new(Float64Array::from(vec![1.5, -1.5, 0.0, 2.0, -0.25, 1e300]))),
    ]));
    check_rows(
        &pair,
        "SELECT ceil(a), floor(a), ceil(b), floor(b), ceil(c), floor(c), ceil(d), floor(d) FROM t",
        &[
            "100|99|1|0|100|99|999|999",
            "-99|-100|0|-1|-99|-100|-999|-999",
            "99|99|1|0|100|99|990|990",
            "0|-1|0|-1|0|-1|-1|-1",
            "-|-|-|-|-|-|-|-",
            "0|0|0|0|1|0|0|0",
        ],
    );
    check_rows(
        &pair,
        "SELECT typeof(ceil(a)), typeof(floor(b)), typeof(ceil(c)), typeof(floor(d)), \
         typeof(ceil(x)), ceil(99.9::decimal(3, 1)), floor(-99.9::decimal(3, 1)) FROM t LIMIT 1",
        &["DECIMAL(3,0)|DECIMAL(3,0)|DECIMAL(38,0)|DECIMAL(4,0)|DOUBLE|100|-100"],
    );
    pair.check_all(&[
        "SELECT ceil(a) AS k, sum(floor(c)), count(*) FROM t GROUP BY ceil(a)",
        "SELECT a FROM t WHERE floor(a) = 99 OR floor(a) < -99.5 OR ceil(x) = 2",
        "SELECT a FROM t WHERE floor(x) = 1 ORDER BY ceil(a) DESC",
    ]);
    for session in [&pair.cpu, &pair.device] {
        let frame = session.table("t").expect("a table").select([col("a").ceil()]);
        let found = frame.and_then(|frame| frame.collect()).expect("rows");
        assert_eq!(
            found.schema().field(0).data_type(),
            &warpframe::arrow::datatypes::DataType::Decimal128(3, 0)
        );
    }
    let pair = pair.and("r", Shape::random(3000, 95).batches());
    pair.check("SELECT id, ceil(m) AS a, floor(m) AS b, ceil(m38) AS c, floor(-m38) AS d FROM r");
}

#[test]
fn even_numbers_are_away_from_zero() {
    let numbers = vec![Some(2.5), Some(-2.5), Some(3.0), Some(2.0), Some(0.0), Some(-0.1), None];
    let pair = Pair::of(columns(vec![("x", Arc::new(Float64Array::from(numbers)) as ArrayRef)]));
    check_rows(
        &pair,
        "SELECT even(x), even(CAST(x AS int)) FROM t",
        &["4|2", "-4|-2", "4|4", "2|2", "0|0", "-2|0", "-|-"],
    );
    check_rows(&pair, "SELECT even(3), even(2.5) FROM t LIMIT 1", &["4|4"]);
}
