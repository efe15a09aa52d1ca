// sort_long_runs.cuh: puts runs of rows in order that are longer than sort_runs.cuh mends, if few rows are in such: rare
// collisions of frequent keys, say.
//
//   sorted by tens   11 | 27 22 27 22 27 22 … | 38 31          a pair out of order, anywhere in a long run, is listed
//
//   1. sort_long_find      where the run of each listed row begins and ends, each run once
//
//   and if none has more rows than a block of threads can hold,
//
//   2. sort_long_rank      each row behind as many of its run as belong before it
//
//   or else
//
//   2. sort_long_collect   the rows of all such runs one after the other, and their places; the host sorts them by whole keys:
//                          runs keep their order, so that the first of them belongs into the first place, and so on
//   3. sort_long_return    rows back into the places
#pragma once
#include "hash.cuh"
#include "sort_digit.cuh"
#include "sort_key.cuh"

namespace wf {

constexpr u64 SORT_LONG_NEAR = 1024;  // rows between which and a listed one both ends of its run probably lie

struct SortLongFind {
    SortKey key;         // the rows in their order so far: keys, or packed words as SORT_WORD
    u64 rows;
    u64 shift;           // lowest bit that is sorted
    const u32* implied;  // 256: where the rows of each highest digit begin, if packed words leave it out; or null
    const u32* listed;   // rows of long runs
    u64 count;
    u64* table;          // slots + 1, all ones
    u64 slots;           // a power of two of at least 2 × count
    u64* found;          // how many runs there are; zero before
    u64* bounds;         // of each two: its first row, and the first behind it
};

WF_DEVICE void sort_long_find_body(const SortLongFind& p) {
    const u64 at = global_thread();
    u64 begin = 0, end = 0;
    bool fresh = false;
    if (at < p.count) {
        const u64 row = p.listed[at], mine = sort_key(p.key, row) >> p.shift;
        u64 low = 0, high = p.rows;  // of rows that may be equal
        if (p.implied != nullptr) {
            low = p.implied[sort_digit_at(p.implied, u32(row))];
            high = sort_digit_end(p.implied, u32(row), p.rows);
        }
        begin = row;
        end = row + 1;
        // Both ends at once, since each step waits for memory; most are near.
        u64 before = row > low + SORT_LONG_NEAR ? row - SORT_LONG_NEAR : low;
        u64 behind = minimum(row + SORT_LONG_NEAR, high - 1);
        while (low < begin || end < high) {
            u64 first, last;
            sort_key_pair(p.key, before, behind, first, last);
            if (low < begin) {
                if (first >> p.shift == mine) begin = before;
                else low = before + 1;
            }
            if (end < high) {
                if (last >> p.shift == mine) end = behind + 1;
                else high = behind;
            }
            before = (low + begin) / 2;
            behind = minimum((end + high) / 2, p.rows - 1);
        }
        hash_insert(p.table, p.slots - 1, begin, fresh);
    }
    __syncwarp(FULL_WARP);  // the lanes searched for different lengths
    if (fresh) {
        const u64 run = atomicAdd(p.found, u64(1));
        p.bounds[2 * run] = begin;
        p.bounds[2 * run + 1] = end;
    }
}

constexpr u32 SORT_LONG_THREADS = 512;
constexpr u32 SORT_LONG_ITEMS = 2;  // rows of a thread

struct SortLongRank {
    SortKey key;        // of the whole sort, in its order so far; or if `values` are row numbers, of the column
    const u64* bounds;  // of each two: a run's first row, and the first behind it; a block each
    void* keys;         // the memory of `key`, sorted where it lies; or null, if `values` are row numbers
    void* values;       // of the whole sort
    u64 value_bytes;    // 0, 4 or 8
};

WF_DEVICE void sort_long_rank_body(const SortLongRank& p) {
    constexpr u32 THREADS = SORT_LONG_THREADS;
    constexpr u32 ITEMS = SORT_LONG_ITEMS;
    WF_SHARED_ARRAY(u64, held, THREADS * ITEMS);
    const u64 begin = p.bounds[2 * blockIdx.x];
    const u32 rows = u32(p.bounds[2 * blockIdx.x + 1] - begin);
    u64 keys[ITEMS], values[ITEMS];
    u32 before[ITEMS];
#pragma unroll
    for (u32 i = 0; i < ITEMS; ++i) {
        const u32 at = threadIdx.x + i * THREADS;
        keys[i] = values[i] = before[i] = 0;
        if (at >= rows) continue;
        const u64 place = begin + at;
        if (p.value_bytes == 4) values[i] = static_cast<const u32*>(p.values)[place];
        if (p.value_bytes == 8) values[i] = static_cast<const u64*>(p.values)[place];
        held[at] = keys[i] = sort_key(p.key, p.keys != nullptr ? place : values[i]);
    }
    __syncthreads();  // the run's keys are held
#pragma unroll
    for (u32 i = 0; i < ITEMS; ++i) {
        // Equal rows count if they are of an earlier warp, or of the same and an earlier lane.
        const u32 mine = threadIdx.x + i * THREADS, first = minimum(mine - lane(), rows), last = minimum(first + 32, rows);
        if (first == rows) continue;
        u32 count = 0;
#pragma unroll 8
        for (u32 at = 0; at < first; ++at) count += held[at] <= keys[i] ? 1 : 0;
        for (u32 at = first; at < last; ++at) count += held[at] < keys[i] || (held[at] == keys[i] && at < mine) ? 1 : 0;
#pragma unroll 8
        for (u32 at = last; at < rows; ++at) count += held[at] < keys[i] ? 1 : 0;
        before[i] = count;
    }
#pragma unroll
    for (u32 i = 0; i < ITEMS; ++i) {
        if (threadIdx.x + i * THREADS >= rows) continue;
        const u64 place = begin + before[i];
        if (p.keys != nullptr) {
            const u64 raw = sort_key_raw(p.key, keys[i]);
            if (sort_key_is_half(p.key)) static_cast<u32*>(p.keys)[place] = u32(raw);
            else static_cast<u64*>(p.keys)[place] = raw;
        }
        if (p.value_bytes == 4) static_cast<u32*>(p.values)[place] = u32(values[i]);
        if (p.value_bytes == 8) static_cast<u64*>(p.values)[place] = values[i];
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

#define WF_SORT_LONG_RUNS_ENTRIES                                                                       \
    WF_KERNEL(sort_long_find, wf::SortLongFind) { wf::sort_long_find_body(p); }                         \
    WF_KERNEL_BOUNDS(wf::SORT_LONG_THREADS, 1, sort_long_rank, wf::SortLongRank) { wf::sort_long_rank_body(p); } \
    WF_KERNEL(sort_long_collect, wf::SortLongRows) { wf::sort_long_collect_body(p); }                   \
    WF_KERNEL(sort_long_return, wf::SortLongRows) { wf::sort_long_return_body(p); }
