//! A text of SQL and its tokens.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::tokenizer::{
    Location, Token, TokenWithSpan, Tokenizer, TokenizerError,
};

/// A text of SQL, and its tokens once something asks for them.
///
/// A part of a larger text, as one statement of a script, keeps its places in that one, so that
/// errors point into what the user wrote.
///
/// ```
/// use warpframe::sql::Text;
/// let script = Text::from("SELECT 1; SELECT ';'\n");
/// let statements: Vec<String> =
///     script.statements().iter().map(|statement| statement.as_str().to_string()).collect();
/// assert_eq!(statements, ["SELECT 1", "SELECT ';'"]);
/// ```
#[derive(Debug, Clone)]
pub struct Text<'a> {
    text: Cow<'a, str>,
    tokens: OnceLock<TextTokens>,
}

#[derive(Debug, Clone)]
struct TextTokens {
    all: Vec<TokenWithSpan>,
    broken: Option<Arc<TokenizerError>>,
}

impl<'a, T: AsRef<str> + ?Sized> From<&'a T> for Text<'a> {
    fn from(text: &'a T) -> Self {
        Text { text: Cow::Borrowed(text.as_ref()), tokens: OnceLock::new() }
    }
}

impl From<String> for Text<'_> {
    fn from(text: String) -> Self {
        Text { text: Cow::Owned(text), tokens: OnceLock::new() }
    }
}

impl<'a> Text<'a> {
    /// The text with these tokens.
    pub(crate) fn of_tokens(text: &'a str, all: Vec<TokenWithSpan>) -> Text<'a> {
        Text { text: Cow::Borrowed(text), tokens: TextTokens { all, broken: None }.into() }
    }

    /// The text as it is written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    fn read(&self) -> &TextTokens {
        self.tokens.get_or_init(|| {
            let mut all = vec![];
            let broken = Tokenizer::new(&GenericDialect {}, &self.text)
                .tokenize_with_location_into_buf(&mut all)
                .err()
                .map(Arc::new);
            TextTokens { all, broken }
        })
    }

    /// All tokens with blanks and comments, up to the first that breaks off.
    pub fn tokens(&self) -> &[TokenWithSpan] {
        &self.read().all
    }

    /// Why the tokens break off, as at a string that is not closed.
    pub fn error(&self) -> Option<&TokenizerError> {
        self.read().broken.as_deref()
    }

    /// The tokens that say something: neither blanks nor comments.
    pub fn words(&self) -> impl DoubleEndedIterator<Item = &TokenWithSpan> {
        self.tokens().iter().filter(|token| !is_blank(token))
    }

    /// The words of the first statement.
    pub(super) fn statement(&self) -> Vec<&TokenWithSpan> {
        self.words().take_while(|token| token.token != Token::SemiColon).collect()
    }

    /// Where the first word stands; the begin where there is none.
    pub fn start(&self) -> Location {
        self.words().next().map_or(Location::new(1, 1), |first| first.span.start)
    }

