//! Forms of DuckDB's that the parser lacks, written out among tokens as forms that it has. Tokens
//! keep their places, so that errors point into the text.
//!
//! ```text
//!   PIVOT t ON c USING sum(x) GROUP BY g     SELECT * FROM t PIVOT (sum(x) FOR c IN (ANY) …)
//!   UNPIVOT t ON a, b INTO NAME n VALUE v    SELECT * FROM t UNPIVOT (v FOR n IN (a, b))
//!   FROM t WHERE …                           SELECT * FROM t WHERE …
//!   FROM t USING SAMPLE 10%                  FROM t TABLESAMPLE (10 PERCENT)
//!   a ASOF LEFT JOIN b ON …                  a ASOF JOIN b MATCH_CONDITION (FALSE) ON …
//!   a POSITIONAL JOIN b                      a ASOF JOIN b MATCH_CONDITION (NULL)
//!   WITH q AS MATERIALIZED (…)               WITH q AS (…)
//!   … ROWS 3 PRECEDING EXCLUDE NO OTHERS     … ROWS 3 PRECEDING
//!   1_000_000                                1000000
//!   INSERT INTO t BY NAME SELECT …           INSERT INTO t ("columns by name") SELECT …
//!   SELECT * LIKE 'x%'                       SELECT COLUMNS(lambda name : name LIKE 'x%')
//! ```
//!
//! What these mean is said in `relations`, and what `COLUMNS` does in `rules/using/columns.rs`.

mod stars;

use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::keywords::RESERVED_FOR_TABLE_ALIAS;
use datafusion::sql::sqlparser::parser::ParserError;
use datafusion::sql::sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer};

pub(super) use self::stars::SPREAD;
use crate::error::{Error, ErrorKind, Result};

/// The function in whose arguments the GROUP BY of a PIVOT statement travels.
pub(super) const GROUPS: &str = "pivot groups";
/// The function whose arguments are columns that an UNPIVOT leaves out.
pub(super) const ALL_BUT: &str = "all columns but";
/// Instead of the columns of an INSERT, of which the query's names tell.
pub(super) const BY_NAME: &str = "columns by name";

/// The tokens of a text, with what the parser lacks written out; `None` where it lacks nothing.
///
/// # Errors
/// Such a form, with something in it that is not known.
pub(super) fn written_out(text: &str) -> Result<Option<Vec<TokenWithSpan>>> {
    let dialect = GenericDialect {};
    let Ok(mut tokens) = Tokenizer::new(&dialect, text).tokenize_with_location() else {
        return Ok(None);
    };
    let forms = ["PIVOT", "UNPIVOT", "ASOF", "POSITIONAL", "SAMPLE", "TABLESAMPLE"];
    let is_form = tokens.iter().any(|token| is_any(token, &forms));
    let spelled = digits(&mut tokens);
    tokens.retain(|token| !matches!(token.token, Token::Whitespace(_)));
    let kept = materialized(&mut tokens);
    let left_out = exclusions(&mut tokens)?;
    let is_form = is_form || spelled || kept || left_out;
    let inserted = inserted(&tokens);
    let bare = bare_froms(&tokens, inserted);
    let stars = stars::places(&tokens);
    let by = inserted.and_then(|at| at.checked_sub(2)).filter(|at| is_word(&tokens[*at], "BY"));
    if !is_form && bare.is_empty() && stars.is_empty() && by.is_none() {
        return Ok(None);
    }
    // From the last to the first, whose places stay.
    let mut places: Vec<(usize, bool)> = bare.into_iter().map(|at| (at, true)).collect();
    places.extend(stars.into_iter().map(|at| (at, false)));
    places.sort_unstable();
    for (at, is_from) in places.into_iter().rev() {
        match is_from {
            true => {
                let select = made("SELECT *", &tokens[at])?;
                tokens.splice(at..at, select);
            }
            false => stars::write_out(&mut tokens, at)?,
        }
    }
    // Before the query, of which nothing is written out before this.
    if let Some(at) = by {
        let columns = match is_word(&tokens[at + 1], "NAME") {
            true => made(&format!("(\"{BY_NAME}\")"), &tokens[at])?,
            false => vec![],
        };
        tokens.splice(at..at + 2, columns);
    }
    samples(&mut tokens)?;
    asof_joins(&mut tokens);
    positional_joins(&mut tokens)?;
    // From the last to the first, so that one within another is written out before it.
    for at in (0..tokens.len()).rev() {
        pivot(&mut tokens, at)?;
    }
    Ok(Some(tokens))
}

