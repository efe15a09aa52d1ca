//! `EXPLAIN` and `EXPLAIN ANALYZE`: plans, and what running one took.

use std::sync::Arc;
use std::time::{Duration, Instant};

use warpframe::arrow::array::{ArrayRef, StringArray};
use warpframe::device::{Counters, Device, KernelTime, OperatorNote};
use warpframe::timeline::{PartTime, Recorder};
use warpframe::{LazyFrame, Session};

use super::{Runner, count, in_words};
use crate::output::Format;
use crate::progress::Progress;
use crate::report::{Failure, shown};
use crate::statement::Sql;

impl Runner<'_> {
    pub(super) fn explain(&mut self, query: &Sql, analyze: bool) -> Result<(), Failure> {
        let frame = self.plan(query)?;
        let mut text = if analyze { String::new() } else { frame.explain()? };
        if analyze {
            let _told = Progress::begin(&self.session, self.settings.progress);
            let (account, notes) = match self.session.device() {
                Some(device) => analyze_on(device, &self.session, &frame)?,
                None => {
                    let start = Instant::now();
                    let rows = frame.collect()?.num_rows();
                    (format!("{} in {}", count(rows), in_words(start.elapsed())), vec![])
                }
            };
            // Again: what is known of tables decides the order of joins, and now they are loaded.
            text = format!("{}\n\n{account}", with_notes(frame.explain()?.trim_end(), notes));
        }
        match self.format() {
            // Names of columns and files are data.
            Format::Table | Format::Box => {
                self.print_long(&text.trim_end().lines().map(|line| shown(line) + "\n").collect::<String>())
            }
            _ => {
                let lines: Vec<&str> = text.trim_end().lines().collect();
                self.batch([("plan", Arc::new(StringArray::from(lines)) as ArrayRef)])
            }
        }
    }
}

/// The lines of a plan, each followed by what its operator decided as it ran. Notes of operators
/// that have no line stand at the end.
fn with_notes(plan: &str, mut notes: Vec<OperatorNote>) -> String {
    let (mut lines, mut pipeline) = (vec![], "");
    for line in plan.lines() {
        let text = line.strip_prefix("device").map(str::trim_start);
        // What was expected: what happened is among the notes.
        if text.is_some_and(|text| text.starts_with("would be divided: ")) {
            continue;
        }
        lines.push(line.to_string());
        let Some(text) = text else { continue };
        let depth = line.len() - text.len();
        let operator = text.split("    (").next().unwrap_or(text);
        if operator.starts_with("pipeline ") {
            pipeline = operator;
            continue;
        }
        let name = format!("{pipeline}: {operator}");
        for OperatorNote { note, .. } in notes.extract_if(.., |note| note.operator == name) {
            lines.push(format!("{:depth$}{note}", "device", depth = depth + 2));
        }
    }
    lines.extend(notes.into_iter().map(|OperatorNote { operator, note, .. }| format!("device  {operator}: {note}")));
    lines.join("\n")
}

/// Runs a query: what that took of the device, and what operators decided.
fn analyze_on(device: &Device, session: &Session, frame: &LazyFrame) -> Result<(String, Vec<OperatorNote>), Failure> {
    let before = device.counters();
    // Of earlier statements.
    session.take_host_reads();
    let recorder = Recorder::start();
    let start = Instant::now();
    device.start_profile();
    let result = frame.collect();
    let wall = start.elapsed();
    let after = device.counters();
    // Also where the query failed, so that the device stops to record.
    let kernels = device.take_profile()?;
    let result = result?;

    let on_device: f32 = kernels.iter().map(|kernel| kernel.ms).sum();
    let place = if result.is_on_device() { "on the device" } else { "on the host" };
    let spent = |count: fn(&Counters) -> u64| count(&after) - count(&before);
    let mut text = format!(
        "{} {place} in {}, of which {on_device:.3} ms in kernels\n\
         launches {}, bytes moved by kernels {}, host waits {}, bytes to the device {}, bytes from the device {}\n\
         kernel modules found in memory {}, on disk {}, compiled {} in {} of compilers' time; ready ahead {}, \
         waited for {}, improved behind {}\n",
        count(result.num_rows()),
        in_words(wall),
        spent(|c| c.launches),
        spent(|c| c.bytes_moved),
        spent(|c| c.synchronizations),
        spent(|c| c.bytes_uploaded),
        spent(|c| c.bytes_downloaded),
        spent(|c| c.memory_hits),
        spent(|c| c.disk_hits),
        spent(|c| c.compilations),
        in_words(after.compile_time - before.compile_time),
        spent(|c| c.prepared_ahead),
        in_words(after.module_wait - before.module_wait),
        spent(|c| c.improved),
    );
    if spent(|c| c.columns_evicted + c.tables_moved_out + c.tables_moved_back) > 0 {
        text.push_str(&format!(
            "made room: columns of files dropped {} ({} bytes), tables moved to the host {} ({} bytes) and back {}\n",
            spent(|c| c.columns_evicted),
            spent(|c| c.bytes_evicted),
            spent(|c| c.tables_moved_out),
            spent(|c| c.bytes_moved_out),
            spent(|c| c.tables_moved_back),
        ));
    }
    for reason in session.take_fallback_reasons() {
        text.push_str(&format!("a part planned for the device ran on the CPU: {reason}\n"));
    }
    for sentence in session.take_host_reads() {
        text.push_str(&format!("{sentence}\n"));
    }
    text.push_str(&kernel_table(&kernels));
    text.push_str(&part_table(&recorder.parts()));
    Ok((text, device.take_operator_notes()))
}

/// One line a part of the statement's time, in the order in which they began.
fn part_table(parts: &[PartTime]) -> String {
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    let width = parts.iter().map(|part| part.part.name().len()).max().unwrap_or(0);
    let mut text = format!("\n{:width$}  {:>6}  {:>10}  {:>10}  {:>10}\n", "part", "spans", "ms", "from ms", "to ms");
    for PartTime { part, spans, time, range, .. } in parts {
        text.push_str(&format!(
            "{:width$}  {spans:>6}  {:>10.3}  {:>10.3}  {:>10.3}\n",
            part.name(),
            ms(*time),
            ms(range.0),
            ms(range.1)
        ));
    }
    text
}

/// One line a kernel, in the order of the first launches.
fn kernel_table(kernels: &[KernelTime]) -> String {
    let mut by_name: Vec<(&str, u64, f32, u64)> = vec![];
    for kernel in kernels {
        match by_name.iter_mut().find(|(name, ..)| *name == kernel.name) {
            Some((_, launches, ms, bytes)) => {
                (*launches, *ms, *bytes) = (*launches + 1, *ms + kernel.ms, *bytes + kernel.bytes);
            }
            None => by_name.push((&kernel.name, 1, kernel.ms, kernel.bytes)),
        }
    }
    let width = by_name.iter().map(|(name, ..)| name.len()).max().unwrap_or(0).max("kernel".len());
    let mut text = match by_name.is_empty() {
        true => String::new(),
        false => format!("\n{:width$}  {:>8}  {:>10}  {:>12}\n", "kernel", "launches", "ms", "bytes"),
    };
    for (name, launches, ms, bytes) in by_name {
        text.push_str(&format!("{name:width$}  {launches:>8}  {ms:>10.3}  {bytes:>12}\n"));
    }
    text
}
