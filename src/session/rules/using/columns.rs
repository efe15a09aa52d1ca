//! `COLUMNS(…)`: an expression once for each of the columns that are meant, as in DuckDB.
//!
//! ```text
//!   SELECT min(COLUMNS('x.*')) FROM t     SELECT min(t.x1) AS x1, min(t.x2) AS x2 FROM t
//!   … WHERE COLUMNS('x.*') > 0            … WHERE t.x1 > 0 AND t.x2 > 0
//!   … ORDER BY COLUMNS('x.*') DESC        … ORDER BY t.x1 DESC, t.x2 DESC
//!   SELECT coalesce(*COLUMNS('x.*'))      SELECT coalesce(t.x1, t.x2)
//! ```
//!
//! What names a pattern or a lambda takes, DataFusion's functions say: their calls of constants are
//! folded.

use std::collections::HashSet;
use std::convert::Infallible;
use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::arrow::array::{Array, AsArray};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::Expr as PlanExpr;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, ExprWithAlias, FunctionArg, FunctionArgExpr, FunctionArguments, Ident,
    LambdaFunction, OrderByExpr, Query, Select, SelectItem, SelectItemQualifiedWildcardKind,
    Spanned, TableFactor, TableWithJoins, Value, Visit, VisitMut, VisitorMut, visit_expressions,
};

use super::binary;
use super::scope::{self, ScopeColumn};
use crate::error::{Error, ErrorKind, Result, known_names};
use crate::session::outside_subqueries::{each_outside, each_outside_mut};
use crate::session::syntax::{SPREAD, is_mark};
use crate::sql::ast::{Place, folded, known};

/// The function that stands for columns.
const NAME: &str = "columns";

/// The arguments of a call that stands for columns; whether these are arguments of what it stands
/// in.
fn arguments(expr: &Expr) -> Option<(&[FunctionArg], bool)> {
    let Expr::Function(function) = expr else { return None };
    let [part] = &function.name.0[..] else { return None };
    let name = part.as_ident()?;
    let FunctionArguments::List(list) = &function.args else { return None };
    match is_mark(name, SPREAD) {
        true => Some((&list.args, true)),
        false => (folded(name) == NAME).then_some((&list.args, false)),
    }
}

pub(super) fn is_call(expr: &Expr) -> bool {
    arguments(expr).is_some()
}

/// Breaks off at such a call, with its place: small, as expressions may be nested deep.
fn at_call(expr: &Expr) -> ControlFlow<Place> {
    match arguments(expr) {
        Some(_) => ControlFlow::Break(known_place(expr)),
        None => ControlFlow::Continue(()),
    }
}

/// Whether an item of a list, or a condition, stands for several.
pub(super) fn stands(of: &impl Visit) -> bool {
    each_outside(of, at_call).is_break()
}

/// Whether a query's own list or condition needs its columns to be known.
pub(in crate::session::rules) fn needs(select: &Select) -> bool {
    insists(select) || changes_names(select) || takes_apart(select)
}

/// Whether `s.*` stands in its list, where no table is called so: it is of a struct.
pub(super) fn takes_apart(select: &Select) -> bool {
    let stars = select.projection.iter().filter_map(|item| match item {
        SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) => {
            match &name.0[..] {
                [part] => part.as_ident().map(folded),
                _ => None,
            }
        }
        _ => None,
    });
    let mut stars = stars.peekable();
    stars.peek().is_some() && {
        let mut called = HashSet::new();
        select.from.iter().for_each(|table| called_tables(table, &mut called));
        stars.any(|star| !called.contains(&star))
    }
}

/// What tables are called.
fn called_tables(table: &TableWithJoins, called: &mut HashSet<String>) {
    let joined = table.joins.iter().map(|join| &join.relation);
    for factor in [&table.relation].into_iter().chain(joined) {
        match factor {
            TableFactor::Table { alias: None, name, .. } => {
                called.extend(name.0.last().and_then(|part| part.as_ident()).map(folded));
            }
            TableFactor::NestedJoin { table_with_joins, alias: None } => {
                called_tables(table_with_joins, called);
            }
            TableFactor::UNNEST { alias: None, .. } => {
                called.insert("unnest".into());
            }
            TableFactor::Table { alias, .. }
            | TableFactor::NestedJoin { alias, .. }
            | TableFactor::UNNEST { alias, .. }
            | TableFactor::Derived { alias, .. }
            | TableFactor::Function { alias, .. }
            | TableFactor::TableFunction { alias, .. }
            | TableFactor::Pivot { alias, .. }
            | TableFactor::Unpivot { alias, .. } => {
                called.extend(alias.as_ref().map(|alias| folded(&alias.name)));
            }
            _ => {}
        }
    }
}

