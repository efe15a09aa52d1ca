//! Clauses that the parser takes and DataFusion's planner (55.2) does not look at: refused by name.
//!
//! `TABLESAMPLE`, say, was dropped in silence
//! (<https://github.com/apache/datafusion/issues/13563>), and the answer was that of another query.
//! What the planner refuses by itself is not listed here.

use std::collections::HashSet;
use std::ops::ControlFlow;

use datafusion::execution::session_state::SessionState;
use datafusion::sql::sqlparser::ast::{
    DataType, DuplicateTreatment, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArgumentClause, FunctionArguments, GroupByExpr, Join, JoinConstraint, JoinOperator,
    OrderByKind, OrderByOptions, PipeOperator, Query, Select, SelectItem, SetExpr, SetOperator,
    SetQuantifier, Spanned, TableAlias, TableFactor, TableSampleKind, Visit, Visitor,
    WildcardAdditionalOptions, With,
};
use datafusion::sql::sqlparser::tokenizer::Span;

use crate::error::{Error, ErrorKind};
use crate::query::SHARE_OF_ROWS;
use crate::session::{relations, syntax};
use crate::sql::ast::{folded, known};

/// Breaks off at the first clause that would be dropped.
pub(super) struct Clauses<'a> {
    pub(super) state: &'a SessionState,
}

/// Refuses a clause if it is there.
fn refuse(there: bool, clause: &str, place: impl FnOnce() -> Span) -> ControlFlow<Error> {
    if !there {
        return ControlFlow::Continue(());
    }
    let place = place().start;
    let place = (place.line > 0).then_some((place.line, place.column));
    ControlFlow::Break(
        Error::unsupported(clause, "no part of the engine would look at it").at(place),
    )
}

/// Refuses two values for a column, of which the first would be taken.
fn two_values(options: &WildcardAdditionalOptions) -> ControlFlow<Error> {
    let mut seen = HashSet::new();
    let items = options.opt_replace.iter().flat_map(|replace| &replace.items);
    for name in items.map(|item| &item.column_name) {
        if !seen.insert(folded(name)) {
            let message = format!("REPLACE has two values for the column {:?}", folded(name));
            let location = known(name.span.start);
            return ControlFlow::Break(ErrorKind::Plan { message, location }.into());
        }
    }
    ControlFlow::Continue(())
}

