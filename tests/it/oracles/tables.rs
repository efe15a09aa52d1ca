//! Small tables of few values, so that conditions hold now and then: with nulls, duplicates, or
//! without a row.

use std::fmt::Write;
use std::sync::Arc;

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use warpframe::Session;
use warpframe::arrow::array::{
    ArrayRef, BooleanArray, Date32Array, Decimal128Array, Float64Array, Int32Array, Int64Array,
    ListArray, RecordBatch, StringArray, StructArray, TimestampMicrosecondArray,
};
use warpframe::arrow::compute::kernels::cast_utils::Parser;
use warpframe::arrow::datatypes::{DataType, Date32Type, Field, Int64Type, Schema};

use super::maker::{Class, Relation};

/// The tables' names. Their columns have the same ones, so that who forgets whose a column is
/// takes another.
pub const NAMES: [&str; 3] = ["t", "u", "v"];

/// Texts of the tables and of literals.
pub const TEXTS: [&str; 7] = ["", "a", "b", "ab", "B", "a%b", "ba"];

/// Dates of the tables and of literals, some at the ends of months.
pub const DATES: [&str; 5] = ["2024-01-31", "2024-02-28", "2024-02-29", "2024-03-01", "2023-12-31"];

/// Fractions are quarters, of which sums are exact, and not halves, which engines round
/// differently.
pub const REALS: [&str; 6] = ["0.0", "1.0", "-1.0", "1.25", "-0.25", "2.25"];

/// The columns that SQLite has as well.
const COLUMNS: [(&str, Class, &str); 10] = [
    ("id", Class::Int, "INTEGER NOT NULL"),
    ("a", Class::Int, "INTEGER"),
    ("b", Class::Int, "INTEGER"),
    ("i", Class::Int, "INTEGER"),
    ("s", Class::Text, "TEXT"),
    ("w", Class::Text, "TEXT NOT NULL"),
    ("x", Class::Real, "REAL"),
    ("p", Class::Bool, "INTEGER"),
    ("d", Class::Date, "TEXT"),
    ("m", Class::Money, "REAL"),
];

/// A value of a table: its text in SQL, and where it has one its number.
type Values = Vec<Option<String>>;

/// A table: a value a row of each column.
pub struct Rows {
    name: &'static str,
    columns: Vec<Values>,
    rows: usize,
    rng: StdRng,
}

/// The tables of a group of queries.
pub fn tables(group: u64) -> Vec<Rows> {
    let mut rng = StdRng::seed_from_u64(group ^ 0x0AC1E5);
    let sizes: [&[usize]; 3] = [&[1, 3, 6, 9, 12], &[0, 1, 3, 6, 9], &[0, 1, 2, 4]];
    NAMES
        .iter()
        .zip(sizes)
        .map(|(name, sizes)| {
            let rows = *sizes.choose(&mut rng).expect("sizes");
            let nulls = *[0.0, 0.2, 0.5].choose(&mut rng).expect("shares");
            let columns = COLUMNS.iter().map(|column| values(column, rows, nulls, &mut rng));
            let columns = columns.collect();
            Rows { name, columns, rows, rng: StdRng::seed_from_u64(rng.random()) }
        })
        .collect()
}

fn values(
    (name, class, sql_type): &(&str, Class, &str),
    rows: usize,
    nulls: f64,
    rng: &mut StdRng,
) -> Values {
    (0..rows)
        .map(|row| {
            if *name == "id" {
                return Some(row.to_string());
            }
            if !sql_type.contains("NOT NULL") && rng.random_bool(nulls) {
                return None;
            }
            Some(match (*name, class) {
                ("a", _) => rng.random_range(-2i64..5).to_string(),
                ("b", _) => rng.random_range(0i64..3).to_string(),
                (_, Class::Int) => [-1i64, 1, 2, 3, 7, 40][rng.random_range(0..6)].to_string(),
                (_, Class::Text) => (*TEXTS.choose(rng).expect("texts")).to_string(),
                (_, Class::Real | Class::Money) => (*REALS.choose(rng).expect("reals")).to_string(),
                (_, Class::Bool) => rng.random_range(0..2).to_string(),
                (_, Class::Date) => (*DATES.choose(rng).expect("dates")).to_string(),
            })
        })
        .collect()
}

impl Rows {
    /// How queries see it.
    pub fn relation(&self) -> Relation {
        let columns = COLUMNS.iter().map(|(name, class, _)| (name.to_string(), *class));
        Relation { name: self.name.into(), columns: columns.collect() }
    }

