//! Kernels that users write: over columns of frames, in order with queries; and what is said of
//! those that are wrong.

use warpframe::device::DeviceKind;
use warpframe::prelude::*;
use warpframe::{Error, ErrorKind, KernelArg, Permission, RawKernel, Series, SessionBuilder};

use crate::differential::builder;

fn allowed() -> SessionBuilder {
    builder().user_code(true).strict(true)
}

fn session() -> Session {
    allowed().build().expect("the device opens")
}

fn on_gpu(session: &Session) -> bool {
    matches!(session.device().expect("a device").kind(), DeviceKind::Cuda(_))
}

fn kernel(session: &Session, source: &str, name: &str) -> RawKernel {
    session.kernel(source, name).unwrap_or_else(|error| panic!("{error}"))
}

/// Launches 256 threads a block, one for each of `n` values.
fn launch(
    kernel: &RawKernel,
    n: usize,
    arguments: impl IntoIterator<Item = KernelArg>,
) -> warpframe::Result<Vec<Series>> {
    // SAFETY: the kernels of this file stay within what they are given, or are run by the simulator
    // alone.
    unsafe { kernel.launch(n.div_ceil(256), 256, 0, arguments) }
}

fn fails(kernel: &RawKernel, n: usize, arguments: impl IntoIterator<Item = KernelArg>) -> Error {
    launch(kernel, n, arguments).err().unwrap_or_else(|| panic!("{kernel:?} runs"))
}

const SAXPY: &str = r#"
extern "C" __global__ void saxpy(double a, const double* __restrict__ x, const double* y, double* z, long long n) {
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) z[i] = a * x[i] + y[i];
}
"#;

#[test]
fn a_kernel_reads_columns_of_queries_and_queries_read_what_it_made() {
    let session = session();
    let saxpy = kernel(&session, SAXPY, "saxpy");
    for n in [1usize, 31, 256, 257, 5000] {
        let query = format!(
            "SELECT CAST(generate_series AS DOUBLE) AS x, CAST(generate_series % 7 AS DOUBLE) / 4 AS y FROM generate_series(1, {n})"
        );
        let frame = session.sql(&query).unwrap().collect().unwrap();
        let (x, y) = (frame.column("x").unwrap(), frame.column("y").unwrap());
        let fresh = KernelArg::fresh(DataType::Float64, n);
        let made =
            launch(&saxpy, n, [0.5.into(), (&x).into(), (&y).into(), fresh, n.into()]).unwrap();
        assert_eq!((made.len(), made[0].name()), (1, "z"));
        let frame = session.from_series([("x", &x), ("y", &y), ("z", &made[0])]).unwrap();
        let wrong = frame.filter((col("x") * lit(0.5) + col("y")).not_eq(col("z"))).unwrap();
        assert_eq!((frame.num_rows(), wrong.num_rows()), (n, 0));
        let sum = frame.select([col("z").sum()]).unwrap().item::<f64>().unwrap();
        let expected: f64 = (1..=n).map(|i| 0.5 * i as f64 + (i % 7) as f64 / 4.0).sum();
        assert_eq!(sum, expected);
    }
    assert!(session.take_fallback_reasons().is_empty());
}

