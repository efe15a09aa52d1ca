//! Keys of every type and of mixed types, in whatever compares keys, against brute force: values at
//! the edges of types, and values that differ by 2⁶⁴.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use warpframe::arrow::array::*;
use warpframe::arrow::compute::cast;
use warpframe::arrow::datatypes::{DataType, TimeUnit};

use crate::differential::{Cell, Pair, Rows, run};
use crate::tables::columns;

/// A key's type, whose values are whole numbers of units.
#[derive(Debug, Clone, PartialEq)]
struct Kind {
    dtype: DataType,
    /// Kinds of one family compare with each other.
    family: Family,
    least: i128,
    greatest: i128,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Family {
    /// Integers and decimals.
    Exact,
    Float,
    Time,
    Text,
    Bool,
}

/// What a value is, whatever its type: equal where SQL says that values are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Meaning {
    /// Digits that do not end in 0, and how many of them are behind the point.
    Number(i128, i32),
    Float(u64),
    Other(i128),
}

const WRAP: i128 = 1 << 64;

fn kinds() -> Vec<Kind> {
    use DataType::*;
    let kind = |dtype, family, least, greatest| Kind { dtype, family, least, greatest };
    let decimal = |precision: u8, scale: i8| {
        let most = 10i128.pow(precision.into()) - 1;
        kind(Decimal128(precision, scale), Family::Exact, -most, most)
    };
    let time = |unit, seconds: i128| {
        kind(Timestamp(unit, None), Family::Time, -9_000_000_000 * seconds, 9_000_000_000 * seconds)
    };
    let text = |dtype| kind(dtype, Family::Text, -WRAP, WRAP);
    vec![
        kind(Int8, Family::Exact, i8::MIN.into(), i8::MAX.into()),
        kind(Int16, Family::Exact, i16::MIN.into(), i16::MAX.into()),
        kind(Int32, Family::Exact, i32::MIN.into(), i32::MAX.into()),
        kind(Int64, Family::Exact, i64::MIN.into(), i64::MAX.into()),
        kind(UInt8, Family::Exact, 0, u8::MAX.into()),
        kind(UInt16, Family::Exact, 0, u16::MAX.into()),
        kind(UInt32, Family::Exact, 0, u32::MAX.into()),
        kind(UInt64, Family::Exact, 0, u64::MAX.into()),
        decimal(9, 2),
        decimal(18, 0),
        decimal(18, 2),
        decimal(19, 0),
        decimal(22, 2),
        decimal(38, 2),
        kind(Float32, Family::Float, -(1 << 24), 1 << 24),
        kind(Float64, Family::Float, -(1 << 53), 1 << 53),
        kind(Date32, Family::Time, -100_000, 100_000),
        time(TimeUnit::Second, 1),
        time(TimeUnit::Millisecond, 1_000),
        time(TimeUnit::Microsecond, 1_000_000),
        time(TimeUnit::Nanosecond, 1_000_000_000),
        kind(Boolean, Family::Bool, 0, 1),
        text(Utf8),
        text(Utf8View),
        text(Dictionary(Box::new(Int32), Box::new(Utf8))),
    ]
}

impl Kind {
    fn named(dtype: &DataType) -> Kind {
        kinds().into_iter().find(|kind| kind.dtype == *dtype).expect("a kind of this type")
    }

    fn array(&self, values: &[Option<i128>]) -> ArrayRef {
        let whole = |value: &Option<i128>| value.map(|v| v as i64);
        match &self.dtype {
            DataType::Decimal128(precision, scale) => Arc::new(
                Decimal128Array::from(values.to_vec())
                    .with_precision_and_scale(*precision, *scale)
                    .expect("a legal decimal"),
            ),
            DataType::UInt64 => {
                Arc::new(values.iter().map(|v| v.map(|v| v as u64)).collect::<UInt64Array>())
            }
            DataType::Boolean => {
                Arc::new(values.iter().map(|v| v.map(|v| v == 1)).collect::<BooleanArray>())
            }
            DataType::Date32 => {
                Arc::new(values.iter().map(|v| v.map(|v| v as i32)).collect::<Date32Array>())
            }
            dtype if self.family == Family::Text => {
                let text: StringArray =
                    values.iter().map(|v| v.map(|v| format!("text number {v}"))).collect();
                cast(&text, dtype).expect("another kind of string")
            }
            dtype => cast(&values.iter().map(whole).collect::<Int64Array>(), dtype)
                .expect("values of the type"),
        }
    }

