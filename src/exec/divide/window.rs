//! Windows of which one partition does not fit: the rows are sorted, and what is asked is learned
//! as they go by in that order.
//!
//! ```text
//!   forwards    what the rows up to each say: running counts, sums, extrema, ranks
//!   backwards   what later rows say: the value at the last peer, at the partition's last row
//!   in place    what rows at a fixed distance say: a chunk with some rows before and behind it
//! ```
//!
//! `sum(x) OVER (ORDER BY d)`, whose frame ends with the row's peers, is the running sum at the
//! last of these: it goes forwards, then backwards. The share of a rank needs the partition's last
//! row number. `sweep.rs` has the passes.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::functions_aggregate::count::count_udaf;
use datafusion::functions_aggregate::sum::sum_udaf;
use datafusion::functions_window::nth_value::{first_value_udwf, last_value_udwf};
use datafusion::functions_window::rank::{dense_rank_udwf, rank_udwf};
use datafusion::functions_window::row_number::row_number_udwf;
use datafusion::logical_expr::expr::{
    NullTreatment, WindowFunction, WindowFunctionDefinition, WindowFunctionParams,
};
use datafusion::logical_expr::{
    Expr, ExprSchemable, LogicalPlan, Projection, SortExpr, Window, WindowFrame, WindowFrameBound,
    WindowFrameUnits, cast, lit, when,
};

use super::Divider;
use super::group::DividedRows;
use super::sweep::{Carried, SweptCall, unqualified};
use crate::codegen::AggregateKind;
use crate::error::{Error, Result};
use crate::plan::{
    Bound, Frame, WindowCall, WindowKeys, WindowKind, average, device_window, placeholder,
    projected,
};

impl Divider<'_> {
    /// Windows over rows of which one partition does not fit.
    ///
    /// # Errors
    /// `Unsupported` where a call's frame is of another kind.
    pub(super) async fn windows_in_order(
        &mut self,
        window: &Window,
        input: DividedRows,
    ) -> Result<DividedRows> {
        let of_input: Vec<Expr> = input.schema.columns().into_iter().map(Expr::Column).collect();
        let calls = window.window_expr.iter().enumerate();
        let mut pending = calls
            .map(|(at, expr)| OrderedCall::new(at, expr, window))
            .collect::<Result<Vec<_>>>()?;
        let results: Vec<Expr> = pending.iter().map(|call| unqualified(&call.name)).collect();
        let mut rows = input;
        while let Some(first) = pending.first() {
            let keys = first.device.keys.clone();
            let (now, later) = pending.into_iter().partition(|call| call.device.keys == keys);
            rows = self.windows_of_one_order(rows, &keys, now).await?;
            pending = later;
        }
        let exprs: Vec<Expr> = of_input.into_iter().chain(results).collect();
        rows.through(&window.schema, |input| projected(input, exprs.clone(), window.schema.clone()))
    }

    async fn windows_of_one_order(
        &mut self,
        input: DividedRows,
        keys: &WindowKeys,
        calls: Vec<OrderedCall>,
    ) -> Result<DividedRows> {
        let of_input: Vec<Expr> = input.schema.columns().into_iter().map(Expr::Column).collect();
        let (rows, keys) = with_keys(input, keys)?;
        let by: Vec<SortExpr> =
            keys.partition.iter().map(|key| key.clone().sort(true, true)).collect();
        let by: Vec<SortExpr> = by.into_iter().chain(keys.order.iter().cloned()).collect();
        let rows = if by.is_empty() { rows } else { self.sorted(&rows, &by).await? };
        let mut stored = self.collect(&rows, self.budget.stored).await?;
        drop(rows);
        let mut results: Vec<Expr> = of_input;
        let (near, running): (Vec<_>, Vec<_>) =
            calls.into_iter().partition(|call| call.neighbours().is_some());
        if !near.is_empty() {
            let distances = near.iter().filter_map(OrderedCall::neighbours);
            let most = distances
                .fold([0, 0], |most, [before, behind]| [most[0].max(before), most[1].max(behind)]);
            let exprs = near.iter().map(|call| call.in_order(&keys).alias(&call.name)).collect();
            stored = self.beside_neighbours(stored, exprs, most)?;
            results.extend(near.iter().map(|call| unqualified(&call.name)));
        }
        let mut sweeps = Sweeps::new(&keys);
        for call in &running {
            let value = sweeps.value(call, &stored.schema)?;
            results.push(value.alias(&call.name));
        }
        let Sweeps { forwards, backwards, .. } = sweeps;
        for (calls, backwards) in [(forwards, false), (backwards, true)] {
            if !calls.is_empty() {
                stored = self.swept(stored, &keys, calls, backwards)?;
            }
        }
        let rows = DividedRows::stored(stored);
        let schema =
            Projection::try_new(results.clone(), placeholder(0, &rows.schema).into())?.schema;
        rows.through(&schema, |input| {
            Ok(LogicalPlan::Projection(Projection::try_new_with_schema(
                results.clone(),
                input.into(),
                schema.clone(),
            )?))
        })
    }
}

