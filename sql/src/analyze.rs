//! `EXPLAIN ANALYZE`: what a query took of the device and of the host, in words and as JSON.

use std::fmt::Display;
use std::time::{Duration, Instant};

use warpframe::device::{Counters, Device, KernelTime, OperatorNote};
use warpframe::plugin::StageReport;
use warpframe::timeline::{PartTime, Recorder};
use warpframe::{LazyFrame, OperatorRun, Session};

use crate::report::Failure;
use crate::run::{count, in_words};
use crate::stages::stage_table;

/// One of the device's counters.
type Counter = fn(&Counters) -> u64;

/// What a run took.
pub struct Account {
    rows: usize,
    wall: Duration,
    device: Option<OfDevice>,
    /// What operators of the CPU engine did, where there is no device.
    operators: Vec<OperatorRun>,
    /// What stages did, where a cluster ran them.
    stages: Vec<StageReport>,
}

/// What it took of the device.
struct OfDevice {
    /// Whether the result is there.
    has_result: bool,
    before: Counters,
    after: Counters,
    /// Of each device of a session that has several.
    each: Vec<OfEach>,
    /// Of the first one.
    kernels: Vec<KernelTime>,
    /// Why parts that were planned for the device ran on the CPU.
    fallbacks: Vec<String>,
    /// Columns that the host read.
    host_reads: Vec<String>,
    parts: Vec<PartTime>,
    /// What operators decided.
    notes: Vec<OperatorNote>,
}

/// What it took of one device of several.
struct OfEach {
    before: Counters,
    after: Counters,
    /// None of the first one, whose kernels stand by themselves.
    kernels: Vec<KernelTime>,
}

impl Account {
    /// Runs a query.
    ///
    /// # Errors
    /// Of the query.
    pub fn of_run(session: &Session, frame: &LazyFrame) -> Result<Account, Failure> {
        match session.device() {
            Some(device) => Account::on_device(device, session, frame),
            None => {
                let start = Instant::now();
                let (rows, operators) = frame.profile()?;
                let (rows, wall) = (rows.num_rows(), start.elapsed());
                let stages = session.take_stage_runs();
                Ok(Account { rows, wall, device: None, operators, stages })
            }
        }
    }

    fn on_device(
        device: &Device,
        session: &Session,
        frame: &LazyFrame,
    ) -> Result<Account, Failure> {
        let devices = session.devices();
        let counters = || devices.iter().map(Device::counters).collect::<Vec<_>>();
        let (before, each) = (device.counters(), counters());
        // Of earlier statements.
        session.take_host_reads();
        let recorder = Recorder::start();
        let start = Instant::now();
        devices.iter().for_each(Device::start_profile);
        let result = frame.collect();
        let wall = start.elapsed();
        let after = device.counters();
        // Also where the query failed, so that the device stops to record.
        let kernels: Result<Vec<_>, _> = devices.iter().map(Device::take_profile).collect();
        let mut kernels = kernels?.into_iter();
        let (of_first, result) = (kernels.next().unwrap_or_default(), result?);
        let of_others = std::iter::once(vec![]).chain(kernels);
        let each = each.into_iter().zip(counters()).zip(of_others);
        let each = each.map(|((before, after), kernels)| OfEach { before, after, kernels });
        let of_device = OfDevice {
            has_result: result.is_on_device(),
            before,
            after,
            each: match devices.len() {
                1 => vec![],
                _ => each.collect(),
            },
            kernels: of_first,
            fallbacks: session.take_fallback_reasons(),
            host_reads: session.take_host_reads(),
            parts: recorder.parts(),
            notes: device.take_operator_notes(),
        };
        let device = Some(of_device);
        let rows = result.num_rows();
        Ok(Account { rows, wall, device, operators: vec![], stages: vec![] })
    }

    /// The lines of a plan with what its operators decided, and the account behind them.
    pub fn text(&self, plan: &str) -> String {
        let (account, notes) = match &self.device {
            None => {
                let whole = format!("{} in {}", count(self.rows), in_words(self.wall));
                let stages = match self.stages.is_empty() {
                    true => String::new(),
                    false => format!("\n\n{}", stage_table(&self.stages)),
                };
                (whole + &operator_table(&self.operators) + &stages, vec![])
            }
            Some(device) => (device.text(self.rows, self.wall), device.notes.clone()),
        };
        format!("{}\n\n{account}", with_notes(plan.trim_end(), notes))
    }

