//! Columns that the paths of files make: the keys of their directories, as in
//! `year=2024/month=01/part.parquet`, and the path itself. Nothing is read for them, and filters on
//! them alone leave files out before they are read.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use chrono::{Datelike, NaiveDate};
use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, RecordBatch, StringViewArray, new_empty_array,
};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema};
use datafusion::catalog::Session;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column as Named, DFSchema, ScalarValue};
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};

use super::options::PathOptions;
use super::selection::Selection;
use crate::error::{Error, ErrorKind, Result};
use crate::host::cast_exactly;

/// The value that stands for NULL.
pub(super) const NULL: &str = "__HIVE_DEFAULT_PARTITION__";
/// The file that says which keys are texts, where all of their values look like something else: a
/// name in each line, as folders have it. Whoever reads folders leaves out what begins so.
pub(super) const TEXT_KEYS: &str = "_text_keys";
/// The column of files' paths.
const FILENAME: &str = "filename";

/// Columns that paths make, and their value in each file.
#[derive(Debug, Clone, Default)]
pub(crate) struct PathColumns {
    pub(crate) fields: Vec<FieldRef>,
    /// By file, by field; empty where there are no fields.
    values: Vec<Vec<ScalarValue>>,
    /// Whether the last field is the path itself.
    has_filename: bool,
}

/// Keys and values of a path, in its order.
type Keys = Vec<(String, Option<String>)>;

impl PathColumns {
    /// What the paths of a selection's files tell.
    ///
    /// # Errors
    /// [`ErrorKind::File`] where partitions are wanted and files have different keys, and where a
    /// key is called as the column of paths.
    pub(crate) fn of(
        selection: &Selection,
        files: &[PathBuf],
        wanted: &PathOptions,
    ) -> Result<PathColumns> {
        let mut columns = PathColumns::of_partitions(selection, files, wanted)?;
        if wanted.filename {
            let first = files.first().map_or(Path::new(""), PathBuf::as_path);
            columns.has_none_named(FILENAME, columns.fields.iter(), first)?;
            columns.has_filename = true;
            columns.fields.push(Arc::new(Field::new(FILENAME, DataType::Utf8View, true)));
            columns.values.resize(files.len(), vec![]);
            for (values, file) in columns.values.iter_mut().zip(files) {
                values.push(ScalarValue::Utf8View(Some(file.to_string_lossy().into_owned())));
            }
        }
        Ok(columns)
    }

    /// By default nothing, where not all files have the same keys.
    fn of_partitions(
        selection: &Selection,
        files: &[PathBuf],
        options: &PathOptions,
    ) -> Result<PathColumns> {
        let given = &options.hive_types;
        let wanted = options.hive_partitioning.or((!given.is_empty()).then_some(true));
        if wanted == Some(false) {
            return Ok(PathColumns::default());
        }
        let told = |file: &PathBuf| match selection.below(file) {
            Some(below) => keys(below),
            None if wanted == Some(true) => keys(file),
            None => vec![],
        };
        let found: Vec<Keys> = files.iter().map(told).collect();
        let names = |keys: &Keys| keys.iter().map(|(key, _)| key.clone()).collect::<Vec<_>>();
        let Some(first) = found.first().map(names) else { return Ok(PathColumns::default()) };
        if let Some(other) = found.iter().position(|keys| names(keys) != first) {
            if wanted != Some(true) {
                return Ok(PathColumns::default());
            }
            let (own, first, file) =
                (names(&found[other]).join(", "), first.join(", "), files[0].display());
            let message = format!(
                "the partition keys of its path are ({own}), those of {file} are ({first})"
            );
            return Err(ErrorKind::File { path: files[other].clone(), message }.into());
        }
        let texts = |at: usize| found.iter().map(move |keys| keys[at].1.as_deref());
        let said = if first.is_empty() { BTreeSet::new() } else { text_keys(files) };
        if let Some((name, _)) = given.iter().find(|(name, _)| !first.contains(name)) {
            return Err(ErrorKind::ColumnNotFound { name: name.clone(), known: first }.into());
        }
        let mut values = vec![vec![]; files.len()];
        let mut fields = vec![];
        for (at, name) in first.into_iter().enumerate() {
            let given = given.iter().find(|(given, _)| *given == name).map(|(_, dtype)| dtype);
            let dtype = match given {
                Some(dtype) => dtype.clone(),
                None if !options.hive_types_autocast || said.contains(&name) => DataType::Utf8View,
                None => inferred(texts(at).flatten()),
            };
            let column = match given {
                Some(dtype) => given_values(texts(at), dtype).map_err(|(file, text)| {
                    let message =
                        format!("{text:?}, the value of {name} in its path, is no {dtype}");
                    Error::from(ErrorKind::File { path: files[file].clone(), message })
                })?,
                None => texts(at).map(|text| value(text, &dtype)).collect(),
            };
            values.iter_mut().zip(column).for_each(|(values, value)| values.push(value));
            fields.push(Arc::new(Field::new(name, dtype, true)));
        }
        Ok(PathColumns { fields, values, has_filename: false })
    }

