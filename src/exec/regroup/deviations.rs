//! Variances, covariances, correlations and regressions: means by slot, then sums of products of
//! deviations from them. All calls of an aggregation share both passes over its rows.
//!
//! ```text
//!   var(a), corr(a, b)      arguments   0: a where b is known   1: b where a is known   2: a
//!                           means       n0 m0   n1 m1   n2 m2
//!                           products    p0: (0, 1)   p1: (0, 0)   p2: (1, 1)   p3: (2, 2)
//! ```
//!
//! Where `a` and `b` have no nulls, arguments 0 and 2 are one, and so are their products.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::logical_expr::{Expr, cast, when};
use datafusion::prelude::sqrt;

use super::{BySlot, Grouped, OPERATOR, named};
use crate::codegen::regroup::number_of_slot;
use crate::codegen::{
    AggregateCall, AggregateKind, BuildSide, Candidates, Codes, Flow, FlowSource, Keep, Probe,
    materialize, plain_column,
};
use crate::column::{Column, Index, Relation};
use crate::error::{Error, Result};
use crate::exec::aggregate::filtered;
use crate::exec::run::{Runner, column_named};
use crate::plan::{RegroupedCall, RegroupedKind, of_points, variance_of};

const F64: DataType = DataType::Float64;

/// What calls need to know of their arguments, each once.
#[derive(Default)]
struct Deviations {
    arguments: Vec<DeviationArgument>,
    /// Pairs of arguments whose deviations are multiplied.
    products: Vec<(usize, usize)>,
    /// The calls' values, of columns `n0`, `m0`, …, `p0`, ….
    values: Vec<Expr>,
}

struct DeviationArgument {
    expr: Expr,
    /// A bound on the magnitude of its values.
    bound: Option<f64>,
}

/// How many values each argument has in a slot, and their mean.
struct GroupMeans {
    /// The slot, where there are keys, then `n0`, `m0`, `n1`, ….
    by_slot: BySlot,
    /// The columns but the slot.
    names: Vec<(String, DataType)>,
}

impl Deviations {
    /// Adds a call, whose value is of its arguments' means and products.
    fn add(&mut self, rows: &Grouped, call: &RegroupedCall) -> Result<()> {
        let value = match call.kind {
            RegroupedKind::Variance { of, root: false } => variance_of(column_named("xx"), of),
            RegroupedKind::Variance { of, root: true } => sqrt(variance_of(column_named("xx"), of)),
            RegroupedKind::Points(of) => of_points(of),
            _ => {
                return Err(Error::internal(format!(
                    "{OPERATOR}: {:?} is not about deviations",
                    call.kind
                )));
            }
        };
        let counted = |arg: &Expr| filtered(arg, &call.filter);
        let (x, y) = match call.args.as_slice() {
            [x] => {
                let x = self.argument(counted(x), magnitude(rows, x));
                (x, x)
            }
            [x, y] => {
                // Only rows in which both are known count.
                let both = |of: &Expr, other: &Expr| {
                    if rows.has_no_nulls(other) {
                        return Ok(counted(of));
                    }
                    let null = Expr::Literal(ScalarValue::Float64(None), None);
                    when(counted(other).is_not_null(), counted(of)).otherwise(null)
                };
                let (of_x, of_y) = (both(x, y)?, both(y, x)?);
                (self.argument(of_x, magnitude(rows, x)), self.argument(of_y, magnitude(rows, y)))
            }
            _ => {
                return Err(Error::internal(format!(
                    "{OPERATOR}: a number of arguments that the planner let pass"
                )));
            }
        };
        let value = value.transform(|expr| {
            let Expr::Column(column) = &expr else { return Ok(Transformed::no(expr)) };
            let name = match column.name.as_str() {
                "n" => format!("n{x}"),
                "mx" => format!("m{x}"),
                "my" => format!("m{y}"),
                "xx" => self.product(x, x),
                "yy" => self.product(y, y),
                _ => self.product(x, y),
            };
            Ok(Transformed::yes(column_named(name)))
        })?;
        self.values.push(value.data);
        Ok(())
    }

    fn argument(&mut self, expr: Expr, bound: Option<f64>) -> usize {
        let known = self.arguments.iter().position(|argument| argument.expr == expr);
        known.unwrap_or_else(|| {
            self.arguments.push(DeviationArgument { expr, bound });
            self.arguments.len() - 1
        })
    }

