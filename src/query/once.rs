//! Rows whose order nobody promised, and which a plan reads more than once.
//!
//! Groups and rows of joins come in another order each time they are computed, and two readers of
//! one query mostly compute it twice, since each is optimized for the columns that it reads. What
//! numbers or chooses rows by their order (`row_number() OVER ()`, LIMIT) would then see other rows
//! for each reader. So such rows are [`SharedRows`]: they are computed once.
//!
//! ```text
//!   Join: a.row = b.row                     Join: a.row = b.row
//!     Projection: …, row                      Projection: …, row
//!       row_number() OVER ()                    SharedRows 1
//!         Aggregate: k                        Filter: …
//!     Filter: …                                 SharedRows 1
//!       row_number() OVER ()
//!         Aggregate: k
//! ```
//!
//! It is looked for before the optimizer runs, while the readers' plans are still equal. Nothing is
//! shared where order decides nothing: because the rows come from a table in its order, because
//! keys of the order identify a row, or because whatever looks at the order stands above both
//! readers. Sums of floats have other last bits in another order, so that `x = (SELECT max(x) …)`
//! might find no row: two readers of such sums share them, too.

use std::collections::HashMap;

use datafusion::common::DFSchema;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::logical_expr::expr::{AggregateFunction, WindowFunction};
use datafusion::logical_expr::{
    Distinct, Expr, ExprSchemable, FetchType, Join, JoinType, LogicalPlan, SkipType, Volatility,
    WindowFrameUnits, WindowFunctionDefinition,
};

use super::SharedRows;
use super::hash::hash;
use crate::plan::{Reads, identity, is_foreign};

/// The plan in which such rows are shared. `stable`: operators that keep the order of their rows
/// keep that of rows that are equal in their keys, too, as those of a device do.
///
/// # Errors
/// None that is known.
pub(super) fn shared(mut plan: LogicalPlan, stable: bool) -> Result<LogicalPlan> {
    if !looks_at_order_twice(&plan)? {
        return Ok(plan);
    }
    loop {
        let mut operators = Operators { all: vec![], shared: HashMap::new(), stable };
        operators.add(&plan, None)?;
        let Some(rows) = operators.read_twice() else { return Ok(plan) };
        let (number, reads) = (SharedRows::number(), Reads::of(&rows));
        let shared = plan.transform_down_with_subqueries(|node| {
            if Reads::of(&node) != reads || node != rows {
                return Ok(Transformed::no(node));
            }
            Ok(Transformed::new(SharedRows::node(number, node), true, TreeNodeRecursion::Jump))
        })?;
        plan = shared.data;
    }
}