    /// The columns of a table: those of a file, or of all files together, and those of paths behind
    /// them. Partitions take the place of columns of their names; the column of paths takes none.
    ///
    /// # Errors
    /// [`ErrorKind::File`] of a column that has the name of the column of paths.
    pub(crate) fn behind(&self, of_files: &Schema, file: &Path) -> Result<Schema> {
        if self.has_filename {
            self.has_none_named(FILENAME, of_files.fields().iter(), file)?;
        }
        let own = of_files.fields().iter().filter(|field| !self.has(field.name()));
        Ok(Schema::new(own.chain(&self.fields).cloned().collect::<Vec<_>>()))
    }

    fn has_none_named<'a>(
        &self,
        name: &str,
        mut fields: impl Iterator<Item = &'a FieldRef>,
        file: &Path,
    ) -> Result<()> {
        match fields.any(|field| field.name() == name) {
            false => Ok(()),
            true => {
                let message = format!(
                    "there is a column {name:?}, and the option {name} would make another one"
                );
                Err(ErrorKind::File { path: file.into(), message }.into())
            }
        }
    }

    /// How many files there are, where paths make columns.
    pub(crate) fn files(&self) -> usize {
        self.values.len()
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
        if self.values.is_empty() {
            return Ok(new_empty_array(self.fields[field].data_type()));
        }
        Ok(ScalarValue::iter_to_array(self.values.iter().map(|values| values[field].clone()))?)
    }

    /// The columns of the paths of some of the files.
    pub(crate) fn of_files(&self, files: &[usize]) -> PathColumns {
        let values = files.iter().filter_map(|file| self.values.get(*file).cloned()).collect();
        PathColumns { values, ..self.clone() }
    }

    /// Whether paths alone tell of which files a filter holds.
    fn tells(&self, filter: &Expr) -> bool {
        let columns = filter.column_refs();
        !columns.is_empty()
            && columns.iter().all(|column| self.has(&column.name))
            && !filter.is_volatile()
    }

    /// What a reader that leaves out files does of filters.
    pub(crate) fn supports(&self, filters: &[&Expr]) -> Vec<TableProviderFilterPushDown> {
        let of = |filter: &&Expr| match self.tells(filter) {
            true => TableProviderFilterPushDown::Inexact,
            false => TableProviderFilterPushDown::Unsupported,
        };
        filters.iter().map(of).collect()
    }

    /// The files that scans with these filters, joined by AND, may find rows in; `None` where some
    /// scan may find rows in all.
    ///
    /// # Errors
    /// As [`PathColumns::selected`].
    pub(crate) fn selected_by_any(
        &self,
        state: &dyn Session,
        scans: &[Vec<Expr>],
    ) -> Result<Option<Vec<usize>>> {
        let mut all = BTreeSet::new();
        for filters in scans {
            let Some(files) = self.selected(state, filters)? else { return Ok(None) };
            all.extend(files);
        }
        Ok((all.len() < self.values.len()).then(|| all.into_iter().collect()))
    }

    /// The files that may have rows of which filters hold; `None` where all of them may.
    ///
    /// # Errors
    /// None: values are of their fields' types.
    pub(crate) fn selected(
        &self,
        state: &dyn Session,
        filters: &[Expr],
    ) -> Result<Option<Vec<usize>>> {
        let told: Vec<&Expr> = filters.iter().filter(|filter| self.tells(filter)).collect();
        if told.is_empty() {
            return Ok(None);
        }
        let mut kept = vec![true; self.values.len()];
        let schema = Arc::new(Schema::new(self.fields.clone()));
        let values =
            (0..self.fields.len()).map(|field| self.column(field)).collect::<Result<_>>()?;
        let rows = RecordBatch::try_new(schema.clone(), values)?;
        let schema = DFSchema::try_from(schema)?;
        for filter in told {
            let Some(holds) = holds(state, filter, &schema, &rows) else { continue };
            kept.iter_mut().zip(holds).for_each(|(kept, holds)| *kept &= holds);
        }
        Ok((!kept.iter().all(|kept| *kept))
            .then(|| (0..kept.len()).filter(|file| kept[*file]).collect()))
    }
}

