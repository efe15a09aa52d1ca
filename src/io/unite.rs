//! The columns of a table of several files, by the columns of each.
//!
//! Columns are found by name. Where files have a column in different types, the table has the
//! narrowest type that holds the values of both; what no type holds without loss is an error.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use datafusion::arrow::array::{Array, AsArray};
use datafusion::arrow::datatypes::{
    DataType, Field, FieldRef, Fields, Int64Type, Schema, SchemaRef, TimeUnit, UInt64Type,
};

use super::same_column::KnownColumns;
use crate::error::{ErrorKind, Result};

/// The columns of all files.
#[derive(Debug)]
pub(super) struct United {
    pub(super) schema: SchemaRef,
    /// Columns that have integers of 64 bits in some files and are doubles in the table: which
    /// file, which column of the file, and the file that has doubles.
    pub(super) to_doubles: Vec<(usize, usize, usize)>,
}

/// A column of the table so far.
struct UnitedColumn {
    field: FieldRef,
    /// The file that gave it its type.
    of: usize,
    /// Files that have it.
    files: usize,
}

/// The columns of files with these schemas: by name, in the order in which they are met first, or
/// the same in every file.
///
/// # Errors
/// [`ErrorKind::File`] of a file whose columns do not fit those of the files before, with both
/// files, the column and both types.
pub(super) fn unite(files: &[(PathBuf, SchemaRef)], by_name: bool) -> Result<United> {
    let mut columns: Vec<UnitedColumn> = vec![];
    let mut names = KnownColumns::default();
    // Of each file.
    let mut places: Vec<Vec<usize>> = vec![];
    for (at, (path, schema)) in files.iter().enumerate() {
        distinct(path, schema)?;
        if !by_name {
            equal(&files[0], (path, schema))?;
        }
        let own: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        places.push(names.places(&own));
        for (field, place) in schema.fields().iter().zip(&places[at]) {
            if *place == columns.len() {
                columns.push(UnitedColumn { field: field.clone(), of: at, files: 1 });
                continue;
            }
            let known = &mut columns[*place];
            known.files += 1;
            let Some(dtype) = wider(known.field.data_type(), field.data_type()) else {
                let (own, other) = (field.data_type(), known.field.data_type());
                let (name, file) = (field.name(), files[known.of].0.display());
                let message =
                    format!("column {name:?} is {own}, and {other} in {file}: no type holds both");
                return Err(ErrorKind::File { path: path.clone(), message }.into());
            };
            if dtype != *known.field.data_type() {
                known.of = at;
            }
            let is_nullable = known.field.is_nullable() || field.is_nullable();
            known.field = Arc::new(Field::new(known.field.name(), dtype, is_nullable));
        }
    }
    let to_doubles = to_doubles(files, &columns, &places);
    let field = |known: UnitedColumn| match known.files == files.len() {
        true => known.field,
        false => Arc::new(known.field.as_ref().clone().with_nullable(true)),
    };
    Ok(United {
        schema: Arc::new(Schema::new(columns.into_iter().map(field).collect::<Vec<_>>())),
        to_doubles,
    })
}

fn to_doubles(
    files: &[(PathBuf, SchemaRef)],
    columns: &[UnitedColumn],
    places: &[Vec<usize>],
) -> Vec<(usize, usize, usize)> {
    let mut found = vec![];
    for (file, (_, schema)) in files.iter().enumerate() {
        for (column, field) in schema.fields().iter().enumerate() {
            let place = places[file][column];
            let is_long = matches!(field.data_type(), DataType::Int64 | DataType::UInt64);
            if is_long && *columns[place].field.data_type() == DataType::Float64 {
                let has_floats = |(of, (_, schema)): (&Vec<usize>, &(PathBuf, SchemaRef))| {
                    let column = of.iter().position(|own| *own == place);
                    column.is_some_and(|column| is_float(schema.field(column).data_type()))
                };
                let floats = places.iter().zip(files).position(has_floats);
                found.push((file, column, floats.unwrap_or(file)));
            }
        }
    }
    found
}

