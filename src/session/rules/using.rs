//! `JOIN … USING` and `NATURAL JOIN`, written out as joins by a condition.
//!
//! The two key columns become one, which is the left one's value, of a right join the right one's,
//! of a full join whichever is there. DataFusion's planner (55.2) takes one of them whatever the
//! join (<https://github.com/apache/datafusion/issues/22881>), `SELECT *` even that whose table
//! comes first by its name, and does not know the merged name in WHERE. So before it plans,
//!
//! ```text
//!   SELECT * FROM a FULL JOIN b USING (k) WHERE k > 1
//!   SELECT coalesce(a.k, b.k) AS k, a.x, b.y FROM a FULL JOIN b ON a.k = b.k
//!     WHERE coalesce(a.k, b.k) > 1
//! ```
//!
//! with columns in PostgreSQL's order: the keys of the last join, those before, then the rest from
//! left to right. The planner tells the columns of each table, WITH query and subquery in FROM.
//!
//! By the same knowledge `COLUMNS(…)`, `* RENAME (…)` and `s.*` of a struct are written out
//! (`columns.rs`), and aliases that are named beside their definition (`aliases.rs`).

mod aliases;
mod columns;
mod marks;
mod names;
mod order_all;
mod scope;

use std::collections::HashSet;
use std::ops::ControlFlow;

use datafusion::arrow::datatypes::DataType;
use datafusion::execution::session_state::SessionState;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion::sql::sqlparser::ast::{
    self, BinaryOperator, Cte, Distinct, Expr, GroupByExpr, Ident, Join, JoinConstraint,
    JoinOperator, OrderByKind, Query, Select, SelectItem, SelectItemQualifiedWildcardKind, SetExpr,
    Spanned, TableAlias, TableFactor, TableWithJoins, Value, Visit, VisitMut, Visitor, With,
};
use datafusion::sql::sqlparser::parser::Parser;
use futures::FutureExt;

use self::columns::NamedColumns;
pub(in crate::session) use self::columns::refuse_columns;
pub(super) use self::marks::{is_marked, marked, marks, own_names, unmarked_name};
pub(in crate::session) use self::names::planned;
pub(super) use self::order_all::order_by_all;
use self::scope::{Outputs, Resolver, Scope, ScopeColumn, path};
pub(super) use self::scope::{
    hide_fields, is_any_twice, is_unnamed, number, output_name, show_fields, tell_all_apart, uncast,
};
use super::clauses::constraint;
use super::dialect::Ours;
use crate::error::{Error, Result};
use crate::session::relations;
use crate::sql::ast::{binary, call, folded};

/// Writes them out in a query and all within.
pub(super) fn written_out(state: &SessionState, query: &mut Query) -> Result<()> {
    if !Visit::visit(query, &mut Merges).is_break() {
        return Ok(());
    }
    Names::of(state).query(query, &[])?;
    columns::refuse_what_is_left(query)
}

/// Writes out the stars that stand beside other items of their select lists, where it is known what
/// they stand for.
pub(super) fn stars_written_out(state: &SessionState, query: &mut Query) -> Result<()> {
    Names { stars: true, ..Names::of(state) }.query(query, &[])
}

/// Breaks off at a join that merges columns, and at what stands for columns by their names.
struct Merges;

impl Visitor for Merges {
    type Break = ();

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        let concerned = select.from.iter().any(merges)
            || columns::changes_names(select)
            || columns::takes_apart(select)
            || aliases::are_named(select);
        if concerned { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        if columns::is_call(expr) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// Whether columns are merged among these tables, in parentheses too.
fn merges(table: &TableWithJoins) -> bool {
    let nested = |factor: &TableFactor| match factor {
        TableFactor::NestedJoin { table_with_joins, .. } => merges(table_with_joins),
        _ => false,
    };
    let by_name = |join: &Join| {
        matches!(constraint(join), Some(JoinConstraint::Using(_) | JoinConstraint::Natural))
    };
    nested(&table.relation)
        || table.joins.iter().any(|join| by_name(join) || nested(&join.relation))
}

/// Whose columns a join yields, and whose value a merged one has.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Inner,
    Left,
    Right,
    Full,
    OnlyLeft,
    OnlyRight,
}

/// Walks queries from outside in.
struct Names<'a> {
    state: &'a SessionState,
    /// The WITH queries that may be named.
    with: Vec<Cte>,
    recursive: bool,
    /// Subqueries in FROM that were given a name.
    unnamed: usize,
    /// The columns of the tables of the query that is walked, each with its table's name.
    of_tables: Vec<ScopeColumn>,
    /// Whether a star beside other items is written out, whatever else there is.
    stars: bool,
}

