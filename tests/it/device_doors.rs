//! Columns in the memory of a device, to and from other programs: Arrow's C device data interface
//! and DLPack. On the simulator that is host memory, so that this test can be the other program.

use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use warpframe::arrow::ffi::{FFI_ArrowArray, FFI_ArrowSchema};
use warpframe::device::DeviceKind;
use warpframe::interop::{
    ArrowDeviceArray, ArrowDeviceArrayStream, DEVICE_CPU, DEVICE_CUDA, DLDataType, DLDevice,
    DLManagedTensor, DLPackVersion, DLTensor,
};
use warpframe::prelude::*;
use warpframe::{Error, ErrorKind};

use crate::differential::builder;

fn session() -> Session {
    builder().strict(true).build().expect("the device opens")
}

fn on_gpu(session: &Session) -> bool {
    matches!(session.device().expect("a device").kind(), DeviceKind::Cuda(_))
}

fn used(session: &Session) -> u64 {
    session.device().expect("a device").memory().used
}

const TYPES: &str = "SELECT value::TINYINT AS a, value::SMALLINT AS b, value::INT AS c, value AS d,
    value::INT UNSIGNED AS e, value::REAL / 4 AS f, value::DOUBLE / 8 AS g, DATE '2024-01-01' + value::INT AS h,
    TIMESTAMP '2024-01-01 00:00:00' AS i, value::DECIMAL(30, 2) AS j FROM generate_series(1, 100) AS t(value)";

#[test]
fn a_frame_goes_through_arrow_where_it_lies_and_its_memory_is_freed_when_both_let_go() {
    let (here, there) = (session(), session());
    let before = used(&here);
    let frame = here.sql(TYPES).unwrap().collect().unwrap();
    let rows = frame.to_arrow().unwrap();
    let with_frame = used(&here);
    let (array, schema) = frame.to_arrow_device().unwrap();
    assert_eq!((used(&here), array.array.length, array.array.n_children), (with_frame, 100, 10));
    assert_eq!(array.device_type, if on_gpu(&here) { DEVICE_CUDA } else { DEVICE_CPU });
    assert_eq!(array.sync_event.is_null(), !on_gpu(&here));
    drop(frame);
    // SAFETY: the array is ours, whole, and nobody writes it.
    let back = unsafe { there.from_arrow_device(array, &schema) }.unwrap();
    assert_eq!((used(&here), used(&there)), (with_frame, 0), "nothing is copied");
    assert_eq!(back.to_arrow().unwrap()[0].columns(), rows[0].columns());
    let sums = back.select([col("d").sum(), col("g").sum()]).unwrap();
    assert_eq!(sums.get::<i64>(0, "d").unwrap(), 5050);
    assert_eq!(sums.get::<f64>(0, "g").unwrap(), 5050.0 / 8.0);
    drop((back, sums));
    assert_eq!(used(&here), before);
    assert!(there.take_fallback_reasons().is_empty());
}

#[test]
fn an_array_that_nobody_takes_is_released_with_its_children() {
    let here = session();
    let before = used(&here);
    let (array, _) = frame!(here; "x" => [1, 2]).unwrap().to_arrow_device().unwrap();
    assert!(used(&here) > before);
    drop(array);
    assert_eq!(used(&here), before);
    // A consumer may move a child out: it lives on.
    let (mut array, _) =
        frame!(here; "x" => [1, 2], "y" => [1, 2]).unwrap().to_arrow_device().unwrap();
    // SAFETY: the array has two children; moving one leaves it released.
    let child = unsafe { std::ptr::replace(*array.array.children, FFI_ArrowArray::empty()) };
    array.array = FFI_ArrowArray::empty();
    assert!(array.is_released() && used(&here) > before);
    drop(child);
    assert_eq!(used(&here), before);
}

