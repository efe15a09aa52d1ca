//! `information_schema`: DataFusion's tables about tables, but for `columns`, whose types have
//! SQL's names and whose places begin with 1, as in DuckDB and PostgreSQL.

use std::sync::{Arc, Weak};

use async_trait::async_trait;
use datafusion::arrow::array::{ArrayRef, Int32Array, RecordBatch, StringViewArray};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use datafusion::catalog::information_schema::{INFORMATION_SCHEMA, InformationSchemaProvider};
use datafusion::catalog::{CatalogProviderList, MemTable, SchemaProvider, Session, TableProvider};
use datafusion::datasource::TableType;
use datafusion::error::Result;
use datafusion::logical_expr::Expr;
use datafusion::physical_plan::ExecutionPlan;

use super::files;
use crate::sql::type_name;

/// The table of columns.
const COLUMNS: &str = "columns";

/// The schema of tables about tables. The catalogs hold it.
#[derive(Debug)]
pub(super) struct Information(pub(super) Weak<dyn CatalogProviderList>);

impl Information {
    fn others(&self) -> Option<InformationSchemaProvider> {
        self.0.upgrade().map(InformationSchemaProvider::new)
    }
}

#[async_trait]
impl SchemaProvider for Information {
    fn table_names(&self) -> Vec<String> {
        self.others().map(|others| others.table_names()).unwrap_or_default()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        if name == COLUMNS {
            return Ok(Some(Arc::new(ColumnsOfAll(self.0.clone()))));
        }
        match self.others() {
            Some(others) => others.table(name).await,
            None => Ok(None),
        }
    }

    fn table_exist(&self, name: &str) -> bool {
        self.others().is_some_and(|others| others.table_exist(name))
    }
}

/// A row for each column of each table, as they are when the table is scanned.
#[derive(Debug)]
struct ColumnsOfAll(Weak<dyn CatalogProviderList>);

/// Where a column is.
struct ColumnPlace {
    /// The names of catalog, schema and table.
    table: [String; 3],
    /// From 1 on.
    number: i32,
    field: FieldRef,
}

impl ColumnsOfAll {
    async fn places(&self) -> Result<Vec<ColumnPlace>> {
        let mut places = vec![];
        let Some(catalogs) = self.0.upgrade() else { return Ok(places) };
        for catalog_name in catalogs.catalog_names() {
            let Some(catalog) = catalogs.catalog(&catalog_name) else { continue };
            for schema_name in catalog.schema_names() {
                // Those of files are no one's tables.
                if schema_name == INFORMATION_SCHEMA || schema_name == files::SCHEMA {
                    continue;
                }
                let Some(schema) = catalog.schema(&schema_name) else { continue };
                for table_name in schema.table_names() {
                    let Some(table) = schema.table(&table_name).await? else { continue };
                    for (number, field) in (1..).zip(table.schema().fields()) {
                        let table = [catalog_name.clone(), schema_name.clone(), table_name.clone()];
                        places.push(ColumnPlace { table, number, field: field.clone() });
                    }
                }
            }
        }
        Ok(places)
    }
}

/// Digits, their base and those behind the point, of a type of numbers.
fn digits(dtype: &DataType) -> [Option<i32>; 3] {
    use DataType::*;
    match dtype {
        Int8 | UInt8 => [Some(8), Some(2), Some(0)],
        Int16 | UInt16 => [Some(16), Some(2), Some(0)],
        Int32 | UInt32 => [Some(32), Some(2), Some(0)],
        Int64 | UInt64 => [Some(64), Some(2), Some(0)],
        Float32 => [Some(24), Some(2), Some(0)],
        Float64 => [Some(53), Some(2), Some(0)],
        Decimal32(precision, scale)
        | Decimal64(precision, scale)
        | Decimal128(precision, scale)
        | Decimal256(precision, scale) => {
            [Some((*precision).into()), Some(10), Some((*scale).into())]
        }
        Dictionary(_, values) => digits(values),
        _ => [None; 3],
    }
}

fn schema() -> SchemaRef {
    let field = |(name, dtype): (&str, DataType)| Field::new(name, dtype, true);
    let (text, number) = (DataType::Utf8View, DataType::Int32);
    let fields = [
        ("table_catalog", text.clone()),
        ("table_schema", text.clone()),
        ("table_name", text.clone()),
        ("column_name", text.clone()),
        ("ordinal_position", number.clone()),
        ("column_default", text.clone()),
        ("is_nullable", text.clone()),
        ("data_type", text.clone()),
        ("character_maximum_length", number.clone()),
        ("character_octet_length", number.clone()),
        ("numeric_precision", number.clone()),
        ("numeric_precision_radix", number.clone()),
        ("numeric_scale", number.clone()),
        ("datetime_precision", number),
        ("interval_type", text),
    ];
    Arc::new(Schema::new(fields.map(field).to_vec()))
}

fn rows(places: &[ColumnPlace]) -> Result<RecordBatch> {
    let text = |of: &dyn Fn(&ColumnPlace) -> Option<String>| -> ArrayRef {
        Arc::new(places.iter().map(of).collect::<StringViewArray>())
    };
    let number = |of: &dyn Fn(&ColumnPlace) -> Option<i32>| -> ArrayRef {
        Arc::new(places.iter().map(of).collect::<Int32Array>())
    };
    let nullable = |place: &ColumnPlace| if place.field.is_nullable() { "YES" } else { "NO" };
    let digit = |at: usize| number(&move |place| digits(place.field.data_type())[at]);
    let columns = vec![
        text(&|place| Some(place.table[0].clone())),
        text(&|place| Some(place.table[1].clone())),
        text(&|place| Some(place.table[2].clone())),
        text(&|place| Some(place.field.name().clone())),
        number(&|place| Some(place.number)),
        text(&|_| None),
        text(&|place| Some(nullable(place).into())),
        text(&|place| Some(type_name(place.field.data_type()))),
        number(&|_| None),
        number(&|_| None),
        digit(0),
        digit(1),
        digit(2),
        number(&|_| None),
        text(&|_| None),
    ];
    Ok(RecordBatch::try_new(schema(), columns)?)
}

#[async_trait]
impl TableProvider for ColumnsOfAll {
    fn schema(&self) -> SchemaRef {
        schema()
    }

    fn table_type(&self) -> TableType {
        TableType::View
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let rows = rows(&self.places().await?)?;
        let table = MemTable::try_new(schema(), vec![vec![rows]])?;
        table.scan(state, projection, filters, limit).await
    }
}