    /// An object of a plan, which is one itself, with the account behind what it has.
    pub fn json(&self, plan: &str) -> String {
        let mut run = Object::default();
        run.number("rows", self.rows);
        run.number("ms", milliseconds(self.wall));
        match &self.device {
            Some(device) => device.json(&mut run),
            None => run.list("operators", self.operators.iter().map(operator_object)),
        }
        if !self.stages.is_empty() {
            run.list("stages", self.stages.iter().map(stage_object));
        }
        let plan = plan.trim_end().trim_end_matches('}').trim_end();
        format!("{plan},\n  \"run\": {}\n}}", run.closed())
    }
}

impl OfDevice {
    fn spent(&self, count: Counter) -> u64 {
        count(&self.after) - count(&self.before)
    }

    fn kernel_ms(&self) -> f32 {
        self.kernels.iter().map(|kernel| kernel.ms).sum()
    }

    fn text(&self, rows: usize, wall: Duration) -> String {
        let place = if self.has_result { "on the device" } else { "on the host" };
        let mut text = format!(
            "{} {place} in {}, of which {:.3} ms in kernels\n\
             launches {}, bytes moved by kernels {}, host waits {}, bytes to the device {}, bytes from the device {}\n\
             kernel modules found in memory {}, on disk {}, compiled {} in {} of compilers' time; ready ahead {}, \
             waited for {}, improved behind {}\n",
            count(rows),
            in_words(wall),
            self.kernel_ms(),
            self.spent(|c| c.launches),
            self.spent(|c| c.bytes_moved),
            self.spent(|c| c.synchronizations),
            self.spent(|c| c.bytes_uploaded),
            self.spent(|c| c.bytes_downloaded),
            self.spent(|c| c.memory_hits),
            self.spent(|c| c.disk_hits),
            self.spent(|c| c.compilations),
            in_words(self.after.compile_time - self.before.compile_time),
            self.spent(|c| c.prepared_ahead),
            in_words(self.after.module_wait - self.before.module_wait),
            self.spent(|c| c.improved),
        );
        if self.spent(|c| c.columns_evicted + c.tables_moved_out + c.tables_moved_back) > 0 {
            text.push_str(&format!(
                "made room: columns of files dropped {} ({} bytes), tables moved to the host {} ({} bytes) and back {}\n",
                self.spent(|c| c.columns_evicted),
                self.spent(|c| c.bytes_evicted),
                self.spent(|c| c.tables_moved_out),
                self.spent(|c| c.bytes_moved_out),
                self.spent(|c| c.tables_moved_back),
            ));
        }
        for (number, OfEach { before, after, kernels }) in self.each.iter().enumerate() {
            let kernels = if number == 0 { &self.kernels } else { kernels };
            text.push_str(&format!(
                "device {number}: launches {} in {:.3} ms, bytes sent to other devices {}, bytes received {}\n",
                after.launches - before.launches,
                kernels.iter().map(|kernel| kernel.ms).sum::<f32>(),
                after.bytes_sent - before.bytes_sent,
                after.bytes_received - before.bytes_received,
            ));
        }
        for reason in &self.fallbacks {
            text.push_str(&format!("a part planned for the device ran on the CPU: {reason}\n"));
        }
        self.host_reads.iter().for_each(|sentence| text.push_str(&format!("{sentence}\n")));
        text.push_str(&kernel_table(&self.kernels));
        for (number, of) in self.each.iter().enumerate().filter(|(_, of)| !of.kernels.is_empty()) {
            text.push_str(&format!("\ndevice {number}:{}", kernel_table(&of.kernels)));
        }
        text.push_str(&part_table(&self.parts));
        text
    }

