// sim.h: CUDA's names as host code, for the simulator. Included by prelude.cuh under WF_SIM, never
// elsewhere.
//
// No standard header is included: a kernel compiles in the time the compiler needs to start. What
// has to know other threads (barriers, warp collectives, shared memory, spinning) calls the
// simulator's runtime, which knows the calling thread. One OS thread runs a whole launch, so
// atomics are plain operations. The runtime itself is compiled with the part that says
// WF_SIM_RUNTIME: what both sides must agree on.

#pragma once

#define WF_SIM_EXPORT __attribute__((visibility("default")))

typedef __SIZE_TYPE__ size_t;

// ----------------------------------------------------------- what kernels and WF_SIM_RUNTIME share

// One-dimensional by convention: there is no `y` to misuse.
struct wf_sim_index {
    unsigned x;
};

// What a kernel sees of the thread that runs it: the head of the runtime's own record.
struct wf_sim_thread {
    wf_sim_index thread, block, block_dim, grid_dim;
    unsigned stepping;  // not 0: other threads may run at every atomic operation
};

struct wf_sim_facts {
    unsigned words;    // 8-byte words of parameters
    unsigned threads;  // most threads in a block
};

enum wf_sim_op {
    WF_SIM_SYNC,
    WF_SIM_SHFL,
    WF_SIM_SHFL_UP,
    WF_SIM_SHFL_DOWN,
    WF_SIM_SHFL_XOR,
    WF_SIM_BALLOT,
    WF_SIM_ANY,
    WF_SIM_ALL,
    WF_SIM_MATCH_ANY,
    WF_SIM_ADD,
    WF_SIM_MIN,
    WF_SIM_MAX,
    WF_SIM_MIN_SIGNED,
    WF_SIM_MAX_SIGNED,
    WF_SIM_AND,
    WF_SIM_OR,
    WF_SIM_XOR,
};

extern "C" {
// The calling thread: a variable where the loader lets shared objects share one cheaply (glibc), so
// that `threadIdx` costs an instruction, else a call.
#ifdef WF_SIM_TLS
#define WF_SIM_THREAD_LOCAL __thread __attribute__((tls_model("initial-exec")))
extern WF_SIM_EXPORT WF_SIM_THREAD_LOCAL wf_sim_thread* wf_sim_current;
#define WF_SIM_SELF wf_sim_current
#else
WF_SIM_EXPORT wf_sim_thread* wf_sim_self(void);
#define WF_SIM_SELF wf_sim_self()
#endif

WF_SIM_EXPORT int wf_sim_barrier(wf_sim_op op, int predicate, const char* file, int line);
WF_SIM_EXPORT unsigned long long wf_sim_warp(wf_sim_op op, unsigned mask, unsigned long long value, unsigned argument,
                                             unsigned width, const char* file, int line);
WF_SIM_EXPORT void* wf_sim_shared(const void* site, size_t bytes, const char* name);
WF_SIM_EXPORT void* wf_sim_dynamic_shared(void);
WF_SIM_EXPORT void wf_sim_spin_at(const char* file, int line);
WF_SIM_EXPORT void wf_sim_step_now(void);
WF_SIM_EXPORT void wf_sim_progress(void);
WF_SIM_EXPORT void wf_sim_trap(const char* file, int line);
WF_SIM_EXPORT void wf_sim_divided(const char* file, unsigned line, unsigned column);
}

#ifndef WF_SIM_RUNTIME

// ------------------------------------------------------------------------------------ the language

#define __device__
#define __host__
#define __global__
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))

extern "C" {
void* memcpy(void*, const void*, size_t);
void* memset(void*, int, size_t);
}

#define threadIdx (WF_SIM_SELF->thread)
#define blockIdx (WF_SIM_SELF->block)
#define blockDim (WF_SIM_SELF->block_dim)
#define gridDim (WF_SIM_SELF->grid_dim)
#define warpSize 32

inline void wf_sim_step() {
    if (__builtin_expect(WF_SIM_SELF->stepping, 0)) wf_sim_step_now();
}

// Where a call was made, for reports.
#define WF_SIM_HERE const char *file = __builtin_FILE(), int line = __builtin_LINE()

inline void __trap(WF_SIM_HERE) { wf_sim_trap(file, line); }
#ifdef WF_SIM_USERS
// What the compiler calls before integers are divided by zero, with where that is. It does not
// return.
extern "C" __attribute__((visibility("hidden"))) void __ubsan_handle_divrem_overflow(
    void* where, void*, void*) {
    struct place { const char* file; unsigned line, column; };
    const place* at = static_cast<const place*>(where);
    wf_sim_divided(at->file, at->line, at->column);
}
#endif
inline void __nanosleep(unsigned, WF_SIM_HERE) { wf_sim_spin_at(file, line); }
inline void __threadfence() {}
inline void __threadfence_block() {}

