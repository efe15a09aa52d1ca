//! Compressed files.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use bzip2::read::MultiBzDecoder;
use flate2::read::MultiGzDecoder;
use liblzma::read::XzDecoder;

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

    /// By a file's first bytes, which no text begins with; `None` for a file that is not compressed.
    ///
    /// # Errors
    /// A file that is not what its name says.
    pub(in crate::io) fn of(path: &Path, begin: &[u8]) -> Result<Option<Packed>, String> {
        let found = match begin {
            [0x1F, 0x8B, ..] => Some(Packed::Gzip),
            [0x28, 0xB5, 0x2F, 0xFD, ..] => Some(Packed::Zstd),
            [b'B', b'Z', b'h', b'1'..=b'9', 0x31, 0x41, 0x59, 0x26, 0x53, 0x59, ..] => Some(Packed::Bzip2),
            [0xFD, b'7', b'z', b'X', b'Z', 0, ..] => Some(Packed::Xz),
            _ => None,
        };
        let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        let named = [("gz", Packed::Gzip), ("zst", Packed::Zstd), ("bz2", Packed::Bzip2), ("xz", Packed::Xz)]
            .into_iter()
            .find(|(name, _)| extension.eq_ignore_ascii_case(name));
        match (found, named) {
            (None, Some((_, packed))) => Err(format!("it does not begin as {} does", packed.name())),
            _ => Ok(found),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Packed::Gzip => "gzip",
            Packed::Zstd => "zstd",
            Packed::Bzip2 => "bzip2",
            Packed::Xz => "xz",
        }
    }

    /// What the file holds, from its begin on.
    ///
    /// # Errors
    /// Of the codec.
    pub(in crate::io) fn reader(self, file: BufReader<File>) -> std::io::Result<Box<dyn Read>> {
        Ok(match self {
            Packed::Gzip => Box::new(MultiGzDecoder::new(file)),
            Packed::Zstd => Box::new(zstd::stream::read::Decoder::with_buffer(file)?),
            Packed::Bzip2 => Box::new(MultiBzDecoder::new(file)),
            Packed::Xz => Box::new(XzDecoder::new_multi_decoder(file)),
        })
    }

    /// What the whole file holds.
    ///
    /// # Errors
    /// A file that is damaged or ends too early, is empty when unpacked, or does not fit into memory.
    pub(in crate::io) fn unpack(self, path: &Path) -> Result<Vec<u8>, String> {
        let failed = |error: std::io::Error| format!("it cannot be unpacked from {}: {error}", self.name());
        let mut reader = self.reader(BufReader::new(File::open(path).map_err(failed)?)).map_err(failed)?;
        let mut text = vec![];
        loop {
            /// Bytes that are asked for at least.
            const STEP: usize = 1 << 20;
            // A small file may hold more than there is memory.
            let step = STEP.max(text.len() / 2);
            text.try_reserve(step).map_err(|_| failed(std::io::ErrorKind::OutOfMemory.into()))?;
            if reader.by_ref().take(step as u64).read_to_end(&mut text).map_err(failed)? == 0 {
                break;
            }
        }
        match text.is_empty() {
            true => Err(format!("is empty when unpacked from {}", self.name())),
            false => Ok(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    const TEXT: &[u8] = b"a,b\n1,one\n2,two\n";

    fn packed(packed: Packed, text: &[u8]) -> Vec<u8> {
        let write = |mut writer: Box<dyn Write + '_>| writer.write_all(text).expect("memory takes it");
        let mut bytes = vec![];
        match packed {
            Packed::Gzip => write(Box::new(flate2::write::GzEncoder::new(&mut bytes, Default::default()))),
            Packed::Zstd => {
                write(Box::new(zstd::stream::write::Encoder::new(&mut bytes, 3).expect("a level").auto_finish()));
            }
            Packed::Bzip2 => write(Box::new(bzip2::write::BzEncoder::new(&mut bytes, bzip2::Compression::best()))),
            Packed::Xz => write(Box::new(liblzma::write::XzEncoder::new(&mut bytes, 6))),
        }
        bytes
    }

    #[test]
    fn files_of_several_streams_are_whole_and_damaged_ones_are_errors() {
        let directory = tempfile::tempdir().expect("a directory");
        for (kind, extension) in
            [(Packed::Gzip, "gz"), (Packed::Zstd, "zst"), (Packed::Bzip2, "bz2"), (Packed::Xz, "xz")]
        {
            let path = directory.path().join("t.csv").with_extension(format!("csv.{extension}"));
            let one = packed(kind, TEXT);
            std::fs::write(&path, [&one[..], &packed(kind, b"3,three\n")].concat()).expect("a file");
            let begin = &one[..Packed::BEGIN as usize];
            assert_eq!(Packed::of(&path, begin), Ok(Some(kind)));
            assert_eq!(kind.unpack(&path), Ok([TEXT, b"3,three\n"].concat()));

            for bytes in 1..one.len() {
                std::fs::write(&path, &one[..bytes]).expect("a file");
                let told = kind.unpack(&path).expect_err("it ends too early");
                assert!(told.contains(kind.name()), "{told}");
            }
            let mut damaged = one.clone();
            let last = damaged.len() - if kind == Packed::Xz { 20 } else { 6 };
            damaged[last] ^= 0x55;
            std::fs::write(&path, &damaged).expect("a file");
            // Zstd's frames have no checksums unless the writer wants them.
            let unpacked = kind.unpack(&path);
            assert!(unpacked.is_err() || kind == Packed::Zstd && unpacked != Ok(TEXT.to_vec()), "{kind:?}");
            assert!(Packed::of(&path, TEXT).is_err());
            std::fs::write(&path, packed(kind, b"")).expect("a file");
            assert!(kind.unpack(&path).expect_err("there is nothing").contains("is empty"));
        }
        assert_eq!(Packed::of(Path::new("t.csv"), TEXT), Ok(None));
        assert_eq!(Packed::of(Path::new("t.csv"), b"BZh9,is a name\n"), Ok(None));
    }
}
