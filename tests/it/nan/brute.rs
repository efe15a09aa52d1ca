//! Expressions over floats that say themselves what they are in a row, by the rules alone: NaN is
//! one value, greater than every other number, and −0.0 is 0.0 but where values are put in an
//! order.

use std::cmp::Ordering;

use rand::Rng;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;

/// The bits of the doubles that are tested: all kinds of NaN, zeros, infinities, and numbers small
/// and large.
pub const DOUBLES: [u64; 22] = [
    0x7ff8_0000_0000_0000, // NaN
    0xfff8_0000_0000_0000, // of the other sign, as x86 makes it
    0x7fff_ffff_ffff_ffff, // as a GPU makes it
    0x7ff8_0000_dead_beef, // with a payload
    0xffff_ffff_ffff_ffff,
    0x7ff0_0000_0000_0001, // signalling
    0xfff4_0000_0000_0000,
    0x0000_0000_0000_0000,
    0x8000_0000_0000_0000,
    0x7ff0_0000_0000_0000, // infinite
    0xfff0_0000_0000_0000,
    0x0000_0000_0000_0001, // subnormal
    0x8000_0000_0000_0001,
    0x000f_ffff_ffff_ffff,
    0x3ff8_0000_0000_0000, // 1.5
    0xbff8_0000_0000_0000,
    0x4014_0000_0000_0000, // 5
    0xc014_0000_0000_0000,
    0x4004_0000_0000_0000, // 2.5
    0x7e37_e43c_8800_759c, // 1e300
    0xfe37_e43c_8800_759c,
    0x3ff0_0000_0000_0000,
];

/// The bits of the floats that are tested: kinds of NaN, zeros, infinities, and numbers small and
/// large.
pub const FLOATS: [u32; 18] = [
    0x7fc0_0000,
    0xffc0_0000,
    0x7fff_ffff,
    0x7fc0_beef,
    0xffff_ffff,
    0x7f80_0001,
    0xffa0_0000,
    0,
    0x8000_0000,
    0x7f80_0000,
    0xff80_0000,
    1,
    0x8000_0001,
    0x3fc0_0000,
    0xbfc0_0000,
    0x40a0_0000,
    0xc0a0_0000,
    0x7f7f_ffff,
];

/// A row of the table.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    pub i: i64,
    pub g: i64,
    pub x: Option<f64>,
    pub y: Option<f64>,
    pub u: Option<f32>,
    pub v: Option<f32>,
}

impl Row {
    pub fn random(i: i64, rng: &mut StdRng) -> Row {
        let mut double = || {
            let bits = *DOUBLES.choose(rng).expect("some");
            (!rng.random_bool(0.08)).then(|| f64::from_bits(bits))
        };
        let (x, y) = (double(), double());
        let mut float = || {
            let bits = *FLOATS.choose(rng).expect("some");
            (!rng.random_bool(0.08)).then(|| f32::from_bits(bits))
        };
        let (u, v) = (float(), float());
        Row { i, g: rng.random_range(0..7), x, y, u, v }
    }
}

/// A number with its place among all: NaN last, whatever its bits.
pub fn place(value: f64) -> i64 {
    if value.is_nan() {
        return i64::MAX;
    }
    let bits = value.to_bits() as i64;
    bits ^ (((bits >> 63) as u64) >> 1) as i64
}

/// A number with its place among all, where −0.0 and 0.0 share one.
pub fn equal_place(value: f64) -> i64 {
    place(if value == 0.0 { 0.0 } else { value })
}

/// How SQL compares.
pub fn compare(a: f64, b: f64) -> Ordering {
    equal_place(a).cmp(&equal_place(b))
}

/// The width of an expression's floats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Width {
    Double,
    Float,
}

