//! Which operators and aggregates the device runs, and the reasons for those it does not.

use std::any::Any;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::{DFSchema, JoinType};
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::{
    Aggregate, Distinct, Expr, ExprSchemable, FetchType, Join, LogicalPlan, SkipType, TableScan, build_join_schema,
};

use crate::codegen::{AggregateCall, AggregateKind, unsupported};
use crate::column::Repr;
use crate::io::{DeviceTable, SourceTable};

/// Why this operator, its inputs aside, does not run on the device.
pub(crate) fn unsupported_node(plan: &LogicalPlan) -> Option<String> {
    let own = match plan {
        LogicalPlan::TableScan(scan) => table(scan),
        LogicalPlan::SubqueryAlias(_) | LogicalPlan::EmptyRelation(_) => None,
        LogicalPlan::Projection(p) => p.expr.iter().find_map(|e| unsupported(e, p.input.schema())),
        LogicalPlan::Filter(f) => unsupported(&f.predicate, f.input.schema()),
        LogicalPlan::Aggregate(a) => aggregate(a),
        LogicalPlan::Distinct(Distinct::All(_)) => None,
        LogicalPlan::Join(j) => join(j),
        LogicalPlan::Sort(s) => s.expr.iter().find_map(|e| unsupported(&e.expr, s.input.schema())),
        LogicalPlan::Limit(limit) => match (limit.get_skip_type(), limit.get_fetch_type()) {
            (Ok(SkipType::Literal(_)), Ok(FetchType::Literal(_))) => None,
            _ => Some("its count is not a constant".into()),
        },
        LogicalPlan::Union(_) => None,
        _ => Some("the operator is not on the device yet".into()),
    };
    own.or_else(|| types(plan.schema()))
}

fn types(schema: &DFSchema) -> Option<String> {
    schema
        .fields()
        .iter()
        .find(|field| Repr::of(field.data_type()).is_none())
        .map(|field| format!("column {} of type {} is not on the device yet", field.name(), field.data_type()))
}

fn table(scan: &TableScan) -> Option<String> {
    let Ok(provider) = source_as_provider(&scan.source) else { return Some("the table has no provider".into()) };
    let provider: &dyn Any = provider.as_ref();
    if provider.downcast_ref::<DeviceTable>().is_none() && provider.downcast_ref::<SourceTable>().is_none() {
        return Some("the table is not one of the session's".into());
    }
    scan.filters.iter().find_map(|filter| unsupported(filter, &scan.projected_schema))
}

fn aggregate(aggregate: &Aggregate) -> Option<String> {
    let schema = aggregate.input.schema();
    let group = aggregate.group_expr.iter().find_map(|group| match group {
        Expr::GroupingSet(_) => Some("grouping sets are not on the device yet".into()),
        group => unsupported(group, schema),
    });
    group.or_else(|| {
        aggregate.aggr_expr.iter().find_map(|expr| match aggregate_call(expr, schema) {
            Ok(call) => call.arg.iter().chain(&call.filter).find_map(|e| unsupported(e, schema)),
            Err(why) => Some(why),
        })
    })
}

/// The device's form of an aggregate expression.
///
/// # Errors
/// The reason why the device has none.
pub(crate) fn aggregate_call(expr: &Expr, schema: &DFSchema) -> Result<AggregateCall, String> {
    let call = match expr {
        Expr::Alias(alias) => return aggregate_call(&alias.expr, schema),
        Expr::AggregateFunction(call) => call,
        other => return Err(format!("{other} is no aggregate function")),
    };
    let name = call.func.name();
    let kind = match name {
        "count" => AggregateKind::Count,
        "sum" => AggregateKind::Sum,
        "min" => AggregateKind::Min,
        "max" => AggregateKind::Max,
        "avg" => AggregateKind::Average,
        _ => return Err(format!("aggregate {name} is not on the device yet")),
    };
    let extremum = matches!(kind, AggregateKind::Min | AggregateKind::Max);
    if call.params.distinct && !extremum {
        return Err(format!("{name}(DISTINCT …) beside other aggregates is not on the device yet"));
    }
    let dtype = expr.get_type(schema).map_err(|error| error.strip_backtrace())?;
    let arg = match call.params.args.as_slice() {
        [Expr::Literal(value, _)] if kind == AggregateKind::Count && !value.is_null() => None,
        [arg] => Some(arg.clone()),
        [] if kind == AggregateKind::Count => None,
        _ => return Err(format!("{name} of several arguments is not on the device yet")),
    };
    if let Some(arg) = &arg {
        let of = arg.get_type(schema).map_err(|error| error.strip_backtrace())?;
        let numeric = matches!(of, DataType::Int64 | DataType::UInt64 | DataType::Float64 | DataType::Decimal128(_, _));
        let fits = match kind {
            AggregateKind::Count => true,
            AggregateKind::Sum | AggregateKind::Average => numeric && Repr::of(&dtype).is_some(),
            AggregateKind::Min | AggregateKind::Max => Repr::of(&of).is_some(),
        };
        if !fits {
            return Err(format!("{name} of {of} is not on the device yet"));
        }
    }
    Ok(AggregateCall { kind, arg, filter: call.params.filter.as_deref().cloned(), dtype })
}

fn join(join: &Join) -> Option<String> {
    if join.null_aware && (join.on.len() != 1 || join.filter.is_some()) {
        return Some("NOT IN with further conditions is not on the device yet".into());
    }
    let keys = join.on.iter().find_map(|(left, right)| {
        unsupported(left, join.left.schema()).or_else(|| unsupported(right, join.right.schema()))
    });
    keys.or_else(|| {
        let filter = join.filter.as_ref()?;
        match build_join_schema(join.left.schema(), join.right.schema(), &JoinType::Inner) {
            Ok(both) => unsupported(filter, &both),
            Err(error) => Some(error.strip_backtrace()),
        }
    })
}
