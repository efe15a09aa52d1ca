// dictionary.cuh: the distinct strings of a column, as far as they are few.
//
// A table of slots, a power of two, each 0 or the number of the row plus one whose string stands
// there. A row's code is its slot. A string that was inserted stays in its slot. Where more than
// `limit` strings were met, threads give up: the caller sees it by the count.

#pragma once
#include "keys.cuh"

namespace wf {

constexpr u32 DICTIONARY_THREADS = 256;

struct DictionaryInsert {
    const view* strings;
    const bool8* validity;  // or null
    u64 rows;
    u32* slots;
    u64 mask;
    u64 secret;
    u64 limit;
    u64* count;  // of strings met
    u32* codes;  // of nulls 0
};

WF_DEVICE void dictionary_insert_body(const DictionaryInsert& p) {
    const u64 row = (u64)blockIdx.x * DICTIONARY_THREADS + threadIdx.x;
    if (row >= p.rows) return;
    const bool valid = p.validity == nullptr || p.validity[row] != 0;
    const view text = p.strings[row];
    u64 slot = valid ? hash_view(p.secret, text) & p.mask : 0;
    bool done = !valid;
    // One exit and no `continue` after the atomicCAS, as in `hash.cuh`.
    while (!done) {
        u32 seen = load_relaxed(p.slots + slot);
        if (seen == 0) {
            seen = atomicCAS(p.slots + slot, 0u, (u32)row + 1);
            if (seen == 0) {
                atomicAdd(p.count, u64(1));
                seen = (u32)row + 1;
            }
        }
        done = views_equal(p.strings[seen - 1], text) || load_relaxed(p.count) > p.limit;
        if (!done) slot = (slot + 1) & p.mask;
    }
    p.codes[row] = (u32)slot;
}

}  // namespace wf

#define WF_DICTIONARY_ENTRIES                                                                                       \
    WF_KERNEL_BOUNDS(wf::DICTIONARY_THREADS, 1, dictionary_insert, wf::DictionaryInsert) { wf::dictionary_insert_body(p); }
