//! What a rule that simplifies must not see.

use datafusion::arrow::array::Array;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result;
use datafusion::logical_expr::expr::{InList, Like, ScalarFunction};
use datafusion::logical_expr::{
    BinaryExpr, Cast, Expr, ExprSchemable, Operator, TryCast, Volatility,
};

use super::{Veil, unveiled};
use crate::host::cast_keeps;
use crate::plan::{can_fail, is_comparison, operands};

/// Functions that the rule makes casts of.
const CASTS: [&str; 4] = ["arrow_cast", "arrow_try_cast", "cast_to_type", "try_cast_to_type"];

/// Functions that the rule writes out as they are for numbers above zero.
const OF_LOGARITHMS: [&str; 2] = ["log", "power"];

/// The function that the rule makes an operator of regular expressions.
const MATCHES: &str = "regexp_like";

/// The function that the rule makes IN of, where the list is constant or made of elements: it is
/// false, and not null, of a list with a null.
const MEMBERSHIP: &str = "array_has";

/// Whether anything of an expression could have to be hidden.
pub(super) fn concerns(expr: &Expr) -> bool {
    match expr {
        Expr::Column(_) | Expr::Literal(_, _) => false,
        Expr::Alias(alias) => concerns(&alias.expr),
        _ => true,
    }
}

/// Whether an expression may get another name: constants of it may be written otherwise, and the
/// names of calls show a filter and an order with their veils.
pub(super) fn may_be_rewritten(expr: &Expr) -> bool {
    let is_such = |part: &Expr| match part {
        Expr::Literal(value, _) => without_sign(value).is_some(),
        Expr::BinaryExpr(binary) => is_match(binary.op),
        Expr::ScalarFunction(call) => call.name() == MATCHES,
        Expr::AggregateFunction(call) => {
            call.params.filter.is_some() || !call.params.order_by.is_empty()
        }
        Expr::WindowFunction(call) => call.params.filter.is_some(),
        _ => false,
    };
    // Nothing fails here.
    expr.exists(|part| Ok(is_such(part))).unwrap_or(true)
}

/// Whether a list may have elements that are null.
fn holds_null(list: &Expr) -> bool {
    let is_value = |part: &Expr| matches!(part, Expr::Literal(value, _) if !value.is_null());
    match list {
        Expr::Literal(ScalarValue::List(list), _) => list.values().null_count() > 0,
        Expr::ScalarFunction(call) => !call.args.iter().all(is_value),
        _ => true,
    }
}

/// Whether an operator is one of regular expressions.
fn is_match(op: Operator) -> bool {
    use Operator::{RegexIMatch, RegexMatch, RegexNotIMatch, RegexNotMatch};
    matches!(op, RegexMatch | RegexNotMatch | RegexIMatch | RegexNotIMatch)
}

/// Puts veils before parts of an operator's expressions.
pub(super) struct Hider<'a> {
    /// What they look at.
    schema: &'a DFSchema,
    /// Whether the rule may make other rows of the expressions, because something was written
    /// otherwise.
    pub(super) changed: bool,
    /// Whether a part is veiled until a constant in it is computed.
    pub(super) waits: bool,
    /// Whether the expression has operators over bits.
    bits: bool,
    /// What several lists of values test, or what may become one.
    tested: Vec<Expr>,
    /// The veils of their own so far.
    own: usize,
}

