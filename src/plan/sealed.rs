//! Expressions that an optimizer shall not look into, and conditions that it shall leave where they
//! are.
//!
//! ```text
//!   x <> 0 AND 10 / x > 1                      in_order_and(x <> 0, 10 / x > 1)
//!   CASE WHEN x <> 0 THEN 10 / x > 1 END       in_order_case(x <> 0, 10 / x > 1)
//!   10 / x > 1  as a condition of its own      in_place(10 / x > 1)
//! ```
//!
//! DataFusion's rules take AND and OR to be commutative, and make them of CASE. Where an operand
//! can fail, its place behind the others is part of its meaning. As calls of functions that nobody
//! knows, the order of operands stays. `in_place` is volatile besides: no rule moves such a
//! condition into scans, joins or keys. The calls are only there while rules run: [`unseal`] makes
//! of them what they were.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::datatypes::DataType;
use datafusion::common::internal_err;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    BinaryExpr, Case, ColumnarValue, Expr, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility, binary_expr,
};

/// What is sealed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Seal {
    /// One argument, which keeps its place.
    Place,
    /// One argument, which is computed on some rows only.
    Some,
    And,
    Or,
    /// A base, if there is one; conditions and values in turn; what is chosen otherwise, if
    /// anything is.
    Case {
        base: bool,
        otherwise: bool,
    },
}

/// A function that stands for what is sealed.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Sealed {
    seal: Seal,
    signature: Signature,
}

impl Sealed {
    fn call(seal: Seal, args: Vec<Expr>) -> Expr {
        static PLACE: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| Sealed::function(Seal::Place));
        let function = match seal {
            Seal::Place => PLACE.clone(),
            other => Sealed::function(other),
        };
        Expr::ScalarFunction(ScalarFunction { func: function, args })
    }

    fn function(seal: Seal) -> Arc<ScalarUDF> {
        let volatility =
            if seal == Seal::Place { Volatility::Volatile } else { Volatility::Immutable };
        Arc::new(ScalarUDF::from(Sealed { seal, signature: Signature::variadic_any(volatility) }))
    }
}

impl ScalarUDFImpl for Sealed {
    fn name(&self) -> &str {
        match self.seal {
            Seal::Place => "in_place",
            Seal::Some => "of_some_rows",
            Seal::And => "in_order_and",
            Seal::Or => "in_order_or",
            Seal::Case { .. } => "in_order_case",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        let values = match self.seal {
            Seal::Place | Seal::Some => types,
            Seal::And | Seal::Or => return Ok(DataType::Boolean),
            Seal::Case { base, .. } => &types[usize::from(base)..],
        };
        let case = matches!(self.seal, Seal::Case { .. });
        let mut of_values = values
            .iter()
            .enumerate()
            .filter(|(at, _)| !case || at % 2 == 1 || at + 1 == values.len());
        let known = of_values.find(|(_, dtype)| !dtype.is_null());
        Ok(known.map_or(DataType::Null, |(_, dtype)| dtype.clone()))
    }

    fn short_circuits(&self) -> bool {
        self.seal != Seal::Place
    }

    fn conditional_arguments<'a>(
        &self,
        args: &'a [Expr],
    ) -> Option<(Vec<&'a Expr>, Vec<&'a Expr>)> {
        let sure = match self.seal {
            Seal::Place => return None,
            Seal::Some => 0,
            Seal::Case { base: true, .. } => 2,
            _ => 1,
        };
        let (sure, perhaps) = args.split_at(sure.min(args.len()));
        Some((sure.iter().collect(), perhaps.iter().collect()))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match (self.seal, args.args.as_slice()) {
            (Seal::Place | Seal::Some, [value]) => Ok(value.clone()),
            // Rules that compute constants go on without.
            _ => internal_err!("{} is not computed before it is unsealed", self.name()),
        }
    }
}

