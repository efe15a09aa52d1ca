//! Tables to and from Arrow's C device data interface: buffers stay where they are on the device.
//!
//! ```text
//!   ArrowDeviceArray ─ array: a struct, whose children are the columns ─ buffers: validity (none), values
//!                    ─ the device, and the event behind which the values are there
//! ```
//!
//! Columns are such as lie in memory as Arrow has them: of fixed width, without nulls. What an
//! array holds stays until its release callback is called, which waits for the device: nobody knows
//! which streams of its consumer still read it.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::Arc;

use crate::arrow::datatypes::{DataType, Schema, SchemaRef};
use crate::arrow::ffi::{FFI_ArrowArray, FFI_ArrowSchema};
use crate::column::{Column, Repr, Table};
use crate::error::{Error, ErrorKind, Result};
use warpframe_device::{Buffer, Device, DeviceKind, Event, ForeignMemory};

/// Memory of the host, in Arrow's interface and in DLPack: where the simulator has its columns.
pub const DEVICE_CPU: i32 = 1;
/// Memory of an NVIDIA GPU, in both.
pub const DEVICE_CUDA: i32 = 2;

/// Rows in the memory of a device: `struct ArrowDeviceArray` of Arrow's C device data interface. It
/// is released when it is dropped.
///
/// ```
/// use warpframe::interop::{ArrowDeviceArray, DEVICE_CPU};
/// use warpframe::prelude::*;
///
/// let session = Session::builder().device(DeviceChoice::Sim).build()?;
/// let frame = frame!(session; "x" => [1.5, 2.5], "n" => [1, 2])?;
/// let (array, schema): (ArrowDeviceArray, _) = frame.to_arrow_device()?;
/// assert_eq!((array.device_type, array.array.length), (DEVICE_CPU, 2));
/// // SAFETY: the array is another session's, whole, and nobody writes it.
/// let back = unsafe { session.from_arrow_device(array, &schema) }?;
/// assert!(back.equals(&frame)?);
/// # Ok::<(), warpframe::Error>(())
/// ```
#[derive(Debug)]
#[repr(C)]
pub struct ArrowDeviceArray {
    /// The rows, as in the C data interface, but for the memory that the buffers' addresses lead
    /// to.
    pub array: FFI_ArrowArray,
    /// The number of the device, -1 where it has none.
    pub device_id: i64,
    /// [`DEVICE_CPU`], [`DEVICE_CUDA`], or another device of Arrow's.
    pub device_type: i32,
    /// Of CUDA a `cudaEvent_t*`: the rows are there when the event is reached. Null if they are.
    pub sync_event: *mut c_void,
    /// Zeros.
    pub reserved: [i64; 3],
}

// SAFETY: what it points to is read-only until it is released, which any thread may do.
unsafe impl Send for ArrowDeviceArray {}
// SAFETY: as above.
unsafe impl Sync for ArrowDeviceArray {}

impl ArrowDeviceArray {
    /// One that was released, for a producer to fill.
    ///
    /// ```
    /// assert!(warpframe::interop::ArrowDeviceArray::empty().is_released());
    /// ```
    pub fn empty() -> Self {
        ArrowDeviceArray {
            array: FFI_ArrowArray::empty(),
            device_id: -1,
            device_type: DEVICE_CPU,
            sync_event: std::ptr::null_mut(),
            reserved: [0; 3],
        }
    }

    /// Whether nothing is in it (any more).
    pub fn is_released(&self) -> bool {
        self.array.release.is_none()
    }
}

/// Batches of rows in the memory of a device: `struct ArrowDeviceArrayStream`. It is released when
/// it is dropped.
#[derive(Debug)]
#[repr(C)]
pub struct ArrowDeviceArrayStream {
    /// The device of all its arrays.
    pub device_type: i32,
    /// Writes the schema; 0, or an `errno`.
    pub get_schema: Option<unsafe extern "C" fn(*mut Self, *mut FFI_ArrowSchema) -> c_int>,
    /// Writes the next array, a released one behind the last; 0, or an `errno`.
    pub get_next: Option<unsafe extern "C" fn(*mut Self, *mut ArrowDeviceArray) -> c_int>,
    /// What went wrong last, or null.
    pub get_last_error: Option<unsafe extern "C" fn(*mut Self) -> *const c_char>,
    /// Releases the stream, once; its arrays live on.
    pub release: Option<unsafe extern "C" fn(*mut Self)>,
    /// The producer's.
    pub private_data: *mut c_void,
}

