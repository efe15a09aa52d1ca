//! What the simulator promises, kernel by kernel.

mod collectives;

use super::*;
use crate::error::Error;
use crate::{Argument, Buffer, Device, Grid, KernelSource, MemoryLimit};

/// Seeds of every kind of schedule.
const SEEDS: [u64; 5] = [0, 1, 2, 3, 99];

fn device(seed: u64) -> Device {
    Device::sim(SimOptions::with_seed(seed), MemoryLimit::Percent(90.0)).expect("a C++ compiler")
}

/// A kernel `k` over `struct P { u64* in; u64* out; i64 n; }`, preceded by other declarations.
fn with_declarations(declarations: &str, body: &str) -> KernelSource {
    KernelSource::new(
        "test.cu",
        format!(
            "#include \"prelude.cuh\"\nnamespace wf {{\nstruct P {{ const u64* in; u64* out; i64 n; }};\n\
             {declarations}\nWF_KERNEL(k, P) {{\n#line 1 \"body\"\n{body}\n}}\n}}\n"
        ),
    )
}

fn kernel(body: &str) -> KernelSource {
    with_declarations("", body)
}

fn grid(blocks: u32, threads: u32) -> Grid {
    Grid { blocks, threads, shared: 0 }
}

fn words(buffer: &Buffer, count: usize) -> Vec<u64> {
    buffer.read_words(0, count).unwrap()
}

/// Runs `k` on `input` and returns `count` words of output, which start as zeros.
fn run_on(
    device: &Device,
    source: &KernelSource,
    grid: Grid,
    input: &[u64],
    count: usize,
) -> Result<Vec<u64>> {
    let bytes: Vec<u8> = input.iter().flat_map(|w| w.to_le_bytes()).collect();
    let input_buffer = device.upload("test", &bytes)?;
    let output = device.alloc_zeroed("test", count * 8)?;
    let k = device.kernel(source, "k")?;
    let arguments = [
        Argument::from(&input_buffer),
        Argument::from(&output),
        Argument::from(input.len() as i64),
    ];
    // SAFETY: the arguments match P; kernels here stay within the buffers unless that is what they
    // test, by less than the guard bytes.
    unsafe { device.launch(&k, grid, &arguments)? };
    Ok(words(&output, count))
}

fn run(seed: u64, body: &str, grid: Grid, count: usize) -> Result<Vec<u64>> {
    run_on(&device(seed), &kernel(body), grid, &[], count)
}

fn report(result: Result<Vec<u64>>) -> String {
    match result.as_ref().map_err(Error::kind) {
        Err(ErrorKind::Simulation { kernel, report }) => {
            assert_eq!(kernel, "k");
            report.clone()
        }
        other => panic!("expected a simulation error, got {other:?}"),
    }
}

#[test]
fn every_thread_of_the_grid_runs_once() {
    for seed in SEEDS {
        let out =
            run(seed, "p.out[global_thread()] += 1 + global_thread();", grid(37, 96), 37 * 96)
                .unwrap();
        assert!(out.iter().enumerate().all(|(i, &v)| v == 1 + i as u64), "seed {seed}");
    }
}

#[test]
fn a_module_that_is_unloaded_is_gone_and_can_be_loaded_again() {
    let device = device(0);
    let driver = &device.0.driver;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("image.so");
    driver.compile(&kernel("if (threadIdx.x == 0) *p.out += 1;"), Tier::Full, &path).unwrap();
    let image = StoredImage { path, bytes: vec![] };
    let out = device.alloc_zeroed("test", 8).unwrap();
    for _ in 0..3 {
        let module = driver.load(&image).unwrap();
        let function = driver.function(module, "k").unwrap();
        // SAFETY: the arguments match P; one word is written.
        unsafe { driver.launch(function, "k", grid(1, 32), &[out.address(), out.address(), 0]) }
            .unwrap();
        driver.unload(&[module]).unwrap();
        assert!(matches!(
            driver.function(module, "k").unwrap_err().kind(),
            ErrorKind::Internal { .. }
        ));
    }
    assert_eq!(words(&out, 1), [3]);
}

#[test]
fn a_barrier_separates_writes_from_reads() {
    let body = "WF_SHARED_ARRAY(u64, tile, 256);
        tile[threadIdx.x] = global_thread();
        __syncthreads();
        p.out[global_thread()] = tile[255 - threadIdx.x];";
    for seed in SEEDS {
        let out = run(seed, body, grid(20, 256), 20 * 256).unwrap();
        assert!(
            out.iter().enumerate().all(|(i, &v)| v as usize == i / 256 * 256 + 255 - i % 256),
            "seed {seed}"
        );
    }
}

