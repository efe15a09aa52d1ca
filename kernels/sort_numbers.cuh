// sort_numbers.cuh: sorts keys that have few different values by the values' numbers in their order.
//
//   keys      70 5 70 900 5 5      values in order   5 70 900
//   numbers    1 0  1   2 0 0      rows of each      3  2   1      sorted   5 5 5 70 70 900
//
//   1. sort_numbers_list    the values that a sample found (sort_sample.cuh), out of its hash table, in any order
//   2. sort_numbers_rank    a value's number is how many are less than it; puts values and numbers into a small hash table
//   3. sort_numbers_count   looks each row's key up in the table, which lies in shared memory: rows by number, and each row's number
//                           where those are to be sorted. Keys that the sample missed go into a hash table of their own:
//                           they are listed with the others then, and rows are counted once more
//   4. sort_numbers_fill    of keys without anything beside them, each value as often as it was counted
//
// Bytes per row: the key read, and its number or the value written.
#pragma once
#include "compact.cuh"
#include "hash.cuh"
#include "sort_key.cuh"

namespace wf {

constexpr u32 SORT_NUMBERS_MOST = 4096;    // different values
constexpr u32 SORT_NUMBERS_NONE = 0xFFFF;  // of a free slot
constexpr u32 SORT_NUMBERS_THREADS = 1024;
constexpr u32 SORT_NUMBERS_ITEMS = 8;      // rows of a thread
constexpr u32 SORT_NUMBERS_TILE = SORT_NUMBERS_THREADS * SORT_NUMBERS_ITEMS;
constexpr u32 SORT_FILL_THREADS = 512;
constexpr u32 SORT_FILL_TILE = 4096;

// ---- values ----

struct SortNumbersList {
    const u64* table;  // slots + 1, of hash.cuh
    u64 slots;
    u64 base;          // what is missing in the table's values
    u64* values;       // the list
    u64* listed;       // how many there are
};

WF_DEVICE void sort_numbers_list_body(const SortNumbersList& p) {
    const u64 at = global_thread();
    if (at > p.slots || p.table[at] == HASH_EMPTY) return;
    const u64 value = at == p.slots ? HASH_EMPTY : p.table[at];
    p.values[atomicAdd(p.listed, u64(1))] = value + p.base;
}

struct SortNumbersRank {
    const u64* values;  // count, no two the same
    u64 count;
    u64* sorted;        // count
    u64* table;         // slots + 1, all ones
    u64 slots;          // a power of two of at least 2 × count
    u32* numbers;       // slots + 1, of the values in the table's slots; all ones before
};

WF_DEVICE void sort_numbers_rank_body(const SortNumbersRank& p) {
    const u64 at = global_thread();
    u64 slot = HASH_NONE;
    u32 number = 0;
    if (at < p.count) {
        const u64 value = p.values[at];
#pragma unroll 8
        for (u64 i = 0; i < p.count; ++i) number += p.values[i] < value ? 1 : 0;
        p.sorted[number] = value;
        slot = hash_insert(p.table, p.slots - 1, value);
    }
    __syncwarp(FULL_WARP);  // the lanes probed for different lengths
    if (slot != HASH_NONE) p.numbers[slot] = number;
}

// ---- rows ----

struct SortNumbersCount {
    SortKey key;        // rows
    u64 rows;
    const u64* table;   // as ranked
    const u32* numbers;
    u64 slots;
    u64 values;
    u64 copies;         // of a block's counts, a power of two up to 32
    u64* counts;        // values, zero
    u32* out;           // rows: each key's number; or null
    u64* missed;        // missed_slots + 1, all ones: keys that are not in the table
    u64 missed_slots;   // a power of two
    u64* misses;        // how many keys those are; zero before
    u64 most;           // misses for which it is worth going on
};

// Dynamic shared memory: slots + 1 keys, values × copies counts, slots + 1 numbers of two bytes.
WF_DEVICE void sort_numbers_count_body(const SortNumbersCount& p) {
    constexpr u32 THREADS = SORT_NUMBERS_THREADS;
    constexpr u32 ITEMS = SORT_NUMBERS_ITEMS;
    WF_DYNAMIC_SHARED(memory);
    const u32 slots = u32(p.slots), cells = u32(p.values * p.copies), copies = u32(p.copies);
    u64* const table = reinterpret_cast<u64*>(memory);
    u32* const counts = reinterpret_cast<u32*>(table + slots + 1);
    u16* const numbers = reinterpret_cast<u16*>(counts + cells);
    for (u32 at = threadIdx.x; at <= slots; at += THREADS) {
        table[at] = p.table[at];
        numbers[at] = u16(p.numbers[at]);
    }
    for (u32 at = threadIdx.x; at < cells; at += THREADS) counts[at] = 0;
    __syncthreads();  // the table is there, the counts are zero

    u32* const mine = counts + threadIdx.x % copies;
    for (u64 first = u64(blockIdx.x) * SORT_NUMBERS_TILE; first < p.rows; first += u64(gridDim.x) * SORT_NUMBERS_TILE) {
        if (__shfl_sync(FULL_WARP, load_relaxed(p.misses), 0) > p.most) break;  // all lanes of a warp, or none
        const u64 begin = first + threadIdx.x;
        u64 keys[ITEMS];
        if (first + SORT_NUMBERS_TILE <= p.rows) sort_keys<true>(p.key, begin, THREADS, p.rows, keys);
        else sort_keys<false>(p.key, begin, THREADS, p.rows, keys);
        // All rows' probes side by side: one after the other, each would wait for those before it.
        u32 slot[ITEMS], open = 0;
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
            if (number != SORT_NUMBERS_NONE) {
                atomicAdd(mine + number * copies, 1u);
                if (p.out != nullptr) p.out[row] = number;
            } else if (load_relaxed(p.misses) <= p.most) {
                bool fresh;
                const bool full = hash_insert(p.missed, p.missed_slots - 1, keys[i], fresh) == HASH_NONE;
                if (fresh || full) atomicAdd(p.misses, full ? p.most + 1 : u64(1));
            }
        }
    }
    __syncthreads();  // all rows of the block are counted
    for (u32 at = threadIdx.x; at < u32(p.values); at += THREADS) {
        u32 count = 0;
        // Neighbouring threads begin in different banks.
        for (u32 copy = 0; copy < copies; ++copy) count += counts[at * copies + (copy + at) % copies];
        if (count != 0) atomicAdd(p.counts + at, u64(count));
    }
}

