use datafusion::arrow::datatypes::{Field, Schema, TimeUnit};
use datafusion::logical_expr::{cast, try_cast, when};
use datafusion::prelude::{col, lit};

use super::*;

fn schema() -> DFSchema {
    let columns = [
        ("i", DataType::Int32),
        ("b", DataType::Int64),
        ("f", DataType::Float64),
        ("s", DataType::Utf8View),
        ("d", DataType::Date32),
        ("t", DataType::Timestamp(TimeUnit::Microsecond, None)),
        ("p", DataType::Decimal128(15, 2)),
        ("q", DataType::Decimal128(38, 10)),
    ];
    let fields: Vec<_> =
        columns.into_iter().map(|(name, dtype)| Field::new(name, dtype, true)).collect();
    DFSchema::try_from(Schema::new(fields)).expect("names differ")
}

#[track_caller]
fn can(expr: Expr) {
    assert!(can_fail(&expr, &schema()), "{expr} can fail");
}

#[track_caller]
fn cannot(expr: Expr) {
    assert!(!can_fail(&expr, &schema()), "{expr} cannot fail");
}

fn ten() -> Expr {
    lit(10i64)
}

#[test]
fn divisions_of_integers_can_fail_unless_the_divisor_says_otherwise() {
    can(ten() / col("b"));
    can(ten() % col("b"));
    cannot(col("b") / ten());
    cannot(col("b") % lit(-1i64));
    can(col("b") / lit(-1i64));
    cannot(cast(col("i"), DataType::Int64) / lit(-1i64));
    can(col("b") / lit(0i64));
    cannot(col("f") / lit(0.0));
}

#[test]
fn sums_of_integers_can_fail_unless_types_and_constants_say_otherwise() {
    can(col("b") + lit(1i64));
    can(-col("b"));
    let wide = || cast(col("i"), DataType::Int64);
    cannot(wide() + lit(1i64));
    cannot(wide() * wide() - lit(7i64));
    cannot(-wide());
    can(wide() * wide() * lit(2i64) * lit(2i64));
    can(col("i") + col("i"));
    can(wide() + lit(i64::MAX));
    cannot(col("f") * col("f"));
}

#[test]
fn decimals_can_fail_where_digits_may_not_suffice() {
    cannot(col("p") * col("p"));
    cannot(col("p") + col("p"));
    can(col("q") * col("p"));
    can(col("q") + col("q"));
    can(col("p") / col("p"));
    cannot(col("p") / lit(ScalarValue::Decimal128(Some(250), 15, 2)));
}

#[test]
fn casts_can_fail_where_a_value_may_have_no_place() {
    can(cast(col("s"), DataType::Int32));
    cannot(try_cast(col("s"), DataType::Int32));
    can(cast(col("b"), DataType::Int32));
    cannot(cast(col("i"), DataType::Int64));
    can(cast(col("f"), DataType::Int64));
    cannot(cast(col("i"), DataType::Float32));
    cannot(cast(col("i"), DataType::Decimal128(12, 2)));
    can(cast(col("i"), DataType::Decimal128(11, 2)));
    cannot(cast(col("t"), DataType::Date32));
    can(cast(lit("x"), DataType::Int32));
    cannot(cast(lit("17"), DataType::Int32));
}

#[test]
fn guards_within_an_expression_count() {
    let quotient = || (ten() / col("b")).gt(lit(1i64));
    cannot(col("b").not_eq(lit(0i64)).and(quotient()));
    cannot(col("b").gt(lit(0i64)).and(col("i").gt(lit(1i32))).and(quotient()));
    can(quotient().and(col("b").not_eq(lit(0i64))));
    can(col("i").not_eq(lit(0i32)).and(quotient()));
    can(col("b").gt_eq(lit(0i64)).and(quotient()));
    cannot(col("b").eq(lit(0i64)).or(quotient()));
    can(col("b").not_eq(lit(0i64)).or(quotient()));
    // The least value over −1.
    can(col("b").not_eq(lit(0i64)).and((col("b") / col("b")).gt(lit(1i64))));
    cannot(col("b").gt(lit(0i64)).and((col("b") / col("b")).gt(lit(1i64))));
    // A cast that keeps every value keeps zero.
    cannot(col("i").not_eq(lit(0i32)).and((ten() / cast(col("i"), DataType::Int64)).gt(lit(1i64))));
    // One that rounds makes zero of other numbers.
    can(col("p")
        .gt(lit(ScalarValue::Decimal128(Some(0), 15, 2)))
        .and((ten() / cast(col("p"), DataType::Int64)).gt(lit(1i64))));
    let case =
        |condition: Expr| when(condition, ten() / col("b")).otherwise(lit(0i64)).expect("a CASE");
    cannot(case(col("b").lt(lit(0i64))));
    can(case(col("b").lt(lit(1i64))));
    can(case(col("b").eq(lit(0i64))));
    cannot(when(col("b").eq(lit(0i64)), lit(0i64)).otherwise(ten() / col("b")).expect("a CASE"));
}

#[test]
fn dates_leave_their_range_and_unknown_functions_may_do_anything() {
    let month = ScalarValue::new_interval_mdn(1, 0, 0);
    can((col("d") + lit(month)).gt(col("d")));
    cannot((col("d") - col("d")).gt(lit(3i64)));
    use datafusion::functions::expr_fn::{power, substr, substring, to_timestamp, upper};
    cannot(upper(col("s")));
    cannot(substr(col("s"), lit(2i64)));
    cannot(substring(col("s"), lit(2i64), lit(3i64)));
    can(substring(col("s"), lit(2i64), col("b")));
    can(power(col("f"), col("f")));
    can(to_timestamp(vec![col("s")]));
}
