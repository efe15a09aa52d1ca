//! Columns to and from DLPack, the interface of tensors: CuPy, PyTorch, JAX and others have it.

use std::ffi::c_void;

use super::device_arrow::{address_of, check_place, check_plain, lent, let_go, place};
use crate::arrow::datatypes::DataType;
use crate::column::{Column, Repr};
use crate::error::{Error, Result};
use warpframe_device::Device;

/// `DLDevice`: where a tensor lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct DLDevice {
    /// [`DEVICE_CPU`](super::DEVICE_CPU), [`DEVICE_CUDA`](super::DEVICE_CUDA), or another of
    /// DLPack's.
    pub device_type: i32,
    /// Its number.
    pub device_id: i32,
}

/// `DLDataType`: what a tensor's elements are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct DLDataType {
    /// 0 signed, 1 unsigned, 2 float, 6 bool.
    pub code: u8,
    /// Of an element.
    pub bits: u8,
    /// 1, but of vectors.
    pub lanes: u16,
}

/// `DLTensor`: a view of elements.
#[derive(Debug)]
#[repr(C)]
pub struct DLTensor {
    /// The address in the device's memory.
    pub data: *mut c_void,
    /// The device.
    pub device: DLDevice,
    /// How many dimensions there are: of a column one.
    pub ndim: i32,
    /// The type of the elements.
    pub dtype: DLDataType,
    /// Elements along each dimension.
    pub shape: *mut i64,
    /// Elements from one to the next along each dimension; null where they lie without gaps.
    pub strides: *mut i64,
    /// Bytes from `data` to the first element.
    pub byte_offset: u64,
}

/// `DLManagedTensor`: a tensor with its owner. Whoever takes it calls `deleter` once.
#[derive(Debug)]
#[repr(C)]
pub struct DLManagedTensor {
    /// The tensor.
    pub dl_tensor: DLTensor,
    /// The owner's.
    pub manager_ctx: *mut c_void,
    /// Lets the owner free it.
    pub deleter: Option<unsafe extern "C" fn(*mut Self)>,
}

/// `DLPackVersion`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct DLPackVersion {
    /// Another one means another layout.
    pub major: u32,
    /// Another one means other types.
    pub minor: u32,
}

/// `DLManagedTensorVersioned`, since DLPack 1.0. Whoever takes it calls `deleter` once.
#[derive(Debug)]
#[repr(C)]
pub struct DLManagedTensorVersioned {
    /// Of the interface.
    pub version: DLPackVersion,
    /// The owner's.
    pub manager_ctx: *mut c_void,
    /// Lets the owner free it.
    pub deleter: Option<unsafe extern "C" fn(*mut Self)>,
    /// Bit 0: nobody may write it.
    pub flags: u64,
    /// The tensor.
    pub dl_tensor: DLTensor,
}

const VERSION: DLPackVersion = DLPackVersion { major: 1, minor: 0 };
const READ_ONLY: u64 = 1;
const SIGNED: u8 = 0;
const UNSIGNED: u8 = 1;
const FLOAT: u8 = 2;
const BOOL: u8 = 6;

/// Types of DLPack's that are columns, with their codes and bits.
const TYPES: [(DataType, u8, u8); 11] = [
    (DataType::Int8, SIGNED, 8),
    (DataType::Int16, SIGNED, 16),
    (DataType::Int32, SIGNED, 32),
    (DataType::Int64, SIGNED, 64),
    (DataType::UInt8, UNSIGNED, 8),
    (DataType::UInt16, UNSIGNED, 16),
    (DataType::UInt32, UNSIGNED, 32),
    (DataType::UInt64, UNSIGNED, 64),
    (DataType::Float32, FLOAT, 32),
    (DataType::Float64, FLOAT, 64),
    (DataType::Boolean, BOOL, 8),
];

