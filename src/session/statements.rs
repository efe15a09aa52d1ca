//! Statements of every kind: [`Session::execute`].
//!
//! | file | what |
//! |---|---|
//! | `alter` | `ALTER TABLE` |
//! | `change` | `DELETE`, `UPDATE`, `TRUNCATE` |
//! | `copy` | `COPY` |
//! | `export` | `EXPORT DATABASE`, `IMPORT DATABASE` |
//! | `listings` | `SHOW …`, `DESCRIBE`, `SUMMARIZE` |
//! | `prepared` | `PREPARE`, `EXECUTE`, `DEALLOCATE` |
//! | `settings` | `SET`, `RESET`: options of the session and of DataFusion |
//! | `views` | `CREATE VIEW`, `DROP VIEW` |

mod alter;
mod change;
mod copy;
mod export;
mod listings;
mod prepared;
mod settings;
mod views;

pub(super) use self::alter::factor;
pub(super) use self::export::{plain_name, statements_of_export, whole_name};
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, RecordBatch, StringArray};
use datafusion::common::TableReference;
use datafusion::sql::parser;
use datafusion::sql::sqlparser::ast::{
    self, ObjectType, SelectItem, SetExpr, TableFactor, TableWithJoins,
};

pub(super) use self::prepared::PreparedStatements;
pub use self::settings::Setting;
use super::insert::bare_statement;
use super::{Session, not_a_query};
use crate::error::{Error, ErrorKind, Result};
use crate::frame::LazyFrame;
use crate::sql::ExplainFormat;
use crate::sql::ast::Place;
use crate::sql::ast::table_name;
use crate::sql::{Name, Statement, Text};

/// What came of a statement.
#[derive(Debug, Clone)]
#[non_exhaustive]
#[expect(
    clippy::large_enum_variant,
    reason = "there is one a statement, and callers take it apart at once"
)]
pub enum Executed {
    /// The rows of a query, or of a statement that lists something; they are computed when they are
    /// collected.
    Rows(LazyFrame),
    /// So many rows of a table were put in, changed or taken out.
    Changed(usize),
    /// What was done, in words.
    Done(String),
}