#[test]
fn a_slice_of_a_frame_begins_where_it_begins() {
    let session = session();
    let saxpy = kernel(&session, SAXPY, "saxpy");
    let frame = frame!(session; "x" => [1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
    let x = frame.slice(2, Some(2)).unwrap().column("x").unwrap();
    let fresh = KernelArg::fresh(DataType::Float64, 2);
    let made = launch(&saxpy, 2, [10.into(), (&x).into(), (&x).into(), fresh, 2.into()]).unwrap();
    assert_eq!(made[0].to_vec::<f64>().unwrap(), [33.0, 44.0]);
}

/// Shared memory, static and dynamic, barriers, atomics, helpers, two dimensions.
const MANY: &str = r#"
#define BLOCK 128
__device__ __forceinline__ double halved(const double* x, int i) { return x[i] / 2; }
template <class T> __device__ T twice(T x) { return x + x; }

extern "C" __global__ void __launch_bounds__(BLOCK) block_sums(const double* x, double* sums, double* total, int n) {
    __shared__ double cells[BLOCK];
    const int at = threadIdx.x, i = blockIdx.x * BLOCK + at;
    cells[at] = i < n ? twice(halved(x, i)) : 0;
    __syncthreads();
    for (int width = BLOCK / 2; width > 0; width /= 2) {
        if (at < width) cells[at] += cells[at + width];
        __syncthreads();
    }
    if (at == 0) {
        sums[blockIdx.x] = cells[0];
        atomicAdd(total, cells[0]);
    }
}

extern "C" __global__ void histogram(const int* x, unsigned int* bins, unsigned long long* all, long long n) {
    extern __shared__ unsigned int own[];
    for (int bin = threadIdx.x; bin < 16; bin += blockDim.x) own[bin] = 0;
    __syncthreads();
    const long long step = (long long)gridDim.x * blockDim.x;
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) {
        atomicAdd(&own[x[i] & 15], 1u);
        atomicAdd(all + 0, 1ull);
    }
    __syncthreads();
    for (int bin = threadIdx.x; bin < 16; bin += blockDim.x) atomicAdd(bins + bin, own[bin]);
}

extern "C" __global__ void transpose(const float* in, float* out, int rows, int columns) {
    __shared__ float tile[8][9];
    int x = blockIdx.x * 8 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    if (x < columns && y < rows) tile[threadIdx.y][threadIdx.x] = in[y * columns + x];
    __syncthreads();
    x = blockIdx.y * 8 + threadIdx.x, y = blockIdx.x * 8 + threadIdx.y;
    if (x < rows && y < columns) out[y * rows + x] = tile[threadIdx.x][threadIdx.y];
}

extern "C" __global__ void places(unsigned int* out) {
    const unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    const unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    const unsigned threads = blockDim.x * blockDim.y * blockDim.z;
    unsigned int* mine = out + block * threads;
    *(mine + thread) = block * 1000 + thread;
}
"#;

#[test]
fn kernels_have_shared_memory_barriers_and_atomics() {
    let session = session();
    let n = 1000;
    let frame = session
        .sql(&format!("SELECT generate_series::DOUBLE AS x FROM generate_series(1, {n})"))
        .unwrap()
        .collect()
        .unwrap();
    let x = frame.column("x").unwrap();
    let fresh = |len| KernelArg::fresh(DataType::Float64, len);
    let sums = kernel(&session, MANY, "block_sums");
    // SAFETY: the kernel writes a sum for each of the 8 blocks, and one total.
    let made =
        unsafe { sums.launch(8, 128, 0, [(&x).into(), fresh(8), fresh(1), n.into()]) }.unwrap();
    let expected: Vec<f64> = (0..8)
        .map(|block| (block * 128 + 1..=((block + 1) * 128).min(n)).map(f64::from).sum())
        .collect();
    assert_eq!(made[0].to_vec::<f64>().unwrap(), expected);
    assert_eq!(made[1].to_vec::<f64>().unwrap(), [500_500.0]);
    assert_eq!((made[0].name(), made[1].name()), ("sums", "total"));
}

#[test]
fn kernels_have_dynamic_shared_memory() {
    let session = session();
    let query =
        "SELECT CAST(generate_series * generate_series AS INT) AS x FROM generate_series(1, 3000)";
    let x = session.sql(query).unwrap().collect().unwrap().column("x").unwrap();
    let arguments = [
        (&x).into(),
        KernelArg::fresh(DataType::UInt32, 16),
        KernelArg::fresh(DataType::UInt64, 1),
        3000.into(),
    ];
    // SAFETY: the kernel counts in 16 bins, which lie in 64 bytes of shared memory first.
    let made = unsafe { kernel(&session, MANY, "histogram").launch(3, 96, 64, arguments) }.unwrap();
    let mut expected = [0u32; 16];
    (1..=3000i64).for_each(|value| expected[((value * value) & 15) as usize] += 1);
    assert_eq!(made[0].to_vec::<u32>().unwrap(), expected);
    assert_eq!(made[1].to_vec::<u64>().unwrap(), [3000]);
}

#[test]
fn grids_and_blocks_have_up_to_three_dimensions() {
    let session = session();
    let (rows, columns) = (13usize, 21usize);
    let values: Vec<f32> = (0..rows * columns).map(|i| i as f32).collect();
    let frame = frame!(session; "in" => values.clone()).unwrap();
    let x = frame.column("in").unwrap();
    let arguments = [
        (&x).into(),
        KernelArg::fresh(DataType::Float32, rows * columns),
        rows.into(),
        columns.into(),
    ];
    let transpose = kernel(&session, MANY, "transpose");
    // SAFETY: the kernel writes the values that there are, in another order.
    let made =
        unsafe { transpose.launch((columns.div_ceil(8), rows.div_ceil(8)), (8, 8), 0, arguments) }
            .unwrap();
    let expected: Vec<f32> =
        (0..columns).flat_map(|c| (0..rows).map(move |r| (r * columns + c) as f32)).collect();
    assert_eq!(made[0].to_vec::<f32>().unwrap(), expected);
    let places = kernel(&session, MANY, "places");
    // SAFETY: the kernel writes a number for each of 24 blocks of 30 threads.
    let made = unsafe {
        places.launch([4, 3, 2], [5, 2, 3], 0, [KernelArg::fresh(DataType::UInt32, 24 * 30)])
    };
    let expected: Vec<u32> =
        (0..24).flat_map(|block| (0..30).map(move |thread| block * 1000 + thread)).collect();
    assert_eq!(made.unwrap()[0].to_vec::<u32>().unwrap(), expected);
}

const ADD: &str = "extern \"C\" __global__ void add(long long* x, long long by, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] += by;
}";

