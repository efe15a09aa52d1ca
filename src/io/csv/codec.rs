//! What files are compressed with, by their first bytes.

use std::path::Path;

/// What a file is compressed with. Files may have several streams, one behind the other, as tools
/// write that compress on several cores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::io) enum Packed {
    Gzip,
    Zstd,
    Bzip2,
    Xz,
}

impl Packed {
    /// Bytes that tell.
    pub(in crate::io) const BEGIN: u64 = 10;

    /// By a file's first bytes, which no text begins with; `None` for a file that is not
    /// compressed.
    ///
    /// # Errors
    /// A file that is not what its name says.
    pub(in crate::io) fn of(path: &Path, begin: &[u8]) -> Result<Option<Packed>, String> {
        let found = match begin {
            [0x1F, 0x8B, ..] => Some(Packed::Gzip),
            [0x28, 0xB5, 0x2F, 0xFD, ..] => Some(Packed::Zstd),
            [b'B', b'Z', b'h', b'1'..=b'9', 0x31, 0x41, 0x59, 0x26, 0x53, 0x59, ..] => {
                Some(Packed::Bzip2)
            }
            [0xFD, b'7', b'z', b'X', b'Z', 0, ..] => Some(Packed::Xz),
            _ => None,
        };
        let extension =
            path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        let named = [
            ("gz", Packed::Gzip),
            ("zst", Packed::Zstd),
            ("bz2", Packed::Bzip2),
            ("xz", Packed::Xz),
        ]
        .into_iter()
        .find(|(name, _)| extension.eq_ignore_ascii_case(name));
        match (found, named) {
            (None, Some((_, packed))) => {
                Err(format!("it does not begin as {} does", packed.name()))
            }
            _ => Ok(found),
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Packed::Gzip => "gzip",
            Packed::Zstd => "zstd",
            Packed::Bzip2 => "bzip2",
            Packed::Xz => "xz",
        }
    }
}
