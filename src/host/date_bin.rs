//! `date_bin` for all of a type's range, and with it `time_bucket`.
//!
//! DataFusion's (55.2) goes through nanoseconds, which end in the years 1677 and 2262: what lies
//! beyond is null. Here timestamps without a zone in coarser units are put into bins by 128 bits, as
//! kernels do (`kernels/interval.cuh`). The rest is DataFusion's.

use std::sync::{Arc, LazyLock};

use chrono::{Datelike, Months, NaiveDate};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, PrimitiveArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{
    DataType, Field, FieldRef, Int64Type, IntervalMonthDayNano, TimeUnit,
};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion::logical_expr::type_coercion::functions::fields_with_udf;
use datafusion::logical_expr::{
    ColumnarValue, Documentation, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

const DAY_NANOS: i64 = 86_400_000_000_000;

pub(crate) fn date_bin() -> Arc<ScalarUDF> {
    static SHARED: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
        let signature = Signature::user_defined(Volatility::Immutable);
        let inner = datafusion::functions::datetime::date_bin();
        Arc::new(ScalarUDF::from(DateBin { inner, signature }))
    });
    SHARED.clone()
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct DateBin {
    inner: Arc<ScalarUDF>,
    signature: Signature,
}

impl ScalarUDFImpl for DateBin {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.inner.documentation()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    /// DataFusion's takes where a bin begins in nanoseconds alone, or all of it.
    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let field = |(at, dtype): (usize, &DataType)| -> FieldRef {
            let dtype = match (at, dtype) {
                (2, DataType::Timestamp(_, zone)) => {
                    DataType::Timestamp(TimeUnit::Nanosecond, zone.clone())
                }
                _ => dtype.clone(),
            };
            Arc::new(Field::new("value", dtype, true))
        };
        let fields: Vec<_> = types.iter().enumerate().map(field).collect();
        let fields = fields_with_udf(&fields, self.inner.as_ref())?;
        Ok(fields.iter().map(|field| field.data_type().clone()).collect())
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.inner.return_type(types)
    }

    fn output_ordering(&self, input: &[ExprProperties]) -> Result<SortProperties> {
        self.inner.output_ordering(input)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let Some((stride, time, origin)) = in_bins(&args.args) else {
            return self.inner.invoke_with_args(args);
        };
        let DataType::Timestamp(unit, None) = time.data_type() else {
            return self.inner.invoke_with_args(args);
        };
        let nanos = match unit {
            TimeUnit::Second => 1_000_000_000,
            TimeUnit::Millisecond => 1_000_000,
            TimeUnit::Microsecond => 1_000,
            TimeUnit::Nanosecond => return self.inner.invoke_with_args(args),
        };
        let array = time.to_array(args.number_rows)?;
        let ticks = cast(&array, &DataType::Int64)?;
        let bin = |ticks: i64| match stride {
            Stride::Nanos(stride) => bin(ticks, nanos, stride, origin),
            Stride::Months(stride) => bin_of_months(ticks, nanos, stride, origin),
        };
        let bins: PrimitiveArray<Int64Type> = ticks.as_primitive::<Int64Type>().unary_opt(bin);
        let bins = cast(&(Arc::new(bins) as ArrayRef), array.data_type())?;
        Ok(match time {
            ColumnarValue::Scalar(_) => {
                ColumnarValue::Scalar(ScalarValue::try_from_array(&bins, 0)?)
            }
            ColumnarValue::Array(_) => ColumnarValue::Array(bins),
        })
    }
}

/// The length of bins.
#[derive(Debug, Clone, Copy)]
enum Stride {
    Nanos(i64),
    Months(i64),
}

/// The stride, what is put into bins, and where one begins, where both ends are constants.
fn in_bins(args: &[ColumnarValue]) -> Option<(Stride, &ColumnarValue, i64)> {
    let (stride, time, origin) = match args {
        [stride, time] => (stride, time, 0),
        [
            stride,
            time,
            ColumnarValue::Scalar(ScalarValue::TimestampNanosecond(Some(origin), None)),
        ] => (stride, time, *origin),
        _ => return None,
    };
    let ColumnarValue::Scalar(ScalarValue::IntervalMonthDayNano(Some(stride))) = stride else {
        return None;
    };
    let IntervalMonthDayNano { months, days, nanoseconds } = *stride;
    let stride = match (months, i64::from(days).checked_mul(DAY_NANOS)?.checked_add(nanoseconds)?) {
        (0, nanos) if nanos > 0 => Stride::Nanos(nanos),
        (months, 0) if months > 0 && days == 0 => Stride::Months(months.into()),
        _ => return None,
    };
    Some((stride, time, origin))
}

fn bin(ticks: i64, nanos: i64, stride: i64, origin: i64) -> Option<i64> {
    let distance = i128::from(ticks) * i128::from(nanos) - i128::from(origin);
    let begin = distance - distance.rem_euclid(stride.into()) + i128::from(origin);
    i64::try_from(begin / i128::from(nanos)).ok()
}

fn bin_of_months(ticks: i64, nanos: i64, stride: i64, origin: i64) -> Option<i64> {
    let per_day = DAY_NANOS / nanos;
    let day = |day: i64| NaiveDate::from_epoch_days(i32::try_from(day).ok()?);
    let (date, first) = (day(ticks.div_euclid(per_day))?, day(origin.div_euclid(DAY_NANOS))?);
    let months = |date: NaiveDate| i64::from(date.year()) * 12 + i64::from(date.month0());
    let distance = months(date) - months(first);
    let begin = |shift: i64| {
        let by = Months::new(u32::try_from(shift.unsigned_abs()).ok()?);
        let begun = match shift < 0 {
            true => first.checked_sub_months(by)?,
            false => first.checked_add_months(by)?,
        };
        let rest = origin.rem_euclid(DAY_NANOS) / nanos;
        i64::from(begun.to_epoch_days()).checked_mul(per_day)?.checked_add(rest)
    };
    let shift = distance - distance.rem_euclid(stride);
    let begun = begin(shift)?;
    if begun > ticks { begin(shift - stride) } else { Some(begun) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_lie_all_over_the_calendar() {
        let day = |year, month, day| {
            i64::from(NaiveDate::from_ymd_opt(year, month, day).expect("a date").to_epoch_days())
        };
        let origin = day(2000, 1, 1) * DAY_NANOS;
        let at = day(1600, 8, 17) * 86_400 + 40_000;
        let second = 1_000_000_000;
        assert_eq!(bin_of_months(at, second, 1, origin), Some(day(1600, 8, 1) * 86_400));
        assert_eq!(bin_of_months(at, second, 12, origin), Some(day(1600, 1, 1) * 86_400));
        assert_eq!(bin(at, second, DAY_NANOS, origin), Some(day(1600, 8, 17) * 86_400));
        assert_eq!(
            bin(day(9999, 12, 31) * 86_400 + 5, second, DAY_NANOS, 0),
            Some(day(9999, 12, 31) * 86_400)
        );
    }
}
