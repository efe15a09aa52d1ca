// raw.cuh: what whole kernels of users find in the simulator. A GPU has all of it, so that there
// their text is compiled as it is; for the simulator src/user_code/raw/rewrite.rs changes it first:
//
//   const double* x                   checked<const double> x
//   __shared__ float tile[32][33];    float (&tile)[32][33] = …;   an object of the block's
//   extern __shared__ float all[];    static ::wf::dynamic_shared<float> all;
//
// and makes an entry point that calls the kernel with the words of a launch:
//
//   grid x y z | block x y z | bytes of dynamic shared memory | address, bytes or number, for each argument

#pragma once
#include "prelude.cuh"

#ifdef WF_SIM

extern "C" {
WF_SIM_EXPORT void wf_sim_outside(const char* argument, long long index, unsigned long long length);
int printf(const char*, ...);
}

// -------------------------------------------------------------------------- three dimensions of
// one

struct uint3 {
    unsigned x, y, z;
};
struct int3 {
    int x, y, z;
};
struct float3 {
    float x, y, z;
};
struct double3 {
    double x, y, z;
};
inline uint3 make_uint3(unsigned x, unsigned y, unsigned z) { return {x, y, z}; }
inline int3 make_int3(int x, int y, int z) { return {x, y, z}; }
inline float3 make_float3(float x, float y, float z) { return {x, y, z}; }
inline double3 make_double3(double x, double y, double z) { return {x, y, z}; }
struct dim3 {
    unsigned x, y, z;
    dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
    operator uint3() const { return {x, y, z}; }
};

namespace wf {

// Of the launch that this OS thread runs.
static __thread const u64* raw_words;
static __thread u64 raw_turns;

inline uint3 raw_sides(int at) { return {(u32)raw_words[at], (u32)raw_words[at + 1], (u32)raw_words[at + 2]}; }
// Counted along x first, then y, then z.
inline uint3 raw_place(u32 number, uint3 sides) {
    return {number % sides.x, number / sides.x % sides.y, number / sides.x / sides.y};
}

}  // namespace wf

#undef threadIdx
#undef blockIdx
#undef blockDim
#undef gridDim
#define threadIdx (::wf::raw_place(WF_SIM_SELF->thread.x, ::wf::raw_sides(3)))
#define blockIdx (::wf::raw_place(WF_SIM_SELF->block.x, ::wf::raw_sides(0)))
#define blockDim (::wf::raw_sides(3))
#define gridDim (::wf::raw_sides(0))

