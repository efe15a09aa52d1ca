//! The blocks of xz files, which writers on several cores make many of (`xz -T0`, `pixz`).
//!
//! ```text
//!   file     header │ block │ block │ block │ … │ index │ footer      and further such streams
//!   piece    header │ block │ block │ index of these │ footer
//! ```
//!
//! The index at a stream's end says how long its blocks are. The codec unpacks streams, so what
//! lies around some blocks in a piece is made here: such a piece is a stream like any other.

use std::ops::Range;

use flate2::Crc;

use super::piece::PackedPiece;

const BEGIN: [u8; 6] = [0xFD, b'7', b'z', b'X', b'Z', 0];
const END: [u8; 2] = *b"YZ";
/// Bytes of a stream's header, and of its footer.
const EDGE: usize = 12;

/// A block of a file.
#[derive(Debug)]
struct XzBlock {
    /// With the zeros up to the next four bytes.
    range: Range<usize>,
    /// As the index has it: the length without these zeros, and that of what it holds.
    record: (u64, u64),
    /// Of its stream: how it is checked.
    flags: [u8; 2],
}

/// Pieces of at least so many bytes, where a file has them; `None` where its indexes do not tell
/// them.
pub(super) fn pieces(bytes: &[u8], least: usize) -> Option<Vec<PackedPiece>> {
    let mut blocks: Vec<XzBlock> = vec![];
    let mut end = bytes.len();
    while end > 0 {
        // Zeros behind a stream.
        if bytes[..end].ends_with(&[0; 4]) {
            end -= 4;
            continue;
        }
        end = stream_before(bytes, end, &mut blocks)?;
    }
    blocks.reverse();
    let (mut pieces, mut of_piece) = (vec![], vec![]);
    let mut blocks = blocks.into_iter().peekable();
    while let Some(block) = blocks.next() {
        let (end, flags) = (block.range.end, block.flags);
        of_piece.push(block);
        let length = end - of_piece[0].range.start;
        // Behind a stream's last block lies its index.
        let goes_on =
            blocks.peek().is_some_and(|next| next.range.start == end && next.flags == flags);
        if length >= least || !goes_on {
            pieces.push(piece(&std::mem::take(&mut of_piece)));
        }
    }
    Some(pieces)
}

/// Where the stream that ends here begins; its blocks, the last one first.
fn stream_before(bytes: &[u8], end: usize, blocks: &mut Vec<XzBlock>) -> Option<usize> {
    let word = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let footer = end.checked_sub(EDGE)?;
    let flags: [u8; 2] = bytes[footer + 8..footer + 10].try_into().ok()?;
    let is_footer = bytes[footer + 10..end] == END
        && word(footer)? == checksum(&bytes[footer + 4..footer + 10]);
    let index = footer.checked_sub((word(footer + 4)? as usize + 1) * 4).filter(|_| is_footer)?;
    let records = records(&bytes[index..footer])?;
    let mut at = index;
    for (length, holds) in records.into_iter().rev() {
        let padded = usize::try_from(length).ok()?.checked_next_multiple_of(4)?;
        let begin = at.checked_sub(padded)?;
        blocks.push(XzBlock { range: begin..at, record: (length, holds), flags });
        at = begin;
    }
    let header = at.checked_sub(EDGE)?;
    (bytes[header..at] == header_of(flags)).then_some(header)
}

/// What an index says of each block.
fn records(index: &[u8]) -> Option<Vec<(u64, u64)>> {
    let (content, sum) = index.split_at_checked(index.len().checked_sub(4)?)?;
    if sum != checksum(content).to_le_bytes() || content.first() != Some(&0) {
        return None;
    }
    let mut rest = &content[1..];
    let count = number(&mut rest)?;
    // No record is shorter than two bytes.
    let count = usize::try_from(count).ok().filter(|count| *count <= content.len() / 2)?;
    (0..count).map(|_| Some((number(&mut rest)?, number(&mut rest)?))).collect()
}

/// A number of seven bits a byte, the lowest first.
fn number(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..63).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7F) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

