//! Statements that list something: `SHOW …`, `DESCRIBE`, `SUMMARIZE`. They are rows, so that
//! [`Session::sql`] takes them, too.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, BooleanArray, RecordBatch, StringArray};
use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::common::TableReference;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::error::{ErrorKind, Result, nearest};
use crate::frame::LazyFrame;
use crate::io::AboutFiles;
use crate::session::Session;
use crate::sql::{Statement, Text, type_name};

impl Session {
    /// The rows of a statement that lists something; `None` of others.
    pub(in crate::session) fn listed(
        &self,
        statement: &Statement<'_>,
        text: &Text<'_>,
    ) -> Result<Option<LazyFrame>> {
        match statement {
            Statement::Show | Statement::ShowOption(_) => self.shown(text).map(Some),
            Statement::Describe(rows) => self.described(rows).map(Some),
            Statement::Summarize(rows) => self.summarized(rows).map(Some),
            _ => Ok(None),
        }
    }

    fn shown(&self, text: &Text<'_>) -> Result<LazyFrame> {
        let tokens: Vec<&TokenWithSpan> = text.words().collect();
        let words: Vec<String> = tokens.iter().map(|token| token.token.to_string()).collect();
        let upper: Vec<String> = words.iter().map(|word| word.to_uppercase()).collect();
        let upper: Vec<&str> = upper.iter().map(String::as_str).collect();
        let all = |_: &str| true;
        match upper[1..] {
            ["TABLES"] => self.names_of("table", self.table_names(), all),
            ["TABLES", "LIKE", _] => self.names_of("table", self.table_names(), like(tokens[3])),
            ["TABLES", "FROM" | "IN", _] => self.names_of("table", self.of_schema(tokens[3])?, all),
            ["TABLES", "FROM" | "IN", _, "LIKE", _] => {
                self.names_of("table", self.of_schema(tokens[3])?, like(tokens[5]))
            }
            ["ALL", "TABLES"] => self.tables_of_all(),
            ["SCHEMAS"] => self.names_of("schema", self.schema_names(), all),
            ["SCHEMAS", "LIKE", _] => self.names_of("schema", self.schema_names(), like(tokens[3])),
            ["DATABASES"] => self.databases_listed(),
            ["FUNCTIONS"] => self.functions(all),
            ["FUNCTIONS", "LIKE", _] => self.functions(like(tokens[3])),
            ["COLUMNS", "FROM" | "IN", ..] => self.described(&text.behind(3).after("FROM")),
            ["ALL"] => self.settings_like(all),
            ["ALL", "LIKE", _] => self.settings_like(like(tokens[3])),
            [] => {
                let message =
                    "SHOW TABLES, SHOW SCHEMAS, SHOW DATABASES, SHOW COLUMNS FROM table, SHOW FUNCTIONS, SHOW ALL or SHOW option"
                        .into();
                Err(ErrorKind::Plan { message, location: None }.into())
            }
            _ => {
                let name: String = words[1..].concat().to_lowercase();
                if !self.settings().iter().any(|setting| setting.name == name) {
                    let at =
                        tokens.get(1).map(|token| (token.span.start.line, token.span.start.column));
                    let lists = ["tables", "schemas", "databases", "columns", "functions", "all"]
                        .map(String::from);
                    let error = match nearest(&name, &lists) {
                        Some(meant) => {
                            let message = format!(
                                "no option named {name:?}; did you mean SHOW {}?",
                                meant.to_uppercase()
                            );
                            ErrorKind::Plan { message, location: None }.into()
                        }
                        None => self.no_setting(&name),
                    };
                    return Err(error.at(at));
                }
                self.settings_like(move |own| own == name)
            }
        }
    }

    /// The tables of a schema that a statement names.
    fn of_schema(&self, token: &TokenWithSpan) -> Result<Vec<String>> {
        let name = match &token.token {
            Token::Word(word) if word.quote_style.is_none() => word.value.to_lowercase(),
            Token::Word(word) => word.value.clone(),
            other => other.to_string(),
        };
        self.check_schema(&name)
            .map_err(|error| error.at(Some((token.span.start.line, token.span.start.column))))?;
        Ok(self.tables_of(&name))
    }

