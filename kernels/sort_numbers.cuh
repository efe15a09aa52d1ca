// sort_numbers.cuh: sorts keys of which few values are frequent by those values' numbers in their order, and the rare others apart.
//
//   keys      70 5 70 900 5 6 5      frequent, in order   5 70      rare  900 6
//   numbers    1 0  1   2 0 2 0      rows of each         3  2
//   sorted    5 5 5 | 6 | 70 70 | 900                     frequent values stand behind as many rare rows as are less than they
//
//   1. sort_numbers_list      the values that a sample found often (sort_sample.cuh), out of its hash table, in any order
//   2. sort_numbers_rank      a value's number is how many are less than it; puts values and numbers into a small hash table
//   3. sort_numbers_count     looks each row's key up in the table, which lies in shared memory: rows by number, and as is wanted each
//                             row's number (of a rare one the next after the last), or the rare keys, in any order
//   4. sort_numbers_rare      of row numbers that were sorted by their keys' numbers, the keys of the last, which are rare
//   5. sort_numbers_between   how many rare rows stand before each frequent value, once those are sorted
//   6. sort_numbers_fill      all together: keys, each value as often as it was counted, or row numbers
//
// (Frequent keys apart from others: Dong, Dhulipala, Gu and Sun, "Parallel Integer Sort: Theory and Practice", 2024.)
//
// Bytes per row: the key read, and its number or the value written; of row numbers, these once more.
#pragma once
#include "compact.cuh"
#include "hash.cuh"
#include "sort_digit.cuh"
#include "sort_key.cuh"
#include "sort_values.cuh"

