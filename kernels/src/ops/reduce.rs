//! What a reduction is, and the reduction of whole columns. Kernels in `kernels/reduce.cuh`.

use super::{grid, tiles};
use crate::error::Result;
use crate::{Argument, Buffer, Device, KernelSource};

const OPERATOR: &str = "reduce";
/// Of the kernels: `REDUCE_THREADS`, `REDUCE_ITEMS`, `REDUCE_BLOCKS`.
const THREADS: u32 = 256;
const ITEMS: u64 = 8;
const MOST_BLOCKS: u64 = 2048;

/// How values become one: of a segment, or of all rows.
///
/// Invalid rows are left out. Over no valid row a sum and a count are 0 and an extremum is
/// undefined: count to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reduction {
    /// `f64` → `f64`, added in an order that the rows' positions decide.
    SumF64,
    /// `i64` → `i64`, wraps.
    SumI64,
    /// `i64` → `i128`.
    SumI64Wide,
    /// `i128` → `i128`, wraps.
    SumI128,
    /// `f64` → `f64`; NaN is greatest, so it is the minimum only of nothing but NaN; −0.0 becomes
    /// 0.0.
    MinF64,
    /// `f64` → `f64`; NaN is greatest; −0.0 becomes 0.0.
    MaxF64,
    /// `i64` → `i64`.
    MinI64,
    /// `i64` → `i64`.
    MaxI64,
    /// `u64` → `u64`.
    MinU64,
    /// `u64` → `u64`.
    MaxU64,
    /// `i128` → `i128`.
    MinI128,
    /// `i128` → `i128`.
    MaxI128,
    /// `u64` → `u64`, bit by bit; over no valid row all bits are set.
    AndU64,
    /// `u64` → `u64`, bit by bit.
    OrU64,
    /// `u64` → `u64`, bit by bit.
    XorU64,
    /// Valid rows → `i64`; reads no values.
    Count,
}

impl Reduction {
    pub(super) const ALL: [Reduction; 16] = [
        Reduction::SumF64,
        Reduction::SumI64,
        Reduction::SumI64Wide,
        Reduction::SumI128,
        Reduction::MinF64,
        Reduction::MaxF64,
        Reduction::MinI64,
        Reduction::MaxI64,
        Reduction::MinU64,
        Reduction::MaxU64,
        Reduction::MinI128,
        Reduction::MaxI128,
        Reduction::AndU64,
        Reduction::OrU64,
        Reduction::XorU64,
        Reduction::Count,
    ];

    /// Suffix of the entries, and the kernels' type for it.
    pub(super) fn entry(self) -> (&'static str, &'static str) {
        match self {
            Reduction::SumF64 => ("sum_f64", "wf::ReduceSumF64"),
            Reduction::SumI64 => ("sum_i64", "wf::ReduceSum<wf::i64, wf::u64, wf::i64>"),
            Reduction::SumI64Wide => ("sum_wide_i64", "wf::ReduceSum<wf::i64, wf::u128, wf::i128>"),
            Reduction::SumI128 => ("sum_i128", "wf::ReduceSum<wf::i128, wf::u128, wf::i128>"),
            Reduction::MinF64 => ("min_f64", "wf::ReduceMinF64"),
            Reduction::MaxF64 => ("max_f64", "wf::ReduceMaxF64"),
            Reduction::MinI64 => ("min_i64", "wf::ReduceMin<wf::i64>"),
            Reduction::MaxI64 => ("max_i64", "wf::ReduceMax<wf::i64>"),
            Reduction::MinU64 => ("min_u64", "wf::ReduceMin<wf::u64>"),
            Reduction::MaxU64 => ("max_u64", "wf::ReduceMax<wf::u64>"),
            Reduction::MinI128 => ("min_i128", "wf::ReduceMin<wf::i128>"),
            Reduction::MaxI128 => ("max_i128", "wf::ReduceMax<wf::i128>"),
            Reduction::AndU64 => ("and_u64", "wf::ReduceAnd"),
            Reduction::OrU64 => ("or_u64", "wf::ReduceOr"),
            Reduction::XorU64 => ("xor_u64", "wf::ReduceXor"),
            Reduction::Count => ("count", "wf::ReduceCount"),
        }
    }

    fn is_128(self) -> bool {
        matches!(self, Reduction::SumI128 | Reduction::MinI128 | Reduction::MaxI128)
    }

    /// Bytes of a value; 0 where none is read.
    pub(crate) fn value_width(self) -> usize {
        if self == Reduction::Count { 0 } else { [8, 16][usize::from(self.is_128())] }
    }

    /// Bytes of a result, which are also those of a partial one.
    pub(crate) fn result_width(self) -> usize {
        if self.is_128() || self == Reduction::SumI64Wide { 16 } else { 8 }
    }
}