/// Whether two operators may look at the order of their rows: most plans have fewer, and need not
/// be looked at further.
fn looks_at_order_twice(plan: &LogicalPlan) -> Result<bool> {
    let mut found = 0;
    plan.apply_with_subqueries(|node| {
        found += usize::from(looks_at_order(node)?);
        Ok(if found > 1 { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found > 1)
}

/// Whether the rows of an operator may depend on the order of those of its input.
fn looks_at_order(node: &LogicalPlan) -> Result<bool> {
    let mut looks = match node {
        LogicalPlan::Limit(_) | LogicalPlan::Distinct(Distinct::On(_)) => true,
        LogicalPlan::Sort(sort) => sort.fetch.is_some(),
        _ => false,
    };
    each_call(node, |call, input| {
        looks |= call.is_placed() || call.rounds(input);
    })?;
    Ok(looks)
}

/// A call of a function over rows.
enum RowsCall<'a> {
    Window(&'a WindowFunction),
    Aggregate(&'a AggregateFunction),
}

/// Does something with the calls of an aggregation or of windows, and with the columns of its input.
fn each_call(node: &LogicalPlan, mut visit: impl FnMut(RowsCall<'_>, &DFSchema)) -> Result<()> {
    let (exprs, input) = match node {
        LogicalPlan::Window(window) => (&window.window_expr, &window.input),
        LogicalPlan::Aggregate(aggregate) => (&aggregate.aggr_expr, &aggregate.input),
        _ => return Ok(()),
    };
    for expr in exprs {
        expr.apply(|node| {
            match node {
                Expr::WindowFunction(call) => visit(RowsCall::Window(call), input.schema()),
                Expr::AggregateFunction(call) => visit(RowsCall::Aggregate(call), input.schema()),
                _ => return Ok(TreeNodeRecursion::Continue),
            }
            Ok(TreeNodeRecursion::Jump)
        })?;
    }
    Ok(())
}

impl RowsCall<'_> {
    /// Whether its value may be another where rows that its keys do not tell apart come in another
    /// order.
    fn is_placed(&self) -> bool {
        match self {
            RowsCall::Aggregate(call) => !is_of_a_set(call.func.name()),
            RowsCall::Window(call) => match &call.fun {
                WindowFunctionDefinition::WindowUDF(function) => {
                    !matches!(function.name(), "rank" | "dense_rank" | "percent_rank" | "cume_dist")
                }
                WindowFunctionDefinition::AggregateUDF(function) => {
                    let frame = &call.params.window_frame;
                    let whole = frame.start_bound.is_unbounded() && frame.end_bound.is_unbounded();
                    frame.units == WindowFrameUnits::Rows && !whole || !is_of_a_set(function.name())
                }
            },
        }
    }

    /// Whether it adds floats, whose sum has other last bits in another order.
    fn rounds(&self, input: &DFSchema) -> bool {
        const SUMS: [&str; 8] = ["avg", "corr", "covar", "mean", "regr", "stddev", "sum", "var"];
        let (name, args) = match self {
            RowsCall::Aggregate(call) => (call.func.name(), &call.params.args),
            RowsCall::Window(call) => (call.fun.name(), &call.params.args),
        };
        if !SUMS.iter().any(|sum| name.starts_with(sum)) {
            return false;
        }
        args.iter().any(|arg| {
            // Integers are added exactly, as far as these go.
            let added = match arg {
                Expr::Cast(cast) => &cast.expr,
                arg => arg,
            };
            added.get_type(input).is_ok_and(|dtype| dtype.is_floating())
        })
    }

    /// What tells its rows apart.
    fn keys(&self) -> Vec<&Expr> {
        let (partition, order) = match self {
            RowsCall::Aggregate(call) => (&[][..], &call.params.order_by),
            RowsCall::Window(call) => (&call.params.partition_by[..], &call.params.order_by),
        };
        partition.iter().chain(order.iter().map(|key| &key.expr)).collect()
    }
}

/// Whether an aggregate has one value in whatever order its rows come, but for rounding.
fn is_of_a_set(aggregate: &str) -> bool {
    const OF_SETS: [&str; 16] = [
        "approx_distinct",
        "avg",
        "bit_and",
        "bit_or",
        "bit_xor",
        "bool_and",
        "bool_or",
        "corr",
        "count",
        "grouping",
        "max",
        "mean",
        "median",
        "min",
        "percentile_cont",
        "sum",
    ];
    const FAMILIES: [&str; 4] = ["covar", "regr_", "stddev", "var"];
    OF_SETS.contains(&aggregate) || FAMILIES.iter().any(|family| aggregate.starts_with(family))
}

/// What is known of the rows of an operator.
#[derive(Debug, Clone, Default)]
struct KnownRows {
    /// They come in the same order each time.
    in_order: bool,
    /// Which rows there are, or what is in them, depends on an order that is not promised.
    unsure: bool,
    /// Places of columns that no two rows have the same values in.
    keys: Vec<Vec<usize>>,
}

/// Most keys of an operator that are known.
const MOST_KEYS: usize = 8;

impl KnownRows {
    /// Whether expressions over such rows tell all of them apart.
    fn told_apart<'a>(&self, exprs: impl IntoIterator<Item = &'a Expr>, schema: &DFSchema) -> bool {
        let places: Vec<usize> = exprs.into_iter().filter_map(|expr| place(expr, schema)).collect();
        self.keys.iter().any(|key| key.iter().all(|column| places.contains(column)))
    }
}

/// The place of the column that an expression is.
fn place(expr: &Expr, schema: &DFSchema) -> Option<usize> {
    match expr {
        Expr::Alias(alias) => place(&alias.expr, schema),
        Expr::Column(column) => schema.maybe_index_of_column(column),
        _ => None,
    }
}

/// An operator of a plan.
struct Operator {
    plan: LogicalPlan,
    /// Equal for equal plans.
    mark: u64,
    /// The operator that reads it.
    reader: Option<usize>,
    rows: KnownRows,
    /// It numbers or chooses rows by an order that is not promised.
    chooses: bool,
    /// Its rows can be computed by themselves, and once for all that ask for them.
    alone: bool,
}

/// The operators of a plan and of its subqueries, readers before what they read.
struct Operators {
    all: Vec<Operator>,
    /// What is known of rows that are shared already, by their numbers.
    shared: HashMap<u64, KnownRows>,
    stable: bool,
}

impl Operators {
    fn add(&mut self, plan: &LogicalPlan, reader: Option<usize>) -> Result<usize> {
        let at = self.all.len();
        let number = SharedRows::of(plan).map(|shared| shared.number);
        let (rows, own, mark) = (KnownRows::default(), plan.clone(), hash(&number));
        self.all.push(Operator { plan: own, mark, reader, rows, chooses: false, alone: true });
        if let Some(known) = number.and_then(|number| self.shared.get(&number)) {
            self.all[at].rows = known.clone();
            return Ok(at);
        }
        let mut below = vec![];
        // The rows of a recursive query's own steps are nobody else's.
        if !matches!(plan, LogicalPlan::RecursiveQuery(_)) {
            for input in plan.inputs() {
                below.push(self.add(input, Some(at))?);
            }
        }
        let inputs = below.len();
        let mut subqueries = vec![];
        plan.apply_subqueries(|subquery| {
            subqueries.push(subquery.clone());
            Ok(TreeNodeRecursion::Continue)
        })?;
        for subquery in &subqueries {
            below.push(self.add(subquery, Some(at))?);
        }
        let of_inputs: Vec<&KnownRows> =
            below[..inputs].iter().map(|input| &self.all[*input].rows).collect();
        let (mut rows, chooses) = self.known(plan, &of_inputs)?;
        rows.unsure |= chooses || below.iter().any(|below| self.all[*below].rows.unsure);
        let mut alone = below.iter().all(|below| self.all[*below].alone)
            && !plan.contains_outer_reference()
            && !is_volatile(plan)?;
        if let Some(number) = number {
            // A table, by the time that the plan runs.
            rows = KnownRows { in_order: true, unsure: false, keys: rows.keys };
            alone = true;
            self.shared.insert(number, rows.clone());
        }
        let table = match plan {
            LogicalPlan::TableScan(scan) => identity(scan),
            _ => 0,
        };
        let marks: Vec<u64> = below.iter().map(|below| self.all[*below].mark).collect();
        let operator = &mut self.all[at];
        if number.is_none() {
            operator.mark = hash(&(std::mem::discriminant(plan), table, marks));
        }
        (operator.rows, operator.chooses, operator.alone) = (rows, chooses, alone);
        Ok(at)
    }

    /// What is known of the rows of an operator over these inputs, and whether it chooses.
    fn known(&self, plan: &LogicalPlan, inputs: &[&KnownRows]) -> Result<(KnownRows, bool)> {
        let nothing = KnownRows::default();
        let input = inputs.first().copied().unwrap_or(&nothing);
        let of =
            |in_order: bool, keys: Vec<Vec<usize>>| KnownRows { in_order, unsure: false, keys };
        let same = || of(input.in_order, input.keys.clone());
        Ok(match plan {
            LogicalPlan::TableScan(scan) => (of(!is_foreign(scan), vec![]), false),
            LogicalPlan::Values(_) => (of(true, vec![]), false),
            LogicalPlan::EmptyRelation(_) => (of(true, vec![vec![]]), false),
            LogicalPlan::Projection(projection) => {
                let below = projection.input.schema();
                let moved: Vec<_> = projection.expr.iter().map(|expr| place(expr, below)).collect();
                let to = |column: &usize| moved.iter().position(|from| *from == Some(*column));
                let keys = input.keys.iter().filter_map(|key| key.iter().map(to).collect());
                (of(input.in_order, keys.collect()), false)
            }
            LogicalPlan::Sort(sort) => {
                let keys = sort.expr.iter().map(|key| &key.expr);
                let sorted =
                    input.told_apart(keys, sort.input.schema()) || input.in_order && self.stable;
                (of(sorted, input.keys.clone()), sort.fetch.is_some() && !sorted)
            }
            LogicalPlan::Limit(limit) => {
                let all = matches!(
                    (limit.get_skip_type()?, limit.get_fetch_type()?),
                    (SkipType::Literal(0), FetchType::Literal(None))
                );
                let one = limit.input.max_rows().is_some_and(|rows| rows <= 1);
                (same(), !input.in_order && !all && !one)
            }
            LogicalPlan::Distinct(Distinct::All(_)) => {
                (of(false, vec![(0..plan.schema().fields().len()).collect()]), false)
            }
            LogicalPlan::Distinct(Distinct::On(on)) => {
                let keys = on.sort_expr.iter().flatten().map(|key| &key.expr);
                (of(false, vec![]), !input.told_apart(keys, on.input.schema()))
            }
            LogicalPlan::Aggregate(aggregate) => {
                let keys = match aggregate.group_expr.as_slice() {
                    [Expr::GroupingSet(_)] => vec![],
                    keys => vec![(0..keys.len()).collect()],
                };
                let (chooses, rounds, _) = self.calls(plan, input)?;
                let rows = of(aggregate.group_expr.is_empty(), keys);
                (KnownRows { unsure: rounds, ..rows }, chooses)
            }
            LogicalPlan::Window(window) => {
                let width = window.input.schema().fields().len();
                let numbers = window.window_expr.iter().enumerate();
                let numbers = numbers.filter(|(_, expr)| is_number(expr));
                let numbers = numbers.map(|(at, _)| vec![width + at]);
                let keys = input.keys.iter().cloned().chain(numbers).take(MOST_KEYS).collect();
                let (chooses, rounds, moves) = self.calls(plan, input)?;
                (KnownRows { unsure: rounds, ..of(input.in_order && !moves, keys) }, chooses)
            }
            LogicalPlan::Join(join) => (of(false, keys_of_join(join, inputs)), false),
            LogicalPlan::Union(_) => (of(inputs.iter().all(|input| input.in_order), vec![]), false),
            LogicalPlan::Unnest(_) => (of(input.in_order, vec![]), false),
            LogicalPlan::Filter(_) | LogicalPlan::SubqueryAlias(_) | LogicalPlan::Subquery(_) => {
                (same(), false)
            }
            // Rows that are shared, which `add` knows.
            LogicalPlan::Extension(_) => (same(), false),
            LogicalPlan::RecursiveQuery(_) => (KnownRows::default(), looks_below(plan)?),
            _ => (KnownRows::default(), false),
        })
    }

    /// Whether calls over such rows number or choose them by an order that is not promised, whether
    /// their last bits depend on it, and whether the rows move.
    fn calls(&self, plan: &LogicalPlan, input: &KnownRows) -> Result<(bool, bool, bool)> {
        let (mut chooses, mut rounds, mut moves) = (false, false, false);
        each_call(plan, |call, columns| {
            let keys = call.keys();
            let is_window = matches!(call, RowsCall::Window(_));
            let has_keys = is_window && !keys.is_empty();
            // Partitions are made of rows as they come, and so are groups by several threads.
            let in_order = input.in_order && !has_keys && (is_window || self.stable);
            let sure = in_order || input.told_apart(keys, columns);
            chooses |= call.is_placed() && !sure;
            rounds |= !in_order && call.rounds(columns);
            moves |= has_keys;
        })?;
        Ok((chooses, rounds, moves))
    }

    /// Rows of which several readers would see different ones; those that hold others first.
    fn read_twice(&self) -> Option<LogicalPlan> {
        let mut equal: Vec<Vec<usize>> = vec![];
        let mut marked: HashMap<u64, Vec<usize>> = HashMap::new();
        for (at, operator) in self.all.iter().enumerate() {
            let sure = operator.rows.in_order && !operator.rows.unsure;
            if sure || !operator.alone || !is_of_rows(&operator.plan) {
                continue;
            }
            let of_mark = marked.entry(operator.mark).or_default();
            match of_mark.iter().find(|of| self.all[equal[**of][0]].plan == operator.plan) {
                Some(of) => equal[*of].push(at),
                None => {
                    of_mark.push(equal.len());
                    equal.push(vec![at]);
                }
            }
        }
        let of = equal.into_iter().find(|of| of.len() > 1 && self.differ(of))?;
        Some(self.all[of[0]].plan.clone())
    }

    /// Whether equal operators may yield other rows each, or have their order looked at by an
    /// operator that is not above all of them.
    fn differ(&self, equal: &[usize]) -> bool {
        if self.all[equal[0]].rows.unsure {
            return true;
        }
        let above: Vec<Vec<usize>> = equal.iter().map(|at| self.choosing_above(*at)).collect();
        let of_all = |at: &usize| above.iter().all(|above| above.contains(at));
        above.iter().filter(|above| !above.iter().all(of_all)).count() > 1
    }

    fn choosing_above(&self, at: usize) -> Vec<usize> {
        let readers = std::iter::successors(self.all[at].reader, |at| self.all[*at].reader);
        readers.filter(|at| self.all[*at].chooses).collect()
    }
}

/// Whether an expression is the number of a row among all.
fn is_number(expr: &Expr) -> bool {
    match expr {
        Expr::Alias(alias) => is_number(&alias.expr),
        Expr::WindowFunction(call) => {
            call.fun.name() == "row_number" && call.params.partition_by.is_empty()
        }
        _ => false,
    }
}

fn keys_of_join(join: &Join, inputs: &[&KnownRows]) -> Vec<Vec<usize>> {
    let [left, right] = inputs else { return vec![] };
    match join.join_type {
        JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark => left.keys.clone(),
        JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark => right.keys.clone(),
        JoinType::Inner | JoinType::Left | JoinType::Right | JoinType::Full => {
            let width = join.left.schema().fields().len();
            let behind = |column: &usize| width + column;
            let pairs = left.keys.iter().flat_map(|one| {
                let pair = |other: &Vec<usize>| {
                    one.iter().copied().chain(other.iter().map(behind)).collect()
                };
                right.keys.iter().map(pair).collect::<Vec<_>>()
            });
            pairs.take(MOST_KEYS).collect()
        }
    }
}

/// Whether an operator yields rows that another can read.
fn is_of_rows(plan: &LogicalPlan) -> bool {
    !matches!(
        plan,
        LogicalPlan::Subquery(_)
            | LogicalPlan::Extension(_)
            | LogicalPlan::Statement(_)
            | LogicalPlan::Explain(_)
            | LogicalPlan::Analyze(_)
            | LogicalPlan::Dml(_)
            | LogicalPlan::Ddl(_)
            | LogicalPlan::Copy(_)
            | LogicalPlan::DescribeTable(_)
    )
}

/// Whether an operator of the plan looks at the order of its rows.
fn looks_below(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.apply_with_subqueries(|node| {
        found |= looks_at_order(node)?;
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(found)
}

/// Whether an operator calls a function that each reader is to call anew.
pub(super) fn is_volatile(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.apply_expressions(|expr| {
        found |= expr.exists(|node| {
            Ok(match node {
                Expr::ScalarFunction(call) => {
                    call.func.signature().volatility == Volatility::Volatile
                }
                _ => false,
            })
        })?;
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(found)
}
