//! List comprehensions, which are calls with lambdas.
//!
//! ```text
//!   [x * 2 for x in l]             list_transform(l, x -> x * 2)
//!   [x * 2 for x in l if x > 1]    list_transform(list_filter(l, x -> x > 1), x -> x * 2)
//!   [x for x in l if x > 1]        list_filter(l, x -> x > 1)
//! ```

use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use super::{is_any, is_word, made, refused};
use crate::error::Result;

/// Writes them out; whether there was one.
///
/// # Errors
/// Parts of one that are missing or not known.
pub(super) fn comprehensions(tokens: &mut Vec<TokenWithSpan>) -> Result<bool> {
    let mut any = false;
    // From the last to the first, so that one within another is written out before it.
    for at in (0..tokens.len()).rev() {
        if tokens[at].token == Token::LBracket {
            any |= comprehension(tokens, at)?;
        }
    }
    Ok(any)
}

fn comprehension(tokens: &mut Vec<TokenWithSpan>, at: usize) -> Result<bool> {
    let Some(parts) = ComprehensionParts::of(tokens, at) else { return Ok(false) };
    let here = tokens[at].clone();
    if parts.within >= parts.end {
        return refused("expected [expression for name in list]", here.span.start);
    }
    let (made_of, called) = (&tokens[at + 1..parts.of], &tokens[parts.of + 1..parts.within]);
    let (name, of_list) = match called {
        [name] if matches!(name.token, Token::Word(_)) => {
            (name.clone(), &tokens[parts.within + 1..parts.condition])
        }
        [_, comma, ..] if comma.token == Token::Comma => {
            return refused(
                "a list comprehension has one name: its index is not known",
                here.span.start,
            );
        }
        _ => return refused("expected [expression for name in list]", here.span.start),
    };
    let condition = tokens.get(parts.condition + 1..parts.end).unwrap_or_default();
    let has_condition = parts.condition < parts.end;
    if made_of.is_empty() || of_list.is_empty() || has_condition && condition.is_empty() {
        return refused("expected [expression for name in list if condition]", here.span.start);
    }
    let lambda = |text: &mut Vec<TokenWithSpan>, body: &[TokenWithSpan]| -> Result<()> {
        text.extend(made(",", &here)?);
        text.push(name.clone());
        text.extend(made("->", &here)?);
        text.extend_from_slice(body);
        text.extend(made(")", &here)?);
        Ok(())
    };
    let is_itself = matches!(made_of, [one] if one.token == name.token);
    let transforms = !is_itself || !has_condition;
    let mut text = vec![];
    if transforms {
        text.extend(made("list_transform(", &here)?);
    }
    if has_condition {
        text.extend(made("list_filter(", &here)?);
    }
    text.extend_from_slice(of_list);
    if has_condition {
        lambda(&mut text, condition)?;
    }
    if transforms {
        lambda(&mut text, made_of)?;
    }
    tokens.splice(at..=parts.end, text);
    Ok(true)
}

/// Where FOR, IN and IF stand in brackets, and where these end. Without IF that is the end, too.
struct ComprehensionParts {
    of: usize,
    within: usize,
    condition: usize,
    end: usize,
}

impl ComprehensionParts {
    /// Those of the brackets that open at a place, if a FOR is in them.
    fn of(tokens: &[TokenWithSpan], at: usize) -> Option<ComprehensionParts> {
        let (mut of, mut within, mut condition) = (None, None, None);
        let mut depth = 0;
        for (place, token) in tokens.iter().enumerate().skip(at) {
            match token.token {
                Token::LBracket | Token::LParen | Token::LBrace => depth += 1,
                Token::RBracket | Token::RParen | Token::RBrace => depth -= 1,
                _ if depth > 1 => {}
                _ if of.is_none() && is_word(token, "FOR") => of = Some(place),
                _ if of.is_some() && within.is_none() && is_word(token, "IN") => {
                    within = Some(place)
                }
                _ if within.is_some() && condition.is_none() && is_word(token, "IF") => {
                    condition = Some(place).filter(|_| ends_value(&tokens[place - 1]));
                }
                _ => {}
            }
            if depth == 0 {
                let of = of?;
                let within = within.unwrap_or(place).max(of + 1);
                return Some(ComprehensionParts {
                    of,
                    within,
                    condition: condition.unwrap_or(place),
                    end: place,
                });
            }
        }
        None
    }
}

/// Whether a value may end here, behind which IF is no function.
fn ends_value(token: &TokenWithSpan) -> bool {
    match token.token {
        Token::Word(_) => {
            let open =
                ["IN", "AND", "OR", "NOT", "THEN", "ELSE", "WHEN", "CASE", "LIKE", "BETWEEN"];
            !is_any(token, &open)
        }
        Token::Number(..)
        | Token::SingleQuotedString(_)
        | Token::RParen
        | Token::RBracket
        | Token::RBrace => true,
        _ => false,
    }
}
