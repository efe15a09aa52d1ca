//! Lists in expressions: their elements, loops over these, and lists that are made
//! (`kernels/list.cuh`).
//!
//! A loop stands in the kernel as it would in C++: what is asked of columns and parameters has to
//! be asked before it, for names that are declared in it end with it.

use datafusion::logical_expr::expr::Cast;

use super::fit::OnError;
use super::*;
use crate::codegen::device_function::KernelHeader;
use crate::codegen::element::slot;
use crate::column::{item_of, widths_of};

/// A list to look into. Casts of it are casts of each element that is looked at.
pub(super) struct List {
    /// C++ name of the view, empty where the list is null.
    pub(super) view: String,
    pub(super) valid: Option<String>,
    /// Type of the elements as they lie in memory.
    item: DataType,
    /// Types that elements become, one after the other.
    casts: Vec<DataType>,
    pub(super) longest: Option<u32>,
}

impl List {
    /// A list of such elements by another view, which is never null.
    pub(super) fn seen_as(&self, view: String, longest: Option<u32>) -> List {
        List { view, valid: None, item: self.item.clone(), casts: self.casts.clone(), longest }
    }

    /// Type of the elements.
    pub(super) fn item(&self) -> &DataType {
        self.casts.last().unwrap_or(&self.item)
    }
}

/// A list under construction.
pub(super) struct ListBuilder {
    /// C++ name of the `list_builder`.
    pub(super) name: String,
    item: DataType,
}

impl ListBuilder {
    /// What was put so far, to be read.
    pub(super) fn as_list(&self, longest: Option<u32>) -> List {
        List {
            view: format!("{}.out", self.name),
            valid: None,
            item: self.item.clone(),
            casts: vec![],
            longest,
        }
    }
}

