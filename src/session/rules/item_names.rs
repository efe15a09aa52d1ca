//! Columns of queries that have no name are called by what was typed: `sum(i)`, `i * 2`, `'a'`.
//! Blanks between words become one each, and comments are left out.
//!
//! Subqueries in expressions are left as they are: nobody names their columns.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Distinct, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, OrderByKind, Query,
    Select, SelectItem, SetExpr, Statement, TableFactor, Value, Visit, VisitMut, Visitor,
    VisitorMut,
};
use datafusion::sql::sqlparser::tokenizer::{Location, Token, TokenWithSpan};

use super::using::uncast;
use crate::session::syntax::behind_group;
use crate::sql::ast::{bare, folded};
use crate::sql::{Offsets, Text, is_word};

/// Gives names to the columns of a text's statement.
pub(super) fn name(statement: &mut Statement, text: &Text<'_>) {
    let mut naming = ItemNaming { tokens: text.tokens(), exclaimed: exclaimed(text), within: 0 };
    let ControlFlow::Continue(()) = VisitMut::visit(statement, &mut naming);
}

/// `SELECT DISTINCT a + 1 … ORDER BY a + 1` is ordered by that column of the list. DataFusion
/// (55.2) looks for the table's columns in the key, and refuses it.
pub(super) fn order_distinct(query: &mut Query) {
    let SetExpr::Select(select) = &*query.body else { return };
    if !matches!(select.distinct, Some(Distinct::Distinct)) {
        return;
    }
    let Some(OrderByKind::Expressions(keys)) = query.order_by.as_mut().map(|by| &mut by.kind)
    else {
        return;
    };
    for key in keys {
        let named = select.projection.iter().find_map(|item| match item {
            SelectItem::ExprWithAlias { expr, alias } if *expr == key.expr => Some(alias),
            _ => None,
        });
        if let Some(name) = named {
            key.expr = Expr::Identifier(name.clone());
        }
    }
}

/// Where `<>` is written as `!=`: both are one token.
fn exclaimed(text: &Text<'_>) -> HashSet<Location> {
    let mut offsets = Offsets::of(text);
    let unequal = text.tokens().iter().filter(|token| token.token == Token::Neq);
    let places = unequal.map(|token| token.span.start);
    places.filter(|place| text.as_str()[offsets.at(*place)..].starts_with("!=")).collect()
}

struct ItemNaming<'t> {
    tokens: &'t [TokenWithSpan],
    exclaimed: HashSet<Location>,
    /// Expressions around that hold queries.
    within: usize,
}

fn holds_query(expr: &Expr) -> bool {
    matches!(
        expr,
        Expr::Subquery(_)
            | Expr::Exists { .. }
            | Expr::InSubquery { .. }
            | Expr::AnyOp { .. }
            | Expr::AllOp { .. }
    )
}

