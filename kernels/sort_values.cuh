// sort_values.cuh: the order of a few different values, where a sort would take five launches: by counting for each how many are less, or by a
// network of comparisons.
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

// Puts COUNT values in shared memory, a power of two of at least 64, in order, by a block of half as many threads: a bitonic network (Batcher,
// "Sorting Networks and their Applications", 1968). A barrier stands behind the last step.
template <u32 COUNT>
WF_DEVICE void sort_values_held(u64* values) {
    // Stretches of `length` are made of two that are in order.
    for (u32 length = 2; length <= COUNT; length *= 2) {
        for (u32 apart = length / 2; apart != 0; apart /= 2) {
            // The first meets its mirror image, so that all stretches ascend.
            const u32 low = 2 * threadIdx.x - (threadIdx.x & (apart - 1));
            const u32 high = apart == length / 2 ? low ^ (length - 1) : low + apart;
            const u64 x = values[low], y = values[high];
            if (y < x) {
                values[low] = y;
                values[high] = x;
            }
            // A warp's threads meet values of the 64 places that are its own as long as those are near.
            if (apart > 32 || (apart == 1 && length >= 64)) __syncthreads();  // this step is done
            else __syncwarp(FULL_WARP);                                        // as far as it concerns the warp
        }
    }
}

}  // namespace wf
