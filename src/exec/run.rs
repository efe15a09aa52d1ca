//! Runs the pipelines of a physical plan: stages extend a flow, a sink runs it and yields a new
//! one.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Column as Name, DFSchema, DFSchemaRef};
use datafusion::logical_expr::Expr;

use super::Engine;
use super::scan::Scans;
use crate::codegen::row_number::row_number;
use crate::codegen::{
    Codes, Emitter, Flow, FlowSource, Generator, KeyLayout, Value, materialize,
    materialize_uncompacted,
};
use crate::column::{Column, Digit, Index, Relation, Rows, Stats, Table, WantedColumn};
use crate::error::{Error, Result};
use crate::plan::{
    DevicePlan, PhysicalPlan, Pipeline, PipelineInput, PipelineSink, PipelineStage, PlanTable,
    is_volatile, join_name, sink_name,
};
use warpframe_device::ops::gather::{gather_pairs, interleave, is_scattered};
use warpframe_device::ops::inverse::inverse as inverse_of;
use warpframe_device::{Buffer, Device};

/// Rows from which on columns are brought two by two, and bytes of a column that the second-level
/// cache does not hold.
const PAIRED_ROWS: u64 = 1 << 22;
const CACHED_BYTES: usize = 64 << 20;

/// Runs the pipelines of a plan whose tables lie on the device.
#[derive(Clone)]
pub(crate) struct Runner {
    pub(crate) device: Device,
    pub(crate) plan: Arc<PhysicalPlan>,
    scans: Scans,
    /// What pipelines that have several readers yielded, and how many still want it.
    shared: RefCell<HashMap<usize, (Flow, usize)>>,
}

impl Runner {
    /// Of a plan over tables, of which `scans` is what it reads.
    pub(super) fn of(
        engine: &Engine,
        plan: &DevicePlan,
        tables: &[PlanTable],
        scans: Scans,
    ) -> Result<Runner> {
        let plan = plan.physical(tables, engine.orders_joins())?;
        Ok(Runner { device: engine.device.clone(), plan, scans, shared: RefCell::default() })
    }

    /// Without a plan, for work on columns.
    pub(super) fn of_columns(device: &Device) -> Runner {
        let (device, plan) = (device.clone(), Arc::new(PhysicalPlan::none()));
        Runner { device, plan, scans: Scans::default(), shared: RefCell::default() }
    }

    /// Moves the runner to another device.
    pub(super) fn on(self, device: Device) -> Runner {
        Runner { device, ..self }
    }

    /// Runs the plan to the end; again where there is more room after it failed for want of it.
    pub(crate) fn table(&self) -> Result<Table> {
        self.with_room(Runner::run_to_end)
    }

    /// Runs something, and again where tables that users keep make room for it: between two runs no
    /// operator is under way.
    pub(super) fn with_room<T>(&self, run: impl Fn(&Runner) -> Result<T>) -> Result<T> {
        let mut retry = self.device.room_retry();
        loop {
            match run(self) {
                Err(error) => {
                    self.shared.borrow_mut().clear();
                    if !retry.makes_room(error.shortage())? {
                        return Err(error);
                    }
                }
                ran => return ran,
            }
        }
    }

    fn run_to_end(&self) -> Result<Table> {
        let flow = self.rows_of(self.plan.last())?;
        let relation = self.relation("result", &flow)?;
        let (rows, columns) = self.dense("result", relation)?;
        let schema = Arc::new(self.plan.schema().as_arrow().clone());
        Ok(Table { device: self.device.clone(), schema, columns, rows: rows as usize })
    }

    /// What the sink of a pipeline yields; all before it has run. A pipeline with several readers
    /// runs for the first of them.
    pub(super) fn rows_of(&self, number: usize) -> Result<Flow> {
        let readers = self.plan.pipeline(number).readers;
        if readers < 2 {
            return self.sink(number);
        }
        let known = self.shared.borrow_mut().remove(&number);
        if let Some((flow, left)) = known {
            // Who reads it last has it alone, so that its memory is free once it is read.
            if left > 1 {
                self.shared.borrow_mut().insert(number, (flow.clone(), left - 1));
            }
            return Ok(flow);
        }
        let flow = self.sink(number)?;
        self.shared.borrow_mut().insert(number, (flow.clone(), readers - 1));
        Ok(flow)
    }