impl VisitorMut for ItemNaming<'_> {
    type Break = std::convert::Infallible;

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Self::Break> {
        self.within += usize::from(holds_query(expr));
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Self::Break> {
        self.within -= usize::from(holds_query(expr));
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Self::Break> {
        let is_unnamed =
            |item: &SelectItem| matches!(item, SelectItem::UnnamedExpr(expr) if takes_name(expr));
        if self.within == 0 {
            name_fields(select);
        }
        if self.within > 0 || !select.projection.iter().any(is_unnamed) {
            return ControlFlow::Continue(());
        }
        let items = self.items(select.select_token.0.span.start);
        let beside_casts = beside_casts(&select.projection);
        // Where these differ, the list was not typed as it is.
        if items.len() == select.projection.len() {
            for (item, typed) in select.projection.iter_mut().zip(items) {
                if let SelectItem::UnnamedExpr(expr) = item
                    && takes_name(expr)
                    && !beside_casts.contains(uncast(expr))
                    && let Some(name) = self.as_typed(typed)
                {
                    let expr = std::mem::replace(expr, Expr::value(Value::Null));
                    *item = SelectItem::ExprWithAlias { expr, alias: Ident::with_quote('"', name) };
                }
            }
        }
        ControlFlow::Continue(())
    }
}

/// A field of a struct by a dot is called by its own name. Only names of columns are known to be of
/// tables here: `t.a` is a column of a table in FROM, `s.a` and `t.s.a` are fields.
fn name_fields(select: &mut Select) {
    let is_long = |item: &SelectItem| {
        matches!(item, SelectItem::UnnamedExpr(expr)
            if matches!(bare(expr), Expr::CompoundIdentifier(_)))
    };
    if !select.projection.iter().any(is_long) {
        return;
    }
    let mut tables = TableNames::default();
    let ControlFlow::Continue(()) = Visit::visit(&select.from, &mut tables);
    for item in &mut select.projection {
        if let SelectItem::UnnamedExpr(expr) = item
            && let Expr::CompoundIdentifier(parts) = bare(expr)
            && let [.., of, field] = &parts[..]
            && !tables.0.contains(&folded(of))
        {
            let alias = Ident::with_quote('"', folded(field));
            let expr = std::mem::replace(expr, Expr::value(Value::Null));
            *item = SelectItem::ExprWithAlias { expr, alias };
        }
    }
}

/// The last parts of the names that tables in FROM go by.
#[derive(Default)]
struct TableNames(HashSet<String>);

impl Visitor for TableNames {
    type Break = std::convert::Infallible;

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<Self::Break> {
        let (name, alias) = match factor {
            TableFactor::Table { name, alias, .. } => (name.0.last(), alias),
            TableFactor::Derived { alias, .. }
            | TableFactor::TableFunction { alias, .. }
            | TableFactor::UNNEST { alias, .. }
            | TableFactor::NestedJoin { alias, .. }
            | TableFactor::Pivot { alias, .. }
            | TableFactor::Unpivot { alias, .. } => (None, alias),
            TableFactor::Function { name, alias, .. } => (name.0.last(), alias),
            _ => return ControlFlow::Continue(()),
        };
        let own = name.and_then(|part| part.as_ident()).map(folded);
        self.0.extend(alias.as_ref().map(|alias| folded(&alias.name)).or(own));
        ControlFlow::Continue(())
    }
}

/// Expressions of which a list has casts, too. `using/names.rs` names these, also in GROUP BY;
/// constants are in none.
fn beside_casts(items: &[SelectItem]) -> HashSet<Expr> {
    let mut number: HashMap<&Expr, (usize, bool)> = HashMap::new();
    for item in items {
        if let SelectItem::UnnamedExpr(expr) = item
            && !is_constant(uncast(expr))
        {
            let (count, cast) = number.entry(uncast(expr)).or_default();
            *count += 1;
            *cast |= matches!(bare(expr), Expr::Cast { .. });
        }
    }
    let beside = number.into_iter().filter(|(_, (count, cast))| *cast && *count > 1);
    beside.map(|(expr, _)| expr.clone()).collect()
}

fn is_constant(expr: &Expr) -> bool {
    match bare(expr) {
        Expr::Value(_) => true,
        Expr::UnaryOp { expr, .. } => is_constant(expr),
        _ => false,
    }
}

/// Whether an item gets a name: it is no column's name, and yields one column.
fn takes_name(expr: &Expr) -> bool {
    match bare(expr) {
        Expr::Identifier(_) | Expr::CompoundIdentifier(_) => false,
        Expr::Function(function) => {
            let name = function.name.0.last().and_then(|part| part.as_ident()).map(folded);
            // A struct is a column for each of its fields.
            name.as_deref() != Some("unnest") || is_list(&function.args)
        }
        _ => true,
    }
}

/// Whether the one argument of a function is written as a list.
fn is_list(args: &FunctionArguments) -> bool {
    let FunctionArguments::List(list) = args else { return false };
    matches!(&list.args[..], [FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Array(_)))])
}

