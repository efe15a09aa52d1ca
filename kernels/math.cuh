// math.cuh: functions of numbers beyond the four operations.
//
//   math_gcd(12, 18) = 6      math_lcm(4, 6) = 12      math_factorial(5) = 120

#pragma once
#include "arith.cuh"

namespace wf {

WF_DEVICE u64 math_magnitude(i64 value) { return value < 0 ? (u64)0 - (u64)value : (u64)value; }

// Euclid's; the greatest common divisor of 0 and a number is that number.
WF_DEVICE u64 math_gcd(u64 a, u64 b) {
    while (b != 0) {
        u64 rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

// Whether the result does not fit a signed number.
WF_DEVICE bool math_gcd_overflows(i64 a, i64 b, i64* out) {
    u64 divisor = math_gcd(math_magnitude(a), math_magnitude(b));
    *out = (i64)divisor;
    return divisor > (u64)I64_MAX;
}
WF_DEVICE bool math_lcm_overflows(i64 a, i64 b, i64* out) {
    *out = 0;
    if (a == 0 || b == 0) return false;
    u64 x = math_magnitude(a), y = math_magnitude(b), part = x / math_gcd(x, y);
    *out = (i64)(part * y);
    return mul_high(part, y) != 0 || part * y > (u64)I64_MAX;
}

// The number of the bucket of a value that is a number, of `count` of equal width between two
// bounds.
WF_DEVICE i64 math_width_bucket(f64 value, f64 low, f64 high, i64 count) {
    const bool ascends = low < high;
    if (ascends ? value < low : value > low) return 0;
    if (ascends ? value >= high : value <= high) return count + 1;
    const i64 number = (i64)fmul(fdiv(fsub(value, low), fsub(high, low)), (f64)count);
    return (number < count - 1 ? number : count - 1) + 1;
}

constexpr i64 MOST_FACTORIAL = 20;

WF_DEVICE i64 math_factorial(i64 n) {
    u64 product = 1;
    for (i64 i = 2; i <= n && i <= MOST_FACTORIAL; i++) product *= (u64)i;
    return (i64)product;
}

}  // namespace wf