    fn meaning(&self, value: i128) -> Meaning {
        match (&self.dtype, self.family) {
            (_, Family::Exact) => {
                let (mut digits, mut behind) = match self.dtype {
                    DataType::Decimal128(_, scale) => (value, scale.into()),
                    _ => (value, 0),
                };
                while digits % 10 == 0 && digits != 0 {
                    (digits, behind) = (digits / 10, behind - 1);
                }
                Meaning::Number(digits, if digits == 0 { 0 } else { behind })
            }
            (_, Family::Float) => Meaning::Float((value as f64).to_bits()),
            (DataType::Date32, _) => Meaning::Other(value * 86_400 * 1_000_000_000),
            (DataType::Timestamp(unit, _), _) => Meaning::Other(
                value
                    * match unit {
                        TimeUnit::Second => 1_000_000_000,
                        TimeUnit::Millisecond => 1_000_000,
                        TimeUnit::Microsecond => 1_000,
                        TimeUnit::Nanosecond => 1,
                    },
            ),
            _ => Meaning::Other(value),
        }
    }

    /// Values of this kind where codes, ranges and types have their ends, some of them as they are
    /// seen from `other`.
    fn edges(&self, other: &Kind) -> Vec<i128> {
        let scale = |kind: &Kind| match kind.dtype {
            DataType::Decimal128(_, scale) => scale as u32,
            _ => 0,
        };
        let mut ends =
            vec![0, 1, -1, 5, -5, self.least, self.greatest, other.least, other.greatest];
        for bits in [7, 8, 15, 16, 31, 32, 63, 64] {
            ends.extend([1i128 << bits, (1 << bits) - 1, -(1i128 << bits), -(1i128 << bits) - 1]);
        }
        let apart: Vec<i128> = ends
            .iter()
            .flat_map(|end| [*end, end.saturating_sub(WRAP), end.saturating_add(WRAP)])
            .collect();
        let factor = 10i128.pow(scale(self).saturating_sub(scale(other)));
        let both = apart.iter().flat_map(|end| [Some(*end), end.checked_mul(factor)]).flatten();
        let mut inside: Vec<i128> =
            both.filter(|value| (self.least..=self.greatest).contains(value)).collect();
        inside.sort();
        inside.dedup();
        inside
    }
}

/// One side of a comparison: its kind, and its values.
struct Side {
    kind: Kind,
    values: Vec<Option<i128>>,
}

impl Side {
    fn meanings(&self) -> Vec<Option<Meaning>> {
        self.values.iter().map(|value| value.map(|value| self.kind.meaning(value))).collect()
    }
}

/// Two tables `l` and `m` of numbered rows with keys `a` and `b`, and a further key `k`.
struct Sides {
    left: Side,
    right: Side,
    pair: Pair,
}

/// What every row's further key is.
fn further(row: usize) -> i64 {
    (row % 3) as i64
}