/// A float.
#[derive(Debug, Clone)]
pub enum Number {
    First(Width),
    Second(Width),
    /// Its text in SQL and its value.
    Constant(Width, &'static str, Option<f64>),
    Binary(char, Box<Number>, Box<Number>),
    Negative(Box<Number>),
    Absolute(Box<Number>),
    Nullif(Box<Number>, Box<Number>),
    Coalesce(Box<Number>, Box<Number>),
    Greatest(Box<Number>, Box<Number>),
    Least(Box<Number>, Box<Number>),
    If(Box<Truth>, Box<Number>, Box<Number>),
}

/// A condition.
#[derive(Debug, Clone)]
pub enum Truth {
    Compare(&'static str, Number, Number),
    Distinct(bool, Number, Number),
    In(bool, Number, Vec<Number>),
    Between(bool, Number, Number, Number),
    /// `CASE a WHEN b THEN true WHEN c THEN false ELSE NULL END`
    Case(Number, Number, Number),
    And(Box<Truth>, Box<Truth>),
    Not(Box<Truth>),
    IsNan(Number),
}

const CONSTANTS: [(&str, Option<f64>); 10] = [
    ("CAST('NaN' AS double)", Some(f64::NAN)),
    ("(- CAST('NaN' AS double))", Some(f64::NAN)),
    ("(CAST(0 AS double) / CAST(0 AS double))", Some(f64::NAN)),
    ("CAST('inf' AS double)", Some(f64::INFINITY)),
    ("CAST('-inf' AS double)", Some(f64::NEG_INFINITY)),
    ("CAST(0 AS double)", Some(0.0)),
    ("(- CAST(0 AS double))", Some(-0.0)),
    ("CAST(5 AS double)", Some(5.0)),
    ("CAST('-1.5' AS double)", Some(-1.5)),
    ("CAST(NULL AS double)", None),
];

const NARROW: [(&str, Option<f64>); 6] = [
    ("CAST('NaN' AS real)", Some(f64::NAN)),
    ("(CAST(0 AS real) / CAST(0 AS real))", Some(f64::NAN)),
    ("CAST('-inf' AS real)", Some(f64::NEG_INFINITY)),
    ("(- CAST(0 AS real))", Some(-0.0)),
    ("CAST(5 AS real)", Some(5.0)),
    ("CAST('-1.5' AS real)", Some(-1.5)),
];

impl Number {
    pub fn random(width: Width, depth: u32, rng: &mut StdRng) -> Number {
        let leaf = |rng: &mut StdRng| match rng.random_range(0..5) {
            0 | 1 => Number::First(width),
            2 | 3 => Number::Second(width),
            _ => {
                let all: &[_] = if width == Width::Double { &CONSTANTS } else { &NARROW };
                let (text, value) = *all.choose(rng).expect("some");
                Number::Constant(width, text, value)
            }
        };
        if depth == 0 {
            return leaf(rng);
        }
        let part = |rng: &mut StdRng| Box::new(Number::random(width, depth - 1, rng));
        match rng.random_range(0..12) {
            0..=4 => {
                let op = *['+', '-', '*', '/', '%'].choose(rng).expect("some");
                Number::Binary(op, part(rng), part(rng))
            }
            5 => Number::Negative(part(rng)),
            6 => Number::Absolute(part(rng)),
            7 => Number::Nullif(part(rng), part(rng)),
            8 => Number::Coalesce(part(rng), part(rng)),
            9 => Number::Greatest(part(rng), part(rng)),
            10 => Number::Least(part(rng), part(rng)),
            _ => Number::If(Box::new(Truth::random(depth - 1, rng)), part(rng), part(rng)),
        }
    }

    pub fn sql(&self) -> String {
        let call = |name: &str, a: &Number, b: &Number| format!("{name}({}, {})", a.sql(), b.sql());
        match self {
            Number::First(Width::Double) => "x".into(),
            Number::Second(Width::Double) => "y".into(),
            Number::First(Width::Float) => "u".into(),
            Number::Second(Width::Float) => "v".into(),
            Number::Constant(_, text, _) => (*text).into(),
            Number::Binary(op, a, b) => format!("({} {op} {})", a.sql(), b.sql()),
            Number::Negative(a) => format!("(- {})", a.sql()),
            Number::Absolute(a) => format!("abs({})", a.sql()),
            Number::Nullif(a, b) => call("nullif", a, b),
            Number::Coalesce(a, b) => call("coalesce", a, b),
            Number::Greatest(a, b) => call("greatest", a, b),
            Number::Least(a, b) => call("least", a, b),
            Number::If(c, a, b) => {
                format!("CASE WHEN {} THEN {} ELSE {} END", c.sql(), a.sql(), b.sql())
            }
        }
    }

    pub fn width(&self) -> Width {
        match self {
            Number::First(width) | Number::Second(width) | Number::Constant(width, ..) => *width,
            Number::Binary(_, a, _)
            | Number::Negative(a)
            | Number::Absolute(a)
            | Number::If(_, a, _) => a.width(),
            Number::Nullif(a, _)
            | Number::Coalesce(a, _)
            | Number::Greatest(a, _)
            | Number::Least(a, _) => a.width(),
        }
    }

