//! What column names mean in a query whose joins merge columns.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use datafusion::common::TableReference;
use datafusion::sql::sqlparser::ast::{
    AccessExpr, ExcludeSelectItem, Expr, Ident, IdentWithAlias, ObjectName, Query,
    RenameSelectItem, SelectItem, Subscript, Value, VisitorMut, WildcardAdditionalOptions,
};

use super::marks::{MARK, own_name};
use crate::error::{Error, ErrorKind, Result};
use crate::plan::different;
use crate::sql::ast::{folded, known as known_place};

/// A column that a name without a table's may mean.
#[derive(Debug, Clone)]
pub(super) struct ScopeColumn {
    pub(super) name: String,
    /// With its table's name, or what a merged one consists of, which has no table.
    pub(super) value: Expr,
    pub(super) merged: bool,
    /// Names of its fields, of a struct that is a column of a table.
    pub(super) fields: Vec<String>,
}

impl ScopeColumn {
    /// The column in a select list.
    pub(super) fn item(self) -> SelectItem {
        match self.merged {
            false => SelectItem::UnnamedExpr(self.value),
            true => SelectItem::ExprWithAlias {
                expr: self.value,
                alias: Ident::with_quote('"', self.name),
            },
        }
    }
}

/// The columns of a query's tables.
#[derive(Debug, Clone)]
pub(super) enum Scope {
    Known(Vec<ScopeColumn>),
    Unknown,
}

impl Scope {
    pub(super) fn of(columns: Vec<ScopeColumn>) -> Scope {
        Scope::Known(columns)
    }

    pub(super) fn columns(&self) -> Option<&[ScopeColumn]> {
        match self {
            Scope::Known(columns) => Some(columns),
            Scope::Unknown => None,
        }
    }

    pub(super) fn and(self, other: Scope) -> Scope {
        match (self, other) {
            (Scope::Known(left), Scope::Known(right)) => Scope::Known([left, right].concat()),
            _ => Scope::Unknown,
        }
    }

    /// The last columns, so many.
    pub(super) fn last(self, number: usize) -> Scope {
        match self {
            Scope::Known(mut columns) => {
                Scope::Known(columns.split_off(columns.len().saturating_sub(number)))
            }
            Scope::Unknown => Scope::Unknown,
        }
    }

    pub(super) fn has_merged(&self) -> bool {
        self.columns().is_some_and(|columns| columns.iter().any(|column| column.merged))
    }
}

/// What ORDER BY may name: columns of the result, and what the query's tables have.
pub(super) struct Outputs {
    pub(super) names: HashSet<String>,
    pub(super) scopes: Vec<Scope>,
    /// The columns of the query's tables, each with its table's name.
    pub(super) of_tables: Vec<ScopeColumn>,
}

/// Puts values in place of merged names.
pub(super) struct Resolver<'a> {
    scopes: &'a [Scope],
    /// Does the same in a query within.
    within: &'a mut dyn FnMut(&mut Query) -> Result<()>,
    depth: usize,
    /// Parameters of lambdas around.
    parameters: Vec<Vec<String>>,
}

impl<'a> Resolver<'a> {
    pub(super) fn new(
        scopes: &'a [Scope],
        within: &'a mut dyn FnMut(&mut Query) -> Result<()>,
    ) -> Self {
        Resolver { scopes, within, depth: 0, parameters: vec![] }
    }

    /// The value of a merged column, if that is what the name means.
    fn meaning(&self, name: &Ident) -> Option<Expr> {
        let name = folded(name);
        if self.parameters.iter().flatten().any(|parameter| *parameter == name) {
            return None;
        }
        for scope in self.scopes {
            let mut found = scope.columns()?.iter().filter(|column| column.name == name);
            match (found.next(), found.next()) {
                (None, _) => {}
                (Some(column), None) if column.merged => return Some(column.value.clone()),
                // A column as it is, or an ambiguous one, of which the planner says so.
                _ => return None,
            }
        }
        None
    }
}