// SAFETY: a stream is used by one thread at a time, which may be any.
unsafe impl Send for ArrowDeviceArrayStream {}

impl Drop for ArrowDeviceArrayStream {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: the producer's callback, of a stream that was not released.
            unsafe { release(self) }
        }
    }
}

/// The device as both interfaces name it.
pub(super) fn place(device: &Device) -> (i32, i64) {
    match device.kind() {
        DeviceKind::Cuda(ordinal) => (DEVICE_CUDA, ordinal as i64),
        DeviceKind::Sim => (DEVICE_CPU, -1),
    }
}

/// Refuses memory of another device.
pub(super) fn check_place(device: &Device, what: &str, found: (i32, i64)) -> Result<()> {
    let told = |(kind, number): (i32, i64)| match kind {
        DEVICE_CPU => "the host's memory (device type 1)".to_string(),
        DEVICE_CUDA => format!("CUDA device {number} (device type 2)"),
        other => format!("device type {other}, number {number}"),
    };
    let expected = place(device);
    if expected.0 == found.0 && (expected.0 == DEVICE_CPU || expected.1 == found.1) {
        return Ok(());
    }
    Err(ErrorKind::TypeMismatch { what: what.into(), expected: told(expected), found: told(found) }
        .into())
}

/// The width of a type's values, where they lie as Arrow has them.
fn arrow_width(name: &str, dtype: &DataType) -> Result<usize> {
    let why = match dtype {
        DataType::Boolean => {
            "Arrow has a bit for each value, the device a byte: cast it to TINYINT"
        }
        DataType::Decimal128(precision, _) if *precision <= 18 => {
            "decimals of up to 18 digits are 64 bits wide here: cast it to a decimal of more digits, or to DOUBLE"
        }
        DataType::Interval(_) => "intervals lie here in a form of their own",
        _ => match Repr::of(dtype) {
            Some(Repr::View | Repr::List | Repr::Struct) | None => {
                "only columns of fixed width go without a copy: to_arrow() copies any"
            }
            Some(_) if matches!(dtype, DataType::Dictionary(..)) => {
                "cast it to the type of its values"
            }
            Some(repr) => return Ok(repr.width()),
        },
    };
    Err(Error::unsupported(format!("column {name:?} of {dtype} as memory of a device"), why))
}

/// Refuses a column with nulls, or one that is encoded.
pub(super) fn check_plain(name: &str, column: &Column) -> Result<()> {
    let what = || format!("column {name:?} as memory of a device");
    if !column.is_plain() {
        return Err(Error::unsupported(what(), "it is encoded"));
    }
    if column.has_nulls()? {
        return Err(Error::unsupported(what(), "it has nulls: fill_null or drop_nulls first"));
    }
    Ok(())
}

/// The address of a column's first value.
pub(super) fn address_of(column: &Column) -> u64 {
    column.data.slice(column.offset * column.width()).address()
}

/// What a released child array gives up.
struct ExportedColumn {
    column: Column,
    buffers: [*const c_void; 2],
}

/// What the released array of all columns gives up, besides these.
struct ExportedTable {
    children: Vec<*mut FFI_ArrowArray>,
    buffers: [*const c_void; 1],
    /// Live as long as its address is handed out.
    _event: Option<(Event, Box<u64>)>,
}

/// Waits until nothing on the device reads a column any more, and lets go of it.
pub(super) fn let_go(column: Column) {
    // An error is of earlier work: the next call that can report it does.
    let _ = column.data.device().settle_all();
    drop(column);
}

unsafe extern "C" fn release_column(array: *mut FFI_ArrowArray) {
    // SAFETY: Arrow calls it once, with an array that `export` made, whose data is this box.
    unsafe {
        let exported = Box::from_raw((*array).private_data.cast::<ExportedColumn>());
        (*array).release = None;
        let_go(exported.column);
    }
}

