//! JSON as DataFusion reads it, on the host: a row in each line, or the members of one array.

mod types;

use std::fs::File;
use std::io::{BufReader, Read, Seek};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::datasource::TableType;
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::datasource::file_format::json::JsonFormat;
use datafusion::datasource::listing::{ListingOptions, ListingTable, ListingTableConfig};
use datafusion::error::Result as PlanResult;
use datafusion::logical_expr::Expr;
use datafusion::physical_plan::ExecutionPlan;

use super::csv::Packed;
use super::files::{Files, url};
use super::guard::{of_content, uncut, unpanicked};
use super::host_files::HostFiles;
use super::lone_files::{LoneFile, LoneFiles};
use super::path_columns::PathColumns;
use super::unite::unite;
use crate::error::{Error, ErrorKind, Result};

/// What errors and notes call the files.
const FORMAT: &str = "JSON";

/// How the rows of a file stand in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct JsonLayout {
    packed: Option<Packed>,
    /// Whether they are the members of an array; otherwise each is a line.
    is_array: bool,
}

impl JsonLayout {
    /// By the file's first bytes, and the first one of its text that is no blank.
    ///
    /// # Errors
    /// A file that cannot be read, is empty, or is not what its extension says.
    fn of(path: &Path) -> Result<JsonLayout> {
        let io = |error| Error::io(path, error);
        let wrong = |message: String| Error::from(ErrorKind::File { path: path.into(), message });
        let mut file = File::open(path).map_err(io)?;
        let mut begin = vec![];
        file.by_ref().take(Packed::BEGIN).read_to_end(&mut begin).map_err(io)?;
        if begin.is_empty() {
            return Err(wrong("is empty".into()));
        }
        let packed = Packed::of(path, &begin).map_err(wrong)?;
        file.rewind().map_err(io)?;
        for byte in BufReader::new(text(packed, file).map_err(io)?).bytes() {
            match byte.map_err(|error| wrong(format!("it cannot be unpacked: {error}")))? {
                b' ' | b'\t' | b'\r' | b'\n' => {}
                first => return Ok(JsonLayout { packed, is_array: first == b'[' }),
            }
        }
        Ok(JsonLayout { packed, is_array: false })
    }

    /// The columns of a file. Types follow from all rows: what comes late may be of another one.
    ///
    /// # Errors
    /// A file that is no JSON, or an array that does not end.
    async fn schema(self, files: &Files, path: &Path) -> Result<SchemaRef> {
        let inferred = unpanicked(async {
            let text = File::open(path)
                .and_then(|file| text(self.packed, file))
                .map_err(|error| Error::io(path, error))?;
            match self.is_array {
                true => types::of_lines(JsonMemberLines::new(text)),
                false => types::of_lines(text),
            }
        });
        let schema = inferred.await.map_err(|error| files.name(of_content(error), path))?;
        Ok(Arc::new(schema))
    }

    fn listing(self) -> ListingOptions {
        let packed = match self.packed {
            None => FileCompressionType::UNCOMPRESSED,
            Some(Packed::Gzip) => FileCompressionType::GZIP,
            Some(Packed::Zstd) => FileCompressionType::ZSTD,
            Some(Packed::Bzip2) => FileCompressionType::BZIP2,
            Some(Packed::Xz) => FileCompressionType::XZ,
        };
        let format = JsonFormat::default().with_schema_infer_max_rec(usize::MAX);
        let format =
            format.with_newline_delimited(!self.is_array).with_file_compression_type(packed);
        ListingOptions::new(Arc::new(format)).with_file_extension("")
    }

    fn provider(self, paths: &[PathBuf], schema: &SchemaRef) -> Result<Arc<dyn TableProvider>> {
        let urls = paths.iter().map(|path| url(path)).collect::<Result<Vec<_>>>()?;
        let config = ListingTableConfig::new_with_multi_paths(urls);
        let config = config.with_listing_options(self.listing()).with_schema(schema.clone());
        Ok(Arc::new(ListingTable::try_new(config)?))
    }

    fn lone(self, path: &Path, schema: &SchemaRef) -> Result<Arc<dyn TableProvider>> {
        let file = self.provider(&[path.into()], schema)?;
        // DataFusion (55) cuts files of arrays into ranges, and then refuses these.
        Ok(if self.is_array { Arc::new(UncutFile(file)) } else { file })
    }
}

/// What a file holds when it is unpacked.
fn text(packed: Option<Packed>, file: File) -> std::io::Result<Box<dyn Read>> {
    let file = BufReader::new(file);
    match packed {
        Some(packed) => packed.reader(file),
        None => Ok(Box::new(file)),
    }
}

