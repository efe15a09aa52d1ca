//! Values of a block as Arrow arrays.
//!
//! Texts stay where they lie: the arrays are views into the block's bytes, unless they would keep
//! much more alive than they show.

use std::borrow::Cow;
use std::sync::Arc;

use datafusion::arrow::array::*;
use datafusion::arrow::buffer::{Buffer, NullBuffer};
use datafusion::arrow::datatypes::*;

use super::dialect::Dialect;
use super::tokens::ValueSpan;
use super::values::{
    Timestamp, boolean, date, decimal, double, inferred_double, integer, timestamp, without_blanks,
};
use crate::host::cast_exactly;

/// Texts up to this length lie in their views.
const INLINE: usize = 12;

/// The values of one column of a block.
#[derive(Debug)]
pub(crate) struct BlockColumn<'a> {
    pub(crate) bytes: &'a Buffer,
    /// The bytes, if they are UTF-8 as a whole.
    pub(crate) text: Option<&'a str>,
    /// Of all wanted columns, row by row.
    pub(crate) spans: &'a [ValueSpan],
    /// Which of them, and how many there are.
    pub(crate) slot: usize,
    pub(crate) stride: usize,
    pub(crate) dialect: &'a Dialect,
}

/// A value that is not of its column's type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Misfit {
    pub(crate) row: usize,
    /// It is text, but no UTF-8.
    pub(crate) is_no_text: bool,
}

/// Where values are that are not null, if some are.
#[derive(Debug, Default)]
struct ValidityBuilder(Option<BooleanBufferBuilder>);

impl ValidityBuilder {
    fn push_null(&mut self, row: usize, rows: usize) {
        let valid = self.0.get_or_insert_with(|| BooleanBufferBuilder::new(rows));
        valid.append_n(row - valid.len(), true);
        valid.append(false);
    }

    fn finish(self, rows: usize) -> Option<NullBuffer> {
        self.0.map(|mut valid| {
            valid.append_n(rows - valid.len(), true);
            NullBuffer::new(valid.finish())
        })
    }
}

