//! Integers put into a type that may not hold them. A test is emitted only if the value's bounds
//! may exceed the limits.

use super::*;

/// What to do with a value that the target type cannot hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OnError {
    /// The row fails: CAST.
    Fail,
    /// The value becomes null: TRY_CAST.
    Null,
}

impl Compiler<'_> {
    /// Converts an integer to type `to`. `limits` are the least and greatest value that the result
    /// may have.
    pub(super) fn fit(
        &mut self,
        value: Value,
        to: &DataType,
        limits: (i128, i128),
        on_error: OnError,
    ) -> Result<Value> {
        let (low, high) = value.bounds();
        if within((low, high), limits) {
            return Ok(Value { dtype: to.clone(), range: Some((low, high)), ..value });
        }
        let ctype = value.repr.device_type();
        let mut tests = Vec::new();
        if low < limits.0 {
            tests.push(format!("{} < ({ctype}){}", value.code, literal::baked_i128(limits.0)));
        }
        if high > limits.1 {
            tests.push(format!("{} > ({ctype}){}", value.code, literal::baked_i128(limits.1)));
        }
        let outside = format!("({})", tests.join(" || "));
        let valid = self.outcome(&value.valid, &outside, on_error);
        let range = Some((low.max(limits.0), high.min(limits.1)));
        // Narrowed at once: where nothing failed the bounds fit the type's own representation.
        let repr = repr_of(to)?;
        let code =
            self.out.let_(repr.device_type(), format!("({}){}", repr.device_type(), value.code));
        Ok(Value { dtype: to.clone(), repr, code, valid, range, ..value })
    }

    /// The validity after a conversion that is impossible where `outside` holds.
    pub(super) fn outcome(
        &mut self,
        valid: &Option<String>,
        outside: &str,
        on_error: OnError,
    ) -> Option<String> {
        match on_error {
            OnError::Fail => {
                self.fail_if(valid, outside, Failure::Cast);
                valid.clone()
            }
            OnError::Null => {
                let still = match valid {
                    Some(valid) => format!("{valid} && !{outside}"),
                    None => format!("!{outside}"),
                };
                Some(self.out.let_("bool", still))
            }
        }
    }
}
