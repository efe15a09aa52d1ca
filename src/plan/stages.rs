//! A plan in stages: fragments that tasks run side by side, and the exchanges between them.
//!
//! ```text
//!   aggregate                 finished(partial results of equal keys)
//!     join                      ▲ parted by a hash of the keys
//!       lineitem              partial(join(part of lineitem, all of supplier))
//!       supplier                             ▲ row groups      ▲ whole, for each task
//! ```
//!
//! A [`Stage`] is one fragment, which runs once for each part of its rows. [`stages`] follows the
//! plan's [`Division`]: what the divider does one part after the other, tasks do side by side. An
//! operator that nothing is known of for several tasks is run by one task over all rows, which is
//! always right. A sort is one of each task's rows, and their merge.
//!
//! Rows are parted by a hash of their keys, unless those of equal keys are of one task already
//! (`stages/parting.rs`). Keys that are no columns become columns of the fragment
//! below. The hash is DataFusion's or, between devices of one process, the device's. DataFusion's
//! hash is one of bits: rows are not parted by keys that may be equal with different bits (floats),
//! nor by nested ones.

mod columns;
mod join;
mod parting;
mod repeated;

use std::sync::Arc;

use datafusion::arrow::compute::SortOptions;
use datafusion::logical_expr::{
    Distinct, Expr, FetchType, Limit, LogicalPlan, SkipType, Sort, SortExpr, TableScan, Union, lit,
};

use self::columns::{are_plain, handed_on, numbered, options, read_again, with_keys};
use self::parting::{Parting, are_together, common, through};
use self::repeated::Repeated;
use super::division::{DividedOperator, Division, Way};
use super::tables::{TablePlaceholder, placeholder_number};
use super::two_steps::TwoSteps;
use super::walk::over;
use crate::error::{Error, Result};

pub(super) use self::columns::STAGE;
pub(crate) use self::columns::order_of;
pub(crate) use self::parting::{Cuts, TableCuts, may_be_cut, task_by_cuts};

/// Partial results of so many bytes are merged by one task: several would wait longer for one another
/// than it takes to merge them. An estimate.
pub(crate) const GATHERED: u64 = 16 << 20;

/// What stages follow from, beside the plan and its division.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StageLimits<'a> {
    /// Tasks of a stage.
    pub(crate) tasks: usize,
    pub(crate) place: TaskPlace,
    /// Partial results that take at most so many bytes once they are merged are merged by one task.
    pub(crate) gathered: u64,
    /// How the plan's tables lie, by their numbers, as far as they are cut by keys.
    pub(crate) tables: &'a [Option<TableCuts>],
}

/// Where tasks run, from which follows how the sides of a join meet.
#[derive(Debug, Clone, Copy)]
pub(crate) enum TaskPlace {
    /// In any processes, between which DataFusion's hash parts rows. A side of a join of at most
    /// `broadcast` bytes is given whole to each task.
    Processes { broadcast: u64 },
    /// On devices of one process. Their own hash parts rows, by keys of any type. Sides meet in the
    /// least expensive way (`stages/join.rs`). An exchange of hardly any rows takes as long as a
    /// device's memory takes for `exchange` bytes.
    Devices { exchange: u64 },
}

impl StageLimits<'_> {
    fn on_devices(&self) -> bool {
        matches!(self.place, TaskPlace::Devices { .. })
    }
}

/// A fragment of a plan, which one task or several run.
#[derive(Debug, Clone)]
pub(crate) struct Stage {
    /// Over placeholders, which stand for the inputs by their numbers.
    pub(crate) fragment: LogicalPlan,
    pub(crate) inputs: Vec<StageInput>,
}

/// Where rows of a stage come from, and which of them a task gets.
#[derive(Debug, Clone)]
pub(crate) struct StageInput {
    pub(crate) rows: StageRows,
    pub(crate) role: InputRole,
}

impl StageInput {
    /// Whether both give a task the same rows.
    fn is_same(&self, other: &StageInput) -> bool {
        match (&self.rows, &other.rows) {
            (StageRows::Stage(own), StageRows::Stage(stage)) => {
                Arc::ptr_eq(own, stage) && self.role == other.role
            }
            (StageRows::Table(own), StageRows::Table(number)) => {
                own == number && self.role == other.role
            }
            _ => false,
        }
    }
}

/// What yields the rows of an input.
#[derive(Debug, Clone)]
pub(crate) enum StageRows {
    /// A table of the plan, by its number.
    Table(usize),
    Stage(Arc<Stage>),
}

/// Which rows of an input a task gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum InputRole {
    /// Those of its own partition of the input.
    Part,
    /// Those of its own partition, after the input was parted by a hash of these columns.
    ByKeys(Vec<usize>),
    /// Those of its own partition, after the input was cut so: between devices of one process.
    ByCuts(TableCuts),
    /// All.
    Whole,
    /// All, in the order of these columns: the input's partitions have it, and are merged.
    InOrder(ColumnOrder),
    /// The first task gets all, the others none.
    First,
}

