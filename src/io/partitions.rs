//! Columns that the names of directories make: `year=2024/month=01/part.parquet`.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use chrono::{Datelike, NaiveDate};
use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::ScalarValue;

use super::selection::Selection;
use crate::error::{ErrorKind, Result};

/// The value that stands for NULL.
const NULL: &str = "__HIVE_DEFAULT_PARTITION__";

/// Partition columns of files, and their value in each file.
#[derive(Debug, Clone, Default)]
pub(crate) struct HivePartitions {
    pub(crate) fields: Vec<FieldRef>,
    /// By file, by field; empty where there are no fields.
    values: Vec<Vec<ScalarValue>>,
}

/// Keys and values of a path, in its order.
type Keys = Vec<(String, Option<String>)>;

impl HivePartitions {
    /// What the paths of a selection's files tell: by default nothing, where not all of them have the
    /// same keys.
    ///
    /// # Errors
    /// [`ErrorKind::File`] where partitions are wanted and files have different keys.
    pub(crate) fn of(selection: &Selection, files: &[PathBuf], wanted: Option<bool>) -> Result<HivePartitions> {
        if wanted == Some(false) {
            return Ok(HivePartitions::default());
        }
        let told = |file: &PathBuf| match selection.below(file) {
            Some(below) => keys(below),
            None if wanted == Some(true) => keys(file),
            None => vec![],
        };
        let found: Vec<Keys> = files.iter().map(told).collect();
        let names = |keys: &Keys| keys.iter().map(|(key, _)| key.clone()).collect::<Vec<_>>();
        let Some(first) = found.first().map(names) else { return Ok(HivePartitions::default()) };
        if let Some(other) = found.iter().position(|keys| names(keys) != first) {
            if wanted != Some(true) {
                return Ok(HivePartitions::default());
            }
            let (own, first, file) = (names(&found[other]).join(", "), first.join(", "), files[0].display());
            let message = format!("the partition keys of its path are ({own}), those of {file} are ({first})");
            return Err(ErrorKind::File { path: files[other].clone(), message }.into());
        }
        let texts = |at: usize| found.iter().map(move |keys| keys[at].1.as_deref());
        let mut values = vec![vec![]; files.len()];
        let mut fields = vec![];
        for (at, name) in first.into_iter().enumerate() {
            let dtype = inferred(texts(at));
            values.iter_mut().zip(texts(at)).for_each(|(values, text)| values.push(value(text, &dtype)));
            fields.push(Arc::new(Field::new(name, dtype, true)));
        }
        Ok(HivePartitions { fields, values })
    }

    /// A file's values.
    pub(crate) fn values(&self, file: usize) -> &[ScalarValue] {
        self.values.get(file).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.fields.iter().any(|field| field.name() == name)
    }

    /// A field's values, one a file.
    ///
    /// # Errors
    /// None: values are of their field's type.
    pub(crate) fn column(&self, field: usize) -> Result<ArrayRef> {
        Ok(ScalarValue::iter_to_array(self.values.iter().map(|values| values[field].clone()))?)
    }
}

/// The keys of the directories of a path. Of one key twice, the value of the inner directory counts.
fn keys(path: &Path) -> Keys {
    let mut found: Keys = vec![];
    for part in path.parent().into_iter().flat_map(Path::components) {
        let Component::Normal(name) = part else { continue };
        let Some((key, value)) = name.to_str().and_then(|name| name.split_once('=')) else { continue };
        let (Some(key), Some(value)) = (decoded(key), decoded(value)) else { continue };
        if key.is_empty() {
            continue;
        }
        let value = (value != NULL).then_some(value);
        match found.iter_mut().find(|(known, _)| *known == key) {
            Some((_, known)) => *known = value,
            None => found.push((key, value)),
        }
    }
    found
}

