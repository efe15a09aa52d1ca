// sort_long_runs.cuh: puts runs of rows in order that are longer than sort_runs.cuh mends, if few rows are in such: rare
// collisions of frequent keys, say.
//
//   sorted by tens   11 | 27 22 27 22 27 22 … | 38 31          a pair out of order, anywhere in a long run, is listed
//
//   1. sort_long_near      if few rows are listed: a block for each, of which that of the run's first listed row puts it in order
//
//   or if that leaves some, or more are listed,
//
//   2. sort_long_find      where the run of each listed row begins and ends, each run once
//
//   and if none has more rows than a block of threads can hold,
//
//   3. sort_long_block     each run by a block, in shared memory
//
//   or else
//
//   3. sort_long_collect   the rows of all such runs one after the other, and their places; the host sorts them by whole keys:
//                          runs keep their order, so that the first of them belongs into the first place, and so on
//   4. sort_long_return    rows back into the places
#pragma once
#include "compact.cuh"
#include "hash.cuh"
#include "sort_digit.cuh"
#include "sort_key.cuh"
#include "sort_ties.cuh"

namespace wf {

constexpr u64 SORT_LONG_PROBED = 1024;  // rows between which and a listed one both ends of its run probably lie: two steps

struct SortLongListed {
    SortKey key;         // the rows in their order so far: keys, or packed words as SORT_WORD
    u64 rows;
    u64 shift;           // lowest bit that is sorted
    const u32* implied;  // 256: where the rows of each highest digit begin, if packed words leave it out; or null
    const u32* listed;   // rows of long runs
    u64 count;

