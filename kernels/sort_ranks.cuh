// sort_ranks.cuh: sorts keys that repeat by their values' ranks: of a million values 21 bits, whatever the keys' bits are.
//
//   values, in order   5   70   900            of a sample, nearly all that there are
//   ranks            0 1 2  3 4   5 6          odd of a value, even of what lies between two: 6 has rank 2, as 8 would
//
//   1. sort_ranks_draw    keys of rows at random into a hash table
//   2. sort_ranks_list    the table's keys one after the other, and how many of other rows, drawn one by one, have keys that it has
//                         not
//   3. sort_ranks_chunk   values in order within chunks
//      sort_ranks_order   and among all, by looking each up in every chunk, and each with its rank into a table of pairs that fits the L2
//                         cache; of many values
//      sort_ranks_put     only the latter: they are sorted as any other keys before
//   4. sort_ranks_find    each row's rank, by one lookup; of keys that the sample missed by binary search
//
// Keys alone need no more than how many rows each value has:
//
//   4. sort_ranks_tally   of few values, by one lookup a row; of many, ranks are found, and sorted by their high bits in one pass, and then
//      sort_ranks_count   counts them
//   5. sort_ranks_fill    each value as often as it was counted
//
// Rows of an odd rank have the same key; of an even one they may differ, and sort_runs.cuh puts them in order.
//
// Bytes per row: the key read, four of its rank written (or the key); a lookup of 16 bytes in L2.
#pragma once
#include "compact.cuh"
#include "hash.cuh"
#include "sort_digit.cuh"
#include "sort_key.cuh"
#include "sort_values.cuh"