    /// Statements that make it in SQLite, which also show a reader what is in it.
    pub fn statements(&self) -> String {
        let columns: Vec<_> = COLUMNS.iter().map(|(name, _, t)| format!("{name} {t}")).collect();
        let mut text = format!("CREATE TABLE {} ({});\n", self.name, columns.join(", "));
        for row in 0..self.rows {
            let cells: Vec<_> = (self.columns.iter().zip(COLUMNS))
                .map(|(values, (_, class, _))| match (&values[row], class) {
                    (None, _) => "NULL".to_string(),
                    (Some(text), Class::Text | Class::Date) => format!("'{text}'"),
                    (Some(text), _) => text.clone(),
                })
                .collect();
            let _ = writeln!(text, "INSERT INTO {} VALUES ({});", self.name, cells.join(", "));
        }
        text
    }

    /// Puts it into a session of ours, with columns of further types.
    pub fn register(&mut self, session: &Session) -> warpframe::Result<()> {
        let mut fields = vec![];
        let mut arrays: Vec<ArrayRef> = vec![];
        for ((name, class, sql_type), values) in COLUMNS.iter().zip(&self.columns) {
            let array = array(name, *class, values);
            fields.push(Field::new(
                *name,
                array.data_type().clone(),
                !sql_type.contains("NOT NULL"),
            ));
            arrays.push(array);
        }
        for (name, array) in further(self.rows, &mut self.rng) {
            fields.push(Field::new(name, array.data_type().clone(), true));
            arrays.push(array);
        }
        let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)?;
        session.register_batches(self.name, vec![batch])
    }
}

fn array(name: &str, class: Class, values: &Values) -> ArrayRef {
    fn parsed<T: std::str::FromStr<Err: std::fmt::Debug>>(text: &str) -> T {
        text.parse().expect("a value of its class")
    }
    let texts = values.iter().map(Option::as_deref);
    match class {
        Class::Int if name == "i" => Arc::new(texts.map(|v| v.map(parsed)).collect::<Int32Array>()),
        Class::Int => Arc::new(texts.map(|v| v.map(parsed)).collect::<Int64Array>()),
        Class::Real => Arc::new(texts.map(|v| v.map(parsed)).collect::<Float64Array>()),
        Class::Text => Arc::new(texts.collect::<StringArray>()),
        Class::Bool => Arc::new(texts.map(|v| v.map(|v| v == "1")).collect::<BooleanArray>()),
        Class::Date => Arc::new(texts.map(|v| v.map(days)).collect::<Date32Array>()),
        Class::Money => {
            let cents = |text: &str| (parsed::<f64>(text) * 100.0).round() as i128;
            let array = texts.map(|v| v.map(cents)).collect::<Decimal128Array>();
            Arc::new(array.with_precision_and_scale(9, 2).expect("small numbers"))
        }
    }
}

/// Days of a date since 1970.
pub fn days(text: &str) -> i32 {
    Date32Type::parse(text).expect("a date")
}

/// Columns that SQLite has no type for.
fn further(rows: usize, rng: &mut StdRng) -> Vec<(&'static str, ArrayRef)> {
    let mut draw = |values: &[i64]| -> Vec<Option<i64>> {
        (0..rows)
            .map(|_| rng.random_bool(0.8).then(|| *values.choose(rng).expect("values")))
            .collect()
    };
    const HOUR: i64 = 3_600_000_000;
    let base = i64::from(days(DATES[2])) * 24 * HOUR;
    let times: Vec<_> = [0, 1, 30 * HOUR, 49 * HOUR, -24 * HOUR].map(|by| base + by).to_vec();
    let (from, to) = (draw(&times), draw(&times));
    let (wide, one, two) = (draw(&[0, 1, 300, -7, 70_000]), draw(&[1, 2, 3]), draw(&[1, 2]));
    let lists = one.iter().zip(&two).map(|(one, two)| one.map(|one| vec![Some(one), *two]));
    let lists = ListArray::from_iter_primitive::<Int64Type, _, _>(lists);
    let field = |name| Arc::new(Field::new(name, DataType::Int64, true));
    let array = |values: Vec<Option<i64>>| Arc::new(Int64Array::from(values)) as ArrayRef;
    let structs = StructArray::from(vec![(field("f"), array(two)), (field("g"), array(one))]);
    vec![
        ("ts", Arc::new(TimestampMicrosecondArray::from(from))),
        ("te", Arc::new(TimestampMicrosecondArray::from(to))),
        ("big", array(wide)),
        ("l", Arc::new(lists)),
        ("o", Arc::new(structs)),
    ]
}