impl<'a> Hider<'a> {
    pub(super) fn new(schema: &'a DFSchema) -> Hider<'a> {
        Hider { schema, changed: false, waits: false, bits: false, tested: vec![], own: 0 }
    }

    pub(super) fn hidden(&mut self, expr: Expr) -> Result<Transformed<Expr>> {
        if !concerns(&expr) {
            return Ok(Transformed::no(expr));
        }
        self.bits = expr.exists(|part| Ok(is_of_bits(part)))?;
        self.tested = several(&expr);
        if self.tested.is_empty() {
            return expr.transform_up(|part| self.part(part));
        }
        // What is tested is found again as its own parts are written.
        let written = unveiled(expr.transform_up(|part| self.part(part))?.data)?.data;
        self.tested = several(&written);
        written.transform_up(|part| self.part(part))
    }

    /// Of a part whose own parts are hidden.
    fn part(&mut self, part: Expr) -> Result<Transformed<Expr>> {
        Ok(match part {
            Expr::Cast(Cast { ref expr, ref field })
            | Expr::TryCast(TryCast { ref expr, ref field })
                if self.loses(expr, field.data_type()) =>
            {
                Transformed::yes(Veil::Sheer.over(part))
            }
            Expr::ScalarFunction(ref call) if CASTS.contains(&call.name()) => {
                let to = part.get_type(self.schema);
                match to.is_ok_and(|to| !call.args.first().is_some_and(|arg| self.loses(arg, &to)))
                {
                    true => Transformed::no(part),
                    false => Transformed::yes(Veil::Sheer.over(part)),
                }
            }
            Expr::ScalarFunction(call)
                if OF_LOGARITHMS.contains(&call.name())
                    || call.name() == MEMBERSHIP && call.args.first().is_some_and(holds_null) =>
            {
                Transformed::yes(Veil::Kept(call.func).call(call.args))
            }
            Expr::ScalarFunction(call) if call.name() == MATCHES && call.args.len() > 1 => {
                self.matches(call)
            }
            Expr::Negative(inner) if self.bits && !matches!(*inner, Expr::Literal(_, _)) => {
                let minus = Expr::Negative(Box::new(Veil::Sheer.over(*inner)));
                Transformed::yes(Veil::Sheer.over(minus))
            }
            Expr::IsNull(inner) if self.fails(&inner) => {
                Transformed::yes(Expr::IsNull(nullable(*inner)))
            }
            Expr::IsNotNull(inner) if self.fails(&inner) => {
                Transformed::yes(Expr::IsNotNull(nullable(*inner)))
            }
            Expr::IsUnknown(inner) if self.fails(&inner) => {
                Transformed::yes(Expr::IsUnknown(nullable(*inner)))
            }
            Expr::IsNotUnknown(inner) if self.fails(&inner) => {
                Transformed::yes(Expr::IsNotUnknown(nullable(*inner)))
            }
            Expr::Like(like) if is_constant(&like.pattern) && self.fails(&like.expr) => {
                Transformed::yes(Expr::Like(Like { expr: nullable(*like.expr), ..like }))
            }
            Expr::InList(list) => self.list(list)?,
            Expr::BinaryExpr(binary) => self.operator(binary)?,
            other => Transformed::no(other),
        })
    }

    fn operator(&mut self, binary: BinaryExpr) -> Result<Transformed<Expr>> {
        use Operator::*;
        let BinaryExpr { left, op, right } = binary;
        let made =
            |left, right| Transformed::yes(Expr::BinaryExpr(BinaryExpr::new(left, op, right)));
        Ok(match op {
            Or if self.is_test(&left)? || self.is_test(&right)? => {
                let (left, right) = (self.apart(left)?, self.apart(right)?);
                made(left, right)
            }
            op if is_comparison(op) => {
                let (left, right) = self.zeros(left, op, right);
                let (left, right) = (self.whole(left, &right), right);
                let right = self.whole(right, &left);
                match op {
                    Eq if left == right && self.fails(&left) => {
                        made(nullable(*left), nullable(*right))
                    }
                    _ => {
                        let changed = is_veiled(&left) || is_veiled(&right) || self.changed;
                        let expr = Expr::BinaryExpr(BinaryExpr::new(left, op, right));
                        Transformed::new_transformed(expr, changed)
                    }
                }
            }
            BitwiseXor => {
                let (left, right) = (self.unlike(left), self.unlike(right));
                made(left, right)
            }
            // With 0 or 1, the rule leaves the constant of it.
            Multiply | Modulo | BitwiseAnd if is_constant(&left) != is_constant(&right) => {
                let expr = Expr::BinaryExpr(BinaryExpr::new(left.clone(), op, right.clone()));
                let whole = expr.get_type(self.schema);
                let odd = |side: &Expr| match (side.get_type(self.schema), &whole) {
                    (Ok(own), Ok(whole)) => own != *whole,
                    _ => true,
                };
                let folds = odd(&left) || odd(&right);
                match (is_constant(&left), is_constant(&right)) {
                    (false, _) if folds || self.fails(&left) => made(nullable(*left), right),
                    (true, _) if folds || self.fails(&right) => made(left, nullable(*right)),
                    _ => Transformed::no(expr),
                }
            }
            op if is_match(op) => {
                let several = self.is_tested(&left)?;
                let (right, changed) = self.pattern(right);
                let expr = Expr::BinaryExpr(BinaryExpr::new(left, op, right));
                match several {
                    true => Transformed::yes(Veil::Sheer.over(expr)),
                    false => Transformed::new_transformed(expr, changed),
                }
            }
            op => Transformed::no(Expr::BinaryExpr(BinaryExpr::new(left, op, right))),
        })
    }

    fn list(&mut self, mut list: InList) -> Result<Transformed<Expr>> {
        let mut changed = false;
        for item in &mut list.list {
            if let Expr::Literal(value, _) = item
                && let Some(zero) = without_sign(value)
            {
                (*value, changed) = (zero, true);
            }
        }
        self.changed |= changed;
        if let Some((fine, coarse)) = self.refined(&list.expr) {
            let cut = list.list.iter().any(|item| !self.is_whole(item, &fine, &coarse));
            if cut {
                list.expr = Box::new(Veil::Sheer.over(*list.expr));
                changed = true;
            }
        }
        Ok(match self.is_tested(&list.expr)? {
            true => Transformed::yes(Veil::Sheer.over(Expr::InList(list))),
            false => Transformed::new_transformed(Expr::InList(list), changed),
        })
    }

    fn matches(&mut self, mut call: ScalarFunction) -> Transformed<Expr> {
        let several = self.is_tested(&call.args[0]).unwrap_or(true);
        let pattern = Box::new(std::mem::take(&mut call.args[1]));
        let (pattern, changed) = self.pattern(pattern);
        call.args[1] = *pattern;
        match several {
            true => Transformed::yes(Veil::Sheer.over(Expr::ScalarFunction(call))),
            false => Transformed::new_transformed(Expr::ScalarFunction(call), changed),
        }
    }

    /// A pattern that matches the same texts, and of which the rule makes nothing wrong.
    fn pattern(&mut self, pattern: Box<Expr>) -> (Box<Expr>, bool) {
        let Expr::Literal(value, metadata) = *pattern else {
            return match is_constant(&pattern) {
                true => {
                    self.waits = true;
                    (Box::new(Veil::Dense.over(*pattern)), true)
                }
                false => (pattern, false),
            };
        };
        let other = match value.try_as_str().flatten() {
            Some(".*") => Some(String::new()),
            // A group is not made a pattern of LIKE.
            Some(text) if has_backslash(text) && !begins_with_group(text) => {
                Some(format!("({text})"))
            }
            _ => None,
        };
        let same = |text: String| match &value {
            ScalarValue::LargeUtf8(_) => ScalarValue::LargeUtf8(Some(text)),
            ScalarValue::Utf8View(_) => ScalarValue::Utf8View(Some(text)),
            _ => ScalarValue::Utf8(Some(text)),
        };
        let changed = other.is_some();
        self.changed |= changed;
        let value = other.map_or_else(|| value.clone(), same);
        (Box::new(Expr::Literal(value, metadata)), changed)
    }

    /// The sides of a comparison, in which zeros have no sign.
    fn zeros(
        &mut self,
        mut left: Box<Expr>,
        op: Operator,
        mut right: Box<Expr>,
    ) -> (Box<Expr>, Box<Expr>) {
        let equals = matches!(op, Operator::Eq | Operator::NotEq);
        for side in [&mut left, &mut right] {
            match &mut **side {
                Expr::Literal(value, _) => {
                    if let Some(zero) = without_sign(value) {
                        (*value, self.changed) = (zero, true);
                    }
                }
                other if equals && is_constant(other) && self.is_float(other) => {
                    self.waits = true;
                    let constant = std::mem::take(&mut **side);
                    **side = Veil::Dense.over(constant);
                }
                _ => {}
            }
        }
        (left, right)
    }

    fn is_float(&self, expr: &Expr) -> bool {
        expr.get_type(self.schema).is_ok_and(|dtype| dtype.is_floating())
    }

    /// An instant that is cast to a finer unit, veiled where the other side has digits of that.
    fn whole(&mut self, side: Box<Expr>, other: &Expr) -> Box<Expr> {
        match self.refined(&side) {
            Some((fine, coarse)) if !self.is_whole(other, &fine, &coarse) => {
                Box::new(Veil::Sheer.over(*side))
            }
            _ => side,
        }
    }

    /// The units of an instant that is cast to a finer one: that, and its own.
    fn refined(&self, expr: &Expr) -> Option<(DataType, DataType)> {
        let (Expr::Cast(Cast { expr, field }) | Expr::TryCast(TryCast { expr, field })) = expr
        else {
            return None;
        };
        let (to, from) = (field.data_type(), expr.get_type(self.schema).ok()?);
        match (&from, to) {
            (DataType::Timestamp(own, _), DataType::Timestamp(finer, _)) if own != finer => {
                Some((to.clone(), from))
            }
            _ => None,
        }
    }

    /// Whether an expression is no constant, or one that is an instant of the coarser unit as well.
    fn is_whole(&mut self, expr: &Expr, fine: &DataType, coarse: &DataType) -> bool {
        match expr {
            Expr::Literal(value, _) => {
                let there = value.cast_to(coarse);
                let back = there.and_then(|there| there.cast_to(fine));
                back.is_ok_and(|back| back == *value) || value.is_null()
            }
            other if is_constant(other) => {
                self.waits = true;
                false
            }
            _ => true,
        }
    }

    /// Whether a cast is one that does not keep all values apart.
    fn loses(&self, expr: &Expr, to: &DataType) -> bool {
        !is_constant(expr) && !expr.get_type(self.schema).is_ok_and(|from| cast_keeps(&from, to))
    }

    /// Whether an expression is never null and can fail.
    fn fails(&self, expr: &Expr) -> bool {
        expr.nullable(self.schema).is_ok_and(|nullable| !nullable) && can_fail(expr, self.schema)
    }

    /// An operand that no other is equal to.
    fn unlike(&mut self, operand: Box<Expr>) -> Box<Expr> {
        match *operand {
            Expr::Literal(_, _) => operand,
            other => {
                self.own += 1;
                Box::new(Veil::Own(self.own).over(other))
            }
        }
    }

    /// Whether several lists test an expression.
    fn is_tested(&self, expr: &Expr) -> Result<bool> {
        if self.tested.is_empty() {
            return Ok(false);
        }
        Ok(self.tested.contains(bare(&unveiled(expr.clone())?.data)))
    }

    /// Whether an operand of OR compares what several lists test.
    fn is_test(&self, operand: &Expr) -> Result<bool> {
        match compared(operand) {
            Some(column) if !self.tested.is_empty() => self.is_tested(column),
            _ => Ok(false),
        }
    }

    fn apart(&self, operand: Box<Expr>) -> Result<Box<Expr>> {
        Ok(match self.is_test(&operand)? {
            true => Box::new(Veil::Sheer.over(*operand)),
            false => operand,
        })
    }
}

fn nullable(expr: Expr) -> Box<Expr> {
    Box::new(Veil::Nullable.over(expr))
}

fn is_veiled(expr: &Expr) -> bool {
    matches!(expr, Expr::ScalarFunction(call) if Veil::of(call).is_some())
}

/// What several lists of an expression test.
fn several(expr: &Expr) -> Vec<Expr> {
    let mut tests = Tests::default();
    tests.note_all(expr);
    tests.several().cloned().collect()
}

/// What lists test, and how often: IN, regular expressions that may become one, and several
/// equalities of one OR.
#[derive(Default)]
struct Tests<'e>(Vec<(&'e Expr, usize)>);

