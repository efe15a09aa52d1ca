// interval.cuh: moving dates and timestamps by intervals of a row, multiplying and comparing
// intervals, and putting timestamps into bins.
//
//   interval_moves_date(2024-01-31, 1 month, 1, &d) = true, d = 2024-02-29
//   interval_times(1 month 2 days, 1.5, &i) = true, i = 1 month 18 days
//   interval_justified(36 hours) = 1 day 12 hours
//   interval_bin(7, 1, 5, 0, &t) = true, t = 5          bins of 5 from 0 on, at -5, 0, 5, …
//
// An interval is one integer, which orders as (months, days, nanoseconds) do; see
// `src/column/interval.rs`.

#pragma once
#include "decimal.cuh"
#include "time.cuh"

namespace wf {

constexpr i64 DAY_NANOS = 86400000000000ll;
// First and last day of Arrow's calendar.
constexpr i64 FIRST_DAY = -96465292, LAST_DAY = 95026236;

struct interval {
    i64 months, days;
    i64 nanos;
};
WF_DEVICE interval interval_of(i128 packed) {
    u64 low = (u64)packed;
    return interval{(i64)(packed >> 96), (i64)(u32)(packed >> 64) - 2147483648ll, (i64)(low ^ 1ull << 63)};
}
WF_DEVICE i128 interval_packed(i64 months, i64 days, i64 nanos) {
    return ((i128)months << 96) + ((i128)(days + 2147483648ll) << 64) + (i128)((u64)nanos ^ 1ull << 63);
}

WF_DEVICE bool in_calendar(i64 days) { return days >= FIRST_DAY && days <= LAST_DAY; }
WF_DEVICE bool fits_32(i64 value) { return value >= I32_MIN && value <= I32_MAX; }

// The sum of two intervals, `sign` times the second; whether each part fits.
WF_DEVICE bool interval_sum(i128 a, i128 b, i32 sign, i128* out) {
    interval x = interval_of(a), y = interval_of(b);
    i64 months = x.months + sign * y.months, days = x.days + sign * y.days;
    i128 nanos = (i128)x.nanos + sign * (i128)y.nanos;
    *out = interval_packed(months, days, (i64)nanos);
    return fits_32(months) && fits_32(days) && nanos >= I64_MIN && nanos <= I64_MAX;
}

// An interval so many times; whether each part fits.
WF_DEVICE bool interval_times(i128 packed, i64 factor, i128* out) {
    interval by = interval_of(packed);
    i128 months = (i128)by.months * factor, days = (i128)by.days * factor, nanos = (i128)by.nanos * factor;
    *out = interval_packed((i64)months, (i64)days, (i64)nanos);
    return months >= I32_MIN && months <= I32_MAX && days >= I32_MIN && days <= I32_MAX && nanos >= I64_MIN &&
           nanos <= I64_MAX;
}

// The whole part of a product, and what is left of it, in units of so many nanoseconds.
WF_DEVICE f64 interval_split(i64 part, f64 factor, f64 units, i64 nanos, i64* rest) {
    const f64 product = fmul((f64)part, factor), whole = trunc(product);
    *rest = (i64)round(fmul(fsub(product, whole), units)) * nanos;
    return whole;
}

// An interval times a fraction; whether each part fits. What is left of a month becomes days, what
// is left of a day a part of one.
WF_CALLED bool interval_times(i128 packed, f64 factor, i128* out) {
    interval by = interval_of(packed);
    *out = packed;
    // Not NaN either.
    if (!(fabs(factor) < 9223372036854775808.0)) return false;
    i64 of_months, of_days;
    const f64 months = interval_split(by.months, factor, 30e6, 86400000, &of_months);
    const f64 days = interval_split(by.days, factor, 86400e6, 1000, &of_days);
    if (fabs(months) > 2147483647.0 || fabs(days) > 2147483647.0) return false;
    const f64 whole = trunc(factor);
    const i64 rest = (i64)round(fmul((f64)by.nanos, fsub(factor, whole)));
    const i128 nanos = (i128)by.nanos * (i64)whole + rest + of_days + of_months % DAY_NANOS;
    const i64 all_days = (i64)days + of_months / DAY_NANOS;
    *out = interval_packed((i64)months, all_days, (i64)nanos);
    return fits_32(all_days) && nanos >= I64_MIN && nanos <= I64_MAX;
}

// The interval's length in months of 30 days and days of 24 hours, all of one sign: then intervals
// order as their lengths do. A length beyond these parts becomes the longest.
WF_CALLED i128 interval_justified(i128 packed) {
    interval of = interval_of(packed);
    const i64 days = of.months * 30 + of.days + of.nanos / DAY_NANOS;
    i64 whole = days, rest = of.nanos % DAY_NANOS;
    if (whole > 0 && rest < 0) {
        whole -= 1;
        rest += DAY_NANOS;
    } else if (whole < 0 && rest > 0) {
        whole += 1;
        rest -= DAY_NANOS;
    }
    const i64 months = whole / 30;
    if (months > I32_MAX) return interval_packed(I32_MAX, I32_MAX, I64_MAX);
    if (months < I32_MIN) return interval_packed(I32_MIN, I32_MIN, I64_MIN);
    return interval_packed(months, whole % 30, rest);
}

// The distance of two timestamps: days and parts of a day.
WF_DEVICE interval interval_of_ticks(i64 ticks, i64 per_second) {
    const i64 per_day = 86400 * per_second, days = ticks / per_day;
    return interval{0, minimum<i64>(maximum<i64>(days, I32_MIN), I32_MAX), ticks % per_day * (1000000000 / per_second)};
}

// Seconds, of which a year has 365.25 days and a month 30.
WF_DEVICE f64 interval_epoch(interval of) {
    const f64 years = fmul((f64)(of.months / 12), 365.25), months = fmul((f64)(of.months % 12), 30.0);
    const f64 days = fadd(fadd(years, months), (f64)of.days);
    return fadd(fmul(days, 86400.0), fdiv((f64)of.nanos, 1e9));
}

// A date or timestamp in a finer unit, of which so many are one; beyond the range, its end.
WF_DEVICE i64 interval_in_unit(i64 ticks, i64 length) {
    const i128 product = (i128)ticks * length;
    return product > I64_MAX ? I64_MAX : product < I64_MIN ? I64_MIN : (i64)product;
}

// A day within the calendar moved by whole months, while that stays within it.
WF_DEVICE bool moved_by_months(i64 days, i64 months, i64* out) {
    *out = days;
    if (months == 0) return true;
    // More months than the calendar has lead out of it.
    if (months > 7000000 || months < -7000000) return false;
    *out = add_months((i32)days, (i32)months);
    return in_calendar(*out);
}

WF_CALLED bool interval_moves_date(i32 days, i128 packed, i32 sign, i32* out) {
    interval by = interval_of(packed);
    i64 moved;
    *out = days;
    if (!in_calendar(days) || !moved_by_months(days, sign * by.months, &moved)) return false;
    moved += sign * by.days;
    if (!in_calendar(moved)) return false;
    moved += sign * (by.nanos / DAY_NANOS);
    *out = (i32)moved;
    return in_calendar(moved);
}

WF_CALLED bool interval_moves_timestamp(i64 ticks, i64 per_second, i128 packed, i32 sign, i64* out) {
    interval by = interval_of(packed);
    i64 per_day = 86400 * per_second, tick = 1000000000 / per_second;
    i64 days = floor_quotient<i64>(ticks, per_day), rest = ticks - days * per_day;
    *out = ticks;
    if (!in_calendar(days)) return false;
    if (!moved_by_months(days, sign * by.months, &days)) return false;
    days += sign * by.days;
    if (!in_calendar(days)) return false;
    i128 moved = (i128)days * per_day + rest + floor_quotient<i128>((i128)sign * by.nanos, tick);
    *out = (i64)moved;
    return moved >= I64_MIN && moved <= I64_MAX && in_calendar((i64)floor_quotient<i128>(moved, per_day));
}

// -------------------------------------------------------------------------------------------- bins

// The distance of the bin's beginning, for a stride above 0; whether it fits.
WF_DEVICE bool bin_distance(i64 distance, i64 stride, i64* out) {
    i64 begin = distance - distance % stride;
    *out = begin;
    if (distance >= 0 || stride <= 1 || begin == distance) return true;
    *out = wrap_sub<i64>(begin, stride);
    return begin >= I64_MIN + stride;
}

// The beginning, in ticks of `scale` nanoseconds, of the bin of `stride` nanoseconds from `origin`
// on; whether there is one. Nanoseconds end where 64 bits of them do, other ticks do not.
WF_CALLED bool interval_bin(i64 ticks, i64 scale, i64 stride, i64 origin, i64* out) {
    const i128 distance = (i128)ticks * scale - origin;
    *out = 0;
    if (distance >= I64_MIN && distance <= I64_MAX) {
        i64 begin;
        if (!bin_distance((i64)distance, stride, &begin)) return false;
        const i128 bin = (i128)origin + begin;
        if (bin >= I64_MIN && bin <= I64_MAX) {
            *out = (i64)bin / scale;
            return true;
        }
    }
    if (scale == 1) return false;
    const i128 bin = divided<i128>(origin + distance - floor_remainder<i128>(distance, stride), scale);
    *out = (i64)bin;
    return bin >= I64_MIN && bin <= I64_MAX;
}

// The beginning, in ticks of `scale` nanoseconds, of the bin of `stride` months from `origin` on;
// whether there is one.
WF_CALLED bool interval_bin_months(i64 ticks, i64 scale, i64 stride, i64 origin, i64* out) {
    const i128 exact = (i128)ticks * scale;
    *out = 0;
    const i64 per_day = DAY_NANOS / scale, day = floor_quotient<i64>(ticks, per_day);
    const i64 origin_day = floor_quotient<i64>(origin, DAY_NANOS), rest = origin - origin_day * DAY_NANOS;
    if (!in_calendar(day)) return false;
    civil date = civil_of((i32)day), first = civil_of((i32)origin_day);
    i64 months = (date.year - first.year) * 12 + date.month - first.month, shift;
    if (!bin_distance(months, stride, &shift)) return false;
    i64 begin;
    if (!moved_by_months(origin_day, shift, &begin)) return false;
    if ((i128)begin * DAY_NANOS + rest > exact && !moved_by_months(origin_day, shift - stride, &begin)) return false;
    const i128 bin = (i128)begin * per_day + rest / scale;
    *out = (i64)bin;
    return bin >= I64_MIN && bin <= I64_MAX;
}

// ------------------------------------------------------------------------------------- conversions

// As Rust's `as`: towards zero, the ends for what lies beyond, 0 for NaN.
WF_DEVICE i64 interval_ticks(f64 value) {
    if (value != value) return 0;
    if (value >= 9223372036854775808.0) return I64_MAX;
    if (value < -9223372036854775808.0) return I64_MIN;
    return (i64)value;
}

WF_DEVICE bool interval_date(i32 year, i32 month, i32 day, i32* out) {
    *out = 0;
    if (year < -262143 || year > 262142 || month < 1 || month > 12 || day < 1 || day > days_in_month(year, month)) return false;
    *out = days_of(year, month, day);
    return true;
}

}  // namespace wf
