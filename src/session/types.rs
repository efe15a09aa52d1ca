//! Types by the names that SQL has for them.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::DFSchema;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::ExprSchemable;
use datafusion::sql::sqlparser::ast::{DataType as SqlType, Expr, ExprWithAlias, Value};

use crate::error::nearest;
use crate::sql::ast::cast;

/// Types by the names that SQL has for them.
pub(super) const TYPES: [&str; 40] = [
    "BIGINT",
    "BINARY",
    "BLOB",
    "BOOL",
    "BOOLEAN",
    "BPCHAR",
    "BYTEA",
    "CHAR",
    "DATE",
    "DECIMAL",
    "DOUBLE",
    "FLOAT",
    "HUGEINT",
    "INT",
    "INT1",
    "INTEGER",
    "INTERVAL",
    "LONG",
    "NUMERIC",
    "REAL",
    "SHORT",
    "SMALLINT",
    "STRING",
    "STRUCT",
    "TEXT",
    "TIME",
    "TIMESTAMP",
    "TIMESTAMPTZ",
    "TIMESTAMP_MS",
    "TIMESTAMP_NS",
    "TIMESTAMP_S",
    "TIMESTAMP_US",
    "TINYINT",
    "UBIGINT",
    "UINTEGER",
    "UNSIGNED",
    "USMALLINT",
    "UTINYINT",
    "VARBINARY",
    "VARCHAR",
];

/// What is said of a type that there is not, with what is near.
pub(super) fn of_type(message: &str) -> String {
    match message.split_once("Unsupported SQL type ") {
        Some((_, name)) => {
            format!("no type named {name}{}", help(nearest(name, &TYPES.map(String::from))))
        }
        None => message.into(),
    }
}

/// Behind a message, which name was meant.
pub(super) fn help(meant: Option<&str>) -> String {
    meant.map_or(String::new(), |meant| format!("; did you mean {meant}?"))
}

/// The type that a column of this SQL type has.
pub(super) fn data_type(state: &SessionState, of: SqlType) -> Result<DataType, String> {
    let text = of.to_string();
    let expr = cast(Expr::value(Value::Null), of);
    let schema = DFSchema::empty();
    let planned =
        state.create_logical_expr_from_sql_expr(ExprWithAlias { expr, alias: None }, &schema);
    planned.and_then(|cast| cast.get_type(&schema)).map_err(|error| {
        match of_type(&error.strip_backtrace()) {
            message if message.starts_with("no type ") => message,
            message => format!("{text}: {message}"),
        }
    })
}