/// The members of an array, a line each: what stands between them becomes a line end, and line ends
/// within them become blanks, which mean the same.
struct JsonMemberLines<R> {
    text: R,
    place: PlaceInArray,
    /// Arrays and objects that are open within the array.
    depth: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PlaceInArray {
    Before,
    Within,
    InString,
    /// In a string, behind a backslash.
    Escaped,
    Behind,
}

impl<R: Read> JsonMemberLines<R> {
    fn new(text: R) -> JsonMemberLines<R> {
        JsonMemberLines { text, place: PlaceInArray::Before, depth: 0 }
    }

    /// # Errors
    /// Something behind the array.
    fn written(&mut self, byte: u8) -> std::io::Result<u8> {
        use PlaceInArray::{Before, Behind, Escaped, InString, Within};
        let (place, written) = match (self.place, byte) {
            (Before, b'[') => (Within, b' '),
            (Within, b'"') => (InString, byte),
            (Within, b',') if self.depth == 0 => (Within, b'\n'),
            (Within, b']') if self.depth == 0 => (Behind, b'\n'),
            (Within, b'{' | b'[') => {
                self.depth += 1;
                (Within, byte)
            }
            (Within, b'}' | b']') => {
                self.depth = self.depth.saturating_sub(1);
                (Within, byte)
            }
            (InString, b'"') => (Within, byte),
            (InString, b'\\') => (Escaped, byte),
            (Escaped, _) => (InString, byte),
            (Behind, byte) if !byte.is_ascii_whitespace() => {
                return Err(std::io::Error::new(
                    std::io::ErrorKind::InvalidData,
                    "there is more behind the array",
                ));
            }
            (place, b'\r' | b'\n') => (place, b' '),
            (place, byte) => (place, byte),
        };
        self.place = place;
        Ok(written)
    }
}

impl<R: Read> Read for JsonMemberLines<R> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let read = self.text.read(into)?;
        for byte in &mut into[..read] {
            *byte = self.written(*byte)?;
        }
        if read == 0 && !into.is_empty() && self.place != PlaceInArray::Behind {
            return Err(std::io::Error::new(
                std::io::ErrorKind::InvalidData,
                "the array does not end",
            ));
        }
        Ok(read)
    }
}

/// Files as a table. It has the columns of all files, of which a row need not have all.
///
/// # Errors
/// Files that cannot be opened or are no JSON, by name; columns of types that no type holds both
/// of.
pub(super) async fn files(
    files: &Files,
    paths: &[PathBuf],
    of_paths: PathColumns,
) -> Result<HostFiles> {
    let (mut described, mut sizes, mut layouts) = (vec![], vec![], vec![]);
    for path in paths {
        let layout = JsonLayout::of(path)?;
        described.push((path.clone(), layout.schema(files, path).await?));
        sizes.push(path.metadata().map_err(|error| Error::io(path, error))?.len());
        layouts.push(layout);
    }
    let all = unite(&described, true)?.schema;
    if all.fields().is_empty() {
        let path = paths.first().cloned().unwrap_or_default();
        return Err(ErrorKind::File { path, message: "no row has a value".into() }.into());
    }
    let named = files.selection.named();
    let is_one = layouts.iter().all(|layout| *layout == layouts[0] && !layout.is_array);
    if is_one && of_paths.fields.is_empty() {
        return Ok(HostFiles::new(
            layouts[0].provider(paths, &all)?,
            sizes.iter().sum(),
            named,
            FORMAT,
        ));
    }
    let alone = paths.iter().zip(layouts).zip(sizes);
    let alone = alone
        .map(|((path, layout), bytes)| Ok(LoneFile { provider: layout.lone(path, &all)?, bytes }));
    let alone = alone.collect::<Result<Vec<_>>>()?;
    let schema = Arc::new(of_paths.behind(&all, named)?);
    Ok(HostFiles::of_lone(LoneFiles::new(alone, of_paths, schema), named, FORMAT))
}

/// A file that is read whole, by one thread.
#[derive(Debug)]
struct UncutFile(Arc<dyn TableProvider>);

#[async_trait]
impl TableProvider for UncutFile {
    fn schema(&self) -> SchemaRef {
        self.0.schema()
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
    ) -> PlanResult<Arc<dyn ExecutionPlan>> {
        uncut(self.0.scan(state, projection, filters, limit).await?)
    }
}

/// A file of these columns.
///
/// # Errors
/// A file that cannot be read; a path that is no location.
pub(super) fn provider(path: &Path, schema: &SchemaRef) -> Result<Arc<dyn TableProvider>> {
    JsonLayout::of(path)?.lone(path, schema)
}
