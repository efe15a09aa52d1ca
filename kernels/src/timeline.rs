//! What a process does when: spans of time on its threads, from the first use of a device to the
//! end.
//!
//! ```text
//!   main              context ──▶ plan ──▶ wait: module x ──▶ launch ──▶ download
//!   rehearsal                       rehearse ─────▶
//!   compilers                            compile x ──▶
//! ```
//!
//! `WARPFRAME_TIMELINE=FILE` records everything and writes it to the file as trace events, which
//! Perfetto and chrome://tracing open (Google, Trace Event Format). `EXPLAIN ANALYZE` records one
//! statement and prints a sum of each part. Otherwise nothing is recorded, and a span costs a load.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};

/// Spans that are kept; later ones are counted.
const MOST: usize = 1 << 18;

/// Recorders at work: the environment's, and statements that are explained.
static RECORDERS: AtomicUsize = AtomicUsize::new(0);
static RECORDED: LazyLock<Mutex<Recorded>> = LazyLock::new(|| {
    let path = crate::environment::os("WARPFRAME_TIMELINE")
        .filter(|path| !path.is_empty())
        .map(PathBuf::from);
    Mutex::new(Recorded { zero: Instant::now(), path, spans: vec![], lost: 0 })
});

struct Recorded {
    zero: Instant,
    path: Option<PathBuf>,
    spans: Vec<Recording>,
    lost: usize,
}

/// A span that has ended.
struct Recording {
    part: Part,
    detail: String,
    thread: String,
    start: Instant,
    time: Duration,
}

/// What a span of time was spent on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Part {
    /// A program's `main`, as far as the program records it.
    Main,
    /// The driver started, or made a context of a device.
    Context,
    /// The compiler's library was loaded.
    Compiler,
    /// SQL became a logical plan.
    Parse,
    /// A logical plan was optimized, and cut for the device.
    Optimize,
    /// The physical plan was made.
    Physical,
    /// The metadata of files were read.
    Footers,
    /// Columns of a table were brought to the device.
    Read,
    /// A plan ran on a stand-in, to ask for its kernels.
    Rehearse,
    /// A module was loaded that lay on disk.
    Load,
    /// A module was compiled.
    Compile,
    /// A module that was compiled quickly was compiled again, with all optimizations.
    Improve,
    /// A query waited for a module that another thread had at work.
    WaitForModule,
    /// The device ran, or its host submitted work to it.
    Run,
    /// Rows of a stage went to where other devices want them.
    Exchange,
    /// A result was copied to the host.
    Download,
    /// A result was written.
    Print,
    /// A query's end, or the process's, waited for compilations that had begun.
    WaitForEnd,
}

impl Part {
    /// Its name, as it is printed.
    ///
    /// ```
    /// assert_eq!(warpframe_device::timeline::Part::Compile.name(), "compile modules");
    /// ```
    pub fn name(self) -> &'static str {
        match self {
            Part::Main => "main",
            Part::Context => "open the device",
            Part::Compiler => "load the compiler",
            Part::Parse => "parse and plan",
            Part::Optimize => "optimize",
            Part::Physical => "physical plan",
            Part::Footers => "read metadata of files",
            Part::Read => "read tables",
            Part::Rehearse => "rehearse",
            Part::Load => "load modules from disk",
            Part::Compile => "compile modules",
            Part::Improve => "compile modules again",
            Part::WaitForModule => "wait for modules",
            Part::Run => "run",
            Part::Exchange => "exchange rows between devices",
            Part::Download => "download the result",
            Part::Print => "print the result",
            Part::WaitForEnd => "wait for compilers at the end",
        }
    }
}

/// A span that goes on until it is dropped.
#[derive(Debug)]
#[must_use = "it ends when it is dropped"]
pub struct Span(Option<(Part, String, Instant)>);

/// Begins a span. `detail` is asked only where somebody records.
///
/// ```
/// use warpframe_device::timeline::{Part, span};
/// let _print = span(Part::Print, || "12 rows".into());
/// ```
pub fn span(part: Part, detail: impl FnOnce() -> String) -> Span {
    Span(is_on().then(|| (part, detail(), Instant::now())))
}

impl Span {
    /// Ends it without a trace.
    pub fn forget(mut self) {
        self.0 = None;
    }
}

impl Drop for Span {
    fn drop(&mut self) {
        let Some((part, detail, start)) = self.0.take() else { return };
        let time = start.elapsed();
        let thread = std::thread::current();
        let thread = format!("{} {:?}", thread.name().unwrap_or("thread"), thread.id());
        let mut recorded = lock();
        match recorded.spans.len() < MOST {
            true => recorded.spans.push(Recording { part, detail, thread, start, time }),
            false => recorded.lost += 1,
        }
    }
}

fn lock() -> MutexGuard<'static, Recorded> {
    RECORDED.lock()
}

fn is_on() -> bool {
    static ALWAYS: LazyLock<bool> = LazyLock::new(|| lock().path.is_some());
    RECORDERS.load(Relaxed) > 0 || *ALWAYS
}

/// Records the spans of all threads of the process, until it is dropped: those of other sessions'
/// statements, too.
#[derive(Debug)]
pub struct Recorder {
    from: usize,
    start: Instant,
}

