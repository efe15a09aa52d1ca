//! Which buffers a column has, for whoever keeps it and may let go of it.

use std::sync::Arc;

use super::{Column, Encoding};
use warpframe_device::{Buffer, HeldBuffer};

impl Column {
    /// All its buffers, and those of its fields. The values lead ([`HeldBuffer::leads`]): whoever
    /// uses the column has them.
    pub(crate) fn held_buffers(&self) -> Vec<HeldBuffer> {
        let mut held = vec![];
        self.hold(1, true, &mut held);
        held
    }

    /// `outer`: how many hold what this column is part of.
    fn hold(&self, outer: usize, leads: bool, held: &mut Vec<HeldBuffer>) {
        let mut push = |buffer: &Arc<Buffer>, outer: usize, leads| {
            let users = Arc::strong_count(buffer).max(outer);
            held.push(HeldBuffer {
                address: buffer.address(),
                bytes: buffer.len() as u64,
                users,
                leads,
            });
        };
        push(&self.data, outer, leads);
        self.validity.iter().for_each(|validity| push(validity, outer, false));
        if let Encoding::Dictionary(dictionary) = &self.encoding {
            let outer = outer.max(Arc::strong_count(dictionary));
            push(&dictionary.views, outer, false);
            let characters = outer.max(Arc::strong_count(&dictionary.characters));
            dictionary.characters.iter().for_each(|buffer| push(buffer, characters, false));
        }
        let characters = outer.max(Arc::strong_count(&self.characters));
        self.characters.iter().for_each(|buffer| push(buffer, characters, false));
        let children = outer.max(Arc::strong_count(&self.children));
        self.children.iter().for_each(|child| child.hold(children, false, held));
    }
}
