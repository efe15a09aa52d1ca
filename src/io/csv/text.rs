//! The text of a file in UTF-8, whatever it is encoded in.
//!
//! UTF-8 is read from the file as it is wanted. Compressed files are unpacked and other encodings
//! transcoded once, as a whole, and lie in memory. Places in a text count from behind the byte
//! order mark.

use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::codec::Packed;
use super::grammar::Lines;
use super::options::TextEncoding;
use crate::error::{Error, ErrorKind, Result};
use crate::io::spool;

const MARK: &[u8] = "\u{feff}".as_bytes();

/// The text of one file.
#[derive(Debug, Clone)]
pub(crate) struct CsvContent {
    pub(crate) path: PathBuf,
    held: Held,
    bytes: u64,
}

#[derive(Debug, Clone)]
enum Held {
    /// In the file, behind a byte order mark of this many bytes.
    InFile {
        mark: u64,
    },
    InMemory(Arc<Vec<u8>>),
}

impl CsvContent {
    /// Looks at the file's begin; unpacks and transcodes it where it is not UTF-8 as it lies. `None`
    /// of a file without a byte.
    ///
    /// # Errors
    /// A file that cannot be read, is not in the encoding, or cannot be unpacked.
    pub(crate) fn open(path: &Path, encoding: Option<TextEncoding>) -> Result<Option<CsvContent>> {
        let io = |error| Error::io(path, error);
        let mut file = spool::open(path)?;
        let size = file.metadata().map_err(io)?.len();
        if size == 0 {
            return Ok(None);
        }
        let mut begin = vec![];
        file.by_ref().take(Packed::BEGIN).read_to_end(&mut begin).map_err(io)?;
        let wrong = |message| Error::from(ErrorKind::File { path: path.into(), message });
        let unpacked = match Packed::of(path, &begin).map_err(wrong)? {
            Some(packed) => Some(packed.unpack(&spool::real_path(path)?).map_err(wrong)?),
            None => None,
        };
        if unpacked.as_ref().is_some_and(Vec::is_empty) {
            return Ok(None);
        }
        let begin = unpacked.as_ref().unwrap_or(&begin);
        let encoding = encoding.unwrap_or(match begin.as_slice() {
            [0xFF, 0xFE, ..] => TextEncoding::Utf16Le,
            [0xFE, 0xFF, ..] => TextEncoding::Utf16Be,
            _ => TextEncoding::Utf8,
        });
        let mark = if begin.starts_with(MARK) { MARK.len() } else { 0 };
        let text = match (encoding, unpacked) {
            (TextEncoding::Utf8, None) => {
                let (mark, path) = (mark as u64, path.into());
                return Ok(Some(CsvContent {
                    path,
                    held: Held::InFile { mark },
                    bytes: size - mark,
                }));
            }
            (TextEncoding::Utf8, Some(mut text)) => {
                text.drain(..mark);
                text
            }
            (_, Some(raw)) => transcoded(&raw, encoding).map_err(wrong)?.into_bytes(),
            (_, None) => {
                transcoded(&std::fs::read(path).map_err(io)?, encoding).map_err(wrong)?.into_bytes()
            }
        };
        let bytes = text.len() as u64;
        Ok(Some(CsvContent { path: path.into(), held: Held::InMemory(Arc::new(text)), bytes }))
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether the bytes of the text are those of its file, and where in the file they begin: then
    /// whoever reads files can read it without this.
    #[expect(dead_code, reason = "for the device's reader")]
    pub(crate) fn in_file(&self) -> Option<u64> {
        match self.held {
            Held::InFile { mark } => Some(mark),
            Held::InMemory(_) => None,
        }
    }

    /// # Errors
    /// A file that cannot be opened.
    pub(crate) fn reader(&self) -> Result<Reader<'_>> {
        let file = match self.held {
            Held::InFile { .. } => Some(spool::open(&self.path)?),
            Held::InMemory(_) => None,
        };
        Ok(Reader { text: self, file })
    }

    /// The line that a byte lies in.
    ///
    /// # Errors
    /// As [`Reader::read`].
    pub(crate) fn line_at(&self, at: u64) -> Result<u64> {
        const STEP: u64 = 1 << 20;
        let reader = self.reader()?;
        let (mut lines, mut bytes) = (Lines::new(), vec![]);
        for begin in (0..at).step_by(STEP as usize) {
            bytes.clear();
            reader.read(begin..at.min(begin + STEP), &mut bytes)?;
            lines.push(&bytes);
        }
        Ok(lines.line())
    }
}

/// A text that is read.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    text: &'a CsvContent,
    file: Option<File>,
}

