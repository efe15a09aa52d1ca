//! The characters of strings, one after the other. Kernels in `kernels/characters.cuh`.

use super::scan::exclusive_scan_u32;
use super::{grid, tiles};
use crate::error::{Error, Result};
use crate::{Argument, Buffer, Device, KernelSource, Slice};

const OPERATOR: &str = "strings";
/// `CHARACTERS_THREADS` of the kernel, of which each has a row.
const THREADS: u32 = 256;
/// Bytes of a view in its column.
const VIEW_WIDTH: u64 = 16;

pub(super) fn source() -> KernelSource {
    KernelSource::new("characters", "#include \"characters.cuh\"\nWF_CHARACTERS_ENTRIES\n")
}

/// The characters of the strings that do not fit into their views: those of row `r` at
/// `offsets[r]..offsets[r + 1]`, which is as many as the view says, or none.
pub fn pack(device: &Device, views: Slice<'_>, offsets: &[u64]) -> Result<Buffer> {
    let rows = offsets.len() as u64 - 1;
    assert!(views.len() as u64 >= rows * VIEW_WIDTH && offsets.is_sorted(), "{rows} strings");
    let total = offsets[rows as usize];
    let bytes: Vec<u8> = offsets.iter().flat_map(|offset| offset.to_le_bytes()).collect();
    pack_to(device, views, &device.upload(OPERATOR, &bytes)?, rows, total)
}

/// Packs the characters of long strings by offsets in device memory, `rows + 1` ascending words of
/// which the last is `total`.
fn pack_to(
    device: &Device,
    views: Slice<'_>,
    offsets: &Buffer,
    rows: u64,
    total: u64,
) -> Result<Buffer> {
    let out = device.alloc(OPERATOR, total as usize)?;
    let kernel = device.kernel(&source(), "characters_pack")?;
    let arguments: [Argument; 4] = [views.into(), offsets.into(), rows.into(), (&out).into()];
    // SAFETY: CharactersPack { views: rows of 16 bytes, checked; offsets: rows + 1 u64, ascending,
    // checked; rows; out: as many bytes as the last offset says }. The characters are as many as
    // the offsets say, and their column keeps them: the caller's promise.
    unsafe { device.launch(&kernel, grid(tiles(rows, u64::from(THREADS)), THREADS), &arguments)? };
    Ok(out)
}

/// Characters of long strings, apart from whatever else lay between them.
#[derive(Debug)]
pub struct Lengths {
    offsets: Buffer,
    rows: u64,
    /// Bytes of all that do not fit into their views.
    pub total: u64,
}

/// How many bytes the strings have that do not fit into their views. Views of nulls are empty.
/// Waits for the device.
pub fn lengths(device: &Device, views: &Buffer, rows: u64) -> Result<Lengths> {
    assert!(views.len() as u64 >= rows * VIEW_WIDTH, "{rows} strings");
    let lengths = device.alloc(OPERATOR, rows as usize * 4)?;
    let kernel = device.kernel(&source(), "characters_lengths")?;
    let arguments: [Argument; 3] = [views.into(), rows.into(), (&lengths).into()];
    // SAFETY: CharactersLengths { strings: rows views, checked; rows; lengths: rows u32 }.
    unsafe { device.launch(&kernel, grid(tiles(rows, u64::from(THREADS)), THREADS), &arguments)? };
    let offsets = exclusive_scan_u32(device, &lengths, rows)?;
    let total = offsets.read_words(rows as usize * 8, 1)?[0];
    Ok(Lengths { offsets, rows, total })
}

/// Copies the characters of strings together, and has their views point there.
pub fn gathered(device: &Device, views: &Buffer, lengths: &Lengths) -> Result<Buffer> {
    let out = pack_to(device, views.slice(0), &lengths.offsets, lengths.rows, lengths.total)?;
    point_at(device, views, lengths, &out)?;
    Ok(out)
}

/// Has the views of strings point into characters that lie one string after the other there, as
/// [`gathered`] left them.
pub fn point_into(device: &Device, views: &Buffer, rows: u64, characters: &Buffer) -> Result<()> {
    let lengths = lengths(device, views, rows)?;
    if lengths.total as usize > characters.len() {
        return Err(Error::internal(format!(
            "{} bytes of strings in {}",
            lengths.total,
            characters.len()
        )));
    }
    point_at(device, views, &lengths, characters)
}

fn point_at(device: &Device, views: &Buffer, lengths: &Lengths, characters: &Buffer) -> Result<()> {
    let rows = lengths.rows;
    let kernel = device.kernel(&source(), "characters_move")?;
    let arguments: [Argument; 4] =
        [views.into(), (&lengths.offsets).into(), rows.into(), characters.address().into()];
    // SAFETY: CharactersMove { strings: rows views, whose lengths the offsets were made of;
    // offsets: rows + 1 u64; rows; characters: as many bytes as the last offset says, the callers'
    // check }.
    unsafe { device.launch(&kernel, grid(tiles(rows, u64::from(THREADS)), THREADS), &arguments) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::*;

    #[test]
    fn characters_follow_each_other_and_short_strings_have_none() {
        for device in devices() {
            let text: Vec<u8> = random(7, 20_000).map(|x| x as u8).collect();
            let characters = upload(&device, &text);
            for rows in [0u64, 1, 31, 257, 3000] {
                let (mut views, mut offsets, mut expected) = (vec![], vec![0u64], vec![]);
                for row in 0..rows {
                    // Some long ones between those of a few words, and views that nobody may look
                    // behind.
                    let length = if row % 97 == 5 { 1000 + row % 50 } else { row % 70 };
                    let at = row * 41 % 18_000;
                    let wanted = length > 12 && row % 11 != 3;
                    views.extend([length, if wanted { characters.address() + at } else { 1 }]);
                    if wanted {
                        expected.extend_from_slice(&text[at as usize..(at + length) as usize]);
                    }
                    offsets.push(expected.len() as u64);
                }
                let views = upload(&device, &views);
                let packed = pack(&device, views.slice(0), &offsets).unwrap();
                assert_eq!(read::<u8>(&packed, expected.len()), expected, "{rows} strings");
            }
        }
    }
}
