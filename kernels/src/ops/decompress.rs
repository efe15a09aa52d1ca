//! Decompression of pages. Kernels in `kernels/snappy.cuh` and `kernels/lz4.cuh`.

use super::{grid, tiles};
use crate::error::{Error, Result};
use crate::{Argument, Buffer, Device, KernelSource};

#[cfg(test)]
mod tests;

const OPERATOR: &str = "decompress";
/// `SNAPPY_PART` of the kernel: bytes of content that a warp makes where a page has more.
const PART: u32 = 65536;
/// `SPLIT_THREADS` and `LZ4_THREADS` of the kernels: they split a page of more than a part, or make
/// a page.
const SPLIT_THREADS: u32 = 256;
const LZ4_THREADS: u32 = 256;
/// `DECODE_THREADS` of the kernel: of each 32 make a part or a page.
const DECODE_THREADS: u32 = 128;
/// Bytes of a `SnappyPart`.
const PART_WIDTH: usize = 16;
/// Texts and contents have fewer bytes: places in them and a little more fit 31 bits.
const MOST: u32 = 0x7FFE_0000;

pub(super) fn sources() -> [KernelSource; 2] {
    [source(DeviceCodec::Snappy), source(DeviceCodec::Lz4Raw)]
}

fn source(codec: DeviceCodec) -> KernelSource {
    match codec {
        DeviceCodec::Snappy => {
            KernelSource::new("snappy", "#include \"snappy.cuh\"\nWF_SNAPPY_ENTRIES\n")
        }
        DeviceCodec::Lz4Raw => KernelSource::new("lz4", "#include \"lz4.cuh\"\nWF_LZ4_ENTRIES\n"),
    }
}

/// How pages are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceCodec {
    /// A Snappy block, without the frames of Snappy's streams.
    Snappy,
    /// An LZ4 block, without frames and without Hadoop's lengths.
    Lz4Raw,
}

/// Compressed bytes in device memory, and where their content goes.
///
/// Up to 15 bytes before `source` and 64 behind its end may be read. Neither address needs an
/// alignment. Targets do not overlap.
#[derive(Debug, Clone, Copy)]
pub struct CompressedBlock {
    /// The page whose content it is: its number in `places` and `faults`.
    pub page: u32,
    pub source: u64,
    pub source_len: u32,
    pub target: u64,
    /// Bytes that the content has, as the page says.
    pub target_len: u32,
    /// Whether the content may stay where it is in the source, if all of it is one literal.
    pub in_place: bool,
}

impl CompressedBlock {
    /// `Compressed` of the kernels.
    fn record(&self, first_part: u32, map: u64) -> [u64; 6] {
        let pair = |low: u32, high: u32| u64::from(high) << 32 | u64::from(low);
        [
            self.source,
            self.target,
            pair(self.source_len, self.target_len),
            pair(self.page, self.in_place.into()),
            pair(first_part, 0),
            map,
        ]
    }

    /// Words of a map of its text, a bit a byte from the last address before it that is a multiple
    /// of 16.
    fn map_words(&self) -> u64 {
        (self.source % 16 + u64::from(self.source_len)).div_ceil(32)
    }

    /// Parts that are made by themselves, where the block is cut.
    fn parts(&self) -> u32 {
        self.target_len.div_ceil(PART)
    }
}

/// What is wrong with a page, by its fault.
pub fn damage(code: u32) -> Option<&'static str> {
    Some(match code {
        1 => "its compressed bytes begin with a length that is not the page's",
        2 => "its compressed bytes end too early",
        3 => "its compressed bytes hold more than the page's length",
        4 => "its compressed bytes copy from before its beginning",
        5 => "its compressed bytes hold less than the page's length",
        _ => return None,
    })
}

/// Submits the decompression of blocks. `places[page]` becomes the address of each one's content:
/// its target, or a place in its source. `faults` has a word of 32 bits a page: a damaged block
/// lowers `faults[page]` to the code of its [`damage`], and leaves anything in its target.
///
/// # Errors
/// `Unsupported` where a block has about 2 GiB.
pub fn decompress(
    device: &Device,
    codec: DeviceCodec,
    blocks: &[CompressedBlock],
    places: &Buffer,
    faults: &Buffer,
) -> Result<()> {
    let pages = blocks.iter().map(|block| u64::from(block.page) + 1).max().unwrap_or(0);
    assert!(places.len() as u64 >= pages * 8 && faults.len() as u64 >= pages * 4, "a word a page");
    if let Some(large) = blocks.iter().find(|block| block.source_len.max(block.target_len) > MOST) {
        let size = large.source_len.max(large.target_len);
        return Err(Error::unsupported(
            format!("a page of {size} bytes"),
            "pages have less than 2 GiB",
        ));
    }
    match codec {
        DeviceCodec::Snappy => snappy(device, blocks, places, faults).map(drop),
        DeviceCodec::Lz4Raw => lz4(device, blocks, places, faults),
    }
}

