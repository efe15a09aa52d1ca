//! Lists of combinations of elements, and of elements that stand in one place.

use super::list::longest_of;
use super::*;
use crate::codegen::device_function::KernelHeader;
use crate::column::item_of;
use crate::host::list_combinations::MOST_OF;

impl Compiler<'_> {
    /// `list_combinations(list, n)`: lists of `n` elements each, in the order of their places. They
    /// are parts of one list:
    ///
    /// ```text
    ///   list_combinations([a, b, c], 2)     a b a c b c     [a b] [a c] [b c]
    /// ```
    pub(super) fn list_combinations(
        &mut self,
        list: &Expr,
        of: &Expr,
        dtype: &DataType,
    ) -> Result<Value> {
        let count =
            as_literal(of).and_then(literal::integer).and_then(|of| usize::try_from(of).ok());
        let Some(count) = count.filter(|count| (1..=MOST_OF).contains(count)) else {
            return Err(not_yet(format!("list_combinations of {of} elements")));
        };
        let list = self.list(list)?;
        let Some(inner) = item_of(dtype) else { return Err(not_yet(format!("a list as {dtype}"))) };
        let Some(item) = item_of(inner.data_type()) else {
            return Err(not_yet(format!("a list as {dtype}")));
        };
        self.out.needs(KernelHeader::List);
        let room = format!("list_combinations({}.length, {count})", list.view);
        let room = self.out.let_("u64", room);
        let elements = self.build(item.data_type(), &format!("{room} * {count}"))?;
        let lists = self.build(inner.data_type(), &room)?;
        let next = self.out.fresh();
        self.out.variable("u32", &next, "0");
        // Without memory for both there is nothing to do.
        self.out.branch(format_args!(
            "{}.at != nullptr && {}.at != nullptr",
            elements.name, lists.name
        ));
        let mut chosen = vec![];
        let mut longest = None;
        let mut begin = "0".to_string();
        for _ in 0..count {
            let place = self.out.fresh();
            self.out.count_up(&place, &begin, format_args!("{}.length", list.view));
            let element = self.element(&list, &place, None)?;
            longest = longest_of(&element);
            chosen.push(element);
            begin = format!("{place} + 1");
        }
        for (at, element) in chosen.into_iter().enumerate() {
            self.put(&elements, &format!("({next} * {count} + {at})"), element)?;
        }
        let part = format!("list_part({}.out, {next} * {count}, {count})", elements.name);
        let mut part = Value::new(inner.data_type().clone(), Repr::List, part, None);
        part.longest = longest;
        self.put(&lists, &next, part)?;
        self.out.line(format_args!("{next}++;"));
        (0..=count).for_each(|_| self.out.close("}"));
        self.fail_if(&None, &format!("too_long({}.out)", elements.name), Failure::Length);
        Ok(self.built(&lists, dtype, list.valid, longest))
    }

    /// `arrays_zip(list, …[, truncate])`: structs of the elements in one place, as many as the
    /// longest list has, or the shortest. Null where all lists are.
    pub(super) fn arrays_zip(&mut self, arguments: &[Expr], dtype: &DataType) -> Result<Value> {
        let Some(item) = item_of(dtype) else { return Err(not_yet(format!("a list as {dtype}"))) };
        let DataType::Struct(fields) = item.data_type() else {
            return Err(not_yet(format!("a list as {dtype}")));
        };
        repr_of(item.data_type())?;
        let (lists, truncate) = arguments.split_at(fields.len());
        let lists = lists.iter().map(|list| self.list(list)).collect::<Result<Vec<_>>>()?;
        let truncate = match truncate {
            [truncate] => self.value(truncate)?.truth(),
            _ => "false".into(),
        };
        let Some((first, others)) = lists.split_first() else {
            return Err(not_yet("arrays_zip of nothing"));
        };
        let mut room = format!("{}.length", first.view);
        for other in others {
            // The one that decides: the longer, or the shorter.
            let next =
                format!("({room} < {0}.length) != {truncate} ? {0}.length : {room}", other.view);
            room = self.out.let_("u32", next);
        }
        let valid: Option<Vec<&str>> = lists.iter().map(|list| list.valid.as_deref()).collect();
        let valid = valid.map(|valid| self.out.let_("bool", valid.join(" || ")));
        let builder = self.build(item.data_type(), &room)?;
        let place = self.out.fresh();
        self.out.count_up(&place, 0, format_args!("{}.out.length", builder.name));
        let mut values = vec![];
        for list in &lists {
            let inside = self.out.let_("bool", format_args!("{place} < {}.length", list.view));
            values.push(self.element(list, &place, Some(&inside))?);
        }
        let value = Value::of_fields(item.data_type().clone(), values, None);
        let longest = longest_of(&value);
        self.put(&builder, &place, value)?;
        self.out.close("}");
        Ok(self.built(&builder, dtype, valid, longest))
    }
}