    fn sink(&self, number: usize) -> Result<Flow> {
        let flow = self.before_sink(number)?;
        let sink = &self.plan.pipeline(number).sink;
        let _operator = self.device.operator(|| sink_name(number, sink));
        match sink {
            PipelineSink::Rows => Ok(flow),
            PipelineSink::Aggregate(aggregation) => self.aggregate(flow, aggregation),
            PipelineSink::Distinct => self.distinct(flow),
            PipelineSink::Sort { keys, fetch } => self.sort(flow, keys, *fetch),
            PipelineSink::Limit { skip, fetch } => {
                let relation = self.relation("limit", &flow)?.slice(*skip, *fetch);
                Ok(Flow::new(FlowSource::Relation(relation), flow.schema().clone()))
            }
            PipelineSink::Windows(windows) => self.windows_over(flow, windows),
            PipelineSink::Unnest(unnest) => self.unnest(flow, unnest),
        }
    }

    /// The pipeline without its sink.
    pub(super) fn before_sink(&self, number: usize) -> Result<Flow> {
        let Pipeline { input, stages, .. } = self.plan.pipeline(number);
        // A join knows what to do with a side whose rows cannot be computed.
        let mut flow = self.input(input);
        for stage in stages {
            flow = match stage {
                PipelineStage::Filter(predicate) => flow.map(|flow| flow.filter(predicate.clone())),
                PipelineStage::Project(exprs, schema) => {
                    flow.map(|flow| flow.project(exprs.clone(), schema.clone()))
                }
                PipelineStage::Rename(schema) => flow.map(|flow| flow.renamed(schema.clone())),
                PipelineStage::Join(join) => {
                    let _operator = self.device.operator(|| join_name(number, join));
                    self.join(flow, join)
                }
            };
            let is_computed_once = match stage {
                PipelineStage::Filter(predicate) => is_volatile(predicate),
                PipelineStage::Project(exprs, _) => exprs.iter().any(is_volatile),
                PipelineStage::Rename(_) | PipelineStage::Join(_) => false,
            };
            // Computed once: kernels that come later may compute what is fused with them twice.
            if is_computed_once {
                let computed = flow?;
                let relation = self.relation("volatile function", &computed)?;
                flow = Ok(Flow::new(FlowSource::Relation(relation), computed.schema().clone()));
            }
        }
        flow
    }

    fn input(&self, input: &PipelineInput) -> Result<Flow> {
        match input {
            PipelineInput::Scan(scan) => {
                let rows = self.scans.get(scan).ok_or_else(|| {
                    Error::internal(format!(
                        "table {} was not loaded on the device",
                        scan.table_name
                    ))
                })?;
                Ok(Flow::new(rows.clone(), scan.projected_schema.clone()))
            }
            PipelineInput::Pipeline(number) => self.rows_of(*number),
            PipelineInput::Union(parts, schema) => self.union(parts, schema),
            PipelineInput::Values(values) => self.values(values),
            PipelineInput::Empty { one_row, schema } => {
                let columns =
                    Table::empty(&self.device, Arc::new(schema.as_arrow().clone()))?.columns;
                Ok(Flow::new(
                    FlowSource::Relation(Relation::dense(u64::from(*one_row), columns)?),
                    schema.clone(),
                ))
            }
        }
    }

    /// Runs a pipeline to a relation of its columns. Columns that the pipeline only passes on are
    /// not copied, unless rows are lost.
    pub(super) fn relation(&self, operator: &'static str, flow: &Flow) -> Result<Relation> {
        match self.passed_on(operator, flow, 0..flow.schema().fields().len(), &[])? {
            Some((relation, _)) => Ok(relation),
            None => Ok(self.relation_with(operator, flow, |_, _| Ok(vec![]))?.0),
        }
    }

