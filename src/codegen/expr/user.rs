//! Calls of functions that users wrote.

use super::*;
use crate::codegen::value::widen;
use crate::user_code::{UserFunction, least_and_greatest};

impl Compiler<'_> {
    /// `symbol(arguments)` where somebody asks for the value and no argument is null: a body may do
    /// anything with garbage, as loop for ever.
    pub(super) fn user_function(
        &mut self,
        function: &UserFunction,
        arguments: &[Expr],
    ) -> Result<Value> {
        let Some(definition) = function.definition() else {
            let what = format!("function {}", function.name());
            return Err(Error::unsupported(what, "is a closure: it has no body for the device"));
        };
        let mut valid = None;
        let mut passed = vec![];
        for (argument, (name, dtype)) in arguments.iter().zip(function.inputs()) {
            let value = self.value(argument)?;
            if value.dtype != *value_type(dtype) {
                return Err(not_yet(format!("argument {name} of {} as {dtype}", value.dtype)));
            }
            let repr = repr_of(dtype)?;
            passed.push(match repr {
                Repr::View => format!("text{{{}}}", self.text(&value)?),
                Repr::Bool => format!("(bool)({})", value.code),
                _ => widen(&value, repr),
            });
            match function.is_called_on_null() {
                true => {
                    // A body that looks at it all the same has the same value each time.
                    if let (Some(valid), Some(code), false) =
                        (&value.valid, passed.last_mut(), repr == Repr::View)
                    {
                        *code = format!("({valid} ? {code} : {}{{}})", repr.device_type());
                    }
                    passed.push(format!("!{}", value.validity()));
                }
                false => valid = both(&valid, &value.valid, self.out),
            }
        }
        self.out.defines(definition);
        let output = function.output();
        let (repr, asked) = (repr_of(output)?, [valid.clone(), self.out.guarded()]);
        let asked: Vec<String> = asked.into_iter().flatten().collect();
        let or_null = if function.yields_null() { "_or_null" } else { "" };
        let call = format!("{}{or_null}({})", definition.symbol(), passed.join(", "));
        let ctype = if repr == Repr::Bool { "bool" } else { repr.device_type() };
        let wanted = if function.yields_null() {
            format!("user_result<{ctype}>")
        } else {
            ctype.to_string()
        };
        let called = match asked.is_empty() {
            true => call,
            false => format!("({}) ? {call} : {wanted}{{}}", asked.join(" && ")),
        };
        let (mut code, mut valid) = (self.out.let_(&wanted, called), valid);
        if function.yields_null() {
            let known = valid.map_or(String::new(), |valid| format!("{valid} && "));
            valid = Some(self.out.let_("bool", format_args!("{known}!{code}.is_null")));
            code = self.out.let_(ctype, format_args!("{code}.value"));
        }
        if let Some((least, greatest)) = least_and_greatest(output) {
            let (least, greatest) = (literal::baked_i128(least), literal::baked_i128(greatest));
            let outside = format!("((i128){code} < {least} || (i128){code} > {greatest})");
            self.fail_if(&valid, &outside, Failure::Overflow);
        }
        Ok(Value::new(output.clone(), repr, code, valid))
    }
}