/// Of which rows a filter holds; `None` where it fails, which is for whoever reads to say.
fn holds(
    state: &dyn Session,
    filter: &Expr,
    schema: &DFSchema,
    rows: &RecordBatch,
) -> Option<Vec<bool>> {
    let bare = filter.clone().transform_up(|expr| match expr {
        Expr::Column(column) => {
            Ok(Transformed::yes(Expr::Column(Named::new_unqualified(column.name))))
        }
        other => Ok(Transformed::no(other)),
    });
    let expr = state.create_physical_expr(bare.ok()?.data, schema).ok()?;
    let found = expr.evaluate(rows).and_then(|found| found.into_array(rows.num_rows())).ok()?;
    let found = (*found.data_type() == DataType::Boolean).then(|| found.as_boolean().clone())?;
    Some(found.iter().map(|holds| holds == Some(true)).collect())
}

/// The keys of the directories of a path. Of one key twice, the value of the inner directory
/// counts.
fn keys(path: &Path) -> Keys {
    let mut found: Keys = vec![];
    for part in path.parent().into_iter().flat_map(Path::components) {
        let Component::Normal(name) = part else { continue };
        let Some((key, value)) = name.to_str().and_then(|name| name.split_once('=')) else {
            continue;
        };
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
        let code = digits
            .and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
        decoded.push(code.unwrap_or(byte));
        at += if code.is_some() { 3 } else { 1 };
    }
    String::from_utf8(decoded).ok()
}

/// Whether a path's last part is `key=value`.
pub(super) fn is_partition(directory: &Path) -> bool {
    directory.file_name().is_some_and(|name| name.as_encoded_bytes().contains(&b'='))
}

/// The keys of which the directories above those of partitions say that they are texts.
fn text_keys(files: &[PathBuf]) -> BTreeSet<String> {
    /// Bytes that are looked at.
    const MOST: u64 = 1 << 20;
    let mut roots: BTreeMap<&Path, String> = BTreeMap::new();
    for file in files {
        let root = file.ancestors().skip(1).find(|directory| !is_partition(directory));
        if let Some(root) = root.filter(|root| !roots.contains_key(root)) {
            let mut text = String::new();
            // Without such a file, values tell their types.
            if let Ok(file) = File::open(root.join(TEXT_KEYS)) {
                let _ = file.take(MOST).read_to_string(&mut text);
            }
            roots.insert(root, text);
        }
    }
    roots.values().flat_map(|text| text.lines()).filter_map(decoded).collect()
}

/// An integer of 64 bits as it is written without need: `007` is a text.
fn integer(text: &str) -> Option<i64> {
    text.parse().ok().filter(|value: &i64| value.to_string() == text)
}

