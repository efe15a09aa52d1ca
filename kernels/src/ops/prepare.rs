//! Preparing the hand-written kernels.

pub use crate::compile::prepare::PreparedKernels;
use crate::compile::prepare::prepare;
use crate::error::Result;

/// Compiles the kernels that every query may need, for GPUs of an architecture such as `sm_90`, and
/// keeps them in the kernel cache (`WARPFRAME_CACHE_DIR`). Needs NVRTC, but no GPU: containers and
/// release archives can have them made when they are built. Kernels that are generated from a query
/// are compiled when it is asked.
///
/// # Errors
/// [`DeviceUnavailable`](crate::ErrorKind::DeviceUnavailable) if there is no NVRTC or it does not
/// know the architecture.
///
/// ```
/// match warpframe_device::ops::prepare::prepare_kernels("sm_1") {
///     Ok(_) => unreachable!("there is no such GPU"),
///     Err(error) => assert!(matches!(error.kind(), warpframe_device::ErrorKind::DeviceUnavailable { .. })),
/// }
/// ```
pub fn prepare_kernels(architecture: &str) -> Result<PreparedKernels> {
    prepare(architecture, &super::sources())
}