// ------------------------------------------------------------------------------------ vector types

#define WF_SIM_VECTOR(T, name, align2, align4)                                                      \
    struct __attribute__((aligned(align2))) name##2 { T x, y; };                                    \
    struct __attribute__((aligned(align4))) name##4 { T x, y, z, w; };                              \
    inline name##2 make_##name##2(T x, T y) { return {x, y}; }                                      \
    inline name##4 make_##name##4(T x, T y, T z, T w) { return {x, y, z, w}; }
WF_SIM_VECTOR(unsigned char, uchar, 2, 4)
WF_SIM_VECTOR(unsigned short, ushort, 4, 8)
WF_SIM_VECTOR(int, int, 8, 16)
WF_SIM_VECTOR(unsigned, uint, 8, 16)
WF_SIM_VECTOR(float, float, 8, 16)
#undef WF_SIM_VECTOR
struct __attribute__((aligned(16))) longlong2 { long long x, y; };
struct __attribute__((aligned(16))) ulonglong2 { unsigned long long x, y; };
struct __attribute__((aligned(16))) double2 { double x, y; };
inline longlong2 make_longlong2(long long x, long long y) { return {x, y}; }
inline ulonglong2 make_ulonglong2(unsigned long long x, unsigned long long y) { return {x, y}; }
inline double2 make_double2(double x, double y) { return {x, y}; }

template <class T> inline T __ldg(const T* at) { return *at; }
template <class T> inline T __ldcs(const T* at) { return *at; }
template <class T> inline T __ldcg(const T* at) { return *at; }
template <class T> inline T __ldca(const T* at) { return *at; }
template <class T> inline void __stcs(T* at, T value) { *at = value; }
template <class T> inline void __stcg(T* at, T value) { *at = value; }

// ---------------------------------------------------------------------------------- block barriers

inline void __syncthreads(WF_SIM_HERE) { wf_sim_barrier(WF_SIM_SYNC, 0, file, line); }
inline int __syncthreads_or(int holds, WF_SIM_HERE) { return wf_sim_barrier(WF_SIM_OR, holds, file, line); }
inline int __syncthreads_and(int holds, WF_SIM_HERE) { return wf_sim_barrier(WF_SIM_AND, holds, file, line); }
inline int __syncthreads_count(int holds, WF_SIM_HERE) { return wf_sim_barrier(WF_SIM_ADD, holds, file, line); }

// -------------------------------------------------------------------------------- warp collectives

template <class T> inline T wf_sim_value(wf_sim_op op, unsigned mask, T value, unsigned by, unsigned width,
                                         const char* file, int line) {
    static_assert(sizeof(T) == 4 || sizeof(T) == 8, "CUDA's shuffles take 4- and 8-byte types; wf::shuffle takes more");
    unsigned long long bits = 0;
    __builtin_memcpy(&bits, &value, sizeof(T));
    bits = wf_sim_warp(op, mask, bits, by, width, file, line);
    __builtin_memcpy(&value, &bits, sizeof(T));
    return value;
}
template <class T> inline T __shfl_sync(unsigned mask, T value, int from, int width = 32, WF_SIM_HERE) {
    return wf_sim_value(WF_SIM_SHFL, mask, value, from, width, file, line);
}
template <class T> inline T __shfl_up_sync(unsigned mask, T value, unsigned by, int width = 32, WF_SIM_HERE) {
    return wf_sim_value(WF_SIM_SHFL_UP, mask, value, by, width, file, line);
}
template <class T> inline T __shfl_down_sync(unsigned mask, T value, unsigned by, int width = 32, WF_SIM_HERE) {
    return wf_sim_value(WF_SIM_SHFL_DOWN, mask, value, by, width, file, line);
}
template <class T> inline T __shfl_xor_sync(unsigned mask, T value, int by, int width = 32, WF_SIM_HERE) {
    return wf_sim_value(WF_SIM_SHFL_XOR, mask, value, by, width, file, line);
}
template <class T> inline unsigned __match_any_sync(unsigned mask, T value, WF_SIM_HERE) {
    static_assert(sizeof(T) == 4 || sizeof(T) == 8, "CUDA's match takes 4- and 8-byte types");
    unsigned long long bits = 0;
    __builtin_memcpy(&bits, &value, sizeof(T));
    return (unsigned)wf_sim_warp(WF_SIM_MATCH_ANY, mask, bits, 0, 32, file, line);
}
inline void __syncwarp(unsigned mask = 0xffffffffu, WF_SIM_HERE) { wf_sim_warp(WF_SIM_SYNC, mask, 0, 0, 32, file, line); }
inline unsigned __ballot_sync(unsigned mask, int holds, WF_SIM_HERE) {
    return (unsigned)wf_sim_warp(WF_SIM_BALLOT, mask, holds != 0, 0, 32, file, line);
}
inline int __any_sync(unsigned mask, int holds, WF_SIM_HERE) {
    return (int)wf_sim_warp(WF_SIM_ANY, mask, holds != 0, 0, 32, file, line);
}
inline int __all_sync(unsigned mask, int holds, WF_SIM_HERE) {
    return (int)wf_sim_warp(WF_SIM_ALL, mask, holds != 0, 0, 32, file, line);
}
#define WF_SIM_REDUCE(T, name, op)                                             \
    inline T name(unsigned mask, T value, WF_SIM_HERE) {                       \
        return (T)wf_sim_warp(op, mask, (unsigned)value, 0, 32, file, line);   \
    }
