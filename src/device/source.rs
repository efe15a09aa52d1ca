//! Kernel sources: a translation unit and the embedded headers it may include.

use std::collections::{BTreeSet, HashMap};
use std::sync::LazyLock;

use sha2::{Digest, Sha256};

use super::hex::hex;

/// Every file of `kernels/`, by the name it is included under.
pub(crate) static HEADERS: &[(&str, &str)] = &[
    ("prelude.cuh", include_str!("../../kernels/prelude.cuh")),
    ("sim.h", include_str!("../../kernels/sim.h")),
    ("characters.cuh", include_str!("../../kernels/characters.cuh")),
    ("csv.cuh", include_str!("../../kernels/csv.cuh")),
    ("dictionary.cuh", include_str!("../../kernels/dictionary.cuh")),
    ("compact.cuh", include_str!("../../kernels/compact.cuh")),
    ("decompress.cuh", include_str!("../../kernels/decompress.cuh")),
    ("gather.cuh", include_str!("../../kernels/gather.cuh")),
    ("sequence.cuh", include_str!("../../kernels/sequence.cuh")),
    ("inverse.cuh", include_str!("../../kernels/inverse.cuh")),
    ("random.cuh", include_str!("../../kernels/random.cuh")),
    ("gather_columns.cuh", include_str!("../../kernels/gather_columns.cuh")),
    ("reduce.cuh", include_str!("../../kernels/reduce.cuh")),
    ("top.cuh", include_str!("../../kernels/top.cuh")),
    ("hash.cuh", include_str!("../../kernels/hash.cuh")),
    ("join.cuh", include_str!("../../kernels/join.cuh")),
    ("partition.cuh", include_str!("../../kernels/partition.cuh")),
    ("join_partitioned.cuh", include_str!("../../kernels/join_partitioned.cuh")),
    ("scan.cuh", include_str!("../../kernels/scan.cuh")),
    ("keys.cuh", include_str!("../../kernels/keys.cuh")),
    ("pipeline.cuh", include_str!("../../kernels/pipeline.cuh")),
    ("segment.cuh", include_str!("../../kernels/segment.cuh")),
    ("sort.cuh", include_str!("../../kernels/sort.cuh")),
    ("sort_key.cuh", include_str!("../../kernels/sort_key.cuh")),
    ("sort_few.cuh", include_str!("../../kernels/sort_few.cuh")),
    ("sort_runs.cuh", include_str!("../../kernels/sort_runs.cuh")),
    ("sort_sample.cuh", include_str!("../../kernels/sort_sample.cuh")),
    ("arith.cuh", include_str!("../../kernels/arith.cuh")),
    ("decimal.cuh", include_str!("../../kernels/decimal.cuh")),
    ("starts.cuh", include_str!("../../kernels/starts.cuh")),
    ("lz4.cuh", include_str!("../../kernels/lz4.cuh")),
    ("snappy.cuh", include_str!("../../kernels/snappy.cuh")),
    ("list.cuh", include_str!("../../kernels/list.cuh")),
    ("parquet_page.cuh", include_str!("../../kernels/parquet_page.cuh")),
    ("parquet_delta.cuh", include_str!("../../kernels/parquet_delta.cuh")),
    ("parquet_fixed.cuh", include_str!("../../kernels/parquet_fixed.cuh")),
    ("parquet_hybrid.cuh", include_str!("../../kernels/parquet_hybrid.cuh")),
    ("parquet_null.cuh", include_str!("../../kernels/parquet_null.cuh")),
    ("parquet_string.cuh", include_str!("../../kernels/parquet_string.cuh")),
    ("order_bytes.cuh", include_str!("../../kernels/order_bytes.cuh")),
    ("string.cuh", include_str!("../../kernels/string.cuh")),
    ("survey.cuh", include_str!("../../kernels/survey.cuh")),
    ("text.cuh", include_str!("../../kernels/text.cuh")),
    ("time.cuh", include_str!("../../kernels/time.cuh")),
    ("moment.cuh", include_str!("../../kernels/moment.cuh")),
    ("automaton.cuh", include_str!("../../kernels/automaton.cuh")),
    ("captures.cuh", include_str!("../../kernels/captures.cuh")),
    ("interval.cuh", include_str!("../../kernels/interval.cuh")),
    ("math.cuh", include_str!("../../kernels/math.cuh")),
    ("words.cuh", include_str!("../../kernels/words.cuh")),
    ("zone.cuh", include_str!("../../kernels/zone.cuh")),
    ("best_row.cuh", include_str!("../../kernels/best_row.cuh")),
    ("format.cuh", include_str!("../../kernels/format.cuh")),
    ("parse.cuh", include_str!("../../kernels/parse.cuh")),
    ("parse_time.cuh", include_str!("../../kernels/parse_time.cuh")),
    ("raw.cuh", include_str!("../../kernels/raw.cuh")),
    ("user.cuh", include_str!("../../kernels/user.cuh")),
    ("window.cuh", include_str!("../../kernels/window.cuh")),
];

/// A translation unit to compile: a name for diagnostics, and text that may include [`HEADERS`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KernelSource {
    pub(crate) name: String,
    pub(crate) text: String,
}

/// The sha256 of a header, in hex; empty for a name that is none. Computed once in a process: a
/// header is a part of most sources.
pub(crate) fn header_digest(name: &str) -> &'static str {
    static DIGESTS: LazyLock<HashMap<&str, String>> = LazyLock::new(|| {
        HEADERS.iter().map(|&(name, text)| (name, hex(&Sha256::digest(text)))).collect()
    });
    DIGESTS.get(name).map_or("", String::as_str)
}

impl KernelSource {
    pub(crate) fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        KernelSource { name: name.into(), text: text.into() }
    }

    /// The embedded headers this source includes, directly or through others, in name order.
    pub(crate) fn headers(&self) -> Vec<(&'static str, &'static str)> {
        let mut found = BTreeSet::new();
        let mut texts = vec![self.text.as_str()];
        while let Some(text) = texts.pop() {
            for line in text.lines() {
                let Some(rest) = line.trim_start().strip_prefix("#include \"") else { continue };
                let Some(name) = rest.split('"').next() else { continue };
                if let Some(&header) = HEADERS.iter().find(|(known, _)| *known == name)
                    && found.insert(header)
                {
                    texts.push(header.1);
                }
            }
        }
        found.into_iter().collect()
    }
}
