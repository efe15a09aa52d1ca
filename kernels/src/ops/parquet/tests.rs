//! Pages that the parquet crate writes, decoded on devices with several schedules; and pages by
//! hand.

mod damage;
mod deltas;
mod file;
mod numbers;
mod strings;

use super::*;
use crate::ops::testing::*;
use file::File;

/// A chunk to decode and what to make of it.
struct TestChunk<'a> {
    file: &'a File,
    output: PageOutput,
}

/// What came of a column: nulls have no value.
struct TestValues {
    values: Vec<Option<Vec<u8>>>,
    nulls: u64,
}

/// Bytes between contents, which begin at odd addresses.
const GAP: usize = 64 + 7;

/// What the host keeps of a call: contents and their address.
struct Contents {
    bytes: Vec<u8>,
    address: u64,
}

impl Contents {
    /// The bytes of a view, as `kernels/string.cuh` has them.
    fn of_view(&self, view: &[u8]) -> Vec<u8> {
        let length = u32::from_le_bytes(view[..4].try_into().unwrap()) as usize;
        if length <= 12 {
            assert!(view[4 + length..].iter().all(|byte| *byte == 0), "padded with zeros");
            return view[4..4 + length].to_vec();
        }
        let at = (u64::from_le_bytes(view[8..].try_into().unwrap()) - self.address) as usize;
        let bytes = self.bytes[at..at + length].to_vec();
        assert_eq!(view[4..8], bytes[..4], "the first bytes stand in the view");
        bytes
    }
}

/// Decodes columns in one call; or says which page is the first at fault, and why.
fn decode_all(
    device: &Device,
    columns: &[TestChunk],
) -> std::result::Result<Vec<TestValues>, (u32, u32)> {
    let mut bytes = vec![0u8; 16];
    let mut offsets = Vec::new();
    let mut place = |content: &[u8]| {
        bytes.resize(bytes.len() + GAP, 0xc3);
        offsets.push(bytes.len() as u64);
        bytes.extend_from_slice(content);
        offsets.len() as u32 - 1
    };
    // Contents first: their addresses are needed by views and levels.
    type Numbered = (Option<u32>, Vec<(u32, Option<u32>)>);
    let numbered: Vec<Numbered> = columns
        .iter()
        .map(|column| {
            let dictionary = column.file.dictionary.as_ref().map(|(content, _)| place(content));
            let pages = column.file.pages.iter();
            (
                dictionary,
                pages
                    .map(|page| (place(&page.content), page.levels.as_ref().map(|l| place(l))))
                    .collect(),
            )
        })
        .collect();
    bytes.resize(bytes.len() + GAP, 0xc3);
    let buffer = device.upload("test", &bytes).unwrap();
    let places: Vec<u64> = offsets.iter().map(|offset| buffer.address() + offset).collect();
    let contents = Contents { bytes, address: buffer.address() };

    let (mut chunks, mut pages, mut buffers) = (Vec::new(), Vec::new(), Vec::new());
    for (column, (dictionary_number, page_numbers)) in columns.iter().zip(&numbered) {
        let (file, output) = (column.file, column.output);
        let rows = file.rows();
        let width = output.width() as usize;
        let data = device.alloc("test", rows * width).unwrap();
        let scratch = device.alloc("test", if file.optional { rows * width } else { 0 }).unwrap();
        let validity = device.alloc("test", if file.optional { rows } else { 0 }).unwrap();
        let entries = file.dictionary.as_ref().map_or(0, |(_, entries)| *entries);
        let values =
            device.alloc("test", entries as usize * output.dictionary_width() as usize).unwrap();
        let dictionary = file.dictionary.as_ref().map(|(content, entries)| DictionaryPage {
            number: dictionary_number.unwrap(),
            size: content.len() as u32,
            entries: *entries,
            values: values.address(),
        });
        let mut row = 0;
        for (page, (number, levels)) in file.pages.iter().zip(page_numbers) {
            pages.push(Page {
                number: *number,
                size: page.content.len() as u32,
                levels: levels
                    .map(|l| (places[l as usize], page.levels.as_ref().unwrap().len() as u32)),
                rows: page.rows,
                row,
                encoding: page.encoding,
                chunk: chunks.len() as u32,
            });
            row += u64::from(page.rows);
        }
        let characters = device.alloc("test", file.characters + 64).unwrap();
        chunks.push(ColumnChunk {
            physical: file.physical,
            optional: file.optional,
            output,
            data: data.address(),
            validity: if file.optional { validity.address() } else { 0 },
            scratch: scratch.address(),
            dictionary,
            characters: Some(Characters {
                address: characters.address(),
                bytes: file.characters as u64,
            }),
        });
        buffers.push((data, validity, values, scratch, characters));
    }
    let places = upload(device, &places);
    let nulls = device.alloc_zeroed("test", chunks.len() * 8).unwrap();
    let numbers = places.len() / 8;
    let faults = device.alloc_filled("test", numbers * 4, 255).unwrap();
    decode(device, &chunks, &pages, &places, &nulls, &faults).unwrap();
    let faults = read::<u32>(&faults, numbers);
    if let Some(page) = faults.iter().position(|fault| *fault != u32::MAX) {
        return Err((page as u32, faults[page]));
    }
    let nulls = read::<u64>(&nulls, chunks.len());
    let of_column = |(index, (column, (data, validity, values, _, characters))): (
        usize,
        (&TestChunk, &(_, _, _, _, _)),
    )| {
        let (rows, width) = (column.file.rows(), column.output.width() as usize);
        let (data, valid) = (
            read::<u8>(data, rows * width),
            read::<u8>(validity, if column.file.optional { rows } else { 0 }),
        );
        let views = match column.output {
            PageOutput::Codes { base: 0 } => {
                read::<u8>(values, column.file.dictionary.as_ref().unwrap().1 as usize * 16)
            }
            _ => Vec::new(),
        };
        let made: &Buffer = characters;
        let made = Contents { bytes: read::<u8>(made, made.len()), address: made.address() };
        let of_view = |view: &[u8]| match u64::from_le_bytes(view[8..].try_into().unwrap()) {
            at if (made.address..made.address + made.bytes.len() as u64).contains(&at) => {
                made.of_view(view)
            }
            _ => contents.of_view(view),
        };
        let value = |row: usize| {
            let bytes = &data[row * width..][..width];
            if column.file.optional && valid[row] == 0 {
                assert!(bytes.iter().all(|byte| *byte == 0), "nothing under nulls");
                return None;
            }
            assert!(!column.file.optional || valid[row] == 1);
            Some(match column.output {
                PageOutput::Views { .. } => of_view(bytes),
                PageOutput::Codes { base: 0 } => of_view(
                    &views[u32::from_le_bytes(bytes.try_into().unwrap()) as usize * 16..][..16],
                ),
                _ => bytes.to_vec(),
            })
        };
        TestValues { values: (0..rows).map(value).collect(), nulls: nulls[index] }
    };
    Ok(columns.iter().zip(&buffers).enumerate().map(of_column).collect())
}