/// An integer of 64 bits that no double is.
pub(super) fn lost_as_double(values: &dyn Array) -> Option<i128> {
    let lost = |value: &i128| (*value as f64) as i128 != *value;
    match values.data_type() {
        DataType::Int64 => {
            values.as_primitive::<Int64Type>().iter().flatten().map(i128::from).find(lost)
        }
        _ => values.as_primitive::<UInt64Type>().iter().flatten().map(i128::from).find(lost),
    }
}

/// Whether a file has no two columns of one name.
fn distinct(path: &Path, schema: &Schema) -> Result<()> {
    let mut names = HashSet::new();
    match schema.fields().iter().find(|field| !names.insert(field.name())) {
        None => Ok(()),
        Some(field) => {
            let message = format!("it has two columns of the name {:?}", field.name());
            Err(ErrorKind::File { path: path.into(), message }.into())
        }
    }
}

/// Whether a file has the columns of the first.
fn equal(
    (first_path, first): &(PathBuf, SchemaRef),
    (path, schema): (&Path, &SchemaRef),
) -> Result<()> {
    let names =
        |schema: &Schema| schema.fields().iter().map(|f| f.name().clone()).collect::<Vec<_>>();
    let differs = (first.fields().iter().zip(schema.fields()))
        .find(|(one, other)| one.data_type() != other.data_type());
    let message = match differs {
        _ if names(first) != names(schema) => {
            let (own, other) = (names(schema).join(", "), names(first).join(", "));
            format!("columns {own} differ from {other} of {}", first_path.display())
        }
        Some((one, other)) => {
            let (name, own, other) = (one.name(), other.data_type(), one.data_type());
            format!("column {name:?} is {own}, and {other} in {}", first_path.display())
        }
        None => return Ok(()),
    };
    Err(ErrorKind::File { path: path.into(), message }.into())
}

/// Bits of an integer, and whether it has a sign.
pub(super) fn integer(dtype: &DataType) -> Option<(u32, bool)> {
    Some(match dtype {
        DataType::Int8 => (8, true),
        DataType::Int16 => (16, true),
        DataType::Int32 => (32, true),
        DataType::Int64 => (64, true),
        DataType::UInt8 => (8, false),
        DataType::UInt16 => (16, false),
        DataType::UInt32 => (32, false),
        DataType::UInt64 => (64, false),
        _ => return None,
    })
}

fn is_float(dtype: &DataType) -> bool {
    matches!(dtype, DataType::Float16 | DataType::Float32 | DataType::Float64)
}

fn is_text(dtype: &DataType) -> bool {
    match dtype {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => true,
        DataType::Dictionary(_, values) => is_text(values),
        _ => false,
    }
}

fn is_bytes(dtype: &DataType) -> bool {
    matches!(dtype, DataType::Binary | DataType::LargeBinary | DataType::BinaryView)
}

/// The narrowest type that holds the values of two. Integers of 64 bits become doubles only if each
/// of them is one, which whoever has the values has to see. Bytes beside text become text, which
/// readers check.
pub(crate) fn wider(one: &DataType, other: &DataType) -> Option<DataType> {
    use DataType as T;
    if one == other {
        return Some(one.clone());
    }
    if let (Some(one), Some(other)) = (integer(one), integer(other)) {
        return wider_integer(one, other);
    }
    match (one, other) {
        (T::Null, dtype) | (dtype, T::Null) => Some(dtype.clone()),
        (float, number) | (number, float)
            if is_float(float) && (is_float(number) || integer(number).is_some()) =>
        {
            Some(T::Float64)
        }
        (T::Decimal128(p, s), T::Decimal128(q, t)) => {
            let scale = *s.max(t);
            let whole = (i16::from(*p) - i16::from(*s)).max(i16::from(*q) - i16::from(*t));
            let precision =
                u8::try_from(whole + i16::from(scale)).ok().filter(|precision| *precision <= 38)?;
            Some(T::Decimal128(precision, scale))
        }
        (T::Timestamp(one, zone), T::Timestamp(other, same)) if zone == same => {
            Some(T::Timestamp(finer(*one, *other), zone.clone()))
        }
        (T::Duration(one), T::Duration(other)) => Some(T::Duration(finer(*one, *other))),
        (T::Time32(one) | T::Time64(one), T::Time32(other) | T::Time64(other)) => {
            let unit = finer(*one, *other);
            let is_short = matches!(unit, TimeUnit::Second | TimeUnit::Millisecond);
            Some(if is_short { T::Time32(unit) } else { T::Time64(unit) })
        }
        (one, other) if is_text(one) && (is_text(other) || is_bytes(other)) => Some(T::Utf8View),
        (one, other) if is_bytes(one) && is_text(other) => Some(T::Utf8View),
        (one, other) if is_bytes(one) && is_bytes(other) => Some(T::BinaryView),
        _ => wider_nested(one, other),
    }
}