impl Visitor for Clauses<'_> {
    type Break = Error;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<Error> {
        let place = || query.body.span();
        refuse(!query.locks.is_empty(), "FOR UPDATE or FOR SHARE", place)?;
        refuse(query.for_clause.is_some(), "FOR XML, FOR JSON or FOR BROWSE", place)?;
        refuse(query.settings.is_some(), "SETTINGS", place)?;
        refuse(query.format_clause.is_some(), "FORMAT", place)?;
        if let Some(fetch) = &query.fetch {
            refuse(fetch.with_ties, "FETCH … WITH TIES", place)?;
            refuse(fetch.percent, "FETCH … PERCENT", place)?;
            refuse(true, "FETCH beside LIMIT", place)?;
        }
        if let Some(order) = &query.order_by {
            let all = matches!(order.kind, OrderByKind::All(_))
                && !matches!(*query.body, SetExpr::Select(_));
            refuse(all, "ORDER BY ALL behind a set operation", place)?;
        }
        if let Some(with) = &query.with {
            of_with(with)?;
        }
        query.pipe_operators.iter().try_for_each(|operator| match operator {
            PipeOperator::Aggregate { full_table_exprs, group_by_expr } => {
                let ordered =
                    |order: &OrderByOptions| order.asc.is_some() || order.nulls_first.is_some();
                let mut exprs = full_table_exprs.iter().chain(group_by_expr);
                let ordered = exprs.any(|expr| ordered(&expr.order_by));
                refuse(ordered, "an order within the pipe operator AGGREGATE", place)
            }
            PipeOperator::Join(join) => {
                let merges = matches!(
                    constraint(join),
                    Some(JoinConstraint::Using(_) | JoinConstraint::Natural)
                );
                refuse(merges, "USING and NATURAL in the pipe operator JOIN", place)?;
                of_join(join)
            }
            _ => ControlFlow::Continue(()),
        })
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<Error> {
        let place = || select.select_token.0.span;
        let modifiers = match &select.group_by {
            GroupByExpr::All(modifiers) | GroupByExpr::Expressions(_, modifiers) => modifiers,
        };
        refuse(
            !modifiers.is_empty(),
            "GROUP BY … WITH ROLLUP, CUBE or TOTALS (GROUP BY ROLLUP (…) is known)",
            place,
        )?;
        refuse(select.select_modifiers.is_some(), "a modifier of SELECT", place)?;
        refuse(
            select.exclude.is_some(),
            "EXCLUDE behind the select list (* EXCLUDE (…) is known)",
            place,
        )?;
        refuse(select.into.is_some(), "SELECT … INTO", place)?;
        refuse(select.prewhere.is_some(), "PREWHERE", place)?;
        refuse(!select.connect_by.is_empty(), "CONNECT BY", place)?;
        refuse(select.value_table_mode.is_some(), "SELECT AS VALUE or AS STRUCT", place)?;
        for item in &select.projection {
            if let SelectItem::Wildcard(options) | SelectItem::QualifiedWildcard(_, options) = item
            {
                refuse(options.opt_ilike.is_some(), "* ILIKE", || item.span())?;
                two_values(options)?;
            }
        }
        select.from.iter().flat_map(|table| &table.joins).try_for_each(of_join)
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<Error> {
        let place = || factor.span();
        match factor {
            TableFactor::Table {
                name,
                alias,
                args,
                with_hints,
                version,
                with_ordinality,
                partitions,
                json_path,
                sample,
                index_hints,
            } => {
                let odd = |sample: &TableSampleKind| !relations::is_sample(sample);
                refuse(sample.as_ref().is_some_and(odd), "such a TABLESAMPLE", place)?;
                refuse(version.is_some(), "a version of a table (AS OF)", place)?;
                refuse(*with_ordinality, "WITH ORDINALITY", place)?;
                refuse(!partitions.is_empty(), "PARTITION of a table", place)?;
                refuse(
                    !with_hints.is_empty() || !index_hints.is_empty(),
                    "hints of a table",
                    place,
                )?;
                refuse(json_path.is_some(), "a path behind a table's name", place)?;
                let settings = args.as_ref().is_some_and(|args| args.settings.is_some());
                refuse(settings, "SETTINGS of a table function", place)?;
                refuse(
                    args.is_some() && name.0.len() > 1,
                    "a schema before a table function's name",
                    place,
                )?;
                of_alias(alias)
            }
            TableFactor::Derived { sample, alias, .. } => {
                let odd = |sample: &TableSampleKind| !relations::is_sample(sample);
                refuse(sample.as_ref().is_some_and(odd), "such a TABLESAMPLE", place)?;
                of_alias(alias)
            }
            TableFactor::Function { args, with_ordinality, alias, .. } => {
                refuse(*with_ordinality, "WITH ORDINALITY", place)?;
                let named = args.iter().any(|arg| !matches!(arg, FunctionArg::Unnamed(_)));
                refuse(named, "named arguments of a table function", place)?;
                of_alias(alias)
            }
            TableFactor::NestedJoin { table_with_joins, alias } => {
                table_with_joins.joins.iter().try_for_each(of_join)?;
                of_alias(alias)
            }
            TableFactor::UNNEST { alias, .. } => of_alias(alias),
            _ => ControlFlow::Continue(()),
        }
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<Error> {
        match expr {
            Expr::Function(function) => self.of_function(function),
            Expr::Cast { data_type, .. } => {
                let padded = matches!(
                    data_type,
                    DataType::Char(Some(_))
                        | DataType::Character(Some(_))
                        | DataType::Nvarchar(Some(_))
                );
                refuse(padded, "the length of CHAR in a cast (that of VARCHAR is known)", || {
                    expr.span()
                })
            }
            _ => ControlFlow::Continue(()),
        }
    }
}

impl Clauses<'_> {
    fn of_function(&self, function: &Function) -> ControlFlow<Error> {
        let place = || function.name.span();
        let name = function.name.to_string();
        let is_there = |there: bool, what: &str| refuse(there, &format!("{what} {name}"), place);
        // It stands for a share of LIMIT's where no user wrote it.
        if let [part] = &function.name.0[..]
            && let Some(of) = part.as_ident()
            && of.value == SHARE_OF_ROWS
            && !syntax::is_mark(of, SHARE_OF_ROWS)
        {
            let missing = ErrorKind::FunctionNotFound { name: SHARE_OF_ROWS.into(), known: vec![] };
            return ControlFlow::Break(Error::from(missing).at(known(place().start)));
        }
        is_there(
            function.parameters != FunctionArguments::None,
            "parameters before the arguments of",
        )?;
        let arguments = match &function.args {
            FunctionArguments::Subquery(_) => return is_there(true, "a query as the arguments of"),
            FunctionArguments::List(list) => Some(list),
            FunctionArguments::None => None,
        };
        let lower = name.to_lowercase();
        let is_star = |arg: &FunctionArg| {
            use FunctionArgExpr::{QualifiedWildcard, Wildcard};
            matches!(arg, FunctionArg::Unnamed(Wildcard | QualifiedWildcard(_)))
        };
        let of_rows = arguments.is_some_and(|list| {
            list.duplicate_treatment == Some(DuplicateTreatment::Distinct)
                && list.args.iter().any(is_star)
        });
        // The planner counts one value, as if no row differed from another.
        is_there(of_rows, "DISTINCT * (name the columns) in")?;
        let scalar = self.state.scalar_functions().contains_key(&lower)
            || self.state.higher_order_functions().contains_key(&lower)
            || matches!(lower.as_str(), "unnest" | "unnest_outer");
        if !scalar {
            return ControlFlow::Continue(());
        }
        let distinct = arguments
            .is_some_and(|list| list.duplicate_treatment == Some(DuplicateTreatment::Distinct));
        let clause = |is_it: fn(&FunctionArgumentClause) -> bool| {
            arguments.is_some_and(|list| list.clauses.iter().any(is_it))
        };
        let ordered = clause(|clause| matches!(clause, FunctionArgumentClause::OrderBy(_)));
        let nulls =
            clause(|clause| matches!(clause, FunctionArgumentClause::IgnoreOrRespectNulls(_)));
        is_there(distinct, "DISTINCT in the function")?;
        is_there(ordered, "ORDER BY in the function")?;
        is_there(
            nulls || function.null_treatment.is_some(),
            "IGNORE or RESPECT NULLS of the function",
        )?;
        is_there(function.filter.is_some(), "FILTER of the function")?;
        is_there(function.over.is_some(), "OVER behind the function")?;
        is_there(!function.within_group.is_empty(), "WITHIN GROUP behind the function")
    }
}

fn of_with(with: &With) -> ControlFlow<Error> {
    for cte in &with.cte_tables {
        let place = || cte.alias.name.span;
        refuse(cte.from.is_some(), "FROM behind a WITH query", place)?;
        of_alias(&Some(cte.alias.clone()))?;
        let SetExpr::SetOperation { op: SetOperator::Union, set_quantifier, right, .. } =
            cte.query.body.as_ref()
        else {
            continue;
        };
        if with.recursive {
            let by_name = !matches!(
                set_quantifier,
                SetQuantifier::All | SetQuantifier::Distinct | SetQuantifier::None
            );
            refuse(by_name, "UNION BY NAME in WITH RECURSIVE", place)?;
            refuse(cte.query.with.is_some(), "WITH within WITH RECURSIVE", place)?;
            refuse(cte.query.order_by.is_some(), "ORDER BY in WITH RECURSIVE", place)?;
            let limit = cte.query.limit_clause.is_some() || cte.query.fetch.is_some();
            refuse(limit, "LIMIT in WITH RECURSIVE (outside of it, it is known)", place)?;
            let mut reads = OwnReads { name: folded(&cte.alias.name), number: 0 };
            let ControlFlow::Continue(()) = Visit::visit(right.as_ref(), &mut reads);
            if reads.number > 1 {
                let what = format!("WITH RECURSIVE {} that reads itself twice", cte.alias.name);
                let why = "each step's rows go to one reader";
                let error = Error::unsupported(what, why).at(known(place().start));
                return ControlFlow::Break(error);
            }
        }
    }
    ControlFlow::Continue(())
}

/// Counts where a query reads a table of a name.
struct OwnReads {
    name: String,
    number: usize,
}

impl Visitor for OwnReads {
    type Break = std::convert::Infallible;

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<Self::Break> {
        if let TableFactor::Table { name, args: None, .. } = factor
            && let [part] = &name.0[..]
            && part.as_ident().is_some_and(|ident| folded(ident) == self.name)
        {
            self.number += 1;
        }
        ControlFlow::Continue(())
    }
}

fn of_alias(alias: &Option<TableAlias>) -> ControlFlow<Error> {
    let Some(alias) = alias else { return ControlFlow::Continue(()) };
    let place = || alias.name.span;
    refuse(alias.at.is_some(), "AT behind a table's alias", place)?;
    refuse(
        alias.columns.iter().any(|column| column.data_type.is_some()),
        "types in a table's alias",
        place,
    )
}

fn of_join(join: &Join) -> ControlFlow<Error> {
    refuse(join.global, "GLOBAL before a join", || join.relation.span())?;
    if !matches!(constraint(join), Some(JoinConstraint::None)) {
        return ControlFlow::Continue(());
    }
    // The planner joined all rows with all.
    let message = "JOIN has ON or USING behind its table; CROSS JOIN joins all rows with all";
    let place = join.relation.span().start;
    let location = (place.line > 0).then_some((place.line, place.column));
    ControlFlow::Break(ErrorKind::Plan { message: message.into(), location }.into())
}

/// What a join joins by.
pub(super) fn constraint(join: &Join) -> Option<&JoinConstraint> {
    match &join.join_operator {
        JoinOperator::Join(constraint)
        | JoinOperator::Inner(constraint)
        | JoinOperator::Left(constraint)
        | JoinOperator::LeftOuter(constraint)
        | JoinOperator::Right(constraint)
        | JoinOperator::RightOuter(constraint)
        | JoinOperator::FullOuter(constraint)
        | JoinOperator::LeftSemi(constraint)
        | JoinOperator::RightSemi(constraint)
        | JoinOperator::LeftAnti(constraint)
        | JoinOperator::RightAnti(constraint) => Some(constraint),
        _ => None,
    }
}
