//! Three-valued logic and choices: AND, OR, NOT, IS …, CASE, coalesce, nullif.

use datafusion::arrow::datatypes::FieldRef;
use datafusion::logical_expr::Case;

use super::*;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Junction {
    And,
    Or,
}

impl Compiler<'_> {
    fn boolean(&mut self, expr: &Expr) -> Result<Value> {
        let value = self.value(expr)?;
        if value.repr == Repr::Bool {
            return Ok(value);
        }
        Err(not_yet(format!("{} as a condition", value.dtype)))
    }

    pub(super) fn and_or(&mut self, left: &Expr, right: &Expr, junction: Junction) -> Result<Value> {
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
            (Some(v), Some(w)) => {
                Some(format!("({v} && {w}) || {} || {}", decided(&left.valid, l), decided(&right.valid, r)))
            }
        };
        let valid = valid.map(|v| self.out.let_("bool", v));
        // Where the result is valid and one side is null, the other decides: garbage beneath the null must not. For
        // AND, decided = false: `false && garbage`; for OR, `true || garbage`.
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

    pub(super) fn case(&mut self, case: &Case, dtype: &DataType) -> Result<Value> {
        // `open`: no WHEN before held.
        let mut open: Option<String> = None;
        let mut choices: Vec<(Option<String>, Value)> = Vec::new();
        for (when, then) in &case.when_then_expr {
            if let Some(open) = &open {
                self.out.guard(open.clone());
            }
            let condition = match &case.expr {
                Some(base) if is_float(&base.get_type(self.schema)?) => self.equal_floats(base, when),
                Some(base) => self.boolean(&Self::equals(base, when)),
                None => self.boolean(when),
            };
            if open.is_some() {
                self.out.unguard();
            }
            let holds = condition?.truth();
            let taken = match &open {
                Some(open) => format!("{open} && {holds}"),
                None => holds.clone(),
            };
            let taken = self.out.let_("bool", taken);
            let still = match &open {
                Some(open) => format!("{open} && !{taken}"),
                None => format!("!{taken}"),
            };
            open = Some(self.out.let_("bool", still));
            let value = self.guarded_value(&taken, then)?;
            choices.push((Some(taken), value));
        }
        let otherwise = match (&case.else_expr, &open) {
            (Some(otherwise), Some(open)) => self.guarded_value(&open.clone(), otherwise)?,
            (Some(otherwise), None) => self.value(otherwise)?,
            (None, _) => self.null(dtype)?,
        };
        choices.push((None, otherwise));
        self.choose(choices, dtype)
    }

    fn equal_floats(&mut self, base: &Expr, when: &Expr) -> Result<Value> {
        let (base, when) = (self.value(base)?, self.value(when)?);
        self.compare_with(Operator::Eq, &base, &when, compare::Zeros::Apart)
    }

    fn guarded_value(&mut self, guard: &str, expr: &Expr) -> Result<Value> {
        self.out.guard(guard);
        let value = self.value(expr);
        self.out.unguard();
        value
    }

    /// The first of the values whose condition holds; the last has none.
    pub(super) fn choose(&mut self, choices: Vec<(Option<String>, Value)>, dtype: &DataType) -> Result<Value> {
        let mut choices: Vec<(Option<String>, Value)> = choices
            .into_iter()
            .map(|(condition, value)| {
                // An untyped null is a null of the result's type.
                let value = if value.dtype.is_null() { self.null(dtype)? } else { value };
                // The optimizer may fold what a decimal's scale depends on after the types were made one.
                let value = match (&value.dtype, dtype) {
                    (DataType::Decimal128(_, own), DataType::Decimal128(_, scale)) if own != scale => {
                        self.cast(value, dtype, cast::OnError::Null)?
                    }
                    _ => value,
                };
                Ok((condition, value))
            })
            .collect::<Result<_>>()?;
        let target = repr_of(dtype)?;
        if let DataType::Struct(fields) = dtype {
            return self.choose_fields(choices, dtype, fields);
        }
        let values: Vec<&Value> = choices.iter().map(|(_, value)| value).collect();
        let same_class = |repr: Repr| repr == target || (repr.is_integer() && target.is_integer());
        if let Some(other) = values.iter().find(|v| !same_class(v.repr)) {
            return Err(not_yet(format!("a choice between {dtype} and {}", other.dtype)));
        }
        let repr = if target.is_integer() { compare::common(&values) } else { target };
        let range = values
            .iter()
            .map(|v| v.bounds())
            .reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
            .filter(|_| target.is_integer());
        let magnitude = values.iter().map(|v| v.magnitude).reduce(|a, b| Some(a?.max(b?))).flatten();
        let longest = values.iter().map(|v| v.longest).reduce(|a, b| Some(a?.max(b?))).flatten();
        let nullable = values.iter().any(|v| v.valid.is_some());
        let Some((_, last)) = choices.pop() else { return Err(not_yet("an empty choice")) };
        let cast = |value: &Value| match repr {
            Repr::View | Repr::List => value.code.clone(),
            Repr::Bool => format!("(bool){}", value.code),
            other => format!("({}){}", other.device_type(), value.code),
        };
        let (mut code, mut valid) = (cast(&last), last.validity().to_string());
        for (condition, value) in choices.iter().rev() {
            let condition = condition.as_deref().unwrap_or("true");
            code = format!("{condition} ? {} : ({code})", cast(value));
            valid = format!("{condition} ? {} : ({valid})", value.validity());
        }
        let valid = nullable.then(|| self.out.let_("bool", valid));
        let mut result = self.result(dtype.clone(), repr, code, valid).with_range(range);
        result.magnitude = magnitude;
        result.longest = longest;
        Ok(result)
    }

    /// The same of structs: of each field.
    fn choose_fields(
        &mut self,
        choices: Vec<(Option<String>, Value)>,
        dtype: &DataType,
        fields: &[FieldRef],
    ) -> Result<Value> {
        if let Some((_, other)) = choices.iter().find(|(_, value)| value.fields.len() != fields.len()) {
            return Err(not_yet(format!("a choice between {dtype} and {}", other.dtype)));
        }
        let mut chosen = vec![];
        for (at, field) in fields.iter().enumerate() {
            let of = choices.iter().map(|(condition, value)| (condition.clone(), value.fields[at].clone())).collect();
            chosen.push(self.choose(of, field.data_type())?);
        }
        let nullable = choices.iter().any(|(_, value)| value.valid.is_some());
        let valid = nullable.then(|| {
            let mut choices = choices.iter().rev();
            let last = choices.next().map_or("true", |(_, value)| value.validity()).to_string();
            let valid = choices.fold(last, |others, (condition, value)| {
                format!("{} ? {} : ({others})", condition.as_deref().unwrap_or("true"), value.validity())
            });
            self.out.let_("bool", valid)
        });
        Ok(Value::of_fields(dtype.clone(), chosen, valid))
    }

    /// The first argument that is not null.
    pub(super) fn coalesce(&mut self, arguments: &[Expr], dtype: &DataType) -> Result<Value> {
        let mut choices: Vec<(Option<String>, Value)> = Vec::new();
        let mut open: Option<String> = None;
        for argument in arguments {
            let value = match &open {
                Some(open) => self.guarded_value(&open.clone(), argument)?,
                None => self.value(argument)?,
            };
            let Some(valid) = value.valid.clone() else {
                // Never null: what follows is never looked at.
                choices.push((None, value));
                return self.choose(choices, dtype);
            };
            let still = match &open {
                Some(open) => format!("{open} && !{valid}"),
                None => format!("!{valid}"),
            };
            open = Some(self.out.let_("bool", still));
            choices.push((Some(valid), value));
        }
        let null = self.null(dtype)?;
        choices.push((None, null));
        self.choose(choices, dtype)
    }

    /// The first argument, or null where it equals the second.
    pub(super) fn nullif(&mut self, left: &Expr, right: &Expr) -> Result<Value> {
        let (mut value, other) = (self.value(left)?, self.value(right)?);
        let equal = self.compare_with(Operator::Eq, &value, &other, compare::Zeros::Apart)?.truth();
        let valid = format!("{} && !{equal}", value.validity());
        value.valid = Some(self.out.let_("bool", valid));
        value.dictionary = None;
        Ok(value)
    }
}
