//! Arrow strings to device memory: as codes into a dictionary where they are few, else as views
//! over their characters.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use datafusion::arrow::array::{Array, ArrayAccessor, ArrayRef, AsArray};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{HashMap, HashSet};

use super::import::{IMPORT, ImportedRows, Inflow, Scratch};
use super::pieces;
use super::stats::PieceStats;
use super::{CODE_WIDTH, Column, Dictionary, INLINE, Stats, VIEW_WIDTH};
use crate::error::{Error, Result};

/// Most distinct strings that a column of `rows` rows may have to be encoded by itself.
///
/// At most 65,536: the device's views of the dictionary are then 1 MiB, a fraction of any GPU's
/// second-level cache, so decoding is as cheap as reading a plain view; sorting them on the host
/// takes milliseconds; and a column of distinct strings is given up after so many rows. At most a
/// quarter of the rows: otherwise predicates, which run once per entry, gain little over running
/// once per row. At least 256, so that small tables' names and flags are always codes.
pub(crate) fn distinct_limit(rows: usize) -> usize {
    (rows / 4).clamp(256, 65_536)
}

/// Evaluates an expression with the piece's strings under their own type.
macro_rules! with_strings {
    ($array:expr, $strings:ident => $body:expr) => {
        match $array.data_type() {
            DataType::Utf8 => {
                let $strings = $array.as_string::<i32>();
                $body
            }
            DataType::LargeUtf8 => {
                let $strings = $array.as_string::<i64>();
                $body
            }
            _ => {
                let $strings = $array.as_string_view();
                $body
            }
        }
    };
}

/// Evaluates an expression with the piece's strings or bytes under their own type.
macro_rules! with_bytes {
    ($array:expr, $strings:ident => $body:expr) => {
        match $array.data_type() {
            DataType::Binary => {
                let $strings = $array.as_binary::<i32>();
                $body
            }
            DataType::LargeBinary => {
                let $strings = $array.as_binary::<i64>();
                $body
            }
            DataType::BinaryView => {
                let $strings = $array.as_binary_view();
                $body
            }
            DataType::FixedSizeBinary(_) => {
                let $strings = $array.as_fixed_size_binary();
                $body
            }
            _ => with_strings!($array, $strings => $body),
        }
    };
}

