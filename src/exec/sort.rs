//! ORDER BY: words of sort bits, radix sort of row numbers, and the columns behind them.

use std::sync::Arc;

use datafusion::logical_expr::{Sort, SortExpr};

use super::run::Runner;
use crate::codegen::{Direction, Flow, NullsPlace, Source, Value, emit_words};
use crate::error::Result;
use crate::ops::sort::{SortWord, argsort};
use crate::ops::top::top_k;

impl Runner {
    pub(super) fn sort(&self, sort: &Sort) -> Result<Flow> {
        let flow = self.flow(&sort.input)?;
        let mut bits = vec![];
        let (relation, words) = self.relation_with("sort", &flow, |generator, out| {
            let keys = (sort.expr.iter())
                .map(|SortExpr { expr, asc, nulls_first }| {
                    let direction = if *asc { Direction::Ascending } else { Direction::Descending };
                    let nulls = if *nulls_first { NullsPlace::First } else { NullsPlace::Last };
                    Ok((generator.expr(expr, out)?, direction, nulls))
                })
                .collect::<Result<Vec<_>>>()?;
            let words = emit_words(&keys, &mut generator.params, out)?;
            bits = words.iter().map(|word| word.bits).collect();
            Ok(words.into_iter().map(|word| Value::word(word.name)).collect())
        })?;
        let rows = relation.rows;
        let schema = flow.schema().clone();
        let words: Vec<_> =
            words.iter().zip(&bits).map(|(column, bits)| SortWord { keys: &column.data, bits: *bits }).collect();
        let fetch = sort.fetch.map(|fetch| fetch as u64).filter(|fetch| *fetch < rows);
        if rows == 0 || words.is_empty() {
            return Ok(Flow::new(Source::Relation(relation.slice(0, fetch)), schema));
        }
        let (numbers, rows) = match fetch {
            Some(fetch) => (top_k(&self.device, &words, rows, fetch)?, fetch),
            None => (argsort(&self.device, &words, rows)?, rows),
        };
        let relation = self.reindexed(relation, rows, Arc::new(numbers), false)?;
        Ok(Flow::new(Source::Relation(relation), schema))
    }
}
