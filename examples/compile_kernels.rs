//! Compiles recorded kernel sources for real GPUs, without one: prints what each entry point uses,
//! and fails where one does not compile or spills more registers than `kernels/spills.allow` lets
//! it.
//!
//! ```sh
//! # On the simulator: records every source asked for.
//! WARPFRAME_RECORD_KERNELS=target/kernels cargo test
//! cargo run --example compile_kernels -- target/kernels sm_80 sm_90
//! ```
//!
//! `sm_80/8` compiles the families and an eighth of the kernels that were generated from queries,
//! which are thousands alike.
//!
//! Needs NVRTC; `scripts/compile-kernels.sh` fetches it and runs this.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

use warpframe::device::{CompileReport, KernelReport, compile_for};

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let Some(directory) = arguments.next() else {
        eprintln!("usage: compile_kernels DIRECTORY [sm_XX[/SHARE] ...]");
        return ExitCode::from(2);
    };
    let targets: Option<Vec<Target>> = arguments.map(|text| Target::parse(&text)).collect();
    let mut targets = match targets {
        Some(targets) => targets,
        None => {
            eprintln!("a target is sm_XX, or sm_XX/SHARE");
            return ExitCode::from(2);
        }
    };
    if targets.is_empty() {
        targets =
            ["sm_80", "sm_90"].map(|name| Target { architecture: name.into(), share: 1 }).into();
    }
    let allowed = Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels").join("spills.allow");
    match run(Path::new(&directory), &targets, &allowed) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(failures) => {
            eprintln!("{failures} failures");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// What to compile for.
struct Target {
    architecture: String,
    /// One in so many generated kernels.
    share: usize,
}

impl Target {
    fn parse(text: &str) -> Option<Target> {
        let (architecture, share) = match text.split_once('/') {
            Some((architecture, share)) => {
                (architecture, share.parse().ok().filter(|&share| share > 0)?)
            }
            None => (text, 1),
        };
        Some(Target { architecture: architecture.into(), share })
    }

    /// The sources in its share: families, and of the others those that their hash chooses, so
    /// that one kernel more or less changes nothing of the others.
    fn of<'a>(&'a self, sources: &'a [PathBuf]) -> impl Iterator<Item = (&'a PathBuf, &'a String)> {
        let chosen = |path: &&PathBuf| hash(path).is_none_or(|hash| hash % self.share == 0);
        sources.iter().filter(chosen).map(|path| (path, &self.architecture))
    }
}

/// The hash that the name of a kernel ends with where a query made it: `mark_0a1b2c3d-….cu`.
fn hash(path: &Path) -> Option<usize> {
    let name = path.file_stem().and_then(|stem| stem.to_str())?;
    let kernel = name.rsplit_once('-').map_or(name, |(kernel, _)| kernel);
    let (_, hash) = kernel.rsplit_once('_')?;
    (hash.len() == 8).then(|| usize::from_str_radix(hash, 16).ok()).flatten()
}

fn run(directory: &Path, targets: &[Target], allowed: &Path) -> Result<usize, String> {
    let allowances = Allowance::read(allowed)?;
    let entries =
        std::fs::read_dir(directory).map_err(|e| format!("{}: {e}", directory.display()))?;
    let mut sources: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    sources.retain(|path| path.extension().is_some_and(|extension| extension == "cu"));
    sources.sort();
    if sources.is_empty() {
        // An empty corpus must not pass: it means that nothing was recorded.
        return Err(format!("{}: no .cu files", directory.display()));
    }
    let tasks: Vec<_> = targets.iter().flat_map(|target| target.of(&sources)).collect();
    let start = Instant::now();
    let results = in_parallel(&tasks, |(path, architecture)| {
        compile_for(path, architecture)
            .map_err(|error| format!("{} for {architecture}: {error}", path.display()))
    });

    println!(
        "{:<48} {:<6} {:>9} {:>12} {:>11} {:>7} {:>7}",
        "kernel", "target", "registers", "spill stores", "spill loads", "stack", "shared"
    );
    let mut failures = 0;
    for result in &results {
        match result {
            Ok(report) => {
                for kernel in &report.kernels {
                    let allowance =
                        allowances.iter().find(|a| a.matches(&kernel.name, &report.architecture));
                    let allowed = allowance.map_or(0, |a| a.bytes);
                    let excess = kernel.spill_stores.max(kernel.spill_loads) > allowed;
                    failures += usize::from(excess);
                    print_row(report, kernel, if excess { "  SPILLS" } else { "" });
                }
                if report.kernels.is_empty() {
                    failures += 1;
                    println!("{}: no entry point", report.source);
                }
            }
            Err(error) => {
                failures += 1;
                println!("{error}");
            }
        }
    }
    let images = results.iter().flatten().map(|report| report.image).sum::<usize>();
    println!(
        "{} sources for {}: {} images, {} KiB, in {:.1} s",
        sources.len(),
        targets.iter().map(|target| target.architecture.as_str()).collect::<Vec<_>>().join(" and "),
        results.iter().flatten().count(),
        images >> 10,
        start.elapsed().as_secs_f64()
    );
    Ok(failures)
}

fn print_row(report: &CompileReport, kernel: &KernelReport, verdict: &str) {
    println!(
        "{:<48} {:<6} {:>9} {:>12} {:>11} {:>7} {:>7}{verdict}",
        kernel.name,
        report.architecture,
        kernel.registers,
        kernel.spill_stores,
        kernel.spill_loads,
        kernel.stack,
        kernel.shared
    );
}

/// Results in the order of the tasks.
fn in_parallel<T: Sync, R: Send>(tasks: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    // The library copies NVRTC where two threads wait for it: more threads than cores have all
    // cores compile.
    let threads = std::thread::available_parallelism().map_or(1, usize::from) + 2;
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..threads.min(tasks.len()) {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Relaxed);
                    let Some(task) = tasks.get(index) else { break };
                    let result = work(task);
                    done.lock().expect("no panic holds it").push((index, result));
                }
            });
        }
    });
    let mut done = done.into_inner().expect("no panic held it");
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}

/// A line of `spills.allow`: `pattern bytes [target]`, where `*` in the pattern stands for any
/// characters.
struct Allowance {
    pattern: String,
    bytes: u32,
    target: Option<String>,
}

impl Allowance {
    fn read(path: &Path) -> Result<Vec<Self>, String> {
        let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
        let mut all = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let mut words = line.split('#').next().unwrap_or_default().split_whitespace();
            let Some(pattern) = words.next() else { continue };
            let bytes = words.next().and_then(|word| word.parse().ok());
            let bytes = bytes.ok_or(format!(
                "{}:{}: expected `pattern bytes`",
                path.display(),
                number + 1
            ))?;
            all.push(Allowance {
                pattern: pattern.into(),
                bytes,
                target: words.next().map(String::from),
            });
        }
        Ok(all)
    }

    fn matches(&self, kernel: &str, target: &str) -> bool {
        self.target.as_deref().is_none_or(|only| only == target) && glob(&self.pattern, kernel)
    }
}

fn glob(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((before, after)) => name.strip_prefix(before).is_some_and(|rest| {
            (0..=rest.len()).any(|at| rest.is_char_boundary(at) && glob(after, &rest[at..]))
        }),
    }
}
