// sort_ties.cuh: whether rows that tie, which agree in all bits of their keys that travelled, have the same key: from one row's key
// of each group of them, where all of their keys would be read from anywhere.
//
//   keys 70 70 71 50, the high digit travelled     groups 7 × 3, with the key 70 first, and 5 × 1, with 50
//   h(70) + h(70) + h(71) + h(50)  −  3 h(70)  −  1 h(50)     is not zero: a key of a group differs from its first
//
//   1. sort_histogram   adds up a hash of every key, which it reads anyway
//   2. sort_offsets     counts the digits whose rows crowd together as if keys repeated: only then are there few groups
//   3. sort_runs        takes off the hash of each group's first key, as often as the group has rows
//
// Rows that tie stand side by side where a run is in order; of others all whole keys are read, whatever the sums say. Where a warp's or a
// tile's rows end, a group goes on as another, and the first keys of both are compared: without that, a group whose keys change just there
// would have two first keys, and leave zero.
//
// If a key differs, what is left is zero about once in 2^63 times: hashes begin with numbers that are the process's own, and both halves of
// their values are added up exactly, so that it does not matter how often a hash is taken off. (A keyed multiset hash: Clarke, Devadas, van Dijk,
// Gassend and Suh, "Incremental Multiset Hash Functions and Their Application to Memory Integrity Checking", 2003.)
#pragma once
#include "hash.cuh"

namespace wf {

// What the kernels of a sort find, all zero before.
constexpr u32 SORT_FOUND_TOO_LONG = 0;  // rows that sort_runs listed
constexpr u32 SORT_FOUND_SUMS = 1;      // two words: the sums of low and of high halves
constexpr u32 SORT_FOUND_REPEATS = 3;   // digits whose counts look as if keys repeated
constexpr u32 SORT_FOUND_UNEQUAL = 4;   // groups whose first key is not that of the one that goes on behind them
constexpr u32 SORT_FOUND_LEFT = 5;      // rows that sort_long_near left in long runs

// How often a key occurs where it pays.
constexpr f64 SORT_REPEATS_LEAST = 3;

// Numbers that nobody knows who chooses keys.
struct SortSeeds {
    u64 words[3];
};

// The hash of a key: its halves are multiplied with each other three times, each with a number of the process's own, and what they were is added,
// so that keys that a product loses stay apart. Of two, four, five and eight keys in steps (x, x + d, x + e, x + d + e, say) whose hashes are added
// with changing signs, as few leave zero as of two mixtures (SplitMix64), but for up to twice as many in the lower half's bits; after two rounds, or
// with numbers that are added, far more do (`hash.txt` in benches/runs/2026-11-25-h200-even/). The histogram of 4M keys takes 0.023 ms with it, 0.029
// with two mixtures, 0.020 with none (H200).
WF_DEVICE u64 sort_hash(const SortSeeds& seeds, u64 key) {
    u64 x = key;
#pragma unroll
    for (u32 round = 0; round < 3; ++round) {
        const u64 mixed = x ^ seeds.words[round];
        x = u64(u32(mixed)) * (mixed >> 32) + (round == 1 ? x << 32 | x >> 32 : x);
    }
    return x;
}

// Both halves of up to 2^32 hashes, added up.
struct SortSums {
    const SortSeeds& seeds;
    u64 low, high;

    explicit WF_DEVICE SortSums(const SortSeeds& seeds) : seeds(seeds), low(0), high(0) {}

    WF_DEVICE bool any() const { return (low | high) != 0; }

    // The hash of a key, for so many rows.
    WF_DEVICE void add(u64 key, u32 rows) {
        const u64 hash = sort_hash(seeds, key);
        low += u64(u32(hash)) * rows;
        high += (hash >> 32) * rows;
    }

    // Leaves a warp's in its two words of the block's, of which lanes have `any`. By whole warps.
    WF_DEVICE void to_block(u64* block, bool any) {
        for (u32 step = 16; step != 0 && any; step /= 2) {
            low += __shfl_xor_sync(FULL_WARP, low, step);
            high += __shfl_xor_sync(FULL_WARP, high, step);
        }
        if (lane() != 0) return;
        block[2 * warp()] = low;
        block[2 * warp() + 1] = high;
    }
};

// The low (0) or the high (1) halves of a block's warps.
template <u32 WARPS>
WF_DEVICE u64 sort_sums_of(const u64* block, u32 half) {
    u64 sum = 0;
#pragma unroll
    for (u32 w = 0; w < WARPS; ++w) sum += block[2 * w + half];
    return sum;
}

// Whether a digit's counts differ as they do where keys repeat, from the sum of their squares: of random keys of which each occurs r
// times, the sum of (count − mean)² / mean is 255 r.
WF_DEVICE bool sort_repeats(u64 squares, u64 rows) {
    return f64(squares) * 256 > f64(rows) * (f64(rows) + 255 * SORT_REPEATS_LEAST);
}

constexpr u32 SORT_TIES_NONE = ~u32(0);  // no place

// Lists the groups of rows that tie within a warp's chunks of eight: the place where each begins, and above it its rows. A lane has `rows`
// rows, up to eight, from `place` on, and bit i of `ties` tells whether its row i ties with the next. A group ends with the warp's rows;
// where it goes on behind them, `cut` is set to where it begins.
WF_DEVICE void sort_ties_groups(u32 ties, u32 rows, u32 place, u32* listed, u32* count, u32* cut) {
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
        if (i + here == CHUNK && end == 32) *cut = place + i;
    }
}

}  // namespace wf
