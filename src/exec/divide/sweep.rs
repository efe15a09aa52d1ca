//! Passes over sorted rows, chunk by chunk, that add columns to them.
//!
//! What a window says of the rows of a chunk is combined with what it said of the row before the
//! chunk, which is carried along. Backwards that is the row behind the chunk.
//!
//! ```text
//!   x          2 1 ‖ 3 1 ‖ 4        row_number  1 2 ‖ 1 2 ‖ 1     running sums  2 3 ‖ 3 4 ‖ 4
//!   carried          2   4                      1 2 ‖ 3 4 ‖ 5                   2 3 ‖ 6 7 ‖ 11
//! ```

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::common::{
    Column as Name, DFSchema, DFSchemaRef, JoinType, NullEquality, ScalarValue,
};
use datafusion::functions_window::row_number::row_number_udwf;
use datafusion::logical_expr::expr::WindowFunction;
use datafusion::logical_expr::{
    Expr, ExprSchemable, Join, JoinConstraint, LogicalPlan, Operator, Projection, Sort, Window,
    binary_expr, cast, lit, when,
};

use super::chunks::LastingStats;
use super::run_over::run_over;
use super::sinks::{RowSink, RowStore, compact};
use super::stored::StoredRows;
use super::{Divider, arrow, relation};
use crate::column::Table;
use crate::error::{Error, Result};
use crate::plan::{DevicePlan, WindowKeys};
use crate::plan::{LEAST_ROWS, placeholder};

/// A window call over the rows of a chunk, and the column that it becomes.
#[derive(Debug, Clone)]
pub(super) struct SweptCall {
    pub(super) call: Expr,
    pub(super) name: String,
    pub(super) carried: Carried,
}

/// What a column makes of the value that the row next to the chunk has, in rows of its partition.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Carried {
    /// It is added; a null is nothing.
    Sum,
    Least,
    Greatest,
    /// It is the value.
    First,
    /// It is the value unless it is null.
    FirstValid,
    /// It is the value where the chunk has none.
    LastValid,
    /// It is the value in rows of the same peers.
    OfPeers,
    /// The rank in rows of the same peers, else so many rows come before.
    Rank {
        rows: Box<Expr>,
    },
    DenseRank,
}

/// The column that tells the order of a chunk's rows.
const PLACE: &str = "place in the chunk";

/// The name of a column of the row next to the chunk, and of the chunk's first row.
fn carried_name(column: &Expr) -> String {
    format!("carried {column}")
}

fn first_name(column: &Expr) -> String {
    format!("first {column}")
}