impl InputRole {
    /// Whether tasks get different rows.
    pub(crate) fn is_parted(&self) -> bool {
        !matches!(self, InputRole::Whole | InputRole::InOrder(_))
    }
}

/// Columns that rows are ordered by, the first one first.
pub(crate) type ColumnOrder = Vec<(usize, SortOptions)>;

impl Stage {
    /// The columns of its one input that the fragment hands on, where it does nothing else.
    pub(crate) fn handed_on(&self) -> Option<Vec<usize>> {
        match self.inputs.as_slice() {
            [_] => handed_on(&self.fragment),
            _ => None,
        }
    }
}

/// The stages of a plan over placeholders, which has its joins in order: the last one, whose inputs
/// have the others.
///
/// # Errors
/// Of plans that do not fit together.
pub(crate) fn stages(
    plan: &LogicalPlan,
    division: &Division,
    limits: StageLimits<'_>,
) -> Result<Stage> {
    let repeated = if limits.on_devices() { Repeated::of(plan)? } else { Repeated::default() };
    let rows = Cutter { limits, repeated }.rows_of(plan, &division.root)?;
    Ok(Stage { fragment: rows.plan, inputs: rows.inputs })
}

/// Rows that a fragment yields, which is not ended yet.
#[derive(Clone)]
struct FragmentRows {
    plan: LogicalPlan,
    inputs: Vec<StageInput>,
    /// What tells the task of a row, each for itself.
    partings: Vec<Parting>,
    /// Bytes of the columns of tables that all tasks together read.
    reads: u64,
}

impl FragmentRows {
    /// Whether tasks yield different rows; otherwise one task yields all.
    fn is_parted(&self) -> bool {
        self.inputs.iter().any(|input| input.role.is_parted())
    }

    /// The rows through an operator that leaves partings what they are.
    fn map(self, operator: impl FnOnce(LogicalPlan) -> Result<LogicalPlan>) -> Result<Self> {
        Ok(FragmentRows { plan: operator(self.plan)?, ..self })
    }

    /// The rows through an operator of a plan.
    fn through(self, operator: &LogicalPlan) -> Result<Self> {
        let partings = through(operator, &self.partings);
        Ok(FragmentRows { partings, ..self.map(|input| over(operator, input))? })
    }

    /// The fragments of several inputs as one, by what is made of their plans.
    fn together(
        all: Vec<FragmentRows>,
        partings: Vec<Parting>,
        operator: impl FnOnce(Vec<LogicalPlan>) -> Result<LogicalPlan>,
    ) -> Result<FragmentRows> {
        let (mut plans, mut inputs) = (vec![], Vec::<StageInput>::new());
        let reads = all.iter().map(|rows| rows.reads).fold(0, u64::saturating_add);
        for rows in all {
            let mut numbers = vec![];
            for input in rows.inputs {
                // They are read once.
                let known = inputs.iter().position(|known| known.is_same(&input));
                numbers.push(known.unwrap_or(inputs.len()));
                if known.is_none() {
                    inputs.push(input);
                }
            }
            plans.push(numbered(rows.plan, &numbers)?);
        }
        Ok(FragmentRows { plan: operator(plans)?, inputs, partings, reads })
    }

    /// The fragment is ended; another one reads its rows.
    fn ended(self, role: InputRole) -> Result<FragmentRows> {
        let shown = self.plan.schema().fields().len();
        self.ended_with(role, shown)
    }

    /// The fragment is ended; another one reads its first columns.
    fn ended_with(self, role: InputRole, shown: usize) -> Result<FragmentRows> {
        let fragment = match self.plan.schema().fields().is_empty() {
            // An exchange may write its rows into files, which do not count rows without columns.
            true => with_keys(self.plan, &[lit(true)])?.0,
            false => self.plan,
        };
        let plan = read_again(fragment.schema(), shown)?;
        let stage = Arc::new(Stage { fragment, inputs: self.inputs });
        let partings = match &role {
            InputRole::ByKeys(columns) if columns.iter().all(|at| *at < shown) => {
                vec![Parting::Hash { columns: columns.clone() }]
            }
            InputRole::Part => self.partings,
            _ => vec![],
        };
        let inputs = vec![StageInput { rows: StageRows::Stage(stage), role }];
        Ok(FragmentRows { plan, inputs, partings, reads: 0 })
    }

    /// All rows for one task.
    fn gathered(self) -> Result<FragmentRows> {
        match self.is_parted() {
            true => self.ended(InputRole::Whole),
            false => Ok(self),
        }
    }
}

