// pipeline.cuh: what generated pipelines are made of besides expressions: ranks of a tile's
// survivors, block-wide reductions, cells in shared memory, exact sums of floats, hashes of wide
// keys.
#pragma once
#include "prelude.cuh"
#include "compact.cuh"
#include "hash.cuh"

namespace wf {

// ---- survivors of a striped tile ----
//
// Thread t holds rows t, t + THREADS, t + 2·THREADS, … of the tile; bit k of `keep` says that row t
// + k·THREADS stays.
//
//   THREADS 4, ITEMS 2    keep by row  1 0 1 1 | 0 1 1 0     rank  0 . 1 2 | . 3 4 .     returned 5
template <u32 THREADS, u32 ITEMS>
WF_DEVICE u32 tile_ranks(u32 keep, u32 (&rank)[ITEMS]) {
    constexpr u32 WARPS = THREADS / 32;
    constexpr u32 COUNTS = WARPS * ITEMS;
    WF_SHARED_ARRAY(u32, counts, COUNTS + 1);
    const u32 lane = threadIdx.x % 32;
    const u32 warp = threadIdx.x / 32;
#pragma unroll
    for (u32 k = 0; k < ITEMS; ++k) {
        const u32 kept = __ballot_sync(FULL_WARP, (keep >> k & 1) != 0);
        rank[k] = __popc(kept & ((1u << lane) - 1));
        if (lane == 0) counts[k * WARPS + warp] = __popc(kept);
    }
    __syncthreads();  // all counts are there
    if (warp == 0) {
        u32 before = 0;
#pragma unroll 1
        for (u32 i = 0; i < COUNTS; i += 32) {
            const u32 count = i + lane < COUNTS ? counts[i + lane] : 0;
            u32 sum = count;
            for (u32 step = 1; step < 32; step *= 2) {
                const u32 below = __shfl_up_sync(FULL_WARP, sum, step);
                if (lane >= step) sum += below;
            }
            if (i + lane < COUNTS) counts[i + lane] = before + sum - count;
            before += __shfl_sync(FULL_WARP, sum, 31);
        }
        if (lane == 0) counts[COUNTS] = before;
    }
    __syncthreads();  // counts are now starts
#pragma unroll
    for (u32 k = 0; k < ITEMS; ++k) rank[k] += counts[k * WARPS + warp];
    const u32 total = counts[COUNTS];
    __syncthreads();  // all have read before the next tile writes
    return total;
}

// ---- the filter mask: a bit for each row, set where the row stays ----

constexpr u32 MASK_TILE = 4096;  // rows of a count

// The row that a thread holds as its k-th of a block's tile: a warp has ITEMS × 32 rows in a row,
// so that its words of the mask are neighbours.
#define WF_MASK_ROW(tile, k) \
    ((tile) * ((u64)ITEMS * THREADS) + warp() * (32u * ITEMS) + (u32)(k) * 32u + lane())

// Of the tile that begins at `first`: the warp's ballots of rows that stay, one for each of the
// ITEMS. Stores them, and adds to the count of the rows that are counted together.
template <u32 THREADS, u32 ITEMS>
WF_DEVICE void mask_rows(u64 first, u64 rows, const u32 (&kept)[ITEMS], u32* mask, u32* counts) {
    static_assert(MASK_TILE % (THREADS * ITEMS) == 0 && ITEMS <= 32, "a tile belongs to one count");
    u32 own = 0, total = 0;
#pragma unroll
    for (u32 k = 0; k < ITEMS; ++k) {
        if (lane() == k) own = kept[k];
        total += u32(__popc(kept[k]));
    }
    const u64 row = first + warp() * (32 * ITEMS) + lane() * 32;
    if (lane() < ITEMS && row < rows) mask[row / 32] = own;
    if (lane() == 0 && total != 0) atomicAdd(counts + first / MASK_TILE, total);
}

// The rows that stay of the tile that begins at `first`, as places in it, ascending; how many there
// are. The whole block calls.
template <u32 THREADS>
WF_DEVICE u32 mask_places(const u32* mask, u64 first, u64 rows, u16* places) {
    constexpr u32 WORDS = MASK_TILE / 32;
    static_assert(THREADS >= WORDS, "one thread for each word");
    WF_SHARED_ARRAY(u32, words, WORDS);
    WF_SHARED_ARRAY(u32, begins, WORDS);
    const u32 own = threadIdx.x;
    const u32 mine = own < WORDS && first + own * 32 < rows ? mask[first / 32 + own] : 0;
    u32 total;
    const u32 begin = block_scan_u32<THREADS>(u32(__popc(mine)), total);
    if (own < WORDS) {
        words[own] = mine;
        begins[own] = begin;
    }
    __syncthreads();  // words and begins are there
    for (u32 w = warp(); w < WORDS; w += THREADS / 32) {
        const u32 word = words[w];
        if ((word >> lane() & 1) != 0) places[begins[w] + __popc(word & lanes_below())] = u16(w * 32 + lane());
    }
    __syncthreads();  // the places are listed
    return total;
}

// The rows that stay of the warp's share of the tile, as places in the tile, ascending; how many
// there are. There is no barrier: where few rows stay, a block waits mostly. Places lie at the
// beginning of the warp's share of `places`; `before` is how many rows stay in the shares before.
template <u32 THREADS>
WF_DEVICE u32 mask_places_of_warp(const u32* mask, u64 first, u64 rows, u16* places, u32& before) {
    constexpr u32 WORDS = MASK_TILE / 32, EACH = WORDS / (THREADS / 32);
    static_assert(WORDS % 32 == 0 && 32 % EACH == 0, "a warp's words lie in one of those that lanes read together");
    const u32 own = warp() * EACH, part = own / 32;
    u32 mine = 0, counted = 0;
#pragma unroll
    for (u32 k = 0; k < WORDS / 32; ++k) {
        const u32 at = k * 32 + lane();
        const u32 word = k <= part && first + at * 32 < rows ? mask[first / 32 + at] : 0;
        if (at < own) counted += u32(__popc(word));
        if (k == part) mine = word;
    }
    before = __reduce_add_sync(FULL_WARP, counted);
    mine = __shfl_sync(FULL_WARP, mine, int(own % 32 + lane() % EACH));
    if (lane() >= EACH) mine = 0;
    const u32 bits = u32(__popc(mine));
    u32 begin = bits;
#pragma unroll
    for (u32 step = 1; step < EACH; step *= 2) {
        const u32 below = __shfl_up_sync(FULL_WARP, begin, step);
        if (lane() >= step) begin += below;
    }
    const u32 total = __shfl_sync(FULL_WARP, begin, int(EACH - 1));
    begin -= bits;
    places += own * 32;
    if (total < EACH * 32 / 4) {
        for (; mine != 0; mine &= mine - 1) places[begin++] = u16((own + lane()) * 32 + u32(trailing_zeros(mine)));
    } else {
        for (u32 w = 0; w < EACH; ++w) {
            const u32 word = __shfl_sync(FULL_WARP, mine, int(w)), to = __shfl_sync(FULL_WARP, begin, int(w));
            if ((word >> lane() & 1) != 0) places[to + __popc(word & lanes_below())] = u16((own + w) * 32 + lane());
        }
    }
    __syncwarp(FULL_WARP);  // the places are listed
    return total;
}

// ---- block-wide reductions in a fixed order; thread 0 gets the result ----

struct Add {
    template <typename T>
    WF_DEVICE T operator()(T a, T b) const { return a + b; }
};
struct Least {
    template <typename T>
    WF_DEVICE T operator()(T a, T b) const { return b < a ? b : a; }
};
struct Greatest {
    template <typename T>
    WF_DEVICE T operator()(T a, T b) const { return a < b ? b : a; }
};

// Reduces in an array of THREADS values in shared memory that the caller provides. block_reduce has
// one such array for each type of operation.
template <u32 THREADS, typename T, typename Op>
WF_DEVICE T block_reduce_in(T* values, T value, Op op) {
    values[threadIdx.x] = value;
    __syncthreads();  // all values are there
#pragma unroll 1
    for (u32 step = THREADS / 2; step != 0; step /= 2) {
        if (threadIdx.x < step) values[threadIdx.x] = op(values[threadIdx.x], values[threadIdx.x + step]);
        __syncthreads();  // this level is done
    }
    const T result = values[0];
    __syncthreads();  // all have read before the next reduction writes
    return result;
}
template <u32 THREADS, typename T, typename Op>
WF_DEVICE T block_reduce(T value, Op op) {
    WF_SHARED_ARRAY(T, values, THREADS);
    return block_reduce_in<THREADS, T>(values, value, op);
}

// A number as one or two 64-bit words, low word first.
WF_DEVICE void store_words(u64* to, u64 value) { *to = value; }
WF_DEVICE void store_words(u64* to, i64 value) { *to = u64(value); }
WF_DEVICE void store_words(u64* to, f64 value) { *to = bit_cast<u64>(value); }
WF_DEVICE void store_words(u64* to, i128 value) {
    to[0] = u64(u128(value));
    to[1] = u64(u128(value) >> 64);
}
template <typename T>
struct Words;
template <>
struct Words<u64> {
    WF_DEVICE static u64 load(const u64* from) { return *from; }
};
template <>
struct Words<i64> {
    WF_DEVICE static i64 load(const u64* from) { return i64(*from); }
};
template <>
struct Words<f64> {
    WF_DEVICE static f64 load(const u64* from) { return bit_cast<f64>(*from); }
};
template <>
struct Words<i128> {
    WF_DEVICE static i128 load(const u64* from) { return i128(u128(from[1]) << 64 | from[0]); }
};
template <typename T>
WF_DEVICE T load_words(const u64* from) {
    return Words<T>::load(from);
}

// ---- cells in shared memory: numbers of LIMBS 32-bit limbs, `stride` apart, low limb first ----
//
// Only 32-bit integer atomics are native in shared memory; a carry goes on to the next limb by
// whoever caused it, so the sum is exact modulo 2^(32·LIMBS) in any order.
template <u32 LIMBS>
WF_DEVICE void cell_add(u32* cell, u64 stride, i128 value) {
    u32 carry = 0;
#pragma unroll
    for (u32 limb = 0; limb < LIMBS; ++limb) {
        const u64 part = u64(u32(u128(value) >> (32 * limb))) + carry;
        carry = u32(part >> 32);
        const u32 add = u32(part);
        if (add != 0) {
            const u32 before = atomicAdd(cell + limb * stride, add);
            if (before + add < before) carry += 1;
        }
    }
}

// The signed number in a cell.
template <u32 LIMBS>
WF_DEVICE i128 cell_read(const u32* cell, u64 stride) {
    u128 bits = 0;
    for (u32 limb = 0; limb < LIMBS; ++limb) bits |= u128(cell[limb * stride]) << (32 * limb);
    constexpr u32 unused = 128 - 32 * LIMBS;
    return unused == 0 ? i128(bits) : i128(bits << unused) >> unused;
}

constexpr u32 CELL_NONE = ~u32(0);

// Whether any of a slot's copies is not zero, as words or as bits.
template <u32 COPIES>
WF_DEVICE bool cells_any(const u32* cells) {
    u32 any = 0;
#pragma unroll 8
    for (u32 copy = 0; copy < COPIES; ++copy) any |= cells[copy];
    return any != 0;
}
template <u32 COPIES>
WF_DEVICE bool cells_any_bit(const u32* bits, u32 first) {
    u32 any = 0;
#pragma unroll 8
    for (u32 copy = 0; copy < COPIES; ++copy) any |= bits[(first + copy) / 32] >> (first + copy) % 32 & 1;
    return any != 0;
}

// A table in which a key would lie further from its place counts as full: where many keys find no
// place, looking at every slot for each would take long. Runs of occupied slots longer than k are
// as frequent as exp(-k (load - 1 - ln load)): at a load of 0.75, in thousands of tables of 8192
// slots, the longest has some 450.
constexpr u32 CELL_PROBES = 1024;
// CELL_PROBES of a table whose number of keys is a guess: of a thousand keys in 4096 slots one in a
// thousand sets has a longer run, and where there are far more keys that should show soon.
constexpr u32 CELL_PROBES_GUESSED = 24;

// Where a key is looked for first in a table in shared memory: some high bits of a hash of 32 bits,
// which takes a third of the instructions of hash_mix. (100M rows of 10 groups: 0.44 ms instead of
// 0.51.) The factors are secret, both odd.
WF_DEVICE u32 cell_hash(u64 key, u64 secret) {
    u32 hash = u32(key) * u32(secret) + u32(key >> 32) * u32(secret >> 32);
    hash ^= hash >> 15;
    hash *= 0xC2B2AE35u;
    return hash >> 12;
}

// What the keys of such a table are: as they are, or mixed already, so that their low bits serve.
enum CellKeys { CELL_PLAIN, CELL_MIXED };

template <CellKeys KEYS>
WF_DEVICE u32 cell_place(u64 key, u64 secret) {
    return KEYS == CELL_MIXED ? u32(key) : cell_hash(key, secret);
}

// The slots of several keys, those whose bit of `wanted` is set, in a table in shared memory
// (`keys`: capacity + 1, of at most 2^20), where they are put unless they are there; the key that
// looks empty has the last. CELL_NONE stands for the other keys, and where the table is full; false
// then, and some may not have been looked for. One after another each lane would wait for the lane
// of its warp that probes longest; here all look at their two first slots at once, and probe on
// only for what they did not find there. 100M rows, 10M groups in partitions: 1.40 ms instead of
// 1.85; 1000 groups .51 instead of .74. (Where few keys are in their second slots, only lanes that
// want it look there, and collide less: of 1000 groups 0.60 instead of 0.64.)
template <u32 COUNT, CellKeys KEYS, u32 PROBES = CELL_PROBES>
WF_DEVICE bool cell_slots(u64* keys, u32 mask, const u64 (&own_keys)[COUNT], u32 wanted, u32 (&slot)[COUNT], u64 secret) {
    u32 pending = 0;
#pragma unroll
    for (u32 k = 0; k < COUNT; ++k) {
        const u32 first = cell_place<KEYS>(own_keys[k], secret) & mask;
        const u32 second = (first + 1) & mask;
        const u64 one = keys[first];
        u64 two = HASH_EMPTY;
        if (KEYS == CELL_MIXED || (one != own_keys[k] && one != HASH_EMPTY)) two = keys[second];
        slot[k] = CELL_NONE;
        if ((wanted >> k & 1) == 0) continue;
        if (own_keys[k] == HASH_EMPTY) {
            keys[mask + 1] = 0;
            slot[k] = mask + 1;
        } else if (one == own_keys[k]) {
            slot[k] = first;
        } else if (two == own_keys[k]) {
            slot[k] = second;
        } else {
            pending |= 1u << k;
        }
    }
    bool all = true;
    while (pending != 0) {
        const u32 turn = u32(__ffs(int(pending))) - 1;
        u64 own = own_keys[0];
#pragma unroll
        for (u32 k = 1; k < COUNT; ++k) own = turn == k ? own_keys[k] : own;
        u32 at = cell_place<KEYS>(own, secret) & mask;
        u32 left = minimum(mask + 1, PROBES);
        u32 found = CELL_NONE;
        // One exit and no `continue` after the atomicCAS, as in hash_insert.
        while (left != 0) {
            u64 seen = keys[at];
            if (seen == HASH_EMPTY) {
                seen = atomicCAS(keys + at, HASH_EMPTY, own);
                if (seen == HASH_EMPTY) seen = own;
            }
            if (seen == own) {
                found = at;
                left = 0;
            } else {
                at = (at + 1) & mask;
                left -= 1;
            }
        }
#pragma unroll
        for (u32 k = 0; k < COUNT; ++k) slot[k] = turn == k ? found : slot[k];
        all = found != CELL_NONE;
        pending = all ? pending & (pending - 1) : 0;
    }
    return all;
}

// Puts a key of each of the block's threads into such a table, and says whether so many of them
// differ that it will not do: more than seven of eight, or more than have room, as an even sample
// of the slots shows. All threads come here.
template <u32 THREADS>
WF_DEVICE bool cells_crowded(u64* keys, u32 slots, u64 key, bool there, u64 secret) {
    const u64 one[1] = {key};
    u32 slot[1];
    const bool placed = cell_slots<1, CELL_PLAIN, CELL_PROBES_GUESSED>(keys, slots - 1, one, there ? 1 : 0, slot, secret);
    const bool lost = __syncthreads_or(!placed) != 0;
    const u32 step = slots / THREADS;
    const u32 taken = u32(__syncthreads_count(step != 0 && keys[threadIdx.x * step] != HASH_EMPTY));
    return lost || taken * step > THREADS / 8 * 7;
}

// ---- sums of floats, exact and so independent of order: integers in units of 2^exponent ----

// `lost` is set where bits below the unit would have to be dropped, or where the value is not
// finite.
WF_DEVICE i128 fixed_of_f64(f64 value, i64 exponent, bool& lost) {
    const u64 bits = bit_cast<u64>(value);
    const i64 biased = i64(bits >> 52 & 0x7FF);
    u64 mantissa = bits & 0xFFFFFFFFFFFFFull;
    if (biased == 0x7FF) {
        lost = true;
        return 0;
    }
    i64 power = biased - 1075;
    if (biased == 0) power = -1074;
    else mantissa |= u64(1) << 52;
    if (mantissa == 0) return 0;
    const i64 shift = power - exponent;
    i128 result = 0;
    if (shift >= 0) {
        if (shift > 74) lost = true;
        else result = i128(u128(mantissa) << shift);
    } else if (shift > -53) {
        lost = lost || (mantissa & ((u64(1) << -shift) - 1)) != 0;
        result = i128(mantissa >> -shift);
    } else {
        lost = true;
    }
    return bits >> 63 ? -result : result;
}

// A multiple of 2^exponent below 2^(exponent + 110), with exponents of −900 to 900, in units of
// 2^exponent. The arithmetic is that of floats, all of it exact, in fewer instructions than
// fixed_of_f64.
WF_DEVICE i128 fixed_of_multiple(f64 value, i64 exponent) {
    const f64 whole = double_of_bits(u64(1023 - exponent) << 52);     // 2^−exponent
    const f64 above = double_of_bits(u64(975 - exponent) << 52);      // 2^−(exponent + 48)
    const f64 high = floor(value * above);
    const f64 low = fma(high, -281474976710656.0, value * whole);     // the 48 bits below
    const i64 top = i64(high);
    return i128(make_u128(u64(top >> 16), u64(top) << 48 | u64(low)));
}

// To nearest, ties to even. 2^exponent may be subnormal, so the scaling is in two steps.
WF_CALLED f64 fixed_to_f64(i128 sum, i64 exponent) {
    const bool negative = sum < 0;
    u128 magnitude = negative ? u128(0) - u128(sum) : u128(sum);
    if (magnitude == 0) return 0.0;
    const u64 high = u64(magnitude >> 64);
    const i64 width = high != 0 ? 128 - __clzll(i64(high)) : 64 - __clzll(i64(u64(magnitude)));
    i64 power = exponent;
    if (width > 64) {
        // Keeps 64 bits, the last one sticky.
        const i64 drop = width - 64;
        const bool rest = (magnitude & ((u128(1) << drop) - 1)) != 0;
        magnitude = (magnitude >> drop) | (rest ? 1 : 0);
        power += drop;
    }
    const u64 kept = u64(magnitude);
    f64 result = f64(kept);
    while (power != 0) {
        const i64 step = power > 1000 ? 1000 : power < -1000 ? -1000 : power;
        result *= bit_cast<f64>(u64(1023 + step) << 52);
        power -= step;
    }
    return negative ? -result : result;
}

// ---- hashes of wide keys ----

// Integers of every width hash alike, so that the two sides of a join may differ in representation.
WF_DEVICE u64 hash_i128(u64 seed, i128 value) {
    const u64 low = u64(u128(value));
    const u64 high = u64(u128(value) >> 64);
    u64 hash = hash_combine(seed, low);
    if (high != (low >> 63 ? ~u64(0) : u64(0))) hash = hash_combine(hash, high);
    return hash;
}

}  // namespace wf