impl Divider<'_> {
    /// The rows with a column more for each call.
    ///
    /// # Errors
    /// `OutOfDeviceMemory` where even few rows do not fit.
    pub(super) fn swept(
        &mut self,
        rows: StoredRows,
        keys: &WindowKeys,
        calls: Vec<SweptCall>,
        backwards: bool,
    ) -> Result<StoredRows> {
        let key_columns =
            once_each(keys.partition.iter().chain(keys.order.iter().map(|key| &key.expr)));
        let results = calls.iter().map(|call| unqualified(&call.name));
        let carried: Vec<Expr> = key_columns.iter().cloned().chain(results).collect();
        let ranked = calls.iter().any(|call| call.carried == Carried::DenseRank);
        let firsts = if ranked { key_columns } else { vec![] };
        let plan = SweepPlan { keys, calls: &calls, input: rows.schema.clone() };
        let first = self.prepared(&plan.logical(None)?)?;
        let schema = plan.schema()?;
        let beside =
            |columns: &[Expr], name: fn(&Expr) -> String| row_schema(&schema, columns, name);
        let (carried_schema, firsts_schema) =
            (beside(&carried, carried_name)?, beside(&firsts, first_name)?);
        let with_firsts = (!firsts.is_empty()).then_some(&firsts_schema);
        let next = self.prepared(&plan.logical(Some((&carried_schema, with_firsts)))?)?;
        let place = |of: &DFSchemaRef, columns: &[Expr]| places_of(of, columns);
        let (carried, firsts) = (place(&schema, &carried)?, place(&rows.schema, &firsts)?);

        let mut kept = RowStore::new(self.engine, &schema, self.budget.stored);
        let [mut of_chunks, mut of_carried, mut of_firsts] =
            [LastingStats::default(), LastingStats::default(), LastingStats::default()];
        let mut neighbour: Option<Table> = None;
        self.chunk_by_chunk(&rows, backwards, &mut kept, |divider, kept, chunk, _| {
            let chunk = chunk.load()?;
            let mut inputs = vec![of_chunks.of(relation(&chunk)?)];
            let plan: &Arc<DevicePlan> = match &neighbour {
                None => &first,
                Some(neighbour) => {
                    inputs.push(of_carried.of(relation(neighbour)?));
                    if !firsts.is_empty() {
                        inputs.push(of_firsts.of(relation(&one_row(
                            &chunk,
                            0,
                            &firsts,
                            &firsts_schema,
                        )?)?));
                    }
                    &next
                }
            };
            let table = run_over(divider.engine, plan, &inputs)?;
            let at = if backwards { 0 } else { table.rows.saturating_sub(1) };
            let row = one_row(&table, at, &carried, &carried_schema)?;
            kept.push(table)?;
            neighbour = Some(row);
            Ok(())
        })?;
        let mut stored = kept.finish();
        if backwards {
            stored.blocks.reverse();
        }
        Ok(stored)
    }

    /// The rows with a column more for each window call, about whose results at most so many rows
    /// before and behind each row decide.
    ///
    /// # Errors
    /// `OutOfDeviceMemory` where even few rows do not fit.
    pub(super) fn beside_neighbours(
        &mut self,
        rows: StoredRows,
        calls: Vec<Expr>,
        [before, behind]: [u64; 2],
    ) -> Result<StoredRows> {
        let plan =
            LogicalPlan::Window(Window::try_new(calls, placeholder(0, &rows.schema).into())?);
        let mut kept = RowStore::new(self.engine, plan.schema(), self.budget.stored);
        let plan = self.prepared(&plan)?;
        let mut stats = LastingStats::default();
        self.chunk_by_chunk(&rows, false, &mut kept, |divider, kept, chunk, at| {
            let before = (at as u64).min(before) as usize;
            let behind = usize::try_from(behind).unwrap_or(usize::MAX);
            let wanted = chunk.rows().saturating_add(before).saturating_add(behind);
            let some = rows.range(at - before, wanted).load()?;
            let table = run_over(divider.engine, &plan, &[stats.of(relation(&some)?)])?;
            kept.push(table.slice(before, chunk.rows()))
        })?;
        Ok(kept.finish())
    }

    /// Calls `run` for each chunk, with the number of the chunk's first row; backwards, with the
    /// number of rows behind it. A call that finds no memory has done nothing, and is made again
    /// for fewer rows.
    fn chunk_by_chunk(
        &mut self,
        rows: &StoredRows,
        backwards: bool,
        kept: &mut RowStore,
        mut run: impl FnMut(&mut Self, &mut RowStore, &StoredRows, usize) -> Result<()>,
    ) -> Result<()> {
        let (mut at, mut bytes, all) = (0, self.budget.chunk, rows.rows());
        while at < all {
            let chunk =
                if backwards { rows.some_before(all - at, bytes) } else { rows.some(at, bytes) };
            match run(self, kept, &chunk, at) {
                Ok(()) => at += chunk.rows(),
                Err(error) if !error.is_out_of_device_memory() => return Err(error),
                Err(_) if kept.make_room()? => {}
                Err(error) if chunk.rows() as u64 <= LEAST_ROWS => return Err(error),
                Err(_) => bytes = (chunk.bytes().min(bytes) / 2).max(1),
            }
        }
        Ok(())
    }
}

/// The plan of a chunk of a sweep.
struct SweepPlan<'a> {
    keys: &'a WindowKeys,
    calls: &'a [SweptCall],
    input: DFSchemaRef,
}

