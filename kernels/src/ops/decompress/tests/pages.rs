//! Pages of tests: their contents, and what they are compressed to, by encoders and by hand.

use PagePiece::{Copy, Literal};

use super::*;

pub(super) fn bytes(seed: u64, len: usize) -> Vec<u8> {
    random(seed, len.div_ceil(8)).flat_map(u64::to_le_bytes).take(len).collect()
}

/// Contents as pages have them: of one kind each, of `len` bytes.
pub(super) fn contents(seed: u64, len: usize) -> Vec<Vec<u8>> {
    let words = |count: usize| random(seed, count);
    let cut = |mut all: Vec<u8>| {
        all.resize(len, 7);
        all
    };
    let text = [
        "furiously",
        " the",
        " quickly",
        " carefully ",
        "deposits",
        ". ",
        "ironic",
        " requests",
        "ly",
        " sleep",
    ];
    let mut strings = vec![];
    for word in words(len / 4 + 2) {
        strings.extend_from_slice(text[(word % 10) as usize].as_bytes());
        if word >> 60 == 0 {
            strings.extend_from_slice(&word.to_le_bytes()[..(word >> 56 & 7) as usize]);
        }
    }
    vec![
        // Dictionaries of numbers, sorted and not; codes packed to 12 bits, runs of them.
        cut((0..len as u64 / 8).flat_map(|i| (i * 37 + 100_000).to_le_bytes()).collect()),
        cut(words(len / 8).flat_map(|x| (x % 10_000_000).to_le_bytes()).collect()),
        cut(words(len / 3 + 1)
            .flat_map(|x| ((x & 0xFFF) | (x >> 12 & 0x7F) << 12).to_le_bytes()[..3].to_vec())
            .collect()),
        cut(words(len / 40 + 1).flat_map(|x| vec![x as u8; (x >> 32) as usize % 80]).collect()),
        cut(strings),
        bytes(seed, len),
        vec![0; len],
    ]
}

pub(super) fn snappy_page(content: &[u8]) -> Vec<u8> {
    ::snap::raw::Encoder::new().compress_vec(content).unwrap()
}

pub(super) fn lz4_page(content: &[u8]) -> Vec<u8> {
    lz4_flex::block::compress(content)
}

/// What a page is made of, by hand.
pub(super) enum PagePiece<'a> {
    Literal(&'a [u8]),
    Copy { distance: usize, size: usize },
}
pub(super) fn made_of(pieces: &[PagePiece<'_>]) -> Vec<u8> {
    let mut content = vec![];
    for piece in pieces {
        match *piece {
            Literal(bytes) => content.extend_from_slice(bytes),
            Copy { distance, size } => {
                (0..size).for_each(|_| content.push(content[content.len() - distance]))
            }
        }
    }
    content
}

/// A Snappy page. Copies take the shortest form there is, or a longer one.
pub(super) fn snappy_of(pieces: &[PagePiece<'_>], longer: usize) -> Vec<u8> {
    let mut text = varint(made_of(pieces).len());
    for piece in pieces {
        match *piece {
            Literal(bytes) => {
                let last = bytes.len() - 1;
                let needed =
                    (0..5).find(|&n| last < if n == 0 { 60 } else { 1 << (8 * n) }).unwrap();
                let more = (needed + longer).min(4);
                text.push(if more == 0 { last << 2 } else { (59 + more) << 2 } as u8);
                text.extend_from_slice(&last.to_le_bytes()[..more]);
                text.extend_from_slice(bytes);
            }
            Copy { distance, size }
                if longer == 0 && distance < 2048 && (4..12).contains(&size) =>
            {
                text.extend([(distance >> 8 << 5 | (size - 4) << 2 | 1) as u8, distance as u8]);
            }
            Copy { distance, size } if longer < 2 && distance < 65536 => {
                text.extend([((size - 1) << 2 | 2) as u8, distance as u8, (distance >> 8) as u8]);
            }
            Copy { distance, size } => {
                text.push(((size - 1) << 2 | 3) as u8);
                text.extend((distance as u32).to_le_bytes());
            }
        }
    }
    text
}

pub(super) fn varint(mut value: usize) -> Vec<u8> {
    let mut bytes = vec![];
    while value >= 128 {
        bytes.push(value as u8 | 128);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

/// An LZ4 page of literals and copies in turns; two of a kind get an empty literal or nothing
/// between them.
pub(super) fn lz4_of(pieces: &[PagePiece<'_>]) -> Vec<u8> {
    let mut text = vec![];
    let mut literal: Vec<u8> = vec![];
    let more = |text: &mut Vec<u8>, size: usize| {
        if let Some(rest) = size.checked_sub(15) {
            text.extend(vec![255; rest / 255]);
            text.push((rest % 255) as u8);
        }
    };
    for piece in pieces {
        match *piece {
            Literal(bytes) => literal.extend_from_slice(bytes),
            Copy { distance, size } => {
                text.push((literal.len().min(15) << 4 | (size - 4).min(15)) as u8);
                more(&mut text, literal.len());
                text.append(&mut literal);
                text.extend((distance as u16).to_le_bytes());
                more(&mut text, size - 4);
            }
        }
    }
    text.push((literal.len().min(15) << 4) as u8);
    more(&mut text, literal.len());
    text.append(&mut literal);
    text
}

/// What the parquet crate reads of an LZ4 block, or nothing where it refuses it.
pub(super) fn lz4_content(text: &[u8], len: usize) -> Option<Vec<u8>> {
    let mut content = vec![0; len];
    let made = lz4_flex::block::decompress_into(text, &mut content).ok()?;
    (made == len).then_some(content)
}

const SIZES: [usize; 17] =
    [0, 1, 2, 3, 15, 16, 17, 60, 61, 62, 255, 257, 1023, 4099, 65535, 65536, 65537];

/// Contents of many sizes and kinds; the larger ones are of few kinds where `all` is false.
pub(super) fn many_contents(all: bool) -> Vec<Vec<u8>> {
    let mut many = vec![];
    for (i, &len) in SIZES.iter().enumerate() {
        let kinds = contents(i as u64, len);
        let wanted = if all || len < 5000 { kinds.len() } else { 2 };
        many.extend(kinds.into_iter().cycle().skip(i).take(wanted));
    }
    many.extend(contents(99, 200_000).into_iter().skip(if all { 0 } else { 4 }));
    many.push(contents(98, 131_072).swap_remove(4));
    many
}
