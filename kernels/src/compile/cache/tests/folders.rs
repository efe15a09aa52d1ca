//! Which folders there are, in what order, and what stays in them.

use super::*;

#[test]
fn a_look_at_names_tells_whether_images_of_an_architecture_are_kept() {
    let dir = tempfile::tempdir().unwrap();
    let folders = Folders::one(dir.path());
    assert!(!holds_images(&Folders::one(&dir.path().join("none")), "sm_00"));
    assert!(!holds_images(&folders, "sm_00"));
    let (driver, source) = (quick(), KernelSource::new("one", "alpha"));
    KernelCache::at(folders.clone(), None)
        .function(&driver, &Counting::default(), &source, "alpha")
        .unwrap();
    assert!(holds_images(&folders, "sm_00"));
    assert!(!holds_images(&folders, "sm_90") && !holds_images(&folders, "sim"));
}

#[test]
fn with_no_bytes_nothing_is_written_and_what_is_there_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let (driver, counters) = (Fake::new(), Counting::default());
    let ask = |folders: Folders, text: &str| {
        KernelCache::at(folders, None)
            .function(&driver, &counters, &KernelSource::new("one", text), "alpha")
            .unwrap();
    };
    ask(Folders::one(dir.path()), "alpha");
    let none = Folders { most_bytes: 0, ..Folders::one(dir.path()) };
    ask(none.clone(), "alpha");
    ask(none.clone(), "alpha beta");
    let now = counters.snapshot();
    assert_eq!((now.compilations, now.disk_hits), (2, 1));
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
    let missing = dir.path().join("none");
    ask(Folders { most_bytes: 0, ..Folders::one(&missing) }, "alpha");
    assert!(!missing.exists());
}

#[test]
fn an_image_that_is_found_is_noted_as_used_once_a_day() {
    let dir = tempfile::tempdir().unwrap();
    let (driver, source) = (Fake::new(), KernelSource::new("one", "alpha"));
    let used_after = |age: Duration| {
        let ask = || {
            let cache = KernelCache::at(Folders::one(dir.path()), None);
            cache.function(&driver, &Counting::default(), &source, "alpha").unwrap();
        };
        ask();
        let file = fs::File::open(image(dir.path())).unwrap();
        file.set_modified(std::time::SystemTime::now() - age).unwrap();
        ask();
        fs::metadata(image(dir.path())).unwrap().modified().unwrap().elapsed().unwrap()
    };
    let hour = Duration::from_secs(3600);
    assert!(used_after(2 * hour) > hour, "not so soon again");
    assert!(used_after(48 * hour) < hour);
}

#[test]
fn a_folder_is_tidied_behind_an_insert() {
    let dir = tempfile::tempdir().unwrap();
    let old = dir.path().join(format!("{:064x}.sm_00.cubin", 1));
    fs::write(&old, vec![1; 1 << 20]).unwrap();
    fs::File::open(&old)
        .unwrap()
        .set_modified(std::time::SystemTime::now() - Duration::from_secs(3600))
        .unwrap();
    let folders = Folders { most_bytes: 1 << 19, ..Folders::one(dir.path()) };
    let cache = KernelCache::at(folders, None);
    cache
        .function(&Fake::new(), &Counting::default(), &KernelSource::new("one", "alpha"), "alpha")
        .unwrap();
    let start = Instant::now();
    while old.exists() {
        assert!(start.elapsed() < Duration::from_secs(20), "it is too much");
        std::thread::sleep(LOOK);
    }
    assert_eq!(fs::read(image(dir.path())).unwrap(), b"alpha", "what was just made stays");
}

