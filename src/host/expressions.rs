//! Expressions for the CPU engine.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result;
use datafusion::logical_expr::expr::{AggregateFunction, ScalarFunction, WindowFunctionDefinition};
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    AggregateUDF, Between, BinaryExpr, Cast, Expr, ExprSchemable, Operator, TryCast, when,
};

use super::casts::{differs, is_read, of_constants};
use super::chains::joined;
use super::floats::{FloatForm, formed_scalar, holds_floats};
use super::function_names::{ADDING, CASTING, CHOOSING, COMPUTING, FINDING, PASSING, READING};
use super::functions::HostOperation;
use super::lossless::cast_is_wrongly_dropped;
use super::nested_order::{self, extreme, is_order, nested_order};
use super::{arithmetic, empty_frames, nested_extremes, sums, zones};

/// The expression as the CPU engine shall compute it, over rows in which NaN has one form.
pub(crate) fn host_expr(expr: Expr, schema: &DFSchema) -> Result<Expr> {
    Host { schema, folding: false }.visit(expr, Takes::OneNan)
}

/// The expression as the CPU engine shall compute it, while constants are folded: what
/// [`plain_expr`] cannot take back is done to constants alone.
pub(crate) fn folding_expr(expr: Expr, schema: &DFSchema) -> Result<Expr> {
    Host { schema, folding: true }.visit(expr, Takes::OneNan)
}

/// Whether it matters to who takes a value which form its NaN have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Takes {
    OneNan,
    AnyNan,
}

/// Whether the extrema are of floats, for which DataFusion's accumulators of groups and frames have
/// no order: a NaN that comes first is kept or lost, and of nothing but −inf the greatest is the
/// least finite number (55.2, <https://github.com/apache/datafusion/issues/24432>).
pub(crate) fn is_extreme_of_floats(name: &str, args: &[Expr], schema: &DFSchema) -> bool {
    ["min", "max"].contains(&name)
        && args
            .first()
            .is_some_and(|arg| arg.get_type(schema).is_ok_and(|dtype| dtype.is_floating()))
}

/// What has to be done with the result of an aggregate or window function, to which `expr` is an
/// alias or itself.
pub(crate) fn after(expr: &Expr, schema: &DFSchema) -> Result<Option<HostOperation>> {
    let (name, args) = match expr {
        Expr::Alias(alias) => return after(&alias.expr, schema),
        Expr::AggregateFunction(call) => (call.func.name(), &call.params.args),
        Expr::WindowFunction(call) => (call.fun.name(), &call.params.args),
        _ => return Ok(None),
    };
    if is_extreme_of_floats(name, args, schema) {
        return Ok(Some(HostOperation::OfOrder));
    }
    let makes = !CHOOSING.contains(&name) && holds_floats(&expr.get_type(schema)?);
    Ok(makes.then_some(HostOperation::Formed(FloatForm::OneNan)))
}

/// Whether an expression may have anything that is to be changed: most have not.
pub(crate) fn concerns(expr: &Expr) -> bool {
    expr.exists(|expr| {
        Ok(match expr {
            Expr::Literal(value, _) => formed_scalar(value, FloatForm::Equal).is_some(),
            Expr::BinaryExpr(BinaryExpr { op, .. }) => !matches!(
                op,
                Operator::And
                    | Operator::Or
                    | Operator::BitwiseAnd
                    | Operator::BitwiseOr
                    | Operator::BitwiseXor
                    | Operator::StringConcat
            ),
            Expr::Between(_) => true,
            Expr::Case(case) => case.expr.is_some(),
            Expr::Cast(_)
            | Expr::TryCast(_)
            | Expr::Negative(_)
            | Expr::InList(_)
            | Expr::ScalarFunction(_)
            | Expr::HigherOrderFunction(_)
            | Expr::AggregateFunction(_)
            | Expr::WindowFunction(_) => true,
            _ => false,
        })
    })
    .unwrap_or(true)
}

