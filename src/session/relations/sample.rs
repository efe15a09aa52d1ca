//! `t TABLESAMPLE (10 PERCENT) REPEATABLE (42)`: some rows, drawn by chance.
//!
//! Both units draw an exact number of rows. The same seed draws the same rows.

use std::sync::Arc;

use datafusion::error::Result;
use datafusion::logical_expr::LogicalPlanBuilder;
use datafusion::logical_expr::planner::{PlannedRelation, RelationPlannerContext};
use datafusion::sql::sqlparser::ast::{
    Expr, Spanned, TableFactor, TableSample, TableSampleKind, TableSampleQuantity, TableSampleUnit,
    Value,
};

use super::{Numbered, outside, plan_of, refused};
use crate::frame::verbs::{SampleOptions, SampleSize};
use crate::query::Core;

pub(super) fn of(kind: &TableSampleKind) -> &TableSample {
    match kind {
        TableSampleKind::BeforeTableAlias(sample) | TableSampleKind::AfterTableAlias(sample) => {
            sample
        }
    }
}

/// Whether nothing is in a sample's clause but what is looked at.
pub(in crate::session) fn is_sample(kind: &TableSampleKind) -> bool {
    let sample = of(kind);
    sample.bucket.is_none()
        && sample.offset.is_none()
        && sample.name.is_none()
        && sample.quantity.is_some()
}

pub(super) fn planned(
    core: &Arc<Core>,
    mut factor: TableFactor,
    context: &mut dyn RelationPlannerContext,
) -> Result<PlannedRelation> {
    let place = factor.span().start;
    let (TableFactor::Table { sample, .. } | TableFactor::Derived { sample, .. }) = &mut factor
    else {
        return Ok(PlannedRelation::new(context.plan(factor)?, None));
    };
    let Some(kind) = sample.take() else {
        return Ok(PlannedRelation::new(context.plan(factor)?, None));
    };
    let clause = of(&kind);
    let number =
        clause.quantity.as_ref().and_then(|quantity: &TableSampleQuantity| match &quantity.value {
            Expr::Value(value) => match &value.value {
                Value::Number(number, _) => {
                    Some((number.clone(), quantity.unit == Some(TableSampleUnit::Percent)))
                }
                _ => None,
            },
            _ => None,
        });
    let Some((number, percent)) = number else {
        return refused("a sample has a number of rows or a percentage", place);
    };
    let size = match percent {
        true => number
            .parse()
            .ok()
            .filter(|share| (0.0..=100.0).contains(share))
            .map(|p: f64| SampleSize::Fraction(p / 100.0)),
        false => number.parse().ok().map(SampleSize::Rows),
    };
    let Some(size) = size else {
        return refused(
            format!("a sample of {number}: a percentage is from 0 to 100, rows are a whole number"),
            place,
        );
    };
    let seed = match clause.seed.as_ref().map(|seed| &seed.value.value) {
        None => None,
        Some(Value::Number(text, _)) => match text.parse() {
            Ok(seed) => Some(seed),
            Err(_) => {
                return refused(format!("REPEATABLE takes a whole number, not {text}"), place);
            }
        },
        Some(other) => {
            return refused(format!("REPEATABLE takes a whole number, not {other}"), place);
        }
    };
    let numbered = Numbered::of(core, context.plan(factor)?, "c", vec![])?;
    let drawn = numbered
        .frame
        .sample(size, SampleOptions { seed, ..SampleOptions::default() })
        .map_err(outside)?;
    // The planner takes sorts away that are behind no limit, and with them the draw; a limit of
    // nothing keeps them.
    let plan = LogicalPlanBuilder::from(plan_of(&drawn, numbered.named("c", &[]))?)
        .limit(0, None)?
        .build()?;
    Ok(PlannedRelation::new(plan, None))
}
