// sort_ties.cuh: whether rows that tie, which agree in all bits of their keys that travelled, have the same key: from one row's key
// of each group of them, where all of their keys would be read from anywhere.
//
//   keys 70 71 50 70, the high digit travelled     groups 7 × 3, with the key 70 first, and 5 × 1, with 50
//   h(70) + h(71) + h(50) + h(70)  −  3 h(70)  −  1 h(50)     is zero if each group's keys are the same
//
//   1. sort_histogram   adds up a hash of every key, which it reads anyway
//   2. sort_offsets     counts the digits whose rows crowd together as if keys repeated: only then are there few groups
//   3. sort_runs        takes off the hash of each group's first key, as often as the group has rows
//
// A group may be cut anywhere, each part has a first row of its own. If keys of a group differ, what is left is zero with a chance of
// 2^-64: h has 64 bits, its seed is the process's own, and both halves of its values are added up exactly, so that it does not matter by
// which number a hash is multiplied. (A multiset hash: Clarke, Devadas, van Dijk, Gassend and Suh, "Incremental Multiset Hash Functions
// and Their Application to Memory Integrity Checking", 2003.)
#pragma once
#include "hash.cuh"

namespace wf {

// What the kernels of a sort find, all zero before.
constexpr u32 SORT_FOUND_TOO_LONG = 0;  // rows that sort_runs listed
constexpr u32 SORT_FOUND_SUMS = 1;      // two words: the sums of low and of high halves
constexpr u32 SORT_FOUND_REPEATS = 3;   // digits whose counts look as if keys repeated

// How often a key occurs where it pays.
constexpr f64 SORT_REPEATS_LEAST = 3;

// Halves of up to 2^32 hashes each.
struct SortSums {
    u64 low, high;

    WF_DEVICE void add(u64 key, u64 seed, u32 rows) {
        const u64 hash = hash_mix(key ^ seed);
        low += u64(u32(hash)) * rows;
        high += (hash >> 32) * rows;
    }

    // Adds a warp's to its block's.
    WF_DEVICE void to_block(u64* block) {
        for (u32 step = 16; step != 0; step /= 2) {
            low += __shfl_xor_sync(FULL_WARP, low, step);
            high += __shfl_xor_sync(FULL_WARP, high, step);
        }
        if (lane() != 0) return;
        atomicAdd(block, low);
        atomicAdd(block + 1, high);
    }
};

// Whether a digit's counts differ as they do where keys repeat, from the sum of their squares: of random keys of which each occurs r
// times, the sum of (count − mean)² / mean is 255 r.
WF_DEVICE bool sort_repeats(u64 squares, u64 rows) {
    return f64(squares) * 256 > f64(rows) * (f64(rows) + 255 * SORT_REPEATS_LEAST);
}

// Lists the groups of rows that tie within a warp's chunks of eight: the place where each begins, and above it its rows. Bits of `ties` tell
// which of a lane's rows, that stand from `place` on, tie with the next, of `rows` rows. A group ends with the warp's rows.
WF_DEVICE void sort_ties_groups(u32 ties, u32 rows, u32 place, u32* listed, u32* count) {
    constexpr u32 CHUNK = 8, ALL = 0xFF;
    const u32 whole = __ballot_sync(FULL_WARP, ties == ALL);
    const u32 above = __shfl_up_sync(FULL_WARP, ties, 1);
    const u32 goes_on = lane() == 0 ? 0 : above >> (CHUNK - 1) & 1;
    // A group that leaves this chunk goes through so many whole ones, and ends in another.
    const u32 through = lane() == 31 ? 0 : u32(trailing_zeros(~(whole >> (lane() + 1))));
    const u32 end = lane() + 1 + through;
    const u32 last = __shfl_sync(FULL_WARP, ties, minimum(end, 31u));
    const u32 behind = through * CHUNK + (end < 32 ? u32(trailing_zeros(~last)) + 1 : 0);
    u32 begins = ~(ties << 1 | goes_on) & ((1u << rows) - 1);
    u32 at = begins != 0 ? atomicAdd(count, u32(__popc(begins))) : 0;
    for (; begins != 0; begins &= begins - 1) {
        const u32 i = u32(trailing_zeros(begins)), here = u32(trailing_zeros(~(ties >> i)));
        listed[at++] = (place + i) | (i + here == CHUNK ? here + behind : here + 1) << 16;
    }
}

}  // namespace wf
