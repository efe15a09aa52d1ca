//! Tables that every operator must survive: all types, nulls with garbage beneath, and the shapes
//! that break things.

use std::sync::Arc;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use warpframe::arrow::array::*;
use warpframe::arrow::buffer::NullBuffer;
use warpframe::arrow::compute::cast;
use warpframe::arrow::datatypes::{DataType, Date32Type, Field, Int32Type, Schema};

/// How the values of each column are related.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Values {
    Random,
    /// No valid value but in `id`.
    AllNull,
    /// One value everywhere.
    Same,
    /// As many values as rows, where the type has so many.
    Distinct,
    Ascending,
}

/// How rows are spread over batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Batches {
    One,
    /// Arrays that begin in the middle of their buffers.
    Sliced,
    /// Some of them empty.
    Several,
}

/// Of all queries, types or frames those that are tried on the `at`-th of several tables: all on
/// the first, which shows most, and on the others a third each, so that all kinds of tables and all
/// of these are met. All on all, where `WARPFRAME_EVERY_TABLE` is 1.
pub fn share<T>(all: impl IntoIterator<Item = T>, at: usize) -> impl Iterator<Item = T> {
    let whole = std::env::var_os("WARPFRAME_EVERY_TABLE").is_some_and(|value| value == "1");
    let (first, every) = if at == 0 || whole { (0, 1) } else { (at % 3, 3) };
    all.into_iter().skip(first).step_by(every)
}

/// What a table is made from.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    pub rows: usize,
    pub values: Values,
    pub batches: Batches,
    /// Share of nulls.
    pub nulls: f64,
    pub seed: u64,
}

impl Shape {
    pub fn random(rows: usize, seed: u64) -> Shape {
        Shape { rows, values: Values::Random, batches: Batches::One, nulls: 0.15, seed }
    }

    /// The shapes of the house rules; tiles have 256 to 2048 rows.
    pub fn all() -> Vec<Shape> {
        let sizes = [0, 1, 31, 32, 33, 2047, 2048, 2049, 20_000];
        let mut shapes: Vec<_> =
            sizes.iter().map(|rows| Shape::random(*rows, *rows as u64)).collect();
        let base = Shape::random(5000, 7);
        for values in [Values::AllNull, Values::Same, Values::Distinct, Values::Ascending] {
            shapes.push(Shape { values, ..base });
        }
        shapes.push(Shape { nulls: 0.0, ..base });
        shapes.push(Shape { batches: Batches::Sliced, ..base });
        shapes.push(Shape { batches: Batches::Several, ..base });
        shapes
    }

    /// The table, in batches.
    pub fn batches(&self) -> Vec<RecordBatch> {
        let rows = match self.batches {
            Batches::Sliced => self.rows + 20,
            _ => self.rows,
        };
        let whole = Shape { rows, ..*self }.batch();
        match self.batches {
            Batches::One => vec![whole],
            Batches::Sliced => vec![whole.slice(13, self.rows)],
            Batches::Several => {
                let mut cuts = [0, 1, 1, rows / 3, rows / 3 + 7, rows].map(|cut| cut.min(rows));
                cuts.sort();
                cuts.windows(2).map(|cut| whole.slice(cut[0], cut[1] - cut[0])).collect()
            }
        }
    }

