//! The streams of a compressed file, where they can be told without unpacking them: tools that
//! compress on several cores write many, which as many cores unpack.
//!
//! | format | written so by | told by |
//! |---|---|---|
//! | gzip | bgzip | the length in each member's header |
//! | zstd | pzstd | the lengths of frames and their blocks |
//! | bzip2 | pbzip2, lbzip2 | the bytes with which a stream begins |
//! | xz | `xz -T0`, pixz | the indexes of its blocks (`xz.rs`) |
//!
//! Bytes within a stream of bzip2 may be such by chance. So what follows from all this is an offer:
//! where some piece cannot be unpacked alone, the file is unpacked from its begin to its end.

use memchr::memmem;

use super::codec::Packed;
use super::piece::PackedPiece;
use super::xz;

/// Least compressed bytes that are unpacked alone.
const LEAST: usize = 256 << 10;

/// Pieces of a file's bytes; about as many as are wanted, and one where none can be told apart.
pub(super) fn pieces(packed: Packed, bytes: &[u8], wanted: usize) -> Vec<PackedPiece> {
    let least = LEAST.max(bytes.len() / wanted.max(1));
    let ends = match packed {
        Packed::Gzip => members_of_bgzip(bytes),
        Packed::Zstd => frames_of_zstd(bytes),
        Packed::Bzip2 => Some(streams_of_bzip2(bytes)),
        Packed::Xz => match xz::pieces(bytes, least) {
            Some(pieces) => return pieces,
            None => None,
        },
    };
    let (mut pieces, mut begin) = (vec![], 0);
    for end in ends.unwrap_or_default() {
        if end - begin >= least {
            pieces.push(PackedPiece::streams(begin..end));
            begin = end;
        }
    }
    if begin < bytes.len() {
        pieces.push(PackedPiece::streams(begin..bytes.len()));
    }
    pieces
}

/// Where members of gzip end that say how long they are: all of them, or `None`.
fn members_of_bgzip(bytes: &[u8]) -> Option<Vec<usize>> {
    let (mut ends, mut at) = (vec![], 0);
    while at < bytes.len() {
        // Magic, method, flags: an extra field and nothing else; time, level and system; its
        // length; the subfield BC of 2 bytes.
        let header = bytes.get(at..at + 18)?;
        let is_blocked =
            header[..4] == [0x1F, 0x8B, 8, 4] && header[10..16] == [6, 0, b'B', b'C', 2, 0];
        let length = usize::from(u16::from_le_bytes([header[16], header[17]])) + 1;
        at = at
            .checked_add(length)
            .filter(|end| is_blocked && length > header.len() && *end <= bytes.len())?;
        ends.push(at);
    }
    Some(ends)
}

/// Where frames of zstd end: all of them, or `None`.
fn frames_of_zstd(bytes: &[u8]) -> Option<Vec<usize>> {
    let (mut ends, mut at) = (vec![], 0);
    while at < bytes.len() {
        let length = zstd::zstd_safe::find_frame_compressed_size(&bytes[at..]).ok()?;
        at = at.checked_add(length).filter(|end| length > 0 && *end <= bytes.len())?;
        ends.push(at);
    }
    Some(ends)
}

/// Where streams of bzip2 may end.
fn streams_of_bzip2(bytes: &[u8]) -> Vec<usize> {
    // Behind "BZh" and the level.
    const BLOCK: [u8; 6] = [0x31, 0x41, 0x59, 0x26, 0x53, 0x59];
    let begins =
        memmem::find_iter(bytes, &BLOCK).filter_map(|at| at.checked_sub(4)).filter(|begin| {
            let head = &bytes[*begin..begin + 4];
            *begin > 0 && head.starts_with(b"BZh") && head[3].is_ascii_digit()
        });
    begins.chain([bytes.len()]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_put_together_to_pieces() {
        let one = zstd::encode_all(&[7u8; 1000][..], 3).unwrap();
        let bytes = one.repeat(LEAST / one.len() * 3);
        let found = pieces(Packed::Zstd, &bytes, 100);
        let found: Vec<_> = found.into_iter().map(|piece| piece.range).collect();
        assert!(
            found.len() > 1 && found.iter().all(|piece| piece.start % one.len() == 0),
            "{found:?}"
        );
        assert_eq!((found[0].start, found[found.len() - 1].end), (0, bytes.len()));
        assert!(found.windows(2).all(|two| two[0].end == two[1].start));
        assert_eq!(pieces(Packed::Zstd, &bytes, 1), [PackedPiece::streams(0..bytes.len())]);
        // What is no frame at its end is left to who unpacks.
        let longer = [&bytes[..], b"x"].concat();
        assert_eq!(pieces(Packed::Zstd, &longer, 100), [PackedPiece::streams(0..longer.len())]);
        assert_eq!(pieces(Packed::Xz, &bytes, 100), [PackedPiece::streams(0..bytes.len())]);
        assert!(pieces(Packed::Gzip, b"", 100).is_empty());
    }
}
