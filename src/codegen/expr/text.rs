//! Functions that make new strings, whose characters lie in the kernel's arena
//! (`kernels/text.cuh`).

use super::*;
use crate::codegen::device_function::DeviceFunction;

/// `LONGEST_TEXT` of the kernels.
const LONGEST_TEXT: u64 = i32::MAX as u64;

/// A C++ expression of the view to read, and what is known of the value it is of.
pub(super) struct StringOperand {
    pub(super) view: String,
    pub(super) value: Value,
}

impl Compiler<'_> {
    pub(super) fn text_of(&mut self, expr: &Expr) -> Result<StringOperand> {
        let value = self.value(expr)?;
        let view = self.text(&value)?;
        Ok(StringOperand { view, value })
    }

    /// A new string: `rvalue` mentions the arena as `arena`.
    pub(super) fn made(
        &mut self,
        dtype: &DataType,
        rvalue: String,
        valid: Option<String>,
        longest: Option<u64>,
    ) -> Result<Value> {
        if repr_of(dtype)? != Repr::View {
            return Err(not_yet(format!("a string as {dtype}")));
        }
        self.inputs.arena();
        let mut result = self.result(dtype.clone(), Repr::View, rvalue, valid);
        result.longest = longest.and_then(|longest| u32::try_from(longest).ok());
        if longest.is_none_or(|longest| longest > LONGEST_TEXT) {
            self.fail_if(&None, &format!("too_long({})", result.code), Failure::Length);
        }
        Ok(result)
    }

    /// `left || right`: null where either is.
    pub(super) fn joined(&mut self, left: &Expr, right: &Expr, dtype: &DataType) -> Result<Value> {
        let (left, right) = (self.text_of(left)?, self.text_of(right)?);
        let valid = both(&left.value.valid, &right.value.valid, self.out);
        // Of a null there are no characters to be asked for.
        let (a, b) = match &valid {
            Some(valid) => (
                format!("masked({}, {valid})", left.view),
                format!("masked({}, {valid})", right.view),
            ),
            None => (left.view, right.view),
        };
        let longest =
            left.value.longest.zip(right.value.longest).map(|(a, b)| u64::from(a) + u64::from(b));
        self.made(dtype, format!("concatenated(arena, {a}, {b})"), valid, longest)
    }

    /// `concat(…)`: nulls are empty.
    pub(super) fn concat(&mut self, arguments: &[Expr], dtype: &DataType) -> Result<Value> {
        let mut whole = "view{0, 0, 0}".to_string();
        let mut longest = Some(0u64);
        for (at, argument) in arguments.iter().enumerate() {
            let part = self.value(argument)?;
            if part.dtype.is_null() {
                continue;
            }
            let view = self.text(&part)?;
            longest = longest.zip(part.longest).map(|(whole, part)| whole + u64::from(part));
            whole = match at {
                0 => view,
                _ => self.out.let_("view", format_args!("concatenated(arena, {whole}, {view})")),
            };
        }
        self.made(dtype, whole, None, longest)
    }

    /// `upper(text)`, `lower(text)`, `initcap(text)`. On the device only of ASCII: a row with other
    /// characters sends the query to the CPU.
    pub(super) fn in_case(
        &mut self,
        function: impl Into<DeviceFunction>,
        text: &Expr,
        dtype: &DataType,
    ) -> Result<Value> {
        let (text, function) = (self.text_of(text)?, self.out.calls(function.into()));
        let other = format!("!is_ascii({})", text.view);
        self.fail_if(&text.value.valid.clone(), &other, Failure::NotAscii);
        let longest = text.value.longest.map(u64::from);
        self.made(dtype, format!("{function}(arena, {})", text.view), text.value.valid, longest)
    }

    /// `reverse(text)`.
    pub(super) fn reversed(&mut self, text: &Expr, dtype: &DataType) -> Result<Value> {
        let text = self.text_of(text)?;
        let longest = text.value.longest.map(u64::from);
        self.made(dtype, format!("reversed(arena, {})", text.view), text.value.valid, longest)
    }

    /// `repeat(text, count)`.
    pub(super) fn repeated(
        &mut self,
        text: &Expr,
        count: &Expr,
        dtype: &DataType,
    ) -> Result<Value> {
        let text = self.text_of(text)?;
        let (count, most, valid) = self.count(count, &text.value.valid)?;
        let longest = text
            .value
            .longest
            .zip(most)
            .map(|(longest, most)| u64::from(longest).saturating_mul(most));
        self.made(dtype, format!("repeated(arena, {}, {count})", text.view), valid, longest)
    }

    /// `replace(text, from, to)`.
    pub(super) fn replaced(
        &mut self,
        text: &Expr,
        from: &Expr,
        to: &Expr,
        dtype: &DataType,
    ) -> Result<Value> {
        let (text, from, to) = (self.text_of(text)?, self.text_of(from)?, self.text_of(to)?);
        let valid = both(&text.value.valid, &from.value.valid, self.out);
        let valid = both(&valid, &to.value.valid, self.out);
        // What is replaced has a byte at least.
        let longest = text
            .value
            .longest
            .zip(to.value.longest)
            .map(|(l, to)| u64::from(l) * u64::from(to.max(1)));
        self.made(
            dtype,
            format!("replaced(arena, {}, {}, {})", text.view, from.view, to.view),
            valid,
            longest,
        )
    }

    /// `lpad(text, count[, fill])` and `rpad`.
    pub(super) fn padded(
        &mut self,
        before: bool,
        arguments: &[Expr],
        dtype: &DataType,
    ) -> Result<Value> {
        let text = self.text_of(&arguments[0])?;
        let (fill, filled) = match arguments.get(2) {
            Some(fill) => {
                let fill = self.text_of(fill)?;
                (fill.view, fill.value.valid)
            }
            None => (self.inputs.string(" "), None),
        };
        let valid = both(&text.value.valid, &filled, self.out);
        let (count, most, valid) = self.count(&arguments[1], &valid)?;
        let large = format!("{count} > {}", i32::MAX);
        self.fail_if(&valid, &large, Failure::Domain);
        // A character has at most 4 bytes.
        let longest = most.map(|most| most.saturating_mul(4));
        let rvalue = format!("padded(arena, {}, {count}, {fill}, {before})", text.view);
        self.made(dtype, rvalue, valid, longest)
    }

    /// A count of characters or repetitions: its name (0 where nobody asks), most, and validity
    /// together with `valid`.
    fn count(
        &mut self,
        count: &Expr,
        valid: &Option<String>,
    ) -> Result<(String, Option<u64>, Option<String>)> {
        let count = self.value(count)?;
        if !count.dtype.is_integer() {
            return Err(not_yet(format!("a count of type {}", count.dtype)));
        }
        let valid = both(valid, &count.valid, self.out);
        let asked = [valid.clone(), self.out.guarded()]
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
            .join(" && ");
        let name = match asked.is_empty() {
            true => self.out.let_("i64", format_args!("(i64){}", count.code)),
            false => self.out.let_("i64", format_args!("{asked} ? (i64){} : (i64)0", count.code)),
        };
        Ok((name, u64::try_from(count.bounds().1.max(0)).ok(), valid))
    }
}
