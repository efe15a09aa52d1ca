//! Lists in order, lists of one value, and lists of numbers.

use super::list::{List, ListBuilder, longest_of};
use super::*;
use crate::codegen::NullsPlace;
use crate::codegen::order_compare::{Comparing, emit_compare};
use crate::codegen::statements::BlockKind;
use crate::column::item_of;

/// The order of a sorted list.
#[derive(Debug, Clone, Copy)]
struct Order {
    descending: bool,
    nulls_first: bool,
}

impl Order {
    /// Of the constants behind the list: `'DESC'`, `'NULLS LAST'`.
    fn of(arguments: &[Expr]) -> Result<Order> {
        let mut order = Order { descending: false, nulls_first: true };
        for argument in arguments {
            let word = as_literal(argument).and_then(literal::text).map(str::to_uppercase);
            match word.as_deref() {
                Some("ASC") => order.descending = false,
                Some("DESC") => order.descending = true,
                Some("NULLS FIRST") => order.nulls_first = true,
                Some("NULLS LAST") => order.nulls_first = false,
                _ => return Err(not_yet(format!("array_sort in the order {argument}"))),
            }
        }
        Ok(order)
    }
}

impl Compiler<'_> {
    /// `array_sort(list[, direction[, nulls]])`: a heap sort, which needs no memory besides and
    /// takes no list long.
    pub(super) fn array_sort(
        &mut self,
        list: &Expr,
        order: &[Expr],
        dtype: &DataType,
    ) -> Result<Value> {
        let order = Order::of(order)?;
        let list = self.list(list)?;
        let Some(item) = item_of(dtype) else { return Err(not_yet(format!("a list as {dtype}"))) };
        let builder = self.build(item.data_type(), &format!("{}.length", list.view))?;
        let mut longest = None;
        self.each(&list, |this, element, place| {
            longest = longest_of(element);
            this.put(&builder, place, element.clone())
        })?;
        let heap = builder.as_list(longest);
        let [end, start, root, child] = std::array::from_fn(|_| self.out.fresh());
        self.out.divides(1);
        self.out.repeat(format_args!(
            "for (u32 {end} = {0}.length, {start} = {end} / 2; {end} > 1;)",
            heap.view
        ));
        self.out.open(BlockKind::Branch, format_args!("if ({start} > 0) {start}--;\nelse {{"));
        self.out.line(format_args!("{end}--;"));
        self.swapped(&builder, &heap, &end, "0")?;
        self.out.close("}");
        self.out.variable("u32", &root, &start);
        self.out.repeat(format_args!("while (2 * {root} + 1 < {end})"));
        self.out.variable("u32", &child, format_args!("2 * {root} + 1"));
        self.out.branch(format_args!("{child} + 1 < {end}"));
        let less = self.before(&heap, &child, &format!("({child} + 1)"), order)?;
        self.out.line(format_args!("if ({less}) {child}++;"));
        self.out.close("}");
        let less = self.before(&heap, &root, &child, order)?;
        self.out.leave_if(format_args!("!{less}"));
        self.swapped(&builder, &heap, &root, &child)?;
        self.out.line(format_args!("{root} = {child};"));
        self.out.close("}");
        self.out.close("}");
        Ok(self.built(&builder, dtype, list.valid, longest))
    }

    fn swapped(&mut self, builder: &ListBuilder, list: &List, one: &str, two: &str) -> Result<()> {
        let (a, b) = (self.element(list, one, None)?, self.element(list, two, None)?);
        self.put(builder, one, b)?;
        self.put(builder, two, a)
    }

    /// C++ `bool`: the element in one place comes before that in another.
    fn before(&mut self, list: &List, one: &str, two: &str, order: Order) -> Result<String> {
        let (a, b) = (self.element(list, one, None)?, self.element(list, two, None)?);
        let before = if is_nested(&a.dtype) {
            // A descending order is an ascending one backwards, with nulls on the other side.
            let first = order.nulls_first != order.descending;
            let nulls = if first { NullsPlace::First } else { NullsPlace::Last };
            let [one, two] = [&a, &b].map(|value| Value { valid: None, ..value.clone() });
            let sign = if order.descending { ">" } else { "<" };
            let ahead = emit_compare(&one, &two, Comparing { nulls, one_zero: false }, self.out);
            format!("({ahead} {sign} 0)")
        } else {
            let op = if order.descending { Operator::Gt } else { Operator::Lt };
            self.compare_with(op, &a, &b, compare::ZeroSigns::Apart)?.code
        };
        let (v, w) = (a.validity(), b.validity());
        let null = if order.nulls_first { format!("!{v}") } else { v.to_string() };
        Ok(self.out.let_("bool", format_args!("{v} && {w} ? {before} : {v} != {w} && {null}")))
    }

    /// `array_repeat(value, count)`.
    pub(super) fn array_repeat(
        &mut self,
        value: &Expr,
        count: &Expr,
        dtype: &DataType,
    ) -> Result<Value> {
        let (value, count) = (self.value(value)?, self.integer_of(count)?);
        let Some(item) = item_of(dtype) else { return Err(not_yet(format!("a list as {dtype}"))) };
        let room =
            format!("{} && {} > 0 ? (u64){} : 0ull", count.validity(), count.code, count.code);
        let room = self.out.let_("u64", room);
        let builder = self.build(item.data_type(), &room)?;
        let place = self.out.fresh();
        self.out.count_up(&place, 0, format_args!("{}.out.length", builder.name));
        let longest = longest_of(&value);
        self.put(&builder, &place, value)?;
        self.out.close("}");
        Ok(self.built(&builder, dtype, count.valid, longest))
    }

    /// `range([start, ]stop[, step])`, without the stop, and `generate_series`, with it, of
    /// integers.
    pub(super) fn series(
        &mut self,
        arguments: &[Expr],
        inclusive: bool,
        dtype: &DataType,
    ) -> Result<Value> {
        let values = arguments
            .iter()
            .map(|argument| self.integer_of(argument))
            .collect::<Result<Vec<_>>>()?;
        if item_of(dtype).is_none_or(|item| *item.data_type() != DataType::Int64) {
            return Err(not_yet(format!("a series as {dtype}")));
        }
        let valid = values.iter().fold(None, |valid, value| both(&valid, &value.valid, self.out));
        let number = |at: usize, otherwise: &str| {
            values.get(at).map_or(otherwise.into(), |v| format!("(i64){}", v.code))
        };
        let (start, stop) = if values.len() == 1 {
            ("0".into(), number(0, "0"))
        } else {
            (number(0, "0"), number(1, "0"))
        };
        let [start, stop, step] =
            [start, stop, number(2, "1")].map(|code| self.out.let_("i64", code));
        self.fail_if(&valid, &format!("{step} == 0"), Failure::Domain);
        let asked: Vec<String> = valid.iter().cloned().chain(self.out.guarded()).collect();
        let asked = if asked.is_empty() { "true".into() } else { asked.join(" && ") };
        let room = self.out.let_(
            "u64",
            format_args!("{asked} ? list_steps({start}, {stop}, {step}, {inclusive}) : 0ull"),
        );
        let builder = self.build(&DataType::Int64, &room)?;
        let place = self.out.fresh();
        self.out.count_up(&place, 0, format_args!("{}.out.length", builder.name));
        let value = Value::new(
            DataType::Int64,
            Repr::I64,
            format!("({start} + (i64){place} * {step})"),
            None,
        );
        self.put(&builder, &place, value)?;
        self.out.close("}");
        Ok(self.built(&builder, dtype, valid, None))
    }

    /// `array_any_value(list)`: the first element that is not null.
    pub(super) fn array_any_value(&mut self, list: &Expr, dtype: &DataType) -> Result<Value> {
        let list = self.list(list)?;
        let found = self.out.fresh();
        self.out.variable("u32", &found, format_args!("{}.length", list.view));
        self.each(&list, |this, element, place| {
            this.out.branch(element.validity());
            this.out.line(format_args!("{found} = {place};"));
            this.out.leave();
            this.out.close("}");
            Ok(())
        })?;
        let inside = self.out.let_("bool", format_args!("{found} < {}.length", list.view));
        let value = self.element(&list, &found, Some(&inside))?;
        Ok(Value { dtype: dtype.clone(), ..value })
    }
}