impl<'a> BlockColumn<'a> {
    fn spans(&self) -> impl Iterator<Item = ValueSpan> + '_ {
        self.spans.iter().skip(self.slot).step_by(self.stride).copied()
    }

    fn rows(&self) -> usize {
        self.spans.len() / self.stride
    }

    /// The text of a row's value, for errors.
    pub(crate) fn shown(&self, row: usize) -> Cow<'_, [u8]> {
        let span = self.spans[self.slot + row * self.stride];
        self.dialect.text(self.bytes, span).unwrap_or_default()
    }

    /// Where a row's value begins.
    pub(crate) fn place(&self, row: usize) -> usize {
        self.spans[self.slot + row * self.stride].range().start
    }

    /// The column as an array of a type. Where the type was inferred, values have the forms that
    /// inference knows; otherwise all that `CAST` takes.
    ///
    /// # Errors
    /// The first value that does not fit.
    pub(crate) fn array(
        &self,
        data_type: &DataType,
        is_inferred: bool,
    ) -> Result<ArrayRef, Misfit> {
        if *data_type == DataType::Utf8View {
            return Ok(Arc::new(self.strings()?));
        }
        match self.typed(data_type, is_inferred) {
            Some(Ok(array)) => Ok(array),
            Some(Err(misfit)) if is_inferred => Err(misfit),
            _ => self.cast(data_type),
        }
    }

    /// The column by the parsers of this module's types; `None` for other types.
    fn typed(&self, data_type: &DataType, is_inferred: bool) -> Option<Result<ArrayRef, Misfit>> {
        let notation = &self.dialect.notation;
        let is_plain = !notation.decimal_comma && notation.thousands.is_none();
        let is_iso = notation.date_format.is_none() && notation.timestamp_format.is_none();
        let day = |text: &[u8]| if is_iso { date(text) } else { notation.date(text) };
        let time = |text: &[u8]| {
            let read = if is_iso { timestamp(text) } else { notation.timestamp(text) };
            read.or_else(|| midnight(day(text)?))
        };
        let of_zone = |zoned: bool| move |time: Timestamp| (time.is_zoned == zoned).then_some(time);
        let zone = |zone: &Option<Arc<str>>| match zone.as_deref() {
            None => Some(false),
            Some(super::seen::UTC) => Some(true),
            Some(_) => None,
        };
        macro_rules! numbers {
            ($of:ty, $parse:expr) => {{
                let parse = $parse;
                if is_plain {
                    self.primitive::<$of>(|text| parse(text))
                } else {
                    self.primitive::<$of>(|text| parse(&notation.number(text)?))
                }
            }};
        }
        let array = match data_type {
            DataType::Boolean => return Some(self.booleans().map(|array| Arc::new(array) as _)),
            DataType::Int64 => numbers!(Int64Type, integer).map(erased),
            DataType::Float64 if is_inferred => numbers!(Float64Type, inferred_double).map(erased),
            DataType::Float64 => numbers!(Float64Type, double).map(erased),
            DataType::Decimal128(precision, scale) => {
                let (precision, scale) = (*precision, *scale);
                let array = numbers!(Decimal128Type, |text: &[u8]| decimal(text, precision, scale));
                array.map(|array| erased(array.with_data_type(data_type.clone())))
            }
            DataType::Date32 => self.primitive::<Date32Type>(day).map(erased),
            DataType::Timestamp(TimeUnit::Microsecond, of) => {
                let fits = of_zone(zone(of)?);
                let array = self.primitive::<TimestampMicrosecondType>(|text| {
                    time(text).and_then(fits)?.micros()
                });
                array.map(|array| erased(array.with_timezone_opt(of.clone())))
            }
            DataType::Timestamp(TimeUnit::Nanosecond, of) => {
                let fits = of_zone(zone(of)?);
                let array = self.primitive::<TimestampNanosecondType>(|text| {
                    time(text).and_then(fits)?.nanos()
                });
                array.map(|array| erased(array.with_timezone_opt(of.clone())))
            }
            _ => return None,
        };
        Some(array)
    }

    fn primitive<T: ArrowPrimitiveType>(
        &self,
        parse: impl Fn(&[u8]) -> Option<T::Native>,
    ) -> Result<PrimitiveArray<T>, Misfit> {
        let rows = self.rows();
        let mut values: Vec<T::Native> = Vec::with_capacity(rows);
        let mut validity = ValidityBuilder::default();
        let is_plain = self.dialect.nulls.is_empty();
        for (row, span) in self.spans().enumerate() {
            // What most values are: neither quoted nor padded.
            if is_plain && !span.is_quoted() {
                let raw = &self.bytes[span.range()];
                if let Some(value) = parse(raw).filter(|_| !raw.is_empty()) {
                    values.push(value);
                    continue;
                }
            }
            match self.bare(span) {
                None => {
                    validity.push_null(row, rows);
                    values.push(T::Native::default());
                }
                Some(text) => values.push(parse(&text).ok_or(Misfit { row, is_no_text: false })?),
            }
        }
        Ok(PrimitiveArray::new(values.into(), validity.finish(rows)))
    }

    fn booleans(&self) -> Result<BooleanArray, Misfit> {
        let rows = self.rows();
        let mut values = BooleanBufferBuilder::new(rows);
        let mut validity = ValidityBuilder::default();
        for (row, span) in self.spans().enumerate() {
            match self.bare(span) {
                None => {
                    validity.push_null(row, rows);
                    values.append(false);
                }
                Some(text) => {
                    values.append(boolean(&text).ok_or(Misfit { row, is_no_text: false })?)
                }
            }
        }
        Ok(BooleanArray::new(values.finish(), validity.finish(rows)))
    }

    /// A value's text without blanks around it, in columns that are not text: NULL where nothing is
    /// left.
    fn bare(&self, span: ValueSpan) -> Option<Cow<'a, [u8]>> {
        let text = match self.dialect.text(self.bytes, span)? {
            Cow::Borrowed(text) => Cow::Borrowed(without_blanks(text)),
            Cow::Owned(text) => Cow::Owned(without_blanks(&text).to_vec()),
        };
        (!text.is_empty()).then_some(text)
    }

    fn strings(&self) -> Result<StringViewArray, Misfit> {
        let long = |span: ValueSpan| {
            Some(span.range().len()).filter(|length| *length > INLINE && !span.is_rewritten())
        };
        let long: usize = self.spans().filter_map(long).sum();
        let mut builder = StringViewBuilder::with_capacity(self.rows());
        // Views keep the whole block: for a part of it, texts are copied.
        let block =
            (long * 2 >= self.bytes.len()).then(|| builder.append_block(self.bytes.clone()));
        for (row, span) in self.spans().enumerate() {
            let misfit = Misfit { row, is_no_text: true };
            match (self.dialect.text(self.bytes, span), block) {
                (None, _) => builder.append_null(),
                (Some(Cow::Borrowed(text)), Some(block)) if text.len() > INLINE => {
                    let offset = text.as_ptr() as usize - self.bytes.as_ptr() as usize;
                    let appended = builder.try_append_view(block, offset as u32, text.len() as u32);
                    appended.map_err(|_| misfit)?;
                }
                (Some(Cow::Borrowed(text)), _) => {
                    let offset = text.as_ptr() as usize - self.bytes.as_ptr() as usize;
                    let checked = self.text.and_then(|all| all.get(offset..offset + text.len()));
                    match checked {
                        Some(text) => builder.append_value(text),
                        None => {
                            builder.append_value(std::str::from_utf8(text).map_err(|_| misfit)?)
                        }
                    }
                }
                (Some(Cow::Owned(text)), _) => {
                    builder.append_value(std::str::from_utf8(&text).map_err(|_| misfit)?);
                }
            }
        }
        Ok(builder.finish())
    }

    /// The rows whose values do not fit a type.
    pub(crate) fn misfits(&self, data_type: &DataType, is_inferred: bool) -> Vec<usize> {
        let typed = self.typed(data_type, is_inferred);
        if matches!(typed, Some(Ok(_))) {
            return vec![];
        }
        if !is_inferred && *data_type != DataType::Utf8View {
            return self.cast_or_null(data_type).1.into_iter().map(|misfit| misfit.row).collect();
        }
        // One after the other.
        let (mut found, mut begin) = (vec![], 0);
        while begin < self.rows() {
            let rest = BlockColumn { spans: &self.spans[begin * self.stride..], ..*self };
            let Err(misfit) = rest.array(data_type, is_inferred) else { break };
            found.push(begin + misfit.row);
            begin += misfit.row + 1;
        }
        found
    }

    /// What `CAST` makes of the texts.
    fn cast(&self, data_type: &DataType) -> Result<ArrayRef, Misfit> {
        let (array, misfits) = self.cast_or_null(data_type);
        misfits.first().map_or(Ok(array), |misfit| Err(*misfit))
    }

    /// What `CAST` makes of the texts, NULL for what it refuses, and those rows.
    fn cast_or_null(&self, data_type: &DataType) -> (ArrayRef, Vec<Misfit>) {
        let mut misfits = vec![];
        let mut builder = StringViewBuilder::with_capacity(self.rows());
        let is_text = data_type.is_string() || data_type.is_binary();
        let is_number = data_type.is_numeric();
        for (row, span) in self.spans().enumerate() {
            let text = if is_text { self.dialect.text(self.bytes, span) } else { self.bare(span) };
            let Some(text) = text else {
                builder.append_null();
                continue;
            };
            let text = match is_number {
                true => {
                    self.dialect.notation.number(&text).map(|text| Cow::Owned(text.into_owned()))
                }
                false => Some(text),
            };
            match text.as_deref().map(std::str::from_utf8) {
                Some(Ok(text)) => builder.append_value(text),
                wrong => {
                    misfits.push(Misfit { row, is_no_text: wrong.is_some() });
                    builder.append_null();
                }
            }
        }
        let texts: ArrayRef = Arc::new(builder.finish());
        let Ok(cast) = cast_exactly(&texts, data_type, true) else {
            let all = (0..texts.len()).filter(|row| texts.is_valid(*row));
            misfits.extend(all.map(|row| Misfit { row, is_no_text: false }));
            return (new_null_array(data_type, texts.len()), misfits);
        };
        let lost = (0..texts.len()).filter(|row| cast.is_null(*row) && !texts.is_null(*row));
        misfits.extend(lost.map(|row| Misfit { row, is_no_text: false }));
        misfits.sort_by_key(|misfit| misfit.row);
        (cast, misfits)
    }
}

fn erased<T: ArrowPrimitiveType>(array: PrimitiveArray<T>) -> ArrayRef {
    Arc::new(array)
}

/// The begin of a day.
fn midnight(days: i32) -> Option<Timestamp> {
    Some(Timestamp { seconds: i64::from(days) * 86_400, nanos: 0, is_fine: false, is_zoned: false })
}
