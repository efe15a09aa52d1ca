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

// Views of long strings to another place of their characters.
struct CharactersMove {
    view* strings;
    const u64* offsets;  // of each row's characters among all, and their end; of short strings none
    u64 rows;
    u64 characters;
};

WF_DEVICE void characters_move_body(const CharactersMove& p) {
    const u64 row = (u64)blockIdx.x * CHARACTERS_THREADS + threadIdx.x;
    if (row < p.rows && p.offsets[row + 1] != p.offsets[row]) p.strings[row].rest = p.characters + p.offsets[row];
}

// Bytes of the characters that lie outside of the view.
struct CharactersLengths {
    const view* strings;
    u64 rows;
    u32* lengths;
};

WF_DEVICE void characters_lengths_body(const CharactersLengths& p) {
    const u64 row = (u64)blockIdx.x * CHARACTERS_THREADS + threadIdx.x;
    if (row < p.rows) p.lengths[row] = p.strings[row].length > INLINE_BYTES ? p.strings[row].length : 0;
}

}  // namespace wf

#define WF_CHARACTERS_ENTRIES                                                                                   \
    WF_KERNEL_BOUNDS(wf::CHARACTERS_THREADS, 1, characters_move, wf::CharactersMove) { wf::characters_move_body(p); } \
    WF_KERNEL_BOUNDS(wf::CHARACTERS_THREADS, 1, characters_lengths, wf::CharactersLengths) {                    \
        wf::characters_lengths_body(p);                                                                         \
    }                                                                                                           \
    WF_KERNEL_BOUNDS(wf::CHARACTERS_THREADS, 1, characters_pack, wf::CharactersPack) { wf::characters_pack_body(p); }