/// Whether an expression may make floats of what are none, or has constants that Arrow casts or
/// adds otherwise (`casts.rs`, `arithmetic.rs`).
pub(crate) fn makes_floats(expr: &Expr) -> bool {
    expr.exists(|expr| {
        Ok(match expr {
            Expr::Literal(value, _) => is_of_concern(&value.data_type()),
            Expr::Cast(Cast { expr, field }) | Expr::TryCast(TryCast { expr, field }) => {
                let to = field.data_type();
                is_of_concern(to) || is_read(to) || of_constants(to) && !expr.any_column_refs()
            }
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
                is_arithmetic(*op) && !left.any_column_refs() && !right.any_column_refs()
            }
            Expr::Negative(inner) => !inner.any_column_refs(),
            Expr::OuterReferenceColumn(field, _) => is_of_concern(field.data_type()),
            Expr::ScalarFunction(_) | Expr::HigherOrderFunction(_) => true,
            _ => false,
        })
    })
    .unwrap_or(true)
}

/// Whether values of a type may be floats, hold them, or round as they do.
pub(crate) fn is_of_concern(dtype: &DataType) -> bool {
    holds_floats(dtype) || dtype.is_nested() || *dtype == DataType::Date64
}

/// The expression without the functions that [`host_expr`] put around constants and what folds to
/// constants.
pub(crate) fn plain_expr(expr: Expr) -> Result<Transformed<Expr>> {
    expr.transform_up(|expr| {
        Ok(match expr {
            Expr::ScalarFunction(mut call) if HostOperation::from(&call.func).is_some() => {
                let argument = call.args.swap_remove(0);
                Transformed::yes(match HostOperation::from(&call.func) {
                    Some(HostOperation::Cast { to, or_null: false }) => {
                        Expr::Cast(Cast::new_from_field(argument.into(), to.clone()))
                    }
                    Some(HostOperation::Cast { to, or_null: true }) => {
                        Expr::TryCast(TryCast::new_from_field(argument.into(), to.clone()))
                    }
                    _ => argument,
                })
            }
            Expr::ScalarFunction(call) => {
                match nested_order::plain(call).or_else(arithmetic::plain) {
                    Ok(operator) => Transformed::yes(Expr::BinaryExpr(operator)),
                    Err(call) => Transformed::no(Expr::ScalarFunction(call)),
                }
            }
            other => Transformed::no(other),
        })
    })
}

/// An integer that is a constant, before it is folded, too.
fn constant_integer(expr: &Expr) -> Option<i64> {
    match expr {
        Expr::Literal(value, _) => match value.cast_to(&DataType::Int64) {
            Ok(ScalarValue::Int64(value)) => value,
            _ => None,
        },
        Expr::Cast(cast) => constant_integer(&cast.expr),
        Expr::Negative(inner) => constant_integer(inner)?.checked_neg(),
        _ => None,
    }
}

/// Places to which a float is rounded at most: beyond them, its digits times a power of ten may be
/// no float.
pub(crate) const MOST_PLACES: i64 = 300;

pub(super) struct Host<'a> {
    pub(super) schema: &'a DFSchema,
    pub(super) folding: bool,
}

