// best_row.cuh: the row that has the minimum or the maximum of a column whose values no atomic
// compares (strings, 128-bit integers). The accumulator is the number of that row.
// `ahead(a, b)` loads the values of rows a and b, and says whether row a is the better one.
//
// Of rows with equal values any may win: only the value is read afterwards.
#pragma once
#include "prelude.cuh"

namespace wf {

constexpr u64 BEST_ROW_NONE = ~u64(0);

// The better of two rows, either of which may be none.
template <typename Ahead>
WF_DEVICE u64 best_row_of(u64 a, u64 b, Ahead ahead) {
    if (a == b || b == BEST_ROW_NONE) return a;
    if (a == BEST_ROW_NONE) return b;
    return ahead(b, a) ? b : a;
}

// best_row_of as the operation of a reduction.
template <typename Ahead>
struct BestRow {
    Ahead ahead;
    WF_DEVICE u64 operator()(u64 a, u64 b) const { return best_row_of(a, b, ahead); }
};
template <typename Ahead>
WF_DEVICE BestRow<Ahead> best_row(Ahead ahead) {
    return {ahead};
}

// Stores the row where `best` holds a worse one, or none. A row that is no better writes nothing.
// The loop has one exit and no `continue`; hash.cuh says why.
template <typename Ahead>
WF_DEVICE void best_row_put(u64* best, u64 row, Ahead ahead) {
    u64 seen = load_relaxed(best);
    bool better = true;
    while (better) {
        better = seen == BEST_ROW_NONE || ahead(row, seen);
        if (better) {
            const u64 before = atomicCAS(best, seen, row);
            better = before != seen;
            seen = before;
        }
    }
}

// Without groups. Each thread keeps the best row that it knows, and before each tile learns what
// the block knows:
//
//   thread         0   1   2   3        block
//   its best      12  40  12  12           12     row 40 was better than row 12
//   then          40  40  40  40           40
//
// So nearly all rows are compared with the same one, whose value then is in the cache: where each
// thread knew its own rows only, those would be too many for the cache. A warp whose threads know
// no better than the block only reads one word.
template <typename Ahead>
WF_DEVICE u64 best_row_of_block(u64* block, u64 own, Ahead ahead) {
    if (!__any_sync(FULL_WARP, own != load_relaxed(block))) return own;
    // One lane puts: in a column in ascending order each lane has a better row than all before.
#pragma unroll 1
    for (u32 step = 16; step != 0; step /= 2) {
        own = best_row_of(own, shuffle_xor(FULL_WARP, own, int(step)), ahead);
    }
    if (lane() == 0 && own != BEST_ROW_NONE) best_row_put(block, own, ahead);
    __syncwarp(FULL_WARP);  // the warp's row is put
    return load_relaxed(block);
}

}  // namespace wf
