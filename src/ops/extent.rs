//! Least and greatest integers, and greatest magnitudes of floats. Kernels in `kernels/extent.cuh`.

use super::{grid, tiles};
use crate::device::{Argument, Buffer, Device, Source};
use crate::error::Result;

const OPERATOR: &str = "extent";
const THREADS: u32 = 256;
/// Bits of infinity as `f64`: the magnitudes from here on are not finite.
const INFINITE: u64 = 0x7FF0_0000_0000_0000;

pub(super) fn source() -> Source {
    Source::new("extent", "#include \"extent.cuh\"\nWF_EXTENT_ENTRIES\n")
}

/// What a column's values are to the kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scalar {
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    F32,
    F64,
}

impl Scalar {
    fn entry(self) -> (&'static str, usize) {
        match self {
            Scalar::I8 => ("extent_i8", 1),
            Scalar::I16 => ("extent_i16", 2),
            Scalar::I32 => ("extent_i32", 4),
            Scalar::I64 => ("extent_i64", 8),
            Scalar::U8 => ("extent_u8", 1),
            Scalar::U16 => ("extent_u16", 2),
            Scalar::U32 => ("extent_u32", 4),
            Scalar::U64 => ("extent_u64", 8),
            Scalar::F32 => ("extent_f32", 4),
            Scalar::F64 => ("extent_f64", 8),
        }
    }
}

/// Values to measure: rows `offset..offset + rows` of `values` and `valid`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Measured<'a> {
    pub(crate) scalar: Scalar,
    pub(crate) values: &'a Buffer,
    pub(crate) valid: Option<&'a Buffer>,
    pub(crate) offset: u64,
    pub(crate) rows: u64,
}

/// What was found of one column's valid values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Extent {
    /// There is no valid value.
    Nothing,
    /// Least and greatest integer.
    Integers(i128, i128),
    /// Greatest magnitude of the floats, all finite.
    Magnitude(f64),
    /// NaN or an infinity occurs.
    NotFinite,
}

/// Measurements under way: of any number of columns with one wait.
#[derive(Debug)]
pub(crate) struct PendingExtents {
    words: Buffer,
    scalars: Vec<Scalar>,
}

