//! Tables that statements make and fill: `CREATE TABLE t (a INT)`, `INSERT INTO t VALUES (1)`.
//!
//! DataFusion's planner gives a query that is inserted its plan as any other. What becomes of its
//! rows is ours: they take the types of the table's columns as CAST would give them these, and the
//! place behind its rows (`append.rs`).

use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::common::{ScalarValue, TableReference};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, cast, ident};
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    self, CreateTable, ExactNumberInfo, Insert, ObjectName, Query, SelectItem, SetExpr,
    TableObject, Value,
};

use super::append::{NewColumn, place};
use super::constraints::Constraints;
use super::{Session, rules, syntax};
use crate::error::{Error, ErrorKind, Result, listed};
use crate::frame::{DataFrame, LazyFrame};
use crate::plan::different;
use crate::session::types::data_type;
use crate::sql::ast::table_name;
use crate::sql::ast::{Place, bare, folded, idents, known, number_of, text};
use crate::sql::{Text, ast as tree};

impl Session {
    /// Runs a CREATE TABLE with a query or without; what was done.
    pub(super) fn run_create(&self, mut create: CreateTable, text: &Text<'_>) -> Result<String> {
        if !create.columns.is_empty() {
            return Ok(format!("table {}", self.create_empty(&create)?));
        }
        let Some(query) = create.query.take() else {
            return Ok(format!("table {}", self.create_empty(&create)?));
        };
        let (name, at) = table_name(&create.name, CREATE)?;
        let ast::Statement::CreateTable(bare) = bare_statement("CREATE TABLE t (a INT)")? else {
            return Err(Error::internal("a statement that makes no table"));
        };
        create.columns = bare.columns;
        refuse_clauses(&create)?;
        if self.is_there(&create, &name).map_err(|error| error.at(at))? {
            return Ok(format!("table {name}"));
        }
        let statement = Statement::Statement(Box::new(ast::Statement::Query(query)));
        let (planned, _) = self.core.block_on(self.plan_query(statement, text))?;
        let frame = LazyFrame::of_plan(&self.core, numbered(planned)?)?.collect()?;
        // Others may have made a table of this name while the query ran.
        let alone = self.alone()?;
        if self.is_there(&create, &name).map_err(|error| error.at(at))? {
            return Ok(format!("table {name}"));
        }
        self.keep(&alone, &name, &frame).map_err(|error| error.at(at))?;
        let place = if frame.is_on_device() { ", kept on the device" } else { "" };
        Ok(format!("table {name}: {}{place}", counted(frame.num_rows(), "row")))
    }

    /// Whether the table of a CREATE is there already, and may be.
    ///
    /// # Errors
    /// It may not, or is a view.
    fn is_there(&self, create: &CreateTable, name: &TableReference) -> Result<bool> {
        match !create.or_replace && self.has_table(name) {
            true if create.if_not_exists => Ok(true),
            true => {
                self.not_a_view(name)?;
                Err(ErrorKind::Plan { message: taken(name), location: None }.into())
            }
            false if create.or_replace && create.if_not_exists => {
                Err(plan(CREATE, "OR REPLACE and IF NOT EXISTS exclude each other".into()))
            }
            false => self.not_a_view(name).map(|()| false),
        }
    }

