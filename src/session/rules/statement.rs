//! Statements as they are parsed, and made ready for DataFusion's planner.

use std::ops::ControlFlow;

use datafusion::common::config::Dialect;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::session_state::SessionState;
use datafusion::sql::parser::{DFParserBuilder, Statement};
use datafusion::sql::sqlparser::ast::{
    self, AccessExpr, BinaryOperator, CastKind, DataType, Expr, Fetch, Function, FunctionArg,
    FunctionArgExpr, FunctionArgumentClause, FunctionArguments, GroupByExpr, Ident, Join,
    JoinOperator, LimitClause, PipeOperator, Query, Select, SelectFlavor, SelectItem, SetExpr,
    Spanned, Subscript, TableAlias, TableAliasColumnDef, TableFactor, UnaryOperator, Value, Visit,
    VisitMut, VisitorMut,
};

use super::clauses::Clauses;
use super::dialect::Ours;
use super::fields::DottedFields;
use super::rows::RowComparisons;
use super::shadows::ShadowedQueries;
use super::volatile_statements;
use super::windows::{self, Windows};
use super::{
    cast_keys, groups, intervals, item_names, no_table, numbers, operators, set_keys, similar,
    synonyms, using,
};
use crate::error::{Error, ErrorKind};
use crate::session::{relations, syntax};
use crate::sql::Text;
use crate::sql::ast::{bare, call, known, number_of};

/// The one statement of a text.
pub(crate) fn parsed(state: &SessionState, text: &Text<'_>) -> Result<Statement> {
    let options = &state.config_options().sql_parser;
    if options.dialect == Dialect::Generic && text.error().is_none() {
        let limit = options.recursion_limit.get();
        let syntax::WrittenOut { tokens, own_rows } = syntax::written_out(text)
            .map_err(|error| DataFusionError::External(Box::new(error)))?;
        let parser = DFParserBuilder::new(tokens);
        let parser = parser.with_dialect(&Ours).with_recursion_limit(limit);
        let mut statements = parser.build()?.parse_statements()?;
        if statements.len() == 1
            && let Some(mut statement) = statements.pop_front()
        {
            if let Statement::Statement(inner) = &mut statement {
                syntax::mark_own_rows(inner, &own_rows);
                item_names::name(inner, text);
            }
            return Ok(statement);
        }
    }
    // Another dialect, or what is to be said of no statement and of several.
    state.sql_to_statement(text.as_str(), &options.dialect)
}

/// Writes out what the planner would not look at, and refuses the rest of that.
///
/// # Errors
/// [`crate::ErrorKind::Unsupported`] with the clause's name and, where known, its place.
pub(crate) fn prepared(state: &SessionState, statement: &mut ast::Statement) -> Result<(), Error> {
    let done = |flow| match flow {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    };
    let ControlFlow::Continue(()) = VisitMut::visit(statement, &mut ShadowedQueries::default());
    done(statement.visit(&mut Windows))?;
    done(VisitMut::visit(statement, &mut Longhand { state }))?;
    let ControlFlow::Continue(()) = VisitMut::visit(statement, &mut DottedFields::of(state));
    let ControlFlow::Continue(()) = VisitMut::visit(statement, &mut RowComparisons);
    done(Visit::visit(statement, &mut Clauses { state }))?;
    match statement {
        ast::Statement::Query(query) => using::written_out(state, query),
        _ => Ok(()),
    }
}

/// Short forms, and names of functions elsewhere, written out.
struct Longhand<'a> {
    state: &'a SessionState,
}

