// gather.cuh: the rows that an index names.
//
//   values  a b c d      index  3 0 0      output  d a a
//
// Reads the index once and each value where it lies; several loads are in flight for each thread.
//
// A value of 8 bytes from anywhere in a large column costs a whole access to memory, 64 bytes of
// it. Two columns whose values lie side by side cost one access for both, which is worth bringing
// them there first:
//
//   a  1 2 3 4   b  5 6 7 8   interleaved  1 5 2 6 3 7 4 8   index  3 0   outputs  4 1 and 8 5
#pragma once
#include "prelude.cuh"

namespace wf {

constexpr u32 GATHER_THREADS = 256;
constexpr u32 GATHER_ITEMS = 4;
constexpr u32 GATHER_TILE = GATHER_THREADS * GATHER_ITEMS;

struct Gather {
    const void* values;
    const u32* index;  // rows
    u64 rows;
    void* out;         // rows
};

template <typename T>
__device__ void gather_body(const Gather& p) {
    const T* values = static_cast<const T*>(p.values);
    T* out = static_cast<T*>(p.out);
    const u64 first = u64(blockIdx.x) * GATHER_TILE + threadIdx.x;
    u32 index[GATHER_ITEMS];
    T held[GATHER_ITEMS];
#pragma unroll
    for (u32 j = 0; j < GATHER_ITEMS; ++j) {
        const u64 at = first + j * GATHER_THREADS;
        if (at < p.rows) index[j] = load_stream(p.index + at);
    }
#pragma unroll
    for (u32 j = 0; j < GATHER_ITEMS; ++j) {
        if (first + j * GATHER_THREADS < p.rows) held[j] = load_const(values + index[j]);
    }
#pragma unroll
    for (u32 j = 0; j < GATHER_ITEMS; ++j) {
        const u64 at = first + j * GATHER_THREADS;
        if (at < p.rows) store_stream(out + at, held[j]);
    }
}

// ---- two columns at once ----

struct GatherInterleave {
    const u64* one;  // rows
    const u64* two;  // rows
    u64 rows;
    u64* pairs;      // 2 × rows
};

WF_DEVICE void gather_interleave_body(const GatherInterleave& p) {
    const u64 first = u64(blockIdx.x) * GATHER_TILE + threadIdx.x;
    ulonglong2 pairs[GATHER_ITEMS];
#pragma unroll
    for (u32 j = 0; j < GATHER_ITEMS; ++j) {
        const u64 at = first + j * GATHER_THREADS;
        if (at < p.rows) {
            pairs[j].x = load_stream(p.one + at);
            pairs[j].y = load_stream(p.two + at);
        }
    }
#pragma unroll
    for (u32 j = 0; j < GATHER_ITEMS; ++j) {
        const u64 at = first + j * GATHER_THREADS;
        if (at < p.rows) store_stream(reinterpret_cast<ulonglong2*>(p.pairs) + at, pairs[j]);
    }
}

struct GatherPairs {
    const u64* pairs;  // as above
    const u32* index;  // rows
    u64 rows;
    u64* one;          // rows
    u64* two;          // rows
};

WF_DEVICE void gather_pairs_body(const GatherPairs& p) {
    const u64 first = u64(blockIdx.x) * GATHER_TILE + threadIdx.x;
    u32 index[GATHER_ITEMS];
    ulonglong2 held[GATHER_ITEMS];
#pragma unroll
    for (u32 j = 0; j < GATHER_ITEMS; ++j) {
        const u64 at = first + j * GATHER_THREADS;
        if (at < p.rows) index[j] = load_stream(p.index + at);
    }
#pragma unroll
    for (u32 j = 0; j < GATHER_ITEMS; ++j) {
        if (first + j * GATHER_THREADS < p.rows) {
            held[j] = load_const(reinterpret_cast<const ulonglong2*>(p.pairs) + index[j]);
        }
    }
#pragma unroll
    for (u32 j = 0; j < GATHER_ITEMS; ++j) {
        const u64 at = first + j * GATHER_THREADS;
        if (at < p.rows) {
            store_stream(p.one + at, u64(held[j].x));
            store_stream(p.two + at, u64(held[j].y));
        }
    }
}

// ---- how scattered an index is ----

struct GatherScattered {
    const u32* index;  // rows
    u64 rows;
    u64 step;          // rows between the samples, of which each is a warp's width
    u64* count;        // zero; then rows whose predecessor's value lies in another 64 bytes of a column
};

WF_DEVICE void gather_scattered_body(const GatherScattered& p) {
    const u64 at = u64(global_thread()) / 32 * p.step + lane();
    const u32 own = at < p.rows ? p.index[at] : 0;
    const u32 before = __shfl_up_sync(FULL_WARP, own, 1);
    const u32 apart = __ballot_sync(FULL_WARP, lane() != 0 && at < p.rows && own / 8 != before / 8);
    if (lane() == 0 && apart != 0) atomicAdd(p.count, u64(__popc(apart)));
}

}  // namespace wf

#define WF_GATHER(T, WIDTH) \
    WF_KERNEL_BOUNDS(wf::GATHER_THREADS, 1, gather_##WIDTH, wf::Gather) { wf::gather_body<wf::T>(p); }
#define WF_GATHER_ENTRIES                                                                                     \
    WF_GATHER(u8, 1) WF_GATHER(u16, 2) WF_GATHER(u32, 4) WF_GATHER(u64, 8) WF_GATHER(u128, 16)               \
    WF_KERNEL_BOUNDS(wf::GATHER_THREADS, 1, gather_interleave, wf::GatherInterleave) {                       \
        wf::gather_interleave_body(p);                                                                       \
    }                                                                                                        \
    WF_KERNEL_BOUNDS(wf::GATHER_THREADS, 1, gather_pairs, wf::GatherPairs) { wf::gather_pairs_body(p); }     \
    WF_KERNEL(gather_scattered, wf::GatherScattered) { wf::gather_scattered_body(p); }
