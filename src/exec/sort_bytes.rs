//! Keys of sorts that have lists in them, and strings of unknown length: made into bytes and
//! measured beforehand, for the words of a sort are of a number known before.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::datatypes::Field;
use datafusion::common::{Column as Name, DFSchema};
use datafusion::logical_expr::Expr;

use super::run::Runner;
use crate::codegen::{
    Direction, Flow, FlowSource, LONGEST_BYTES, LONGEST_SORTED, NullsPlace, Preparation,
    emit_order_bytes, length_of, preparation,
};
use crate::error::{Error, Result};
use warpframe_device::ops::reduce::{Reduction, reduce};

/// What rows are sorted by.
pub(super) type OrderKey = (Expr, Direction, NullsPlace);

/// Bytes that a rehearsal takes keys to have.
const ASSUMED_BYTES: u64 = 64;

impl Runner {
    /// The flow with keys that words can be made of: where keys hold lists, or strings of unknown
    /// length, it has further columns, at the end, and keys by those. Waits for the device then.
    ///
    /// # Errors
    /// `Unsupported` where a key is longer than [`LONGEST_BYTES`] or, of strings,
    /// [`LONGEST_SORTED`].
    pub(super) fn sortable(
        &self,
        operator: &'static str,
        flow: &Flow,
        mut keys: Vec<OrderKey>,
    ) -> Result<(Flow, Vec<OrderKey>)> {
        let mut prepared = vec![];
        for (at, (key, _, _)) in keys.iter().enumerate() {
            prepared.extend(preparation(key, flow)?.map(|how| (at, how)));
        }
        if prepared.is_empty() {
            return Ok((flow.clone(), keys));
        }
        let (mut relation, made) = self.relation_with(operator, flow, |generator, out| {
            let mut values = vec![];
            for (at, how) in &prepared {
                let (key, direction, nulls) = &keys[*at];
                let value = generator.expr(key, out)?;
                let bytes = match how {
                    Preparation::Bytes => {
                        emit_order_bytes(&value, *direction, *nulls, generator, out)
                    }
                    Preparation::Measure => value,
                };
                let length = length_of(&bytes, out);
                values.extend([bytes, length]);
            }
            Ok(values)
        })?;
        relation.indices.push(None);
        let fresh = relation.indices.len() - 1;
        let mut fields: Vec<_> = flow
            .schema()
            .iter()
            .map(|(qualifier, field)| (qualifier.cloned(), field.clone()))
            .collect();
        let mut made = made.into_iter();
        for ((at, how), (bytes, lengths)) in
            prepared.iter().zip(std::iter::from_fn(|| made.next().zip(made.next())))
        {
            let longest = match relation.rows {
                0 => 0,
                rows => reduce(&self.device, Reduction::MaxU64, &lengths.data, None, rows)?
                    .read_word_or(0, ASSUMED_BYTES)?,
            };
            let (what, most) = match how {
                Preparation::Bytes => ("ORDER BY of lists and structs", LONGEST_BYTES),
                Preparation::Measure => ("ORDER BY of strings", LONGEST_SORTED),
            };
            if longest > u64::from(most) {
                return Err(Error::unsupported(what, format!("longer than {most} bytes")));
            }
            let mut bytes = bytes;
            // Keys of about the same length share kernels.
            bytes.stats.longest = Some((longest as u32).next_multiple_of(8));
            let dtype = bytes.dtype.clone();
            relation.columns.push((fresh, bytes));
            let name = (0..)
                .map(|n| format!("order {at}.{n}"))
                .find(|name| !fields.iter().any(|(_, f)| f.name() == name));
            let name = name.unwrap_or_default();
            fields.push((None, Arc::new(Field::new(&name, dtype, true))));
            keys[*at].0 = Expr::Column(Name::new_unqualified(name));
        }
        let schema = Arc::new(DFSchema::new_with_metadata(fields, HashMap::new())?);
        Ok((Flow::new(FlowSource::Relation(relation), schema), keys))
    }
}