    /// Some of the flow's columns, and the key of others, where a key is asked for: it then is the
    /// only further column. `None` unless all are columns of the flow's source and rows are lost to
    /// filters alone, if at all: no kernel is generated but one that decides about rows.
    pub(super) fn passed_on(
        &self,
        operator: &'static str,
        flow: &Flow,
        columns: Range<usize>,
        key: &[Digit],
    ) -> Result<Option<(Relation, Vec<Column>)>> {
        let (FlowSource::Relation(source), true) =
            (&flow.source, flow.only_filters() || !flow.drops_rows())
        else {
            return Ok(None);
        };
        let width = columns.len();
        let origins = columns.chain(key.iter().map(|digit| digit.at)).map(|at| flow.origin(at));
        let Some(columns) = origins.collect::<Option<Vec<_>>>() else { return Ok(None) };
        let mut relation = Relation { rows: source.rows, indices: source.indices.clone(), columns };
        let digits: Vec<_> =
            key.iter().zip(width..).map(|(digit, at)| Digit { at, ..*digit }).collect();
        let key = (!digits.is_empty()).then_some(WantedColumn::Key(&digits));
        if flow.drops_rows() && source.rows > 0 {
            let found = materialize_uncompacted(&self.device, operator, flow, |_, _| Ok(vec![]))?;
            if found.kept < source.rows {
                let (rows, wanted) = (
                    Rows::Kept(&found.kept_rows, found.kept),
                    (0..width).map(WantedColumn::Column),
                );
                let mut columns =
                    relation.gathered(&self.device, operator, rows, wanted.chain(key))?;
                let key = columns.split_off(width);
                return Ok(Some((Relation::dense(found.kept, columns)?, key)));
            }
        }
        let key = relation.gathered(&self.device, operator, Rows::All, key)?;
        relation.columns.truncate(width);
        Ok(Some((relation, key)))
    }

    /// Runs a pipeline to a relation of its columns, and to further columns that `extra` computes.
    pub(super) fn relation_with(
        &self,
        operator: &'static str,
        flow: &Flow,
        extra: impl FnOnce(&mut Generator<'_>, &mut Emitter) -> Result<Vec<Value>>,
    ) -> Result<(Relation, Vec<Column>)> {
        let width = flow.schema().fields().len();
        let matches = flow.only_inner_joins();
        let (mut indices, origins): (_, Vec<_>) = match &flow.source {
            FlowSource::Relation(relation) if matches || !flow.drops_rows() => {
                (relation.indices.clone(), (0..width).map(|at| flow.origin(at)).collect())
            }
            _ => (vec![], vec![None; width]),
        };
        let computed: Vec<usize> = (0..width).filter(|at| origins[*at].is_none()).collect();
        let outputs = |generator: &mut Generator<'_>, out: &mut Emitter| {
            let mut values =
                computed.iter().map(|at| generator.column(*at, out)).collect::<Result<Vec<_>>>()?;
            values.extend(extra(generator, out)?);
            Ok(values)
        };
        let (rows, mut columns, kept_rows) = match matches {
            true => {
                let found = materialize_uncompacted(&self.device, operator, flow, outputs)?;
                (
                    flow.source.rows(),
                    found.columns,
                    (found.kept < flow.source.rows()).then_some((found.kept_rows, found.kept)),
                )
            }
            false => {
                let (rows, columns) =
                    materialize(&self.device, operator, flow, Codes::Keep, outputs)?;
                (rows, columns, None)
            }
        };
        let extras = columns.split_off(computed.len());
        indices.push(None);
        let fresh = indices.len() - 1;
        let mut made = columns.into_iter();
        let mut columns: Vec<_> = (origins.into_iter())
            .map(|origin| {
                origin.unwrap_or_else(|| {
                    (fresh, made.next().expect("one column for each computed output"))
                })
            })
            .collect();
        let Some((kept_rows, kept)) = kept_rows else {
            return Ok((Relation { rows, indices, columns }, extras));
        };
        columns.extend(extras.into_iter().map(|column| (fresh, column)));
        let places = 0..columns.len();
        let all = Relation { rows, indices, columns };
        let rows = Rows::Kept(&kept_rows, kept);
        let mut columns =
            all.gathered(&self.device, operator, rows, places.map(WantedColumn::Column))?;
        let extras = columns.split_off(width);
        Ok((Relation::dense(kept, columns)?, extras))
    }

    /// The columns of a relation, in place, and how many rows they have.
    pub(super) fn dense(
        &self,
        operator: &'static str,
        relation: Relation,
    ) -> Result<(u64, Vec<Column>)> {
        let mut paired = self.gathered_in_pairs(&relation)?;
        let rest = (0..relation.columns.len())
            .filter(|at| !paired.contains_key(at))
            .map(WantedColumn::Column);
        let mut others = relation.gathered(&self.device, operator, Rows::All, rest)?.into_iter();
        let columns = (0..relation.columns.len()).map(|at| {
            paired
                .remove(&at)
                .unwrap_or_else(|| others.next().expect("a column for each of the rest"))
        });
        Ok((relation.rows, columns.collect()))
    }

