//! Tables that DataFusion's scans read, as tables of the engine: their columns stay on the device
//! until others want the room, and the next scan of them finds these.

use std::convert::Infallible;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Weak};

use datafusion::arrow::array::{Array, RecordBatch};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::TableProvider;
use datafusion::execution::SessionState;
use parking_lot::Mutex;

use crate::error::{Error, Result};
use crate::io::{
    Chunk, PartKeys, ScannedFormat, ScannedPart, Snapshot, SomeColumns, SomeRows, Source,
    SourceTable, of_their_types, some_chunks, source_of_parts,
};

/// Most tables that are known at once. A stage reads a few.
const MOST: usize = 512;
/// Who has a batch in memory where nobody else does: its entry here and its source.
const OWN_HOLDERS: usize = 2;

/// The tables, those asked for last at the end.
#[derive(Debug, Clone, Default)]
pub(super) struct ScannedTables(Arc<Mutex<Vec<KnownTable>>>);

#[derive(Debug)]
struct KnownTable {
    key: TableKey,
    table: Arc<SourceTable>,
}

/// What tells tables and their versions apart.
#[derive(Debug)]
enum TableKey {
    Parts(ScannedFormat, Vec<ScannedPart>, SchemaRef),
    /// Batches in host memory, by their columns' identity, that have these columns of a table.
    Batches(KnownBatches, SchemaRef, Vec<usize>),
    /// A part of a session's table in the version of this number.
    Snapshot(Weak<dyn TableProvider>, u64, TablePart),
}

/// Batches, one partition after the other.
#[derive(Debug)]
struct KnownBatches {
    batches: Vec<RecordBatch>,
    /// The addresses of the batches' columns, one batch after the other: in one place, where the
    /// lists of thousands of batches are far apart.
    columns: Vec<usize>,
}

impl KnownBatches {
    fn of(batches: Vec<RecordBatch>) -> KnownBatches {
        let columns = batches.iter().flat_map(RecordBatch::columns).map(address).collect();
        KnownBatches { batches, columns }
    }

    /// Whether the batches of partitions share their columns with these.
    fn are(&self, partitions: &[&[RecordBatch]]) -> bool {
        let count: usize = partitions.iter().map(|batches| batches.len()).sum();
        let columns = partitions.iter().copied().flatten().flat_map(RecordBatch::columns);
        count == self.batches.len() && columns.map(address).eq(self.columns.iter().copied())
    }
}

/// What tells a column from others, as long as somebody has it.
fn address(column: &Arc<dyn Array>) -> usize {
    Arc::as_ptr(column).addr()
}

/// Which rows of a table a device has.
#[derive(Debug, Clone, PartialEq, Eq)]
enum TablePart {
    /// One of so many parts of about equal bytes.
    Chunks(usize, usize),
    Rows(Range<u64>),
}

impl TablePart {
    fn is_whole(&self) -> bool {
        *self == TablePart::Chunks(0, 1)
    }
}

impl ScannedTables {
    /// The rows of parts of files; `None` where the device would read other columns.
    ///
    /// # Errors
    /// Of files that cannot be read.
    pub(super) async fn of_parts(
        &self,
        state: &SessionState,
        (format, parts): (ScannedFormat, Vec<ScannedPart>),
        schema: &SchemaRef,
    ) -> Result<Option<Arc<SourceTable>>> {
        let known = self.find(|key| match key {
            TableKey::Parts(known_format, known, of) => {
                (known_format, known, of) == (&format, &parts, schema)
            }
            _ => false,
        });
        if known.is_some() {
            return Ok(known);
        }
        let source = source_of_parts(state, &format, &parts, schema).await?;
        let Some(source) = source else { return Ok(None) };
        let table = Arc::new(SourceTable::new(Snapshot::of(source), None, 0));
        self.add(TableKey::Parts(format, parts, schema.clone()), &table);
        Ok(Some(table))
    }

    /// The rows of partitions of batches that have these columns of a table; `None` where values are
    /// none of their types, which is looked at once.
    pub(super) fn of_batches(
        &self,
        partitions: &[&[RecordBatch]],
        schema: &SchemaRef,
        columns: Vec<usize>,
    ) -> Option<Arc<SourceTable>> {
        let is_same = |key: &TableKey| match key {
            TableKey::Batches(known, of, some) => {
                of == schema && *some == columns && known.are(partitions)
            }
            _ => false,
        };
        let known = self.find(is_same);
        if known.is_some() {
            return known;
        }
        let batches = partitions.concat();
        if batches.iter().any(|batch| of_their_types(batch).is_err()) {
            return None;
        }
        // Another task of the same stage may have looked at them meanwhile.
        let known = self.find(is_same);
        if known.is_some() {
            return known;
        }
        let has_identity = !columns.is_empty();
        let source = SomeColumns::new(schema.clone(), columns.clone(), batches.clone());
        let table = Arc::new(SourceTable::new(Snapshot::of(Arc::new(source)), None, 0));
        // Batches without columns have no identity.
        if has_identity {
            let known = KnownBatches::of(batches);
            self.add(TableKey::Batches(known, schema.clone(), columns), &table);
        }
        Some(table)
    }