#[test]
fn what_is_written_nobody_else_sees() {
    let session = session();
    let add = kernel(&session, ADD, "add");
    let frame = frame!(session; "x" => [1i64, 2, 3], "y" => [7i64, 8, 9]).unwrap();
    session.register_table("t", &frame).unwrap();
    let x = frame.column("x").unwrap();
    let plus = |column: Series, by: i64| {
        launch(&add, 3, [KernelArg::write(column), by.into(), 3.into()]).unwrap().remove(0)
    };
    let made = plus(x.clone(), 10);
    assert_eq!((made.name(), made.to_vec::<i64>().unwrap()), ("x", vec![11, 12, 13]));
    for column in [
        x,
        frame.column("x").unwrap(),
        session.table("t").unwrap().collect().unwrap().column("x").unwrap(),
    ] {
        assert_eq!(column.to_vec::<i64>().unwrap(), [1, 2, 3]);
    }
    // What queries know of the values goes with the values.
    let with_made = session.from_series([("x", &made)]).unwrap();
    assert_eq!(with_made.filter(col("x").gt(lit(11))).unwrap().num_rows(), 2);
    assert_eq!(with_made.select([col("x").max()]).unwrap().item::<i64>().unwrap(), 13);
    // A frame has them now: they are copied. Then nobody does: they are not.
    let again = plus(made, 100);
    assert_eq!(with_made.column("x").unwrap().to_vec::<i64>().unwrap(), [11, 12, 13]);
    let device = session.device().unwrap();
    device.reset_peak_memory();
    let before = device.memory();
    let last = plus(again, 1000);
    assert_eq!((device.memory().used, device.memory().peak), (before.used, before.used));
    assert_eq!(last.to_vec::<i64>().unwrap(), [1111, 1112, 1113]);
}

#[test]
fn types_of_columns_are_those_of_parameters() {
    let session = session();
    let query =
        "SELECT 1::TINYINT AS a, 2::SMALLINT AS b, 3::INT AS c, 4::BIGINT AS d, 5::INT UNSIGNED AS e, 1.5::REAL AS f,
                        true AS g, DATE '1970-01-03' AS h, 12.34::DECIMAL(10, 2) AS i, 7.5::DECIMAL(30, 1) AS j";
    let frame = session.sql(query).unwrap().collect().unwrap();
    let source =
        "extern \"C\" __global__ void all(const signed char* a, const short* b, const int* c, const long long* d,
        const unsigned* e, const float* f, const bool* g, const int* h, const long* i, const __int128* j, double* sum,
        bool* flag, bool on, short k, float l) {
        *sum = *a + *b + *c + *d + *e + *f + *g + *h + *i + (double)*j + (on ? k : 0) + l;
        *flag = *g;
    }";
    let mut arguments: Vec<KernelArg> =
        frame.columns().unwrap().iter().map(KernelArg::read).collect();
    arguments
        .extend([KernelArg::fresh(DataType::Float64, 1), KernelArg::fresh(DataType::Boolean, 1)]);
    arguments.extend([true.into(), 100u64.into(), 0.25.into()]);
    let made = launch(&kernel(&session, source, "all"), 1, arguments).unwrap();
    let expected = 1.0 + 2.0 + 3.0 + 4.0 + 5.0 + 1.5 + 1.0 + 2.0 + 1234.0 + 75.0 + 100.0 + 0.25;
    assert_eq!(made[0].to_vec::<f64>().unwrap(), [expected]);
    assert_eq!(made[1].to_vec::<bool>().unwrap(), [true]);
    let flags = session.from_series([("flag", &made[1])]).unwrap();
    assert_eq!(flags.filter(col("flag")).unwrap().num_rows(), 1);
}