    fn batch(&self) -> RecordBatch {
        let mut make = Maker { shape: *self, rng: StdRng::seed_from_u64(self.seed) };
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("id", Arc::new(Int64Array::from_iter_values(0..self.rows as i64))),
            ("k", make.column(|r, _| r.random_range(0..7i32), |i| i as i32, Int32Array::new)),
            ("k2", make.column(|r, _| r.random_range(-3..=3i16), |i| i as i16, Int16Array::new)),
            (
                "w",
                make.column(
                    |r, _| r.random_range(0..40i64) * 0x1_0001_0001,
                    |i| (i * 0x1_0001) as i64,
                    Int64Array::new,
                ),
            ),
            ("i8", make.column(|r, _| r.random(), |i| i as i8, Int8Array::new)),
            ("i16", make.column(|r, _| r.random(), |i| i as i16, Int16Array::new)),
            ("i32", make.column(|r, _| r.random(), |i| i as i32, Int32Array::new)),
            ("i64", make.column(|r, _| r.random(), |i| i as i64, Int64Array::new)),
            ("u8", make.column(|r, _| r.random(), |i| i as u8, UInt8Array::new)),
            ("u16", make.column(|r, _| r.random(), |i| i as u16, UInt16Array::new)),
            ("u32", make.column(|r, _| r.random(), |i| i as u32, UInt32Array::new)),
            ("u64", make.column(|r, _| r.random(), |i| i, UInt64Array::new)),
            ("f32", make.column(|r, _| special(r) as f32, |i| i as f32 / 4.0, Float32Array::new)),
            ("f64", make.column(|r, _| special(r), |i| i as f64 / 8.0, Float64Array::new)),
            (
                "x",
                make.column(
                    |r, _| f64::from(r.random_range(-10_000..10_000)) / 64.0,
                    |i| i as f64 + 0.5,
                    Float64Array::new,
                ),
            ),
            ("spread", make.column(|r, _| spread(r), |i| i as f64 * 1e100, Float64Array::new)),
            ("b", make.booleans()),
            (
                "d",
                make.column(|r, _| r.random_range(-1000..20_000), |i| i as i32, Date32Array::new),
            ),
            (
                "ts",
                make.column(
                    |r, _| r.random_range(-4_000_000_000_000_000..4_000_000_000_000_000),
                    |i| i as i64,
                    TimestampMicrosecondArray::new,
                ),
            ),
            (
                "ts_s",
                make.column(
                    |r, _| r.random_range(-4_000_000_000..4_000_000_000),
                    |i| i as i64,
                    TimestampSecondArray::new,
                ),
            ),
            (
                "ts_ms",
                make.column(
                    |r, _| r.random_range(0..1_000_000),
                    |i| i as i64,
                    TimestampMillisecondArray::new,
                ),
            ),
            (
                "ts_ns",
                make.column(
                    |r, _| r.random_range(0..4_000_000_000_000_000_000),
                    |i| i as i64,
                    TimestampNanosecondArray::new,
                ),
            ),
            ("m", make.decimals(15, 2, |r| r.random_range(-10_000_000..10_000_000))),
            ("m38", make.decimals(38, 10, |r| r.random_range(-10i128.pow(35)..10i128.pow(35)))),
            ("s", make.strings(|r| WORDS[r.random_range(0..WORDS.len())].into())),
            ("sl", {
                let plain = make.strings(|r| {
                    format!(
                        "{}{}",
                        WORDS[r.random_range(0..WORDS.len())],
                        r.random_range(0..1_000_000)
                    )
                });
                cast(&plain, &DataType::LargeUtf8).expect("strings cast")
            }),
            ("sv", {
                let plain = make.strings(|r| {
                    format!("{}{}", r.random_range(0..3000), WORDS[r.random_range(0..WORDS.len())])
                });
                cast(&plain, &DataType::Utf8View).expect("strings cast")
            }),
            ("sd", {
                let plain = make.strings(|r| WORDS[r.random_range(0..WORDS.len())].into());
                let encoded = cast(
                    &plain,
                    &DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)),
                );
                encoded.expect("strings cast").as_dictionary::<Int32Type>().clone().into_array()
            }),
        ];
        let fields: Vec<_> = (columns.iter())
            .map(|(name, array)| Field::new(*name, array.data_type().clone(), *name != "id"))
            .collect();
        RecordBatch::try_new(
            Arc::new(Schema::new(fields)),
            columns.into_iter().map(|(_, array)| array).collect(),
        )
        .expect("columns of one length")
    }
}

/// Beside short ones: of 12 and 13 bytes, longer ones that agree in their beginnings, and ones with
/// zero bytes at the end.
pub const WORDS: [&str; 16] = [
    "",
    "é",
    "a",
    "ab",
    "b",
    "twelve bytes",
    "thirteen byte",
    "thirteen bytf",
    "%",
    "_",
    "a%b",
    "naïve façade",
    "a long string whose end differs: 1",
    "a long string whose end differs: 2",
    "ab\0",
    "Zebra crossing, twice",
];

fn special(rng: &mut StdRng) -> f64 {
    const SPECIAL: [f64; 8] =
        [f64::NAN, -0.0, 0.0, f64::INFINITY, f64::NEG_INFINITY, 1e-40, -2.5, 2.5];
    match rng.random_range(0..4) {
        0 => SPECIAL[rng.random_range(0..SPECIAL.len())],
        _ => f64::from(rng.random_range(-1000..1000)) / 8.0,
    }
}

fn spread(rng: &mut StdRng) -> f64 {
    let mantissa: f64 = rng.random_range(1.0..2.0);
    mantissa * 2f64.powi(rng.random_range(-400..400))
}

struct Maker {
    shape: Shape,
    rng: StdRng,
}