impl Sides {
    fn of(left: Side, right: Side) -> Sides {
        let table = |side: &Side, name: &'static str| {
            let rows = side.values.len() as i64;
            columns(vec![
                ("r", Arc::new(Int64Array::from_iter_values(0..rows)) as ArrayRef),
                (name, side.kind.array(&side.values)),
                ("k", Arc::new(Int64Array::from_iter_values((0..rows as usize).map(further)))),
            ])
        };
        let origin = format!("{} and {}", left.kind.dtype, right.kind.dtype);
        let pair =
            Pair::new().and("l", table(&left, "a")).and("m", table(&right, "b")).from(origin);
        Sides { left, right, pair }
    }

    /// Some values of each kind, as the generator draws them.
    fn drawn(left: &Kind, right: &Kind, rng: &mut StdRng) -> Sides {
        let (rows, others) = *[(20, 30), (40, 15), (3000, 2500)].choose(rng).expect("sizes");
        let nulls = *[0.0, 0.2].choose(rng).expect("shares");
        let side = |kind: &Kind, other: &Kind, rows: usize, rng: &mut StdRng| {
            let edges = kind.edges(other);
            // Keys of a narrow range number slots, others are packed or hashed.
            let narrow: Vec<i128> =
                (-3..12).filter(|v| (kind.least..=kind.greatest).contains(v)).collect();
            let pool = if rng.random_bool(0.3) { &narrow } else { &edges };
            let far = |rng: &mut StdRng| rng.random_range(kind.least..=kind.greatest);
            let value = |at: usize, rng: &mut StdRng| match at {
                // Large sides are mostly of values that match nothing, so that results stay small.
                40.. if kind.greatest > 1 << 31 => far(rng),
                40.. => rng.random_range(kind.least..=kind.greatest.min(kind.least + 40_000)),
                _ => *pool.choose(rng).expect("a value"),
            };
            let rows = if kind.greatest < 1 << 15 { rows.min(40) } else { rows };
            let values =
                (0..rows).map(|at| (!rng.random_bool(nulls)).then(|| value(at, rng))).collect();
            Side { kind: kind.clone(), values }
        };
        let (l, r) = (side(left, right, rows, rng), side(right, left, others, rng));
        Sides::of(l, r)
    }

    /// Asks both engines, and compares with what brute force says.
    #[track_caller]
    fn expect(&self, sql: &str, expected: &[Vec<Option<i128>>]) {
        let mut expected = expected.to_vec();
        expected.sort();
        for (engine, session) in [("cpu", &self.pair.cpu), ("device", &self.pair.device)] {
            let found = run(session, sql)
                .unwrap_or_else(|e| panic!("{engine}: {e}\n  {sql}\n  {}", self.pair.origin));
            let cell = |cell: &Cell| match cell {
                Cell::Null => None,
                Cell::Int(value) => Some(*value),
                other => panic!("{other:?} in {sql}"),
            };
            let mut found: Vec<Vec<_>> =
                Rows::of(&found).rows.iter().map(|row| row.iter().map(cell).collect()).collect();
            found.sort();
            if found != expected {
                let lacks: Vec<_> =
                    expected.iter().filter(|row| !found.contains(row)).take(4).collect();
                let extra: Vec<_> =
                    found.iter().filter(|row| !expected.contains(row)).take(4).collect();
                let value = |row: &Vec<Option<i128>>| {
                    let of = |side: &Side, at: usize| {
                        row.get(at)
                            .copied()
                            .flatten()
                            .and_then(|r| side.values.get(r as usize))
                            .cloned()
                    };
                    (of(&self.left, 0), of(&self.right, 1))
                };
                panic!(
                    "{engine}: {} rows, {} expected\n  {sql}\n  {}\n  lacks {lacks:?} {:?}\n  extra {extra:?} {:?}",
                    found.len(),
                    expected.len(),
                    self.pair.origin,
                    lacks.iter().map(|row| value(row)).collect::<Vec<_>>(),
                    extra.iter().map(|row| value(row)).collect::<Vec<_>>(),
                );
            }
        }
    }

    /// Rows of both sides that match; `keyed`: their further keys are equal, too; `nulls`: nulls
    /// match nulls.
    fn matches(&self, keyed: bool, nulls: bool) -> Vec<(usize, usize)> {
        let mut by_key: HashMap<_, Vec<usize>> = HashMap::new();
        let key = |row: usize, meaning: &Option<Meaning>| {
            (meaning.is_some() || nulls).then_some((*meaning, if keyed { further(row) } else { 0 }))
        };
        for (row, meaning) in self.right.meanings().iter().enumerate() {
            if let Some(key) = key(row, meaning) {
                by_key.entry(key).or_default().push(row);
            }
        }
        let left = self.left.meanings();
        let of_row = |(row, meaning): (usize, &Option<Meaning>)| -> Vec<(usize, usize)> {
            let matches = key(row, meaning).and_then(|key| by_key.get(&key));
            matches.into_iter().flatten().map(|other| (row, *other)).collect()
        };
        left.iter().enumerate().flat_map(of_row).collect()
    }

    fn check(&self, form: Form) {
        let some = |row: usize| Some(row as i128);
        let (left, right) = (self.left.meanings(), self.right.meanings());
        let (rows, others) = (left.len(), right.len());
        let pairs = self.matches(form == Form::SeveralKeys, matches!(form, Form::NotDistinct));
        let matched: HashSet<usize> = pairs.iter().map(|(l, _)| *l).collect();
        let reached: HashSet<usize> = pairs.iter().map(|(_, r)| *r).collect();
        let mut both: Vec<Vec<Option<i128>>> =
            pairs.iter().map(|(l, r)| vec![some(*l), some(*r)]).collect();
        let lone = |rows: usize, known: &HashSet<usize>| -> Vec<usize> {
            (0..rows).filter(|row| !known.contains(row)).collect()
        };
        let alone = |rows: Vec<usize>| -> Vec<Vec<Option<i128>>> {
            rows.into_iter().map(|row| vec![some(row)]).collect()
        };
        let among = |values: &[Option<Meaning>]| values.iter().copied().collect::<HashSet<_>>();
        let count = |number: usize| vec![vec![some(number)]];
        const PAIRS: &str = "SELECT l.r, m.r AS s FROM l";
        match form {
            Form::Inner => self.expect(&format!("{PAIRS} JOIN m ON l.a = m.b"), &both),
            Form::NotDistinct => {
                self.expect(&format!("{PAIRS} JOIN m ON l.a IS NOT DISTINCT FROM m.b"), &both)
            }
            Form::SeveralKeys => {
                self.expect(&format!("{PAIRS} JOIN m ON l.a = m.b AND l.k = m.k"), &both)
            }
            Form::Condition => {
                both.retain(|pair| pair[0] <= pair[1]);
                self.expect(&format!("{PAIRS} JOIN m ON l.a = m.b AND l.r <= m.r"), &both);
            }
            Form::Left | Form::Right | Form::Full => {
                if form != Form::Right {
                    both.extend(lone(rows, &matched).into_iter().map(|row| vec![some(row), None]));
                }
                if form != Form::Left {
                    both.extend(
                        lone(others, &reached).into_iter().map(|row| vec![None, some(row)]),
                    );
                }
                self.expect(&format!("{PAIRS} {form:?} JOIN m ON l.a = m.b"), &both);
            }
            Form::Semi => {
                self.expect(
                    "SELECT l.r FROM l LEFT SEMI JOIN m ON l.a = m.b",
                    &alone(matched.into_iter().collect()),
                );
                let reached = alone(reached.into_iter().collect());
                self.expect("SELECT m.r FROM l RIGHT SEMI JOIN m ON l.a = m.b", &reached);
            }
            Form::Anti => {
                self.expect(
                    "SELECT l.r FROM l LEFT ANTI JOIN m ON l.a = m.b",
                    &alone(lone(rows, &matched)),
                );
                self.expect(
                    "SELECT m.r FROM l RIGHT ANTI JOIN m ON l.a = m.b",
                    &alone(lone(others, &reached)),
                );
            }
            Form::In => self.expect(
                "SELECT r FROM l WHERE a IN (SELECT b FROM m)",
                &alone(matched.into_iter().collect()),
            ),
            Form::Mark => {
                let kept = (0..rows).filter(|row| matched.contains(row) || *row < 3).collect();
                self.expect("SELECT r FROM l WHERE a IN (SELECT b FROM m) OR r < 3", &alone(kept));
            }
            Form::NotIn => {
                let known =
                    |row: &usize| left[*row].is_some() && !right.contains(&None) || others == 0;
                let kept = lone(rows, &matched).into_iter().filter(known).collect();
                self.expect("SELECT r FROM l WHERE a NOT IN (SELECT b FROM m)", &alone(kept));
            }
            Form::Exists => self.expect(
                "SELECT r FROM l WHERE EXISTS (SELECT 1 FROM m WHERE m.b = l.a)",
                &alone(matched.into_iter().collect()),
            ),
            Form::Except => {
                let number = among(&left).difference(&among(&right)).count();
                self.expect(
                    "SELECT count(*) AS n FROM (SELECT a FROM l EXCEPT SELECT b FROM m)",
                    &count(number),
                );
            }
            Form::Intersect => {
                let number = among(&left).intersection(&among(&right)).count();
                self.expect(
                    "SELECT count(*) AS n FROM (SELECT a FROM l INTERSECT SELECT b FROM m)",
                    &count(number),
                );
            }
            Form::Union => {
                let number = among(&left).union(&among(&right)).count();
                self.expect(
                    "SELECT count(*) AS n FROM (SELECT a FROM l UNION SELECT b FROM m)",
                    &count(number),
                );
            }
            Form::Groups | Form::Partitions => {
                let mut often: HashMap<_, i128> = HashMap::new();
                left.iter()
                    .chain(&right)
                    .for_each(|meaning| *often.entry(*meaning).or_default() += 1);
                let all = "(SELECT a AS x FROM l UNION ALL SELECT b FROM m)";
                let squares = vec![vec![Some(often.values().map(|n| n * n).sum())]];
                let by = match form {
                    Form::Groups => format!(
                        "SELECT sum(n * n) AS n FROM (SELECT count(*) AS n FROM {all} GROUP BY x)"
                    ),
                    _ => format!(
                        "SELECT sum(n) AS n FROM (SELECT count(*) OVER (PARTITION BY x) AS n FROM {all})"
                    ),
                };
                self.expect(&by, &squares);
            }
        }
    }
}

