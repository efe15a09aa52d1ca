//! Walks the words of a text.

use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use super::text::{Text, is_word};
use crate::error::{Error, ErrorKind, Result};

/// A name, folded as SQL does: as written within quotes, otherwise in lower case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name {
    /// The folded name.
    pub text: String,
    /// The line and the column where it stands, both from 1 on.
    pub place: (u64, u64),
}

/// The words of a text, from one on.
pub(super) struct WordReader<'t> {
    pub(super) text: &'t Text<'t>,
    words: Vec<&'t TokenWithSpan>,
    pub(super) at: usize,
}

impl<'t> WordReader<'t> {
    pub(super) fn of(text: &'t Text<'t>) -> WordReader<'t> {
        WordReader { text, words: text.words().collect(), at: 0 }
    }

    pub(super) fn token(&self) -> Option<&'t Token> {
        self.words.get(self.at).map(|word| &word.token)
    }

    /// How many words the text has.
    pub(super) fn count(&self) -> usize {
        self.words.len()
    }

    pub(super) fn place(&self) -> (u64, u64) {
        let place = match (self.words.get(self.at), self.words.last()) {
            (Some(next), _) => next.span.start,
            (None, Some(last)) => last.span.end,
            (None, None) => self.text.start(),
        };
        (place.line, place.column)
    }

    pub(super) fn is_word(&self, ahead: usize, word: &str) -> bool {
        self.words.get(self.at + ahead).is_some_and(|token| is_word(token, word))
    }

    pub(super) fn is_any(&self, words: &[&str]) -> bool {
        words.iter().any(|word| self.is_word(0, word))
    }

    pub(super) fn accept(&mut self, word: &str) -> bool {
        self.accept_all(&[word])
    }

    /// Passes these words if all of them follow.
    pub(super) fn accept_all(&mut self, words: &[&str]) -> bool {
        let follow = words.iter().enumerate().all(|(ahead, word)| self.is_word(ahead, word));
        self.at += if follow { words.len() } else { 0 };
        follow
    }

    pub(super) fn accept_token(&mut self, token: &Token) -> bool {
        let follows = self.token() == Some(token);
        self.at += usize::from(follows);
        follows
    }

    pub(super) fn expected(&self, what: &str) -> Error {
        let found = match self.token() {
            Some(token) => token.to_string(),
            None => "the end of the statement".into(),
        };
        let (line, column) = self.place();
        let message = format!("expected {what}, found {found}");
        ErrorKind::Parse { path: None, line, column, message }.into()
    }

    pub(super) fn wrong(&self, message: impl Into<String>, place: (u64, u64)) -> Error {
        ErrorKind::Plan { message: message.into(), location: Some(place) }.into()
    }

    pub(super) fn end(&self) -> Result<()> {
        match self.token() {
            None => Ok(()),
            Some(_) => Err(self.expected("the end of the statement")),
        }
    }

    /// A name of one part.
    pub(super) fn name(&mut self, what: &str) -> Result<Name> {
        let place = self.place();
        let text = match self.token() {
            Some(Token::Word(word)) if word.quote_style.is_some() => word.value.clone(),
            Some(Token::Word(word)) => word.value.to_lowercase(),
            _ => return Err(self.expected(what)),
        };
        self.at += 1;
        Ok(Name { text, place })
    }

    /// A name whose parts have dots between them.
    pub(super) fn dotted(&mut self, what: &str, rest: &str) -> Result<Name> {
        let mut name = self.name(what)?;
        while self.accept_token(&Token::Period) {
            name.text = format!("{}.{}", name.text, self.name(rest)?.text);
        }
        Ok(name)
    }

    /// A word, or a text in its place, in lower case.
    pub(super) fn name_or_text(&mut self, what: &str) -> Result<Name> {
        match self.token() {
            Some(Token::SingleQuotedString(text)) => {
                let name = Name { text: text.to_lowercase(), place: self.place() };
                self.at += 1;
                Ok(name)
            }
            _ => self.name(what),
        }
    }

    /// A path in single quotes.
    pub(super) fn path(&mut self, what: &str) -> Result<Name> {
        let place = self.place();
        let Some(Token::SingleQuotedString(text)) = self.token() else {
            return Err(self.expected(what));
        };
        self.at += 1;
        Ok(Name { text: text.clone(), place })
    }

    /// Whether a query begins here.
    pub(super) fn at_query(&self) -> bool {
        self.is_any(&["SELECT", "WITH", "VALUES", "FROM", "PIVOT", "UNPIVOT"])
            || self.token() == Some(&Token::LParen)
    }

    /// The text from here to its end.
    pub(super) fn rest(&mut self, what: &str) -> Result<Text<'t>> {
        if self.token().is_none() {
            return Err(self.expected(what));
        }
        let from = std::mem::replace(&mut self.at, self.words.len());
        Ok(self.text.behind(from))
    }

    /// Passes a group in parentheses, of which the first was passed.
    pub(super) fn group(&mut self) -> Result<()> {
        let mut depth = 1;
        while depth > 0 {
            match self.token() {
                Some(Token::LParen) => depth += 1,
                Some(Token::RParen) => depth -= 1,
                Some(_) => {}
                None => return Err(self.expected(")")),
            }
            self.at += 1;
        }
        Ok(())
    }
}