namespace wf {

constexpr u32 SORT_RANKS_THREADS = 256;
constexpr u32 SORT_RANKS_CHUNK = 1024;       // values that a block puts in order, two a thread
constexpr u32 SORT_RANKS_AT_ONCE = 4;        // chunks in which a thread looks a value up
constexpr u32 SORT_RANKS_STRETCH = 4;        // neighbours that are drawn together: they come with one sector of memory
constexpr u32 SORT_RANKS_FIND_THREADS = 512;
constexpr u32 SORT_RANKS_ITEMS = 4;          // rows of a thread that looks ranks up
constexpr u32 SORT_RANKS_TILE = SORT_RANKS_FIND_THREADS * SORT_RANKS_ITEMS;
constexpr u32 SORT_RANKS_COPIES = 8;         // of a block's counts of digits
constexpr u32 SORT_RANKS_TALLY_THREADS = 1024;
constexpr u32 SORT_RANKS_TALLY_TILE = SORT_RANKS_TALLY_THREADS * SORT_RANKS_ITEMS;
constexpr u32 SORT_RANKS_COUNT_TILE = 4096;  // rows of a step
constexpr u32 SORT_RANKS_FILL_TILE = 4096;   // rows of a block
constexpr u32 SORT_RANKS_FILL_ITEMS = 4;     // of which a thread looks for the values at once

// ---- values ----

struct SortRanksDraw {
    SortKey key;
    u64 rows;     // at least SORT_RANKS_STRETCH
    u64 samples;
    u64* table;   // slots + 1, all ones
    u64 slots;    // a power of two
    u64 most;     // keys in the table from which on it is not worth going on
    u64* found;   // keys in the table; zero before
};

// A key a thread: with four, whose probes overlap, 65,536 values took 0.037 ms instead of 0.026, and 16,384 0.023 instead of 0.017 (H200), as more
// threads at once find the same slots free.
WF_DEVICE void sort_ranks_draw_body(const SortRanksDraw& p) {
    WF_SHARED(u64, before);
    if (threadIdx.x == 0) before = load_relaxed(p.found);
    __syncthreads();  // it is known whether to go on
    if (before > p.most) return;
    const u64 at = global_thread();
    bool fresh = false;
    if (at < p.samples) {
        const u64 stretch = mul_high(hash_mix(at / SORT_RANKS_STRETCH), p.rows / SORT_RANKS_STRETCH);
        const u64 key = sort_key(p.key, stretch * SORT_RANKS_STRETCH + at % SORT_RANKS_STRETCH);
        hash_insert(p.table, p.slots - 1, key, fresh);
    }
    __syncwarp(FULL_WARP);  // the lanes probed for different lengths
    const u32 count = u32(__syncthreads_count(fresh));
    if (threadIdx.x == 0 && count != 0) atomicAdd(p.found, u64(count));
}

struct SortRanksList {
    SortKey key;
    u64 rows;
    u64 samples;       // rows that are looked up in the table
    u64 drawn;         // rows were drawn by lower numbers
    const u64* table;  // slots + 1
    u64 slots;
    u64* values;       // `room`: the table's keys, in any order
    u64 room;
    u64* listed;       // how many there are, and the rows looked up whose keys are not in the table; zero before
};

WF_DEVICE void sort_ranks_list_body(const SortRanksList& p) {
    WF_SHARED(u64, begin);
    const u64 at = global_thread();
    const u64 held = at <= p.slots ? p.table[at] : HASH_EMPTY;
    bool missed = false;
    if (at < p.samples) {
        const u64 key = sort_key(p.key, mul_high(hash_mix(p.drawn + at), p.rows));
        missed = hash_find(p.table, p.slots - 1, key) == HASH_NONE;
    }
    __syncwarp(FULL_WARP);  // the lanes probed for different lengths
    const u32 misses = u32(__syncthreads_count(missed));
    u32 total;
    const u32 place = block_scan<SORT_RANKS_THREADS, u32>(held != HASH_EMPTY ? 1 : 0, total);
    if (threadIdx.x == 0) {
        begin = total != 0 ? atomicAdd(p.listed, u64(total)) : 0;
        if (misses != 0) atomicAdd(p.listed + 1, u64(misses));
    }
    __syncthreads();  // the block's place is known
    if (held != HASH_EMPTY && begin + place < p.room) p.values[begin + place] = at == p.slots ? HASH_EMPTY : held;
}

struct SortRanksChunk {
    u64* list;   // values, no two the same: chunks of them are put in order
    u64 values;
};

WF_DEVICE void sort_ranks_chunk_body(const SortRanksChunk& p) {
    constexpr u32 CHUNK = SORT_RANKS_CHUNK;
    WF_SHARED_ARRAY(u64, held, CHUNK);
    const u64 first = u64(blockIdx.x) * CHUNK;
    const u32 here = u32(minimum(p.values - first, u64(CHUNK)));
    // What stands behind them stays behind them.
    for (u32 at = threadIdx.x; at < CHUNK; at += CHUNK / 2) held[at] = at < here ? p.list[first + at] : ~u64(0);
    __syncthreads();  // the chunk is held
    sort_values_held<CHUNK>(held);
    for (u32 at = threadIdx.x; at < here; at += CHUNK / 2) p.list[first + at] = held[at];
}

struct SortRanksPut {
    const u64* list;  // values, no two the same: in order, or each chunk of them is
    u64* sorted;      // values, in order; or null, if they are
    u64 values;
    u64* table;       // PAIR × (slots + 1), all ones
    u64 slots;        // a power of two of at least 2 × values
};

// A block has a value for each lane, which its warps look up in chunks, in turn. Neighbours' searches take nearly the same way: a thread for each
// value and chunk, whose neighbours look in other chunks, took 0.028 ms of 32,768 values and 0.090 of 65,536 (H200, chunks of 512); to look first
// between which of 32 places of a chunk all of a block's values lie, 0.025 of 32,768 instead of 0.020.
WF_DEVICE void sort_ranks_order_body(const SortRanksPut& p) {
    constexpr u32 CHUNK = SORT_RANKS_CHUNK;
    constexpr u32 AT_ONCE = SORT_RANKS_AT_ONCE;
    constexpr u32 WARPS = SORT_RANKS_THREADS / 32;
    WF_SHARED_ARRAY(u32, numbers, 32);  // how many values are less
    const u32 values = u32(p.values);
    const u32 at = blockIdx.x * 32 + lane();
    const u64 value = at < values ? p.list[at] : 0;
    if (threadIdx.x < 32) numbers[lane()] = 0;
    __syncthreads();  // the numbers are zero
    u32 number = 0;
    for (u32 first = warp() * CHUNK; first < values; first += AT_ONCE * WARPS * CHUNK) {
        // By halves, of which the first is the whole chunk's and one place: as many as are less is any number from none to all.
        u32 less[AT_ONCE] = {};
        for (u32 step = CHUNK; step != 0; step /= 2) {
#pragma unroll
            for (u32 i = 0; i < AT_ONCE; ++i) {
                const u32 probe = less[i] + step, chunk = first + i * WARPS * CHUNK;
                if (probe <= CHUNK && chunk + probe <= values && p.list[chunk + probe - 1] < value) less[i] = probe;
            }
        }
#pragma unroll
        for (u32 i = 0; i < AT_ONCE; ++i) number += less[i];
    }
    atomicAdd(numbers + lane(), number);
    __syncthreads();  // all chunks are looked at
    if (warp() != 0) return;
    number = numbers[lane()];
    u64 slot = HASH_NONE;
    bool fresh;
    if (at < values) {
        p.sorted[number] = value;
        slot = hash_insert<PAIR>(p.table, p.slots - 1, value, fresh);
    }
    __syncwarp(FULL_WARP);  // the lanes probed for different lengths
    if (slot != HASH_NONE) p.table[slot * PAIR + 1] = 2 * u64(number) + 1;
}

WF_DEVICE void sort_ranks_put_body(const SortRanksPut& p) {
    const u64 at = global_thread();
    u64 slot = HASH_NONE;
    bool fresh;
    if (at < p.values) slot = hash_insert<PAIR>(p.table, p.slots - 1, p.list[at], fresh);
    __syncwarp(FULL_WARP);  // the lanes probed for different lengths
    if (slot != HASH_NONE) p.table[slot * PAIR + 1] = 2 * at + 1;
}

// ---- rows ----

struct SortRanksFind {
    SortKey key;        // rows
    u64 rows;
    const u64* table;   // as put
    u64 slots;
    const u64* sorted;  // values
    u64 values;
    u32* ranks;         // rows
    u64* digits;        // `passes` × 256: rows of each digit of the ranks from bit `shift` on; zero before
    u64 passes;
    u64 shift;
    u64* between;       // rows of even rank; zero before
};

constexpr u32 SORT_RANK_NONE = ~u32(0);

// The ranks of a thread's keys that are values; of others SORT_RANK_NONE. For whole warps.
template <u32 ITEMS>
WF_DEVICE void sort_ranks_of(const u64* pairs, u64 all_slots, const u64 (&keys)[ITEMS], u32 (&ranks)[ITEMS]) {
    const ulonglong2* const table = reinterpret_cast<const ulonglong2*>(pairs);
    const u32 slots = u32(all_slots);
    // All rows' probes side by side: one after the other, each would wait for those before it.
    u32 slot[ITEMS], open = (1u << ITEMS) - 1;
#pragma unroll
    for (u32 i = 0; i < ITEMS; ++i) {
        // That key has a slot of its own.
        slot[i] = keys[i] == HASH_EMPTY ? slots : u32(hash_mix(keys[i])) & (slots - 1);
        ranks[i] = SORT_RANK_NONE;
    }
    while (open != 0) {
#pragma unroll
        for (u32 i = 0; i < ITEMS; ++i) {
            if ((open >> i & 1) == 0) continue;
            const ulonglong2 seen = load_const(table + slot[i]);
            if (seen.x == keys[i] || seen.x == HASH_EMPTY || slot[i] == slots) {
                ranks[i] = u32(seen.y);
                open &= ~(1u << i);
            } else {
                slot[i] = (slot[i] + 1) & (slots - 1);
            }
        }
    }
    __syncwarp(FULL_WARP);  // the lanes probed for different lengths
}

// The rank of a key that lies between values.
WF_DEVICE u32 sort_rank_between(const u64* sorted, u64 values, u64 key) {
    u64 low = 0, high = values;
    while (low < high) {
        const u64 middle = (low + high) / 2;
        if (sorted[middle] < key) low = middle + 1;
        else high = middle;
    }
    return u32(2 * low);
}

// Dynamic shared memory: SORT_RANKS_COPIES × passes × 256 counts.
WF_DEVICE void sort_ranks_find_body(const SortRanksFind& p) {
    constexpr u32 THREADS = SORT_RANKS_FIND_THREADS;
    constexpr u32 ITEMS = SORT_RANKS_ITEMS;
    constexpr u32 COPIES = SORT_RANKS_COPIES;
    WF_DYNAMIC_SHARED(memory);
    u32* const counts = reinterpret_cast<u32*>(memory);
    const u32 passes = u32(p.passes), cells = passes * SORT_DIGITS;
    for (u32 at = threadIdx.x; at < cells * COPIES; at += THREADS) counts[at] = 0;
    __syncthreads();  // the counts are zero

    u32* const mine = counts + threadIdx.x % COPIES;
    u32 between = 0;
    for (u64 first = u64(blockIdx.x) * SORT_RANKS_TILE; first < p.rows; first += u64(gridDim.x) * SORT_RANKS_TILE) {
        const u64 begin = first + threadIdx.x;
        u64 keys[ITEMS];
        if (first + SORT_RANKS_TILE <= p.rows) sort_keys<true>(p.key, begin, THREADS, p.rows, keys);
        else sort_keys<false>(p.key, begin, THREADS, p.rows, keys);
        u32 rank[ITEMS];
        sort_ranks_of(p.table, p.slots, keys, rank);
#pragma unroll
        for (u32 i = 0; i < ITEMS; ++i) {
            const u64 row = begin + i * THREADS;
            if (row >= p.rows) continue;
            if (rank[i] == SORT_RANK_NONE) {
                between += 1;
                rank[i] = sort_rank_between(p.sorted, p.values, keys[i]);
            }
            p.ranks[row] = rank[i];
            for (u32 pass = 0; pass < passes; ++pass) {
                atomicAdd(mine + (pass * SORT_DIGITS + sort_digit(rank[i], u32(p.shift) + pass * 8)) * COPIES, 1u);
            }
        }
    }
    __syncwarp(FULL_WARP);  // some lanes searched
    for (u32 step = 16; step != 0; step /= 2) between += __shfl_xor_sync(FULL_WARP, between, step);
    if (lane() == 0 && between != 0) atomicAdd(p.between, u64(between));
    __syncthreads();  // all rows of the block are counted
    for (u32 at = threadIdx.x; at < cells; at += THREADS) {
        const u32 count = sort_copies_sum(counts, at, COPIES);
        if (count != 0) atomicAdd(p.digits + at, u64(count));
    }
}

// ---- keys alone ----

struct SortRanksTally {
    SortKey key;       // rows; a block has less than 1 << 16
    u64 rows;
    const u64* table;  // as put
    u64 slots;
    u64 values;
    u64* counts;       // a word for each two values, the first of them in its low half: rows of each; zero before
    u64* between;      // rows whose keys are not values; zero before
};

// Dynamic shared memory: a word of 32 bits for each two values, the first of them in its low half.
WF_DEVICE void sort_ranks_tally_body(const SortRanksTally& p) {
    constexpr u32 THREADS = SORT_RANKS_TALLY_THREADS;
    constexpr u32 ITEMS = SORT_RANKS_ITEMS;
    WF_DYNAMIC_SHARED(memory);
    u32* const counts = reinterpret_cast<u32*>(memory);
    const u32 words = u32(p.values + 1) / 2;
    for (u32 at = threadIdx.x; at < words; at += THREADS) counts[at] = 0;
    __syncthreads();  // the counts are zero

    u32 between = 0;
    for (u64 first = u64(blockIdx.x) * SORT_RANKS_TALLY_TILE; first < p.rows; first += u64(gridDim.x) * SORT_RANKS_TALLY_TILE) {
        const u64 begin = first + threadIdx.x;
        u64 keys[ITEMS];
        if (first + SORT_RANKS_TALLY_TILE <= p.rows) sort_keys<true>(p.key, begin, THREADS, p.rows, keys);
        else sort_keys<false>(p.key, begin, THREADS, p.rows, keys);
        u32 ranks[ITEMS];
        sort_ranks_of(p.table, p.slots, keys, ranks);
#pragma unroll
        for (u32 i = 0; i < ITEMS; ++i) {
            if (begin + i * THREADS >= p.rows) continue;
            if (ranks[i] == SORT_RANK_NONE) between += 1;
            else atomicAdd(counts + ranks[i] / 4, (ranks[i] & 2) != 0 ? 1u << 16 : 1u);  // an odd rank is twice the value's number and one
        }
    }
    __syncwarp(FULL_WARP);  // some lanes have rows between values
    between = __reduce_add_sync(FULL_WARP, between);
    if (lane() == 0 && between != 0) atomicAdd(p.between, u64(between));
    __syncthreads();  // all rows of the block are counted
    // Blocks begin at different places, and meet less at a word.
    const u32 begin = u32(u64(words) * blockIdx.x / gridDim.x) & ~31u;
    for (u32 at = threadIdx.x; at < words; at += THREADS) {
        const u32 word = at + begin < words ? at + begin : at + begin - words;
        const u32 count = counts[word];
        if (count != 0) atomicAdd(p.counts + word, u64(count & 0xFFFFu) | u64(count >> 16) << 32);
    }
}

struct SortRanksCount {
    const u32* ranks;  // rows, odd ones, in the order of their bits from 1 + `low` on
    u64 rows;
    u64 low;           // bits by which they are not sorted
    u64 copies;        // of a block's counts, a power of two up to 32
    u32* counts;       // values: rows of each; zero before
};

// Each block counts a stretch of rows, which mostly agree in their high bits. Dynamic shared memory: copies << low counts.
WF_DEVICE void sort_ranks_count_body(const SortRanksCount& p) {
    constexpr u32 THREADS = SORT_RANKS_FIND_THREADS;
    constexpr u32 ITEMS = SORT_RANKS_COUNT_TILE / THREADS;
    WF_DYNAMIC_SHARED(memory);
    u32* const cells = reinterpret_cast<u32*>(memory);
    const u32 low = u32(p.low), copies = u32(p.copies), mask = (1u << low) - 1;
    const u64 tiles = (p.rows + SORT_RANKS_COUNT_TILE - 1) / SORT_RANKS_COUNT_TILE;
    const u64 each = (tiles + gridDim.x - 1) / gridDim.x * SORT_RANKS_COUNT_TILE;
    const u64 begin = minimum(blockIdx.x * each, p.rows), end = minimum(begin + each, p.rows);
    for (u32 at = threadIdx.x; at < copies << low; at += THREADS) cells[at] = 0;
    __syncthreads();  // the counts are zero

    u32* const mine = cells + threadIdx.x % copies;
    u32 counted = 0;  // the high bits of the rows that the counts are of
    const auto flush = [&] {
        __syncthreads();  // all those rows are counted
        for (u32 at = threadIdx.x; at <= mask; at += THREADS) {
            u32 count = 0;
            // Neighbouring threads begin in different banks.
            for (u32 copy = 0; copy < copies; ++copy) {
                u32& cell = cells[at * copies + (copy + at) % copies];
                count += cell;
                cell = 0;
            }
            if (count != 0) atomicAdd(p.counts + ((counted << low) + at), count);
        }
        __syncthreads();  // the counts are zero
    };
    for (u64 first = begin; first < end; first += SORT_RANKS_COUNT_TILE) {
        const u64 last = minimum(first + SORT_RANKS_COUNT_TILE, end) - 1;
        const u32 high = p.ranks[first] >> 1 >> low;
        const bool one = high == p.ranks[last] >> 1 >> low;
        if (high != counted) {
            flush();
            counted = high;
        }
        u32 ranks[ITEMS];
#pragma unroll
        for (u32 i = 0; i < ITEMS; ++i) {
            const u64 row = first + threadIdx.x + i * THREADS;
            ranks[i] = row <= last ? p.ranks[row] : 0;
        }
#pragma unroll
        for (u32 i = 0; i < ITEMS; ++i) {
            if (first + threadIdx.x + i * THREADS > last) continue;
            if (one) atomicAdd(mine + (ranks[i] >> 1 & mask) * copies, 1u);
            else atomicAdd(p.counts + (ranks[i] >> 1), 1u);
        }
    }
    flush();
}

struct SortRanksFill {
    SortKey key;        // says how to go back
    const u64* sorted;  // values
    const u32* begins;  // values: rows of those before
    u64 values;
    u64 rows;
    void* out;          // rows of the key's width
};

WF_DEVICE void sort_ranks_fill_body(const SortRanksFill& p) {
    WF_SHARED_ARRAY(u32, ends, 2);  // the first and the last value of the tile
    const u64 first = u64(blockIdx.x) * SORT_RANKS_FILL_TILE, end = minimum(first + SORT_RANKS_FILL_TILE, p.rows);
    // By a warp each, in steps of 32 parts: one step after the other waits for memory.
    if (threadIdx.x < 64) {
        const u64 place = warp() == 0 ? first : end - 1;
        u32 low = 0, high = u32(p.values) - 1;
        while (low < high) {
            const u32 step = (high - low + 31) / 32, probe = low + (lane() + 1) * step;
            const bool before = probe <= high && p.begins[probe] <= place;
            low += u32(__popc(__ballot_sync(FULL_WARP, before))) * step;
            high = minimum(low + step - 1, high);
        }
        if (lane() == 0) ends[warp()] = low;
    }
    __syncthreads();  // the ends are known
    const u32 low = ends[0], high = ends[1];
    const u32 steps = low == high ? 0 : 32 - u32(leading_zeros(high - low));
    constexpr u32 ITEMS = SORT_RANKS_FILL_ITEMS, THREADS = SORT_RANKS_THREADS;
    for (u64 begin = first + threadIdx.x; begin < end; begin += ITEMS * THREADS) {
        // The last value that begins at a place or before it: as many more as there may be, by halves.
        u32 value[ITEMS];
#pragma unroll
        for (u32 i = 0; i < ITEMS; ++i) value[i] = low;
        for (u32 step = steps; step-- > 0;) {
#pragma unroll
            for (u32 i = 0; i < ITEMS; ++i) {
                const u32 probe = value[i] + (1u << step);
                if (probe <= high && p.begins[probe] <= begin + i * THREADS) value[i] = probe;
            }
        }
#pragma unroll
        for (u32 i = 0; i < ITEMS; ++i) {
            const u64 place = begin + i * THREADS;
            if (place >= end) continue;
            const u64 raw = sort_key_raw(p.key, p.sorted[value[i]]);
            if (sort_key_is_half(p.key)) static_cast<u32*>(p.out)[place] = u32(raw);
            else static_cast<u64*>(p.out)[place] = raw;
        }
    }
}

}  // namespace wf

