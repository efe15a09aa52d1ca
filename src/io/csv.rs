//! CSV files as a source.
//!
//! The rules are warpframe's own; `docs/csv.md` has them for users. In short:
//!
//! - A row ends with `\n`, `\r\n` or `\r`; blank lines are none. A quote opens a value only as its
//!   first byte; inside, a doubled quote is one, and row ends belong to the value. What follows the
//!   closing quote belongs to the value, too.
//! - An unquoted empty value is NULL. A quoted one is the empty string, and NULL in columns that
//!   are not text.
//! - Types are inferred from a sample, by the whole text of each value. A later value that does not
//!   fit makes its column's type wider, by all values of the column.
//!
//! | file | what |
//! |---|---|
//! | `options` | what a user says |
//! | `grammar` | the automaton of rows and values |
//! | `tokens` | rows taken apart into values |
//! | `text` | encodings |
//! | `codec`, `packed`, `streams`, `piece`, `xz` | compressed files |
//! | `values`, `seen` | how values are written; what types columns have |
//! | `sniff`, `dialect` | how files are laid out |
//! | `columns` | names, and which values of a file's rows they are |
//! | `table` | files, inference |
//! | `blocks`, `convert`, `host` | the host's reader |
//! | `device` | the device's reader |

mod blocks;
mod codec;
mod columns;
mod convert;
mod device;
mod dialect;
mod grammar;
mod host;
mod options;
#[cfg(test)]
mod oracle;
mod packed;
mod parallel;
mod piece;
mod seen;
mod sniff;
mod streams;
mod table;
#[cfg(test)]
mod tests;
mod text;
mod tokens;
mod values;
mod xz;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::error::Result as PlanResult;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};
use datafusion::physical_plan::ExecutionPlan;

pub(super) use self::codec::Packed;
pub use self::options::{CsvOptions, Ragged, TextEncoding};
pub(super) use self::seen::Seen;
pub(super) use self::table::CsvTable;

use self::device::DeviceRead;
use self::host::CsvProvider;
use super::path_columns::PathColumns;
use super::source::{Chunk, ColumnRequest, Read, Source, To};
use super::stream::{self, ProviderRows};
use crate::error::{Error, Result};

/// CSV files of one table.
#[derive(Debug)]
pub(crate) struct CsvFiles {
    provider: Arc<CsvProvider>,
    /// What the device does not read as it stands is an error, and not read by the host.
    on_device: bool,
}

impl CsvFiles {
    /// Finds out how the files are laid out, and infers the types of their columns.
    ///
    /// # Errors
    /// As [`CsvTable::open`].
    pub(crate) fn open(
        paths: &[PathBuf],
        options: &CsvOptions,
        of_paths: PathColumns,
    ) -> Result<CsvFiles> {
        Ok(CsvFiles::of(Arc::new(CsvTable::open(paths, options, of_paths)?)))
    }

    /// Files of which values alone are read that are certain to mean what others read in them: those
    /// of the forms of docs/csv.md that are wholly of their column's type, on the device.
    ///
    /// # Errors
    /// As [`CsvTable::open`].
    pub(crate) fn on_device(paths: &[PathBuf], options: &CsvOptions) -> Result<CsvFiles> {
        let mut table = CsvTable::open(paths, options, PathColumns::default())?;
        table.given.fill(false);
        Ok(CsvFiles { on_device: true, ..CsvFiles::of(Arc::new(table)) })
    }

    fn of(table: Arc<CsvTable>) -> CsvFiles {
        CsvFiles { provider: Arc::new(CsvProvider::new(table)), on_device: false }
    }

    async fn read_on_host(&self, to: &To<'_>, wanted: &ColumnRequest<'_>) -> Result<Read> {
        let provider: Arc<dyn TableProvider> = self.provider.clone();
        let rows =
            ProviderRows { provider: &provider, columns: wanted.columns, limit: wanted.fetch };
        let (rows, columns) = stream::read(to, &rows).await?;
        let mut read = Read::new(rows, columns);
        let skipped = self.provider.take_skipped();
        if skipped > 0 {
            let values: BTreeSet<usize> =
                self.table().files.iter().map(|file| file.layout.values).collect();
            let values = values.iter().map(usize::to_string).collect::<Vec<_>>().join(" or ");
            let named = self.table().named();
            let misfits = match self.table().dialect.misfits_are_skipped {
                true => ", or have one that does not fit its column",
                false => "",
            };
            read.by_host.push(format!(
                "{skipped} rows of {named} are left out: they do not have {values} values{misfits}"
            ));
        }
        Ok(read)
    }

    fn table(&self) -> &CsvTable {
        &self.provider.table
    }
}

#[async_trait]
impl Source for CsvFiles {
    fn schema(&self) -> SchemaRef {
        self.provider.schema()
    }

    fn chunks(&self) -> Vec<Chunk> {
        vec![Chunk { rows: None, bytes: Some(self.table().bytes()) }]
    }

    async fn read(&self, to: &To<'_>, wanted: &ColumnRequest<'_>) -> Result<Read> {
        let reason = match device::read(to.device, self.table(), wanted.columns, wanted.fetch)? {
            DeviceRead::Rows(rows, columns) => return Ok(Read::new(rows, columns)),
            DeviceRead::Refused(columns) => {
                columns.iter().for_each(|column| self.table().note_misfit(*column));
                "the device does not read one of its values".into()
            }
            DeviceRead::ByHost(reason) => reason,
        };
        if self.on_device {
            return Err(Error::unsupported(self.table().named(), reason));
        }
        // It knows the place of what does not fit.
        let mut read = self.read_on_host(to, wanted).await?;
        read.by_host.push(format!("{} is read by the host: {reason}", self.table().named()));
        Ok(read)
    }

    fn widened(&self) -> Result<Option<Arc<dyn Source>>> {
        let wider = self.table().widened()?.map(Arc::new);
        Ok(wider.map(|table| Arc::new(CsvFiles::of(table)) as Arc<dyn Source>))
    }

    fn has_sampled_types(&self) -> bool {
        self.table().may_widen.contains(&true)
    }

    fn paths(&self) -> Option<&PathColumns> {
        Some(&self.table().paths)
    }

    fn of_files(&self, files: &[usize]) -> Option<Arc<dyn Source>> {
        Some(Arc::new(CsvFiles::of(Arc::new(self.table().of_files(files)))))
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> PlanResult<Arc<dyn ExecutionPlan>> {
        self.provider.scan(state, projection, filters, limit).await
    }

    fn supports_filters(&self, filters: &[&Expr]) -> PlanResult<Vec<TableProviderFilterPushDown>> {
        self.provider.supports_filters_pushdown(filters)
    }
}
