// parquet_null.cuh: values without gaps to the rows that have one.
//
//   values  a b c     validity  1 0 0 1 1     output  a 0 0 b c
//
//   one pass, a block a tile of rows: the tile's first value is known, a row's value is its rank
//   among the valid ones.
//
// Reads validity twice and valid values once, writes all rows.

#pragma once
#include "parquet_page.cuh"

namespace wf {

template <class T> WF_DEVICE void parquet_spread(const parquet_page& page, u32 valid, u32 rank, u32 tile, u32* counts) {
    constexpr u32 GROUPS = PARQUET_TILE / PARQUET_THREADS;  // of 32 rows, of a warp
    static_assert(GROUPS == WARP, "a lane a group");
    const u8* const validity = (const u8*)page.validity;
    const T* const values = (const T*)page.dense;
    T* const data = (T*)page.data;
    const u32 begin = tile * PARQUET_TILE + warp() * GROUPS * 32;
    u32 mine = 0;
#pragma unroll 4
    for (u32 i = 0; i < GROUPS; i++) {
        const u32 row = begin + i * 32 + lane();
        const u32 group = __ballot_sync(FULL_WARP, row < page.rows && validity[row] != 0);
        if (lane() == i) mine = group;
    }
    const u32 up_to = warp_sum_up_to(__popc(mine));
    if (lane() == 31) counts[warp()] = up_to;
    __syncthreads();  // all warps' counts are there
    rank += up_to - __popc(mine);
    for (u32 i = 0; i < warp(); i++) rank += counts[i];
#pragma unroll 4
    for (u32 i = 0; i < GROUPS; i++) {
        const u32 row = begin + i * 32 + lane();
        const u32 group = __shfl_sync(FULL_WARP, mine, i);
        const u32 at = __shfl_sync(FULL_WARP, rank, i) + __popc(group & lanes_below());
        // A page at fault has fewer values than its levels say.
        const T value = (group >> lane() & 1) != 0 && at < valid ? values[at] : T(0);
        if (row < page.rows) data[row] = value;
    }
}

WF_DEVICE void parquet_nulls_body(const ParquetCall& p) {
    WF_SHARED_ARRAY(u32, counts, PARQUET_THREADS / WARP);
    const u32 index = (u32)p.list[blockIdx.x], tile = (u32)(p.list[blockIdx.x] >> 32);
    const parquet_page page = p.pages[index];
    const u32 valid = p.states[index].valid;
    if (valid == page.rows || page.validity == 0) return;
    const u32 rank = p.ranks[page.first_tile + tile];
    switch (p.chunks[page.chunk].width) {
        case 1: return parquet_spread<u8>(page, valid, rank, tile, counts);
        case 2: return parquet_spread<u16>(page, valid, rank, tile, counts);
        case 4: return parquet_spread<u32>(page, valid, rank, tile, counts);
        case 8: return parquet_spread<u64>(page, valid, rank, tile, counts);
        default: return parquet_spread<u128>(page, valid, rank, tile, counts);
    }
}

}  // namespace wf

#define WF_PARQUET_NULL_ENTRIES \
    WF_KERNEL_BOUNDS(wf::PARQUET_THREADS, 1, parquet_nulls, wf::ParquetCall) { wf::parquet_nulls_body(p); }
