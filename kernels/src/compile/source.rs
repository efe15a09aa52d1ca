//! Kernel sources: a translation unit and the embedded headers it may include.

use std::collections::{BTreeSet, HashMap};
use std::sync::LazyLock;

use sha2::{Digest, Sha256};

use crate::compile::hex::hex;

/// Headers that generated code includes before anything else, in this order.
pub const COMMON_HEADERS: [&str; 5] =
    ["prelude.cuh", "arith.cuh", "decimal.cuh", "time.cuh", "pipeline.cuh"];

/// Every file of `kernels/`, by the name it is included under.
pub static HEADERS: &[(&str, &str)] = &[
    ("prelude.cuh", include_str!("../../prelude.cuh")),
    ("sim.h", include_str!("../../sim.h")),
    ("characters.cuh", include_str!("../../characters.cuh")),
    ("csv.cuh", include_str!("../../csv.cuh")),
    ("dictionary.cuh", include_str!("../../dictionary.cuh")),
    ("exchange.cuh", include_str!("../../exchange.cuh")),
    ("compact.cuh", include_str!("../../compact.cuh")),
    ("decompress.cuh", include_str!("../../decompress.cuh")),
    ("gather.cuh", include_str!("../../gather.cuh")),
    ("sequence.cuh", include_str!("../../sequence.cuh")),
    ("inverse.cuh", include_str!("../../inverse.cuh")),
    ("random.cuh", include_str!("../../random.cuh")),
    ("gather_columns.cuh", include_str!("../../gather_columns.cuh")),
    ("reduce.cuh", include_str!("../../reduce.cuh")),
    ("top.cuh", include_str!("../../top.cuh")),
    ("hash.cuh", include_str!("../../hash.cuh")),
    ("join.cuh", include_str!("../../join.cuh")),
    ("partition.cuh", include_str!("../../partition.cuh")),
    ("join_partitioned.cuh", include_str!("../../join_partitioned.cuh")),
    ("scan.cuh", include_str!("../../scan.cuh")),
    ("keys.cuh", include_str!("../../keys.cuh")),
    ("pipeline.cuh", include_str!("../../pipeline.cuh")),
    ("segment.cuh", include_str!("../../segment.cuh")),
    ("sort.cuh", include_str!("../../sort.cuh")),
    ("sort_key.cuh", include_str!("../../sort_key.cuh")),
    ("sort_few.cuh", include_str!("../../sort_few.cuh")),
    ("sort_runs.cuh", include_str!("../../sort_runs.cuh")),
    ("sort_sample.cuh", include_str!("../../sort_sample.cuh")),
    ("arith.cuh", include_str!("../../arith.cuh")),
    ("decimal.cuh", include_str!("../../decimal.cuh")),
    ("starts.cuh", include_str!("../../starts.cuh")),
    ("lz4.cuh", include_str!("../../lz4.cuh")),
    ("snappy.cuh", include_str!("../../snappy.cuh")),
    ("list.cuh", include_str!("../../list.cuh")),
    ("parquet_page.cuh", include_str!("../../parquet_page.cuh")),
    ("parquet_delta.cuh", include_str!("../../parquet_delta.cuh")),
    ("parquet_fixed.cuh", include_str!("../../parquet_fixed.cuh")),
    ("parquet_hybrid.cuh", include_str!("../../parquet_hybrid.cuh")),
    ("parquet_null.cuh", include_str!("../../parquet_null.cuh")),
    ("parquet_string.cuh", include_str!("../../parquet_string.cuh")),
    ("order_bytes.cuh", include_str!("../../order_bytes.cuh")),
    ("string.cuh", include_str!("../../string.cuh")),
    ("survey.cuh", include_str!("../../survey.cuh")),
    ("text.cuh", include_str!("../../text.cuh")),
    ("time.cuh", include_str!("../../time.cuh")),
    ("moment.cuh", include_str!("../../moment.cuh")),
    ("automaton.cuh", include_str!("../../automaton.cuh")),
    ("captures.cuh", include_str!("../../captures.cuh")),
    ("tagged.cuh", include_str!("../../tagged.cuh")),
    ("interval.cuh", include_str!("../../interval.cuh")),
    ("math.cuh", include_str!("../../math.cuh")),
    ("words.cuh", include_str!("../../words.cuh")),
    ("zone.cuh", include_str!("../../zone.cuh")),
    ("best_row.cuh", include_str!("../../best_row.cuh")),
    ("format.cuh", include_str!("../../format.cuh")),
    ("parse.cuh", include_str!("../../parse.cuh")),
    ("parse_time.cuh", include_str!("../../parse_time.cuh")),
    ("raw.cuh", include_str!("../../raw.cuh")),
    ("user.cuh", include_str!("../../user.cuh")),
    ("window.cuh", include_str!("../../window.cuh")),
];

/// A translation unit to compile: a name for diagnostics, and text that may include [`HEADERS`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelSource {
    pub name: String,
    pub text: String,
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
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        KernelSource { name: name.into(), text: text.into() }
    }

    /// The embedded headers this source includes, directly or through others, in name order.
    pub fn headers(&self) -> Vec<(&'static str, &'static str)> {
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