#[test]
fn a_missing_barrier_after_a_write_reads_poison() {
    let body = "WF_SHARED_ARRAY(u64, tile, 64);
        tile[threadIdx.x] = 7;
        p.out[threadIdx.x] = tile[63 - threadIdx.x];";
    assert!(run(0, body, grid(1, 64), 64).unwrap().contains(&0xcdcd_cdcd_cdcd_cdcd));
}

/// Forward, every thread reads its left neighbour's old value only if the neighbour runs later.
#[test]
fn a_missing_barrier_after_a_read_shows_under_another_seed() {
    let body = "WF_SHARED_ARRAY(u64, tile, 64);
        tile[threadIdx.x] = threadIdx.x;
        __syncthreads();
        u64 next = tile[(threadIdx.x + 1) % 64];
        if (threadIdx.x < 63) tile[threadIdx.x] = next;  // a barrier is missing above
        __syncthreads();
        p.out[threadIdx.x] = tile[threadIdx.x];";
    let right: Vec<u64> = (1..64).chain([63]).collect();
    let wrong =
        SEEDS.iter().filter(|&&seed| run(seed, body, grid(1, 64), 64).unwrap() != right).count();
    assert!(wrong >= 1);
    let mended = body.replace("if (threadIdx.x < 63)", "__syncthreads(); if (threadIdx.x < 63)");
    for seed in SEEDS {
        assert_eq!(run(seed, &mended, grid(1, 64), 64).unwrap(), right, "seed {seed}");
    }
}

#[test]
fn barriers_that_count_tell_every_thread() {
    let body = "int many = __syncthreads_count(threadIdx.x < 10);
        int any = __syncthreads_or(threadIdx.x == 50), none = __syncthreads_or(0);
        int all = __syncthreads_and(threadIdx.x < 64), not_all = __syncthreads_and(threadIdx.x != 5);
        p.out[threadIdx.x] = many * 10000 + (any != 0) * 1000 + (none != 0) * 100 + (all != 0) * 10 + (not_all != 0);";
    for seed in SEEDS {
        assert_eq!(run(seed, body, grid(1, 64), 64).unwrap(), vec![101010; 64], "seed {seed}");
    }
}

#[test]
fn barriers_wait_for_threads_that_live() {
    let body = "if (threadIdx.x >= 40) return;
        WF_SHARED_ARRAY(u64, tile, 40);
        tile[threadIdx.x] = threadIdx.x;
        __syncthreads();
        p.out[threadIdx.x] = tile[39 - threadIdx.x];";
    for seed in SEEDS {
        assert_eq!(run(seed, body, grid(1, 64), 40).unwrap(), (0..40).rev().collect::<Vec<u64>>());
    }
}

#[test]
fn a_divergent_barrier_is_reported_with_both_places() {
    let body = "if (threadIdx.x < 20)
        __syncthreads();
        else
        __syncthreads();";
    let text = report(run(0, body, grid(3, 64), 1));
    assert!(
        text.contains("divergent barrier: thread 20 of block 0 is at __syncthreads, body:4"),
        "{text}"
    );
    assert!(text.contains("lanes 0x000fffff wait at __syncthreads, body:2"), "{text}");
}

#[test]
fn endless_spinning_is_reported() {
    let body = "while (load_acquire(p.out) == 0)
        spin();";
    for seed in SEEDS {
        let text = report(run(seed, body, grid(3, 32), 1));
        assert!(
            text.contains("threads only spin") && text.contains("lanes 0xffffffff spin, body:2"),
            "{text}"
        );
    }
}

#[test]
fn a_report_leaves_the_device_usable() {
    let device = device(0);
    let bad = kernel("if (threadIdx.x == 0) __syncthreads(); else __shfl_sync(FULL_WARP, 1, 0);");
    report(run_on(&device, &bad, grid(9, 256), &[], 1));
    let good = kernel("__syncthreads(); p.out[threadIdx.x] = 3;");
    assert_eq!(run_on(&device, &good, grid(1, 256), &[], 256).unwrap(), vec![3; 256]);
}

