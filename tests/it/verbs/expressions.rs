//! Functions of strings, times, lists and structs, and literals.

use std::sync::Arc;

use warpframe::Result;
use warpframe::arrow::array::{
    ArrayRef, Date32Array, Decimal128Array, Int32Array, StringArray, TimestampMicrosecondArray,
};
use warpframe::prelude::*;

use super::gives;
use crate::differential::Pair;
use crate::tables::columns;

/// A microsecond before 2024-03-01, and 1970-01-05T06:07:08.
fn pair() -> Pair {
    let times = vec![Some(1_709_251_199_999_999), Some(367_628_000_000), None];
    Pair::of(columns(vec![
        ("s", Arc::new(StringArray::from(vec![Some(" Ab-12 "), Some("éa"), None])) as ArrayRef),
        ("d", Arc::new(Date32Array::from(vec![Some(19_782), Some(4), None]))),
        ("ts", Arc::new(TimestampMicrosecondArray::from(times))),
        ("i", Arc::new(Int32Array::from(vec![Some(5), Some(-7), None]))),
        (
            "m",
            Arc::new(
                Decimal128Array::from(vec![Some(1250), Some(99), None])
                    .with_precision_and_scale(10, 2)
                    .expect("it fits"),
            ),
        ),
    ]))
}

#[test]
fn functions_of_strings() {
    let pair = pair();
    let s = || col("s").str();
    gives!(
        pair,
        |t| t.select([
            s().contains("b-").alias("1"),
            s().starts_with("é").alias("2"),
            s().ends_with("a").alias("3"),
            s().len_chars().alias("4"),
            s().len_bytes().alias("5"),
            s().strip_chars().alias("6"),
            s().replace_all("a", "xy").alias("7"),
            s().slice(1, Some(2)).alias("8"),
            s().slice(-3, Some(1)).alias("9"),
        ]),
        ["1", "2", "3", "4", "5", "6", "7", "8", "9"],
        ["1|0|0|7|7|Ab-12| Ab-12 |Ab|1", "0|1|1|2|3|éa|éxy|a|", "-|-|-|-|-|-|-|-|-"]
    );
    gives!(
        pair,
        |t| t.select([
            s().matches("[0-9]+").alias("1"),
            s().extract("([A-Z])(.)", 2).alias("2"),
            s().extract("[0-9]+", 0).alias("3"),
            s().replace("[0-9]", "#").alias("4"),
            s().replace_matches("[0-9]", "#").alias("5"),
            s().split_part("-", 1).alias("6"),
            s().find("-").alias("7"),
            s().reverse().alias("8"),
        ]),
        ["1", "2", "3", "4", "5", "6", "7", "8"],
        ["1|b|12| Ab-#2 | Ab-## | Ab|3| 21-bA ", "0|-|-|éa|éa|éa|-|aé", "-|-|-|-|-|-|-|-"]
    );
    gives!(
        pair,
        |t| t.select([
            s().strip_chars().str().pad_start(7, '.').alias("1"),
            s().strip_chars().str().pad_end(3, '.').alias("2"),
            col("i").cast(DataType::Utf8).str().zfill(4).alias("3"),
            s().strip_prefix(" A").alias("4"),
            s().strip_suffix("a").alias("5"),
            s().split("-").list().len().alias("6"),
            s().head(1).alias("7"),
            s().tail(1).alias("8"),
            s().strip_prefix("éa").str().split("-").list().len().alias("9"),
            s().slice(-3, Some(2)).alias("10"),
        ]),
        ["1", "2", "3", "4", "5", "6", "7", "8", "9", "10"],
        [
            "..Ab-12|Ab-12|0005|b-12 | Ab-12 |2| | |2|12",
            ".....éa|éa.|-007|éa|é|1|é|a|1|é",
            "-|-|-|-|-|-|-|-|-|-"
        ]
    );
    gives!(
        pair,
        |t| t.filter(s().len_bytes().gt(3))?.select([
            s().to_uppercase().alias("1"),
            s().to_lowercase().alias("2"),
            s().levenshtein("Ab-12").alias("3"),
        ]),
        ["1", "2", "3"],
        [" AB-12 | ab-12 |2"]
    );
}

