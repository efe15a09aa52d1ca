// scan.cuh: running sums.
//
//   exclusive, counts to offsets    3 0 2 1   →   0 3 3 5 6         one more than the input; the last is the total
//   inclusive, values               3 0 2 1   →   3 3 5 6
//
//   one pass: load a tile, scan it in the block, learn its start from the tiles before it, store.
//
// Reads and writes each row once. Tiles pass through shared memory so that global accesses are contiguous while each
// thread sums neighbours.
//
// Sums of floats must not depend on which tile was ready when, so the inclusive scan does not take whatever prefix it
// meets first. It adds in a shape that only the number of the tile decides:
//
//   tile 600 = ((end of tile 511) + (512 + … + 599)) + rows of tile 600       groups of 256 tiles
//
// where the tiles of the own group are added by a tree over the block, and the ends of groups form a chain.
#pragma once
#include "compact.cuh"

namespace wf {

constexpr u32 SCAN_THREADS = 256;
constexpr u32 SCAN_ITEMS = 16;
constexpr u32 SCAN_TILE = SCAN_THREADS * SCAN_ITEMS;

// One word of padding for every 16 keeps both the contiguous and the per-thread access free of bank conflicts.
WF_DEVICE u32 scan_padded(u32 at) { return at + at / SCAN_ITEMS; }
constexpr u32 SCAN_STAGED = SCAN_TILE + SCAN_TILE / SCAN_ITEMS;

struct ScanExclusive {
    const u32* counts;  // rows
    void* offsets;      // rows + 1
    u64 rows;
    u64* state;         // 1 + tiles, zero: the ticket, then the tiles' words
};

template <typename Out>
__device__ void scan_exclusive_body(const ScanExclusive& p) {
    WF_SHARED_ARRAY(u64, staged, SCAN_STAGED);
    const u64 tile = compact_ticket(p.state);
    const u64 first = tile * SCAN_TILE;
    Out* offsets = static_cast<Out*>(p.offsets);

    for (u32 j = 0; j < SCAN_ITEMS; ++j) {
        const u32 local = threadIdx.x + j * SCAN_THREADS;
        staged[scan_padded(local)] = first + local < p.rows ? p.counts[first + local] : 0;
    }
    __syncthreads();  // the tile is loaded

    u64 items[SCAN_ITEMS];
    u64 sum = 0;
    for (u32 j = 0; j < SCAN_ITEMS; ++j) {
        items[j] = sum;
        sum += staged[scan_padded(threadIdx.x * SCAN_ITEMS + j)];
    }
    u64 total;
    const u64 before = block_scan<SCAN_THREADS, u64>(sum, total);
    const u64 start = compact_tile_start(p.state + 1, tile, total);

    // The barriers of block_scan separate the reads above from these writes.
    for (u32 j = 0; j < SCAN_ITEMS; ++j) {
        staged[scan_padded(threadIdx.x * SCAN_ITEMS + j)] = start + before + items[j];
    }
    __syncthreads();  // the sums are staged
    for (u32 j = 0; j < SCAN_ITEMS; ++j) {
        const u32 local = threadIdx.x + j * SCAN_THREADS;
        if (first + local < p.rows) offsets[first + local] = Out(staged[scan_padded(local)]);
    }
    if (threadIdx.x == 0 && first + SCAN_TILE >= p.rows) offsets[p.rows] = Out(start + total);
}

struct ScanInclusive {
    const void* values;  // rows
    void* sums;          // rows
    u64 rows;
    u64* state;          // 1 + tiles + groups, zero: the ticket, flags of tiles, flags of groups
    void* parts;         // tiles + groups: sums of tiles, and of everything up to the ends of groups
    u64 tiles;
};

template <typename T>
__device__ void scan_inclusive_body(const ScanInclusive& p) {
    WF_SHARED_ARRAY(T, staged, SCAN_STAGED);
    WF_SHARED(T, base);
    const T* values = static_cast<const T*>(p.values);
    T* sums = static_cast<T*>(p.sums);
    const u64 tile = compact_ticket(p.state);
    const u64 first = tile * SCAN_TILE;
    const u64 group = tile / SCAN_THREADS;
    const u32 member = u32(tile % SCAN_THREADS);
    u64* tile_flags = p.state + 1;
    u64* group_flags = tile_flags + p.tiles;
    T* tile_parts = static_cast<T*>(p.parts);
    T* group_parts = tile_parts + p.tiles;

    for (u32 j = 0; j < SCAN_ITEMS; ++j) {
        const u32 local = threadIdx.x + j * SCAN_THREADS;
        staged[scan_padded(local)] = first + local < p.rows ? values[first + local] : T(0);
    }
    __syncthreads();  // the tile is loaded

    T items[SCAN_ITEMS];
    T sum = T(0);
    for (u32 j = 0; j < SCAN_ITEMS; ++j) {
        sum += staged[scan_padded(threadIdx.x * SCAN_ITEMS + j)];
        items[j] = sum;
    }
    T total;
    const T before = block_scan<SCAN_THREADS, T>(sum, total);
    if (threadIdx.x == 0) {
        tile_parts[tile] = total;
        store_release(tile_flags + tile, u64(1));
    }

    // One thread for each earlier tile of the group.
    T part = T(0);
    if (threadIdx.x < member) {
        const u64 at = group * SCAN_THREADS + threadIdx.x;
        while (load_acquire(tile_flags + at) == 0) spin();
        part = tile_parts[at];
    }
    T in_group;
    block_scan<SCAN_THREADS, T>(part, in_group);
    if (threadIdx.x == 0) {
        T start = T(0);
        if (group != 0) {
            while (load_acquire(group_flags + group - 1) == 0) spin();
            start = group_parts[group - 1];
        }
        base = start + in_group;
        if (member == SCAN_THREADS - 1) {
            group_parts[group] = base + total;
            store_release(group_flags + group, u64(1));
        }
    }
    __syncthreads();  // the base is there; everything staged has been read

    for (u32 j = 0; j < SCAN_ITEMS; ++j) {
        staged[scan_padded(threadIdx.x * SCAN_ITEMS + j)] = base + (before + items[j]);
    }
    __syncthreads();  // the sums are staged
    for (u32 j = 0; j < SCAN_ITEMS; ++j) {
        const u32 local = threadIdx.x + j * SCAN_THREADS;
        if (first + local < p.rows) sums[first + local] = staged[scan_padded(local)];
    }
}

}  // namespace wf

#define WF_SCAN_ENTRIES                                                                                      \
    WF_KERNEL(scan_exclusive_u32, wf::ScanExclusive) { wf::scan_exclusive_body<wf::u32>(p); }                \
    WF_KERNEL(scan_exclusive_u64, wf::ScanExclusive) { wf::scan_exclusive_body<wf::u64>(p); }                \
    WF_KERNEL(scan_inclusive_i64, wf::ScanInclusive) { wf::scan_inclusive_body<wf::u64>(p); }                \
    WF_KERNEL(scan_inclusive_f64, wf::ScanInclusive) { wf::scan_inclusive_body<wf::f64>(p); }
