// sequence.cuh: integers at equal distances.
//
//   start 3   step 2   rows 4      values  3 5 7 9

#pragma once
#include "prelude.cuh"

namespace wf {

struct Sequence {
    i64* values;  // rows
    i64 start;
    i64 step;
    u64 rows;
};

// In unsigned numbers, whose overflow is defined: the last value fits, which the host has checked.
WF_DEVICE void sequence_body(const Sequence& p) {
    const u64 stride = u64(gridDim.x) * blockDim.x;
    for (u64 at = u64(blockIdx.x) * blockDim.x + threadIdx.x; at < p.rows; at += stride) {
        store_stream(p.values + at, (i64)((u64)p.start + at * (u64)p.step));
    }
}

}  // namespace wf

#define WF_SEQUENCE_ENTRIES WF_KERNEL(sequence, wf::Sequence) { wf::sequence_body(p); }
