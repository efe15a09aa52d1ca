//! Loaded modules: quick ones are improved in their place, and those unused longest go.

use super::*;

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
    let mut replaced = driver.replaced.lock().clone();
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
    assert!(driver.unloaded.lock().is_empty());
    ask(8);
    let mut gone: Vec<u64> = driver.unloaded.lock().iter().map(|module| module.0).collect();
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
    assert!(driver.unloaded.lock().is_empty());
    drop(held);
    ask(8);
    assert_eq!(driver.unloaded.lock().len(), 6);
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
    assert!(driver.replaced.lock().is_empty());
    assert_eq!(counters.snapshot().improved, 0);
}
