use std::fs;
use std::sync::atomic::Ordering::SeqCst;

use super::*;
use crate::device::fake::Fake;
use crate::error::ErrorKind;

fn image(directory: &Path) -> PathBuf {
    let files = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let mut images = files.filter(|path| path.extension().is_some_and(|e| e == "cubin"));
    let image = images.next().expect("an image");
    assert_eq!(images.next(), None, "one image only");
    image
}

#[test]
fn a_source_is_compiled_once_then_found_in_memory_then_on_disk() {
    let dir = tempfile::tempdir().unwrap();
    let (driver, counters) = (Fake::new(), Counting::default());
    let source = KernelSource::new("pair", "alpha beta");
    let cache = KernelCache::at(Folders::one(dir.path()), None);
    let find = |name| cache.function(&driver, &counters, &source, name).unwrap().function;
    let (alpha, beta) = (find("alpha"), find("beta"));
    assert_ne!(alpha, beta);
    assert_eq!(find("alpha"), alpha);
    let now = counters.snapshot();
    assert_eq!((now.compilations, now.memory_hits, now.disk_hits), (1, 2, 0));

    let counters = Counting::default();
    let later = KernelCache::at(Folders::one(dir.path()), None);
    later.function(&driver, &counters, &source, "beta").unwrap();
    let now = counters.snapshot();
    assert_eq!((now.compilations, now.memory_hits, now.disk_hits), (0, 0, 1));
}

#[test]
fn threads_and_caches_that_ask_at_once_all_get_the_function() {
    let dir = tempfile::tempdir().unwrap();
    let (driver, counters) = (Fake::new(), Counting::default());
    let source = KernelSource::new("one", "alpha");
    // Two caches of one directory stand for two processes.
    let caches = [
        KernelCache::at(Folders::one(dir.path()), None),
        KernelCache::at(Folders::one(dir.path()), None),
    ];
    std::thread::scope(|scope| {
        for thread in 0..16 {
            let (cache, driver, counters, source) =
                (&caches[thread % 2], &driver, &counters, &source);
            scope.spawn(move || cache.function(driver, counters, source, "alpha").unwrap());
        }
    });
    let now = counters.snapshot();
    assert!(driver.compiled.load(SeqCst) <= 2, "at most once a cache");
    assert_eq!(now.memory_hits, 14);
    assert_eq!(now.compilations + now.disk_hits, 2);
    assert_eq!(fs::read(image(dir.path())).unwrap(), b"alpha");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2, "an image, its checksum and no draft");
}

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

/// A driver that compiles quickly at first.
fn quick() -> Fake {
    let mut driver = Fake::new();
    driver.first = Tier::Quick;
    driver
}

#[test]
fn what_was_compiled_quickly_is_improved_in_its_place() {
    let dir = tempfile::tempdir().unwrap();
    let (driver, counters) = (quick(), Counting::default());
    let source = KernelSource::new("pair", "alpha beta");
    let cache = KernelCache::at(Folders::one(dir.path()), None);
    let find = |name| cache.function(&driver, &counters, &source, name).unwrap();
    let (alpha, beta) = (find("alpha"), find("beta"));
    assert!(alpha.uses.is_some() && beta.uses.is_some());
    assert_eq!(fs::read(image(dir.path())).unwrap(), b"quick alpha beta");
    assert_eq!(cache.quick().len(), 1);

    cache.improve(&driver, &counters, &source).unwrap();
    // In the module that was loaded second: places of the names in the text without "quick ".
    let better = |at: u64| FunctionHandle(1000 + at);
    let mut replaced = driver.replaced.lock().unwrap().clone();
    replaced.sort_by_key(|(function, _)| function.0);
    assert_eq!(replaced, [(alpha.function, better(0)), (beta.function, better(6))]);
    // Whoever asks later gets the same handle, which leads to the better one, and has nothing to
    // count.
    let again = find("alpha");
    assert_eq!(again.function, alpha.function);
    assert!(again.uses.is_none() && cache.quick().is_empty());
    // An entry point that nobody had asked for comes from the better module.
    assert_eq!(find("eta").function, better(7));

    cache.improve(&driver, &counters, &source).unwrap();
    assert_eq!(driver.compiled.load(SeqCst), 2, "improved once");
    let now = counters.snapshot();
    assert_eq!((now.compilations, now.improved, now.disk_hits), (1, 1, 0));
}

