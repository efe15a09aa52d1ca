// select.cuh: the numbers of the rows whose mask is set, in their order.
//
//   mask  1 0 1 1 0      output  0 2 3
//
//   1. select_count: set bytes of each tile          (then a scan of the counts, whose total the host waits for)
//   2. select_write: rank within the tile, reorder in shared memory, store next to each other
//
// Reads the mask twice, a byte a row, and writes 4 bytes for each row kept: the output has exactly the size it needs.
#pragma once
#include "compact.cuh"

namespace wf {

constexpr u32 SELECT_THREADS = 256;
constexpr u32 SELECT_ITEMS = 16;
constexpr u32 SELECT_TILE = SELECT_THREADS * SELECT_ITEMS;

// Bit j: the mask of row first + j is set. `first` is a multiple of 16, the mask aligned to 16.
WF_DEVICE u32 select_flags(const u8* mask, u64 first, u64 rows) {
    u32 flags = 0;
    if (first + SELECT_ITEMS <= rows) {
        const u128 bytes = load_stream(reinterpret_cast<const u128*>(mask + first));
        const u64 low = low_word(bytes), high = high_word(bytes);
#pragma unroll
        for (u32 j = 0; j < 8; ++j) {
            flags |= u32((low >> (8 * j) & 0xFF) != 0) << j;
            flags |= u32((high >> (8 * j) & 0xFF) != 0) << (8 + j);
        }
    } else {
        for (u32 j = 0; j < SELECT_ITEMS; ++j) {
            if (first + j < rows) flags |= u32(mask[first + j] != 0) << j;
        }
    }
    return flags;
}

struct SelectCount {
    const u8* mask;  // rows
    u64 rows;
    u32* counts;     // tiles
};

WF_DEVICE void select_count_body(const SelectCount& p) {
    const u64 first = u64(blockIdx.x) * SELECT_TILE + threadIdx.x * SELECT_ITEMS;
    u32 total;
    block_scan_u32<SELECT_THREADS>(__popc(select_flags(p.mask, first, p.rows)), total);
    if (threadIdx.x == 0) p.counts[blockIdx.x] = total;
}

struct SelectWrite {
    const u8* mask;      // rows
    u64 rows;
    const u64* offsets;  // tiles + 1
    u32* out;            // offsets[tiles]
};

WF_DEVICE void select_write_body(const SelectWrite& p) {
    WF_SHARED_ARRAY(u32, staged, SELECT_TILE);
    const u64 first = u64(blockIdx.x) * SELECT_TILE + threadIdx.x * SELECT_ITEMS;
    const u32 flags = select_flags(p.mask, first, p.rows);
    u32 total;
    u32 rank = block_scan_u32<SELECT_THREADS>(__popc(flags), total);
    for (u32 left = flags; left != 0; left &= left - 1) staged[rank++] = u32(first) + trailing_zeros(left);
    __syncthreads();  // the survivors are next to each other
    u32* out = p.out + p.offsets[blockIdx.x];
    for (u32 at = threadIdx.x; at < total; at += SELECT_THREADS) out[at] = staged[at];
}

}  // namespace wf

#define WF_SELECT_ENTRIES                                                                                     \
    WF_KERNEL_BOUNDS(wf::SELECT_THREADS, 1, select_count, wf::SelectCount) { wf::select_count_body(p); }      \
    WF_KERNEL_BOUNDS(wf::SELECT_THREADS, 1, select_write, wf::SelectWrite) { wf::select_write_body(p); }