#[test]
fn a_second_folder_is_read_and_never_written() {
    let dir = tempfile::tempdir().unwrap();
    let [first, shipped] = ["first", "shipped"].map(|name| dir.path().join(name));
    let (driver, counters) = (Fake::new(), Counting::default());
    let ask = |folders: &Folders, text: &str| {
        let cache = KernelCache::at(folders.clone(), None);
        cache.function(&driver, &counters, &KernelSource::new("one", text), "alpha").unwrap();
        cache.take_notes()
    };
    ask(&Folders::one(&shipped), "alpha");
    let missing = dir.path().join("missing");
    let both = Folders {
        paths: vec![first.clone(), missing.clone(), shipped.clone()],
        ..Folders::one(&first)
    };
    assert!(holds_images(&both, "sm_00") && !holds_images(&Folders::one(&first), "sm_00"));
    assert_eq!(ask(&both, "alpha"), [""; 0]);
    assert_eq!(counters.snapshot().disk_hits, 1);
    ask(&both, "alpha beta");
    assert_eq!(fs::read(image(&first)).unwrap(), b"alpha beta");
    assert_eq!(fs::read(image(&shipped)).unwrap(), b"alpha");
    assert!(!missing.exists());
    // A first folder that cannot be written does not hide the second.
    let blocked = shipped.join("file");
    fs::write(&blocked, b"").unwrap();
    let notes = ask(&Folders { paths: vec![blocked.join("cache"), shipped], ..both }, "alpha");
    assert_eq!((notes.len(), counters.snapshot().disk_hits), (1, 2));
}

#[test]
fn the_next_process_expects_what_the_last_query_did() {
    let dir = tempfile::tempdir().unwrap();
    let folders = Folders::one(dir.path());
    assert!(expects_to_compile(&folders), "nothing is kept");
    std::fs::write(dir.path().join("0.sm_90.cubin"), "").unwrap();
    assert!(!expects_to_compile(&folders));
    let cache = KernelCache::at(folders.clone(), None);
    for compiled in [true, true, false, false, true] {
        cache.note_query(compiled);
        assert_eq!(expects_to_compile(&folders), compiled);
    }
}

#[test]
fn kernels_are_shipped_beside_the_program() {
    let dir = tempfile::tempdir().unwrap();
    let (program, kernels) = (dir.path().join("program"), dir.path().join("warpframe-kernels"));
    std::fs::write(&program, "").unwrap();
    assert_eq!(store::shipped_with(&program), None);
    std::fs::create_dir(&kernels).unwrap();
    assert_eq!(store::shipped_with(&program), Some(kernels.canonicalize().unwrap()));
    assert_eq!(store::shipped_with(&dir.path().join("no program")), None);
}

#[test]
fn the_folders_follow_the_environment_in_order() {
    let by = |set: &[(&str, &str)]| {
        Folders::by(|name| {
            set.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into())
        })
    };
    let paths = |set: &[(&str, &str)]| by(set).paths;
    let all = [("WARPFRAME_CACHE_DIR", "/w"), ("XDG_CACHE_HOME", "/x"), ("HOME", "/h")];
    assert_eq!(paths(&all), [Path::new("/w")]);
    assert_eq!(paths(&all[1..]), [Path::new("/x/warpframe")]);
    assert_eq!(paths(&all[2..]), [Path::new("/h/.cache/warpframe")]);
    assert!(paths(&[])[0].starts_with(std::env::temp_dir()));
    assert_eq!(
        paths(&[("WARPFRAME_CACHE_DIR", ""), ("HOME", "/h")]),
        [Path::new("/h/.cache/warpframe")]
    );
    assert_eq!(
        paths(&[("WARPFRAME_CACHE_DIR", ":/w::/shipped:")]),
        [Path::new("/w"), Path::new("/shipped")]
    );
    assert_eq!(
        paths(&[("WARPFRAME_CACHE_DIR", ":"), ("HOME", "/h")]),
        [Path::new("/h/.cache/warpframe")]
    );

    let most = |text: &str| by(&[("WARPFRAME_CACHE_MIB", text)]);
    assert_eq!(
        [by(&[]), most("")].map(|folders| (folders.most_bytes, folders.note)),
        [(512 << 20, None), (512 << 20, None)]
    );
    assert_eq!((most("3").most_bytes, most(" 0 ").most_bytes), (3 << 20, 0));
    for wrong in ["many", "-1", "1.5", "99999999999999999999", "99999999999999999"] {
        let folders = most(wrong);
        assert_eq!(folders.most_bytes, 512 << 20);
        assert!(folders.note.is_some_and(|note| note.contains(wrong) && note.contains("512")));
    }
}