    /// The column of the sum of products.
    fn product(&mut self, x: usize, y: usize) -> String {
        let pair = (x.min(y), x.max(y));
        let known = self.products.iter().position(|product| *product == pair);
        let at = known.unwrap_or_else(|| {
            self.products.push(pair);
            self.products.len() - 1
        });
        format!("p{at}")
    }

    /// The arguments' deviations from their means, as columns `d0`, `d1`, ….
    fn deviations(&self) -> (Vec<Expr>, Vec<(String, DataType)>) {
        let one = |(at, argument): (usize, &DeviationArgument)| {
            let deviation = argument.expr.clone() - column_named(format!("m{at}"));
            (deviation, (format!("d{at}"), F64))
        };
        self.arguments.iter().enumerate().map(one).unzip()
    }

    /// The sums of products of deviations, as columns `p0`, `p1`, ….
    fn sums(&self) -> (Vec<AggregateCall>, Vec<(String, DataType)>) {
        let one = |(at, (x, y)): (usize, &(usize, usize))| {
            let product = column_named(format!("d{x}")) * column_named(format!("d{y}"));
            (fused(AggregateKind::Sum, &product, F64), (format!("p{at}"), F64))
        };
        self.products.iter().enumerate().map(one).unzip()
    }
}

impl Runner {
    /// The calls' values for each slot.
    pub(super) fn deviations(&self, rows: &Grouped, calls: &[&RegroupedCall]) -> Result<BySlot> {
        let mut all = Deviations::default();
        for call in calls {
            all.add(rows, call)?;
        }
        let GroupMeans { by_slot, names } = self.means(rows, &all.arguments)?;
        if !rows.keyed {
            return self.of_all_rows(rows, all, by_slot, names);
        }
        let joined = self.beside(rows, &by_slot, &names, &all.arguments)?;

        // The deviations of each row from the means of its group, beside what these are of.
        let (mut deviations, mut fields) = all.deviations();
        deviations.splice(0..0, rows.keys());
        deviations.extend(names.iter().map(|(name, _)| column_named(name)));
        fields.extend(names.iter().cloned());
        let joined = joined.project(deviations, rows.schema_of(&fields)?);

        let (mut sums, mut fields) = all.sums();
        // In all rows of a group the means are the same.
        for (name, dtype) in names {
            sums.push(fused(AggregateKind::Min, &column_named(&name), F64));
            fields.push((name, dtype));
        }
        let sums = self.grouped(joined, &rows.keys(), &sums, rows.schema_of(&fields)?)?;
        let mut exprs = rows.keys();
        exprs.extend(all.values);
        let schema = rows.schema_of_values(vec![F64; calls.len()])?;
        Ok(sums.project(exprs, schema))
    }

    /// The calls' values where all rows are one group: each row meets the row of means, and the
    /// sums meet it once more.
    fn of_all_rows(
        &self,
        rows: &Grouped,
        all: Deviations,
        means: BySlot,
        names: Vec<(String, DataType)>,
    ) -> Result<BySlot> {
        let mut means = self.relation(OPERATOR, &means)?;
        bound_means(&mut means.columns, &all.arguments);
        let own = fields_of(&rows.flow);
        let met = rows
            .flow
            .clone()
            .probe(the_row(&means), named(own.into_iter().chain(names.iter().cloned()).collect())?);
        let (deviations, fields) = all.deviations();
        let met = met.project(deviations, named(fields)?);
        let (sums, fields) = all.sums();
        let values = match sums.is_empty() {
            true => Flow::new(FlowSource::Relation(means), named(names)?),
            false => {
                let sums = self.grouped(met, &[], &sums, named(fields.clone())?)?;
                let fields = fields.into_iter().chain(names).collect();
                sums.probe(the_row(&means), named(fields)?)
            }
        };
        let schema = rows.schema_of_values(vec![F64; all.values.len()])?;
        Ok(values.project(all.values, schema))
    }

