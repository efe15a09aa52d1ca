//! What kernels find out of columns that were made on the device.

use super::{Column, Repr, Stats};
use crate::error::Result;
use warpframe_device::Device;
use warpframe_device::ops::survey::{Measured, Scalar, Surveyed, survey};

impl Column {
    /// Fills in the statistics of columns that lie plainly: waits for the device, once for all of
    /// them.
    pub(crate) fn survey<'a>(
        device: &Device,
        columns: impl Iterator<Item = &'a mut Column>,
    ) -> Result<()> {
        let mut columns: Vec<(Scalar, &mut Column)> =
            columns.filter_map(|column| Some((scalar(column)?, column))).collect();
        let surveyed: Vec<Surveyed> = columns
            .iter()
            .map(|(scalar, column)| Surveyed {
                scalar: *scalar,
                values: &column.data,
                valid: column.validity.as_deref(),
                offset: column.offset as u64,
                rows: column.len as u64,
            })
            .collect();
        let found = survey(device, &surveyed)?;
        for ((scalar, column), found) in columns.iter_mut().zip(found) {
            column.stats = match found.values {
                // No valid string at all is known to be no longer than the empty one.
                None if *scalar == Scalar::View => Stats { longest: Some(0), ..Stats::default() },
                Some(Measured::Longest(longest)) => {
                    Stats { longest: Some(longest), ..Stats::default() }
                }
                None => Stats::default(),
                Some(Measured::Integers { least, greatest, ascending, strictly }) => Stats {
                    range: Some((least, greatest)),
                    ascending: ascending && found.nulls == 0,
                    unique: strictly && found.nulls == 0,
                    ..Stats::default()
                },
                Some(Measured::Floats { magnitude, unit }) => {
                    Stats { magnitude: Some(magnitude), unit: Some(unit), ..Stats::default() }
                }
                Some(Measured::NotFinite) => Stats::default(),
            };
        }
        Ok(())
    }
}

/// What a column's values are to the kernels; nothing where there is nothing to be known, or where
/// it is known already.
fn scalar(column: &Column) -> Option<Scalar> {
    if !column.is_plain() {
        return None;
    }
    Some(match column.repr() {
        Repr::I8 => Scalar::I8,
        Repr::I16 => Scalar::I16,
        Repr::I32 => Scalar::I32,
        Repr::I64 => Scalar::I64,
        Repr::U8 => Scalar::U8,
        Repr::U16 => Scalar::U16,
        Repr::U32 => Scalar::U32,
        Repr::U64 => Scalar::U64,
        Repr::I128 => Scalar::I128,
        Repr::F32 => Scalar::F32,
        Repr::F64 => Scalar::F64,
        Repr::View => Scalar::View,
        Repr::Bool | Repr::List | Repr::Struct => return None,
    })
}