/// Whether rows of which one partition does not fit can go by in order.
pub(super) fn goes_in_order(window: &Window) -> bool {
    let can_be = |(at, expr)| -> Result<bool> {
        let call = OrderedCall::new(at, expr, window)?;
        let keys = call.device.keys.clone();
        Ok(call.neighbours().is_some()
            || Sweeps::new(&keys).value(&call, window.input.schema()).is_ok())
    };
    window.window_expr.iter().enumerate().all(|call| can_be(call).unwrap_or(false))
}

/// A window call of the query.
struct OrderedCall {
    device: WindowCall,
    call: WindowFunction,
    /// The column of its result.
    name: String,
}

impl OrderedCall {
    fn new(at: usize, expr: &Expr, window: &Window) -> Result<OrderedCall> {
        let unsupported = |why: String| Error::unsupported("window in parts", why);
        let device = device_window(expr, window.input.schema()).map_err(unsupported)?;
        let Expr::WindowFunction(call) = expr.clone().unalias() else {
            return Err(unsupported(format!("{expr} is no window function")));
        };
        Ok(OrderedCall { device, call: *call, name: format!("window {at}") })
    }

    /// How many rows before and behind a row decide about its result, if that is the same for all.
    fn neighbours(&self) -> Option<[u64; 2]> {
        let reach =
            |distance: i64| [(-distance).max(0).unsigned_abs(), distance.max(0).unsigned_abs()];
        match (&self.device.function, self.device.frame) {
            (WindowKind::Shift { skip_nulls: false, rows, .. }, _) => Some(reach(-rows)),
            (
                WindowKind::Place { .. }
                | WindowKind::Aggregate(_)
                | WindowKind::Variance { .. }
                | WindowKind::Bits { .. }
                | WindowKind::Regrouped(_),
                Frame { start: Bound::Rows(start), end: Bound::Rows(end) },
            ) => Some([reach(start)[0], reach(end)[1]]),
            _ => None,
        }
    }

    /// The call with keys that are columns.
    fn in_order(&self, keys: &WindowKeys) -> Expr {
        let mut call = self.call.clone();
        call.params.partition_by = keys.partition.clone();
        call.params.order_by = keys.order.clone();
        Expr::from(call)
    }
}

/// The rows with the keys that are no columns as further ones, and the keys as columns.
fn with_keys(rows: DividedRows, keys: &WindowKeys) -> Result<(DividedRows, WindowKeys)> {
    let mut exprs: Vec<Expr> = rows.schema.columns().into_iter().map(Expr::Column).collect();
    let width = exprs.len();
    let mut column = |key: &Expr| match key {
        Expr::Column(_) => key.clone(),
        key => {
            let name = format!("window key {}", exprs.len());
            exprs.push(key.clone().alias(&name));
            unqualified(&name)
        }
    };
    let partition = keys.partition.iter().map(&mut column).collect();
    let order =
        keys.order.iter().map(|key| SortExpr { expr: column(&key.expr), ..key.clone() }).collect();
    let keys = WindowKeys { partition, order };
    if exprs.len() == width {
        return Ok((rows, keys));
    }
    let schema = Projection::try_new(exprs.clone(), placeholder(0, &rows.schema).into())?.schema;
    let rows = rows.through(&schema, |input| {
        Ok(LogicalPlan::Projection(Projection::try_new_with_schema(
            exprs.clone(),
            input.into(),
            schema.clone(),
        )?))
    })?;
    Ok((rows, keys))
}

/// Until which row a value counts.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Until {
    Row,
    LastPeer,
    LastRow,
}