    /// The statements of the text, in order, without the semicolons behind them; empty ones are
    /// left out. Where the tokens break off, the statement that does is the last.
    pub fn statements(&self) -> Vec<Text<'_>> {
        let mut statements = vec![];
        let mut offsets = Offsets::of(self);
        let mut first = 0;
        let tokens = self.tokens();
        for (at, token) in tokens.iter().enumerate() {
            if token.token == Token::SemiColon {
                statements.extend(self.part(first, at, &mut offsets));
                first = at + 1;
            }
        }
        let last = self.part(first, tokens.len(), &mut offsets);
        match (self.error(), last) {
            (None, last) => statements.extend(last),
            (Some(_), last) => {
                let all = last.map_or_else(Vec::new, |last| last.tokens().to_vec());
                let text = Cow::Borrowed("");
                let broken = self.read().broken.clone();
                statements.push(Text { text, tokens: TextTokens { all, broken }.into() });
            }
        }
        statements
    }

    /// The text of tokens from `first` to before `end`; `None` where they say nothing.
    fn part(&self, first: usize, end: usize, offsets: &mut Offsets<'_>) -> Option<Text<'_>> {
        let says = |token: &TokenWithSpan| !is_blank(token);
        let begin = (first..end).find(|at| says(&self.tokens()[*at]))?;
        let end = (begin..end).rfind(|at| says(&self.tokens()[*at]))? + 1;
        let all = &self.tokens()[begin..end];
        let from = offsets.at(all[0].span.start);
        let to = offsets.at(all[all.len() - 1].span.end);
        let tokens = TextTokens { all: all.to_vec(), broken: None };
        Some(Text { text: Cow::Borrowed(&self.text[from..to]), tokens: tokens.into() })
    }

    /// The text from its `from`th word to before its `to`th, at its place.
    pub fn between(&self, from: usize, to: usize) -> Text<'_> {
        let places: Vec<usize> =
            (0..self.tokens().len()).filter(|at| !is_blank(&self.tokens()[*at])).collect();
        let end = |at: usize| places.get(at).copied().unwrap_or(self.tokens().len());
        let nothing = || Text::from("");
        self.part(end(from), end(to), &mut Offsets::of(self)).unwrap_or_else(nothing)
    }

    /// The text behind its first words.
    pub fn behind(&self, words: usize) -> Text<'_> {
        self.between(words, usize::MAX)
    }

    /// The text with words before it, which stand where it begins.
    pub fn after(&self, words: &str) -> Text<'static> {
        let here = self.start();
        let before = Text::from(words);
        let mut all: Vec<_> = before.words().cloned().collect();
        for token in &mut all {
            (token.span.start, token.span.end) = (here, here);
        }
        let tokens = TextTokens { all, broken: None };
        let text = Cow::Borrowed(words);
        Text { text, tokens: tokens.into() }.followed_by(self)
    }

    /// This text and another behind it.
    pub fn followed_by(&self, next: &Text<'_>) -> Text<'static> {
        let all = self.words().chain(next.words()).cloned().collect();
        let tokens = TextTokens { all, broken: next.read().broken.clone() };
        let text = Cow::Owned(format!("{} {}", self.text, next.text));
        Text { text, tokens: tokens.into() }
    }

    /// The first words, in upper case, up to one that is in quotes or no word.
    pub fn first_words(&self, number: usize) -> Vec<String> {
        let words = self.words().map_while(|token| match &token.token {
            Token::Word(word) if word.quote_style.is_none() => Some(word.value.to_uppercase()),
            _ => None,
        });
        words.take(number).collect()
    }

    /// Line and column of the only place where `name` stands as an identifier or in single quotes,
    /// or `None` if there are several or none.
    pub(crate) fn place_of(&self, name: &str) -> Option<(u64, u64)> {
        let is_it = |token: &&TokenWithSpan| match &token.token {
            Token::Word(word) => {
                word.value == name
                    || word.quote_style.is_none() && word.value.to_lowercase() == name
            }
            Token::SingleQuotedString(text) => text == name,
            _ => false,
        };
        let mut places = self.tokens().iter().filter(is_it).map(|token| token.span.start);
        let first = places.next()?;
        places.next().is_none().then_some((first.line, first.column))
    }

    /// Where the text ends.
    pub fn end(&self) -> (u64, u64) {
        let end = self.words().next_back().map_or(Location::new(1, 1), |last| last.span.end);
        (end.line, end.column)
    }
}

/// Whether a token says nothing: a blank, a comment, the end.
pub(crate) fn is_blank(token: &TokenWithSpan) -> bool {
    matches!(token.token, Token::Whitespace(_) | Token::EOF)
}

/// Whether a token is this word, without quotes.
pub(crate) fn is_word(token: &TokenWithSpan, wanted: &str) -> bool {
    matches!(&token.token,
        Token::Word(word) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(wanted))
}

/// Byte offsets of places, which must be asked for in rising order.
#[derive(Debug)]
pub struct Offsets<'a> {
    text: &'a str,
    offset: usize,
    place: Location,
}

impl<'a> Offsets<'a> {
    /// Of the places of a text's tokens.
    pub fn of(text: &'a Text<'_>) -> Self {
        // A part of a text begins with its first token, at that one's place.
        let place = match text.tokens().first() {
            Some(first) if !is_blank(first) => first.span.start,
            _ => Location::new(1, 1),
        };
        Offsets { text: text.as_str(), offset: 0, place }
    }

    /// The offset of a place.
    pub fn at(&mut self, place: Location) -> usize {
        for c in self.text[self.offset..].chars() {
            if (self.place.line, self.place.column) >= (place.line, place.column) {
                break;
            }
            self.offset += c.len_utf8();
            if c == '\n' {
                self.place = Location::new(self.place.line + 1, 1);
            } else {
                self.place.column += 1;
            }
        }
        self.offset
    }
}
