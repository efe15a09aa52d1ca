//! Rows of every flat type that columns have in files.

use std::sync::Arc;

use warpframe::arrow::array::*;
use warpframe::arrow::buffer::NullBuffer;
use warpframe::arrow::compute::{cast, nullif};
use warpframe::arrow::datatypes::*;

/// Where nulls are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nulls {
    /// The columns are required.
    Required,
    None,
    Some,
    All,
    /// In some runs of 100 rows all are null, in some a few, in some none: pages of 100 rows
    /// differ.
    ByPage,
}

impl Nulls {
    fn at(self, row: usize, column: usize) -> bool {
        match self {
            Nulls::Required | Nulls::None => false,
            Nulls::Some => (row * 7 + column * 3).is_multiple_of(5),
            Nulls::All => true,
            Nulls::ByPage => match (row / 100 + column) % 3 {
                0 => false,
                1 => true,
                _ => row.is_multiple_of(9),
            },
        }
    }
}

/// What rows to make.
#[derive(Debug, Clone, Copy)]
pub struct Of {
    pub rows: usize,
    pub nulls: Nulls,
    /// Different values of a column.
    pub distinct: usize,
    /// Other numbers make other values.
    pub salt: u64,
}

/// Columns that the device leaves to the host's reader wherever they stand: their types in the
/// table are not those of the file.
pub const BY_HOST: [&str; 4] = ["date64", "coded", "interval_ym", "interval_dt"];

