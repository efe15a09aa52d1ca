//! `COPY`, read.

use datafusion::sql::sqlparser::tokenizer::Token;

use super::reader::{Name, WordReader};
use super::text::Text;
use crate::error::Result;

/// `COPY table|(query) TO 'file' [FORMAT format] [PARTITIONED BY (column, …)] [(option value, …)]`.
#[derive(Debug, Clone)]
pub struct CopyTo<'t> {
    /// The query of the rows.
    pub rows: Text<'t>,
    /// The path of the file.
    pub file: Name,
    /// The format by name, where given.
    pub format: Option<Name>,
    /// How the file is written.
    pub options: Vec<(Name, CopyValue)>,
    /// The columns by whose values rows go to folders.
    pub partition_by: Vec<Name>,
}

/// What an option of `COPY … TO` is given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CopyValue {
    /// A text, a number or a word; `true` of an option that stands alone.
    Text(String),
    /// `(a, b)`, `['a', 'b']` or, of columns, `a`.
    List(Vec<String>),
    /// `{a: 'x', 'b c': 3}`.
    Pairs(Vec<(String, String)>),
    /// `*`.
    All,
}

/// `COPY table FROM 'file' [FORMAT format] [(option value, …)]`.
#[derive(Debug, Clone)]
pub struct CopyFrom {
    /// Which table gets the rows.
    pub table: Name,
    /// The path of the file.
    pub file: Name,
    /// The format by name, where given.
    pub format: Option<Name>,
    /// How the file is read.
    pub options: Vec<(Name, String)>,
}

/// One of both.
pub(super) enum CopyKind<'t> {
    To(CopyTo<'t>),
    From(CopyFrom),
}

/// What stands behind a file's name.
#[derive(Debug, Default)]
struct CopyClauses {
    format: Option<Name>,
    options: Vec<(Name, CopyValue)>,
    partition_by: Vec<Name>,
}

/// What follows `COPY`.
pub(super) fn read<'t>(mut reader: WordReader<'t>) -> Result<CopyKind<'t>> {
    let at = reader.at;
    let (mut table, mut listed) = (None, None);
    let rows = if reader.accept_token(&Token::LParen) {
        let from = reader.at;
        reader.group()?;
        if reader.at - 1 == from {
            reader.at = from;
            return Err(reader.expected("a query"));
        }
        reader.text.between(from, reader.at - 1)
    } else {
        let of = "a table's name or a query in parentheses";
        table = Some(reader.dotted(of, "the rest of a table's name")?);
        let named = reader.text.between(at, reader.at);
        listed = (reader.token() == Some(&Token::LParen)).then(|| reader.place());
        match listed {
            Some(_) => columns_of(&mut reader, &named)?,
            None => named.after("FROM"),
        }
    };
    if reader.accept("FROM") {
        if let Some(place) = listed {
            let message = "COPY … FROM puts rows into all columns of a table: \
                           INSERT INTO t (a, b) SELECT … FROM 'file' into some";
            return Err(reader.wrong(message, place));
        }
        let Some(table) = table else {
            let message = "rows are copied into a table, not into a query";
            return Err(reader.wrong(message, reader.place()));
        };
        let file = reader.path(FILE)?;
        let CopyClauses { format, options, partition_by } = clauses(&mut reader)?;
        let text = |(name, value): (Name, CopyValue)| match value {
            CopyValue::Text(text) => Ok((name, text)),
            _ => Err(reader.wrong(format!("the option {} takes one value", name.text), name.place)),
        };
        let options = options.into_iter().map(text).collect::<Result<_>>()?;
        return match partition_by.first() {
            None => Ok(CopyKind::From(CopyFrom { table, file, format, options })),
            Some(column) => {
                let message = "the folders of files tell their partitions: leave PARTITION_BY out";
                Err(reader.wrong(message, column.place))
            }
        };
    }
    if !reader.accept("TO") {
        return Err(reader.expected("TO or FROM"));
    }
    let file = reader.path(FILE)?;
    let CopyClauses { format, options, partition_by } = clauses(&mut reader)?;
    Ok(CopyKind::To(CopyTo { rows, file, format, options, partition_by }))
}

const FILE: &str = "a file's name in single quotes";

/// The query of some columns of a table: `t (a, b)`.
fn columns_of<'t>(reader: &mut WordReader<'t>, table: &Text<'t>) -> Result<Text<'t>> {
    reader.at += 1;
    let from = reader.at;
    loop {
        reader.name("a column's name")?;
        if !reader.accept_token(&Token::Comma) {
            break;
        }
    }
    let columns = reader.text.between(from, reader.at);
    if !reader.accept_token(&Token::RParen) {
        return Err(reader.expected(", or )"));
    }
    Ok(columns.after("SELECT").followed_by(&table.after("FROM")))
}