impl<'a> Names<'a> {
    fn of(state: &'a SessionState) -> Names<'a> {
        let (with, of_tables) = (vec![], vec![]);
        Names { state, with, recursive: false, unnamed: 0, of_tables, stars: false }
    }

    /// `outside`: what names mean in the queries around, the nearest first.
    fn query(&mut self, query: &mut Query, outside: &[Scope]) -> Result<()> {
        let (known, recursive) = (self.with.len(), self.recursive);
        if let Some(with) = &mut query.with {
            self.recursive |= with.recursive;
            let recursive = with.recursive;
            for cte in &mut with.cte_tables {
                let itself = self.with.len();
                if let (true, SetExpr::SetOperation { left, .. }) =
                    (recursive, cte.query.body.as_ref())
                {
                    // Within itself it has the columns of its first part.
                    let mut first = cte.clone();
                    first.query.body = left.clone();
                    self.query(&mut first.query, outside)?;
                    self.with.push(first);
                }
                self.query(&mut cte.query, outside)?;
                self.with.truncate(itself);
                self.with.push(cte.clone());
            }
        }
        let ordered = query.order_by.as_ref().is_some_and(columns::stands);
        let outputs = self.body(&mut query.body, outside, ordered)?;
        order_by_all(query);
        if let (Some(outputs), Some(order)) = (outputs, &mut query.order_by)
            && let OrderByKind::Expressions(keys) = &mut order.kind
        {
            if let (true, Some(all)) = (ordered, outputs.scopes[0].columns()) {
                let (state, of_tables) = (self.state, &outputs.of_tables[..]);
                let named = NamedColumns { state, all, of_tables };
                let own = std::mem::take(keys);
                let own = own.into_iter().map(|key| named.keys(key));
                *keys = own.collect::<Result<Vec<_>>>()?.concat();
            }
            for key in keys {
                let of_output = matches!(&key.expr, Expr::Identifier(name) if outputs.names.contains(&folded(name)));
                if !of_output {
                    self.resolve(&mut key.expr, &outputs.scopes)?;
                }
            }
        }
        self.with.truncate(known);
        self.recursive = recursive;
        Ok(())
    }

    /// What ORDER BY may name, behind one SELECT.
    /// `ordered`: whether that stands for columns by their names.
    fn body(
        &mut self,
        body: &mut SetExpr,
        outside: &[Scope],
        ordered: bool,
    ) -> Result<Option<Outputs>> {
        match body {
            SetExpr::Select(select) => self.select(select, outside, ordered).map(Some),
            SetExpr::Query(query) => self.query(query, outside).map(|()| None),
            SetExpr::SetOperation { left, right, .. } => {
                self.body(left, outside, false)?;
                self.body(right, outside, false)?;
                Ok(None)
            }
            _ => Ok(None),
        }
    }

    fn select(&mut self, select: &mut Select, outside: &[Scope], ordered: bool) -> Result<Outputs> {
        let merging = select.from.iter().any(merges);
        let insists = ordered || columns::insists(select);
        let named = insists || columns::needs(select);
        let aliased = aliases::are_named(select);
        let starred = self.stars && scope::is_star_beside_others(&select.projection);
        let needed =
            merging || named || aliased || starred || outside.iter().any(Scope::has_merged);
        let mut here = Scope::of(vec![]);
        let of_tables = std::mem::take(&mut self.of_tables);
        for table in &mut select.from {
            let columns = self.table(table, &here, outside, needed)?;
            here = here.and(columns);
        }
        let of_tables = std::mem::replace(&mut self.of_tables, of_tables);
        if !needed {
            here = Scope::Unknown;
        }

        let scopes: Vec<Scope> =
            [here.clone()].into_iter().chain(outside.iter().cloned()).collect();
        let named = named && (here.columns().is_some() || insists);
        if named && here.columns().is_none() {
            return Err(unknown("COLUMNS(…) or * RENAME (…)", select.span().start));
        }
        if merging || named || starred {
            self.wildcards(select, &here, (named || starred).then_some(&of_tables[..]))?;
        }
        if let (true, Some(columns)) = (aliased, here.columns()) {
            let names = columns.iter().map(|column| column.name.as_str()).collect();
            aliases::write_out(self.state, select, &names)?;
        }
        for item in &mut select.projection {
            match item {
                SelectItem::UnnamedExpr(expr) => {
                    let before = expr.clone();
                    self.resolve(expr, &scopes)?;
                    if let Expr::Identifier(name) = before
                        && *expr != Expr::Identifier(name.clone())
                    {
                        let expr = expr.clone();
                        *item = SelectItem::ExprWithAlias {
                            expr,
                            alias: Ident::with_quote('"', folded(&name)),
                        };
                    }
                }
                SelectItem::ExprWithAlias { expr, .. } => self.resolve(expr, &scopes)?,
                _ => {}
            }
        }
        if merging || named {
            scope::tell_apart(&mut select.projection);
        }
        let mut others: Vec<&mut Expr> = vec![];
        others.extend(&mut select.selection);
        others.extend(&mut select.having);
        others.extend(&mut select.qualify);
        if let GroupByExpr::Expressions(exprs, _) = &mut select.group_by {
            others.extend(exprs);
        }
        if let Some(Distinct::On(exprs)) = &mut select.distinct {
            others.extend(exprs);
        }
        others.into_iter().try_for_each(|expr| self.resolve(expr, &scopes))?;
        Ok(Outputs { names: scope::output_names(&select.projection), scopes, of_tables })
    }

    /// Names in an expression, and in the queries within.
    fn resolve(&mut self, expr: &mut Expr, scopes: &[Scope]) -> Result<()> {
        let mut within = |query: &mut Query| self.query(query, scopes);
        match VisitMut::visit(expr, &mut Resolver::new(scopes, &mut within)) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(error) => Err(error),
        }
    }