#[test]
fn a_trap_is_reported() {
    assert!(
        report(run(0, "if (threadIdx.x == 40) __trap();", grid(1, 64), 1))
            .contains("thread 40 of block 0 trapped")
    );
}

#[test]
fn shared_objects_are_separate_and_poisoned_for_every_block() {
    let declarations = "template <class T> WF_DEVICE T first_seen() {
            WF_SHARED(T, mine);
            T before = mine;
            __syncthreads();
            if (threadIdx.x == 0) mine = 1;
            __syncthreads();
            return before;
        }";
    let body = "struct Tile { u32 a[3]; u64 b; };
        WF_SHARED(Tile, tile);
        WF_DYNAMIC_SHARED(bytes);
        bool right = first_seen<u64>() == 0xcdcdcdcdcdcdcdcdull && first_seen<u32>() == 0xcdcdcdcdu;
        right &= tile.b == 0xcdcdcdcdcdcdcdcdull && bytes[99] == 0xcd && (u64)bytes % 16 == 0;
        __syncthreads();
        tile.b = bytes[99] = 0;
        p.out[global_thread()] = right;";
    let source = with_declarations(declarations, body);
    let shape = Grid { blocks: 30, threads: 64, shared: 100 };
    for seed in SEEDS {
        assert_eq!(
            run_on(&device(seed), &source, shape, &[], 30 * 64).unwrap(),
            vec![1; 30 * 64],
            "seed {seed}"
        );
    }
}

#[test]
fn writes_outside_shared_memory_are_reported() {
    let body = "WF_SHARED_ARRAY(u32, tile, 8);
        volatile u32* at = tile;
        at[8 + threadIdx.x % 1] = 1;";
    let text = report(run(0, body, grid(1, 32), 1));
    assert!(text.contains("past the end of shared memory tile of 32 bytes"), "{text}");
    let text =
        report(run(0, "WF_SHARED_ARRAY(u8, big, 50000); p.out[0] = big[0];", grid(1, 32), 1));
    assert!(text.contains("50000 bytes of static"), "{text}");
}

#[test]
fn writes_outside_an_allocation_are_reported() {
    if compiler::system().unwrap().sanitizes() {
        return eprintln!("skipped: AddressSanitizer ends the process at such a write");
    }
    let text = report(run(0, "p.out[10 + threadIdx.x] = 1;", grid(1, 32), 10));
    assert!(
        text.contains("wrote outside an allocation: 0 bytes past the end of the one of 80 bytes"),
        "{text}"
    );
}

/// Tiles by ticket, decoupled look-back over status words: an inclusive scan of the tiles' sums.
#[test]
fn look_back_over_interleaved_blocks_sums_all_tiles() {
    let body = "u64* status = p.out;            // [0]: ticket; [1 + tile]: 2 bits of state, then the value
        WF_SHARED(u64, ticket);
        WF_SHARED(u64, before);
        if (threadIdx.x == 0) ticket = atomicAdd(&status[0], 1ull);
        __syncthreads();                        // the ticket is known
        i64 tile = (i64)ticket;
        u64 sum = p.in[tile];
        if (threadIdx.x == 0) {
            store_release(&status[1 + tile], tile == 0 ? sum << 2 | 2 : sum << 2 | 1);
            u64 total = 0;
            for (i64 at = tile - 1; at >= 0;) {
                u64 seen = load_acquire(&status[1 + at]);
                if ((seen & 3) == 0) { p.out[1 + p.n] += 1; spin(); continue; }
                total += seen >> 2;
                if ((seen & 3) == 2) break;
                at--;
            }
            before = total;
            store_release(&status[1 + tile], (total + sum) << 2 | 2);
        }
        __syncthreads();                        // the prefix is known
        if (threadIdx.x == 63) p.out[2 + p.n + tile] = before + sum;";
    let input: Vec<u64> = (0..500).map(|i| i * i % 101).collect();
    let mut sum = 0;
    let expected: Vec<u64> = input.iter().map(|v| (sum += v, sum).1).collect();
    let mut waited = 0;
    for seed in SEEDS {
        let out =
            run_on(&device(seed), &kernel(body), grid(500, 64), &input, 1 + 500 + 1 + 500).unwrap();
        assert_eq!(out[502..], expected, "seed {seed}");
        waited += out[501];
    }
    assert!(waited > 0, "no schedule made a tile wait for its predecessor");
}