impl VisitorMut for Resolver<'_> {
    type Break = Error;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        self.depth += 1;
        match self.depth {
            1 => match (self.within)(query) {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => ControlFlow::Break(error),
            },
            _ => ControlFlow::Continue(()),
        }
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<Error> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        match expr {
            Expr::Identifier(name) if self.depth == 0 => {
                if let Some(value) = self.meaning(name) {
                    *expr = value;
                }
            }
            Expr::Lambda(lambda) => {
                self.parameters
                    .push(lambda.params.iter().map(|parameter| folded(&parameter.name)).collect());
            }
            other => hide_fields(other),
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        match expr {
            Expr::Lambda(_) => {
                self.parameters.pop();
            }
            other => show_fields(other),
        }
        ControlFlow::Continue(())
    }
}

/// Makes names of parts of the fields that an expression reads by a dot (`n.b[1]`), so that who
/// looks for names of columns below it does not take a field for one.
pub(crate) fn hide_fields(expr: &mut Expr) {
    let Expr::CompoundFieldAccess { access_chain, .. } = expr else { return };
    for access in access_chain {
        if let AccessExpr::Dot(Expr::Identifier(field)) = access {
            *access = AccessExpr::Dot(Expr::CompoundIdentifier(vec![field.clone()]));
        }
    }
}

/// Makes fields of them again.
pub(crate) fn show_fields(expr: &mut Expr) {
    let Expr::CompoundFieldAccess { access_chain, .. } = expr else { return };
    for access in access_chain {
        if let AccessExpr::Dot(Expr::CompoundIdentifier(parts)) = access
            && let [field] = &parts[..]
        {
            *access = AccessExpr::Dot(Expr::Identifier(field.clone()));
        }
    }
}

/// A column by all its names.
pub(super) fn path(qualifier: Option<&TableReference>, name: &str) -> Expr {
    let quoted = |part: &str| Ident::with_quote('"', part);
    match qualifier {
        None => Expr::Identifier(quoted(name)),
        Some(table) => {
            let parts = [table.catalog(), table.schema(), Some(table.table()), Some(name)];
            Expr::CompoundIdentifier(parts.into_iter().flatten().map(quoted).collect())
        }
    }
}

/// The columns that `*` stands for. One that has another value or name than its table's is a merged
/// one.
///
/// # Errors
/// Names of columns that there are not.
pub(super) fn wildcard(
    columns: &[ScopeColumn],
    options: &WildcardAdditionalOptions,
) -> Result<Vec<ScopeColumn>> {
    if options.opt_ilike.is_some() || options.opt_alias.is_some() {
        return Err(Error::unsupported("ILIKE or an alias of * beside USING", "name the columns"));
    }
    let last = |name: &ObjectName| name.0.last().and_then(|part| part.as_ident()).cloned();
    let mut left_out: Vec<Ident> = match &options.opt_exclude {
        Some(ExcludeSelectItem::Single(name)) => last(name).into_iter().collect(),
        Some(ExcludeSelectItem::Multiple(names)) => names.iter().filter_map(last).collect(),
        None => vec![],
    };
    if let Some(except) = &options.opt_except {
        left_out.extend(
            [&except.first_element].into_iter().chain(&except.additional_elements).cloned(),
        );
    }
    let replaced: Vec<(&Ident, &Expr)> = match &options.opt_replace {
        Some(replace) => replace.items.iter().map(|item| (&item.column_name, &item.expr)).collect(),
        None => vec![],
    };
    let renamed: &[IdentWithAlias] = match &options.opt_rename {
        Some(RenameSelectItem::Single(name)) => std::slice::from_ref(name),
        Some(RenameSelectItem::Multiple(names)) => names,
        None => &[],
    };
    let stays = |column: &ScopeColumn| !left_out.iter().any(|name| folded(name) == column.name);
    let of_all = left_out.iter().map(|name| (name, true));
    let of_shown = replaced
        .iter()
        .map(|(name, _)| (*name, false))
        .chain(renamed.iter().map(|as_| (&as_.ident, false)));
    for (name, all) in of_all.chain(of_shown) {
        if !columns.iter().any(|column| column.name == folded(name) && (all || stays(column))) {
            let known = columns
                .iter()
                .filter(|column| all || stays(column))
                .map(|column| column.name.clone());
            let error = Error::from(ErrorKind::ColumnNotFound {
                name: folded(name),
                known: known.collect(),
            });
            return Err(error.at(known_place(name.span.start)));
        }
    }
    let shown = columns.iter().filter(|column| stays(column)).cloned().map(|mut column| {
        let is_it = |name: &Ident| folded(name) == column.name;
        let value =
            replaced.iter().find(|(name, _)| is_it(name)).map(|(_, value)| (*value).clone());
        let name = renamed.iter().find(|as_| is_it(&as_.ident)).map(|as_| folded(&as_.alias));
        column.merged |= value.is_some() || name.is_some();
        column.value = value.unwrap_or(column.value);
        column.name = name.unwrap_or(column.name);
        column
    });
    Ok(shown.collect())
}

