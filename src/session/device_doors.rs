//! Columns in the memory of the device, to and from other programs in this process.

use crate::arrow::ffi::FFI_ArrowSchema;

use super::Session;
use crate::column::Table;
use crate::error::{Error, Result};
use crate::frame::verbs::Concat;
use crate::frame::{DataFrame, Series};
use crate::interop::{
    ArrowDeviceArray, ArrowDeviceArrayStream, DLManagedTensor, DLManagedTensorVersioned,
    device_arrow, dlpack,
};
use warpframe_device::Device;

impl Session {
    /// The frame of an array of Arrow's C device data interface: rows, that is a struct array, in
    /// the memory of this session's device. They are not copied where kernels can read them as they
    /// are; the array is released when nothing uses them any more. Needs the feature `ffi`;
    /// [`DataFrame::to_arrow_device`] is the way out.
    ///
    /// # Safety
    /// The array is one of the interface, the schema describes it, and nobody writes its memory
    /// until it is released.
    ///
    /// # Errors
    /// [`ErrorKind::TypeMismatch`](crate::ErrorKind::TypeMismatch) for memory of another device;
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) for columns with nulls, of types
    /// that are not of fixed width or lie otherwise here (booleans, short decimals), and for a
    /// session without a device. The array is released then.
    pub unsafe fn from_arrow_device(
        &self,
        array: ArrowDeviceArray,
        schema: &FFI_ArrowSchema,
    ) -> Result<DataFrame> {
        self.core.as_statement(|| {
            // SAFETY: the caller's promise.
            let table = unsafe { device_arrow::import(self.own_device()?, array, schema) }?;
            Ok(DataFrame::on_device(&self.core, table))
        })
    }

    /// The frame of a stream of such arrays; rows of several arrays are copied together on the
    /// device.
    ///
    /// # Safety
    /// As of [`Session::from_arrow_device`], of each array.
    ///
    /// # Errors
    /// Those of [`Session::from_arrow_device`]; what the stream says.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// let session = Session::builder().device(DeviceChoice::Sim).build()?;
    /// let frame = frame!(session; "x" => [1.5, 2.5])?;
    /// // SAFETY: the stream is another session's, and nobody writes what it yields.
    /// let back = unsafe { session.from_arrow_device_stream(frame.to_arrow_device_stream()?) }?;
    /// assert!(back.equals(&frame)?);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub unsafe fn from_arrow_device_stream(
        &self,
        stream: ArrowDeviceArrayStream,
    ) -> Result<DataFrame> {
        let frames = self.core.as_statement(|| {
            let device = self.own_device()?;
            // SAFETY: the caller's promise.
            let (schema, mut tables) = unsafe { device_arrow::tables_of(device, stream) }?;
            if tables.is_empty() {
                tables.push(Table::empty(device, schema)?);
            }
            Ok(tables
                .into_iter()
                .map(|table| DataFrame::on_device(&self.core, table))
                .collect::<Vec<_>>())
        })?;
        match &frames[..] {
            [only] => Ok(only.clone()),
            several => DataFrame::concat(several, Concat::Vertical),
        }
    }

    /// The column of a DLPack tensor in the memory of this session's device, by a name: of one
    /// dimension, without gaps. It is not copied where kernels can read it as it is; its deleter is
    /// called when nothing uses it any more. Its elements are there, or the work that makes them
    /// was ordered before that of [`Device::stream`] (which Python's `__dlpack__(stream=…)` does)
    /// or by [`Device::wait_for_stream`]. Needs the feature `ffi`; [`Series::to_dlpack`] is the way
    /// out.
    ///
    /// # Safety
    /// A live tensor, of which nobody else calls the deleter, and whose memory nobody writes until
    /// then.
    ///
    /// # Errors
    /// [`ErrorKind::TypeMismatch`](crate::ErrorKind::TypeMismatch) for memory of another device;
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) for other tensors, and for a
    /// session without a device. The deleter is called then.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// let session = Session::builder().device(DeviceChoice::Sim).build()?;
    /// let tensor = frame!(session; "x" => [1.5, 2.5])?.column("x")?.to_dlpack()?;
    /// // SAFETY: the tensor was just made, and is handed over.
    /// let y = unsafe { session.from_dlpack("y", tensor) }?;
    /// assert_eq!((y.name(), y.to_vec::<f64>()?), ("y", vec![1.5, 2.5]));
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub unsafe fn from_dlpack(&self, name: &str, tensor: *mut DLManagedTensor) -> Result<Series> {
        self.core.as_statement(|| {
            let device = self.own_device()?;
            // SAFETY: the caller's promise.
            let column = unsafe { dlpack::import(device, tensor) }?;
            Series::of_column(&self.core, device, name, column)
        })
    }

    /// [`Session::from_dlpack`] of a tensor since DLPack 1.0.
    ///
    /// # Safety
    /// As of [`Session::from_dlpack`].
    ///
    /// # Errors
    /// Those of [`Session::from_dlpack`]; a version that is not 1.
    pub unsafe fn from_dlpack_versioned(
        &self,
        name: &str,
        tensor: *mut DLManagedTensorVersioned,
    ) -> Result<Series> {
        self.core.as_statement(|| {
            let device = self.own_device()?;
            // SAFETY: the caller's promise.
            let column = unsafe { dlpack::import_versioned(device, tensor) }?;
            Series::of_column(&self.core, device, name, column)
        })
    }

    fn own_device(&self) -> Result<&Device> {
        let why = "the session has no device: DeviceChoice::Sim has its columns in host memory";
        self.core.device().ok_or_else(|| Error::unsupported("memory of a device as a column", why))
    }
}