impl VisitorMut for Longhand<'_> {
    type Break = Error;

    /// `FETCH FIRST n ROWS ONLY` is `LIMIT n`.
    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Self::Break> {
        using::order_by_all(query);
        cast_keys::tell_apart(query);
        item_names::order_distinct(query);
        if let SetExpr::Values(values) = query.body.as_mut() {
            numbers::beside_decimals(values);
        }
        for operator in &mut query.pipe_operators {
            if let PipeOperator::Join(join) = operator {
                of_left(join);
            }
        }
        let fetch = query.fetch.take_if(|fetch| !fetch.with_ties && !fetch.percent);
        let Some(Fetch { quantity, .. }) = fetch else { return ControlFlow::Continue(()) };
        let rows =
            quantity.clone().unwrap_or_else(|| Expr::value(Value::Number("1".into(), false)));
        match &mut query.limit_clause {
            Some(LimitClause::LimitOffset { limit: limit @ None, .. }) => *limit = Some(rows),
            None => {
                let (limit, limit_by) = (Some(rows), vec![]);
                query.limit_clause =
                    Some(LimitClause::LimitOffset { limit, offset: None, limit_by });
            }
            // Both, which is refused.
            Some(_) => query.fetch = Some(Fetch { with_ties: false, percent: false, quantity }),
        }
        ControlFlow::Continue(())
    }

    /// `FROM t` is `SELECT * FROM t`.
    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Self::Break> {
        if select.flavor == SelectFlavor::FromFirstNoSelect && select.projection.is_empty() {
            select.projection = vec![SelectItem::Wildcard(Default::default())];
            select.flavor = SelectFlavor::FromFirst;
        }
        select.from.iter_mut().flat_map(|table| &mut table.joins).for_each(of_left);
        relations::nest(&mut select.from);
        volatile_statements::tell_apart(self.state, &mut select.projection);
        if let GroupByExpr::Expressions(exprs, _) = &mut select.group_by {
            groups::written_out(exprs);
        }
        set_keys::write_out(select);
        for item in &mut select.projection {
            // It is called by what was asked for.
            if let SelectItem::UnnamedExpr(expr) = item
                && (synonyms::is_one(self.state, expr)
                    || volatile_statements::is_made_alike(self.state, expr)
                    || intervals::is_computed(expr)
                    || windows::is_computed(expr)
                    || operators::is_one(expr))
            {
                let alias = Ident::with_quote('"', expr.to_string());
                *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias };
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Self::Break> {
        match factor {
            TableFactor::NestedJoin { table_with_joins, .. } => {
                table_with_joins.joins.iter_mut().for_each(of_left);
            }
            TableFactor::UNNEST { alias, array_exprs, .. } => {
                if let [list] = &array_exprs[..]
                    && !is_struct(list)
                {
                    name_elements(alias, "unnest");
                }
            }
            TableFactor::Table { name, args: Some(of), alias, .. } => {
                if let Some(series) = series(name) {
                    name_elements(alias, series);
                }
                for arg in &mut of.args {
                    if let FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) = arg {
                        numbers::in_nanos(expr);
                    }
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }

    /// A cast to `VARCHAR(n)` keeps n characters, `l[2:]` is `l[2:-1]`, and `INTERVAL 30 DAY` is
    /// `INTERVAL '30' DAY`.
    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Self::Break> {
        match expr {
            Expr::Interval(_) => {
                if let Err(error) = intervals::write_out(expr) {
                    return ControlFlow::Break(error);
                }
            }
            Expr::Value(_) | Expr::TypedString(_) | Expr::Cast { .. } => numbers::write_out(expr),
            Expr::CompoundFieldAccess { access_chain, .. } => {
                access_chain.iter_mut().for_each(bounded)
            }
            Expr::SimilarTo { pattern, escape_char, .. } => {
                if let Err(error) = similar::write_out(pattern, escape_char) {
                    return ControlFlow::Break(error);
                }
            }
            Expr::AnyOp { right, .. } | Expr::AllOp { right, .. }
                if !matches!(bare(right), Expr::Subquery(_)) =>
            {
                operators::write_any_out(expr)
            }
            Expr::Like { pattern, escape_char, .. } | Expr::ILike { pattern, escape_char, .. } => {
                if let Err(error) = operators::write_escape_out(pattern, escape_char) {
                    return ControlFlow::Break(error);
                }
            }
            Expr::BinaryOp {
                op:
                    BinaryOperator::Custom(_) | BinaryOperator::PGStartsWith | BinaryOperator::PGOverlap,
                ..
            }
            | Expr::AtTimeZone { .. }
            | Expr::UnaryOp { op: UnaryOperator::BitwiseNot, .. } => {
                if let Err(error) = operators::write_out(expr) {
                    return ControlFlow::Break(error);
                }
            }
            Expr::Trim { trim_characters: Some(more), .. } if more.len() > 1 => {
                let message = "trim takes a text and the characters to take off".into();
                let location = known(more[1].span().start);
                return ControlFlow::Break(ErrorKind::Plan { message, location }.into());
            }
            Expr::Tuple(values) => {
                // Rows are compared value by value, more than once.
                values
                    .iter_mut()
                    .for_each(|value| volatile_statements::make_alike(self.state, value));
            }
            Expr::Function(_) if windows::is_computed(expr) => windows::write_out(expr),
            Expr::Subquery(_) | Expr::InSubquery { .. } | Expr::Exists { .. } => {
                no_table::write_out(self.state, expr)
            }
            Expr::Function(function) => {
                unshifted(function);
                if synonyms::copies(self.state, function) {
                    volatile_statements::make_arguments_alike(self.state, function);
                }
                if let Err(error) = synonyms::write_out(self.state, expr) {
                    return ControlFlow::Break(error);
                }
            }
            _ => {}
        }
        if let Expr::Cast {
            kind: CastKind::Cast | CastKind::DoubleColon | CastKind::TryCast,
            data_type,
            ..
        } = expr
            && let DataType::Varchar(length)
            | DataType::CharacterVarying(length)
            | DataType::CharVarying(length) = data_type
            && let Some(ast::CharacterLength::IntegerLength { length: characters, unit: None }) =
                length.take()
        {
            let length = Expr::value(Value::Number(characters.to_string(), false));
            *expr = call("left", vec![expr.clone(), length]);
        }
        ControlFlow::Continue(())
    }
}

/// `lag(x, 0)` is of the row itself, be it null. DataFusion (55.2) and the device skip nulls to no
/// row at all.
fn unshifted(function: &mut Function) {
    let is_shift = function.name.0.last().and_then(|part| part.as_ident()).is_some_and(|name| {
        ["lag", "lead"].iter().any(|shift| name.value.eq_ignore_ascii_case(shift))
    });
    let FunctionArguments::List(list) = &mut function.args else { return };
    let offset = match list.args.get(1) {
        Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(offset))) => number_of(bare(offset)),
        _ => None,
    };
    if is_shift && offset.is_some_and(|offset| offset.parse::<i64>() == Ok(0)) {
        function.null_treatment = None;
        list.clauses
            .retain(|clause| !matches!(clause, FunctionArgumentClause::IgnoreOrRespectNulls(_)));
    }
}

/// Whether a function in FROM is one that makes values at equal distances; its name.
fn series(name: &ast::ObjectName) -> Option<&'static str> {
    let name = name.to_string();
    ["range", "generate_series"].into_iter().find(|series| name.eq_ignore_ascii_case(series))
}

