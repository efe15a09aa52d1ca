// compact.cuh: where a tile's survivors go, for kernels that keep some rows in their order in one
// pass.
//
//   keep      1 0 1 1 | 0 1 0 0 | 1 1 0 1        three tiles of four rows
//   rank      0 . 1 2 | . 0 . . | 0 1 . 2        block_scan_u32 within the tile
//   start     0       | 3       | 4              compact_tile_start: decoupled look-back
//   output    start + rank
//
// Single-pass prefix scan with decoupled look-back (Merrill and Garland 2016): a tile publishes its
// own count, then adds up its predecessors' words until it meets one that already knows everything
// before it, a warp's width at a time. Tiles are numbered by an atomic ticket (compact_ticket), so
// whatever a tile waits for is already running.
//
// A word says all there is to know, so it is written and read relaxed: a release waits for every
// earlier write of the thread to arrive.
//
//   state word   | status 63..62 | count 61..0 |
//
// Status 0 says nothing yet, 1 that this is the tile's own count, 2 the count up to its end.
#pragma once
#include "prelude.cuh"

namespace wf {

constexpr u64 COMPACT_TILE = u64(1) << 62;    // the word counts one tile
constexpr u64 COMPACT_PREFIX = u64(2) << 62;  // the word counts all tiles up to and with this one
constexpr u64 COMPACT_COUNT = COMPACT_TILE - 1;

// Draws the next tile's number for the whole block. `ticket` is zero before the launch.
WF_DEVICE u64 compact_ticket(u64* ticket) {
    WF_SHARED(u64, drawn);
    if (threadIdx.x == 0) drawn = atomicAdd(ticket, u64(1));
    __syncthreads();  // the number is there
    u64 tile = drawn;
    __syncthreads();  // all have read it before the next draw
    return tile;
}

// Whether this block is the last of the grid to come here; what the others wrote before is then
// visible to it.
WF_DEVICE bool last_block(u64* ticket) {
    WF_SHARED(u64, drawn);
    __threadfence();
    __syncthreads();  // the block's writes are done
    if (threadIdx.x == 0) drawn = atomicAdd(ticket, u64(1));
    __syncthreads();  // the number is there
    const bool last = drawn == gridDim.x - 1;
    __syncthreads();  // all have read it
    if (last) __threadfence();
    return last;
}

// Exclusive prefix sum over the block's threads in a fixed order of additions; `total` is the sum.
// THREADS is blockDim.x, a multiple of 32.
//
//   value 3 0 2 1 …  →  returned 0 3 3 5 …, total 6
template <u32 THREADS, typename T>
WF_DEVICE T block_scan(T value, T& total) {
    constexpr u32 WARPS = THREADS / 32;
    WF_SHARED_ARRAY(T, sums, WARPS);
    const u32 lane = threadIdx.x % 32;
    const u32 warp = threadIdx.x / 32;
    T inclusive = value;
    for (u32 step = 1; step < 32; step *= 2) {
        T below = __shfl_up_sync(FULL_WARP, inclusive, step);
        if (lane >= step) inclusive = below + inclusive;
    }
    T exclusive = __shfl_up_sync(FULL_WARP, inclusive, 1);
    if (lane == 0) exclusive = T(0);
    if (lane == 31) sums[warp] = inclusive;
    __syncthreads();  // the warps' sums are there
    T before = T(0);
    total = T(0);
#pragma unroll 8
    for (u32 w = 0; w < WARPS; ++w) {
        T sum = sums[w];
        if (w < warp) before += sum;
        total += sum;
    }
    __syncthreads();  // all have read the sums before the next call
    return before + exclusive;
}

template <u32 THREADS>
WF_DEVICE u32 block_scan_u32(u32 value, u32& total) {
    return block_scan<THREADS, u32>(value, total);
}

// The number of survivors in all tiles before `tile`. The whole block calls it with its tile's
// count.
WF_DEVICE u64 compact_tile_start(u64* state, u64 tile, u64 tile_count) {
    WF_SHARED(u64, start);
    if (threadIdx.x < 32) {
        const u32 lane = threadIdx.x;
        u64 before = 0;
        if (tile != 0) {
            if (lane == 0) store_relaxed(state + tile, COMPACT_TILE | tile_count);
            // Lane l looks at the tile end − 1 − l. Before the first tile everything is known: a
            // prefix of 0.
            i64 end = i64(tile);
            bool done = false;
            while (!done) {
                const i64 at = end - 1 - i64(lane);
                u64 word = at >= 0 ? load_relaxed(state + at) : COMPACT_PREFIX;
                const u32 prefixes = __ballot_sync(FULL_WARP, (word & COMPACT_PREFIX) != 0);
                const u32 missing = __ballot_sync(FULL_WARP, word < COMPACT_TILE);
                // The lanes that count: up to and with the nearest prefix, or all where there is
                // none.
                const u32 nearest = prefixes & (0u - prefixes);
                const u32 wanted = prefixes != 0 ? nearest | (nearest - 1) : 0xFFFFFFFFu;
                if ((missing & wanted) != 0) {
                    spin();
                } else {
                    u64 part = (wanted >> lane & 1) != 0 ? word & COMPACT_COUNT : 0;
                    for (u32 step = 16; step != 0; step /= 2) part += __shfl_xor_sync(FULL_WARP, part, step);
                    before += part;
                    end -= 32;
                    done = prefixes != 0;
                }
            }
        }
        if (lane == 0) {
            store_relaxed(state + tile, COMPACT_PREFIX | (before + tile_count));
            start = before;
        }
    }
    __syncthreads();  // the start is there
    u64 result = start;
    __syncthreads();  // all have read it before the next call
    return result;
}

}  // namespace wf
