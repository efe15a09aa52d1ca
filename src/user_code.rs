//! Functions that users write in CUDA C++: `CREATE FUNCTION … LANGUAGE CUDA AS $$ … $$`.
//!
//! ```text
//!   name, types, body ──▶ Definition ──▶ checked by the device's compiler, once
//!                             │          what it says is told in the user's lines (`diagnosis.rs`)
//!                             └──▶ a function in front of each generated kernel that calls it
//! ```
//!
//! To DataFusion such a function is one of its own ([`UserFunction`]), which plans name. `codegen`
//! knows it again, and calls it as it does what `kernels/` has, so that it is fused as these are. The
//! CPU engine calls a closure, or has the simulator run it.
//!
//! | file | what |
//! |---|---|
//! | `definition` | the C++ around a body |
//! | `diagnosis` | what compilers and the simulator say, in the user's lines |
//! | `scalar`, `aggregate` | functions of a row, and of many |
//! | `raw` | whole kernels |

mod aggregate;
mod definition;
mod diagnosis;
mod raw;
mod scalar;

use datafusion::common::tree_node::TreeNode;
use datafusion::logical_expr::Expr;

pub use self::aggregate::AggregateFunction;
pub(crate) use self::aggregate::{BODIES, UserAggregate};
pub(crate) use self::definition::{Body, Definition};
pub(crate) use self::diagnosis::in_users_words;
pub(crate) use self::raw::{CClass, ColumnUse, KernelText, ParameterKind, wrong};
pub use self::scalar::ScalarFunction;
pub(crate) use self::scalar::{UserFunction, least_and_greatest};

/// Whether a part of the expression is a call of a user's function that may have another value each time.
pub(crate) fn is_volatile(expr: &Expr) -> bool {
    let of_node = |node: &Expr| match node {
        Expr::ScalarFunction(call) => UserFunction::of(&call.func).is_some_and(UserFunction::is_volatile),
        _ => false,
    };
    // Nothing fails here.
    expr.exists(|node| Ok(of_node(node))).unwrap_or(false)
}

/// Whether the node itself is a call of a user's function.
pub(crate) fn is_called_by(node: &Expr) -> bool {
    matches!(node, Expr::ScalarFunction(call) if UserFunction::of(&call.func).is_some())
}
