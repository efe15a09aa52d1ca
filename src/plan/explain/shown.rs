//! What EXPLAIN knows of a plan, as lines, as a tree, and as JSON.

use std::fmt::Display;

use serde_json::{Map, Value, json};

use super::devices::{ExplainedDevices, ExplainedStage};
use super::{
    Explained, ExplainedCpu, ExplainedDevice, ExplainedOperator, ExplainedPart, ExplainedPipeline,
};
use crate::sql::ExplainFormat;

/// Begins the lines on what would be divided.
const WOULD_BE_DIVIDED: &str = "would be divided: ";
/// The last line, where joins have another order than the query's.
const REORDERED: &str =
    "joins   in the order of estimated rows, not the query's (SET join_order = off keeps that)";

impl Explained {
    /// The plan in a format.
    pub(crate) fn shown(&self, format: ExplainFormat) -> String {
        match format {
            ExplainFormat::Indent => self.lines(PlanLines::indented),
            ExplainFormat::Tree => self.lines(|lines, root| lines.branch(root, &Branch::default())),
            ExplainFormat::Json => {
                let plan =
                    json!({ "plan": of_part(&self.root), "joins_reordered": self.reordered });
                // Of texts and numbers alone.
                serde_json::to_string_pretty(&plan).unwrap_or_default()
            }
        }
    }

    fn lines(&self, write: impl FnOnce(&mut PlanLines, &ExplainedPart)) -> String {
        let mut lines = PlanLines(vec![]);
        write(&mut lines, &self.root);
        if self.reordered {
            lines.0.push(REORDERED.into());
        }
        lines.0.join("\n")
    }
}

struct PlanLines(Vec<String>);

impl PlanLines {
    fn line(&mut self, place: &str, before: &str, text: impl Display) {
        self.0.push(format!("{place:8}{before}{text}"));
    }

    fn indented(&mut self, root: &ExplainedPart) {
        self.indent(root, 0);
    }

    fn indent(&mut self, part: &ExplainedPart, depth: usize) {
        let margin = |depth: usize| "  ".repeat(depth);
        match part {
            ExplainedPart::Cpu(operator) => {
                self.line(operator.place, &margin(depth), of_cpu(operator));
                operator.inputs.iter().for_each(|input| self.indent(input, depth + 1));
            }
            ExplainedPart::Device(ExplainedDevice { devices, divided, pipelines }) => {
                self.on_devices(devices.as_ref(), &margin(depth));
                if let Some(why) = divided {
                    self.line("device", &margin(depth), format_args!("{WOULD_BE_DIVIDED}{why}"));
                }
                for ExplainedPipeline { number, rows, operators } in pipelines {
                    self.line(
                        "device",
                        &margin(depth),
                        format_args!("pipeline {number}{}", about(*rows)),
                    );
                    for operator in operators {
                        self.line("device", &margin(depth + 1), of_device(operator));
                        if let Some(how) = &operator.divided {
                            self.line(
                                "device",
                                &margin(depth + 2),
                                format_args!("{WOULD_BE_DIVIDED}{how}"),
                            );
                        }
                    }
                }
            }
        }
    }

    /// What several devices do, above what is done.
    fn on_devices(&mut self, devices: Option<&ExplainedDevices>, before: &str) {
        let Some(devices) = devices else { return };
        self.line("device", before, devices.head());
        for stage in devices.stages() {
            self.line("device", &format!("{before}  "), stage.text());
            for input in &stage.inputs {
                self.line("device", &format!("{before}    "), input);
            }
        }
    }

    fn branch(&mut self, part: &ExplainedPart, at: &Branch) {
        match part {
            ExplainedPart::Cpu(operator) => {
                self.line(operator.place, &at.first, of_cpu(operator));
                let last = operator.inputs.len().saturating_sub(1);
                for (number, input) in operator.inputs.iter().enumerate() {
                    self.branch(input, &at.below(number == last));
                }
            }
            ExplainedPart::Device(part) => {
                let mut at = at.clone();
                if part.devices.is_some() {
                    self.on_devices(part.devices.as_ref(), &at.first);
                    at.first = at.rest.clone();
                }
                if let Some(why) = &part.divided {
                    self.line("device", &at.first, format_args!("{WOULD_BE_DIVIDED}{why}"));
                    at.first = at.rest.clone();
                }
                let mut shown = vec![];
                if let Some(last) = part.pipelines.first() {
                    self.pipeline(part, last, &at, &mut shown);
                }
            }
        }
    }

