// sort_sample.cuh: how far a sort's keys spread, from a sample of them: the least and the greatest,
// the bits in which they differ, how many of them are different, and how many pairs of sampled rows
// agree in the highest 16, 24, … bits.
//
//   keys 00·01 00·10 01·00 01·11    pairs that agree in the highest 2 bits: (1, 2) and (3, 4)
//                                   in all 4 bits: none
//
//   1. sort_sample_draw    draws rows at random, some of them twice
//   2. sort_sample_pairs   inserts each key, cut to each width, into a hash table of that width;
//                          the c-th row of one key makes c − 1 pairs
//
// With s sampled of n rows, pairs × n / (s² / 2) estimates how many rows a row agrees with in those
// bits, itself included. Evenly spaced rows would not do: of ascending keys, they never agree.
#pragma once
#include "hash.cuh"
#include "sort_key.cuh"

namespace wf {

constexpr u32 SORT_SAMPLE_LEVELS = 7;        // the last compares whole keys
constexpr u32 SORT_SAMPLE_FIRST_BITS = 16;   // of the first level; each further one has 8 more
constexpr u32 SORT_SAMPLE_THREADS = 256;
constexpr u32 SORT_SAMPLE_WARPS = SORT_SAMPLE_THREADS / 32;

struct SortSample {
    SortKey key;
    u64 rows;
    u64 samples;  // at most `rows`
    u64* keys;    // samples
    u64* found;   // words, all ones before: the least key, the complement of the greatest; then, zero
                  // before: the pairs of each level, the bits in which keys differ, how many
                  // sampled rows have the key of the next row, how many different keys the sample
                  // has, and how many of these occur more than once
    u64 slots;    // of each level's table, a power of two of at least 2 × samples
    u64* tables;  // levels × (slots + 1), all ones before
    u32* counts;  // levels × (slots + 1), zero before
};

WF_DEVICE void sort_sample_draw_body(const SortSample& p) {
    const u64 at = u64(global_thread());
    u64 key = 0;
    bool near = false;
    if (at < p.samples) {
        const u64 row = mul_high(hash_mix(at), p.rows);
        key = sort_key(p.key, row);
        near = row + 1 < p.rows && sort_key(p.key, row + 1) == key;
        p.keys[at] = key;
    }
    const u32 nears = u32(__syncthreads_count(near));
    u64 least = at < p.samples ? key : ~u64(0), most = at < p.samples ? ~key : ~u64(0);
    u64 differ = at < p.samples ? key ^ sort_key(p.key, 0) : 0;
    for (u32 step = 16; step != 0; step /= 2) {
        least = minimum(least, __shfl_xor_sync(FULL_WARP, least, step));
        most = minimum(most, __shfl_xor_sync(FULL_WARP, most, step));
        differ |= __shfl_xor_sync(FULL_WARP, differ, step);
    }
    // One atomic operation a block: those of all blocks are on the same words.
    WF_SHARED_ARRAY(u64, leasts, SORT_SAMPLE_WARPS);
    WF_SHARED_ARRAY(u64, mosts, SORT_SAMPLE_WARPS);
    WF_SHARED_ARRAY(u64, differs, SORT_SAMPLE_WARPS);
    if (lane() == 0) {
        leasts[warp()] = least;
        mosts[warp()] = most;
        differs[warp()] = differ;
    }
    __syncthreads();  // all warps' values are there
    if (threadIdx.x != 0) return;
#pragma unroll
    for (u32 w = 1; w < SORT_SAMPLE_WARPS; ++w) {
        least = minimum(least, leasts[w]);
        most = minimum(most, mosts[w]);
        differ |= differs[w];
    }
    atomicMin(p.found, least);
    atomicMin(p.found + 1, most);
    atomicOr(p.found + 2 + SORT_SAMPLE_LEVELS, differ);
    if (nears != 0) atomicAdd(p.found + 3 + SORT_SAMPLE_LEVELS, u64(nears));
}

// Block b works at level b mod SORT_SAMPLE_LEVELS.
WF_DEVICE void sort_sample_pairs_body(const SortSample& p) {
    const u32 l = blockIdx.x % SORT_SAMPLE_LEVELS;
    const u64 at = u64(blockIdx.x / SORT_SAMPLE_LEVELS) * SORT_SAMPLE_THREADS + threadIdx.x;
    const u64 least = p.found[0], span = ~p.found[1] - least;
    const u32 bits = 64 - u32(leading_zeros(span));
    const u32 compared = l + 1 == SORT_SAMPLE_LEVELS ? 64 : SORT_SAMPLE_FIRST_BITS + 8 * l;
    // A warp counts its rows of one key at once, and a block its pairs: fewer atomic operations are
    // on the same word.
    const bool drawn = at < p.samples;
    const u64 whole = drawn ? p.keys[at] - least : 0, key = compared < bits ? whole >> (bits - compared) : whole;
    const u32 peers = __match_any_sync(FULL_WARP, key) & __ballot_sync(FULL_WARP, drawn);
    const bool leads = drawn && lane() == u32(trailing_zeros(peers));
    u64 slot = HASH_NONE, pairs = 0;
    bool fresh = false, again = false;
    if (leads) slot = hash_insert(p.tables + l * (p.slots + 1), p.slots - 1, key, fresh);
    __syncwarp(FULL_WARP);  // the lanes probed for different lengths
    if (slot != HASH_NONE) {
        const u64 rows = u64(__popc(peers));
        const u64 counted = atomicAdd(p.counts + l * (p.slots + 1) + slot, u32(rows));
        pairs = counted * rows + rows * (rows - 1) / 2;
        again = counted < 2 && counted + rows >= 2;
    }
    __syncwarp(FULL_WARP);  // some lanes counted
    for (u32 step = 16; step != 0; step /= 2) pairs += __shfl_xor_sync(FULL_WARP, pairs, step);
    WF_SHARED_ARRAY(u64, sums, SORT_SAMPLE_WARPS);
    if (lane() == 0) sums[warp()] = pairs;
    const u32 different = u32(__syncthreads_count(fresh));  // and all warps' pairs are there
    const u32 repeated = u32(__syncthreads_count(again));
    if (threadIdx.x != 0) return;
#pragma unroll
    for (u32 w = 1; w < SORT_SAMPLE_WARPS; ++w) pairs += sums[w];
    if (pairs != 0) atomicAdd(p.found + 2 + l, pairs);
    if (l + 1 != SORT_SAMPLE_LEVELS) return;
    if (different != 0) atomicAdd(p.found + 4 + SORT_SAMPLE_LEVELS, u64(different));
    if (repeated != 0) atomicAdd(p.found + 5 + SORT_SAMPLE_LEVELS, u64(repeated));
}

}  // namespace wf

#define WF_SORT_SAMPLE_ENTRIES                                                                                           \
    WF_KERNEL_BOUNDS(wf::SORT_SAMPLE_THREADS, 1, sort_sample_draw, wf::SortSample) { wf::sort_sample_draw_body(p); }     \
    WF_KERNEL_BOUNDS(wf::SORT_SAMPLE_THREADS, 1, sort_sample_pairs, wf::SortSample) { wf::sort_sample_pairs_body(p); }