/// The type that all values have: an integer, a date, or text.
pub(super) fn inferred<'a>(texts: impl Iterator<Item = &'a str>) -> DataType {
    let texts: BTreeSet<&str> = texts.collect();
    if !texts.is_empty() && texts.iter().all(|text| integer(text).is_some()) {
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

/// Values of a type that was given, as `CAST` makes them of texts; where one is refused, its file
/// and text.
fn given_values<'a>(
    texts: impl Iterator<Item = Option<&'a str>>,
    dtype: &DataType,
) -> std::result::Result<Vec<ScalarValue>, (usize, String)> {
    let texts: StringViewArray = texts.collect();
    let text = |file: usize| (file, texts.value(file).to_string());
    let array: ArrayRef = Arc::new(texts.clone());
    let cast = cast_exactly(&array, dtype, true).map_err(|_| text(0))?;
    if let Some(file) = (0..texts.len()).find(|file| cast.is_null(*file) && texts.is_valid(*file)) {
        return Err(text(file));
    }
    (0..texts.len())
        .map(|file| ScalarValue::try_from_array(&cast, file).map_err(|_| text(file)))
        .collect()
}

fn value(text: Option<&str>, dtype: &DataType) -> ScalarValue {
    match dtype {
        DataType::Int64 => ScalarValue::Int64(text.and_then(integer)),
        DataType::Date32 => ScalarValue::Date32(text.and_then(date)),
        _ => ScalarValue::Utf8View(text.map(str::to_string)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::options::FileKind;

    fn of(files: &[&str], hive_partitioning: Option<bool>) -> Result<PathColumns> {
        with(files, PathOptions { hive_partitioning, ..PathOptions::default() })
    }

    fn with(files: &[&str], options: PathOptions) -> Result<PathColumns> {
        let files: Vec<PathBuf> = files.iter().map(|file| Path::new("d").join(file)).collect();
        PathColumns::of(&Selection::new("d", FileKind::Parquet), &files, &options)
    }

    #[test]
    fn directories_tell_values_and_their_types() {
        let files = [
            "n=1/d=2024-02-29/t=a%2Fb%3D/x=7/1.parquet",
            "n=-2/d=1969-12-31/t=%é%4/x=y/2.parquet",
            "n=__HIVE_DEFAULT_PARTITION__/d=__HIVE_DEFAULT_PARTITION__/t=/x=7/k=v.parquet",
        ];
        let found = of(&files, None).unwrap();
        let types: Vec<_> =
            found.fields.iter().map(|field| (field.name().as_str(), field.data_type())).collect();
        let text = &DataType::Utf8View;
        assert_eq!(
            types,
            [("n", &DataType::Int64), ("d", &DataType::Date32), ("t", text), ("x", text)]
        );
        let said = |text: &str| ScalarValue::Utf8View(Some(text.into()));
        let expected = [
            ScalarValue::Int64(Some(1)),
            ScalarValue::Date32(Some(19_782)),
            said("a/b="),
            said("7"),
        ];
        assert_eq!(found.values(0), expected);
        let expected =
            [ScalarValue::Int64(Some(-2)), ScalarValue::Date32(Some(-1)), said("%é%4"), said("y")];
        assert_eq!(found.values(1), expected);
        assert_eq!(
            found.values(2),
            [ScalarValue::Int64(None), ScalarValue::Date32(None), said(""), said("7")]
        );
    }

    #[test]
    fn integers_with_zeros_before_them_are_texts() {
        for (values, dtype) in [
            (["00501", "10001"], DataType::Utf8View),
            (["1", "+2"], DataType::Utf8View),
            (["-0", "1"], DataType::Utf8View),
            (["0", "-1"], DataType::Int64),
            (["2024-02-29", "1969-12-31"], DataType::Date32),
        ] {
            assert_eq!(inferred(values.into_iter()), dtype, "{values:?}");
        }
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

    #[test]
    fn types_may_be_given() {
        let files = ["z=1/d=x/1.parquet", "z=02/d=__HIVE_DEFAULT_PARTITION__/2.parquet"];
        let given = |of: &[(&str, DataType)], hive_types_autocast| {
            let hive_types = of.iter().map(|(name, of)| (name.to_string(), of.clone())).collect();
            with(&files, PathOptions { hive_types, hive_types_autocast, ..PathOptions::default() })
        };
        let short = given(&[("z", DataType::Int16)], true).unwrap();
        let text = |text: &str| ScalarValue::Utf8View(Some(text.into()));
        assert_eq!(short.values(1), [ScalarValue::Int16(Some(2)), ScalarValue::Utf8View(None)]);
        assert_eq!(short.values(0)[1], text("x"));
        let error = given(&[("d", DataType::Int16)], true).unwrap_err().to_string();
        assert!(error.contains("1.parquet: \"x\", the value of d in its path"), "{error}");
        assert!(given(&[("other", DataType::Int16)], true).is_err());
        let texts = with(
            &["z=1/1.parquet"],
            PathOptions { hive_types_autocast: false, ..PathOptions::default() },
        );
        assert_eq!(texts.unwrap().values(0), [text("1")]);
    }

    #[test]
    fn the_path_is_a_column_where_it_is_wanted() {
        let wanted = || PathOptions { filename: true, ..PathOptions::default() };
        let found = with(&["a=1/1.parquet", "a=2/2.parquet"], wanted()).unwrap();
        let said = |text: &str| ScalarValue::Utf8View(Some(text.into()));
        assert_eq!(found.values(1), [ScalarValue::Int64(Some(2)), said("d/a=2/2.parquet")]);
        assert_eq!(found.of_files(&[1]).values(0), found.values(1));
        let names = |schema: Schema| {
            schema.fields().iter().map(|field| field.name().clone()).collect::<Vec<_>>()
        };
        let schema = |names: [&str; 2]| {
            Schema::new(names.map(|name| Field::new(name, DataType::Int32, true)).to_vec())
        };
        assert_eq!(
            names(found.behind(&schema(["x", "a"]), Path::new("d")).unwrap()),
            ["x", "a", "filename"]
        );
        let error = found.behind(&schema(["x", "filename"]), Path::new("d")).unwrap_err();
        assert!(error.to_string().contains("the option filename"), "{error}");
        assert!(with(&["filename=1/1.parquet"], wanted()).is_err());
        assert!(of(&["filename=1/1.parquet"], None).is_ok());
    }
}
