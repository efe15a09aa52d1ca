//! Codecs that the host unpacks, each page on whichever worker takes it.

use std::io::Read;

use datafusion::parquet::basic::Compression;

/// Who unpacks the pages of a codec.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unpacker {
    Device,
    Host,
}

/// Who unpacks a codec; `None` where only the parquet crate does.
pub(super) fn unpacker(codec: Compression) -> Option<Unpacker> {
    match codec {
        Compression::UNCOMPRESSED | Compression::SNAPPY | Compression::LZ4_RAW => {
            Some(Unpacker::Device)
        }
        Compression::ZSTD(_) | Compression::GZIP(_) | Compression::BROTLI(_) => {
            Some(Unpacker::Host)
        }
        // LZ4's frames were written in two ways, LZO has no crate.
        Compression::LZ4 | Compression::LZO => None,
    }
}

/// Unpacks a page, whose length is that of `content`.
///
/// # Errors
/// What the codec says of bytes that are not its own, or have another length.
pub(super) fn unpack(codec: Compression, packed: &[u8], content: &mut [u8]) -> Result<(), String> {
    let other = |length: usize, wanted: usize| Err(format!("{length} bytes in a page of {wanted}"));
    match codec {
        Compression::ZSTD(_) => match zstd::bulk::decompress_to_buffer(packed, content) {
            Ok(length) if length == content.len() => Ok(()),
            Ok(length) => other(length, content.len()),
            Err(error) => Err(error.to_string()),
        },
        Compression::GZIP(_) => read_whole(flate2::read::MultiGzDecoder::new(packed), content),
        Compression::BROTLI(_) => {
            read_whole(brotli::Decompressor::new(packed, packed.len().clamp(1, 1 << 16)), content)
        }
        codec => Err(format!("codec {codec}")),
    }
}

fn read_whole(mut from: impl Read, content: &mut [u8]) -> Result<(), String> {
    from.read_exact(content).map_err(|error| error.to_string())?;
    match from.read(&mut [0]) {
        Ok(0) => Ok(()),
        Ok(_) => Err("more bytes than the page has".into()),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use datafusion::parquet::basic::{BrotliLevel, GzipLevel, ZstdLevel};

    use super::*;

    #[test]
    fn pages_have_the_length_they_are_said_to_have() {
        let content: Vec<u8> = (0..100_000u32).flat_map(|at| (at / 7).to_le_bytes()).collect();
        let gzip = || {
            let mut encoder = flate2::write::GzEncoder::new(vec![], flate2::Compression::fast());
            encoder.write_all(&content).unwrap();
            encoder.finish().unwrap()
        };
        let brotli = || {
            let mut packed = vec![];
            brotli::CompressorWriter::new(&mut packed, 4096, 1, 20).write_all(&content).unwrap();
            packed
        };
        for (codec, packed) in [
            (Compression::ZSTD(ZstdLevel::default()), zstd::bulk::compress(&content, 1).unwrap()),
            (Compression::GZIP(GzipLevel::default()), gzip()),
            (Compression::BROTLI(BrotliLevel::default()), brotli()),
        ] {
            let mut out = vec![0; content.len()];
            unpack(codec, &packed, &mut out).unwrap();
            assert_eq!(out, content);
            assert!(unpack(codec, &packed, &mut out[1..]).is_err(), "{codec}: too short");
            let mut longer = vec![0; content.len() + 1];
            assert!(unpack(codec, &packed, &mut longer).is_err(), "{codec}: too long");
            assert!(unpack(codec, &packed[..packed.len() / 2], &mut out).is_err(), "{codec}: cut");
            assert!(unpack(codec, &[], &mut out).is_err(), "{codec}: nothing");
        }
    }
}
