// best_row.cuh: the row with the least or the greatest of values that no atomic orders (strings,
// 128-bit integers). Accumulated is the row's number; `ahead(a, b)` loads the values of two rows
// and says whether that of the first comes before that of the second.
//
// Of equal values any row may win: nobody sees more of it than its value.
#pragma once
#include "prelude.cuh"

namespace wf {

constexpr u64 BEST_ROW_NONE = ~u64(0);

// The better of two rows, either of which may be none.
template <typename Ahead>
WF_DEVICE u64 best_row_of(u64 a, u64 b, Ahead ahead) {
    if (a == BEST_ROW_NONE || b == BEST_ROW_NONE) return a == BEST_ROW_NONE ? b : a;
    return ahead(b, a) ? b : a;
}

// The same as a reduction's operation.
template <typename Ahead>
struct BestRow {
    Ahead ahead;
    WF_DEVICE u64 operator()(u64 a, u64 b) const { return best_row_of(a, b, ahead); }
};
template <typename Ahead>
WF_DEVICE BestRow<Ahead> best_row(Ahead ahead) {
    return {ahead};
}

// Puts the row in the place of one that is worse, or of none. Rows that improve nothing write
// nothing. One exit and no `continue`, see hash.cuh.
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

}  // namespace wf