/// The expression where it stands.
pub(crate) fn in_place(expr: Expr) -> Expr {
    Sealed::call(Seal::Place, vec![expr])
}

/// The expression, of which nothing may be computed for all rows.
pub(crate) fn of_some_rows(expr: Expr) -> Expr {
    Sealed::call(Seal::Some, vec![expr])
}

/// A chain of AND or OR whose operands keep their order.
pub(crate) fn in_order(op: Operator, operands: Vec<Expr>) -> Expr {
    Sealed::call(if op == Operator::And { Seal::And } else { Seal::Or }, operands)
}

/// A CASE whose parts keep their order.
pub(crate) fn in_order_case(case: Case) -> Expr {
    let seal = Seal::Case { base: case.expr.is_some(), otherwise: case.else_expr.is_some() };
    let parts = case.when_then_expr.into_iter().flat_map(|(when, then)| [when, then]);
    let args = case.expr.into_iter().chain(parts).chain(case.else_expr).map(|part| *part).collect();
    Sealed::call(seal, args)
}

/// Whether a condition has to stay where it is.
pub(crate) fn is_in_place(expr: &Expr) -> bool {
    matches!(expr, Expr::ScalarFunction(call) if seal_of(call) == Some(Seal::Place))
}

/// Whether a part of the expression is sealed.
pub(crate) fn is_sealed(expr: &Expr) -> bool {
    let sealed =
        |node: &Expr| matches!(node, Expr::ScalarFunction(call) if seal_of(call).is_some());
    // Nothing fails here.
    expr.exists(|node| Ok(sealed(node))).unwrap_or(false)
}

/// Whether the expression is a CASE whose parts keep their order.
pub(crate) fn is_sealed_case(expr: &Expr) -> bool {
    matches!(expr, Expr::ScalarFunction(call) if matches!(seal_of(call), Some(Seal::Case { .. })))
}

fn seal_of(call: &ScalarFunction) -> Option<Seal> {
    Some(call.func.inner().downcast_ref::<Sealed>()?.seal)
}

/// The expression as it was before it was sealed.
pub(crate) fn unseal(expr: Expr) -> Result<Transformed<Expr>> {
    expr.transform_up(|expr| match expr {
        Expr::ScalarFunction(call) => Ok(match seal_of(&call) {
            Some(seal) => Transformed::yes(opened(seal, call.args)?),
            None => Transformed::no(Expr::ScalarFunction(call)),
        }),
        other => Ok(Transformed::no(other)),
    })
}

fn opened(seal: Seal, args: Vec<Expr>) -> Result<Expr> {
    let mut args = args.into_iter();
    let chain = |args: std::vec::IntoIter<Expr>, op| {
        args.reduce(|left, right| binary_expr(left, op, right))
            .map_or_else(|| internal_err!("an empty seal"), Ok)
    };
    match seal {
        Seal::Place | Seal::Some | Seal::And => chain(args, Operator::And),
        Seal::Or => chain(args, Operator::Or),
        Seal::Case { base, otherwise } => {
            let expr = if base { args.next().map(Box::new) } else { None };
            let else_expr = if otherwise { args.next_back().map(Box::new) } else { None };
            let mut when_then_expr = vec![];
            while let (Some(when), Some(then)) = (args.next(), args.next()) {
                when_then_expr.push((Box::new(when), Box::new(then)));
            }
            Ok(Expr::Case(Case { expr, when_then_expr, else_expr }))
        }
    }
}

/// The operands of a chain of one operator, from left to right.
pub(crate) fn into_operands(expr: Expr, op: Operator) -> Vec<Expr> {
    let (mut found, mut rest) = (vec![], vec![expr]);
    while let Some(next) = rest.pop() {
        match next {
            Expr::BinaryExpr(BinaryExpr { left, op: own, right }) if own == op => {
                rest.extend([*right, *left])
            }
            other => found.push(other),
        }
    }
    found
}
