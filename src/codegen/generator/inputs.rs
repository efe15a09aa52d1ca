//! What expressions over a level of the flow read: its columns, parameters and constants.

use datafusion::arrow::array::ArrayRef;
use datafusion::common::Column as Name;

use super::Generator;
use crate::codegen::emit::Emitter;
use crate::codegen::value::{Inputs, Value};
use crate::error::{ErrorKind, Result};

/// The columns of one level, as expressions over it see them.
pub(super) struct At<'g, 'a> {
    pub(super) generator: &'g mut Generator<'a>,
    pub(super) level: usize,
}

impl Inputs for At<'_, '_> {
    fn column(&mut self, column: &Name, out: &mut Emitter) -> Result<Value> {
        let at =
            self.generator.levels[self.level].schema.index_of_column(column).map_err(|_| {
                let schema = &self.generator.levels[self.level].schema;
                ErrorKind::ColumnNotFound { name: column.flat_name(), known: schema.field_names() }
            })?;
        self.generator.value(self.level, at, out)
    }

    fn parameter(&mut self, bits: u64) -> String {
        self.generator.word(bits)
    }

    fn string(&mut self, text: &str) -> String {
        format!("(*{})", self.strings(&[text]))
    }

    fn octets(&mut self, bytes: &[u8]) -> String {
        format!("(*{})", self.generator.constants.strings(&[bytes], &mut self.generator.params))
    }

    fn constant(&mut self, bytes: &[u8]) -> String {
        self.generator.constants.bytes(bytes, &mut self.generator.params)
    }

    fn strings(&mut self, texts: &[&str]) -> String {
        let texts: Vec<&[u8]> = texts.iter().map(|text| text.as_bytes()).collect();
        self.generator.constants.strings(&texts, &mut self.generator.params)
    }

    fn list(&mut self, list: &ArrayRef) -> String {
        format!("(*{})", self.generator.constants.list(list, &mut self.generator.params))
    }

    fn arena(&mut self) {
        self.generator.makes_text = true;
    }
}
