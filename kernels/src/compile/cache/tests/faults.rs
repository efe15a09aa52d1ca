//! Images that are damaged or refused, folders that cannot be written or trusted: what they cost.

use super::*;

#[test]
fn a_damaged_entry_is_compiled_again() {
    let dir = tempfile::tempdir().unwrap();
    let driver = Fake::new();
    let source = KernelSource::new("one", "alpha");
    let ask = || {
        let counters = Counting::default();
        KernelCache::at(Folders::one(dir.path()), None)
            .function(&driver, &counters, &source, "alpha")
            .unwrap();
        counters.snapshot().compilations
    };
    assert_eq!(ask(), 1);
    let image = image(dir.path());
    let checksum = PathBuf::from(format!("{}.sha256", image.display()));
    for damage in [
        &(|| fs::write(&image, b"alphx").unwrap()) as &dyn Fn(),
        &|| fs::write(&image, b"alp").unwrap(),
        &|| fs::write(&image, b"").unwrap(),
        &|| fs::remove_file(&image).unwrap(),
        &|| fs::write(&checksum, b"").unwrap(),
        &|| fs::write(&checksum, b"\xff\xfe").unwrap(),
        &|| fs::remove_file(&checksum).unwrap(),
    ] {
        damage();
        assert_eq!(ask(), 1, "damaged");
        assert_eq!(ask(), 0, "mended");
    }
}

#[test]
fn an_image_that_the_driver_refuses_is_compiled_again() {
    let dir = tempfile::tempdir().unwrap();
    let (driver, counters) = (Fake::new(), Counting::default());
    let source = KernelSource::new("one", "alpha");
    KernelCache::at(Folders::one(dir.path()), None)
        .function(&driver, &counters, &source, "alpha")
        .unwrap();
    driver.refuse.store(1, SeqCst);
    KernelCache::at(Folders::one(dir.path()), None)
        .function(&driver, &counters, &source, "alpha")
        .unwrap();
    assert_eq!(counters.snapshot().compilations, 2);
}

/// The notes of a cache that has compiled a source once, and where its process's own folder is.
fn compiled_aside(cache: &KernelCache, driver: &Fake) -> (Vec<String>, PathBuf) {
    let counters = Counting::default();
    for text in ["alpha", "alpha beta"] {
        cache.function(driver, &counters, &KernelSource::new("one", text), "alpha").unwrap();
    }
    assert_eq!(counters.snapshot().compilations, 2);
    let notes = cache.take_notes();
    assert!(cache.take_notes().is_empty(), "told once");
    (notes, cache.store().private_folder().expect("they lie somewhere").to_path_buf())
}

#[test]
fn a_folder_that_cannot_be_written_is_replaced_by_one_of_the_process() {
    let dir = tempfile::tempdir().unwrap();
    // A file in the way: unlike permissions, it stops the superuser too.
    let blocked = dir.path().join("file");
    fs::write(&blocked, b"").unwrap();
    let cache = KernelCache::at(Folders::one(&blocked.join("cache")), None);
    let (notes, used) = compiled_aside(&cache, &Fake::new());
    let [note] = &notes[..] else { panic!("{notes:?}") };
    assert!(note.contains("not kept") && note.contains("file/cache"), "{note}");
    assert!(used.starts_with(std::env::temp_dir()) && used.is_dir());
    assert_eq!(
        fs::metadata(&used).map(|m| std::os::unix::fs::MetadataExt::mode(&m) & 0o777).unwrap(),
        0o700
    );
    drop(cache);
    assert!(!used.exists(), "goes with the process");
}

#[test]
fn a_folder_that_is_full_costs_one_note_and_no_query() {
    let dir = tempfile::tempdir().unwrap();
    let mut driver = Fake::new();
    driver.full = Some(dir.path().into());
    let cache = KernelCache::at(Folders::one(dir.path()), None);
    let (notes, _) = compiled_aside(&cache, &driver);
    let [note] = &notes[..] else { panic!("{notes:?}") };
    assert!(note.contains("No space left on device"), "{note}");
    assert_eq!(driver.compiled.load(SeqCst), 3, "only the first is compiled in vain");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn where_the_temporary_files_are_full_too_images_are_kept_in_memory() {
    if !Path::new("/dev/shm").is_dir() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let mut driver = Fake::new();
    driver.full = Some(std::env::temp_dir());
    let cache = KernelCache::at(Folders::one(dir.path()), None);
    let (notes, used) = compiled_aside(&cache, &driver);
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert!(used.starts_with("/dev/shm") && fs::read_dir(&used).unwrap().count() == 4);
    let again = KernelSource::new("bad", "#error");
    let error = cache.function(&driver, &Counting::default(), &again, "bad").unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Compile { .. }), "{error}");
    drop(cache);
    assert!(!used.exists());
}

