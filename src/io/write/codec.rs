//! Files of text, compressed. Each part is a stream of its own, so that parts are compressed on all
//! cores; readers take streams that follow one another for one text.

use std::io::Write;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::error::{Error, Result};

/// What files of CSV and JSON are compressed with.
///
/// ```
/// assert_eq!(warpframe::TextCodec::default(), warpframe::TextCodec::BySuffix);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TextCodec {
    /// What the file's name ends in tells: `.gz` is gzip, `.zst` is zstd, and others are not
    /// compressed.
    #[default]
    BySuffix,
    /// Nothing, whatever the file is called.
    Uncompressed,
    /// Level 6.
    Gzip,
    /// Level 3.
    Zstd,
}

impl TextCodec {
    /// What a file's name tells, where nothing else is said.
    ///
    /// # Errors
    /// Names that tell a codec in which nothing is written.
    pub(super) fn of(self, path: &Path) -> Result<TextCodec> {
        let suffix = path.extension().and_then(|suffix| suffix.to_str()).unwrap_or_default();
        Ok(match (self, suffix.to_lowercase().as_str()) {
            (TextCodec::BySuffix, "gz") => TextCodec::Gzip,
            (TextCodec::BySuffix, "zst") => TextCodec::Zstd,
            (TextCodec::BySuffix, "bz2" | "xz") => {
                let what = format!("the file {}", path.display());
                return Err(Error::unsupported(
                    what,
                    "files are written as gzip (.gz) and zstd (.zst)",
                ));
            }
            (TextCodec::BySuffix, _) => TextCodec::Uncompressed,
            (codec, _) => codec,
        })
    }

    /// What names of such files end in.
    pub(super) fn suffix(self) -> &'static str {
        match self {
            TextCodec::Gzip => ".gz",
            TextCodec::Zstd => ".zst",
            TextCodec::BySuffix | TextCodec::Uncompressed => "",
        }
    }

    /// A part of a file. What is compressed has bytes even where the part has none.
    pub(super) fn packed(self, part: Vec<u8>) -> Result<Vec<u8>> {
        let packed = match self {
            TextCodec::BySuffix | TextCodec::Uncompressed => return Ok(part),
            TextCodec::Gzip => {
                let room = Vec::with_capacity(part.len() / 4);
                let mut packer = GzEncoder::new(room, Compression::default());
                packer.write_all(&part).and_then(|()| packer.finish())
            }
            TextCodec::Zstd => zstd::bulk::compress(&part, zstd::DEFAULT_COMPRESSION_LEVEL),
        };
        packed.map_err(|error| Error::io("", error))
    }
}
