// sort_values.cuh: the order of a few different values, by counting for each how many are less: one launch, where a sort takes five.
//
//   values 70 5 900        numbers 1 0 2
#pragma once
#include "compact.cuh"

namespace wf {

// By a block of THREADS: of EACH values from `first` + EACH × warp on, lane i < EACH gets the i-th value and its number; `false` of lanes
// without a value. No two of `values` are the same. HELD are held in shared memory at once.
template <u32 THREADS, u32 EACH, u32 HELD>
WF_DEVICE bool sort_value_numbers(const u64* values, u32 count, u32 first, u64& value, u32& number) {
    WF_SHARED_ARRAY(u64, held, HELD);
    first += warp() * EACH;
    u64 mine[EACH];
    u32 less[EACH];
#pragma unroll
    for (u32 i = 0; i < EACH; ++i) {
        mine[i] = first + i < count ? values[first + i] : 0;
        less[i] = 0;
    }
    for (u32 begin = 0; begin < count; begin += HELD) {
        const u32 here = minimum(HELD, count - begin);
        for (u32 at = threadIdx.x; at < here; at += THREADS) held[at] = values[begin + at];
        __syncthreads();  // these values are held
        for (u32 at = lane(); at < here; at += 32) {
            const u64 other = held[at];
#pragma unroll
            for (u32 i = 0; i < EACH; ++i) less[i] += other < mine[i] ? 1 : 0;
        }
        __syncthreads();  // all warps have compared them
    }
#pragma unroll
    for (u32 i = 0; i < EACH; ++i) {
        const u32 sum = __reduce_add_sync(FULL_WARP, less[i]);
        number = lane() == i ? sum : number;
    }
    if (lane() >= EACH || first + lane() >= count) return false;
    value = values[first + lane()];
    return true;
}

}  // namespace wf
