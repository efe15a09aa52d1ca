//! What is to be known of columns before they are computed with. Kernels in `kernels/survey.cuh`.

use super::{grid, tiles};
use crate::error::Result;
use crate::{Argument, Buffer, Device, KernelSource};

const OPERATOR: &str = "survey";
const THREADS: u32 = 256;
/// Rows of a thread before another block is worth its while.
const ROWS: u64 = 8;
/// `SURVEY_WORDS` of the kernel, which each block leaves.
const WORDS: usize = 8;

const DESCENDS: u64 = 1;
const REPEATS: u64 = 2;
const NOT_FINITE: u64 = 4;
const VALUES: u64 = 8;

pub(super) fn source() -> KernelSource {
    KernelSource::new("survey", "#include \"survey.cuh\"\nWF_SURVEY_ENTRIES\n")
}

/// What a column's values are to the kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scalar {
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    I128,
    F32,
    F64,
    /// Views of 16 bytes, of which only the length is looked at.
    View,
}

impl Scalar {
    fn entry(self) -> (&'static str, usize) {
        match self {
            Scalar::I8 => ("survey_i8", 1),
            Scalar::I16 => ("survey_i16", 2),
            Scalar::I32 => ("survey_i32", 4),
            Scalar::I64 => ("survey_i64", 8),
            Scalar::U8 => ("survey_u8", 1),
            Scalar::U16 => ("survey_u16", 2),
            Scalar::U32 => ("survey_u32", 4),
            Scalar::U64 => ("survey_u64", 8),
            Scalar::I128 => ("survey_i128", 16),
            Scalar::F32 => ("survey_f32", 4),
            Scalar::F64 => ("survey_f64", 8),
            Scalar::View => ("survey_view", 16),
        }
    }
}

/// Values to look at: rows `offset..offset + rows` of `values` and `valid`.
#[derive(Debug, Clone, Copy)]
pub struct Surveyed<'a> {
    pub scalar: Scalar,
    pub values: &'a Buffer,
    pub valid: Option<&'a Buffer>,
    pub offset: u64,
    pub rows: u64,
}

/// What was found of one column.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ColumnSurvey {
    pub nulls: u64,
    /// Of the valid values; `None` where there is none.
    pub values: Option<Measured>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Measured {
    /// Whether no valid value is less than the one in the row before, and whether each is greater.
    /// Of columns with nulls both say nothing.
    Integers { least: i128, greatest: i128, ascending: bool, strictly: bool },
    /// Greatest magnitude, and the exponent of the greatest power of two of which all are
    /// multiples.
    Floats { magnitude: f64, unit: i32 },
    /// NaN or an infinity occurs.
    NotFinite,
    /// Most bytes in a string.
    Longest(u32),
}