#[test]
fn functions_of_times() {
    let pair = pair();
    let (d, ts) = (|| col("d").dt(), || col("ts").dt());
    gives!(
        pair,
        |t| t.select([
            d().year().alias("1"),
            d().quarter().alias("2"),
            d().month().alias("3"),
            d().week().alias("4"),
            d().day().alias("5"),
            d().ordinal_day().alias("6"),
            d().weekday().alias("7"),
            d().month_start().alias("8"),
            d().month_end().alias("9"),
        ]),
        ["1", "2", "3", "4", "5", "6", "7", "8", "9"],
        ["2024|1|2|9|29|60|4|19754|19782", "1970|1|1|2|5|5|1|0|30", "-|-|-|-|-|-|-|-|-"]
    );
    gives!(
        pair,
        |t| t.select([
            ts().hour().alias("1"),
            ts().minute().alias("2"),
            ts().second().alias("3"),
            ts().millisecond().alias("4"),
            ts().microsecond().alias("5"),
            ts().date().alias("6"),
            ts().truncate("hour").alias("7"),
            ts().strftime("%d.%m.%y").alias("8"),
            (col("ts") - col("d").dt().datetime()).dt().total_hours().alias("9"),
        ]),
        ["1", "2", "3", "4", "5", "6", "7", "8", "9"],
        [
            "23|59|59|999|999999|19782|1709247600000000|29.02.24|23",
            "6|7|8|0|0|4|367200000000|05.01.70|6",
            "-|-|-|-|-|-|-|-|-"
        ]
    );
}

#[test]
fn steps_and_literals() -> Result<()> {
    let pair = pair();
    let (quarter, later) = (col("ts").dt().every("15m")?, col("d").dt().offset_by("1mo")?);
    let week = col("d").dt().every("1w")?;
    let (day, moment) = (date(2024, 2, 29)?, datetime(1970, 1, 5, 6, 7, 8)?);
    let dear = decimal("12.5")?;
    gives!(
        pair,
        |t| t.select([
            quarter.clone().cast(DataType::Int64).alias("1"),
            later.clone().alias("2"),
            col("d").eq(day.clone()).alias("3"),
            col("ts").eq(moment.clone()).alias("4"),
            col("m").eq(dear.clone()).alias("5"),
            (10 - col("i")).alias("6"),
            col("i").is_in([5, 6]).alias("7"),
            col("i").clip(-1, 1).alias("8"),
            (!col("i").gt(0)).alias("9"),
            week.clone().cast(DataType::Date32).alias("10"),
        ]),
        ["1", "2", "3", "4", "5", "6", "7", "8", "9", "10"],
        [
            "1709250300000000|19811|1|0|1|5|1|1|0|19779",
            "367200000000|35|0|1|0|17|0|-1|1|4",
            "-|-|-|-|-|-|-|-|-|-"
        ]
    );
    Ok(())
}

#[test]
fn functions_of_lists_and_structs() {
    let pair = pair();
    let l = || list([col("i"), col("i") * 2, lit(1)]).list();
    gives!(
        pair,
        |t| t
            .select([
                l().len().alias("1"),
                l().sum().alias("2"),
                l().max().alias("3"),
                l().get(0).alias("4"),
                l().get(-1).alias("5"),
                l().contains(10).alias("6"),
                l().sort(true).alias("7"),
                l().slice(1, 2).alias("8"),
                structs([("a", col("i")), ("b", col("s"))]).structs().field("a").alias("9"),
            ])?
            .head(2),
        ["1", "2", "3", "4", "5", "6", "7", "8", "9"],
        ["3|16|10|5|1|1|[10, 5, 1]|[10, 1]|5", "3|-20|1|-7|1|0|[1, -7, -14]|[-14, 1]|-7"]
    );
}

#[test]
fn functions_of_numbers() {
    let pair = Pair::of(columns(vec![(
        "x",
        Arc::new(warpframe::arrow::array::Float64Array::from(vec![
            Some(0.5),
            Some(-1.0),
            Some(f64::NAN),
            Some(f64::NEG_INFINITY),
            None,
        ])) as ArrayRef,
    )]));
    let x = || col("x");
    gives!(
        pair,
        |t| t.select([
            x().is_finite().alias("1"),
            x().is_infinite().alias("2"),
            x().is_not_nan().alias("3"),
            x().truncate(0).alias("4"),
            x().replace([(0.5, 5.0), (-1.0, 1.0)]).is_in([1.0, 5.0]).alias("5"),
        ]),
        ["1", "2", "3", "4", "5"],
        ["1|0|1|0|1", "1|0|1|-1|1", "0|0|0|NaN|0", "0|1|1|-inf|0", "-|-|-|-|-"]
    );
    gives!(
        pair,
        |t| t.head(2)?.select([
            x().arcsin().alias("1"),
            x().arccos().alias("2"),
            x().arctan().alias("3"),
            x().sinh().alias("4"),
            x().cosh().alias("5"),
            x().tanh().alias("6"),
            x().arcsinh().alias("7"),
            (x() * 0.5).arctanh().alias("8"),
            (x() + 2.0).arccosh().alias("9"),
            x().cot().alias("10"),
            arctan2("x", lit(2.0)).alias("11"),
        ]),
        ["1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11"],
        [
            "0.523599|1.047198|0.463648|0.521095|1.127626|0.462117|0.481212|0.255413|1.566799|1.830488|0.244979",
            "-1.570796|3.141593|-0.785398|-1.175201|1.543081|-0.761594|-0.881374|-0.549306|0|-0.642093|-0.463648"
        ]
    );
}

