//! Strings: LIKE and functions whose result needs no new characters.

use datafusion::logical_expr::Like;

use super::*;
use crate::codegen::device_function::{
    DeviceFunction, ENDS_WITH, STARTS_WITH, TRIMMED_OF, VIEWS_EQUAL,
};

/// What a LIKE pattern asks for; `%` in the middle of `Segments` only.
#[derive(Debug, PartialEq, Eq)]
enum LikePattern {
    /// `abc`
    Exact(String),
    /// Pieces between `%`, in this order; whether the first and last are anchored.
    Segments { pieces: Vec<String>, starts: bool, ends: bool },
    /// With `_`: matched by the general routine.
    General,
}

impl LikePattern {
    fn of(pattern: &str) -> LikePattern {
        let mut pieces = vec![String::new()];
        let mut characters = pattern.chars();
        while let Some(c) = characters.next() {
            let c = match c {
                '%' => {
                    pieces.push(String::new());
                    continue;
                }
                '_' => return LikePattern::General,
                // A backslash takes the next character literally; the last one is itself.
                '\\' => characters.next().unwrap_or('\\'),
                c => c,
            };
            if let Some(piece) = pieces.last_mut() {
                piece.push(c);
            }
        }
        if pieces.len() == 1 {
            return LikePattern::Exact(pieces.remove(0));
        }
        let starts = pieces.first().is_some_and(|p| !p.is_empty());
        let ends = pieces.last().is_some_and(|p| !p.is_empty());
        pieces.retain(|p| !p.is_empty());
        LikePattern::Segments { pieces, starts, ends }
    }
}

