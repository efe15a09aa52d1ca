//! Which expressions can fail: what may be moved past a condition, and what has to stay behind it.
//!
//! ```text
//!   x <> 0               cannot fail: it may run on any row, in any order
//!   10 / x > 1           can fail: it runs only on rows that no condition before it has dropped
//!   x <> 0 AND 10 / x    cannot fail as a whole: what can fail in it is behind its guard
//! ```
//!
//! This is the one account of it. Rules over plans (`session/rules/guards.rs`), the order of joins
//! (`join_order.rs`) and what is made for the CPU engine (`in_order.rs`) ask it. An expression that
//! is not known here is taken to fail: then it keeps its place, which is never wrong.
//!
//! Subqueries do not count: what they do is done once, wherever the expression that has their value
//! stands.

mod constant;
mod integers;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::TreeNode;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::logical_expr::{BinaryExpr, Case, Expr, ExprSchemable, Operator};

use crate::codegen::{constant, function_fails, is_total, to_zero};
use crate::host::cast_fails;

/// Digits that every `Decimal128` holds.
const DIGITS: i16 = 38;

/// Conditions that are looked at for what is known of a divisor: those nearest to it.
const NEAREST: usize = 64;

/// Whether a row may fail when the expression is evaluated as it is written: from left to right,
/// and no further than AND, OR and CASE need it. Types are agreed (as after DataFusion's analyzer).
pub(crate) fn can_fail(expr: &Expr, schema: &DFSchema) -> bool {
    has_failing(expr, schema) && Walk { schema, facts: vec![] }.fails(expr)
}

/// Whether a part of the expression can fail, were it evaluated on every row.
pub(crate) fn has_failing(expr: &Expr, schema: &DFSchema) -> bool {
    // Nothing else is an error here.
    expr.exists(|node| Ok(node_fails(node, schema, &[]))).unwrap_or(true)
}

/// Whether the node can fail on some row where its operands do not.
pub(crate) fn fails_itself(node: &Expr, schema: &DFSchema) -> bool {
    node_fails(node, schema, &[])
}

/// The operands of a chain of one operator, from left to right.
pub(crate) fn operands(expr: &Expr, op: Operator) -> Vec<&Expr> {
    let (mut found, mut rest) = (vec![], vec![expr]);
    while let Some(next) = rest.pop() {
        match next {
            Expr::BinaryExpr(binary) if binary.op == op => {
                rest.extend([&*binary.right, &*binary.left])
            }
            other => found.push(other),
        }
    }
    found
}

/// A condition that was evaluated before.
struct Fact<'e> {
    condition: &'e Expr,
    /// It was true; otherwise it was false. Or it was null, and then so is what it looks at.
    holds: bool,
}

struct Walk<'e> {
    schema: &'e DFSchema,
    /// What is known where the walk stands.
    facts: Vec<Fact<'e>>,
}

impl<'e> Walk<'e> {
    fn fails(&mut self, expr: &'e Expr) -> bool {
        let known = self.facts.len();
        let fails = match expr {
            Expr::BinaryExpr(BinaryExpr { op: op @ (Operator::And | Operator::Or), .. }) => {
                operands(expr, *op)
                    .into_iter()
                    .any(|operand| self.fails_before(operand, *op == Operator::And))
            }
            Expr::Case(case) => self.case_fails(case),
            // Its parameters may bear names that other lambdas' parameters have, of which something
            // is known.
            Expr::Lambda(lambda) => {
                let facts = std::mem::take(&mut self.facts);
                let fails = self.fails(&lambda.body);
                self.facts = facts;
                return fails;
            }
            _ => {
                node_fails(expr, self.schema, &self.facts)
                    || children(expr).into_iter().any(|child| self.fails(child))
            }
        };
        self.facts.truncate(known);
        fails
    }

    /// Whether a condition can fail. What follows it runs where it is as `holds` says, or null.
    fn fails_before(&mut self, condition: &'e Expr, holds: bool) -> bool {
        let fails = self.fails(condition);
        self.assume(condition, holds);
        fails
    }

    fn assume(&mut self, condition: &'e Expr, holds: bool) {
        let parts = if holds { operands(condition, Operator::And) } else { vec![condition] };
        self.facts.extend(parts.into_iter().map(|condition| Fact { condition, holds }));
    }

    fn case_fails(&mut self, case: &'e Case) -> bool {
        if case.expr.as_deref().is_some_and(|base| self.fails(base)) {
            return true;
        }
        for (when, then) in &case.when_then_expr {
            if self.fails(when) {
                return true;
            }
            // With a base, `when` is no condition but a value.
            let known = self.facts.len();
            if case.expr.is_none() {
                self.assume(when, true);
            }
            let fails = self.fails(then);
            self.facts.truncate(known);
            if fails {
                return true;
            }
            if case.expr.is_none() {
                self.assume(when, false);
            }
        }
        case.else_expr.as_deref().is_some_and(|otherwise| self.fails(otherwise))
    }
}

