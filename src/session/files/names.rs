//! Where a statement names files, and what of.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use datafusion::common::TableReference;
use datafusion::execution::session_state::SessionState;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, FunctionArg, FunctionArgExpr, Ident, ObjectName, Spanned, Statement,
    TableAlias, TableFactor, TableFunctionArgs, UnaryOperator, Value, Visit, VisitMut, Visitor,
    VisitorMut,
};
use datafusion::sql::sqlparser::tokenizer::Location;

use super::options::{self, Given, OptionValue};
use super::{NamedFiles, SCHEMA};
use crate::error::{Error, ErrorKind, Result};
use crate::io::{AboutFiles, CsvOptions, FileKind, Format, SourceTable, refuse_address};
use crate::query::Core;
use crate::sql::ast::{Place, known};

/// Opens the files that a statement names, and puts the names of their tables in the place of
/// theirs. The tables stay as long as they are held. The parser does not keep the places of names
/// in single quotes: `place_of` finds them in the text.
///
/// # Errors
/// Options and paths that are none, files that cannot be read, at their places.
pub(in crate::session) async fn opened(
    files: &NamedFiles,
    core: &Core,
    statement: &mut Statement,
    place_of: &(dyn Fn(&str) -> Place + Sync),
) -> Result<Vec<Arc<SourceTable>>> {
    let wanted = wanted(files, core, statement, place_of)?;
    if wanted.is_empty() {
        return Ok(vec![]);
    }
    files.forget();
    let (mut names, mut tables) = (vec![], vec![]);
    for FilesAt { factor, paths, format, place } in wanted {
        let opened = files.open(core, &paths, &format).await;
        let (name, table) = opened.map_err(|error| error.at(place))?;
        names.push(TableAt { factor, name, paths });
        tables.push(table);
    }
    let ControlFlow::Continue(()) =
        VisitMut::visit(statement, &mut TableNamer { at: 0, tables: names.into_iter().peekable() });
    Ok(tables)
}

/// Files that a statement names.
struct FilesAt {
    /// Tables of the statement before this one.
    factor: usize,
    paths: Vec<PathBuf>,
    format: Format,
    place: Place,
}

/// The table that such files are.
struct TableAt {
    factor: usize,
    name: String,
    paths: Vec<PathBuf>,
}

fn wanted(
    files: &NamedFiles,
    core: &Core,
    statement: &Statement,
    place_of: &dyn Fn(&str) -> Place,
) -> Result<Vec<FilesAt>> {
    let state = core.state();
    let is_table =
        |name: &str| core.context.table_exist(TableReference::bare(name)).unwrap_or(false);
    let mut finder =
        Finder { files, state: &state, is_table: &is_table, place_of, at: 0, found: vec![] };
    match Visit::visit(statement, &mut finder) {
        ControlFlow::Continue(()) => Ok(finder.found),
        ControlFlow::Break(error) => Err(error),
    }
}

/// Collects files; breaks off at those that are none.
struct Finder<'a> {
    files: &'a NamedFiles,
    state: &'a SessionState,
    is_table: &'a dyn Fn(&str) -> bool,
    place_of: &'a dyn Fn(&str) -> Place,
    /// Tables that were seen.
    at: usize,
    found: Vec<FilesAt>,
}

impl Visitor for Finder<'_> {
    type Break = Error;

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<Error> {
        let at = self.at;
        self.at += 1;
        let TableFactor::Table { name, args, .. } = factor else {
            return ControlFlow::Continue(());
        };
        let [part] = &name.0[..] else { return ControlFlow::Continue(()) };
        let Some(ident) = part.as_ident() else { return ControlFlow::Continue(()) };
        let found = match args {
            None => self.quoted(ident),
            Some(args) => self.called(ident, args),
        };
        match found {
            Ok(Some((paths, format, place))) => {
                self.found.push(FilesAt { factor: at, paths, format, place });
                ControlFlow::Continue(())
            }
            Ok(None) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(error),
        }
    }
}

/// Paths, what their files hold, and where they stand.
type Found = Option<(Vec<PathBuf>, Format, Place)>;

