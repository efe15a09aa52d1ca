//! Lists as sets: distinct elements, and what two lists have together, in common, or apart.
//!
//! Elements are found by a hash table of places beside the list that is made (`list_table`). Null
//! is a value like another, and −0.0 is 0.0, and comes out as that. What only has to be known lies
//! in the list, too, before the elements of the result:
//!
//! ```text
//!   array_except([7, 8, 7, 9], [8])     made  8 | 7 9     result  7 9
//! ```

use super::list::{List, ListBuilder, longest_of};
use super::*;
use crate::codegen::keys::{emit_hash, emit_same};
use crate::column::item_of;

/// How two lists make one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SetOperation {
    Union,
    Except,
    Intersect,
}

/// A list of distinct elements under construction.
struct DistinctListBuilder {
    builder: ListBuilder,
    /// C++ names of the place behind the elements so far, and of the table of their places.
    next: String,
    table: String,
    longest: Option<u32>,
}

impl Compiler<'_> {
    /// `array_distinct(list)`: each value where it is first.
    pub(super) fn array_distinct(&mut self, list: &Expr, dtype: &DataType) -> Result<Value> {
        let list = self.list(list)?;
        let mut set = self.set(dtype, &format!("{}.length", list.view))?;
        self.insert_all(&mut set, &list)?;
        self.out.line(format_args!("{}.shorten({});", set.builder.name, set.next));
        Ok(self.built(&set.builder, dtype, list.valid, set.longest))
    }

    /// `array_union(one, two)`, `array_except(one, two)` and `array_intersect(one, two)`: null
    /// where one of them is.
    pub(super) fn array_set(
        &mut self,
        operation: SetOperation,
        one: &Expr,
        two: &Expr,
        dtype: &DataType,
    ) -> Result<Value> {
        let (one, two) = (self.value(one)?, self.value(two)?);
        let (one, two) = (self.list_of(&one)?, self.list_of(&two)?);
        let valid = both(&one.valid, &two.valid, self.out);
        let mut set =
            self.set(dtype, &format!("(u64){}.length + {}.length", one.view, two.view))?;
        if operation == SetOperation::Union {
            self.insert_all(&mut set, &one)?;
            self.insert_all(&mut set, &two)?;
            self.out.line(format_args!("{}.shorten({});", set.builder.name, set.next));
            return Ok(self.built(&set.builder, dtype, valid, set.longest));
        }
        let (known, other) = match operation {
            SetOperation::Intersect => {
                // The order is that of the longer list, and of the first where both are as long.
                let swap = self
                    .out
                    .let_("bool", format_args!("{}.length < {}.length", one.view, two.view));
                let chosen = |yes: &List, no: &List| format!("{swap} ? {} : {}", yes.view, no.view);
                let views = [chosen(&one, &two), chosen(&two, &one)]
                    .map(|view| self.out.let_("view", view));
                let longest = one.longest.zip(two.longest).map(|(a, b)| a.max(b));
                let [known, other] = views;
                (one.seen_as(known, longest), two.seen_as(other, longest))
            }
            _ => (two, one),
        };
        self.insert_all(&mut set, &known)?;
        let first = self.out.let_("u32", &set.next);
        match operation {
            SetOperation::Intersect => self.take_known(&set, &other)?,
            _ => self.insert_all(&mut set, &other)?,
        }
        let made = format!("{}.out", set.builder.name);
        let code = format!(
            "{made}.length == 0 ? {made} : list_part({made}, {first}, {} - {first})",
            set.next
        );
        let mut result = self.result(dtype.clone(), Repr::List, code, valid);
        result.longest = set.longest;
        Ok(result)
    }

    /// Begins a list of at most `room` distinct elements, a C++ `u64`.
    fn set(&mut self, dtype: &DataType, room: &str) -> Result<DistinctListBuilder> {
        let Some(item) = item_of(dtype) else { return Err(not_yet(format!("a list as {dtype}"))) };
        let builder = self.build(item.data_type(), room)?;
        let (next, table) = (self.out.fresh(), self.out.fresh());
        self.out.variable("u32", &next, "0");
        self.out.object("list_table", &table, format_args!("(arena, {}.out.length)", builder.name));
        Ok(DistinctListBuilder { builder, next, table, longest: Some(0) })
    }

    /// Puts the elements that are not in the set.
    fn insert_all(&mut self, set: &mut DistinctListBuilder, list: &List) -> Result<()> {
        let (known, at, other) = (self.out.fresh(), self.out.fresh(), self.out.fresh());
        let DistinctListBuilder { next, table, .. } = set;
        self.each(list, |this, element, _| {
            set.longest = set.longest.zip(longest_of(element)).map(|(a, b)| a.max(b));
            let element = this.with_one_zero(element);
            let hash = emit_hash(&element, "secret", this.out);
            this.out.variable("bool", &known, format_args!("{table}.slots == nullptr"));
            this.out.repeat(format_args!(
                "for (u64 {at} = {hash} & {table}.mask; !{known}; {at} = ({at} + 1) & {table}.mask)"
            ));
            this.out.constant("u32", &other, format_args!("{table}.slots[{at}]"));
            this.out.branch(format_args!("{other} == 0"));
            this.out.line(format_args!("{table}.slots[{at}] = {next} + 1;"));
            this.out.leave();
            this.out.close("}");
            let before =
                this.element(&set.builder.as_list(set.longest), &format!("({other} - 1)"), None)?;
            let same = emit_same(&element, &before, this.out);
            this.out.line(format_args!("{known} = {same};"));
            this.out.close("}");
            this.out.branch(format_args!("!{known}"));
            this.put(&set.builder, next, element)?;
            this.out.line(format_args!("{next}++;"));
            this.out.close("}");
            Ok(())
        })
    }

    /// Puts the elements that are in the set behind those, each once: the high bit of a place says
    /// that it was taken.
    fn take_known(&mut self, set: &DistinctListBuilder, list: &List) -> Result<()> {
        let (found, at, other) = (self.out.fresh(), self.out.fresh(), self.out.fresh());
        let DistinctListBuilder { next, table, .. } = set;
        self.each(list, |this, element, _| {
            let element = this.with_one_zero(element);
            let hash = emit_hash(&element, "secret", this.out);
            this.out.variable("bool", &found, "false");
            this.out.repeat(format_args!(
                "for (u64 {at} = {hash} & {table}.mask; {table}.slots != nullptr; \
                 {at} = ({at} + 1) & {table}.mask)"
            ));
            this.out.constant("u32", &other, format_args!("{table}.slots[{at}]"));
            this.out.leave_if(format_args!("{other} == 0"));
            let place = format!("(({other} & 0x7fffffffu) - 1)");
            let before = this.element(&set.builder.as_list(set.longest), &place, None)?;
            let same = emit_same(&element, &before, this.out);
            this.out.branch(&same);
            this.out.line(format_args!("{found} = {other} >> 31 == 0;"));
            this.out.line(format_args!("{table}.slots[{at}] = {other} | 1u << 31;"));
            this.out.leave();
            this.out.close("}");
            this.out.close("}");
            this.out.branch(&found);
            this.put(&set.builder, next, element)?;
            this.out.line(format_args!("{next}++;"));
            this.out.close("}");
            Ok(())
        })
    }

    pub(super) fn with_one_zero(&mut self, element: &Value) -> Value {
        let mut element = element.clone();
        if is_float(&element.dtype) {
            let ctype = element.repr.device_type();
            element.code =
                self.out.let_(ctype, format_args!("{0} == 0 ? ({ctype})0 : {0}", element.code));
        }
        element
    }
}
