// decimal.cuh: 128-bit integers that know when they overflow, and decimals from and to other
// numbers.
//
//   i128 sum;  bool failed = add_overflows(a, b, &sum);      sum wraps where failed
//
// A decimal becomes the nearest float: 10^scale is 5^scale times a power of two. `five` is 5^scale,
// `ten` the double nearest to 10^scale, which is 10^scale up to a scale of EXACT_POWERS. (Floats
// become decimals by their digits: `format.cuh`.)

#pragma once
#include "arith.cuh"

namespace wf {

WF_DEVICE bool add_overflows(i128 a, i128 b, i128* out) {
    i128 sum = wrap_add<i128>(a, b);
    *out = sum;
    // Operands of one sign and a sum of the other.
    return ((a ^ sum) & (b ^ sum)) < 0;
}

WF_DEVICE bool sub_overflows(i128 a, i128 b, i128* out) {
    i128 difference = wrap_sub<i128>(a, b);
    *out = difference;
    return ((a ^ b) & (a ^ difference)) < 0;
}

WF_DEVICE u128 magnitude_of(i128 value) { return value < 0 ? (u128)0 - (u128)value : (u128)value; }

WF_DEVICE bool mul_overflows(i128 a, i128 b, i128* out) {
    *out = wrap_mul<i128>(a, b);
    u128 x = magnitude_of(a), y = magnitude_of(b);
    u64 x1 = high_word(x), x0 = low_word(x), y1 = high_word(y), y0 = low_word(y);
    // Schoolbook in words of 64 bits: both high words set is 2^128 at least.
    if (x1 != 0 && y1 != 0) return true;
    u128 cross = x1 != 0 ? (u128)x1 * y0 : (u128)y1 * x0;
    if (high_word(cross) != 0) return true;
    u128 low = (u128)x0 * y0;
    u128 product = low + (cross << 64);
    if (product < low) return true;
    // 2^127 is the magnitude of the least value only.
    u128 most = (u128)I128_MAX + ((a < 0) != (b < 0) ? 1 : 0);
    return product > most;
}

WF_DEVICE bool quotient_overflows(i128 a, i128 b, i128* out) {
    *out = quotient<i128>(a, b);
    return a == I128_MIN && b == -1;
}

WF_DEVICE bool remainder_overflows(i128 a, i128 b, i128* out) {
    *out = remainder<i128>(a, b);
    return a == I128_MIN && b == -1;
}

// Divided by an even `divisor` > 0, halves away from zero.
template <class T> WF_DEVICE T rounded_quotient(T value, T divisor) {
    T whole = divided<T>(value, divisor), rest = (T)(value - whole * divisor), half = (T)(divisor / 2);
    if (value >= 0) return (T)(rest >= half ? whole + 1 : whole);
    return (T)(rest <= -half ? whole - 1 : whole);
}

// sum · scale / count, towards zero, where count · scale fits 64 bits: a remainder of the sum is
// less than the count.
WF_CALLED i128 average_of(i64 sum, i64 count, i64 scale) {
    const i64 whole = divided<i64>(sum, count);
    const i64 rest = sum - whole * count;
    return (i128)whole * scale + divided<i64>(rest * scale, count);
}

// ---- sums of decimals of up to 38 digits, which may have more than 128 bits ----
//
//   x = high · 2^64 + low      high = x >> 64, low the lower word, not negative
//
// Each is summed by itself, in 128 bits.

constexpr u64 DECIMAL_MOST_HIGH = 0x4B3B4CA85A86C47Aull, DECIMAL_MOST_LOW = 0x098A223FFFFFFFFFull;  // 10^38 − 1

// Whether the sum has more than 38 digits, of those of high and low words.
WF_DEVICE bool decimal_sum_overflows(i128 high, i128 low, i128* out) {
    const i128 most = make_i128(DECIMAL_MOST_HIGH, DECIMAL_MOST_LOW);
    const i128 top = high + (low >> 64);
    *out = make_i128((u64)top, (u64)low);
    return top != (i128)(i64)top || *out > most || *out < -most;
}

// That sum · scale / count, towards zero, where count · scale has fewer than 127 bits; the least
// number where the result has more than 38 digits.
WF_CALLED i128 decimal_average(i128 high, i128 low, i64 count, i64 scale) {
    const u128 most = make_u128(DECIMAL_MOST_HIGH, DECIMAL_MOST_LOW);
    const i128 top = high + (low >> 64);
    // The magnitude, in three words, divided from the top.
    u128 upper = (u128)top;
    u64 lower = (u64)low;
    if (top < 0) {
        lower = 0 - lower;
        upper = ~upper + (lower == 0 ? 1 : 0);
    }
    const u64 first = high_word(upper) / (u64)count;
    const i128 second_of = make_i128(high_word(upper) - first * (u64)count, low_word(upper));
    const i128 second = divided_i128(second_of, (i128)count);
    const i128 third_of = make_i128((u64)(second_of - second * count), lower);
    const i128 third = divided_i128(third_of, (i128)count);
    const i128 rest = (third_of - third * count) * scale;
    const i128 fraction = high_word((u128)rest) == 0 ? (i128)((u64)rest / (u64)count) : divided_i128(rest, (i128)count);
    i128 average;
    if (first != 0 || mul_overflows(make_i128((u64)second, (u64)third), (i128)scale, &average)) return I128_MIN;
    average = wrap_add<i128>(average, fraction);
    if ((u128)average > most) return I128_MIN;
    return top < 0 ? -average : average;
}

// ------------------------------------------------------------------------------ decimals to floats

constexpr u32 EXACT_POWERS = 22;

// A number of 64 bits, of which the lowest is set also for what is cut off below, times a power of
// two.
struct rounded_bits {
    u64 bits;
    i32 power;
};

WF_CALLED u128 divided_u128(u128 a, u128 b) { return a / b; }

// magnitude / 10^scale, for a magnitude above 0 and a scale of at most 38. The quotient by 5^scale,
// which is less than 2^89, has 64 bits at least, in one step or two.
WF_CALLED rounded_bits decimal_bits(u128 magnitude, u128 five, u32 scale) {
    const u64 top = high_word(magnitude);
    const u32 zeros = top != 0 ? (u32)leading_zeros(top) : 64 + (u32)leading_zeros(low_word(magnitude));
    const u128 whole = magnitude << zeros;
    i32 power = -(i32)(zeros + scale);
    u128 quotient = divided_u128(whole, five), rest = whole - quotient * five;
    if (high_word(quotient) == 0) {
        const u128 more = divided_u128(rest << 38, five);
        rest = (rest << 38) - more * five;
        quotient = quotient << 38 | more;
        power -= 38;
    }
    const u64 high = high_word(quotient);
    const u32 drop = high != 0 ? 64 - (u32)leading_zeros(high) : 0;
    const bool cut = rest != 0 || (quotient & (((u128)1 << drop) - 1)) != 0;
    return rounded_bits{(u64)(quotient >> drop) | (cut ? 1 : 0), power + (i32)drop};
}

// 2^power, for what is no subnormal number.
WF_DEVICE f64 power_of_two(i32 power) { return double_of_bits((u64)(1023 + power) << 52); }

WF_DEVICE f64 decimal_to_f64(i128 value, u128 five, u32 scale, f64 ten) {
    const u128 magnitude = magnitude_of(value);
    if (magnitude < (u128)1 << 53 && scale <= EXACT_POWERS) return fdiv((f64)(i64)value, ten);
    if (magnitude == 0) return 0.0;
    const rounded_bits exact = decimal_bits(magnitude, five, scale);
    const f64 result = fmul((f64)exact.bits, power_of_two(exact.power));
    return value < 0 ? -result : result;
}

// Cut to 53 bits, of which the lowest is set also for what is cut off, so that the second rounding
// is the only one.
WF_DEVICE f32 decimal_to_f32(i128 value, u128 five, u32 scale) {
    const u128 magnitude = magnitude_of(value);
    if (magnitude == 0) return 0.0f;
    const rounded_bits exact = decimal_bits(magnitude, five, scale);
    const u64 odd = exact.bits >> 11 | ((exact.bits & 0x7ff) != 0 ? 1 : 0);
    const f32 result = (f32)fmul((f64)odd, power_of_two(exact.power + 11));
    return value < 0 ? -result : result;
}

}  // namespace wf
