//! Columns that go to and come from other programs without leaving the GPU, as a library with a C
//! interface: `scripts/check-device-doors.py` loads it, and is the other program.
//!
//! Functions return 0, or 1 and leave what went wrong for `wf_error`.

use std::cell::RefCell;
use std::ffi::{CString, c_char, c_int, c_void};
use std::sync::OnceLock;

use warpframe::arrow::ffi::FFI_ArrowSchema;
use warpframe::interop::{ArrowDeviceArray, DLManagedTensor, DLManagedTensorVersioned};
use warpframe::prelude::*;
use warpframe::{KernelArg, Result, Series};

thread_local! {
    static ERROR: RefCell<CString> = RefCell::default();
}

fn answered(done: Result<()>) -> c_int {
    let Err(error) = done else { return 0 };
    let text = error.to_string().replace('\0', " ");
    ERROR.with(|kept| *kept.borrow_mut() = CString::new(text).unwrap_or_default());
    1
}

/// The one session, on the device that `WARPFRAME_DEVICE` names.
fn session() -> Result<&'static Session> {
    static SESSION: OnceLock<Session> = OnceLock::new();
    if let Some(session) = SESSION.get() {
        return Ok(session);
    }
    let device = match std::env::var("WARPFRAME_DEVICE").as_deref() {
        Ok("sim") => DeviceChoice::Sim,
        _ => DeviceChoice::Cuda(0),
    };
    let made = Session::builder().device(device).strict(true).user_code(true).build()?;
    Ok(SESSION.get_or_init(|| made))
}

fn numbers(rows: u64) -> Result<Series> {
    let query =
        format!("SELECT CAST(generate_series AS DOUBLE) / 4 AS x FROM generate_series(1, {rows})");
    session()?.sql(&query)?.collect()?.column("x")
}

fn sum_of(column: &Series) -> Result<f64> {
    let frame = session()?.from_series([("x", column)])?;
    frame.select([col("x").sum()])?.item::<f64>()
}

/// What went wrong last on this thread.
#[unsafe(no_mangle)]
pub extern "C" fn wf_error() -> *const c_char {
    ERROR.with(|kept| kept.borrow().as_ptr())
}

/// Bytes of device memory that the session has in use.
#[unsafe(no_mangle)]
pub extern "C" fn wf_used() -> u64 {
    session().ok().and_then(Session::device).map_or(0, |device| device.memory().used)
}

/// The stream of the session's queries; null where there is none.
#[unsafe(no_mangle)]
pub extern "C" fn wf_stream() -> *mut c_void {
    session()
        .ok()
        .and_then(Session::device)
        .and_then(|device| device.stream())
        .unwrap_or(std::ptr::null_mut())
}

/// Lets queries wait for another stream.
///
/// # Safety
/// A stream of the same GPU.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wf_wait_for(stream: *mut c_void) -> c_int {
    let wait = || match session()?.device() {
        // SAFETY: the caller's promise.
        Some(device) => unsafe { device.wait_for_stream(stream) },
        None => Ok(()),
    };
    answered(wait().map_err(Into::into))
}

/// The numbers 1/4, 2/4, … as a tensor.
///
/// # Safety
/// `out` is memory for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wf_produce(rows: u64, out: *mut *mut DLManagedTensor) -> c_int {
    // SAFETY: the caller's promise.
    answered(
        numbers(rows).and_then(|column| column.to_dlpack()).map(|tensor| unsafe { *out = tensor }),
    )
}

/// The same since DLPack 1.0.
///
/// # Safety
/// `out` is memory for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wf_produce_versioned(
    rows: u64,
    out: *mut *mut DLManagedTensorVersioned,
) -> c_int {
    // SAFETY: the caller's promise.
    answered(
        numbers(rows)
            .and_then(|column| column.to_dlpack_versioned())
            .map(|tensor| unsafe { *out = tensor }),
    )
}

/// The sum of a tensor's elements, which a query computes, and whether they were copied.
///
/// # Safety
/// A live tensor, which is given up; `sum` and `copied` are memory for numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wf_consume(
    tensor: *mut DLManagedTensor,
    sum: *mut f64,
    copied: *mut u64,
) -> c_int {
    let consume = || {
        let before = wf_used();
        // SAFETY: the caller's promise.
        let column = unsafe { session()?.from_dlpack("x", tensor) }?;
        // SAFETY: as above.
        unsafe { (*copied, *sum) = (wf_used() - before, sum_of(&column)?) };
        Ok(())
    };
    answered(consume())
}

/// The numbers 1/4, 2/4, … as an array of Arrow's.
///
/// # Safety
/// `array` and `schema` are memory for these.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wf_produce_arrow(
    rows: u64,
    array: *mut ArrowDeviceArray,
    schema: *mut FFI_ArrowSchema,
) -> c_int {
    let produce = || {
        let (made, of) = numbers(rows)?.to_frame().to_arrow_device()?;
        // SAFETY: the caller's promise.
        unsafe {
            std::ptr::write(array, made);
            std::ptr::write(schema, of);
        }
        Ok(())
    };
    answered(produce())
}

/// The sum of the column `x` of an array of Arrow's.
///
/// # Safety
/// `array` is one, which is given up, and `schema` its schema, which is not; `sum` is memory for a
/// number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wf_consume_arrow(
    array: *mut ArrowDeviceArray,
    schema: *const FFI_ArrowSchema,
    sum: *mut f64,
) -> c_int {
    let consume = || {
        // SAFETY: the caller's promise; what is left in its place is released.
        let frame = unsafe {
            let taken = std::ptr::replace(array, ArrowDeviceArray::empty());
            session()?.from_arrow_device(taken, &*schema)?
        };
        // SAFETY: as above.
        unsafe { *sum = sum_of(&frame.column("x")?)? };
        Ok(())
    };
    answered(consume())
}

/// The sum of what a kernel of a user's makes of a column: 2 x + 1.
///
/// # Safety
/// `sum` is memory for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wf_kernel(rows: u64, sum: *mut f64) -> c_int {
    let source = r#"
        extern "C" __global__ void line(const double* x, double* y, double a, double b, long long n) {
            extern __shared__ double tile[];
            const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
            tile[threadIdx.x] = i < n ? x[i] : 0;
            __syncthreads();
            if (i < n) y[i] = a * tile[threadIdx.x] + b;
        }"#;
    let launch = || {
        let (column, n) = (numbers(rows)?, rows as usize);
        let kernel = session()?.kernel(source, "line")?;
        let fresh = KernelArg::fresh(DataType::Float64, n);
        let arguments = [(&column).into(), fresh, 2.0.into(), 1.0.into(), n.into()];
        // SAFETY: the kernel writes n values of y, and 256 of shared memory.
        let made = unsafe { kernel.launch(n.div_ceil(256), 256, 256 * 8, arguments) }?;
        // SAFETY: the caller's promise.
        unsafe { *sum = sum_of(&made[0])? };
        Ok(())
    };
    answered(launch())
}
