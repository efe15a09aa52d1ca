//! `WITH q AS MATERIALIZED (…)`, which is `WITH q AS (…)`.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{CteAsMaterialized, Query, Statement, VisitMut, VisitorMut};
use datafusion::sql::sqlparser::tokenizer::{Location, Token, TokenWithSpan};

use super::{behind_group, is_word};

/// Drops what WITH says of how its queries are kept, if it does. Of `AS NOT MATERIALIZED (…)` the
/// closing parenthesis is noted, by which [`mark`] finds the query once it is parsed.
pub(super) fn materialized(tokens: &mut Vec<TokenWithSpan>, own_rows: &mut Vec<Location>) -> bool {
    let mut any = false;
    for at in (1..tokens.len()).rev() {
        let opens = tokens.get(at + 1).is_some_and(|next| next.token == Token::LParen);
        if !opens || !is_word(&tokens[at], "MATERIALIZED") {
            continue;
        }
        let first = if is_word(&tokens[at - 1], "NOT") { at - 1 } else { at };
        if !first.checked_sub(1).is_some_and(|before| is_word(&tokens[before], "AS")) {
            continue;
        }
        if first < at {
            own_rows.push(tokens[behind_group(tokens, at + 1) - 1].span.start);
        }
        tokens.drain(first..=at);
        any = true;
    }
    any
}

/// Says of the queries that end at these places that each reader has rows of its own, as the parser
/// would in a dialect that has the words. So a view's text says it, too.
pub(in crate::session) fn mark(statement: &mut Statement, own_rows: &[Location]) {
    if !own_rows.is_empty() {
        let _ = VisitMut::visit(statement, &mut OwnRows(own_rows));
    }
}

struct OwnRows<'a>(&'a [Location]);

impl VisitorMut for OwnRows<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        for cte in query.with.iter_mut().flat_map(|with| &mut with.cte_tables) {
            if self.0.contains(&cte.closing_paren_token.0.span.start) {
                cte.materialized = Some(CteAsMaterialized::NotMaterialized);
            }
        }
        ControlFlow::Continue(())
    }
}