#[test]
fn streams_have_all_rows_of_a_frame() {
    let (here, there) = (session(), session());
    let frame = here.sql(TYPES).unwrap().collect().unwrap();
    let stream = frame.to_arrow_device_stream().unwrap();
    // SAFETY: the stream is ours.
    let back = unsafe { there.from_arrow_device_stream(stream) }.unwrap();
    assert!(back.equals(&frame).unwrap());
    let empty = frame.filter(col("d").lt(lit(0))).unwrap();
    // SAFETY: as above.
    let back =
        unsafe { there.from_arrow_device_stream(empty.to_arrow_device_stream().unwrap()) }.unwrap();
    assert_eq!(back.shape(), (0, 10));
    // What a stream cannot yield, it says.
    let strings = frame!(here; "s" => ["a"]).unwrap().to_arrow_device_stream().unwrap();
    // SAFETY: as above.
    let error = unsafe { there.from_arrow_device_stream(strings) }.unwrap_err().to_string();
    assert!(error.contains("its producer says") && error.contains("column \"s\""), "{error}");
    // Rows of several arrays are put together.
    let mut several = SeveralArrays { made: 0, session: here.clone() };
    let stream = ArrowDeviceArrayStream {
        device_type: DEVICE_CPU,
        get_schema: Some(schema_of_several),
        get_next: Some(next_of_several),
        get_last_error: None,
        release: Some(release_several),
        private_data: (&raw mut several).cast(),
    };
    // SAFETY: the stream outlives the call.
    let back = unsafe { there.from_arrow_device_stream(stream) }.unwrap();
    assert_eq!(back.column("n").unwrap().to_vec::<i64>().unwrap(), [0, 0, 1, 2, 2, 4]);
}

struct SeveralArrays {
    made: i64,
    session: Session,
}

unsafe extern "C" fn schema_of_several(
    _: *mut ArrowDeviceArrayStream,
    out: *mut FFI_ArrowSchema,
) -> i32 {
    let field = warpframe::arrow::datatypes::Field::new("n", DataType::Int64, false);
    let schema =
        FFI_ArrowSchema::try_from(warpframe::arrow::datatypes::Schema::new(vec![field])).unwrap();
    // SAFETY: memory for a schema.
    unsafe { std::ptr::write(out, schema) };
    0
}

unsafe extern "C" fn next_of_several(
    stream: *mut ArrowDeviceArrayStream,
    out: *mut ArrowDeviceArray,
) -> i32 {
    // SAFETY: the stream of the test, and memory for an array.
    unsafe {
        let several = &mut *(*stream).private_data.cast::<SeveralArrays>();
        let n = several.made;
        several.made += 1;
        let array = match n {
            3 => ArrowDeviceArray::empty(),
            n => frame!(several.session; "n" => [n, 2 * n]).unwrap().to_arrow_device().unwrap().0,
        };
        std::ptr::write(out, array);
    }
    0
}

unsafe extern "C" fn release_several(stream: *mut ArrowDeviceArrayStream) {
    // SAFETY: the stream of the test.
    unsafe { (*stream).release = None };
}

fn refused(error: Error, parts: &[&str]) {
    assert!(
        matches!(error.kind(), ErrorKind::Unsupported { .. } | ErrorKind::TypeMismatch { .. }),
        "{error:?}"
    );
    let told = error.to_string();
    parts.iter().for_each(|part| assert!(told.contains(part), "{part}: {told}"));
}