    /// A part of a session's table in one version, as so many of about equal bytes, for the device of
    /// this engine.
    pub(super) fn of_snapshot(
        &self,
        table: &Arc<dyn TableProvider>,
        snapshot: &Snapshot,
        part: (usize, usize),
    ) -> Arc<SourceTable> {
        let (of, count) = part;
        let Ok(made) = self.of_part(table, snapshot.number(), TablePart::Chunks(of, count), || {
            let source = snapshot.source();
            Ok::<_, Infallible>(some_chunks(source, dealt(&source.chunks(), part)))
        });
        made
    }

    /// Rows of a session's table in one version that follow one another, and the keys that they may
    /// have, for the device of this engine.
    ///
    /// # Errors
    /// `Internal` of a table whose chunks do not know their rows.
    pub(super) fn of_rows(
        &self,
        table: &Arc<dyn TableProvider>,
        snapshot: &Snapshot,
        (rows, keys): (Range<u64>, PartKeys),
    ) -> Result<Arc<SourceTable>> {
        self.of_part(table, snapshot.number(), TablePart::Rows(rows.clone()), || {
            let some = SomeRows::new(snapshot.source(), rows, keys);
            let some = some.ok_or_else(|| Error::internal("a chunk does not know its rows"))?;
            Ok(Arc::new(some))
        })
    }

    /// A part of a table that a device keeps, as so many equal ones.
    pub(super) fn of_kept<S: Source + 'static>(
        &self,
        table: &Arc<dyn TableProvider>,
        (part, of): (usize, usize),
        source: impl FnOnce() -> Arc<S>,
    ) -> Arc<SourceTable> {
        // It has one version.
        let Ok(made) = self.of_part(table, 0, TablePart::Chunks(part, of), || {
            Ok::<Arc<dyn Source>, Infallible>(source())
        });
        made
    }

    fn of_part<E>(
        &self,
        table: &Arc<dyn TableProvider>,
        number: u64,
        part: TablePart,
        source: impl FnOnce() -> std::result::Result<Arc<dyn Source>, E>,
    ) -> std::result::Result<Arc<SourceTable>, E> {
        let known = self.find(|key| match key {
            TableKey::Snapshot(of, known, known_part) => {
                (known, known_part) == (&number, &part) && is_same(of, table)
            }
            _ => false,
        });
        if let Some(known) = known {
            return Ok(known);
        }
        let made = Arc::new(SourceTable::new(Snapshot::of(source()?), None, 0));
        self.add(TableKey::Snapshot(Arc::downgrade(table), number, part), &made);
        Ok(made)
    }

    fn find(&self, is_wanted: impl Fn(&TableKey) -> bool) -> Option<Arc<SourceTable>> {
        let mut tables = self.0.lock();
        let at = tables.iter().position(|table| is_wanted(&table.key))?;
        let found = tables.remove(at);
        let table = found.table.clone();
        tables.push(found);
        Some(table)
    }

    fn add(&self, key: TableKey, table: &Arc<SourceTable>) {
        let mut tables = self.0.lock();
        tables.retain(|of| !of.key.is_gone() && !key.replaces(&of.key));
        if tables.len() >= MOST {
            tables.remove(0);
        }
        tables.push(KnownTable { key, table: table.clone() });
    }
}

impl TableKey {
    /// Whether nobody but the engine has the rows, as after a table was dropped.
    fn is_gone(&self) -> bool {
        match self {
            TableKey::Parts(..) => false,
            TableKey::Batches(known, ..) => (known.batches.iter())
                .flat_map(|batch| batch.columns().first())
                .all(|column| Arc::strong_count(column) <= OWN_HOLDERS),
            TableKey::Snapshot(table, ..) => table.strong_count() == 0,
        }
    }

    /// Whether the other is of a file or table of this in another version, or another part of it:
    /// a device has one part of a table, beside all of it.
    fn replaces(&self, other: &TableKey) -> bool {
        if let (TableKey::Snapshot(table, number, part), TableKey::Snapshot(other, of, of_part)) =
            (self, other)
        {
            let is_other = part != of_part && !part.is_whole() && !of_part.is_whole();
            return (number != of || is_other) && Weak::ptr_eq(table, other);
        }
        let (TableKey::Parts(_, parts, _), TableKey::Parts(_, others, _)) = (self, other) else {
            return false;
        };
        let changed = |other: &ScannedPart| {
            let same = |part: &&ScannedPart| Path::eq(part.path(), other.path());
            parts.iter().find(same).is_some_and(|part| !part.is_of_version(other))
        };
        others.iter().any(changed)
    }
}

fn is_same(known: &Weak<dyn TableProvider>, table: &Arc<dyn TableProvider>) -> bool {
    known.upgrade().is_some_and(|known| Arc::ptr_eq(&known, table))
}

/// The chunks of a part, where all of them are dealt out by their bytes, or rows, to so many.
fn dealt(chunks: &[Chunk], (part, of): (usize, usize)) -> Range<usize> {
    let size = |chunk: &Chunk| chunk.bytes.or(chunk.rows).unwrap_or(1);
    let all: u64 = chunks.iter().map(size).sum();
    let mut before = 0u128;
    let mut home = |chunk: &Chunk| {
        // By the middle of the chunk.
        let middle = before + u128::from(size(chunk)) / 2;
        before += u128::from(size(chunk));
        (middle * of as u128 / u128::from(all.max(1))) as usize
    };
    let homes: Vec<usize> = chunks.iter().map(&mut home).collect();
    homes.partition_point(|home| *home < part)..homes.partition_point(|home| *home <= part)
}
