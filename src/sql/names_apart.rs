//! Columns of one name, told apart: readers of all formats find columns by name.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use datafusion::arrow::array::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::{Field, FieldRef, Schema, SchemaRef};

use crate::error::Result;

/// Names of columns of which none comes twice, as files need them: a second `a` is `a_1`, as in
/// DuckDB, or has the next number that no column before it has. Case tells names apart.
///
/// ```
/// use warpframe::sql::distinct_names;
/// assert_eq!(distinct_names(["a", "a", "A", "a_1"]), ["a", "a_1", "A", "a_1_1"]);
/// ```
pub fn distinct_names<'n>(names: impl IntoIterator<Item = &'n str>) -> Vec<String> {
    numbered(names, &HashSet::new())
}

/// Names of which none comes twice, and each stays that of the first column that has it: a number
/// makes no name that any column has.
pub(crate) fn distinct_names_of_first(names: &[String]) -> Vec<String> {
    let names = names.iter().map(String::as_str);
    numbered(names.clone(), &names.collect())
}

/// Numbers make none of the names that are `kept`.
fn numbered<'n>(names: impl IntoIterator<Item = &'n str>, kept: &HashSet<&str>) -> Vec<String> {
    let mut taken = HashSet::new();
    // Where the next of a name begins to look, so that many of one name do not look again.
    let mut last: HashMap<&str, usize> = HashMap::new();
    let own = |name: &'n str| {
        let mut own = name.to_string();
        while own != name && kept.contains(own.as_str()) || !taken.insert(own.clone()) {
            let number = last.entry(name).or_default();
            *number += 1;
            own = format!("{name}_{number}");
        }
        own
    };
    names.into_iter().map(own).collect()
}

/// The names that columns have where they are found by name, by [`distinct_names`].
///
/// ```
/// # use std::sync::Arc;
/// use warpframe::arrow::datatypes::{DataType, Field, Schema};
/// use warpframe::sql::NamesApart;
///
/// let field = |name: &str| Field::new(name, DataType::Int64, true);
/// let names = NamesApart::of(&Arc::new(Schema::new(vec![field("a"), field("a")])));
/// assert_eq!(names.schema().field(1).name(), "a_1");
/// ```
#[derive(Debug, Clone)]
pub struct NamesApart {
    schema: SchemaRef,
    /// Whether some of them are not those of the rows.
    differ: bool,
}

impl NamesApart {
    /// Those of the columns of rows.
    pub fn of(schema: &SchemaRef) -> NamesApart {
        let fields = schema.fields();
        let names = distinct_names(fields.iter().map(|field| field.name().as_str()));
        let differ = fields.iter().zip(&names).any(|(field, name)| field.name() != name);
        let schema = if differ { named(schema, names.iter()) } else { schema.clone() };
        NamesApart { schema, differ }
    }

    /// The columns by these names.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Rows with these names.
    ///
    /// # Errors
    /// Rows of other columns.
    pub fn batch(&self, batch: RecordBatch) -> Result<RecordBatch> {
        if !self.differ {
            return Ok(batch);
        }
        let schema = named(&batch.schema(), self.schema.fields().iter().map(|field| field.name()));
        let counted = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        Ok(RecordBatch::try_new_with_options(schema, batch.columns().to_vec(), &counted)?)
    }
}

fn named<'n>(schema: &SchemaRef, names: impl Iterator<Item = &'n String>) -> SchemaRef {
    let field = |(field, name): (&FieldRef, &String)| Field::clone(field).with_name(name);
    let fields: Vec<Field> = schema.fields().iter().zip(names).map(field).collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}
