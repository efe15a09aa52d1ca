//! Column chunks that the parquet crate wrote, page by page.

use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::{Encoding as Written, Type};
use parquet::column::page::Page as WrittenPage;
use parquet::data_type::DataType;
use parquet::file::properties::{WriterProperties, WriterVersion};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

use crate::ops::parquet::{PageEncoding, Physical};

/// The pages of a column chunk.
#[derive(Debug, Clone)]
pub(super) struct File {
    pub(super) physical: Physical,
    pub(super) optional: bool,
    pub(super) pages: Vec<FilePage>,
    /// Content and entries.
    pub(super) dictionary: Option<(Vec<u8>, u32)>,
    /// Bytes of its strings, as the statistics say.
    pub(super) characters: usize,
}

#[derive(Debug, Clone)]
pub(super) struct FilePage {
    pub(super) content: Vec<u8>,
    /// Of version 2.
    pub(super) levels: Option<Vec<u8>>,
    pub(super) rows: u32,
    pub(super) encoding: PageEncoding,
}

/// How to write.
#[derive(Debug, Clone, Copy)]
pub(super) struct Settings {
    pub(super) version: WriterVersion,
    /// `None`: a dictionary.
    pub(super) encoding: Option<Written>,
    pub(super) rows_a_page: usize,
}

impl Settings {
    pub(super) fn of(encoding: Option<Written>) -> Settings {
        Settings { version: WriterVersion::PARQUET_1_0, encoding, rows_a_page: 20_000 }
    }

    /// Both versions, with small and large pages.
    pub(super) fn all(encoding: Option<Written>) -> [Settings; 3] {
        let first = Settings::of(encoding);
        let second = Settings { version: WriterVersion::PARQUET_2_0, ..first };
        [first, second, Settings { rows_a_page: 1000, ..first }]
    }
}

impl File {
    /// Rows of all pages.
    pub(super) fn rows(&self) -> usize {
        self.pages.iter().map(|page| page.rows as usize).sum()
    }

    /// A page of a required column by hand.
    pub(super) fn by_hand(
        physical: Physical,
        encoding: PageEncoding,
        rows: u32,
        content: Vec<u8>,
    ) -> File {
        let pages = vec![FilePage { content, levels: None, rows, encoding }];
        File { physical, optional: false, pages, dictionary: None, characters: 0 }
    }

    /// Writes values of a type (`INT32`, `FIXED_LEN_BYTE_ARRAY(5)`), of which some are null where
    /// the column is optional.
    pub(super) fn written<T: DataType>(
        kind: &str,
        values: &[Option<T::T>],
        optional: bool,
        with: Settings,
    ) -> File {
        let repetition = if optional { "optional" } else { "required" };
        let schema = Arc::new(
            parse_message_type(&format!("message m {{ {repetition} {kind} c; }}")).unwrap(),
        );
        let mut properties = WriterProperties::builder()
            .set_writer_version(with.version)
            .set_dictionary_enabled(with.encoding.is_none())
            .set_data_page_row_count_limit(with.rows_a_page)
            .set_write_batch_size(500);
        if let Some(encoding) = with.encoding {
            properties = properties.set_encoding(encoding);
        }
        let mut writer =
            SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties.build())).unwrap();
        let mut group = writer.next_row_group().unwrap();
        let mut column = group.next_column().unwrap().unwrap();
        let present: Vec<T::T> = values.iter().flatten().cloned().collect();
        let levels: Vec<i16> = values.iter().map(|value| value.is_some() as i16).collect();
        assert!(optional || present.len() == values.len(), "required values are all there");
        column.typed::<T>().write_batch(&present, optional.then_some(&levels[..]), None).unwrap();
        column.close().unwrap();
        group.close().unwrap();
        File::read(writer.into_inner().unwrap().into())
    }

    /// The pages of a file's only column and row group.
    fn read(bytes: Bytes) -> File {
        let reader = SerializedFileReader::new(bytes).unwrap();
        let metadata = reader.metadata().row_group(0).column(0).clone();
        let descriptor = metadata.column_descr();
        let physical = match metadata.column_type() {
            Type::BOOLEAN => Physical::Boolean,
            Type::INT32 => Physical::Int32,
            Type::INT64 => Physical::Int64,
            Type::INT96 => Physical::Int96,
            Type::FLOAT => Physical::Float,
            Type::DOUBLE => Physical::Double,
            Type::BYTE_ARRAY => Physical::ByteArray,
            Type::FIXED_LEN_BYTE_ARRAY => {
                Physical::FixedLenByteArray(descriptor.type_length() as u32)
            }
        };
        let mut file = File {
            physical,
            optional: descriptor.max_def_level() == 1,
            pages: Vec::new(),
            dictionary: None,
            // All values', whether their encoding needs it or not.
            characters: match metadata.unencoded_byte_array_data_bytes() {
                Some(bytes) => bytes as usize,
                None => descriptor.type_length().max(0) as usize * metadata.num_values() as usize,
            },
        };
        let group = reader.get_row_group(0).unwrap();
        let mut pages = group.get_column_page_reader(0).unwrap();
        while let Some(page) = pages.get_next_page().unwrap() {
            match page {
                WrittenPage::DictionaryPage { buf, num_values, .. } => {
                    file.dictionary = Some((buf.to_vec(), num_values))
                }
                WrittenPage::DataPage { buf, num_values, encoding, .. } => {
                    file.pages.push(FilePage {
                        content: buf.to_vec(),
                        levels: None,
                        rows: num_values,
                        encoding: encoding_of(encoding),
                    })
                }
                WrittenPage::DataPageV2 {
                    buf, num_values, encoding, def_levels_byte_len, ..
                } => {
                    let (levels, content) = buf.split_at(def_levels_byte_len as usize);
                    file.pages.push(FilePage {
                        content: content.to_vec(),
                        levels: Some(levels.to_vec()),
                        rows: num_values,
                        encoding: encoding_of(encoding),
                    });
                }
            }
        }
        file
    }
}

fn encoding_of(written: Written) -> PageEncoding {
    match written {
        Written::PLAIN => PageEncoding::Plain,
        Written::PLAIN_DICTIONARY | Written::RLE_DICTIONARY => PageEncoding::Dictionary,
        Written::RLE => PageEncoding::Rle,
        Written::DELTA_BINARY_PACKED => PageEncoding::DeltaBinaryPacked,
        Written::DELTA_LENGTH_BYTE_ARRAY => PageEncoding::DeltaLengthByteArray,
        Written::DELTA_BYTE_ARRAY => PageEncoding::DeltaByteArray,
        Written::BYTE_STREAM_SPLIT => PageEncoding::ByteStreamSplit,
        other => panic!("{other} is no encoding of pages"),
    }
}
