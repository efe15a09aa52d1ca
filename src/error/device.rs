//! Errors of devices as the engine's.

use warpframe_device::ErrorKind as Kind;

use super::{Error, ErrorKind};

impl From<warpframe_device::Error> for Error {
    fn from(error: warpframe_device::Error) -> Self {
        match error.into_kind() {
            Kind::OutOfDeviceMemory { operator, asked, free, limit, used, cached, kept } => {
                ErrorKind::OutOfDeviceMemory { operator, asked, free, limit, used, cached, kept }
            }
            Kind::OutOfHostMemory { account, limit, spill_limit } => {
                ErrorKind::OutOfHostMemory { account, limit, spill_limit }
            }
            Kind::Cuda { call, code } => ErrorKind::Cuda { call, code },
            Kind::DeviceUnavailable { device, why } => ErrorKind::DeviceUnavailable { device, why },
            Kind::Compile { kernel, log } => ErrorKind::Compile { kernel, log },
            Kind::Simulation { kernel, report } => ErrorKind::Simulation { kernel, report },
            Kind::Unsupported { what, why } => ErrorKind::Unsupported { what, why },
            Kind::Setting { message } => {
                ErrorKind::Parse { path: None, line: 0, column: 0, message }
            }
            Kind::Interrupted { timeout } => ErrorKind::Interrupted { timeout },
            Kind::Internal { what } => ErrorKind::Internal { what },
            Kind::Caller(error) => match error.downcast::<Error>() {
                Ok(ours) => return *ours,
                Err(other) => ErrorKind::Internal { what: other.to_string() },
            },
            Kind::Io { path, source } => ErrorKind::Io { path, source },
        }
        .into()
    }
}

/// For work that the device is asked to do: `From` gives the error back as it is.
impl From<Error> for warpframe_device::Error {
    fn from(error: Error) -> Self {
        Kind::Caller(Box::new(error)).into()
    }
}