/// Two threads of one warp, then two blocks, hand a number back and forth.
#[test]
fn spinning_lets_the_other_side_run() {
    let body = "u64 side = p.n ? (u64)blockIdx.x : (u64)threadIdx.x;
        if (p.n ? threadIdx.x > 0 : threadIdx.x > 1) return;
        for (u64 round = side; round < 2000; round += 2) {
            while (load_acquire(p.out) != round) spin();
            store_release(p.out, round + 1);
        }";
    for seed in SEEDS {
        let device = device(seed);
        assert_eq!(
            run_on(&device, &kernel(body), grid(1, 32), &[], 1).unwrap(),
            [2000],
            "lanes, seed {seed}"
        );
        assert_eq!(
            run_on(&device, &kernel(body), grid(2, 32), &[0], 1).unwrap(),
            [2000],
            "blocks, seed {seed}"
        );
    }
}

/// Whichever slots the two are in, between slots whose blocks have ended.
#[test]
fn a_block_that_spins_lets_any_other_run() {
    let body = "if (threadIdx.x > 0) return;
        if (blockIdx.x == p.in[0]) while (load_acquire(p.out) == 0) spin();
        if (blockIdx.x != p.in[1]) return;
        for (u64 round = 0; round < 50; ++round) __syncthreads();
        store_release(p.out, u64(1));";
    for seed in SEEDS {
        let device = device(seed);
        for (waits, works) in (0..8).flat_map(|waits| (0..8).map(move |works| (waits, works))) {
            if waits != works {
                assert_eq!(
                    run_on(&device, &kernel(body), grid(8, 32), &[waits, works], 1).unwrap(),
                    [1],
                    "seed {seed}"
                );
            }
        }
    }
}

#[test]
fn atomics_return_the_old_value() {
    let declarations = "";
    let body = "u64* o = p.out;
        atomicAdd(&o[0], 1ull);
        atomicAdd((u32*)&o[1], 2u);
        atomicMax((i64*)&o[2], (i64)threadIdx.x);
        atomicMin((i64*)&o[3], -(i64)threadIdx.x);
        atomicOr(&o[4], 1ull << threadIdx.x);
        atomicXor((u32*)&o[5], 1u << threadIdx.x % 32);
        atomicAdd((f64*)&o[6], 0.5);
        if (atomicCAS(&o[7], 0ull, threadIdx.x + 1ull) == 0) atomicExch(&o[8], 5ull);
        else atomicAdd((i32*)&o[9], -1);";
    let source = with_declarations(declarations, body);
    for seed in SEEDS {
        let out = run_on(&device(seed), &source, grid(1, 64), &[], 10).unwrap();
        assert_eq!(
            out[..7],
            [64, 128, 63, -63i64 as u64, u64::MAX, 0, 32f64.to_bits()],
            "seed {seed}"
        );
        assert!((1..=64).contains(&out[7]));
        assert_eq!((out[8], out[9]), (5, u64::from(-63i32 as u32)));
    }
}

#[test]
fn arithmetic_of_128_bits_agrees_with_rust() {
    let body = "u64 t = threadIdx.x;
        i128 a = ((i128)p.in[t] << 64) + p.in[t + 32], b = (i128)(i64)p.in[t + 64];
        i128 results[4] = {a + b, a * b, a / b, a % b};
        for (int i = 0; i < 4; i++) {
            p.out[t * 10 + 2 * i] = low_word((u128)results[i]);
            p.out[t * 10 + 2 * i + 1] = high_word((u128)results[i]);
        }
        p.out[t * 10 + 8] = mul_high(p.in[t], p.in[t + 32]);
        p.out[t * 10 + 9] = a < b;";
    let mut state = 12345u64;
    let input: Vec<u64> = std::iter::repeat_with(|| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        state ^ state >> 29
    })
    .take(96)
    .collect();
    let out = run_on(&device(0), &kernel(body), grid(1, 32), &input, 320).unwrap();
    for t in 0..32 {
        let a = (i128::from(input[t]) << 64).wrapping_add(i128::from(input[t + 32]));
        let b = i128::from(input[t + 64] as i64);
        for (i, expected) in
            [a.wrapping_add(b), a.wrapping_mul(b), a / b, a % b].into_iter().enumerate()
        {
            let word = |k: usize| i128::from(out[t * 10 + 2 * i + k]);
            assert_eq!(word(1) << 64 | word(0), expected, "operation {i} of thread {t}");
        }
        assert_eq!(
            out[t * 10 + 8],
            ((u128::from(input[t]) * u128::from(input[t + 32])) >> 64) as u64
        );
        assert_eq!(out[t * 10 + 9], u64::from(a < b));
    }
}