impl Compiler<'_> {
    /// The list that an expression yields.
    pub(super) fn list(&mut self, expr: &Expr) -> Result<List> {
        match expr {
            Expr::Alias(alias) => self.list(&alias.expr),
            Expr::Cast(Cast { expr, field })
                if !matches!(field.data_type(), DataType::FixedSizeList(_, _)) =>
            {
                let target = item_of(field.data_type())
                    .ok_or_else(|| not_yet(format!("{field} as a list")))?;
                let mut list = self.list(expr)?;
                if !same_form(list.item(), target.data_type()) {
                    list.casts.push(target.data_type().clone());
                }
                Ok(list)
            }
            _ => {
                let value = self.value(expr)?;
                self.list_of(&value)
            }
        }
    }

    pub(super) fn list_of(&mut self, value: &Value) -> Result<List> {
        let Some(item) = item_of(&value.dtype) else {
            return Err(not_yet(format!("{} as a list", value.dtype)));
        };
        repr_of(item.data_type())?;
        let asked: Vec<String> = value.valid.iter().cloned().chain(self.out.guarded()).collect();
        let view = match asked.is_empty() {
            true => value.code.clone(),
            false => format!("masked({}, {})", value.code, asked.join(" && ")),
        };
        let view = self.out.let_("view", view);
        let item = item.data_type().clone();
        Ok(List { view, valid: value.valid.clone(), item, casts: vec![], longest: value.longest })
    }

    /// The element in a place, a C++ `u32`. Where `inside` does not hold there is none, and the
    /// value is null.
    pub(super) fn element(
        &mut self,
        list: &List,
        place: &str,
        inside: Option<&str>,
    ) -> Result<Value> {
        let mut value =
            slot(&list.view, list.longest, &list.item, &mut 0, (place, inside), self.out)?;
        for target in &list.casts {
            value = self.cast(value, target, OnError::Fail)?;
        }
        Ok(Value { dtype: list.item().clone(), ..value })
    }

    /// A loop over the elements: `body` gets each and its place, and may end the loop with `break`.
    pub(super) fn each(
        &mut self,
        list: &List,
        body: impl FnOnce(&mut Self, &Value, &str) -> Result<()>,
    ) -> Result<()> {
        let place = self.out.fresh();
        self.out.count_up(&place, 0, format_args!("{}.length", list.view));
        let element = self.element(list, &place, None)?;
        body(self, &element, &place)?;
        self.out.close("}");
        Ok(())
    }

    /// Begins a list of at most `room` elements, a C++ `u64`.
    pub(super) fn build(&mut self, item: &DataType, room: &str) -> Result<ListBuilder> {
        let mut widths = vec![];
        repr_of(item)?;
        widths_of(item, &mut widths)?;
        let widths: Vec<String> = widths.iter().map(usize::to_string).collect();
        self.inputs.arena();
        let name = self.out.fresh();
        self.out.needs(KernelHeader::List);
        let ctype = format!("list_builder<{}>", widths.join(", "));
        self.out.object(&ctype, &name, format_args!("(arena, {room})"));
        Ok(ListBuilder { name, item: item.clone() })
    }

    /// Puts an element into a place that is there.
    pub(super) fn put(&mut self, builder: &ListBuilder, place: &str, value: Value) -> Result<()> {
        let value = self.cast(value, &builder.item, OnError::Fail)?;
        self.put_slot(&builder.name, &mut 0, place, &value);
        Ok(())
    }

    fn put_slot(&mut self, builder: &str, next: &mut u32, place: &str, value: &Value) {
        let (slot, valid) = (*next, value.validity());
        *next += 1;
        if value.repr == Repr::Struct {
            self.out.line(format_args!("{builder}.put_valid({slot}, {place}, {valid});"));
            value.fields.iter().for_each(|field| self.put_slot(builder, next, place, field));
            return;
        }
        let ctype = Repr::of(&value.dtype).unwrap_or(value.repr).device_type();
        self.out.line(format_args!(
            "{builder}.put<{ctype}>({slot}, {place}, {}, {valid});",
            value.stored()
        ));
    }

    /// The list that was built.
    pub(super) fn built(
        &mut self,
        builder: &ListBuilder,
        dtype: &DataType,
        valid: Option<String>,
        longest: Option<u32>,
    ) -> Value {
        self.fail_if(&None, &format!("too_long({}.out)", builder.name), Failure::Length);
        let mut value =
            Value::new(dtype.clone(), Repr::List, format!("{}.out", builder.name), valid);
        value.longest = longest;
        value
    }

    /// A list with every element cast.
    pub(super) fn cast_list(
        &mut self,
        value: Value,
        target: &DataType,
        on_error: OnError,
    ) -> Result<Value> {
        let Some(item) = item_of(target) else {
            return Err(not_yet(format!("{} as {target}", value.dtype)));
        };
        let list = self.list_of(&value)?;
        if same_form(&value.dtype, target) {
            return Ok(Value { dtype: target.clone(), ..value });
        }
        if matches!(target, DataType::FixedSizeList(_, _)) {
            return Err(not_yet(format!("{} as {target}", value.dtype)));
        }
        let builder = self.build(item.data_type(), &format!("{}.length", list.view))?;
        let mut longest = None;
        self.each(&list, |this, element, place| {
            let element = this.cast(element.clone(), item.data_type(), on_error)?;
            longest = longest_of(&element);
            this.put(&builder, place, element)
        })?;
        Ok(self.built(&builder, target, value.valid, longest))
    }

    /// A struct with every field cast.
    pub(super) fn cast_fields(
        &mut self,
        value: Value,
        target: &DataType,
        on_error: OnError,
    ) -> Result<Value> {
        let (DataType::Struct(from), DataType::Struct(to)) = (&value.dtype, target) else {
            return Err(not_yet(format!("{} as {target}", value.dtype)));
        };
        if from.len() != to.len() || from.iter().zip(to).any(|(from, to)| from.name() != to.name())
        {
            return Err(not_yet(format!("{} as {target}", value.dtype)));
        }
        let field =
            |(value, field): (Value, &FieldRef)| self.cast(value, field.data_type(), on_error);
        let fields = value.fields.into_iter().zip(to).map(field).collect::<Result<_>>()?;
        Ok(Value::of_fields(target.clone(), fields, value.valid))
    }
}

/// Most bytes of the strings in a value, where known.
pub(super) fn longest_of(value: &Value) -> Option<u32> {
    match value.repr {
        Repr::Struct => {
            value.fields.iter().try_fold(0, |most, field| Some(longest_of(field)?.max(most)))
        }
        repr if repr.points() => value.longest,
        _ => Some(0),
    }
}

/// Whether values of both types lie in memory the same way, and mean the same.
pub(super) fn same_form(one: &DataType, two: &DataType) -> bool {
    if one == two || is_string(one) && is_string(two) {
        return true;
    }
    match (one, two) {
        (DataType::FixedSizeList(a, n), DataType::FixedSizeList(b, m)) => {
            n == m && same_form(a.data_type(), b.data_type())
        }
        (_, DataType::FixedSizeList(_, _)) => false,
        (DataType::Struct(a), DataType::Struct(b)) => {
            let same = |(a, b): (&FieldRef, &FieldRef)| {
                a.name() == b.name() && same_form(a.data_type(), b.data_type())
            };
            a.len() == b.len() && a.iter().zip(b).all(same)
        }
        _ => match (item_of(one), item_of(two)) {
            (Some(a), Some(b)) => same_form(a.data_type(), b.data_type()),
            _ => false,
        },
    }
}