/// `(bits, signed)` of two integers to the integer that holds both.
fn wider_integer(one: (u32, bool), other: (u32, bool)) -> Option<DataType> {
    let is_signed = one.1 || other.1;
    // Without its sign, an integer needs one bit more.
    let bits = |(bits, own): (u32, bool)| if own == is_signed { bits } else { 2 * bits };
    Some(match (bits(one).max(bits(other)), is_signed) {
        (8, true) => DataType::Int8,
        (16, true) => DataType::Int16,
        (32, true) => DataType::Int32,
        (64, true) => DataType::Int64,
        (8, false) => DataType::UInt8,
        (16, false) => DataType::UInt16,
        (32, false) => DataType::UInt32,
        (64, false) => DataType::UInt64,
        _ => return None,
    })
}

/// The finer one of two.
pub(super) fn finer(one: TimeUnit, other: TimeUnit) -> TimeUnit {
    let digits = |unit| match unit {
        TimeUnit::Second => 0,
        TimeUnit::Millisecond => 3,
        TimeUnit::Microsecond => 6,
        TimeUnit::Nanosecond => 9,
    };
    if digits(one) >= digits(other) { one } else { other }
}

/// Structs by the names of their fields, lists by their items.
fn wider_nested(one: &DataType, other: &DataType) -> Option<DataType> {
    match (one, other) {
        (DataType::Struct(one), DataType::Struct(other)) => {
            Some(DataType::Struct(wider_fields(one, other)?))
        }
        (DataType::List(one), DataType::List(other)) => {
            Some(DataType::List(wider_field(one, other)?))
        }
        (DataType::LargeList(one), DataType::LargeList(other)) => {
            Some(DataType::LargeList(wider_field(one, other)?))
        }
        (DataType::Map(one, sorted), DataType::Map(other, same)) if sorted == same => {
            Some(DataType::Map(wider_field(one, other)?, *sorted))
        }
        _ => None,
    }
}

fn wider_fields(one: &Fields, other: &Fields) -> Option<Fields> {
    let in_other = |name: &str| other.iter().find(|field| field.name() == name);
    let lone = |field: &FieldRef| Some(Arc::new(field.as_ref().clone().with_nullable(true)));
    let known = one.iter().map(|field| match in_other(field.name()) {
        Some(same) => wider_field(field, same),
        None => lone(field),
    });
    let more =
        other.iter().filter(|field| one.iter().all(|known| known.name() != field.name())).map(lone);
    known.chain(more).collect()
}

