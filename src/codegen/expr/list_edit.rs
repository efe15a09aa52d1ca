//! Lists with some elements removed, replaced, added or left out. Where elements are looked for,
//! −0.0 is 0.0, and comes out as that.

use super::list::longest_of;
use super::*;
use crate::column::item_of;

/// How many elements a function changes that are the same as another.
#[derive(Debug, Clone, Copy)]
pub(super) enum Most<'a> {
    All,
    First,
    /// As many as an expression says; where that is null, so is the list.
    Of(&'a Expr),
}

impl Compiler<'_> {
    /// `array_remove(list, needle)`, `array_remove_n(list, needle, most)` and
    /// `array_remove_all(list, needle)`: without the elements that are the same as `needle`. Null
    /// where `needle` is.
    pub(super) fn array_remove(
        &mut self,
        list: &Expr,
        needle: &Expr,
        most: Most<'_>,
        dtype: &DataType,
    ) -> Result<Value> {
        let (list, needle) = (self.list(list)?, self.value(needle)?);
        let (left, most_valid) = self.most(most)?;
        let valid = both(&list.valid, &needle.valid, self.out);
        let valid = both(&valid, &most_valid, self.out);
        self.kept(&list, dtype, valid, |this, element| {
            let same = this.compare(Operator::IsNotDistinctFrom, element, &needle)?;
            Ok((format!("!({} && {left}-- > 0)", same.code), this.with_one_zero(element)))
        })
    }

    /// `array_replace(list, from, to)`, `array_replace_n(list, from, to, most)` and
    /// `array_replace_all(list, from, to)`. Null is a value like another.
    pub(super) fn array_replace(
        &mut self,
        arguments: [&Expr; 3],
        most: Most<'_>,
        dtype: &DataType,
    ) -> Result<Value> {
        let [list, from, to] = arguments;
        let (list, from, to) = (self.list(list)?, self.value(from)?, self.value(to)?);
        let Some(item) = item_of(dtype) else { return Err(not_yet(format!("a list as {dtype}"))) };
        if is_nested(item.data_type()) {
            return Err(not_yet(format!("array_replace of elements of type {}", item.data_type())));
        }
        let (left, most_valid) = self.most(most)?;
        let builder = self.build(item.data_type(), &format!("{}.length", list.view))?;
        let mut longest = None;
        self.each(&list, |this, element, place| {
            longest = longest_of(element).zip(longest_of(&to)).map(|(a, b)| a.max(b));
            let same = this.compare(Operator::IsNotDistinctFrom, element, &from)?;
            let element = this.with_one_zero(element);
            this.out.branch(format_args!("{} && {left}-- > 0", same.code));
            this.put(&builder, place, to.clone())?;
            this.out.line("} else {");
            this.put(&builder, place, element)?;
            this.out.close("}");
            Ok(())
        })?;
        let valid = both(&list.valid, &most_valid, self.out);
        Ok(self.built(&builder, dtype, valid, longest))
    }

    /// C++ name of a variable that holds how many elements may still be changed, and where that is
    /// known.
    fn most(&mut self, most: Most<'_>) -> Result<(String, Option<String>)> {
        let (code, valid) = match most {
            Most::All => ("I64_MAX".into(), None),
            Most::First => ("1".into(), None),
            Most::Of(expr) => {
                let value = self.integer_of(expr)?;
                (format!("(i64){}", value.code), value.valid)
            }
        };
        let left = self.out.fresh();
        self.out.variable("i64", &left, &code);
        Ok((left, valid))
    }

    /// `array_resize(list, length[, value])`: what is missing at the end is `value`, or null.
    pub(super) fn array_resize(
        &mut self,
        list: &Expr,
        length: &Expr,
        fill: Option<&Expr>,
        dtype: &DataType,
    ) -> Result<Value> {
        let (list, length) = (self.list(list)?, self.integer_of(length)?);
        let Some(item) = item_of(dtype) else { return Err(not_yet(format!("a list as {dtype}"))) };
        let fill = match fill {
            Some(fill) => self.value(fill)?,
            None => self.null(item.data_type())?,
        };
        let fill = self.cast(fill, item.data_type(), fit::OnError::Fail)?;
        let valid = both(&list.valid, &length.valid, self.out);
        self.fail_if(&valid, &format!("{} < 0", length.code), Failure::Domain);
        let room = format!("{} > 0 ? (u64){} : 0ull", length.code, length.code);
        let asked: Vec<String> = valid.iter().cloned().chain(self.out.guarded()).collect();
        let room = match asked.is_empty() {
            true => room,
            false => format!("{} && {room}", asked.join(" && ")),
        };
        let room = self.out.let_("u64", room);
        let builder = self.build(item.data_type(), &room)?;
        let (place, inside) = (self.out.fresh(), self.out.fresh());
        self.out.count_up(&place, 0, format_args!("{}.out.length", builder.name));
        self.out.constant("bool", &inside, format_args!("{place} < {}.length", list.view));
        let element = self.element(&list, &place, Some(&inside))?;
        let longest = longest_of(&element).zip(longest_of(&fill)).map(|(a, b)| a.max(b));
        self.out.branch(&inside);
        self.put(&builder, &place, element)?;
        self.out.line("} else {");
        self.put(&builder, &place, fill)?;
        self.out.close("}");
        self.out.close("}");
        Ok(self.built(&builder, dtype, valid, longest))
    }

    /// `array_slice(list, from, to, step)`: every `step`th element; backwards, where that is
    /// negative.
    pub(super) fn array_stride(
        &mut self,
        list: &Expr,
        places: [&Expr; 3],
        dtype: &DataType,
    ) -> Result<Value> {
        let list = self.list(list)?;
        let Some(item) = item_of(dtype) else { return Err(not_yet(format!("a list as {dtype}"))) };
        let mut valid = list.valid.clone();
        let mut codes = vec![];
        for place in places {
            let place = self.integer_of(place)?;
            valid = both(&valid, &place.valid, self.out);
            codes.push(format!("(i64){}", place.code));
        }
        let (first, step) = (self.out.fresh(), self.out.let_("i64", &codes[2]));
        self.out.variable("u32", &first, "0");
        let count =
            format!("list_stride({}, {}, {}, {step}, &{first})", list.view, codes[0], codes[1]);
        let count = self.out.let_("u32", count);
        self.fail_if(&valid, &format!("{count} != 0 && {step} == 0"), Failure::Domain);
        let room = match &valid {
            Some(valid) => format!("{valid} ? (u64){count} : 0ull"),
            None => count,
        };
        let builder = self.build(item.data_type(), &room)?;
        let place = self.out.fresh();
        self.out.count_up(&place, 0, format_args!("{}.out.length", builder.name));
        let at = self.out.let_("u32", format_args!("(u32)((i64){first} + (i64){place} * {step})"));
        let element = self.element(&list, &at, None)?;
        let longest = longest_of(&element);
        self.put(&builder, &place, element)?;
        self.out.close("}");
        Ok(self.built(&builder, dtype, valid, longest))
    }
}