    /// The operators of a pipeline, each below the one that reads its rows; one that was shown is
    /// named.
    fn pipeline(
        &mut self,
        part: &ExplainedDevice,
        pipeline: &ExplainedPipeline,
        at: &Branch,
        shown: &mut Vec<usize>,
    ) {
        if shown.contains(&pipeline.number) {
            self.line(
                "device",
                &at.first,
                format_args!("pipeline {}, which is above", pipeline.number),
            );
            return;
        }
        shown.push(pipeline.number);
        let mut at = at.clone();
        let last = pipeline.operators.len().saturating_sub(1);
        for (place, operator) in pipeline.operators.iter().enumerate() {
            let rows = if place == 0 && operator.rows.is_none() {
                about(pipeline.rows)
            } else {
                String::new()
            };
            self.line("device", &at.first, format_args!("{}{rows}", of_device(operator)));
            if let Some(how) = &operator.divided {
                let bar = if place < last || !operator.reads.is_empty() { "│ " } else { "  " };
                self.line("device", &at.rest, format_args!("{bar}{WOULD_BE_DIVIDED}{how}"));
            }
            let read: Vec<&ExplainedPipeline> = part
                .pipelines
                .iter()
                .filter(|other| operator.reads.contains(&other.number))
                .collect();
            // Of a join, the rows that go by come last, with all that is below them.
            let goes_on = place < last;
            for (number, other) in read.iter().enumerate() {
                self.pipeline(part, other, &at.below(!goes_on && number + 1 == read.len()), shown);
            }
            at = at.below(true);
        }
    }
}

/// What stands before the first line of a branch, and before those below it.
#[derive(Clone, Default)]
struct Branch {
    first: String,
    rest: String,
}

impl Branch {
    fn below(&self, last: bool) -> Branch {
        let (first, rest) = if last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
        Branch { first: format!("{}{first}", self.rest), rest: format!("{}{rest}", self.rest) }
    }
}

fn of_cpu(operator: &ExplainedCpu) -> String {
    match &operator.why {
        Some(why) => format!("{}    ({why})", operator.text),
        None => operator.text.clone(),
    }
}

fn of_device(operator: &ExplainedOperator) -> String {
    let files = operator.files.as_ref().map_or(String::new(), |files| format!("    ({files})"));
    format!("{}{}{files}", operator.text, about(operator.rows))
}

fn about(rows: Option<f64>) -> String {
    rows.map_or(String::new(), |rows| format!("    (about {rows:.0} rows)"))
}

fn of_part(part: &ExplainedPart) -> Value {
    match part {
        ExplainedPart::Cpu(ExplainedCpu { place, text, why, inputs }) => {
            let mut object = named(place, text);
            put(&mut object, "why", why.clone());
            object.insert("inputs".into(), inputs.iter().map(of_part).collect());
            object.into()
        }
        ExplainedPart::Device(ExplainedDevice { devices, divided, pipelines }) => {
            let mut object = Map::new();
            object.insert("place".into(), "device".into());
            put(&mut object, "devices", devices.as_ref().map(of_devices));
            put(&mut object, "would_be_divided", divided.clone());
            object.insert("pipelines".into(), pipelines.iter().map(of_pipeline).collect());
            object.into()
        }
    }
}

fn of_devices(devices: &ExplainedDevices) -> Value {
    match devices {
        ExplainedDevices::One { devices, why } => json!({ "count": devices, "on_one": why }),
        ExplainedDevices::Several { devices, stages } => {
            let stage = |stage: &ExplainedStage| {
                json!({
                    "stage": stage.number,
                    "on_each_device": stage.each,
                    "operators": stage.operators,
                    "reads": stage.inputs,
                })
            };
            json!({ "count": devices, "stages": stages.iter().map(stage).collect::<Vec<_>>() })
        }
    }
}

fn of_pipeline(pipeline: &ExplainedPipeline) -> Value {
    let operators = pipeline.operators.iter().map(|operator| {
        let mut object = named("device", &operator.text);
        put(&mut object, "rows", operator.rows.map(whole));
        put(&mut object, "files", operator.files.clone());
        put(&mut object, "would_be_divided", operator.divided.clone());
        if !operator.reads.is_empty() {
            object.insert("reads_pipelines".into(), operator.reads.clone().into());
        }
        Value::from(object)
    });
    let mut object = Map::new();
    object.insert("pipeline".into(), pipeline.number.into());
    put(&mut object, "rows", pipeline.rows.map(whole));
    object.insert("operators".into(), operators.collect());
    object.into()
}

/// An operator's object: where it runs, what it is, and the whole text of it.
fn named(place: &str, text: &str) -> Map<String, Value> {
    let name = text.split(':').next().unwrap_or(text);
    let pairs = [("place", place), ("operator", name), ("text", text)];
    pairs.into_iter().map(|(key, value)| (key.into(), value.into())).collect()
}

fn put(object: &mut Map<String, Value>, key: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        object.insert(key.into(), value.into());
    }
}

fn whole(rows: f64) -> u64 {
    rows.round() as u64
}