/// What follows the file's name, up to the end.
fn clauses(reader: &mut WordReader<'_>) -> Result<CopyClauses> {
    let mut clauses = CopyClauses::default();
    if reader.accept_all(&["STORED", "AS"]) {
        clauses.format = Some(reader.name("a format's name")?);
    }
    if reader.accept_all(&["PARTITIONED", "BY"]) || reader.accept_all(&["PARTITION", "BY"]) {
        partition_columns(reader, &mut clauses)?;
    }
    reader.accept("WITH");
    reader.accept("OPTIONS");
    if reader.accept_token(&Token::LParen) {
        loop {
            copy_option(reader, &mut clauses)?;
            if !reader.accept_token(&Token::Comma) {
                break;
            }
        }
        if !reader.accept_token(&Token::RParen) {
            return Err(reader.expected(", or )"));
        }
    } else if reader.is_word(0, "FORMAT") {
        copy_option(reader, &mut clauses)?;
    } else if reader.token().is_some() {
        return Err(reader.expected("FORMAT or options in parentheses"));
    }
    reader.end()?;
    Ok(clauses)
}

/// `(column, …)`, or one column.
fn partition_columns(reader: &mut WordReader<'_>, clauses: &mut CopyClauses) -> Result<()> {
    let several = reader.accept_token(&Token::LParen);
    loop {
        clauses.partition_by.push(reader.name("a column's name")?);
        if !(several && reader.accept_token(&Token::Comma)) {
            break;
        }
    }
    match !several || reader.accept_token(&Token::RParen) {
        true => Ok(()),
        false => Err(reader.expected(", or )")),
    }
}

/// An option of `COPY`, and its value.
fn copy_option(reader: &mut WordReader<'_>, clauses: &mut CopyClauses) -> Result<()> {
    if reader.accept("FORMAT") {
        clauses.format = Some(reader.name_or_text("a format's name")?);
        return Ok(());
    }
    if reader.accept("PARTITION_BY") || reader.accept_all(&["PARTITION", "BY"]) {
        return partition_columns(reader, clauses);
    }
    let mut option = reader.name_or_text("an option's name")?;
    while reader.accept_token(&Token::Period) {
        let rest = reader.name("the rest of an option's name")?;
        option.text = format!("{}.{}", option.text, rest.text);
    }
    reader.accept_token(&Token::Eq);
    let value = match option.text.as_str() {
        "force_quote" => columns(reader)?,
        alone if FLAGS.contains(&alone) && at_end_of_option(reader) => {
            CopyValue::Text("true".into())
        }
        _ => copy_value(reader, &option.text)?,
    };
    clauses.options.push((option, value));
    Ok(())
}

/// Options that may stand without a value.
const FLAGS: [&str; 8] = [
    "header",
    "has_header",
    "array",
    "overwrite",
    "overwrite_or_ignore",
    "append",
    "per_thread_output",
    "write_partition_columns",
];

fn at_end_of_option(reader: &WordReader<'_>) -> bool {
    matches!(reader.token(), None | Some(Token::Comma | Token::RParen))
}

/// `*`, a column, or `(column, …)`.
fn columns(reader: &mut WordReader<'_>) -> Result<CopyValue> {
    if reader.accept_token(&Token::Mul) {
        return Ok(CopyValue::All);
    }
    if reader.token() == Some(&Token::LBracket) {
        return copy_value(reader, "force_quote");
    }
    let mut named = CopyClauses::default();
    partition_columns(reader, &mut named)?;
    Ok(CopyValue::List(named.partition_by.into_iter().map(|name| name.text).collect()))
}

/// A value of an option, or several.
fn copy_value(reader: &mut WordReader<'_>, option: &str) -> Result<CopyValue> {
    let mut texts = vec![];
    let ends = [(Token::LParen, Token::RParen), (Token::LBracket, Token::RBracket)];
    for (begin, end) in ends {
        if reader.accept_token(&begin) {
            loop {
                texts.push(one_value(reader, option)?);
                if !reader.accept_token(&Token::Comma) {
                    break;
                }
            }
            return match reader.accept_token(&end) {
                true => Ok(CopyValue::List(texts)),
                false => Err(reader.expected(&format!(", or {end}"))),
            };
        }
    }
    if !reader.accept_token(&Token::LBrace) {
        return one_value(reader, option).map(CopyValue::Text);
    }
    let mut pairs = vec![];
    while !reader.accept_token(&Token::RBrace) {
        if !pairs.is_empty() && !reader.accept_token(&Token::Comma) {
            return Err(reader.expected(", or }"));
        }
        let key = match reader.token() {
            Some(Token::SingleQuotedString(text)) => text.clone(),
            Some(Token::Word(word)) => word.value.clone(),
            _ => return Err(reader.expected("a key")),
        };
        reader.at += 1;
        if !reader.accept_token(&Token::Colon) {
            return Err(reader.expected(":"));
        }
        pairs.push((key, one_value(reader, option)?));
    }
    Ok(CopyValue::Pairs(pairs))
}

fn one_value(reader: &mut WordReader<'_>, option: &str) -> Result<String> {
    let sign = if reader.accept_token(&Token::Minus) { "-" } else { "" };
    let value = match reader.token() {
        Some(Token::Number(number, _)) => format!("{sign}{number}"),
        Some(Token::SingleQuotedString(text)) if sign.is_empty() => text.clone(),
        Some(Token::Word(word)) if sign.is_empty() => word.value.clone(),
        _ => return Err(reader.expected(&format!("a value of the option {option}"))),
    };
    reader.at += 1;
    Ok(value)
}