/// What compares keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Inner,
    Left,
    Right,
    Full,
    Semi,
    Anti,
    In,
    Mark,
    NotIn,
    Exists,
    Except,
    Intersect,
    Union,
    Groups,
    Partitions,
    SeveralKeys,
    Condition,
    NotDistinct,
}

const FORMS: [Form; 18] = [
    Form::Inner,
    Form::Left,
    Form::Right,
    Form::Full,
    Form::Semi,
    Form::Anti,
    Form::In,
    Form::Mark,
    Form::NotIn,
    Form::Exists,
    Form::Except,
    Form::Intersect,
    Form::Union,
    Form::Groups,
    Form::Partitions,
    Form::SeveralKeys,
    Form::Condition,
    Form::NotDistinct,
];

/// Keys of these types and values, compared in every way, whichever side is which.
fn in_every_way(one: (&DataType, &[i128]), other: (&DataType, &[i128])) {
    in_ways(one, other, 1);
}

/// Keys of these types and values, compared in every `every`-th way, and in others where the sides
/// are exchanged.
fn in_ways(one: (&DataType, &[i128]), other: (&DataType, &[i128]), every: usize) {
    let side = |(dtype, values): (&DataType, &[i128]), null: bool| Side {
        kind: Kind::named(dtype),
        values: values.iter().map(|v| Some(*v)).chain(null.then_some(None)).collect(),
    };
    for (at, (left, right, null)) in
        [(one, other, true), (other, one, false)].into_iter().enumerate()
    {
        let sides = Sides::of(side(left, null), side(right, null));
        FORMS.into_iter().skip(at % every).step_by(every).for_each(|form| sides.check(form));
    }
}