impl SweepPlan<'_> {
    /// The input's columns, and those of the calls.
    fn schema(&self) -> Result<DFSchemaRef> {
        let fields =
            self.input.iter().map(|(qualifier, field)| (qualifier.cloned(), field.clone()));
        let mut fields: Vec<_> = fields.collect();
        for SweptCall { call, name, .. } in self.calls {
            fields.push((None, Arc::new(Field::new(name, call.get_type(&*self.input)?, true))));
        }
        Ok(Arc::new(DFSchema::new_with_metadata(fields, Default::default())?))
    }

    /// Over the chunk; with a neighbour and the chunk's first row, of these schemas, if that is
    /// said.
    fn logical(&self, beside: Option<(&DFSchemaRef, Option<&DFSchemaRef>)>) -> Result<LogicalPlan> {
        let place = Expr::from(WindowFunction::new(row_number_udwf(), vec![])).alias(PLACE);
        let chunk =
            LogicalPlan::Window(Window::try_new(vec![place], placeholder(0, &self.input).into())?);
        let own = |at: usize| format!("in the chunk {at}");
        let calls = self
            .calls
            .iter()
            .enumerate()
            .map(|(at, call)| call.call.clone().alias(own(at)))
            .collect();
        let mut plan = LogicalPlan::Window(Window::try_new(calls, chunk.into())?);
        for (number, schema) in
            beside.iter().flat_map(|(row, first)| [Some(*row), *first]).enumerate()
        {
            if let Some(schema) = schema {
                plan = crossed(plan, placeholder(1 + number, schema))?;
            }
        }
        let schema = self.schema()?;
        let mut exprs: Vec<Expr> = self.input.columns().into_iter().map(Expr::Column).collect();
        for (at, call) in self.calls.iter().enumerate() {
            let (own, dtype) = (unqualified(&own(at)), call.call.get_type(&*self.input)?);
            let value = match beside {
                None => own,
                Some(_) => self.combined(call, own, &dtype)?,
            };
            let value =
                if value.get_type(plan.schema())? == dtype { value } else { cast(value, dtype) };
            exprs.push(value.alias(&call.name));
        }
        // A join promises no order.
        let last = exprs.iter().take(self.input.fields().len()).cloned();
        let last: Vec<Expr> =
            last.chain(self.calls.iter().map(|call| unqualified(&call.name))).collect();
        exprs.push(unqualified(PLACE));
        let plan = LogicalPlan::Projection(Projection::try_new(exprs, plan.into())?);
        let by = vec![unqualified(PLACE).sort(true, false)];
        let plan = LogicalPlan::Sort(Sort { expr: by, input: plan.into(), fetch: None });
        Ok(LogicalPlan::Projection(Projection::try_new_with_schema(last, plan.into(), schema)?))
    }

    /// The value of a row of the chunk, of that which the chunk says and what is carried.
    fn combined(&self, call: &SweptCall, own: Expr, dtype: &DataType) -> Result<Expr> {
        let carried = |column: &Expr| unqualified(&carried_name(column));
        let order = || self.keys.order.iter().map(|key| &key.expr);
        let same =
            are_same(self.keys.partition.iter().map(|key| (key, carried(key))), &self.input)?;
        let peers = || {
            are_same(
                self.keys.partition.iter().chain(order()).map(|key| (key, carried(key))),
                &self.input,
            )
        };
        let before = carried(&unqualified(&call.name));
        let either = |condition: Expr| when(condition, before.clone()).otherwise(own.clone());
        let unless_null = |value: Expr| {
            when(own.clone().is_null(), before.clone())
                .when(before.clone().is_null(), own.clone())
                .otherwise(value)
        };
        let value = match &call.carried {
            Carried::Sum => unless_null(cast(own.clone() + before.clone(), dtype.clone()))?,
            Carried::Least => unless_null(either(before.clone().lt(own.clone()))?)?,
            Carried::Greatest => unless_null(either(before.clone().gt(own.clone()))?)?,
            Carried::First => before.clone(),
            Carried::FirstValid => either(before.clone().is_not_null())?,
            Carried::LastValid => either(own.clone().is_null())?,
            Carried::OfPeers => return Ok(either(peers()?)?),
            Carried::Rank { rows } => {
                when(peers()?, before.clone()).otherwise(own.clone() + carried(rows))?
            }
            Carried::DenseRank => {
                // The chunk's first peers may be those of the row before it.
                let firsts = |key: &Expr| unqualified(&first_name(key));
                let goes_on: Vec<Expr> = order().map(firsts).collect();
                let schema = row_schema(&self.input, &once_each(order()), first_name)?;
                let goes_on = are_same(goes_on.iter().zip(order().map(carried)), &schema)?;
                let more = when(goes_on, lit(1u64)).otherwise(lit(0u64))?;
                own.clone() + before.clone() - more
            }
        };
        Ok(when(same, value).otherwise(own)?)
    }
}

