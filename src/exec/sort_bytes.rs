//! Keys of sorts that have lists in them: made into bytes beforehand, and measured, for the words of a sort are of a number known
//! before.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::{Column as Name, DFSchema};
use datafusion::logical_expr::{Expr, ExprSchemable};

use super::run::Runner;
use crate::codegen::{Direction, Flow, LONGEST_BYTES, NullsPlace, Source, Value, emit_order_bytes, needs_bytes};
use crate::column::Repr;
use crate::error::{Error, Result};
use crate::ops::reduce::{Reduction, reduce};

/// What rows are sorted by.
pub(super) type OrderKey = (Expr, Direction, NullsPlace);

/// Bytes that a rehearsal takes keys to have.
const ASSUMED_BYTES: u64 = 64;

impl Runner {
    /// The flow with keys that words can be made of: where keys hold lists it has further columns, at the end, and keys by
    /// those. Waits for the device then.
    ///
    /// # Errors
    /// `Unsupported` where a key has more than [`LONGEST_BYTES`] bytes.
    pub(super) fn sortable(
        &self,
        operator: &'static str,
        flow: &Flow,
        mut keys: Vec<OrderKey>,
    ) -> Result<(Flow, Vec<OrderKey>)> {
        let mut nested = vec![];
        for (at, (expr, _, _)) in keys.iter().enumerate() {
            if needs_bytes(&expr.get_type(&**flow.schema())?) {
                nested.push(at);
            }
        }
        if nested.is_empty() {
            return Ok((flow.clone(), keys));
        }
        let (mut relation, made) = self.relation_with(operator, flow, |generator, out| {
            let mut values = vec![];
            for at in &nested {
                let (expr, direction, nulls) = &keys[*at];
                let value = generator.expr(expr, out)?;
                let bytes = emit_order_bytes(&value, *direction, *nulls, generator, out);
                let length = out.let_("u64", format!("{}.length", bytes.code));
                values.push(bytes);
                values.push(Value::new(DataType::UInt64, Repr::U64, length, None));
            }
            Ok(values)
        })?;
        relation.indices.push(None);
        let fresh = relation.indices.len() - 1;
        let mut fields: Vec<_> =
            flow.schema().iter().map(|(qualifier, field)| (qualifier.cloned(), field.clone())).collect();
        let mut made = made.into_iter();
        for (at, (bytes, lengths)) in nested.iter().zip(std::iter::from_fn(|| made.next().zip(made.next()))) {
            let longest = match relation.rows {
                0 => 0,
                rows => reduce(&self.device, Reduction::MaxU64, &lengths.data, None, rows)?
                    .read_word_or(0, ASSUMED_BYTES)?,
            };
            if longest > u64::from(LONGEST_BYTES) {
                return Err(Error::unsupported(
                    "ORDER BY of lists",
                    format!("that make keys of more than {LONGEST_BYTES} bytes"),
                ));
            }
            let mut bytes = bytes;
            // Keys of about the same length share kernels.
            bytes.stats.longest = Some((longest as u32).next_multiple_of(8));
            relation.columns.push((fresh, bytes));
            let name =
                (0..).map(|n| format!("order {at}.{n}")).find(|name| !fields.iter().any(|(_, f)| f.name() == name));
            let name = name.unwrap_or_default();
            fields.push((None, Arc::new(Field::new(&name, DataType::Binary, true))));
            keys[*at].0 = Expr::Column(Name::new_unqualified(name));
        }
        let schema = Arc::new(DFSchema::new_with_metadata(fields, HashMap::new())?);
        Ok((Flow::new(Source::Relation(relation), schema), keys))
    }
}
