//! Plans that the CPU engine runs whole, and what their operators took.

use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::LogicalPlan;
use futures::FutureExt;
use parking_lot::Mutex;

use super::planning::is_large;
use super::run::{of_one_version, without_metadata};
use super::{Answer, Core, Data, aside, ordered};
use crate::error::Result;
use crate::exec::{CpuRun, OperatorRun};
use crate::plan::with_present_types;

impl Core {
    /// Runs an optimized plan on the CPU engine.
    pub(super) async fn run_on_cpu(
        &self,
        state: &SessionState,
        plan: LogicalPlan,
    ) -> Result<(Answer, CpuRun)> {
        let (physical, state) = match is_large(&plan)? {
            false => ordered::physical_plan(state, &plan).await?,
            true => {
                let (state, handle) = (state.clone(), tokio::runtime::Handle::current());
                aside(move || handle.block_on(ordered::physical_plan(&state, &plan)))?
            }
        };
        let schema = without_metadata(&physical.schema());
        let run = CpuRun::new(physical, &self.cpu_board)?;
        let batches = run.collect(&state).await?;
        let batches: Vec<_> = batches
            .into_iter()
            .map(|batch| batch.with_schema(schema.clone()))
            .collect::<Result<_, _>>()?;
        Ok((Answer { schema, data: Data::Host(batches.into()) }, run))
    }

    /// Runs a plan on the CPU engine: its rows, and what its operators did, each before those whose
    /// rows it takes.
    ///
    /// # Errors
    /// Those of [`Core::run`].
    pub(crate) fn profiled(&self, plan: &LogicalPlan) -> Result<(Answer, Vec<OperatorRun>)> {
        self.as_statement(|| match self.profiled_once(plan) {
            Err(error) if error.misfit().is_some() => {
                self.made_certain(plan)?;
                match with_present_types(plan) {
                    Ok(Some(again)) if again != *plan => self.profiled_once(&again),
                    _ => Err(error),
                }
            }
            ran => ran,
        })
    }

    fn profiled_once(&self, plan: &LogicalPlan) -> Result<(Answer, Vec<OperatorRun>)> {
        let plan = &*self.with_shared_rows(plan, |rows| self.run(rows))?;
        let operators = Mutex::default();
        let answer = self.block_on(async {
            let state = self.state();
            let run = || {
                async {
                    let optimized = self.optimize(&state, plan)?;
                    let (answer, run) = self.run_on_cpu(&state, optimized).await?;
                    *operators.lock() = run.operators();
                    Ok(answer)
                }
                .boxed()
            };
            match of_one_version(&state, plan, run, |_| false).await {
                Err(error) => Err(crate::io::diagnose(error, &state, plan).await),
                ran => ran,
            }
        })?;
        Ok((answer, operators.into_inner()))
    }
}