/// Whether `*` has other names or values in a list. The planner takes none of the first, and does
/// not say which of the replaced columns there are not.
pub(super) fn changes_names(select: &Select) -> bool {
    select.projection.iter().any(|item| {
        matches!(item, SelectItem::Wildcard(options) | SelectItem::QualifiedWildcard(_, options)
            if options.opt_rename.is_some() || options.opt_replace.is_some())
    })
}

/// Whether the planner does not take its list or condition as they are.
pub(super) fn insists(select: &Select) -> bool {
    let renames = |item: &SelectItem| {
        matches!(item, SelectItem::Wildcard(options) | SelectItem::QualifiedWildcard(_, options)
            if options.opt_rename.is_some())
    };
    select.projection.iter().any(|item| renames(item) || stands(item)) || stands(&select.selection)
}

/// Refuses such calls in what a statement sets and in its condition: each row has one.
pub(in crate::session) fn refuse_columns(by: &str, of: &impl Visit) -> Result<()> {
    match each_outside(of, at_call) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(at) => {
            let where_ = "COLUMNS(…) stands in select lists, and in their WHERE and ORDER BY";
            Err(wrong_at(format!("{by}: {where_}"), at))
        }
    }
}

/// An error of a call that is left: it stands where it stands for nothing.
pub(super) fn refuse_what_is_left(query: &Query) -> Result<()> {
    match visit_expressions(query, at_call) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(at) => {
            Err(wrong_at("COLUMNS(…) stands in select lists, in WHERE and in ORDER BY", at))
        }
    }
}

/// What such calls may mean: all columns of a query, and those of each of its tables.
#[derive(Clone, Copy)]
pub(super) struct NamedColumns<'a> {
    pub(super) state: &'a SessionState,
    pub(super) all: &'a [ScopeColumn],
    pub(super) of_tables: &'a [ScopeColumn],
}

/// A column that is meant, and what the pattern's groups are in its name.
struct Meant {
    column: ScopeColumn,
    groups: Vec<String>,
}

