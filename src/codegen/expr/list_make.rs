//! Functions that make lists of lists' elements or of parts of strings, and strings of elements.

use super::list::{List, longest_of};
use super::*;
use crate::column::item_of;

/// A part of a list under construction.
enum ListPart<'a> {
    /// All elements; none where it is null.
    All(&'a List),
    One(&'a Value),
}

impl Compiler<'_> {
    /// `array_concat(list, …)`: null only where all are, `array_append(list, value)` and
    /// `array_prepend(value, list)`.
    pub(super) fn array_concat(&mut self, arguments: &[Expr], dtype: &DataType) -> Result<Value> {
        let mut lists = vec![];
        for argument in arguments {
            if !argument.get_type(self.schema)?.is_null() {
                lists.push(self.list(argument)?);
            }
        }
        let valid: Option<Vec<&str>> = lists.iter().map(|list| list.valid.as_deref()).collect();
        let valid = valid
            .filter(|valid| !valid.is_empty())
            .map(|valid| self.out.let_("bool", valid.join(" || ")));
        self.put_together(lists.iter().map(ListPart::All).collect(), dtype, valid)
    }

    pub(super) fn array_append(
        &mut self,
        list: &Expr,
        value: &Expr,
        before: bool,
        dtype: &DataType,
    ) -> Result<Value> {
        let (list, value) = (self.list(list)?, self.value(value)?);
        let mut parts = vec![ListPart::All(&list), ListPart::One(&value)];
        if before {
            parts.swap(0, 1);
        }
        self.put_together(parts, dtype, None)
    }

    fn put_together(
        &mut self,
        parts: Vec<ListPart<'_>>,
        dtype: &DataType,
        valid: Option<String>,
    ) -> Result<Value> {
        let Some(item) = item_of(dtype) else { return Err(not_yet(format!("a list as {dtype}"))) };
        let lengths = parts.iter().map(|part| match part {
            ListPart::All(list) => format!("(u64){}.length", list.view),
            ListPart::One(_) => "1".into(),
        });
        let room = lengths.collect::<Vec<_>>().join(" + ");
        let builder = self.build(item.data_type(), &room)?;
        let next = self.out.fresh();
        self.out.variable("u32", &next, "0");
        let mut longest = Some(0);
        let mut longer =
            |value: &Value| longest = longest.zip(longest_of(value)).map(|(a, b)| a.max(b));
        for part in parts {
            match part {
                ListPart::All(list) => self.each(list, |this, element, _| {
                    longer(element);
                    this.put(&builder, &next, element.clone())?;
                    this.out.line(format_args!("{next}++;"));
                    Ok(())
                })?,
                ListPart::One(value) => {
                    longer(value);
                    self.put(&builder, &next, value.clone())?;
                    self.out.line(format_args!("{next}++;"));
                }
            }
        }
        Ok(self.built(&builder, dtype, valid, longest))
    }

    /// `array_reverse(list)`.
    pub(super) fn array_reverse(&mut self, list: &Expr, dtype: &DataType) -> Result<Value> {
        let list = self.list(list)?;
        let Some(item) = item_of(dtype) else { return Err(not_yet(format!("a list as {dtype}"))) };
        let builder = self.build(item.data_type(), &format!("{}.length", list.view))?;
        let mut longest = None;
        self.each(&list, |this, element, place| {
            longest = longest_of(element);
            this.put(&builder, &format!("{}.length - 1 - {place}", list.view), element.clone())
        })?;
        Ok(self.built(&builder, dtype, list.valid, longest))
    }

    /// `array_compact(list)`: the elements that are not null.
    pub(super) fn array_compact(&mut self, list: &Expr, dtype: &DataType) -> Result<Value> {
        let list = self.list(list)?;
        let valid = list.valid.clone();
        self.kept(&list, dtype, valid, |_, element| {
            Ok((element.validity().to_string(), element.clone()))
        })
    }

    /// The elements for which `keep` yields a C++ `bool` that holds, as it yields them.
    pub(super) fn kept(
        &mut self,
        list: &List,
        dtype: &DataType,
        valid: Option<String>,
        keep: impl FnOnce(&mut Self, &Value) -> Result<(String, Value)>,
    ) -> Result<Value> {
        let Some(item) = item_of(dtype) else { return Err(not_yet(format!("a list as {dtype}"))) };
        let builder = self.build(item.data_type(), &format!("{}.length", list.view))?;
        let next = self.out.fresh();
        self.out.variable("u32", &next, "0");
        let mut longest = None;
        self.each(list, |this, element, _| {
            longest = longest_of(element);
            let (keep, element) = keep(this, element)?;
            this.out.branch(&keep);
            this.put(&builder, &next, element)?;
            this.out.line(format_args!("{next}++;"));
            this.out.close("}");
            Ok(())
        })?;
        self.out.line(format_args!("{}.shorten({next});", builder.name));
        Ok(self.built(&builder, dtype, valid, longest))
    }

    /// `array_positions(list, needle)`: all places from 1 on, null being a value like another.
    pub(super) fn array_positions(
        &mut self,
        list: &Expr,
        needle: &Expr,
        dtype: &DataType,
    ) -> Result<Value> {
        let (list, needle) = (self.list(list)?, self.value(needle)?);
        let builder = self.build(&DataType::UInt64, &format!("{}.length", list.view))?;
        let next = self.out.fresh();
        self.out.variable("u32", &next, "0");
        self.each(&list, |this, element, place| {
            let same = this.compare(Operator::IsNotDistinctFrom, element, &needle)?;
            this.out.branch(&same.code);
            let place =
                Value::new(DataType::UInt64, Repr::U64, format!("((u64){place} + 1)"), None);
            this.put(&builder, &next, place)?;
            this.out.line(format_args!("{next}++;"));
            this.out.close("}");
            Ok(())
        })?;
        self.out.line(format_args!("{}.shorten({next});", builder.name));
        Ok(self.built(&builder, dtype, list.valid, None))
    }

    /// `array_has_any(list, other)` and `array_has_all(list, other)`: whether some of the other's
    /// elements, or all, are in the list, null being a value like another.
    pub(super) fn array_has_several(
        &mut self,
        list: &Expr,
        other: &Expr,
        all: bool,
    ) -> Result<Value> {
        let (list, other) = (self.list(list)?, self.list(other)?);
        let answer = self.out.fresh();
        self.out.variable("bool", &answer, all);
        self.each(&other, |this, needle, _| {
            let found = this.out.fresh();
            this.out.variable("bool", &found, "false");
            this.each(&list, |this, element, _| {
                let same = this.compare(Operator::IsNotDistinctFrom, element, needle)?;
                this.out.branch(&same.code);
                this.out.line(format_args!("{found} = true;"));
                this.out.leave();
                this.out.close("}");
                Ok(())
            })?;
            this.out.branch(format_args!("{found} != {all}"));
            this.out.line(format_args!("{answer} = {};", !all));
            this.out.leave();
            this.out.close("}");
            Ok(())
        })?;
        let valid = both(&list.valid, &other.valid, self.out);
        Ok(Value::new(DataType::Boolean, Repr::Bool, answer, valid))
    }

    /// `flatten(list)`: the elements of the lists in a list. A list of anything else is left as it
    /// is.
    pub(super) fn flatten(&mut self, expr: &Expr, dtype: &DataType) -> Result<Value> {
        let list = self.list(expr)?;
        if item_of(list.item()).is_none() {
            let value = self.value(expr)?;
            return self.cast(value, dtype, fit::OnError::Fail);
        }
        let Some(item) = item_of(dtype) else { return Err(not_yet(format!("a list as {dtype}"))) };
        let (room, next) = (self.out.fresh(), self.out.fresh());
        self.out.variable("u64", &room, "0");
        self.out.variable("u32", &next, "0");
        self.each(&list, |this, inner, _| {
            let inner = this.list_of(inner)?;
            this.out.line(format_args!("{room} += {}.length;", inner.view));
            Ok(())
        })?;
        let builder = self.build(item.data_type(), &room)?;
        let mut longest = None;
        self.each(&list, |this, inner, _| {
            let inner = this.list_of(inner)?;
            this.each(&inner, |this, element, _| {
                longest = longest_of(element);
                this.put(&builder, &next, element.clone())?;
                this.out.line(format_args!("{next}++;"));
                Ok(())
            })
        })?;
        Ok(self.built(&builder, dtype, list.valid, longest))
    }

    /// `string_to_array(text, between[, null])`: parts of a text, those equal to `null` as nulls.
    /// An empty text has no parts; between nulls lies nothing, so that the parts are characters.
    pub(super) fn split_text(&mut self, arguments: &[Expr], dtype: &DataType) -> Result<Value> {
        let Some(item) = item_of(dtype) else { return Err(not_yet(format!("a list as {dtype}"))) };
        let text = self.text_of(&arguments[0])?;
        let between = self.text_or_null(&arguments[1])?;
        let null = match arguments.get(2) {
            Some(null) => self.text_or_null(null)?,
            None => ("view{0, 0, 0}".into(), "false".into()),
        };
        let rule = format!("{}, {}", between.0, between.1);
        let room = self.out.let_("u64", format_args!("list_parts({}, {rule})", text.view));
        let builder = self.build(item.data_type(), &room)?;
        self.out.line(format_args!(
            "list_split({}, {}, {rule}, {}, {});",
            builder.name, text.view, null.0, null.1
        ));
        let longest = text.value.longest;
        Ok(self.built(&builder, dtype, text.value.valid, longest))
    }

    /// C++ names of a text and of whether it is one.
    fn text_or_null(&mut self, expr: &Expr) -> Result<(String, String)> {
        let value = self.value(expr)?;
        if value.dtype.is_null() {
            return Ok(("view{0, 0, 0}".into(), "false".into()));
        }
        Ok((self.text(&value)?, value.validity().to_string()))
    }

    /// `array_to_string(list, between[, null])`: nulls are left out, or as `null` says.
    pub(super) fn joined_list(&mut self, arguments: &[Expr], dtype: &DataType) -> Result<Value> {
        let list = self.list(&arguments[0])?;
        if is_float(list.item()) {
            return Err(not_yet(format!("array_to_string of {}", list.item())));
        }
        let between = self.text_of(&arguments[1])?;
        let null = match arguments.get(2) {
            Some(null) => self.text_or_null(null)?,
            None => ("view{0, 0, 0}".into(), "false".into()),
        };
        let (length, parts, whole) = (self.out.fresh(), self.out.fresh(), self.out.fresh());
        self.out.variable("u64", &length, "0");
        self.out.variable("u32", &parts, "0");
        self.each(&list, |this, element, _| {
            let (text, there) = this.part_of(element, &null)?;
            this.out
                .line(format_args!("if ({there}) {{\n{length} += {text}.length;\n{parts}++;\n}}"));
            Ok(())
        })?;
        let view = &between.view;
        let between_all = format!("(u64)({parts} - 1) * {view}.length");
        self.out.line(format_args!("if ({parts} != 0) {length} += {between_all};"));
        self.out.line(format_args!("{parts} = 0;"));
        self.inputs.arena();
        self.out.object("text_writer", &whole, format_args!("(arena, {length})"));
        self.each(&list, |this, element, _| {
            let (text, there) = this.part_of(element, &null)?;
            this.out.branch(&there);
            let between = format!("{whole}.put({view}, 0, {view}.length)");
            this.out.line(format_args!("if ({parts}++ != 0) {between};"));
            this.out.line(format_args!("{whole}.put({text}, 0, {text}.length);"));
            this.out.close("}");
            Ok(())
        })?;
        let valid = both(&list.valid, &between.value.valid, self.out);
        self.made(dtype, format!("{whole}.out"), valid, None)
    }

    /// C++ names of an element's text, and of whether there is one.
    fn part_of(&mut self, element: &Value, null: &(String, String)) -> Result<(String, String)> {
        let text = self.cast(element.clone(), &DataType::Utf8, fit::OnError::Fail)?;
        let view = self.text(&text)?;
        let valid = text.validity();
        let view = self.out.let_("view", format_args!("{valid} ? {view} : {}", null.0));
        let there = self.out.let_("bool", format_args!("{valid} || {}", null.1));
        Ok((view, there))
    }
}
