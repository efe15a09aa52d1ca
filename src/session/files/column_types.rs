//! Types of columns as options of files have them.

use datafusion::sql::sqlparser::ast::{ColumnDef, DataType as SqlType};
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::Token;

use crate::session::syntax::struct_types;
use crate::sql::Text;

/// A parser of types as statements have them.
fn type_parser(text: &str) -> Result<Parser<'static>, ParserError> {
    let text = Text::from(text);
    if let Some(error) = text.error() {
        return Err(ParserError::TokenizerError(error.to_string()));
    }
    let mut tokens: Vec<_> = text.words().cloned().collect();
    struct_types(&mut tokens).map_err(|error| ParserError::ParserError(error.to_string()))?;
    Ok(Parser::new(&GenericDialect {}).with_tokens_with_locations(tokens))
}

pub(super) fn parsed_type(text: &str) -> Result<SqlType, String> {
    let parsed = || {
        let mut parser = type_parser(text)?;
        let of = parser.parse_data_type()?;
        parser.expect_token(&Token::EOF).map(|_| of)
    };
    parsed().map_err(|error| format!("{text:?} is no type: {error}"))
}

pub(super) fn column_definitions(text: &str) -> Result<Vec<ColumnDef>, String> {
    let parsed = || {
        let mut parser = type_parser(text)?;
        let columns = parser.parse_comma_separated(Parser::parse_column_def)?;
        parser.expect_token(&Token::EOF).map(|_| columns)
    };
    let columns =
        parsed().map_err(|error| format!("{text:?} are no columns with types: {error}"))?;
    match columns.iter().find(|column| !column.options.is_empty()) {
        Some(column) => {
            Err(format!("{column}: a file's column has a name and a type, and no constraints"))
        }
        None => Ok(columns),
    }
}
