//! The distinct strings of a column, as far as they are few. Kernels in `kernels/dictionary.cuh`.

use super::{grid, numbered, tiles};
use crate::error::Result;
use crate::{Argument, Buffer, Device, KernelSource};

const OPERATOR: &str = "dictionary";
/// `DICTIONARY_THREADS` of the kernel, of which each has a row.
const THREADS: u32 = 256;
/// Slots for each string that may be met: probes stay short.
const SLOTS: usize = 4;

pub(super) fn source() -> KernelSource {
    KernelSource::new("dictionary", "#include \"dictionary.cuh\"\nWF_DICTIONARY_ENTRIES\n")
}

/// Strings as numbers of the slots in which they stand.
#[derive(Debug)]
pub struct Slotted {
    /// Of each row the number of its slot, 32 bits; of nulls 0.
    pub codes: Buffer,
    /// Slots in all.
    pub slots: usize,
    /// Of each string its slot and a row that has it.
    pub strings: Vec<(u32, u32)>,
}

/// Gives equal strings equal codes; `None` where there are more than `limit`. `views` has `rows`
/// views of 16 bytes, `validity` a byte a row. Waits for the device.
///
/// # Errors
/// `Unsupported` where row numbers have more than 32 bits; of the device.
pub fn slots(
    device: &Device,
    views: &Buffer,
    validity: Option<&Buffer>,
    rows: u64,
    limit: usize,
) -> Result<Option<Slotted>> {
    numbered(OPERATOR, rows)?;
    assert!(views.len() as u64 >= rows * 16, "{rows} strings");
    assert!(
        validity.is_none_or(|validity| validity.len() as u64 >= rows),
        "{rows} rows of validity"
    );
    let slots = (limit * SLOTS).next_power_of_two();
    let table = device.alloc_zeroed(OPERATOR, slots * 4)?;
    let count = device.alloc_zeroed(OPERATOR, 8)?;
    let codes = device.alloc(OPERATOR, rows as usize * 4)?;
    let kernel = device.kernel(&source(), "dictionary_insert")?;
    let arguments: [Argument; 9] = [
        views.into(),
        validity.map_or(0u64.into(), Argument::from),
        rows.into(),
        (&table).into(),
        (slots as u64 - 1).into(),
        device.secret(0).into(),
        (limit as u64).into(),
        (&count).into(),
        (&codes).into(),
    ];
    // SAFETY: DictionaryInsert { strings and validity (or null): rows of them, checked; rows;
    // slots: a power of two of zeroed u32; mask; secret; limit, less than the slots; count: a
    // zeroed word; codes: rows u32 }.
    unsafe { device.launch(&kernel, grid(tiles(rows, u64::from(THREADS)), THREADS), &arguments)? };
    if count.read_words(0, 1)?[0] > limit as u64 {
        return Ok(None);
    }
    let mut bytes = vec![0; slots * 4];
    table.read(0, &mut bytes)?;
    let rows_of = bytes.as_chunks().0.iter().map(|bytes| u32::from_le_bytes(*bytes)).enumerate();
    let strings =
        rows_of.filter(|(_, row)| *row > 0).map(|(slot, row)| (slot as u32, row - 1)).collect();
    Ok(Some(Slotted { codes, slots, strings }))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::ops::testing::*;

    /// The views of strings, and the characters that they point into.
    fn uploaded(device: &Device, strings: &[String]) -> (Buffer, Buffer) {
        let text: Vec<u8> = strings.iter().flat_map(|string| string.bytes()).collect();
        let characters = upload(device, &text);
        let (mut bytes, mut at) = (vec![], 0);
        for string in strings {
            let mut view = [0u8; 16];
            view[..4].copy_from_slice(&(string.len() as u32).to_le_bytes());
            let first = string.len().min(if string.len() > 12 { 4 } else { 12 });
            view[4..4 + first].copy_from_slice(&string.as_bytes()[..first]);
            if string.len() > 12 {
                view[8..].copy_from_slice(&(characters.address() + at).to_le_bytes());
            }
            bytes.extend(view);
            at += string.len() as u64;
        }
        (upload(device, &bytes), characters)
    }

    #[test]
    fn equal_strings_have_equal_codes() {
        for device in devices() {
            for (rows, distinct) in [(1, 1), (300, 7), (5000, 200), (5000, 256)] {
                let strings: Vec<String> = random(rows as u64, rows)
                    .map(|x| {
                        format!(
                            "{}{}",
                            "long enough to lie apart ".repeat((x % distinct % 2) as usize),
                            x % distinct
                        )
                    })
                    .collect();
                let (views, _characters) = uploaded(&device, &strings);
                let valid: Vec<u8> = (0..rows).map(|row| u8::from(row % 13 != 5)).collect();
                let validity = upload(&device, &valid);
                let found =
                    slots(&device, &views, Some(&validity), rows as u64, 256).unwrap().unwrap();
                let codes = read::<u32>(&found.codes, rows);
                let of: BTreeMap<u32, u32> = found.strings.iter().copied().collect();
                for row in (0..rows).filter(|row| valid[*row] == 1) {
                    assert_eq!(strings[of[&codes[row]] as usize], strings[row]);
                }
                let mut expected: Vec<&String> = strings
                    .iter()
                    .zip(&valid)
                    .filter(|(_, valid)| **valid == 1)
                    .map(|(string, _)| string)
                    .collect();
                expected.sort();
                expected.dedup();
                assert_eq!(found.strings.len(), expected.len());
            }
        }
    }

    #[test]
    fn too_many_strings_are_given_up() {
        for device in devices() {
            let strings: Vec<String> =
                (0..4000).map(|at| format!("{at} is not {}", at + 1)).collect();
            let (views, _characters) = uploaded(&device, &strings);
            assert!(slots(&device, &views, None, 4000, 256).unwrap().is_none());
            assert_eq!(
                slots(&device, &views, None, 4000, 4000).unwrap().unwrap().strings.len(),
                4000
            );
        }
    }

    /// Where all strings collide, each is found by walking.
    #[test]
    fn strings_that_collide_are_told_apart() {
        let device = device(3);
        let strings: Vec<String> = (0..200).map(|at| format!("{}", at % 20)).collect();
        let (views, _characters) = uploaded(&device, &strings);
        assert_eq!(slots(&device, &views, None, 200, 20).unwrap().unwrap().strings.len(), 20);
    }
}
