//! The words through which a generated kernel reports to the host: failures, retries, counts.

use std::sync::Arc;

use super::sites::{REPORT_BYTES, Sites};
use crate::error::Result;
use warpframe_device::{Buffer, Device};

/// Byte at which the report of a failed row begins, behind the control words.
const REPORT: usize = 40;

/// The control words of one kernel, zero before it runs. The host reads them once, after the
/// kernel.
///
/// ```text
///   byte 0   status (u32, bits of `Failure`)
///        8   retry (u32, bits of `Retry`)
///       16   ticket
///       24   rows out
///       32   bytes of characters taken from the arena
///       40   what the first row that failed reports (`sites.rs`)
/// ```
#[derive(Debug)]
pub(crate) struct Control(pub(crate) Arc<Buffer>);

/// Why a kernel's result must not be used. The host then runs the operator in another way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Retry(u32);

impl Retry {
    /// The hash table is too small.
    pub(crate) const TABLE_FULL: u32 = 1;
    /// A float sum in fixed point lost bits.
    pub(crate) const INEXACT: u32 = 2;
    /// Two keys have one hash.
    pub(crate) const COLLISION: u32 = 4;
    /// A partition has more rows than a sample promised.
    pub(crate) const PARTITION_FULL: u32 = 8;
    /// A join's key has several build rows.
    pub(crate) const REPEATED: u32 = 16;

    pub(crate) fn has(self, bit: u32) -> bool {
        self.0 & bit != 0
    }
}

impl Control {
    pub(crate) fn new(device: &Device) -> Result<Self> {
        Ok(Control(Arc::new(device.alloc_zeroed("pipeline control", REPORT + REPORT_BYTES)?)))
    }

    /// Zeroes the words, for another run.
    pub(crate) fn reset(&self) -> Result<()> {
        Ok(self.0.fill(0)?)
    }

    /// How many bytes of characters the kernel asked for. If the arena has fewer, no other word and
    /// no output of the kernel may be used. Waits for the kernel.
    pub(crate) fn characters(&self) -> Result<u64> {
        Ok(self.0.read_words(32, 1)?[0])
    }

    /// What to retry, and how many rows came out. An error if a row failed, at one of `sites`.
    /// Waits for the kernel.
    pub(crate) fn read(&self, sites: &Sites) -> Result<(Retry, u64)> {
        let words = self.0.read_words(0, 4)?;
        let status = words[0] as u32;
        if status != 0 {
            let mut report = vec![0; REPORT_BYTES];
            self.0.read(REPORT, &mut report)?;
            if let Some(error) = sites.error(status, &report) {
                return Err(error);
            }
        }
        Ok((Retry(words[1] as u32), words[3]))
    }

    /// The statements that declare `status`, `report` and `rows` in a kernel. `pointer` is the C++
    /// name of the first control word, `rows` an expression for the number of rows.
    pub(crate) fn head(pointer: &str, rows: &str) -> String {
        format!(
            "u32* const status = (u32*){pointer};\nu8* const report = (u8*){pointer} + {REPORT};\nconst u64 rows = {rows};\n"
        )
    }
}
