// format.cuh: values as text, as Arrow prints them; times as DuckDB does.
//
//   format_signed(-42) = "-42"   format_decimal(-5, 2) = "-0.05"   format_float(1e21) = "1e21"
//   format_timestamp(1500 ms) = "1970-01-01 00:00:01.5"
//
// Digits are written from the last to the first, so that no buffer is needed. Floats print the
// shortest digits that read back as the same float, and of those the closest (R. Giulietti, "The
// Schubfach way to render doubles"), from a table of powers of ten that the host uploads.

#pragma once
#include "decimal.cuh"
#include "text.cuh"
#include "time.cuh"

namespace wf {

constexpr u64 TEN_19 = 10000000000000000000ull;

WF_DEVICE u32 digits_of(u64 value) {
    u32 count = 1;
    while (value >= 10) {
        value /= 10;
        count++;
    }
    return count;
}
WF_DEVICE u32 digits_of(u128 value) {
    u32 count = 0;
    // Above 64 bits there are more than 19 digits.
    while (high_word(value) != 0) {
        value /= TEN_19;
        count += 19;
    }
    return count + digits_of(low_word(value));
}

// The lowest `count` digits from place `begin` on, with zeros before.
WF_DEVICE void put_digits(text_writer& text, u32 begin, u32 count, u64 value) {
    for (u32 i = count; i > 0; i--) {
        text.set(begin + i - 1, (u8)('0' + value % 10));
        value /= 10;
    }
}
WF_DEVICE void put_digits(text_writer& text, u32 begin, u32 count, u128 value) {
    while (count > 19) {
        put_digits(text, begin + count - 19, 19, (u64)(value % TEN_19));
        value /= TEN_19;
        count -= 19;
    }
    put_digits(text, begin, count, (u64)value);
}

// ------------------------------------------------------------------------------ integers, booleans

WF_CALLED view format_magnitude(const text_arena& arena, u64 magnitude, bool negative) {
    u32 count = digits_of(magnitude), sign = negative ? 1 : 0;
    text_writer text(arena, count + sign);
    if (negative) text.set(0, '-');
    put_digits(text, sign, count, magnitude);
    return text.out;
}
WF_DEVICE view format_signed(const text_arena& arena, i64 value) {
    return format_magnitude(arena, value < 0 ? (u64)0 - (u64)value : (u64)value, value < 0);
}
WF_DEVICE view format_unsigned(const text_arena& arena, u64 value) { return format_magnitude(arena, value, false); }

WF_DEVICE view format_boolean(bool value) {
    return value ? view{4, 0x65757274, 0} : view{5, 0x736c6166, 'e'};  // "true", "fals" "e"
}

// Digits in hexadecimal, of which there is one at least.
WF_CALLED view format_hex(const text_arena& arena, u64 value) {
    u32 count = value == 0 ? 1 : (67 - (u32)leading_zeros(value)) / 4;
    text_writer text(arena, count);
    for (u32 i = count; i > 0; i--) {
        u32 digit = (u32)(value & 15);
        text.set(i - 1, (u8)(digit < 10 ? '0' + digit : 'a' + digit - 10));
        value >>= 4;
    }
    return text.out;
}

// The bits from the first that is set on, of which there is one at least.
WF_CALLED view format_bits(const text_arena& arena, u64 value) {
    u32 count = value == 0 ? 1 : 64 - (u32)leading_zeros(value);
    text_writer text(arena, count);
    for (u32 i = count; i > 0; i--) {
        text.set(i - 1, (u8)('0' + (value & 1)));
        value >>= 1;
    }
    return text.out;
}

// `precision` digits at most, of which `scale` follow the point; a negative scale appends zeros.
WF_CALLED view format_decimal(const text_arena& arena, i128 value, u32 precision, i32 scale) {
    u128 magnitude = magnitude_of(value);
    u32 count = digits_of(magnitude), sign = value < 0 ? 1 : 0;
    for (; count > precision; count--) magnitude /= 10;
    u32 behind = scale > 0 ? (u32)scale : 0, zeros = scale < 0 ? (u32)-scale : 0;
    u32 before = count > behind ? count - behind : 1;
    text_writer text(arena, sign + before + (behind > 0 ? behind + 1 : 0) + zeros);
    if (sign) text.set(0, '-');
    if (behind == 0) {
        put_digits(text, sign, count, magnitude);
        for (u32 i = 0; i < zeros; i++) text.set(sign + count + i, '0');
        return text.out;
    }
    // The digits behind the point, and those before.
    for (u32 i = behind; i > 0; i--) {
        text.set(sign + before + i, (u8)('0' + (u32)(magnitude % 10)));
        magnitude /= 10;
    }
    text.set(sign + before, '.');
    put_digits(text, sign, before, magnitude);
    return text.out;
}

// ------------------------------------------------------------------------------- dates, timestamps

// Years of four digits stand as they are, others behind a sign.
WF_DEVICE u32 date_length(const civil& date) {
    if (date.year >= 0 && date.year <= 9999) return 10;
    u32 magnitude = (u32)(date.year < 0 ? -date.year : date.year);
    return 7 + maximum(digits_of((u64)magnitude), 4u);
}
WF_DEVICE void put_date(text_writer& text, const civil& date, u32 length) {
    u32 begin = length > 10 || date.year < 0 ? 1 : 0;
    if (begin) text.set(0, date.year < 0 ? '-' : '+');
    put_digits(text, begin, length - 6 - begin, (u64)(date.year < 0 ? -date.year : date.year));
    text.set(length - 6, '-');
    put_digits(text, length - 5, 2, (u64)date.month);
    text.set(length - 3, '-');
    put_digits(text, length - 2, 2, (u64)date.day);
}

WF_CALLED view format_date(const text_arena& arena, i32 days) {
    civil date = civil_of(days);
    u32 length = date_length(date);
    text_writer text(arena, length);
    put_date(text, date, length);
    return text.out;
}

// As many digits behind the seconds as are needed.
WF_DEVICE u32 fraction_digits(u32 nanos) {
    if (nanos == 0) return 0;
    u32 count = 9;
    for (; nanos % 10 == 0; nanos /= 10) count--;
    return count;
}

WF_DEVICE void put_clock(text_writer& text, u32 at, u32 seconds, u32 nanos) {
    put_digits(text, at, 2, (u64)(seconds / 3600));
    text.set(at + 2, ':');
    put_digits(text, at + 3, 2, (u64)(seconds / 60 % 60));
    text.set(at + 5, ':');
    put_digits(text, at + 6, 2, (u64)(seconds % 60));
    u32 fraction = fraction_digits(nanos);
    if (fraction == 0) return;
    text.set(at + 8, '.');
    for (u32 i = fraction; i < 9; i++) nanos /= 10;
    put_digits(text, at + 9, fraction, (u64)nanos);
}

constexpr i64 NO_ZONE = I64_MIN;

// Local ticks, of which a second has `per_second`, since 1970; local time is `ahead` of UTC by so
// many seconds, whose minutes are rounded, or NO_ZONE.
WF_CALLED view format_timestamp(const text_arena& arena, i64 ticks, i64 per_second, i64 ahead) {
    i64 seconds = floor_quotient<i64>(ticks, per_second);
    u32 nanos = (u32)(floor_remainder<i64>(ticks, per_second) * (1000000000 / per_second));
    i64 days = floor_quotient<i64>(seconds, 86400);
    civil date = civil_of((i32)days);
    u32 length = date_length(date), fraction = fraction_digits(nanos);
    u32 minutes = ahead == NO_ZONE ? 0 : (u32)(((ahead < 0 ? -ahead : ahead) + 30) / 60);
    // A zone's minutes are told where it has some.
    u32 zone = ahead == NO_ZONE ? 0 : minutes % 60 == 0 ? 3 : 6;
    text_writer text(arena, length + 9 + (fraction ? fraction + 1 : 0) + zone);
    put_date(text, date, length);
    text.set(length, ' ');
    put_clock(text, length + 1, (u32)(seconds - days * 86400), nanos);
    if (zone == 0) return text.out;
    u32 begin = text.out.length - zone;
    text.set(begin, ahead < 0 ? '-' : '+');
    put_digits(text, begin + 1, 2, (u64)(minutes / 60));
    if (zone == 3) return text.out;
    text.set(begin + 3, ':');
    put_digits(text, begin + 4, 2, (u64)(minutes % 60));
    return text.out;
}

// Ticks since midnight.
WF_CALLED view format_time(const text_arena& arena, i64 ticks, i64 per_second) {
    u32 nanos = (u32)(ticks % per_second * (1000000000 / per_second)), fraction = fraction_digits(nanos);
    text_writer text(arena, 8 + (fraction ? fraction + 1 : 0));
    put_clock(text, 0, (u32)(ticks / per_second), nanos);
    return text.out;
}

// ------------------------------------------------------------------------------------------ floats

// The table's least exponent; its entries are two words, high first: 10^k in 128 bits, rounded up.
constexpr i32 SHORTEST_LEAST = -292;

WF_DEVICE i32 floor_log2_of_ten_to(i32 e) { return (e * 1741647) >> 19; }

// The high 64 bits of `scale` × `value`, with a last bit that says whether bits were lost.
WF_DEVICE u64 scaled_to_odd(const u64* scale, u64 value) {
    u64 carried = mul_high(scale[1], value);
    u64 low = scale[0] * value, high = mul_high(scale[0], value);
    u64 sum = low + carried;
    if (sum < low) high++;
    return high | (sum > 1 ? 1 : 0);
}

struct decimal_float {
    u64 digits;
    i32 exponent;
};

// The shortest decimal that reads back as significand × 2^exponent, not 0; `narrow_below` where the
// float below is nearer than the one above.
WF_CALLED decimal_float shortest(u64 significand, i32 exponent, bool narrow_below, const u64* table) {
    bool even = significand % 2 == 0;
    i32 k = (exponent * 1262611 - (narrow_below ? 524031 : 0)) >> 22;
    i32 shift = exponent + floor_log2_of_ten_to(-k) + 1;
    const u64* scale = table + 2 * (-k - SHORTEST_LEAST);
    u64 below = scaled_to_odd(scale, (4 * significand - (narrow_below ? 1 : 2)) << shift);
    u64 exact = scaled_to_odd(scale, (4 * significand) << shift);
    u64 above = scaled_to_odd(scale, (4 * significand + 2) << shift);
    u64 lower = below + (even ? 0 : 1), upper = above - (even ? 0 : 1);
    u64 s = exact / 4;
    if (s >= 10) {
        u64 tens = s / 10;
        bool down = lower <= 40 * tens, up = 40 * tens + 40 <= upper;
        if (down != up) return decimal_float{tens + (up ? 1 : 0), k + 1};
    }
    bool down = lower <= 4 * s, up = 4 * s + 4 <= upper;
    if (down != up) return decimal_float{s + (up ? 1 : 0), k};
    u64 middle = 4 * s + 2;
    bool round = exact > middle || (exact == middle && (s & 1) != 0);
    return decimal_float{s + (round ? 1 : 0), k};
}

// Of a finite float other than 0. So many digits before the point, or fewer zeros behind it, stand
// as they are; others have an exponent.
WF_CALLED view format_digits(const text_arena& arena, decimal_float value, bool negative, i32 plain_digits,
                              i32 plain_zeros) {
    while (value.digits % 10 == 0) {
        value.digits /= 10;
        value.exponent++;
    }
    u32 sign = negative ? 1 : 0;
    i32 count = (i32)digits_of(value.digits), point = count + value.exponent;
    if (value.exponent >= 0 && point <= plain_digits) {  // 1200.0
        text_writer text(arena, sign + (u32)point + 2);
        if (negative) text.set(0, '-');
        put_digits(text, sign, (u32)count, value.digits);
        for (i32 i = count; i < point; i++) text.set(sign + (u32)i, '0');
        text.set(sign + (u32)point, '.');
        text.set(sign + (u32)point + 1, '0');
        return text.out;
    }
    if (point > 0 && point <= plain_digits) {  // 12.34
        text_writer text(arena, sign + (u32)count + 1);
        if (negative) text.set(0, '-');
        u64 behind = 1;
        for (i32 i = point; i < count; i++) behind *= 10;
        put_digits(text, sign, (u32)point, value.digits / behind);
        text.set(sign + (u32)point, '.');
        put_digits(text, sign + (u32)point + 1, (u32)(count - point), value.digits % behind);
        return text.out;
    }
    if (point > -plain_zeros && point <= 0) {  // 0.001234
        u32 zeros = (u32)-point;
        text_writer text(arena, sign + 2 + zeros + (u32)count);
        if (negative) text.set(0, '-');
        text.set(sign, '0');
        text.set(sign + 1, '.');
        for (u32 i = 0; i < zeros; i++) text.set(sign + 2 + i, '0');
        put_digits(text, sign + 2 + zeros, (u32)count, value.digits);
        return text.out;
    }
    // 1e30, 1.234e-33
    i32 power = point - 1;
    u32 magnitude = (u32)(power < 0 ? -power : power), places = digits_of((u64)magnitude);
    u32 mantissa = count == 1 ? 1 : (u32)count + 1;
    text_writer text(arena, sign + mantissa + 1 + (power < 0 ? 1 : 0) + places);
    if (negative) text.set(0, '-');
    if (count == 1) {
        text.set(sign, (u8)('0' + value.digits));
    } else {
        put_digits(text, sign + 2, (u32)count - 1, value.digits);
        u64 first = value.digits;
        while (first >= 10) first /= 10;
        text.set(sign, (u8)('0' + first));
        text.set(sign + 1, '.');
    }
    text.set(sign + mantissa, 'e');
    if (power < 0) text.set(sign + mantissa + 1, '-');
    put_digits(text, text.out.length - places, places, (u64)magnitude);
    return text.out;
}

WF_DEVICE view format_special(bool nan, bool negative) {
    if (nan) return view{3, 0x4e614e, 0};                                       // "NaN"
    return negative ? view{4, 0x666e692d, 0} : view{3, 0x666e69, 0};            // "-inf", "inf"
}
WF_DEVICE view format_zero(bool negative) { return negative ? view{4, 0x302e302d, 0} : view{3, 0x302e30, 0}; }

WF_DEVICE view format_float(const text_arena& arena, f64 value, const u64* table) {
    u64 raw = bits(value), mantissa = raw & ((1ull << 52) - 1);
    bool negative = raw >> 63 != 0;
    i32 biased = (i32)(raw >> 52 & 0x7ff);
    if (biased == 0x7ff) return format_special(mantissa != 0, negative);
    if (biased == 0 && mantissa == 0) return format_zero(negative);
    u64 significand = biased == 0 ? mantissa : mantissa | 1ull << 52;
    i32 exponent = biased == 0 ? -1074 : biased - 1075;
    return format_digits(arena, shortest(significand, exponent, mantissa == 0 && biased > 1, table), negative, 16, 5);
}
WF_DEVICE view format_float(const text_arena& arena, f32 value, const u64* table) {
    u32 raw = bits(value), mantissa = raw & ((1u << 23) - 1);
    bool negative = raw >> 31 != 0;
    i32 biased = (i32)(raw >> 23 & 0xff);
    if (biased == 0xff) return format_special(mantissa != 0, negative);
    if (biased == 0 && mantissa == 0) return format_zero(negative);
    u64 significand = biased == 0 ? mantissa : mantissa | 1u << 23;
    i32 exponent = biased == 0 ? -149 : biased - 150;
    return format_digits(arena, shortest(significand, exponent, mantissa == 0 && biased > 1, table), negative, 13, 6);
}

// ------------------------------------------------------------------------------ floats to decimals

// The shortest digits that read back as the float, times 10^scale, halves away from zero; `outside`
// is set where that is no number of 128 bits. So 2.675 to two places is 2.68, as its text is.
WF_CALLED i128 decimal_of_digits(f64 value, u32 scale, const u64* table, bool* outside) {
    const u64 raw = bits(value), mantissa = raw & ((1ull << 52) - 1);
    const i32 biased = (i32)(raw >> 52 & 0x7ff);
    *outside = biased == 0x7ff;
    if (biased == 0x7ff || (raw << 1) == 0) return 0;
    const decimal_float near = shortest(biased == 0 ? mantissa : mantissa | 1ull << 52, biased == 0 ? -1074 : biased - 1075,
                                        mantissa == 0 && biased > 1, table);
    u128 digits = near.digits;
    i32 power = near.exponent + (i32)scale;
    for (; power > 0 && digits < (u128)I128_MAX / 10; power--) digits *= 10;
    *outside = power > 0;
    if (power < 0) {
        // All but the last digit that goes, which rounds.
        for (; power < -1 && digits != 0; power++) digits = (u64)digits / 10;
        digits = ((u64)digits + 5) / 10;
    }
    return raw >> 63 != 0 ? -(i128)digits : (i128)digits;
}

// The double nearest to 10^scale is `ten`. A product so small is off by less than 2^-11, and rounds
// as the digits do if it is not that near to a half.
WF_DEVICE i128 decimal_of_f64(f64 value, u32 scale, f64 ten, const u64* table, bool* outside) {
    const f64 product = fmul(value, ten);
    if (fabs(product) < 1099511627776.0 && fabs(fabs(product - trunc(product)) - 0.5) > 0.00048828125) {
        *outside = false;
        return (i128)(i64)round(product);
    }
    return decimal_of_digits(value, scale, table, outside);
}

}  // namespace wf