    /// Columns of 8 bytes that one index leads to from all over the place, brought two by two:
    /// where they are in the relation, and what they are in place.
    fn gathered_in_pairs(&self, relation: &Relation) -> Result<HashMap<usize, Column>> {
        let (least_rows, least_bytes) =
            self.device.of_kind((PAIRED_ROWS, CACHED_BYTES), (1 << 12, 0));
        let mut found = HashMap::new();
        for (number, index) in relation.indices.iter().enumerate() {
            let Some(index) =
                index.as_ref().filter(|index| !index.gaps && relation.rows >= least_rows)
            else {
                continue;
            };
            let suits = |(of, column): &(usize, Column)| {
                let plain = column.is_plain() && column.validity.is_none();
                let large =
                    (column.len * 8 >= least_bytes) && column.len as u64 <= relation.rows * 2;
                *of == number && plain && column.width() == 8 && large
            };
            let places: Vec<usize> =
                (0..relation.columns.len()).filter(|at| suits(&relation.columns[*at])).collect();
            let numbers = index.rows.slice(index.offset as usize * 4);
            if places.len() < 2 || !is_scattered(&self.device, numbers, relation.rows)? {
                continue;
            }
            for pair in places.chunks_exact(2) {
                let of = |at: usize| &relation.columns[pair[at]].1;
                if of(0).len != of(1).len {
                    continue;
                }
                let data = |at: usize| of(at).data.slice(of(at).offset * 8);
                let pairs = match interleave(&self.device, data(0), data(1), of(0).len as u64) {
                    // One by one they need no room besides.
                    Err(error) if error.is_out_of_device_memory() => {
                        continue;
                    }
                    pairs => pairs?,
                };
                let gathered = gather_pairs(&self.device, &pairs, numbers, relation.rows)?;
                for (at, data) in gathered.into_iter().enumerate() {
                    let stats = Stats { unique: false, ascending: false, ..of(at).stats };
                    let column = Column::plain(
                        of(at).dtype.clone(),
                        relation.rows as usize,
                        Arc::new(data),
                        None,
                    );
                    found.insert(pair[at], Column { stats, ..column });
                }
            }
        }
        Ok(found)
    }

    /// The numbers of `rows` rows, `u32`: from 0 on, or from `down_from` down.
    pub(super) fn row_numbers(
        &self,
        operator: &'static str,
        rows: u64,
        down_from: Option<u64>,
    ) -> Result<Arc<Buffer>> {
        let places = FlowSource::Relation(Relation::dense(rows, vec![])?);
        let places = Flow::new(places, anonymous(&[])?);
        let (_, numbers) =
            materialize(&self.device, operator, &places, Codes::Keep, |generator, out| {
                Ok(vec![row_number(down_from, generator, out)])
            })?;
        Ok(numbers[0].data.clone())
    }

    /// The relation's rows in the order, or multiplicity, of row numbers.
    pub(super) fn reindexed(
        &self,
        relation: Relation,
        rows: u64,
        numbers: Arc<Buffer>,
    ) -> Result<Relation> {
        self.through(relation, rows, Index::of_rows(numbers))
    }

    /// The relation's rows in an order that has each of them once.
    pub(super) fn reordered(&self, relation: Relation, order: Arc<Buffer>) -> Result<Relation> {
        let rows = relation.rows;
        self.through(relation, rows, Index::of_order(order))
    }

    /// The relation's rows as an index names them.
    pub(super) fn through(&self, relation: Relation, rows: u64, direct: Index) -> Result<Relation> {
        let through = |index: &Option<Index>| {
            Ok(Some(match index {
                None => direct.clone(),
                Some(old) => self.composed(old, relation.rows, &direct, rows)?,
            }))
        };
        let indices = relation.indices.iter().map(through).collect::<Result<_>>()?;
        Ok(Relation { rows, indices, columns: relation.columns })
    }

    /// The numbers of `before` rows that `direct` names for each of `rows` rows.
    fn composed(&self, old: &Index, before: u64, direct: &Index, rows: u64) -> Result<Index> {
        let through = u32_column(old.rows.clone(), old.offset, before);
        let nested =
            Relation { rows, indices: vec![Some(direct.clone())], columns: vec![(0, through)] };
        let wanted = [WantedColumn::RowNumbers(0)];
        let columns = nested.gathered(&self.device, "row numbers", Rows::All, wanted)?;
        Ok(Index {
            gaps: direct.gaps || old.gaps,
            permutation: direct.permutation && old.permutation,
            ..Index::of_rows(columns[0].data.clone())
        })
    }