#[test]
fn an_image_whose_checksum_cannot_be_written_is_not_left_and_costs_no_query() {
    let dir = tempfile::tempdir().unwrap();
    let (driver, source) = (Fake::new(), KernelSource::new("one", "alpha"));
    let cache = KernelCache::at(Folders::one(dir.path()), None);
    // A folder of the checksum's name: renaming a file to it fails for the superuser, too.
    let image = dir.path().join(cache.files(&driver, &source).full);
    fs::create_dir_all(store::checksum_of(&image).join("in the way")).unwrap();
    let (notes, _) = compiled_aside(&cache, &driver);
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert!(!image.exists());
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "no draft either");
}

#[test]
fn a_folder_that_was_removed_is_made_again() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("cache");
    let (driver, counters) = (Fake::new(), Counting::default());
    let cache = KernelCache::at(Folders::one(&folder), None);
    for text in ["alpha", "alpha beta"] {
        cache.function(&driver, &counters, &KernelSource::new("one", text), "alpha").unwrap();
        image(&folder);
        fs::remove_dir_all(&folder).unwrap();
    }
    assert_eq!(cache.take_notes(), [""; 0]);
}

#[test]
fn what_is_damaged_refused_or_of_another_compiler_is_told_once() {
    let dir = tempfile::tempdir().unwrap();
    let driver = Fake::new();
    let notes = |driver: &Fake, matching: bool| {
        let cache = KernelCache { matching, ..KernelCache::at(Folders::one(dir.path()), None) };
        for text in ["alpha", "alpha beta"] {
            cache
                .function(driver, &Counting::default(), &KernelSource::new("one", text), "alpha")
                .unwrap();
        }
        cache.take_notes()
    };
    assert_eq!(notes(&driver, false), [""; 0]);
    for entry in fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.extension().is_some_and(|e| e == "cubin") {
            fs::write(&entry, b"cut").unwrap();
        }
    }
    let told = notes(&driver, false);
    assert!(matches!(&told[..], [note] if note.contains("damaged")), "{told:?}");
    driver.refuse.store(2, SeqCst);
    let cache = KernelCache::at(Folders::one(dir.path()), None);
    let source = KernelSource::new("one", "alpha");
    cache.function(&driver, &Counting::default(), &source, "alpha").unwrap_err();
    let told = cache.take_notes();
    assert!(matches!(&told[..], [note] if note.contains("do not load")), "{told:?}");
    let mut other = Fake::new();
    other.compiler = Some("fake 2.0");
    let told = notes(&other, true);
    assert!(matches!(&told[..], [note] if note.contains("fake 1.0")), "{told:?}");
}

#[test]
fn a_folder_that_others_may_write_to_is_not_read() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let [first, second] = ["first", "second"].map(|name| dir.path().join(name));
    let (driver, counters) = (Fake::new(), Counting::default());
    let ask = |folders: &Folders| {
        let cache = KernelCache::at(folders.clone(), None);
        cache.function(&driver, &counters, &KernelSource::new("one", "alpha"), "alpha").unwrap();
        cache.take_notes()
    };
    let both = Folders { paths: vec![first.clone(), second.clone()], ..Folders::one(&first) };
    let set = |folder: &Path, mode| {
        fs::set_permissions(folder, fs::Permissions::from_mode(mode)).unwrap();
    };
    for (folder, mode) in [(&first, 0o777), (&second, 0o720)] {
        ask(&Folders::one(folder));
        set(folder, mode);
    }
    assert!(!holds_images(&both, "sm_00"));
    let notes = ask(&both);
    assert_eq!(counters.snapshot().compilations, 3);
    let told = |folder: &Path| {
        notes
            .iter()
            .any(|note| note.contains("others may") && note.contains(folder.to_str().unwrap()))
    };
    assert!(notes.len() == 2 && told(&first) && told(&second), "{notes:?}");
    set(&second, 0o755);
    ask(&both);
    assert_eq!((counters.snapshot().compilations, counters.snapshot().disk_hits), (3, 1));
    // Nor one whose folder others may move, but among temporary files nobody does.
    set(dir.path(), 0o777);
    let notes = ask(&Folders::one(&second));
    assert!(matches!(&notes[..], [note] if note.contains("above it")), "{notes:?}");
    set(dir.path(), 0o1777);
    assert_eq!(ask(&Folders::one(&second)), Vec::<String>::new());
}
