//! Functions of lists and structs.

use super::list::longest_of;
use super::*;
use crate::codegen::device_function::{FDIV, KernelHeader};
use crate::column::item_of;

/// What an `f64` is made of elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ListFold {
    Sum,
    Average,
    Product,
}

impl Compiler<'_> {
    /// `named_struct(name, value, …)` and `struct(value, …)`.
    pub(super) fn structure(
        &mut self,
        arguments: &[Expr],
        named: bool,
        dtype: &DataType,
    ) -> Result<Value> {
        let DataType::Struct(fields) = dtype else {
            return Err(not_yet(format!("a struct as {dtype}")));
        };
        repr_of(dtype)?;
        let (first, step) = if named { (1, 2) } else { (0, 1) };
        let of = |(argument, field): (&Expr, &FieldRef)| {
            let value = self.value(argument)?;
            self.cast(value, field.data_type(), fit::OnError::Fail)
        };
        let fields = arguments
            .iter()
            .skip(first)
            .step_by(step)
            .zip(fields)
            .map(of)
            .collect::<Result<_>>()?;
        Ok(Value::of_fields(dtype.clone(), fields, None))
    }

    /// `get_field(struct, name, …)`: null where a struct on the way is null.
    pub(super) fn field_of(&mut self, of: &Expr, path: &[Expr]) -> Result<Value> {
        let mut value = self.value(of)?;
        for name in path {
            let DataType::Struct(fields) = &value.dtype else {
                return Err(not_yet(format!("a field of {}", value.dtype)));
            };
            let name = as_literal(name).and_then(literal::text);
            let at = name.and_then(|name| fields.iter().position(|field| field.name() == name));
            let Some(at) = at else {
                return Err(not_yet(format!("a field of {} by no name", value.dtype)));
            };
            let field = value.fields.swap_remove(at);
            let valid = both(&value.valid, &field.valid, self.out);
            value = Value { valid, ..field };
        }
        Ok(value)
    }

    /// `make_array(value, …)`.
    pub(super) fn array(&mut self, arguments: &[Expr], dtype: &DataType) -> Result<Value> {
        let Some(item) = item_of(dtype) else {
            return Err(not_yet(format!("an array as {dtype}")));
        };
        let values =
            arguments.iter().map(|argument| self.value(argument)).collect::<Result<Vec<_>>>()?;
        let builder = self.build(item.data_type(), &arguments.len().to_string())?;
        let mut longest = Some(0);
        for (at, value) in values.into_iter().enumerate() {
            longest = longest.zip(longest_of(&value)).map(|(a, b)| a.max(b));
            self.put(&builder, &at.to_string(), value)?;
        }
        Ok(self.built(&builder, dtype, None, longest))
    }

    /// `array_element(list, index)`: null where there is no such element.
    pub(super) fn array_element(
        &mut self,
        list: &Expr,
        index: &Expr,
        dtype: &DataType,
    ) -> Result<Value> {
        let (list, index) = (self.list(list)?, self.integer_of(index)?);
        self.out.needs(KernelHeader::List);
        let place =
            self.out.let_("u32", format_args!("list_place({}, (i64){})", list.view, index.code));
        let inside = self
            .out
            .let_("bool", format_args!("{} && {place} < {}.length", index.validity(), list.view));
        let value = self.element(&list, &place, Some(&inside))?;
        Ok(Value { dtype: dtype.clone(), ..value })
    }

    pub(super) fn integer_of(&mut self, expr: &Expr) -> Result<Value> {
        let value = self.value(expr)?;
        match value.dtype.is_integer() {
            true => Ok(value),
            false if value.dtype.is_null() => self.null(&DataType::Int64),
            false => Err(not_yet(format!("{} as a place in a list", value.dtype))),
        }
    }

    /// `array_length(list)`, of the first dimension.
    pub(super) fn array_length(
        &mut self,
        list: &Expr,
        dimension: Option<&Expr>,
        dtype: &DataType,
    ) -> Result<Value> {
        let first = dimension
            .is_none_or(|dimension| as_literal(dimension).and_then(literal::integer) == Some(1));
        if !first {
            return Err(not_yet("array_length of other dimensions than the first"));
        }
        let list = self.list(list)?;
        let length =
            self.result(dtype.clone(), Repr::U32, format!("{}.length", list.view), list.valid);
        Ok(length.with_range(Some((0, u32::MAX.into()))))
    }

    /// `cardinality(list)`: the elements, and of lists of lists theirs.
    pub(super) fn cardinality(&mut self, list: &Expr, dtype: &DataType) -> Result<Value> {
        let list = self.list(list)?;
        let count = self.out.fresh();
        self.out.variable("u64", &count, "0");
        self.count_elements(&list, &count)?;
        Ok(Value::new(dtype.clone(), Repr::U64, count, list.valid))
    }

    fn count_elements(&mut self, list: &list::List, count: &str) -> Result<()> {
        if item_of(list.item()).is_none() {
            self.out.line(format_args!("{count} += {}.length;", list.view));
            return Ok(());
        }
        self.each(list, |this, element, _| {
            let inner = this.list_of(element)?;
            this.count_elements(&inner, count)
        })
    }

    /// `empty(list)`.
    pub(super) fn is_empty_list(&mut self, list: &Expr) -> Result<Value> {
        let list = self.list(list)?;
        Ok(self.result(
            DataType::Boolean,
            Repr::Bool,
            format!("{}.length == 0", list.view),
            list.valid,
        ))
    }

    /// `array_min(list)`, `array_max(list)`: of the elements that are not null.
    pub(super) fn array_extreme(
        &mut self,
        list: &Expr,
        least: bool,
        dtype: &DataType,
    ) -> Result<Value> {
        let list = self.list(list)?;
        if is_nested(list.item()) {
            return Err(not_yet(format!("the extremum of elements of type {}", list.item())));
        }
        let repr = repr_of(dtype)?;
        let (best, any) = (self.out.fresh(), self.out.fresh());
        self.out.variable(repr.device_type(), &best, format_args!("{}{{}}", repr.device_type()));
        self.out.variable("bool", &any, "false");
        let so_far = Value::new(dtype.clone(), repr, &best, None);
        let op = if least { Operator::Lt } else { Operator::Gt };
        let mut longest = None;
        self.each(&list, |this, element, _| {
            longest = element.longest;
            let better = this.compare_with(op, element, &so_far, compare::ZeroSigns::Apart)?;
            let code = element.stored();
            this.out.branch(format_args!("{} && (!{any} || {})", element.validity(), better.code));
            this.out.line(format_args!("{best} = {code};\n{any} = true;"));
            this.out.close("}");
            Ok(())
        })?;
        let mut result = Value::new(dtype.clone(), repr, best, Some(any));
        result.longest = longest;
        Ok(result)
    }

    /// `array_sum(list)`, `array_avg(list)`, `array_product(list)` of floats that are not null.
    pub(super) fn array_fold(
        &mut self,
        list: &Expr,
        fold: ListFold,
        dtype: &DataType,
    ) -> Result<Value> {
        let list = self.list(list)?;
        if *list.item() != DataType::Float64 || *dtype != DataType::Float64 {
            return Err(not_yet(format!("a sum of elements of type {}", list.item())));
        }
        let (all, count) = (self.out.fresh(), self.out.fresh());
        let (start, step) =
            if fold == ListFold::Product { ("1.0", "fmul") } else { ("0.0", "fadd") };
        self.out.variable("f64", &all, start);
        self.out.variable("u32", &count, "0");
        self.each(&list, |this, element, _| {
            let code = &element.code;
            this.out.branch(element.validity());
            this.out.line(format_args!("{all} = {step}({all}, {code});"));
            this.out.line(format_args!("{count}++;"));
            this.out.close("}");
            Ok(())
        })?;
        let valid = self.out.let_("bool", format_args!("{count} != 0"));
        let code = match fold {
            ListFold::Average => format!("{}({all}, (f64){count})", self.out.calls(FDIV)),
            _ => all,
        };
        Ok(self.result(DataType::Float64, Repr::F64, code, Some(valid)))
    }

    /// `array_has(list, value)`: no null is equal to anything.
    pub(super) fn array_has(&mut self, list: &Expr, needle: &Expr) -> Result<Value> {
        let (list, needle) = (self.list(list)?, self.value(needle)?);
        let found = self.out.fresh();
        self.out.variable("bool", &found, "false");
        self.each(&list, |this, element, _| {
            let equal = this.compare(Operator::Eq, element, &needle)?;
            this.out.branch(equal.truth());
            this.out.line(format_args!("{found} = true;"));
            this.out.leave();
            this.out.close("}");
            Ok(())
        })?;
        let valid = both(&list.valid, &needle.valid, self.out);
        Ok(Value::new(DataType::Boolean, Repr::Bool, found, valid))
    }

    /// `array_position(list, value)`: from 1 on, null where it does not occur. Null is a value like
    /// another here.
    pub(super) fn array_position(
        &mut self,
        list: &Expr,
        needle: &Expr,
        dtype: &DataType,
    ) -> Result<Value> {
        let (list, needle) = (self.list(list)?, self.value(needle)?);
        let found = self.out.fresh();
        self.out.variable("u64", &found, "0");
        self.each(&list, |this, element, place| {
            let same = this.compare(Operator::IsNotDistinctFrom, element, &needle)?;
            this.out.branch(&same.code);
            this.out.line(format_args!("{found} = (u64){place} + 1;"));
            this.out.leave();
            this.out.close("}");
            Ok(())
        })?;
        let valid = self.out.let_("bool", format_args!("{found} != 0"));
        Ok(Value::new(dtype.clone(), Repr::U64, found, Some(valid)))
    }

    /// Elements of a list, as a list: `part` is a C++ call that makes a view of `list`.
    pub(super) fn array_part(
        &mut self,
        list: &Expr,
        places: &[Expr],
        dtype: &DataType,
        part: impl Fn(&str, &[String]) -> String,
    ) -> Result<Value> {
        let value = self.value(list)?;
        let list = self.list_of(&value)?;
        let mut valid = value.valid;
        let mut codes = vec![];
        for place in places {
            let place = self.integer_of(place)?;
            valid = both(&valid, &place.valid, self.out);
            codes.push(format!("(i64){}", place.code));
        }
        self.out.needs(KernelHeader::List);
        let mut result = self.result(dtype.clone(), Repr::List, part(&list.view, &codes), valid);
        result.longest = value.longest;
        Ok(result)
    }
}
