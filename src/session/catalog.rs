//! The session's tables by name. `writers.rs` says who changes them.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::{SchemaProvider, TableProvider};
use datafusion::error::Result;
use parking_lot::RwLock;

use super::constraints::Constraints;

/// Tables by name, of which a new one replaces that of its name at once: for other threads there is
/// always one of both. DataFusion's own refuses a name that is taken.
#[derive(Debug, Default)]
pub(super) struct Catalog(RwLock<CatalogTables>);

/// Tables by name, and what is said of some of them.
#[derive(Debug, Clone, Default)]
pub(super) struct CatalogTables {
    providers: HashMap<String, Arc<dyn TableProvider>>,
    constraints: HashMap<String, Constraints>,
}

impl Catalog {
    fn read<T>(&self, read: impl FnOnce(&CatalogTables) -> T) -> T {
        read(&self.0.read())
    }

    fn write<T>(&self, write: impl FnOnce(&mut CatalogTables) -> T) -> T {
        write(&mut self.0.write())
    }

    /// All tables, by name.
    pub(super) fn tables(&self) -> CatalogTables {
        self.read(CatalogTables::clone)
    }

    /// Puts these tables in the place of all.
    pub(super) fn restore(&self, all: CatalogTables) {
        self.write(|tables| *tables = all);
    }

    /// Puts a table in the place of another, where that is what its name means still.
    pub(super) fn replace(
        &self,
        name: &str,
        old: &Arc<dyn TableProvider>,
        new: Arc<dyn TableProvider>,
    ) {
        self.write(|tables| match tables.providers.get_mut(name) {
            Some(table) if Arc::ptr_eq(table, old) => *table = new,
            _ => {}
        });
    }

    /// What is said of a table.
    pub(super) fn constraints(&self, name: &str) -> Constraints {
        self.read(|tables| tables.constraints.get(name).cloned().unwrap_or_default())
    }

    /// Says this of a table, and nothing else.
    pub(super) fn constrain(&self, name: &str, constraints: Constraints) {
        self.write(|tables| match constraints.is_empty() {
            true => tables.constraints.remove(name),
            false => tables.constraints.insert(name.into(), constraints),
        });
    }
}

#[async_trait]
impl SchemaProvider for Catalog {
    fn table_names(&self) -> Vec<String> {
        self.read(|tables| tables.providers.keys().cloned().collect())
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        Ok(self.read(|tables| tables.providers.get(name).cloned()))
    }

    /// Nothing is said of the new table.
    fn register_table(
        &self,
        name: String,
        table: Arc<dyn TableProvider>,
    ) -> Result<Option<Arc<dyn TableProvider>>> {
        Ok(self.write(|tables| {
            tables.constraints.remove(&name);
            tables.providers.insert(name, table)
        }))
    }

    fn deregister_table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        Ok(self.write(|tables| {
            tables.constraints.remove(name);
            tables.providers.remove(name)
        }))
    }

    fn table_exist(&self, name: &str) -> bool {
        self.read(|tables| tables.providers.contains_key(name))
    }
}
