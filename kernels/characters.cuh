// characters.cuh: the characters of strings, one after the other.

#pragma once
#include "string.cuh"

namespace wf {

constexpr u32 CHARACTERS_THREADS = 256;

struct CharactersPack {
    const view* views;
    const u64* offsets;  // of the rows' characters among all, and their end; rows that are null or short have none
    u64 rows;
    u8* out;
};

// A warp for 32 rows: it reads what is to know of them at once, and copies the strings one by one.
WF_DEVICE void characters_pack_body(const CharactersPack& p) {
    const u64 row = u64(blockIdx.x) * CHARACTERS_THREADS + threadIdx.x;
    u64 begin = 0, from = 0;
    u32 length = 0;
    if (row < p.rows) {
        begin = p.offsets[row];
        length = (u32)(p.offsets[row + 1] - begin);
        if (length > 0) from = p.views[row].rest;
    }
#pragma unroll 1
    for (u32 k = 0; k < 32; k++) {
        const u32 count = __shfl_sync(FULL_WARP, length, k);
        const u8* const source = (const u8*)__shfl_sync(FULL_WARP, from, k);
        u8* const target = p.out + __shfl_sync(FULL_WARP, begin, k);
        for (u32 i = lane(); i < count; i += 32) target[i] = source[i];
    }
}

}  // namespace wf

#define WF_CHARACTERS_ENTRIES                                                                                   \
    WF_KERNEL_BOUNDS(wf::CHARACTERS_THREADS, 1, characters_pack, wf::CharactersPack) { wf::characters_pack_body(p); }