fn is_word(token: &TokenWithSpan, wanted: &str) -> bool {
    matches!(&token.token,
        Token::Word(word) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(wanted))
}

fn is_any(token: &TokenWithSpan, wanted: &[&str]) -> bool {
    wanted.iter().any(|word| is_word(token, word))
}

/// Tokens of a text of ours, at a place of the user's.
fn made(text: &str, like: &TokenWithSpan) -> Result<Vec<TokenWithSpan>> {
    let mut tokens = Tokenizer::new(&GenericDialect {}, text)
        .tokenize_with_location()
        .map_err(|error| crate::error::Error::internal(ParserError::from(error).to_string()))?;
    tokens.retain(|token| !matches!(token.token, Token::Whitespace(_) | Token::EOF));
    tokens.iter_mut().for_each(|token| token.span = like.span);
    Ok(tokens)
}

fn refused<T>(message: &str, at: Location) -> Result<T> {
    let location = Some((at.line, at.column));
    Err(ErrorKind::Plan { message: message.into(), location }.into())
}

/// The place behind the parenthesis that is closed for the one at `at`; the end where none is.
fn behind_group(tokens: &[TokenWithSpan], at: usize) -> usize {
    let mut depth = 0;
    for (place, token) in tokens.iter().enumerate().skip(at) {
        match token.token {
            Token::LParen => depth += 1,
            Token::RParen => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return place + 1;
        }
    }
    tokens.len()
}

/// The first place from `at` on, outside of parentheses, where one of these words stands; or where
/// what `at` is in ends.
fn until(tokens: &[TokenWithSpan], mut at: usize, words: &[&str]) -> usize {
    while let Some(token) = tokens.get(at) {
        match token.token {
            Token::LParen => {
                at = behind_group(tokens, at);
                continue;
            }
            Token::RParen | Token::SemiColon | Token::EOF => return at,
            _ if is_any(token, words) => return at,
            _ => at += 1,
        }
    }
    tokens.len()
}

/// The place behind a table: a name of several parts, a file, a call, a query in parentheses.
fn behind_source(tokens: &[TokenWithSpan], at: usize) -> usize {
    match tokens.get(at).map(|token| &token.token) {
        Some(Token::LParen) => behind_group(tokens, at),
        Some(Token::Word(_) | Token::SingleQuotedString(_)) => {
            let mut end = at + 1;
            while tokens.get(end).is_some_and(|token| token.token == Token::Period) {
                end += 2;
            }
            match tokens.get(end).map(|token| &token.token) {
                Some(Token::LParen) => behind_group(tokens, end),
                _ => end.min(tokens.len()),
            }
        }
        _ => at,
    }
}

/// Takes the bars from among digits, of which the tokenizer (0.62) makes another name of what is
/// before them.
fn digits(tokens: &mut Vec<TokenWithSpan>) -> bool {
    let mut any = false;
    for at in (1..tokens.len()).rev() {
        let (before, token) = (&tokens[at - 1], &tokens[at]);
        let (Token::Number(number, false), Token::Word(word)) = (&before.token, &token.token)
        else {
            continue;
        };
        let grouped = word.value.strip_prefix('_').is_some_and(|rest| {
            let is_number =
                |part: &str| !part.is_empty() && part.bytes().all(|digit| digit.is_ascii_digit());
            rest.split('_').all(is_number)
        });
        if word.quote_style.is_some() || !grouped || before.span.end != token.span.start {
            continue;
        }
        let number = format!("{number}{}", word.value.replace('_', ""));
        tokens[at - 1].token = Token::Number(number, false);
        tokens.remove(at);
        any = true;
    }
    any
}

/// Drops what WITH says of how its queries are kept, if it does; `AS NOT MATERIALIZED (…)` becomes `AS ((…))`,
/// by which `rules/drawn.rs` knows it.
fn materialized(tokens: &mut Vec<TokenWithSpan>) -> bool {
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
            let (open, end) = (tokens[at + 1].clone(), behind_group(tokens, at + 1));
            let close = tokens[end - 1].clone();
            tokens.insert(end, close);
            tokens.insert(at + 1, open);
        }
        tokens.drain(first..=at);
        any = true;
    }
    any
}

