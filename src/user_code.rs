//! Functions that users write in CUDA C++: `CREATE FUNCTION … LANGUAGE CUDA AS $$ … $$`.
//!
//! ```text
//!   name, types, body ──▶ Definition ──▶ checked by the device's compiler, once
//!                             │          what it says is told in the user's lines (`diagnosis.rs`)
//!                             └──▶ a function in front of each generated kernel that calls it
//! ```
//!
//! To DataFusion such a function is one of its own ([`UserFunction`]), which plans name. `codegen`
//! knows it again, and calls it as it does what `kernels/` has, so that it is fused as these are.
//! The CPU engine calls a closure, or has the simulator run it. A function may also be a closure
//! alone: then the device refuses it as it does functions that it has no form of.
//!
//! | file | what |
//! |---|---|
//! | `arguments` | their names, and what is cast to their types |
//! | `closure` | what closures make of rows, on the host |
//! | `definition` | the C++ around a body |
//! | `diagnosis` | what compilers and the simulator say, in the user's lines |
//! | `scalar`, `aggregate` | functions of a row, and of many |
//! | `raw` | whole kernels |
//! | `written` | functions as bytes, for another process |

mod aggregate;
mod arguments;
mod closure;
mod definition;
mod diagnosis;
mod raw;
mod scalar;
#[cfg(feature = "proto")]
mod written;

use datafusion::logical_expr::Expr;

pub use self::aggregate::AggregateFunction;
pub(crate) use self::aggregate::{BODIES, UserAggregate};
pub(crate) use self::definition::{Body, Definition};
pub(crate) use self::diagnosis::in_users_words;
pub(crate) use self::raw::{CClass, ColumnUse, KernelText, ParameterKind, wrong};
pub use self::scalar::ScalarFunction;
pub(crate) use self::scalar::{UserFunction, least_and_greatest};

/// Whether the node itself is a call of a user's function.
pub(crate) fn is_called_by(node: &Expr) -> bool {
    matches!(node, Expr::ScalarFunction(call) if UserFunction::of(&call.func).is_some())
}