/// A text whose `%XX` are bytes; `None` where those are no UTF-8.
fn decoded(text: &str) -> Option<String> {
    let (bytes, mut decoded) = (text.as_bytes(), vec![]);
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let digits = bytes.get(at + 1..at + 3).filter(|_| byte == b'%');
        let digits = digits.filter(|digits| digits.iter().all(u8::is_ascii_hexdigit));
        let code = digits.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
        decoded.push(code.unwrap_or(byte));
        at += if code.is_some() { 3 } else { 1 };
    }
    String::from_utf8(decoded).ok()
}

/// The type that all values have: an integer, a date, or text.
fn inferred<'a>(texts: impl Iterator<Item = Option<&'a str>>) -> DataType {
    let texts: BTreeSet<&str> = texts.flatten().collect();
    if !texts.is_empty() && texts.iter().all(|text| text.parse::<i64>().is_ok()) {
        DataType::Int64
    } else if !texts.is_empty() && texts.iter().all(|text| date(text).is_some()) {
        DataType::Date32
    } else {
        DataType::Utf8View
    }
}

/// Days since 1970 of YYYY-MM-DD.
fn date(text: &str) -> Option<i32> {
    const DAYS_BEFORE_1970: i32 = 719_163;
    let is_whole = text.len() == 10;
    let date = NaiveDate::parse_from_str(text, "%Y-%m-%d").ok().filter(|_| is_whole)?;
    Some(date.num_days_from_ce() - DAYS_BEFORE_1970)
}

fn value(text: Option<&str>, dtype: &DataType) -> ScalarValue {
    match dtype {
        DataType::Int64 => ScalarValue::Int64(text.and_then(|text| text.parse().ok())),
        DataType::Date32 => ScalarValue::Date32(text.and_then(date)),
        _ => ScalarValue::Utf8View(text.map(str::to_string)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::options::FileKind;

    fn of(files: &[&str], wanted: Option<bool>) -> Result<HivePartitions> {
        let files: Vec<PathBuf> = files.iter().map(|file| Path::new("d").join(file)).collect();
        HivePartitions::of(&Selection::new("d", FileKind::Parquet), &files, wanted)
    }

    #[test]
    fn directories_tell_values_and_their_types() {
        let files = [
            "n=1/d=2024-02-29/t=a%2Fb%3D/x=7/1.parquet",
            "n=-02/d=1969-12-31/t=%é%4/x=y/2.parquet",
            "n=__HIVE_DEFAULT_PARTITION__/d=__HIVE_DEFAULT_PARTITION__/t=/x=7/k=v.parquet",
        ];
        let found = of(&files, None).unwrap();
        let types: Vec<_> = found.fields.iter().map(|field| (field.name().as_str(), field.data_type())).collect();
        let text = &DataType::Utf8View;
        assert_eq!(types, [("n", &DataType::Int64), ("d", &DataType::Date32), ("t", text), ("x", text)]);
        let said = |text: &str| ScalarValue::Utf8View(Some(text.into()));
        let expected = [ScalarValue::Int64(Some(1)), ScalarValue::Date32(Some(19_782)), said("a/b="), said("7")];
        assert_eq!(found.values(0), expected);
        let expected = [ScalarValue::Int64(Some(-2)), ScalarValue::Date32(Some(-1)), said("%é%4"), said("y")];
        assert_eq!(found.values(1), expected);
        assert_eq!(found.values(2), [ScalarValue::Int64(None), ScalarValue::Date32(None), said(""), said("7")]);
    }

    #[test]
    fn keys_have_to_be_the_same() {
        for files in [["a=1/1.parquet", "b=1/1.parquet"], ["a=1/1.parquet", "1.parquet"]] {
            assert!(of(&files, None).unwrap().fields.is_empty());
            assert!(of(&files, Some(true)).is_err());
        }
        assert!(of(&["a=1/1.parquet"], Some(false)).unwrap().fields.is_empty());
        assert!(of(&["1.parquet"], None).unwrap().fields.is_empty());
        let twice = of(&["a=1/a=2/1.parquet"], None).unwrap();
        assert_eq!(twice.values(0), [ScalarValue::Int64(Some(2))]);
    }
}
