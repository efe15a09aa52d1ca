//! A line on the terminal that tells what a statement is doing, once it has taken half a second.

use std::io::{self, IsTerminal, Write};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use warpframe::device::Counters;
use warpframe::{PartsProgress, Session};

use crate::interrupt;
use crate::stages::told;

/// Shorter statements say nothing.
const PATIENCE: Duration = Duration::from_millis(500);
/// How often the line is written anew.
const PACE: Duration = Duration::from_millis(100);
/// What most terminals show of a line: a longer one would not be erased whole.
const WIDTH: usize = 79;
/// Goes to the begin of the line and erases it.
const ERASE: &str = "\r\x1b[K";

/// A statement that runs, until it is dropped: then its line is gone.
pub struct Progress(Option<(Sender<()>, JoinHandle<()>)>);

impl Progress {
    /// Tells on standard error, if that is wanted and it is a terminal.
    pub fn begin(session: &Session, wanted: bool) -> Progress {
        match wanted && io::stderr().is_terminal() {
            true => Progress::to(session, PATIENCE, io::stderr()),
            false => Progress(None),
        }
    }

    fn to(
        session: &Session,
        patience: Duration,
        mut terminal: impl Write + Send + 'static,
    ) -> Progress {
        let (session, (stop, stopped)) = (session.clone(), channel());
        let counters = |session: &Session| {
            session.device().map(|device| device.counters()).unwrap_or_default()
        };
        let (before, start) = (counters(&session), Instant::now());
        let tell = move || {
            let mut wait = patience;
            while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(wait) {
                // A terminal that is gone is nobody to tell.
                let now = counters(&session);
                // What stays of an earlier statement's parts is not of this one.
                let parts = session.progress().filter(|_| now.parts_run > before.parts_run);
                let share = session.share_read();
                let mut text = line(start.elapsed(), &before, &now, parts, share);
                if let Some(stages) = session.stages_progress() {
                    text = format!("{text} · {}", told(&stages));
                }
                if interrupt::is_stopping() {
                    // The CPU engine stops between batches, which may take it long.
                    text.insert_str(0, "stopping; Ctrl-C again leaves · ");
                }
                let text: String = text.chars().take(WIDTH).collect();
                let _ = write!(terminal, "{ERASE}{text}");
                let _ = terminal.flush();
                wait = PACE;
            }
            if wait == PACE {
                let _ = terminal.write_all(ERASE.as_bytes()).and_then(|()| terminal.flush());
            }
        };
        let thread = std::thread::Builder::new().name("warpframe-progress".into()).spawn(tell);
        // Without a thread nothing is told.
        Progress(thread.ok().map(|thread| (stop, thread)))
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some((stop, thread)) = self.0.take() {
            drop(stop);
            let _ = thread.join();
        }
    }
}

fn line(
    time: Duration,
    before: &Counters,
    now: &Counters,
    of_parts: Option<PartsProgress>,
    share_read: Option<f64>,
) -> String {
    let mut parts = vec![format!("{:.1} s", time.as_secs_f64())];
    let of_rows =
        of_parts.and_then(|of| Some(of.rows_done as f64 / of.rows.filter(|all| *all > 0)? as f64));
    // What comes behind the last row that is read takes its own time.
    if let Some(share) = share_read.or(of_rows).filter(|share| *share > 0.0) {
        let left = time.as_secs_f64() * (1.0 - share) / share;
        let left = if share > LEAST_SHARE {
            format!(", about {} left", rounded(left))
        } else {
            String::new()
        };
        parts.push(format!("{:.0}% read{left}", share * 100.0));
    }
    let since = |count: fn(&Counters) -> u64| count(now) - count(before);
    if let Some(PartsProgress { step, parts_done, parts: all, rows_done, rows, .. }) = of_parts {
        let rows = rows.map_or_else(String::new, |rows| format!(" of {}", count(rows)));
        parts.push(format!(
            "step {step}: part {} of {all}, rows {}{rows}",
            (parts_done + 1).min(all),
            count(rows_done)
        ));
    }
    let (wanted, read) = (since(|c| c.file_bytes_wanted), since(|c| c.file_bytes_read));
    if wanted > 0 {
        parts.push(format!("Parquet {} of {} GB", gigabytes(read), gigabytes(wanted)));
    }
    let uploaded = since(|c| c.bytes_uploaded);
    if uploaded > 0 {
        parts.push(format!("to the device {} GB", gigabytes(uploaded)));
    }
    let compiled = since(|c| c.compilations);
    if compiled > 0 {
        parts.push(format!("kernels compiled {compiled}"));
    }
    parts.join(" · ")
}

