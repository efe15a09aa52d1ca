//! What the cache finds, compiles and writes, by a driver that only says so.

mod faults;
mod folders;
mod modules;

use std::fs;
use std::sync::atomic::Ordering::SeqCst;

use super::*;
use crate::drivers::fake::Fake;
use crate::error::ErrorKind;

fn image(directory: &Path) -> PathBuf {
    let files = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let mut images = files.filter(|path| path.extension().is_some_and(|e| e == "cubin"));
    let image = images.next().expect("an image");
    assert_eq!(images.next(), None, "one image only");
    image
}

/// A driver that compiles quickly at first.
fn quick() -> Fake {
    let mut driver = Fake::new();
    driver.first = Tier::Quick;
    driver
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
fn caches_of_other_folders_are_not_waited_for() {
    let (ours, theirs) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (driver, counters) = (Fake::new(), Counting::default());
    let source = KernelSource::new("one", "alpha");
    let cache = |dir: &tempfile::TempDir| KernelCache::at(Folders::one(dir.path()), None);
    let file = ImageNames::of(&driver.image_id(), &driver.properties().architecture, &source).full;
    let turn = Turn::of(&cache(&theirs).store().place(&file)).unwrap();
    let (done, compiled) = std::sync::mpsc::channel();
    let other = std::thread::spawn(move || {
        let _turn = turn;
        compiled.recv_timeout(Duration::from_secs(10)).is_ok()
    });
    cache(&ours).function(&driver, &counters, &source, "alpha").unwrap();
    let _ = done.send(());
    assert!(other.join().unwrap(), "compiled while another folder's turn was held");
    assert_eq!(counters.snapshot().compilations, 1);
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