    fn tables_of_all(&self) -> Result<LazyFrame> {
        let (mut schemas, mut tables, mut kinds) = (vec![], vec![], vec![]);
        for (schema, table) in self.all_tables() {
            let view =
                self.view_text(&TableReference::partial(schema.clone(), table.clone()))?.is_some();
            kinds.push(if view { "view" } else { "table" });
            schemas.push(schema);
            tables.push(table);
        }
        let (schemas, tables) = (StringArray::from(schemas), StringArray::from(tables));
        let kinds = StringArray::from(kinds);
        self.listing(vec![
            ("schema", Arc::new(schemas)),
            ("table", Arc::new(tables)),
            ("kind", Arc::new(kinds)),
        ])
    }

    /// The session's own database, and those that are attached.
    fn databases_listed(&self) -> Result<LazyFrame> {
        let own = self.core.context.copied_config().options().catalog.default_catalog.clone();
        let (mut names, mut read_only) = (vec![own], vec![false]);
        let mut folders = vec![self.database()];
        for (name, folder, is_read) in self.attached_folders() {
            names.push(name);
            folders.push(Some(folder));
            read_only.push(is_read);
        }
        let folders: StringArray = folders
            .iter()
            .map(|path| path.as_ref().map(|path| path.display().to_string()))
            .collect();
        self.listing(vec![
            ("database", Arc::new(StringArray::from(names))),
            ("folder", Arc::new(folders)),
            ("read_only", Arc::new(BooleanArray::from(read_only))),
        ])
    }

    fn names_of(
        &self,
        column: &str,
        names: Vec<String>,
        is_it: impl Fn(&str) -> bool,
    ) -> Result<LazyFrame> {
        let names: StringArray =
            names.iter().filter(|name| is_it(name)).map(|name| Some(name.as_str())).collect();
        self.listing(vec![(column, Arc::new(names))])
    }

    fn listing(&self, columns: Vec<(&str, ArrayRef)>) -> Result<LazyFrame> {
        LazyFrame::of_batches(&self.core, [RecordBatch::try_from_iter(columns)?])
    }

    fn settings_like(&self, is_it: impl Fn(&str) -> bool) -> Result<LazyFrame> {
        let all: Vec<_> =
            self.settings().into_iter().filter(|setting| is_it(&setting.name)).collect();
        let names: StringArray = all.iter().map(|setting| Some(setting.name.as_str())).collect();
        let values: StringArray = all.iter().map(|setting| setting.value.as_deref()).collect();
        let texts: StringArray =
            all.iter().map(|setting| Some(setting.description.as_str())).collect();
        self.listing(vec![
            ("name", Arc::new(names)),
            ("value", Arc::new(values)),
            ("description", Arc::new(texts)),
        ])
    }

    fn functions(&self, is_it: impl Fn(&str) -> bool) -> Result<LazyFrame> {
        let state = self.core.state();
        let mut all: Vec<(String, &str)> = vec![];
        all.extend(state.scalar_functions().keys().map(|name| (name.clone(), "scalar")));
        all.extend(state.higher_order_functions().keys().map(|name| (name.clone(), "scalar")));
        all.extend(state.aggregate_functions().keys().map(|name| (name.clone(), "aggregate")));
        all.extend(state.window_functions().keys().map(|name| (name.clone(), "window")));
        all.extend(state.table_functions().keys().map(|name| (name.clone(), "table")));
        let of_files = ["read_csv", "read_parquet", "read_json", "read_arrow"];
        let of_files = of_files.into_iter().chain(AboutFiles::functions());
        all.extend(of_files.map(|name| (name.to_string(), "table")));
        all.retain(|(name, _)| is_it(name));
        all.sort();
        all.dedup();
        let names: StringArray = all.iter().map(|(name, _)| Some(name.as_str())).collect();
        let kinds: StringArray = all.iter().map(|(_, kind)| Some(*kind)).collect();
        self.listing(vec![("function", Arc::new(names)), ("kind", Arc::new(kinds))])
    }

    /// The columns of a query's rows.
    fn described(&self, rows: &Text<'_>) -> Result<LazyFrame> {
        let schema = self.sql_text(rows)?.schema();
        let fields = || schema.fields().iter();
        let names: StringArray = fields().map(|field| Some(field.name().as_str())).collect();
        let types: StringArray = fields().map(|field| Some(type_name(field.data_type()))).collect();
        let nullable: BooleanArray = fields().map(|field| Some(field.is_nullable())).collect();
        self.listing(vec![
            ("column", Arc::new(names)),
            ("type", Arc::new(types)),
            ("nullable", Arc::new(nullable)),
        ])
    }

