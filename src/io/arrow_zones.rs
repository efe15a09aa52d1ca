//! Time zones of Parquet files, which only the Arrow schema beside a file's own has. The parquet
//! crate (59) takes them from columns of the same unit alone: of seconds, which Parquet has not and
//! pyarrow writes as milliseconds, they were UTC.

use std::sync::Arc;

use arrow_ipc::convert::try_schema_from_ipc_buffer;
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::parquet::file::metadata::FileMetaData;

use super::footer::ARROW_SCHEMA;

/// The schema with the zones that the Arrow schema tells.
pub(super) fn with_zones(schema: Schema, of_file: &FileMetaData) -> Schema {
    let is_utc = |field: &Field| matches!(field.data_type(), DataType::Timestamp(_, Some(zone)) if zone.as_ref() == "UTC");
    if !schema.fields().iter().any(|field| is_utc(field)) {
        return schema;
    }
    let Some(told) = told(of_file) else { return schema };
    let zoned = |field: &Arc<Field>| {
        let own = told.field_with_name(field.name()).ok().map(|field| field.data_type());
        match (field.data_type(), own) {
            (DataType::Timestamp(unit, _), Some(DataType::Timestamp(_, Some(zone))))
                if is_utc(field) =>
            {
                let dtype = DataType::Timestamp(*unit, Some(zone.clone()));
                Arc::new(field.as_ref().clone().with_data_type(dtype))
            }
            _ => field.clone(),
        }
    };
    let fields: Vec<_> = schema.fields().iter().map(zoned).collect();
    Schema::new_with_metadata(fields, schema.metadata)
}

/// The Arrow schema of a file, if it has one.
fn told(of_file: &FileMetaData) -> Option<Schema> {
    let pair = of_file.key_value_metadata()?.iter().find(|pair| pair.key == ARROW_SCHEMA)?;
    try_schema_from_ipc_buffer(&decoded(pair.value.as_deref()?)?).ok()
}

/// The bytes of a text in base 64.
fn decoded(text: &str) -> Option<Vec<u8>> {
    let digits = text.trim_end_matches('=').bytes().map(|digit| match digit {
        b'A'..=b'Z' => Some(digit - b'A'),
        b'a'..=b'z' => Some(digit - b'a' + 26),
        b'0'..=b'9' => Some(digit - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    });
    let digits: Vec<u8> = digits.collect::<Option<_>>()?;
    let mut bytes = Vec::with_capacity(digits.len() * 3 / 4);
    for four in digits.chunks(4) {
        let word = four.iter().fold(0u32, |word, digit| word << 6 | u32::from(*digit));
        let word = word << (6 * (4 - four.len()));
        bytes.extend(&word.to_be_bytes()[1..four.len()]);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base_64_is_read() {
        for (text, bytes) in [
            ("", &b""[..]),
            ("Zg==", b"f"),
            ("Zm8=", b"fo"),
            ("Zm9v", b"foo"),
            ("//+/", &[255, 255, 191]),
        ] {
            assert_eq!(decoded(text).as_deref(), Some(bytes), "{text}");
        }
        assert_eq!(decoded("a b"), None);
    }
}