/// Below that, nobody can say how long the rest takes.
const LEAST_SHARE: f64 = 0.03;

/// A time as one says it.
fn rounded(seconds: f64) -> String {
    match seconds.ceil() as u64 {
        seconds @ 0..120 => format!("{seconds} s"),
        seconds @ 120..7200 => format!("{} min", seconds / 60),
        seconds => format!("{} h", seconds / 3600),
    }
}

/// A number of rows as one takes it in at a glance.
pub fn count(rows: u64) -> String {
    match rows {
        0..10_000 => rows.to_string(),
        10_000..10_000_000 => format!("{}k", rows / 1000),
        _ => format!("{}M", rows / 1_000_000),
    }
}

fn gigabytes(bytes: u64) -> String {
    format!("{:.2}", bytes as f64 / 1e9)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parking_lot::Mutex;

    use warpframe::DeviceChoice;

    use super::*;

    #[derive(Clone, Default)]
    struct TestTerminal(Arc<Mutex<Vec<u8>>>);

    impl Write for TestTerminal {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl TestTerminal {
        fn text(&self) -> String {
            String::from_utf8(self.0.lock().clone()).unwrap()
        }
    }

    #[test]
    fn a_line_tells_what_was_read_of_how_much() {
        let session = Session::builder().device(DeviceChoice::Sim).build().unwrap();
        let before = session.device().unwrap().counters();
        assert_eq!(line(Duration::from_millis(1540), &before, &before, None, None), "1.5 s");
        let told = line(Duration::from_secs(10), &before, &before, None, Some(0.25));
        assert_eq!(told, "10.0 s · 25% read, about 30 s left");
        let told = line(Duration::from_secs(10), &before, &before, None, Some(0.01));
        assert_eq!(told, "10.0 s · 1% read");
        session.register_parquet("lineitem", "../data/tpch/lineitem.parquet").unwrap();
        session.sql("SELECT sum(l_quantity) FROM lineitem").unwrap().collect().unwrap();
        let now = session.device().unwrap().counters();
        assert!(now.file_bytes_wanted > before.file_bytes_wanted);
        assert_eq!(now.file_bytes_wanted, now.file_bytes_read);
        let told = line(Duration::from_secs(2), &before, &now, None, None);
        assert!(
            told.starts_with("2.0 s · Parquet 0.00 of 0.00 GB · to the device 0.00 GB"),
            "{told}"
        );
    }

    #[test]
    fn a_line_tells_how_many_parts_and_rows_are_done() {
        let limit = warpframe::device::MemoryLimit::Bytes(2 << 20);
        let session =
            Session::builder().device(DeviceChoice::Sim).memory_limit(limit).build().unwrap();
        session.register_csv("jets", "../data/jets.csv").unwrap();
        let before = session.device().unwrap().counters();
        session.sql("SELECT jetid, max(px) FROM jets GROUP BY jetid").unwrap().collect().unwrap();
        let told = line(Duration::from_secs(3), &before, &before, session.progress(), None);
        let (start, rows) = told.split_once(", rows ").expect("parts");
        assert!(start.starts_with("3.0 s · 100% read, about 0 s left · step "), "{told}");
        assert!(start.contains(": part "), "{told}");
        let (done, all) = rows.split_once(" of ").expect("all");
        assert_eq!(done, all, "{told}");
        assert_eq!(
            [0, 9_999, 10_000, 123_456, 60_000_000].map(count),
            ["0", "9999", "10k", "123k", "60M"]
        );
    }

    #[test]
    fn only_statements_that_take_long_are_told_of_and_the_line_is_erased() {
        let session = Session::builder().device(DeviceChoice::Cpu).build().unwrap();
        let terminal = TestTerminal::default();
        drop(Progress::to(&session, Duration::from_secs(3600), terminal.clone()));
        assert_eq!(terminal.text(), "");
        let progress = Progress::to(&session, Duration::ZERO, terminal.clone());
        while terminal.text().is_empty() {
            std::thread::yield_now();
        }
        drop(progress);
        let text = terminal.text();
        assert!(text.starts_with("\r\x1b[K0.0 s") && text.ends_with(ERASE), "{text:?}");
    }
}
