//! A walk over Thrift's compact protocol, in which Parquet's footers and page headers are written.
//!
//! The parquet crate decodes them. It takes sizes on trust, and its stack grows with the nesting; a
//! process that asks for more memory than there is, or that runs out of stack, ends. So their bytes
//! are walked over first.
//!
//! ```text
//!   field:  id since the last: 4 bits | type: 4 bits | value       id 0: the id follows, zigzag
//!   list:   size: 4 bits | type: 4 bits | elements                 size 15: the size follows
//! ```

/// What is wrong with the bytes.
pub(super) type Broken = String;

/// Types of values, as field headers have them.
pub(super) const TRUE: u8 = 1;
pub(super) const FALSE: u8 = 2;
pub(super) const I32: u8 = 5;
pub(super) const LIST: u8 = 9;
pub(super) const STRUCT: u8 = 12;

/// Most structs and lists within one another, besides those of a schema: Parquet's own have fewer
/// than ten.
const DEEPEST: usize = 32;

/// Bytes, read from the front.
#[derive(Clone)]
pub(super) struct Compact<'a> {
    bytes: &'a [u8],
}

impl<'a> Compact<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Compact { bytes }
    }

    /// Bytes that are left.
    pub(super) fn left(&self) -> usize {
        self.bytes.len()
    }

    fn take(&mut self, count: u64) -> Result<&'a [u8], Broken> {
        let taken =
            usize::try_from(count).ok().and_then(|count| self.bytes.split_at_checked(count));
        let (taken, rest) = taken.ok_or("it ends within a value")?;
        self.bytes = rest;
        Ok(taken)
    }

    fn byte(&mut self) -> Result<u8, Broken> {
        Ok(self.take(1)?[0])
    }

    fn unsigned(&mut self) -> Result<u64, Broken> {
        // Nearly all are short.
        if let Some((&byte, rest)) = self.bytes.split_first().filter(|(byte, _)| **byte < 0x80) {
            self.bytes = rest;
            return Ok(byte.into());
        }
        let mut value = 0;
        for place in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7F) << place;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err("an integer of more than 64 bits".into())
    }

    /// An integer of any width.
    pub(super) fn integer(&mut self) -> Result<i64, Broken> {
        let zigzag = self.unsigned()?;
        Ok((zigzag >> 1) as i64 ^ -((zigzag & 1) as i64))
    }

    /// Elements of a list, and their type.
    pub(super) fn list(&mut self) -> Result<(u64, u8), Broken> {
        let header = self.byte()?;
        let size = match header >> 4 {
            15 => self.unsigned()?,
            size => size.into(),
        };
        // Each element is a byte or more.
        if size > self.left() as u64 {
            return Err(format!("a list of {size} elements in {} bytes", self.left()));
        }
        Ok((size, header & 15))
    }

    /// Calls `each` with the id and type of each field of a struct; it has to read the value or
    /// skip it.
    pub(super) fn fields(
        &mut self,
        mut each: impl FnMut(&mut Self, i64, u8) -> Result<(), Broken>,
    ) -> Result<(), Broken> {
        let mut id = 0i64;
        loop {
            let header = self.byte()?;
            if header == 0 {
                return Ok(());
            }
            id = match header >> 4 {
                0 => self.integer()?,
                since => id.wrapping_add(since.into()),
            };
            each(self, id, header & 15)?;
        }
    }

    /// Passes over the value of a field.
    pub(super) fn skip(&mut self, kind: u8) -> Result<(), Broken> {
        self.skip_within(kind, DEEPEST)
    }

    fn skip_within(&mut self, kind: u8, deepest: usize) -> Result<(), Broken> {
        let deeper = deepest.checked_sub(1).ok_or("values within one another are too deep")?;
        match kind {
            // Truth values of fields lie in their types.
            1 | 2 => Ok(()),
            3 => self.take(1).map(|_| ()),
            4..=6 => self.unsigned().map(|_| ()),
            7 => self.take(8).map(|_| ()),
            8 => {
                let bytes = self.unsigned()?;
                self.take(bytes).map(|_| ())
            }
            LIST | 10 => {
                let (size, of) = self.list()?;
                (0..size).try_for_each(|_| self.skip_element_within(of, deeper))
            }
            11 => {
                let size = self.unsigned()?;
                let of = if size == 0 { 0 } else { self.byte()? };
                for _ in 0..size {
                    self.skip_element_within(of >> 4, deeper)?;
                    self.skip_element_within(of & 15, deeper)?;
                }
                Ok(())
            }
            STRUCT => self.fields(|this, _, kind| this.skip_within(kind, deeper)),
            13 => self.take(16).map(|_| ()),
            other => Err(format!("a value of the unknown type {other}")),
        }
    }

    /// Passes over an element of a list.
    pub(super) fn skip_element(&mut self, kind: u8) -> Result<(), Broken> {
        self.skip_element_within(kind, DEEPEST)
    }

    fn skip_element_within(&mut self, kind: u8, deepest: usize) -> Result<(), Broken> {
        match kind {
            1 | 2 => self.take(1).map(|_| ()),
            kind => self.skip_within(kind, deepest),
        }
    }
}

/// Appends the header of a list of so many structs.
pub(super) fn put_list(bytes: &mut Vec<u8>, count: usize) {
    if count < 15 {
        return bytes.push((count as u8) << 4 | STRUCT);
    }
    bytes.push(15 << 4 | STRUCT);
    let mut rest = count;
    while rest >= 0x80 {
        bytes.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    bytes.push(rest as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_have_their_ids_and_values() {
        // 1: i32 -3; 3: "ab"; 20: true; 21: list of two i32.
        let bytes = [0x15, 5, 0x28, 2, b'a', b'b', 0x01, 40, 0x19, 0x25, 2, 4, 0, 9];
        let mut compact = Compact::new(&bytes);
        let mut seen = vec![];
        let walked = compact.fields(|this, id, kind| {
            match kind {
                I32 => seen.push((id, this.integer()?)),
                _ => {
                    seen.push((id, 0));
                    this.skip(kind)?;
                }
            }
            Ok(())
        });
        assert_eq!(walked, Ok(()));
        assert_eq!(seen, [(1, -3), (3, 0), (20, 0), (21, 0)]);
        assert_eq!(compact.left(), 1);
    }

    #[test]
    fn the_header_of_a_list_is_read_as_it_was_written() {
        for count in [0, 1, 14, 15, 127, 128, 300, 100_000] {
            let mut bytes = vec![];
            put_list(&mut bytes, count);
            bytes.resize(bytes.len() + count, 0);
            let mut compact = Compact::new(&bytes);
            assert_eq!(compact.list(), Ok((count as u64, STRUCT)));
            assert_eq!(compact.left(), count);
        }
    }

    #[test]
    fn sizes_are_not_taken_on_trust() {
        let list = [0x19, 0xFC, 0xFF, 0xFF, 0xFF, 0xFF, 0x07, 0];
        assert!(Compact::new(&list).skip(STRUCT).unwrap_err().contains("2147483647 elements"));
        let text = [0x18, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01];
        assert!(Compact::new(&text).skip(STRUCT).unwrap_err().contains("ends within"));
        let map = [0x1B, 0xFF, 0xFF, 0x03, 0x11];
        assert!(Compact::new(&map).skip(STRUCT).is_err());
        assert!(Compact::new(&[0x1C; 100_000]).skip(STRUCT).unwrap_err().contains("too deep"));
        assert!(Compact::new(&[0x15; 1]).skip(STRUCT).is_err());
    }
}