#[test]
fn integers_that_differ_by_2_64_do_not_match() {
    let (i, u) = (i64::MIN as i128, u64::MAX as i128);
    in_every_way(
        (&DataType::Int64, &[i, -1, -5, 0, 7, i64::MAX.into()]),
        (&DataType::UInt64, &[0, 7, 1 << 63, u, u - 4, i64::MAX.into()]),
    );
    // Of a narrow range on one side.
    in_ways((&DataType::Int64, &[-1, -5, -3, 0, 2]), (&DataType::UInt64, &[2, u, u - 4, u - 2]), 2);
    in_ways((&DataType::Int8, &[-1, -128, 0]), (&DataType::UInt64, &[u, u - 127]), 2);
}

#[test]
fn decimals_that_differ_by_2_64_units_do_not_match() {
    let values = [-WRAP + 100, -7, 0, 5, WRAP - 3, WRAP + 5, 10i128.pow(18) - 1];
    let narrow = [100, -7, 0, 5, -3, 10i128.pow(18) - 1];
    in_every_way((&DataType::Decimal128(18, 2), &narrow), (&DataType::Decimal128(22, 2), &values));
    in_ways((&DataType::Int64, &narrow), (&DataType::Decimal128(22, 2), &values.map(|v| v * 5)), 2);
}

/// Random kinds, values and ways: eight, or `WARPFRAME_KEY_CASES`, from `WARPFRAME_KEY_SEED` on.
#[test]
fn keys_of_any_types_match_as_brute_force_says() {
    let asked = |name: &str, otherwise: u64| {
        std::env::var(name).ok().map_or(otherwise, |text| text.parse().expect("a number"))
    };
    let (first, cases) = (asked("WARPFRAME_KEY_SEED", 0), asked("WARPFRAME_KEY_CASES", 8));
    let (kinds, start) = (kinds(), std::time::Instant::now());
    for seed in first..first + cases {
        let rng = &mut StdRng::seed_from_u64(seed);
        let left = kinds.choose(rng).expect("a kind");
        let others: Vec<_> = kinds.iter().filter(|kind| kind.family == left.family).collect();
        let right = *others.choose(rng).expect("at least itself");
        let sides = Sides::drawn(left, right, rng);
        let forms: Vec<Form> = FORMS.choose_multiple(rng, 4).copied().collect();
        eprintln!("seed {seed}: {} {:?} {:?}", sides.pair.origin, forms, start.elapsed());
        forms.into_iter().for_each(|form| sides.check(form));
    }
}
