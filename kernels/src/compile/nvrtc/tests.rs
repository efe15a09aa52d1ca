use super::*;

/// The library, or `None` with a line that says so; `WARPFRAME_REQUIRE_NVRTC=1` makes that a
/// failure.
fn library() -> Option<&'static Nvrtc> {
    match Nvrtc::get() {
        Ok(nvrtc) => Some(nvrtc),
        Err(error) => {
            assert!(std::env::var_os("WARPFRAME_REQUIRE_NVRTC").is_none(), "{error}");
            eprintln!("skipped: {error}");
            None
        }
    }
}

#[test]
fn a_missing_library_is_an_error_that_says_what_to_install() {
    let why = Nvrtc::open(&["/nowhere/libnvrtc.so.13".into(), "libnvrtc.so.0".into()]).unwrap_err();
    for part in [
        "pip install nvidia-cuda-nvrtc",
        "LD_LIBRARY_PATH",
        "WARPFRAME_NVRTC",
        "/nowhere/libnvrtc.so.13",
    ] {
        assert!(why.contains(part), "{why}");
    }
    let error = unavailable(why);
    assert!(matches!(error.kind(), ErrorKind::DeviceUnavailable { .. }));
}

#[test]
fn another_library_is_an_error_and_not_a_panic() {
    let why = Nvrtc::open(&["libc.so.6".into()]).unwrap_err();
    assert!(why.contains("nvrtcCreateProgram"), "{why}");
}

#[test]
fn a_named_library_is_the_only_candidate() {
    let by = |set: &[(&str, &str)]| {
        candidates(|name| {
            set.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into())
        })
    };
    assert_eq!(
        by(&[("WARPFRAME_NVRTC", "/a/libnvrtc.so.13"), ("CUDA_HOME", "/c")]),
        [PathBuf::from("/a/libnvrtc.so.13")]
    );
    let usual = by(&[("WARPFRAME_NVRTC", ""), ("CUDA_HOME", "/c")]);
    assert_eq!(usual[0], Path::new("libnvrtc.so.13"));
    assert!(usual.contains(&"/c/lib64/libnvrtc.so.12".into()));
    assert!(by(&[]).contains(&"/usr/local/cuda/lib64/libnvrtc.so.13".into()));
}

#[test]
fn an_images_id_names_architecture_and_options_and_no_version() {
    let id = Nvrtc::image_id("sm_90");
    assert_ne!(id, Nvrtc::image_id("sm_80"));
    for part in
        options(NEWEST, "sm_90").iter().map(String::as_str).chain([QUICK, "--minimal", "sm_90"])
    {
        assert!(id.contains(part), "{part} in {id}");
    }
    assert!(!id.contains(&NEWEST.0.to_string()));
}

#[test]
fn the_log_gives_registers_spills_and_shared_memory_by_kernel() {
    let log = "\
ptxas info    : 8 bytes gmem
ptxas info    : Compiling entry function 'sum_i64' for 'sm_90'
ptxas info    : Function properties for sum_i64
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 30 registers, used 1 barriers, 1024 bytes smem, 400 bytes cmem[0]
ptxas info    : Compile time = 3.1 ms
ptxas info    : Compiling entry function 'big' for 'sm_90'
ptxas info    : Function properties for big
    136 bytes stack frame, 132 bytes spill stores, 148 bytes spill loads
ptxas info    : Function properties for _ZN2wf6helperEv
    16 bytes stack frame, 4 bytes spill stores, 8 bytes spill loads
ptxas info    : Used 255 registers, 400 bytes cmem[0]";
    let sum =
        KernelReport { name: "sum_i64".into(), registers: 30, shared: 1024, ..Default::default() };
    let (spill_stores, spill_loads) = (136, 156);
    let big = KernelReport {
        name: "big".into(),
        registers: 255,
        spill_stores,
        spill_loads,
        stack: 152,
        ..Default::default()
    };
    assert_eq!(read_log(log), [sum, big]);
    assert_eq!(read_log(""), []);
}

#[test]
fn a_source_compiles_to_an_image_for_each_architecture() {
    let Some(nvrtc) = library() else { return };
    let text = "struct P { long long* out; long long n; };\n\
        extern \"C\" __global__ void add_i64(P p) {\n\
          __shared__ long long part[32];\n\
          part[threadIdx.x & 31] = p.n;\n\
          __syncthreads();\n\
          __int128 wide = part[(threadIdx.x + 1) & 31];\n\
          p.out[threadIdx.x] = (long long)(wide * wide >> 64);\n\
        }";
    for architecture in ["sm_80", "sm_90"] {
        nvrtc.supports(architecture).unwrap();
        let mut images = Vec::new();
        for tier in if nvrtc.version >= QUICK_SINCE {
            &[Tier::Quick, Tier::Full][..]
        } else {
            &[Tier::Full]
        } {
            let image = nvrtc
                .compile_here(&KernelSource::new("add", text), architecture, *tier, None)
                .unwrap();
            assert_eq!(&image.bytes[..4], b"\x7fELF");
            let [kernel] = &read_log(&image.log)[..] else { panic!("{}", image.log) };
            assert_eq!(
                (kernel.name.as_str(), kernel.shared, kernel.spill_stores),
                ("add_i64", 256, 0)
            );
            assert!(kernel.registers > 0 && !images.contains(&image.bytes));
            images.push(image.bytes);
        }
    }
    assert_eq!(nvrtc.name(), format!("nvrtc {}.{}", nvrtc.version.0, nvrtc.version.1));
    assert!(matches!(
        nvrtc.supports("sm_10").unwrap_err().kind(),
        ErrorKind::DeviceUnavailable { .. }
    ));
}

#[test]
fn an_error_in_a_source_is_reported_with_its_log() {
    let Some(nvrtc) = library() else { return };
    let source = KernelSource::new("bad", "__global__ void k() { undeclared(); }");
    let error = nvrtc.compile_here(&source, "sm_90", Tier::Full, None).unwrap_err();
    let ErrorKind::Compile { kernel, log } = error.kind() else { panic!("{error}") };
    assert_eq!(kernel, "bad");
    assert!(log.contains("undeclared") && log.contains("bad.cu"), "{log}");
    let error = nvrtc
        .compile_here(&KernelSource::new("zero", "a\0b"), "sm_90", Tier::Full, None)
        .unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Compile { .. }));
}
