//! Expressions to CUDA C++ statements inside a per-row body.
//!
//! The statements are straight-line: what DataFusion would evaluate for some rows only (branches of
//! CASE, the right side of AND) is computed for all, and *guards* keep its failures from being
//! reported for the other rows. Integer and decimal arithmetic is interval arithmetic first: where
//! operands and result provably fit 32 or 64 bits they are computed in that width, whatever the
//! logical type. Everything a row's null hides is garbage that must only be safe to compute with.

mod arithmetic;
mod automaton;
mod calendar;
mod captures;
mod cast;
mod chain;
mod compare;
mod dictionary;
mod fit;
mod format;
mod functions;
mod interval_parts;
mod lambda;
mod list;
mod list_edit;
mod list_make;
mod list_order;
mod list_pair;
mod list_set;
mod literal;
mod logic;
mod math;
mod moment;
mod moment_text;
mod nested;
mod number;
mod parse;
mod random;
mod string;
mod tagged;
mod text;
mod time;
mod user;
mod words;
mod zone;

#[cfg(test)]
mod tests;

use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{Column, DFSchema, ExprSchema, ScalarValue};
use datafusion::logical_expr::{Expr, ExprSchemable, Operator};

pub(crate) use automaton::of_like;
pub(crate) use functions::intervals::of_units;
pub(crate) use functions::{
    InSql, constant, function_fails, host_functions, in_sql, is_stock, is_total, to_zero,
};

use self::chain::Chains;
use super::emit::Emitter;
use super::failure::Failure;
use super::sites::Operand;
use super::value::{Inputs, Value, both, common_repr, not_yet, repr_of, type_bounds, within};
use crate::column::{Repr, coded_numbers, is_nested, value_type};
use crate::error::{Error, ErrorKind, Result};

/// Emits the statements that compute `expr` for a row and returns what they compute.
///
/// `expr` is coerced (as after DataFusion's analyzer). In scope in the kernel must be `u32*
/// status`, `u8* report`, what [`KernelHeaders::includes`][headers] names, and `text_arena arena`
/// and `u64 secret`, if [`Inputs::arena`] is called.
///
/// [headers]: super::device_function::KernelHeaders::includes
///
/// # Errors
/// `Unsupported`, exactly where [`unsupported`] gives a reason; those of `inputs`.
pub(crate) fn compile(
    expr: &Expr,
    schema: &DFSchema,
    inputs: &mut dyn Inputs,
    out: &mut Emitter,
) -> Result<Value> {
    Compiler {
        schema,
        inputs,
        out,
        chains: Chains::default(),
        operands: vec![],
        context: ErrorContext::default(),
        variables: vec![],
        drawn: None,
    }
    .value(expr)
}

/// Why the device does not compute `expr`; `None` where [`compile`] will succeed.
pub(crate) fn unsupported(expr: &Expr, schema: &DFSchema) -> Option<String> {
    // Compiling is cheap and is the one account of what can be compiled.
    let mut out = Emitter::default();
    match compile(expr, schema, &mut TypedInputs { schema }, &mut out) {
        Ok(_) => None,
        Err(error) => Some(match error.kind() {
            ErrorKind::Unsupported { what, why } => format!("{what} {why}"),
            _ => error.to_string(),
        }),
    }
}

/// Inputs of which only the types are known.
struct TypedInputs<'a> {
    schema: &'a DFSchema,
}

impl Inputs for TypedInputs<'_> {
    fn column(&mut self, column: &Column, _out: &mut Emitter) -> Result<Value> {
        let field = self.schema.field_from_column(column)?;
        unknown(field.data_type(), field.is_nullable())
    }
    fn parameter(&mut self, _bits: u64) -> String {
        "k".into()
    }
    fn string(&mut self, _text: &str) -> String {
        "s".into()
    }
    fn octets(&mut self, _bytes: &[u8]) -> String {
        "s".into()
    }
    fn constant(&mut self, _bytes: &[u8]) -> String {
        "c".into()
    }
    fn strings(&mut self, _texts: &[&str]) -> String {
        "t".into()
    }
    fn list(&mut self, _list: &ArrayRef) -> String {
        "l".into()
    }
    fn arena(&mut self) {}
}

