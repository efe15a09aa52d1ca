//! UNNEST: a row for each element of its lists, structs as their fields.
//!
//! ```text
//!   lists    [a b c]  []  [d]        counts  3 0 1      row of each output    0 0 0 2
//!                                    offsets 0 3 3 4    place in its list     0 1 2 0
//! ```
//!
//! Rows are numbered, as in joins, and what is not taken apart is seen through these numbers. Lists
//! that are taken apart together count as many rows as the longest has elements. Lists of lists are
//! taken apart level by level, from the deepest that the query asks for on. Lists that the query
//! makes of expressions are not stored (`computed_lists.rs`).

mod computed_lists;

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::functions::core::expr_fn::get_field;
use datafusion::logical_expr::{Expr, Unnest};

use super::run::{Runner, anonymous};
use crate::codegen::unnest::{PreservedLists, unnested_elements, unnested_rows};
use crate::codegen::{Codes, Flow, FlowSource, materialize};
use crate::column::{Column, Index, Relation};
use crate::error::{Error, Result};
use warpframe_device::ops::join::expand;
use warpframe_device::ops::scan::exclusive_scan_u32;

const OPERATOR: &str = "unnest";

impl Runner {
    pub(super) fn unnest(&self, flow: Flow, unnest: &Unnest) -> Result<Flow> {
        if let Some(taken_apart) = self.unnest_made(&flow, unnest)? {
            return Ok(taken_apart);
        }
        let mut relation = self.relation(OPERATOR, &flow)?;
        let lists = &unnest.list_type_columns;
        let options = &unnest.options;
        let preserved = PreservedLists {
            null: options.preserve_nulls(),
            empty: options.expand_empty_as_null(),
        };
        let deepest = lists.iter().map(|(_, list)| list.depth).max().unwrap_or(0);
        // The columns that the lists have become, behind those of the input.
        let mut made: Vec<Option<usize>> = vec![None; lists.len()];
        for level in (1..=deepest).rev() {
            let asked: Vec<usize> =
                (0..lists.len()).filter(|at| lists[*at].1.depth >= level).collect();
            let columns: Vec<usize> =
                asked.iter().map(|at| made[*at].unwrap_or(lists[*at].0)).collect();
            let (expanded, elements) = self.elements(relation, &columns, preserved)?;
            relation = expanded;
            relation.indices.push(None);
            let dense = relation.indices.len() - 1;
            for (at, column) in asked.into_iter().zip(elements) {
                match made[at] {
                    Some(place) => relation.columns[place] = (dense, column),
                    None => {
                        relation.columns.push((dense, column));
                        made[at] = Some(relation.columns.len() - 1);
                    }
                }
            }
        }
        let schema = anonymous(&types(&relation))?;
        let names = schema.columns();
        let column = |at: usize| Expr::Column(names[at].clone());
        let mut exprs = vec![];
        for (at, field) in unnest.input.schema().fields().iter().enumerate() {
            let variants: Vec<Expr> = (lists.iter().zip(&made))
                .filter(|((of, _), _)| *of == at)
                .filter_map(|(_, place)| place.map(column))
                .collect();
            match field.data_type() {
                DataType::Struct(fields) if unnest.struct_type_columns.contains(&at) => {
                    exprs.extend(
                        fields.iter().map(|field| get_field(column(at), field.name().as_str())),
                    );
                }
                _ if variants.is_empty() => exprs.push(column(at)),
                _ => exprs.extend(variants),
            }
        }
        Ok(Flow::new(FlowSource::Relation(relation), schema).project(exprs, unnest.schema.clone()))
    }

    /// The relation with a row for each place in the longest of its lists in `columns`, and these
    /// lists' elements.
    fn elements(
        &self,
        relation: Relation,
        columns: &[usize],
        preserved: PreservedLists,
    ) -> Result<(Relation, Vec<Column>)> {
        let rows = relation.rows;
        let flow = Flow::new(FlowSource::Relation(relation.clone()), anonymous(&types(&relation))?);
        let (_, counts) =
            materialize(&self.device, OPERATOR, &flow, Codes::Keep, |generator, out| {
                Ok(vec![unnested_rows(columns, preserved, generator, out)?])
            })?;
        let offsets = Arc::new(exclusive_scan_u32(&self.device, &counts[0].data, rows)?);
        let total = offsets.read_word_or(rows as usize * 8, rows)?;
        if total >= u64::from(u32::MAX) {
            return Err(too_many_rows(total));
        }
        let row_of = Arc::new(expand(&self.device, &offsets, rows, total)?);
        let index = Index::of_rows(row_of.clone());
        let expanded = self.through(relation, total, index)?;
        let flow = Flow::new(FlowSource::Relation(expanded.clone()), anonymous(&types(&expanded))?);
        let (_, elements) =
            materialize(&self.device, OPERATOR, &flow, Codes::Keep, |generator, out| {
                unnested_elements(columns, &row_of, &offsets, generator, out)
            })?;
        Ok((expanded, elements))
    }
}

fn too_many_rows(rows: u64) -> Error {
    Error::unsupported(format!("unnest to {rows} rows"), "row numbers have 32 bits")
}

fn types(relation: &Relation) -> Vec<DataType> {
    relation.columns.iter().map(|(_, column)| column.dtype.clone()).collect()
}