#[test]
fn a_later_process_finds_the_best_there_is() {
    let dir = tempfile::tempdir().unwrap();
    let source = KernelSource::new("one", "alpha");
    let driver = quick();
    let ask = || {
        let counters = Counting::default();
        let cache = KernelCache::at(Folders::one(dir.path()), None);
        let uses = cache.function(&driver, &counters, &source, "alpha").unwrap().uses;
        (cache, counters.snapshot(), uses)
    };
    let (_, first, uses) = ask();
    assert_eq!((first.compilations, first.disk_hits), (1, 0));
    assert!(!uses.expect("quick").launched());
    let (cache, second, uses) = ask();
    assert_eq!((second.compilations, second.disk_hits), (0, 1));
    assert!(uses.expect("quick still").launched(), "it was used before");
    cache.improve(&driver, &Counting::default(), &source).unwrap();
    let (_, third, uses) = ask();
    assert_eq!((third.compilations, third.disk_hits), (0, 1));
    assert!(uses.is_none(), "improved by the process before");
    assert_eq!(driver.compiled.load(SeqCst), 2);
}

#[test]
fn modules_unused_longest_are_unloaded_and_found_again_on_disk() {
    let dir = tempfile::tempdir().unwrap();
    let (driver, counters) = (quick(), Counting::default());
    let cache = KernelCache { most_modules: 8, ..KernelCache::at(Folders::one(dir.path()), None) };
    let source = |number: usize| KernelSource::new("many", format!("alpha{number}"));
    let ask = |number| cache.function(&driver, &counters, &source(number), "alpha").unwrap();
    let held = ask(0);
    for number in 1..8 {
        ask(number);
    }
    cache.improve(&driver, &counters, &source(2)).unwrap();
    // Used again, so that it is not among the oldest.
    ask(1);
    assert!(driver.unloaded.lock().unwrap().is_empty());
    ask(8);
    let mut gone: Vec<u64> =
        driver.unloaded.lock().unwrap().iter().map(|module| module.0).collect();
    gone.sort();
    // Of 9 modules 6 stay. The second's better one was loaded after the first eight.
    assert_eq!(gone, [2, 3, 4, 8]);
    let before = counters.snapshot();
    for (number, on_disk) in [(0, false), (1, false), (5, false), (2, true), (3, true)] {
        let hits = counters.snapshot().disk_hits;
        ask(number);
        assert_eq!(counters.snapshot().disk_hits > hits, on_disk, "{number}");
    }
    assert_eq!(counters.snapshot().compilations, before.compilations);
    assert_eq!(ask(0).function, held.function);
    assert!(ask(2).uses.is_none(), "the better one was found");
}

#[test]
fn modules_that_are_held_stay_however_many() {
    let dir = tempfile::tempdir().unwrap();
    let (driver, counters) = (Fake::new(), Counting::default());
    let cache = KernelCache { most_modules: 4, ..KernelCache::at(Folders::one(dir.path()), None) };
    let ask = |number: usize| {
        let source = KernelSource::new("many", format!("alpha{number}"));
        cache.function(&driver, &counters, &source, "alpha").unwrap()
    };
    let held: Vec<_> = (0..8).map(ask).collect();
    assert!(driver.unloaded.lock().unwrap().is_empty());
    drop(held);
    ask(8);
    assert_eq!(driver.unloaded.lock().unwrap().len(), 6);
}

