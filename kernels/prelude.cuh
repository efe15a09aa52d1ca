// prelude.cuh: the language that every kernel is written in, for two compilers.
//
//   NVRTC / nvcc (sm_80 and later)      GPU code; CUDA's names are built in, no standard header
//   any C++17 compiler with -DWF_SIM    host code for the simulator; sim.h supplies CUDA's names
//
// What differs between the two lives here and in sim.h, and nowhere else. Inline PTX appears only
// in this file.
//
//   struct FillParams { u64* out; u64 value; i64 n; };
//   WF_KERNEL(fill_u64, FillParams) {
//       i64 i = global_thread();
//       if (i < p.n) p.out[i] = p.value;
//   }

#pragma once

#ifdef WF_SIM
#include "sim.h"
#endif

namespace wf {

// ------------------------------------------------------------------------------------------- types

typedef signed char i8;
typedef short i16;
typedef int i32;
typedef long long i64;
typedef __int128 i128;
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef unsigned __int128 u128;
typedef float f32;
typedef double f64;
typedef u8 bool8;  // 0 or 1; what a boolean column and a validity column hold

static_assert(sizeof(i64) == 8 && sizeof(i128) == 16 && sizeof(void*) == 8, "64-bit targets only");

constexpr u32 FULL_WARP = 0xffffffffu;
constexpr u32 WARP = 32;

constexpr i8 I8_MIN = -128, I8_MAX = 127;
constexpr i16 I16_MIN = -32768, I16_MAX = 32767;
constexpr i32 I32_MIN = -2147483647 - 1, I32_MAX = 2147483647;
constexpr i64 I64_MIN = -9223372036854775807ll - 1, I64_MAX = 9223372036854775807ll;
constexpr i128 I128_MAX = (i128)(~(u128)0 >> 1), I128_MIN = -I128_MAX - 1;
constexpr u8 U8_MAX = 255;
constexpr u16 U16_MAX = 65535;
constexpr u32 U32_MAX = 4294967295u;
constexpr u64 U64_MAX = 18446744073709551615ull;
constexpr u128 U128_MAX = ~(u128)0;
constexpr f32 F32_MAX = 3.402823466e+38f;
constexpr f64 F64_MAX = 1.7976931348623157e+308;

// --------------------------------------------------------------------- entry points, shared memory

#ifdef WF_SIM

// The entry takes the argument words; `wf_sim_facts_<name>` lets a launch check their number and
// the block's size.
#define WF_KERNEL_BOUNDS(threads, min_blocks, name, ...)                                                  \
    static void wf_sim_body_of_##name(const __VA_ARGS__& p);                                              \
    static_assert(sizeof(__VA_ARGS__) % 8 == 0, "every field of a kernel's parameters is 8 bytes wide");  \
    extern "C" {                                                                                          \
    WF_SIM_EXPORT extern const ::wf_sim_facts wf_sim_facts_##name;                                        \
    const ::wf_sim_facts wf_sim_facts_##name = {sizeof(__VA_ARGS__) / 8, threads};                        \
    WF_SIM_EXPORT void name(const void* words) {                                                          \
        wf_sim_body_of_##name(*static_cast<const __VA_ARGS__*>(words));                                   \
    }                                                                                                     \
    }                                                                                                     \
    static void wf_sim_body_of_##name(const __VA_ARGS__& p)
#define WF_KERNEL(name, ...) WF_KERNEL_BOUNDS(1024, 1, name, __VA_ARGS__)

// Each declaration (and each instantiation of a template that holds it) is one object a block,
// found by the address of its `site`.
#define WF_SHARED(Type, name)  \
    static char name##_site;   \
    Type& name = *static_cast<Type*>(wf_sim_shared(&name##_site, sizeof(Type), #name))
#define WF_SHARED_ARRAY(Type, name, count)   \
    static char name##_site;                 \
    Type(&name)[count] = *static_cast<Type(*)[count]>(wf_sim_shared(&name##_site, sizeof(Type) * (count), #name))
#define WF_DYNAMIC_SHARED(name) unsigned char* const name = static_cast<unsigned char*>(wf_sim_dynamic_shared())

#else

#define WF_KERNEL(name, ...) extern "C" __global__ void name(const __VA_ARGS__ p)
#define WF_KERNEL_BOUNDS(threads, min_blocks, name, ...) \
    extern "C" __global__ void __launch_bounds__(threads, min_blocks) name(const __VA_ARGS__ p)
#define WF_SHARED(Type, name) __shared__ Type name
#define WF_SHARED_ARRAY(Type, name, count) __shared__ Type name[count]
#define WF_DYNAMIC_SHARED(name) extern __shared__ __align__(16) unsigned char name[]

#endif

// A device function that is always inlined; one that never is, because it is long: kernels that
// call it often stay small.
#define WF_DEVICE __device__ __forceinline__
#define WF_CALLED inline __device__ __noinline__
// WF_PART behind a lambda's parameters keeps it from being inlined: the lambda is a part of a body
// that is too long to be compiled in one piece.
#define WF_PART __attribute__((noinline))

// ---------------------------------------------------------------------------------- type functions

template <class A, class B> struct is_same { static constexpr bool value = false; };
template <class A> struct is_same<A, A> { static constexpr bool value = true; };

template <bool yes, class A, class B> struct conditional { typedef A type; };
template <class A, class B> struct conditional<false, A, B> { typedef B type; };

// The unsigned type of a width in bytes, and of another type's width.
template <int bytes> struct bits_of_width;
template <> struct bits_of_width<1> { typedef u8 type; };
template <> struct bits_of_width<2> { typedef u16 type; };
template <> struct bits_of_width<4> { typedef u32 type; };
template <> struct bits_of_width<8> { typedef u64 type; };
template <> struct bits_of_width<16> { typedef u128 type; };
template <class T> using bits_of = typename bits_of_width<sizeof(T)>::type;

// Least and greatest value of an arithmetic type; of a float the infinities (no constants: NVRTC
// has no such literal).
template <class T> struct limits;
#define WF_LIMITS(T, least, greatest)                                 \
    template <> struct limits<T> {                                    \
        static WF_DEVICE constexpr T lowest() { return (least); }     \
        static WF_DEVICE constexpr T highest() { return (greatest); } \
    };
WF_LIMITS(i8, I8_MIN, I8_MAX)
WF_LIMITS(i16, I16_MIN, I16_MAX)
WF_LIMITS(i32, I32_MIN, I32_MAX)
WF_LIMITS(i64, I64_MIN, I64_MAX)
WF_LIMITS(i128, I128_MIN, I128_MAX)
WF_LIMITS(u8, 0, U8_MAX)
WF_LIMITS(u16, 0, U16_MAX)
WF_LIMITS(u32, 0, U32_MAX)
WF_LIMITS(u64, 0, U64_MAX)
WF_LIMITS(u128, 0, U128_MAX)
#undef WF_LIMITS
template <> struct limits<f32> {
    static WF_DEVICE f32 lowest() { return __uint_as_float(0xff800000u); }
    static WF_DEVICE f32 highest() { return __uint_as_float(0x7f800000u); }
};
template <> struct limits<f64> {
    static WF_DEVICE f64 lowest() { return __longlong_as_double((i64)0xfff0000000000000ull); }
    static WF_DEVICE f64 highest() { return __longlong_as_double(0x7ff0000000000000ll); }
};

// ------------------------------------------------------------------------------------ reading bits

// The value of type To with the bits of `from`.
template <class To, class From> WF_DEVICE To bit_cast(const From& from) {
    static_assert(sizeof(To) == sizeof(From), "bit_cast keeps the width");
    To to;
    memcpy(&to, &from, sizeof(To));
    return to;
}

WF_DEVICE u32 bits(f32 value) { return __float_as_uint(value); }
WF_DEVICE u64 bits(f64 value) { return (u64)__double_as_longlong(value); }
WF_DEVICE f32 float_of_bits(u32 value) { return __uint_as_float(value); }
WF_DEVICE f64 double_of_bits(u64 value) { return __longlong_as_double((i64)value); }

WF_DEVICE u64 low_word(u128 value) { return (u64)value; }
WF_DEVICE u64 high_word(u128 value) { return (u64)(value >> 64); }
WF_DEVICE u128 make_u128(u64 high, u64 low) { return ((u128)high << 64) | low; }

// -------------------------------------------------------------------------------------- arithmetic

// For any ordered type; CUDA's `min` and `max` know the native ones only.
template <class T> WF_DEVICE constexpr T minimum(T a, T b) { return b < a ? b : a; }
template <class T> WF_DEVICE constexpr T maximum(T a, T b) { return a < b ? b : a; }
template <class T> WF_DEVICE constexpr T divide_up(T a, T b) { return (a + b - 1) / b; }

WF_DEVICE u32 mul_high(u32 a, u32 b) { return __umulhi(a, b); }
WF_DEVICE u64 mul_high(u64 a, u64 b) { return __umul64hi(a, b); }

// Zeros above the highest set bit, below the lowest set bit; the width where no bit is set.
WF_DEVICE int leading_zeros(u32 value) { return __clz((int)value); }
WF_DEVICE int leading_zeros(u64 value) { return __clzll((i64)value); }
WF_DEVICE int trailing_zeros(u32 value) { return value ? __ffs((int)value) - 1 : 32; }
WF_DEVICE int trailing_zeros(u64 value) { return value ? __ffsll((i64)value) - 1 : 64; }

// -------------------------------------------------------------------------------------- where am I

WF_DEVICE u32 lane() { return threadIdx.x & 31u; }
WF_DEVICE u32 warp() { return threadIdx.x >> 5; }
// This thread among all of the grid, and the grid's threads: the stride of a grid-stride loop.
WF_DEVICE i64 global_thread() { return (i64)blockIdx.x * blockDim.x + threadIdx.x; }
WF_DEVICE i64 global_threads() { return (i64)gridDim.x * blockDim.x; }
// The lanes below, at or below, above this one.
WF_DEVICE u32 lanes_below() { return (1u << lane()) - 1u; }
WF_DEVICE u32 lanes_up_to() { return (2u << lane()) - 1u; }
WF_DEVICE u32 lanes_above() { return ~lanes_up_to(); }

// ------------------------------------------------------------------ flags between blocks, spinning

#ifdef WF_SIM

WF_DEVICE void spin(WF_SIM_HERE) { wf_sim_spin_at(file, line); }
#define WF_FLAG(T)                                                 \
    WF_DEVICE T load_relaxed(const T* at) {                        \
        wf_sim_step();                                             \
        return *(const volatile T*)at;                             \
    }                                                              \
    WF_DEVICE void store_relaxed(T* at, T value) {                 \
        wf_sim_step();                                             \
        *(volatile T*)at = value;                                  \
        wf_sim_progress();                                         \
    }                                                              \
    WF_DEVICE T load_acquire(const T* at) { return load_relaxed(at); } \
    WF_DEVICE void store_release(T* at, T value) { store_relaxed(at, value); }
WF_FLAG(u32)
WF_FLAG(u64)
WF_FLAG(u128)
#undef WF_FLAG

#else

// Waits a little; every loop that waits for another thread's write calls this. `__nanosleep` frees
// issue slots.
WF_DEVICE void spin() { __nanosleep(32); }

// The 128-bit forms are single accesses (PTX 8.3): a flag and a 64-bit value are published
// together.
#define WF_FLAG(T, suffix, constraint)                                                                     \
    WF_DEVICE T load_acquire(const T* at) {                                                                \
        T value;                                                                                           \
        asm volatile("ld.acquire.gpu." suffix " %0, [%1];" : "=" constraint(value) : "l"(at) : "memory");  \
        return value;                                                                                      \
    }                                                                                                      \
    WF_DEVICE void store_release(T* at, T value) {                                                         \
        asm volatile("st.release.gpu." suffix " [%0], %1;" ::"l"(at), constraint(value) : "memory");       \
    }                                                                                                      \
    WF_DEVICE T load_relaxed(const T* at) {                                                                \
        T value;                                                                                           \
        asm volatile("ld.relaxed.gpu." suffix " %0, [%1];" : "=" constraint(value) : "l"(at) : "memory");  \
        return value;                                                                                      \
    }                                                                                                      \
    WF_DEVICE void store_relaxed(T* at, T value) {                                                         \
        asm volatile("st.relaxed.gpu." suffix " [%0], %1;" ::"l"(at), constraint(value) : "memory");       \
    }
WF_FLAG(u32, "u32", "r")
WF_FLAG(u64, "u64", "l")
WF_FLAG(u128, "b128", "q")
#undef WF_FLAG

#endif

// ------------------------------------------------------------ loads and stores with a caching hint

// The native type that moves `bytes` bytes in one access.
template <int bytes> struct access_of_width { typedef typename bits_of_width<bytes>::type type; };
template <> struct access_of_width<16> { typedef ulonglong2 type; };

// Reads what is read once and should not displace what is read again. Widths 1, 2, 4, 8 and 16,
// aligned.
template <class T> WF_DEVICE T load_stream(const T* at) {
    typedef typename access_of_width<sizeof(T)>::type A;
    return bit_cast<T>(__ldcs((const A*)at));
}

// Reads memory that no thread writes during the kernel, through the read-only path.
template <class T> WF_DEVICE T load_const(const T* at) {
    typedef typename access_of_width<sizeof(T)>::type A;
    return bit_cast<T>(__ldg((const A*)at));
}

// Writes what this kernel does not read again.
template <class T> WF_DEVICE void store_stream(T* at, T value) {
    typedef typename access_of_width<sizeof(T)>::type A;
    __stcs((A*)at, bit_cast<A>(value));
}

// A pointer to global memory. One made of a number otherwise leads to any memory, which each access
// has to find out.
template <class T> WF_DEVICE T* global_at(u64 address) {
    T* const at = reinterpret_cast<T*>(address);
#ifndef WF_SIM
    __builtin_assume(__isGlobal(at));
#endif
    return at;
}

// --------------------------------------------------- from global to shared memory, behind the back

// Copies 16 aligned bytes without passing registers; they are there after the thread's
// `copies_done`.
#ifdef WF_SIM
WF_DEVICE void copy_later(void* shared, const void* global) { memcpy(shared, global, 16); }
WF_DEVICE void copies_done() {}
#else
WF_DEVICE void copy_later(void* shared, const void* global) {
    const u32 to = (u32)__cvta_generic_to_shared(shared);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(global) : "memory");
}
WF_DEVICE void copies_done() { asm volatile("cp.async.wait_all;" ::: "memory"); }
#endif

// --------------------------------------------------------------------------- shuffles of any width

// CUDA's shuffles take 4- and 8-byte types; these take 1 to 16 bytes.
#define WF_SHUFFLE(name, intrinsic, By)                                        \
    template <class T> WF_DEVICE T name(u32 mask, T value, By by) {            \
        if constexpr (sizeof(T) == 16) {                                       \
            u128 whole = bit_cast<u128>(value);                                \
            u64 low = intrinsic(mask, low_word(whole), by);                    \
            u64 high = intrinsic(mask, high_word(whole), by);                  \
            return bit_cast<T>(make_u128(high, low));                          \
        } else if constexpr (sizeof(T) == 8) {                                 \
            return bit_cast<T>((u64)intrinsic(mask, bit_cast<u64>(value), by)); \
        } else {                                                               \
            typedef bits_of<T> B;                                              \
            return bit_cast<T>((B)(u32)intrinsic(mask, (u32)bit_cast<B>(value), by)); \
        }                                                                      \
    }
WF_SHUFFLE(shuffle, __shfl_sync, int)
WF_SHUFFLE(shuffle_up, __shfl_up_sync, u32)
WF_SHUFFLE(shuffle_down, __shfl_down_sync, u32)
WF_SHUFFLE(shuffle_xor, __shfl_xor_sync, int)
#undef WF_SHUFFLE

}  // namespace wf