impl NamedColumns<'_> {
    /// An item of a select list for each column that its calls stand for; the item itself where it
    /// has none.
    pub(super) fn items(&self, item: SelectItem) -> Result<Vec<SelectItem>> {
        let (mut expr, alias) = match item {
            SelectItem::UnnamedExpr(expr) if stands(&expr) => (expr, None),
            SelectItem::ExprWithAlias { expr, alias } if stands(&expr) => (expr, Some(alias)),
            other => return Ok(vec![other]),
        };
        self.spread(&mut expr)?;
        let named = |name: String, expr: Expr| SelectItem::ExprWithAlias {
            expr,
            alias: Ident::with_quote('"', name),
        };
        let Some((call, meant)) = self.meant(&expr)? else {
            return Ok(vec![match alias {
                Some(alias) => SelectItem::ExprWithAlias { expr, alias },
                None => SelectItem::UnnamedExpr(expr),
            }]);
        };
        let item = |Meant { column, groups }: Meant| match &alias {
            Some(alias) => named(filled(alias, &groups), with(&expr, &column.value)),
            // A column as it is keeps its table's name.
            None if expr == call => column.item(),
            None => named(column.name.clone(), with(&expr, &column.value)),
        };
        Ok(meant.into_iter().map(item).collect())
    }

    /// A key for each column that its calls stand for.
    pub(super) fn keys(&self, key: OrderByExpr) -> Result<Vec<OrderByExpr>> {
        let OrderByExpr { expr, options, with_fill } = key;
        let of = |item: SelectItem| match item {
            SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => {
                Some(OrderByExpr { expr, options, with_fill: with_fill.clone() })
            }
            _ => None,
        };
        Ok(self.items(SelectItem::UnnamedExpr(expr))?.into_iter().filter_map(of).collect())
    }

    /// A condition that holds where it does for all columns that its calls stand for.
    pub(super) fn all_of(&self, condition: &mut Expr) -> Result<()> {
        if !stands(condition) {
            return Ok(());
        }
        self.spread(condition)?;
        let Some((_, meant)) = self.meant(condition)? else { return Ok(()) };
        let each = meant
            .into_iter()
            .map(|meant| Expr::Nested(Box::new(with(condition, &meant.column.value))));
        if let Some(all) = each.reduce(|all, one| binary(all, BinaryOperator::And, one)) {
            *condition = all;
        }
        Ok(())
    }

    /// `*COLUMNS(…)` among arguments: the columns, as so many arguments.
    fn spread(&self, expr: &mut Expr) -> Result<()> {
        let spread = Spread { columns: *self };
        let done = each_outside_mut(expr, |expr| match spread.within(expr) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(error),
        });
        match done {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(error) => Err(error),
        }
    }

    /// The one call in an expression, and the columns that it stands for.
    fn meant(&self, expr: &Expr) -> Result<Option<(Expr, Vec<Meant>)>> {
        let mut calls = vec![];
        let ControlFlow::Continue(()) = each_outside(expr, |part| {
            calls.extend(arguments(part).map(|_| part.clone()));
            ControlFlow::<Infallible>::Continue(())
        });
        let Some((call, others)) = calls.split_first() else { return Ok(None) };
        if let Some(other) = others.iter().find(|other| *other != call) {
            return Err(wrong("COLUMNS(…) of other columns in one expression", other));
        }
        Ok(Some((call.clone(), self.of_call(call)?)))
    }

    fn of_call(&self, call: &Expr) -> Result<Vec<Meant>> {
        let expected =
            "COLUMNS takes a pattern 'x.*', a list of names ['a', 'b'], *, or a lambda over names";
        let Some(([FunctionArg::Unnamed(argument)], _)) = arguments(call) else {
            return Err(wrong(expected, call));
        };
        if self.all.is_empty() {
            return Err(wrong("COLUMNS(…) without FROM: there are no columns", call));
        }
        let plain = |columns: Vec<ScopeColumn>| {
            Ok(columns.into_iter().map(|column| Meant { column, groups: vec![] }).collect())
        };
        let expr = match argument {
            FunctionArgExpr::Wildcard => return plain(self.all.to_vec()),
            FunctionArgExpr::WildcardWithOptions(options) => {
                return plain(scope::wildcard(self.all, options)?);
            }
            FunctionArgExpr::QualifiedWildcard(table) => {
                return plain(scope::of_table(self.of_tables, table));
            }
            FunctionArgExpr::Expr(expr) => expr,
        };
        let meant: Vec<Meant> = match expr {
            Expr::Array(list) => {
                let name = |expr: &Expr| text(expr).ok_or_else(|| wrong(expected, expr));
                let names = list.elem.iter().map(name).collect::<Result<Vec<String>>>()?;
                if let Some(stray) =
                    names.iter().find(|name| !self.all.iter().any(|column| column.name == **name))
                {
                    let known = self.all.iter().map(|column| column.name.clone()).collect();
                    let error =
                        Error::from(ErrorKind::ColumnNotFound { name: stray.clone(), known });
                    return Err(error.at(known_place(call)));
                }
                return plain(
                    self.all
                        .iter()
                        .filter(|column| names.contains(&column.name))
                        .cloned()
                        .collect(),
                );
            }
            Expr::Lambda(lambda) => {
                let mut meant = vec![];
                for column in self.all {
                    let value = self.constant(of_name(lambda, &column.name, call)?);
                    match value {
                        Some(ScalarValue::Boolean(taken)) if taken != Some(true) => {}
                        Some(ScalarValue::Boolean(_)) => {
                            meant.push(Meant { column: column.clone(), groups: vec![] })
                        }
                        _ => {
                            return Err(wrong(
                                "COLUMNS: the lambda tells of a name whether it is meant",
                                call,
                            ));
                        }
                    }
                }
                meant
            }
            expr => {
                let pattern = text(expr).ok_or_else(|| wrong(expected, call))?;
                let mut meant = vec![];
                for column in self.all {
                    if let Some(groups) = self.groups(&column.name, &pattern, call)? {
                        meant.push(Meant { column: column.clone(), groups });
                    }
                }
                meant
            }
        };
        if meant.is_empty() {
            let names: Vec<String> = self.all.iter().map(|column| column.name.clone()).collect();
            return Err(wrong(
                format!("no column has a name that {expr} takes{}", known_names(&names)),
                call,
            ));
        }
        Ok(meant)
    }

    /// What a pattern's groups are in a name, the first being all of the pattern; `None` where it
    /// does not match.
    fn groups(&self, name: &str, pattern: &str, call: &Expr) -> Result<Option<Vec<String>>> {
        let literal = |text: String| Expr::value(Value::SingleQuotedString(text));
        let matched = super::call(
            "regexp_match",
            vec![literal(name.into()), literal(format!("({pattern})"))],
        );
        let found = match self.constant(matched) {
            Some(ScalarValue::List(list)) => list,
            Some(ScalarValue::Null) => return Ok(None),
            _ => return Err(wrong(format!("COLUMNS: {pattern:?} is no regular expression"), call)),
        };
        if found.is_null(0) {
            return Ok(None);
        }
        let groups = datafusion::arrow::compute::cast(
            &found.value(0),
            &datafusion::arrow::datatypes::DataType::Utf8,
        )?;
        Ok(Some(
            groups
                .as_string::<i32>()
                .iter()
                .map(|group| group.unwrap_or_default().into())
                .collect(),
        ))
    }

    /// The value of an expression of constants; `None` where it has none.
    fn constant(&self, expr: Expr) -> Option<ScalarValue> {
        let schema = Arc::new(DFSchema::empty());
        let expr = ExprWithAlias { expr, alias: None };
        let expr = self.state.create_logical_expr_from_sql_expr(expr, &schema).ok()?;
        let context = SimplifyContext::builder()
            .with_schema(schema.clone())
            .with_config_options(self.state.config_options().clone())
            .build();
        let simplifier = ExprSimplifier::new(context);
        match simplifier.coerce(expr, &schema).and_then(|expr| simplifier.simplify(expr)).ok()? {
            PlanExpr::Literal(value, _) => Some(value),
            _ => None,
        }
    }
}