unsafe extern "C" fn release_table(array: *mut FFI_ArrowArray) {
    // SAFETY: as above. The children are boxes of `export`; whoever moved one out left it released,
    // so that dropping it does nothing.
    unsafe {
        let exported = Box::from_raw((*array).private_data.cast::<ExportedTable>());
        (*array).release = None;
        exported.children.iter().for_each(|child| drop(Box::from_raw(*child)));
    }
}

/// The columns of a table as one struct array, and their schema.
///
/// # Errors
/// Columns that do not lie as Arrow has them; those of the device.
pub(crate) fn export(table: &Table) -> Result<(ArrowDeviceArray, FFI_ArrowSchema)> {
    for (field, column) in table.schema.fields().iter().zip(&table.columns) {
        arrow_width(field.name(), field.data_type())?;
        check_plain(field.name(), column)?;
    }
    let schema = FFI_ArrowSchema::try_from(table.schema.as_ref())?;
    let (device_type, device_id) = place(&table.device);
    let event = match device_type {
        DEVICE_CUDA => {
            let event = table.device.record()?;
            let handle = Box::new(event.raw());
            Some((event, handle))
        }
        _ => None,
    };
    let sync_event = event
        .as_ref()
        .map_or(std::ptr::null_mut(), |(_, at)| std::ptr::from_ref(&**at).cast_mut().cast());
    let child = |column: &Column| {
        let buffers = [std::ptr::null(), address_of(column) as *const c_void];
        let mut exported = Box::new(ExportedColumn { column: column.clone(), buffers });
        Box::into_raw(Box::new(FFI_ArrowArray {
            length: column.len as i64,
            n_buffers: 2,
            buffers: exported.buffers.as_mut_ptr(),
            release: Some(release_column),
            private_data: Box::into_raw(exported).cast(),
            ..FFI_ArrowArray::empty()
        }))
    };
    let children = table.columns.iter().map(child).collect();
    let mut exported =
        Box::new(ExportedTable { children, buffers: [std::ptr::null()], _event: event });
    let array = FFI_ArrowArray {
        length: table.rows as i64,
        n_buffers: 1,
        n_children: exported.children.len() as i64,
        buffers: exported.buffers.as_mut_ptr(),
        children: exported.children.as_mut_ptr(),
        release: Some(release_table),
        private_data: Box::into_raw(exported).cast(),
        ..FFI_ArrowArray::empty()
    };
    Ok((ArrowDeviceArray { array, device_id, device_type, sync_event, reserved: [0; 3] }, schema))
}

/// The table of a struct array's columns, which stays with its producer until the table is gone.
///
/// # Safety
/// The array is one of the interface, which the schema describes, and its memory stays as it is
/// until it is released.
///
/// # Errors
/// Memory of another device, columns with nulls or of types that do not lie as here; those of the
/// device. The array is released then.
pub(crate) unsafe fn import(
    device: &Device,
    array: ArrowDeviceArray,
    schema: &FFI_ArrowSchema,
) -> Result<Table> {
    let refused = |why: &str| Error::unsupported("an array of a device", why);
    if array.is_released() {
        return Err(refused("it was released already"));
    }
    check_place(device, "memory of an array", (array.device_type, array.device_id))?;
    let schema: SchemaRef = Arc::new(Schema::try_from(schema).map_err(|_| {
        refused("it is one column: rows are a struct array, whose children are the columns")
    })?);
    let parent = &array.array;
    let rows = usize::try_from(parent.length).map_err(|_| refused("it has a negative length"))?;
    if parent.n_children != schema.fields().len() as i64 {
        return Err(refused(&format!(
            "{} columns, {} in its schema",
            parent.n_children,
            schema.fields().len()
        )));
    }
    let first = parent.offset;
    if parent.null_count != 0 && has_validity(parent) {
        return Err(refused("rows of it are null"));
    }
    if !array.sync_event.is_null() && array.device_type == DEVICE_CUDA {
        // SAFETY: of CUDA it is the address of an event, which is live until the array is released.
        unsafe { device.wait_for_event(*array.sync_event.cast::<u64>()) }?;
    }
    let held = Arc::new(array);
    let mut columns = vec![];
    for (at, field) in schema.fields().iter().enumerate() {
        // SAFETY: an array has as many children as it says.
        let child = unsafe { &**held.array.children.add(at) };
        let (name, dtype) = (field.name(), field.data_type());
        let width = arrow_width(name, dtype)?;
        let what = || format!("column {name:?} of another program");
        if child.null_count != 0 && has_validity(child) {
            let why = "it has nulls, or its producer does not say that it has none";
            return Err(Error::unsupported(what(), why));
        }
        let sizes = (usize::try_from(child.offset + first), usize::try_from(child.length - first));
        let (Ok(offset), Ok(length)) = sizes else {
            return Err(Error::unsupported(what(), "its length is none"));
        };
        if child.n_buffers != 2 || length < rows {
            return Err(Error::unsupported(what(), "it is not an array of its type"));
        }
        // SAFETY: it has two buffers, of which the second holds the values.
        let base = unsafe { *child.buffers.add(1) } as u64;
        let keep = held.clone();
        // SAFETY: the caller's promise: so many values lie there until the array is released.
        let (data, offset) =
            unsafe { lent(device, base, (offset, rows), width, move || drop(keep)) }?;
        columns.push(Column { offset, ..Column::plain(dtype.clone(), rows, data, None) });
    }
    Table::with_rows(device, schema, columns, rows)
}

