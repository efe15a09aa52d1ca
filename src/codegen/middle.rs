//! Medians and percentiles: a value of the sorted ones, or between two that stand next to each
//! other.

use datafusion::arrow::datatypes::DataType;

use super::emit::Emitter;
use super::generator::Generator;
use super::span::Span;
use super::value::Value;
use crate::column::Repr;

/// Which value of sorted ones.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Middle {
    Median,
    /// At a share of the way from the first to the last.
    Percentile(f64),
}

/// Places among sorted values, as names: those that the value lies between, and for percentiles how
/// near to the upper one.
pub(super) struct Between {
    pub(super) low: String,
    pub(super) high: String,
    weight: Option<String>,
}

impl Middle {
    /// The places (`u32`) among the values of a span; of an empty one, as if there were one.
    pub(super) fn within(
        self,
        Span { begin, end }: &Span,
        generator: &mut Generator<'_>,
        out: &mut Emitter,
    ) -> Between {
        let count = out.let_("u32", format_args!("maximum({end} - {begin}, 1u)"));
        self.places(&count, generator, out)
    }

    /// The places (`u32`) among `count` values, the name of a number that is not 0.
    pub(super) fn places(
        self,
        count: &str,
        generator: &mut Generator<'_>,
        out: &mut Emitter,
    ) -> Between {
        let Middle::Percentile(share) = self else {
            out.divides(2);
            let low = out.let_("u32", format_args!("({count} - 1) / 2"));
            return Between {
                low,
                high: out.let_("u32", format_args!("{count} / 2")),
                weight: None,
            };
        };
        let share = generator.params.word("u64", share.to_bits());
        let place =
            out.let_("f64", format_args!("fmul(double_of_bits({share}), (f64)({count} - 1))"));
        let low = out.let_("u32", format_args!("(u32)floor({place})"));
        let high = out.let_("u32", format_args!("(u32)ceil({place})"));
        let weight = out.let_("f64", format_args!("fsub({place}, floor({place}))"));
        Between { low, high, weight: Some(weight) }
    }
}

impl Between {
    /// What lies there, between the values at the two places.
    pub(super) fn value(
        &self,
        dtype: &DataType,
        below: &Value,
        above: &Value,
        out: &mut Emitter,
    ) -> Value {
        let ctype = below.repr.device_type();
        let (a, b) = (&below.code, &above.code);
        out.divides(match (&self.weight, below.repr) {
            (Some(_), _) => 0,
            (None, Repr::I128) => 6,
            (None, _) => 1,
        });
        let between = match (&self.weight, below.repr) {
            (Some(weight), _) => {
                let between = format!("fadd((f64){a}, fmul(fsub((f64){b}, (f64){a}), {weight}))");
                format!("({weight} == 0 ? {a} : ({ctype}){between})")
            }
            (None, Repr::F32 | Repr::F64) => format!("({ctype})(({a} + {b}) / 2)"),
            // Two of one sign may have a sum that does not fit, and two of different signs a half
            // that is lost.
            (None, Repr::I128) => {
                format!(
                    "(({a} < 0) == ({b} < 0) ? {a} / 2 + {b} / 2 + ({a} % 2 + {b} % 2) / 2 : ({a} + {b}) / 2)"
                )
            }
            (None, _) => format!("({ctype})(((i128){a} + (i128){b}) / 2)"),
        };
        let code = out.let_(ctype, format_args!("{} == {} ? {a} : {between}", self.low, self.high));
        let mut value = Value::new(dtype.clone(), below.repr, code, None);
        value.range = below.range;
        value
    }
}
