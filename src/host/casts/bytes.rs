//! Bytes as texts, as DuckDB has them: what is no printable character of ASCII is written `\xHH`, and
//! so are quotes and the backslash.
//!
//! ```text
//!   CAST('a\xC3\xA9' AS BLOB)    the bytes 61 c3 a9     and back: the same text
//!   CAST('é' AS BLOB)           an error: it is not in ASCII
//!   CAST('\y' AS BLOB)          an error: a backslash stands before two digits only
//! ```

use std::fmt::Write;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, BinaryArray, StringArray, StringViewArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::arrow::error::ArrowError;
use datafusion::error::Result;

/// Whether values of a type are bytes, of which texts are read so.
pub(in crate::host) fn is_bytes(dtype: &DataType) -> bool {
    matches!(dtype, DataType::Binary | DataType::LargeBinary | DataType::BinaryView)
}

/// Whether bytes are written as a text.
pub(super) fn shows(from: &DataType, to: &DataType) -> bool {
    (is_bytes(from) || matches!(from, DataType::FixedSizeBinary(_))) && to.is_string()
}

/// The texts of bytes.
pub(super) fn shown(bytes: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    let bytes = cast(bytes, &DataType::Binary)?;
    let text = |bytes: &[u8]| {
        let mut text = String::with_capacity(bytes.len());
        for byte in bytes {
            match byte {
                b'\\' | b'\'' | b'"' | 0..32 | 127.. => {
                    let _ = write!(text, "\\x{byte:02X}");
                }
                plain => text.push(char::from(*plain)),
            }
        }
        text
    };
    let texts: StringArray = bytes.as_binary::<i32>().iter().map(|of| of.map(text)).collect();
    Ok(cast(&(Arc::new(texts) as ArrayRef), to)?)
}

/// The bytes that texts say; of what says none, null, or an error.
pub(super) fn read(texts: &StringViewArray, to: &DataType, or_null: bool) -> Result<ArrayRef> {
    let of = |text: Option<&str>| match text.map(said) {
        Some(Err(_)) if or_null => Ok(None),
        bytes => bytes.transpose(),
    };
    let bytes = texts.iter().map(of).collect::<Result<Vec<_>, ArrowError>>()?;
    let bytes: BinaryArray = bytes.iter().map(Option::as_deref).collect();
    Ok(cast(&(Arc::new(bytes) as ArrayRef), to)?)
}

fn said(text: &str) -> Result<Vec<u8>, ArrowError> {
    let wrong = |why: &str| {
        ArrowError::CastError(format!("Cannot cast string '{text}' to value of BLOB type: {why}"))
    };
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, behind)) = rest.split_first() {
        rest = behind;
        bytes.push(match byte {
            b'\\' => {
                let digits = behind.strip_prefix(b"x").and_then(|digits| digits.get(..2));
                let digits = digits.filter(|digits| digits.iter().all(u8::is_ascii_hexdigit));
                let value = digits
                    .and_then(|digits| str::from_utf8(digits).ok())
                    .and_then(|digits| u8::from_str_radix(digits, 16).ok())
                    .ok_or_else(|| wrong("\\ stands before x and two hexadecimal digits"))?;
                rest = &behind[3..];
                value
            }
            0..128 => *byte,
            _ => return Err(wrong("bytes that are not of ASCII are written as \\xHH")),
        });
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_what_their_texts_say() {
        for (text, bytes) in [
            ("", Some(&b""[..])),
            ("a b~", Some(b"a b~")),
            (r"\xaaZ\x5C", Some(b"\xaaZ\\")),
            (r"\x41b", Some(b"Ab")),
            (r"\x4", None),
            (r"\x+4", None),
            (r"\xé", None),
            (r"\XAA", None),
            (r"\\", None),
            ("\\", None),
            ("é", None),
        ] {
            assert_eq!(said(text).ok().as_deref(), bytes, "{text}");
        }
    }

    #[test]
    fn what_is_not_printable_has_two_digits() -> Result<()> {
        let all: Vec<u8> = (0..=255).collect();
        let bytes: ArrayRef = Arc::new(BinaryArray::from_iter_values([&all[..], b"\t\"'\\~ \x7f"]));
        let texts = shown(&bytes, &DataType::Utf8View)?;
        let texts = texts.as_string_view();
        assert_eq!(texts.value(1), r"\x09\x22\x27\x5C~ \x7F");
        let back = read(texts, &DataType::BinaryView, false)?;
        assert_eq!(back.as_binary_view().value(0), all);
        Ok(())
    }
}