#[test]
fn what_does_not_lie_as_others_have_it_is_refused() {
    let here = session();
    let frame = here
        .sql("SELECT 'a' AS s, true AS b, 1.5::DECIMAL(5, 1) AS d, [1, 2] AS l, column1 AS n FROM (VALUES (1), (NULL))")
        .unwrap()
        .collect()
        .unwrap();
    for (name, arrow, tensor) in [
        ("s", "fixed width", "tensors hold"),
        ("b", "a bit for each value", ""),
        ("d", "up to 18 digits", "tensors hold"),
        ("l", "fixed width", "tensors hold"),
        ("n", "it has nulls", "it has nulls"),
    ] {
        let column = frame.column(name).unwrap();
        let quoted = format!("column {name:?}");
        refused(column.to_frame().to_arrow_device().unwrap_err(), &[&quoted, arrow]);
        if !tensor.is_empty() {
            refused(column.to_dlpack().unwrap_err(), &[&quoted, tensor]);
            refused(column.to_dlpack_versioned().unwrap_err(), &[&quoted, tensor]);
        }
    }
    let cpu = Session::builder().device(DeviceChoice::Cpu).build().unwrap();
    let one = frame!(cpu; "x" => [1]).unwrap();
    refused(one.to_arrow_device().unwrap_err(), &["the session has no device"]);
    refused(one.column("x").unwrap().to_dlpack().unwrap_err(), &["the session has no device"]);
    let before = used(&here);
    let (array, schema) = frame!(here; "x" => [1]).unwrap().to_arrow_device().unwrap();
    // SAFETY: the array is ours.
    refused(unsafe { cpu.from_arrow_device(array, &schema) }.unwrap_err(), &["no device"]);
    assert_eq!(used(&here), before, "it is released");
}

#[test]
fn a_column_goes_through_dlpack_and_its_memory_is_freed_when_both_let_go() {
    let (here, there) = (session(), session());
    let before = used(&here);
    let frame = here
        .sql(&TYPES.replace("SELECT ", "SELECT value % 2 = 0 AS z, "))
        .unwrap()
        .collect()
        .unwrap();
    for name in ["a", "b", "c", "d", "e", "f", "g", "z"] {
        let column = frame.column(name).unwrap();
        let tensor = column.to_dlpack().unwrap();
        // SAFETY: the tensor is ours, and is handed over.
        let back = unsafe { there.from_dlpack("back", tensor) }.unwrap();
        assert_eq!((used(&there), back.name()), (0, "back"), "nothing is copied");
        assert_eq!(&back.to_array().unwrap(), &column.to_array().unwrap(), "{name}");
        let tensor = column.to_dlpack_versioned().unwrap();
        // SAFETY: as above; the tensor lives until it is handed over.
        let (version, flags) = unsafe { ((*tensor).version, (*tensor).flags) };
        assert_eq!((version, flags), (DLPackVersion { major: 1, minor: 0 }, 1));
        // SAFETY: as above.
        let back = unsafe { there.from_dlpack_versioned("back", tensor) }.unwrap();
        assert_eq!(&back.to_array().unwrap(), &column.to_array().unwrap(), "{name}");
    }
    // A slice, which does not begin where kernels expect it, is copied.
    let tensor = frame.slice(3, Some(5)).unwrap().column("d").unwrap().to_dlpack().unwrap();
    // SAFETY: as above.
    let back = unsafe { there.from_dlpack("d", tensor) }.unwrap();
    assert_eq!(back.to_vec::<i64>().unwrap(), [4, 5, 6, 7, 8]);
    let tensor = frame.column("d").unwrap().to_dlpack().unwrap();
    drop(frame);
    assert!(used(&here) > before, "the tensor has the column");
    // SAFETY: whoever has a tensor calls its deleter once.
    unsafe { (*tensor).deleter.unwrap()(tensor) };
    assert_eq!(used(&here), before);
}

/// Memory of the host as a tensor, whose deleter counts.
struct HostTensor {
    values: Vec<i64>,
    first: usize,
    shape: [i64; 2],
    strides: [i64; 2],
    tensor: DLManagedTensor,
    deleted: Arc<AtomicUsize>,
}

unsafe extern "C" fn delete(tensor: *mut DLManagedTensor) {
    // SAFETY: called once, with a tensor of `host_tensor`, whose context is its box.
    let of = unsafe { Box::from_raw((*tensor).manager_ctx.cast::<HostTensor>()) };
    of.deleted.fetch_add(1, SeqCst);
}

