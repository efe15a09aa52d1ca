//! GROUPING SETS, ROLLUP and CUBE: the rows are grouped by each set, and the results put together.

use std::collections::HashMap;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::{DFSchemaRef, ScalarValue};
use datafusion::logical_expr::{Aggregate, Expr, GroupingSet};

use super::run::{Runner, anonymous};
use crate::codegen::{Codes, Flow, FlowSource, materialize};
use crate::column::{Column, Relation};
use crate::error::{Error, Result};
use crate::plan::DeviceAggregate;

impl Runner {
    /// The result's columns are all keys, null where a set lacks them, then which set it was, then
    /// the aggregates.
    pub(super) fn grouping_sets(
        &self,
        flow: Flow,
        sets: &GroupingSet,
        calls: &[DeviceAggregate],
        schema: DFSchemaRef,
    ) -> Result<Flow> {
        let keys: Vec<Expr> = sets.distinct_expr().into_iter().cloned().collect();
        if keys.len() > 32 {
            return Err(Error::unsupported("grouping sets", "more than 32 keys"));
        }
        let id_type = schema
            .field_with_unqualified_name(Aggregate::INTERNAL_GROUPING_ID)?
            .data_type()
            .clone();
        let mut ordinals: HashMap<u64, u64> = HashMap::new();
        let mut parts = vec![];
        for set in sets_of(sets) {
            let at = |key: &Expr| set.iter().position(|own| own == key);
            // A bit for each key that is missing, the first key's the highest.
            let missing =
                keys.iter().fold(0u64, |bits, key| bits << 1 | u64::from(at(key).is_none()));
            // Sets that occur more than once are told apart by the bits above.
            let ordinal = ordinals.entry(missing).or_insert(0);
            let id = *ordinal << keys.len() | missing;
            *ordinal += 1;

            let mut own: Vec<Expr> = vec![];
            for key in &set {
                if !own.contains(key) {
                    own.push(key.clone());
                }
            }
            let types: Vec<DataType> = (own.iter())
                .map(|key| datafusion::logical_expr::ExprSchemable::get_type(key, &**flow.schema()))
                .chain(calls.iter().map(|call| Ok(call.dtype().clone())))
                .collect::<std::result::Result<_, _>>()?;
            let names = anonymous(&types)?;
            let groups = self.grouped_by(flow.clone(), &own, calls, names.clone())?;
            let names = names.columns();
            let mut exprs = vec![];
            for (key, field) in keys.iter().zip(schema.fields()) {
                exprs.push(match own.iter().position(|known| known == key) {
                    Some(at) => Expr::Column(names[at].clone()),
                    None => Expr::Literal(ScalarValue::try_from(field.data_type())?, None),
                });
            }
            exprs.push(Expr::Literal(ScalarValue::UInt64(Some(id)).cast_to(&id_type)?, None));
            exprs.extend(names[own.len()..].iter().cloned().map(Expr::Column));
            let groups = groups.project(exprs, schema.clone());
            parts.push(materialize(
                &self.device,
                "grouping sets",
                &groups,
                Codes::Decode,
                |generator, out| {
                    (0..schema.fields().len()).map(|at| generator.column(at, out)).collect()
                },
            )?);
        }
        let rows = parts.iter().map(|(rows, _)| rows).sum();
        let columns = (schema.fields().iter().enumerate())
            .map(|(at, field)| {
                let pieces: Vec<_> = parts.iter().map(|(_, columns)| &columns[at]).collect();
                Column::concatenated(&self.device, field.data_type(), &pieces, rows as usize)
            })
            .collect::<Result<Vec<_>>>()?;
        if u32::try_from(rows).is_err() {
            return Err(Error::unsupported("grouping sets", "more than 2^32 groups"));
        }
        Ok(Flow::new(FlowSource::Relation(Relation::dense(rows, columns)?), schema))
    }
}

/// The sets that the clause means.
fn sets_of(sets: &GroupingSet) -> Vec<Vec<Expr>> {
    match sets {
        GroupingSet::GroupingSets(sets) => sets.clone(),
        GroupingSet::Rollup(keys) => (0..=keys.len()).map(|len| keys[..len].to_vec()).collect(),
        GroupingSet::Cube(keys) => (0u64..1 << keys.len())
            .map(|set| {
                keys.iter()
                    .enumerate()
                    .filter(|(at, _)| set >> at & 1 == 1)
                    .map(|(_, key)| key.clone())
                    .collect()
            })
            .collect(),
    }
}
