//! Values of other libraries, and columns in the memory of a device for them.

#[cfg(feature = "ffi")]
pub(crate) mod device_arrow;
#[cfg(feature = "ffi")]
pub(crate) mod dlpack;
#[cfg(feature = "polars")]
pub mod polars;
#[cfg(feature = "serde")]
pub(crate) mod structs;

#[cfg(feature = "ffi")]
pub use device_arrow::{ArrowDeviceArray, ArrowDeviceArrayStream, DEVICE_CPU, DEVICE_CUDA};
#[cfg(feature = "ffi")]
pub use dlpack::{
    DLDataType, DLDevice, DLManagedTensor, DLManagedTensorVersioned, DLPackVersion, DLTensor,
};
