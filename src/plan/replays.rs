//! What operators of a kept plan made, to be made again.

use std::sync::{Arc, Mutex, MutexGuard};

use datafusion::common::DFSchemaRef;
use datafusion::logical_expr::Aggregate;

use crate::codegen::Replay;

/// The replays of a plan.
#[derive(Debug, Default)]
pub(crate) struct Replays(Mutex<Vec<(Operator, Arc<Replay>)>>);

/// An operator of the plan, by its place, and by the schema that it alone has should something else come to lie there.
#[derive(Debug)]
struct Operator(usize, DFSchemaRef);

impl Operator {
    fn of(operator: &Aggregate) -> Operator {
        Operator(std::ptr::from_ref(operator).addr(), operator.schema.clone())
    }

    fn is(&self, operator: &Aggregate) -> bool {
        self.0 == std::ptr::from_ref(operator).addr() && Arc::ptr_eq(&self.1, &operator.schema)
    }
}

impl Replays {
    pub(crate) fn find(&self, operator: &Aggregate) -> Option<Arc<Replay>> {
        let known = self.entries();
        known.iter().find(|(of, _)| of.is(operator)).map(|(_, replay)| replay.clone())
    }

    /// Keeps one, instead of what there was.
    pub(crate) fn keep(&self, operator: &Aggregate, replay: Replay) {
        let mut known = self.entries();
        known.retain(|(of, _)| !of.is(operator));
        known.push((Operator::of(operator), Arc::new(replay)));
    }

    fn entries(&self) -> MutexGuard<'_, Vec<(Operator, Arc<Replay>)>> {
        // Poisoning is ignored: the list is valid between statements.
        self.0.lock().unwrap_or_else(|e| e.into_inner())
    }
}
