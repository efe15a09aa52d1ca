//! Conditions of which only the parts are asked of the engine, each a column of a select list, and
//! which are put together here, by the logic of three values.

use super::maker::{Class, Maker};
use crate::differential::Cell;

/// True, false, or unknown.
pub type Truth = Option<bool>;

/// A condition. Its operands are columns, by their number.
pub enum Logic {
    Constant(bool),
    Column(usize),
    Compare(usize, &'static str, usize),
    /// Whether the operand is one of the others.
    In(usize, Vec<usize>),
    IsNull(usize),
    Not(Box<Logic>),
    And(Box<Logic>, Box<Logic>),
    Or(Box<Logic>, Box<Logic>),
    /// Whether it is this, and never unknown.
    Is(Box<Logic>, Truth),
}

/// A condition, and its operands' texts: as the condition has them, and as columns.
pub struct Condition {
    pub logic: Logic,
    texts: Vec<String>,
    /// The operands' texts, cast to types whose values can be compared here.
    pub columns: Vec<String>,
}

impl Condition {
    /// A random condition over the innermost scope.
    pub fn random(maker: &mut Maker<'_>) -> Condition {
        let mut condition =
            Condition { logic: Logic::Constant(true), texts: vec![], columns: vec![] };
        condition.logic = condition.make(maker, 2);
        condition
    }

    fn operand(&mut self, text: String, class: Class) -> usize {
        let column = match class {
            Class::Int => format!("CAST({text} AS BIGINT)"),
            Class::Money => format!("CAST({text} AS DOUBLE)"),
            _ => text.clone(),
        };
        self.texts.push(text);
        self.columns.push(column);
        self.texts.len() - 1
    }

    fn value(&mut self, maker: &mut Maker<'_>, class: Class) -> usize {
        let text = match maker.below(5) {
            0 if class == Class::Int => maker.cut_to_int(),
            1 if class == Class::Int && maker.is_ours() => {
                let a = maker.expr(class, 0);
                maker.int_of_ours(a)
            }
            0 | 1 if class == Class::Money => maker.cut_to_tenths(),
            _ => maker.expr(class, 1),
        };
        self.operand(text, class)
    }

    fn make(&mut self, maker: &mut Maker<'_>, depth: usize) -> Logic {
        let parts = if depth == 0 { 5 } else { 11 };
        match maker.below(parts) {
            0 => match maker.chance(0.3) {
                true => Logic::Constant(maker.chance(0.5)),
                false => {
                    let class = maker.class();
                    Logic::IsNull(self.value(maker, class))
                }
            },
            1 => {
                let text = maker.condition(1);
                Logic::Column(self.operand(text, Class::Bool))
            }
            2 | 3 => {
                let class = maker.class_to_compare();
                let left = self.value(maker, class);
                let operator = maker.comparison();
                let text = match maker.chance(0.6) {
                    true => maker.literal(class),
                    false => maker.expr(class, 0),
                };
                let right = self.operand(text, class);
                Logic::Compare(left, operator, right)
            }
            4 => {
                let class = maker.pick(&[Class::Int, Class::Text]);
                let operand = self.value(maker, class);
                self.list(maker, class, operand)
            }
            5 | 6 => {
                let (a, b) = (self.make(maker, depth - 1), self.make(maker, depth - 1));
                self.joined(maker, a, b)
            }
            7 => {
                let class = maker.pick(&[Class::Int, Class::Text]);
                let operand = self.value(maker, class);
                let (a, b) = (self.list(maker, class, operand), self.list(maker, class, operand));
                self.joined(maker, a, b)
            }
            8 | 9 => Logic::Not(Box::new(self.make(maker, depth - 1))),
            _ => {
                let truth = maker.pick(&[Some(true), Some(false), None]);
                Logic::Is(Box::new(self.make(maker, depth - 1)), truth)
            }
        }
    }

    fn joined(&mut self, maker: &mut Maker<'_>, a: Logic, b: Logic) -> Logic {
        match maker.chance(0.5) {
            true => Logic::And(Box::new(a), Box::new(b)),
            false => Logic::Or(Box::new(a), Box::new(b)),
        }
    }

    fn list(&mut self, maker: &mut Maker<'_>, class: Class, operand: usize) -> Logic {
        let members = (0..1 + maker.below(3))
            .map(|_| {
                let member = match maker.chance(0.75) {
                    true => maker.literal(class),
                    false => maker.expr(class, 0),
                };
                self.operand(member, class)
            })
            .collect();
        let found = Logic::In(operand, members);
        if maker.chance(0.4) { Logic::Not(Box::new(found)) } else { found }
    }

    /// The condition as SQL.
    pub fn sql(&self) -> String {
        self.sql_of(&self.logic)
    }