impl<'e> Tests<'e> {
    fn several(self) -> impl Iterator<Item = &'e Expr> {
        self.0.into_iter().filter(|(_, times)| *times > 1).map(|(expr, _)| expr)
    }

    fn note(&mut self, expr: &'e Expr) {
        let expr = bare(expr);
        match self.0.iter_mut().find(|(known, _)| *known == expr) {
            Some((_, times)) => *times += 1,
            None => self.0.push((expr, 1)),
        }
    }

    fn note_all(&mut self, expr: &'e Expr) {
        match expr {
            Expr::BinaryExpr(BinaryExpr { op: Operator::Or, .. }) => {
                let operands = operands(expr, Operator::Or);
                let mut equalities = Tests::default();
                let columns = operands.iter().copied().filter_map(compared);
                columns.for_each(|column| equalities.note(column));
                equalities.several().for_each(|column| self.note(column));
                operands.into_iter().for_each(|operand| self.note_all(operand));
                return;
            }
            Expr::InList(list) => self.note(&list.expr),
            Expr::BinaryExpr(BinaryExpr { left, op, .. }) if is_match(*op) => self.note(left),
            Expr::ScalarFunction(call) if call.name() == MATCHES => {
                call.args.first().into_iter().for_each(|text| self.note(text));
            }
            _ => {}
        }
        // Nothing fails here.
        let _ = expr.apply_children(|child| {
            self.note_all(child);
            Ok(TreeNodeRecursion::Continue)
        });
    }
}

