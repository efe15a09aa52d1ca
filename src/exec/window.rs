//! Window functions. Aggregates of whole partitions are those of groups (`partitions.rs`). For
//! others rows are sorted by partition and order, and each function of one sort is a column
//! computed there.
//!
//! ```text
//!   sort        by partition keys, then order keys, as ORDER BY does
//!   bounds      each row's partition and peers (`kernels/src/ops/window.rs`)
//!   frames      for each row the places from `low` up to `high`, by arithmetic; RANGE distances by
//!               binary search
//!   reductions  sums and counts are differences of running ones; extrema and sums of floats are
//!               running where a frame begins or ends with the partition, else from a tree
//!   results     one kernel for all functions
//! ```
//!
//! `frames.rs` has functions that need a frame's rows more than once, or in an order. Lists are
//! views of the sorted rows. Medians and numbers of distinct values descend through the bits of
//! ranks. The others are aggregates of pairs of a frame and one of its rows.
//!
//! The rows stay in the order of the last sort; their other columns are fetched by the pipeline
//! that reads them.

mod arguments;
mod frames;
mod functions;
mod lists;
mod pairs;
mod partition_aggregates;
mod partitions;
mod places;
mod points;
mod ranks;

use std::cell::OnceCell;
use std::collections::HashMap;
use std::sync::Arc;

use datafusion::common::{DFSchema, DFSchemaRef};
use datafusion::logical_expr::{Expr, ExprSchemable};

use self::functions::Results;
use self::partitions::over_group;
use super::run::{Runner, anonymous};
use super::sort::{leading_keys, order_key};
use crate::codegen::{
    AggregateKind, Codes, Direction, Flow, FlowSource, NullsPlace, emit_words_of, materialize,
};
use crate::column::{Column, Relation, Table};
use crate::error::{Error, Result};
use crate::plan::{Bound, WindowCall, WindowCalls, WindowKeys, WindowKind};
use warpframe_device::ops::sort::{SortWord, argsort};
use warpframe_device::ops::window::{Bounds, Ties, WindowWord, bounds};
use warpframe_device::{Buffer, Device};

const OPERATOR: &str = "window";

/// Rows in a window's order.
struct WindowRows {
    relation: Relation,
    schema: DFSchemaRef,
    /// Neither partitions nor an order: all rows are peers.
    all_peers: bool,
    /// Where partitions and peers begin; of peers alone made when it is asked for
    /// ([`Runner::bounds_of`]).
    bounds: OnceCell<Bounds>,
    /// Bounds of frames at a distance of values: which, whether it is the start, and each row's.
    ranges: Vec<(Bound, bool, Buffer)>,
}

impl WindowRows {
    /// Of at least one row as it lies.
    fn all_peers(relation: Relation, schema: DFSchemaRef) -> Result<WindowRows> {
        few_enough(relation.rows)?;
        let bounds = OnceCell::new();
        Ok(WindowRows { relation, schema, all_peers: true, bounds, ranges: vec![] })
    }

    /// The rows as a pipeline.
    fn flow(&self) -> Flow {
        Flow::new(FlowSource::Relation(self.relation.clone()), self.schema.clone())
    }

    fn rows(&self) -> u64 {
        self.relation.rows
    }
}

impl Runner {
    pub(super) fn windows_over(&self, flow: Flow, windows: &[WindowCalls]) -> Result<Flow> {
        // Windows over windows may find the rows sorted already.
        let mut sorted = None;
        windows.iter().try_fold(flow, |flow, window| self.window_over(flow, window, &mut sorted))
    }

    /// The flow with the window's results; `sorted` says what its rows are sorted by.
    fn window_over(
        &self,
        mut flow: Flow,
        window: &WindowCalls,
        sorted: &mut Option<WindowKeys>,
    ) -> Result<Flow> {
        let width = flow.schema().fields().len();
        let WindowCalls { calls, schema } = window;
        // Those that share their keys share a sort, or an aggregation.
        let (mut pending, mut made): (Vec<usize>, Vec<usize>) =
            ((0..calls.len()).collect(), vec![]);
        while let Some(first) = pending.first() {
            let keys = &calls[*first].keys;
            let is_sorted = sorted.as_ref().is_some_and(|by| by.imply(keys));
            let groups = !is_sorted
                && over_group(&calls[*first]).is_some()
                && self.are_groups(&flow, &keys.partition)?;
            let (now, later): (Vec<_>, Vec<_>) = pending.iter().partition(|at| {
                let call = &calls[**at];
                call.keys == *keys && (!groups || over_group(call).is_some())
            });
            let together: Vec<&WindowCall> = now.iter().map(|at| &calls[*at]).collect();
            let relation = match groups {
                true => self.beside_partitions(&flow, keys, &together)?,
                false => self.windows(&flow, keys, is_sorted, &together)?,
            };
            if !is_sorted && !groups {
                *sorted = Some(keys.clone());
            }
            made.extend(now);
            pending = later;
            flow = Flow::new(FlowSource::Relation(relation), schema_with(schema, width, &made)?);
        }
        let FlowSource::Relation(mut relation) = flow.source else { return Ok(flow) };
        let computed = relation.columns.split_off(width);
        let mut computed: Vec<_> = made.into_iter().zip(computed).collect();
        computed.sort_by_key(|(at, _)| *at);
        relation.columns.extend(computed.into_iter().map(|(_, column)| column));
        Ok(Flow::new(FlowSource::Relation(relation), schema.clone()))
    }

