//! Values from text: CAST and TRY_CAST of a string (`kernels/parse.cuh`, `kernels/parse_time.cuh`).

use super::calendar::{is_utc, per_second};
use super::fit::OnError;
use super::*;
use crate::codegen::device_function::KernelHeader;
use warpframe_device::ops::powers;

/// How a text is read: the function and what it is told besides the text, and the representation
/// that it yields.
struct ParseFunction {
    call: String,
    repr: Repr,
    /// It yields REFUSED, READ or LEFT, not whether it read.
    leaves: bool,
}

impl Compiler<'_> {
    /// The value that a text says, as Arrow reads it. Texts that say none fail, or are null.
    pub(super) fn parsed(
        &mut self,
        value: Value,
        to: &DataType,
        on_error: OnError,
    ) -> Result<Value> {
        let reader = self.reader(&value.dtype, to)?;
        let text = self.text(&value)?;
        let name = self.out.fresh();
        self.out.unset(reader.repr.device_type(), &name);
        self.out.needs(KernelHeader::Parse);
        let call = reader.call.replace("{}", &text);
        let read = if reader.leaves {
            let outcome = self.out.let_("u32", format_args!("{call}, &{name})"));
            self.fail_if(&value.valid, &format!("{outcome} == LEFT"), Failure::Beyond);
            self.out.let_("bool", format_args!("{outcome} != REFUSED"))
        } else {
            self.out.let_("bool", format_args!("{call}, &{name})"))
        };
        let mut result = Value::new(to.clone(), reader.repr, name, value.valid.clone());
        if reader.repr == Repr::Bool {
            result.code = format!("(bool){}", result.code);
        }
        // Read as the widest number, which the type may not hold.
        if reader.repr.is_integer() {
            result.dtype = arithmetic::wide();
            let limits = match to {
                DataType::Decimal128(precision, _) => cast::precision_bounds(*precision),
                _ => type_bounds(to),
            };
            let outside = self.outside(&result, limits);
            let failed =
                outside.map_or(format!("!{read}"), |outside| format!("(!{read} || {outside})"));
            result.valid = self.refused(&result.valid, &failed, on_error);
            let repr = repr_of(to)?;
            let code = self
                .out
                .let_(repr.device_type(), format!("({}){}", repr.device_type(), result.code));
            return Ok(Value { dtype: to.clone(), repr, code, range: None, ..result }
                .with_range(Some(limits)));
        }
        result.valid = self.refused(&result.valid, &format!("!{read}"), on_error);
        Ok(result)
    }

    /// A text as bytes, or bytes as a text, where they are the same by `test`; the host has others.
    pub(super) fn same_bytes(&mut self, value: Value, to: &DataType, test: &str) -> Result<Value> {
        // Characters are bytes, but no codes into a dictionary.
        let text = self.text(&value)?;
        let code = self.out.let_("view", &text);
        self.out.needs(KernelHeader::Parse);
        self.fail_if(&value.valid, &format!("!{test}({code})"), Failure::Beyond);
        Ok(Value { dtype: to.clone(), code, dictionary: None, ..value })
    }

    fn reader(&mut self, from: &DataType, to: &DataType) -> Result<ParseFunction> {
        use DataType::*;
        let plain = |call: &str, repr| ParseFunction { call: call.into(), repr, leaves: false };
        Ok(match to {
            Boolean => plain("parse_boolean({}", Repr::Bool),
            to if to.is_signed_integer() => plain("parse_signed({}", Repr::I64),
            to if to.is_unsigned_integer() => plain("parse_unsigned({}", Repr::U64),
            Float32 | Float64 => {
                let table = self.inputs.constant(powers::for_parse());
                let call = format!("parse_float({{}}, (const u64*)({table})");
                ParseFunction { call, repr: repr_of(to)?, leaves: true }
            }
            Decimal128(_, scale) if *scale >= 0 => {
                plain(&format!("parse_decimal({{}}, {scale}u"), Repr::I128)
            }
            Date32 => ParseFunction { call: "parse_date({}".into(), repr: Repr::I32, leaves: true },
            Timestamp(unit, zone) if zone.as_deref().is_none_or(is_utc) => ParseFunction {
                call: format!("parse_timestamp({{}}, {}, {}", per_second(unit), zone.is_none()),
                repr: Repr::I64,
                leaves: true,
            },
            Time32(unit) => plain(&format!("parse_time({{}}, {}", per_second(unit)), Repr::I32),
            Time64(unit) => plain(&format!("parse_time({{}}, {}", per_second(unit)), Repr::I64),
            _ => return Err(not_yet(format!("a cast from {from} to {to}"))),
        })
    }

    /// C++ `bool`: an integer lies outside of limits; `None` where it never does.
    fn outside(&self, value: &Value, limits: (i128, i128)) -> Option<String> {
        let (low, high) = value.bounds();
        let ctype = value.repr.device_type();
        let mut tests = vec![];
        if low < limits.0 {
            tests.push(format!("{} < ({ctype}){}", value.code, literal::baked_i128(limits.0)));
        }
        if high > limits.1 {
            tests.push(format!("{} > ({ctype}){}", value.code, literal::baked_i128(limits.1)));
        }
        (!tests.is_empty()).then(|| format!("({})", tests.join(" || ")))
    }

    /// Validity after reading a text that says nothing where `failed` holds.
    fn refused(
        &mut self,
        valid: &Option<String>,
        failed: &str,
        on_error: OnError,
    ) -> Option<String> {
        match on_error {
            OnError::Fail => {
                self.fail_if(valid, failed, Failure::Cast);
                valid.clone()
            }
            OnError::Null => {
                let read = valid
                    .iter()
                    .cloned()
                    .chain([format!("!{failed}")])
                    .collect::<Vec<_>>()
                    .join(" && ");
                Some(self.out.let_("bool", read))
            }
        }
    }
}
