//! What a call tells the kernels: pages, chunks, and which pages and tiles a kernel has to look at.
//!
//! All of it lies in one buffer, so that it takes one copy to the device:
//!
//! ```text
//! pages (parquet_page) | chunks (parquet_chunk) | states (parquet_state) | lists of u64
//! ```
//!
//! A dictionary is a page like others, of a chunk of its own.

use super::{Characters, ColumnChunk, Int96Unit, Page, PageEncoding, PageOutput, Physical};
use super::{delta_source, fixed_source, hybrid_source, string_source};
use crate::error::Result;
use crate::ops::grid;
use crate::{Argument, Buffer, Device, KernelSource};

const OPERATOR: &str = "parquet";
/// `PARQUET_TILE`, `PARQUET_THREADS` and `STRING_THREADS` of the kernels.
const TILE: u32 = 4096;
const THREADS: u32 = 128;
const STRING_THREADS: u32 = 256;
const WARP: u64 = 32;
/// 64-bit words of `parquet_page`, `parquet_chunk` and `parquet_state`.
const PAGE_WORDS: usize = 9;
const CHUNK_WORDS: usize = 10;
const STATE_WORDS: usize = 2;

/// `PARQUET_OPTIONAL`, `PARQUET_LEVELS_APART` and `PARQUET_UTF8` of the kernels.
const OPTIONAL: u32 = 1;
const LEVELS_APART: u32 = 2;
const UTF8: u32 = 4;

/// Which kernels a page or its tiles go through, in the order in which they run.
#[derive(Debug, Default)]
struct WorkLists {
    optional: Vec<u64>,
    optional_tiles: Vec<u64>,
    fixed_tiles: Vec<u64>,
    strings: Vec<u64>,
    deltas: Vec<u64>,
    utf8: Vec<u64>,
    decimal_tiles: Vec<u64>,
    codes: Vec<u64>,
    code_tiles: Vec<u64>,
}

/// The pages and chunks of a call as the kernels have them.
#[derive(Debug, Default)]
pub(super) struct Call {
    pages: Vec<[u64; PAGE_WORDS]>,
    chunks: Vec<[u64; CHUNK_WORDS]>,
    states: Vec<[u64; STATE_WORDS]>,
    lists: WorkLists,
    tiles: u32,
    /// Pages whose strings become decimals: where their views begin among those of all.
    views: Vec<(usize, u64)>,
    /// Strings of those pages.
    strings: u64,
}

/// What is to know of a page, of data or of a dictionary.
struct DescribedPage<'a> {
    page: &'a Page,
    chunk: &'a ColumnChunk,
    /// Index among the chunks of the kernels.
    index: usize,
    /// Addresses of its first row.
    data: u64,
    dense: u64,
    validity: u64,
}

impl Call {
    pub(super) fn of(chunks: &[ColumnChunk], pages: &[Page]) -> Call {
        let mut call = Call::default();
        for (number, chunk) in chunks.iter().enumerate() {
            call.push_chunk(chunk, number);
        }
        for (number, chunk) in chunks.iter().enumerate() {
            if let Some(dictionary) = chunk.dictionary {
                // Codes are of views.
                let output = match chunk.output {
                    PageOutput::Codes { .. } => PageOutput::Views { utf8: true },
                    other => other,
                };
                let values = ColumnChunk { output, optional: false, dictionary: None, ..*chunk };
                let index = call.push_chunk(&values, number);
                let page = Page {
                    number: dictionary.number,
                    size: dictionary.size,
                    levels: None,
                    rows: dictionary.entries,
                    row: 0,
                    encoding: PageEncoding::Plain,
                    chunk: number as u32,
                };
                let data = dictionary.values;
                call.push_page(DescribedPage {
                    page: &page,
                    chunk: &values,
                    index,
                    data,
                    dense: data,
                    validity: 0,
                });
            }
        }
        for page in pages {
            let chunk = &chunks[page.chunk as usize];
            let at = |address: u64, width: u32| address + page.row * u64::from(width);
            let data = at(chunk.data, chunk.output.width());
            let validity =
                if chunk.optional && chunk.validity != 0 { at(chunk.validity, 1) } else { 0 };
            // Without validity, rows of pages with nulls have no use: any place will do.
            let dense = if validity != 0 { at(chunk.scratch, chunk.output.width()) } else { data };
            call.push_page(DescribedPage {
                page,
                chunk,
                index: page.chunk as usize,
                data,
                dense,
                validity,
            });
        }
        call
    }

