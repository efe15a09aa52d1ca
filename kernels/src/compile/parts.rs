//! Kernels that were generated before, found by the parts of their text, so that the text need be
//! neither put together nor hashed by cryptographic means, nor searched for what it calls.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

use crate::error::Result;
use crate::{Device, Kernel, KernelSource};

/// Most kernels that are found this way; of more all are forgotten, and found by their whole text
/// again. Each keeps its module loaded, so that they must be fewer than the modules that may be
/// (`cache.rs`).
const MOST: usize = 1 << 10;

/// What a generated kernel's text is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parts<'a> {
    pub stem: &'a str,
    pub declarations: &'a str,
    pub body: &'a str,
    pub bounds: LaunchBounds,
}

/// What a kernel is compiled for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LaunchBounds {
    /// Threads in a block.
    pub threads: u32,
    /// Blocks that registers leave room for on a multiprocessor, at least.
    pub blocks: u32,
}

impl Parts<'_> {
    fn hash(self) -> u64 {
        let texts = [self.stem, self.declarations, self.body];
        let LaunchBounds { threads, blocks } = self.bounds;
        texts.iter().fold(u64::from(threads) | u64::from(blocks) << 32, |hash, text| {
            mixed(hash, text.as_bytes())
        })
    }
}

/// A hash that costs a fraction of a nanosecond a byte. What has the same one is compared.
fn mixed(seed: u64, text: &[u8]) -> u64 {
    const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;
    let step = |hash: u64, word: u64| {
        let product = u128::from(hash ^ word) * u128::from(FACTOR);
        product as u64 ^ (product >> 64) as u64
    };
    let (words, rest) = text.as_chunks::<8>();
    let hash = words
        .iter()
        .fold(seed ^ text.len() as u64, |hash, word| step(hash, u64::from_le_bytes(*word)));
    step(hash, rest.iter().fold(0, |word, byte| word << 8 | u64::from(*byte)) ^ FACTOR)
}

/// A kernel, and which of its parameters (by position) its body names.
#[derive(Debug, Clone)]
pub struct KnownKernel {
    pub kernel: Kernel,
    pub named: Arc<[bool]>,
}

#[derive(Debug)]
struct PartsEntry {
    stem: String,
    declarations: String,
    body: String,
    bounds: LaunchBounds,
    known: KnownKernel,
}

impl PartsEntry {
    fn parts(&self) -> Parts<'_> {
        Parts {
            stem: &self.stem,
            declarations: &self.declarations,
            body: &self.body,
            bounds: self.bounds,
        }
    }
}

/// The kernels of a device by their parts.
#[derive(Debug, Default)]
pub(crate) struct ByParts(Mutex<HashMap<u64, PartsEntry>>);

impl ByParts {
    fn entries(&self) -> MutexGuard<'_, HashMap<u64, PartsEntry>> {
        self.0.lock()
    }
}

impl Device {
    /// The kernel of these parts; where it is not known, `make` says its source, its name and what
    /// its body names.
    pub fn kernel_of(
        &self,
        parts: Parts<'_>,
        make: impl FnOnce() -> (KernelSource, String, Arc<[bool]>),
    ) -> Result<KnownKernel> {
        let hash = parts.hash();
        if let Some(entry) =
            self.0.by_parts.entries().get(&hash).filter(|entry| entry.parts() == parts)
        {
            self.0.counters.found_in_memory();
            return Ok(entry.known.clone());
        }
        let (source, name, named) = make();
        let known = KnownKernel { kernel: self.kernel(&source, &name)?, named };
        let Parts { stem, declarations, body, bounds } = parts;
        let (stem, declarations, body) = (stem.into(), declarations.into(), body.into());
        let entry = PartsEntry { stem, declarations, body, bounds, known: known.clone() };
        let mut entries = self.0.by_parts.entries();
        if entries.len() >= MOST {
            entries.clear();
        }
        entries.insert(hash, entry);
        Ok(known)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_counts() {
        let bounds = LaunchBounds { threads: 256, blocks: 1 };
        let parts = Parts { stem: "s", declarations: "u64 k0;", body: "p.k0 + 1234567", bounds };
        let others = [
            Parts { stem: "t", ..parts },
            Parts { declarations: "i64 k0;", ..parts },
            Parts { body: "p.k0 + 1234568", ..parts },
            Parts { body: "p.k0 + 123456", ..parts },
            Parts { bounds: LaunchBounds { threads: 512, ..bounds }, ..parts },
            Parts { bounds: LaunchBounds { blocks: 8, ..bounds }, ..parts },
        ];
        assert!(others.iter().all(|other| other.hash() != parts.hash()));
        assert_eq!(parts.hash(), Parts { ..parts }.hash());
    }
}