/// Looks at columns: waits for the device, once for all of them.
pub fn survey(device: &Device, columns: &[Surveyed<'_>]) -> Result<Vec<ColumnSurvey>> {
    let mut launches = vec![];
    let mut blocks = 0;
    for column in columns {
        let (name, width) = column.scalar.entry();
        let end = column.offset + column.rows;
        assert!(column.values.len() as u64 >= end * width as u64, "{end} values");
        assert!(column.valid.is_none_or(|v| v.len() as u64 >= end), "{end} rows of validity");
        let kernel = device.kernel(&source(), name)?;
        let full = u64::from(device.full_grid(&kernel, THREADS, 0)?);
        let own = tiles(column.rows, u64::from(THREADS) * ROWS).min(full) as usize;
        launches.push((kernel, width, blocks, own));
        blocks += own;
    }
    if blocks == 0 {
        return Ok(columns.iter().map(|_| ColumnSurvey { nulls: 0, values: None }).collect());
    }
    let words = device.alloc(OPERATOR, blocks * WORDS * 8)?;
    for (column, (kernel, width, first, own)) in columns.iter().zip(&launches) {
        let arguments: [Argument; 4] = [
            column.values.slice(column.offset as usize * width).into(),
            column
                .valid
                .map_or(Argument::from(0u64), |valid| valid.slice(column.offset as usize).into()),
            column.rows.into(),
            words.slice(first * WORDS * 8).into(),
        ];
        // SAFETY: Survey { values and valid (or null): rows of them, checked; rows; WORDS a block,
        // of which as many are allocated }.
        unsafe { device.launch(kernel, grid(*own as u64, THREADS), &arguments)? };
    }
    let words = words.read_words(0, blocks * WORDS)?;
    let found = columns.iter().zip(&launches).map(|(column, (_, _, first, own))| {
        together(column.scalar, words[first * WORDS..(first + own) * WORDS].chunks_exact(WORDS))
    });
    Ok(found.collect())
}

/// What all blocks found of a column.
fn together<'a>(scalar: Scalar, blocks: impl Iterator<Item = &'a [u64]>) -> ColumnSurvey {
    let wide = |low: u64, high: u64| (u128::from(high) << 64 | u128::from(low)) as i128;
    let (mut nulls, mut flags, mut unit) = (0, 0, i32::MAX);
    let mut range: Option<(i128, i128)> = None;
    for words in blocks {
        nulls += words[6];
        flags |= words[4];
        if words[4] & VALUES != 0 {
            // The bits of magnitudes order as integers do.
            let (low, high) = (wide(words[0], words[1]), wide(words[2], words[3]));
            unit = unit.min(words[5] as i32);
            range = Some(
                range.map_or((low, high), |(least, greatest)| (least.min(low), greatest.max(high))),
            );
        }
    }
    let values = range.map(|(least, greatest)| match scalar {
        Scalar::F32 | Scalar::F64 if flags & NOT_FINITE != 0 => Measured::NotFinite,
        Scalar::F32 | Scalar::F64 => {
            Measured::Floats { magnitude: f64::from_bits(greatest as u64), unit }
        }
        Scalar::View => Measured::Longest(greatest as u32),
        _ => {
            let ascending = flags & DESCENDS == 0;
            Measured::Integers {
                least,
                greatest,
                ascending,
                strictly: ascending && flags & REPEATS == 0,
            }
        }
    });
    ColumnSurvey { nulls, values }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::*;

    fn one(device: &Device, scalar: Scalar, values: &Buffer, rows: usize) -> Option<Measured> {
        let column = Surveyed { scalar, values, valid: None, offset: 0, rows: rows as u64 };
        survey(device, &[column]).unwrap()[0].values
    }

    fn integers(least: i128, greatest: i128, order: u8) -> Measured {
        Measured::Integers { least, greatest, ascending: order > 0, strictly: order > 1 }
    }

    #[test]
    fn integers_of_every_type_and_size() {
        for device in devices() {
            for rows in [0, 1, 31, 33, 2047, 2049, 20_000] {
                let words: Vec<u64> = random(rows as u64, rows).collect();
                macro_rules! check {
                    ($($scalar:ident $t:ty),*) => {$(
                        let values: Vec<$t> = words.iter().map(|&x| (x as $t).wrapping_mul(x as $t)).collect();
                        let order = values.is_sorted() as u8 + values.windows(2).all(|pair| pair[0] < pair[1]) as u8;
                        let expected = match (values.iter().min(), values.iter().max()) {
                            (Some(&least), Some(&greatest)) => Some(integers(least.into(), greatest.into(), order)),
                            _ => None,
                        };
                        assert_eq!(one(&device, Scalar::$scalar, &upload(&device, &values), rows), expected);
                    )*};
                }
                check!(I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32, U64 u64, I128 i128);
            }
        }
    }

    #[test]
    fn values_at_the_ends_of_the_types() {
        let device = device(1);
        macro_rules! check {
            ($($scalar:ident $t:ty),*) => {$(
                for value in [<$t>::MIN, <$t>::MAX] {
                    let all = upload(&device, &[value; 100]);
                    let expected = integers(i128::from(value), i128::from(value), 1);
                    assert_eq!(one(&device, Scalar::$scalar, &all, 100), Some(expected));
                }
            )*};
        }
        check!(I8 i8, I64 i64, U8 u8, U64 u64, I128 i128);
    }

    #[test]
    fn order_is_seen_between_threads_blocks_and_rounds() {
        for device in devices() {
            let rows = 50_000usize;
            let ascending: Vec<i32> = (0..rows as i32).collect();
            let last = rows as i128 - 1;
            assert_eq!(
                one(&device, Scalar::I32, &upload(&device, &ascending), rows),
                Some(integers(0, last, 2))
            );
            for at in [1, 255, 256, 2048, 8191, 8192, rows - 1] {
                let mut values = ascending.clone();
                values[at] = values[at - 1];
                let found = one(&device, Scalar::I32, &upload(&device, &values), rows);
                let greatest = if at == rows - 1 { last - 1 } else { last };
                assert_eq!(found, Some(integers(0, greatest, 1)), "row {at}");
                values.swap(at - 1, at);
                values[at - 1] += 1;
                let found = one(&device, Scalar::I32, &upload(&device, &values), rows);
                assert!(
                    matches!(found, Some(Measured::Integers { ascending: false, .. })),
                    "row {at}"
                );
            }
        }
    }

    #[test]
    fn invalid_rows_are_left_out_and_counted_from_the_offset_on() {
        let device = device(2);
        let values = upload(&device, &[-900i32, 5, 900, 7, -2]);
        let valid = upload(&device, &[1u8, 1, 0, 1, 1]);
        let column = Surveyed {
            scalar: Scalar::I32,
            values: &values,
            valid: Some(&valid),
            offset: 1,
            rows: 4,
        };
        let none = Surveyed { offset: 2, rows: 1, ..column };
        let unmasked = Surveyed { valid: None, ..none };
        let found = survey(&device, &[column, none, unmasked]).unwrap();
        assert_eq!((found[0].nulls, found[1].nulls, found[2].nulls), (1, 1, 0));
        assert_eq!(found[0].values, Some(integers(-2, 7, 0)));
        assert_eq!((found[1].values, found[2].values), (None, Some(integers(900, 900, 2))));
    }

    #[test]
    fn floats_have_a_magnitude_and_a_unit_where_they_are_finite() {
        let device = device(3);
        let wide =
            |values: &[f64]| one(&device, Scalar::F64, &upload(&device, values), values.len());
        let floats = |magnitude, unit| Some(Measured::Floats { magnitude, unit });
        assert_eq!(wide(&[1.0, -7.5, 0.0]), floats(7.5, -1));
        assert_eq!(wide(&[-0.0]), floats(0.0, 1023));
        assert_eq!(wide(&[]), None);
        assert_eq!(wide(&[6.0, -0.75, 1e300]), floats(1e300, -2));
        assert_eq!(wide(&[f64::MAX]), floats(f64::MAX, 971));
        assert_eq!(wide(&[f64::from_bits(1)]), floats(f64::from_bits(1), -1074));
        assert_eq!(wide(&[f64::MIN_POSITIVE]), floats(f64::MIN_POSITIVE, -1022));
        assert_eq!(wide(&[0.1]), floats(0.1, -55));
        for bad in [f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(wide(&[1.0, bad]), Some(Measured::NotFinite));
            assert_eq!(wide(&[bad]), Some(Measured::NotFinite));
        }
        let narrow = upload(&device, &[0.5f32, -1e38]);
        assert_eq!(one(&device, Scalar::F32, &narrow, 2), floats(f64::from(1e38f32), -1));
    }

    #[test]
    fn strings_have_a_greatest_length() {
        let device = device(4);
        let views: Vec<u64> = [3u64, 70, 0].iter().flat_map(|length| [*length, 1]).collect();
        assert_eq!(
            one(&device, Scalar::View, &upload(&device, &views), 3),
            Some(Measured::Longest(70))
        );
    }
}