/// The expressions right below one.
fn children(expr: &Expr) -> Vec<&Expr> {
    let mut found = vec![];
    // Nothing fails here.
    let _ = expr.apply_children(|child| {
        found.push(child);
        Ok(datafusion::common::tree_node::TreeNodeRecursion::Continue)
    });
    found
}

/// Whether the node can fail on some row where its operands do not, and where these conditions were
/// evaluated before.
fn node_fails(node: &Expr, schema: &DFSchema, facts: &[Fact<'_>]) -> bool {
    perhaps_fails(node, schema, facts) && !constant::is_computable(node)
}

/// Whether the node can fail by its kind, its types and these conditions; constants are not
/// computed.
fn perhaps_fails(node: &Expr, schema: &DFSchema, facts: &[Fact<'_>]) -> bool {
    let of = |expr: &Expr| expr.get_type(schema).ok();
    match node {
        Expr::Column(_)
        | Expr::Literal(_, _)
        | Expr::Alias(_)
        | Expr::OuterReferenceColumn(_, _) => false,
        Expr::Lambda(_) | Expr::LambdaVariable(_) => false,
        Expr::Not(_)
        | Expr::IsNull(_)
        | Expr::IsNotNull(_)
        | Expr::IsTrue(_)
        | Expr::IsNotTrue(_) => false,
        Expr::IsFalse(_) | Expr::IsNotFalse(_) | Expr::IsUnknown(_) | Expr::IsNotUnknown(_) => {
            false
        }
        Expr::Between(_) | Expr::InList(_) | Expr::Like(_) | Expr::Case(_) => false,
        Expr::ScalarSubquery(_)
        | Expr::Exists(_)
        | Expr::InSubquery(_)
        | Expr::SetComparison(_) => false,
        Expr::SimilarTo(like) => !matches!(*like.pattern, Expr::Literal(_, _)),
        Expr::Negative(inner) => match of(inner) {
            Some(dtype) if dtype.is_integer() => !integers::fit(node, &dtype, schema),
            dtype => !dtype.is_some_and(|dtype| dtype.is_numeric()),
        },
        Expr::BinaryExpr(binary) => operator_fails(node, binary, schema, facts),
        Expr::Cast(cast) => {
            of(&cast.expr).is_none_or(|from| cast_fails(&from, cast.field.data_type()))
        }
        Expr::TryCast(_) | Expr::Placeholder(_) | Expr::ScalarVariable(_, _) => false,
        // Of many rows: not what a row's place decides.
        Expr::AggregateFunction(_) | Expr::WindowFunction(_) | Expr::GroupingSet(_) => false,
        Expr::ScalarFunction(call) => function_fails(call, &of),
        Expr::HigherOrderFunction(call) => !is_total(call.name()),
        _ => true,
    }
}

fn operator_fails(node: &Expr, binary: &BinaryExpr, schema: &DFSchema, facts: &[Fact<'_>]) -> bool {
    use Operator::*;
    let types = || Some((binary.left.get_type(schema).ok()?, binary.right.get_type(schema).ok()?));
    match binary.op {
        And | Or => false,
        op if is_comparison(op) => false,
        BitwiseAnd | BitwiseOr | BitwiseXor | BitwiseShiftLeft | BitwiseShiftRight
        | StringConcat => false,
        LikeMatch | ILikeMatch | NotLikeMatch | NotILikeMatch => false,
        RegexMatch | RegexIMatch | RegexNotMatch | RegexNotIMatch => !is_literal(&binary.right),
        Plus | Minus | Multiply => match types() {
            Some((left, right)) if left.is_integer() && left == right => {
                !integers::fit(node, &left, schema)
            }
            Some((left, right)) => sum_fails(binary.op, &left, &right),
            None => true,
        },
        Divide | Modulo => match (types(), node.get_type(schema)) {
            (Some((left, right)), Ok(result)) => {
                quotient_fails(binary, [&left, &right, &result], schema, facts)
            }
            _ => true,
        },
        _ => true,
    }
}

/// Whether an operator compares two values.
pub(crate) fn is_comparison(op: Operator) -> bool {
    use Operator::*;
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom)
}

fn is_literal(expr: &Expr) -> bool {
    constant(expr).is_some()
}

/// Whether a sum, difference or product of two types can fail: integers and a decimal's digits have
/// to fit, floats have infinities.
pub(crate) fn sum_fails(op: Operator, left: &DataType, right: &DataType) -> bool {
    match (left, right) {
        (DataType::Decimal128(p, s), DataType::Decimal128(q, t)) => {
            let ([p, q], [s, t]) = ([i16::from(*p), i16::from(*q)], [i16::from(*s), i16::from(*t)]);
            match op {
                Operator::Multiply => p + q > DIGITS || s + t > DIGITS,
                _ => s.max(t) + (p - s).max(q - t) + 1 > DIGITS,
            }
        }
        (DataType::Date32, DataType::Date32) => op != Operator::Minus,
        (left, right) => {
            let plain = |dtype: &DataType| dtype.is_floating() || dtype.is_null();
            !(plain(left) && plain(right))
        }
    }
}

fn quotient_fails(
    binary: &BinaryExpr,
    types: [&DataType; 3],
    schema: &DFSchema,
    facts: &[Fact<'_>],
) -> bool {
    let sign = |zero| {
        sign_of(&binary.right, facts, schema).is_some_and(|known: Sign| known.excludes(zero))
    };
    match types {
        [left, right, _] if left.is_floating() && right.is_floating() => false,
        [left, right, _] if left.is_integer() && right.is_integer() => {
            // The least value over −1 is no value of its type.
            let over =
                || binary.op == Operator::Divide && left.is_signed_integer() && !sign(Some(-1));
            !sign(None) || over() && !is_above_least(&binary.left, left, schema)
        }
        [
            DataType::Decimal128(p, s),
            DataType::Decimal128(q, t),
            DataType::Decimal128(_, result),
        ] => {
            let [p, s, q, t] = [i16::from(*p), i16::from(*s), i16::from(*q), i16::from(*t)];
            // What is divided is first multiplied by a power of ten; remainders are taken of
            // numbers of one scale.
            let fits = match binary.op {
                Operator::Divide => p + i16::from(*result) - s + t <= DIGITS,
                _ => p + s.max(t) - s <= DIGITS && q + s.max(t) - t <= DIGITS,
            };
            !sign(None) || !fits
        }
        _ => true,
    }
}

/// Whether an integer is never the least of its type.
fn is_above_least(expr: &Expr, dtype: &DataType, schema: &DFSchema) -> bool {
    match (expr, constant(expr)) {
        (_, Some(value)) => value.cast_to(dtype).is_ok_and(|value| {
            ScalarValue::min(dtype)
                .is_some_and(|least| value.partial_cmp(&least) == Some(Ordering::Greater))
        }),
        (Expr::Cast(cast), _) => cast.expr.get_type(schema).is_ok_and(|from| {
            let width = |dtype: &DataType| dtype.primitive_width().unwrap_or(usize::MAX);
            from.is_integer() && width(&from) < width(dtype)
        }),
        _ => false,
    }
}

/// What is known of a number.
struct Sign {
    /// It is not zero; what may fail of zero does not.
    nonzero: bool,
    /// It is not negative, either.
    positive: bool,
    /// It is this constant's, and that is not −1.
    not_minus_one: bool,
}

impl Sign {
    /// Whether zero (`None`), or another number, is out of the question.
    fn excludes(&self, number: Option<i32>) -> bool {
        match number {
            None => self.nonzero,
            Some(_) => self.positive || self.not_minus_one,
        }
    }
}

/// What is known of a divisor: by itself, or by the conditions before it.
fn sign_of(divisor: &Expr, facts: &[Fact<'_>], schema: &DFSchema) -> Option<Sign> {
    if let Some(value) = constant(divisor) {
        let order = to_zero(&value)?;
        let minus_one = ScalarValue::new_negative_one(&value.data_type()).ok();
        return Some(Sign {
            nonzero: order != Ordering::Equal,
            positive: order == Ordering::Greater,
            not_minus_one: minus_one.is_some_and(|one| one != value),
        });
    }
    let mut known = Sign { nonzero: false, positive: false, not_minus_one: false };
    for fact in facts.iter().rev().take(NEAREST) {
        if let Some(order) = compared(fact, divisor, schema) {
            known.nonzero = true;
            known.positive |= order == Some(Ordering::Greater);
        }
    }
    known.nonzero.then_some(known)
}

/// Whether a condition says that a number is not zero; and on which side of it the number lies, if
/// it says so.
fn compared(fact: &Fact<'_>, number: &Expr, schema: &DFSchema) -> Option<Option<Ordering>> {
    let Expr::BinaryExpr(BinaryExpr { left, op, right }) = fact.condition else { return None };
    let (op, bound) = match () {
        () if bare(left, schema) == bare(number, schema) => (*op, constant(right)?),
        () if bare(right, schema) == bare(number, schema) => (op.swap()?, constant(left)?),
        () => return None,
    };
    let op = if fact.holds { op } else { op.negate()? };
    let bound = to_zero(&bound)?;
    match (op, bound) {
        (Operator::NotEq, Ordering::Equal) => Some(None),
        (Operator::Eq, Ordering::Greater | Ordering::Less) => Some(Some(bound)),
        (Operator::Gt, Ordering::Greater | Ordering::Equal)
        | (Operator::GtEq, Ordering::Greater) => Some(Some(Ordering::Greater)),
        (Operator::Lt, Ordering::Less | Ordering::Equal) | (Operator::LtEq, Ordering::Less) => {
            Some(Some(Ordering::Less))
        }
        _ => None,
    }
}

/// What is left of an expression without aliases and without casts of numbers that keep every
/// value.
fn bare<'e>(expr: &'e Expr, schema: &DFSchema) -> &'e Expr {
    match expr {
        Expr::Alias(alias) => bare(&alias.expr, schema),
        Expr::Cast(cast) => match (cast.expr.get_type(schema), cast.field.data_type()) {
            (Ok(from), to) if from.is_numeric() && to.is_numeric() && !cast_fails(&from, to) => {
                bare(&cast.expr, schema)
            }
            _ => expr,
        },
        other => other,
    }
}