impl Reader<'_> {
    /// Puts bytes of the text behind others.
    ///
    /// # Errors
    /// A file that cannot be read, or has become shorter.
    pub(crate) fn read(&self, range: Range<u64>, into: &mut Vec<u8>) -> Result<()> {
        let old = into.len();
        into.resize(old + (range.end - range.start) as usize, 0);
        self.fill(range.start, &mut into[old..])
    }

    /// Fills memory with the bytes of the text from a place on.
    ///
    /// # Errors
    /// As [`Reader::read`].
    pub(crate) fn fill(&self, at: u64, bytes: &mut [u8]) -> Result<()> {
        match (&self.text.held, &self.file) {
            (Held::InFile { mark }, Some(file)) => file
                .read_exact_at(bytes, mark + at)
                .map_err(|error| Error::io(&self.text.path, error)),
            (Held::InMemory(text), _) => {
                bytes.copy_from_slice(&text[at as usize..at as usize + bytes.len()]);
                Ok(())
            }
            (Held::InFile { .. }, None) => Err(Error::internal("a file is read that is not open")),
        }
    }
}

/// The text without its byte order mark; what is wrong with it otherwise.
fn transcoded(raw: &[u8], encoding: TextEncoding) -> Result<String, String> {
    let text = match encoding {
        TextEncoding::Utf8 => String::from_utf8(raw.into()).map_err(|error| error.to_string())?,
        TextEncoding::Latin1 => raw.iter().map(|byte| char::from(*byte)).collect(),
        TextEncoding::Windows1252 => raw.iter().map(|byte| of_windows(*byte)).collect(),
        TextEncoding::Utf16Le => of_utf16(raw, u16::from_le_bytes)?,
        TextEncoding::Utf16Be => of_utf16(raw, u16::from_be_bytes)?,
    };
    Ok(text.strip_prefix('\u{feff}').map(str::to_string).unwrap_or(text))
}

fn of_utf16(raw: &[u8], unit: impl Fn([u8; 2]) -> u16) -> Result<String, String> {
    let (units, rest) = raw.as_chunks::<2>();
    if !rest.is_empty() {
        return Err("it is not in UTF-16: it has an odd number of bytes".into());
    }
    let mut text = String::with_capacity(raw.len());
    let mut at = 0;
    for read in char::decode_utf16(units.iter().map(|two| unit(*two))) {
        match read {
            Ok(character) => {
                at += 2 * character.len_utf16();
                text.push(character);
            }
            Err(_) => {
                return Err(format!("it is not in UTF-16: half a pair of surrogates at byte {at}"));
            }
        }
    }
    Ok(text)
}

/// The characters of windows-1252 from 0x80 on that differ from those of Latin-1: the table of
/// <https://encoding.spec.whatwg.org/index-windows-1252.txt>.
fn of_windows(byte: u8) -> char {
    const FROM_80: [u16; 32] = [
        0x20AC, 0x81, 0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021, 0x02C6, 0x2030, 0x0160,
        0x2039, 0x0152, 0x8D, 0x017D, 0x8F, 0x90, 0x2018, 0x2019, 0x201C, 0x201D, 0x2022, 0x2013,
        0x2014, 0x02DC, 0x2122, 0x0161, 0x203A, 0x0153, 0x9D, 0x017E, 0x0178,
    ];
    let unit = byte.checked_sub(0x80).and_then(|at| FROM_80.get(usize::from(at)));
    unit.and_then(|unit| char::from_u32(u32::from(*unit))).unwrap_or(char::from(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_in_utf8_without_their_mark() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("t.csv");
        let utf16 = |text: &str, unit: fn(u16) -> [u8; 2]| {
            text.encode_utf16().flat_map(unit).collect::<Vec<u8>>()
        };
        for (raw, encoding, expected) in [
            ("a,é\n".as_bytes().to_vec(), None, "a,é\n"),
            ("\u{feff}a".as_bytes().to_vec(), None, "a"),
            (utf16("\u{feff}a,é😀", u16::to_le_bytes), None, "a,é😀"),
            (utf16("\u{feff}a", u16::to_be_bytes), None, "a"),
            (utf16("a,é", u16::to_be_bytes), Some(TextEncoding::Utf16Be), "a,é"),
            (b"caf\xe9,\x80\n".to_vec(), Some(TextEncoding::Windows1252), "café,€\n"),
            (b"caf\xe9,\x80\n".to_vec(), Some(TextEncoding::Latin1), "café,\u{80}\n"),
        ] {
            std::fs::write(&path, &raw).unwrap();
            let text = CsvContent::open(&path, encoding).unwrap().unwrap();
            let mut bytes = vec![];
            text.reader().unwrap().read(0..text.bytes(), &mut bytes).unwrap();
            assert_eq!(std::str::from_utf8(&bytes).unwrap(), expected);
        }
        for raw in [vec![0xFF, 0xFE, 0x00], vec![0xFF, 0xFE, 0x00, 0xD8, b'a', 0]] {
            std::fs::write(&path, &raw).unwrap();
            let error = CsvContent::open(&path, None).unwrap_err();
            assert!(
                matches!(error.kind(), ErrorKind::File { message, .. } if message.contains("UTF-16")),
                "{error}"
            );
        }
    }
}