    /// Statistics of each column of a query's rows.
    fn summarized(&self, rows: &Text<'_>) -> Result<LazyFrame> {
        let schema = self.sql_text(rows)?.schema();
        let (line, column) = (rows.start().line, rows.start().column);
        // Places in this text would mean nothing to who wrote the other.
        let of_columns = self.frame_of(&Text::from(&summary(rows.as_str(), &schema)));
        of_columns.map_err(|error| error.at(Some((line, column))))
    }
}

/// One query for each column, and all of them behind one another.
fn summary(query: &str, schema: &Schema) -> String {
    let parts: Vec<String> = (schema.fields().iter().enumerate())
        .map(|(number, field)| {
            let column = format!("\"{}\"", field.name().replace('"', "\"\""));
            let text = |value: &str| value.replace('\'', "''");
            let of_type = field.data_type();
            let ordered = !of_type.is_nested() && !matches!(of_type, DataType::Null);
            let shown = |function: &str| match (ordered, of_type.is_binary()) {
                // Bytes need not be a text, and those of one width have no order of their own.
                (true, true) => {
                    format!("encode({function}(arrow_cast({column}, 'BinaryView')), 'hex')")
                }
                (true, false) => format!("CAST({function}({column}) AS VARCHAR)"),
                (false, _) => "CAST(NULL AS VARCHAR)".into(),
            };
            let number_of = |sql: String| match of_type.is_numeric() {
                true => format!("CAST({sql} AS DOUBLE)"),
                false => "CAST(NULL AS DOUBLE)".into(),
            };
            let quantile = |share: f64| {
                number_of(format!("percentile_cont({share}) WITHIN GROUP (ORDER BY CAST({column} AS DOUBLE))"))
            };
            format!(
                "SELECT {number} AS place, '{name}' AS column_name, '{of}' AS column_type, {min} AS min, {max} AS max, \
                 count(DISTINCT {column}) AS unique_values, {avg} AS avg, {std} AS std, {low} AS q25, {middle} AS q50, \
                 {high} AS q75, count(*) AS count, \
                 CAST(100 * (count(*) - count({column})) AS DOUBLE) / nullif(count(*), 0) AS null_percentage FROM rows_of",
                name = text(field.name()),
                of = text(&type_name(of_type)),
                min = shown("min"),
                max = shown("max"),
                // Sums of decimals may have more digits than these hold.
                avg = number_of(format!("avg(CAST({column} AS DOUBLE))")),
                std = number_of(format!("stddev({column})")),
                low = quantile(0.25),
                middle = quantile(0.5),
                high = quantile(0.75),
            )
        })
        .collect();
    format!(
        "WITH rows_of AS ({query}) SELECT column_name, column_type, min, max, unique_values, avg, std, q25, q50, q75, \
         count, null_percentage FROM ({}) AS columns_of ORDER BY place",
        parts.join(" UNION ALL ")
    )
}

/// Whether a name is like a pattern of LIKE, in any case.
fn like(pattern: &TokenWithSpan) -> impl Fn(&str) -> bool + use<> {
    let pattern = match &pattern.token {
        Token::SingleQuotedString(text) => text.to_lowercase(),
        other => other.to_string().to_lowercase(),
    };
    move |name| fits(&name.to_lowercase(), &pattern)
}

fn fits(name: &str, pattern: &str) -> bool {
    let mut parts = pattern.chars();
    match parts.next() {
        None => name.is_empty(),
        Some('%') => {
            let rest = parts.as_str();
            name.char_indices()
                .map(|(at, _)| at)
                .chain([name.len()])
                .any(|at| fits(&name[at..], rest))
        }
        Some(wanted) => {
            let mut own = name.chars();
            own.next().is_some_and(|c| wanted == '_' || c == wanted)
                && fits(own.as_str(), parts.as_str())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_those_of_like() {
        let cases =
            [("jets", "j%", true), ("jets", "%t_", true), ("jets", "jet", false), ("", "%", true)];
        for (name, pattern, expected) in cases {
            assert_eq!(fits(name, pattern), expected, "{name} {pattern}");
        }
    }
}
