//! Functions of strings that look at lists, characters and distances (`kernels/words.cuh`).

use super::text::StringOperand;
use super::*;
use crate::codegen::device_function::{KernelHeader, WORDS_BEFORE};

impl Compiler<'_> {
    /// `concat_ws(between, …)`: nulls are left out; a null separator makes all null.
    pub(super) fn concat_with(
        &mut self,
        between: &Expr,
        parts: &[Expr],
        dtype: &DataType,
    ) -> Result<Value> {
        let between = self.text_of(between)?;
        let mut whole = "view{0, 0, 0}".to_string();
        let mut begun = "false".to_string();
        let mut longest = Some(0u64);
        for part in parts {
            let part = self.value(part)?;
            if part.dtype.is_null() {
                continue;
            }
            let view = self.text(&part)?;
            let added = part
                .longest
                .zip(between.value.longest)
                .map(|(part, between)| u64::from(part) + u64::from(between));
            longest = longest.zip(added).map(|(whole, added)| whole + added);
            self.out.needs(KernelHeader::Words);
            let joined = format!("words_joined(arena, {whole}, {begun}, {}, {view})", between.view);
            (whole, begun) = match &part.valid {
                None => (self.out.let_("view", joined), "true".to_string()),
                Some(valid) => {
                    let next = self.out.let_("view", format_args!("{valid} ? {joined} : {whole}"));
                    (next, self.out.let_("bool", format_args!("{begun} || {valid}")))
                }
            };
        }
        self.made(dtype, whole, between.value.valid, longest)
    }

    /// `translate(text, from, to)`.
    pub(super) fn translated(
        &mut self,
        text: &Expr,
        from: &Expr,
        to: &Expr,
        dtype: &DataType,
    ) -> Result<Value> {
        let (text, from, to) = (self.text_of(text)?, self.text_of(from)?, self.text_of(to)?);
        let valid = self.all_valid(&[&text, &from, &to]);
        // A byte becomes a character, of at most 4.
        let longest = text.value.longest.map(|longest| 4 * u64::from(longest));
        self.out.needs(KernelHeader::Words);
        let call = format!("words_translated(arena, {}, {}, {})", text.view, from.view, to.view);
        self.made(dtype, call, valid, longest)
    }

    /// `overlay(text PLACING part FROM start [FOR count])`.
    pub(super) fn overlaid(&mut self, arguments: &[Expr], dtype: &DataType) -> Result<Value> {
        let (text, part) = (self.text_of(&arguments[0])?, self.text_of(&arguments[1])?);
        let start = self.value(&arguments[2])?;
        let mut valid = self.all_valid(&[&text, &part]);
        valid = both(&valid, &start.valid, self.out);
        let count = match arguments.get(3) {
            None => format!("(i64)character_count({})", part.view),
            Some(count) => {
                let count = self.value(count)?;
                valid = both(&valid, &count.valid, self.out);
                format!("(i64){}", count.code)
            }
        };
        if !start.dtype.is_integer() {
            return Err(not_yet(format!("overlay from {}", start.dtype)));
        }
        let before = format!("{} < 1", start.code);
        self.fail_if(&valid, &before, Failure::Domain);
        self.out.needs(KernelHeader::Words);
        // Where it fails nobody looks at what is made.
        let first = self.out.let_("i64", format_args!("maximum<i64>((i64){}, 1)", start.code));
        let longest = text
            .value
            .longest
            .zip(part.value.longest)
            .map(|(l, p)| 2 * u64::from(l) + u64::from(p));
        self.made(
            dtype,
            format!("words_overlaid(arena, {}, {}, {first}, {count})", text.view, part.view),
            valid,
            longest,
        )
    }

    /// `chr(code)`.
    pub(super) fn character(&mut self, code: &Expr, dtype: &DataType) -> Result<Value> {
        let code = self.value(code)?;
        if !code.dtype.is_integer() || repr_of(dtype)? != Repr::View {
            return Err(not_yet(format!("chr of {}", code.dtype)));
        }
        let none = format!("!is_character((i64){})", code.code);
        self.fail_if(&code.valid, &none, Failure::Domain);
        self.out.needs(KernelHeader::Words);
        let rvalue = format!("words_character((i64){})", code.code);
        let mut result = self.result(dtype.clone(), Repr::View, rvalue, code.valid);
        result.longest = Some(4);
        Ok(result)
    }

    /// `to_hex(integer)`: of a negative one, the 64 bits.
    pub(super) fn hexadecimal(&mut self, value: &Expr, dtype: &DataType) -> Result<Value> {
        let value = self.value(value)?;
        if !value.dtype.is_integer() {
            return Err(not_yet(format!("to_hex of {}", value.dtype)));
        }
        let ctype = if value.dtype.is_signed_integer() { "i64" } else { "u64" };
        self.out.needs(KernelHeader::Format);
        self.made(
            dtype,
            format!("format_hex(arena, (u64)({ctype}){})", value.code),
            value.valid,
            Some(16),
        )
    }

    /// `bin(integer)`: of a negative one, the 64 bits.
    pub(super) fn bits(&mut self, value: &Expr, dtype: &DataType) -> Result<Value> {
        let value = self.value(value)?;
        if !value.dtype.is_integer() {
            return Err(not_yet(format!("bin of {}", value.dtype)));
        }
        let ctype = if value.dtype.is_signed_integer() { "i64" } else { "u64" };
        self.made(
            dtype,
            format!("format_bits(arena, (u64)({ctype}){})", value.code),
            value.valid,
            Some(64),
        )
    }

    /// `levenshtein(one, two)`.
    pub(super) fn distance(&mut self, one: &Expr, two: &Expr, dtype: &DataType) -> Result<Value> {
        let (one, two) = (self.text_of(one)?, self.text_of(two)?);
        repr_of(dtype)?;
        let valid = self.all_valid(&[&one, &two]);
        self.out.needs(KernelHeader::Words);
        let lost = self.out.fresh();
        self.out.unset("bool", &lost);
        let distance = self
            .out
            .let_("i32", format_args!("words_distance({}, {}, &{lost})", one.view, two.view));
        self.fail_if(&valid, &lost, Failure::Beyond);
        Ok(Value::new(dtype.clone(), Repr::I32, distance, valid)
            .with_range(Some((0, i32::MAX.into()))))
    }

    /// `find_in_set(text, list)`.
    pub(super) fn place_in_set(
        &mut self,
        text: &Expr,
        list: &Expr,
        dtype: &DataType,
    ) -> Result<Value> {
        let (text, list) = (self.text_of(text)?, self.text_of(list)?);
        repr_of(dtype)?;
        let valid = self.all_valid(&[&text, &list]);
        self.out.needs(KernelHeader::Words);
        let rvalue = format!("words_place({}, {})", text.view, list.view);
        Ok(self
            .result(dtype.clone(), Repr::I32, rvalue, valid)
            .with_range(Some((0, i32::MAX.into()))))
    }

    /// `substr_index(text, between, count)`.
    pub(super) fn before_occurrence(
        &mut self,
        text: &Expr,
        between: &Expr,
        count: &Expr,
        dtype: &DataType,
    ) -> Result<Value> {
        let (between, count) = (self.text_of(between)?, self.value(count)?);
        if !count.dtype.is_integer() {
            return Err(not_yet(format!("substr_index with {}", count.dtype)));
        }
        let more = format!("{}, (i64){}", between.view, count.code);
        let mut result = self.part(WORDS_BEFORE, text, &more, dtype)?;
        let others = both(&between.value.valid, &count.valid, self.out);
        result.valid = both(&result.valid, &others, self.out);
        Ok(result)
    }

    fn all_valid(&mut self, texts: &[&StringOperand]) -> Option<String> {
        texts.iter().fold(None, |valid, text| both(&valid, &text.value.valid, self.out))
    }
}