#[test]
fn values_in_place_of_others_and_of_several_columns() {
    let pair = pair();
    let i = || col("i");
    gives!(
        pair,
        |t| t.select([
            i().replace([(5, 50)]).alias("1"),
            i().replace([(None, Some(0)), (Some(5), Some(6))]).alias("2"),
            i().replace_strict([(5, "five"), (-7, "minus seven")], "none").alias("3"),
            i().bitwise_and(4).alias("4"),
            i().bitwise_or(2).alias("5"),
            i().bitwise_xor(1).alias("6"),
            i().ne_missing(5).alias("7"),
        ]),
        ["1", "2", "3", "4", "5", "6", "7"],
        ["50|6|five|4|7|4|0", "-7|-7|minus seven|0|-5|-8|1", "-|0|none|-|-|-|1"]
    );
    gives!(
        pair,
        |t| t.with_columns([lit(2).alias("j")])?.select([
            max_horizontal(["i", "j"]).alias("1"),
            min_horizontal(["i", "j"]).alias("2"),
            sum_horizontal(["i", "j"]).alias("3"),
            mean_horizontal(["i", "j"]).alias("4"),
            all_horizontal([i().gt(0), col("j").gt(0)]).alias("5"),
            any_horizontal([i().gt(0), col("j").lt(0)]).alias("6"),
            concat_str([col("s"), i().cast(DataType::Utf8)], "/").alias("7"),
        ]),
        ["1", "2", "3", "4", "5", "6", "7"],
        ["5|2|7|3.5|1|1| Ab-12 /5", "2|-7|-5|-2.5|0|0|éa/-7", "2|2|2|2|-|-|"]
    );
    gives!(
        pair,
        |t| t.select([
            i().len().alias("1"),
            i().has_nulls().alias("2"),
            col("s").max_by("i").alias("3"),
            col("s").min_by("i").alias("4"),
        ]),
        ["1", "2", "3", "4"],
        ["3|1| Ab-12 |éa"]
    );
}

#[test]
fn more_functions_of_times_and_strings() -> Result<()> {
    let pair = pair();
    let (d, ts) = (|| col("d").dt(), || col("ts").dt());
    let day = duration("1d12h")?;
    gives!(
        pair,
        |t| t.select([
            d().iso_year().alias("1"),
            d().days_in_month().alias("2"),
            d().is_leap_year().alias("3"),
            ts().time().alias("4"),
            ts().timestamp().alias("5"),
            (col("ts") - d().datetime()).dt().total_milliseconds().alias("6"),
            (col("ts") - d().datetime()).dt().total_microseconds().alias("7"),
            (col("ts") + day.clone()).dt().date().alias("8"),
        ]),
        ["1", "2", "3", "4", "5", "6", "7", "8"],
        [
            "2024|29|1|23:59:59.999999|1709251199999999|86399999|86399999999|19784",
            "1970|31|0|06:07:08|367628000000|22028000|22028000000|5",
            "-|-|-|-|-|-|-|-"
        ]
    );
    gives!(
        pair,
        |t| t.select([
            ts().replace_time_zone("Europe/Berlin").dt().timestamp().alias("1"),
            ts().replace_time_zone("UTC")
                .dt()
                .convert_time_zone("Asia/Kolkata")
                .dt()
                .hour()
                .alias("2"),
            when(col("s").str().contains_any(["é", "12"]))
                .then(col("s").str().translate("A12", "B_"))
                .end()
                .alias("3"),
            ts().strftime("%Y-%m-%d %H:%M:%S").str().to_datetime().dt().timestamp().alias("4"),
            ts().strftime("%H:%M:%S").str().to_time().alias("5"),
            col("i").cast(DataType::Utf8).str().to_decimal(1).alias("6"),
        ]),
        ["1", "2", "3", "4", "5", "6"],
        [
            "1709247599999999|5| Bb-_ |1709251199000000|23:59:59|50",
            "364028000000|11|éa|367628000000|06:07:08|-70",
            "-|-|-|-|-|-"
        ]
    );
    let l = || list([col("i"), col("i") * 2, lit(1)]).list();
    gives!(
        pair,
        |t| t
            .select([
                l().tail(2).alias("1"),
                l().tail(9).list().len().alias("2"),
                l().set_symmetric_difference(list([lit(1), lit(3)])).list().sort(false).alias("3"),
            ])?
            .head(2),
        ["1", "2", "3"],
        ["[10, 1]|3|[3, 5, 10]", "[-14, 1]|3|[-14, -7, 3]"]
    );
    Ok(())
}
