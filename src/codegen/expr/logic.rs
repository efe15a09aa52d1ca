//! Three-valued logic and choices: AND, OR, NOT, IS …, CASE, coalesce, nullif.

use datafusion::arrow::datatypes::FieldRef;
use datafusion::logical_expr::Case;

use super::*;
use crate::codegen::emit::InsertionPoint;
use crate::codegen::statements::Code;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Junction {
    And,
    Or,
}

/// A value that a row takes where a condition (a name) holds, or whatever holds.
#[derive(Debug)]
pub(super) struct Choice {
    taken: Option<String>,
    value: Value,
    /// Behind the statements that compute both.
    place: InsertionPoint,
}

impl Choice {
    /// `name = code`, where it is taken.
    fn assign(&self, name: &str, code: &str, out: &mut Code) {
        match &self.taken {
            Some(taken) => out.line(format_args!("if ({taken}) {name} = {code};")),
            None => out.line(format_args!("{name} = {code};")),
        }
    }
}

impl Compiler<'_> {
    fn boolean(&mut self, expr: &Expr) -> Result<Value> {
        let value = self.value(expr)?;
        if value.repr == Repr::Bool {
            return Ok(value);
        }
        Err(not_yet(format!("{} as a condition", value.dtype)))
    }

    pub(super) fn and_or(
        &mut self,
        left: &Expr,
        right: &Expr,
        junction: Junction,
    ) -> Result<Value> {
        let left = self.boolean(left)?;
        // The right side decides only where the left does not: there its failures count.
        let open = match junction {
            Junction::And => format!("!{} || {}", left.validity(), left.code),
            Junction::Or => format!("!{} || !{}", left.validity(), left.code),
        };
        let open = self.out.let_("bool", open);
        self.out.guard(open);
        let right = self.boolean(right);
        self.out.unguard();
        Ok(self.junction(junction, &left, &right?))
    }

    /// AND or OR of two booleans.
    pub(super) fn junction(&mut self, junction: Junction, left: &Value, right: &Value) -> Value {
        // `decides`: the left or right value that settles the result alone, whatever the other is.
        let (sign, decides) = match junction {
            Junction::And => ("&&", "!"),
            Junction::Or => ("||", ""),
        };
        let (l, r) = (&left.code, &right.code);
        let decided = |valid: &Option<String>, code: &String| match valid {
            Some(valid) => format!("({valid} && {decides}{code})"),
            None => format!("{decides}{code}"),
        };
        let valid = match (&left.valid, &right.valid) {
            (None, None) => None,
            (Some(v), None) => Some(format!("{v} || {decides}{r}")),
            (None, Some(w)) => Some(format!("{w} || {decides}{l}")),
            (Some(v), Some(w)) => Some(format!(
                "({v} && {w}) || {} || {}",
                decided(&left.valid, l),
                decided(&right.valid, r)
            )),
        };
        let valid = valid.map(|v| self.out.let_("bool", v));
        // Where the result is valid and one side is null, the other decides: garbage beneath the
        // null must not. For AND, decided = false: `false && garbage`; for OR, `true || garbage`.
        self.result(DataType::Boolean, Repr::Bool, format!("{l} {sign} {r}"), valid)
    }

    /// NOT of a boolean.
    pub(super) fn negated(&mut self, value: &Value) -> Value {
        self.result(DataType::Boolean, Repr::Bool, format!("!{}", value.code), value.valid.clone())
    }

    pub(super) fn not(&mut self, inner: &Expr) -> Result<Value> {
        let value = self.boolean(inner)?;
        Ok(self.negated(&value))
    }

    pub(super) fn is_null(&mut self, inner: &Expr, wanted: bool) -> Result<Value> {
        let value = self.value(inner)?;
        let test = match (&value.valid, wanted) {
            (None, wanted) => (!wanted).to_string(),
            (Some(valid), true) => format!("!{valid}"),
            (Some(valid), false) => valid.clone(),
        };
        Ok(Value::new(DataType::Boolean, Repr::Bool, self.out.let_("bool", test), None))
    }

    /// `IS [NOT] TRUE`, `IS [NOT] FALSE`.
    pub(super) fn is_truth(&mut self, inner: &Expr, truth: bool, wanted: bool) -> Result<Value> {
        let value = self.boolean(inner)?;
        let code = if truth { value.code.clone() } else { format!("!{}", value.code) };
        let is = format!("({} && {code})", value.validity());
        let test = if wanted { is } else { format!("!{is}") };
        Ok(Value::new(DataType::Boolean, Repr::Bool, self.out.let_("bool", test), None))
    }

    /// The first THEN whose WHEN holds, as one statement for each:
    ///
    /// ```text
    ///   i32 chosen; bool valid;
    ///   … const bool taken = open && when; …        when, and then the value, under guards
    ///   if (taken) { chosen = value; valid = …; }
    /// ```
    ///
    /// `taken` holds for at most one of them; `open` says that none before took the row.
    pub(super) fn case(&mut self, case: &Case, dtype: &DataType) -> Result<Value> {
        let begin = self.out.place();
        // `open`: no WHEN before held.
        let mut open: Option<String> = None;
        let mut choices = Vec::with_capacity(case.when_then_expr.len() + 1);
        for (when, then) in &case.when_then_expr {
            if let Some(open) = &open {
                self.out.guard(open.clone());
            }
            let condition = match &case.expr {
                Some(base) => self.boolean(&Self::equals(base, when)),
                None => self.boolean(when),
            };
            if open.is_some() {
                self.out.unguard();
            }
            let taken = self.still(&open, &condition?.truth());
            open = Some(self.still(&open, &format!("!{taken}")));
            choices.push(self.choice(Some(&taken), then, dtype)?);
        }
        choices.push(match &case.else_expr {
            Some(otherwise) => self.choice(open.as_deref(), otherwise, dtype)?,
            None => {
                let null = self.null(dtype)?;
                self.chosen_if(open.as_deref(), null, dtype)?
            }
        });
        self.choose(begin, &choices, dtype)
    }

    /// A name of `open && condition`.
    fn still(&mut self, open: &Option<String>, condition: &str) -> String {
        match open {
            Some(open) => self.out.let_("bool", format_args!("{open} && {condition}")),
            None => self.out.let_("bool", condition),
        }
    }

    /// The value of `expr` as a choice; what fails in it does so only where the choice is taken.
    fn choice(&mut self, taken: Option<&str>, expr: &Expr, dtype: &DataType) -> Result<Choice> {
        if let Some(taken) = taken {
            self.out.guard(taken);
        }
        let choice = self.value(expr).and_then(|value| self.chosen_if(taken, value, dtype));
        if taken.is_some() {
            self.out.unguard();
        }
        choice
    }

    /// A value as a choice of type `dtype`.
    pub(super) fn chosen_if(
        &mut self,
        taken: Option<&str>,
        value: Value,
        dtype: &DataType,
    ) -> Result<Choice> {
        let value = match (&value.dtype, dtype) {
            // An untyped null is a null of the result's type.
            (own, _) if own.is_null() => self.null(dtype)?,
            // The optimizer may fold what a decimal's scale depends on after the types were made
            // one.
            (DataType::Decimal128(_, own), DataType::Decimal128(_, scale)) if own != scale => {
                self.cast(value, dtype, fit::OnError::Null)?
            }
            _ => value,
        };
        Ok(Choice { taken: taken.map(str::to_string), value, place: self.out.place() })
    }

    /// The value that was taken: of several that hold the last. All are computed behind the place
    /// `begin`.
    pub(super) fn choose(
        &mut self,
        begin: InsertionPoint,
        choices: &[Choice],
        dtype: &DataType,
    ) -> Result<Value> {
        if let DataType::Struct(fields) = dtype {
            return self.choose_fields(begin, choices, dtype, fields);
        }
        let target = repr_of(dtype)?;
        let values: Vec<&Value> = choices.iter().map(|choice| &choice.value).collect();
        let same_class = |repr: Repr| repr == target || (repr.is_integer() && target.is_integer());
        if let Some(other) = values.iter().find(|v| !same_class(v.repr)) {
            return Err(not_yet(format!("a choice between {dtype} and {}", other.dtype)));
        }
        if values.is_empty() {
            return Err(not_yet("an empty choice"));
        }
        let repr = if target.is_integer() { common_repr(&values) } else { target };
        let range = values
            .iter()
            .map(|v| v.bounds())
            .reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
            .filter(|_| target.is_integer());
        let magnitude =
            values.iter().map(|v| v.magnitude).reduce(|a, b| Some(a?.max(b?))).flatten();
        let longest = values.iter().map(|v| v.longest).reduce(|a, b| Some(a?.max(b?))).flatten();
        let ctype = if repr == Repr::Bool { "bool" } else { repr.device_type() };
        let cast = |value: &Value| match repr {
            Repr::View | Repr::List => value.code.clone(),
            _ => format!("({ctype}){}", value.code),
        };
        let code = self.out.fresh();
        let valid = self.choose_validity(begin, choices);
        self.out.insert(begin, |out| out.unset(ctype, &code));
        for choice in choices {
            let value = cast(&choice.value);
            self.out.insert(choice.place, |out| choice.assign(&code, &value, out));
        }
        let mut result = Value::new(dtype.clone(), repr, code, valid).with_range(range);
        result.magnitude = magnitude;
        result.longest = longest;
        Ok(result)
    }

    /// Whether the value that was taken is valid; `None` where all are.
    fn choose_validity(&mut self, begin: InsertionPoint, choices: &[Choice]) -> Option<String> {
        if choices.iter().all(|choice| choice.value.valid.is_none()) {
            return None;
        }
        let name = self.out.fresh();
        self.out.insert(begin, |out| out.unset("bool", &name));
        for choice in choices {
            let valid = choice.value.validity();
            self.out.insert(choice.place, |out| choice.assign(&name, valid, out));
        }
        Some(name)
    }

    /// The struct that was taken, chosen field by field.
    fn choose_fields(
        &mut self,
        begin: InsertionPoint,
        choices: &[Choice],
        dtype: &DataType,
        fields: &[FieldRef],
    ) -> Result<Value> {
        if let Some(other) = choices.iter().find(|choice| choice.value.fields.len() != fields.len())
        {
            return Err(not_yet(format!("a choice between {dtype} and {}", other.value.dtype)));
        }
        let mut chosen = vec![];
        for (at, field) in fields.iter().enumerate() {
            let mut of = vec![];
            for Choice { taken, value, place } in choices {
                let field =
                    self.chosen_if(taken.as_deref(), value.fields[at].clone(), field.data_type())?;
                // What a field is converted by stands behind all of them.
                let converted = field.value.code != value.fields[at].code;
                of.push(if converted { field } else { Choice { place: *place, ..field } });
            }
            chosen.push(self.choose(begin, &of, field.data_type())?);
        }
        let valid = self.choose_validity(begin, choices);
        Ok(Value::of_fields(dtype.clone(), chosen, valid))
    }

    /// The first argument that is not null.
    pub(super) fn coalesce(&mut self, arguments: &[Expr], dtype: &DataType) -> Result<Value> {
        let begin = self.out.place();
        let mut choices = Vec::with_capacity(arguments.len() + 1);
        let mut open: Option<String> = None;
        for argument in arguments {
            let mut choice = self.choice(open.as_deref(), argument, dtype)?;
            let Some(valid) = choice.value.valid.clone() else {
                // Never null: what follows is never looked at.
                choices.push(choice);
                return self.choose(begin, &choices, dtype);
            };
            let taken = self.still(&open, &valid);
            open = Some(self.still(&open, &format!("!{valid}")));
            choice.taken = Some(taken);
            choice.place = self.out.place();
            choices.push(choice);
        }
        let null = self.null(dtype)?;
        choices.push(self.chosen_if(open.as_deref(), null, dtype)?);
        self.choose(begin, &choices, dtype)
    }

    /// The first argument, or null where it equals the second.
    pub(super) fn nullif(&mut self, left: &Expr, right: &Expr) -> Result<Value> {
        let (mut value, other) = (self.value(left)?, self.value(right)?);
        let equal = self.compare(Operator::Eq, &value, &other)?.truth();
        let valid = format!("{} && !{equal}", value.validity());
        value.valid = Some(self.out.let_("bool", valid));
        value.dictionary = None;
        Ok(value)
    }
}
