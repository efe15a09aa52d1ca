//! Variables of the environment: the one place that reads them.

use std::env::VarError;
use std::ffi::OsString;

/// The text of a variable.
///
/// # Errors
/// It is not set, or no text.
pub fn text(name: &str) -> Result<String, VarError> {
    debug_assert!(is_known(name), "{name} stands in no list of kernels/src/environment.rs");
    std::env::var(name)
}

/// The value of a variable, whatever bytes it has.
pub fn os(name: &str) -> Option<OsString> {
    debug_assert!(is_known(name), "{name} stands in no list of kernels/src/environment.rs");
    std::env::var_os(name)
}

fn is_known(name: &str) -> bool {
    OURS.contains(&name) || OF_OTHERS.contains(&name)
}

/// Variables of ours. README.md and docs/developing.md say what each means.
const OURS: [&str; 23] = [
    "WARPFRAME_CACHE_DIR",
    "WARPFRAME_CACHE_MIB",
    "WARPFRAME_DEVICE",
    "WARPFRAME_EXACT_MEMORY",
    "WARPFRAME_HOST_MEMORY_LIMIT",
    "WARPFRAME_MATCH_COMPILER",
    "WARPFRAME_MEMORY_LIMIT",
    "WARPFRAME_NVRTC",
    "WARPFRAME_NVRTC_OPTIONS",
    "WARPFRAME_PARTITION_ROWS",
    "WARPFRAME_PREPARE",
    "WARPFRAME_QUICK_KERNELS",
    "WARPFRAME_RECORD_KERNELS",
    "WARPFRAME_REQUIRE_GPU",
    "WARPFRAME_REQUIRE_NVRTC",
    "WARPFRAME_SHARED_BYTES",
    "WARPFRAME_SIM_ASAN",
    "WARPFRAME_SIM_SEED",
    "WARPFRAME_SPILL_DIR",
    "WARPFRAME_SPILL_LIMIT",
    "WARPFRAME_STRICT",
    "WARPFRAME_TEST_ROWS",
    "WARPFRAME_TIMELINE",
];

/// Variables of the system and of other programs.
const OF_OTHERS: [&str; 6] = ["COLUMNS", "CUDA_HOME", "CUDA_PATH", "CXX", "HOME", "XDG_CACHE_HOME"];

/// A variable that is a whole number; `None` of one that is not set, or that is none.
pub fn number(name: &str) -> Option<u64> {
    text(name).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_variable_is_documented() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let page = |name: &str| std::fs::read_to_string(root.join(name)).expect("a page");
        let pages = ["README.md", "docs/developing.md"].map(page).concat();
        for name in OURS {
            assert!(pages.contains(&format!("`{name}`")), "{name} stands on no page");
        }
        assert!(OURS.is_sorted() && OF_OTHERS.is_sorted());
    }
}
