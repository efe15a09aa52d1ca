//! Conditions, with what simplifiers turn into something else: lists of one operand, constants,
//! casts that lose digits, comparisons that nulls leave undecided.

use super::super::dialects::either;
use super::{Class, Maker};

impl Maker<'_> {
    pub fn condition(&mut self, depth: usize) -> String {
        if depth == 0 {
            return self.simple_condition();
        }
        let depth = depth - 1;
        if self.is_ours() && self.chance(0.2) {
            return self.condition_of_ours(depth);
        }
        match self.below(20) {
            0..4 => {
                let junction = self.pick(&["AND", "OR"]);
                format!("({} {junction} {})", self.condition(depth), self.condition(depth))
            }
            4 | 5 => format!("(NOT {})", self.condition(depth)),
            6 | 7 => self.two_lists(depth),
            8 => {
                let test = self.pick(&[
                    "IS TRUE",
                    "IS FALSE",
                    "IS NOT TRUE",
                    "IS NOT FALSE",
                    "IS NULL",
                    "IS NOT NULL",
                ]);
                format!("({} {test})", self.condition(depth))
            }
            9 => {
                let operator = self.comparison();
                format!("({} {operator} {})", self.condition(depth), self.condition(depth))
            }
            10 => {
                let class = self.class_to_compare();
                format!(
                    "({}{} BETWEEN {} AND {})",
                    self.expr(class, depth),
                    self.pick(&["", " NOT"]),
                    self.expr(class, 0),
                    self.expr(class, 0)
                )
            }
            11 => {
                let (condition, other) = (self.condition(depth), self.simple_condition());
                format!("CASE WHEN {condition} THEN {other} ELSE {} END", self.expr(Class::Bool, 0))
            }
            12..15 if self.nests(0.7) => self.subquery_condition(depth),
            15 => format!("({})", self.cut_compared()),
            _ => {
                let class = self.class_to_compare();
                let operator = self.comparison();
                format!("({} {operator} {})", self.expr(class, depth), self.expr(class, depth))
            }
        }
    }

    pub fn comparison(&mut self) -> &'static str {
        self.pick(&[
            "=",
            "=",
            "=",
            "<>",
            "<",
            "<=",
            ">",
            ">=",
            "IS DISTINCT FROM",
            "IS NOT DISTINCT FROM",
        ])
    }

    pub fn simple_condition(&mut self) -> String {
        let class = self.class_to_compare();
        match self.below(16) {
            0 => self.literal(Class::Bool),
            1 | 2 => self.column(Class::Bool).unwrap_or_else(|| self.literal(Class::Bool)),
            3 => format!("({} IS{} NULL)", self.expr(class, 0), self.pick(&["", " NOT"])),
            4 | 5 => self.list(class, 0),
            6 => {
                let pattern = self.pick(&["a%", "%b", "_", "%", "", "%a%", "a_"]);
                let not = self.pick(&["", " NOT"]);
                format!("({}{not} LIKE '{pattern}')", self.expr(Class::Text, 0))
            }
            7 => {
                let text = self.expr(Class::Text, 0);
                either(&format!("({text} ~ '.*')"), &format!("({text} = {text})"))
            }
            8 | 9 => format!("({})", self.cut_compared()),
            10 | 11 => {
                let operator = self.comparison();
                format!("({} {operator} {})", self.expr(class, 0), self.expr(class, 0))
            }
            _ => {
                let operator = self.comparison();
                format!("({} {operator} {})", self.expr(class, 0), self.literal(class))
            }
        }
    }

    /// What a cast made of a value, compared with a literal, which is not what the value is
    /// compared with.
    pub fn cut_compared(&mut self) -> String {
        let (cut, class) = match self.chance(0.7) {
            true => (self.cut_to_int(), Class::Int),
            false => (self.cut_to_tenths(), Class::Money),
        };
        match self.below(4) {
            0 => {
                let list = [self.literal(class), self.literal(class)].join(", ");
                format!("{cut}{} IN ({list})", self.pick(&["", " NOT"]))
            }
            _ => format!("{cut} {} {}", self.comparison(), self.literal(class)),
        }
    }

    pub fn list(&mut self, class: Class, depth: usize) -> String {
        let operand = self.expr(class, depth);
        self.list_of(&operand, class)
    }

    pub fn list_of(&mut self, operand: &str, class: Class) -> String {
        let mut members: Vec<_> = (0..1 + self.below(3))
            .map(|_| match self.below(5) {
                0 => self.expr(class, 0),
                _ => self.literal(class),
            })
            .collect();
        if self.chance(0.15) {
            members.push("NULL".into());
        }
        format!("({operand}{} IN ({}))", self.pick(&["", " NOT"]), members.join(", "))
    }

    /// Two or three conditions on one operand, which look as if one list could stand for them.
    pub fn two_lists(&mut self, depth: usize) -> String {
        let class = self.pick(&[Class::Int, Class::Text]);
        let operand = self.expr(class, depth.min(1));
        let parts: Vec<_> = (0..2 + self.below(2))
            .map(|_| match self.chance(0.8) {
                true => self.list_of(&operand, class),
                false => format!("({operand} {} {})", self.pick(&["=", "<>"]), self.literal(class)),
            })
            .collect();
        let junction = self.pick(&[" AND ", " OR "]);
        format!("({})", parts.join(junction))
    }
}