    fn create_empty(&self, create: &CreateTable) -> Result<String> {
        let (name, at) = table_name(&create.name, CREATE)?;
        if create.columns.is_empty() {
            let message = "expected AS and a query, or columns with their types in parentheses";
            return Err(plan(CREATE, message.into()).at(at));
        }
        refuse_clauses(create)?;
        let alone = self.alone()?;
        if self.is_there(create, &name).map_err(|error| error.at(at))? {
            return Ok(name.to_string());
        }
        let state = self.core.state();
        let (mut fields, mut constraints) = (Vec::<Field>::new(), Constraints::default());
        for column in &create.columns {
            let (own, at) = (folded(&column.name), known(column.name.span.start));
            if place(&Schema::new(fields.clone()), &own).is_some() {
                return Err(plan(CREATE, format!("two columns are named {own:?}")).at(at));
            }
            let of = data_type(&state, column.data_type.clone())
                .map_err(|message| plan(CREATE, message).at(at))?;
            constraints.add_options(&own, &column.options).map_err(|error| error.at(at))?;
            fields.push(Field::new(own, of, true));
        }
        create.constraints.iter().try_for_each(|constraint| constraints.add(constraint))?;
        let rows = RecordBatch::new_empty(Arc::new(Schema::new(fields)));
        let before = self.contents(&alone);
        let kept = self.keep(&alone, &name, &self.from_arrow([rows])?);
        if let Err(error) = kept.and_then(|()| self.say(&alone, &name, constraints, CREATE)) {
            self.restore(&alone, before)?;
            return Err(error.at(at));
        }
        Ok(name.to_string())
    }

    /// Runs an `INSERT INTO table [(column, …) | BY NAME] query`, which puts the query's rows behind
    /// those of a table that the session keeps; their number. Columns are those of the table in its
    /// order, those that are named, or with `BY NAME` those that have the names of the query's
    /// columns. The others have their DEFAULT, or are NULL. Values get the types of the table's columns as `CAST` gives
    /// them.
    pub(super) fn run_insert(&self, insert: Insert, text: &Text<'_>) -> Result<usize> {
        let InsertParts { table, at, columns, by_name, mut query } = InsertParts::of(insert)?;
        // Of two at once, the second would not see the rows of the first.
        let alone = self.alone()?;
        let schema = self.appendable(&table).map_err(|error| error.at(at))?;
        let (called, constraints) = (table.to_string(), self.constraints_of(&table));
        let mut nulls = vec![];
        let (targets, planned) = if by_name {
            let planned = self.planned_rows(query, text)?;
            let fields = planned.schema().fields().iter();
            let columns: Vec<_> = fields.map(|field| (field.name().clone(), at)).collect();
            (targets(&schema, &called, &columns)?, planned)
        } else {
            let targets = targets(&schema, &called, &columns)?;
            put_defaults(&mut query, &constraints, &schema, &targets);
            nulls = fitted_literals(&mut query, &schema, &targets);
            (targets, self.planned_rows(query, text)?)
        };
        let rows = self.inserted(planned, (&schema, &targets), &nulls)?;
        let rows = match rows.num_rows() {
            0 => return Ok(0),
            _ => rows,
        };
        let lazy = rows.lazy()?;
        let mut all = vec![];
        for (at, field) in schema.fields().iter().enumerate() {
            let Some(from) = targets.iter().position(|target| *target == at) else {
                all.push(self.missing_column(&constraints, field)?);
                continue;
            };
            let expr = cast(ident(placeholder(from)), field.data_type().clone());
            all.push(NewColumn {
                expr: expr.alias(field.name()),
                from: Some(field.name().clone()),
            });
        }
        self.put_behind(&alone, &table, &lazy, &all, &|message: String| plan(INSERT, message))
    }

    fn planned_rows(&self, query: Box<Query>, text: &Text<'_>) -> Result<LogicalPlan> {
        let statement = Statement::Statement(Box::new(ast::Statement::Query(query)));
        let (planned, _) =
            self.core.as_statement(|| self.core.block_on(self.plan_query(statement, text)))?;
        Ok(planned)
    }