#[test]
fn arguments_that_are_not_what_parameters_take_are_refused() {
    let session = session();
    let add = kernel(&session, ADD, "add");
    let frame = frame!(session;
        "x" => [1i64, 2], "f" => [1.0, 2.0], "i" => [1, 2], "s" => ["a", "b"], "n" => [Some(1i64), None])
    .unwrap();
    let of = |name: &str| KernelArg::write(frame.column(name).unwrap());
    let told = |arguments: Vec<KernelArg>| {
        let error = fails(&add, 2, arguments);
        assert!(matches!(error.kind(), ErrorKind::Plan { .. }), "{error:?}");
        error.to_string()
    };
    for (arguments, why) in [
        (vec![of("x"), 1.into()], "takes 3 arguments, was given 2"),
        (
            vec![of("f"), 1.into(), 2.into()],
            "argument \"x\" (number 1): the column has values of Float64, the kernel takes",
        ),
        (vec![of("i"), 1.into(), 2.into()], "the column has values of Int32"),
        (vec![of("s"), 1.into(), 2.into()], "argument \"x\" (number 1): a column of"),
        (vec![of("n"), 1.into(), 2.into()], "its column has nulls"),
        (vec![1.into(), 1.into(), 2.into()], "the parameter is a pointer"),
        (vec![of("x"), of("x"), 2.into()], "the kernel takes a long long, not a column"),
        (vec![of("x"), 0.5.into(), 2.into()], "0.5 is no `long long`"),
        (
            vec![of("x"), 1.into(), (1i64 << 31).into()],
            "argument \"n\" (number 3): 2147483648 is no `int`",
        ),
        (
            vec![KernelArg::read(&frame.column("x").unwrap()), 1.into(), 2.into()],
            "is to be `const long long* x`",
        ),
        (vec![KernelArg::fresh(DataType::Utf8View, 2), 1.into(), 2.into()], "values of one width"),
        (
            vec![KernelArg::fresh(DataType::Decimal128(10, 2), 2), 1.into(), 2.into()],
            "is not written",
        ),
    ] {
        let error = told(arguments);
        assert!(error.contains(why) && error.contains("kernel add"), "{error}");
    }
    let saxpy = kernel(&session, SAXPY, "saxpy");
    let f = frame.column("f").unwrap();
    let error = fails(
        &saxpy,
        2,
        [1.into(), (&f).into(), KernelArg::write(f.clone()), (&f).into(), 2.into()],
    );
    assert!(
        error.to_string().contains("argument \"y\" (number 3): its column is written"),
        "{error}"
    );
    // Nulls that there could be, and are not.
    let filled = frame.with_columns([col("n").fill_null(lit(5i64))]).unwrap().column("n").unwrap();
    let made = launch(&add, 2, [KernelArg::write(filled), 1.into(), 2.into()]).unwrap();
    assert_eq!(made[0].to_vec::<i64>().unwrap(), [2, 6]);
}

