//! Conditions with subqueries: made at random, written as SQL, evaluated by trying every row.

use rand::Rng;
use rand::rngs::StdRng;

/// A row of a table; booleans are 0 and 1.
pub type Row = Vec<Option<i64>>;

/// Tables by number, with their names.
pub struct Tables(pub Vec<(&'static str, Vec<Row>)>);

/// The table whose rows a query asks for; its columns.
pub const OUTER: usize = 0;
const OF_OUTER: [&str; 5] = ["id", "a", "b", "m", "p"];
const OF_INNER: [&str; 3] = ["c", "d", "e"];

impl Tables {
    pub fn of(&self, table: usize) -> &[Row] {
        &self.0[table].1
    }
}

/// An integer. A column's level says of which query: 0 is the outermost.
#[derive(Debug, Clone)]
pub enum Value {
    Column { level: usize, at: usize },
    Constant(Option<i64>),
    Next(Box<Value>),
}

#[derive(Debug, Clone)]
pub enum Truth {
    Flag,
    Compare(Value, &'static str, Value),
    IsNull(Value),
    In { value: Value, negated: bool, list: Box<List> },
    Exists { negated: bool, list: Box<List> },
    Quantified { value: Value, operator: &'static str, all: bool, list: Box<List> },
    Not(Box<Truth>),
    And(Box<Truth>, Box<Truth>),
    Or(Box<Truth>, Box<Truth>),
    Is(Box<Truth>, &'static str),
    Equal(Box<Truth>, Box<Truth>),
    Case(Box<Truth>, Box<Truth>, Option<Box<Truth>>),
}

/// A subquery of one column.
#[derive(Debug, Clone)]
pub struct List {
    level: usize,
    table: usize,
    value: Value,
    filter: Option<Truth>,
    shape: Shape,
}

#[derive(Debug, Clone)]
enum Shape {
    Plain,
    Distinct,
    /// GROUP BY the value, HAVING count(*) > 1.
    Grouped,
    /// One row, whatever there is, unless HAVING count(*) > 1 drops it.
    Aggregate {
        function: &'static str,
        having: bool,
    },
    Union(Box<List>),
    Limit {
        offset: usize,
        limit: Option<usize>,
    },
}

const TABLES: [&str; 5] = ["t", "u", "whole", "hollow", "void"];

impl Value {
    fn of(&self, rows: &[&Row]) -> Option<i64> {
        match self {
            Value::Column { level, at } => rows[*level][*at],
            Value::Constant(value) => *value,
            Value::Next(value) => value.of(rows).map(|value| value + 1),
        }
    }

    fn sql(&self) -> String {
        match self {
            Value::Column { level: 0, at } => format!("t.{}", OF_OUTER[*at]),
            Value::Column { level, at } => format!("s{level}.{}", OF_INNER[*at]),
            Value::Constant(Some(value)) => value.to_string(),
            Value::Constant(None) => "CAST(NULL AS bigint)".into(),
            Value::Next(value) => format!("({} + 1)", value.sql()),
        }
    }
}

fn compare(a: Option<i64>, operator: &str, b: Option<i64>) -> Option<bool> {
    let (a, b) = (a?, b?);
    Some(match operator {
        "=" => a == b,
        "<>" => a != b,
        "<" => a < b,
        ">=" => a >= b,
        _ => unreachable!("no such operator"),
    })
}

fn both(a: Option<bool>, b: Option<bool>) -> Option<bool> {
    match (a, b) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    }
}

fn opposite(a: Option<bool>) -> Option<bool> {
    a.map(|a| !a)
}

fn either(a: Option<bool>, b: Option<bool>) -> Option<bool> {
    opposite(both(opposite(a), opposite(b)))
}

impl Truth {
    /// Of rows, one of each query around it.
    pub fn value(&self, tables: &Tables, rows: &[&Row]) -> Option<bool> {
        let of = |truth: &Truth| truth.value(tables, rows);
        let any = |list: &List, value: &Value, operator: &str| {
            let pairs = list
                .values(tables, rows)
                .into_iter()
                .map(|other| compare(value.of(rows), operator, other));
            pairs.fold(Some(false), either)
        };
        match self {
            Truth::Flag => rows[0][4].map(|flag| flag == 1),
            Truth::Compare(a, operator, b) => compare(a.of(rows), operator, b.of(rows)),
            Truth::IsNull(value) => Some(value.of(rows).is_none()),
            Truth::In { value, negated, list } => {
                let found = any(list, value, "=");
                if *negated { opposite(found) } else { found }
            }
            Truth::Exists { negated, list } => {
                Some(list.values(tables, rows).is_empty() == *negated)
            }
            Truth::Quantified { value, operator, all: false, list } => any(list, value, operator),
            Truth::Quantified { value, operator, all: true, list } => {
                let other = list.values(tables, rows).into_iter();
                other.map(|other| compare(value.of(rows), operator, other)).fold(Some(true), both)
            }
            Truth::Not(a) => opposite(of(a)),
            Truth::And(a, b) => both(of(a), of(b)),
            Truth::Or(a, b) => either(of(a), of(b)),
            Truth::Is(a, what) => {
                let (negated, what) =
                    what.strip_prefix("NOT ").map_or((false, *what), |what| (true, what));
                let is = match what {
                    "NULL" | "UNKNOWN" => of(a).is_none(),
                    "TRUE" => of(a) == Some(true),
                    _ => of(a) == Some(false),
                };
                Some(is != negated)
            }
            Truth::Equal(a, b) => of(a).zip(of(b)).map(|(a, b)| a == b),
            Truth::Case(condition, then, other) => match of(condition) {
                Some(true) => of(then),
                _ => other.as_ref().and_then(|other| of(other)),
            },
        }
    }

    pub fn sql(&self) -> String {
        let not = |negated: &bool| if *negated { "NOT " } else { "" };
        match self {
            Truth::Flag => "t.p".into(),
            Truth::Compare(a, operator, b) => format!("{} {operator} {}", a.sql(), b.sql()),
            Truth::IsNull(value) => format!("{} IS NULL", value.sql()),
            Truth::In { value, negated, list } => {
                format!("{} {}IN ({})", value.sql(), not(negated), list.sql())
            }
            Truth::Exists { negated, list } => format!("{}EXISTS ({})", not(negated), list.sql()),
            Truth::Quantified { value, operator, all, list } => {
                format!(
                    "{} {operator} {} ({})",
                    value.sql(),
                    if *all { "ALL" } else { "ANY" },
                    list.sql()
                )
            }
            Truth::Not(a) => format!("NOT ({})", a.sql()),
            Truth::And(a, b) => format!("({} AND {})", a.sql(), b.sql()),
            Truth::Or(a, b) => format!("({} OR {})", a.sql(), b.sql()),
            Truth::Is(a, what) => format!("({}) IS {what}", a.sql()),
            Truth::Equal(a, b) => format!("(({}) = ({}))", a.sql(), b.sql()),
            Truth::Case(condition, then, other) => {
                let other =
                    other.as_ref().map_or(String::new(), |other| format!(" ELSE {}", other.sql()));
                format!("CASE WHEN {} THEN {}{other} END", condition.sql(), then.sql())
            }
        }
    }
}

impl List {
    fn values(&self, tables: &Tables, outside: &[&Row]) -> Vec<Option<i64>> {
        let mut found = vec![];
        for row in tables.of(self.table) {
            let rows: Vec<&Row> = outside.iter().copied().chain([row]).collect();
            if self.filter.as_ref().is_none_or(|filter| filter.value(tables, &rows) == Some(true)) {
                found.push(self.value.of(&rows));
            }
        }
        let distinct = |values: &[Option<i64>]| {
            let mut values = values.to_vec();
            values.sort();
            values.dedup();
            values
        };
        match &self.shape {
            Shape::Plain => found,
            Shape::Distinct => distinct(&found),
            Shape::Grouped => {
                let often =
                    |value: &Option<i64>| found.iter().filter(|other| *other == value).count() > 1;
                distinct(&found).into_iter().filter(often).collect()
            }
            Shape::Aggregate { having: true, .. } if found.len() <= 1 => vec![],
            Shape::Aggregate { function, .. } => vec![match *function {
                "count" => Some(found.iter().flatten().count() as i64),
                "max" => found.iter().flatten().max().copied(),
                _ => Some(found.iter().flatten())
                    .filter(|all| all.clone().next().is_some())
                    .map(|all| all.sum()),
            }],
            Shape::Union(other) => [found, other.values(tables, outside)].concat(),
            Shape::Limit { offset, limit } => {
                found.into_iter().skip(*offset).take(limit.unwrap_or(usize::MAX)).collect()
            }
        }
    }

    fn sql(&self) -> String {
        let value = self.value.sql();
        let filter =
            self.filter.as_ref().map_or(String::new(), |filter| format!(" WHERE {}", filter.sql()));
        let from = format!("FROM {} s{}{filter}", TABLES[self.table], self.level);
        match &self.shape {
            Shape::Plain => format!("SELECT {value} {from}"),
            Shape::Distinct => format!("SELECT DISTINCT {value} {from}"),
            Shape::Grouped => format!("SELECT {value} {from} GROUP BY {value} HAVING count(*) > 1"),
            Shape::Aggregate { function, having } => {
                let having = if *having { " HAVING count(*) > 1" } else { "" };
                format!("SELECT {function}({value}) {from}{having}")
            }
            Shape::Union(other) => format!("SELECT {value} {from} UNION ALL {}", other.sql()),
            Shape::Limit { offset, limit } => {
                let limit = limit.map_or(String::new(), |limit| format!(" LIMIT {limit}"));
                format!("SELECT {value} {from}{limit} OFFSET {offset}")
            }
        }
    }
}

/// Makes conditions.
pub struct Maker {
    pub random: StdRng,
}

impl Maker {
    fn chance(&mut self, percent: u32) -> bool {
        self.random.random_range(0..100) < percent
    }

    fn pick<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.random.random_range(0..of.len())].clone()
    }

    pub fn condition(&mut self, depth: usize) -> Truth {
        let inner = |maker: &mut Maker| Box::new(maker.condition(depth - 1));
        match self.random.random_range(0..if depth == 0 { 5 } else { 13 }) {
            0 => self.plain(0),
            1..=3 => self.member(0, true),
            4 => self.quantified(),
            5 | 6 => Truth::Not(inner(self)),
            7 | 8 => Truth::And(inner(self), inner(self)),
            9 | 10 => Truth::Or(inner(self), inner(self)),
            11 => {
                let what = [
                    "NULL",
                    "NOT NULL",
                    "TRUE",
                    "NOT TRUE",
                    "FALSE",
                    "NOT FALSE",
                    "UNKNOWN",
                    "NOT UNKNOWN",
                ];
                let what = self.pick(&what);
                Truth::Is(inner(self), what)
            }
            _ if self.chance(50) => Truth::Equal(inner(self), inner(self)),
            _ => {
                let other = self.chance(60).then(|| inner(self));
                Truth::Case(inner(self), inner(self), other)
            }
        }
    }

    fn outer_value(&mut self) -> Value {
        let column = |at| Value::Column { level: 0, at };
        match self.random.random_range(0..10) {
            0..=3 => column(1),
            4 | 5 => column(2),
            6 | 7 => column(3),
            8 => Value::Next(Box::new(column(1))),
            _ => Value::Constant(self.pick(&[Some(1), Some(2), Some(9), None])),
        }
    }

    fn inner_value(&mut self, level: usize) -> Value {
        Value::Column { level, at: self.pick(&[0, 0, 0, 1, 2]) }
    }

    fn plain(&mut self, level: usize) -> Truth {
        let value = if level == 0 { self.outer_value() } else { self.inner_value(level) };
        match self.random.random_range(0..6) {
            0 if level == 0 => Truth::Flag,
            1 => Truth::IsNull(value),
            _ => {
                let operator = self.pick(&["=", "<>", "<", ">="]);
                let constant = self.random.random_range(0..4);
                Truth::Compare(value, operator, Value::Constant(Some(constant)))
            }
        }
    }

    /// A subquery around which are `level` queries.
    fn member(&mut self, level: usize, may_correlate: bool) -> Truth {
        let negated = self.chance(55);
        let list = Box::new(self.list(level + 1, may_correlate));
        match self.random.random_range(0..4) {
            0 => Truth::Exists { negated, list },
            _ => {
                let value = if level == 0 { self.outer_value() } else { self.inner_value(level) };
                // DataFusion refuses LIMIT where the value correlates.
                Truth::In { value, negated, list }
            }
        }
    }

    fn quantified(&mut self) -> Truth {
        let (operator, all) =
            self.pick(&[("=", false), ("<>", true), ("<", false), (">=", true), ("=", true)]);
        Truth::Quantified {
            value: self.outer_value(),
            operator,
            all,
            list: Box::new(self.list(1, true)),
        }
    }

    fn list(&mut self, level: usize, may_correlate: bool) -> List {
        let correlated = may_correlate && level == 1 && self.chance(45);
        let table = self.pick(&[1, 1, 1, 2, 3, 4]);
        let value = self.inner_value(level);
        let shape = match self.random.random_range(0..16) {
            0..=3 => Shape::Aggregate {
                function: self.pick(&["count", "max", "sum"]),
                having: self.chance(30),
            },
            4 | 5 => Shape::Distinct,
            6 => Shape::Grouped,
            7 => {
                let mut other = self.list(level, may_correlate);
                // A limit behind it would be one of all rows.
                if matches!(other.shape, Shape::Limit { .. }) {
                    other.shape = Shape::Plain;
                }
                Shape::Union(Box::new(other))
            }
            8 if !correlated => self.limit(),
            _ => Shape::Plain,
        };
        let aggregate = matches!(shape, Shape::Aggregate { .. } | Shape::Grouped);
        let mut filter = correlated.then(|| self.correlation(level, aggregate));
        if self.chance(35) {
            let more = match level {
                1 if self.chance(30) && !aggregate => self.member(1, false),
                _ => self.plain(level),
            };
            filter = Some(match filter {
                Some(filter) => Truth::And(Box::new(filter), Box::new(more)),
                None => more,
            });
        }
        List { level, table, value, filter, shape }
    }

    /// Limits whose rows do not depend on an order.
    fn limit(&mut self) -> Shape {
        match self.chance(50) {
            true => Shape::Limit { offset: 0, limit: Some(0) },
            false => Shape::Limit { offset: 0, limit: Some(99) },
        }
    }

    /// Equalities alone where rows are aggregated: DataFusion refuses others.
    fn correlation(&mut self, level: usize, equal: bool) -> Truth {
        let inner = self.inner_value(level);
        let outer = Value::Column { level: 0, at: self.pick(&[1, 2, 3]) };
        let operator = if equal { "=" } else { self.pick(&["=", "=", "<", "<>"]) };
        Truth::Compare(inner, operator, outer)
    }
}