fn has_validity(array: &FFI_ArrowArray) -> bool {
    // SAFETY: an array has as many buffers as it says; the first of these types' is the validity.
    array.n_buffers > 0 && !array.buffers.is_null() && unsafe { !(*array.buffers).is_null() }
}

/// What kernels expect of the address of a buffer.
const ALIGNMENT: u64 = 256;

/// A buffer of values that another program has, and the number of the first: where they lie, if
/// they begin as kernels expect it, else copied on the device. `release` is called when the memory
/// is used no more, once.
///
/// # Safety
/// `offset + rows` values of `width` bytes lie at `base`, in memory of the device, until `release`
/// is called.
pub(super) unsafe fn lent(
    device: &Device,
    base: u64,
    (offset, rows): (usize, usize),
    width: usize,
    release: impl FnOnce() + Send + Sync + 'static,
) -> Result<(Arc<Buffer>, usize)> {
    let (skipped, bytes) = (offset * width, rows * width);
    let foreign = ForeignMemory { release: Box::new(release) };
    if rows == 0 || base == 0 {
        (foreign.release)();
        return match rows {
            0 => Ok((Arc::new(device.alloc("a column of another program", 0)?), 0)),
            _ => Err(Error::unsupported("a column of another program", "its address is null")),
        };
    }
    // From the base, or from the first value.
    for (address, offset, len) in
        [(base, offset, skipped + bytes), (base + skipped as u64, 0, bytes)]
    {
        if address.is_multiple_of(ALIGNMENT) {
            // SAFETY: the caller's promise.
            return Ok((
                Arc::new(unsafe { Buffer::borrowed(device, address, len, foreign) }),
                offset,
            ));
        }
    }
    // SAFETY: the caller's promise; a copy within the device does not mind where values begin.
    let theirs = unsafe { Buffer::borrowed(device, base + skipped as u64, bytes, foreign) };
    let own = device.alloc("a column of another program", bytes)?;
    own.copy_from(0, &theirs, 0, bytes)?;
    Ok((Arc::new(own), 0))
}

/// What a stream of ours has.
struct ExportedStream {
    table: Table,
    is_done: bool,
    error: Option<CString>,
}

/// A stream of a table's rows, in one array.
pub(crate) fn stream_of(table: Table) -> ArrowDeviceArrayStream {
    let (device_type, _) = place(&table.device);
    let exported = Box::new(ExportedStream { table, is_done: false, error: None });
    ArrowDeviceArrayStream {
        device_type,
        get_schema: Some(get_schema),
        get_next: Some(get_next),
        get_last_error: Some(get_last_error),
        release: Some(release_stream),
        private_data: Box::into_raw(exported).cast(),
    }
}