struct SortNumbersFill {
    SortKey key;        // how to go back
    const u64* sorted;  // values
    const u64* counts;  // values
    u64 values;         // at most SORT_NUMBERS_MOST
    u64 rows;           // the sum of counts
    void* out;          // rows of the key's width
};

WF_DEVICE void sort_numbers_fill_body(const SortNumbersFill& p) {
    constexpr u32 THREADS = SORT_FILL_THREADS;
    constexpr u32 EACH = SORT_NUMBERS_MOST / THREADS;
    WF_SHARED_ARRAY(u32, begins, SORT_NUMBERS_MOST);
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
        begins[mine + i] = begin;
        begin += counts[i];
    }
    __syncthreads();  // it is known where each value begins

    // The last value that begins at a place or before it.
    const auto number_at = [&](u64 place, u32 low, u32 high) {
        while (low < high) {
            const u32 middle = (low + high + 1) / 2;
            if (begins[middle] <= place) low = middle;
            else high = middle - 1;
        }
        return low;
    };
    const auto put = [&](u64 place, u64 raw) {
        if (sort_key_is_half(p.key)) static_cast<u32*>(p.out)[place] = u32(raw);
        else static_cast<u64*>(p.out)[place] = raw;
    };
    for (u64 first = u64(blockIdx.x) * SORT_FILL_TILE; first < p.rows; first += u64(gridDim.x) * SORT_FILL_TILE) {
        const u64 end = minimum(first + SORT_FILL_TILE, p.rows);
        const u32 low = number_at(first, 0, values - 1), high = number_at(end - 1, low, values - 1);
        const u64 raw = sort_key_raw(p.key, p.sorted[low]);
        for (u64 place = first + threadIdx.x; place < end; place += THREADS) {
            put(place, low == high ? raw : sort_key_raw(p.key, p.sorted[number_at(place, low, high)]));
        }
    }
}

}  // namespace wf

#define WF_SORT_NUMBERS_ENTRIES                                                                                               \
    WF_KERNEL(sort_numbers_list, wf::SortNumbersList) { wf::sort_numbers_list_body(p); }                                      \
    WF_KERNEL(sort_numbers_rank, wf::SortNumbersRank) { wf::sort_numbers_rank_body(p); }                                      \
    WF_KERNEL_BOUNDS(wf::SORT_NUMBERS_THREADS, 1, sort_numbers_count, wf::SortNumbersCount) { wf::sort_numbers_count_body(p); } \
    WF_KERNEL_BOUNDS(wf::SORT_FILL_THREADS, 2, sort_numbers_fill, wf::SortNumbersFill) { wf::sort_numbers_fill_body(p); }