    fn sql_of(&self, logic: &Logic) -> String {
        let text = |at: &usize| self.texts[*at].as_str();
        match logic {
            Logic::Constant(value) => if *value { "TRUE" } else { "FALSE" }.into(),
            Logic::Column(at) => text(at).into(),
            Logic::Compare(left, operator, right) => {
                format!("({} {operator} {})", text(left), text(right))
            }
            Logic::In(operand, members) => {
                let members: Vec<_> = members.iter().map(text).collect();
                format!("({} IN ({}))", text(operand), members.join(", "))
            }
            Logic::IsNull(at) => format!("({} IS NULL)", text(at)),
            // NOT IN is one operator.
            Logic::Not(inner) => match &**inner {
                Logic::In(operand, members) => {
                    let members: Vec<_> = members.iter().map(text).collect();
                    format!("({} NOT IN ({}))", text(operand), members.join(", "))
                }
                inner => format!("(NOT {})", self.sql_of(inner)),
            },
            Logic::And(a, b) => format!("({} AND {})", self.sql_of(a), self.sql_of(b)),
            Logic::Or(a, b) => format!("({} OR {})", self.sql_of(a), self.sql_of(b)),
            Logic::Is(inner, truth) => {
                let test = match truth {
                    Some(true) => "TRUE",
                    Some(false) => "FALSE",
                    None => "NULL",
                };
                format!("({} IS {test})", self.sql_of(inner))
            }
        }
    }

    /// What the condition is, given its columns.
    pub fn truth(&self, cells: &[Cell]) -> Truth {
        truth(&self.logic, cells)
    }
}

fn truth(logic: &Logic, cells: &[Cell]) -> Truth {
    match logic {
        Logic::Constant(value) => Some(*value),
        Logic::Column(at) => match &cells[*at] {
            Cell::Null => None,
            cell => Some(*cell == Cell::Int(1)),
        },
        Logic::Compare(left, operator, right) => compare(&cells[*left], operator, &cells[*right]),
        Logic::In(operand, members) => {
            let equal = members.iter().map(|at| compare(&cells[*operand], "=", &cells[*at]));
            equal.fold(Some(false), or)
        }
        Logic::IsNull(at) => Some(cells[*at] == Cell::Null),
        Logic::Not(inner) => truth(inner, cells).map(|value| !value),
        Logic::And(a, b) => {
            let not = |truth: Truth| truth.map(|value| !value);
            not(or(not(truth(a, cells)), not(truth(b, cells))))
        }
        Logic::Or(a, b) => or(truth(a, cells), truth(b, cells)),
        Logic::Is(inner, wanted) => Some(truth(inner, cells) == *wanted),
    }
}

fn or(a: Truth, b: Truth) -> Truth {
    match (a, b) {
        (Some(true), _) | (_, Some(true)) => Some(true),
        (Some(false), Some(false)) => Some(false),
        _ => None,
    }
}

fn compare(left: &Cell, operator: &str, right: &Cell) -> Truth {
    use std::cmp::Ordering::{Equal, Greater, Less};
    let order = match (left, right) {
        (Cell::Null, Cell::Null) if operator.starts_with("IS") => Some(Equal),
        (Cell::Null, _) | (_, Cell::Null) if operator.starts_with("IS") => Some(Less),
        (Cell::Null, _) | (_, Cell::Null) => None,
        (Cell::Int(a), Cell::Int(b)) => Some(a.cmp(b)),
        (Cell::Text(a), Cell::Text(b)) => Some(a.cmp(b)),
        (Cell::Float(a), Cell::Float(b)) => Some(a.partial_cmp(b).expect("the tables hold no NaN")),
        _ => panic!("{left:?} beside {right:?}"),
    }?;
    Some(match operator {
        "=" | "IS NOT DISTINCT FROM" => order == Equal,
        "<>" | "IS DISTINCT FROM" => order != Equal,
        "<" => order == Less,
        "<=" => order != Greater,
        ">" => order == Greater,
        ">=" => order != Less,
        other => panic!("no comparison: {other}"),
    })
}

#[test]
fn unknown_is_neither_true_nor_false() {
    let (null, one) = (Cell::Null, Cell::Int(1));
    assert_eq!(compare(&null, "=", &one), None);
    assert_eq!(compare(&null, "IS DISTINCT FROM", &one), Some(true));
    assert_eq!(or(None, Some(true)), Some(true));
    let cells = [null, one];
    let list = || Logic::In(1, vec![0, 1]);
    assert_eq!(truth(&list(), &cells), Some(true));
    assert_eq!(truth(&Logic::Not(Box::new(Logic::In(1, vec![0]))), &cells), None);
    let both = Logic::And(Box::new(Logic::IsNull(1)), Box::new(Logic::Column(0)));
    assert_eq!(truth(&both, &cells), Some(false));
}