#[test]
fn shapes_that_no_device_runs_are_refused_and_empty_grids_do_nothing() {
    let session = session();
    let add = kernel(&session, ADD, "add");
    let run = |grid: [i32; 3], block: [i32; 3], shared: usize| {
        let arguments = [KernelArg::fresh(DataType::Int64, 2), 1.into(), 2.into()];
        // SAFETY: the kernel writes no more than the two values.
        unsafe { add.launch(grid, block, shared, arguments) }
    };
    for (grid, block, shared, why) in [
        ([1, 1, 1], [0, 1, 1], 0, "a block of 0 x 1 x 1 threads"),
        ([1, 1, 1], [32, 33, 1], 0, "1 to 1024 are possible"),
        ([1, 1, 1], [1, 1, 65], 0, "64 along z"),
        ([-1, 1, 1], [32, 1, 1], 0, "a grid of -1 x 1 x 1 blocks"),
        ([1, 65_536, 1], [32, 1, 1], 0, "65535"),
        ([1, 1, 1], [32, 1, 1], 1 << 30, "1073741824 bytes of shared memory"),
    ] {
        let error = run(grid, block, shared).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
    assert_eq!(run([0, 1, 1], [32, 1, 1], 0).unwrap()[0].to_vec::<i64>().unwrap(), [0, 0]);
    assert_eq!(run([1, 1, 1], [7, 1, 1], 0).unwrap()[0].to_vec::<i64>().unwrap(), [1, 1]);
}

#[test]
fn compilers_errors_have_the_users_lines() {
    let session = session();
    let source =
        "extern \"C\" __global__ void k(const double* x, double* y, int n) {\n    y[n] = x[m];\n}";
    let error = session.kernel(source, "k").unwrap_err();
    match error.kind() {
        ErrorKind::UserCode { function, line: 2, column: 14, text, message } => {
            assert_eq!((function.as_str(), text.as_str()), ("k", "    y[n] = x[m];"));
            assert!(message.contains('m'), "{message}");
        }
        other => panic!("{other:?}"),
    }
    let shown = error.to_string();
    assert!(
        shown.contains("k, line 2, column 14") && shown.contains("\n               ^"),
        "{shown}"
    );
    // In the line of the parameters, too.
    let source = "extern \"C\" __global__ void k(const double* x, double* y) { y[0] = q; }";
    let error = session.kernel(source, "k").unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::UserCode { line: 1, column: 67, .. }), "{error:?}");
    for (source, why) in [
        ("__global__ void k(int n) {}", "declare it `extern \"C\" __global__ void k"),
        (
            "extern \"C\" __global__ void other(int n) {}",
            "the source has no `extern \"C\" __global__ void k",
        ),
        ("extern \"C\" __global__ void k(float** x) {}", "parameter 1"),
    ] {
        let error = session.kernel(source, "k").unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
}

#[test]
fn kernels_are_refused_unless_they_are_allowed() {
    let error = builder().build().unwrap().kernel(SAXPY, "saxpy").unwrap_err();
    let needs = Permission::UserCode;
    assert!(matches!(error.kind(), ErrorKind::Forbidden { needs: of, .. } if *of == needs));
    assert!(error.to_string().contains("SessionBuilder::user_code(true)"), "{error}");
    let cpu = Session::builder().device(DeviceChoice::Cpu).user_code(true).build().unwrap();
    assert!(cpu.kernel(SAXPY, "saxpy").unwrap_err().to_string().contains("no device"));
}

#[test]
fn an_index_out_of_bounds_is_an_error_in_the_simulator() {
    let session = session();
    if on_gpu(&session) {
        return; // It costs the process its device.
    }
    let saxpy = kernel(&session, SAXPY, "saxpy");
    let x = frame!(session; "x" => [1.0, 2.0, 3.0]).unwrap().column("x").unwrap();
    let fresh = |n| KernelArg::fresh(DataType::Float64, n);
    let error = fails(&saxpy, 3, [1.into(), (&x).into(), (&x).into(), fresh(2), 3.into()]);
    assert!(matches!(error.kind(), ErrorKind::Simulation { .. }), "{error:?}");
    let told = error.to_string();
    for part in
        ["kernel saxpy", "thread 2 of block 0", "index 2 of argument z, which has 2 elements"]
    {
        assert!(told.contains(part), "{told}");
    }
    let source = "extern \"C\" __global__ void k(const double* x, double* y, int at) {
        const double* p = x + at;
        __shared__ int own[2];
        if (at == -1) *y = *p;
        else if (at == 100) atomicAdd(y + at, 1.0);
        else if (at == 7) for (const double* q = x; ; q++) *y += *q;
        else own[0] = (int)p[0];
    }";
    let k = kernel(&session, source, "k");
    for (at, told) in [
        (-1, "index -1 of argument x, which has 3 elements"),
        (100, "index 100 of argument y, which has 1 elements"),
        (7, "index 3 of argument x, which has 3 elements"),
        (1 << 30, "index 1073741824 of argument x, which has 3 elements"),
    ] {
        // SAFETY: the simulator checks what it is given.
        let error = unsafe { k.launch(1, 1, 0, [(&x).into(), fresh(1), at.into()]) }
            .unwrap_err()
            .to_string();
        assert!(error.contains(told), "{error}");
    }
    // The session goes on.
    let made = launch(&saxpy, 3, [1.into(), (&x).into(), (&x).into(), fresh(3), 3.into()]).unwrap();
    assert_eq!(made[0].to_vec::<f64>().unwrap(), [2.0, 4.0, 6.0]);
}