impl DataFrame {
    /// The rows as an array of Arrow's C device data interface, and its schema: the columns stay
    /// where they are in the device's memory, and as they are until the array is released. Its
    /// consumer waits for its event, and writes nothing. Needs the feature `ffi`;
    /// [`Session::from_arrow_device`] is the way in, and an example is at [`ArrowDeviceArray`].
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) for columns with nulls, of types
    /// that are not of fixed width or lie otherwise here (booleans, decimals of up to 18 digits,
    /// intervals), and for a session without a device.
    pub fn to_arrow_device(&self) -> Result<(ArrowDeviceArray, FFI_ArrowSchema)> {
        self.as_statement(|device| device_arrow::export(&self.table_on(device)?))
    }

    /// The frame as a stream of one array in device memory.
    ///
    /// # Errors
    /// As of [`DataFrame::to_arrow_device`], though columns are looked at when the array is asked
    /// for.
    pub fn to_arrow_device_stream(&self) -> Result<ArrowDeviceArrayStream> {
        self.as_statement(|device| Ok(device_arrow::stream_of(self.table_on(device)?)))
    }
}

impl Series {
    /// The column as a DLPack tensor of one dimension: it stays where it is in the device's memory,
    /// and as it is until the tensor's deleter is called, which whoever gets it does once. Waits
    /// for the queries that make it. Nobody may write it: other frames may have it. Needs the
    /// feature `ffi`; [`Session::from_dlpack`] is the way in, with an example.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) for columns with nulls, or that
    /// are no integers, floats or booleans, and for a session without a device.
    pub fn to_dlpack(&self) -> Result<*mut DLManagedTensor> {
        self.as_statement(|device| dlpack::export(self.name(), &self.column_on(device)?, device))
    }

    /// [`Series::to_dlpack`] since DLPack 1.0, which says that it is read-only.
    ///
    /// # Errors
    /// Those of [`Series::to_dlpack`].
    pub fn to_dlpack_versioned(&self) -> Result<*mut DLManagedTensorVersioned> {
        self.as_statement(|device| {
            dlpack::export_versioned(self.name(), &self.column_on(device)?, device)
        })
    }
}