    /// The rows of a query, a column for each of the table's that get values. `nulls`: columns of
    /// nothing but NULL.
    fn inserted(
        &self,
        planned: LogicalPlan,
        (schema, targets): (&Schema, &[usize]),
        nulls: &[usize],
    ) -> Result<DataFrame> {
        let found = planned.schema().fields().len();
        if found != targets.len() {
            let names: Vec<&str> =
                targets.iter().map(|at| schema.field(*at).name().as_str()).collect();
            let (has, wants) = (counted(found, "value"), counted(names.len(), "column"));
            return Err(plan(INSERT, format!("rows of {has} for {wants}: {}", names.join(", "))));
        }
        let types: Vec<&DataType> =
            targets.iter().map(|at| schema.field(*at).data_type()).collect();
        LazyFrame::of_plan(&self.core, with_placeholders(planned, &types, nulls)?)?.collect()
    }
}

const CREATE: &str = "CREATE TABLE";
const INSERT: &str = "INSERT";

/// What there is of an INSERT that is looked at.
struct InsertParts {
    table: TableReference,
    /// Where its name stands.
    at: Place,
    columns: Vec<(String, Place)>,
    /// Whether the query's names say which columns get its values.
    by_name: bool,
    query: Box<Query>,
}

impl InsertParts {
    fn of(mut insert: Insert) -> Result<InsertParts> {
        let unsupported =
            |clause: &str| Err(Error::unsupported(format!("INSERT with {clause}"), NOBODY_LOOKS));
        let TableObject::TableName(name) = insert.table.clone() else {
            return unsupported("a function for a table");
        };
        let (table, at) = table_name(&name, INSERT)?;
        let clauses = [
            (insert.on.is_some(), "ON CONFLICT"),
            (
                insert.or.is_some() || insert.ignore || insert.replace_into,
                "OR REPLACE, OR IGNORE and their like",
            ),
            (insert.returning.is_some() || insert.output.is_some(), "RETURNING"),
            (insert.overwrite, "OVERWRITE: CREATE OR REPLACE TABLE … AS takes the table's place"),
            (insert.table_alias.is_some(), "another name for the table"),
        ];
        if let Some((_, clause)) = clauses.iter().find(|(there, _)| *there) {
            return unsupported(clause);
        }
        let Some(query) = insert.source.take().or_else(|| default_row(&insert)) else {
            return unsupported("no rows at all");
        };
        let by_name = matches!(&insert.columns[..], [name]
            if matches!(idents(name)[..], [ident] if syntax::is_mark(ident, syntax::BY_NAME)));
        let column = |name: ObjectName| match idents(&name)[..] {
            [ident] => Ok((folded(ident), known(ident.span.start))),
            _ => Err(plan(INSERT, format!("the column {name} has a name of several parts"))),
        };
        let mut columns: Vec<(String, Place)> =
            std::mem::take(&mut insert.columns).into_iter().map(column).collect::<Result<_>>()?;
        if by_name {
            columns.clear();
            if matches!(*query.body, SetExpr::Values(_)) {
                let message = "BY NAME is behind a query; columns of VALUES have no names";
                return Err(plan(INSERT, message.into()).at(at));
            }
        }
        // Whatever else is there, nothing would look at it.
        let mut bare = Insert { insert_token: insert.insert_token.clone(), ..bare_insert()? };
        bare.table = insert.table.clone();
        (bare.source, bare.into, bare.has_table_keyword) =
            (None, insert.into, insert.has_table_keyword);
        if insert != bare {
            return unsupported("clauses of other systems");
        }
        Ok(InsertParts { table, at, columns, by_name, query })
    }
}

const NOBODY_LOOKS: &str = "no part of the engine would look at it";

/// An INSERT without anything besides.
fn bare_insert() -> Result<Insert> {
    match bare_statement("INSERT INTO t VALUES (1)")? {
        ast::Statement::Insert(insert) => Ok(insert),
        other => Err(Error::internal(format!("{other} is no INSERT"))),
    }
}

pub(super) fn bare_statement(text: &str) -> Result<ast::Statement> {
    use datafusion::sql::sqlparser::{dialect::GenericDialect, parser::Parser};
    let mut parsed = Parser::parse_sql(&GenericDialect {}, text)
        .map_err(|error| Error::internal(error.to_string()))?;
    parsed.pop().ok_or_else(|| Error::internal(format!("{text} is no statement")))
}