/// What the deleter of a tensor gives up.
struct ExportedTensor<T> {
    column: Column,
    shape: [i64; 1],
    strides: [i64; 1],
    tensor: Option<T>,
}

/// The column as a tensor of one dimension, without a copy. Waits for the work that makes it.
///
/// # Errors
/// A column of another type than DLPack's, or with nulls.
pub(crate) fn export(name: &str, column: &Column, device: &Device) -> Result<*mut DLManagedTensor> {
    managed(name, column, device, |dl_tensor, manager_ctx| DLManagedTensor {
        dl_tensor,
        manager_ctx,
        deleter: Some(delete),
    })
}

/// The column as a read-only tensor of DLPack 1.0, without a copy. Waits for the work that makes
/// it.
pub(crate) fn export_versioned(
    name: &str,
    column: &Column,
    device: &Device,
) -> Result<*mut DLManagedTensorVersioned> {
    managed(name, column, device, |dl_tensor, manager_ctx| DLManagedTensorVersioned {
        version: VERSION,
        manager_ctx,
        deleter: Some(delete_versioned),
        flags: READ_ONLY,
        dl_tensor,
    })
}

fn managed<T>(
    name: &str,
    column: &Column,
    device: &Device,
    make: impl FnOnce(DLTensor, *mut c_void) -> T,
) -> Result<*mut T> {
    let Some((_, code, bits)) = TYPES.iter().find(|(dtype, ..)| *dtype == column.dtype) else {
        let what = format!("column {name:?} of {} as a tensor", column.dtype);
        return Err(Error::unsupported(
            what,
            "tensors hold integers, floats and booleans: cast it",
        ));
    };
    check_plain(name, column)?;
    // There is no event in a tensor: whoever gets it may read it at once.
    device.synchronize()?;
    let (device_type, number) = place(device);
    let exported = ExportedTensor {
        column: column.clone(),
        shape: [column.len as i64],
        strides: [1],
        tensor: None,
    };
    let context = Box::into_raw(Box::new(exported));
    // SAFETY: the box was just made, and is taken back by the deleter alone.
    let exported = unsafe { &mut *context };
    let dl_tensor = DLTensor {
        data: address_of(column) as *mut c_void,
        device: DLDevice { device_type, device_id: number.max(0) as i32 },
        ndim: 1,
        dtype: DLDataType { code: *code, bits: *bits, lanes: 1 },
        shape: exported.shape.as_mut_ptr(),
        strides: exported.strides.as_mut_ptr(),
        byte_offset: 0,
    };
    Ok(std::ptr::from_mut(exported.tensor.insert(make(dl_tensor, context.cast()))))
}

unsafe extern "C" fn delete(tensor: *mut DLManagedTensor) {
    // SAFETY: called once, with a tensor of `export`, whose context is this box.
    let exported =
        unsafe { Box::from_raw((*tensor).manager_ctx.cast::<ExportedTensor<DLManagedTensor>>()) };
    let_go(exported.column);
}

unsafe extern "C" fn delete_versioned(tensor: *mut DLManagedTensorVersioned) {
    // SAFETY: as above.
    let exported = unsafe {
        Box::from_raw((*tensor).manager_ctx.cast::<ExportedTensor<DLManagedTensorVersioned>>())
    };
    let_go(exported.column);
}

/// A tensor of another program, whose deleter is called at the end of its scope.
struct TakenTensor<T> {
    tensor: *mut T,
    delete: unsafe fn(*mut T),
}

// SAFETY: what it points to is read-only until it is deleted, which any thread may do.
unsafe impl<T> Send for TakenTensor<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for TakenTensor<T> {}

impl<T> Drop for TakenTensor<T> {
    fn drop(&mut self) {
        // SAFETY: a tensor that was taken, and is given up here, once.
        unsafe { (self.delete)(self.tensor) }
    }
}

