//! One run of a part's plan, over the relations that stand for its placeholders.

use crate::column::{Relation, Table};
use crate::error::{Error, Result};
use crate::exec::Engine;
use crate::exec::scan::Scans;
use crate::plan::{DevicePlan, placeholder_number};

/// Runs a plan over placeholders, which these relations stand for in the order of their numbers.
///
/// # Errors
/// Those of the plan.
pub(super) fn run_over(engine: &Engine, plan: &DevicePlan, inputs: &[Relation]) -> Result<Table> {
    let mut scans = Scans::default();
    for scan in plan.scans() {
        let input = placeholder_number(&scan.source).and_then(|number| inputs.get(number));
        let input =
            input.ok_or_else(|| Error::internal(format!("{} has no rows", scan.table_name)))?;
        scans.insert_all(scan, input.clone());
    }
    engine.device.count_part();
    crate::exec::run(engine, plan, &[], scans, None)
}
