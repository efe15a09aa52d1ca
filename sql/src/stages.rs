//! What the stages of a query did that ran on a cluster, in words.

use warpframe::plugin::{StageReport, StagesProgress};

/// One line a stage, and below it who ran its tasks and what these did.
pub fn stage_table(runs: &[StageReport]) -> String {
    let mut text = String::new();
    let mut job = "";
    for run in runs {
        if run.job != job {
            job = &run.job;
            text.push_str(&format!("job {job}\n"));
        }
        let tasks = if run.tasks == 1 { "1 task".into() } else { format!("{} tasks", run.tasks) };
        let bytes = run.bytes.map_or_else(String::new, |bytes| format!(", {bytes} bytes"));
        text.push_str(&format!("stage {}: {tasks}, {} rows{bytes}", run.stage, run.rows));
        if run.on_cpu > 0 {
            text.push_str(&format!("; {} on the executors' CPUs", run.on_cpu));
        }
        text.push('\n');
        for (executor, tasks) in &run.executors {
            text.push_str(&format!("  on {executor}: {tasks}\n"));
        }
        for operator in &run.operators {
            text.push_str(&format!("  {operator}\n"));
        }
    }
    text
}

/// How far the stages are.
pub fn told(stages: &StagesProgress) -> String {
    let StagesProgress { stages_done, stages, tasks_done, rows } = stages;
    let now = (stages_done + 1).min(*stages);
    let done = match tasks_done {
        0 => String::new(),
        _ => format!(": {tasks_done} tasks done, {} rows", crate::progress::count(*rows)),
    };
    format!("stage {now} of {stages}{done}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_are_told_with_who_ran_them() {
        let run = StageReport {
            job: "a".into(),
            stage: 1,
            tasks: 4,
            executors: vec![("cuda:0@h".into(), 3), ("cuda:1@h".into(), 1)],
            rows: 12,
            bytes: Some(345),
            on_cpu: 2,
            operators: vec!["DeviceStageExec: Filter".into()],
        };
        let last = StageReport {
            stage: 2,
            tasks: 1,
            ..StageReport { job: "a".into(), ..Default::default() }
        };
        assert_eq!(
            stage_table(&[run, last]),
            "job a\nstage 1: 4 tasks, 12 rows, 345 bytes; 2 on the executors' CPUs\n  \
             on cuda:0@h: 3\n  on cuda:1@h: 1\n  DeviceStageExec: Filter\nstage 2: 1 task, 0 rows\n"
        );
    }

    #[test]
    fn a_stage_is_under_way_until_all_are_done() {
        let at = |stages_done, tasks_done| {
            told(&StagesProgress { stages_done, stages: 3, tasks_done, rows: 20_000 })
        };
        assert_eq!(at(0, 0), "stage 1 of 3");
        assert_eq!(at(2, 9), "stage 3 of 3: 9 tasks done, 20k rows");
        assert_eq!(at(3, 10), "stage 3 of 3: 10 tasks done, 20k rows");
    }
}