/// Refuses what nothing would look at.
fn refuse_clauses(create: &CreateTable) -> Result<()> {
    if create.query.is_some() {
        let what = "CREATE TABLE with columns and a query: leave out one of them";
        return Err(Error::unsupported(what, NOBODY_LOOKS));
    }
    let ast::Statement::CreateTable(mut bare) = bare_statement("CREATE TABLE t (a INT)")? else {
        return Err(Error::internal("a statement that makes no table"));
    };
    (bare.name, bare.columns) = (create.name.clone(), create.columns.clone());
    bare.constraints.clone_from(&create.constraints);
    (bare.or_replace, bare.if_not_exists, bare.temporary) =
        (create.or_replace, create.if_not_exists, create.temporary);
    match bare == *create {
        true => Ok(()),
        false => {
            Err(Error::unsupported("CREATE TABLE with clauses of other systems", NOBODY_LOOKS))
        }
    }
}

/// The table's columns that get values, in the order of the values.
fn targets(schema: &Schema, table: &str, columns: &[(String, Place)]) -> Result<Vec<usize>> {
    if columns.is_empty() {
        return Ok((0..schema.fields().len()).collect());
    }
    let mut targets = vec![];
    for (name, at) in columns {
        let Some(target) = place(schema, name) else {
            let known: Vec<String> =
                schema.fields().iter().map(|field| field.name().clone()).collect();
            let message =
                format!("column {name:?} is none of table {table:?}, which has {}", listed(&known));
            return Err(plan(INSERT, message).at(*at));
        };
        if targets.contains(&target) {
            return Err(plan(INSERT, format!("column {name:?} is named twice")).at(*at));
        }
        targets.push(target);
    }
    Ok(targets)
}

/// Stands in VALUES for DEFAULT of all columns.
const ALL_DEFAULTS: &str = "default values";

/// A row of nothing but DEFAULT, of `DEFAULT VALUES`.
fn default_row(insert: &Insert) -> Option<Box<Query>> {
    let is_bare = insert.columns.is_empty() && insert.assignments.is_empty();
    match bare_statement(&format!("VALUES (\"{ALL_DEFAULTS}\")")).ok().filter(|_| is_bare)? {
        ast::Statement::Query(query) => Some(query),
        _ => None,
    }
}

/// Puts what columns are where nothing else is said in the place of DEFAULT in VALUES.
fn put_defaults(query: &mut Query, constraints: &Constraints, schema: &Schema, targets: &[usize]) {
    let SetExpr::Values(values) = query.body.as_mut() else { return };
    for row in &mut values.rows {
        if matches!(&row.content[..], [ast::Expr::Identifier(name)] if name.value == ALL_DEFAULTS) {
            row.content = vec![ast::Expr::Identifier(ast::Ident::new("default")); targets.len()];
        }
        for (expr, target) in row.content.iter_mut().zip(targets) {
            put_default(expr, constraints, schema.field(*target).name());
        }
    }
}

/// Puts what a column is where nothing else is said in the place of DEFAULT.
pub(super) fn put_default(expr: &mut ast::Expr, constraints: &Constraints, column: &str) {
    let is_default = matches!(expr, ast::Expr::Identifier(name)
        if name.quote_style.is_none() && name.value.eq_ignore_ascii_case("default"));
    if is_default {
        let null = || ast::Expr::value(Value::Null);
        let value = constraints.default_of(column).cloned().unwrap_or_else(null);
        *expr = ast::Expr::Nested(Box::new(value));
    }
}