/// Drops `EXCLUDE NO OTHERS` behind the frame of a window, which says what is so without it.
///
/// # Errors
/// Frames that leave rows out.
fn exclusions(tokens: &mut Vec<TokenWithSpan>) -> Result<bool> {
    let mut any = false;
    for at in (1..tokens.len()).rev() {
        if !is_word(&tokens[at], "EXCLUDE")
            || !is_any(&tokens[at - 1], &["ROW", "PRECEDING", "FOLLOWING"])
        {
            continue;
        }
        let end = until(tokens, at, &[]);
        let left_out = [&["NO", "OTHERS"][..], &["CURRENT", "ROW"], &["GROUP"], &["TIES"]]
            .into_iter()
            .find(|words| {
                words.len() == end - at - 1
                    && words.iter().zip(&tokens[at + 1..]).all(|(word, token)| is_word(token, word))
            });
        match left_out {
            Some(["NO", ..]) => {
                tokens.drain(at..end);
                any = true;
            }
            Some(words) => {
                let what = format!("EXCLUDE {} in the frame of a window", words.join(" "));
                let start = tokens[at].span.start;
                let error = Error::unsupported(what, "a frame has all rows between its bounds");
                return Err(error.at(Some((start.line, start.column))));
            }
            None => {
                return refused(
                    "expected EXCLUDE CURRENT ROW, GROUP, TIES or NO OTHERS",
                    tokens[at].span.start,
                );
            }
        }
    }
    Ok(any)
}

/// Where queries begin with FROM and have no SELECT. `inserted`: where the rows of an INSERT begin.
fn bare_froms(tokens: &[TokenWithSpan], inserted: Option<usize>) -> Vec<usize> {
    let begins = |at: usize| match at.checked_sub(1).map(|before| &tokens[before]) {
        None => true,
        Some(_) if inserted == Some(at) => true,
        Some(before) => match before.token {
            Token::LParen | Token::SemiColon => true,
            Token::RParen => is_behind_with(tokens, at),
            // Of a column, in whose place nothing stands, or of what a query makes.
            _ if is_word(before, "AS") => !is_in_list(tokens, at),
            _ => is_any(before, &["UNION", "EXCEPT", "INTERSECT", "ALL", "EXPLAIN", "ANALYZE"]),
        },
    };
    let has_select = |at: usize| {
        let end = until(tokens, at, &["SELECT", "UNION", "EXCEPT", "INTERSECT"]);
        tokens.get(end).is_some_and(|token| is_word(token, "SELECT"))
    };
    let froms = (0..tokens.len()).filter(|at| is_word(&tokens[*at], "FROM"));
    froms.filter(|at| begins(*at) && !has_select(*at)).collect()
}

/// Whether a SELECT stands before a place, in the same parentheses.
fn is_in_list(tokens: &[TokenWithSpan], at: usize) -> bool {
    let mut depth = 0;
    for token in tokens[..at].iter().rev() {
        match token.token {
            Token::RParen => depth += 1,
            Token::LParen if depth == 0 => return false,
            Token::LParen => depth -= 1,
            Token::SemiColon => return false,
            _ if depth == 0 && is_word(token, "SELECT") => return true,
            _ => {}
        }
    }
    false
}

/// Whether a place is behind the queries of a WITH.
fn is_behind_with(tokens: &[TokenWithSpan], at: usize) -> bool {
    let mut depth = 0;
    for token in tokens[..at].iter().rev() {
        match token.token {
            Token::RParen => depth += 1,
            Token::LParen if depth == 0 => return false,
            Token::LParen => depth -= 1,
            _ if depth > 0 => {}
            _ if is_word(token, "WITH") => return true,
            Token::SemiColon => return false,
            _ if is_any(token, &["SELECT", "FROM", "VALUES", "DELETE", "UPDATE"]) => return false,
            _ => {}
        }
    }
    false
}

/// `ASOF [LEFT|INNER] JOIN b ON …` gets the condition that the parser wants, which tells the kind.
fn asof_joins(tokens: &mut Vec<TokenWithSpan>) {
    let mut at = 0;
    while at < tokens.len() {
        if !is_word(&tokens[at], "ASOF") {
            at += 1;
            continue;
        }
        let kind = tokens.get(at + 1).filter(|next| is_any(next, &["LEFT", "INNER"])).cloned();
        let left = kind.as_ref().is_some_and(|kind| is_word(kind, "LEFT"));
        if kind.is_some() {
            tokens.remove(at + 1);
        }
        if left && tokens.get(at + 1).is_some_and(|next| is_word(next, "OUTER")) {
            tokens.remove(at + 1);
        }
        let on = until(tokens, at + 1, &["ON", "USING", "MATCH_CONDITION"]);
        if tokens.get(on).is_some_and(|token| is_any(token, &["ON", "USING"])) {
            let text = if left { "MATCH_CONDITION (FALSE)" } else { "MATCH_CONDITION (TRUE)" };
            let condition = made(text, &tokens[on]).unwrap_or_default();
            tokens.splice(on..on, condition);
        }
        at = on + 1;
    }
}