    /// The flow's rows sorted by the keys, and a further column for each call.
    fn windows(
        &self,
        flow: &Flow,
        keys: &WindowKeys,
        is_sorted: bool,
        calls: &[&WindowCall],
    ) -> Result<Relation> {
        let (mut relation, columns) = match self.sorted_by(flow, keys, is_sorted)? {
            Sorting::Empty(relation) => return no_rows(&self.device, relation, calls),
            Sorting::Rows(mut sorted) => {
                sorted.ranges = self.value_bounds(&sorted, keys, calls)?;
                let of_rows =
                    |call: &&&WindowCall| !matches!(call.function, WindowKind::Regrouped(_));
                let framed: Vec<&WindowCall> = calls.iter().filter(of_rows).copied().collect();
                let mut framed = match framed.is_empty() {
                    true => vec![],
                    false => self.results(&sorted, &framed)?,
                }
                .into_iter();
                let column = |call: &&WindowCall| match &call.function {
                    WindowKind::Regrouped(aggregate) => {
                        self.of_frames(&sorted, &call.frame, aggregate)
                    }
                    function => {
                        let mut column = framed.next().expect("a column for each such call");
                        let numbers = matches!(function, WindowKind::RowNumber);
                        if numbers && keys.partition.is_empty() {
                            column.stats.unique = true;
                            column.stats.ascending = true;
                        }
                        Ok(column)
                    }
                };
                let columns = calls.iter().map(column).collect::<Result<Vec<_>>>()?;
                (sorted.relation, columns)
            }
        };
        relation.indices.push(None);
        let fresh = relation.indices.len() - 1;
        relation.columns.extend(columns.into_iter().map(|column| (fresh, column)));
        Ok(relation)
    }

    fn sorted_by(&self, flow: &Flow, keys: &WindowKeys, is_sorted: bool) -> Result<Sorting> {
        let schema = flow.schema().clone();
        let partition = keys
            .partition
            .iter()
            .map(|expr| (expr.clone(), Direction::Ascending, NullsPlace::First));
        // Peers are rows whose keys are all equal. A key that tells all rows apart may be left out
        // if no row is then taken to have peers; any other key is needed to find peers.
        let leading = leading_keys(flow, &keys.order)?;
        let (order, ties) = match leading.apart && !is_sorted {
            true => (leading.keys, Ties::Apart),
            false => (&keys.order[..], Ties::Peers),
        };
        let by = partition.chain(order.iter().map(order_key)).collect();
        let (flow, by) = self.sortable(OPERATOR, flow, by)?;
        if by.is_empty() && ties == Ties::Peers {
            return Ok(match self.relation(OPERATOR, &flow)? {
                relation if relation.rows == 0 => Sorting::Empty(relation),
                relation => Sorting::Rows(Box::new(WindowRows::all_peers(relation, schema)?)),
            });
        }
        let (mut bits, mut partition_bits) = (vec![], 0);
        let (mut relation, words) = self.relation_with(OPERATOR, &flow, |generator, out| {
            let values = (by.iter())
                .map(|(expr, direction, nulls)| {
                    Ok((generator.expr(expr, out)?, *direction, *nulls))
                })
                .collect::<Result<Vec<_>>>()?;
            let leading = keys.partition.len();
            let key = emit_words_of(&values, leading, &mut generator.params, out)?;
            (bits, partition_bits) = (key.bits, key.leading);
            Ok(key.words)
        })?;
        relation.columns.truncate(schema.fields().len());
        let rows = relation.rows;
        if rows == 0 {
            return Ok(Sorting::Empty(relation));
        }
        few_enough(rows)?;
        let sort_words: Vec<_> = words
            .iter()
            .zip(&bits)
            .map(|(column, bits)| SortWord { keys: &column.data, bits: *bits })
            .collect();
        let order = match is_sorted || sort_words.is_empty() {
            true => None,
            false => Some(Arc::new(argsort(&self.device, &sort_words, rows)?)),
        };
        let mut left = partition_bits;
        let window_words: Vec<_> = (sort_words.iter())
            .map(|word| {
                let of_partition = left.min(word.bits);
                left -= of_partition;
                let below = if of_partition == 0 { 64 } else { word.bits - of_partition };
                WindowWord { keys: word.keys, below }
            })
            .collect();
        let bounds = bounds(&self.device, &window_words, order.as_deref(), ties, rows)?;
        let relation = match order {
            Some(order) => self.reordered(relation, order)?,
            None => relation,
        };
        Ok(Sorting::Rows(Box::new(WindowRows {
            relation,
            schema,
            all_peers: false,
            bounds: bounds.into(),
            ranges: vec![],
        })))
    }