impl ItemNaming<'_> {
    /// The tokens of each item of the select list that begins at a place.
    fn items(&self, select: Location) -> Vec<&[TokenWithSpan]> {
        let order = |place: Location| (place.line, place.column);
        let at = self.tokens.partition_point(|token| order(token.span.start) < order(select));
        let Some((first, rest)) = self.tokens[at..].split_first() else { return vec![] };
        if !is_word(first, "SELECT") {
            return vec![];
        }
        let mut items = vec![];
        let (mut begin, mut depth, mut before) = (behind_distinct(rest), 0_usize, first);
        let mut end = rest.len();
        for (at, token) in rest.iter().enumerate().skip(begin) {
            match &token.token {
                Token::LParen | Token::LBracket | Token::LBrace => depth += 1,
                Token::RParen | Token::RBracket | Token::RBrace if depth > 0 => depth -= 1,
                Token::Comma if depth == 0 => {
                    items.push(&rest[begin..at]);
                    begin = at + 1;
                }
                Token::Whitespace(_) => continue,
                _ if depth == 0 && ends_list(token, before) => {
                    end = at;
                    break;
                }
                _ => {}
            }
            before = token;
        }
        items.push(&rest[begin..end]);
        items
    }

    /// The text of an item; `None` of stars and COLUMNS, which are several columns.
    fn as_typed(&self, tokens: &[TokenWithSpan]) -> Option<String> {
        let mut words = tokens.iter().filter(|token| !matches!(token.token, Token::Whitespace(_)));
        if words.any(|token| is_word(token, "COLUMNS")) {
            return None;
        }
        let mut typed = String::new();
        for token in tokens {
            match &token.token {
                Token::Whitespace(_) if typed.is_empty() || typed.ends_with(' ') => {}
                Token::Whitespace(_) => typed.push(' '),
                Token::SingleQuotedString(text) => {
                    typed.extend(["'", &text.replace('\'', "''"), "'"]);
                }
                Token::Neq if self.exclaimed.contains(&token.span.start) => typed.push_str("!="),
                word => typed.push_str(&word.to_string()),
            }
        }
        let typed = typed.trim_end();
        (!typed.is_empty() && !typed.starts_with('*')).then(|| typed.into())
    }
}

/// How many tokens `DISTINCT`, `DISTINCT ON (…)` or `ALL` are, behind `SELECT`.
fn behind_distinct(tokens: &[TokenWithSpan]) -> usize {
    let next = |at: usize| {
        let is_blank = |token: &&TokenWithSpan| matches!(token.token, Token::Whitespace(_));
        at + tokens[at..].iter().take_while(is_blank).count()
    };
    let at = next(0);
    match tokens.get(at) {
        Some(word) if is_word(word, "ALL") => at + 1,
        Some(word) if is_word(word, "DISTINCT") => {
            let on = next(at + 1);
            if !tokens.get(on).is_some_and(|token| is_word(token, "ON")) {
                return at + 1;
            }
            behind_group(tokens, next(on + 1))
        }
        _ => 0,
    }
}

/// Whether a token outside of parentheses stands behind a select list.
fn ends_list(token: &TokenWithSpan, before: &TokenWithSpan) -> bool {
    const WORDS: [&str; 15] = [
        "FROM",
        "WHERE",
        "GROUP",
        "HAVING",
        "ORDER",
        "LIMIT",
        "OFFSET",
        "FETCH",
        "WINDOW",
        "QUALIFY",
        "UNION",
        "EXCEPT",
        "INTERSECT",
        "INTO",
        "USING",
    ];
    match &token.token {
        Token::RParen | Token::SemiColon | Token::VerticalBarRightAngleBracket => true,
        Token::Word(word) if word.quote_style.is_none() => {
            // `a IS DISTINCT FROM b`, `mode() WITHIN GROUP (…)`.
            let is_of_item = is_word(before, "DISTINCT") || is_word(before, "WITHIN");
            !is_of_item && WORDS.iter().any(|other| word.value.eq_ignore_ascii_case(other))
        }
        _ => false,
    }
}
