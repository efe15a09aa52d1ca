//! `1_000_000`, which is `1000000`.
//!
//! ```text
//!   1_000.5     1000.5          1_000e-1_0   1000e-10         1_000x     1000 x
//! ```

use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

/// Takes the bars from among digits, of which the tokenizer (0.62) makes another name of what is
/// before them. A name right behind the digits is another name of all of the number.
pub(super) fn digits(tokens: &mut Vec<TokenWithSpan>) -> bool {
    let mut any = false;
    // From the last to the first: what stands behind a number is whole by then.
    for at in (1..tokens.len()).rev() {
        let (before, token) = (&tokens[at - 1], &tokens[at]);
        let (Token::Number(number, false), Token::Word(word)) = (&before.token, &token.token)
        else {
            continue;
        };
        if word.quote_style.is_some() || !is_beside(before, token) {
            continue;
        }
        let (groups, rest) = grouped(&word.value);
        if groups.is_empty() {
            continue;
        }
        any = true;
        let mut number = format!("{number}{}", groups.replace('_', ""));
        // A number that has its point already is whole.
        let has_point = number.contains(['.', 'e', 'E']);
        let rest = rest.to_string();
        let exponent = rest.strip_prefix(['e', 'E']).filter(|power| {
            let digits = power.bytes().take_while(u8::is_ascii_digit).count();
            digits > 0 && grouped(&power[digits..]).1.is_empty()
        });
        let exponent = exponent.map(|power| power.replace('_', ""));
        let mut end = at + 1;
        match tokens.get(end).filter(|next| is_beside(&tokens[at], next)).map(|next| &next.token) {
            _ if exponent.is_some() => {
                number.extend(exponent.iter().flat_map(|power| ["e", power]));
            }
            Some(Token::Number(fraction, false))
                if rest.is_empty() && !has_point && fraction.starts_with('.') =>
            {
                number.push_str(fraction);
                end += 1;
            }
            Some(sign @ (Token::Plus | Token::Minus)) if rest.eq_ignore_ascii_case("e") => {
                let power = tokens.get(end + 1).filter(|next| is_beside(&tokens[end], next));
                if let Some(Token::Number(power, false)) = power.map(|power| &power.token)
                    && is_number(power)
                {
                    number.push_str(&format!("e{sign}{power}"));
                    end += 2;
                }
            }
            _ => {}
        }
        let is_name = !rest.is_empty() && exponent.is_none() && end == at + 1;
        tokens[at - 1].token = Token::Number(number, false);
        let name = is_name
            .then(|| TokenWithSpan { token: Token::make_word(&rest, None), span: tokens[at].span });
        tokens.splice(at..end, name);
    }
    any
}

/// Whether nothing stands between two tokens.
fn is_beside(one: &TokenWithSpan, other: &TokenWithSpan) -> bool {
    one.span.end == other.span.start
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit())
}

/// Digits at the begin of a word, each group of them behind a bar, and the rest of it.
fn grouped(word: &str) -> (&str, &str) {
    let mut end = 0;
    while let Some(group) = word[end..].strip_prefix('_') {
        let digits = group.bytes().take_while(u8::is_ascii_digit).count();
        if digits == 0 {
            break;
        }
        end += 1 + digits;
    }
    word.split_at(end)
}