/// Makes of the literals of VALUES, and of those that a query selects, what their columns take: the
/// planner makes one type of all values of a column, without regard to the table. Where all values
/// are NULL, they are NULL of some type, and their columns are told.
fn fitted_literals(query: &mut Query, schema: &Schema, targets: &[usize]) -> Vec<usize> {
    let dtype = |target: &usize| schema.field(*target).data_type();
    let values = match query.body.as_mut() {
        SetExpr::Values(values) => values,
        SetExpr::Select(select) if select.projection.len() == targets.len() => {
            for (item, target) in select.projection.iter_mut().zip(targets) {
                if let SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } = item
                {
                    fitted_literal(expr, dtype(target));
                }
            }
            return vec![];
        }
        _ => return vec![],
    };
    for row in &mut values.rows {
        for (expr, target) in row.content.iter_mut().zip(targets) {
            fitted_literal(expr, dtype(target));
        }
    }
    let mut nulls = vec![];
    for column in 0..targets.len() {
        let is_null = |expr: &ast::Expr| match bare(expr) {
            ast::Expr::Value(value) => value.value == Value::Null,
            _ => false,
        };
        if values.rows.iter().all(|row| row.content.get(column).is_some_and(is_null))
            && let Some(first) = values.rows.first_mut().and_then(|row| row.content.get_mut(column))
        {
            *first = tree::cast(first.clone(), ast::DataType::Varchar(None));
            nulls.push(column);
        }
    }
    nulls
}

/// Makes of a number what a column takes. One for decimals or integers keeps all of its digits,
/// where it would become a float; one for texts is a text, for of a number and a text the planner
/// would make numbers.
pub(super) fn fitted_literal(expr: &mut ast::Expr, dtype: &DataType) {
    let Some(digits) = number_of(expr) else { return };
    match dtype {
        DataType::Decimal128(precision, scale) => {
            let info = ExactNumberInfo::PrecisionAndScale((*precision).into(), (*scale).into());
            *expr = tree::cast(text(&digits), ast::DataType::Decimal(info));
        }
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => *expr = text(&digits),
        integer if integer.is_integer() => rules::as_decimal(expr),
        _ => {}
    }
}

/// What a column of inserted rows is called, whatever the query calls it: names may come twice.
fn placeholder(at: usize) -> String {
    format!("value_{}", at + 1)
}

/// The columns of a query under these names. Columns of nothing but NULL, `nulls` and those that the
/// planner knows for such, have the types that they get.
fn with_placeholders(
    planned: LogicalPlan,
    types: &[&DataType],
    nulls: &[usize],
) -> Result<LogicalPlan> {
    let schema = planned.schema().clone();
    let named = schema.columns().into_iter().zip(types).enumerate().map(|(at, (column, of))| {
        let is_null = nulls.contains(&at) || schema.field(at).data_type().is_null();
        let value = match is_null {
            true => Expr::Literal(ScalarValue::try_from(*of)?, None),
            false => Expr::Column(column),
        };
        Ok::<_, Error>(value.alias(placeholder(at)))
    });
    let named: Vec<Expr> = named.collect::<Result<_>>()?;
    Ok(LogicalPlanBuilder::from(planned).project(named)?.build()?)
}

/// The plan with different names for columns that have one: `a`, `a_1`.
fn numbered(planned: LogicalPlan) -> Result<LogicalPlan> {
    let own: Vec<String> =
        planned.schema().fields().iter().map(|field| field.name().clone()).collect();
    let names = different(&own);
    if names == own {
        return Ok(planned);
    }
    let columns = planned.schema().columns().into_iter().zip(names);
    let columns: Vec<Expr> =
        columns.map(|(column, name)| Expr::Column(column).alias(name)).collect();
    Ok(LogicalPlanBuilder::from(planned).project(columns)?.build()?)
}

pub(super) fn counted(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

fn taken(name: &TableReference) -> String {
    format!("there is a table named {:?}; CREATE OR REPLACE replaces it", name.to_string())
}

fn plan(by: &str, message: String) -> Error {
    ErrorKind::Plan { message: format!("{by}: {message}"), location: None }.into()
}