    fn json(&self, run: &mut Object) {
        run.text("result", if self.has_result { "device" } else { "host" });
        run.number("kernel_ms", self.kernel_ms());
        let counts: [(&str, Counter); 15] = [
            ("launches", |c| c.launches),
            ("bytes_moved_by_kernels", |c| c.bytes_moved),
            ("host_waits", |c| c.synchronizations),
            ("bytes_to_device", |c| c.bytes_uploaded),
            ("bytes_from_device", |c| c.bytes_downloaded),
            ("modules_in_memory", |c| c.memory_hits),
            ("modules_on_disk", |c| c.disk_hits),
            ("modules_compiled", |c| c.compilations),
            ("modules_ready_ahead", |c| c.prepared_ahead),
            ("modules_improved", |c| c.improved),
            ("columns_dropped", |c| c.columns_evicted),
            ("bytes_dropped", |c| c.bytes_evicted),
            ("tables_to_host", |c| c.tables_moved_out),
            ("bytes_to_host", |c| c.bytes_moved_out),
            ("tables_from_host", |c| c.tables_moved_back),
        ];
        counts.iter().for_each(|(key, of)| run.number(key, self.spent(*of)));
        run.number("compile_ms", milliseconds(self.after.compile_time - self.before.compile_time));
        run.number(
            "module_wait_ms",
            milliseconds(self.after.module_wait - self.before.module_wait),
        );
        let each = self.each.iter().map(|OfEach { before, after, .. }| {
            let mut object = Object::default();
            object.number("launches", after.launches - before.launches);
            object.number("bytes_sent", after.bytes_sent - before.bytes_sent);
            object.number("bytes_received", after.bytes_received - before.bytes_received);
            object.closed()
        });
        if !self.each.is_empty() {
            run.list("devices", each);
        }
        run.list("fallbacks", self.fallbacks.iter().map(|reason| text(reason)));
        run.list("host_reads", self.host_reads.iter().map(|sentence| text(sentence)));
        run.list(
            "notes",
            self.notes.iter().map(|note| {
                let mut object = Object::default();
                object.text("operator", &note.operator);
                object.text("note", &note.note);
                object.closed()
            }),
        );
        run.list(
            "kernels",
            by_name(&self.kernels).into_iter().map(|(name, launches, ms, bytes)| {
                let mut object = Object::default();
                object.text("kernel", name);
                object.number("launches", launches);
                object.number("ms", ms);
                object.number("bytes", bytes);
                object.closed()
            }),
        );
        run.list(
            "parts",
            self.parts.iter().map(|part| {
                let mut object = Object::default();
                object.text("part", part.part.name());
                object.number("spans", part.spans);
                object.number("ms", milliseconds(part.time));
                object.number("from_ms", milliseconds(part.range.0));
                object.number("to_ms", milliseconds(part.range.1));
                object.closed()
            }),
        );
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
    lines.extend(
        notes
            .into_iter()
            .map(|OperatorNote { operator, note, .. }| format!("device  {operator}: {note}")),
    );
    lines.join("\n")
}

/// One line an operator of the CPU engine, each before those whose rows it takes.
fn operator_table(operators: &[OperatorRun]) -> String {
    let mut text = match operators.is_empty() {
        true => String::new(),
        false => format!("\n\n{:>12}  {:>10}  operator", "rows", "ms"),
    };
    for of in operators {
        let rows = of.rows.map_or_else(String::new, |rows| rows.to_string());
        let ms = of.time.map_or_else(String::new, |time| format!("{:.3}", milliseconds(time)));
        let indent = " ".repeat(2 * of.depth);
        text.push_str(&format!("\n{rows:>12}  {ms:>10}  {indent}{}", of.operator));
    }
    text
}

fn operator_object(of: &OperatorRun) -> String {
    let mut object = Object::default();
    object.number("depth", of.depth);
    object.text("operator", &of.operator);
    if let Some(rows) = of.rows {
        object.number("rows", rows);
    }
    if let Some(time) = of.time {
        object.number("ms", milliseconds(time));
    }
    object.closed()
}

fn stage_object(run: &StageReport) -> String {
    let mut object = Object::default();
    object.text("job", &run.job);
    object.number("stage", run.stage);
    object.number("tasks", run.tasks);
    object.number("rows", run.rows);
    if let Some(bytes) = run.bytes {
        object.number("bytes", bytes);
    }
    object.number("tasks_on_cpu", run.on_cpu);
    let executor = |(name, tasks): &(String, u64)| {
        let mut object = Object::default();
        object.text("executor", name);
        object.number("tasks", tasks);
        object.closed()
    };
    object.list("executors", run.executors.iter().map(executor));
    object.list("operators", run.operators.iter().map(|operator| text(operator)));
    object.closed()
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// One line a part of the statement's time, in the order in which they began.
fn part_table(parts: &[PartTime]) -> String {
    let width = parts.iter().map(|part| part.part.name().len()).max().unwrap_or(0);
    let mut text = format!(
        "\n{:width$}  {:>6}  {:>10}  {:>10}  {:>10}\n",
        "part", "spans", "ms", "from ms", "to ms"
    );
    for PartTime { part, spans, time, range, .. } in parts {
        text.push_str(&format!(
            "{:width$}  {spans:>6}  {:>10.3}  {:>10.3}  {:>10.3}\n",
            part.name(),
            milliseconds(*time),
            milliseconds(range.0),
            milliseconds(range.1)
        ));
    }
    text
}

/// Name, launches, milliseconds and bytes of each kernel, in the order of the first launches.
fn by_name(kernels: &[KernelTime]) -> Vec<(&str, u64, f32, u64)> {
    let mut by_name: Vec<(&str, u64, f32, u64)> = vec![];
    for kernel in kernels {
        match by_name.iter_mut().find(|(name, ..)| *name == kernel.name) {
            Some((_, launches, ms, bytes)) => {
                (*launches, *ms, *bytes) = (*launches + 1, *ms + kernel.ms, *bytes + kernel.bytes);
            }
            None => by_name.push((&kernel.name, 1, kernel.ms, kernel.bytes)),
        }
    }
    by_name
}

/// One line a kernel.
fn kernel_table(kernels: &[KernelTime]) -> String {
    let by_name = by_name(kernels);
    let width = by_name.iter().map(|(name, ..)| name.len()).max().unwrap_or(0).max("kernel".len());
    let mut text = match by_name.is_empty() {
        true => String::new(),
        false => {
            format!("\n{:width$}  {:>8}  {:>10}  {:>12}\n", "kernel", "launches", "ms", "bytes")
        }
    };
    for (name, launches, ms, bytes) in by_name {
        text.push_str(&format!("{name:width$}  {launches:>8}  {ms:>10.3}  {bytes:>12}\n"));
    }
    text
}

/// An object of JSON, written key by key.
#[derive(Default)]
struct Object(String);

impl Object {
    fn put(&mut self, key: &str, value: impl Display) {
        let comma = if self.0.is_empty() { "" } else { ", " };
        self.0.push_str(&format!("{comma}{}: {value}", text(key)));
    }

    fn text(&mut self, key: &str, value: &str) {
        self.put(key, text(value));
    }

    /// One that is finite.
    fn number(&mut self, key: &str, value: impl Display) {
        self.put(key, value);
    }

    fn list(&mut self, key: &str, values: impl Iterator<Item = String>) {
        self.put(key, format_args!("[{}]", values.collect::<Vec<_>>().join(", ")));
    }

    fn closed(self) -> String {
        format!("{{{}}}", self.0)
    }
}

/// A text as JSON writes it.
fn text(value: &str) -> String {
    let mut written = String::from("\"");
    for c in value.chars() {
        match c {
            '"' | '\\' => written.extend(['\\', c]),
            c if c.is_control() => written.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => written.push(c),
        }
    }
    written + "\""
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_is_an_object_behind_the_plan() {
        let account = Account {
            rows: 2,
            wall: Duration::from_millis(3),
            device: None,
            operators: vec![],
            stages: vec![],
        };
        let json = account.json("{\n  \"plan\": {}\n}\n");
        assert_eq!(
            json,
            "{\n  \"plan\": {},\n  \"run\": {\"rows\": 2, \"ms\": 3, \"operators\": []}\n}"
        );
        assert_eq!(text("a\"b\\\n\u{1b}"), "\"a\\\"b\\\\\\u000a\\u001b\"");
    }
}