/// Notes what went wrong, for `get_last_error`.
fn answered(stream: &mut ExportedStream, done: Result<()>) -> c_int {
    match done {
        Ok(()) => 0,
        Err(error) => {
            let text = error.to_string().replace('\0', " ");
            stream.error = CString::new(text).ok();
            libc::EINVAL
        }
    }
}

unsafe extern "C" fn get_schema(
    stream: *mut ArrowDeviceArrayStream,
    out: *mut FFI_ArrowSchema,
) -> c_int {
    // SAFETY: a live stream of `stream_of`, and memory for a schema, in which there is none.
    unsafe {
        let exported = &mut *(*stream).private_data.cast::<ExportedStream>();
        let made = FFI_ArrowSchema::try_from(exported.table.schema.as_ref()).map_err(Error::from);
        let done = made.map(|schema| std::ptr::write(out, schema));
        answered(exported, done)
    }
}

unsafe extern "C" fn get_next(
    stream: *mut ArrowDeviceArrayStream,
    out: *mut ArrowDeviceArray,
) -> c_int {
    // SAFETY: a live stream of `stream_of`, and memory for an array, in which there is none.
    unsafe {
        let exported = &mut *(*stream).private_data.cast::<ExportedStream>();
        let next = match exported.is_done {
            true => Ok(ArrowDeviceArray::empty()),
            false => export(&exported.table).map(|(array, _)| array),
        };
        exported.is_done = true;
        let done = next.map(|array| std::ptr::write(out, array));
        answered(exported, done)
    }
}

unsafe extern "C" fn get_last_error(stream: *mut ArrowDeviceArrayStream) -> *const c_char {
    // SAFETY: a live stream of `stream_of`.
    let exported = unsafe { &*(*stream).private_data.cast::<ExportedStream>() };
    exported.error.as_ref().map_or(std::ptr::null(), |text| text.as_ptr())
}

unsafe extern "C" fn release_stream(stream: *mut ArrowDeviceArrayStream) {
    // SAFETY: called once, with a stream of `stream_of`, whose data is this box.
    unsafe {
        drop(Box::from_raw((*stream).private_data.cast::<ExportedStream>()));
        (*stream).release = None;
    }
}

/// The tables of a stream's arrays, and their schema.
///
/// # Safety
/// The stream is one of the interface; of its arrays as of [`import`].
///
/// # Errors
/// What the stream says; those of [`import`].
pub(crate) unsafe fn tables_of(
    device: &Device,
    mut stream: ArrowDeviceArrayStream,
) -> Result<(SchemaRef, Vec<Table>)> {
    let failed = |stream: &mut ArrowDeviceArrayStream, code: c_int| {
        // SAFETY: a live stream; its text lives until the next call.
        let said =
            stream.get_last_error.map(|get| unsafe { get(stream) }).filter(|text| !text.is_null());
        // SAFETY: as above.
        let said = said.map(|text| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned());
        let why = format!("its producer says: {} (code {code})", said.unwrap_or_default());
        Error::unsupported("a stream of arrays of a device", why)
    };
    let (Some(get_schema), Some(get_next), Some(_)) =
        (stream.get_schema, stream.get_next, stream.release)
    else {
        return Err(Error::unsupported(
            "a stream of arrays of a device",
            "it was released already",
        ));
    };
    let mut schema = FFI_ArrowSchema::empty();
    // SAFETY: a live stream, and an empty schema.
    match unsafe { get_schema(&mut stream, &mut schema) } {
        0 => {}
        code => return Err(failed(&mut stream, code)),
    }
    let mut tables = vec![];
    loop {
        let mut array = ArrowDeviceArray::empty();
        // SAFETY: a live stream, and a released array.
        match unsafe { get_next(&mut stream, &mut array) } {
            0 => {}
            code => return Err(failed(&mut stream, code)),
        }
        if array.is_released() {
            return Ok((Arc::new(Schema::try_from(&schema)?), tables));
        }
        // SAFETY: the caller's promise.
        tables.push(unsafe { import(device, array, &schema) }?);
    }
}
