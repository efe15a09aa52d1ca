// sort_few.cuh: sorts few rows by one kernel: the place of a row is the number of rows before it.
//
//   keys     30 10 20 10
//   before    3  0  2  1      equal keys stay in the order of their rows
//   order     1  3  2  0
//
// A warp places one row; its lanes share the comparisons with all others. That is rows² comparisons,
// and still less than the launches of a radix sort, up to the rows that the host lets pass.
#pragma once
#include "sort_key.cuh"

namespace wf {

constexpr u32 SORT_FEW_THREADS = 256;
constexpr u32 SORT_FEW_MORE = 6;  // further words at most

struct SortFew {
    SortKey key;                     // rows
    u64 rows;
    const u64* more[SORT_FEW_MORE];  // rows each: further words order equal keys; the first
                                     // `more_words` of them are there
    u64 more_words;
    u32* order;                      // rows: their numbers in order; or null
    void* keys_out;                  // rows: the column's values in order; or null
    const void* payload;             // rows of `payload_width` bytes (4 or 8), moved with the keys; or null
    void* payload_out;
    u64 payload_width;
};

// Whether the row `one` comes before the row `other`, whose first keys are equal.
WF_DEVICE bool sort_few_breaks_tie(const SortFew& p, u64 one, u64 other) {
    for (u64 word = 0; word < p.more_words; ++word) {
        const u64 a = p.more[word][one], b = p.more[word][other];
        if (a != b) return a < b;
    }
    return one < other;
}

WF_DEVICE void sort_few_body(const SortFew& p) {
    const u64 own = u64(global_thread()) / 32;
    if (own >= p.rows) return;
    const u64 key = sort_key(p.key, own);
    u32 before = 0;
    for (u64 other = lane(); other < p.rows; other += 32) {
        const u64 found = sort_key(p.key, other);
        before += found < key || (found == key && sort_few_breaks_tie(p, other, own)) ? 1 : 0;
    }
    const u32 place = __reduce_add_sync(FULL_WARP, before);
    if (lane() != 0) return;
    if (p.order != nullptr) p.order[place] = u32(own);
    if (p.keys_out != nullptr) {
        const u64 raw = sort_key_raw(p.key, key);
        if (sort_key_is_half(p.key)) static_cast<u32*>(p.keys_out)[place] = u32(raw);
        else static_cast<u64*>(p.keys_out)[place] = raw;
    }
    if (p.payload == nullptr) return;
    if (p.payload_width == 4) static_cast<u32*>(p.payload_out)[place] = static_cast<const u32*>(p.payload)[own];
    else static_cast<u64*>(p.payload_out)[place] = static_cast<const u64*>(p.payload)[own];
}

}  // namespace wf

#define WF_SORT_FEW_ENTRIES \
    WF_KERNEL_BOUNDS(wf::SORT_FEW_THREADS, 1, sort_few, wf::SortFew) { wf::sort_few_body(p); }
