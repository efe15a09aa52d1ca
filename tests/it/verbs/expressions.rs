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
        ["1|0|0|7|7|Ab-12| Ab-12 |Ab|1", "0|1|1|2|3|éa|éxy|a|é", "-|-|-|-|-|-|-|-|-"]
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
        ]),
        ["1", "2", "3", "4", "5", "6", "7", "8"],
        ["..Ab-12|Ab-12|0005|b-12 | Ab-12 |2| | ", ".....éa|éa.|-007|éa|é|1|é|a", "-|-|-|-|-|-|-|-"]
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
        ]),
        ["1", "2", "3", "4", "5", "6", "7", "8", "9"],
        ["1709250300000000|19811|1|0|1|5|1|1|0", "367200000000|35|0|1|0|17|0|-1|1", "-|-|-|-|-|-|-|-|-"]
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