/// Where the rows of an INSERT begin, behind its table, and its columns or `BY NAME`.
fn inserted(tokens: &[TokenWithSpan]) -> Option<usize> {
    let [first, into, ..] = tokens else { return None };
    if !is_word(first, "INSERT") || !is_word(into, "INTO") {
        return None;
    }
    let at = behind_source(tokens, 2);
    let is_by = is_word(tokens.get(at)?, "BY")
        && tokens.get(at + 1).is_some_and(|next| is_any(next, &["NAME", "POSITION"]));
    Some(if is_by { at + 2 } else { at })
}

/// `a POSITIONAL JOIN b`, whose first word the parser takes for a name of `a`.
fn positional_joins(tokens: &mut Vec<TokenWithSpan>) -> Result<()> {
    // From the last to the first, whose places stay.
    for at in (0..tokens.len()).rev() {
        let is_it = is_word(&tokens[at], "POSITIONAL")
            && tokens.get(at + 1).is_some_and(|next| is_word(next, "JOIN"))
            && at.checked_sub(1).is_some_and(|before| !is_word(&tokens[before], "AS"));
        if !is_it {
            continue;
        }
        let end = behind_alias(tokens, behind_source(tokens, at + 2));
        let condition = made("MATCH_CONDITION (NULL)", &tokens[at])?;
        tokens.splice(end..end, condition);
        let asof = made("ASOF", &tokens[at])?;
        tokens.splice(at..=at, asof);
    }
    Ok(())
}

/// The place behind another name of a table, and of its columns, if there is one.
fn behind_alias(tokens: &[TokenWithSpan], at: usize) -> usize {
    let end = match tokens.get(at).map(|token| &token.token) {
        Some(Token::Word(_)) if is_word(&tokens[at], "AS") => at + 2,
        Some(Token::Word(word)) if !RESERVED_FOR_TABLE_ALIAS.contains(&word.keyword) => {
            // A second one of these joins.
            let next = tokens.get(at + 1);
            let joins = is_any(&tokens[at], &["POSITIONAL", "ASOF"])
                && next.is_some_and(|next| is_any(next, &["JOIN", "LEFT", "INNER"]));
            if joins { return at } else { at + 1 }
        }
        _ => return at,
    };
    match tokens.get(end).map(|token| &token.token) {
        Some(Token::LParen) => behind_group(tokens, end),
        _ => end.min(tokens.len()),
    }
}

/// `USING SAMPLE …` and `TABLESAMPLE …` become `TABLESAMPLE (n ROWS|PERCENT) [REPEATABLE (seed)]`
/// behind the table.
fn samples(tokens: &mut Vec<TokenWithSpan>) -> Result<()> {
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
    let (mut depth, mut from) = (0, None);
    for place in (0..at).rev() {
        match &tokens[place].token {
            Token::RParen => depth += 1,
            Token::LParen if depth == 0 => break,
            Token::LParen => depth -= 1,
            _ if depth == 0 && is_word(&tokens[place], "FROM") => {
                from = Some(place + 1);
                break;
            }
            _ => {}
        }
    }
    let Some(from) = from else {
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

/// Whether a place is in parentheses that were opened from `from` on.
fn within(tokens: &[TokenWithSpan], from: usize, place: usize) -> bool {
    let mut depth = 0i32;
    for token in &tokens[from..place] {
        match token.token {
            Token::LParen => depth += 1,
            Token::RParen => depth -= 1,
            _ => {}
        }
    }
    depth > 0
}

/// Writes out a statement `PIVOT …` or `UNPIVOT …` that begins at a place, if one does.
fn pivot(tokens: &mut Vec<TokenWithSpan>, at: usize) -> Result<()> {
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
        text.extend(made(&format!("DEFAULT ON NULL (\"{GROUPS}\" ("), here)?);
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
    let within = until(tokens, on, &["IN"]).min(end);
    text.extend(made("FOR", here)?);
    if within < end {
        text.extend_from_slice(&tokens[on..end]);
        return Ok(());
    }
    let several =
        (on..end).any(|at| tokens[at].token == Token::Comma && !self::within(tokens, on, at));
    text.extend(made(if several { "(" } else { "" }, here)?);
    text.extend_from_slice(&tokens[on..end]);
    text.extend(made(if several { ") IN (ANY)" } else { "IN (ANY)" }, here)?);
    Ok(())
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
    let mut text = made(&format!("\"{ALL_BUT}\" ("), here)?;
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
