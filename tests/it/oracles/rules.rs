//! Each rule over plans leaves a query's rows as they are: the plan before it and the plan after it
//! yield the same.
//!
//! A plan that no rule has made ready for the CPU engine yet, as one with a correlated subquery,
//! does not run; then the last one that did is compared with the next one that does.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;

use datafusion::arrow::array::RecordBatch;
use datafusion::error::Result;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::collect;

use super::dialects::spelled;
use super::maker::Syntax;
use super::{Ours, Verdict, hunt, is_refusal, made};
use crate::differential::{Rows, rows_of};

/// Rules that say what a plan means. Before them intervals compare by months, then by days, decimals
/// of several scales as if these were one, an anti join that knows nulls has no key by which it does,
/// and a sort below a limit that does not say how many rows it wants is one that nobody looks at.
const MEANING: [&str; 5] = [
    "interval_order",
    "agreed_types",
    "type_coercion",
    "extract_equijoin_predicate",
    "push_down_limit",
];

#[test]
fn each_rule_keeps_the_rows() {
    let tally = Mutex::new(Tally::default());
    hunt(50, Ours::of, |ours, choices| {
        let (text, drawn) = made(&ours.relations, Syntax::Ours, choices);
        (verdict(ours, &spelled(&text).0, &tally), drawn)
    });
    let Tally { ran, stuck, rules } = tally.into_inner().expect("no thread panicked");
    println!("{ran} plans ran, {stuck} did not; rules that changed plans: {rules:?}");
    assert!(ran > stuck, "of {} plans {stuck} did not run", ran + stuck);
}

#[derive(Default)]
struct Tally {
    ran: usize,
    stuck: usize,
    /// How many plans each rule changed.
    rules: BTreeMap<String, usize>,
}

impl Tally {
    fn note(&mut self, plans: &[(String, LogicalPlan)], ran: &[Option<Vec<RecordBatch>>]) {
        for ((rule, _), ran) in plans.iter().zip(ran) {
            *self.rules.entry(rule.clone()).or_default() += 1;
            *(if ran.is_some() { &mut self.ran } else { &mut self.stuck }) += 1;
        }
    }
}

fn verdict(ours: &Ours, sql: &str, tally: &Mutex<Tally>) -> Verdict {
    let planned = ours.session.sql(sql).and_then(|frame| frame.plan_before_rules());
    let plan = match planned {
        Ok(plan) => plan,
        Err(error) if is_refusal(&error) => return Verdict::Refused(format!("{error}\n  {sql}")),
        Err(error) => return Verdict::Wrong(ours.report(&error.to_string(), sql)),
    };
    let state = ours.session.context().state();
    let mut plans = vec![];
    if let Err(error) = steps(plan, &state, &mut plans) {
        let error = warpframe::Error::from(error);
        return match is_refusal(&error) {
            true => Verdict::Refused(format!("{error}\n  {sql}")),
            false => Verdict::Wrong(ours.report(&error.to_string(), sql)),
        };
    }
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    // DataFusion's kernels panic over literal nulls, which rules take away.
    let ran = |plan: &LogicalPlan| {
        let ran = catch_unwind(AssertUnwindSafe(|| runtime.block_on(run(plan, &state))));
        ran.ok().and_then(Result::ok)
    };
    let ran: Vec<_> = plans.iter().map(|(_, plan)| ran(plan)).collect();
    tally.lock().expect("nobody panics with it").note(&plans, &ran);
    // The rules since the last plan that ran, and its rows.
    let (mut since, mut last): (Vec<&str>, Option<(Rows, &LogicalPlan)>) = (vec![], None);
    for ((rule, plan), ran) in plans.iter().zip(ran) {
        since.push(rule);
        let Some(batches) = ran else { continue };
        let rows = Rows { types: vec![], rows: batches.iter().flat_map(rows_of).collect() };
        if let Some((before, from)) = &last
            && !since.iter().any(|rule| MEANING.contains(rule))
            && let Some(difference) = before.difference(&rows, false)
        {
            let (from, to) = (from.display_indent(), plan.display_indent());
            let what = format!("{since:?}: {difference}\n{from}\n  became\n{to}");
            return Verdict::Wrong(ours.report(&what, sql));
        }
        since.clear();
        last = Some((rows, plan));
    }
    match last {
        Some((rows, _)) => Verdict::Right(rows.rows.len()),
        None => Verdict::Refused(format!("no plan ran\n  {sql}")),
    }
}

/// The plan, and what it is after each rule that changes it.
fn steps(
    plan: LogicalPlan,
    state: &SessionState,
    plans: &mut Vec<(String, LogicalPlan)>,
) -> Result<()> {
    plans.push(("the query".into(), plan.clone()));
    let mut note = |plan: &LogicalPlan, rule: &str| {
        if plans.last().is_some_and(|(_, last)| last != plan) {
            plans.push((rule.into(), plan.clone()));
        }
    };
    let analyzed =
        state.analyzer().execute_and_check(plan, state.config_options(), |plan, rule| {
            note(plan, rule.name());
        })?;
    state.optimizer().optimize(analyzed, state, |plan, rule| note(plan, rule.name()))?;
    Ok(())
}

async fn run(plan: &LogicalPlan, state: &SessionState) -> Result<Vec<RecordBatch>> {
    let physical = state.query_planner().create_physical_plan(plan, state).await?;
    collect(physical, state.task_ctx()).await
}
