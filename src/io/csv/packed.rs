//! Compressed files, unpacked.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use bzip2::read::MultiBzDecoder;
use flate2::read::MultiGzDecoder;
use liblzma::read::XzDecoder;

use super::codec::Packed;
use super::parallel::on_cores;
use super::streams::pieces;
use crate::error::Error;
use warpframe_device::cores::cores;

impl Packed {
    /// What the file holds, from its begin on.
    ///
    /// # Errors
    /// Of the codec.
    pub(in crate::io) fn reader<'a>(
        self,
        file: impl BufRead + Send + 'a,
    ) -> std::io::Result<Box<dyn Read + Send + 'a>> {
        Ok(match self {
            Packed::Gzip => Box::new(MultiGzDecoder::new(file)),
            Packed::Zstd => Box::new(zstd::stream::read::Decoder::with_buffer(file)?),
            Packed::Bzip2 => Box::new(MultiBzDecoder::new(file)),
            Packed::Xz => Box::new(XzDecoder::new_multi_decoder(file)),
        })
    }

    /// What the whole file holds. Pieces that can be told apart are unpacked on all cores.
    ///
    /// # Errors
    /// A file that is damaged or ends too early, or does not fit into memory.
    pub(in crate::io) fn unpack(self, path: &Path) -> Result<Vec<u8>, String> {
        let failed =
            |error: std::io::Error| format!("it cannot be unpacked from {}: {error}", self.name());
        let cores = cores();
        match self.unpacked_in_pieces(path, cores).map_err(failed)? {
            Some(text) => Ok(text),
            None => {
                self.unpacked(BufReader::new(File::open(path).map_err(failed)?)).map_err(failed)
            }
        }
    }
}

/// Pieces for each core, which need not take the same time.
const EACH: usize = 4;
/// Files that are no longer are unpacked before others have begun.
const LEAST_FILE: u64 = 1 << 20;

impl Packed {
    fn unpacked(self, file: impl BufRead + Send) -> std::io::Result<Vec<u8>> {
        let mut reader = self.reader(file)?;
        let mut text = vec![];
        loop {
            /// Bytes that are asked for at least.
            const STEP: usize = 1 << 20;
            // A small file may hold more than there is memory.
            let step = STEP.max(text.len() / 2);
            text.try_reserve(step)
                .map_err(|_| std::io::Error::from(std::io::ErrorKind::OutOfMemory))?;
            if reader.by_ref().take(step as u64).read_to_end(&mut text)? == 0 {
                return Ok(text);
            }
        }
    }

