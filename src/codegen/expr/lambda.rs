//! Functions of lists that call a lambda: its body stands in the loop over the elements, and its
//! parameters are what the loop has at hand.
//!
//! ```text
//!   list_transform(l, x -> x * k)      for (u32 v3 = 0; v3 < v2.length; v3++) {
//!                                          const i64 v4 = list_value<i64>(v2, 0, v3);
//!                                          v1.put<i64>(0, v3, v4 * k, …);
//!                                      }
//! ```

use datafusion::logical_expr::expr::{HigherOrderFunction, Lambda};

use super::fit::OnError;
use super::list::{List, longest_of};
use super::random::calls_random;
use super::*;
use crate::column::item_of;
use crate::host::once_a_row::DRAWN_ONCE;

impl Compiler<'_> {
    pub(super) fn higher_order(
        &mut self,
        expr: &Expr,
        call: &HigherOrderFunction,
    ) -> Result<Value> {
        let dtype = value_type(&self.type_of(expr)?).clone();
        match (call.name(), call.args.as_slice()) {
            ("array_transform", [list, Expr::Lambda(lambda)]) => {
                self.array_transform(list, lambda, &dtype)
            }
            ("array_filter", [list, Expr::Lambda(lambda)]) => {
                self.array_filter(list, lambda, &dtype)
            }
            ("array_any_match", [list, Expr::Lambda(lambda)]) => self.array_any_match(list, lambda),
            ("array_first", [list, Expr::Lambda(lambda)]) => self.array_first(list, lambda, &dtype),
            ("array_reduce", [list, Expr::Lambda(lambda)]) => {
                self.array_reduce(list, lambda, None, &dtype)
            }
            (
                "array_reduce",
                [list, Expr::Lambda(lambda), initial] | [list, initial, Expr::Lambda(lambda)],
            ) => self.array_reduce(list, lambda, Some(initial), &dtype),
            (DRAWN_ONCE, [values @ .., Expr::Lambda(lambda)]) => {
                let values: Vec<Value> =
                    values.iter().map(|value| self.value(value)).collect::<Result<_>>()?;
                self.applied(lambda, &values.iter().collect::<Vec<_>>())
            }
            (name, _) => Err(not_yet(format!("function {name}"))),
        }
    }

    /// What a lambda's parameter is.
    pub(super) fn variable(&mut self, name: &str) -> Result<Value> {
        let known = self.variables.iter().rev().find(|(known, _)| known == name);
        let value = known.map(|(_, value)| value.clone());
        value.ok_or_else(|| Error::internal(format!("{name} is the parameter of no lambda around")))
    }

    /// Asks for the columns that the body looks at, which is to be done before the loop. So is the
    /// count of the random numbers that all loops within draw for a row.
    fn capture(&mut self, lambda: &Lambda) -> Result<()> {
        if self.variables.is_empty() && calls_random(&lambda.body) {
            let drawn = self.out.fresh();
            self.out.variable("u64", &drawn, "0");
            self.drawn = Some(drawn);
        }
        // In one order, so that equal expressions are equal kernels.
        let mut columns: Vec<_> = lambda.body.column_refs().into_iter().collect();
        columns.sort();
        columns.into_iter().try_for_each(|column| self.inputs.column(column, self.out).map(|_| ()))
    }

    /// The body's value where the parameters are these. It may have fewer.
    fn applied(&mut self, lambda: &Lambda, arguments: &[&Value]) -> Result<Value> {
        let outer = self.variables.len();
        let arguments = arguments.iter().map(|value| (*value).clone());
        self.variables.extend(lambda.params.iter().cloned().zip(arguments));
        let value = self.value(&lambda.body);
        self.variables.truncate(outer);
        value
    }

    /// C++ `bool`: the lambda holds for an element.
    fn holds(&mut self, name: &str, lambda: &Lambda, element: &Value) -> Result<String> {
        let value = self.applied(lambda, &[element])?;
        match value.dtype {
            DataType::Boolean => Ok(value.truth()),
            DataType::Null => Ok("false".into()),
            other => Err(Error::unsupported(
                format!("{name} with a lambda that makes {other}"),
                "is no condition",
            )),
        }
    }

    /// `array_transform(list, x -> …)`.
    fn array_transform(&mut self, list: &Expr, lambda: &Lambda, dtype: &DataType) -> Result<Value> {
        let list = self.list(list)?;
        let Some(item) = item_of(dtype) else { return Err(not_yet(format!("a list as {dtype}"))) };
        self.capture(lambda)?;
        let builder = self.build(item.data_type(), &format!("{}.length", list.view))?;
        let mut longest = None;
        self.each(&list, |this, element, place| {
            let value = this.applied(lambda, &[element])?;
            longest = longest_of(&value);
            this.put(&builder, place, value)
        })?;
        Ok(self.built(&builder, dtype, list.valid, longest))
    }

    /// `array_filter(list, x -> …)`: null is false.
    fn array_filter(&mut self, list: &Expr, lambda: &Lambda, dtype: &DataType) -> Result<Value> {
        let list = self.list(list)?;
        self.capture(lambda)?;
        let valid = list.valid.clone();
        self.kept(&list, dtype, valid, |this, element| {
            let keep = this.holds("array_filter", lambda, element)?;
            Ok((keep, element.clone()))
        })
    }

    /// `array_first(list, x -> …)`: the first element for which it holds, null where there is none.
    fn array_first(&mut self, list: &Expr, lambda: &Lambda, dtype: &DataType) -> Result<Value> {
        let list = self.list(list)?;
        self.capture(lambda)?;
        let found = self.out.fresh();
        self.out.variable("u32", &found, format_args!("{}.length", list.view));
        self.each(&list, |this, element, place| {
            let holds = this.holds("array_first", lambda, element)?;
            this.out.branch(&holds);
            this.out.line(format_args!("{found} = {place};"));
            this.out.leave();
            this.out.close("}");
            Ok(())
        })?;
        let inside = self.out.let_("bool", format_args!("{found} < {}.length", list.view));
        let value = self.element(&list, &found, Some(&inside))?;
        Ok(Value { dtype: dtype.clone(), ..value })
    }

    /// `array_any_match(list, x -> …)`: null where it holds for no element and is null for some.
    fn array_any_match(&mut self, list: &Expr, lambda: &Lambda) -> Result<Value> {
        let list = self.list(list)?;
        self.capture(lambda)?;
        let (found, unknown) = (self.out.fresh(), self.out.fresh());
        self.out.variable("bool", &found, "false");
        self.out.variable("bool", &unknown, "false");
        self.each(&list, |this, element, _| {
            let value = this.applied(lambda, &[element])?;
            if !matches!(value.dtype, DataType::Boolean | DataType::Null) {
                let what = format!("array_any_match with a lambda that makes {}", value.dtype);
                return Err(Error::unsupported(what, "is no condition"));
            }
            this.out.branch(value.truth());
            this.out.line(format_args!("{found} = true;"));
            this.out.leave();
            this.out.close("}");
            this.out.line(format_args!("if (!{}) {unknown} = true;", value.validity()));
            Ok(())
        })?;
        let known = self.out.let_("bool", format_args!("{found} || !{unknown}"));
        let valid = both(&list.valid, &Some(known), self.out);
        Ok(Value::new(DataType::Boolean, Repr::Bool, found, valid))
    }

    /// `array_reduce(list, (accumulator, x) -> …[, initial])`. Without an initial value the first
    /// element is that, and an empty list fails.
    fn array_reduce(
        &mut self,
        list: &Expr,
        lambda: &Lambda,
        initial: Option<&Expr>,
        dtype: &DataType,
    ) -> Result<Value> {
        let list = self.list(list)?;
        self.capture(lambda)?;
        let (begin, first) = match initial {
            Some(initial) => (0, self.value(initial)?),
            None => {
                self.fail_if(&list.valid, &format!("{}.length == 0", list.view), Failure::Domain);
                let inside = self.out.let_("bool", format_args!("{}.length != 0", list.view));
                (1, self.element(&list, "0", Some(&inside))?)
            }
        };
        let first = self.cast(first, dtype, OnError::Fail)?;
        let accumulator = self.declared(&first)?;
        self.reduced(&list, lambda, begin, &accumulator)?;
        let valid = both(&list.valid, &accumulator.valid, self.out);
        Ok(Value { valid, ..accumulator })
    }

    fn reduced(
        &mut self,
        list: &List,
        lambda: &Lambda,
        begin: u32,
        accumulator: &Value,
    ) -> Result<()> {
        let place = self.out.fresh();
        self.out.count_up(&place, begin, format_args!("{}.length", list.view));
        let element = self.element(list, &place, None)?;
        let value = self.applied(lambda, &[accumulator, &element])?;
        let value = self.cast(value, &accumulator.dtype, OnError::Fail)?;
        // All of it first: fields may look at other fields of what they replace.
        let mut assignments = vec![];
        self.assignments(accumulator, &value, &mut assignments);
        for assignment in assignments {
            self.out.line(assignment);
        }
        self.out.close("}");
        Ok(())
    }

    /// A variable of the kernel that begins with this value: of a struct, one for each field.
    fn declared(&mut self, value: &Value) -> Result<Value> {
        let valid = self.out.fresh();
        self.out.variable("bool", &valid, value.validity());
        if value.repr == Repr::Struct {
            let fields =
                value.fields.iter().map(|field| self.declared(field)).collect::<Result<_>>()?;
            return Ok(Value::of_fields(value.dtype.clone(), fields, Some(valid)));
        }
        let (repr, name) = (repr_of(&value.dtype)?, self.out.fresh());
        self.out.variable(variable_type(repr), &name, value.stored());
        Ok(Value::new(value.dtype.clone(), repr, name, Some(valid)))
    }

    /// Computes what a variable becomes, and yields the statements that make it so.
    fn assignments(&mut self, variable: &Value, value: &Value, assignments: &mut Vec<String>) {
        let valid = self.out.let_("bool", value.validity());
        assignments.push(format!("{} = {valid};", variable.validity()));
        if variable.repr == Repr::Struct {
            for (variable, value) in variable.fields.iter().zip(&value.fields) {
                self.assignments(variable, value, assignments);
            }
            return;
        }
        let code = self.out.let_(variable_type(variable.repr), value.stored());
        assignments.push(format!("{} = {code};", variable.code));
    }
}

/// C++ type of a variable.
fn variable_type(repr: Repr) -> &'static str {
    if repr == Repr::Bool { "bool" } else { repr.device_type() }
}
