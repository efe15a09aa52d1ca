// arith.cuh: arithmetic that generated expressions call: integers that wrap or know when they
// overflow, floats rounded as on the host, comparisons.
//
//   wrap_add<i32>(I32_MAX, 1) = I32_MIN      quotient(7, 0) = 0      sql_less(1.0 / 0.0, 0.0 / 0.0)
//   add_exceeds<i8>(100, 100, &x) = true     mul_exceeds<i32>(7, -6, &x) = false, x = -42
//
// Everything is defined for all operands: beneath a null lies garbage, and it is computed with all
// the same. What must fail is tested beside the computation and reported through `fail`.

#pragma once
#include "prelude.cuh"

namespace wf {

// Bits of a kernel's status word; the same as `Failure` on the host.
constexpr u32 FAIL_DIVIDE_BY_ZERO = 1;
constexpr u32 FAIL_OVERFLOW = 2;
constexpr u32 FAIL_CAST = 4;
constexpr u32 FAIL_DOMAIN = 8;
constexpr u32 FAIL_NOT_ASCII = 16;
constexpr u32 FAIL_BEYOND = 32;
constexpr u32 FAIL_ROWS = 64;
constexpr u32 FAIL_LENGTH = 128;

// Says that a row failed. Rare, so contention does not matter.
WF_DEVICE void fail(u32* status, u32 failure) { atomicOr(status, failure); }

// ---- reports ----

// What the first row that fails says, behind the control words: where in the kernel, counted from
// 1, and of which operands. Numbers take 16 bytes; strings their length (u32), and from byte 16 on
// their first characters.
//
//   site (u32) | 4 bytes | operand 0 | operand 1 | operand 2
constexpr u32 OPERAND_BYTES = 80;
constexpr u32 OPERAND_TEXT = 64;

template <class T>
WF_DEVICE void keep_operand(u8* at, T value) {
    *(u64*)at = (u64)value;
    *(i64*)(at + 8) = (i64)((i128)value >> 64);
}
WF_DEVICE void keep_operand(u8* at, f64 value) { *(f64*)at = value; }
WF_DEVICE void keep_operand(u8* at, f32 value) { *(f64*)at = (f64)value; }

WF_DEVICE void keep_operands(u8*) {}
template <class T, class... More>
WF_DEVICE void keep_operands(u8* at, T value, More... more) {
    keep_operand(at, value);
    keep_operands(at + OPERAND_BYTES, more...);
}

// Reports that a row failed at `site`. Where a row fails again, what it failed at first was the
// reason.
template <class... Operands>
WF_DEVICE void fail_at(u32* status, u8* report, u32 failure, u32 site, Operands... operands) {
    atomicOr(status, failure);
    if (report == nullptr || atomicCAS((u32*)report, 0u, site) != 0) return;
    keep_operands(report + 8, operands...);
}
#define WF_FAIL(failure, ...) fail_at(status, report, FAIL_##failure, __VA_ARGS__)

WF_DEVICE i128 make_i128(u64 high, u64 low) { return (i128)make_u128(high, low); }

// ------------------------------------------------------------------------------- wrapping integers

// The unsigned type to compute in: at least 32 bits, or promotion to (signed) int would come first.
template <class T> using wrapping = bits_of_width<sizeof(T) < 4 ? 4 : (int)sizeof(T)>;

template <class T> WF_DEVICE T wrap_add(T a, T b) {
    typedef typename wrapping<T>::type U;
    return (T)((U)a + (U)b);
}
template <class T> WF_DEVICE T wrap_sub(T a, T b) {
    typedef typename wrapping<T>::type U;
    return (T)((U)a - (U)b);
}
template <class T> WF_DEVICE T wrap_mul(T a, T b) {
    typedef typename wrapping<T>::type U;
    return (T)((U)a * (U)b);
}

// The type in which sums, differences and products of a type of at most 64 bits are exact.
template <class T, bool NARROW = sizeof(T) < 8> struct exact { typedef i64 type; };
template <class T> struct exact<T, false> { typedef i128 type; };

// A step of integers of at most 64 bits, and whether it leaves the type; it wraps where it does.
// (Of 128 bits: `decimal.cuh`.)
template <class T> WF_DEVICE bool add_exceeds(T a, T b, T* out) {
    typedef typename exact<T>::type W;
    const W sum = (W)a + (W)b;
    *out = (T)sum;
    return (W)*out != sum;
}
template <class T> WF_DEVICE bool sub_exceeds(T a, T b, T* out) {
    typedef typename exact<T>::type W;
    const W difference = (W)a - (W)b;
    *out = (T)difference;
    return (W)*out != difference;
}
template <class T> WF_DEVICE bool mul_exceeds(T a, T b, T* out) {
    typedef typename exact<T>::type W;
    // Of 64 bits without a sign the product may need all of 128.
    const W product = (W)((typename wrapping<W>::type)a * (typename wrapping<W>::type)b);
    *out = (T)product;
    return (W)*out != product;
}

// Truncated towards zero, for b other than 0. Of 128 bits that is long: it is once in the code.
WF_CALLED i128 divided_i128(i128 a, i128 b) { return a / b; }
template <class T> WF_DEVICE T divided(T a, T b) { return (T)(a / b); }
template <> WF_DEVICE i128 divided(i128 a, i128 b) { return divided_i128(a, b); }

// Truncated towards zero; 0 for a zero divisor. The least value by -1 wraps.
template <class T> WF_DEVICE T quotient(T a, T b) {
    if (b == (T)0) return (T)0;
    if (limits<T>::lowest() != (T)0 && b == (T)-1) return wrap_sub<T>((T)0, a);
    return divided<T>(a, b);
}

// Has the dividend's sign; 0 for a zero divisor.
template <class T> WF_DEVICE T remainder(T a, T b) {
    if (b == (T)0) return (T)0;
    if (limits<T>::lowest() != (T)0 && b == (T)-1) return (T)0;
    return (T)(a - divided<T>(a, b) * b);
}

// Divided towards minus infinity, for b > 0.
template <class T> WF_DEVICE T floor_quotient(T a, T b) {
    T whole = divided<T>(a, b);
    return (T)(whole - (a - whole * b < (T)0 ? 1 : 0));
}
template <class T> WF_DEVICE T floor_remainder(T a, T b) {
    T rest = (T)(a - divided<T>(a, b) * b);
    return (T)(rest < (T)0 ? rest + b : rest);
}

// ------------------------------------------------------------------------------------------ floats

// Never contracted to fused multiply-add: every device and the host round alike.
WF_DEVICE f64 fadd(f64 a, f64 b) { return __dadd_rn(a, b); }
WF_DEVICE f64 fsub(f64 a, f64 b) { return __dsub_rn(a, b); }
WF_DEVICE f64 fmul(f64 a, f64 b) { return __dmul_rn(a, b); }
WF_DEVICE f64 fdiv(f64 a, f64 b) { return __ddiv_rn(a, b); }
WF_CALLED f64 frem(f64 a, f64 b) { return fmod(a, b); }
WF_DEVICE f32 fadd(f32 a, f32 b) { return __fadd_rn(a, b); }
WF_DEVICE f32 fsub(f32 a, f32 b) { return __fsub_rn(a, b); }
WF_DEVICE f32 fmul(f32 a, f32 b) { return __fmul_rn(a, b); }
WF_DEVICE f32 fdiv(f32 a, f32 b) { return __fdiv_rn(a, b); }
WF_CALLED f32 frem(f32 a, f32 b) { return fmodf(a, b); }

// SQL's comparisons: NaN is one value, equal to itself and greater than every other number, and
// -0.0 is 0.0. Where one side is known to be no NaN, one of IEEE's says the same: `x < 5` is
// `x < 5`, and `x > 5` is `!(x <= 5)`.
template <class T> WF_DEVICE bool sql_less(T a, T b) { return a == a && !(a >= b); }
template <class T> WF_DEVICE bool sql_less_equal(T a, T b) { return b != b || a <= b; }
template <class T> WF_DEVICE bool sql_equal(T a, T b) { return a == b || (a != a && b != b); }

// --------------------------------------------------------------------------------------- searching

// Whether `value` is among `count` ascending integers.
WF_DEVICE bool in_sorted(i64 value, const i64* sorted, u32 count) {
    u32 low = 0, high = count;
    while (low < high) {
        u32 middle = (low + high) / 2;
        if (sorted[middle] < value)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && sorted[low] == value;
}

}  // namespace wf