namespace wf {

constexpr u32 SORT_NUMBERS_MOST = 4096;    // frequent values
constexpr u32 SORT_NUMBERS_NONE = 0xFFFF;  // of a free slot
constexpr u32 SORT_NUMBERS_LIST_THREADS = 256;
constexpr u32 SORT_NUMBERS_RANK_THREADS = 256;
constexpr u32 SORT_NUMBERS_RANKED = 32;    // values of a block
constexpr u32 SORT_NUMBERS_THREADS = 1024;
constexpr u32 SORT_NUMBERS_ITEMS = 8;      // rows of a thread
constexpr u32 SORT_NUMBERS_TILE = SORT_NUMBERS_THREADS * SORT_NUMBERS_ITEMS;
constexpr u32 SORT_FILL_THREADS = 512;
constexpr u32 SORT_FILL_TILE = 4096;

// ---- values ----

struct SortNumbersList {
    const u64* table;   // slots + 1, of hash.cuh
    const u32* counts;  // slots + 1: how often the sample has each
    u64 slots;
    u64 base;           // what is missing in the table's values
    u64 least;          // how often the sample has those that are listed
    u64* values;        // SORT_NUMBERS_MOST
    u64* listed;        // how many there are, and how many rows of the sample have them; values that the sample has at all,
                        // once, and twice; zero before
};

WF_DEVICE void sort_numbers_list_body(const SortNumbersList& p) {
    const u64 at = global_thread();
    const u32 count = at <= p.slots ? p.counts[at] : 0;
    const bool frequent = count >= p.least;
    // A block adds what it finds at once: all blocks add to the same words.
    WF_SHARED(u64, begin);
    u32 values, rows;
    const u32 place = block_scan<SORT_NUMBERS_LIST_THREADS, u32>(frequent ? 1 : 0, values);
    block_scan<SORT_NUMBERS_LIST_THREADS, u32>(frequent ? count : 0, rows);
    const u32 seen[] = {u32(__syncthreads_count(count != 0)), u32(__syncthreads_count(count == 1)),
                        u32(__syncthreads_count(count == 2))};
    if (threadIdx.x == 0) {
        begin = values != 0 ? atomicAdd(p.listed, u64(values)) : 0;
        if (rows != 0) atomicAdd(p.listed + 1, u64(rows));
#pragma unroll
        for (u32 i = 0; i < 3; ++i) {
            if (seen[i] != 0) atomicAdd(p.listed + 2 + i, u64(seen[i]));
        }
    }
    __syncthreads();  // the block's place is known
    if (!frequent || begin + place >= SORT_NUMBERS_MOST) return;
    p.values[begin + place] = (at == p.slots ? HASH_EMPTY : p.table[at]) + p.base;
}

struct SortNumbersRank {
    const u64* values;  // count, no two the same
    u64 count;
    u64* sorted;        // count
    u64* table;         // slots + 1, all ones
    u64 slots;          // a power of two of at least 2 × count
    u32* numbers;       // slots + 1, of the values in the table's slots; all ones before
};

// A block ranks SORT_NUMBERS_RANKED values, a few by each warp, whose lanes share the others out.
WF_DEVICE void sort_numbers_rank_body(const SortNumbersRank& p) {
    constexpr u32 THREADS = SORT_NUMBERS_RANK_THREADS;
    constexpr u32 EACH = SORT_NUMBERS_RANKED / (THREADS / 32);
    u64 value = 0, slot = HASH_NONE;
    u32 number = 0;
    if (sort_value_numbers<THREADS, EACH, SORT_NUMBERS_MOST>(p.values, u32(p.count), blockIdx.x * SORT_NUMBERS_RANKED, value, number)) {
        p.sorted[number] = value;
        slot = hash_insert(p.table, p.slots - 1, value);
    }
    __syncwarp(FULL_WARP);  // the lanes probed for different lengths
    if (slot != HASH_NONE) p.numbers[slot] = number;
}

// ---- rows ----

struct SortNumbersCount {
    SortKey key;         // rows
    u64 rows;
    const u64* table;    // as ranked
    const u32* numbers;
    u64 slots;
    u64 values;
    u64 copies;          // of a block's counts, a power of two up to 32
    u64* counts;         // values, zero
    u64* rare;           // how many rows have other keys; zero before
    u32* out;            // rows: each key's number; or null
    void* rare_keys;     // `room` rows of the key's width: keys of rare rows; or null
    u64 room;            // rare rows for which it is worth going on
};

// Dynamic shared memory: slots + 1 keys, values × copies counts, slots + 1 numbers of two bytes.
WF_DEVICE void sort_numbers_count_body(const SortNumbersCount& p) {
    constexpr u32 THREADS = SORT_NUMBERS_THREADS;
    constexpr u32 ITEMS = SORT_NUMBERS_ITEMS;
    WF_DYNAMIC_SHARED(memory);
    WF_SHARED(u64, drawn);
    const u32 slots = u32(p.slots), values = u32(p.values), copies = u32(p.copies), cells = values * copies;
    u64* const table = reinterpret_cast<u64*>(memory);
    u32* const counts = reinterpret_cast<u32*>(table + slots + 1);
    u16* const numbers = reinterpret_cast<u16*>(counts + cells);
    for (u32 at = threadIdx.x; at <= slots; at += THREADS) {
        table[at] = p.table[at];
        numbers[at] = u16(p.numbers[at]);
    }
    for (u32 at = threadIdx.x; at < cells; at += THREADS) counts[at] = 0;
    if (threadIdx.x == 0) drawn = 0;
    __syncthreads();  // the table is there, the counts are zero

    u32* const mine = counts + threadIdx.x % copies;
    for (u64 first = u64(blockIdx.x) * SORT_NUMBERS_TILE; first < p.rows; first += u64(gridDim.x) * SORT_NUMBERS_TILE) {
        if (drawn > p.room) break;  // there are too many rare rows, as far as this block knows
        const u64 begin = first + threadIdx.x;
        u64 keys[ITEMS];
        if (first + SORT_NUMBERS_TILE <= p.rows) sort_keys<true>(p.key, begin, THREADS, p.rows, keys);
        else sort_keys<false>(p.key, begin, THREADS, p.rows, keys);
        // All rows' probes side by side: one after the other, each would wait for those before it.
        u32 slot[ITEMS], open = 0, rare = 0;
#pragma unroll
        for (u32 i = 0; i < ITEMS; ++i) {
            const bool apart = keys[i] == HASH_EMPTY;  // that key has a slot of its own
            slot[i] = apart ? slots : u32(hash_mix(keys[i])) & (slots - 1);
            open |= u32(!apart) << i;
        }
        while (open != 0) {
#pragma unroll
            for (u32 i = 0; i < ITEMS; ++i) {
                const u64 seen = table[slot[i]];
                if (seen == keys[i] || seen == HASH_EMPTY) open &= ~(1u << i);
                if ((open >> i & 1) != 0) slot[i] = (slot[i] + 1) & (slots - 1);
            }
        }
        __syncwarp(FULL_WARP);  // the lanes probed for different lengths
#pragma unroll
        for (u32 i = 0; i < ITEMS; ++i) {
            const u64 row = begin + i * THREADS;
            if (row >= p.rows) continue;
            const u32 number = numbers[slot[i]];
            if (number != SORT_NUMBERS_NONE) atomicAdd(mine + number * copies, 1u);
            else rare |= 1u << i;
            if (p.out != nullptr) p.out[row] = minimum(number, values);
        }
        if (!__syncthreads_or(rare != 0)) continue;
        // The block's rare rows stand together.
        u32 total;
        const u32 before = block_scan<THREADS, u32>(u32(__popc(rare)), total);
        if (threadIdx.x == 0) drawn = atomicAdd(p.rare, u64(total));
        __syncthreads();  // the rows' place is known
        u64 to = drawn + before;
        if (p.rare_keys != nullptr && drawn + total <= p.room) {
#pragma unroll
            for (u32 i = 0; i < ITEMS; ++i) {
                if ((rare >> i & 1) == 0) continue;
                const u64 raw = sort_key_raw(p.key, keys[i]);
                if (sort_key_is_half(p.key)) static_cast<u32*>(p.rare_keys)[to] = u32(raw);
                else static_cast<u64*>(p.rare_keys)[to] = raw;
                to += 1;
            }
        }
    }
    __syncthreads();  // all rows of the block are counted
    for (u32 at = threadIdx.x; at < values; at += THREADS) {
        const u32 count = sort_copies_sum(counts, at, copies);
        if (count != 0) atomicAdd(p.counts + at, u64(count));
    }
}

// ---- rare rows ----

struct SortNumbersRare {
    const void* column;  // keys
    u64 half;            // 1: of 4 bytes, else of 8
    const u32* order;    // rows of it
    u64 rows;
    void* keys;          // their keys
};

WF_DEVICE void sort_numbers_rare_body(const SortNumbersRare& p) {
    const u64 at = global_thread();
    if (at >= p.rows) return;
    if (p.half != 0) static_cast<u32*>(p.keys)[at] = static_cast<const u32*>(p.column)[p.order[at]];
    else static_cast<u64*>(p.keys)[at] = static_cast<const u64*>(p.column)[p.order[at]];
}

struct SortNumbersBetween {
    SortKey rare;       // in their order
    u64 rows;
    const u64* sorted;  // values
    u64 values;
    u32* before;        // values: rare rows that are less
};

// A warp for each value, in steps of 32 parts: one step after the other waits for memory.
WF_DEVICE void sort_numbers_between_body(const SortNumbersBetween& p) {
    const u64 at = global_thread() / 32;
    if (at >= p.values) return;
    const u64 value = p.sorted[at];
    u64 low = 0, high = p.rows;
    while (low < high) {
        // Rows below `low` are less, those from `high` on are not.
        const u64 part = (high - low + 31) / 32, probe = low + lane() * part;
        const u32 less = u32(__popc(__ballot_sync(FULL_WARP, probe < high && sort_key(p.rare, probe) < value)));
        if (less == 0) {
            high = low;
        } else {
            const u64 last = low + (less - 1) * part;  // a row that is less
            high = minimum(high, last + part);
            low = last + 1;
        }
    }
    if (lane() == 0) p.before[at] = u32(low);
}

// ---- all rows ----

struct SortNumbersFill {
    SortKey rare;        // of rare rows in their order; says how to go back
    const u64* sorted;   // values
    const u64* counts;   // values, none 0
    u64 values;          // at most SORT_NUMBERS_MOST
    const u32* before;   // values: rare rows that are less
    u64 rows;            // with the rare ones
    const u32* order;    // rows of frequent values, by those; or null: keys are wanted
    const u32* rare_rows;  // rare rows in their order; or null
    void* out;           // rows of the key's width, or of u32
};

WF_DEVICE void sort_numbers_fill_body(const SortNumbersFill& p) {
    constexpr u32 THREADS = SORT_FILL_THREADS;
    constexpr u32 EACH = SORT_NUMBERS_MOST / THREADS;
    // Rows of the frequent values before each, and of the rare ones.
    WF_SHARED_ARRAY(u32, frequent, SORT_NUMBERS_MOST + 1);
    WF_SHARED_ARRAY(u32, rare, SORT_NUMBERS_MOST);
    const u32 values = u32(p.values), mine = threadIdx.x * EACH;
    u32 counts[EACH], sum = 0, total;
#pragma unroll
    for (u32 i = 0; i < EACH; ++i) {
        counts[i] = mine + i < values ? u32(p.counts[mine + i]) : 0;
        sum += counts[i];
    }
    u32 begin = block_scan<THREADS, u32>(sum, total);
#pragma unroll
    for (u32 i = 0; i < EACH; ++i) {
        frequent[mine + i] = begin;
        begin += counts[i];
        rare[mine + i] = mine + i < values ? p.before[mine + i] : 0;
    }
    if (threadIdx.x == 0 && values == SORT_NUMBERS_MOST) frequent[values] = total;
    __syncthreads();  // it is known where each value begins

    // The last value that begins at a place or before it; or `low`.
    const auto number_at = [&](u64 place, u32 low, u32 high) {
        while (low < high) {
            const u32 middle = (low + high + 1) / 2;
            if (frequent[middle] + rare[middle] <= place) low = middle;
            else high = middle - 1;
        }
        return low;
    };
    // Whether a place is one of the value's rows; and, of a rare row, its number among those.
    const auto begins_after = [&](u64 place, u32 number) { return place < frequent[number] + rare[number]; };
    const auto ends_before = [&](u64 place, u32 number) { return place >= frequent[number + 1] + rare[number]; };
    const auto put = [&](u64 place, u64 raw) {
        if (p.order != nullptr || sort_key_is_half(p.rare)) static_cast<u32*>(p.out)[place] = u32(raw);
        else static_cast<u64*>(p.out)[place] = raw;
    };
    for (u64 first = u64(blockIdx.x) * SORT_FILL_TILE; first < p.rows; first += u64(gridDim.x) * SORT_FILL_TILE) {
        const u64 end = minimum(first + SORT_FILL_TILE, p.rows);
        const u32 low = number_at(first, 0, values - 1), high = number_at(end - 1, low, values - 1);
        const bool one = low == high && !begins_after(first, low) && !ends_before(end - 1, low);
        const u64 raw = sort_key_raw(p.rare, p.sorted[low]);
        for (u64 place = first + threadIdx.x; place < end; place += THREADS) {
            const u32 number = one ? low : number_at(place, low, high);
            if (!one && (begins_after(place, number) || ends_before(place, number))) {
                const u64 at = place - (begins_after(place, number) ? frequent[number] : frequent[number + 1]);
                put(place, p.order != nullptr ? p.rare_rows[at] : sort_key_raw(p.rare, sort_key(p.rare, at)));
            } else if (p.order != nullptr) {
                put(place, p.order[place - rare[number]]);
            } else {
                put(place, one ? raw : sort_key_raw(p.rare, p.sorted[number]));
            }
        }
    }
}

}  // namespace wf

#define WF_SORT_NUMBERS_ENTRIES                                                                                                 \
    WF_KERNEL_BOUNDS(wf::SORT_NUMBERS_LIST_THREADS, 1, sort_numbers_list, wf::SortNumbersList) { wf::sort_numbers_list_body(p); } \
    WF_KERNEL_BOUNDS(wf::SORT_NUMBERS_RANK_THREADS, 1, sort_numbers_rank, wf::SortNumbersRank) { wf::sort_numbers_rank_body(p); } \
    WF_KERNEL_BOUNDS(wf::SORT_NUMBERS_THREADS, 1, sort_numbers_count, wf::SortNumbersCount) { wf::sort_numbers_count_body(p); } \
    WF_KERNEL(sort_numbers_rare, wf::SortNumbersRare) { wf::sort_numbers_rare_body(p); }                                        \
    WF_KERNEL(sort_numbers_between, wf::SortNumbersBetween) { wf::sort_numbers_between_body(p); }                               \
    WF_KERNEL_BOUNDS(wf::SORT_FILL_THREADS, 2, sort_numbers_fill, wf::SortNumbersFill) { wf::sort_numbers_fill_body(p); }