impl ImportedRows<'_> {
    /// Imports strings, encoded if they are few.
    pub(super) fn import_strings(&self) -> Result<Column> {
        match self.import_encoded()? {
            Some(column) => Ok(column),
            None => self.import_plain_strings(),
        }
    }

    /// Imports strings as codes, or gives up because there are too many distinct ones, or none.
    fn import_encoded(&self) -> Result<Option<Column>> {
        let limit = distinct_limit(self.len);
        let too_many = AtomicBool::new(false);
        let coded = pieces::for_each(&self.pieces, LocalCodes::default, |codes, piece| {
            let coded = with_strings!(piece.array, strings => codes.encode(strings, strings.nulls(), limit, &too_many));
            Ok(coded)
        })?;
        if too_many.load(Ordering::Relaxed) {
            return Ok(None);
        }
        // Each worker numbered the strings it met by itself: sort them all together and translate.
        let mut sorted: Vec<&str> =
            coded.workers.iter().flat_map(|codes| codes.strings.iter().copied()).collect();
        sorted.sort_unstable();
        sorted.dedup();
        if sorted.len() > limit || sorted.is_empty() {
            return Ok(None);
        }
        let place =
            |string: &&str| sorted.binary_search(string).expect("every string was merged") as u32;
        let places: Vec<Vec<u32>> =
            coded.workers.iter().map(|codes| codes.strings.iter().map(place).collect()).collect();
        let dictionary = Dictionary::from_sorted(self.device, &sorted)?;
        let (column, _) = self.import(CODE_WIDTH, |scratch, piece, codes| {
            let (worker, local) = &coded.results[piece.index];
            let places = &places[*worker];
            scratch.data.clear();
            for &code in local {
                // Null rows have no local code; theirs is 0.
                let code = places.get(code as usize).copied().unwrap_or(0);
                scratch.data.extend_from_slice(&code.to_le_bytes());
            }
            codes.write(piece.start * CODE_WIDTH, &scratch.data)
        })?;
        Ok(Some(column.coded(dictionary)))
    }

    /// Imports strings, or bytes, as views.
    ///
    /// Only the characters of valid strings longer than [`INLINE`] are uploaded, packed. Views hold
    /// absolute addresses, so a first pass counts those characters and a second writes views and
    /// characters together.
    pub(super) fn import_plain_strings(&self) -> Result<Column> {
        let counted = pieces::for_each(
            &self.pieces,
            || (),
            |(), piece| Ok(with_bytes!(piece.array, strings => long_bytes(strings))),
        )?;
        let mut total = 0;
        let starts: Vec<usize> =
            counted.results.iter().map(|(_, bytes)| (total, total += bytes).0).collect();
        let data = Arc::new(self.device.alloc(IMPORT, self.len * VIEW_WIDTH)?);
        let validity = self.alloc_validity()?.map(Arc::new);
        let characters =
            (total > 0).then(|| self.device.alloc(IMPORT, total).map(Arc::new)).transpose()?;
        let base = characters.as_ref().map_or(0, |characters| characters.address());
        let after = self.device.record()?;
        let views = Inflow::new(&data, &after);
        let valid = validity.as_ref().map(|validity| Inflow::new(validity, &after));
        let text = characters.as_ref().map(|characters| Inflow::new(characters, &after));
        let done = pieces::for_each(&self.pieces, Scratch::default, |scratch, piece| {
            let start = starts[piece.index];
            let seen = with_bytes!(piece.array, strings => write_views(strings, base + start as u64, scratch))?;
            views.write(piece.start * VIEW_WIDTH, &scratch.data)?;
            if let Some(text) = &text {
                text.write(start, &scratch.characters)?;
            }
            scratch.expand_validity(piece.array.nulls());
            scratch.write_validity(piece, valid.as_ref())?;
            Ok(seen)
        })?;
        views.arrive()?;
        valid.into_iter().chain(text).try_for_each(Inflow::arrive)?;
        let seen: Vec<PieceStats> = done.results.into_iter().map(|(_, seen)| seen).collect();
        Ok(Column {
            characters: characters.into_iter().collect(),
            stats: Stats::of_strings(&seen),
            ..Column::plain(self.dtype.clone(), self.len, data, validity)
        })
    }

    /// Imports an Arrow dictionary of strings, whose values may be in any order, repeat, and be
    /// null.
    pub(super) fn import_dictionary(&self) -> Result<Column> {
        let sources = Sources::of(&self.pieces);
        let distinct: HashSet<&str> = sources
            .values
            .iter()
            .flat_map(|values| with_strings!(values, strings => present(strings)))
            .collect();
        let mut sorted: Vec<&str> = distinct.into_iter().collect();
        sorted.sort_unstable();
        let translations: Vec<Vec<Option<u32>>> = sources
            .values
            .iter()
            .map(|values| with_strings!(values, strings => translate(strings, &sorted)))
            .collect();
        let dictionary = Dictionary::from_sorted(self.device, &sorted)?;
        // A null value is a null row, if a key points to it: known only when the keys were seen.
        let may_be_null = |piece: &pieces::Piece| {
            piece.array.null_count() > 0
                || piece.array.as_any_dictionary().values().null_count() > 0
        };
        let nulls = self.pieces.iter().any(may_be_null);
        let validity =
            nulls.then(|| self.device.alloc(IMPORT, self.len).map(Arc::new)).transpose()?;
        let data = Arc::new(self.device.alloc(IMPORT, self.len * CODE_WIDTH)?);
        let after = self.device.record()?;
        let rows = Inflow::new(&data, &after);
        let valid = validity.as_ref().map(|validity| Inflow::new(validity, &after));
        let done = pieces::for_each(&self.pieces, Scratch::default, |scratch, piece| {
            let any = piece.array.as_any_dictionary();
            let codes = &translations[sources.of_piece[piece.index]];
            scratch.data.clear();
            scratch.valid.clear();
            let mut push = |code: Option<u32>| {
                scratch.data.extend_from_slice(&code.unwrap_or(0).to_le_bytes());
                scratch.valid.push(code.is_some() as u8);
            };
            if codes.is_empty() {
                (0..piece.array.len()).for_each(|_| push(None));
            } else {
                // Keys under nulls may point anywhere; `normalized_keys` clamps them.
                let keys = any.normalized_keys();
                match piece.array.nulls() {
                    None => keys.into_iter().for_each(|key| push(codes[key])),
                    Some(nulls) => keys
                        .into_iter()
                        .zip(nulls)
                        .for_each(|(key, valid)| push(codes[key].filter(|_| valid))),
                }
            }
            rows.write(piece.start * CODE_WIDTH, &scratch.data)?;
            scratch.write_validity(piece, valid.as_ref())?;
            Ok(scratch.valid.contains(&0))
        })?;
        rows.arrive()?;
        valid.map_or(Ok(()), Inflow::arrive)?;
        let validity = validity.filter(|_| done.results.iter().any(|(_, nulls)| *nulls));
        Ok(Column::plain(self.dtype.clone(), self.len, data, validity).coded(dictionary))
    }
}