    fn means(&self, rows: &Grouped, arguments: &[DeviationArgument]) -> Result<GroupMeans> {
        let (mut calls, mut sums, mut means, mut names) = (vec![], vec![], rows.keys(), vec![]);
        for (at, DeviationArgument { expr, .. }) in arguments.iter().enumerate() {
            let [n, sum, least, greatest] = ["n", "s", "l", "g"].map(|name| format!("{name}{at}"));
            let count = cast(column_named(&n), F64);
            // A group of equal values has that mean, whatever its sum is rounded to.
            let same = column_named(&least).eq(column_named(&greatest));
            means.extend([
                count.clone(),
                when(same, column_named(&least)).otherwise(column_named(&sum) / count)?,
            ]);
            calls.push(fused(AggregateKind::Count, expr, DataType::Int64));
            calls.extend(
                [AggregateKind::Sum, AggregateKind::Min, AggregateKind::Max]
                    .map(|kind| fused(kind, expr, F64)),
            );
            names.extend([(n.clone(), F64), (format!("m{at}"), F64)]);
            sums.extend([(n, DataType::Int64), (sum, F64), (least, F64), (greatest, F64)]);
        }
        let sums = self.grouped(rows.flow.clone(), &rows.keys(), &calls, rows.schema_of(&sums)?)?;
        let means = sums.project(means, rows.schema_of(&names)?);
        Ok(GroupMeans { by_slot: means, names })
    }

    /// Each row beside its slot's means.
    fn beside(
        &self,
        rows: &Grouped,
        by_slot: &BySlot,
        names: &[(String, DataType)],
        arguments: &[DeviationArgument],
    ) -> Result<Flow> {
        let own = fields_of(&rows.flow);
        let schema = named(own.into_iter().chain(names.iter().cloned()).collect())?;
        let (result, numbers) = self.numbered(rows, by_slot)?;
        let (_, own) =
            materialize(&self.device, OPERATOR, &rows.flow, Codes::Keep, |generator, out| {
                let slot = generator.expr(&column_named("slot"), out)?;
                Ok(vec![number_of_slot(&numbers, &slot, generator, out)])
            })?;
        let (result_rows, result) = self.dense(OPERATOR, result)?;
        debug_assert!(result_rows > 0 || rows.flow.source.rows() == 0, "every row has a group");
        let FlowSource::Relation(relation) = &rows.flow.source else {
            return Err(Error::internal(format!("{OPERATOR}: rows that are not in place")));
        };
        let mut relation = relation.clone();
        relation.indices.push(Some(Index::of_rows(own[0].data.clone())));
        let through = relation.indices.len() - 1;
        let first = relation.columns.len();
        relation.columns.extend(result.into_iter().skip(1).map(|column| (through, column)));
        bound_means(&mut relation.columns[first..], arguments);
        Ok(Flow::new(FlowSource::Relation(relation), schema))
    }
}

/// The join of any row with a relation's only row.
fn the_row(relation: &Relation) -> Probe {
    Probe {
        candidates: Candidates::Every,
        build: relation.clone(),
        place: BuildSide::Right,
        keep: Keep::Matched,
        residual: None,
        total: true,
        keys_of: vec![None; relation.columns.len()],
    }
}

fn fields_of(flow: &Flow) -> Vec<(String, DataType)> {
    let fields = flow.schema().fields().iter();
    fields.map(|field| (field.name().clone(), field.data_type().clone())).collect()
}

fn fused(kind: AggregateKind, arg: &Expr, dtype: DataType) -> AggregateCall {
    AggregateCall { kind, arg: Some(arg.clone()), filter: None, dtype }
}

/// A bound on the magnitude of an argument, which is a column.
fn magnitude(rows: &Grouped, arg: &Expr) -> Option<f64> {
    let FlowSource::Relation(relation) = &rows.flow.source else { return None };
    relation.columns[plain_column(&rows.flow, arg)?].1.stats.magnitude
}

/// States that of the columns `n0`, `m0`, `n1`, … the means are bounded by what they are means of.
fn bound_means(columns: &mut [(usize, Column)], arguments: &[DeviationArgument]) {
    for ((_, column), argument) in columns.iter_mut().skip(1).step_by(2).zip(arguments) {
        // Rounding may lift a mean above.
        let bound = argument.bound.map(|bound| bound * (1.0 + 1e-6));
        column.stats.magnitude = bound.filter(|bound| bound.is_finite());
    }
}