/// The column of a tensor, which stays with its owner until the column is gone.
///
/// # Safety
/// A live tensor that nobody else deletes; its elements are there, and stay as they are until then.
///
/// # Errors
/// A tensor of another device, of several dimensions, with gaps, or of other elements than columns
/// have. It is deleted then.
pub(crate) unsafe fn import(device: &Device, tensor: *mut DLManagedTensor) -> Result<Column> {
    let delete = |tensor: *mut DLManagedTensor| {
        // SAFETY: as of `TakenTensor`.
        unsafe { (*tensor).deleter.iter().for_each(|delete| delete(tensor)) }
    };
    if tensor.is_null() {
        return Err(refused("it is null"));
    }
    let taken = TakenTensor { tensor, delete };
    // SAFETY: the caller's promise.
    unsafe { column_of(device, &raw const (*tensor).dl_tensor, taken) }
}

/// The column of a tensor of DLPack 1.0 or later, which stays with its owner until the column is
/// gone.
///
/// # Safety
/// As of [`import`].
///
/// # Errors
/// As of [`import`]; a version whose layout is unknown.
pub(crate) unsafe fn import_versioned(
    device: &Device,
    tensor: *mut DLManagedTensorVersioned,
) -> Result<Column> {
    let delete = |tensor: *mut DLManagedTensorVersioned| {
        // SAFETY: as of `TakenTensor`.
        unsafe { (*tensor).deleter.iter().for_each(|delete| delete(tensor)) }
    };
    if tensor.is_null() {
        return Err(refused("it is null"));
    }
    let taken = TakenTensor { tensor, delete };
    // SAFETY: a live tensor; what stands before `dl_tensor` is the same in all versions.
    let DLPackVersion { major, minor } = unsafe { (*tensor).version };
    if major != VERSION.major {
        return Err(refused(&format!("it is of DLPack {major}.{minor}; 1.x is known")));
    }
    // SAFETY: the caller's promise.
    unsafe { column_of(device, &raw const (*tensor).dl_tensor, taken) }
}

fn refused(why: &str) -> Error {
    Error::unsupported("a tensor as a column", why)
}

/// # Safety
/// As of [`import`]; `tensor` is a part of `taken`.
unsafe fn column_of<T: 'static>(
    device: &Device,
    tensor: *const DLTensor,
    taken: TakenTensor<T>,
) -> Result<Column> {
    // SAFETY: a live tensor.
    let tensor = unsafe { &*tensor };
    let DLTensor { data, device: found, ndim, dtype, shape, strides, byte_offset } = tensor;
    check_place(device, "memory of a tensor", (found.device_type, i64::from(found.device_id)))?;
    if *ndim != 1 || shape.is_null() {
        return Err(refused(&format!("it has {ndim} dimensions: a column has one")));
    }
    // SAFETY: as many lengths and strides as dimensions.
    let (rows, stride) = unsafe { (**shape, strides.as_ref().map_or(1, |stride| *stride)) };
    let rows = usize::try_from(rows).map_err(|_| refused("its length is negative"))?;
    if stride != 1 && rows > 1 {
        let why = format!(
            "its elements are {stride} apart: make it contiguous (`ascontiguousarray`, `contiguous()`)"
        );
        return Err(refused(&why));
    }
    let known = |(_, code, bits): &&(DataType, u8, u8)| {
        (*code, *bits, 1) == (dtype.code, dtype.bits, dtype.lanes)
    };
    let Some((of, ..)) = TYPES.iter().find(known) else {
        let DLDataType { code, bits, lanes } = dtype;
        return Err(refused(&format!(
            "no column has elements of code {code}, {bits} bits and {lanes} lanes"
        )));
    };
    let width = Repr::of(of).map_or(0, Repr::width);
    let base = (*data as u64).wrapping_add(*byte_offset);
    // SAFETY: the caller's promise.
    let (values, offset) = unsafe { lent(device, base, (0, rows), width, move || drop(taken)) }?;
    Ok(Column { offset, ..Column::plain(of.clone(), rows, values, None) })
}
