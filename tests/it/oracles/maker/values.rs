//! Expressions of a class.

use rand::Rng;

use super::super::dialects::either;
use super::super::tables::{DATES, REALS, TEXTS};
use super::{Class, Maker};

impl Maker<'_> {
    pub fn expr(&mut self, class: Class, depth: usize) -> String {
        if depth == 0 || self.chance(0.35) {
            return self.leaf(class);
        }
        if class == Class::Bool {
            return self.condition(depth);
        }
        let depth = depth - 1;
        match self.below(20) {
            0 => {
                let condition = self.condition(depth);
                let (a, b) = (self.expr(class, depth), self.expr(class, depth));
                match self.chance(0.7) {
                    true => format!("CASE WHEN {condition} THEN {a} ELSE {b} END"),
                    false => format!("CASE WHEN {condition} THEN {a} END"),
                }
            }
            1 => {
                let of = self.class_to_compare();
                let base = self.expr(of, depth);
                let (one, two) = (self.expr(of, 0), self.expr(of, 0));
                let (a, b) = (self.expr(class, depth), self.expr(class, depth));
                format!("CASE {base} WHEN {one} THEN {a} WHEN {two} THEN {b} END")
            }
            2 => format!("coalesce({}, {})", self.expr(class, depth), self.expr(class, 0)),
            3 => format!("nullif({}, {})", self.expr(class, depth), self.expr(class, 0)),
            4 | 5 if self.nests(0.6) => self.scalar(class),
            _ => match class {
                Class::Int => self.int(depth),
                Class::Real => self.real(depth),
                Class::Text => self.text(depth),
                Class::Date => self.date(depth),
                Class::Money => self.money(depth),
                Class::Bool => unreachable!("made above"),
            },
        }
    }

    pub fn leaf(&mut self, class: Class) -> String {
        let share = if self.scopes.is_empty() { 1.0 } else { 0.15 };
        match self.chance(share) {
            true => self.literal(class),
            false => self.column(class).unwrap_or_else(|| self.literal(class)),
        }
    }

    pub fn literal(&mut self, class: Class) -> String {
        if self.chance(0.06) {
            return null(class);
        }
        match class {
            Class::Int => number(&self.rng.random_range(-2..5).to_string()),
            Class::Real => number(self.pick(&REALS)),
            Class::Text => format!("'{}'", self.pick(&TEXTS)),
            Class::Bool => self.pick(&["TRUE", "FALSE"]).into(),
            Class::Date => {
                let day = self.pick(&DATES);
                either(&format!("DATE '{day}'"), &format!("'{day}'"))
            }
            Class::Money => {
                let value = self.pick(&REALS);
                either(&format!("CAST({value} AS DECIMAL(9, 2))"), &number(value))
            }
        }
    }

    /// A class of which any two values are equal or not in both engines.
    pub fn class_to_compare(&mut self) -> Class {
        self.pick(&[Class::Int, Class::Int, Class::Text, Class::Real, Class::Date, Class::Money])
    }

    pub fn int(&mut self, depth: usize) -> String {
        let a = self.expr(Class::Int, depth);
        if self.is_ours() && self.chance(0.25) {
            return self.int_of_ours(a);
        }
        match self.below(16) {
            0 => format!("({a} + {})", self.expr(Class::Int, depth)),
            1 => format!("({a} - {})", self.expr(Class::Int, depth)),
            2 => format!("({a} * {})", self.pick(&["2", "(-1)", "0", "1", "3"])),
            3 => format!("({a} / {})", self.pick(&["2", "(-3)", "1"])),
            4 => format!("({a} % {})", self.pick(&["2", "3", "1"])),
            5 => format!("(- {a})"),
            6 | 7 => {
                let b = self.expr(Class::Int, 0);
                let joined = format!("({a} {} {b})", self.pick(&["&", "|"]));
                if self.chance(0.5) { format!("(- {joined})") } else { joined }
            }
            8 => {
                let b = if self.chance(0.4) { a.clone() } else { self.expr(Class::Int, 0) };
                let exclusive = |a: &str, b: &str| {
                    either(&format!("({a} ^ {b})"), &format!("(({a} | {b}) - ({a} & {b}))"))
                };
                match self.chance(0.3) {
                    true => exclusive(&exclusive(&a, &b), &a),
                    false => exclusive(&a, &b),
                }
            }
            9 => format!("abs({a})"),
            10 => format!("length({})", self.expr(Class::Text, depth)),
            11 => {
                let (text, part) = (self.expr(Class::Text, depth), self.literal(Class::Text));
                either(&format!("strpos({text}, {part})"), &format!("instr({text}, {part})"))
            }
            12 => self.cut_to_int(),
            13 => {
                let date = self.expr(Class::Date, 0);
                let part = self.pick(&[("year", 1, 4), ("month", 6, 2), ("day", 9, 2)]);
                either(
                    &format!("CAST(extract({} FROM {date}) AS BIGINT)", part.0),
                    &format!("CAST(substr({date}, {}, {}) AS INTEGER)", part.1, part.2),
                )
            }
            14 => format!("CAST({} AS BIGINT)", self.expr(Class::Bool, depth)),
            _ => format!("nullif({a}, 0)"),
        }
    }

    /// A cast to an integer that loses something, or may.
    pub fn cut_to_int(&mut self) -> String {
        let to = self.pick(&["BIGINT", "INTEGER", "SMALLINT"]);
        match self.below(4) {
            // Columns hold no halves, which engines round differently.
            0 if let Some(x) = self.column(Class::Real).filter(|x| is_plain(x)) => {
                format!("CAST({x} AS {to})")
            }
            1 if let Some(m) = self.column(Class::Money).filter(|m| is_plain(m)) => {
                format!("CAST({m} AS {to})")
            }
            2 => {
                let (a, by) = (self.expr(Class::Int, 0), self.pick(&["1", "50", "100"]));
                let product = format!("({a} * {by})");
                either(
                    &format!("TRY_CAST({product} AS TINYINT)"),
                    &format!("CASE WHEN {product} BETWEEN -128 AND 127 THEN {product} END"),
                )
            }
            // A column of a subquery may hold what no small integer does.
            _ => format!("CAST({} AS BIGINT)", self.expr(Class::Int, 0)),
        }
    }

    pub fn real(&mut self, depth: usize) -> String {
        let a = self.expr(Class::Real, depth);
        match self.below(6) {
            0 => format!("({a} + {})", self.expr(Class::Real, depth)),
            1 => format!("({a} - {})", self.expr(Class::Real, depth)),
            2 => format!("abs({a})"),
            3 => format!("({a} * 2.0)"),
            4 => format!("CAST({} AS DOUBLE)", self.expr(Class::Money, 0)),
            _ => format!("CAST({} AS DOUBLE)", self.expr(Class::Int, depth)),
        }
    }

    pub fn money(&mut self, depth: usize) -> String {
        let a = self.expr(Class::Money, depth);
        match self.below(6) {
            0 => format!("({a} + {})", self.expr(Class::Money, 0)),
            1 => format!("({a} - {})", self.expr(Class::Money, 0)),
            2 => {
                let int = self.expr(Class::Int, 0);
                either(&format!("CAST({int} AS DECIMAL(9, 2))"), &format!("CAST({int} AS REAL)"))
            }
            _ => match self.column(Class::Money).filter(|m| is_plain(m)) {
                // Not to tenths, with which floats are not exact.
                Some(m) => either(&format!("CAST({m} AS DECIMAL(11, 0))"), &format!("round({m})")),
                None => self.literal(Class::Money),
            },
        }
    }

    /// A decimal of fewer digits than it had.
    pub fn cut_to_tenths(&mut self) -> String {
        match self.column(Class::Money).filter(|m| is_plain(m)) {
            Some(m) => either(&format!("CAST({m} AS DECIMAL(11, 1))"), &format!("round({m}, 1)")),
            None => self.literal(Class::Money),
        }
    }

    pub fn text(&mut self, depth: usize) -> String {
        let a = self.expr(Class::Text, depth);
        match self.below(8) {
            0 => format!("({a} || {})", self.expr(Class::Text, 0)),
            1 => format!("upper({a})"),
            2 => format!("lower({a})"),
            3 => format!("substr({a}, {}, {})", self.pick(&[1, 2]), self.pick(&[0, 1, 5])),
            4 => format!("replace({a}, 'a', {})", self.pick(&["'b'", "''", "'aa'"])),
            5 | 6 => format!("CAST({} AS VARCHAR)", self.expr(Class::Int, depth)),
            _ => format!("trim({a})"),
        }
    }

    pub fn date(&mut self, _: usize) -> String {
        let date = self.expr(Class::Date, 0);
        let days = self.pick(&[1, -1, 30]);
        either(
            &format!("CAST({date} + INTERVAL '{days} days' AS DATE)"),
            &format!("date({date}, '{days} days')"),
        )
    }
}

/// Whether a text names a column, rather than computes one.
fn is_plain(text: &str) -> bool {
    text.strip_prefix(['t', 'u', 'v'])
        .is_some_and(|rest| rest.chars().all(|c| c.is_ascii_alphanumeric() || c == '.'))
}

/// A number that may stand behind a minus.
fn number(text: &str) -> String {
    if text.starts_with('-') { format!("({text})") } else { text.into() }
}

/// A null of the class.
pub fn null(class: Class) -> String {
    match class {
        Class::Int => "CAST(NULL AS BIGINT)".into(),
        Class::Real => "CAST(NULL AS DOUBLE)".into(),
        Class::Text => "CAST(NULL AS VARCHAR)".into(),
        Class::Bool => either("CAST(NULL AS BOOLEAN)", "NULL"),
        Class::Date => either("CAST(NULL AS DATE)", "NULL"),
        Class::Money => either("CAST(NULL AS DECIMAL(9, 2))", "NULL"),
    }
}