/// The column of `unnest(l)` and `range(3)` in FROM has the table's name, where it has none of its
/// own.
fn name_elements(alias: &mut Option<TableAlias>, function: &str) {
    let table = alias.get_or_insert_with(|| TableAlias {
        explicit: true,
        name: Ident::new(function),
        columns: vec![],
        at: None,
    });
    if table.columns.is_empty() {
        table.columns.push(TableAliasColumnDef::from_name(table.name.value.clone()));
        table.columns[0].name.quote_style = table.name.quote_style;
    }
}

/// Whether a value is written as a struct, whose fields are columns.
fn is_struct(value: &Expr) -> bool {
    let makes = |name: &str| ["struct", "named_struct", "struct_pack", "row"].contains(&name);
    match bare(value) {
        Expr::Struct { .. } | Expr::Dictionary(_) | Expr::Tuple(_) => true,
        Expr::Function(function) => makes(&function.name.to_string().to_lowercase()),
        _ => false,
    }
}

/// `a SEMI JOIN b` yields rows of `a`, and so does `a ANTI JOIN b`.
fn of_left(join: &mut Join) {
    join.join_operator = match &join.join_operator {
        JoinOperator::Semi(by) => JoinOperator::LeftSemi(by.clone()),
        JoinOperator::Anti(by) => JoinOperator::LeftAnti(by.clone()),
        _ => return,
    };
}

/// A slice of a list whose steps go forward has both of its bounds.
fn bounded(access: &mut AccessExpr) {
    let AccessExpr::Subscript(Subscript::Slice { lower_bound, upper_bound, stride }) = access
    else {
        return;
    };
    let number = |digits: &str| Expr::value(Value::Number(digits.into(), false));
    let is_back = |step: &Expr| number_of(bare(step)).is_none_or(|step| step.starts_with('-'));
    if stride.as_ref().is_some_and(is_back) {
        return;
    }
    lower_bound.get_or_insert_with(|| number("1"));
    upper_bound.get_or_insert_with(|| Expr::UnaryOp {
        op: UnaryOperator::Minus,
        expr: Box::new(number("1")),
    });
}
