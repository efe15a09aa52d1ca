//! The session's tables by name. `writers.rs` says who changes them.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::{SchemaProvider, TableProvider};
use datafusion::error::Result;
use parking_lot::RwLock;

/// Tables by name, of which a new one replaces that of its name at once: for other threads there is
/// always one of both. DataFusion's own refuses a name that is taken.
#[derive(Debug, Default)]
pub(super) struct Catalog(RwLock<HashMap<String, Arc<dyn TableProvider>>>);

impl Catalog {
    fn read<T>(&self, read: impl FnOnce(&HashMap<String, Arc<dyn TableProvider>>) -> T) -> T {
        read(&self.0.read())
    }

    fn write<T>(&self, write: impl FnOnce(&mut HashMap<String, Arc<dyn TableProvider>>) -> T) -> T {
        write(&mut self.0.write())
    }

    /// All tables, by name.
    pub(super) fn tables(&self) -> HashMap<String, Arc<dyn TableProvider>> {
        self.read(HashMap::clone)
    }

    /// Puts these tables in the place of all.
    pub(super) fn restore(&self, all: HashMap<String, Arc<dyn TableProvider>>) {
        self.write(|tables| *tables = all);
    }

    /// Puts a table in the place of another, where that is what its name means still.
    pub(super) fn replace(
        &self,
        name: &str,
        old: &Arc<dyn TableProvider>,
        new: Arc<dyn TableProvider>,
    ) {
        self.write(|tables| match tables.get_mut(name) {
            Some(table) if Arc::ptr_eq(table, old) => *table = new,
            _ => {}
        });
    }
}

#[async_trait]
impl SchemaProvider for Catalog {
    fn table_names(&self) -> Vec<String> {
        self.read(|tables| tables.keys().cloned().collect())
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        Ok(self.read(|tables| tables.get(name).cloned()))
    }

    fn register_table(
        &self,
        name: String,
        table: Arc<dyn TableProvider>,
    ) -> Result<Option<Arc<dyn TableProvider>>> {
        Ok(self.write(|tables| tables.insert(name, table)))
    }

    fn deregister_table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        Ok(self.write(|tables| tables.remove(name)))
    }

    fn table_exist(&self, name: &str) -> bool {
        self.read(|tables| tables.contains_key(name))
    }
}
