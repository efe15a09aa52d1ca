//! Statements as they are parsed.

use datafusion::common::config::Dialect;
use datafusion::error::Result;
use datafusion::execution::session_state::SessionState;
use datafusion::sql::parser::{DFParserBuilder, Statement};

use super::dialect::Ours;

/// The one statement of a text.
pub(crate) fn parsed(state: &SessionState, text: &str) -> Result<Statement> {
    let options = &state.config_options().sql_parser;
    if options.dialect == Dialect::Generic {
        let limit = options.recursion_limit.get();
        let parser = DFParserBuilder::new(text).with_dialect(&Ours).with_recursion_limit(limit);
        let mut statements = parser.build()?.parse_statements()?;
        if statements.len() == 1
            && let Some(statement) = statements.pop_front()
        {
            return Ok(statement);
        }
    }
    // Another dialect, or what is to be said of no statement and of several.
    state.sql_to_statement(text, &options.dialect)
}