/// Keys of which an operator takes all rows that have equal ones at once; none where it takes all.
fn keys_of(plan: &LogicalPlan, division: &DividedOperator) -> Vec<Expr> {
    match (plan, &division.way) {
        (LogicalPlan::Aggregate(aggregate), _) => aggregate.group_expr.clone(),
        (LogicalPlan::Distinct(Distinct::All(input)), _) => {
            input.schema().columns().into_iter().map(Expr::Column).collect()
        }
        (LogicalPlan::Window(_), Way::ByKeys { keys, .. }) => keys.clone(),
        _ => vec![],
    }
}

/// Cuts a plan into stages.
struct Cutter<'a> {
    limits: StageLimits<'a>,
    repeated: Repeated<'a>,
}

impl Cutter<'_> {
    fn rows_of(&self, plan: &LogicalPlan, division: &DividedOperator) -> Result<FragmentRows> {
        let Some(part) = self.repeated.part(plan) else {
            return self.rows_of_operator(plan, division);
        };
        if let Some(rows) = &*part.rows.borrow() {
            return Ok(rows.clone());
        }
        let rows = self.rows_of_operator(plan, division)?;
        let role = if rows.is_parted() { InputRole::Part } else { InputRole::Whole };
        let rows = rows.ended(role)?;
        Ok(part.rows.borrow_mut().insert(rows).clone())
    }

    fn rows_of_operator(
        &self,
        plan: &LogicalPlan,
        division: &DividedOperator,
    ) -> Result<FragmentRows> {
        match plan {
            LogicalPlan::TableScan(scan) => self.scan(scan, division),
            LogicalPlan::Values(_) | LogicalPlan::EmptyRelation(_) => {
                let plan = plan.clone();
                Ok(FragmentRows { plan, inputs: vec![], partings: vec![], reads: 0 })
            }
            LogicalPlan::SubqueryAlias(_)
            | LogicalPlan::Projection(_)
            | LogicalPlan::Filter(_)
            | LogicalPlan::Unnest(_) => self.input(plan, division)?.through(plan),
            LogicalPlan::Union(union) => self.union(union, division),
            LogicalPlan::Limit(limit) => self.limit(limit, plan, division),
            LogicalPlan::Join(join) => self.join(join, division),
            _ => self.of_all_rows(plan, division),
        }
    }

    fn input(&self, plan: &LogicalPlan, division: &DividedOperator) -> Result<FragmentRows> {
        let inputs = plan.inputs();
        let [input] = inputs.as_slice() else {
            return Err(Error::internal(format!("{} has no one input", plan.display())));
        };
        self.rows_of(input, division.input(0)?)
    }

    fn scan(&self, scan: &TableScan, division: &DividedOperator) -> Result<FragmentRows> {
        let number = placeholder_number(&scan.source)
            .ok_or_else(|| Error::internal("stages are cut of plans over placeholders"))?;
        let own =
            TableScan { source: TablePlaceholder::source(0, scan.source.schema()), ..scan.clone() };
        let role = match self.limits.tasks > 1 {
            true => InputRole::Part,
            false => InputRole::Whole,
        };
        let cuts = self.limits.tables.get(number).and_then(|cuts| cuts.as_ref());
        let place = |column: usize| match &scan.projection {
            Some(columns) => columns.iter().position(|at| *at == column),
            None => Some(column),
        };
        let parting = cuts
            .filter(|_| role == InputRole::Part)
            .and_then(|of| Some(Parting::Cut { column: place(of.column)?, cuts: of.cuts.clone() }));
        let inputs = vec![StageInput { rows: StageRows::Table(number), role }];
        let partings = parting.into_iter().collect();
        let reads = match &division.way {
            Way::Chunks { bytes, .. } => bytes.unwrap_or(0),
            _ => 0,
        };
        Ok(FragmentRows { plan: LogicalPlan::TableScan(own), inputs, partings, reads })
    }

    /// An operator that takes all rows, or all of equal keys, at once.
    fn of_all_rows(&self, plan: &LogicalPlan, division: &DividedOperator) -> Result<FragmentRows> {
        if let Way::DistinctFirst(instead) = &division.way
            && !self.has_together(plan, division)?
        {
            return self.rows_of(&instead.0, &instead.1);
        }
        let input = self.input(plan, division)?;
        if self.limits.on_devices() && are_together(&input, &keys_of(plan, division)) {
            return input.through(plan);
        }
        if !input.is_parted() {
            return input.through(plan);
        }
        if let LogicalPlan::Sort(sort) = plan
            && sort.fetch.is_none()
            && !self.limits.on_devices()
        {
            return self.sorted(input, sort);
        }
        match &division.way {
            Way::TwoSteps { steps, bytes, .. } => self.in_two_steps(input, steps, *bytes),
            Way::ByKeys { keys, .. } => self.parted_by(input, keys)?.through(plan),
            _ => input.gathered()?.through(plan),
        }
    }

    /// Whether the rows that an operator takes are of one task where their keys are equal.
    fn has_together(&self, plan: &LogicalPlan, division: &DividedOperator) -> Result<bool> {
        let keys = keys_of(plan, division);
        Ok(self.limits.on_devices() && are_together(&self.input(plan, division)?, &keys))
    }

    /// Partial results of each task, merged by one of them where they are few.
    fn in_two_steps(
        &self,
        input: FragmentRows,
        steps: &TwoSteps,
        bytes: Option<u64>,
    ) -> Result<FragmentRows> {
        let partial = input.map(|input| steps.partial(input))?;
        let are_few = bytes.is_some_and(|bytes| bytes <= self.limits.gathered);
        let parted = match steps.keys(partial.plan.schema()) {
            Some(keys) if !are_few => self.parted_by(partial, &keys)?,
            _ => partial.gathered()?,
        };
        parted.map(|input| steps.finished(input))
    }

    /// Each task sorts its rows, and who reads them merges them; one task sorts all of them where
    /// they cannot be merged.
    fn sorted(&self, input: FragmentRows, sort: &Sort) -> Result<FragmentRows> {
        let schema = input.plan.schema().clone();
        let keys: Vec<Expr> = sort.expr.iter().map(|key| key.expr.clone()).collect();
        if !are_plain(&keys, &schema) {
            return input.gathered()?.map(|input| sort_of(sort.expr.clone(), input));
        }
        let (plan, columns) = with_keys(input.plan, &keys)?;
        let names = plan.schema().columns();
        let key = |(at, key): (&usize, &SortExpr)| SortExpr {
            expr: Expr::Column(names[*at].clone()),
            ..key.clone()
        };
        let by_columns = columns.iter().zip(&sort.expr).map(key).collect();
        let order = columns.iter().copied().zip(sort.expr.iter().map(options)).collect();
        let sorted = sort_of(by_columns, plan)?;
        FragmentRows { plan: sorted, inputs: input.inputs, partings: vec![], reads: 0 }
            .ended_with(InputRole::InOrder(order), schema.fields().len())
    }

    /// The rows, parted by a hash of keys; all of them for one task where that cannot be.
    fn parted_by(&self, rows: FragmentRows, keys: &[Expr]) -> Result<FragmentRows> {
        let schema = rows.plan.schema().clone();
        if !self.limits.on_devices() && !are_plain(keys, &schema) {
            return rows.gathered();
        }
        let (plan, columns) = with_keys(rows.plan, keys)?;
        // Who reads them does not see the keys.
        FragmentRows { plan, inputs: rows.inputs, partings: vec![], reads: 0 }
            .ended_with(InputRole::ByKeys(columns), schema.fields().len())
    }

    /// Tasks yield their parts of each input, or the first one all of it.
    fn union(&self, union: &Union, division: &DividedOperator) -> Result<FragmentRows> {
        let mut all = vec![];
        for (number, input) in union.inputs.iter().enumerate() {
            all.push(self.rows_of(input, division.input(number)?)?);
        }
        if all.iter().any(FragmentRows::is_parted) {
            let first = |rows: FragmentRows| match rows.is_parted() {
                true => self.beside(rows),
                false => rows.ended(InputRole::First),
            };
            all = all.into_iter().map(first).collect::<Result<_>>()?;
        }
        let partings = common(&all);
        FragmentRows::together(all, partings, |plans| {
            let inputs = plans.into_iter().map(Arc::new).collect();
            Ok(LogicalPlan::Union(Union { inputs, schema: union.schema.clone() }))
        })
    }

    /// Each task yields as many rows as may be wanted.
    fn limit(
        &self,
        limit: &Limit,
        plan: &LogicalPlan,
        division: &DividedOperator,
    ) -> Result<FragmentRows> {
        let mut rows = self.input(plan, division)?;
        if rows.is_parted() {
            if let (SkipType::Literal(skip), FetchType::Literal(Some(fetch))) =
                (limit.get_skip_type()?, limit.get_fetch_type()?)
                && let Ok(enough) = i64::try_from(skip.saturating_add(fetch))
            {
                rows = rows.map(|input| {
                    let fetch = Some(Box::new(lit(enough)));
                    Ok(LogicalPlan::Limit(Limit { skip: None, fetch, input: Arc::new(input) }))
                })?;
            }
            rows = rows.gathered()?;
        }
        rows.through(plan)
    }
}

fn sort_of(keys: Vec<SortExpr>, input: LogicalPlan) -> Result<LogicalPlan> {
    Ok(LogicalPlan::Sort(Sort { expr: keys, input: Arc::new(input), fetch: None }))
}
