// inverse.cuh: where each row of a permutation went.
//
//   order   2 0 3 1      row 2 first, then row 0, …
//   places  1 3 0 2      row 0 stands at place 1

#pragma once
#include "prelude.cuh"

namespace wf {

struct Inverse {
    const u32* order;  // rows; each number below `rows` once
    u32* places;       // rows
    u64 rows;
};

WF_DEVICE void inverse_body(const Inverse& p) {
    const u64 stride = u64(gridDim.x) * blockDim.x;
    for (u64 at = u64(blockIdx.x) * blockDim.x + threadIdx.x; at < p.rows; at += stride) {
        p.places[p.order[at]] = (u32)at;
    }
}

}  // namespace wf

#define WF_INVERSE_ENTRIES WF_KERNEL(inverse, wf::Inverse) { wf::inverse_body(p); }