/// Integers of 64 bits within nested columns become no doubles: nobody looks at their values.
fn wider_field(one: &FieldRef, other: &FieldRef) -> Option<FieldRef> {
    let dtype = wider(one.data_type(), other.data_type())?;
    let is_long = |dtype: &DataType| matches!(dtype, DataType::Int64 | DataType::UInt64);
    if dtype == DataType::Float64 && (is_long(one.data_type()) || is_long(other.data_type())) {
        return None;
    }
    Some(Arc::new(Field::new(one.name(), dtype, one.is_nullable() || other.is_nullable())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_widen_without_loss_whatever_their_order() {
        use DataType as T;
        let zone = |unit| T::Timestamp(unit, Some("UTC".into()));
        let plain = |unit| T::Timestamp(unit, None);
        let cases = [
            (T::Int8, T::Int64, Some(T::Int64)),
            (T::Int16, T::Int32, Some(T::Int32)),
            (T::UInt8, T::UInt32, Some(T::UInt32)),
            (T::UInt8, T::Int8, Some(T::Int16)),
            (T::UInt32, T::Int8, Some(T::Int64)),
            (T::UInt16, T::Int64, Some(T::Int64)),
            (T::UInt64, T::Int64, None),
            (T::Float32, T::Float64, Some(T::Float64)),
            (T::Int32, T::Float32, Some(T::Float64)),
            (T::Int64, T::Float64, Some(T::Float64)),
            (T::Decimal128(9, 2), T::Decimal128(12, 4), Some(T::Decimal128(12, 4))),
            (T::Decimal128(9, 2), T::Decimal128(8, 4), Some(T::Decimal128(11, 4))),
            (T::Decimal128(38, 0), T::Decimal128(5, 1), None),
            (T::Decimal128(5, 1), T::Int64, None),
            (
                plain(TimeUnit::Millisecond),
                plain(TimeUnit::Nanosecond),
                Some(plain(TimeUnit::Nanosecond)),
            ),
            (
                zone(TimeUnit::Second),
                zone(TimeUnit::Microsecond),
                Some(zone(TimeUnit::Microsecond)),
            ),
            (zone(TimeUnit::Second), plain(TimeUnit::Second), None),
            (
                T::Time32(TimeUnit::Second),
                T::Time64(TimeUnit::Nanosecond),
                Some(T::Time64(TimeUnit::Nanosecond)),
            ),
            (T::Date32, T::Timestamp(TimeUnit::Second, None), None),
            (T::Boolean, T::Int8, None),
            (T::Utf8View, T::Int64, None),
            (T::Dictionary(Box::new(T::Int32), Box::new(T::Utf8)), T::Utf8View, Some(T::Utf8View)),
            (T::BinaryView, T::Utf8View, Some(T::Utf8View)),
            (T::Null, T::Date32, Some(T::Date32)),
        ];
        for (one, other, expected) in cases {
            assert_eq!(wider(&one, &other), expected, "{one} and {other}");
            assert_eq!(wider(&other, &one), expected, "{other} and {one}");
        }
    }

    #[test]
    fn columns_are_united_by_name() {
        let field = |name: &str, dtype, nullable| Field::new(name, dtype, nullable);
        let file =
            |name: &str, fields: Vec<Field>| (PathBuf::from(name), Arc::new(Schema::new(fields)));
        let first = file(
            "1",
            vec![field("a", DataType::Int32, false), field("b", DataType::Utf8View, false)],
        );
        let second = file(
            "2",
            vec![field("c", DataType::Date32, false), field("a", DataType::Float64, false)],
        );
        let third = file(
            "3",
            vec![field("a", DataType::Int64, true), field("b", DataType::Utf8View, false)],
        );
        let united = unite(&[first.clone(), second.clone(), third.clone()], true).unwrap();
        let expected = vec![
            field("a", DataType::Float64, true),
            field("b", DataType::Utf8View, true),
            field("c", DataType::Date32, true),
        ];
        assert_eq!(*united.schema, Schema::new(expected));
        assert_eq!(united.to_doubles, [(2, 0, 1)]);
        assert!(unite(&[first.clone(), second], false).is_err());
        assert!(unite(&[first.clone(), third], false).is_err());
        assert!(unite(&[first.clone(), first], false).is_ok());
        let twice =
            file("4", vec![field("a", DataType::Int32, false), field("a", DataType::Int32, false)]);
        assert!(unite(&[twice], true).unwrap_err().to_string().contains("\"a\""));
    }

    #[test]
    fn structs_are_united_by_the_names_of_their_fields() {
        let of = |fields: Vec<(&str, DataType)>| {
            let field = |(name, dtype): (&str, DataType)| Field::new(name, dtype, false);
            DataType::Struct(fields.into_iter().map(field).collect())
        };
        let one = of(vec![("x", DataType::Int32), ("y", DataType::Date32)]);
        let other = of(vec![("z", DataType::Boolean), ("x", DataType::Int64)]);
        let DataType::Struct(fields) = wider(&one, &other).unwrap() else { panic!("a struct") };
        let names: Vec<_> =
            fields.iter().map(|field| (field.name().as_str(), field.is_nullable())).collect();
        assert_eq!(names, [("x", false), ("y", true), ("z", true)]);
        assert_eq!(*fields[0].data_type(), DataType::Int64);
        assert_eq!(
            wider(&of(vec![("x", DataType::Int64)]), &of(vec![("x", DataType::Float64)])),
            None
        );
    }
}