/// Starts to measure columns. Waits for nothing.
pub(crate) fn extents(device: &Device, columns: &[Measured<'_>]) -> Result<PendingExtents> {
    let words = device.alloc_filled(OPERATOR, columns.len() * 16, 0xFF)?;
    for (at, column) in columns.iter().enumerate() {
        let (name, width) = column.scalar.entry();
        let end = column.offset + column.rows;
        assert!(column.values.len() as u64 >= end * width as u64, "{end} values");
        assert!(column.valid.is_none_or(|v| v.len() as u64 >= end), "{end} rows of validity");
        let kernel = device.kernel(&source(), name)?;
        let full = u64::from(device.full_grid(&kernel, THREADS, 0)?);
        let arguments: [Argument; 4] = [
            column.values.slice(column.offset as usize * width).into(),
            column.valid.map_or(Argument::from(0u64), |valid| valid.slice(column.offset as usize).into()),
            column.rows.into(),
            words.slice(at * 16).into(),
        ];
        let blocks = tiles(column.rows, u64::from(THREADS) * 8).min(full);
        // SAFETY: Extent { values and valid (or null): rows of them, checked; rows; two words of all ones }.
        unsafe { device.launch(&kernel, grid(blocks, THREADS), &arguments)? };
    }
    Ok(PendingExtents { words, scalars: columns.iter().map(|column| column.scalar).collect() })
}

impl PendingExtents {
    /// Waits for the device and gives the columns' extents.
    pub(crate) fn wait(self) -> Result<Vec<Extent>> {
        let words = self.words.read_words(0, self.scalars.len() * 2)?;
        let pairs = words.chunks_exact(2).map(|pair| (pair[0], !pair[1]));
        Ok(self.scalars.iter().zip(pairs).map(|(&scalar, (least, greatest))| extent(scalar, least, greatest)).collect())
    }
}

/// From ordered bits.
fn extent(scalar: Scalar, least: u64, greatest: u64) -> Extent {
    if least > greatest {
        return Extent::Nothing;
    }
    match scalar {
        Scalar::F32 | Scalar::F64 if greatest >= INFINITE => Extent::NotFinite,
        Scalar::F32 | Scalar::F64 => Extent::Magnitude(f64::from_bits(greatest)),
        Scalar::U8 | Scalar::U16 | Scalar::U32 | Scalar::U64 => {
            Extent::Integers(i128::from(least), i128::from(greatest))
        }
        Scalar::I8 | Scalar::I16 | Scalar::I32 | Scalar::I64 => {
            let signed = |ordered: u64| i128::from((ordered ^ 1 << 63) as i64);
            Extent::Integers(signed(least), signed(greatest))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::*;

    fn one(device: &Device, scalar: Scalar, values: &Buffer, valid: Option<&Buffer>, rows: usize) -> Extent {
        let column = Measured { scalar, values, valid, offset: 0, rows: rows as u64 };
        extents(device, &[column]).unwrap().wait().unwrap()[0]
    }

    #[test]
    fn extents_of_integers_of_every_type_and_size() {
        for device in devices() {
            for rows in [0, 1, 31, 33, 2047, 2049, 20_000] {
                let words: Vec<u64> = random(rows as u64, rows).collect();
                macro_rules! check {
                    ($($scalar:ident $t:ty),*) => {$(
                        let values: Vec<$t> = words.iter().map(|&x| x as $t).collect();
                        let expected = match (values.iter().min(), values.iter().max()) {
                            (Some(&least), Some(&greatest)) => Extent::Integers(least.into(), greatest.into()),
                            _ => Extent::Nothing,
                        };
                        assert_eq!(one(&device, Scalar::$scalar, &upload(&device, &values), None, rows), expected);
                    )*};
                }
                check!(I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32, U64 u64);
            }
        }
    }

    #[test]
    fn extents_at_the_ends_of_the_types() {
        let device = device(1);
        let all = |value| upload(&device, &vec![value; 100]);
        assert_eq!(
            one(&device, Scalar::U64, &all(u64::MAX), None, 100),
            Extent::Integers(u64::MAX.into(), u64::MAX.into())
        );
        assert_eq!(one(&device, Scalar::U64, &all(0), None, 100), Extent::Integers(0, 0));
        let least = i128::from(i64::MIN);
        assert_eq!(one(&device, Scalar::I64, &all(i64::MIN as u64), None, 100), Extent::Integers(least, least));
    }

    #[test]
    fn extents_leave_invalid_rows_out_and_start_at_the_offset() {
        let device = device(2);
        let values = upload(&device, &[-900i32, 5, 900, 7, -2]);
        let valid = upload(&device, &[1u8, 1, 0, 1, 1]);
        let column = Measured { scalar: Scalar::I32, values: &values, valid: Some(&valid), offset: 1, rows: 4 };
        let none = Measured { offset: 2, rows: 1, ..column };
        let unmasked = Measured { valid: None, ..none };
        let found = extents(&device, &[column, none, unmasked]).unwrap().wait().unwrap();
        assert_eq!(found, [Extent::Integers(-2, 7), Extent::Nothing, Extent::Integers(900, 900)]);
    }

    #[test]
    fn magnitudes_of_floats_are_unknown_with_nan_or_infinity() {
        let device = device(3);
        let wide = |values: &[f64]| one(&device, Scalar::F64, &upload(&device, values), None, values.len());
        assert_eq!(wide(&[1.0, -7.5, 0.0]), Extent::Magnitude(7.5));
        assert_eq!(wide(&[-0.0]), Extent::Magnitude(0.0));
        assert_eq!(wide(&[]), Extent::Nothing);
        for bad in [f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(wide(&[1.0, bad]), Extent::NotFinite);
        }
        let narrow = upload(&device, &[0.5f32, -1e38]);
        assert_eq!(one(&device, Scalar::F32, &narrow, None, 2), Extent::Magnitude(f64::from(1e38f32)));
    }
}