namespace wf {

// ------------------------------------------------------------------------------------------- loops

// Turns that the loops of a thread may take in the time between two starts of threads: some
// seconds.
constexpr u64 MOST_RAW_TURNS = 1ull << 31;
inline bool raw_turn(WF_SIM_HERE) {
    if (++raw_turns > MOST_RAW_TURNS) wf_sim_trap(file, line);
    return true;
}

// ---------------------------------------------------------------------------------------- pointers

// A pointer that knows what it may lead to, if it is one of an argument's (`last` is not null).
template <class T> struct checked {
    T* at;
    T* first;
    T* last;  // behind the last element
    const char* argument;

    checked() : at(nullptr), first(nullptr), last(nullptr), argument(nullptr) {}
    checked(T* at) : at(at), first(nullptr), last(nullptr), argument(nullptr) {}
    checked(T* at, T* first, T* last, const char* argument) : at(at), first(first), last(last), argument(argument) {}

    // The address, which is about to be read or written.
    T* used(T* p) const {
        if (last && (p < first || p >= last)) outside(p);
        return p;
    }
    void outside(T* p) const {
        const long long bytes = (long long)((const char*)p - (const char*)first);
        const long long size = (long long)sizeof(T);
        const long long index = bytes >= 0 ? bytes / size : -((size - 1 - bytes) / size);
        wf_sim_outside(argument, index, (unsigned long long)(last - first));
    }
    checked moved(long long by) const { return checked(at + by, first, last, argument); }

    template <class I> T& operator[](I i) const { return *used(at + i); }
    T& operator*() const { return *used(at); }
    T* operator->() const { return used(at); }

    template <class I> checked operator+(I by) const { return moved((long long)by); }
    template <class I> friend checked operator+(I by, const checked& p) { return p.moved((long long)by); }
    template <class I> checked operator-(I by) const { return moved(-(long long)by); }
    long long operator-(const checked& other) const { return at - other.at; }
    template <class I> checked& operator+=(I by) { return at += by, *this; }
    template <class I> checked& operator-=(I by) { return at -= by, *this; }
    checked& operator++() { return ++at, *this; }
    checked& operator--() { return --at, *this; }
    checked operator++(int) { checked old = *this; return ++at, old; }
    checked operator--(int) { checked old = *this; return --at, old; }

    friend bool operator==(const checked& a, const checked& b) { return a.at == b.at; }
    friend bool operator!=(const checked& a, const checked& b) { return a.at != b.at; }
    friend bool operator<(const checked& a, const checked& b) { return a.at < b.at; }
    friend bool operator>(const checked& a, const checked& b) { return a.at > b.at; }
    friend bool operator<=(const checked& a, const checked& b) { return a.at <= b.at; }
    friend bool operator>=(const checked& a, const checked& b) { return a.at >= b.at; }

    // What knows nothing of this type gets a plain pointer, which leads into the argument or to its
    // end.
    T* plain() const {
        if (last && (at < first || at > last)) outside(at);
        return at;
    }
    operator T*() const { return plain(); }
    template <class U> explicit operator U*() const { return (U*)plain(); }
    operator checked<const T>() const { return checked<const T>(at, first, last, argument); }
    explicit operator u64() const { return (u64)at; }
};

// So that a cast of such a pointer is one of what it holds.
template <class To, class From> inline To raw_cast(From&& from) { return (To)from; }

#define WF_RAW_ATOMIC(name)                                                         \
    template <class T, class V> inline T name(const checked<T>& at, V value) {      \
        return ::name(at.used(at.at), (T)value);                                    \
    }
WF_RAW_ATOMIC(atomicAdd)
WF_RAW_ATOMIC(atomicSub)
WF_RAW_ATOMIC(atomicMin)
WF_RAW_ATOMIC(atomicMax)
WF_RAW_ATOMIC(atomicAnd)
WF_RAW_ATOMIC(atomicOr)
WF_RAW_ATOMIC(atomicXor)
WF_RAW_ATOMIC(atomicExch)
#undef WF_RAW_ATOMIC
template <class T, class A, class B> inline T atomicCAS(const checked<T>& at, A expected, B desired) {
    return ::atomicCAS(at.used(at.at), (T)expected, (T)desired);
}
template <class T> inline T __ldg(const checked<T>& at) { return *at; }

// ----------------------------------------------------------------------------------- shared memory

// All of a block's dynamic shared memory.
template <class T> struct dynamic_shared {
    checked<T> all() const {
        T* const first = static_cast<T*>(wf_sim_dynamic_shared());
        return checked<T>(first, first, first + raw_words[6] / sizeof(T), "the dynamic shared memory");
    }
    operator checked<T>() const { return all(); }
    operator T*() const { return all().at; }
    template <class U> explicit operator U*() const { return (U*)all().at; }
    template <class I> T& operator[](I i) const { return all()[i]; }
    template <class I> checked<T> operator+(I by) const { return all() + by; }
    T& operator*() const { return *all(); }
};

// -------------------------------------------------------------------------------- words of a
// launch

struct raw_memory {
    const u64* words;
    const char* argument;
    template <class T> operator checked<T>() const {
        T* const first = (T*)words[0];
        return checked<T>(first, first, first + words[1] / sizeof(T), argument);
    }
};

struct raw_number {
    const u64* word;
    template <class T> operator T() const {
        static_assert(sizeof(T) <= 8, "arguments are columns, and numbers of up to 8 bytes");
        T value;
        __builtin_memcpy(&value, word, sizeof(T));
        return value;
    }
};

}  // namespace wf

// ----------------------------------------------------- what kernels use that the engine's do
// without

extern "C" double tgamma(double) noexcept;
extern "C" double lgamma(double) noexcept;
extern "C" double erfc(double) noexcept;
extern "C" float erfcf(float) noexcept;
extern "C" void sincos(double, double*, double*) noexcept;
extern "C" void sincosf(float, float*, float*) noexcept;
inline double rsqrt(double x) { return 1 / sqrt(x); }
inline float rsqrtf(float x) { return 1 / sqrtf(x); }
inline float rsqrt(float x) { return rsqrtf(x); }
inline float __expf(float x) { return expf(x); }
inline float __logf(float x) { return logf(x); }
inline float __sinf(float x) { return sinf(x); }
inline float __cosf(float x) { return cosf(x); }
inline float __powf(float x, float y) { return powf(x, y); }
inline float __fdividef(float x, float y) { return x / y; }

// Neither form changes what an `else` belongs to.
#define for(...) for (__VA_ARGS__) if (!::wf::raw_turn()) break; else
#define while(...) while ((__VA_ARGS__) && ::wf::raw_turn())
#define reinterpret_cast ::wf::raw_cast
#define __constant__ static

#endif
