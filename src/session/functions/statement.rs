//! `CREATE FUNCTION … LANGUAGE CUDA`, read token by token: the parser of SQL takes a part of it
//! only, and the planner drops what it does not know.

use datafusion::arrow::datatypes::DataType;
use datafusion::execution::session_state::SessionState;
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::{Location, Token, TokenWithSpan};

use crate::error::{Error, ErrorKind, Result};
use crate::session::types::data_type;
use crate::sql::Text;
use crate::sql::ast::{Place, folded, known};
use crate::user_code::{AggregateFunction, BODIES, Body, ScalarFunction};

/// A function as a statement has it.
pub(super) struct Create {
    pub(super) function: Created,
    pub(super) name: String,
    /// Of the name.
    pub(super) place: Place,
    pub(super) or_replace: bool,
    pub(super) if_not_exists: bool,
}

/// What a statement makes.
pub(super) enum Created {
    Scalar(ScalarFunction),
    Aggregate(AggregateFunction),
}

impl Create {
    /// Reads a statement.
    ///
    /// # Errors
    /// [`ErrorKind::Parse`] of another statement, at its place; languages that are not CUDA.
    pub(super) fn of(state: &SessionState, text: &Text<'_>) -> Result<Create> {
        if let Some(error) = text.error() {
            return Err(wrong(error.message.clone(), error.location));
        }
        let end = text.words().next_back().map_or(Location::new(1, 1), |last| last.span.end);
        let tokens = text.tokens().to_vec();
        let parser = Parser::new(&GenericDialect {}).with_tokens_with_locations(tokens);
        StatementReader { parser, state, end }.create()
    }
}

struct StatementReader<'a> {
    parser: Parser<'a>,
    state: &'a SessionState,
    /// Behind the last token.
    end: Location,
}

fn wrong(message: String, at: Location) -> Error {
    ErrorKind::Parse { path: None, line: at.line, column: at.column, message }.into()
}

impl<'a> StatementReader<'a> {
    fn create(mut self) -> Result<Create> {
        self.expect("CREATE")?;
        let or_replace = self.accept_all(&["OR", "REPLACE"]);
        let is_aggregate = self.accept("AGGREGATE");
        if !is_aggregate {
            self.expect("FUNCTION")?;
        }
        let if_not_exists = self.accept_all(&["IF", "NOT", "EXISTS"]);
        if or_replace && if_not_exists {
            return Err(self.expected("a name (OR REPLACE and IF NOT EXISTS exclude each other)"));
        }
        let at = self.parser.peek_token_ref().span.start;
        let name = folded(&self.parsed(Parser::parse_identifier)?);
        self.token(&Token::LParen, "( and the arguments")?;
        let inputs = self.columns()?;
        self.expect("RETURNS")?;
        let output = self.data_type()?;
        if is_aggregate {
            let function =
                Created::Aggregate(self.aggregate(AggregateFunction::new(&name, inputs, output))?);
            return Ok(Create { function, name, place: known(at), or_replace, if_not_exists });
        }
        let (mut language, mut body, mut volatile, mut called_on_null) = (None, None, None, None);
        loop {
            let place = self.parser.peek_token_ref().span.start;
            let again = match () {
                () if self.accept("LANGUAGE") => {
                    let of = self.parsed(Parser::parse_identifier)?;
                    language.replace((of.value.to_uppercase(), place)).is_some()
                }
                () if self.accept("AS") => body.replace(self.body()?).is_some(),
                () if self.accept("IMMUTABLE") => volatile.replace(false).is_some(),
                () if self.accept("VOLATILE") => volatile.replace(true).is_some(),
                () if self.accept("STRICT") => called_on_null.replace(false).is_some(),
                () if self.accept_all(&["RETURNS", "NULL", "ON", "NULL", "INPUT"]) => {
                    called_on_null.replace(false).is_some()
                }
                () if self.accept_all(&["CALLED", "ON", "NULL", "INPUT"]) => {
                    called_on_null.replace(true).is_some()
                }
                () => break,
            };
            if again {
                return Err(wrong("CREATE FUNCTION: this was said before".into(), place));
            }
        }
        let is_over = matches!(self.parser.peek_token_ref().token, Token::EOF | Token::SemiColon);
        match (language, body) {
            _ if !is_over => Err(self.expected(
                "IMMUTABLE, VOLATILE, STRICT, CALLED ON NULL INPUT, LANGUAGE CUDA, AS $$ body $$ or the end",
            )),
            (Some((language, _)), Some((text, line, column))) if language == "CUDA" => {
                let mut function = ScalarFunction::new(&name, inputs, output, text).placed(line, column);
                if volatile == Some(true) {
                    function = function.volatile();
                }
                if called_on_null == Some(true) {
                    function = function.called_on_null();
                }
                let function = Created::Scalar(function);
                Ok(Create { function, name, place: known(at), or_replace, if_not_exists })
            }
            (Some((language, place)), Some(_)) => {
                let error = Error::unsupported(format!("CREATE FUNCTION in {language}"), "LANGUAGE CUDA is known");
                Err(error.at(known(place)))
            }
            (None, _) => Err(self.expected("LANGUAGE CUDA")),
            (_, None) => Err(self.expected("AS $$ body $$")),
        }
    }

