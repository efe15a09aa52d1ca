// extent.cuh: least and greatest value of an integer column, greatest magnitude of a float column.
//
//   values  3 −7 5      least −7, greatest 5            values  1.5 −2.0      magnitude 2.0
//
// Blocks stay for the whole column and end in one atomic each. Both words of a result are minima of unsigned ordered
// bits (the second of inverted ones), so that a column's result starts as all ones, and all ones means "no valid row".
#pragma once
#include "hash.cuh"

namespace wf {

constexpr u32 EXTENT_THREADS = 256;

// Order of integers as u64: signed ones are widened first.
template <typename T>
WF_DEVICE u64 extent_order(T value) {
    if constexpr (T(-1) < T(0)) {
        return order_i64(i64(value));
    } else {
        return u64(value);
    }
}

// The magnitudes of floats order by their bits; those of infinity and NaN come last.
template <>
WF_DEVICE u64 extent_order<f64>(f64 value) { return bits(value) & ~(u64(1) << 63); }
template <>
WF_DEVICE u64 extent_order<f32>(f32 value) { return bits(f64(value)) & ~(u64(1) << 63); }

struct Extent {
    const void* values;  // rows
    const u8* valid;     // rows, or null
    u64 rows;
    u64* least;          // two words, all ones
};

template <typename T>
__device__ void extent_body(const Extent& p) {
    constexpr u32 WARPS = EXTENT_THREADS / 32;
    WF_SHARED_ARRAY(u64, leasts, WARPS);
    WF_SHARED_ARRAY(u64, inverses, WARPS);
    const T* values = static_cast<const T*>(p.values);
    u64 least = U64_MAX, inverse = U64_MAX;
    const u64 stride = u64(global_threads());
#pragma unroll 4
    for (u64 at = u64(global_thread()); at < p.rows; at += stride) {
        if (p.valid == nullptr || p.valid[at] != 0) {
            const u64 ordered = extent_order<T>(values[at]);
            least = minimum(least, ordered);
            inverse = minimum(inverse, ~ordered);
        }
    }
    for (u32 step = 16; step != 0; step /= 2) {
        least = minimum(least, shuffle_xor(FULL_WARP, least, int(step)));
        inverse = minimum(inverse, shuffle_xor(FULL_WARP, inverse, int(step)));
    }
    if (threadIdx.x % 32 == 0) {
        leasts[threadIdx.x / 32] = least;
        inverses[threadIdx.x / 32] = inverse;
    }
    __syncthreads();  // the warps' minima are there
    if (threadIdx.x == 0) {
        for (u32 w = 1; w < WARPS; ++w) {
            least = minimum(least, leasts[w]);
            inverse = minimum(inverse, inverses[w]);
        }
        atomic_min(p.least, least);
        atomic_min(p.least + 1, inverse);
    }
}

}  // namespace wf

#define WF_EXTENT(T) \
    WF_KERNEL_BOUNDS(wf::EXTENT_THREADS, 1, extent_##T, wf::Extent) { wf::extent_body<wf::T>(p); }
#define WF_EXTENT_ENTRIES \
    WF_EXTENT(i8) WF_EXTENT(i16) WF_EXTENT(i32) WF_EXTENT(i64) WF_EXTENT(u8) WF_EXTENT(u16) WF_EXTENT(u32) \
    WF_EXTENT(u64) WF_EXTENT(f32) WF_EXTENT(f64)
