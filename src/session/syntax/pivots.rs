//! Statements `PIVOT` and `UNPIVOT`, as clauses of a table.
//!
//! ```text
//!   PIVOT t ON c USING sum(x) GROUP BY g     SELECT * FROM t PIVOT (sum(x) FOR c IN (ANY) …)
//!   UNPIVOT t ON a, b INTO NAME n VALUE v    SELECT * FROM t UNPIVOT (v FOR n IN (a, b))
//! ```

use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use super::{behind_source, is_word, made, refused, stand_in, until, within};
use crate::error::Result;

/// The function in whose arguments the GROUP BY of a PIVOT statement travels.
pub(in crate::session) const GROUPS: &str = "pivot groups";
/// The function whose arguments are columns that an UNPIVOT leaves out.
pub(in crate::session) const ALL_BUT: &str = "all columns but";

/// Writes out a statement `PIVOT …` or `UNPIVOT …` that begins at a place, if one does.
pub(super) fn pivot(tokens: &mut Vec<TokenWithSpan>, at: usize) -> Result<()> {
    let wide = is_word(&tokens[at], "PIVOT");
    if !wide && !is_word(&tokens[at], "UNPIVOT") {
        return Ok(());
    }
    let source = behind_source(tokens, at + 1);
    let nulls = tokens.get(source).is_some_and(|token| is_word(token, "INCLUDE"))
        && tokens.get(source + 1).is_some_and(|token| is_word(token, "NULLS"));
    let on = source + if nulls { 2 } else { 0 };
    // A clause of a table has its columns in parentheses.
    if source == at + 1 || !tokens.get(on).is_some_and(|token| is_word(token, "ON")) {
        return Ok(());
    }
    let own = ["USING", "GROUP", "INTO", "ORDER", "LIMIT", "OFFSET"];
    let end_of_on = until(tokens, on + 1, &own);
    let end = until(tokens, end_of_on, &[]);
    let here = tokens[at].clone();
    let mut text = made("SELECT * FROM", &here)?;
    text.extend_from_slice(&tokens[at + 1..source]);
    let rest = match wide {
        true => wide_clause(tokens, (on + 1, end_of_on), &here, &mut text)?,
        false => long_clause(tokens, (on + 1, end_of_on), nulls, &here, &mut text)?,
    };
    text.extend_from_slice(&tokens[rest..end]);
    tokens.splice(at..end, text);
    Ok(())
}

/// What a PIVOT statement says behind its table, as a clause of that; where ORDER BY and LIMIT
/// begin.
fn wide_clause(
    tokens: &[TokenWithSpan],
    (on, mut at): (usize, usize),
    here: &TokenWithSpan,
    text: &mut Vec<TokenWithSpan>,
) -> Result<usize> {
    text.extend(made("PIVOT (", here)?);
    if is_word(&tokens[at.min(tokens.len() - 1)], "USING") {
        let end = until(tokens, at, &["GROUP", "ORDER", "LIMIT", "OFFSET"]);
        text.extend_from_slice(&tokens[at + 1..end]);
        let of_on = (on, at);
        at = end;
        on_clause(tokens, of_on, here, text)?;
    } else {
        text.extend(made("count(*)", here)?);
        on_clause(tokens, (on, at), here, text)?;
    }
    if tokens.get(at).is_some_and(|token| is_word(token, "GROUP")) {
        let end = until(tokens, at + 1, &["ORDER", "LIMIT", "OFFSET"]);
        text.extend(made("DEFAULT ON NULL (", here)?);
        text.push(stand_in(GROUPS, here));
        text.extend(made("(", here)?);
        text.extend_from_slice(tokens.get(at + 2..end).unwrap_or_default());
        text.extend(made("))", here)?);
        at = end;
    }
    text.extend(made(")", here)?);
    Ok(at)
}

/// `FOR columns IN (…)`.
fn on_clause(
    tokens: &[TokenWithSpan],
    (on, end): (usize, usize),
    here: &TokenWithSpan,
    text: &mut Vec<TokenWithSpan>,
) -> Result<()> {
    let list = until(tokens, on, &["IN"]).min(end);
    text.extend(made("FOR", here)?);
    let several = (on..end).any(|at| tokens[at].token == Token::Comma && !within(tokens, on, at));
    if list < end && several {
        return combined(&tokens[on..end], here, text);
    }
    if list < end {
        text.extend_from_slice(&tokens[on..end]);
        return Ok(());
    }
    text.extend(made(if several { "(" } else { "" }, here)?);
    text.extend_from_slice(&tokens[on..end]);
    text.extend(made(if several { ") IN (ANY)" } else { "IN (ANY)" }, here)?);
    Ok(())
}

