// top.cuh: the rows that can be among the k least, without sorting the others.
//
//   1. top_histogram   counts of an 11-bit digit of the keys that share a prefix (first of all keys, by the highest bits)
//   2. the host finds the bin in which the k-th key lies, and refines it while too many rows are left
//   3. top_select      the rows whose digits up to there are not greater, in their order
//
//   keys, k = 2    70 11 52 13 95     bins by tens  1 (11 13), 5, 7, 9     rows kept  1 3
//
// Reads the keys once for each refinement and once to select; for most keys that is twice.
#pragma once
#include "compact.cuh"

namespace wf {

constexpr u32 TOP_THREADS = 512;
constexpr u32 TOP_BITS = 11;
constexpr u32 TOP_BINS = 1 << TOP_BITS;

struct TopHistogram {
    const u64* keys;  // rows
    u64 rows;
    u64 shift;        // lowest bit of the digit
    u64 prefix;       // counted are keys with these bits above the digit
    u64* counts;      // TOP_BINS, zero
};

WF_DEVICE void top_histogram_body(const TopHistogram& p) {
    WF_SHARED_ARRAY(u32, counts, TOP_BINS);
    for (u32 at = threadIdx.x; at < TOP_BINS; at += TOP_THREADS) counts[at] = 0;
    __syncthreads();  // the counts are zero
    for (u64 at = u64(global_thread()); at < p.rows; at += u64(global_threads())) {
        const u64 digits = p.keys[at] >> p.shift;
        if (digits >> TOP_BITS == p.prefix) atomicAdd(counts + (u32(digits) & (TOP_BINS - 1)), 1u);
    }
    __syncthreads();  // all keys of the block are counted
    for (u32 at = threadIdx.x; at < TOP_BINS; at += TOP_THREADS) {
        if (counts[at] != 0) atomicAdd(p.counts + at, u64(counts[at]));
    }
}

constexpr u32 TOP_SELECT_THREADS = 256;
constexpr u32 TOP_SELECT_ITEMS = 16;
constexpr u32 TOP_SELECT_TILE = TOP_SELECT_THREADS * TOP_SELECT_ITEMS;

struct TopSelect {
    const u64* keys;  // rows
    u64 rows;
    u64 shift;
    u64 greatest;     // kept are rows whose key >> shift is at most this
    u64* state;       // 1 + tiles, zero
    u32* out;         // as many as are kept
};

WF_DEVICE void top_select_body(const TopSelect& p) {
    constexpr u32 WARPS = TOP_SELECT_THREADS / 32;
    WF_SHARED_ARRAY(u32, starts, WARPS * TOP_SELECT_ITEMS);
    const u64 tile = compact_ticket(p.state);
    const u64 first = tile * TOP_SELECT_TILE;
    const u32 in_warp = threadIdx.x % 32;
    const u32 own = threadIdx.x / 32;
    // Item j of warp w is a run of 32 rows; runs in the order of rows are numbered j · WARPS + w.
    u32 kept = 0;
    u32 ranks[TOP_SELECT_ITEMS];
#pragma unroll
    for (u32 j = 0; j < TOP_SELECT_ITEMS; ++j) {
        const u64 at = first + j * TOP_SELECT_THREADS + threadIdx.x;
        const bool keep = at < p.rows && p.keys[at] >> p.shift <= p.greatest;
        const u32 lanes = __ballot_sync(FULL_WARP, keep);
        kept |= u32(keep) << j;
        ranks[j] = __popc(lanes & ((1u << in_warp) - 1));
        if (in_warp == 0) starts[j * WARPS + own] = __popc(lanes);
    }
    __syncthreads();  // the runs' counts are there
    const u32 count = threadIdx.x < WARPS * TOP_SELECT_ITEMS ? starts[threadIdx.x] : 0;
    u32 total;
    const u32 before = block_scan_u32<TOP_SELECT_THREADS>(count, total);
    if (threadIdx.x < WARPS * TOP_SELECT_ITEMS) starts[threadIdx.x] = before;
    const u64 start = compact_tile_start(p.state + 1, tile, total);
    // The barriers of compact_tile_start separate the writes of `starts` from these reads.
#pragma unroll
    for (u32 j = 0; j < TOP_SELECT_ITEMS; ++j) {
        if ((kept >> j & 1) != 0) {
            const u64 at = first + j * TOP_SELECT_THREADS + threadIdx.x;
            p.out[start + starts[j * WARPS + own] + ranks[j]] = u32(at);
        }
    }
}

}  // namespace wf

#define WF_TOP_ENTRIES                                                                                          \
    WF_KERNEL_BOUNDS(wf::TOP_THREADS, 1, top_histogram, wf::TopHistogram) { wf::top_histogram_body(p); }        \
    WF_KERNEL_BOUNDS(wf::TOP_SELECT_THREADS, 1, top_select, wf::TopSelect) { wf::top_select_body(p); }