/// An expression with a column in the place of its calls.
fn with(expr: &Expr, value: &Expr) -> Expr {
    let mut expr = expr.clone();
    let ControlFlow::Continue(()) = each_outside_mut(&mut expr, |part| {
        if arguments(part).is_some() {
            *part = value.clone();
        }
        ControlFlow::<Infallible>::Continue(())
    });
    expr
}

/// Puts columns in the places of `*COLUMNS(…)` among arguments, elements of lists, and values of
/// IN.
struct Spread<'a> {
    columns: NamedColumns<'a>,
}

impl Spread<'_> {
    /// The values of a spread call; `None` of all else.
    fn values(&self, expr: &Expr) -> Result<Option<Vec<Expr>>> {
        match arguments(expr) {
            Some((_, true)) => Ok(Some(
                self.columns.of_call(expr)?.into_iter().map(|meant| meant.column.value).collect(),
            )),
            _ => Ok(None),
        }
    }

    fn exprs(&self, exprs: &mut Vec<Expr>) -> Result<()> {
        for expr in std::mem::take(exprs) {
            match self.values(&expr)? {
                Some(values) => exprs.extend(values),
                None => exprs.push(expr),
            }
        }
        Ok(())
    }

    fn within(&self, expr: &mut Expr) -> Result<()> {
        match expr {
            Expr::Array(array) => self.exprs(&mut array.elem),
            Expr::InList { list, .. } => self.exprs(list),
            Expr::Tuple(exprs) => self.exprs(exprs),
            Expr::Function(function) => {
                let FunctionArguments::List(list) = &mut function.args else { return Ok(()) };
                for arg in std::mem::take(&mut list.args) {
                    let values = match &arg {
                        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => self.values(expr)?,
                        _ => None,
                    };
                    match values {
                        Some(values) => {
                            let arg = |value| FunctionArg::Unnamed(FunctionArgExpr::Expr(value));
                            list.args.extend(values.into_iter().map(arg));
                        }
                        None => list.args.push(arg),
                    }
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

/// A lambda's body with a name in the place of its parameter.
fn of_name(lambda: &LambdaFunction, name: &str, call: &Expr) -> Result<Expr> {
    let mut parameters = lambda.params.iter();
    let (Some(parameter), None) = (parameters.next(), parameters.next()) else {
        return Err(wrong("COLUMNS: the lambda has one parameter, the name of a column", call));
    };
    let mut body = lambda.body.as_ref().clone();
    let parameter = folded(&parameter.name);
    let ControlFlow::Continue(()) = VisitMut::visit(&mut body, &mut Named { parameter, name });
    Ok(Expr::Nested(Box::new(body)))
}

struct Named<'a> {
    parameter: String,
    name: &'a str,
}

impl VisitorMut for Named<'_> {
    type Break = Infallible;

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Self::Break> {
        if matches!(expr, Expr::Identifier(name) if folded(name) == self.parameter) {
            *expr = Expr::value(Value::SingleQuotedString(self.name.into()));
        }
        ControlFlow::Continue(())
    }
}

/// A name in which `\1` stands for the first group of a pattern, `\0` for all of it.
fn filled(alias: &Ident, groups: &[String]) -> String {
    let name = folded(alias);
    if groups.is_empty() || !name.contains('\\') {
        return name;
    }
    let (mut filled, mut characters) = (String::new(), name.chars().peekable());
    while let Some(c) = characters.next() {
        match characters.peek().and_then(|next| next.to_digit(10)).filter(|_| c == '\\') {
            Some(number) => {
                characters.next();
                filled.push_str(groups.get(number as usize).map_or("", String::as_str));
            }
            None => filled.push(c),
        }
    }
    filled
}

fn text(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Value(value) => value.value.clone().into_string(),
        _ => None,
    }
}

fn known_place(expr: &Expr) -> Place {
    known(expr.span().start)
}

fn wrong(message: impl Into<String>, at: &Expr) -> Error {
    wrong_at(message, known_place(at))
}

fn wrong_at(message: impl Into<String>, location: Place) -> Error {
    ErrorKind::Plan { message: message.into(), location }.into()
}