impl Finder<'_> {
    /// `FROM 'path'`.
    fn quoted(&self, ident: &Ident) -> Result<Found> {
        if ident.quote_style != Some('\'') || (self.is_table)(&ident.value) {
            return Ok(None);
        }
        let (path, place) = (&ident.value, (self.place_of)(&ident.value));
        // Before anything tells whether there is such a file.
        self.files.allow(format!("the file {path:?}")).map_err(|error| error.at(place))?;
        refuse_address(Path::new(path)).map_err(|error| error.at(place))?;
        let format = match FileKind::of(path) {
            Some(kind) => Format::of(kind),
            None if path.contains(['/', '.', '*']) || Path::new(path).exists() => {
                if Path::new(path).is_dir() {
                    let message = format!(
                        "{path:?} is a directory that is no table: files of one kind, known by their extensions, make one"
                    );
                    return Err(ErrorKind::Plan { message, location: place }.into());
                }
                let message = format!(
                    "{path:?} is not a kind of file that is known by its extension (.parquet, .csv, .tsv, .psv, .txt, .json, .ndjson, .arrow, .feather): \
                     read_csv('…') and read_parquet('…') read files of any name"
                );
                return Err(ErrorKind::Plan { message, location: place }.into());
            }
            // The planner says which tables there are.
            None => return Ok(None),
        };
        Ok(Some((vec![path.into()], format, place)))
    }

    /// `FROM read_csv('path', …)`, `FROM read_csv(['path', 'path'], …)`.
    fn called(&self, ident: &Ident, args: &TableFunctionArgs) -> Result<Found> {
        let function = ident.value.to_lowercase();
        if AboutFiles::of(&function).is_some() {
            // Before anything tells whether there are such files. `relations` plans it.
            let place = known(ident.span.start);
            return self.files.allow(&function).map(|()| None).map_err(|error| error.at(place));
        }
        let kind = match function.as_str() {
            "read_csv" | "read_csv_auto" => FileKind::Csv,
            "read_parquet" => FileKind::Parquet,
            "read_json"
            | "read_json_auto"
            | "read_ndjson"
            | "read_ndjson_auto"
            | "read_json_objects"
            | "read_json_objects_auto"
            | "read_ndjson_objects" => FileKind::Json,
            "read_arrow" | "read_ipc" | "read_feather" => FileKind::Arrow,
            _ => return Ok(None),
        };
        let place = known(ident.span.start);
        self.files.allow(&function).map_err(|error| error.at(place))?;
        if args.settings.is_some() {
            return Ok(None);
        }
        let PathArguments { paths, options: given, place } =
            path_arguments(&function, ident, &args.args)?;
        let format = match kind {
            FileKind::Csv => Format::Csv(Box::new(options::csv(self.state, &function, &given)?)),
            FileKind::Parquet => Format::Parquet(options::parquet(self.state, &function, &given)?),
            FileKind::Json => Format::Json(options::json(self.state, &function, &given)?),
            FileKind::Arrow => Format::Arrow(options::ipc(self.state, &function, &given)?),
        };
        Ok(Some((paths, format, place)))
    }
}

/// What a function of files is given.
pub(in crate::session) struct PathArguments {
    /// At least one.
    pub(in crate::session) paths: Vec<PathBuf>,
    pub(super) options: Vec<Given>,
    /// Where the paths stand.
    pub(in crate::session) place: Place,
}

/// The arguments of a function of files: `('path', name => value)`, `(['path', 'path'])`.
///
/// # Errors
/// What is no path, no literal or no option, at its place.
pub(in crate::session) fn path_arguments(
    function: &str,
    ident: &Ident,
    args: &[FunctionArg],
) -> Result<PathArguments> {
    const EXPECTED: &str =
        "expected a file's path in single quotes, or a list of them ['…', '…'], first";
    let wrong = |message: String, place: Location| {
        let location = known(place).or(known(ident.span.start));
        Error::from(ErrorKind::Plan { message: format!("{function}: {message}"), location })
    };
    let Some((first, others)) = args.split_first() else {
        return Err(wrong(EXPECTED.into(), ident.span.start));
    };
    let (paths, place) = match first {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => {
            let paths = match value(expr) {
                Some(OptionValue::Text(path)) => vec![path.into()],
                Some(OptionValue::List(paths)) if paths.is_empty() => {
                    return Err(wrong("the list of files is empty".into(), expr.span().start));
                }
                Some(OptionValue::List(paths)) => paths.into_iter().map(PathBuf::from).collect(),
                _ => return Err(wrong(format!("{EXPECTED}; found {expr}"), expr.span().start)),
            };
            (paths, expr.span().start)
        }
        other => return Err(wrong(format!("{EXPECTED}; found {other}"), other.span().start)),
    };
    let place = known(place).or(known(ident.span.start));
    let given =
        others.iter().map(|arg| given(arg).map_err(|message| wrong(message, arg.span().start)));
    Ok(PathArguments { paths, options: given.collect::<Result<Vec<Given>>>()?, place })
}