    /// A table and those joined to it. `beside`: the tables before, which LATERAL may name.
    fn table(
        &mut self,
        table: &mut TableWithJoins,
        beside: &Scope,
        outside: &[Scope],
        needed: bool,
    ) -> Result<Scope> {
        let mut left = self.factor(&mut table.relation, beside, outside, needed)?;
        for join in &mut table.joins {
            let before = beside.clone().and(left.clone());
            let right = match relations::elements(join) {
                Some(number) => {
                    let scopes: Vec<Scope> =
                        [before].into_iter().chain(outside.iter().cloned()).collect();
                    if let TableFactor::UNNEST { array_exprs, .. } = &mut join.relation {
                        array_exprs.iter_mut().try_for_each(|expr| self.resolve(expr, &scopes))?;
                    }
                    self.elements(&table.relation, join, number, needed)
                }
                None => self.factor(&mut join.relation, &before, outside, needed)?,
            };
            left = self.join(join, left, right, outside)?;
        }
        Ok(left)
    }

    fn join(
        &mut self,
        join: &mut Join,
        left: Scope,
        right: Scope,
        outside: &[Scope],
    ) -> Result<Scope> {
        let place = join.relation.span().start;
        let (kind, by) = match &mut join.join_operator {
            JoinOperator::Join(by) | JoinOperator::Inner(by) => (Kind::Inner, by),
            JoinOperator::Left(by) | JoinOperator::LeftOuter(by) => (Kind::Left, by),
            JoinOperator::Right(by) | JoinOperator::RightOuter(by) => (Kind::Right, by),
            JoinOperator::FullOuter(by) => (Kind::Full, by),
            JoinOperator::LeftSemi(by) | JoinOperator::LeftAnti(by) => (Kind::OnlyLeft, by),
            JoinOperator::RightSemi(by) | JoinOperator::RightAnti(by) => (Kind::OnlyRight, by),
            _ => return Ok(left.and(right)),
        };
        let mut place = place;
        let keys: Vec<String> = match by {
            JoinConstraint::On(condition) => {
                let both = left.clone().and(right.clone());
                let scopes: Vec<Scope> =
                    [both].into_iter().chain(outside.iter().cloned()).collect();
                self.resolve(condition, &scopes)?;
                return Ok(side(kind, left, right));
            }
            JoinConstraint::None => return Ok(side(kind, left, right)),
            JoinConstraint::Using(names) => {
                let key = |name: &ast::ObjectName| match &name.0[..] {
                    [part] => part.as_ident().map(folded),
                    _ => None,
                };
                let keys: Option<Vec<String>> = names.iter().map(key).collect();
                if let [name] = &names[..] {
                    place = name.span().start;
                }
                // The planner refuses such names.
                let Some(keys) = keys else { return Ok(Scope::Unknown) };
                keys
            }
            JoinConstraint::Natural => {
                let (Some(l), Some(r)) = (left.columns(), right.columns()) else {
                    return Err(unknown("NATURAL JOIN", place));
                };
                let shared =
                    |column: &&ScopeColumn| r.iter().any(|other| other.name == column.name);
                let mut seen = HashSet::new();
                l.iter()
                    .filter(shared)
                    .map(|c| c.name.clone())
                    .filter(|name| seen.insert(name.clone()))
                    .collect()
            }
        };
        let (Some(l), Some(r)) = (left.columns(), right.columns()) else {
            return Err(unknown("JOIN … USING", place));
        };
        let mut merged = vec![];
        let mut condition: Option<Expr> = None;
        for key in &keys {
            let (l, r) = (only(l, key, "left", place)?, only(r, key, "right", place)?);
            let value = match kind {
                Kind::Inner | Kind::Left | Kind::OnlyLeft => l.value.clone(),
                Kind::Right | Kind::OnlyRight => r.value.clone(),
                Kind::Full => call("coalesce", vec![l.value.clone(), r.value.clone()]),
            };
            merged.push(ScopeColumn { name: key.clone(), value, merged: true, fields: vec![] });
            let equal = binary(l.value.clone(), BinaryOperator::Eq, r.value.clone());
            condition = Some(match condition {
                Some(condition) => binary(condition, BinaryOperator::And, equal),
                None => equal,
            });
        }
        let condition = condition.unwrap_or_else(|| Expr::value(Value::Boolean(true)));
        *by = JoinConstraint::On(condition);

        let rest = |columns: &[ScopeColumn]| {
            columns
                .iter()
                .filter(|column| !keys.contains(&column.name))
                .cloned()
                .collect::<Vec<_>>()
        };
        Ok(Scope::of(match kind {
            Kind::OnlyLeft => [merged, rest(l)].concat(),
            Kind::OnlyRight => [merged, rest(r)].concat(),
            _ => [merged, rest(l), rest(r)].concat(),
        }))
    }