/// `a IN (1), b IN (2, 4)` as `(a, b) IN ((1, 2), (1, 4))`.
fn combined(
    on: &[TokenWithSpan],
    here: &TokenWithSpan,
    text: &mut Vec<TokenWithSpan>,
) -> Result<()> {
    let mut columns: Vec<&[TokenWithSpan]> = vec![];
    let mut rows: Vec<Vec<&[TokenWithSpan]>> = vec![vec![]];
    for part in parts(on) {
        let list = until(part, 0, &["IN"]);
        let values = match part.get(list + 1..) {
            Some([open, values @ .., close])
                if open.token == Token::LParen && close.token == Token::RParen =>
            {
                values
            }
            _ => {
                let message = "PIVOT: IN lists the values of all columns, or of none";
                return refused(message, part.first().unwrap_or(here).span.start);
            }
        };
        columns.push(&part[..list]);
        let values = parts(values);
        rows = rows
            .iter()
            .flat_map(|row| values.iter().map(|value| [&row[..], &[*value]].concat()))
            .collect();
        if rows.len() > MOST_COMBINED {
            return refused(
                "PIVOT: too many values, of which each becomes a column",
                here.span.start,
            );
        }
    }
    listed(&columns, here, text)?;
    text.extend(made("IN (", here)?);
    for (at, row) in rows.iter().enumerate() {
        text.extend(made(if at > 0 { "," } else { "" }, here)?);
        listed(row, here, text)?;
    }
    text.extend(made(")", here)?);
    Ok(())
}

/// Most columns that the values of several lists become.
const MOST_COMBINED: usize = 10_000;

/// Parts in parentheses, with commas between them.
fn listed(
    parts: &[&[TokenWithSpan]],
    here: &TokenWithSpan,
    text: &mut Vec<TokenWithSpan>,
) -> Result<()> {
    for (at, part) in parts.iter().enumerate() {
        text.extend(made(if at > 0 { "," } else { "(" }, here)?);
        text.extend_from_slice(part);
    }
    text.extend(made(")", here)?);
    Ok(())
}

/// The parts of a list, between commas that are in no parentheses.
fn parts(tokens: &[TokenWithSpan]) -> Vec<&[TokenWithSpan]> {
    let is_comma = |at: &usize| tokens[*at].token == Token::Comma && !within(tokens, 0, *at);
    let (mut parts, mut from) = (vec![], 0);
    for at in (0..tokens.len()).filter(is_comma) {
        parts.push(&tokens[from..at]);
        from = at + 1;
    }
    parts.push(&tokens[from..]);
    parts
}

/// What an UNPIVOT statement says behind its table; where ORDER BY and LIMIT begin.
fn long_clause(
    tokens: &[TokenWithSpan],
    (on, mut at): (usize, usize),
    nulls: bool,
    here: &TokenWithSpan,
    text: &mut Vec<TokenWithSpan>,
) -> Result<usize> {
    let columns = (on, at);
    let (mut name, mut value) = (made("name", here)?, made("value", here)?);
    if tokens.get(at).is_some_and(|token| is_word(token, "INTO")) {
        let end = until(tokens, at, &["ORDER", "LIMIT", "OFFSET"]);
        match &tokens[at + 1..end] {
            [first, called, second, valued]
                if is_word(first, "NAME") && is_word(second, "VALUE") =>
            {
                (name, value) = (vec![called.clone()], vec![valued.clone()]);
            }
            _ => return refused("expected INTO NAME column VALUE column", tokens[at].span.start),
        }
        at = end;
    }
    text.extend(made(if nulls { "UNPIVOT INCLUDE NULLS (" } else { "UNPIVOT (" }, here)?);
    text.append(&mut value);
    text.extend(made("FOR", here)?);
    text.append(&mut name);
    text.extend(made("IN (", here)?);
    text.extend(unpivoted(&tokens[columns.0..columns.1], here)?);
    text.extend(made("))", here)?);
    Ok(at)
}

/// Columns that become rows: a list, or `COLUMNS(* EXCLUDE (…))`.
fn unpivoted(columns: &[TokenWithSpan], here: &TokenWithSpan) -> Result<Vec<TokenWithSpan>> {
    let mut inner = columns;
    if let [first, open, rest @ .., close] = columns
        && is_word(first, "COLUMNS")
        && open.token == Token::LParen
        && close.token == Token::RParen
    {
        inner = rest;
    }
    let Some((_, behind)) = inner.split_first().filter(|(first, _)| first.token == Token::Mul)
    else {
        return Ok(columns.to_vec());
    };
    let mut text = vec![stand_in(ALL_BUT, here)];
    text.extend(made("(", here)?);
    match behind {
        [] => {}
        [exclude, rest @ ..] if is_word(exclude, "EXCLUDE") => {
            let list = match rest {
                [open, list @ .., close]
                    if open.token == Token::LParen && close.token == Token::RParen =>
                {
                    list
                }
                list => list,
            };
            text.extend_from_slice(list);
        }
        [other, ..] => return refused("expected EXCLUDE behind *", other.span.start),
    }
    text.extend(made(")", here)?);
    Ok(text)
}