fn source(kind: Reduction) -> KernelSource {
    let (suffix, op) = kind.entry();
    KernelSource::new(
        format!("reduce_{suffix}"),
        format!("#include \"reduce.cuh\"\nWF_REDUCE({suffix}, {op})\n"),
    )
}

pub(super) fn sources() -> Vec<KernelSource> {
    Reduction::ALL.into_iter().map(source).collect()
}

/// One result of all rows, `kind.result_width()` bytes on the device.
///
/// Rows take part unless `valid` holds 0. What is combined with what depends on `rows` alone: same
/// input, same bits, on any device. [`Reduction::Count`] reads no values; any buffer will do.
pub fn reduce(
    device: &Device,
    kind: Reduction,
    values: &Buffer,
    valid: Option<&Buffer>,
    rows: u64,
) -> Result<Buffer> {
    assert!(values.len() as u64 >= rows * kind.value_width() as u64, "{rows} values");
    assert!(valid.is_none_or(|valid| valid.len() as u64 >= rows), "{rows} rows of validity");
    let blocks = tiles(rows, u64::from(THREADS) * ITEMS).min(MOST_BLOCKS);
    let parts = device.alloc(OPERATOR, blocks as usize * kind.result_width())?;
    let result = device.alloc(OPERATOR, kind.result_width())?;
    let null = Argument::from(0u64);
    let kernel = device.kernel(&source(kind), &format!("reduce_parts_{}", kind.entry().0))?;
    let arguments: [Argument; 4] = [
        if kind == Reduction::Count { null } else { values.into() },
        valid.map_or(null, Argument::from),
        rows.into(),
        (&parts).into(),
    ];
    // SAFETY: ReduceParts { values: rows of the kind's width (or null for counts) and valid rows u8
    // or null, checked; rows; parts: one of the kind's width for each block }.
    unsafe { device.launch(&kernel, grid(blocks, THREADS), &arguments)? };
    let kernel = device.kernel(&source(kind), &format!("reduce_whole_{}", kind.entry().0))?;
    let arguments: [Argument; 3] = [(&parts).into(), blocks.into(), (&result).into()];
    // SAFETY: ReduceWhole { parts: `blocks` of them; their number; result: one of the kind's width
    // }.
    unsafe { device.launch(&kernel, grid(1, THREADS), &arguments)? };
    Ok(result)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::*;

    #[test]
    fn reduce_agrees_with_the_host_at_every_size() {
        for device in devices() {
            for rows in [0, 1, 31, 32, 33, 2047, 2048, 2049, 50_000] {
                let values: Vec<i64> = random(rows as u64, rows).map(|x| x as i64).collect();
                let valid: Vec<u8> = random(3, rows).map(|x| (x % 5 != 0) as u8).collect();
                let (buffer, valid_buffer) = (upload(&device, &values), upload(&device, &valid));
                let run = |kind| {
                    reduce(&device, kind, &buffer, Some(&valid_buffer), rows as u64).unwrap()
                };
                let taken: Vec<i64> =
                    (0..rows).filter(|&row| valid[row] != 0).map(|row| values[row]).collect();
                let exact: i128 = taken.iter().map(|&x| i128::from(x)).sum();
                assert_eq!(read::<i128>(&run(Reduction::SumI64Wide), 1), [exact]);
                assert_eq!(read::<i64>(&run(Reduction::SumI64), 1), [exact as i64]);
                assert_eq!(read::<i64>(&run(Reduction::Count), 1), [taken.len() as i64]);
                if let (Some(&least), Some(&greatest)) = (taken.iter().min(), taken.iter().max()) {
                    assert_eq!(read::<i64>(&run(Reduction::MinI64), 1), [least]);
                    assert_eq!(read::<i64>(&run(Reduction::MaxI64), 1), [greatest]);
                }
            }
        }
    }

    #[test]
    fn reduce_sums_floats_to_the_same_bits_under_every_schedule() {
        let rows = 100_001;
        let values: Vec<f64> = random(4, rows).map(|x| (x as f64 / 1e19).powi(7) - 1e-3).collect();
        let sums: Vec<f64> = devices()
            .iter()
            .map(|device| {
                let sum =
                    reduce(device, Reduction::SumF64, &upload(device, &values), None, rows as u64)
                        .unwrap();
                read::<f64>(&sum, 1)[0]
            })
            .collect();
        assert!(sums.iter().all(|sum| sum.to_bits() == sums[0].to_bits()));
        let serial: f64 = values.iter().sum();
        assert!((sums[0] - serial).abs() < 1e-12 * serial, "{} for {serial}", sums[0]);
    }
}
