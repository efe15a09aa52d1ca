//! Chains of binary operators that lean to the left, as `a + b + c …` is parsed, of any length.
//!
//! An operator asks for its operands' values and types, and they ask theirs. Where that would go
//! deep the operators are taken from the innermost outwards, and each finds what is on its left
//! computed.

use std::collections::HashMap;

use datafusion::logical_expr::BinaryExpr;
use datafusion::logical_expr_common::type_coercion::binary::BinaryTypeCoercer;

use super::*;

/// Operators up to which a chain is compiled from the outermost inwards.
const DEEP: usize = 24;
/// Operators of a chain, from the outermost inwards, of which it is tried whether they are
/// conditions on a dictionary.
const TRIED: usize = 8;

/// What is known of the operators of a chain. They are found by their addresses, at which they stay
/// as long as this is there.
#[derive(Debug, Default)]
pub(super) struct Chains {
    /// Computed, and asked for by the next operator.
    ready: Option<(*const Expr, Value)>,
    types: HashMap<*const Expr, DataType>,
}

impl Chains {
    /// The value of what was computed last.
    pub(super) fn take(&mut self, expr: &Expr) -> Option<Value> {
        self.ready.take_if(|(of, _)| std::ptr::eq(*of, expr)).map(|(_, value)| value)
    }
}

/// Whether the operators that follow one another to the left are many.
pub(super) fn is_deep(expr: &Expr) -> bool {
    let mut next = expr;
    for _ in 0..DEEP {
        match next {
            Expr::BinaryExpr(binary) => next = &binary.left,
            _ => return false,
        }
    }
    true
}

impl Compiler<'_> {
    pub(super) fn type_of(&self, expr: &Expr) -> Result<DataType> {
        match self.chains.types.get(&std::ptr::from_ref(expr)) {
            Some(known) => Ok(known.clone()),
            None => Ok(expr.get_type(self.schema)?),
        }
    }

    /// The value of a chain's last operator.
    pub(super) fn chain(&mut self, expr: &Expr) -> Result<Value> {
        let mut operators: Vec<(&Expr, &BinaryExpr)> = vec![];
        let mut first = expr;
        while let Expr::BinaryExpr(binary) = first {
            operators.push((first, binary));
            first = &binary.left;
        }
        let mut left = first.get_type(self.schema)?;
        for (operator, binary) in operators.iter().rev() {
            let right = self.type_of(&binary.right)?;
            let dtype = match left == right
                && (left.is_integer() || left.is_floating())
                && is_arithmetic(binary.op)
            {
                true => left,
                false => BinaryTypeCoercer::new(&left, &binary.op, &right).get_result_type()?,
            };
            self.chains.types.insert(*operator, dtype.clone());
            left = dtype;
        }
        // Conditions on one column of strings may come one after the other.
        let mut begin = operators.len();
        let mut value = None;
        for (at, (operator, _)) in operators.iter().enumerate().take(TRIED) {
            value = self.by_dictionary(operator)?;
            if value.is_some() {
                begin = at;
                break;
            }
        }
        let mut value = match value {
            Some(value) => value,
            None => self.value(first)?,
        };
        let inner = operators.get(begin).map_or(first, |(operator, _)| operator);
        let mut computed = std::ptr::from_ref(inner);
        for (operator, _) in operators[..begin].iter().rev() {
            self.chains.ready = Some((computed, value));
            value = self.value_of_row(operator)?;
            computed = *operator;
        }
        for (operator, _) in &operators {
            self.chains.types.remove(&std::ptr::from_ref(*operator));
        }
        Ok(value)
    }
}

fn is_arithmetic(op: Operator) -> bool {
    matches!(
        op,
        Operator::Plus | Operator::Minus | Operator::Multiply | Operator::Divide | Operator::Modulo
    )
}