    // The rows that may be of a row's run: from `least` on, before `most`.
    WF_DEVICE void digit(u32 row, u64& least, u64& most) const {
        least = 0;
        most = rows;
        if (implied == nullptr) return;
        least = implied[sort_digit_at(implied, row)];
        most = sort_digit_end(implied, row, rows);
    }
};

struct SortLongFind {
    SortLongListed of;
    u64* table;   // slots + 1, all ones
    u64 slots;    // a power of two of at least 2 × count
    u64* found;   // how many runs there are; zero before
    u64* bounds;  // of each two: its first row, and the first behind it
};

// By a warp, which probes 32 places at once: each step waits for memory.
WF_DEVICE void sort_long_find_body(const SortLongFind& p) {
    const u64 at = u64(global_thread()) / 32;
    if (at >= p.of.count) return;
    const u32 row = p.of.listed[at];
    const u64 mine = sort_key(p.of.key, row) >> p.of.shift;
    u64 least, most;
    p.of.digit(row, least, most);
    // The run's first row is `low` or behind, up to `begin`; the first behind it is `end` or behind, up to `high`.
    u64 begin = row, end = row + 1;
    const u64 near_low = row > least + SORT_LONG_PROBED ? row - SORT_LONG_PROBED : least;
    const u64 near_high = minimum(row + SORT_LONG_PROBED, most);
    u64 low = near_low, high = near_high;
    bool near = true;
    while (low < begin || end < high) {
        const u64 from = low, before = begin - low, to = end, behind = high - end;
        const u32 rows[2] = {u32(from + before * lane() / 32), behind != 0 ? u32(to + behind * lane() / 32) : row};
        u64 keys[2];
        sort_keys_of(p.of.key, rows, keys);
        // Of the probes before the run's rows, the first so many are others; of those behind, the first so many are its own.
        const u64 others = u64(__popc(__ballot_sync(FULL_WARP, keys[0] >> p.of.shift != mine)));
        const u64 own = u64(__popc(__ballot_sync(FULL_WARP, keys[1] >> p.of.shift == mine)));
        if (before != 0) {
            if (others > 0) low = from + before * (others - 1) / 32 + 1;
            if (others < 32) begin = from + before * others / 32;
        }
        if (behind != 0) {
            if (own > 0) end = to + behind * (own - 1) / 32 + 1;
            if (own < 32) high = to + behind * own / 32;
        }
        // Found, but where it goes on beyond the near rows.
        if (near && low == begin && high == end) {
            near = false;
            if (begin == near_low) low = least;
            if (end == near_high) high = most;
        }
    }
    if (lane() != 0) return;
    bool fresh;
    // Wherever there is room: a run that is not noted would not be put in order.
    hash_insert(p.table, p.slots - 1, begin, fresh, 0, p.slots);
    if (fresh) {
        const u64 run = atomicAdd(p.found, u64(1));
        p.bounds[2 * run] = begin;
        p.bounds[2 * run + 1] = end;
    }
}

constexpr u32 SORT_LONG_THREADS = 512;
constexpr u32 SORT_LONG_ITEMS = 8;  // most rows of a thread
constexpr u32 SORT_LONG_ROWS = SORT_LONG_THREADS * SORT_LONG_ITEMS;
constexpr u32 SORT_LONG_FEW = 6;    // different keys of a run that are taken one after the other

struct SortLongMoved {
    SortKey key;      // of the whole sort, in its order so far; or if `values` are row numbers, of the column
    void* keys;       // the memory of `key`, sorted where it lies; or null, if `values` are row numbers
    void* values;     // of the whole sort
    u64 value_bytes;  // 0, 4 or 8
};

// Puts SORT_LONG_ROWS at most from `begin` on in order, by a block. Few different keys are taken one after the other, the least first, of which
// each row's place is then a count; of more keys a bitonic network (Batcher, "Sorting Networks and their Applications", 1968) sorts as many
// places as the next power of two has, of which those without a row stay behind all others. Equal keys stand in the order of the places that
// they had.
WF_DEVICE void sort_long_run(const SortLongMoved& p, u64 begin, u32 rows) {
    constexpr u32 THREADS = SORT_LONG_THREADS;
    constexpr u32 ITEMS = SORT_LONG_ITEMS;
    constexpr u64 NONE = ~u64(0);
    WF_SHARED_ARRAY(u64, keys, SORT_LONG_ROWS);
    WF_SHARED_ARRAY(u16, froms, SORT_LONG_ROWS);  // where the row of each place was before
    WF_SHARED_ARRAY(u64, leasts, (THREADS / 32));
    for (u32 at = threadIdx.x; at < rows; at += THREADS) {
        const u64 place = begin + at;
        keys[at] = sort_key(p.key, p.keys != nullptr ? place : u64(static_cast<const u32*>(p.values)[place]));
    }
    __syncthreads();  // the run's keys are held

    // Each thread has rows side by side.
    const u32 each = (rows + THREADS - 1) / THREADS, first = threadIdx.x * each;
    u64 mine[ITEMS];
    u32 left = 0;  // of these, a bit each
#pragma unroll
    for (u32 i = 0; i < ITEMS; ++i) {
        const bool has = i < each && first + i < rows;
        mine[i] = has ? keys[first + i] : NONE;
        left |= u32(has) << i;
    }
    u32 placed = 0;
    for (u32 round = 0; round < SORT_LONG_FEW && placed < rows; ++round) {
        u64 least = NONE;
#pragma unroll
        for (u32 i = 0; i < ITEMS; ++i) least = (left >> i & 1) != 0 ? minimum(least, mine[i]) : least;
        for (u32 step = 16; step != 0; step /= 2) least = minimum(least, __shfl_xor_sync(FULL_WARP, least, step));
        if (lane() == 0) leasts[warp()] = least;
        __syncthreads();  // the warps' least keys are there
        for (u32 w = 0; w < THREADS / 32; ++w) least = minimum(least, leasts[w]);
        u32 these = 0, total;
#pragma unroll
        for (u32 i = 0; i < ITEMS; ++i) these |= u32((left >> i & 1) != 0 && mine[i] == least) << i;
        u32 to = placed + block_scan_u32<THREADS>(u32(__popc(these)), total);  // whose barriers stand behind the reads of the least keys
        left &= ~these;
        for (; these != 0; these &= these - 1) froms[to++] = u16(first + u32(trailing_zeros(these)));
        placed += total;
    }
    const bool few = placed == rows;
    __syncthreads();  // all rows have their places, or none has

    const u32 places = few || rows <= 1 ? 1 : 1u << (32 - u32(leading_zeros(rows - 1)));
    for (u32 at = threadIdx.x; !few && at < places; at += THREADS) {
        if (at >= rows) keys[at] = NONE;
        froms[at] = u16(at);
    }
    __syncthreads();  // all places have a key
    // Stretches of `length` places are made of two that are in order.
    for (u32 length = 2; length <= places; length *= 2) {
        for (u32 apart = length / 2; apart != 0; apart /= 2) {
            for (u32 at = threadIdx.x; at < places / 2; at += THREADS) {
                // The first meets its mirror image, so that all stretches ascend.
                const u32 low = 2 * at - (at & (apart - 1));
                const u32 high = apart == length / 2 ? low ^ (length - 1) : low + apart;
                const u64 x = keys[low], y = keys[high];
                const u16 from = froms[low], other = froms[high];
                if (y < x || (y == x && other < from)) {
                    keys[low] = y;
                    keys[high] = x;
                    froms[low] = other;
                    froms[high] = from;
                }
            }
            // A warp's threads meet rows of the 64 places that are its own as long as those are near.
            if (apart > 32 || (apart == 1 && length >= 64)) __syncthreads();  // this step is done
            else __syncwarp(FULL_WARP);                                        // as far as it concerns the warp
        }
    }
    __syncthreads();  // the order is there

    u64 values[ITEMS];
#pragma unroll
    for (u32 i = 0; i < ITEMS; ++i) {
        const u32 at = threadIdx.x + i * THREADS;
        if (at >= rows) continue;
        const u32 from = froms[at];
        mine[i] = keys[few ? from : at];
        if (p.value_bytes == 4) values[i] = static_cast<const u32*>(p.values)[begin + from];
        if (p.value_bytes == 8) values[i] = static_cast<const u64*>(p.values)[begin + from];
    }
    __syncthreads();  // the values are read
#pragma unroll
    for (u32 i = 0; i < ITEMS; ++i) {
        const u32 at = threadIdx.x + i * THREADS;
        if (at >= rows) continue;
        const u64 place = begin + at;
        if (p.keys != nullptr) {
            const u64 raw = sort_key_raw(p.key, mine[i]);
            if (sort_key_is_half(p.key)) static_cast<u32*>(p.keys)[place] = u32(raw);
            else static_cast<u64*>(p.keys)[place] = raw;
        }
        if (p.value_bytes == 4) static_cast<u32*>(p.values)[place] = u32(values[i]);
        if (p.value_bytes == 8) static_cast<u64*>(p.values)[place] = values[i];
    }
}

struct SortLongBlock {
    SortLongMoved moved;
    const u64* bounds;  // of each two: a run's first row, and the first behind it; a block each, of SORT_LONG_ROWS at most
};

WF_DEVICE void sort_long_block_body(const SortLongBlock& p) {
    const u64 begin = p.bounds[2 * blockIdx.x];
    sort_long_run(p.moved, begin, u32(p.bounds[2 * blockIdx.x + 1] - begin));
}

// The same of half as many with two different keys, as most long runs are. `false`: they are not, and nothing has changed.
WF_DEVICE bool sort_long_two(const SortLongMoved& p, u64 begin, u32 rows) {
    constexpr u32 ITEMS = SORT_LONG_ITEMS / 2;
    WF_SHARED(u64, another);  // a key that is not the first row's
    const auto key_at = [&](u64 place) {
        return sort_key(p.key, p.keys != nullptr ? place : u64(static_cast<const u32*>(p.values)[place]));
    };
    // Each thread has rows side by side.
    const u32 each = (rows + SORT_LONG_THREADS - 1) / SORT_LONG_THREADS, first = threadIdx.x * each;
    if (each > ITEMS) return false;
    const u64 one = key_at(begin);
    u64 keys[ITEMS], values[ITEMS];
    u32 has = 0, others = 0;  // a bit each
#pragma unroll
    for (u32 i = 0; i < ITEMS; ++i) {
        if (i >= each || first + i >= rows) continue;
        const u64 place = begin + first + i;
        keys[i] = key_at(place);
        if (p.value_bytes == 4) values[i] = static_cast<const u32*>(p.values)[place];
        if (p.value_bytes == 8) values[i] = static_cast<const u64*>(p.values)[place];
        has |= 1u << i;
        others |= u32(keys[i] != one) << i;
    }
    u64 other = one;
#pragma unroll
    for (u32 i = 0; i < ITEMS; ++i) other = (others >> i & 1) != 0 ? keys[i] : other;
    const u32 found = __ballot_sync(FULL_WARP, others != 0);
    if (found != 0 && lane() == u32(trailing_zeros(found))) atomicExch(&another, other);
    if (!__syncthreads_or(others != 0)) return true;
    other = another;
    bool more = false;
#pragma unroll
    for (u32 i = 0; i < ITEMS; ++i) more = more || ((others >> i & 1) != 0 && keys[i] != other);
    if (__syncthreads_or(more)) return false;
    const u32 greater = one < other ? others : has & ~others;
    u32 total;
    u32 ahead = block_scan_u32<SORT_LONG_THREADS>(u32(__popc(greater)), total);  // whose barriers stand behind all reads
    const u64 lesser = sort_key_raw(p.key, minimum(one, other)), greatest = sort_key_raw(p.key, maximum(one, other));
#pragma unroll
    for (u32 i = 0; i < ITEMS; ++i) {
        if ((has >> i & 1) == 0) continue;
        const u32 is = greater >> i & 1;
        const u64 to = begin + (is != 0 ? rows - total + ahead : first + i - ahead);
        ahead += is;
        const u64 raw = is != 0 ? greatest : lesser;
        if (p.keys != nullptr) {
            if (sort_key_is_half(p.key)) static_cast<u32*>(p.keys)[to] = u32(raw);
            else static_cast<u64*>(p.keys)[to] = raw;
        }
        if (p.value_bytes == 4) static_cast<u32*>(p.values)[to] = u32(values[i]);
        if (p.value_bytes == 8) static_cast<u64*>(p.values)[to] = values[i];
    }
    return true;
}

struct SortLongNear {
    SortLongListed of;  // a block each; if there are more than `count`, nothing is done
    SortLongMoved moved;
    u64* found;         // SORT_FOUND_…: how many are listed, and (zero before) how many of them have runs that go on beyond what a block sees
};

// The run's first listed row, near its begin mostly, finds the run's end, and puts it in order. Others may see the run change, but not the bits
// that they look at. (Finding each run once and putting it in order by another kernel took 0.020 to 0.024 ms instead of 0.012 to 0.014.)
WF_DEVICE void sort_long_near_body(const SortLongNear& p) {
    constexpr u32 THREADS = SORT_LONG_THREADS;
    constexpr u32 WARPS = THREADS / 32;
    constexpr u32 ITEMS = SORT_LONG_ITEMS / 2;  // before the listed row, and from it on: all are what a block holds
    WF_SHARED_ARRAY(u32, begins, WARPS);
    WF_SHARED_ARRAY(u32, listed, WARPS);
    WF_SHARED_ARRAY(u32, ends, WARPS);
    const u64 count = p.found[SORT_FOUND_TOO_LONG];
    if (blockIdx.x >= count || count > p.of.count) return;
    const u32 row = p.of.listed[blockIdx.x];
    u64 least, most;
    p.of.digit(row, least, most);
    const u32 low = u32(row > least + ITEMS * THREADS ? row - ITEMS * THREADS : least);
    const u32 high = u32(minimum(row + u64(ITEMS * THREADS), most));
    u32 places[ITEMS + 1];
    u64 keys[ITEMS + 1];
#pragma unroll
    for (u32 i = 0; i < ITEMS; ++i) places[i] = minimum(low + threadIdx.x + i * THREADS, row);
    places[ITEMS] = row;
    sort_keys_of(p.of.key, places, keys);
    u32 earlier = 0;  // than the listed row, a place more
    for (u64 at = threadIdx.x; at < count; at += THREADS) {
        const u32 other = p.of.listed[at];
        if (other < row) earlier = maximum(earlier, other + 1);
    }
    const u64 mine = keys[ITEMS] >> p.of.shift;
    u32 begin = low;
#pragma unroll
    for (u32 i = 0; i < ITEMS; ++i) begin = keys[i] >> p.of.shift != mine ? maximum(begin, places[i] + 1) : begin;
    begin = __reduce_max_sync(FULL_WARP, begin);
    earlier = __reduce_max_sync(FULL_WARP, earlier);
    if (lane() == 0) {
        begins[warp()] = begin;
        listed[warp()] = earlier;
    }
    __syncthreads();  // all warps know what they see
    for (u32 w = 0; w < WARPS; ++w) {
        begin = maximum(begin, begins[w]);
        earlier = maximum(earlier, listed[w]);
    }
    if (earlier > begin) return;  // a row of the same run
#pragma unroll
    for (u32 i = 0; i <= ITEMS; ++i) places[i] = minimum(row + threadIdx.x + i * THREADS, high - 1);
    sort_keys_of(p.of.key, places, keys);
    u32 end = high;
#pragma unroll
    for (u32 i = 0; i < ITEMS; ++i) end = keys[i] >> p.of.shift != mine ? minimum(end, places[i]) : end;
    end = __reduce_min_sync(FULL_WARP, end);
    if (lane() == 0) ends[warp()] = end;
    __syncthreads();  // all warps know where others begin
    for (u32 w = 0; w < WARPS; ++w) end = minimum(end, ends[w]);
    if ((begin == low && low != least) || (end == high && high != most)) {
        if (threadIdx.x == 0) atomicAdd(p.found + SORT_FOUND_LEFT, u64(1));
    } else if (!sort_long_two(p.moved, begin, end - begin)) {
        sort_long_run(p.moved, begin, end - begin);
    }
}

struct SortLongRows {
    const u64* begins;   // runs: first rows, ascending
    const u64* offsets;  // runs: rows of the runs before
    u64 runs;
    u64 rows;            // of all runs
    u64 halves;          // 1: keys of 4 bytes, else of 8
    u64 value_bytes;     // 0, 4 or 8
    u32* places;         // rows
    void* keys;          // of the whole sort; or null, if `values` are row numbers, of
    const void* column;  // this, which has the keys
    void* values;        // of the whole sort
    void* few_keys;      // rows
    void* few_values;    // rows
};

WF_DEVICE void sort_long_copy(const void* from, u64 at, void* to, u64 into, bool half) {
    if (half) static_cast<u32*>(to)[into] = static_cast<const u32*>(from)[at];
    else static_cast<u64*>(to)[into] = static_cast<const u64*>(from)[at];
}

WF_DEVICE void sort_long_collect_body(const SortLongRows& p) {
    const u64 at = global_thread();
    if (at >= p.rows) return;
    u64 run = 0, high = p.runs;  // the last that begins at `at` or before
    while (run + 1 < high) {
        const u64 middle = (run + high) / 2;
        if (p.offsets[middle] <= at) run = middle;
        else high = middle;
    }
    const u64 place = p.begins[run] + (at - p.offsets[run]);
    p.places[at] = u32(place);
    const u64 row = p.keys != nullptr ? place : static_cast<const u32*>(p.values)[place];
    sort_long_copy(p.keys != nullptr ? p.keys : p.column, row, p.few_keys, at, p.halves != 0);
    if (p.value_bytes != 0) sort_long_copy(p.values, place, p.few_values, at, p.value_bytes == 4);
}

WF_DEVICE void sort_long_return_body(const SortLongRows& p) {
    const u64 at = global_thread();
    if (at >= p.rows) return;
    if (p.keys != nullptr) sort_long_copy(p.few_keys, at, p.keys, p.places[at], p.halves != 0);
    if (p.value_bytes != 0) sort_long_copy(p.few_values, at, p.values, p.places[at], p.value_bytes == 4);
}

}  // namespace wf

#define WF_SORT_LONG_RUNS_ENTRIES                                                                                   \
    WF_KERNEL(sort_long_find, wf::SortLongFind) { wf::sort_long_find_body(p); }                                     \
    WF_KERNEL_BOUNDS(wf::SORT_LONG_THREADS, 2, sort_long_near, wf::SortLongNear) { wf::sort_long_near_body(p); }    \
    WF_KERNEL_BOUNDS(wf::SORT_LONG_THREADS, 2, sort_long_block, wf::SortLongBlock) { wf::sort_long_block_body(p); } \
    WF_KERNEL(sort_long_collect, wf::SortLongRows) { wf::sort_long_collect_body(p); }                               \
    WF_KERNEL(sort_long_return, wf::SortLongRows) { wf::sort_long_return_body(p); }
