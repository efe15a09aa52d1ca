//! Makes queries that mean something in both engines: over tables of one another's columns, from
//! classes of types that neither mixes with others.
//!
//! What engines answer differently is not made: texts beside numbers, divisions by zero, rows of an
//! order with ties below a LIMIT, sums that round, nulls in an order that does not say where.

mod conditions;
mod ours;
mod selects;
mod sources;
mod subqueries;
mod values;
mod windows;

use rand::Rng;
use rand::seq::IndexedRandom;

use crate::random::choices::Choices;

/// What a value is. Dates are texts to SQLite, decimals (`Money`) floats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    Int,
    Real,
    Text,
    Bool,
    Date,
    Money,
}

/// All, the frequent ones more than once.
pub const CLASSES: [Class; 9] = [
    Class::Int,
    Class::Int,
    Class::Int,
    Class::Text,
    Class::Text,
    Class::Real,
    Class::Bool,
    Class::Date,
    Class::Money,
];

/// What can stand in FROM by its name.
#[derive(Debug, Clone)]
pub struct Relation {
    pub name: String,
    pub columns: Vec<(String, Class)>,
}

/// What stands for a column in a query.
#[derive(Debug, Clone)]
pub struct Column {
    pub text: String,
    pub class: Class,
}

/// The columns that an expression may name.
#[derive(Debug, Clone, Default)]
pub struct Scope {
    pub columns: Vec<Column>,
    /// Columns that order all rows, but for equal ones.
    pub order: Vec<String>,
    /// Whether its columns are aggregates or windows, which no subquery can name.
    pub computed: bool,
}

/// Which engines are to understand the query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Syntax {
    Common,
    /// Ours alone, with types and functions that SQLite lacks.
    Ours,
}

pub struct Maker<'a> {
    rng: Choices,
    syntax: Syntax,
    /// Tables and views.
    relations: &'a [Relation],
    /// Queries of a WITH.
    named: Vec<Relation>,
    /// The innermost query's last.
    scopes: Vec<Scope>,
    names: usize,
    /// Queries that may still come within this one.
    room: usize,
    /// Whether only columns of the innermost query may be named, and no query.
    local: bool,
}

impl<'a> Maker<'a> {
    pub fn new(choices: Choices, syntax: Syntax, relations: &'a [Relation]) -> Maker<'a> {
        let mut maker = Maker {
            rng: choices,
            syntax,
            relations,
            named: vec![],
            scopes: vec![],
            names: 0,
            room: 0,
            local: false,
        };
        maker.room = maker.below(5);
        maker
    }

    /// The words that its queries were made of.
    pub fn drawn(self) -> Vec<u64> {
        self.rng.drawn()
    }

    pub fn below(&mut self, end: usize) -> usize {
        self.rng.random_range(0..end)
    }

    pub fn pick<T: Clone>(&mut self, of: &[T]) -> T {
        of.choose(&mut self.rng).expect("something to choose from").clone()
    }

    pub fn chance(&mut self, share: f64) -> bool {
        self.rng.random_bool(share)
    }

    pub fn class(&mut self) -> Class {
        self.pick(&CLASSES)
    }

    pub fn classes(&mut self, most: usize) -> Vec<Class> {
        (0..self.rng.random_range(1..=most)).map(|_| self.class()).collect()
    }

    fn name(&mut self, prefix: &str) -> String {
        self.names += 1;
        format!("{prefix}{}", self.names)
    }

    pub fn is_ours(&self) -> bool {
        self.syntax == Syntax::Ours
    }

    /// Whether a further query may come; it is counted.
    fn nests(&mut self, share: f64) -> bool {
        let nests = self.room > 0 && !self.local && self.chance(share);
        self.room -= usize::from(nests);
        nests
    }

    /// Makes something that names columns of the innermost query alone.
    pub fn locally<T>(&mut self, make: impl FnOnce(&mut Self) -> T) -> T {
        let before = std::mem::replace(&mut self.local, true);
        let made = make(self);
        self.local = before;
        made
    }

    /// Makes a query that sees nothing of those around it.
    fn apart<T>(&mut self, make: impl FnOnce(&mut Self) -> T) -> T {
        let scopes = std::mem::take(&mut self.scopes);
        let local = std::mem::replace(&mut self.local, false);
        let made = make(self);
        (self.scopes, self.local) = (scopes, local);
        made
    }

    /// Makes something within a scope.
    pub fn within<T>(&mut self, scope: Scope, make: impl FnOnce(&mut Self) -> T) -> T {
        self.scopes.push(scope);
        let made = make(self);
        self.scopes.pop();
        made
    }

    /// A column of the class, if one can be named here.
    fn column(&mut self, class: Class) -> Option<String> {
        let of = |scope: &Scope| -> Vec<String> {
            let columns = scope.columns.iter().filter(|column| column.class == class);
            columns.map(|column| column.text.clone()).collect()
        };
        let (inner, around) = self.scopes.split_last()?;
        let inner = of(inner);
        let outer: Vec<_> = match self.local {
            true => vec![],
            // The nearest twice.
            false => {
                let seen: Vec<_> =
                    around.iter().rev().filter(|scope| !scope.computed).map(of).collect();
                seen.iter().take(1).chain(&seen).flatten().cloned().collect()
            }
        };
        let from = match (inner.is_empty(), outer.is_empty()) {
            (true, true) => return None,
            (false, true) => inner,
            (true, false) => outer,
            (false, false) => {
                if self.chance(0.3) {
                    outer
                } else {
                    inner
                }
            }
        };
        Some(self.pick(&from))
    }

    /// A whole query, and whether its rows have an order.
    pub fn query(&mut self) -> String {
        let mut with = vec![];
        while self.named.len() < 2 && self.nests(0.12) {
            let classes = self.classes(4);
            let (text, columns) = self.apart(|maker| maker.select(&classes));
            let name = self.name("w");
            with.push(format!("{name} AS ({text})"));
            self.named.push(Relation { name, columns });
        }
        let classes = self.classes(4);
        let (text, _) = self.select(&classes);
        match with.is_empty() {
            true => text,
            false => format!("WITH {} {text}", with.join(", ")),
        }
    }

    /// A query without WITH, for a view, and its columns.
    pub fn view(&mut self) -> (String, Vec<(String, Class)>) {
        let classes = self.classes(5);
        self.select(&classes)
    }
}