impl Session {
    /// Runs one statement: a query, `EXPLAIN`, `SHOW`, `DESCRIBE`, `SUMMARIZE`, `CREATE TABLE`,
    /// `CREATE VIEW`, `CREATE SCHEMA`, `CREATE EXTERNAL TABLE`, `CREATE FUNCTION`, `INSERT`, `UPDATE`,
    /// `DELETE`, `TRUNCATE`, `ALTER TABLE`, `DROP`, `USE`, `COPY`, `PREPARE`, `EXECUTE`, `DEALLOCATE`,
    /// `SET`, `RESET`, `EXPORT DATABASE`, `IMPORT DATABASE`, `ATTACH`, `DETACH` (`docs/sql.md` says what
    /// each takes).
    ///
    /// # Errors
    /// As [`Session::sql`]; a name that is taken; tables whose rows are not the session's to change;
    /// another number of values than of columns, and values that a column's type does not hold;
    /// rows that break a constraint; clauses that nothing would look at. `CREATE FUNCTION` is an error unless
    /// the session was made with [`SessionBuilder::user_code`](crate::SessionBuilder::user_code): a
    /// body is code that runs on this machine.
    ///
    /// ```
    /// use warpframe::{DeviceChoice, Executed, Session};
    /// let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// session.execute("CREATE TABLE t AS SELECT * FROM (VALUES (1, 'a'), (2, 'b')) v(n, s)")?;
    /// assert!(matches!(session.execute("UPDATE t SET n = n + 10 WHERE s = 'b'")?, Executed::Changed(1)));
    /// session.execute("CREATE VIEW big AS FROM t WHERE n > 10")?;
    /// assert_eq!(session.sql("SELECT s FROM big")?.collect()?.num_rows(), 1);
    /// assert!(matches!(session.execute("DELETE FROM t WHERE n > 10")?, Executed::Changed(1)));
    /// assert_eq!(session.sql("SELECT s FROM big")?.collect()?.num_rows(), 0);
    /// session.execute("CREATE TABLE days (day DATE, n INT)")?;
    /// session.execute("INSERT INTO days VALUES ('2024-02-29', 1)")?;
    /// assert!(matches!(session.execute("INSERT INTO days (n) SELECT n + 1 FROM days")?, Executed::Changed(1)));
    /// session.execute("CREATE EXTERNAL TABLE jets STORED AS CSV LOCATION 'data/jets.csv'")?;
    /// assert_eq!(session.table_names(), ["big", "days", "jets", "t"]);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn execute(&self, text: &str) -> Result<Executed> {
        self.execute_text(&Text::from(text))
    }

    /// Runs one statement that may be a part of a larger text, as of a script: errors name places in
    /// that one.
    ///
    /// # Errors
    /// As [`Session::execute`].
    ///
    /// ```
    /// use warpframe::{DeviceChoice, Session, sql::Text};
    /// let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let script = Text::from("CREATE TABLE t AS SELECT 1 AS n;\nINSERT INTO t VALUES (2);");
    /// for statement in script.statements() {
    ///     session.execute_text(&statement)?;
    /// }
    /// assert_eq!(session.table("t")?.collect()?.num_rows(), 2);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn execute_text(&self, text: &Text<'_>) -> Result<Executed> {
        // The parts of one that changes a table have one timeout.
        self.core.deep(|| self.executed(text)).map_err(|error| text.locate(error))
    }

    pub(super) fn executed(&self, text: &Text<'_>) -> Result<Executed> {
        if let Some(known) = self.known_frame(text)? {
            return Ok(Executed::Rows(known));
        }
        Ok(Executed::Done(match Statement::of(text)? {
            Statement::Query => return self.sql_text(text).map(Executed::Rows),
            Statement::Other => return self.run_parsed(self.parsed(text)?, text),
            Statement::Explain { analyze: false, format, query } => {
                return self.explained(&query, format).map(Executed::Rows);
            }
            Statement::Explain { .. } => {
                return Err(Error::unsupported(
                    "EXPLAIN ANALYZE",
                    "the command runs it; Session::counters tells what a query did",
                ));
            }
            Statement::Copy(copy) => self.copy(&copy)?,
            Statement::CopyFrom(copied) => self.copy_from(&copied)?,
            Statement::Export(folder) => self.export(&folder)?,
            Statement::Import(folder) => self.import(&folder)?,
            Statement::Attach(attach) => self.attach(&attach)?,
            Statement::Detach { database, if_exists } => self.detach(&database, if_exists)?,
            Statement::CreateFunction => format!("function {}", self.create_function(text)?),
            Statement::DropFunction { function, if_exists } => {
                self.drop_function(&function, if_exists)?
            }
            Statement::Set { option, value } => {
                self.set_setting(&option.text, &value).map_err(|e| e.at(Some(option.place)))?;
                format!("{} is set", option.text)
            }
            Statement::Reset(option) => {
                self.reset_setting(&option.text).map_err(|e| e.at(Some(option.place)))?;
                format!("{} is as it was", option.text)
            }
            other => match self.listed(&other, text)? {
                Some(rows) => return Ok(Executed::Rows(rows)),
                None => return Err(not_a_query(text.as_str())),
            },
        }))
    }

    /// The lines of a query's plan.
    fn explained(&self, query: &Text<'_>, format: ExplainFormat) -> Result<LazyFrame> {
        let plan = self.sql_text(query)?.explain_as(format)?;
        let lines = StringArray::from_iter_values(plan.trim_end().lines());
        let batch = RecordBatch::try_from_iter([("plan", Arc::new(lines) as ArrayRef)])?;
        LazyFrame::of_batches(&self.core, [batch])
    }

    fn drop_function(&self, function: &Name, if_exists: bool) -> Result<String> {
        if if_exists && !self.function_names().contains(&function.text) {
            return Ok("there was no function to drop".into());
        }
        let dropped = self.deregister_function(&function.text);
        dropped.map_err(|error| error.at(Some(function.place)))?;
        Ok(format!("function {} is dropped", function.text))
    }

    fn run_parsed(&self, statement: parser::Statement, text: &Text<'_>) -> Result<Executed> {
        match statement {
            parser::Statement::Statement(inner) => self.run(*inner, text),
            parser::Statement::CreateExternalTable(create) => {
                let table = self.external_table(create, text)?;
                Ok(Executed::Done(format!("table {table}: files")))
            }
            other => Err(not_a_query(&other.to_string())),
        }
    }

    pub(super) fn run(&self, statement: ast::Statement, text: &Text<'_>) -> Result<Executed> {
        use ast::Statement as S;
        match statement {
            S::Query(_) => Ok(Executed::Rows(self.planned_frame(statement, text)?)),
            S::Insert(insert) => Ok(Executed::Changed(self.run_insert(insert, text)?)),
            S::Delete(delete) => Ok(Executed::Changed(self.delete(delete, text)?)),
            S::Update(update) => Ok(Executed::Changed(self.update(update, text)?)),
            S::Truncate(truncate) => Ok(Executed::Changed(self.truncate(&truncate, text)?)),
            S::CreateTable(create) => self.run_create(create, text).map(Executed::Done),
            S::CreateView(view) => self.create_view(view, text).map(Executed::Done),
            S::AlterTable(alter) => self.alter(alter, text).map(Executed::Done),
            S::Drop { object_type: ObjectType::Schema, if_exists, names, cascade, .. } => {
                self.drop_schemas(&names, if_exists, cascade, text).map(Executed::Done)
            }
            S::Drop { object_type, if_exists, names, .. } => {
                self.drop_all(object_type, if_exists, &names, text).map(Executed::Done)
            }
            S::CreateSchema {
                schema_name,
                if_not_exists,
                with,
                options,
                default_collate_spec,
                clone,
            } if with.is_none()
                && options.is_none()
                && default_collate_spec.is_none()
                && clone.is_none() =>
            {
                self.create_schema(&schema_name, if_not_exists, text).map(Executed::Done)
            }
            S::CreateSchema { .. } => Err(Error::unsupported(
                "CREATE SCHEMA with options",
                "no part of the engine would look at it",
            )),
            S::Use(what) => self.use_schema(&what, text).map(Executed::Done),
            S::Prepare { name, data_types, statement } => {
                self.prepare(&name, data_types, *statement, text).map(Executed::Done)
            }
            S::Execute { name, parameters, .. } => {
                let (statement, text) = self.prepared_statement(name, parameters, text)?;
                self.run(statement, &Text::from(&text))
            }
            S::Deallocate { name, .. } => self.deallocate(&name).map(Executed::Done),
            other => Err(not_a_query(&other.to_string())),
        }
    }

    /// The frame of a query that was parsed.
    fn planned_frame(&self, statement: ast::Statement, text: &Text<'_>) -> Result<LazyFrame> {
        let statement = parser::Statement::Statement(Box::new(statement));
        let (plan, _) = self.core.block_on(self.plan_query(statement, text))?;
        LazyFrame::of_plan(&self.core, plan)
    }

    fn drop_all(
        &self,
        kind: ObjectType,
        if_exists: bool,
        names: &[ast::ObjectName],
        text: &Text<'_>,
    ) -> Result<String> {
        let what = match kind {
            ObjectType::Table => "table",
            ObjectType::View => "view",
            other => {
                return Err(Error::unsupported(
                    format!("DROP {other}"),
                    "DROP TABLE, DROP VIEW and DROP SCHEMA are known",
                ));
            }
        };
        let alone = self.alone()?;
        // All names are looked at before the first is dropped: the statement does all or nothing.
        let mut found: Vec<TableReference> = vec![];
        for name in names {
            let (name, at) = table_name(name, "DROP")?;
            let at = at.or(text.place_of(name.table()));
            let view = match self.view_text(&name) {
                Err(_) if if_exists => continue,
                found => found.map_err(|error| error.at(at))?,
            };
            if view.is_some() != (what == "view") {
                let is = if view.is_some() { "view" } else { "table" };
                let message = format!(
                    "{:?} is a {is}: DROP {} drops it",
                    name.to_string(),
                    is.to_uppercase()
                );
                return Err(Error::from(ErrorKind::Plan { message, location: None }).at(at));
            }
            // One that is named twice is dropped once.
            if !found.contains(&name) {
                found.push(name);
            }
        }
        found.iter().try_for_each(|name| self.forget(&alone, name))?;
        let gone: Vec<String> = found.iter().map(ToString::to_string).collect();
        match gone[..] {
            [] => Ok(format!("there was no {what} to drop")),
            _ => Ok(format!("{what} {} is dropped", gone.join(", "))),
        }
    }
}

/// The query `SELECT items FROM table WHERE selection`.
pub(super) fn select(
    items: Vec<SelectItem>,
    from: TableWithJoins,
    selection: Option<ast::Expr>,
) -> Result<ast::Statement> {
    let mut statement = bare_statement("SELECT 1")?;
    if let ast::Statement::Query(query) = &mut statement
        && let SetExpr::Select(select) = query.body.as_mut()
    {
        (select.projection, select.from, select.selection) = (items, vec![from], selection);
    }
    Ok(statement)
}

/// The one table of a statement, and where its name stands.
fn only_table(from: &TableWithJoins, by: &str) -> Result<(TableReference, Place)> {
    match &from.relation {
        TableFactor::Table { name, .. } if from.joins.is_empty() => table_name(name, by),
        _ => Err(Error::unsupported(
            format!("{by} of several tables"),
            "its condition may have subqueries",
        )),
    }
}
