//! Parquet files as a table of DataFusion's.
//!
//! Its rows are those of the files in the order given, which the device's reader follows, too. A
//! filter on partition columns alone leaves files out before they are read.

use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use datafusion::arrow::array::{AsArray, RecordBatch};
use datafusion::arrow::datatypes::{DataType, Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column as Named, ColumnStatistics, DFSchema, ScalarValue, Statistics};
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
use crate::io::partitions::HivePartitions;

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
    partitions: HivePartitions,
    /// Columns as they come out of files, and those of partitions behind them.
    columns: TableSchema,
    /// The same, of which intervals are such.
    schema: SchemaRef,
    /// Of each file, once a scan has asked.
    statistics: Vec<OnceLock<Statistics>>,
}

impl ParquetTable {
    /// A table with these columns of its files. Partition columns take the place of those of their
    /// names.
    pub(in crate::io) fn new(
        format: Parquet,
        files: Vec<TableFile>,
        schema: &Schema,
        partitions: HivePartitions,
    ) -> ParquetTable {
        let of_files = schema.fields().iter().filter(|field| !partitions.has(field.name())).cloned();
        let of_files = Schema::new(of_files.collect::<Vec<_>>());
        let columns = TableSchema::builder(Arc::new(intervals::in_bytes(&of_files)));
        let columns = columns.with_table_partition_cols(partitions.fields.clone()).build();
        let fields = of_files.fields().iter().chain(&partitions.fields).cloned();
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let statistics = files.iter().map(|_| OnceLock::new()).collect();
        ParquetTable { format, files, partitions, columns, schema, statistics }
    }

    pub(in crate::io) fn partitions(&self) -> &HivePartitions {
        &self.partitions
    }

    /// How many columns come out of files; those behind them are partitions.
    pub(in crate::io) fn columns_of_files(&self) -> usize {
        self.columns.file_schema().fields().len()
    }

    /// The files that may have rows of which filters hold.
    fn selected(&self, state: &dyn Session, filters: &[Expr]) -> Result<Vec<usize>> {
        let mut kept = vec![true; self.files.len()];
        let fields = self.partitions.fields.clone();
        let is_told = |filter: &&Expr| {
            let columns = filter.column_refs();
            !columns.is_empty() && columns.iter().all(|column| self.partitions.has(&column.name))
        };
        let told: Vec<&Expr> = filters.iter().filter(is_told).filter(|filter| !filter.is_volatile()).collect();
        if !told.is_empty() {
            let schema = Arc::new(Schema::new(fields));
            let values = (0..schema.fields().len()).map(|field| self.partitions.column(field));
            let rows = RecordBatch::try_new(schema.clone(), values.collect::<crate::Result<_>>()?)?;
            let schema = DFSchema::try_from(schema)?;
            for filter in told {
                let Some(holds) = holds(state, filter, &schema, &rows) else { continue };
                kept.iter_mut().zip(holds).for_each(|(kept, holds)| *kept &= holds);
            }
        }
        Ok((0..self.files.len()).filter(|file| kept[*file]).collect())
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

    async fn statistics_of(&self, state: &dyn Session, store: &Arc<dyn ObjectStore>, at: usize) -> Result<Statistics> {
        let (file, table) = (&self.files[at], self.columns.file_schema());
        let mut found = self.format.infer_stats(state, store, table.clone(), &file.object).await?;
        for (field, column) in table.fields().iter().zip(&mut found.column_statistics) {
            let is_own =
                file.schema.field_with_name(field.name()).is_ok_and(|own| own.data_type() == field.data_type());
            if !is_own {
                // They are of values of another type, or of none.
                *column = ColumnStatistics { null_count: column.null_count, ..ColumnStatistics::new_unknown() };
            }
        }
        let rows = found.num_rows;
        found.column_statistics.extend(self.partitions.values(at).iter().map(|value| of_constant(value, rows)));
        Ok(found)
    }
}

/// Of which rows a filter holds; `None` where it fails, which is for whoever reads to say.
fn holds(state: &dyn Session, filter: &Expr, schema: &DFSchema, rows: &RecordBatch) -> Option<Vec<bool>> {
    let bare = filter.clone().transform_up(|expr| match expr {
        Expr::Column(column) => Ok(Transformed::yes(Expr::Column(Named::new_unqualified(column.name)))),
        other => Ok(Transformed::no(other)),
    });
    let expr = state.create_physical_expr(bare.ok()?.data, schema).ok()?;
    let found = expr.evaluate(rows).and_then(|found| found.into_array(rows.num_rows())).ok()?;
    let found = (*found.data_type() == DataType::Boolean).then(|| found.as_boolean().clone())?;
    Some(found.iter().map(|holds| holds == Some(true)).collect())
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
        let selected = self.selected(state, filters)?;
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
                .with_partition_values(self.partitions.values(at).to_vec());
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

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        Ok(vec![TableProviderFilterPushDown::Inexact; filters.len()])
    }
}
