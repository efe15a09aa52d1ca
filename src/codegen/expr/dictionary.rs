//! Conditions on, measures of and strings made of one dictionary-encoded string column, evaluated
//! on the host once for each entry.
//!
//! The dictionary is sorted, so that =, <, BETWEEN, IN and LIKE 'prefix%' select a run of codes:
//! the kernel compares the code with its ends. Of up to 64 entries the answers are one word, of
//! which the code picks a bit. Else they are a table. Integers of entries (lengths, positions) are
//! a table, too, and so are strings made of them. All of it are parameters: other constants run
//! through the same kernel.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch, new_null_array};
use datafusion::arrow::compute::{cast, concat};
use datafusion::arrow::datatypes::{Field, Int64Type, Schema};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::execution_props::ExecutionProps;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::physical_expr::create_physical_expr;

use super::*;
use crate::codegen::value::DictionaryInput;
use crate::host::host_expr;
use crate::user_code;

impl Compiler<'_> {
    /// The value of a condition or an integer that looks at nothing but one dictionary-encoded
    /// column, or `None`.
    pub(super) fn by_dictionary(&mut self, expr: &Expr) -> Result<Option<Value>> {
        let Some(column) = self.sole_column(expr)? else { return Ok(None) };
        let value = self.inputs.column(&column, self.out)?;
        let Some(input) = &value.dictionary else { return Ok(None) };
        let dtype = self.schema.data_type(&column)?.clone();
        let Some(answers) = answers(expr, &column, &dtype, input) else { return Ok(None) };
        match answers.data_type() {
            DataType::Boolean => Ok(Some(self.condition(&answers, &value, input))),
            dtype if is_string(dtype) => {
                let dtype = self.type_of(expr)?;
                Ok(self.rewritten(&answers, &value, input, dtype))
            }
            _ => Ok(self.measure(&answers, &value, input)),
        }
    }

    /// A condition, from its answers for each entry and null.
    fn condition(&mut self, answers: &ArrayRef, value: &Value, input: &DictionaryInput) -> Value {
        let answers = answers.as_boolean();
        // The last answer is that of null.
        let entries = answers.len() - 1;
        let null = answers.is_valid(entries).then(|| answers.value(entries));
        let truths: Vec<bool> =
            (0..entries).map(|i| answers.is_valid(i) && answers.value(i)).collect();
        let unknowns: Vec<bool> = (0..entries).map(|i| answers.is_null(i)).collect();
        let valid_code = value.valid.clone();
        let mut test = self.selects(input, &truths, &valid_code);
        let mut known = unknowns
            .contains(&true)
            .then(|| format!("!{}", self.selects(input, &unknowns, &valid_code)));
        if let Some(valid) = &valid_code {
            test = match null {
                Some(answer) => format!("({valid} ? {test} : {answer})"),
                None => test,
            };
            known = match (known, null.is_some()) {
                (None, true) => None,
                (None, false) => Some(valid.clone()),
                (Some(known), null) => Some(format!("({valid} ? {known} : {null})")),
            };
        }
        let known = known.map(|known| self.out.let_("bool", known));
        self.result(DataType::Boolean, Repr::Bool, test, known)
    }

    /// An integer of each entry, from a table. `None` where some entry has none, or null has one.
    fn measure(
        &mut self,
        answers: &ArrayRef,
        value: &Value,
        input: &DictionaryInput,
    ) -> Option<Value> {
        let dtype = value_type(answers.data_type()).clone();
        let repr = Repr::of(&dtype)?;
        let wide = cast(answers, &DataType::Int64).ok()?;
        let wide = wide.as_primitive::<Int64Type>();
        let entries = wide.len() - 1;
        if wide.is_valid(entries) || wide.null_count() != 1 {
            return None;
        }
        let numbers = &wide.values()[..entries];
        let range = (i128::from(*numbers.iter().min()?), i128::from(*numbers.iter().max()?));
        let table: Vec<u8> = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
        let table = self.inputs.constant(&table);
        // The code beneath a null may be anything.
        let code = match &value.valid {
            Some(valid) => format!("{valid} ? {} : 0u", input.code),
            None => input.code.clone(),
        };
        let rvalue = format!("({})((const i64*)({table}))[{code}]", repr.device_type());
        Some(self.result(dtype, repr, rvalue, value.valid.clone()).with_range(Some(range)))
    }

    /// A string made of each entry, from a table. `None` where some entry has none, or null has
    /// one.
    fn rewritten(
        &mut self,
        answers: &ArrayRef,
        value: &Value,
        input: &DictionaryInput,
        dtype: DataType,
    ) -> Option<Value> {
        let texts = cast(answers, &DataType::Utf8View).ok()?;
        let texts = texts.as_string_view();
        let entries = texts.len() - 1;
        if entries > MOST_REWRITTEN || texts.is_valid(entries) || texts.null_count() != 1 {
            return None;
        }
        let texts: Vec<&str> = texts.iter().take(entries).flatten().collect();
        let longest = texts.iter().map(|text| text.len()).max()?;
        let table = self.inputs.strings(&texts);
        // The code beneath a null may be anything.
        let code = match &value.valid {
            Some(valid) => format!("{valid} ? {} : 0u", input.code),
            None => input.code.clone(),
        };
        let mut result =
            self.result(dtype, Repr::View, format!("({table})[{code}]"), value.valid.clone());
        result.longest = u32::try_from(longest).ok();
        Some(result)
    }

    /// The only column of a condition on strings (or of an integer made of one), where evaluating
    /// it on the dictionary makes sense.
    fn sole_column(&self, expr: &Expr) -> Result<Option<Column>> {
        match expr {
            Expr::Column(_)
            | Expr::Literal(_, _)
            | Expr::Alias(_)
            | Expr::IsNull(_)
            | Expr::IsNotNull(_) => {
                return Ok(None);
            }
            _ => {}
        }
        let columns = expr.column_refs();
        let mut columns = columns.into_iter();
        let (Some(column), None) = (columns.next(), columns.next()) else { return Ok(None) };
        let dtype = self.type_of(expr)?;
        let wanted = dtype == DataType::Boolean
            || value_type(&dtype).is_integer()
            || is_string(&dtype) && makes_text(expr);
        if !is_string(self.schema.data_type(column)?) || !wanted {
            return Ok(None);
        }
        // Subqueries, volatile functions and elements of lists have no answer per entry.
        let mut plain = true;
        expr.apply(|node| {
            plain &= !matches!(
                node,
                Expr::ScalarSubquery(_)
                    | Expr::Exists(_)
                    | Expr::InSubquery(_)
                    | Expr::SetComparison(_)
                    | Expr::AggregateFunction(_)
                    | Expr::WindowFunction(_)
                    | Expr::Placeholder(_)
                    | Expr::OuterReferenceColumn(_, _)
                    | Expr::HigherOrderFunction(_)
                    | Expr::LambdaVariable(_)
            ) && !node.is_volatile_node()
                && !is_boundless(node)
                // The host would have to compile it first.
                && !user_code::is_called_by(node);
            Ok(if plain { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
        })?;
        Ok(plain.then(|| column.clone()))
    }

    /// C++ `bool`: the code is one of those selected.
    fn selects(
        &mut self,
        input: &DictionaryInput,
        selected: &[bool],
        valid: &Option<String>,
    ) -> String {
        let code = &input.code;
        if selected.len() <= 64 {
            let word =
                selected.iter().enumerate().fold(0u64, |word, (i, s)| word | u64::from(*s) << i);
            let word = self.inputs.parameter(word);
            // Masked: the code beneath a null may be anything.
            return format!("(bool)(({word} >> ({code} & 63u)) & 1)");
        }
        if let Some((low, len)) = run(selected) {
            let (low, len) = (self.inputs.parameter(low as u64), self.inputs.parameter(len as u64));
            return format!("({code} - (u32){low} < (u32){len})");
        }
        let rest: Vec<bool> = selected.iter().map(|s| !s).collect();
        if let Some((low, len)) = run(&rest) {
            let (low, len) = (self.inputs.parameter(low as u64), self.inputs.parameter(len as u64));
            return format!("!({code} - (u32){low} < (u32){len})");
        }
        let table: Vec<u8> = selected.iter().map(|s| u8::from(*s)).collect();
        let table = self.inputs.constant(&table);
        match valid {
            Some(valid) => format!("({valid} && ({table})[{code}] != 0)"),
            None => format!("(({table})[{code}] != 0)"),
        }
    }
}

/// Most entries of a dictionary that are rewritten for a query.
const MOST_REWRITTEN: usize = 1 << 16;

/// Whether the length of the result is a number, which the host would make room for whatever it is.
fn is_boundless(expr: &Expr) -> bool {
    matches!(expr, Expr::ScalarFunction(call) if ["repeat", "lpad", "rpad"].contains(&call.name()))
}

/// Functions that make new strings, whose length does not depend on a number.
const MAKERS: [&str; 9] = [
    "concat",
    "concat_ws",
    "upper",
    "lower",
    "initcap",
    "replace",
    "regexp_replace",
    "reverse",
    "translate",
];

/// Whether the expression is a function that makes new strings: others are as cheap for a row as a
/// table is.
fn makes_text(expr: &Expr) -> bool {
    match expr {
        Expr::ScalarFunction(call) => MAKERS.contains(&call.name()),
        Expr::BinaryExpr(binary) => binary.op == Operator::StringConcat,
        _ => false,
    }
}

/// Start and length of the one run of selected entries, if there is just one (or none).
fn run(selected: &[bool]) -> Option<(usize, usize)> {
    let Some(low) = selected.iter().position(|s| *s) else { return Some((0, 0)) };
    let len = selected[low..].iter().take_while(|s| **s).count();
    selected[low + len..].iter().all(|s| !s).then_some((low, len))
}

/// What the expression says of each entry, and of null. `None` where the host cannot tell, or fails
/// on an entry that the column perhaps does not hold.
fn answers(
    expr: &Expr,
    column: &Column,
    dtype: &DataType,
    input: &DictionaryInput,
) -> Option<ArrayRef> {
    let entries = cast(&input.dictionary.values, dtype).ok()?;
    let null = new_null_array(dtype, 1);
    let entries = concat(&[&entries, &null]).ok()?;
    let schema = Arc::new(Schema::new(vec![Field::new("entry", dtype.clone(), true)]));
    let batch = RecordBatch::try_new(schema.clone(), vec![entries]).ok()?;
    let expr = expr
        .clone()
        .transform(|node| {
            Ok(match &node {
                Expr::Column(c) if c == column => {
                    Transformed::yes(Expr::Column(Column::new_unqualified("entry")))
                }
                _ => Transformed::no(node),
            })
        })
        .ok()?
        .data;
    let schema = DFSchema::try_from(schema).ok()?;
    let expr = host_expr(expr, &schema).ok()?;
    let props = ExecutionProps::new();
    let physical =
        create_physical_expr(&expr, &schema, &props, &PhysicalPlanningContext::default()).ok()?;
    physical.evaluate(&batch).ok()?.into_array(batch.num_rows()).ok()
}