    /// Where the rows' partitions and peers begin.
    fn bounds_of<'a>(&self, sorted: &'a WindowRows) -> Result<&'a Bounds> {
        match sorted.bounds.get() {
            Some(bounds) => Ok(bounds),
            None => {
                let made = bounds(&self.device, &[], None, Ties::Peers, sorted.rows())?;
                Ok(sorted.bounds.get_or_init(|| made))
            }
        }
    }

    /// The calls' columns, in the order of the sorted rows.
    fn results(&self, sorted: &WindowRows, calls: &[&WindowCall]) -> Result<Vec<Column>> {
        let arguments = self.arguments_in_place(sorted, calls)?;
        let feeds = self.feeds(sorted, calls)?;
        let parts = self.parts(sorted, calls, &feeds)?;
        let (_, columns) = materialize(
            &self.device,
            OPERATOR,
            &positions(sorted.rows())?,
            Codes::Keep,
            |generator, out| {
                let places = sorted.places(generator, out);
                let mut results =
                    Results { sorted, arguments: &arguments, feeds: &feeds, parts: &parts, places };
                calls.iter().map(|call| results.value(call, generator, out)).collect()
            },
        )?;
        Ok(columns)
    }

    /// The arguments whose values are looked up at other rows: columns that the rows have are not
    /// copied.
    fn arguments_in_place(&self, sorted: &WindowRows, calls: &[&WindowCall]) -> Result<Arguments> {
        let mut exprs: Vec<Expr> = vec![];
        for call in calls {
            if let Some(arg) = looked_up(call)
                && !exprs.contains(arg)
            {
                exprs.push(arg.clone());
            }
        }
        if exprs.is_empty() {
            return Ok(Arguments { exprs, relation: Relation::dense(sorted.rows(), vec![])? });
        }
        let types = exprs
            .iter()
            .map(|expr| expr.get_type(&*sorted.schema))
            .collect::<Result<Vec<_>, _>>()?;
        let flow = sorted.flow().project(exprs.clone(), anonymous(&types)?);
        Ok(Arguments { exprs, relation: self.relation(OPERATOR, &flow)? })
    }
}

/// Positions are numbered in 32 bits.
fn few_enough(rows: u64) -> Result<()> {
    match rows < u64::from(u32::MAX) {
        true => Ok(()),
        false => Err(Error::unsupported(OPERATOR, "of more than 2^32 rows")),
    }
}

/// Rows to look at, or none.
enum Sorting {
    Empty(Relation),
    Rows(Box<WindowRows>),
}

/// Expressions as columns in the order of the sorted rows.
struct Arguments {
    exprs: Vec<Expr>,
    relation: Relation,
}

/// The argument of which the call takes another row's value.
fn looked_up(call: &WindowCall) -> Option<&Expr> {
    match &call.function {
        WindowKind::Shift { arg, .. } | WindowKind::Place { arg, .. } => Some(arg),
        WindowKind::Aggregate(call)
            if matches!(call.kind, AggregateKind::Min | AggregateKind::Max) =>
        {
            call.arg.as_ref()
        }
        _ => None,
    }
}

/// A relation without rows, and a column for each call.
fn no_rows(device: &Device, mut relation: Relation, calls: &[&WindowCall]) -> Result<Relation> {
    let fields = anonymous(&calls.iter().map(|call| call.dtype.clone()).collect::<Vec<_>>())?;
    let empty = Table::empty(device, Arc::new(fields.as_arrow().clone()))?;
    relation.indices.push(None);
    let fresh = relation.indices.len() - 1;
    relation.columns.extend(empty.columns.into_iter().map(|column| (fresh, column)));
    Ok(relation)
}

/// So many rows without columns.
fn positions(rows: u64) -> Result<Flow> {
    Ok(Flow::new(FlowSource::Relation(Relation::dense(rows, vec![])?), anonymous(&[])?))
}

/// The input's schema, and the results `made` so far.
fn schema_with(schema: &DFSchema, width: usize, made: &[usize]) -> Result<DFSchemaRef> {
    let field = |at: usize| {
        let (qualifier, field) = schema.qualified_field(at);
        (qualifier.cloned(), field.clone())
    };
    let fields = (0..width).chain(made.iter().map(|at| width + at)).map(field).collect();
    Ok(Arc::new(DFSchema::new_with_metadata(fields, HashMap::new())?))
}