WF_SIM_REDUCE(unsigned, __reduce_add_sync, WF_SIM_ADD)
WF_SIM_REDUCE(int, __reduce_add_sync, WF_SIM_ADD)
WF_SIM_REDUCE(unsigned, __reduce_min_sync, WF_SIM_MIN)
WF_SIM_REDUCE(int, __reduce_min_sync, WF_SIM_MIN_SIGNED)
WF_SIM_REDUCE(unsigned, __reduce_max_sync, WF_SIM_MAX)
WF_SIM_REDUCE(int, __reduce_max_sync, WF_SIM_MAX_SIGNED)
WF_SIM_REDUCE(unsigned, __reduce_and_sync, WF_SIM_AND)
WF_SIM_REDUCE(unsigned, __reduce_or_sync, WF_SIM_OR)
WF_SIM_REDUCE(unsigned, __reduce_xor_sync, WF_SIM_XOR)
#undef WF_SIM_REDUCE

// ----------------------------------------------------------------------------------------- atomics

// Overloads, not templates: CUDA converts the operand to the pointer's type.
#define WF_SIM_ATOMIC(T, name, result)      \
    inline T name(T* at, T value) {         \
        wf_sim_step();                      \
        T old = *at;                        \
        *at = (result);                     \
        return old;                         \
    }
#define WF_SIM_ATOMIC_INTEGER(T)                                \
    WF_SIM_ATOMIC(T, atomicMin, value < old ? value : old)      \
    WF_SIM_ATOMIC(T, atomicMax, old < value ? value : old)      \
    WF_SIM_ATOMIC(T, atomicAnd, old & value)                    \
    WF_SIM_ATOMIC(T, atomicOr, old | value)                     \
    WF_SIM_ATOMIC(T, atomicXor, old ^ value)
WF_SIM_ATOMIC_INTEGER(int)
WF_SIM_ATOMIC_INTEGER(unsigned)
WF_SIM_ATOMIC_INTEGER(long long)
WF_SIM_ATOMIC_INTEGER(unsigned long long)
WF_SIM_ATOMIC(int, atomicAdd, (int)((unsigned)old + (unsigned)value))
WF_SIM_ATOMIC(unsigned, atomicAdd, old + value)
WF_SIM_ATOMIC(unsigned long long, atomicAdd, old + value)
WF_SIM_ATOMIC(float, atomicAdd, old + value)
WF_SIM_ATOMIC(double, atomicAdd, old + value)
WF_SIM_ATOMIC(int, atomicSub, (int)((unsigned)old - (unsigned)value))
WF_SIM_ATOMIC(unsigned, atomicSub, old - value)
WF_SIM_ATOMIC(int, atomicExch, value)
WF_SIM_ATOMIC(unsigned, atomicExch, value)
WF_SIM_ATOMIC(unsigned long long, atomicExch, value)
WF_SIM_ATOMIC(float, atomicExch, value)
#undef WF_SIM_ATOMIC_INTEGER
#undef WF_SIM_ATOMIC
#define WF_SIM_CAS(T)                                           \
    inline T atomicCAS(T* at, T expected, T desired) {          \
        wf_sim_step();                                          \
        T old = *at;                                            \
        if (old == expected) *at = desired;                     \
        return old;                                             \
    }
WF_SIM_CAS(int)
WF_SIM_CAS(unsigned)
WF_SIM_CAS(unsigned long long)
#undef WF_SIM_CAS

// ---------------------------------------------------------------------------------------- integers

inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
inline int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)x) : 64; }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline unsigned __brev(unsigned x) {
    x = (x >> 1 & 0x55555555u) | (x & 0x55555555u) << 1;
    x = (x >> 2 & 0x33333333u) | (x & 0x33333333u) << 2;
    x = (x >> 4 & 0x0f0f0f0fu) | (x & 0x0f0f0f0fu) << 4;
    return __builtin_bswap32(x);
}
inline unsigned long long __brevll(unsigned long long x) {
    return (unsigned long long)__brev((unsigned)x) << 32 | __brev((unsigned)(x >> 32));
}
inline unsigned __byte_perm(unsigned a, unsigned b, unsigned selectors) {
    unsigned long long both = (unsigned long long)b << 32 | a;
    unsigned result = 0;
    for (int i = 0; i < 4; i++) {
        unsigned selector = selectors >> 4 * i & 15;
        unsigned byte = (unsigned)(both >> 8 * (selector & 7)) & 255;
        if (selector & 8) byte = byte & 128 ? 255 : 0;  // the selector's top bit replicates the byte's sign
        result |= byte << 8 * i;
    }
    return result;
}
inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((unsigned long long)a * b >> 32); }
inline int __mulhi(int a, int b) { return (int)((long long)a * b >> 32); }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    return (unsigned long long)((unsigned __int128)a * b >> 64);
}
inline long long __mul64hi(long long a, long long b) { return (long long)((__int128)a * b >> 64); }
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
    return (unsigned)((((unsigned long long)high << 32 | low) << (shift & 31)) >> 32);
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
    return (unsigned)(((unsigned long long)high << 32 | low) >> (shift & 31));
}

// CUDA's overloads of min and max: the mixed ones compare as unsigned.
#define WF_SIM_MIN_MAX(R, A, B)                                                      \
    inline R min(A a, B b) { return (R)b < (R)a ? (R)b : (R)a; }                     \
    inline R max(A a, B b) { return (R)a < (R)b ? (R)b : (R)a; }
WF_SIM_MIN_MAX(int, int, int)
WF_SIM_MIN_MAX(unsigned, unsigned, unsigned)
WF_SIM_MIN_MAX(unsigned, int, unsigned)
WF_SIM_MIN_MAX(unsigned, unsigned, int)
WF_SIM_MIN_MAX(long, long, long)
WF_SIM_MIN_MAX(unsigned long, unsigned long, unsigned long)
WF_SIM_MIN_MAX(long long, long long, long long)
WF_SIM_MIN_MAX(unsigned long long, unsigned long long, unsigned long long)
WF_SIM_MIN_MAX(unsigned long long, long long, unsigned long long)
WF_SIM_MIN_MAX(unsigned long long, unsigned long long, long long)
#undef WF_SIM_MIN_MAX

// -------------------------------------------------------------------------- floats: bits, rounding

#define WF_SIM_BITS(To, From, name)                    \
    inline To name(From from) {                        \
        To to;                                         \
        __builtin_memcpy(&to, &from, sizeof(To));      \
        return to;                                     \
    }
WF_SIM_BITS(unsigned, float, __float_as_uint)
WF_SIM_BITS(int, float, __float_as_int)
WF_SIM_BITS(float, unsigned, __uint_as_float)
WF_SIM_BITS(float, int, __int_as_float)
WF_SIM_BITS(long long, double, __double_as_longlong)
WF_SIM_BITS(double, long long, __longlong_as_double)
#undef WF_SIM_BITS

inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dsub_rn(double a, double b) { return a - b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline double __ddiv_rn(double a, double b) { return a / b; }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }

// Conversions towards zero saturate, as on the GPU; a plain cast out of range is undefined in C++.
// NaN gives 0 for 32-bit results of a float, else the GPU's 1 << (width - 1).
#define WF_SIM_CONVERT(To, From, name, low, high, least, greatest, nan) \
    inline To name(From x) {                                            \
        if (x != x) return nan;                                         \
        if (x <= low) return least;                                     \
        if (x >= high) return greatest;                                 \
        return (To)x;                                                   \
    }