#[test]
fn bit_functions_agree_with_rust() {
    let body = "u64 v = p.in[threadIdx.x];
        u32 w = (u32)v;
        u64* o = p.out + threadIdx.x * 8;
        o[0] = (u64)__popc(w) | (u64)__popcll(v) << 32;
        o[1] = (u64)leading_zeros(w) | (u64)leading_zeros(v) << 32;
        o[2] = (u64)trailing_zeros(w) | (u64)trailing_zeros(v) << 32;
        o[3] = __brev(w);
        o[4] = __byte_perm(w, (u32)(v >> 32), 0x0617);
        o[5] = __funnelshift_l(w, (u32)(v >> 32), 5);
        o[6] = __funnelshift_r(w, (u32)(v >> 32), 37);
        o[7] = (u64)__double2ll_rz(__longlong_as_double((i64)v));";
    let input: Vec<u64> = (0..32)
        .map(|i| if i == 0 { 0 } else { 0x9e37_79b9_7f4a_7c15u64.wrapping_mul(i) >> (i % 7) })
        .collect();
    let out = run_on(&device(0), &kernel(body), grid(1, 32), &input, 256).unwrap();
    for (&v, o) in input.iter().zip(out.chunks(8)) {
        let (w, bytes) = (v as u32, v.to_le_bytes());
        let pair = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        assert_eq!(o[0], pair(w.count_ones(), v.count_ones()));
        assert_eq!(o[1], pair(w.leading_zeros(), v.leading_zeros()));
        assert_eq!(o[2], pair(w.trailing_zeros(), v.trailing_zeros()));
        assert_eq!(o[3], u64::from(w.reverse_bits()));
        assert_eq!(o[4], u64::from(u32::from_le_bytes([bytes[7], bytes[1], bytes[6], bytes[0]])));
        assert_eq!(o[5], u64::from(((v << 5) >> 32) as u32));
        assert_eq!(o[6], u64::from((v >> 5) as u32));
        let x = f64::from_bits(v);
        assert_eq!(o[7] as i64, if x.is_nan() { i64::MIN } else { x as i64 });
    }
}

#[test]
fn math_has_cudas_names_for_both_floats() {
    let body = "f64 x = 2.25; f32 y = 2.25f;
        f64 d = sqrt(x) + exp(x) + log(x) + pow(x, 2.0) + floor(x) + ceil(x) + round(x) + trunc(x) + fabs(-x) + fmod(x, 2.0);
        f32 f = sqrt(y) + exp(y) + log(y) + pow(y, 2.0f) + floor(y) + ceil(y) + round(y) + trunc(y) + fabs(-y) + fmod(y, 2.0f);
        static_assert(sizeof(sqrt(y)) == 4 && sizeof(pow(y, y)) == 4 && sizeof(min(y, y)) == 4, \"f32 stays f32\");
        p.out[0] = bits(d);
        p.out[1] = bits((f64)f);
        p.out[2] = isnan(x) + 2 * isnan(0.0 / (x - x)) + 4 * isinf(limits<f64>::highest()) + 8 * isfinite(x);";
    let out = run(0, body, grid(1, 32), 3).unwrap();
    let x = 2.25f64;
    let expected = 1.5 + x.exp() + x.ln() + 5.0625 + 2.0 + 3.0 + 2.0 + 2.0 + 2.25 + 0.25;
    assert!((f64::from_bits(out[0]) - expected).abs() < 1e-12);
    assert!((f64::from_bits(out[1]) - expected).abs() < 1e-5);
    assert_eq!(out[2], 2 + 4 + 8);
}

#[test]
fn two_devices_launch_at_once() {
    let body = "WF_SHARED_ARRAY(u64, tile, 128);
        u64 value = p.in[0] + threadIdx.x;
        for (int i = 0; i < 50; i++) {
            tile[threadIdx.x] = value;
            __syncthreads();
            value += tile[(threadIdx.x + 1) % 128] & 1;
            __syncthreads();
        }
        p.out[global_thread()] = value;";
    let expected =
        |seed: u64| run_on(&device(0), &kernel(body), grid(40, 128), &[seed], 40 * 128).unwrap();
    let alone = [expected(3), expected(1000)];
    std::thread::scope(|scope| {
        for (seed, alone) in [3, 1000].into_iter().zip(&alone) {
            let source = kernel(body);
            scope.spawn(move || {
                for schedule in SEEDS {
                    let together =
                        run_on(&device(schedule), &source, grid(40, 128), &[seed], 40 * 128)
                            .unwrap();
                    assert_eq!(&together, alone);
                }
            });
        }
    });
}

#[test]
fn launches_that_do_not_fit_the_kernel_are_refused() {
    let device = device(0);
    let source = KernelSource::new(
        "bounded.cu",
        "#include \"prelude.cuh\"\nnamespace wf { struct P { i64 n; }; WF_KERNEL_BOUNDS(128, 2, bounded, P) {} }",
    );
    let k = device.kernel(&source, "bounded").unwrap();
    let launch = |threads, arguments: &[Argument]| {
        // SAFETY: the kernel does nothing.
        unsafe { device.launch(&k, grid(1, threads), arguments) }
    };
    launch(128, &[1i64.into()]).unwrap();
    assert!(launch(256, &[1i64.into()]).unwrap_err().to_string().contains("up to 128"));
    assert!(launch(33, &[1i64.into()]).unwrap_err().to_string().contains("multiple of 32"));
    assert!(launch(32, &[]).unwrap_err().to_string().contains("takes 1 parameters, got 0"));
    assert!(matches!(
        device.kernel(&source, "absent").unwrap_err().kind(),
        ErrorKind::Compile { .. }
    ));
}

#[test]
fn a_kernel_that_does_not_compile_gives_the_log_with_its_own_lines() {
    let error = device(0).kernel(&kernel("p.out[0] = 1;\n  undeclared_name();"), "k").unwrap_err();
    let ErrorKind::Compile { kernel, log } = error.kind() else { panic!("{error}") };
    assert_eq!(kernel, "test.cu");
    assert!(log.contains("body:2") && log.contains("undeclared_name"), "{log}");
}

#[test]
fn time_goes_forward_between_events() {
    let device = device(0);
    let earlier = device.record().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(2));
    let later = device.record().unwrap();
    assert!(later.since(&earlier).unwrap() >= 2.0);
    assert!(earlier.since(&later).unwrap() <= -2.0);
}