/// Gives what tests ask for: in the third word, how many blocks could not be cut.
fn snappy(
    device: &Device,
    blocks: &[CompressedBlock],
    places: &Buffer,
    faults: &Buffer,
) -> Result<Buffer> {
    // Blocks that are cut come first: their parts are begun while there is other work.
    let (cut, whole): (Vec<&CompressedBlock>, Vec<&CompressedBlock>) =
        blocks.iter().partition(|block| block.target_len > PART);
    let map =
        device.alloc(OPERATOR, cut.iter().map(|block| block.map_words() as usize * 4).sum())?;
    let (mut parts, mut mapped) = (0u32, map.address());
    let mut records = Vec::with_capacity(blocks.len() * 48);
    for block in &cut {
        records.extend(block.record(parts, mapped).iter().flat_map(|word| word.to_le_bytes()));
        parts += block.parts();
        mapped += block.map_words() * 4;
    }
    records.extend(whole.iter().flat_map(|block| block.record(0, 0)).flat_map(u64::to_le_bytes));
    let records = device.upload(OPERATOR, &records)?;
    let table = device.alloc(OPERATOR, parts as usize * PART_WIDTH)?;
    // Two tickets; how many blocks are made as a whole after all, and which.
    let words = device.alloc_zeroed(OPERATOR, (3 + cut.len()) * 4)?;
    let listed = words.slice(8);

    let kernel = device.kernel(&source(DeviceCodec::Snappy), "snappy_split")?;
    let arguments: [Argument; 5] =
        [(&records).into(), (&table).into(), listed.into(), places.into(), faults.into()];
    // SAFETY: SnappySplit { blocks: `cut` of them first, each with a map of its text; parts: as
    // many as they have; whole: a count, zero, and a word for each; places and faults: one
    // for each page, checked }. Sources and targets are the caller's promise.
    unsafe { device.launch(&kernel, grid(cut.len() as u64, SPLIT_THREADS), &arguments)? };

    let kernel = device.kernel(&source(DeviceCodec::Snappy), "snappy_decode")?;
    let full = u64::from(device.full_grid(&kernel, DECODE_THREADS, 0)?);
    let decode = |items: u64, list: Argument, ticket: usize| -> Result<()> {
        let arguments: [Argument; 10] = [
            (&records).into(),
            (&table).into(),
            u64::from(parts).into(),
            (blocks.len() as u64).into(),
            (cut.len() as u64).into(),
            list,
            words.slice(ticket).into(),
            listed.into(),
            places.into(),
            faults.into(),
        ];
        let blocks = tiles(items, u64::from(DECODE_THREADS / 32)).min(full);
        // SAFETY: SnappyDecode { blocks; parts, written by the kernel before; part_count;
        // block_count; first_whole; listed: null, or a count and numbers of cut blocks; ticket:
        // zero; whole: as before; places; faults }.
        unsafe { device.launch(&kernel, grid(blocks, DECODE_THREADS), &arguments) }
    };
    decode(u64::from(parts) + whole.len() as u64, 0u64.into(), 0)?;
    decode(cut.len() as u64, listed.into(), 4)?;
    Ok(words)
}

fn lz4(
    device: &Device,
    blocks: &[CompressedBlock],
    places: &Buffer,
    faults: &Buffer,
) -> Result<()> {
    // The largest page begun last would be waited for.
    let mut blocks: Vec<&CompressedBlock> = blocks.iter().collect();
    blocks.sort_by_key(|block| std::cmp::Reverse(block.source_len));
    let records: Vec<u8> =
        blocks.iter().flat_map(|block| block.record(0, 0)).flat_map(u64::to_le_bytes).collect();
    let records = device.upload(OPERATOR, &records)?;
    let kernel = device.kernel(&source(DeviceCodec::Lz4Raw), "lz4_decode")?;
    let arguments: [Argument; 3] = [(&records).into(), places.into(), faults.into()];
    // SAFETY: Lz4Decode { blocks: one a block of threads; places and faults: one for each page,
    // checked }. Sources and targets are the caller's promise.
    unsafe { device.launch(&kernel, grid(blocks.len() as u64, LZ4_THREADS), &arguments) }
}
