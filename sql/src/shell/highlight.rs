//! Colours of what is typed: by the tokens of SQL, and by the names of commands.

use datafusion::sql::sqlparser::tokenizer::{Token, Whitespace};
use warpframe::sql::{Offsets, Text, keywords};

use super::dot;

const KEYWORD: &str = "1;34";
const STRING: &str = "32";
const NUMBER: &str = "35";
const COMMENT: &str = "2";
const COMMAND: &str = "36";

/// The text with the escape sequences of its colours; without these it is the same.
pub fn coloured(text: &str) -> String {
    if text.trim_start().starts_with('.') {
        let start = text.len() - text.trim_start().len();
        let end = text[start..].find(char::is_whitespace).map_or(text.len(), |at| start + at);
        let known = dot::names().any(|name| name == text[start..end]);
        let mut made = text[..start].to_string();
        paint(&mut made, &text[start..end], known.then_some(COMMAND));
        return made + &text[end..];
    }
    let read = Text::from(text);
    let mut offsets = Offsets::of(&read);
    let (mut made, mut done) = (String::with_capacity(2 * text.len()), 0);
    for token in read.tokens() {
        let (start, end) = (offsets.at(token.span.start), offsets.at(token.span.end));
        made.push_str(&text[done..start]);
        paint(&mut made, &text[start..end], colour(&token.token));
        done = end;
    }
    // A string or a comment that is not closed yet.
    let rest = &text[done..];
    let blank = rest.len() - rest.trim_start().len();
    made.push_str(&rest[..blank]);
    let open = if rest[blank..].starts_with("/*") { COMMENT } else { STRING };
    paint(&mut made, &rest[blank..], read.error().map(|_| open));
    made
}

fn colour(token: &Token) -> Option<&'static str> {
    match token {
        Token::Word(word) if word.quote_style.is_none() => {
            keywords::is_keyword(&word.value.to_uppercase()).then_some(KEYWORD)
        }
        Token::Number(..) => Some(NUMBER),
        Token::Whitespace(
            Whitespace::SingleLineComment { .. } | Whitespace::MultiLineComment(_),
        ) => Some(COMMENT),
        Token::SingleQuotedString(_)
        | Token::EscapedStringLiteral(_)
        | Token::NationalStringLiteral(_)
        | Token::HexStringLiteral(_)
        | Token::DollarQuotedString(_)
        | Token::TripleSingleQuotedString(_)
        | Token::UnicodeStringLiteral(_) => Some(STRING),
        _ => None,
    }
}

/// Adds a part in its colour; each line by itself, since the editor may begin to draw at any.
fn paint(made: &mut String, part: &str, colour: Option<&str>) {
    let Some(colour) = colour.filter(|_| !part.is_empty()) else { return made.push_str(part) };
    for (number, line) in part.split('\n').enumerate() {
        if number > 0 {
            made.push('\n');
        }
        if !line.is_empty() {
            made.push_str(&format!("\x1b[{colour}m{line}\x1b[0m"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Colours as letters before brackets.
    fn shown(text: &str) -> String {
        let coloured = coloured(text);
        let names = [(KEYWORD, "k"), (STRING, "s"), (NUMBER, "n"), (COMMENT, "c"), (COMMAND, "d")];
        let named = names.iter().fold(coloured.clone(), |text, (colour, name)| {
            text.replace(&format!("\x1b[{colour}m"), &format!("{name}["))
        });
        // What it says is what was typed.
        let mut plain = named.clone();
        names.iter().for_each(|(_, name)| plain = plain.replace(&format!("{name}["), ""));
        assert_eq!(plain.replace("\x1b[0m", ""), text);
        named.replace("\x1b[0m", "]")
    }

    #[test]
    fn tokens_have_colours() {
        assert_eq!(shown("SELECT a1, 12 FROM t;"), "k[SELECT] a1, n[12] k[FROM] t;");
        assert_eq!(
            shown("select 'é', \"From\" -- x\n+ 1"),
            "k[select] s['é'], \"From\" c[-- x]\n+ n[1]"
        );
        assert_eq!(shown("/* a\nb */ 1e3"), "c[/* a]\nc[b */] n[1e3]");
    }

    #[test]
    fn what_is_not_closed_yet_has_its_colour() {
        assert_eq!(shown("SELECT 'a b\nc"), "k[SELECT] s['a b]\ns[c]");
        assert_eq!(shown("1 /* a"), "n[1] c[/* a]");
        assert_eq!(shown(""), "");
    }

    #[test]
    fn commands_that_there_are_have_a_colour() {
        assert_eq!(shown(" .timer on"), " d[.timer] on");
        assert_eq!(shown(".tmer 'on'"), ".tmer 'on'");
    }
}