#[test]
fn memory_beyond_the_device_is_refused() {
    let driver = SimDriver::open(SimOptions::with_seed(0)).unwrap();
    assert_eq!(driver.alloc(driver.properties().memory as usize + 1).unwrap(), None);
    let before = driver.free_memory().unwrap();
    let address = driver.alloc(1000).unwrap().unwrap();
    assert_eq!(driver.free_memory().unwrap(), before - 1000);
    // SAFETY: just allocated, and used by nobody.
    unsafe { driver.free(address, 1000) };
    assert_eq!(driver.free_memory().unwrap(), before);
    driver.synchronize().unwrap();
}

/// Not a promise of the type system but of the design: tests of operators launch thousands of
/// blocks.
#[test]
#[ignore = "measures; run alone"]
fn speed() {
    let device = device(0);
    let time = |body: &str, grid: Grid| {
        let source = kernel(body);
        run_on(&device, &source, grid, &[], 1 << 20).unwrap();
        let start = Instant::now();
        run_on(&device, &source, grid, &[], 1 << 20).unwrap();
        start.elapsed().as_secs_f64()
    };
    let plain = time("i64 i = global_thread(); p.out[i] = i * 3;", grid(4096, 256));
    println!("1 M threads without a barrier: {:.1} ms", plain * 1e3);
    let barriers = time("for (int i = 0; i < 1000; i++) __syncthreads();", grid(16, 256));
    println!("barrier switches: {:.1} M/s", 16.0 * 256.0 * 1000.0 / barriers / 1e6);
    let shuffles = time(
        "u32 v = 1; for (int i = 0; i < 1000; i++) v += __shfl_xor_sync(FULL_WARP, v, 1 + i % 31); p.out[0] = v;",
        grid(16, 256),
    );
    println!("shuffle switches: {:.1} M/s", 16.0 * 256.0 * 1000.0 / shuffles / 1e6);
    let spins = time(
        "if (threadIdx.x) return; if (blockIdx.x) while (load_acquire(p.out) == 0) spin(); else { for (int i = 0; i < 1000000; i++) spin(); store_release(p.out, (u64)1); }",
        grid(2, 32),
    );
    println!("spins: {:.1} M/s", 2e6 / spins / 1e6);
}