    /// A chunk as the kernels have it, whose nulls are counted under a number; its index.
    fn push_chunk(&mut self, chunk: &ColumnChunk, number: usize) -> usize {
        let dictionary = chunk.dictionary;
        let length = match chunk.physical {
            Physical::Boolean | Physical::ByteArray => 0,
            Physical::Int32 | Physical::Float => 4,
            Physical::Int64 | Physical::Double => 8,
            Physical::Int96 => 12,
            Physical::FixedLenByteArray(length) => length,
        };
        let integer = matches!(chunk.physical, Physical::Int32 | Physical::Int64);
        // `parquet_output` of the kernels.
        let output = match chunk.output {
            PageOutput::Integer { .. } | PageOutput::Float32 | PageOutput::Float64 => 0,
            PageOutput::Decimal { .. } if integer => 1,
            PageOutput::Decimal { .. } => 2,
            PageOutput::Int96 { .. } => 3,
            PageOutput::Bool => 4,
            PageOutput::Views { .. } => 5,
            PageOutput::Codes { .. } => 6,
            PageOutput::Widened { .. } => 7,
            PageOutput::Double => 8,
            PageOutput::Number { .. } => 9,
        };
        let bound = match chunk.output {
            PageOutput::Decimal { bound, .. } => bound.unwrap_or(u128::MAX),
            PageOutput::Codes { base } => base.into(),
            _ => 0,
        };
        let ticks = match chunk.output {
            PageOutput::Int96 { unit: Int96Unit::Second, .. } => 1_000_000_000,
            PageOutput::Int96 { unit: Int96Unit::Millisecond, .. } => 1_000_000,
            PageOutput::Int96 { unit: Int96Unit::Microsecond, .. } => 1_000,
            // `widened` of the kernels.
            PageOutput::Widened { bits, signed, .. } | PageOutput::Number { bits, signed } => {
                (64 - bits) | (u32::from(signed) << 6)
            }
            _ => 1,
        };
        let factor = chunk.output.factor();
        let room = chunk.characters.unwrap_or(Characters { address: 0, bytes: 0 });
        self.chunks.push([
            dictionary.map_or(0, |dictionary| dictionary.values),
            bound as u64,
            (bound >> 64) as u64,
            room.address,
            room.bytes,
            factor as u64,
            (factor >> 64) as u64,
            pair(dictionary.map_or(0, |dictionary| dictionary.entries), length),
            pair(output, chunk.output.width()),
            pair(ticks, number as u32),
        ]);
        self.chunks.len() - 1
    }

    fn push_page(&mut self, described: DescribedPage) {
        let DescribedPage { page, chunk, index, data, dense, validity } = described;
        assert!(
            page.rows <= i32::MAX as u32 && page.size <= i32::MAX as u32,
            "headers have 31 bits"
        );
        let of_strings = match page.encoding {
            PageEncoding::Dictionary => false,
            PageEncoding::DeltaByteArray => true,
            _ => chunk.physical == Physical::ByteArray,
        };
        let utf8 = chunk.output == PageOutput::Views { utf8: true };
        let (at, tiles) = (self.pages.len() as u64, page.rows.div_ceil(TILE));
        let all_tiles = || (0..u64::from(tiles)).map(|tile| tile << 32 | at);
        if page.rows > 0 {
            let lists = &mut self.lists;
            if chunk.optional {
                lists.optional.push(at);
                lists.optional_tiles.extend(all_tiles());
            }
            match page.encoding {
                PageEncoding::Dictionary | PageEncoding::Rle => {
                    lists.codes.push(at);
                    lists.code_tiles.extend(all_tiles());
                }
                PageEncoding::Plain | PageEncoding::ByteStreamSplit if of_strings => {
                    lists.strings.push(at)
                }
                PageEncoding::Plain | PageEncoding::ByteStreamSplit => {
                    lists.fixed_tiles.extend(all_tiles())
                }
                _ => lists.deltas.push(at),
            }
            if of_strings && utf8 {
                lists.utf8.push(at);
            }
            if of_strings && matches!(chunk.output, PageOutput::Decimal { .. }) {
                lists.decimal_tiles.extend(all_tiles());
                self.views.push((self.pages.len(), self.strings));
                self.strings += u64::from(page.rows);
            }
        }
        // `parquet_encoding` of the kernels.
        let encoding = match page.encoding {
            PageEncoding::Plain => 0,
            PageEncoding::Dictionary => 1,
            PageEncoding::Rle => 2,
            PageEncoding::ByteStreamSplit => 3,
            PageEncoding::DeltaBinaryPacked => 4,
            PageEncoding::DeltaLengthByteArray => 5,
            PageEncoding::DeltaByteArray => 6,
        };
        let flag = |flag: u32, set: bool| if set { flag } else { 0 };
        let apart = flag(LEVELS_APART, page.levels.is_some());
        let flags = flag(OPTIONAL, chunk.optional) | apart | flag(UTF8, utf8);
        let (levels, levels_size) = page.levels.unwrap_or((0, 0));
        self.pages.push([
            data,
            dense,
            validity,
            levels,
            0,
            pair(levels_size, page.size),
            pair(page.rows, page.number),
            pair(index as u32, self.tiles),
            pair(encoding, flags),
        ]);
        // Values begin at once, a row each, unless levels say something else.
        self.states.push([pair(0, page.rows), 0]);
        self.tiles = self.tiles.checked_add(tiles).expect("fewer than 2³² tiles");
    }

