//! Lists that the query makes for the rows to be taken apart: `unnest([a, b])`. Their elements are
//! known as expressions, so that no list is stored, nor does the host wait for the number of rows:
//!
//! ```text
//!   a b       row of each output   0 0 1 1
//!   1 2       place in its list    0 1 0 1
//!   3 4       CASE place WHEN 0 THEN a ELSE b END    1 2 3 4
//! ```

use datafusion::arrow::array::Array;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Column as Name, DFSchema, ScalarValue};
use datafusion::logical_expr::{Case, Expr, ExprSchemable, Unnest, cast, lit};

use super::{OPERATOR, Runner, too_many_rows, types};
use crate::codegen::unnest::row_and_place;
use crate::codegen::{Codes, Flow, FlowSource, FlowStage, materialize};
use crate::column::{Column, Index, Relation};
use crate::error::Result;
use crate::exec::run::anonymous;

/// Elements of a list at most: each is a branch of the code of one row.
const MOST_ELEMENTS: usize = 32;

/// A projection of which some columns are lists of so many elements.
struct MadeLists {
    length: usize,
    columns: Vec<MadeColumn>,
}

enum MadeColumn {
    /// It stays as it is.
    Kept(Expr),
    List(Vec<Expr>),
}

/// What an element of an output is.
enum Element {
    /// A column of what was computed for each row.
    Column(usize),
    Literal(Expr),
}

impl MadeLists {
    /// Of the flow's last stage; `None` unless that makes all lists that are taken apart, of one
    /// length.
    fn of(flow: &Flow, unnest: &Unnest) -> Option<MadeLists> {
        let (FlowStage::Project(exprs), _) = flow.steps.last()? else { return None };
        let lists = &unnest.list_type_columns;
        let alone = |at: usize| lists.iter().filter(|(of, _)| *of == at).count() == 1;
        if !unnest.struct_type_columns.is_empty()
            || !lists.iter().all(|(at, list)| list.depth == 1 && alone(*at))
        {
            return None;
        }
        let mut length = None;
        let mut columns = vec![];
        for (at, expr) in exprs.iter().enumerate() {
            if !lists.iter().any(|(of, _)| *of == at) {
                columns.push(MadeColumn::Kept(expr.clone()));
                continue;
            }
            let elements = elements_of(expr)?;
            if *length.get_or_insert(elements.len()) != elements.len() {
                return None;
            }
            columns.push(MadeColumn::List(elements));
        }
        let length = length.filter(|length| (1..=MOST_ELEMENTS).contains(length))?;
        Some(MadeLists { length, columns })
    }
}

impl Runner {
    /// UNNEST of lists that the flow's last stage makes; `None` of others.
    pub(super) fn unnest_made(&self, flow: &Flow, unnest: &Unnest) -> Result<Option<Flow>> {
        let Some(MadeLists { length, columns }) = MadeLists::of(flow, unnest) else {
            return Ok(None);
        };
        let mut flow = flow.clone();
        flow.steps.pop();
        let schema = flow.schema().clone();

        // What the elements are computed of, once a row. Literals need no column.
        let mut inputs: Vec<Expr> = vec![];
        let mut input = |expr: &Expr| match expr {
            Expr::Literal(..) => Element::Literal(expr.clone()),
            _ => {
                inputs.push(expr.clone());
                Element::Column(inputs.len() - 1)
            }
        };
        let elements: Vec<Vec<Element>> = (columns.iter())
            .map(|column| match column {
                MadeColumn::Kept(expr) => vec![input(expr)],
                MadeColumn::List(elements) => elements.iter().map(&mut input).collect(),
            })
            .collect();
        let fields = inputs.iter().map(|expr| expr.get_type(&*schema));
        let fields = anonymous(&fields.collect::<Result<Vec<_>, _>>()?)?;
        let relation = self.relation(OPERATOR, &flow.project(inputs, fields))?;

        let rows = relation.rows * length as u64;
        if rows >= u64::from(u32::MAX) {
            return Err(too_many_rows(rows));
        }
        let (index, place) = self.rows_and_places(rows, length as u64)?;
        let mut expanded = self.through(relation, rows, index)?;
        expanded.indices.push(None);
        expanded.columns.push((expanded.indices.len() - 1, place));
        let schema = anonymous(&types(&expanded))?;
        let names = schema.columns();
        let (place, names) = names.split_last().expect("the column of places");
        let outputs = elements.into_iter().enumerate().map(|(at, elements)| {
            let dtype = unnest.schema.field(at).data_type();
            let element = |element| match element {
                Element::Column(at) => of_type(Expr::Column(names[at].clone()), &schema, dtype),
                Element::Literal(literal) => of_type(literal, &schema, dtype),
            };
            let elements = elements.into_iter().map(element).collect::<Result<Vec<_>>>()?;
            Ok(by_place(place, elements))
        });
        let outputs = outputs.collect::<Result<Vec<_>>>()?;
        let flow = Flow::new(FlowSource::Relation(expanded), schema);
        Ok(Some(flow.project(outputs, unnest.schema.clone())))
    }

    /// The row of each output row, and its place among the `length` of that row.
    fn rows_and_places(&self, rows: u64, length: u64) -> Result<(Index, Column)> {
        let flow = Flow::new(FlowSource::Relation(Relation::dense(rows, vec![])?), anonymous(&[])?);
        let (_, mut columns) =
            materialize(&self.device, OPERATOR, &flow, Codes::Keep, |generator, out| {
                Ok(row_and_place(length, generator, out))
            })?;
        let place = columns.pop().expect("the second column");
        Ok((Index::of_rows(columns[0].data.clone()), place))
    }
}

/// The elements of a list that an expression makes or is; `None` of other expressions.
fn elements_of(expr: &Expr) -> Option<Vec<Expr>> {
    match expr {
        Expr::Alias(alias) => elements_of(&alias.expr),
        Expr::ScalarFunction(call) if call.name() == "make_array" => Some(call.args.clone()),
        Expr::Literal(ScalarValue::List(list), _) if list.len() == 1 && list.is_valid(0) => {
            let elements = list.value(0);
            let element = |at| Some(lit(ScalarValue::try_from_array(&elements, at).ok()?));
            (0..elements.len()).map(element).collect()
        }
        _ => None,
    }
}

/// The element at the place; a single one has no other.
fn by_place(place: &Name, mut elements: Vec<Expr>) -> Expr {
    let last = elements.pop().expect("lists of at least one element");
    if elements.is_empty() {
        return last;
    }
    let branches = (0u32..).zip(elements);
    Expr::Case(Case {
        expr: Some(Box::new(Expr::Column(place.clone()))),
        when_then_expr: branches
            .map(|(at, element)| (Box::new(lit(at)), Box::new(element)))
            .collect(),
        else_expr: Some(Box::new(last)),
    })
}

/// The expression as a value of a type.
fn of_type(expr: Expr, schema: &DFSchema, to: &DataType) -> Result<Expr> {
    match expr {
        Expr::Literal(value, _) => Ok(Expr::Literal(value.cast_to(to)?, None)),
        expr if expr.get_type(schema)? == *to => Ok(expr),
        expr => Ok(cast(expr, to.clone())),
    }
}