/// What is to be learned of rows as they go by.
struct Sweeps<'a> {
    keys: &'a WindowKeys,
    forwards: Vec<SweptCall>,
    backwards: Vec<SweptCall>,
    /// What the columns of the sweep backwards are of.
    taken: Vec<(Expr, Until)>,
}

impl<'a> Sweeps<'a> {
    fn new(keys: &'a WindowKeys) -> Self {
        Sweeps { keys, forwards: vec![], backwards: vec![], taken: vec![] }
    }

    /// The call's result, of columns that the sweeps yield.
    fn value(&mut self, call: &OrderedCall, schema: &DFSchema) -> Result<Expr> {
        let until = match call.device.frame.end {
            Bound::Rows(0) => Some(Until::Row),
            Bound::Groups(0) => Some(Until::LastPeer),
            Bound::Unbounded => Some(Until::LastRow),
            _ => None,
        };
        let until = until.filter(|_| call.device.frame.start == Bound::Unbounded);
        let other_frame = || {
            Error::unsupported(
                "window in parts",
                format!("the frame of {}", Expr::from(call.call.clone())),
            )
        };
        let function = |name| Expr::from(WindowFunction::new(name, vec![]));
        let count = |expr: Expr| cast(expr, DataType::Int64);
        let of_its_type = |expr: Expr| cast(expr, call.device.dtype.clone());
        Ok(match &call.device.function {
            WindowKind::RowNumber => of_its_type(self.row_number()),
            WindowKind::Rank => of_its_type(self.rank()),
            WindowKind::DenseRank => {
                of_its_type(self.state(function(dense_rank_udwf()), Carried::DenseRank))
            }
            WindowKind::PercentRank => {
                let (rank, rows) = (self.rank(), self.row_number());
                let others = self.until(rows, Until::LastRow) - lit(1u64);
                let share = cast(rank - lit(1u64), DataType::Float64)
                    / cast(others.clone(), DataType::Float64);
                when(others.eq(lit(0u64)), lit(0f64)).otherwise(share)?
            }
            WindowKind::CumeDist => {
                let rows = self.row_number();
                let (peer, all) =
                    (self.until(rows.clone(), Until::LastPeer), self.until(rows, Until::LastRow));
                cast(peer, DataType::Float64) / cast(all, DataType::Float64)
            }
            WindowKind::Tile(tiles) => {
                // The first tiles have a row more than the others, as many as are left over.
                let rows = self.row_number();
                let (row, all) =
                    (count(rows.clone()) - lit(1i64), count(self.until(rows, Until::LastRow)));
                let tiles = lit(i64::try_from(*tiles).unwrap_or(i64::MAX));
                let (least, over) = (all.clone() / tiles.clone(), all % tiles);
                let larger = over.clone() * (least.clone() + lit(1i64));
                let in_larger = row.clone() / (least.clone() + lit(1i64)) + lit(1i64);
                let some = when(least.clone().eq(lit(0i64)), lit(1i64)).otherwise(least)?;
                let behind = over + (row.clone() - larger.clone()) / some + lit(1i64);
                of_its_type(when(row.lt(larger), in_larger).otherwise(behind)?)
            }
            WindowKind::Aggregate(aggregate) => {
                let until = until.ok_or_else(other_frame)?;
                let own = &call.call;
                let state = match aggregate.kind {
                    AggregateKind::Count | AggregateKind::Sum => self.running(own, Carried::Sum),
                    AggregateKind::Min => self.running(own, Carried::Least),
                    AggregateKind::Max => self.running(own, Carried::Greatest),
                    AggregateKind::Average => {
                        let of = |fun| WindowFunction {
                            fun: WindowFunctionDefinition::AggregateUDF(fun),
                            ..own.clone()
                        };
                        let sum = self.running(&of(sum_udaf()), Carried::Sum);
                        let count = self.running(&of(count_udaf()), Carried::Sum);
                        let (sum, count) = (self.until(sum, until), self.until(count, until));
                        let [arg] = own.params.args.as_slice() else { return Err(other_frame()) };
                        return average(sum, count, &arg.get_type(schema)?).ok_or_else(other_frame);
                    }
                };
                self.until(state, until)
            }
            WindowKind::Place { arg, at: 1, skip_nulls } => {
                // Whatever the frame's end, the first row is in it.
                until.ok_or_else(other_frame)?;
                match skip_nulls {
                    false => self.placed(first_value_udwf().into(), arg, None, Carried::First),
                    true => {
                        let nulls = Some(NullTreatment::IgnoreNulls);
                        let state =
                            self.placed(first_value_udwf().into(), arg, nulls, Carried::FirstValid);
                        self.until(state, until.unwrap_or(Until::Row))
                    }
                }
            }
            WindowKind::Place { arg, at: -1, skip_nulls } => {
                let until = until.ok_or_else(other_frame)?;
                let state = match skip_nulls {
                    false => arg.clone(),
                    true => {
                        let nulls = Some(NullTreatment::IgnoreNulls);
                        self.placed(last_value_udwf().into(), arg, nulls, Carried::LastValid)
                    }
                };
                self.until(state, until)
            }
            _ => return Err(other_frame()),
        })
    }

