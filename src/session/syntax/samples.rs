//! `USING SAMPLE 10%` behind a query's table, and samples in DuckDB's words.
//!
//! ```text
//!   FROM t USING SAMPLE 10%     FROM t TABLESAMPLE (10 PERCENT)
//! ```

use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use super::{behind_group, is_any, is_word, made, places_before, refused, until, within};
use crate::error::Result;

/// `USING SAMPLE …` and `TABLESAMPLE …` become `TABLESAMPLE (n ROWS|PERCENT) [REPEATABLE (seed)]`
/// behind the table.
pub(super) fn samples(tokens: &mut Vec<TokenWithSpan>) -> Result<()> {
    let mut at = 0;
    while at < tokens.len() {
        let using = is_word(&tokens[at], "USING")
            && tokens.get(at + 1).is_some_and(|next| is_word(next, "SAMPLE"));
        if !using && !is_word(&tokens[at], "TABLESAMPLE") {
            at += 1;
            continue;
        }
        let first = at + if using { 2 } else { 1 };
        let (clause, end) = sample(tokens, at, first)?;
        let place = if using { behind_table(tokens, at)? } else { at };
        let length = clause.len();
        tokens.drain(at..end);
        tokens.splice(place..place, clause);
        at = at.max(place) + length;
    }
    Ok(())
}

/// A sample's clause, written out, and where it ends.
fn sample(
    tokens: &[TokenWithSpan],
    at: usize,
    mut from: usize,
) -> Result<(Vec<TokenWithSpan>, usize)> {
    let here = tokens[at].span.start;
    let methods = ["RESERVOIR", "BERNOULLI", "SYSTEM"];
    let method = tokens.get(from).filter(|token| is_any(token, &methods)).cloned();
    from += usize::from(method.is_some());
    let grouped = tokens.get(from).is_some_and(|token| token.token == Token::LParen);
    from += usize::from(grouped);
    let Some(Token::Number(number, _)) = tokens.get(from).map(|token| token.token.clone()) else {
        return refused(
            "a sample has a number of rows or a percentage, such as 10 ROWS or 10%",
            here,
        );
    };
    from += 1;
    let unit = tokens.get(from);
    let percent = unit.is_some_and(|unit| unit.token == Token::Mod || is_word(unit, "PERCENT"));
    let rows = unit.is_some_and(|unit| is_word(unit, "ROWS"));
    from += usize::from(percent || rows);
    let of_share = method.as_ref().is_some_and(|method| !is_word(method, "RESERVOIR"));
    if of_share && rows {
        return refused("BERNOULLI and SYSTEM take a percentage, RESERVOIR takes rows", here);
    }
    if grouped {
        if tokens.get(from).is_none_or(|token| token.token != Token::RParen) {
            return refused("expected ) behind the size of a sample", here);
        }
        from += 1;
    }
    let mut seed = None;
    let group = |from: usize| tokens.get(from).is_some_and(|token| token.token == Token::LParen);
    if !grouped && group(from) && tokens.get(from + 1).is_some_and(|token| is_any(token, &methods))
    {
        // `10% (bernoulli, 42)`
        let end = behind_group(tokens, from);
        seed = tokens[from..end].iter().find_map(|token| match &token.token {
            Token::Number(seed, _) => Some(seed.clone()),
            _ => None,
        });
        from = end;
    }
    if tokens.get(from).is_some_and(|token| is_word(token, "REPEATABLE")) && group(from + 1) {
        match tokens.get(from + 2).map(|token| &token.token) {
            Some(Token::Number(number, _)) => seed = Some(number.clone()),
            _ => return refused("REPEATABLE takes a number", here),
        }
        from = behind_group(tokens, from + 1);
    }
    let unit = if percent || of_share { "PERCENT" } else { "ROWS" };
    let seed = seed.map_or_else(String::new, |seed| format!(" REPEATABLE ({seed})"));
    Ok((made(&format!("TABLESAMPLE ({number} {unit}){seed}"), &tokens[at])?, from))
}

/// The place behind the one table of the FROM before `at`.
fn behind_table(tokens: &[TokenWithSpan], at: usize) -> Result<usize> {
    let from = places_before(tokens, at).find(|place| is_word(&tokens[*place], "FROM"));
    let Some(from) = from.map(|place| place + 1) else {
        return refused("USING SAMPLE is behind a FROM", tokens[at].span.start);
    };
    let end =
        until(tokens, from, &["WHERE", "GROUP", "HAVING", "WINDOW", "QUALIFY", "SELECT", "USING"]);
    let several = until(tokens, from, &["JOIN"]) < end.min(at)
        || tokens[from..end.min(at)].iter().enumerate().any(|(place, token)| {
            token.token == Token::Comma
                && until(tokens, from, &[]) > from + place
                && !within(tokens, from, from + place)
        });
    match several {
        true => refused(
            "USING SAMPLE of several tables: write TABLESAMPLE behind one, or a subquery",
            tokens[at].span.start,
        ),
        false => Ok(end.min(at)),
    }
}