#define WF_SIM_CONVERSIONS(From, prefix, nan32)                                                                       \
    WF_SIM_CONVERT(int, From, prefix##2int_rz, -2147483648.0, 2147483648.0, -2147483647 - 1, 2147483647, (int)nan32)  \
    WF_SIM_CONVERT(unsigned, From, prefix##2uint_rz, -1.0, 4294967296.0, 0, 4294967295u, nan32)                       \
    WF_SIM_CONVERT(long long, From, prefix##2ll_rz, -9223372036854775808.0, 9223372036854775808.0,                    \
                   -9223372036854775807ll - 1, 9223372036854775807ll, -9223372036854775807ll - 1)                     \
    WF_SIM_CONVERT(unsigned long long, From, prefix##2ull_rz, -1.0, 18446744073709551616.0, 0,                        \
                   18446744073709551615ull, 9223372036854775808ull)
WF_SIM_CONVERSIONS(float, __float, 0u)
WF_SIM_CONVERSIONS(double, __double, 2147483648u)
#undef WF_SIM_CONVERSIONS
#undef WF_SIM_CONVERT
inline int __double2int_rn(double x) { return __double2int_rz(__builtin_rint(x)); }
inline long long __double2ll_rn(double x) { return __double2ll_rz(__builtin_rint(x)); }

// -------------------------------------------------------------------------------------------- math

// CUDA overloads C's names by type; C's library supplies `name` for double and `namef` for float.
#define WF_SIM_MATH1(name)                                              \
    extern "C" double name(double) noexcept;                            \
    extern "C" float name##f(float) noexcept;                           \
    inline float name(float x) { return name##f(x); }
#define WF_SIM_MATH2(name)                                              \
    extern "C" double name(double, double) noexcept;                    \
    extern "C" float name##f(float, float) noexcept;                    \
    inline float name(float x, float y) { return name##f(x, y); }
WF_SIM_MATH1(sqrt)
WF_SIM_MATH1(cbrt)
WF_SIM_MATH1(exp)
WF_SIM_MATH1(exp2)
WF_SIM_MATH1(expm1)
WF_SIM_MATH1(log)
WF_SIM_MATH1(log2)
WF_SIM_MATH1(log10)
WF_SIM_MATH1(log1p)
WF_SIM_MATH1(sin)
WF_SIM_MATH1(cos)
WF_SIM_MATH1(tan)
WF_SIM_MATH1(asin)
WF_SIM_MATH1(acos)
WF_SIM_MATH1(atan)
WF_SIM_MATH1(sinh)
WF_SIM_MATH1(cosh)
WF_SIM_MATH1(tanh)
WF_SIM_MATH1(asinh)
WF_SIM_MATH1(acosh)
WF_SIM_MATH1(atanh)
WF_SIM_MATH1(erf)
WF_SIM_MATH1(erfc)
WF_SIM_MATH1(lgamma)
WF_SIM_MATH1(tgamma)
WF_SIM_MATH1(floor)
WF_SIM_MATH1(ceil)
WF_SIM_MATH1(round)
WF_SIM_MATH1(trunc)
WF_SIM_MATH1(rint)
WF_SIM_MATH1(fabs)
WF_SIM_MATH2(pow)
WF_SIM_MATH2(fmod)
WF_SIM_MATH2(fmin)
WF_SIM_MATH2(fmax)
WF_SIM_MATH2(atan2)
WF_SIM_MATH2(hypot)
WF_SIM_MATH2(copysign)
WF_SIM_MATH2(fdim)
WF_SIM_MATH2(nextafter)
WF_SIM_MATH2(remainder)
#undef WF_SIM_MATH1
#undef WF_SIM_MATH2
extern "C" double fma(double, double, double) noexcept;
extern "C" float fmaf(float, float, float) noexcept;
inline float fma(float x, float y, float z) { return fmaf(x, y, z); }
inline double __fma_rn(double x, double y, double z) { return fma(x, y, z); }
inline float __fmaf_rn(float x, float y, float z) { return fmaf(x, y, z); }
inline double __dsqrt_rn(double x) { return sqrt(x); }
inline float min(float a, float b) { return fminf(a, b); }
inline float max(float a, float b) { return fmaxf(a, b); }
inline double min(double a, double b) { return fmin(a, b); }
inline double max(double a, double b) { return fmax(a, b); }
inline int abs(int x) { return x < 0 ? -x : x; }
inline long long abs(long long x) { return x < 0 ? -x : x; }
inline long long llabs(long long x) { return x < 0 ? -x : x; }
inline double abs(double x) { return __builtin_fabs(x); }
inline float abs(float x) { return __builtin_fabsf(x); }
inline bool isnan(double x) { return __builtin_isnan(x); }
inline bool isnan(float x) { return __builtin_isnan(x); }
inline bool isinf(double x) { return __builtin_isinf(x); }
inline bool isinf(float x) { return __builtin_isinf(x); }
inline bool isfinite(double x) { return __builtin_isfinite(x); }
inline bool isfinite(float x) { return __builtin_isfinite(x); }
inline bool signbit(double x) { return __builtin_signbit(x); }
inline bool signbit(float x) { return __builtin_signbit(x); }

#endif  // WF_SIM_RUNTIME