/// Decodes a file's column on all devices and compares.
fn assert_decodes(what: &str, file: &File, output: PageOutput, expected: &[Option<Vec<u8>>]) {
    for device in [device(0), device(20261121)].into_iter().chain(gpu()) {
        let column = TestChunk { file, output };
        let decoded = decode_all(&device, &[column]).unwrap_or_else(|(page, code)| {
            panic!("{what}: page {page}: {:?}", damage(code));
        });
        assert_eq!(decoded[0].values.len(), expected.len(), "{what}");
        for (row, (found, expected)) in decoded[0].values.iter().zip(expected).enumerate() {
            assert_eq!(found, expected, "{what}: row {row} of {}", file.rows());
        }
        assert_eq!(
            decoded[0].nulls as usize,
            expected.iter().filter(|value| value.is_none()).count(),
            "{what}"
        );
    }
}

#[test]
fn codes_of_damage_are_those_of_the_kernels_and_have_a_text() {
    let text = include_str!("../../../parquet_page.cuh");
    let codes = text.split("enum parquet_code : u32 {").nth(1).unwrap().split('}').next().unwrap();
    let codes: Vec<&str> =
        codes.split(',').map(str::trim).filter(|line| !line.is_empty()).collect();
    assert_eq!(codes.len(), DAMAGES.len());
    for (line, (code, name, text)) in codes.iter().zip(DAMAGES) {
        assert_eq!(*line, format!("PARQUET_{name} = {code}"));
        assert_eq!(damage(code), Some(text));
    }
    assert_eq!(damage(31), None);
}