#[test]
fn what_cannot_be_improved_stays_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let (driver, counters) = (quick(), Counting::default());
    let source = KernelSource::new("one", "alpha");
    let cache = KernelCache::at(Folders::one(dir.path()), None);
    let alpha = cache.function(&driver, &counters, &source, "alpha").unwrap();
    driver.refuse.store(1, SeqCst);
    assert!(cache.improve(&driver, &counters, &source).is_err());
    assert_eq!(
        cache.function(&driver, &counters, &source, "alpha").unwrap().function,
        alpha.function
    );
    assert!(driver.replaced.lock().unwrap().is_empty());
    assert_eq!(counters.snapshot().improved, 0);
}

#[test]
fn what_is_found_asks_for_no_compiler() {
    let dir = tempfile::tempdir().unwrap();
    let source = KernelSource::new("one", "alpha");
    for first in [Tier::Full, Tier::Quick] {
        let mut driver = Fake::new();
        (driver.first, driver.id) = (first, format!("{first:?}"));
        let ask = |driver: &Fake| {
            KernelCache::at(Folders::one(dir.path()), None)
                .function(driver, &Counting::default(), &source, "alpha")
                .unwrap()
        };
        ask(&driver);
        assert!(driver.asked_compiler.swap(0, SeqCst) > 0, "there was something to compile");
        driver.compiler = None;
        assert_eq!(ask(&driver).uses.is_some(), first == Tier::Quick);
        assert_eq!(driver.asked_compiler.load(SeqCst), 0, "{first:?}");
    }
}

#[test]
fn without_a_compiler_what_is_not_found_is_an_error_that_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let mut driver = Fake::new();
    let cache = KernelCache::at(Folders::one(dir.path()), None);
    let ask = |driver: &Fake, text| {
        cache
            .function(driver, &Counting::default(), &KernelSource::new("one", text), "alpha")
            .map(|found| found.function)
    };
    driver.compiler = None;
    let error = ask(&driver, "alpha").unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::DeviceUnavailable { .. }), "{error}");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    driver.compiler = Some("fake 1.0");
    ask(&driver, "alpha").expect("it is not remembered as failed");
}

#[test]
fn a_compilers_version_is_noted_and_matched_only_where_that_is_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let source = KernelSource::new("one", "alpha");
    let compilations = |driver: &Fake, matching: bool| {
        let counters = Counting::default();
        let cache = KernelCache { matching, ..KernelCache::at(Folders::one(dir.path()), None) };
        cache.function(driver, &counters, &source, "alpha").unwrap();
        counters.snapshot().compilations
    };
    let (old, mut new) = (Fake::new(), Fake::new());
    new.compiler = Some("fake 2.0");
    assert_eq!(compilations(&old, false), 1);
    let noted = PathBuf::from(format!("{}.sha256", image(dir.path()).display()));
    let text = fs::read_to_string(&noted).unwrap();
    assert_eq!(text.lines().nth(1), Some("fake 1.0"));
    assert_eq!((compilations(&new, false), compilations(&old, true)), (0, 0));
    assert_eq!(compilations(&new, true), 1, "of another version");
    assert_eq!((compilations(&new, true), compilations(&old, false)), (0, 0));
    // As it was written when versions were no part of it.
    let text = fs::read_to_string(&noted).unwrap();
    fs::write(&noted, text.lines().next().unwrap()).unwrap();
    assert_eq!((compilations(&old, false), compilations(&new, true)), (0, 1));
}

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
fn text_headers_and_options_each_make_another_key() {
    let mut driver = Fake::new();
    let key = |driver: &Fake, text: &str| {
        ImageNames::key(&driver.image_id(), &KernelSource::new("any", text))
    };
    let plain = key(&driver, "alpha");
    assert_eq!(plain.len(), 64);
    assert_eq!(key(&driver, "alpha"), plain);
    assert_ne!(key(&driver, "alphb"), plain);
    driver.compiler = Some("fake 2.0");
    assert_eq!(key(&driver, "alpha"), plain);
    driver.id = "fake -lineinfo".into();
    assert_ne!(key(&driver, "alpha"), plain);
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
fn among_the_temporary_files_a_folder_that_anybody_may_write_to_is_not_read() {
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
    for folder in [&first, &second] {
        ask(&Folders::one(folder));
        fs::set_permissions(folder, fs::Permissions::from_mode(0o777)).unwrap();
    }
    assert!(!holds_images(&both, "sm_00"));
    let notes = ask(&both);
    assert_eq!(counters.snapshot().compilations, 3);
    let told = |folder: &Path| {
        notes.iter().any(|note| note.contains("anybody") && note.contains(folder.to_str().unwrap()))
    };
    assert!(notes.len() == 2 && told(&first) && told(&second), "{notes:?}");
    fs::set_permissions(&second, fs::Permissions::from_mode(0o755)).unwrap();
    ask(&both);
    assert_eq!((counters.snapshot().compilations, counters.snapshot().disk_hits), (3, 1));
}

#[test]
fn a_source_that_does_not_compile_is_reported_and_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let (driver, counters) = (Fake::new(), Counting::default());
    let cache = KernelCache::at(Folders::one(dir.path()), None);
    for _ in 0..2 {
        let error = cache
            .function(&driver, &counters, &KernelSource::new("bad", "#error"), "bad")
            .unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Compile { kernel, .. } if kernel == "bad"));
    }
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    assert_eq!(counters.snapshot().compilations, 0);
    cache.function(&driver, &counters, &KernelSource::new("good", "alpha"), "alpha").unwrap();
}