/// Codes that one worker gave to the strings it met, in the order in which it met them.
#[derive(Default)]
struct LocalCodes<'a> {
    codes: HashMap<&'a str, u32>,
    strings: Vec<&'a str>,
}

impl<'a> LocalCodes<'a> {
    /// The code of each row, `u32::MAX` for nulls; stops short once anybody met more than `limit`
    /// strings.
    fn encode(
        &mut self,
        strings: impl ArrayAccessor<Item = &'a str>,
        nulls: Option<&NullBuffer>,
        limit: usize,
        too_many: &AtomicBool,
    ) -> Vec<u32> {
        let mut rows = Vec::new();
        if too_many.load(Ordering::Relaxed) {
            return rows;
        }
        rows.reserve_exact(strings.len());
        for row in 0..strings.len() {
            if nulls.is_some_and(|nulls| nulls.is_null(row)) {
                rows.push(u32::MAX);
                continue;
            }
            let string = strings.value(row);
            let code = *self.codes.entry(string).or_insert_with(|| {
                self.strings.push(string);
                self.strings.len() as u32 - 1
            });
            if self.strings.len() > limit {
                too_many.store(true, Ordering::Relaxed);
                return rows;
            }
            rows.push(code);
        }
        rows
    }
}

/// The arrays of values that the pieces of a dictionary column point into.
struct Sources<'a> {
    values: Vec<&'a ArrayRef>,
    /// For each piece, its place in `values`.
    of_piece: Vec<usize>,
}

impl<'a> Sources<'a> {
    /// Pieces of one chunk, and often chunks of one file, share their values: look at each array of
    /// values once.
    fn of(pieces: &'a [pieces::Piece]) -> Self {
        let mut places = BTreeMap::new();
        let mut values = Vec::new();
        let place = |piece: &'a pieces::Piece| {
            let array = piece.array.as_any_dictionary().values();
            *places.entry(Arc::as_ptr(array).cast::<()>()).or_insert_with(|| {
                values.push(array);
                values.len() - 1
            })
        };
        let of_piece = pieces.iter().map(place).collect();
        Sources { values, of_piece }
    }
}

/// The strings that are not null.
fn present<'a>(strings: impl ArrayAccessor<Item = &'a str>) -> Vec<&'a str> {
    (0..strings.len()).filter(|&row| strings.is_valid(row)).map(|row| strings.value(row)).collect()
}

/// For each string its place in `sorted`, which has them all; `None` for nulls.
fn translate<'a>(strings: impl ArrayAccessor<Item = &'a str>, sorted: &[&str]) -> Vec<Option<u32>> {
    let place =
        |string: &str| sorted.binary_search(&string).expect("every string was merged") as u32;
    (0..strings.len()).map(|row| strings.is_valid(row).then(|| place(strings.value(row)))).collect()
}

/// Bytes of the valid strings that do not fit into their views.
fn long_bytes<'a, T: AsRef<[u8]> + ?Sized + 'a>(
    strings: impl ArrayAccessor<Item = &'a T>,
) -> usize {
    let len =
        |row: usize| if strings.is_valid(row) { strings.value(row).as_ref().len() } else { 0 };
    (0..strings.len()).map(len).filter(|&len| len > INLINE).sum()
}

/// Leaves the views of the strings and the characters of the long ones in the scratch memory; the
/// characters will lie at `address`. Nulls become empty strings: their characters may be anything.
fn write_views<'a, T: AsRef<[u8]> + ?Sized + 'a>(
    strings: impl ArrayAccessor<Item = &'a T>,
    address: u64,
    scratch: &mut Scratch,
) -> Result<PieceStats> {
    scratch.data.clear();
    scratch.characters.clear();
    scratch.data.reserve(strings.len() * VIEW_WIDTH);
    let mut seen = PieceStats::default();
    for row in 0..strings.len() {
        let mut view = [0; VIEW_WIDTH];
        if strings.is_valid(row) {
            let bytes = strings.value(row).as_ref();
            let len = u32::try_from(bytes.len()).map_err(|_| {
                Error::unsupported(format!("string of {} bytes", bytes.len()), "the limit is 4 GiB")
            })?;
            seen.string(len);
            view[..4].copy_from_slice(&len.to_le_bytes());
            if bytes.len() <= INLINE {
                view[4..4 + bytes.len()].copy_from_slice(bytes);
            } else {
                let at = address + scratch.characters.len() as u64;
                view[4..8].copy_from_slice(&bytes[..4]);
                view[8..].copy_from_slice(&at.to_le_bytes());
                scratch.characters.extend_from_slice(bytes);
            }
        }
        scratch.data.extend_from_slice(&view);
    }
    Ok(seen)
}