    /// What the file holds, unpacked by so many cores; `None` where its pieces are not told apart,
    /// or where one of them cannot be unpacked alone.
    fn unpacked_in_pieces(self, path: &Path, cores: usize) -> std::io::Result<Option<Vec<u8>>> {
        if cores == 1 || std::fs::metadata(path)?.len() < LEAST_FILE {
            return Ok(None);
        }
        let bytes = std::fs::read(path)?;
        let pieces = pieces(self, &bytes, cores * EACH);
        if pieces.len() <= 1 {
            return Ok(None);
        }
        let unpack = |at: usize| {
            self.unpacked(pieces[at].reader(&bytes)).map_err(|error| Error::io(path, error))
        };
        let Ok(parts) = on_cores(pieces.len(), unpack) else { return Ok(None) };
        let mut text = vec![];
        let length = parts.iter().map(Vec::len).sum();
        text.try_reserve_exact(length)
            .map_err(|_| std::io::Error::from(std::io::ErrorKind::OutOfMemory))?;
        // Each goes when it has its place.
        parts.into_iter().for_each(|part| text.extend_from_slice(&part));
        Ok(Some(text))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    const TEXT: &[u8] = b"a,b\n1,one\n2,two\n";

    fn packed(packed: Packed, text: &[u8]) -> Vec<u8> {
        let write =
            |mut writer: Box<dyn Write + '_>| writer.write_all(text).expect("memory takes it");
        let mut bytes = vec![];
        match packed {
            Packed::Gzip => {
                write(Box::new(flate2::write::GzEncoder::new(&mut bytes, Default::default())))
            }
            Packed::Zstd => {
                write(Box::new(
                    zstd::stream::write::Encoder::new(&mut bytes, 3)
                        .expect("a level")
                        .auto_finish(),
                ));
            }
            Packed::Bzip2 => write(Box::new(bzip2::write::BzEncoder::new(
                &mut bytes,
                bzip2::Compression::best(),
            ))),
            Packed::Xz => write(Box::new(liblzma::write::XzEncoder::new(&mut bytes, 6))),
        }
        bytes
    }

    #[test]
    fn files_of_several_streams_are_whole_and_damaged_ones_are_errors() {
        let directory = tempfile::tempdir().expect("a directory");
        for (kind, extension) in [
            (Packed::Gzip, "gz"),
            (Packed::Zstd, "zst"),
            (Packed::Bzip2, "bz2"),
            (Packed::Xz, "xz"),
        ] {
            let path = directory.path().join("t.csv").with_extension(format!("csv.{extension}"));
            let one = packed(kind, TEXT);
            std::fs::write(&path, [&one[..], &packed(kind, b"3,three\n")].concat())
                .expect("a file");
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
            assert!(
                unpacked.is_err() || kind == Packed::Zstd && unpacked != Ok(TEXT.to_vec()),
                "{kind:?}"
            );
            assert!(Packed::of(&path, TEXT).is_err());
            std::fs::write(&path, packed(kind, b"")).expect("a file");
            assert_eq!(kind.unpack(&path), Ok(vec![]));
        }
        assert_eq!(Packed::of(Path::new("t.csv"), TEXT), Ok(None));
        assert_eq!(Packed::of(Path::new("t.csv"), b"BZh9,is a name\n"), Ok(None));
    }

    /// A member of gzip as bgzip writes it.
    fn blocked(text: &[u8]) -> Vec<u8> {
        let mut bytes = vec![];
        let extra = vec![b'B', b'C', 2, 0, 0, 0];
        let mut writer =
            flate2::GzBuilder::new().extra(extra).write(&mut bytes, Default::default());
        writer.write_all(text).expect("memory takes it");
        writer.finish().expect("memory takes it");
        let length = u16::try_from(bytes.len() - 1).expect("a block is short");
        bytes[16..18].copy_from_slice(&length.to_le_bytes());
        bytes
    }

    #[test]
    fn files_of_many_streams_are_unpacked_in_pieces() {
        let directory = tempfile::tempdir().expect("a directory");
        // Text that compresses little.
        let mut state = 1u64;
        let mut next = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            state >> 20
        };
        let parts: Vec<Vec<u8>> = (0..160)
            .map(|_| (0..1500).map(|_| format!("{},", next())).collect::<String>().into())
            .collect();
        for kind in [Packed::Gzip, Packed::Zstd, Packed::Bzip2, Packed::Xz] {
            let pack =
                |text: &[u8]| if kind == Packed::Gzip { blocked(text) } else { packed(kind, text) };
            let streams: Vec<Vec<u8>> = parts.iter().map(|part| pack(part)).collect();
            let path = directory.path().join("t.csv");
            std::fs::write(&path, streams.concat()).expect("a file");
            assert!(pieces(kind, &streams.concat(), 8).len() > 1, "{kind:?}");
            assert!(
                kind.unpacked_in_pieces(&path, 2)
                    .expect("it is there")
                    .is_some_and(|text| text == parts.concat()),
                "{kind:?}"
            );
            assert!(kind.unpack(&path) == Ok(parts.concat()), "{kind:?}");
            // A damaged stream is told by who unpacks all of it.
            let mut damaged = streams.concat();
            let middle = damaged.len() / 2;
            damaged[middle..middle + 4000].fill(0x55);
            std::fs::write(&path, &damaged).expect("a file");
            assert!(kind.unpacked_in_pieces(&path, 2).expect("it is there").is_none(), "{kind:?}");
            assert!(
                kind.unpack(&path).expect_err("it is damaged").contains(kind.name()),
                "{kind:?}"
            );
        }
    }
}