/// Those of a table, by as much of its name as is given.
pub(super) fn of_table(columns: &[ScopeColumn], table: &ObjectName) -> Vec<ScopeColumn> {
    let wanted: Vec<String> =
        table.0.iter().filter_map(|part| part.as_ident()).map(folded).collect();
    let is_of = |column: &&ScopeColumn| match &column.value {
        Expr::CompoundIdentifier(parts) => {
            let names: Vec<String> = parts[..parts.len() - 1].iter().map(folded).collect();
            names.ends_with(&wanted)
        }
        _ => false,
    };
    columns.iter().filter(is_of).cloned().collect()
}

/// The fields of the struct that a name without a table's means, as columns.
pub(super) fn of_struct(columns: &[ScopeColumn], name: &ObjectName) -> Vec<ScopeColumn> {
    let [part] = &name.0[..] else { return vec![] };
    let Some(wanted) = part.as_ident().map(folded) else { return vec![] };
    let mut found = columns.iter().filter(|column| column.name == wanted);
    let (Some(column), None) = (found.next(), found.next()) else { return vec![] };
    let field = |name: &String| {
        let index = Expr::value(Value::SingleQuotedString(name.clone()));
        let access_chain = vec![AccessExpr::Subscript(Subscript::Index { index })];
        let value = Expr::CompoundFieldAccess { root: column.value.clone().into(), access_chain };
        ScopeColumn { name: name.clone(), value, merged: true, fields: vec![] }
    };
    column.fields.iter().map(field).collect()
}

/// What a column of the result is called, as far as that is a name.
pub(crate) fn output_name(item: &SelectItem) -> Option<String> {
    match item {
        SelectItem::UnnamedExpr(Expr::Identifier(name)) => Some(folded(name)),
        SelectItem::UnnamedExpr(Expr::CompoundIdentifier(parts)) => parts.last().map(folded),
        SelectItem::ExprWithAlias { alias, .. } => Some(folded(alias)),
        _ => None,
    }
}

pub(super) fn output_names(items: &[SelectItem]) -> HashSet<String> {
    items.iter().filter_map(output_name).collect()
}

/// Whether an item is an expression, and neither a name nor called by one.
pub(crate) fn is_unnamed(item: &SelectItem) -> bool {
    matches!(item, SelectItem::UnnamedExpr(_)) && output_name(item).is_none()
}

/// Whether a name, or an expression without one, comes twice in a select list; next to a star any
/// name may.
pub(crate) fn is_any_twice(items: &[SelectItem]) -> bool {
    let (mut names, mut exprs) = (HashSet::new(), HashSet::new());
    let stars = items.iter().filter(|item| is_star(item)).count();
    stars > 1
        || items.iter().any(|item| match (output_name(item), item) {
            (Some(name), _) => stars > 0 || !names.insert(name),
            (None, SelectItem::UnnamedExpr(expr)) => !exprs.insert(uncast(expr)),
            _ => false,
        })
}

/// A cast is called as what it casts.
pub(crate) fn uncast(expr: &Expr) -> &Expr {
    match expr {
        Expr::Cast { expr, .. } | Expr::Nested(expr) => uncast(expr),
        other => other,
    }
}

/// Whether a select list has a star and something else.
pub(super) fn is_star_beside_others(items: &[SelectItem]) -> bool {
    items.len() > 1 && items.iter().any(is_star)
}

fn is_star(item: &SelectItem) -> bool {
    matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..))
}

