//! Random numbers of a seed and a number (`kernels/random.cuh`, `host/random.rs`).

use std::hash::{BuildHasher, RandomState};

use datafusion::common::tree_node::TreeNode;

use super::*;
use crate::codegen::device_function::KernelHeader;
use crate::host::random::MOST_POISSON_MEAN;
use warpframe_device::interrupt::drawn_seed;

/// Whether a part of the expression is a call of `random()`.
pub(super) fn calls_random(expr: &Expr) -> bool {
    let calls = |part: &Expr| match part {
        Expr::ScalarFunction(call) => call.name() == "random" && call.args.is_empty(),
        _ => false,
    };
    // The closure never fails.
    expr.exists(|part| Ok(calls(part))).unwrap_or(false)
}

impl Compiler<'_> {
    /// `random()`: that of a seed which each call in each run has for itself (the statement draws
    /// it, where its numbers are to come again), and of the row of the flow's source. In a lambda each element has one, of the next seed.
    pub(super) fn random_of_row(&mut self) -> Value {
        let seed = drawn_seed().unwrap_or_else(|| RandomState::new().hash_one(()));
        let mut seed = self.inputs.parameter(seed);
        if let (Some(drawn), false) = (&self.drawn, self.variables.is_empty()) {
            seed = format!("({seed} + {drawn}++)");
        }
        self.out.needs(KernelHeader::Random);
        let code = self.out.let_("f64", format_args!("random_uniform((i64){seed}, (i64)row)"));
        Value { magnitude: Some(1.0), ..Value::new(DataType::Float64, Repr::F64, code, None) }
    }

    /// A function of `seed` and `number`, both `Int64`, and of the mean or of two ends.
    pub(super) fn random(
        &mut self,
        function: &str,
        seed: &Expr,
        number: &Expr,
        others: &[Expr],
        dtype: &DataType,
    ) -> Result<Value> {
        self.out.needs(KernelHeader::Random);
        let mut values = vec![self.value(seed)?, self.value(number)?];
        for other in others {
            values.push(self.value(other)?);
        }
        let mut valid = None;
        for value in &values {
            valid = both(&valid, &value.valid, self.out);
        }
        match (function, values.as_slice()) {
            ("random_poisson", [.., mean]) => {
                let outside = format!("!({0} >= 0 && {0} <= {MOST_POISSON_MEAN:?})", mean.code);
                self.fail_if(&valid, &outside, Failure::Domain);
                // What is under a null may be anything.
                let mean = format!("{0} <= {MOST_POISSON_MEAN:?} ? {0} : 0.0", mean.code);
                values[2].code = self.out.let_("f64", mean);
            }
            ("random_integer", [.., low, high]) => {
                let outside = format!("({} > {})", low.code, high.code);
                self.fail_if(&valid, &outside, Failure::Domain);
            }
            _ => {}
        }
        let repr = Repr::of(dtype).ok_or_else(|| not_yet(format!("{function} as {dtype}")))?;
        let arguments: Vec<&str> = values.iter().map(|value| value.code.as_str()).collect();
        let mut result = self.result(
            dtype.clone(),
            repr,
            format!("{function}({})", arguments.join(", ")),
            valid,
        );
        result.magnitude = match function {
            "random_uniform" => Some(1.0),
            // The least logarithm is that of 2⁻⁵³.
            "random_normal" => Some(9.0),
            _ => None,
        };
        Ok(result)
    }
}