/// Each column once, in the order of first appearance. A window may name a key twice.
fn once_each<'a>(columns: impl Iterator<Item = &'a Expr>) -> Vec<Expr> {
    let mut found: Vec<Expr> = vec![];
    for column in columns {
        if !found.contains(column) {
            found.push(column.clone());
        }
    }
    found
}

fn crossed(rows: LogicalPlan, row: LogicalPlan) -> Result<LogicalPlan> {
    let (of, by, nulls) = (JoinType::Inner, JoinConstraint::On, NullEquality::NullEqualsNothing);
    Ok(LogicalPlan::Join(Join::try_new(
        rows.into(),
        row.into(),
        vec![],
        None,
        of,
        by,
        nulls,
        false,
    )?))
}

fn places_of(schema: &DFSchemaRef, columns: &[Expr]) -> Result<Vec<usize>> {
    let place = |column: &Expr| match column {
        Expr::Column(name) => Ok(schema.index_of_column(name)?),
        other => Err(Error::internal(format!("{other} is no column"))),
    };
    columns.iter().map(place).collect()
}

/// The schema of one row of some columns.
fn row_schema(
    schema: &DFSchemaRef,
    columns: &[Expr],
    name: fn(&Expr) -> String,
) -> Result<DFSchemaRef> {
    let field = |column: &Expr| -> Result<Field> {
        Ok(Field::new(name(column), column.get_type(&**schema)?, true))
    };
    let fields: Vec<Field> = columns.iter().map(field).collect::<Result<_>>()?;
    Ok(Arc::new(DFSchema::try_from(Schema::new(fields))?))
}

/// A row of a table, some of its columns.
fn one_row(table: &Table, at: usize, columns: &[usize], schema: &DFSchemaRef) -> Result<Table> {
    let of_row = columns.iter().map(|column| table.columns[*column].clone()).collect();
    let whole = Table::with_rows(&table.device, arrow(schema), of_row, table.rows)?;
    compact(whole.slice(at, 1))
}

/// A column that a sweep made.
pub(super) fn unqualified(name: &str) -> Expr {
    Expr::Column(Name::new_unqualified(name))
}

/// Whether the keys of two rows are the same to a window. A window tells 0.0 from -0.0. These
/// compare as equal, and their reciprocals do not.
fn are_same<'k>(
    keys: impl IntoIterator<Item = (&'k Expr, Expr)>,
    schema: &DFSchema,
) -> Result<Expr> {
    let is_same = |one: Expr, other: Expr| binary_expr(one, Operator::IsNotDistinctFrom, other);
    let same = |(one, other): (&Expr, Expr)| -> Result<Expr> {
        let dtype = one.get_type(schema)?;
        let equal = is_same(one.clone(), other.clone());
        if !dtype.is_floating() {
            return Ok(equal);
        }
        let reciprocal =
            |key: Expr| -> Result<Expr> { Ok(lit(ScalarValue::new_one(&dtype)?) / key) };
        Ok(equal.and(is_same(reciprocal(one.clone())?, reciprocal(other)?)))
    };
    let all = keys.into_iter().map(same).collect::<Result<Vec<_>>>()?;
    Ok(all.into_iter().reduce(Expr::and).unwrap_or_else(|| lit(true)))
}
