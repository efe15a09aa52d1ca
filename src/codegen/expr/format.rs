//! Values as text: CAST to a string type (`kernels/format.cuh`).

use super::calendar::per_second;
use super::*;
use crate::codegen::device_function::KernelHeader;
use warpframe_device::ops::powers;

impl Compiler<'_> {
    /// What Arrow prints of a value; values that its calendar does not hold fail.
    pub(super) fn formatted(&mut self, value: Value, to: &DataType) -> Result<Value> {
        use DataType::*;
        self.out.needs(KernelHeader::Format);
        let code = &value.code;
        let (rvalue, longest) = match &value.dtype {
            Boolean => (format!("format_boolean({code})"), 5),
            from if from.is_signed_integer() => (format!("format_signed(arena, (i64){code})"), 20),
            from if from.is_unsigned_integer() => {
                (format!("format_unsigned(arena, (u64){code})"), 20)
            }
            Float32 | Float64 => {
                let table = self.inputs.constant(powers::for_format());
                (format!("format_float(arena, {code}, (const u64*)({table}))"), 24)
            }
            Decimal128(precision, scale) => {
                let zeros = scale.unsigned_abs();
                (
                    format!("format_decimal(arena, (i128){code}, {precision}u, {scale})"),
                    42 + u64::from(zeros),
                )
            }
            Date32 => {
                self.within_calendar(&value, &value.valid.clone());
                (format!("format_date(arena, {code})"), 14)
            }
            Timestamp(unit, zone) => {
                let (ticks, has_zone) = (per_second(unit), zone.is_some());
                let local = self.local_time(value.clone())?;
                let days = self.floor_days(&local, *unit);
                self.within_calendar(&days, &value.valid.clone());
                let local = &local.code;
                let ahead = match has_zone {
                    true => {
                        self.out.divides(1);
                        format!("wrap_sub<i64>((i64){local}, (i64){code}) / {ticks}ll")
                    }
                    false => "NO_ZONE".into(),
                };
                (format!("format_timestamp(arena, (i64){local}, {ticks}, {ahead})"), 41)
            }
            Time32(unit) | Time64(unit) => {
                let ticks = per_second(unit);
                let outside = format!("({code} < 0 || {code} >= {}ll)", ticks * 86_400);
                self.fail_if(&value.valid, &outside, Failure::Cast);
                (format!("format_time(arena, (i64){code}, {ticks})"), 18)
            }
            from => return Err(not_yet(format!("a cast from {from} to {to}"))),
        };
        // Of a null there are no characters to be asked for.
        let asked = [value.valid.clone(), self.out.guarded()]
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
            .join(" && ");
        let rvalue =
            if asked.is_empty() { rvalue } else { format!("{asked} ? {rvalue} : view{{0, 0, 0}}") };
        self.made(to, rvalue, value.valid, Some(longest))
    }
}