/// What an equality compares with a constant.
fn compared(expr: &Expr) -> Option<&Expr> {
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) => {
            match (is_constant(left), is_constant(right)) {
                (false, true) => Some(left),
                (true, false) => Some(right),
                _ => None,
            }
        }
        _ => None,
    }
}

/// The expression without casts around it.
fn bare(expr: &Expr) -> &Expr {
    match expr {
        Expr::Cast(Cast { expr, .. }) | Expr::TryCast(TryCast { expr, .. }) => bare(expr),
        Expr::Alias(alias) => bare(&alias.expr),
        other => other,
    }
}

/// Whether an expression can be computed before any row is read.
fn is_constant(expr: &Expr) -> bool {
    let of_rows = |part: &Expr| match part {
        Expr::Literal(_, _) => false,
        Expr::ScalarFunction(call) => call.func.signature().volatility == Volatility::Volatile,
        Expr::Column(_)
        | Expr::OuterReferenceColumn(_, _)
        | Expr::LambdaVariable(_)
        | Expr::Placeholder(_)
        | Expr::ScalarVariable(_, _)
        | Expr::AggregateFunction(_)
        | Expr::WindowFunction(_)
        | Expr::ScalarSubquery(_)
        | Expr::Exists(_)
        | Expr::InSubquery(_)
        | Expr::SetComparison(_) => true,
        _ => false,
    };
    // Nothing fails here.
    !expr.exists(|part| Ok(of_rows(part))).unwrap_or(true)
}

fn is_of_bits(expr: &Expr) -> bool {
    let Expr::BinaryExpr(binary) = expr else { return false };
    matches!(binary.op, Operator::BitwiseAnd | Operator::BitwiseOr | Operator::BitwiseXor)
}

/// Whether a regular expression may have a backslash as a character.
fn has_backslash(pattern: &str) -> bool {
    pattern.contains(r"\\") || pattern.contains('\\') && pattern.to_lowercase().contains("5c")
}

/// Whether a pattern begins with a group that captures: of such the rule makes nothing.
fn begins_with_group(pattern: &str) -> bool {
    pattern.starts_with('(') && !pattern.starts_with("(?")
}

/// Zero without a sign, where it has one.
fn without_sign(value: &ScalarValue) -> Option<ScalarValue> {
    match value {
        ScalarValue::Float64(Some(zero)) if *zero == 0.0 && zero.is_sign_negative() => {
            Some(ScalarValue::Float64(Some(0.0)))
        }
        ScalarValue::Float32(Some(zero)) if *zero == 0.0 && zero.is_sign_negative() => {
            Some(ScalarValue::Float32(Some(0.0)))
        }
        _ => None,
    }
}
