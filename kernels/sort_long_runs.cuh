// sort_long_runs.cuh: puts runs of rows in order that are longer than sort_runs.cuh mends, if few rows are in such: rare
// collisions of frequent keys, say.
//
//   sorted by tens   11 | 27 22 27 22 27 22 … | 38 31          a pair out of order, anywhere in a long run, is listed
//
//   1. sort_long_find      where the run of each listed row begins and ends, each run once
//   2. sort_long_collect   the rows of all such runs one after the other, and their places; the host sorts them by whole keys:
//                          runs keep their order, so that the first of them belongs into the first place, and so on
//   3. sort_long_return    rows back into the places
#pragma once
#include "hash.cuh"
#include "sort_digit.cuh"
#include "sort_key.cuh"

namespace wf {

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
        while (low < begin) {
            const u64 middle = (low + begin) / 2;
            if (sort_key(p.key, middle) >> p.shift == mine) begin = middle;
            else low = middle + 1;
        }
        end = row + 1;
        while (end < high) {
            const u64 middle = (end + high) / 2;
            if (sort_key(p.key, middle) >> p.shift == mine) end = middle + 1;
            else high = middle;
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
    WF_KERNEL(sort_long_collect, wf::SortLongRows) { wf::sort_long_collect_body(p); }                   \
    WF_KERNEL(sort_long_return, wf::SortLongRows) { wf::sort_long_return_body(p); }
