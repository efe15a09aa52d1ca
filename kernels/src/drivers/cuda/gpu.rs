//! The GPU itself: what it is, whether compiler and driver fit it, and its context.

use std::collections::BTreeMap;
use std::ffi::c_int;

use cudarc::driver::sys;
use parking_lot::Mutex;

use super::calls::{call, unavailable};
use crate::compile::nvrtc::Nvrtc;
use crate::drivers::driver::DeviceProperties;
use crate::error::Result;
use crate::timeline::{Part, span};

/// Compute capability that the kernels are written for.
const OLDEST_CAPABILITY: (i32, i32) = (8, 0);

/// How many devices there are, of those that `CUDA_VISIBLE_DEVICES` leaves.
pub(super) fn count() -> Result<usize> {
    let mut count = 0;
    // SAFETY: writes the count only; the driver is initialised, here and in the functions below.
    unsafe { call!(cuDeviceGetCount(&mut count))? };
    Ok(count.max(0) as usize)
}

/// The device of this ordinal.
pub(super) fn find(ordinal: usize) -> Result<sys::CUdevice> {
    let count = count()?;
    if ordinal >= count {
        return Err(unavailable(
            ordinal,
            format!("the NVIDIA driver finds {count} GPUs, numbered from 0"),
        ));
    }
    let mut device = 0;
    // SAFETY: writes the handle only.
    unsafe { call!(cuDeviceGet(&mut device, ordinal as c_int))? };
    Ok(device)
}

fn attribute(device: sys::CUdevice, attribute: sys::CUdevice_attribute) -> Result<i32> {
    let mut value = 0;
    // SAFETY: writes the value only.
    unsafe { call!(cuDeviceGetAttribute(&mut value, attribute, device))? };
    Ok(value)
}

fn capability(device: sys::CUdevice) -> Result<(i32, i32)> {
    use sys::CUdevice_attribute::*;
    let major = attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
    Ok((major, attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?))
}

/// What the device is.
///
/// # Errors
/// [`ErrorKind::DeviceUnavailable`](crate::ErrorKind::DeviceUnavailable) where it is too old.
pub(super) fn properties(ordinal: usize, device: sys::CUdevice) -> Result<DeviceProperties> {
    use sys::CUdevice_attribute::*;
    let (major, minor) = capability(device)?;
    if (major, minor) < OLDEST_CAPABILITY {
        let (least, _) = OLDEST_CAPABILITY;
        let why =
            format!("compute capability {major}.{minor}; {least}.0 (Ampere) or newer is needed");
        return Err(unavailable(ordinal, why));
    }
    let mut name = [0u8; 256];
    let mut memory = 0;
    // SAFETY: writes at most as many bytes of the name as are told, and the size.
    unsafe {
        call!(cuDeviceGetName(name.as_mut_ptr().cast(), name.len() as c_int, device))?;
        call!(cuDeviceTotalMem_v2(&mut memory, device))?;
    }
    let name = name.split(|&byte| byte == 0).next().unwrap_or_default();
    Ok(DeviceProperties {
        name: String::from_utf8_lossy(name).into_owned(),
        architecture: format!("sm_{major}{minor}"),
        multiprocessors: attribute(device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)? as u32,
        shared_per_block: attribute(device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?
            as u32,
        memory: memory as u64,
    })
}

/// The compiler, loaded where it is not: it must know the architecture, and be no newer than the
/// driver.
pub(super) fn compiler_for(ordinal: usize, architecture: &str) -> Result<&'static Nvrtc> {
    let nvrtc = Nvrtc::get()?;
    nvrtc.supports(architecture)?;
    check_versions(ordinal, nvrtc)?;
    Ok(nvrtc)
}

/// An image made by a newer major version of NVRTC than the driver's may not load.
fn check_versions(ordinal: usize, nvrtc: &Nvrtc) -> Result<()> {
    let mut driver = 0;
    // SAFETY: writes the number only.
    unsafe { call!(cuDriverGetVersion(&mut driver))? };
    let (major, minor) = nvrtc.version();
    if major <= driver / 1000 {
        return Ok(());
    }
    let supported = driver / 1000;
    let why = format!(
        "the NVIDIA driver supports CUDA {supported}.{}, the NVRTC found is {major}.{minor}: install a newer driver, or \
         NVRTC {supported} (`pip install nvidia-cuda-nvrtc-cu{supported}`)",
        driver % 1000 / 10
    );
    Err(unavailable(ordinal, why))
}

/// The device's primary context, bound to the calling thread.
///
/// Retained once for the life of the process, as by the CUDA runtime: making another takes a fifth
/// of a second, and a release that ends the context while other threads still have it bound is a
/// path that few programs take.
pub(super) fn primary(device: sys::CUdevice) -> Result<sys::CUcontext> {
    static RETAINED: Mutex<BTreeMap<sys::CUdevice, PrimaryContext>> = Mutex::new(BTreeMap::new());
    let mut retained = RETAINED.lock();
    let context = match retained.get(&device) {
        Some(context) => context.0,
        None => {
            let _span = span(Part::Context, || format!("device {device}"));
            let mut context = std::ptr::null_mut();
            // SAFETY: a device of this driver; writes the handle only.
            unsafe { call!(cuDevicePrimaryCtxRetain(&mut context, device))? };
            retained.insert(device, PrimaryContext(context));
            context
        }
    };
    // SAFETY: retained, and never released.
    unsafe { call!(cuCtxSetCurrent(context))? };
    Ok(context)
}

#[derive(Debug)]
pub(super) struct PrimaryContext(pub(super) sys::CUcontext);

// SAFETY: driver handles may be used from any thread.
unsafe impl Send for PrimaryContext {}
// SAFETY: as above.
unsafe impl Sync for PrimaryContext {}