fn push_number(value: u64, bytes: &mut Vec<u8>) {
    let mut rest = value;
    while rest >= 0x80 {
        bytes.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    bytes.push(rest as u8);
}

/// A stream of some blocks that lie one behind the other.
fn piece(blocks: &[XzBlock]) -> PackedPiece {
    let flags = blocks[0].flags;
    let mut index = vec![0];
    push_number(blocks.len() as u64, &mut index);
    for block in blocks {
        push_number(block.record.0, &mut index);
        push_number(block.record.1, &mut index);
    }
    index.resize(index.len().next_multiple_of(4), 0);
    index.extend(checksum(&index).to_le_bytes());
    let footer = [&(index.len() as u32 / 4 - 1).to_le_bytes()[..], &flags].concat();
    let tail = [&index[..], &checksum(&footer).to_le_bytes(), &footer, &END].concat();
    PackedPiece {
        head: header_of(flags),
        range: blocks[0].range.start..blocks[blocks.len() - 1].range.end,
        tail,
    }
}

fn header_of(flags: [u8; 2]) -> Vec<u8> {
    [&BEGIN[..], &flags, &checksum(&flags).to_le_bytes()].concat()
}

fn checksum(bytes: &[u8]) -> u32 {
    let mut crc = Crc::new();
    crc.update(bytes);
    crc.sum()
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use liblzma::read::XzDecoder;
    use liblzma::stream::{Action, Check, Filters, LzmaOptions, Stream};

    use super::*;

    /// A stream of a block for each text.
    fn stream_of_blocks(texts: &[Vec<u8>], check: Check) -> Vec<u8> {
        let mut filters = Filters::new();
        filters.lzma2(&LzmaOptions::new_preset(1).expect("a level"));
        let mut stream = Stream::new_stream_encoder(&filters, check).expect("an encoder");
        let mut bytes = vec![];
        let actions = texts
            .iter()
            .map(|text| (&text[..], Action::FullFlush))
            .chain([(&b""[..], Action::Finish)]);
        for (text, action) in actions {
            let begin = stream.total_in();
            loop {
                bytes.reserve(1 << 16);
                let left = &text[(stream.total_in() - begin) as usize..];
                let status = stream.process_vec(left, &mut bytes, action).expect("it is packed");
                if status == liblzma::stream::Status::StreamEnd {
                    break;
                }
            }
        }
        bytes
    }

    #[test]
    fn pieces_of_blocks_are_streams_that_hold_what_the_file_holds() {
        let texts: Vec<Vec<u8>> =
            (0..9u32).map(|at| format!("text {at} ").repeat(500 + at as usize).into()).collect();
        let one = stream_of_blocks(&texts, Check::Crc64);
        let other = stream_of_blocks(&texts[..2], Check::Sha256);
        // Zeros may lie behind a stream.
        let file = [&one[..], &[0; 8], &other, &stream_of_blocks(&[], Check::Crc32)].concat();
        let whole = [texts.concat(), texts[..2].concat()].concat();
        for (least, count) in [(1, 11), (one.len(), 2), (one.len() / 2, 3)] {
            let pieces = pieces(&file, least).expect("there are indexes");
            assert_eq!(pieces.len(), count, "{least}");
            let mut text = vec![];
            for piece in &pieces {
                XzDecoder::new(piece.reader(&file)).read_to_end(&mut text).expect("it is a stream");
            }
            assert!(text == whole);
        }
    }

    #[test]
    fn damaged_indexes_tell_nothing() {
        let file = stream_of_blocks(&[b"one".to_vec(), b"two".to_vec()], Check::Crc64);
        assert_eq!(pieces(&file, 1).expect("there is an index").len(), 2);
        assert!(pieces(b"", 1).is_some_and(|pieces| pieces.is_empty()));
        for end in 1..file.len() {
            assert!(pieces(&file[..end], 1).is_none(), "{end}");
        }
        let tail = records_begin(&file);
        for at in (tail..file.len()).chain(0..EDGE) {
            let mut damaged = file.clone();
            damaged[at] ^= 0x41;
            assert!(pieces(&damaged, 1).is_none(), "{at}");
        }
    }

    fn records_begin(file: &[u8]) -> usize {
        let footer = file.len() - EDGE;
        let words =
            u32::from_le_bytes(file[footer + 4..footer + 8].try_into().expect("four bytes"));
        footer - (words as usize + 1) * 4
    }
}