    pub fn of(&self, row: &Row) -> Option<f64> {
        let further = |a: &Number, b: &Number, wanted: Ordering| match (a.of(row), b.of(row)) {
            (Some(a), Some(b)) => Some(if place(b).cmp(&place(a)) == wanted { b } else { a }),
            (a, b) => a.or(b),
        };
        match self {
            Number::First(Width::Double) => row.x,
            Number::Second(Width::Double) => row.y,
            Number::First(Width::Float) => row.u.map(f64::from),
            Number::Second(Width::Float) => row.v.map(f64::from),
            Number::Constant(_, _, value) => *value,
            Number::Binary(op, a, b) => {
                let (a_value, b_value) = (a.of(row)?, b.of(row)?);
                Some(match a.width() {
                    Width::Double => computed(*op, a_value, b_value),
                    Width::Float => f64::from(computed_narrow(*op, a_value as f32, b_value as f32)),
                })
            }
            Number::Negative(a) => Some(-a.of(row)?),
            Number::Absolute(a) => Some(a.of(row)?.abs()),
            Number::Nullif(a, b) => {
                let value = a.of(row)?;
                (!b.of(row).is_some_and(|b| compare(value, b).is_eq())).then_some(value)
            }
            Number::Coalesce(a, b) => a.of(row).or_else(|| b.of(row)),
            Number::Greatest(a, b) => further(a, b, Ordering::Greater),
            Number::Least(a, b) => further(a, b, Ordering::Less),
            Number::If(c, a, b) => {
                if c.of(row) == Some(true) {
                    a.of(row)
                } else {
                    b.of(row)
                }
            }
        }
    }
}

fn computed(op: char, a: f64, b: f64) -> f64 {
    match op {
        '+' => a + b,
        '-' => a - b,
        '*' => a * b,
        '/' => a / b,
        _ => a % b,
    }
}

fn computed_narrow(op: char, a: f32, b: f32) -> f32 {
    match op {
        '+' => a + b,
        '-' => a - b,
        '*' => a * b,
        '/' => a / b,
        _ => a % b,
    }
}

impl Truth {
    pub fn random(depth: u32, rng: &mut StdRng) -> Truth {
        let width = if rng.random_bool(0.7) { Width::Double } else { Width::Float };
        let number = |rng: &mut StdRng| Number::random(width, depth.min(1), rng);
        let negated = rng.random_bool(0.3);
        match rng.random_range(0..if depth == 0 { 7 } else { 9 }) {
            0 | 1 => {
                let op = *["=", "<>", "<", "<=", ">", ">="].choose(rng).expect("some");
                Truth::Compare(op, number(rng), number(rng))
            }
            2 => Truth::Distinct(negated, number(rng), number(rng)),
            3 => {
                let value = number(rng);
                let list =
                    (0..rng.random_range(1..5)).map(|_| Number::random(width, 0, rng)).collect();
                Truth::In(negated, value, list)
            }
            4 => Truth::Between(negated, number(rng), number(rng), number(rng)),
            5 => Truth::Case(number(rng), number(rng), number(rng)),
            6 => Truth::IsNan(number(rng)),
            7 => Truth::And(
                Truth::random(depth - 1, rng).into(),
                Truth::random(depth - 1, rng).into(),
            ),
            _ => Truth::Not(Truth::random(depth - 1, rng).into()),
        }
    }

    pub fn sql(&self) -> String {
        let not = |negated: &bool| if *negated { "NOT " } else { "" };
        match self {
            Truth::Compare(op, a, b) => format!("({} {op} {})", a.sql(), b.sql()),
            Truth::Distinct(negated, a, b) => {
                format!("({} IS {}DISTINCT FROM {})", a.sql(), not(negated), b.sql())
            }
            Truth::In(negated, a, list) => {
                let list: Vec<String> = list.iter().map(Number::sql).collect();
                format!("({} {}IN ({}))", a.sql(), not(negated), list.join(", "))
            }
            Truth::Between(negated, a, low, high) => {
                format!("({} {}BETWEEN {} AND {})", a.sql(), not(negated), low.sql(), high.sql())
            }
            Truth::Case(a, b, c) => {
                format!(
                    "CASE {} WHEN {} THEN true WHEN {} THEN false ELSE NULL END",
                    a.sql(),
                    b.sql(),
                    c.sql()
                )
            }
            Truth::And(a, b) => format!("({} AND {})", a.sql(), b.sql()),
            Truth::Not(a) => format!("(NOT {})", a.sql()),
            Truth::IsNan(a) => format!("isnan({})", a.sql()),
        }
    }

    pub fn of(&self, row: &Row) -> Option<bool> {
        match self {
            Truth::Compare(op, a, b) => {
                let order = compare(a.of(row)?, b.of(row)?);
                Some(match *op {
                    "=" => order.is_eq(),
                    "<>" => order.is_ne(),
                    "<" => order.is_lt(),
                    "<=" => order.is_le(),
                    ">" => order.is_gt(),
                    _ => order.is_ge(),
                })
            }
            Truth::Distinct(negated, a, b) => {
                let (a, b) = (a.of(row).map(equal_place), b.of(row).map(equal_place));
                Some((a != b) != *negated)
            }
            Truth::In(negated, a, list) => {
                let value = a.of(row)?;
                let mut unknown = false;
                for item in list {
                    match item.of(row) {
                        Some(item) if compare(value, item).is_eq() => return Some(!negated),
                        Some(_) => {}
                        None => unknown = true,
                    }
                }
                (!unknown).then_some(*negated)
            }
            Truth::Between(negated, a, low, high) => {
                let least = Truth::Compare(">=", a.clone(), low.clone());
                let most = Truth::Compare("<=", a.clone(), high.clone());
                let inside = Truth::And(least.into(), most.into()).of(row);
                inside.map(|inside| inside != *negated)
            }
            Truth::Case(a, b, c) => {
                let value = a.of(row)?;
                let same = |other: &Number| {
                    other.of(row).is_some_and(|other| compare(value, other).is_eq())
                };
                if same(b) {
                    return Some(true);
                }
                same(c).then_some(false)
            }
            Truth::And(a, b) => match (a.of(row), b.of(row)) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (Some(true), Some(true)) => Some(true),
                _ => None,
            },
            Truth::Not(a) => a.of(row).map(|a| !a),
            Truth::IsNan(a) => a.of(row).map(f64::is_nan),
        }
    }
}
