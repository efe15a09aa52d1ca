//! Scalar functions, by name.

use datafusion::logical_expr::expr::ScalarFunction;

use super::*;

impl Compiler<'_> {
    pub(super) fn function(&mut self, expr: &Expr, call: &ScalarFunction) -> Result<Value> {
        let dtype = expr.get_type(self.schema)?;
        match (call.name(), call.args.as_slice()) {
            ("coalesce", arguments) => self.coalesce(arguments, &dtype),
            ("nullif", [left, right]) => self.nullif(left, right),
            (name, _) => Err(not_yet(format!("function {name}"))),
        }
    }
}
