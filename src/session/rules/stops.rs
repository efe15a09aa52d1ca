//! Rules that stop where their statement is to stop: planning takes long, too. A plan of `WITH`
//! queries that each read the one before twice has operators by the power of two.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::AnalyzerRule;

use super::{AnalysisRule, LogicalRule};
use crate::mends::guarded_by;
use warpframe_device::interrupt;

/// These rules, each of which stops at its next operator, or before it begins where it goes through
/// the plan by itself.
pub(super) fn stopping(rules: Vec<LogicalRule>) -> Vec<LogicalRule> {
    let stopping = |rule| {
        guarded_by(rule, |rule, plan, config| {
            interrupt::check().map_err(crate::Error::from)?;
            rule.rewrite(plan, config)
        })
    };
    rules.into_iter().map(stopping).collect()
}

/// The rules of an analyzer, which stop before each begins.
pub(super) fn stopping_analysis(rules: impl Iterator<Item = AnalysisRule>) -> Vec<AnalysisRule> {
    rules.map(|rule| Arc::new(StoppingAnalysis(rule)) as AnalysisRule).collect()
}

#[derive(Debug)]
struct StoppingAnalysis(AnalysisRule);

impl AnalyzerRule for StoppingAnalysis {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn analyze(&self, plan: LogicalPlan, config: &ConfigOptions) -> Result<LogicalPlan> {
        interrupt::check().map_err(crate::Error::from)?;
        self.0.analyze(plan, config)
    }
}