    fn row_number(&mut self) -> Expr {
        self.state(Expr::from(WindowFunction::new(row_number_udwf(), vec![])), Carried::Sum)
    }

    fn rank(&mut self) -> Expr {
        let rows = self.row_number();
        self.state(
            Expr::from(WindowFunction::new(rank_udwf(), vec![])),
            Carried::Rank { rows: Box::new(rows) },
        )
    }

    /// An aggregate of the rows up to each.
    fn running(&mut self, call: &WindowFunction, carried: Carried) -> Expr {
        self.state(Expr::from(call.clone()), carried)
    }

    fn placed(
        &mut self,
        fun: WindowFunctionDefinition,
        arg: &Expr,
        nulls: Option<NullTreatment>,
        carried: Carried,
    ) -> Expr {
        let mut call = WindowFunction::new(fun, vec![arg.clone()]);
        call.params.null_treatment = nulls;
        self.state(Expr::from(call), carried)
    }

    /// A column of the sweep forwards, which is made once.
    fn state(&mut self, call: Expr, carried: Carried) -> Expr {
        let call = over(
            call,
            self.keys,
            WindowFrame::new_bounds(WindowFrameUnits::Rows, first(), WindowFrameBound::CurrentRow),
        );
        let known = self.forwards.iter().find(|known| known.call == call);
        let name = known.map_or_else(
            || format!("up to the row {}", self.forwards.len()),
            |known| known.name.clone(),
        );
        if known.is_none() {
            self.forwards.push(SweptCall { call, name: name.clone(), carried });
        }
        unqualified(&name)
    }

    /// The value of an expression at the last row that counts.
    fn until(&mut self, value: Expr, until: Until) -> Expr {
        let until = if until == Until::LastPeer && self.keys.order.is_empty() {
            Until::LastRow
        } else {
            until
        };
        let (frame, carried) = match until {
            Until::Row => return value,
            Until::LastPeer => {
                let (from, to) = (WindowFrameBound::CurrentRow, WindowFrameBound::CurrentRow);
                (WindowFrame::new_bounds(WindowFrameUnits::Range, from, to), Carried::OfPeers)
            }
            Until::LastRow => {
                (WindowFrame::new_bounds(WindowFrameUnits::Rows, first(), last()), Carried::First)
            }
        };
        let name = |at: usize| format!("at the last {at}");
        if let Some(at) = self.taken.iter().position(|(known, of)| (known, *of) == (&value, until))
        {
            return unqualified(&name(at));
        }
        let name = name(self.taken.len());
        let call = Expr::from(WindowFunction::new(last_value_udwf(), vec![value.clone()]));
        self.taken.push((value, until));
        self.backwards.push(SweptCall {
            call: over(call, self.keys, frame),
            name: name.clone(),
            carried,
        });
        unqualified(&name)
    }
}

fn first() -> WindowFrameBound {
    WindowFrameBound::Preceding(ScalarValue::UInt64(None))
}

fn last() -> WindowFrameBound {
    WindowFrameBound::Following(ScalarValue::UInt64(None))
}

/// The call over a frame of these keys.
fn over(call: Expr, keys: &WindowKeys, window_frame: WindowFrame) -> Expr {
    let Expr::WindowFunction(mut call) = call else { return call };
    let WindowKeys { partition, order } = keys.clone();
    call.params = WindowFunctionParams {
        partition_by: partition,
        order_by: order,
        window_frame,
        ..call.params
    };
    Expr::WindowFunction(call)
}