impl PathArguments {
    /// The options as those of CSV files.
    ///
    /// # Errors
    /// Options that are none, values that are not theirs.
    pub(in crate::session) fn csv(
        &self,
        state: &SessionState,
        function: &str,
    ) -> Result<CsvOptions> {
        options::csv(state, function, &self.options)
    }

    /// # Errors
    /// Any option, at its place.
    pub(in crate::session) fn without_options(&self, function: &str) -> Result<()> {
        match self.options.first() {
            None => Ok(()),
            Some(option) => {
                let message = format!("{function}: no option named {:?}: it has none", option.name);
                Err(ErrorKind::Plan { message, location: option.place }.into())
            }
        }
    }
}

/// An option `name => value`, `name := value` or `name = value`.
fn given(arg: &FunctionArg) -> Result<Given, String> {
    let expected = || format!("expected an option as name => value, found {arg}");
    let (name, expr) = match arg {
        FunctionArg::Named { name, arg: FunctionArgExpr::Expr(expr), .. } => (name, expr),
        FunctionArg::ExprNamed {
            name: Expr::Identifier(name),
            arg: FunctionArgExpr::Expr(expr),
            ..
        } => (name, expr),
        FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::BinaryOp {
            left,
            op: BinaryOperator::Eq,
            right,
        })) => match left.as_ref() {
            Expr::Identifier(name) => (name, right.as_ref()),
            _ => return Err(expected()),
        },
        _ => return Err(expected()),
    };
    let literal = || format!("the option {name} takes a literal, found {expr}");
    Ok(Given {
        name: name.value.to_lowercase(),
        value: value(expr).ok_or_else(literal)?,
        place: known(name.span.start),
    })
}

/// A literal, or a list or map of such.
fn value(expr: &Expr) -> Option<OptionValue> {
    let text = |expr: &Expr| match value(expr)? {
        OptionValue::Text(text) => Some(text),
        _ => None,
    };
    // A type may stand without quotes.
    let bare = |expr: &Expr| match expr {
        Expr::Identifier(_) | Expr::Function(_) => Some(expr.to_string()),
        _ => None,
    };
    match expr {
        Expr::Nested(inner) => value(inner),
        Expr::Value(literal) => match &literal.value {
            Value::Number(number, _) => Some(OptionValue::Number(number.clone())),
            Value::Boolean(boolean) => Some(OptionValue::Boolean(*boolean)),
            other => other.clone().into_string().map(OptionValue::Text),
        },
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => match value(expr)? {
            OptionValue::Number(number) => Some(OptionValue::Number(format!("-{number}"))),
            _ => None,
        },
        Expr::Array(array) => {
            array.elem.iter().map(text).collect::<Option<_>>().map(OptionValue::List)
        }
        Expr::Dictionary(fields) => {
            let pair = |field: &datafusion::sql::sqlparser::ast::DictionaryField| {
                Some((field.key.value.clone(), text(&field.value).or(bare(&field.value))?))
            };
            fields.iter().map(pair).collect::<Option<_>>().map(OptionValue::Pairs)
        }
        Expr::Map(map) => {
            let pairs = map
                .entries
                .iter()
                .map(|entry| Some((text(&entry.key)?, text(&entry.value).or(bare(&entry.value))?)));
            pairs.collect::<Option<_>>().map(OptionValue::Pairs)
        }
        _ => None,
    }
}

/// Puts the names of tables in the place of files, in the order of the tables of the statement.
struct TableNamer<I: Iterator<Item = TableAt>> {
    at: usize,
    tables: std::iter::Peekable<I>,
}

impl<I: Iterator<Item = TableAt>> VisitorMut for TableNamer<I> {
    type Break = std::convert::Infallible;

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Self::Break> {
        let at = self.at;
        self.at += 1;
        if let TableFactor::Table { name, args, alias, .. } = factor
            && let Some(table) = self.tables.next_if(|table| table.factor == at)
        {
            let span = name.span();
            let quoted = |value: String| Ident { span, ..Ident::with_quote('"', value) };
            // What columns are qualified by where the query gives no other name.
            alias.get_or_insert_with(|| TableAlias {
                explicit: true,
                name: quoted(table.paths.first().map(FileKind::table_name).unwrap_or_default()),
                columns: vec![],
                at: None,
            });
            *name = ObjectName::from(vec![quoted(SCHEMA.into()), quoted(table.name)]);
            *args = None;
        }
        ControlFlow::Continue(())
    }
}
