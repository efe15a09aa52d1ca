// hash.cuh: open-addressing tables of 64-bit keys, wide accumulators, and order-preserving bits.
//
//   a table of capacity 4 (mask 3):   keys  [ 17 | EMPTY | 5 | 42 | EMPTY ]
//                                             0     1      2   3     4 = mask + 1, only for EMPTY
//
// A table is `u64 keys[capacity + 1]`, capacity a power of two, every byte 0xFF at first; with
// STRIDE 2 a word of the caller's lies behind each key, so that key and value come with one access.
// A key that is inserted stays for ever in its slot, so a stale read can only show EMPTY, and the
// compare-and-swap then tells the truth. The key whose bits are EMPTY cannot lie among the others;
// its slot is the last, which holds 0 once that key has been inserted.
//
// Several keys of one group of columns are packed or combined into one u64 by the caller. Lanes
// leave the probe loops at different times: the caller puts __syncwarp() behind them before it uses
// atomics, so that these are combined again.
#pragma once
#include "prelude.cuh"

namespace wf {

constexpr u64 HASH_EMPTY = ~u64(0);  // content of a free slot
constexpr u64 HASH_NONE = ~u64(0);   // no slot: not found, or the table is too full
constexpr u64 HASH_PROBES = 1024;    // longest probe before the table counts as full, at first

// A bijection whose every output bit depends on every input bit (the finaliser of SplitMix64,
// Steele et al. 2014). A plain multiplication would be nearly perfect on dense keys and bad on
// others. Who does not know the secret cannot choose keys that collide; it costs nothing, since one
// instruction takes three operands of an exclusive or.
WF_DEVICE u64 hash_mix(u64 x, u64 secret) {
    x ^= x >> 30 ^ secret;
    x *= 0xBF58476D1CE4E5B9ull;
    x ^= x >> 27;
    x *= 0x94D049BB133111EBull;
    x ^= x >> 31;
    return x;
}

// Of numbers that nobody chooses.
WF_DEVICE u64 hash_mix(u64 x) { return hash_mix(x, 0); }

// The value whose hash_mix this is.
WF_DEVICE u64 hash_unmix(u64 x, u64 secret) {
    x ^= x >> 31 ^ x >> 62;
    x *= 0x319642B2D24D8EC3ull;
    x ^= x >> 27 ^ x >> 54;
    x *= 0x96DE1B173F119089ull;
    x ^= secret;
    x ^= x >> 30 ^ x >> 60;
    return x;
}

// Folds one more value into a hash; order matters.
WF_DEVICE u64 hash_combine(u64 seed, u64 value) {
    return hash_mix(seed * 0x9E3779B97F4A7C15ull + value + 0x7F4A7C15ull);
}

// Finds the slot of `key` or takes one for it. `fresh` tells whether this call took it. HASH_NONE:
// the table is too full, or a key would lie further than `probes` slots from its place, and the
// caller flags that and starts again with a bigger one, or another secret. With as many probes as
// slots every key of a table that has room finds its place. MIXED: keys are hashes already.
template <u32 STRIDE = 1, bool MIXED = false>
WF_DEVICE u64 hash_insert(u64* keys, u64 mask, u64 key, bool& fresh, u64 secret = 0, u64 probes = HASH_PROBES) {
    fresh = false;
    if (key == HASH_EMPTY) {
        u64* last = keys + (mask + 1) * STRIDE;
        if (*last == HASH_EMPTY) fresh = atomicCAS(last, HASH_EMPTY, u64(0)) == HASH_EMPTY;
        return mask + 1;
    }
    u64 slot = (MIXED ? key : hash_mix(key, secret)) & mask;
    u64 left = mask < probes ? mask + 1 : probes;
    u64 found = HASH_NONE;
    // One exit and no `continue` after the atomicCAS: ptxas 13.0 has duplicated keys in such a
    // loop.
    while (left != 0) {
        u64 seen = keys[slot * STRIDE];
        if (seen == HASH_EMPTY) {
            seen = atomicCAS(keys + slot * STRIDE, HASH_EMPTY, key);
            fresh = seen == HASH_EMPTY;
            if (fresh) seen = key;
        }
        if (seen == key) {
            found = slot;
            left = 0;
        } else {
            slot = (slot + 1) & mask;
            left -= 1;
        }
    }
    return found;
}

template <u32 STRIDE = 1, bool MIXED = false>
WF_DEVICE u64 hash_insert(u64* keys, u64 mask, u64 key) {
    bool fresh;
    return hash_insert<STRIDE, MIXED>(keys, mask, key, fresh);
}

// `hash_insert` for kernels that unroll their rows: once in the code, for tables in global memory.
WF_CALLED u64 hash_slot(u64* keys, u64 mask, u64 key, u64 secret, u64 probes) {
    bool fresh;
    return hash_insert(keys, mask, key, fresh, secret, probes);
}

// The slot of `key`, or HASH_NONE; as far from its place as it may lie. Not to run beside inserts
// of the same keys.
template <u32 STRIDE = 1>
WF_DEVICE u64 hash_find(const u64* keys, u64 mask, u64 key, u64 secret = 0) {
    if (key == HASH_EMPTY) return keys[(mask + 1) * STRIDE] == HASH_EMPTY ? HASH_NONE : mask + 1;
    u64 slot = hash_mix(key, secret) & mask;
    u64 left = mask + 1;
    u64 found = HASH_NONE;
    while (left != 0) {
        u64 seen = keys[slot * STRIDE];
        if (seen == key) found = slot;
        left = seen == key || seen == HASH_EMPTY ? 0 : left - 1;
        slot = (slot + 1) & mask;
    }
    return found;
}

// ---- tables of pairs: a key, and behind it a value that came with the insert ----

constexpr u32 PAIR = 2;  // words

WF_DEVICE u64 pair_find(const u64* slots, u64 mask, u64 key, u64 secret) {
    return hash_find<PAIR>(slots, mask, key, secret);
}
WF_DEVICE u64 pair_value(const u64* slots, u64 slot) { return slots[slot * PAIR + 1]; }

// ---- accumulators in global memory whose result does not depend on the order of additions ----

// Adds to a 128-bit integer of two words, low word first. Readable when all adders are done.
WF_DEVICE void atomic_add_i128(u64* two_words, i128 value) {
    u64 low = u64(u128(value));
    u64 high = u64(u128(value) >> 64);
    if (low != 0) {
        u64 before = atomicAdd(two_words, low);
        high += before + low < low ? 1 : 0;
    }
    if (high != 0) atomicAdd(two_words + 1, high);
}

WF_DEVICE void atomic_min(i32* to, i32 value) { atomicMin(to, value); }
WF_DEVICE void atomic_max(i32* to, i32 value) { atomicMax(to, value); }
WF_DEVICE void atomic_min(u32* to, u32 value) { atomicMin(to, value); }
WF_DEVICE void atomic_max(u32* to, u32 value) { atomicMax(to, value); }
// Once a minimum has settled most values do not improve it: a read is cheaper than an atomic that
// changes nothing.
WF_DEVICE void atomic_min(i64* to, i64 value) {
    if (value < *to) atomicMin(to, value);
}
WF_DEVICE void atomic_max(i64* to, i64 value) {
    if (value > *to) atomicMax(to, value);
}
WF_DEVICE void atomic_min(u64* to, u64 value) {
    if (value < *to) atomicMin(to, value);
}
WF_DEVICE void atomic_max(u64* to, u64 value) {
    if (value > *to) atomicMax(to, value);
}

// ---- lanes one after the other that have one slot: combined first, so that one of them adds ----
//
//   lane   0 1 2 3 4 5        slot   7 7 7 9 8 8        ahead   2 1 0 0 1 0
//   value  1 2 3 4 5 6                                  sum     6 . . 4 11 .

// How many lanes behind this one belong to its run; `first`: whether none before it does. The whole
// warp calls.
WF_DEVICE u32 run_ahead(u64 slot, bool& first) {
    const u64 before = __shfl_up_sync(FULL_WARP, slot, 1);
    first = lane() == 0 || before != slot;
    const u32 next = __ballot_sync(FULL_WARP, first) & lanes_above();
    return u32(trailing_zeros(next)) - lane() - 1;
}

WF_DEVICE u64 lane_behind(u64 value, u32 step) { return __shfl_down_sync(FULL_WARP, value, step); }
WF_DEVICE i128 lane_behind(i128 value, u32 step) {
    const u64 low = lane_behind(u64(u128(value)), step), high = lane_behind(u64(u128(value) >> 64), step);
    return i128(u128(high) << 64 | low);
}

// From a lane to the end of its run. The whole warp calls.
template <class T> WF_DEVICE T run_sum(T value, u32 ahead) {
#pragma unroll
    for (u32 step = 1; step < 32; step *= 2) {
        const T behind = lane_behind(value, step);
        if (step <= ahead) value += behind;
    }
    return value;
}
WF_DEVICE u64 run_least(u64 value, u32 ahead) {
#pragma unroll
    for (u32 step = 1; step < 32; step *= 2) {
        const u64 behind = lane_behind(value, step);
        if (step <= ahead && behind < value) value = behind;
    }
    return value;
}
WF_DEVICE u64 run_greatest(u64 value, u32 ahead) { return ~run_least(~value, ahead); }

// ---- unsigned bits whose order is the order of the values ----

WF_DEVICE u64 order_i64(i64 value) { return u64(value) ^ (u64(1) << 63); }
WF_DEVICE i64 unorder_i64(u64 ordered) { return i64(ordered ^ (u64(1) << 63)); }
WF_DEVICE u32 order_i32(i32 value) { return u32(value) ^ (u32(1) << 31); }
WF_DEVICE i32 unorder_i32(u32 ordered) { return i32(ordered ^ (u32(1) << 31)); }

// Negative floats order backwards by their bits, positive ones forwards. NaN is one value, greater
// than infinity, and −0.0 becomes +0.0.
WF_DEVICE u64 order_f64(f64 value) {
    u64 ordered = bits(value);
    if (value != value) ordered = 0x7FF8000000000000ull;
    if (value == 0.0) ordered = 0;
    return ordered >> 63 ? ~ordered : ordered | u64(1) << 63;
}

WF_DEVICE f64 unorder_f64(u64 ordered) {
    return double_of_bits(ordered >> 63 ? ordered & ~(u64(1) << 63) : ~ordered);
}

WF_DEVICE u32 order_f32(f32 value) {
    u32 ordered = bits(value);
    if (value != value) ordered = 0x7FC00000u;
    if (value == 0.0f) ordered = 0;
    return ordered >> 31 ? ~ordered : ordered | u32(1) << 31;
}

WF_DEVICE f32 unorder_f32(u32 ordered) {
    return float_of_bits(ordered >> 31 ? ordered & ~(u32(1) << 31) : ~ordered);
}

}  // namespace wf
