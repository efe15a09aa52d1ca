//! Constants too large for a parameter: strings and tables, in one buffer beside the kernel.

use std::sync::Arc;

use datafusion::arrow::array::ArrayRef;

use super::params::{Later, Params};
use crate::column::Column;
use crate::error::Result;
use warpframe_device::{Buffer, Device};

/// `INLINE_BYTES` of the kernels.
const INLINE_BYTES: usize = 12;

/// Constants, each with the parameter that points to it.
#[derive(Debug, Default)]
pub(super) struct Constants(Vec<(Later, Constant)>);

#[derive(Debug)]
enum Constant {
    /// Views, then the characters of the long ones.
    Strings(Vec<Vec<u8>>),
    Bytes(Vec<u8>),
    /// An array of one list.
    List(ArrayRef),
}

impl Constants {
    /// A table of strings; yields the C++ name of its address.
    pub(super) fn strings(&mut self, texts: &[&[u8]], params: &mut Params) -> String {
        let texts = texts.iter().map(|text| text.to_vec()).collect();
        self.add("const view*", Constant::Strings(texts), params)
    }

    /// Bytes, aligned to 16; yields the C++ name of their address.
    pub(super) fn bytes(&mut self, bytes: &[u8], params: &mut Params) -> String {
        self.add("const u8*", Constant::Bytes(bytes.to_vec()), params)
    }

    /// A list, an array of one row; yields the C++ name of its view's address.
    pub(super) fn list(&mut self, list: &ArrayRef, params: &mut Params) -> String {
        self.add("const view*", Constant::List(list.clone()), params)
    }

    fn add(&mut self, ctype: &str, constant: Constant, params: &mut Params) -> String {
        let (name, later) = params.later(ctype);
        self.0.push((later, constant));
        name
    }

    /// Uploads all constants and fills their parameters; yields the buffers, which views may point
    /// into.
    pub(super) fn upload(self, device: &Device, params: &mut Params) -> Result<Vec<Arc<Buffer>>> {
        let (lists, flat): (Vec<_>, Vec<_>) =
            self.0.into_iter().partition(|(_, constant)| matches!(constant, Constant::List(_)));
        let mut buffers = vec![];
        for (later, constant) in lists {
            let Constant::List(list) = constant else { continue };
            let column =
                Column::from_arrays(device, list.data_type(), std::slice::from_ref(&list))?;
            params.set(later, &*column.data);
            params.keep(&column.data);
            buffers.extend(column.characters.iter().cloned());
        }
        buffers.extend(Constants(flat).upload_flat(device, params)?);
        Ok(buffers)
    }

    fn upload_flat(self, device: &Device, params: &mut Params) -> Result<Option<Arc<Buffer>>> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let mut bytes = vec![];
        // Where each constant begins, and for each long string its view and its characters.
        let (mut places, mut long) = (vec![], vec![]);
        for (_, constant) in &self.0 {
            bytes.resize(bytes.len().next_multiple_of(16), 0);
            places.push(bytes.len());
            match constant {
                Constant::Bytes(raw) => bytes.extend(raw),
                Constant::List(_) => {}
                Constant::Strings(texts) => {
                    let views = bytes.len();
                    texts.iter().for_each(|text| bytes.extend(view_of(text)));
                    for (at, text) in
                        texts.iter().enumerate().filter(|(_, text)| text.len() > INLINE_BYTES)
                    {
                        long.push((views + 16 * at, bytes.len()));
                        bytes.extend(text);
                    }
                }
            }
        }
        let buffer = device.alloc("pipeline constants", bytes.len())?;
        for (view, characters) in long {
            let address = buffer.slice(characters).address();
            bytes[view + 8..view + 16].copy_from_slice(&address.to_le_bytes());
        }
        buffer.write(0, &bytes)?;
        let buffer = Arc::new(buffer);
        for ((later, _), place) in self.0.iter().zip(places) {
            params.set(*later, buffer.slice(place));
        }
        params.keep(&buffer);
        Ok(Some(buffer))
    }
}

/// The view of a string, but for the address of a long one.
fn view_of(text: &[u8]) -> [u8; 16] {
    let mut view = [0u8; 16];
    view[..4].copy_from_slice(&(text.len() as u32).to_le_bytes());
    let inline = if text.len() <= INLINE_BYTES { text.len() } else { 4 };
    view[4..4 + inline].copy_from_slice(&text[..inline]);
    view
}