#[test]
fn what_is_prepared_is_compiled_once_and_failures_are_reported() {
    let dir = tempfile::tempdir().unwrap();
    let (driver, counters) = (Fake::new(), Counting::default());
    let cache = KernelCache::at(Folders::one(dir.path()), None);
    let mut sources: Vec<_> =
        (0..9).map(|i| KernelSource::new("many", format!("alpha{i}"))).collect();
    sources.push(sources[0].clone());
    assert!(!cache.knows(&sources[0]));
    for source in &sources {
        cache.prepare(&driver, &counters, source).unwrap();
        assert!(cache.knows(source));
    }
    cache.function(&driver, &counters, &sources[4], "alpha4").unwrap();
    let now = counters.snapshot();
    assert_eq!((now.compilations, now.prepared_ahead, now.memory_hits), (9, 9, 1));
    assert!(now.compile_time > now.module_wait, "nobody waited for the compiler");
    assert!(cache.prepare(&driver, &counters, &KernelSource::new("bad", "#error")).is_err());
}

#[test]
fn sources_that_compile_are_recorded_even_when_found() {
    let dir = tempfile::tempdir().unwrap();
    let (images, records) = (dir.path().join("images"), dir.path().join("records"));
    let (driver, counters) = (Fake::new(), Counting::default());
    let source = KernelSource::new("sort i64 → u32/..", "alpha");
    KernelCache::at(Folders::one(&images), None)
        .function(&driver, &counters, &source, "alpha")
        .unwrap();
    let cache = KernelCache::at(Folders::one(&images), Some(records.clone()));
    cache.function(&driver, &counters, &source, "alpha").unwrap();
    cache.function(&driver, &counters, &KernelSource::new("bad", "#error"), "bad").unwrap_err();
    cache.prepare(&driver, &counters, &KernelSource::new("nobody's", "beta")).unwrap();
    assert_eq!(counters.snapshot().disk_hits, 1);
    let files: Vec<_> = fs::read_dir(records).unwrap().map(|entry| entry.unwrap().path()).collect();
    let [file] = &files[..] else { panic!("{files:?}") };
    // The hash is of the text alone, the same on every machine.
    assert_eq!(file.file_name().unwrap().to_str().unwrap(), "sort_i64___u32_..-8ed3f6ad.cu");
    assert_eq!(fs::read(file).unwrap(), b"alpha");
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