    pub(super) fn submit(
        mut self,
        device: &Device,
        places: &Buffer,
        nulls: &Buffer,
        faults: &Buffer,
    ) -> Result<()> {
        let views = device.alloc(OPERATOR, self.strings as usize * 16)?;
        for &(page, begin) in &self.views {
            self.pages[page][4] = views.address() + begin * 16;
        }
        let starts = device.alloc(OPERATOR, self.tiles as usize * 8)?;
        let ranks = device.alloc(OPERATOR, self.tiles as usize * 4)?;
        let used = device.alloc_zeroed(OPERATOR, self.chunks.len() * 8)?;
        let lists = std::mem::take(&mut self.lists);
        let words = [
            self.pages.as_flattened(),
            self.chunks.as_flattened(),
            self.states.as_flattened(),
            &lists.optional,
            &lists.optional_tiles,
            &lists.fixed_tiles,
            &lists.strings,
            &lists.deltas,
            &lists.utf8,
            &lists.decimal_tiles,
            &lists.codes,
            &lists.code_tiles,
        ];
        let mut begins = [0; 12];
        let mut bytes = Vec::with_capacity(words.iter().map(|words| words.len() * 8).sum());
        for (begin, words) in begins.iter_mut().zip(words) {
            *begin = bytes.len();
            words.iter().for_each(|word| bytes.extend_from_slice(&word.to_le_bytes()));
        }
        let told = device.upload(OPERATOR, &bytes)?;
        let [pages, chunks, states, lists @ ..] = begins;
        let launch = |list: usize, source: &KernelSource, name: &str, shape: ListShape| {
            let count = words[list + 3].len() as u64;
            let (blocks, threads) = match shape {
                ListShape::Warp => ((count * WARP).div_ceil(THREADS.into()), THREADS),
                ListShape::Block => (count, THREADS),
                ListShape::StringBlock => (count, STRING_THREADS),
            };
            if count == 0 {
                return Ok(());
            }
            let kernel = device.kernel(source, name)?;
            let arguments: [Argument; 11] = [
                told.slice(pages).address().into(),
                told.slice(chunks).address().into(),
                told.slice(states).address().into(),
                places.into(),
                faults.into(),
                nulls.into(),
                (&starts).into(),
                (&ranks).into(),
                (&used).into(),
                told.slice(lists[list]).address().into(),
                count.into(),
            ];
            // SAFETY: ParquetCall: what lies in `told` was put there above as the kernels read it;
            // `starts` and `ranks` have a word a tile of the pages, `used` a word a chunk; `nulls`,
            // `places` and `faults` were checked by `decode`. The addresses in pages and chunks,
            // and `places`, are the caller's: of live memory, as large as `Page` and `ColumnChunk`
            // say.
            unsafe { device.launch(&kernel, grid(blocks, threads), &arguments) }
        };
        let (hybrid, fixed, string, delta) =
            (hybrid_source(), fixed_source(), string_source(), delta_source());
        launch(0, &hybrid, "parquet_levels_walk", ListShape::Warp)?;
        launch(1, &hybrid, "parquet_levels", ListShape::Block)?;
        launch(0, &hybrid, "parquet_ranks", ListShape::Warp)?;
        launch(2, &fixed, "parquet_fixed", ListShape::Block)?;
        launch(3, &string, "parquet_strings", ListShape::StringBlock)?;
        launch(4, &delta, "parquet_delta", ListShape::Warp)?;
        launch(5, &string, "parquet_utf8", ListShape::StringBlock)?;
        launch(6, &fixed, "parquet_decimals", ListShape::Block)?;
        // Codes need the dictionaries, which are among the values so far.
        launch(7, &hybrid, "parquet_codes_walk", ListShape::Warp)?;
        launch(8, &hybrid, "parquet_codes", ListShape::Block)?;
        launch(1, &hybrid, "parquet_nulls", ListShape::Block)
    }
}

/// What looks at an entry of a list.
#[derive(Debug, Clone, Copy)]
enum ListShape {
    Warp,
    Block,
    StringBlock,
}

/// Two 32-bit fields of a structure, the first one first.
fn pair(first: u32, second: u32) -> u64 {
    u64::from(first) | u64::from(second) << 32
}