    fn factor(
        &mut self,
        factor: &mut TableFactor,
        beside: &Scope,
        outside: &[Scope],
        needed: bool,
    ) -> Result<Scope> {
        let before = self.of_tables.len();
        match factor {
            TableFactor::NestedJoin { table_with_joins, alias } => {
                let merging = merges(table_with_joins);
                let columns = self.table(table_with_joins, beside, outside, needed)?;
                let Some(alias) = alias else { return Ok(columns) };
                // To be named as one, it is a query.
                if merging {
                    let mut query = self.template();
                    if let SetExpr::Select(select) = query.body.as_mut() {
                        select.from = vec![table_with_joins.as_ref().clone()];
                        self.wildcards(select, &columns, None)?;
                        scope::tell_apart(&mut select.projection);
                    }
                    let (subquery, alias) = (Box::new(query), Some(alias.clone()));
                    *factor =
                        TableFactor::Derived { lateral: false, subquery, alias, sample: None };
                }
            }
            TableFactor::Derived { lateral, subquery, alias, .. } => {
                let mut scopes = outside.to_vec();
                if *lateral {
                    scopes.insert(0, beside.clone());
                }
                self.query(subquery, &scopes)?;
                if alias.is_none() && needed {
                    self.unnamed += 1;
                    let name = Ident::with_quote('"', format!("unnamed {}", self.unnamed));
                    *alias = Some(TableAlias { explicit: true, name, columns: vec![], at: None });
                }
            }
            _ => {}
        }
        // Those within have no names outside.
        self.of_tables.truncate(before);
        let columns = if needed { self.columns(factor) } else { Scope::Unknown };
        self.of_tables.extend_from_slice(columns.columns().unwrap_or_default());
        Ok(columns)
    }

    /// The columns of an UNNEST of columns of the table before it.
    fn elements(
        &mut self,
        relation: &TableFactor,
        join: &Join,
        number: usize,
        needed: bool,
    ) -> Scope {
        if !needed {
            return Scope::Unknown;
        }
        let mut join = join.clone();
        join.join_operator = JoinOperator::CrossJoin(JoinConstraint::None);
        let both = TableWithJoins { relation: relation.clone(), joins: vec![join] };
        let both = TableFactor::NestedJoin { table_with_joins: Box::new(both), alias: None };
        let columns = self.columns(&both).last(number);
        self.of_tables.extend_from_slice(columns.columns().unwrap_or_default());
        columns
    }