impl Compiler<'_> {
    /// C++ expression of a view that may be read through: empty where the value is null, and where
    /// guards say that nobody asks.
    pub(super) fn text(&mut self, value: &Value) -> Result<String> {
        if value.repr != Repr::View {
            return Err(not_yet(format!("{} as a string", value.dtype)));
        }
        let asked = match (&value.valid, self.out.guarded()) {
            (None, None) => return Ok(self.out.let_("view", &value.code)),
            (Some(valid), None) => valid.clone(),
            (None, Some(guards)) => guards,
            (Some(valid), Some(guards)) => format!("{valid} && {guards}"),
        };
        Ok(self.out.let_("view", format_args!("masked({}, {asked})", value.code)))
    }

    pub(super) fn like(&mut self, like: &Like) -> Result<Value> {
        if like.escape_char.unwrap_or('\\') != '\\' {
            return Err(not_yet("LIKE with an escape character other than the backslash"));
        }
        let value = self.value(&like.expr)?;
        let matched = match (as_literal(&like.pattern), like.case_insensitive) {
            (Some(pattern), _) if pattern.is_null() => return self.null(&DataType::Boolean),
            (Some(pattern), ignore_case) => {
                let Some(pattern) = literal::text(pattern) else {
                    return Err(not_yet("LIKE with a pattern that is no string"));
                };
                // The case of other characters is a matter of tables.
                if ignore_case && !pattern.is_ascii() {
                    let found =
                        self.regex_test(value, &format!("(?i){}", automaton::of_like(pattern)))?;
                    return Ok(if like.negated { self.negated(&found) } else { found });
                }
                let text = self.text(&value)?;
                let test = if ignore_case {
                    self.matched_in_any_case(&text, pattern)
                } else {
                    self.matched(&text, pattern)
                };
                self.result(DataType::Boolean, Repr::Bool, test, value.valid)
            }
            (None, ignore_case) => {
                let pattern = self.value(&like.pattern)?;
                if value.dtype.is_null() || pattern.dtype.is_null() {
                    return self.null(&DataType::Boolean);
                }
                let valid = both(&value.valid, &pattern.valid, self.out);
                let (text, pattern) = (self.text(&value)?, self.text(&pattern)?);
                if ignore_case {
                    let other = format!("!is_ascii({pattern})");
                    self.fail_if(&valid, &other, Failure::Beyond);
                }
                let function = if ignore_case { "ilike" } else { "like" };
                self.result(
                    DataType::Boolean,
                    Repr::Bool,
                    format!("{function}({text}, {pattern})"),
                    valid,
                )
            }
        };
        Ok(if like.negated { self.negated(&matched) } else { matched })
    }

    /// C++ `bool`: the text is like a constant pattern.
    fn matched(&mut self, text: &str, pattern: &str) -> String {
        match LikePattern::of(pattern) {
            LikePattern::Exact(exact) => {
                let exact = self.inputs.string(&exact);
                format!("{}({text}, {exact})", self.out.calls(VIEWS_EQUAL))
            }
            LikePattern::General => {
                let pattern = self.inputs.string(pattern);
                format!("like({text}, {pattern})")
            }
            LikePattern::Segments { pieces, starts, ends } => {
                self.segments(text, &pieces, starts, ends)
            }
        }
    }

    /// C++ `bool`: the text is like a constant pattern in ASCII, where case does not matter.
    fn matched_in_any_case(&mut self, text: &str, pattern: &str) -> String {
        let pattern = self.inputs.string(pattern);
        format!("ilike({text}, {pattern})")
    }

    /// The first piece anchored at the start, the last at the end, those between found one after
    /// the other.
    fn segments(&mut self, text: &str, pieces: &[String], starts: bool, ends: bool) -> String {
        let views: Vec<String> = pieces.iter().map(|p| self.inputs.string(p)).collect();
        match (pieces.len(), starts, ends) {
            (0, _, _) => return "true".into(),
            (1, true, false) => {
                return format!("{}({text}, {})", self.out.calls(STARTS_WITH), views[0]);
            }
            (1, false, true) => {
                return format!("{}({text}, {})", self.out.calls(ENDS_WITH), views[0]);
            }
            (1, false, false) => return format!("contains({text}, {})", views[0]),
            _ => {}
        }
        let least: usize = pieces.iter().map(String::len).sum();
        let mut tests = vec![format!("{text}.length >= {least}u")];
        let mut middle = 0..pieces.len();
        let mut begin = "0u".to_string();
        if starts {
            tests.push(format!("{}({text}, {})", self.out.calls(STARTS_WITH), views[0]));
            begin = format!("{}u", pieces[0].len());
            middle.start += 1;
        }
        if ends {
            let last = &views[pieces.len() - 1];
            tests.push(format!("{}({text}, {last})", self.out.calls(ENDS_WITH)));
            middle.end -= 1;
        }
        let possible = self.out.let_("bool", tests.join(" && "));
        let mut last = None;
        for i in middle {
            let place = format!("find({text}, {}, {begin})", views[i]);
            let asked = match &last {
                None => possible.clone(),
                Some(last) => format!("{last} != NOT_FOUND"),
            };
            let place = self.out.let_("u32", format_args!("{asked} ? {place} : NOT_FOUND"));
            begin = format!("({place} + {}u)", pieces[i].len());
            last = Some(place);
        }
        match last {
            None => possible,
            // What was found must not reach into the end piece.
            Some(place) if ends => {
                let end = pieces[pieces.len() - 1].len();
                format!("({place} != NOT_FOUND && {begin} + {end}u <= {text}.length)")
            }
            Some(place) => format!("{place} != NOT_FOUND"),
        }
    }

    /// `function(text, part)` with a boolean result.
    pub(super) fn text_test(
        &mut self,
        function: impl Into<DeviceFunction>,
        value: &Expr,
        part: &Expr,
    ) -> Result<Value> {
        let (value, part) = (self.value(value)?, self.value(part)?);
        if value.dtype.is_null() || part.dtype.is_null() {
            return self.null(&DataType::Boolean);
        }
        let valid = both(&value.valid, &part.valid, self.out);
        let (text, part) = (self.text(&value)?, self.text(&part)?);
        let test = format!("{}({text}, {part})", self.out.calls(function.into()));
        Ok(self.result(DataType::Boolean, Repr::Bool, test, valid))
    }

    /// `strpos(text, part)`.
    pub(super) fn position(
        &mut self,
        value: &Expr,
        part: &Expr,
        dtype: &DataType,
    ) -> Result<Value> {
        let (value, part) = (self.value(value)?, self.value(part)?);
        repr_of(dtype)?;
        let valid = both(&value.valid, &part.valid, self.out);
        let (text, part) = (self.text(&value)?, self.text(&part)?);
        let range = Some((0, value.longest.map_or(i32::MAX.into(), |l| i128::from(l) + 1)));
        let rvalue = format!("position({text}, {part})");
        Ok(self.result(dtype.clone(), Repr::I32, rvalue, valid).with_range(range))
    }

    /// Lengths: `factor` × bytes, or characters.
    pub(super) fn length(
        &mut self,
        value: &Expr,
        unit: LengthUnit,
        dtype: &DataType,
    ) -> Result<Value> {
        let value = self.value(value)?;
        repr_of(dtype)?;
        let text = self.text(&value)?;
        let (rvalue, factor) = match unit {
            LengthUnit::Bits => (format!("(i64){text}.length * 8"), 8),
            LengthUnit::Bytes => (format!("(i64){text}.length"), 1),
            LengthUnit::Characters => (format!("(i64)character_count({text})"), 1),
        };
        let range = Some((0, factor * i128::from(value.longest.unwrap_or(i32::MAX as u32 / 8))));
        Ok(self.result(dtype.clone(), Repr::I64, rvalue, value.valid).with_range(range))
    }

    /// `substr(text, start[, count])`.
    pub(super) fn substring(&mut self, arguments: &[Expr], dtype: &DataType) -> Result<Value> {
        let value = self.value(&arguments[0])?;
        let start = self.value(&arguments[1])?;
        let mut valid = both(&value.valid, &start.valid, self.out);
        let (mut count, mut longest) = ("I64_MAX".to_string(), value.longest);
        if let Some(argument) = arguments.get(2) {
            let argument = self.value(argument)?;
            valid = both(&valid, &argument.valid, self.out);
            let (low, high) = argument.bounds();
            if low < 0 {
                let negative = format!("{} < 0", argument.code);
                self.fail_if(&valid, &negative, Failure::Domain);
            }
            // A character has at most 4 bytes.
            if let Ok(most) = u32::try_from(high.saturating_mul(4)) {
                longest = Some(longest.map_or(most, |l| l.min(most)));
            }
            count = format!("(i64){}", argument.code);
        }
        if !start.dtype.is_integer() {
            return Err(not_yet(format!("substr from {}", start.dtype)));
        }
        if start.bounds().0 == i128::from(i64::MIN) {
            let least = format!("{} == I64_MIN", start.code);
            self.fail_if(&valid, &least, Failure::Domain);
        }
        let text = self.text(&value)?;
        let rvalue = format!("substring({text}, (i64){}, {count})", start.code);
        let mut result = self.result(dtype.clone(), Repr::View, rvalue, valid);
        result.longest = longest;
        Ok(result)
    }

    /// A view into the characters of the first argument: `function(text, more…)`.
    pub(super) fn part(
        &mut self,
        function: impl Into<DeviceFunction>,
        value: &Expr,
        more: &str,
        dtype: &DataType,
    ) -> Result<Value> {
        let (value, function) = (self.value(value)?, self.out.calls(function.into()));
        if !is_string(dtype) {
            return Err(not_yet(format!("{function} of {dtype}")));
        }
        let text = self.text(&value)?;
        let mut result = self.result(
            dtype.clone(),
            Repr::View,
            format!("{function}({text}, {more})"),
            value.valid,
        );
        result.longest = value.longest;
        Ok(result)
    }

    /// `btrim(text, characters)` and its one-sided forms; `sides` says whether before and behind.
    pub(super) fn trimmed(
        &mut self,
        sides: &str,
        value: &Expr,
        set: &Expr,
        dtype: &DataType,
    ) -> Result<Value> {
        let set = self.value(set)?;
        let characters = self.text(&set)?;
        let mut result = self.part(TRIMMED_OF, value, &format!("{characters}, {sides}"), dtype)?;
        result.valid = both(&result.valid, &set.valid, self.out);
        Ok(result)
    }

    /// `split_part(text, between, field)`.
    pub(super) fn field(
        &mut self,
        value: &Expr,
        between: &Expr,
        field: &Expr,
        dtype: &DataType,
    ) -> Result<Value> {
        let (between, field) = (self.value(between)?, self.value(field)?);
        if !field.dtype.is_integer() {
            return Err(not_yet(format!("split_part with {}", field.dtype)));
        }
        let separator = self.text(&between)?;
        let mut result =
            self.part("split_field", value, &format!("{separator}, (i64){}", field.code), dtype)?;
        let others = both(&between.valid, &field.valid, self.out);
        result.valid = both(&result.valid, &others, self.out);
        let (low, high) = field.bounds();
        if low <= 0 && high >= 0 {
            let zero = format!("{} == 0", field.code);
            self.fail_if(&result.valid.clone(), &zero, Failure::Domain);
        }
        Ok(result)
    }

    /// `ascii(text)`: the number of the first character, whatever the name says.
    pub(super) fn first_character(&mut self, value: &Expr, dtype: &DataType) -> Result<Value> {
        let value = self.value(value)?;
        if *dtype != DataType::Int32 {
            return Err(not_yet(format!("ascii as {dtype}")));
        }
        let text = self.text(&value)?;
        let rvalue = format!("first_character({text})");
        Ok(self
            .result(dtype.clone(), Repr::I32, rvalue, value.valid)
            .with_range(Some((0, 0x10FFFF))))
    }

    /// `left(text, n)` and `right(text, n)`.
    pub(super) fn end(
        &mut self,
        function: &'static str,
        value: &Expr,
        count: &Expr,
        dtype: &DataType,
    ) -> Result<Value> {
        let count = self.value(count)?;
        if !count.dtype.is_integer() {
            return Err(not_yet(format!("{function} with {}", count.dtype)));
        }
        let mut result = self.part(function, value, &format!("(i64){}", count.code), dtype)?;
        result.valid = both(&result.valid, &count.valid, self.out);
        Ok(result)
    }
}

/// What a length counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LengthUnit {
    Bits,
    Bytes,
    Characters,
}

#[cfg(test)]
mod tests {
    use super::LikePattern;

    #[test]
    fn patterns_split_at_percent_signs_that_are_not_escaped() {
        let segments = |pieces: &[&str], starts, ends| LikePattern::Segments {
            pieces: pieces.iter().map(|p| p.to_string()).collect(),
            starts,
            ends,
        };
        assert_eq!(LikePattern::of("abc"), LikePattern::Exact("abc".into()));
        assert_eq!(LikePattern::of("50\\%"), LikePattern::Exact("50%".into()));
        assert_eq!(LikePattern::of("abc%"), segments(&["abc"], true, false));
        assert_eq!(LikePattern::of("%a%%b"), segments(&["a", "b"], false, true));
        assert_eq!(LikePattern::of("%"), segments(&[], false, false));
        assert_eq!(LikePattern::of("a_c%"), LikePattern::General);
    }
}
