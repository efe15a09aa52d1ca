//! Columns that a kernel writes: their places in the kernel, their memory, and what is known of
//! them afterwards. A struct has the places of its fields, and one for its validity.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;

use super::params::{Later, Params};
use super::prepared::PreparedKernel;
use super::statements::Code;
use super::value::Value;
use crate::column::{Column, Encoding, Repr, Stats};
use crate::error::Result;
use warpframe_device::{Buffer, Device};

/// What to do with dictionary codes in outputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Codes {
    /// Codes stay codes.
    Keep,
    /// Codes become views, so that columns with different dictionaries can be concatenated.
    Decode,
}

/// An output column before the kernel ran.
pub(super) struct OutputColumn {
    dtype: DataType,
    repr: Repr,
    encoding: Encoding,
    stats: Stats,
    data: Buffer,
    validity: Option<Buffer>,
    fields: Vec<OutputColumn>,
}

/// Places where the kernel learns its outputs' addresses.
pub(super) struct OutputPlace {
    value: Value,
    ctype: &'static str,
    /// `None` for a struct, which has no values of its own.
    data: Option<(String, Later)>,
    validity: Option<(String, Later)>,
    fields: Vec<OutputPlace>,
}

impl OutputPlace {
    /// Binds no memory, for a kernel that does not store.
    pub(super) fn leave_out(&self, prepared: &mut PreparedKernel) {
        for (_, later) in self.data.iter().chain(&self.validity) {
            prepared.params.set(*later, 0u64);
        }
        self.fields.iter().for_each(|field| field.leave_out(prepared));
    }
}

pub(super) fn place(value: Value, codes: Codes, params: &mut Params) -> OutputPlace {
    let as_codes = codes == Codes::Keep && value.dictionary.is_some();
    let repr = Repr::of(&value.dtype).expect("the planner admits only types with a representation");
    let ctype = if as_codes { "u32" } else { repr.device_type() };
    let data = (repr != Repr::Struct).then(|| params.later(&format!("{ctype}*")));
    let validity = value.valid.as_ref().map(|_| params.later("u8*"));
    let fields = value.fields.iter().map(|field| place(field.clone(), codes, params)).collect();
    OutputPlace { value, ctype, data, validity, fields }
}

pub(super) fn store(place: &OutputPlace, out: &mut Code) {
    let value = &place.value;
    if let Some((target, _)) = &place.data {
        let code = match (&value.dictionary, place.ctype) {
            (Some(input), "u32") => match &value.valid {
                Some(valid) => format!("{valid} ? {} : 0u", input.code),
                None => input.code.clone(),
            },
            _ => value.stored(),
        };
        out.store(target, code);
    }
    if let (Some((target, _)), Some(valid)) = (&place.validity, &value.valid) {
        out.store(target, format_args!("{valid} ? 1 : 0"));
    }
    place.fields.iter().for_each(|field| store(field, out));
}

pub(super) fn allocate(
    device: &Device,
    operator: &'static str,
    place: &OutputPlace,
    codes: Codes,
    rows: u64,
    prepared: &mut PreparedKernel,
) -> Result<OutputColumn> {
    let value = &place.value;
    let repr = Repr::of(&value.dtype).expect("checked by `place`");
    let dictionary = value.dictionary.as_ref().filter(|_| codes == Codes::Keep);
    let encoding = match dictionary {
        Some(input) => Encoding::Dictionary(input.dictionary.clone()),
        None => Encoding::Plain,
    };
    let data = device.alloc(operator, rows as usize * encoding.stored(repr).width())?;
    if let Some((_, later)) = &place.data {
        prepared.params.set(*later, &data);
    }
    let validity = match &place.validity {
        Some((_, later)) => {
            let buffer = device.alloc(operator, rows as usize)?;
            prepared.params.set(*later, &buffer);
            Some(buffer)
        }
        None => None,
    };
    let range = encoding.range().or_else(|| repr.is_integer().then(|| value.bounds()));
    let stats = Stats {
        range,
        magnitude: value.magnitude,
        unit: value.unit,
        longest: value.longest,
        ..Stats::default()
    };
    let fields =
        place.fields.iter().map(|field| allocate(device, operator, field, codes, rows, prepared));
    let fields = fields.collect::<Result<_>>()?;
    Ok(OutputColumn { dtype: value.dtype.clone(), repr, encoding, stats, data, validity, fields })
}

pub(super) fn finish(
    device: &Device,
    operator: &'static str,
    outputs: Vec<OutputColumn>,
    kept: u64,
    rows: u64,
    prepared: &PreparedKernel,
) -> Result<(u64, Vec<Column>)> {
    let characters: Arc<[Arc<Buffer>]> =
        prepared.characters.iter().chain(&prepared.made).cloned().collect();
    let columns = outputs
        .into_iter()
        .map(|output| finished(device, operator, output, kept, rows, &characters));
    Ok((kept, columns.collect::<Result<Vec<_>>>()?))
}

fn finished(
    device: &Device,
    operator: &'static str,
    output: OutputColumn,
    kept: u64,
    rows: u64,
    characters: &Arc<[Arc<Buffer>]>,
) -> Result<Column> {
    let points = output.encoding.stored(output.repr).points();
    let shrink = |buffer: Buffer| shrunk(device, operator, buffer, kept, rows);
    let fields = output
        .fields
        .into_iter()
        .map(|field| finished(device, operator, field, kept, rows, characters));
    Ok(Column {
        dtype: output.dtype,
        len: kept as usize,
        offset: 0,
        children: fields.collect::<Result<Vec<_>>>()?.into(),
        data: Arc::new(shrink(output.data)?),
        validity: output.validity.map(|v| shrink(v).map(Arc::new)).transpose()?,
        encoding: output.encoding,
        characters: if points { characters.clone() } else { Arc::new([]) },
        stats: output.stats,
    })
}

/// Copies a buffer that has room for far more rows than it holds into one that fits.
fn shrunk(
    device: &Device,
    operator: &'static str,
    buffer: Buffer,
    kept: u64,
    rows: u64,
) -> Result<Buffer> {
    const WORTHWHILE: usize = 1 << 20;
    if buffer.len() < WORTHWHILE || kept > rows / 2 {
        return Ok(buffer);
    }
    let bytes = buffer.len() / rows as usize * kept as usize;
    let fitting = device.alloc(operator, bytes)?;
    fitting.copy_from(0, &buffer, 0, bytes)?;
    Ok(fitting)
}