/// A value of which only the type is known.
fn unknown(dtype: &DataType, nullable: bool) -> Result<Value> {
    let mut value =
        Value::new(dtype.clone(), repr_of(dtype)?, "x", nullable.then(|| "x_valid".to_string()));
    if let DataType::Struct(fields) = dtype {
        let field = |field: &FieldRef| unknown(field.data_type(), field.is_nullable());
        value.fields = fields.iter().map(field).collect::<Result<_>>()?;
    }
    Ok(value)
}

/// The type of values, where a dictionary wraps them.
fn plain_type(dtype: &DataType) -> &DataType {
    match dtype {
        DataType::Dictionary(_, values) => values,
        other => other,
    }
}

fn is_string(dtype: &DataType) -> bool {
    matches!(plain_type(dtype), DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

fn is_float(dtype: &DataType) -> bool {
    matches!(dtype, DataType::Float32 | DataType::Float64)
}

/// The literal an expression is, behind aliases.
fn as_literal(expr: &Expr) -> Option<&ScalarValue> {
    match expr {
        Expr::Literal(value, _) => Some(value),
        Expr::Alias(alias) => as_literal(&alias.expr),
        _ => None,
    }
}

struct Compiler<'a> {
    schema: &'a DFSchema,
    inputs: &'a mut dyn Inputs,
    out: &'a mut Emitter,
    chains: Chains,
    /// Operands of the expressions under way, those of the innermost last.
    operands: Vec<Operand>,
    context: ErrorContext,
    /// What the parameters of lambdas around are, those of the innermost last.
    variables: Vec<(String, Value)>,
    /// The kernel's count of random numbers that the outermost lambda has drawn for the row.
    drawn: Option<String>,
}

/// The expression that is being computed, for what it may have to say of a row that fails.
#[derive(Debug, Default)]
struct ErrorContext {
    /// Where its operands begin.
    first: usize,
    /// Whether it can fail at all, so that they are kept.
    keeps: bool,
    /// Where what may fail is a cast of the only operand, its type.
    target: Option<DataType>,
}

/// Whether an expression may fail where its operands do not, as far as its kind tells.
fn is_fallible(expr: &Expr) -> bool {
    match expr {
        Expr::BinaryExpr(binary) => !matches!(
            binary.op,
            Operator::And
                | Operator::Or
                | Operator::Eq
                | Operator::NotEq
                | Operator::Lt
                | Operator::LtEq
                | Operator::Gt
                | Operator::GtEq
                | Operator::IsDistinctFrom
                | Operator::IsNotDistinctFrom
        ),
        Expr::Cast(_) | Expr::TryCast(_) | Expr::Negative(_) | Expr::ScalarFunction(_) => true,
        Expr::Like(_) | Expr::SimilarTo(_) => true,
        _ => false,
    }
}

impl Compiler<'_> {
    fn value(&mut self, expr: &Expr) -> Result<Value> {
        let value = self.any_value(expr)?;
        if self.context.keeps && as_literal(expr).is_none() {
            self.operands.extend(value.operand(Some(expr)));
        }
        Ok(value)
    }

    fn any_value(&mut self, expr: &Expr) -> Result<Value> {
        if let Some(value) = self.chains.take(expr) {
            return Ok(value);
        }
        if chain::is_deep(expr) {
            return self.chain(expr);
        }
        if let Some(value) = self.by_dictionary(expr)? {
            return Ok(value);
        }
        self.value_of_row(expr)
    }

    /// The value, but not by a table of what it is for each entry of a dictionary.
    fn value_of_row(&mut self, expr: &Expr) -> Result<Value> {
        let context =
            ErrorContext { first: self.operands.len(), keeps: is_fallible(expr), target: None };
        let (outer, first_site) = (std::mem::replace(&mut self.context, context), self.out.sites());
        let value = self.value_of_kind(expr);
        self.operands.truncate(self.context.first);
        self.context = outer;
        self.out.describe_sites(first_site, expr);
        value
    }

    fn value_of_kind(&mut self, expr: &Expr) -> Result<Value> {
        match expr {
            Expr::Alias(alias) => self.value(&alias.expr),
            Expr::Column(column) => self.inputs.column(column, self.out),
            Expr::Literal(value, _) => self.literal(value),
            Expr::BinaryExpr(binary) => self.binary(expr, binary),
            Expr::Not(inner) => self.not(inner),
            Expr::IsNull(inner) => self.is_null(inner, true),
            Expr::IsNotNull(inner) => self.is_null(inner, false),
            Expr::IsTrue(inner) => self.is_truth(inner, true, true),
            Expr::IsNotTrue(inner) => self.is_truth(inner, true, false),
            Expr::IsFalse(inner) => self.is_truth(inner, false, true),
            Expr::IsNotFalse(inner) => self.is_truth(inner, false, false),
            Expr::IsUnknown(inner) => self.is_null(inner, true),
            Expr::IsNotUnknown(inner) => self.is_null(inner, false),
            Expr::Negative(inner) => self.negative(inner),
            Expr::Between(between) => self.between(between),
            Expr::InList(list) => self.in_list(list),
            Expr::Like(like) => self.like(like),
            Expr::Case(case) => self.case(case, value_type(&expr.get_type(self.schema)?)),
            Expr::Cast(cast) => {
                let value = self.value(&cast.expr)?;
                self.cast(value, cast.field.data_type(), fit::OnError::Fail)
            }
            Expr::TryCast(cast) => {
                let value = self.value(&cast.expr)?;
                self.cast(value, cast.field.data_type(), fit::OnError::Null)
            }
            Expr::ScalarFunction(call) => self.function(expr, call),
            Expr::HigherOrderFunction(call) => self.higher_order(expr, call),
            Expr::LambdaVariable(variable) => self.variable(&variable.name),
            Expr::AggregateFunction(_) | Expr::GroupingSet(_) | Expr::WindowFunction(_) => {
                Err(Error::unsupported(expr.to_string(), "is not an expression of one row"))
            }
            Expr::ScalarSubquery(_)
            | Expr::Exists(_)
            | Expr::InSubquery(_)
            | Expr::SetComparison(_) => Err(not_yet("a subquery inside an expression")),
            Expr::SimilarTo(like) => {
                let flags = if like.case_insensitive { "i" } else { "" };
                self.regex_match(&like.expr, &like.pattern, flags, like.negated)
            }
            _ => Err(not_yet(format!("expression {expr}"))),
        }
    }

    fn binary(
        &mut self,
        expr: &Expr,
        binary: &datafusion::logical_expr::BinaryExpr,
    ) -> Result<Value> {
        use Operator::*;
        let (left, right) = (&*binary.left, &*binary.right);
        match binary.op {
            And => self.and_or(left, right, logic::Junction::And),
            Or => self.and_or(left, right, logic::Junction::Or),
            Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom => {
                let (left, right) = (self.value(left)?, self.value(right)?);
                self.compare(binary.op, &left, &right)
            }
            Plus | Minus | Multiply | Divide | Modulo => {
                self.arithmetic(expr, binary.op, left, right)
            }
            BitwiseAnd | BitwiseOr | BitwiseXor | BitwiseShiftLeft | BitwiseShiftRight => {
                let (left, right) = (self.value(left)?, self.value(right)?);
                self.bitwise(binary.op, &left, &right)
            }
            RegexMatch => self.regex_match(left, right, "", false),
            RegexIMatch => self.regex_match(left, right, "i", false),
            RegexNotMatch => self.regex_match(left, right, "", true),
            RegexNotIMatch => self.regex_match(left, right, "i", true),
            StringConcat => self.joined(left, right, &self.type_of(expr)?),
            op => Err(not_yet(format!("operator {op}"))),
        }
    }

    /// Declares a constant and returns a value of it; for integers, bounds included.
    fn result(
        &mut self,
        dtype: DataType,
        repr: Repr,
        rvalue: String,
        valid: Option<String>,
    ) -> Value {
        let ctype = if repr == Repr::Bool { "bool" } else { repr.device_type() };
        let code = self.out.let_(ctype, rvalue);
        Value::new(dtype, repr, code, valid)
    }

    /// Reports a failure of a row in which all operands are valid.
    fn fail_if(&mut self, valid: &Option<String>, condition: &str, failure: Failure) {
        let (operands, target) =
            (&self.operands[self.context.first..], self.context.target.as_ref());
        let target = target.filter(|_| failure == Failure::Cast);
        match valid {
            Some(valid) => {
                self.out.fail_if(format_args!("{valid} && {condition}"), failure, operands, target)
            }
            None => self.out.fail_if(condition, failure, operands, target),
        }
    }
}