/// A tensor of these values, which begin so many bytes behind an address that kernels expect.
fn host_tensor(values: &[i64], shift: usize, deleted: &Arc<AtomicUsize>) -> *mut DLManagedTensor {
    let mut of = Box::new(HostTensor {
        values: vec![0; values.len() + 64],
        first: 0,
        shape: [values.len() as i64, 1],
        strides: [1, 1],
        tensor: DLManagedTensor {
            dl_tensor: DLTensor {
                data: std::ptr::null_mut(),
                device: DLDevice { device_type: DEVICE_CPU, device_id: 0 },
                ndim: 1,
                dtype: DLDataType { code: 0, bits: 64, lanes: 1 },
                shape: std::ptr::null_mut(),
                strides: std::ptr::null_mut(),
                byte_offset: 0,
            },
            manager_ctx: std::ptr::null_mut(),
            deleter: Some(delete),
        },
        deleted: deleted.clone(),
    });
    of.first = (of.values.as_ptr() as usize).wrapping_neg() % 256 / 8 + shift / 8;
    let first = of.first;
    of.values[first..first + values.len()].copy_from_slice(values);
    let of = Box::into_raw(of);
    // SAFETY: the box was just made.
    unsafe {
        let whole = &mut *of;
        whole.tensor.dl_tensor.data = whole.values.as_mut_ptr().add(first).cast::<c_void>();
        whole.tensor.dl_tensor.shape = whole.shape.as_mut_ptr();
        whole.tensor.dl_tensor.strides = whole.strides.as_mut_ptr();
        whole.tensor.manager_ctx = of.cast();
        &raw mut (*of).tensor
    }
}

#[test]
fn a_tensor_of_another_program_is_deleted_once_when_the_last_frame_of_it_goes() {
    let here = session();
    if on_gpu(&here) {
        return; // Host memory is no memory of a GPU's.
    }
    for shift in [0, 8] {
        let deleted = Arc::<AtomicUsize>::default();
        let tensor = host_tensor(&[5, 6, 7], shift, &deleted);
        // SAFETY: a live tensor, which nobody else deletes.
        let column = unsafe { here.from_dlpack("n", tensor) }.unwrap();
        // What does not begin as kernels expect it is copied, and given back at once.
        assert_eq!((deleted.load(SeqCst), used(&here) > 0), (usize::from(shift > 0), shift > 0));
        let frame = column.to_frame().filter(col("n").gt(lit(5))).unwrap();
        assert_eq!(frame.column("n").unwrap().to_vec::<i64>().unwrap(), [6, 7]);
        let same = here.from_series([("m", &column)]).unwrap();
        drop(column);
        assert_eq!(same.select([col("m").sum()]).unwrap().item::<i64>().unwrap(), 18);
        assert_eq!(deleted.load(SeqCst), usize::from(shift > 0));
        drop((same, frame));
        assert_eq!((deleted.load(SeqCst), used(&here)), (1, 0));
    }
}

#[test]
fn tensors_that_are_no_columns_are_refused_and_deleted() {
    let here = session();
    if on_gpu(&here) {
        return; // As above.
    }
    type Change = fn(&mut DLTensor);
    let changes: [(Change, &str); 7] = [
        (|t| t.device = DLDevice { device_type: DEVICE_CUDA, device_id: 1 }, "CUDA device 1"),
        (|t| t.device.device_type = 10, "device type 10"),
        (|t| t.ndim = 2, "2 dimensions"),
        // SAFETY: the tensor has strides.
        (|t| unsafe { *t.strides = 2 }, "2 apart: make it contiguous"),
        (|t| t.dtype = DLDataType { code: 2, bits: 16, lanes: 1 }, "code 2, 16 bits"),
        (|t| t.dtype.lanes = 4, "4 lanes"),
        (|t| t.data = std::ptr::null_mut(), "address is null"),
    ];
    for (change, why) in changes {
        let deleted = Arc::<AtomicUsize>::default();
        let tensor = host_tensor(&[1, 2], 0, &deleted);
        // SAFETY: a live tensor, which nobody else deletes.
        let error = unsafe {
            change(&mut (*tensor).dl_tensor);
            here.from_dlpack("n", tensor)
        };
        refused(error.unwrap_err(), &[why]);
        assert_eq!(deleted.load(SeqCst), 1, "{why}");
    }
    // SAFETY: a null pointer is told.
    refused(unsafe { here.from_dlpack("n", std::ptr::null_mut()) }.unwrap_err(), &["null"]);
    let tensor =
        frame!(here; "x" => [1]).unwrap().column("x").unwrap().to_dlpack_versioned().unwrap();
    // SAFETY: a tensor of ours, of a version that there is not yet.
    let error = unsafe {
        (*tensor).version.major = 2;
        here.from_dlpack_versioned("x", tensor)
    };
    refused(error.unwrap_err(), &["DLPack 2.0"]);
    assert_eq!(used(&here), 0);
}