    /// `LANGUAGE CUDA (STATE (field type, …), IDENTITY $$…$$, MAP $$…$$, COMBINE $$…$$, FINISH
    /// $$…$$ [, ORDERED])`.
    fn aggregate(&mut self, mut function: AggregateFunction) -> Result<AggregateFunction> {
        self.expect("LANGUAGE")?;
        let place = self.parser.peek_token_ref().span.start;
        let language = self.parsed(Parser::parse_identifier)?.value.to_uppercase();
        if language != "CUDA" {
            let error = Error::unsupported(
                format!("CREATE AGGREGATE in {language}"),
                "LANGUAGE CUDA is known",
            );
            return Err(error.at(known(place)));
        }
        self.token(&Token::LParen, "( and STATE, IDENTITY, MAP, COMBINE and FINISH")?;
        let mut said: Vec<&str> = vec![];
        loop {
            let place = self.parser.peek_token_ref().span.start;
            let words = ["STATE", "ORDERED"].into_iter().chain(BODIES);
            let Some(word) = words.into_iter().find(|word| self.accept(word)) else {
                return Err(self.expected("STATE, IDENTITY, MAP, COMBINE, FINISH or ORDERED"));
            };
            if said.contains(&word) {
                return Err(wrong(format!("CREATE AGGREGATE: {word} was said before"), place));
            }
            said.push(word);
            function = match BODIES.iter().position(|body| *body == word) {
                Some(which) => {
                    let (text, line, column) = self.body()?;
                    function.with(which, Body::new(text, Some((line, column))))
                }
                None if word == "ORDERED" => function.ordered(),
                None => {
                    self.token(&Token::LParen, "( and the fields of the state")?;
                    function.state(self.columns()?)
                }
            };
            if !self.accept_token(&Token::Comma) {
                break;
            }
        }
        self.token(&Token::RParen, ", or )")?;
        match self.parser.peek_token_ref().token {
            Token::EOF | Token::SemiColon => Ok(function),
            _ => Err(self.expected("the end of the statement")),
        }
    }

    /// Names with types up to the closing parenthesis.
    fn columns(&mut self) -> Result<Vec<(String, DataType)>> {
        let mut columns = vec![];
        if self.accept_token(&Token::RParen) {
            return Ok(columns);
        }
        loop {
            let name = folded(&self.parsed(Parser::parse_identifier)?);
            columns.push((name, self.data_type()?));
            if self.accept_token(&Token::RParen) {
                return Ok(columns);
            }
            self.token(&Token::Comma, ", or )")?;
        }
    }

    fn data_type(&mut self) -> Result<DataType> {
        let at = self.parser.peek_token_ref().span.start;
        let of = self.parsed(Parser::parse_data_type)?;
        data_type(self.state, of).map_err(|message| wrong(message, at))
    }

    /// A body's text, and the line and column where it begins.
    fn body(&mut self) -> Result<(String, u64, u64)> {
        let TokenWithSpan { token, span } = self.parser.peek_token_ref().clone();
        let (text, before) = match token {
            Token::DollarQuotedString(quoted) => {
                let tag = quoted.tag.as_ref().map_or(0, |tag| tag.chars().count());
                (quoted.value, tag as u64 + 2)
            }
            Token::SingleQuotedString(text) => (text, 1),
            _ => return Err(self.expected("$$ body $$")),
        };
        self.parser.advance_token();
        Ok((text, span.start.line, span.start.column + before))
    }

    fn parsed<T>(
        &mut self,
        parse: impl FnOnce(&mut Parser<'a>) -> Result<T, ParserError>,
    ) -> Result<T> {
        let at = self.parser.peek_token_ref().span.start;
        parse(&mut self.parser).map_err(|error| {
            let (ParserError::ParserError(text) | ParserError::TokenizerError(text)) = error else {
                return wrong(error.to_string(), at);
            };
            let message = text.split(" at Line: ").next().unwrap_or_default();
            wrong(
                format!("CREATE FUNCTION: {}", message.replacen("Expected: ", "expected ", 1)),
                at,
            )
        })
    }

    fn accept(&mut self, word: &str) -> bool {
        self.accept_all(&[word])
    }

    /// Passes these words if all of them follow.
    fn accept_all(&mut self, words: &[&str]) -> bool {
        let follow = words.iter().enumerate().all(|(ahead, wanted)| {
            matches!(&self.parser.peek_nth_token_ref(ahead).token,
                Token::Word(word) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(wanted))
        });
        if follow {
            words.iter().for_each(|_| self.parser.advance_token());
        }
        follow
    }

    fn accept_token(&mut self, token: &Token) -> bool {
        self.parser.consume_token(token)
    }

    fn token(&mut self, token: &Token, what: &str) -> Result<()> {
        if self.accept_token(token) { Ok(()) } else { Err(self.expected(what)) }
    }

    fn expect(&mut self, word: &str) -> Result<()> {
        if self.accept(word) { Ok(()) } else { Err(self.expected(word)) }
    }

    fn expected(&self, what: &str) -> Error {
        let found = self.parser.peek_token_ref();
        let shown = match &found.token {
            Token::EOF => "the end of the statement".into(),
            token => token.to_string(),
        };
        let at = if found.token == Token::EOF { self.end } else { found.span.start };
        wrong(format!("CREATE FUNCTION: expected {what}, found {shown}"), at)
    }
}
