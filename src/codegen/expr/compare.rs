//! Comparisons: =, <, IS DISTINCT FROM, BETWEEN, IN.
//!
//! NaN is one value, whatever its bits: equal to itself, and greater than every other number. −0.0
//! is 0.0, but comes before it where values are put in an order (greatest, least, sorted lists).

use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::{Between, expr_fn};

use super::arithmetic::wide;
use super::list::same_form;
use super::*;
use crate::codegen::NullsPlace;
use crate::codegen::device_function::{SORT_F32, SORT_F64, VIEWS_EQUAL};
use crate::codegen::keys::emit_equal;
use crate::codegen::order_compare::{Comparing, emit_compare};

/// Literals in an IN list from which on it is searched, not tested one by one.
const SEARCHED_LIST: usize = 12;
/// Strings in an IN list from which on a loop tests them: a test takes longer to compile than the
/// loop takes to run.
const LOOPED_STRINGS: usize = 4;

/// Whether −0.0 equals 0.0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ZeroSigns {
    Equal,
    Apart,
}

impl Compiler<'_> {
    /// A comparison operator.
    pub(super) fn compare(&mut self, op: Operator, left: &Value, right: &Value) -> Result<Value> {
        self.compare_with(op, left, right, ZeroSigns::Equal)
    }

    pub(super) fn compare_with(
        &mut self,
        op: Operator,
        left: &Value,
        right: &Value,
        zeros: ZeroSigns,
    ) -> Result<Value> {
        let distinct = match op {
            Operator::IsDistinctFrom => Some("||"),
            Operator::IsNotDistinctFrom => Some("&&"),
            _ => None,
        };
        let Some(_) = distinct else {
            let valid = both(&left.valid, &right.valid, self.out);
            let test = self.comparison(op, left, right, zeros)?;
            return Ok(self.result(DataType::Boolean, Repr::Bool, test, valid));
        };
        // Null is a value like another here, equal to itself.
        let equal = if left.dtype.is_null() || right.dtype.is_null() {
            "true".to_string()
        } else {
            self.comparison(Operator::Eq, left, right, zeros)?
        };
        let (v, w) = (left.validity().to_string(), right.validity().to_string());
        let same = match (&left.valid, &right.valid) {
            (None, None) => equal,
            _ => format!("({v} == {w} && (!{v} || {equal}))"),
        };
        let test = if op == Operator::IsDistinctFrom { format!("!{same}") } else { same };
        Ok(self.result(DataType::Boolean, Repr::Bool, test, None))
    }

    /// C++ `bool`, for valid operands.
    fn comparison(
        &mut self,
        op: Operator,
        left: &Value,
        right: &Value,
        zeros: ZeroSigns,
    ) -> Result<String> {
        let sign = match op {
            Operator::Eq => "==",
            Operator::NotEq => "!=",
            Operator::Lt => "<",
            Operator::LtEq => "<=",
            Operator::Gt => ">",
            Operator::GtEq => ">=",
            other => return Err(not_yet(format!("operator {other}"))),
        };
        if left.dtype.is_null() || right.dtype.is_null() {
            return Ok("false".into());
        }
        if let (Some(one), Some(two)) = (&left.dictionary, &right.dictionary)
            && std::sync::Arc::ptr_eq(&one.dictionary, &two.dictionary)
        {
            return Ok(format!("({} {sign} {})", one.code, two.code));
        }
        if let (DataType::Decimal128(_, one), DataType::Decimal128(_, two)) =
            (&left.dtype, &right.dtype)
            && one != two
        {
            let digits =
                |to: &i8, from: &i8| (i32::from(*to) - i32::from(*from)).max(0).unsigned_abs();
            let left = Value { dtype: wide(), ..self.scale_up(left, digits(two, one))? };
            let right = Value { dtype: wide(), ..self.scale_up(right, digits(one, two))? };
            return self.comparison(op, &left, &right, zeros);
        }
        let (l, r) = (&left.code, &right.code);
        Ok(match (left.repr, right.repr) {
            (Repr::Bool, Repr::Bool) => format!("((u32)(bool){l} {sign} (u32)(bool){r})"),
            (Repr::F32, Repr::F32) | (Repr::F64, Repr::F64) if zeros == ZeroSigns::Apart => {
                let sort = if left.repr == Repr::F32 { SORT_F32 } else { SORT_F64 };
                let [one, other] = [sort; 2].map(|sort| self.out.calls(sort));
                format!("({one}({l}) {sign} {other}({r}))")
            }
            (Repr::F32, Repr::F32) | (Repr::F64, Repr::F64) => match op {
                Operator::Eq => float_equal(left, right),
                Operator::NotEq => format!("!{}", float_equal(left, right)),
                Operator::Lt => float_less(left, right),
                Operator::LtEq => format!("!{}", float_less(right, left)),
                Operator::Gt => float_less(right, left),
                _ => format!("!{}", float_less(left, right)),
            },
            (Repr::View, Repr::View) => match op {
                Operator::Eq => format!("{}({l}, {r})", self.out.calls(VIEWS_EQUAL)),
                Operator::NotEq => format!("!{}({l}, {r})", self.out.calls(VIEWS_EQUAL)),
                _ => format!("(compare_views({l}, {r}) {sign} 0)"),
            },
            (a, b) if a.is_integer() && b.is_integer() && compatible(&left.dtype, &right.dtype) => {
                let repr = common_repr(&[left, right]);
                let ctype = repr.device_type();
                format!("(({ctype}){l} {sign} ({ctype}){r})")
            }
            (Repr::List, Repr::List) | (Repr::Struct, Repr::Struct)
                if matches!(op, Operator::Eq | Operator::NotEq)
                    && same_form(&left.dtype, &right.dtype) =>
            {
                let equal = emit_equal(left, right, self.out);
                if op == Operator::Eq { equal } else { format!("!{equal}") }
            }
            (Repr::List, Repr::List) | (Repr::Struct, Repr::Struct)
                if same_form(&left.dtype, &right.dtype) =>
            {
                // Nulls within are greatest, as in ORDER BY.
                let by = Comparing { nulls: NullsPlace::Last, one_zero: zeros == ZeroSigns::Equal };
                format!("({} {sign} 0)", emit_compare(left, right, by, self.out))
            }
            _ => return Err(not_yet(format!("{} {op} {}", left.dtype, right.dtype))),
        })
    }

    pub(super) fn between(&mut self, between: &Between) -> Result<Value> {
        let value = self.value(&between.expr)?;
        let low = self.value(&between.low)?;
        let high = self.value(&between.high)?;
        let low = self.compare(Operator::GtEq, &value, &low)?;
        let high = self.compare(Operator::LtEq, &value, &high)?;
        let inside = self.junction(logic::Junction::And, &low, &high);
        Ok(if between.negated { self.negated(&inside) } else { inside })
    }

    pub(super) fn in_list(&mut self, list: &InList) -> Result<Value> {
        let value = self.value(&list.expr)?;
        let literals: Option<Vec<&ScalarValue>> = list.list.iter().map(as_literal).collect();
        let found = match literals {
            Some(literals) => self.in_literals(&value, &literals)?,
            None => {
                let mut tests = Vec::new();
                for item in &list.list {
                    let item = self.value(item)?;
                    tests.push(self.compare(Operator::Eq, &value, &item)?);
                }
                let mut tests = tests.into_iter();
                let Some(first) = tests.next() else { return Err(not_yet("an empty IN list")) };
                tests.fold(first, |all, test| self.junction(logic::Junction::Or, &all, &test))
            }
        };
        Ok(if list.negated { self.negated(&found) } else { found })
    }

    /// Whether `value` is among constants. A null among them makes "not found" unknown.
    fn in_literals(&mut self, value: &Value, literals: &[&ScalarValue]) -> Result<Value> {
        let nulls = literals.iter().any(|l| l.is_null());
        let mut integers: Vec<i128> = literals.iter().filter_map(|l| literal::integer(l)).collect();
        let searchable = value.repr.is_integer()
            && value.repr != Repr::I128
            && value.repr != Repr::U64
            && integers.len() + literals.iter().filter(|l| l.is_null()).count() == literals.len()
            && literals.iter().all(|l| l.is_null() || l.data_type() == value.dtype);
        let test = if searchable && integers.len() >= SEARCHED_LIST {
            integers.retain(|i| i64::try_from(*i).is_ok());
            integers.sort_unstable();
            integers.dedup();
            let bytes: Vec<u8> = integers.iter().flat_map(|i| (*i as i64).to_le_bytes()).collect();
            let list = self.inputs.constant(&bytes);
            let count = self.inputs.parameter(integers.len() as u64);
            format!("in_sorted((i64){}, (const i64*)({list}), (u32){count})", value.code)
        } else if let Some(texts) = strings(value, literals) {
            let list = self.inputs.strings(&texts);
            let count = self.inputs.parameter(texts.len() as u64);
            format!("in_views({}, {list}, (u32){count})", value.code)
        } else {
            let mut tests = Vec::new();
            for literal in literals.iter().filter(|l| !l.is_null()) {
                let item = self.literal(literal)?;
                tests.push(self.comparison(Operator::Eq, value, &item, ZeroSigns::Equal)?);
            }
            if tests.is_empty() { "false".into() } else { format!("({})", tests.join(" || ")) }
        };
        let mut result = self.result(DataType::Boolean, Repr::Bool, test, value.valid.clone());
        if nulls {
            let valid = format!("{} && {}", value.validity(), result.code);
            result.valid = Some(self.out.let_("bool", valid));
        }
        Ok(result)
    }

    /// `expr = literal` as an expression, for CASE with a base.
    pub(super) fn equals(base: &Expr, when: &Expr) -> Expr {
        expr_fn::binary_expr(base.clone(), Operator::Eq, when.clone())
    }
}

