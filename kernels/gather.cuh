// gather.cuh: the rows that an index names.
//
//   values  a b c d      index  3 0 0      output  d a a
//
// Reads the index once and each value where it lies; several loads are in flight for each thread.
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

}  // namespace wf

#define WF_GATHER(T, WIDTH) \
    WF_KERNEL_BOUNDS(wf::GATHER_THREADS, 1, gather_##WIDTH, wf::Gather) { wf::gather_body<wf::T>(p); }
#define WF_GATHER_ENTRIES WF_GATHER(u8, 1) WF_GATHER(u16, 2) WF_GATHER(u32, 4) WF_GATHER(u64, 8) WF_GATHER(u128, 16)