#[test]
fn arrays_of_other_devices_or_with_nulls_are_refused_and_released() {
    let here = session();
    let before = used(&here);
    type Change = fn(&mut ArrowDeviceArray);
    let changes: [(Change, &str); 5] = [
        (|a| a.device_type = 7, "device type 7"),
        (|a| (a.device_type, a.device_id) = (DEVICE_CUDA, 77), "CUDA device 77"),
        (|a| a.array.n_children = 2, "2 columns, 1 in its schema"),
        (|a| a.array.length = -1, "negative length"),
        (say_there_is_a_null, "column \"x\" of another program"),
    ];
    for (change, why) in changes {
        let (mut array, schema) = frame!(here; "x" => [1, 2]).unwrap().to_arrow_device().unwrap();
        change(&mut array);
        // SAFETY: the array is ours.
        refused(unsafe { here.from_arrow_device(array, &schema) }.unwrap_err(), &[why]);
        assert_eq!(used(&here), before, "{why}");
    }
    let (_, schema) = frame!(here; "x" => [1]).unwrap().to_arrow_device().unwrap();
    // SAFETY: nothing is in it.
    let error = unsafe { here.from_arrow_device(ArrowDeviceArray::empty(), &schema) };
    refused(error.unwrap_err(), &["released already"]);
    let column = FFI_ArrowSchema::try_from(DataType::Int64).unwrap();
    let (array, _) = frame!(here; "x" => [1]).unwrap().to_arrow_device().unwrap();
    // SAFETY: the array is ours.
    refused(
        unsafe { here.from_arrow_device(array, &column) }.unwrap_err(),
        &["rows are a struct array"],
    );
    assert_eq!(used(&here), before);
}

fn say_there_is_a_null(array: &mut ArrowDeviceArray) {
    // SAFETY: the array has one child, with two buffers.
    unsafe {
        let child = &mut **array.array.children;
        (child.null_count, *child.buffers) = (1, *child.buffers.add(1));
    }
}

#[test]
fn an_array_with_an_offset_begins_there() {
    let here = session();
    let (mut array, schema) =
        frame!(here; "x" => [1i64, 2, 3, 4, 5]).unwrap().to_arrow_device().unwrap();
    // SAFETY: the array has one child of five rows.
    unsafe { ((**array.array.children).offset, (**array.array.children).length) = (1, 4) };
    (array.array.offset, array.array.length) = (2, 2);
    // SAFETY: as above.
    let back = unsafe { here.from_arrow_device(array, &schema) }.unwrap();
    assert_eq!(back.column("x").unwrap().to_vec::<i64>().unwrap(), [4, 5]);
}

#[test]
fn work_of_other_programs_is_ordered_by_streams() {
    let here = session();
    let device = here.device().unwrap();
    assert_eq!(device.stream().is_some(), on_gpu(&here));
    let stream = device.stream().unwrap_or_default();
    // SAFETY: the device's own stream, or one of the simulator, which has none.
    unsafe {
        device.wait_for_stream(stream).unwrap();
        device.make_stream_wait(stream).unwrap();
    }
    assert_eq!(frame!(here; "x" => [1, 2]).unwrap().num_rows(), 2);
}
