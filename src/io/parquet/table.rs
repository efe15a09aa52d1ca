//! Parquet files as a table of DataFusion's.
//!
//! Its rows are those of the files in the order given, which the device's reader follows, too. A
//! filter on columns of paths alone leaves files out before they are read.

use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::stats::Precision;
use datafusion::common::{ColumnStatistics, ScalarValue, Statistics};
use datafusion::datasource::TableType;
use datafusion::datasource::file_format::FileFormat;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfigBuilder};
use datafusion::datasource::table_schema::TableSchema;
use datafusion::error::Result;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};
use datafusion::object_store::{ObjectMeta, ObjectStore};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::empty::EmptyExec;

use super::{Parquet, intervals};
use crate::io::path_columns::PathColumns;
use crate::io::same_column::own_column;

/// A file of a table.
#[derive(Debug, Clone)]
pub(in crate::io) struct TableFile {
    pub(in crate::io) object: ObjectMeta,
    /// Its own columns.
    pub(in crate::io) schema: SchemaRef,
}

/// Parquet files as one table.
#[derive(Debug)]
pub(in crate::io) struct ParquetTable {
    format: Parquet,
    files: Vec<TableFile>,
    paths: PathColumns,
    /// Columns as they come out of files, and those of paths behind them.
    columns: TableSchema,
    /// Columns of the table, where intervals, which come out of files as bytes, are intervals.
    schema: SchemaRef,
    /// Of each file, once a scan has asked.
    statistics: Vec<OnceLock<Statistics>>,
}

impl ParquetTable {
    /// A table with these columns, those of paths behind those of files.
    pub(in crate::io) fn new(
        format: Parquet,
        files: Vec<TableFile>,
        schema: &Schema,
        paths: PathColumns,
    ) -> ParquetTable {
        let of_files = schema.fields()[..schema.fields().len() - paths.fields.len()].to_vec();
        let of_files = Schema::new(of_files);
        let columns = TableSchema::builder(Arc::new(intervals::in_bytes(&of_files)));
        let columns = columns.with_table_partition_cols(paths.fields.clone()).build();
        let statistics = files.iter().map(|_| OnceLock::new()).collect();
        ParquetTable { format, files, paths, columns, schema: Arc::new(schema.clone()), statistics }
    }

    /// The table of some of the files.
    pub(in crate::io) fn of_files(&self, files: &[usize]) -> ParquetTable {
        ParquetTable {
            format: self.format.clone(),
            files: files.iter().map(|file| self.files[*file].clone()).collect(),
            paths: self.paths.of_files(files),
            columns: self.columns.clone(),
            schema: self.schema.clone(),
            statistics: files.iter().map(|file| self.statistics[*file].clone()).collect(),
        }
    }

    pub(in crate::io) fn paths(&self) -> &PathColumns {
        &self.paths
    }

    /// How many columns come out of files; those behind them are of paths.
    pub(in crate::io) fn columns_of_files(&self) -> usize {
        self.columns.file_schema().fields().len()
    }

    /// What a file's footer and path tell.
    async fn known_statistics(
        &self,
        state: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        at: usize,
    ) -> Result<&Statistics> {
        match self.statistics[at].get() {
            Some(known) => Ok(known),
            None => {
                let found = self.statistics_of(state, store, at).await?;
                Ok(self.statistics[at].get_or_init(|| found))
            }
        }
    }

    async fn statistics_of(
        &self,
        state: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        at: usize,
    ) -> Result<Statistics> {
        let (file, table) = (&self.files[at], self.columns.file_schema());
        let mut found = self.format.infer_stats(state, store, table.clone(), &file.object).await?;
        for (field, column) in table.fields().iter().zip(&mut found.column_statistics) {
            let own = own_column(table, &file.schema, field.name());
            let is_own =
                own.is_some_and(|own| file.schema.field(own).data_type() == field.data_type());
            if !is_own {
                // They are of values of another type, or of none.
                *column = ColumnStatistics {
                    null_count: column.null_count,
                    ..ColumnStatistics::new_unknown()
                };
            }
        }
        let rows = found.num_rows;
        found
            .column_statistics
            .extend(self.paths.values(at).iter().map(|value| of_constant(value, rows)));
        Ok(found)
    }
}

/// Statistics of a column that has one value in all rows.
fn of_constant(value: &ScalarValue, rows: Precision<usize>) -> ColumnStatistics {
    match value.is_null() {
        true => ColumnStatistics { null_count: rows, ..ColumnStatistics::new_unknown() },
        false => ColumnStatistics {
            null_count: Precision::Exact(0),
            min_value: Precision::Exact(value.clone()),
            max_value: Precision::Exact(value.clone()),
            ..ColumnStatistics::new_unknown()
        },
    }
}

#[async_trait]
impl TableProvider for ParquetTable {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let selected =
            self.paths.selected(state, filters)?.unwrap_or_else(|| (0..self.files.len()).collect());
        let projected = match projection {
            Some(columns) => Arc::new(self.schema.project(columns)?),
            None => self.schema.clone(),
        };
        if selected.is_empty() {
            return Ok(Arc::new(EmptyExec::new(projected)));
        }
        let url = ObjectStoreUrl::local_filesystem();
        let store = state.runtime_env().object_store(&url)?;
        let (mut files, mut statistics) = (vec![], vec![]);
        for at in selected {
            let mut file = PartitionedFile::new_from_meta(self.files[at].object.clone())
                .with_partition_values(self.paths.values(at).to_vec());
            if state.config().collect_statistics() {
                let of_file = self.known_statistics(state, &store, at).await?;
                file.statistics = Some(Arc::new(of_file.clone()));
                statistics.push(of_file);
            }
            files.push(file);
        }
        let statistics = match statistics.is_empty() {
            true => Statistics::new_unknown(self.columns.table_schema()),
            false => Statistics::try_merge_iter(statistics, self.columns.table_schema())?,
        };
        let each = files.len().div_ceil(state.config().target_partitions().max(1));
        let groups = files.chunks(each).map(|files| FileGroup::new(files.to_vec())).collect();
        let config = FileScanConfigBuilder::new(url, self.format.file_source(self.columns.clone()))
            .with_file_groups(groups)
            .with_statistics(statistics)
            .with_projection_indices(projection.cloned())?
            .with_limit(limit)
            .build();
        intervals::of_bytes(self.format.create_physical_plan(state, config).await?, &projected)
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        Ok(vec![TableProviderFilterPushDown::Inexact; filters.len()])
    }
}