    /// Undoes `index`, a permutation among the relation's indices. Columns behind this index are
    /// then in place; the others are seen through its inverse.
    pub(super) fn back_in_place(&self, relation: Relation, index: &Index) -> Result<Relation> {
        let rows = relation.rows;
        let inverse = OnceCell::new();
        let direct = || -> Result<Index> {
            if inverse.get().is_none() {
                let made = inverse_of(&self.device, &index.rows, index.offset, rows)?;
                let _ = inverse.set(Index::of_order(Arc::new(made)));
            }
            Ok(inverse.get().expect("made above").clone())
        };
        let mut indices = vec![];
        for (at, old) in relation.indices.iter().enumerate() {
            let is_read = relation.columns.iter().any(|(of, _)| *of == at);
            indices.push(match old {
                Some(old) if old.is(index) => None,
                None if is_read => Some(direct()?),
                Some(old) if is_read => Some(self.composed(old, rows, &direct()?, rows)?),
                unread => unread.clone(),
            });
        }
        Ok(Relation { rows, indices, columns: relation.columns })
    }

    fn union(&self, pipelines: &[usize], schema: &DFSchemaRef) -> Result<Flow> {
        let mut parts = vec![];
        for number in pipelines {
            let flow = self.rows_of(*number)?;
            let width = schema.fields().len();
            parts.push(materialize(
                &self.device,
                "union",
                &flow,
                Codes::Decode,
                |generator, out| (0..width).map(|at| generator.column(at, out)).collect(),
            )?);
        }
        let rows: u64 = parts.iter().map(|(rows, _)| rows).sum();
        let columns = (schema.fields().iter().enumerate())
            .map(|(at, field)| {
                let pieces: Vec<_> = parts.iter().map(|(_, columns)| &columns[at]).collect();
                Column::concatenated(&self.device, field.data_type(), &pieces, rows as usize)
            })
            .collect::<Result<Vec<_>>>()?;
        Ok(Flow::new(FlowSource::Relation(Relation::dense(rows, columns)?), schema.clone()))
    }

    fn distinct(&self, flow: Flow) -> Result<Flow> {
        let schema = flow.schema().clone();
        let groups: Vec<Expr> = schema.columns().into_iter().map(Expr::Column).collect();
        self.grouped(flow, &groups, &[], schema)
    }
}

/// The digits of the key, where its columns are columns of the flow's source that have an integer
/// in every row.
pub(super) fn digits_of(
    flow: &Flow,
    keys: &[Expr],
    layout: &KeyLayout,
) -> Result<Option<Vec<Digit>>> {
    let (FlowSource::Relation(source), Some(digits)) = (&flow.source, layout.digits()) else {
        return Ok(None);
    };
    let mut found = vec![];
    for (key, (less, radix)) in keys.iter().zip(digits) {
        let Expr::Column(name) = key else { return Ok(None) };
        let at = flow.schema().index_of_column(name)?;
        let whole = flow.origin(at).is_some_and(|(index, column)| {
            let gaps = source.indices[index].as_ref().is_some_and(|index| index.gaps);
            !gaps && column.validity.is_none() && column.is_plain()
        });
        if !whole {
            return Ok(None);
        }
        found.push(Digit { at, less, radix });
    }
    Ok(Some(found))
}

/// A column of row numbers.
pub(super) fn u32_column(rows: Arc<Buffer>, offset: u64, len: u64) -> Column {
    let column = Column::plain(DataType::UInt32, len as usize, rows, None);
    Column { offset: offset as usize, ..column }
}

/// A column of this exact name. DataFusion's `col` would parse the name as SQL.
pub(super) fn column_named(name: impl Into<String>) -> Expr {
    Expr::Column(Name::new_unqualified(name))
}

/// A schema of nullable columns `c0`, `c1`, … of these types.
pub(super) fn anonymous(types: &[DataType]) -> Result<DFSchemaRef> {
    let fields = types.iter().enumerate().map(|(at, dtype)| {
        datafusion::arrow::datatypes::Field::new(format!("c{at}"), dtype.clone(), true)
    });
    Ok(Arc::new(DFSchema::from_unqualified_fields(fields.collect(), HashMap::new())?))
}