#define WF_SORT_RANKS_ENTRIES                                                                                              \
    WF_KERNEL_BOUNDS(wf::SORT_RANKS_THREADS, 1, sort_ranks_draw, wf::SortRanksDraw) { wf::sort_ranks_draw_body(p); }       \
    WF_KERNEL_BOUNDS(wf::SORT_RANKS_THREADS, 1, sort_ranks_list, wf::SortRanksList) { wf::sort_ranks_list_body(p); }       \
    WF_KERNEL_BOUNDS(wf::SORT_RANKS_CHUNK / 2, 2, sort_ranks_chunk, wf::SortRanksChunk) { wf::sort_ranks_chunk_body(p); }  \
    WF_KERNEL_BOUNDS(wf::SORT_RANKS_THREADS, 1, sort_ranks_order, wf::SortRanksPut) { wf::sort_ranks_order_body(p); }      \
    WF_KERNEL_BOUNDS(wf::SORT_RANKS_THREADS, 1, sort_ranks_put, wf::SortRanksPut) { wf::sort_ranks_put_body(p); }          \
    WF_KERNEL_BOUNDS(wf::SORT_RANKS_FIND_THREADS, 4, sort_ranks_find, wf::SortRanksFind) { wf::sort_ranks_find_body(p); }      \
    WF_KERNEL_BOUNDS(wf::SORT_RANKS_TALLY_THREADS, 2, sort_ranks_tally, wf::SortRanksTally) { wf::sort_ranks_tally_body(p); }  \
    WF_KERNEL_BOUNDS(wf::SORT_RANKS_FIND_THREADS, 4, sort_ranks_count, wf::SortRanksCount) { wf::sort_ranks_count_body(p); }   \
    WF_KERNEL_BOUNDS(wf::SORT_RANKS_THREADS, 1, sort_ranks_fill, wf::SortRanksFill) { wf::sort_ranks_fill_body(p); }