#[test]
fn loops_without_an_end_and_barriers_that_not_all_reach_are_errors_in_the_simulator() {
    let session = session();
    if on_gpu(&session) {
        return; // As above.
    }
    let source = "extern \"C\" __global__ void k(double* y, int how) {
        if (how == 0)
            while (y[0] == 0) {}
        do {
            if (threadIdx.x < how) __syncthreads();
        } while (false);
    }";
    let k = kernel(&session, source, "k");
    let run = |how: i32| {
        let arguments = [KernelArg::fresh(DataType::Float64, 1), how.into()];
        // SAFETY: the simulator ends loops.
        unsafe { k.launch(1, 64, 0, arguments) }
    };
    let error = run(0).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::UserCode { line: 3, .. }), "{error:?}");
    assert!(error.to_string().contains("does not end"), "{error}");
    run(64).unwrap();
    run(0).unwrap_err();

    let source = "extern \"C\" __global__ void share(int* y, int of) {\n    y[0] = 7 / of;\n}";
    let share = kernel(&session, source, "share");
    // SAFETY: the simulator notices it.
    let error = unsafe { share.launch(1, 1, 0, [KernelArg::fresh(DataType::Int32, 1), 0.into()]) }
        .unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::UserCode { line: 2, column: 14, .. }), "{error:?}");
    assert!(error.to_string().contains("divided by zero"), "{error}");
}

#[test]
fn columns_of_another_session_are_brought_to_this_one() {
    let (here, there) = (session(), session());
    let x = frame!(there; "x" => [1i64, 2]).unwrap().column("x").unwrap();
    let add = kernel(&here, ADD, "add");
    let made = launch(&add, 2, [KernelArg::write(x.clone()), 5.into(), 2.into()]).unwrap();
    assert_eq!(made[0].to_vec::<i64>().unwrap(), [6, 7]);
    assert_eq!(x.to_vec::<i64>().unwrap(), [1, 2]);
    let error = here.from_series([("x", &x), ("x", &made[0])]).unwrap_err().to_string();
    assert!(error.contains("two columns are named"), "{error}");
    let one = frame!(here; "y" => [1]).unwrap().column("y").unwrap();
    let error = here.from_series([("x", &x), ("y", &one)]).unwrap_err().to_string();
    assert!(error.contains("differ in length"), "{error}");
}

#[test]
fn memory_that_does_not_suffice_is_an_error() {
    let session = allowed().memory_limit("1MiB".parse().unwrap()).build().unwrap();
    let add = kernel(&session, ADD, "add");
    let fresh = |n| [KernelArg::fresh(DataType::Int64, n), 1.into(), 0.into()];
    let error = fails(&add, 1, fresh(1 << 20));
    assert!(matches!(error.kind(), ErrorKind::OutOfDeviceMemory { .. }), "{error:?}");
    assert!(fails(&add, 1, fresh(usize::MAX)).to_string().contains("more than memory can hold"));
    // Kept results make room.
    let frames: Vec<_> =
        (0..4).map(|_| launch(&add, 1, fresh(50_000)).unwrap().remove(0)).collect();
    assert!(
        frames.iter().all(|made| made.to_vec::<i64>().unwrap().iter().all(|value| *value == 0))
    );
}