impl Of {
    /// Bits that look like chance, equal where the row's number agrees modulo `distinct`.
    fn bits(&self, column: usize) -> impl Iterator<Item = u64> + use<> {
        let (distinct, salt) = (self.distinct as u64, self.salt);
        (0..self.rows as u64).map(move |row| {
            let mut x = (row % distinct + 1) ^ salt << 32 ^ (column as u64) << 48;
            x = (x ^ x >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            x = (x ^ x >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
            x ^ x >> 31
        })
    }

    /// Integers of so many bits, positive and negative.
    fn integers(&self, column: usize, bits: u32) -> Int64Array {
        Int64Array::from_iter_values(self.bits(column).map(|x| x as i64 >> (64 - bits)))
    }

    fn strings(&self, column: usize) -> impl Iterator<Item = String> + use<> {
        self.bits(column).map(|x| match x % 5 {
            0 => String::new(),
            1 => format!("{}", x % 1000),
            2 => format!("é{}ü", x % 100),
            3 => format!("twelve {:05}", x % 100_000),
            _ => format!("a string that is longer than a view has room for, number {x}"),
        })
    }

    fn bytes(&self, column: usize) -> impl Iterator<Item = Vec<u8>> + use<> {
        self.bits(column).map(|x| x.to_le_bytes().repeat(3)[..(x % 25) as usize].to_vec())
    }

    /// The rows, with a column of every type.
    pub fn batch(&self) -> RecordBatch {
        let mut columns: Vec<(String, ArrayRef)> = vec![];
        let mut put = |name: &str, array: ArrayRef| columns.push((name.into(), array));
        let to = |array: &dyn Array, dtype: &DataType| cast(array, dtype).expect("a cast");
        put("bool", Arc::new(BooleanArray::from_iter(self.bits(0).map(|x| Some(x % 3 == 0)))));
        for (at, (name, dtype, bits)) in [
            ("i8", DataType::Int8, 8),
            ("i16", DataType::Int16, 16),
            ("i32", DataType::Int32, 32),
            ("i64", DataType::Int64, 64),
            ("date32", DataType::Date32, 20),
            ("time32_s", DataType::Time32(TimeUnit::Second), 32),
            ("time32_ms", DataType::Time32(TimeUnit::Millisecond), 32),
            ("time64_us", DataType::Time64(TimeUnit::Microsecond), 64),
            ("time64_ns", DataType::Time64(TimeUnit::Nanosecond), 64),
            ("interval_ym", DataType::Interval(IntervalUnit::YearMonth), 12),
        ]
        .iter()
        .enumerate()
        {
            let numbers = self.integers(at + 1, *bits);
            let numbers = match dtype {
                // The parquet crate casts times, and makes none of what is no time of a day.
                DataType::Time32(TimeUnit::Second) => within(&numbers, 86_400),
                DataType::Time32(_) => within(&numbers, 86_400_000),
                DataType::Time64(TimeUnit::Microsecond) => within(&numbers, 86_400_000_000),
                DataType::Time64(_) => within(&numbers, 86_400_000_000_000),
                _ => numbers,
            };
            let narrow = match bits {
                64 => None,
                _ if matches!(dtype, DataType::Int8 | DataType::Int16) => None,
                _ => Some(DataType::Int32),
            };
            let array = narrow
                .map_or(Arc::new(numbers.clone()) as ArrayRef, |narrow| to(&numbers, &narrow));
            put(name, to(&array, dtype));
        }
        let unsigned = UInt64Array::from_iter_values(self.bits(20));
        for (name, dtype, bits) in [
            ("u8", DataType::UInt8, 8),
            ("u16", DataType::UInt16, 16),
            ("u32", DataType::UInt32, 32),
        ] {
            let numbers =
                UInt64Array::from_iter_values(unsigned.values().iter().map(|x| x >> (64 - bits)));
            put(name, to(&numbers, &dtype));
        }
        put("u64", Arc::new(unsigned));
        put(
            "f32",
            Arc::new(Float32Array::from_iter_values(
                self.bits(21).map(|x| (x as i32) as f32 / 1000.0),
            )),
        );
        put(
            "f64",
            Arc::new(Float64Array::from_iter_values(
                self.bits(22).map(|x| (x as i64) as f64 / 1e6),
            )),
        );
        put(
            "date64",
            to(
                &to(&to(&self.integers(23, 20), &DataType::Int32), &DataType::Date32),
                &DataType::Date64,
            ),
        );
        let units =
            [TimeUnit::Second, TimeUnit::Millisecond, TimeUnit::Microsecond, TimeUnit::Nanosecond];
        for (at, unit) in units.into_iter().enumerate() {
            // Seconds that dates can print.
            let numbers = self.integers(24 + at, if unit == TimeUnit::Second { 36 } else { 44 });
            put(&format!("timestamp_{unit}"), to(&numbers, &DataType::Timestamp(unit, None)));
            let zone = ["UTC", "+02:30", "UTC", "-11:00"][at];
            put(
                &format!("timestamp_{unit}_zone"),
                to(&numbers, &DataType::Timestamp(unit, Some(zone.into()))),
            );
            put(&format!("duration_{unit}"), to(&numbers, &DataType::Duration(unit)));
        }
        for (at, (precision, scale)) in
            [(4, 2), (9, 0), (15, 2), (18, 18), (20, 3), (27, 9), (37, 6), (38, 10)]
                .into_iter()
                .enumerate()
        {
            let most = 10i128.pow(u32::from(precision)) - 1;
            let wide = |(x, y): (u64, u64)| (i128::from(x as i64) << 64 | i128::from(y)) % most;
            let numbers = Decimal128Array::from_iter_values(
                self.bits(40 + at).zip(self.bits(50 + at)).map(wide),
            );
            let numbers = numbers.with_precision_and_scale(precision, scale as i8).expect("a type");
            put(&format!("decimal_{precision}_{scale}"), Arc::new(numbers));
        }
        put("utf8", Arc::new(StringArray::from_iter_values(self.strings(60))));
        put("large_utf8", Arc::new(LargeStringArray::from_iter_values(self.strings(61))));
        put("utf8_view", Arc::new(StringViewArray::from_iter_values(self.strings(62))));
        put("binary", Arc::new(BinaryArray::from_iter_values(self.bytes(63))));
        put("large_binary", Arc::new(LargeBinaryArray::from_iter_values(self.bytes(64))));
        put("binary_view", Arc::new(BinaryViewArray::from_iter_values(self.bytes(65))));
        for (name, length, column) in [("fixed_3", 3, 66), ("fixed_16", 16, 67)] {
            let bytes =
                self.bits(column).map(|x| x.to_le_bytes().repeat(2)[..length as usize].to_vec());
            let mut array = FixedSizeBinaryBuilder::new(length);
            bytes.for_each(|bytes| array.append_value(bytes).expect("bytes of the length"));
            put(name, Arc::new(array.finish()));
        }
        let coded = StringArray::from_iter_values(self.strings(68));
        put(
            "coded",
            to(&coded, &DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))),
        );
        let intervals =
            self.bits(69).map(|x| IntervalDayTime::new(x as i32 >> 8, (x >> 32) as i32 >> 8));
        put("interval_dt", Arc::new(IntervalDayTimeArray::from_iter_values(intervals)));
        let (fields, arrays): (Vec<Field>, Vec<ArrayRef>) = (columns.into_iter().enumerate())
            .map(|(at, (name, array))| {
                let array = self.with_nulls(&array, at);
                (Field::new(name, array.data_type().clone(), self.nulls != Nulls::Required), array)
            })
            .unzip();
        RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).expect("columns of one length")
    }

    fn with_nulls(&self, array: &ArrayRef, column: usize) -> ArrayRef {
        let is_null =
            BooleanArray::from_iter((0..self.rows).map(|row| Some(self.nulls.at(row, column))));
        if let Some(coded) = array.as_any_dictionary_opt() {
            let keys = coded.keys().as_primitive::<Int32Type>();
            let nulls = NullBuffer::new(!is_null.values());
            let keys = Int32Array::new(keys.values().clone(), Some(nulls));
            return Arc::new(DictionaryArray::new(keys, coded.values().clone()));
        }
        nullif(array, &is_null).expect("as many rows")
    }
}

fn within(numbers: &Int64Array, end: i64) -> Int64Array {
    Int64Array::from_iter_values(numbers.values().iter().map(|x| x.rem_euclid(end)))
}
