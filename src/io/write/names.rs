//! Columns of one name, told apart: readers of all formats find columns by name.

use std::sync::Arc;

use datafusion::arrow::array::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::{Field, FieldRef, Schema, SchemaRef};

use crate::error::Result;
use crate::sql::distinct_names;

/// The names that columns have in a file.
pub(super) struct NamesApart {
    schema: SchemaRef,
    /// Whether some of them are not those of the rows.
    differ: bool,
}

impl NamesApart {
    pub(super) fn of(schema: &SchemaRef) -> NamesApart {
        let fields = schema.fields();
        let names = distinct_names(fields.iter().map(|field| field.name().as_str()));
        let differ = fields.iter().zip(&names).any(|(field, name)| field.name() != name);
        let schema = if differ { named(schema, names.iter()) } else { schema.clone() };
        NamesApart { schema, differ }
    }

    pub(super) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Rows with these names.
    pub(super) fn batch(&self, batch: RecordBatch) -> Result<RecordBatch> {
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