    /// The columns of one that stands for itself, as the planner sees them.
    fn columns(&self, factor: &TableFactor) -> Scope {
        let mut query = self.template();
        if let SetExpr::Select(select) = query.body.as_mut() {
            select.from = vec![TableWithJoins { relation: factor.clone(), joins: vec![] }];
        }
        if !self.with.is_empty() {
            let (recursive, cte_tables) = (self.recursive, self.with.clone());
            query.with = Some(With { with_token: AttachedToken::empty(), recursive, cte_tables });
        }
        let statement = Statement::Statement(Box::new(ast::Statement::Query(Box::new(query))));
        // All tables are in memory's catalog: nothing has to be waited for.
        let planned = names::planned(self.state, statement).now_or_never();
        let Some(Ok(plan)) = planned else {
            return Scope::Unknown;
        };
        let fields = |dtype: &DataType| match dtype {
            DataType::Struct(fields) => fields.iter().map(|field| field.name().clone()).collect(),
            _ => vec![],
        };
        let columns = plan.schema().iter().map(|(qualifier, field)| ScopeColumn {
            name: field.name().clone(),
            value: path(qualifier, field.name()),
            merged: false,
            fields: fields(field.data_type()),
        });
        Scope::of(columns.collect())
    }

    /// `SELECT *`, without FROM.
    fn template(&self) -> Query {
        let parsed = Parser::parse_sql(&Ours, "SELECT *").expect("it parses").remove(0);
        match parsed {
            ast::Statement::Query(query) => *query,
            _ => unreachable!("it is a query"),
        }
    }

    /// Puts columns in place of `*`. `of_tables`, where columns are meant by their names: those of
    /// the query's tables.
    fn wildcards(
        &self,
        select: &mut Select,
        scope: &Scope,
        of_tables: Option<&[ScopeColumn]>,
    ) -> Result<()> {
        let Some(columns) = scope.columns() else { return Ok(()) };
        let named =
            of_tables.map(|of_tables| NamedColumns { state: self.state, all: columns, of_tables });
        let mut items = vec![];
        for item in std::mem::take(&mut select.projection) {
            match (item, named) {
                (SelectItem::Wildcard(options), _) => {
                    items.extend(
                        scope::wildcard(columns, &options)?.into_iter().map(ScopeColumn::item),
                    );
                }
                (
                    SelectItem::QualifiedWildcard(kind, options),
                    Some(NamedColumns { of_tables, .. }),
                ) => {
                    let own = match &kind {
                        SelectItemQualifiedWildcardKind::ObjectName(name) => {
                            match scope::of_table(of_tables, name) {
                                own if own.is_empty() => scope::of_struct(columns, name),
                                own => own,
                            }
                        }
                        SelectItemQualifiedWildcardKind::Expr(_) => vec![],
                    };
                    match own.is_empty() {
                        true => items.push(SelectItem::QualifiedWildcard(kind, options)),
                        false => items.extend(
                            scope::wildcard(&own, &options)?.into_iter().map(ScopeColumn::item),
                        ),
                    }
                }
                (item, Some(named)) => items.extend(named.items(item)?),
                (item, None) => items.push(item),
            }
        }
        select.projection = items;
        if let (Some(named), Some(condition)) = (named, &mut select.selection) {
            named.all_of(condition)?;
        }
        Ok(())
    }
}

/// The columns of a join without merged ones.
fn side(kind: Kind, left: Scope, right: Scope) -> Scope {
    match kind {
        Kind::OnlyLeft => left,
        Kind::OnlyRight => right,
        _ => left.and(right),
    }
}

/// The column of a name; one side must have one.
fn only<'a>(
    columns: &'a [ScopeColumn],
    name: &str,
    side: &str,
    place: datafusion::sql::sqlparser::tokenizer::Location,
) -> Result<&'a ScopeColumn> {
    let mut found = columns.iter().filter(|column| column.name == name);
    match (found.next(), found.next()) {
        (Some(column), None) => Ok(column),
        (None, _) => {
            let known = columns.iter().map(|column| column.name.clone()).collect();
            let error = Error::from(crate::ErrorKind::ColumnNotFound { name: name.into(), known });
            Err(error.at(Some((place.line, place.column))))
        }
        (Some(_), Some(_)) => {
            let message =
                format!("the column {name:?} to join by is ambiguous: the {side} side has several");
            let location = (place.line > 0).then_some((place.line, place.column));
            Err(crate::ErrorKind::Plan { message, location }.into())
        }
    }
}

fn unknown(what: &str, place: datafusion::sql::sqlparser::tokenizer::Location) -> Error {
    let location = (place.line > 0).then_some((place.line, place.column));
    Error::unsupported(what, "the columns of a side are not known by themselves").at(location)
}