impl Maker {
    /// Values below nulls stay what they were drawn.
    fn nulls(&mut self) -> Option<NullBuffer> {
        match (self.shape.values, self.shape.nulls) {
            (Values::AllNull, _) => Some(NullBuffer::new_null(self.shape.rows)),
            (_, 0.0) => None,
            (_, share) => Some(
                (0..self.shape.rows)
                    .map(|_| !self.rng.random_bool(share))
                    .collect::<Vec<_>>()
                    .into(),
            ),
        }
    }

    fn values<T: PartialOrd + Clone + Default>(
        &mut self,
        draw: impl Fn(&mut StdRng, usize) -> T,
        distinct: impl Fn(u64) -> T,
    ) -> Vec<T> {
        let rows = self.shape.rows;
        let mut values: Vec<T> = match self.shape.values {
            // An odd factor permutes the numbers below 2^13.
            Values::Distinct => (0..rows as u64)
                .map(|i| distinct(if rows <= 8192 { i * 2731 % 8192 } else { i }))
                .collect(),
            Values::Same => vec![draw(&mut self.rng, 0); rows],
            _ => (0..rows).map(|i| draw(&mut self.rng, i)).collect(),
        };
        if self.shape.values == Values::Ascending {
            values.retain(|v| v.partial_cmp(v).is_some());
            values.sort_by(|a, b| a.partial_cmp(b).expect("NaN was removed"));
            let last = values.last().cloned().unwrap_or_default();
            values.resize(rows, last);
        }
        values
    }

    fn column<T, A>(
        &mut self,
        draw: impl Fn(&mut StdRng, usize) -> T,
        distinct: impl Fn(u64) -> T,
        array: impl Fn(warpframe::arrow::buffer::ScalarBuffer<T>, Option<NullBuffer>) -> A,
    ) -> ArrayRef
    where
        T: PartialOrd + warpframe::arrow::datatypes::ArrowNativeType,
        A: Array + 'static,
    {
        let values = self.values(draw, distinct);
        Arc::new(array(values.into(), self.nulls()))
    }

    fn decimals(
        &mut self,
        precision: u8,
        scale: i8,
        draw: impl Fn(&mut StdRng) -> i128,
    ) -> ArrayRef {
        let values = self.values(|rng, _| draw(rng), |i| i128::from(i) * 7);
        let array = Decimal128Array::new(values.into(), self.nulls());
        Arc::new(array.with_precision_and_scale(precision, scale).expect("a legal decimal"))
    }

    fn booleans(&mut self) -> ArrayRef {
        let values = self.values(|rng, _| rng.random::<bool>(), |i| i % 2 == 0);
        Arc::new(BooleanArray::new(values.into(), self.nulls()))
    }

    fn strings(&mut self, draw: impl Fn(&mut StdRng) -> String) -> ArrayRef {
        let values = self
            .values(|rng, _| draw(rng), |i| format!("word {i:05}{}", "+".repeat(i as usize % 9)));
        let (offsets, characters, _) = StringArray::from(values).into_parts();
        Arc::new(StringArray::new(offsets, characters, self.nulls()))
    }
}

trait IntoArray {
    fn into_array(self) -> ArrayRef;
}

impl IntoArray for DictionaryArray<Int32Type> {
    /// With an entry that no key names.
    fn into_array(self) -> ArrayRef {
        let (keys, values) = self.into_parts();
        let unused = StringArray::from(vec!["nobody's"]);
        let values =
            warpframe::arrow::compute::concat(&[&values, &unused]).expect("both are strings");
        Arc::new(DictionaryArray::new(keys, values))
    }
}

/// A table of nullable columns.
pub fn columns(columns: Vec<(&str, ArrayRef)>) -> Vec<RecordBatch> {
    vec![
        RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(n, a)| (n, a, true)))
            .expect("one length"),
    ]
}

#[test]
fn tables_hold_what_they_promise() {
    let batch = Shape::random(1000, 3).batches().remove(0);
    let dates = batch.column_by_name("d").expect("a column").as_primitive::<Date32Type>();
    assert!(dates.null_count() > 0 && dates.values().iter().all(|d| *d != 0 || d % 7 == 0));
    let beneath = (0..1000).filter(|i| dates.is_null(*i)).map(|i| dates.values()[i]);
    assert!(beneath.clone().any(|d| d != 0), "garbage lies under nulls");
    let sliced = Shape { batches: Batches::Sliced, ..Shape::random(50, 3) }.batches().remove(0);
    assert_eq!((sliced.num_rows(), sliced.column(0).offset() == 0), (50, true));
    let several = Shape { batches: Batches::Several, ..Shape::random(50, 3) }.batches();
    assert!(several.len() > 3 && several.iter().any(|b| b.num_rows() == 0));
}