impl Host<'_> {
    /// Conditions may be thousands, which lean to the left, for DataFusion's rules take a filter
    /// apart and put it together so. Down that side there is no recursion. The CPU engine evaluates
    /// one within another, so that it gets long chains as trees.
    fn visit(&self, mut expr: Expr, takes: Takes) -> Result<Expr> {
        let mut others = vec![];
        while let Expr::BinaryExpr(BinaryExpr {
            left,
            op: op @ (Operator::And | Operator::Or),
            right,
        }) = expr
        {
            others.push((op, self.visit(*right, Takes::OneNan)?));
            expr = *left;
        }
        let mut terms = vec![self.visit_one(expr, takes)?];
        let mut of = Operator::And;
        for (op, right) in others.into_iter().rev() {
            if op != of {
                terms = vec![joined(terms, of)];
                of = op;
            }
            terms.push(right);
        }
        Ok(joined(terms, of))
    }

    fn visit_one(&self, expr: Expr, takes: Takes) -> Result<Expr> {
        let expr = if self.folding { self.as_cast(expr)? } else { expr };
        let inner = self.inner(&expr, takes);
        let expr = expr.map_children(|child| Ok(Transformed::yes(self.visit(child, inner)?)))?.data;
        let expr = self.changed(expr)?;
        Ok(if takes == Takes::OneNan && self.makes_nan(&expr) {
            HostOperation::Formed(FloatForm::OneNan).of(expr)
        } else {
            expr
        })
    }

    /// The cast that a function is. The rule that folds constants would write it out, and compute it
    /// at once.
    fn as_cast(&self, expr: Expr) -> Result<Expr> {
        match expr {
            Expr::ScalarFunction(call) if CASTING.contains(&call.name()) => {
                let schema = Arc::new(self.schema.clone());
                let context = SimplifyContext::builder().with_schema(schema).build();
                Ok(match call.func.simplify(call.args, &context)? {
                    ExprSimplifyResult::Simplified(cast) => cast,
                    ExprSimplifyResult::Original(args) => {
                        Expr::ScalarFunction(ScalarFunction { func: call.func, args })
                    }
                })
            }
            other => Ok(other),
        }
    }

    /// What an expression takes, of which `takes` tells what is taken.
    fn inner(&self, expr: &Expr, takes: Takes) -> Takes {
        let computes = match expr {
            Expr::BinaryExpr(BinaryExpr { op, .. }) => is_arithmetic(*op),
            Expr::Negative(_) | Expr::IsNull(_) | Expr::IsNotNull(_) => true,
            Expr::ScalarFunction(call) => COMPUTING.contains(&call.name()),
            Expr::AggregateFunction(call) => {
                ADDING.contains(&call.func.name()) && !call.params.distinct
            }
            Expr::WindowFunction(call) => {
                matches!(call.fun, WindowFunctionDefinition::AggregateUDF(_))
                    && ADDING.contains(&call.fun.name())
            }
            Expr::Alias(_) => return takes,
            _ => false,
        };
        if computes { Takes::AnyNan } else { Takes::OneNan }
    }

    pub(super) fn changed(&self, expr: Expr) -> Result<Expr> {
        Ok(match expr {
            Expr::Literal(value, metadata) => {
                Expr::Literal(formed_scalar(&value, FloatForm::OneNan).unwrap_or(value), metadata)
            }
            Expr::BinaryExpr(BinaryExpr { left, op, right })
                if is_comparison(op) && self.is_nested(&left) && self.is_nested(&right) =>
            {
                self.compared(*left, op, *right)?
            }
            Expr::BinaryExpr(BinaryExpr { mut left, op, mut right }) if is_comparison(op) => {
                if matches!(*right, Expr::Literal(_, _)) {
                    *left = self.compared_with_constants(*left);
                }
                if matches!(*left, Expr::Literal(_, _)) {
                    *right = self.compared_with_constants(*right);
                }
                Expr::BinaryExpr(BinaryExpr { left, op, right })
            }
            Expr::BinaryExpr(BinaryExpr { left, op, right })
                if self.overflows(&left, op, &right) =>
            {
                arithmetic::exact(*left, op, *right)
            }
            Expr::BinaryExpr(BinaryExpr { left, op, right })
                if matches!(op, Operator::Plus | Operator::Minus) && !self.folding =>
            {
                match op {
                    _ if self.is_moved(&left, &right) => zones::moved(*left, op, *right),
                    Operator::Plus if self.is_moved(&right, &left) => {
                        zones::moved(*right, op, *left)
                    }
                    _ => Expr::BinaryExpr(BinaryExpr { left, op, right }),
                }
            }
            Expr::Negative(inner) if self.is_computed(&[&inner]) => {
                match inner.get_type(self.schema) {
                    Ok(dtype) if dtype.is_signed_integer() => arithmetic::negated(*inner, &dtype)?,
                    _ => Expr::Negative(inner),
                }
            }
            Expr::Between(Between { expr, negated, low, high })
                if self.is_nested(&expr) && self.is_nested(&low) && self.is_nested(&high) =>
            {
                let low = self.compared((*expr).clone(), Operator::GtEq, *low)?;
                let inside = low.and(self.compared(*expr, Operator::LtEq, *high)?);
                if negated { !inside } else { inside }
            }
            Expr::InList(mut list) if self.holds_floats(&list.expr) => {
                list.expr = self.equal_bits(*list.expr)?.into();
                list.list = list
                    .list
                    .into_iter()
                    .map(|item| self.equal_bits(item))
                    .collect::<Result<_>>()?;
                Expr::InList(list)
            }
            Expr::Case(mut case)
                if case.expr.as_ref().is_some_and(|base| self.holds_floats(base)) =>
            {
                if let Some(base) = case.expr {
                    case.expr = Some(self.equal_bits(*base)?.into());
                }
                for (when, _) in &mut case.when_then_expr {
                    **when = self.equal_bits(std::mem::take(when))?;
                }
                Expr::Case(case)
            }
            Expr::Cast(cast) if self.differs(&cast.expr, cast.field.data_type()) => {
                HostOperation::Cast { to: cast.field, or_null: false }.of(*cast.expr)
            }
            Expr::TryCast(cast) if self.differs(&cast.expr, cast.field.data_type()) => {
                HostOperation::Cast { to: cast.field, or_null: true }.of(*cast.expr)
            }
            Expr::ScalarFunction(call) => self.function(call)?,
            Expr::AggregateFunction(call) => Expr::AggregateFunction(self.aggregate(call)?),
            Expr::WindowFunction(mut call) => {
                if let WindowFunctionDefinition::AggregateUDF(func) = &call.fun
                    && let Some(exact) = empty_frames::of_frames(func)
                        .filter(|_| !self.folding)
                        .or_else(|| self.exact_aggregate(func, &call.params.args))
                {
                    call.fun = WindowFunctionDefinition::AggregateUDF(exact);
                }
                Expr::WindowFunction(call)
            }
            other => other,
        })
    }

    /// A comparison of lists or structs: floats in them compare by bits, zeros among them, and
    /// nulls in them are greatest.
    fn compared(&self, left: Expr, op: Operator, right: Expr) -> Result<Expr> {
        let (left, right) = (self.equal_bits(left)?, self.equal_bits(right)?);
        let rows = self.folding && (left.any_column_refs() || right.any_column_refs());
        Ok(match is_order(op) && !rows {
            true => nested_order(left, op, right),
            false => Expr::BinaryExpr(BinaryExpr::new(Box::new(left), op, Box::new(right))),
        })
    }

    fn function(&self, mut call: ScalarFunction) -> Result<Expr> {
        let asked = !self.folding || !call.args.iter().any(Expr::any_column_refs);
        if call.name() == "nullif"
            && call.args.len() == 2
            && asked
            && self.holds_floats(&call.args[0])
        {
            // Its own comparison is of bits.
            let right = self.equal_bits(call.args.swap_remove(1))?;
            let left = call.args.swap_remove(0);
            let dtype = left.get_type(self.schema)?;
            let null = Expr::Literal(ScalarValue::try_from(&dtype)?, None);
            return when(self.equal_bits(left.clone())?.eq(right), null).otherwise(left);
        }
        let ahead = match call.name() {
            "greatest" => Some(Operator::GtEq),
            "least" => Some(Operator::LtEq),
            _ => None,
        };
        if let Some(ahead) = ahead
            && asked
            && call.args.iter().all(|arg| self.is_nested(arg))
            && let Some(chosen) = extreme(ahead, call.args.clone())?
        {
            return Ok(chosen);
        }
        // A computed length is made room for as it is: a negative one panics (55.2, `lpad.rs` and
        // `rpad.rs`).
        if ["lpad", "rpad"].contains(&call.name()) && !self.folding && call.args.len() > 1 {
            call.args[1] = HostOperation::Length.of(std::mem::take(&mut call.args[1]));
        }
        if call.name() == "round"
            && let [value, places] = &call.args[..]
            && value.get_type(self.schema).is_ok_and(|dtype| dtype.is_floating())
            && let Some(places) = constant_integer(places)
            && places.abs() > MOST_PLACES
        {
            let value = call.args.swap_remove(0);
            // Beside the point there is nothing left; NaN of what is not finite.
            let zero = |dtype: DataType| -> Result<Expr> {
                Ok(Expr::Literal(ScalarValue::new_zero(&dtype)?, None))
            };
            let dtype = value.get_type(self.schema)?;
            return Ok(match places > 0 {
                true => value,
                false => value * zero(dtype.clone())? + zero(dtype)?,
            });
        }
        if READING.contains(&call.name())
            && let [text] = &mut call.args[..]
            && text.get_type(self.schema).is_ok_and(|dtype| dtype.is_string())
        {
            *text = HostOperation::WholeMinutes.of(std::mem::take(text));
        }
        // A null among lists or structs is not found (55.2, `position.rs`).
        if let ("array_position", [list, needle]) = (call.name(), &call.args[..])
            && asked
            && self.is_nested(needle)
        {
            let (null, first) = (needle.clone(), HostOperation::FirstNull.of(list.clone()));
            let found = self.equal_elements(call, 2)?;
            return when(null.is_null(), first).otherwise(found);
        }
        // They look at elements of lists that are null (55.2, `concat.rs`, `flatten.rs`).
        let list = match (call.name(), call.args.len()) {
            ("array_append", 2) | ("flatten", 1) => Some(0),
            ("array_prepend", 2) => Some(1),
            _ => None,
        };
        if let Some(list) = list.filter(|_| !self.folding) {
            call.args[list] = HostOperation::EmptyNulls.of(std::mem::take(&mut call.args[list]));
        }
        let of_bits = match call.name() {
            name if FINDING.contains(&name) => call.args.len(),
            name if name.starts_with("array_remove") || name.starts_with("array_replace") => 2,
            _ => 0,
        };
        self.equal_elements(call, of_bits)
    }

    /// The call with so many of its first arguments in a form in which equal values have equal bits.
    fn equal_elements(&self, mut call: ScalarFunction, of_bits: usize) -> Result<Expr> {
        for arg in call.args.iter_mut().take(of_bits) {
            *arg = self.equal_bits(std::mem::take(arg))?;
        }
        Ok(Expr::ScalarFunction(call))
    }

    fn aggregate(&self, mut call: AggregateFunction) -> Result<AggregateFunction> {
        if call.params.distinct || call.func.name() == "approx_distinct" {
            call.params.args = call
                .params
                .args
                .into_iter()
                .map(|arg| self.equal_bits(arg))
                .collect::<Result<_>>()?;
            // An order of distinct values is one of the arguments.
            for key in &mut call.params.order_by {
                key.expr = self.equal_bits(std::mem::take(&mut key.expr))?;
            }
        }
        if let Some(exact) = self.exact_aggregate(&call.func, &call.params.args) {
            call.func = exact;
        }
        Ok(call)
    }

    /// The function in place of an aggregate that DataFusion computes wrongly, or not at all.
    fn exact_aggregate(&self, func: &AggregateUDF, args: &[Expr]) -> Option<Arc<AggregateUDF>> {
        let arg = args.first().filter(|_| !self.folding)?;
        let dtype = arg.get_type(self.schema).ok()?;
        let nested = nested_extremes::of_nested(func.name(), &dtype);
        nested.or_else(|| sums::of_integers(func, arg, self.schema))
    }

    /// The expression with equal bits for equal floats; itself where it holds none.
    fn equal_bits(&self, expr: Expr) -> Result<Expr> {
        Ok(match expr {
            Expr::Literal(value, metadata) => {
                Expr::Literal(formed_scalar(&value, FloatForm::Equal).unwrap_or(value), metadata)
            }
            // Already made to have one NaN.
            Expr::ScalarFunction(mut call)
                if HostOperation::from(&call.func)
                    == Some(&HostOperation::Formed(FloatForm::OneNan)) =>
            {
                HostOperation::Formed(FloatForm::Equal).of(call.args.swap_remove(0))
            }
            expr if self.holds_floats(&expr) => HostOperation::Formed(FloatForm::Equal).of(expr),
            expr => expr,
        })
    }

    /// Whether what an expression yields, if not its parts, may be NaN of any form.
    fn makes_nan(&self, expr: &Expr) -> bool {
        match expr {
            Expr::BinaryExpr(BinaryExpr { op, .. }) => {
                is_arithmetic(*op) && self.holds_floats(expr)
            }
            Expr::Negative(_) | Expr::HigherOrderFunction(_) => self.holds_floats(expr),
            Expr::Cast(cast) => self.reads_nan(&cast.expr, cast.field.data_type()),
            Expr::TryCast(cast) => self.reads_nan(&cast.expr, cast.field.data_type()),
            Expr::ScalarFunction(call) => {
                HostOperation::from(&call.func).is_none()
                    && !PASSING.contains(&call.name())
                    && self.holds_floats(expr)
            }
            _ => false,
        }
    }

    /// Whether a cast may read a NaN, as of texts. Between floats, NaN keeps its form.
    fn reads_nan(&self, from: &Expr, to: &DataType) -> bool {
        let plain = |dtype: DataType| {
            dtype.is_numeric() || dtype.is_temporal() || dtype == DataType::Boolean
        };
        holds_floats(to) && !from.get_type(self.schema).is_ok_and(plain)
    }

    /// Whether an expression is to be computed as the CPU engine shall, which the rule that folds
    /// constants does to constants alone: rules behind it know operators, but no functions.
    fn is_computed(&self, operands: &[&Expr]) -> bool {
        !self.folding || !operands.iter().any(|operand| operand.any_column_refs())
    }

    fn overflows(&self, left: &Expr, op: Operator, right: &Expr) -> bool {
        is_arithmetic(op)
            && self.is_computed(&[left, right])
            && left
                .get_type(self.schema)
                .ok()
                .zip(right.get_type(self.schema).ok())
                .is_some_and(|(left, right)| arithmetic::overflows(op, &left, &right))
    }

    pub(super) fn differs(&self, from: &Expr, to: &DataType) -> bool {
        from.get_type(self.schema).is_ok_and(|from| differs(&from, to))
    }

    /// What is compared with constants. A cast that loses something is a function: scans would take
    /// it off what they prune by (55.2, `simplifier/unwrap_cast.rs`).
    fn compared_with_constants(&self, expr: Expr) -> Expr {
        let (from, field, or_null) = match &expr {
            Expr::Cast(cast) => (&cast.expr, &cast.field, false),
            Expr::TryCast(cast) => (&cast.expr, &cast.field, true),
            _ => return expr,
        };
        let dropped = |from: DataType| cast_is_wrongly_dropped(&from, field.data_type());
        if self.folding || !from.get_type(self.schema).is_ok_and(dropped) {
            return expr;
        }
        let to = field.clone();
        match expr {
            Expr::Cast(Cast { expr, .. }) | Expr::TryCast(TryCast { expr, .. }) => {
                HostOperation::Cast { to, or_null }.of(*expr)
            }
            other => other,
        }
    }

    pub(super) fn holds_floats(&self, expr: &Expr) -> bool {
        expr.get_type(self.schema).is_ok_and(|dtype| holds_floats(&dtype))
    }

    /// Whether an interval would move an instant by the clocks of a zone.
    pub(super) fn is_moved(&self, point: &Expr, by: &Expr) -> bool {
        let types = point.get_type(self.schema).ok().zip(by.get_type(self.schema).ok());
        types.is_some_and(|(point, by)| zones::is_moved(&point, &by))
    }

    /// Lists, structs and the like.
    pub(super) fn is_nested(&self, expr: &Expr) -> bool {
        expr.get_type(self.schema).is_ok_and(|dtype| dtype.is_nested())
    }
}

fn is_comparison(op: Operator) -> bool {
    use Operator::*;
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom)
}

fn is_arithmetic(op: Operator) -> bool {
    matches!(
        op,
        Operator::Plus | Operator::Minus | Operator::Multiply | Operator::Divide | Operator::Modulo
    )
}