/// C++ `bool`: two floats are equal.
fn float_equal(left: &Value, right: &Value) -> String {
    let (l, r) = (&left.code, &right.code);
    if is_number(left) || is_number(right) {
        format!("({l} == {r})")
    } else {
        format!("sql_equal({l}, {r})")
    }
}

/// C++ `bool`: one float is less than another.
fn float_less(left: &Value, right: &Value) -> String {
    let (l, r) = (&left.code, &right.code);
    match (is_number(left), is_number(right)) {
        (_, true) => format!("({l} < {r})"),
        (true, false) => format!("(!({l} >= {r}))"),
        (false, false) => format!("sql_less({l}, {r})"),
    }
}

/// Whether a valid float is known to be no NaN.
fn is_number(value: &Value) -> bool {
    value.magnitude.is_some()
}

/// The literals but for nulls, where they are many strings for a string to be compared with, which
/// has no codes.
fn strings<'a>(value: &Value, literals: &[&'a ScalarValue]) -> Option<Vec<&'a str>> {
    let texts: Vec<Option<&str>> = literals
        .iter()
        .filter(|literal| !literal.is_null())
        .map(|literal| literal.try_as_str().flatten())
        .collect();
    let many =
        texts.len() >= LOOPED_STRINGS && value.repr == Repr::View && value.dictionary.is_none();
    if many { texts.into_iter().collect() } else { None }
}

/// Whether integers of two types may be compared as they lie (decimals only of one scale).
fn compatible(left: &DataType, right: &DataType) -> bool {
    match (left, right) {
        (DataType::Decimal128(_, one), DataType::Decimal128(_, two)) => one == two,
        (DataType::Timestamp(one, _), DataType::Timestamp(two, _)) => one == two,
        _ => left == right,
    }
}