/// Tells columns of one name apart: columns of tables next to a star, and expressions without a
/// name, which are called by their text.
pub(crate) fn tell_all_apart(items: &mut [SelectItem]) {
    name_by_texts(items);
    if items.iter().any(is_star) {
        for item in items.iter_mut() {
            if let (Some(name), SelectItem::UnnamedExpr(expr)) = (output_name(item), &*item) {
                *item = named(expr.clone(), name);
            }
        }
    }
    tell_apart(items);
}

/// Gives columns whose name comes again numbers: `a`, `a_1`. What a star stands for is not known.
pub(crate) fn number(items: &mut [SelectItem]) {
    if items.iter().any(is_star) {
        return;
    }
    name_by_texts(items);
    let own: Vec<String> = items.iter().filter_map(output_name).collect();
    let with_names = items.iter_mut().filter(|item| output_name(item).is_some());
    for ((item, own), free) in with_names.zip(&own).zip(different(&own)) {
        if let SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } = &*item
            && free != *own
        {
            *item = named(expr.clone(), free);
        }
    }
}

/// Calls expressions that come twice without a name by their text.
fn name_by_texts(items: &mut [SelectItem]) {
    let mut number: HashMap<Expr, usize> = HashMap::new();
    for item in items.iter() {
        if let (None, SelectItem::UnnamedExpr(expr)) = (output_name(item), item) {
            *number.entry(uncast(expr).clone()).or_default() += 1;
        }
    }
    for item in items.iter_mut() {
        if let SelectItem::UnnamedExpr(expr) = &*item
            && number.get(uncast(expr)).is_some_and(|number| *number > 1)
        {
            *item = named(expr.clone(), expr.to_string());
        }
    }
}

fn named(expr: Expr, name: String) -> SelectItem {
    SelectItem::ExprWithAlias { expr, alias: Ident::with_quote('"', name) }
}

/// The planner takes no two columns of one name, one of them without a table's: a merged one beside
/// others of its name gets marks, as many as such ones there were so far, for `own_names`.
pub(super) fn tell_apart(items: &mut [SelectItem]) {
    // A name alone and the same behind its table's are one column where the first is no error.
    let mut seen: Vec<Expr> = vec![];
    let is_seen = |seen: &[Expr], expr: &Expr, name: &Ident| {
        seen.iter().any(|other| match (other, expr) {
            (Expr::Identifier(one), Expr::Identifier(_) | Expr::CompoundIdentifier(_)) => {
                folded(one) == folded(name)
            }
            (Expr::CompoundIdentifier(parts), Expr::Identifier(_)) => {
                parts.last().is_some_and(|one| folded(one) == folded(name))
            }
            // A star's columns have names in quotes.
            (Expr::CompoundIdentifier(one), Expr::CompoundIdentifier(parts)) => {
                one.iter().map(folded).eq(parts.iter().map(folded))
            }
            _ => other == expr,
        })
    };
    for item in items.iter_mut() {
        let SelectItem::UnnamedExpr(expr) = &*item else { continue };
        let name = match expr {
            Expr::Identifier(name) => name,
            Expr::CompoundIdentifier(parts) => match parts.last() {
                Some(name) => name,
                None => continue,
            },
            _ => continue,
        };
        match is_seen(&seen, expr, name) {
            true => {
                let (expr, alias) = (expr.clone(), Ident::with_quote('"', folded(name)));
                *item = SelectItem::ExprWithAlias { expr, alias };
            }
            false => seen.push(expr.clone()),
        }
    }
    // A list may be told apart before its stars are written out, and then again.
    let names: Vec<Option<String>> =
        items.iter().map(|item| output_name(item).map(own_name)).collect();
    let any_table = items.iter().any(is_star);
    let mut marked: HashMap<String, usize> = HashMap::new();
    for (at, item) in items.iter_mut().enumerate() {
        let SelectItem::ExprWithAlias { alias, .. } = item else { continue };
        let mut others =
            names.iter().enumerate().filter(|(other, name)| *other != at && **name == names[at]);
        if any_table || others.next().is_some() {
            let name = own_name(folded(alias));
            let number = marked.entry(name.clone()).and_modify(|number| *number += 1).or_insert(1);
            *alias = Ident::with_quote('"', format!("{}{name}", MARK.to_string().repeat(*number)));
        }
    }
}