/// The time that a part took: on all threads, and in how many spans.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct PartTime {
    /// Which part.
    pub part: Part,
    /// Spans of it.
    pub spans: usize,
    /// Their times together. Spans of several threads may run at once.
    pub time: Duration,
    /// From the begin of the recording to the begin of the first and the end of the last.
    pub range: (Duration, Duration),
}

impl Recorder {
    /// Begins to record.
    ///
    /// ```
    /// use warpframe_device::timeline::{Part, Recorder, span};
    /// let recorder = Recorder::start();
    /// drop(span(Part::Print, String::new));
    /// let parts = recorder.parts();
    /// assert!(parts.iter().any(|part| part.part == Part::Print && part.spans >= 1));
    /// ```
    pub fn start() -> Recorder {
        RECORDERS.fetch_add(1, Relaxed);
        Recorder { from: lock().spans.len(), start: Instant::now() }
    }

    /// What has ended since the recording began, by part.
    pub fn parts(&self) -> Vec<PartTime> {
        let recorded = lock();
        let mut parts: Vec<PartTime> = vec![];
        for span in recorded.spans.iter().skip(self.from) {
            let begin = span.start.saturating_duration_since(self.start);
            let end = begin + span.time;
            match parts.iter_mut().find(|known| known.part == span.part) {
                Some(known) => {
                    known.spans += 1;
                    known.time += span.time;
                    known.range = (known.range.0.min(begin), known.range.1.max(end));
                }
                None => parts.push(PartTime {
                    part: span.part,
                    spans: 1,
                    time: span.time,
                    range: (begin, end),
                }),
            }
        }
        parts.sort_by_key(|known| known.range.0);
        parts
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        let last = RECORDERS.fetch_sub(1, Relaxed) == 1;
        let mut recorded = lock();
        if last && recorded.path.is_none() {
            recorded.spans.clear();
        }
    }
}

/// Writes what was recorded to the file that `WARPFRAME_TIMELINE` names; nothing without it.
///
/// # Errors
/// The file cannot be written.
///
/// ```
/// warpframe_device::timeline::write()?;
/// # Ok::<(), warpframe_device::Error>(())
/// ```
pub fn write() -> crate::Result<()> {
    let recorded = lock();
    let Some(path) = &recorded.path else { return Ok(()) };
    std::fs::write(path, text(&recorded)).map_err(|error| crate::Error::io(path, error))
}

fn text(recorded: &Recorded) -> String {
    let micros = |time: Duration| time.as_secs_f64() * 1e6;
    let mut threads: Vec<&str> = vec![];
    let mut lines = vec![];
    for span in &recorded.spans {
        let thread = threads.iter().position(|known| *known == span.thread).unwrap_or_else(|| {
            threads.push(&span.thread);
            threads.len() - 1
        });
        lines.push(format!(
            "{{\"name\":{},\"cat\":\"warpframe\",\"ph\":\"X\",\"pid\":1,\"tid\":{thread},\"ts\":{:.1},\"dur\":{:.1},\
             \"args\":{{\"detail\":{}}}}}",
            quoted(span.part.name()),
            micros(span.start.saturating_duration_since(recorded.zero)),
            micros(span.time),
            quoted(&span.detail),
        ));
    }
    for (number, name) in threads.iter().enumerate() {
        lines.push(format!(
            "{{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":1,\"tid\":{number},\"args\":{{\"name\":{}}}}}",
            quoted(name)
        ));
    }
    format!("{{\"lostSpans\":{},\"traceEvents\":[\n{}\n]}}\n", recorded.lost, lines.join(",\n"))
}

/// A string of JSON.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => {
                quoted.push('\\');
                quoted.push(c);
            }
            c if (c as u32) < 0x20 => {
                // Writing to a string does not fail.
                let _ = write!(quoted, "\\u{:04x}", c as u32);
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trace_events_are_json() {
        let start = Instant::now();
        let span = |detail: &str| Recording {
            part: Part::Compile,
            detail: detail.into(),
            thread: "a \"thread\"".into(),
            start,
            time: Duration::from_micros(1500),
        };
        let recorded =
            Recorded { zero: start, path: None, spans: vec![span("k\n1"), span("k2")], lost: 0 };
        let text = text(&recorded);
        assert!(
            text.contains("\"dur\":1500.0")
                && text.contains("k\\u000a1")
                && text.contains("a \\\"thread\\\"")
        );
        assert_eq!(text.matches("\"ph\":\"X\"").count(), 2);
        assert_eq!(text.matches("thread_name").count(), 1, "one thread has one name: {text}");
    }

    #[test]
    fn parts_are_summed_while_somebody_records() {
        let recorder = Recorder::start();
        drop(span_of(Part::Footers));
        drop(span_of(Part::Footers));
        let parts = recorder.parts();
        let footers =
            parts.iter().find(|part| part.part == Part::Footers).expect("two spans of it");
        assert!(footers.spans >= 2 && footers.range.0 <= footers.range.1);
    }

    fn span_of(part: Part) -> Span {
        span(part, String::new)
    }
}
