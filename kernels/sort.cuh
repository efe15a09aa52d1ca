// sort.cuh: stable least-significant-digit radix sort, one pass over the rows for each digit of 8
// bits.
//
//   keys            0x21 0x12 0x11 0x22
//   by low digit    0x21 0x11 0x12 0x22
//   by high digit   0x11 0x12 0x21 0x22
//
//   1. sort_histogram   counts each digit of every key, in one read of the keys
//   2. sort_offsets     counts → the place where each digit's rows begin
//   3. sort_pass        for each digit that is not the same in all keys: a tile ranks its rows by
//                       their digit, learns by decoupled look-back how many rows of each digit
//                       earlier tiles hold, reorders its rows in shared memory so that rows of one
//                       digit are neighbours, and stores them
//
// (Onesweep: Adinets and Merrill, "Onesweep: A Faster Least Significant Digit Radix Sort for
// GPUs", 2022)
//
// What travels from pass to pass has one of two forms:
//
//   key, value    a key, and beside it nothing, a payload, or the row's number
//   packed word   | highest bits of the key | row number: index_bits |   8 bytes a row, not 12
//
// The passes may leave out low bits of the key: sort_runs.cuh then puts the rows in order that are
// equal in the sorted bits.
//
// Bytes per row: the keys once for the histogram; then per pass keys and values read once and
// written once.
#pragma once
#include "compact.cuh"
#include "sort_key.cuh"

namespace wf {

constexpr u32 SORT_DIGITS = 256;  // values of a digit

template <typename Key>
WF_DEVICE u32 sort_digit(Key key, u32 shift) {
    return u32(key >> shift) & (SORT_DIGITS - 1);
}

// ---- histogram: all digits in one read ----

constexpr u32 SORT_HISTOGRAM_THREADS = 1024;
constexpr u32 SORT_HISTOGRAM_ITEMS = 8;

struct SortHistogram {
    SortKey key;       // rows
    u64 rows;
    u64 shift;         // lowest bit of the first digit
    u64* counts;       // PASSES × 256, zero before
    u64* greatest;     // the greatest key; zero before
};

// With COPIES = 32 each lane counts in a copy of its own, which lies in a bank of its own.
// Otherwise lanes whose digits differ but lie in the same bank wait for each other.
template <typename Key, u32 PASSES, u32 COPIES>
__device__ void sort_histogram_body(const SortHistogram& p) {
    constexpr u32 CELLS = PASSES * SORT_DIGITS;
    WF_DYNAMIC_SHARED(memory);
    u32* const counts = reinterpret_cast<u32*>(memory);
    for (u32 at = threadIdx.x; at < CELLS * COPIES; at += SORT_HISTOGRAM_THREADS) counts[at] = 0;
    __syncthreads();  // the counts are zero

    u32* const mine = counts + threadIdx.x % COPIES;
    Key greatest = 0;
    constexpr u64 TILE = SORT_HISTOGRAM_THREADS * SORT_HISTOGRAM_ITEMS;
    for (u64 first = blockIdx.x * TILE; first < p.rows; first += gridDim.x * TILE) {
        Key keys[SORT_HISTOGRAM_ITEMS];
        u32 rows = SORT_HISTOGRAM_ITEMS;
        if (first + TILE <= p.rows) {
            sort_keys<true>(p.key, first + threadIdx.x, SORT_HISTOGRAM_THREADS, p.rows, keys);
        } else {
            sort_keys<false>(p.key, first + threadIdx.x, SORT_HISTOGRAM_THREADS, p.rows, keys);
            const u64 left = p.rows - minimum(first + threadIdx.x, p.rows);
            rows = u32((left + SORT_HISTOGRAM_THREADS - 1) / SORT_HISTOGRAM_THREADS);
        }
#pragma unroll
        for (u32 i = 0; i < SORT_HISTOGRAM_ITEMS; ++i) {
            if (i >= rows) continue;
            greatest = maximum(greatest, keys[i]);
#pragma unroll
            for (u32 pass = 0; pass < PASSES; ++pass) {
                const u32 cell = pass * SORT_DIGITS + sort_digit(keys[i], u32(p.shift) + pass * 8);
                atomicAdd(mine + cell * COPIES, 1u);
            }
        }
    }
    for (u32 step = 16; step != 0; step /= 2) greatest = maximum(greatest, __shfl_xor_sync(FULL_WARP, greatest, step));
    WF_SHARED(u64, block_greatest);
    if (threadIdx.x == 0) block_greatest = 0;
    __syncthreads();  // all keys of the block are counted, the greatest is zero
    if (lane() == 0) atomicMax(&block_greatest, u64(greatest));
    __syncthreads();  // the greatest of all warps is there
    if (threadIdx.x == 0) atomicMax(p.greatest, block_greatest);
    for (u32 at = threadIdx.x; at < CELLS; at += SORT_HISTOGRAM_THREADS) {
        u32 count = 0;
        // Neighbouring threads begin in different banks.
        for (u32 copy = 0; copy < COPIES; ++copy) count += counts[at * COPIES + (copy + at) % COPIES];
        if (count != 0) atomicAdd(p.counts + at, u64(count));
    }
}

// ---- offsets: one block for each pass ----

struct SortOffsets {
    const u64* counts;  // passes × 256
    u32* offsets;       // passes × 256
};

WF_DEVICE void sort_offsets_body(const SortOffsets& p) {
    const u64 at = u64(blockIdx.x) * SORT_DIGITS + threadIdx.x;
    u64 rows;
    p.offsets[at] = u32(block_scan<SORT_DIGITS, u64>(p.counts[at], rows));
}

// ---- pass ----

constexpr u32 SORT_LOOK = 4;   // words of earlier tiles that a thread reads at once
constexpr u32 SORT_VOTED = 4;  // one item in so many is ranked by votes

struct SortNothing {};  // the value type of a sort that moves keys only

template <typename Value>
struct SortHasValues {
    static constexpr bool YES = true;
};
template <>
struct SortHasValues<SortNothing> {
    static constexpr bool YES = false;
};

struct SortPass {
    SortKey key;          // the column; after the first pass `data` holds rows of Key, and the other
                          // fields lead back to the column's values
    const void* values;   // rows of Value; or null: row numbers (or those of `order`)
    const u32* order;     // first pass: position i takes the row order[i]; null: row i
    void* keys_out;       // rows of Key, or null: not wanted. Of a LAST pass the column's values, or of
                          // packed words row numbers, u32
    void* values_out;     // rows of Value
    u64 rows;
    u64 shift;            // lowest bit of the digit in the key as it travels
    u64 drop;             // first pass of packed words: so many low bits of the key do not travel
    u64 index_bits;       // of packed words, else 0
    const u32* offsets;   // 256: where the rows of each digit begin
    void* state;          // tiles × 256 words, zero before
    u64* ticket;          // zero before
};

// A word of the look-back: status in the two highest bits, then a count of rows. u32 does for fewer
// than 2^30 rows.
template <typename Word>
struct SortState {
    static constexpr u32 BITS = sizeof(Word) * 8 - 2;
    static constexpr Word TILE = Word(1) << BITS;    // rows of the digit in this tile
    static constexpr Word PREFIX = Word(2) << BITS;  // in this tile and all before
    static constexpr Word COUNT = TILE - 1;
};

// How a pass places the rows of one digit in a tile. The first pass of a sort of keys alone need
// not keep their order: equal keys cannot be told apart.
enum SortOrder { SORT_STABLE, SORT_LOOSE };

template <typename Key, typename Value, u32 THREADS, u32 ITEMS>
struct SortShared {
    static constexpr u32 WARPS = THREADS / 32;
    union {
        struct {
            // Rows of each digit in each warp, then where they begin in the tile.
            u32 counts[WARPS][SORT_DIGITS];
            u32 peers[WARPS][SORT_DIGITS];   // lanes that hold the digit at this moment
        } rank;
        Key keys[THREADS * ITEMS];
        Value values[THREADS * ITEMS];
    };
    u32 base[SORT_DIGITS];  // position in the output minus position in the reordered tile
};

// Where a digit's count lies. Keys in equal steps have digits that are multiples of a power of two:
// without the exclusive or, the counts of a warp's digits would lie in one bank of shared memory.
WF_DEVICE u32 sort_cell(u32 digit) { return digit ^ digit >> 5; }

// Where a row of the reordered tile lies, for the same reason: the place's bits above a line of
// banks are added to those within. With values beside the keys this would spill registers.
template <typename Value>
WF_DEVICE u32 sort_slot(u32 place) {
    return SortHasValues<Value>::YES ? place : place ^ (place >> 4 & 15);
}

// The slot of place threadIdx.x + i × THREADS.
template <typename Value, u32 THREADS>
WF_DEVICE u32 sort_slot_of_step(u32 i) {
    // A step that is a multiple of 256 changes no bit that the exclusive or reads: one register
    // does for all steps.
    return THREADS % 256 == 0 ? sort_slot<Value>(threadIdx.x) + i * THREADS : sort_slot<Value>(threadIdx.x + i * THREADS);
}

template <typename Value>
WF_DEVICE Value sort_value(const SortPass& p, u64 at) {
    if (p.values != nullptr) return static_cast<const Value*>(p.values)[at];
    return Value(p.order != nullptr ? p.order[at] : at);
}

template <>
WF_DEVICE SortNothing sort_value<SortNothing>(const SortPass&, u64) {
    return SortNothing{};
}

// The lanes that hold the same digit, by a vote on each of its bits.
WF_DEVICE u32 sort_peers_by_votes(u32 digit) {
    u32 peers = FULL_WARP;
#pragma unroll
    for (u32 bit = 0; bit < 8; ++bit) {
        const bool set = (digit >> bit & 1) != 0;
        const u32 votes = __ballot_sync(FULL_WARP, set);
        peers &= set ? votes : ~votes;
    }
    return peers;
}

template <typename Key, typename Value, typename Word, u32 THREADS, u32 ITEMS, bool FIRST, bool LAST, SortOrder ORDER>
__device__ void sort_pass_body(const SortPass& p) {
    constexpr u32 TILE = THREADS * ITEMS;
    constexpr u32 WARPS = THREADS / 32;
    static_assert(THREADS >= SORT_DIGITS && THREADS % 32 == 0, "one thread for each digit");
    using Shared = SortShared<Key, Value, THREADS, ITEMS>;
    using Flags = SortState<Word>;
    WF_DYNAMIC_SHARED(memory);
    Shared& shared = *reinterpret_cast<Shared*>(memory);

    const u64 tile = compact_ticket(p.ticket);
    const u64 first = tile * TILE;
    const u32 rows = p.rows - first < TILE ? u32(p.rows - first) : TILE;
    const u32 lane = threadIdx.x % 32;
    const u32 warp = threadIdx.x / 32;
    const u32 shift = u32(p.shift);

    // Load. Item i of a warp is a run of 32 rows, so items, lanes and warps in order are the rows
    // in order. Beyond the last row stand keys of all ones: their digit is the greatest, and they
    // come last in it.
    const u32 local = warp * 32 * ITEMS + lane;
    Key keys[ITEMS];
    if constexpr (FIRST) {
        if (p.order != nullptr) {
#pragma unroll
            for (u32 i = 0; i < ITEMS; ++i) {
                keys[i] = local + i * 32 < rows ? Key(sort_key(p.key, p.order[first + local + i * 32])) : ~Key(0);
            }
        } else {
            if (rows == TILE) {
                sort_keys<true>(p.key, first + local, 32, p.rows, keys);
            } else {
                sort_keys<false>(p.key, first + local, 32, p.rows, keys);
            }
        }
        if (p.index_bits != 0) {
#pragma unroll
            for (u32 i = 0; i < ITEMS; ++i) {
                const u64 row = first + local + i * 32;
                if (rows != TILE && row >= p.rows) continue;
                keys[i] = Key(keys[i] >> p.drop << p.index_bits | (p.order != nullptr ? u64(p.order[row]) : row));
            }
        }
    } else {
        const Key* data = static_cast<const Key*>(p.key.data) + first;
        if (rows == TILE) {
#pragma unroll
            for (u32 i = 0; i < ITEMS; ++i) keys[i] = data[local + i * 32];
        } else {
#pragma unroll
            for (u32 i = 0; i < ITEMS; ++i) keys[i] = local + i * 32 < rows ? data[local + i * 32] : ~Key(0);
        }
    }

    // Count digits by warp.
    for (u32 at = threadIdx.x; at < WARPS * SORT_DIGITS; at += THREADS) {
        shared.rank.counts[at / SORT_DIGITS][at % SORT_DIGITS] = 0;
        if (ORDER == SORT_STABLE) shared.rank.peers[at / SORT_DIGITS][at % SORT_DIGITS] = 0;
    }
    __syncthreads();  // the counts are zero
    u32 slots[ITEMS];
#pragma unroll
    for (u32 i = 0; i < ITEMS; ++i) {
        if (ORDER == SORT_LOOSE && rows != TILE && local + i * 32 >= rows) continue;
        const u32 rank = atomicAdd(&shared.rank.counts[warp][sort_cell(sort_digit(keys[i], shift))], 1u);
        if (ORDER == SORT_LOOSE) slots[i] = rank;
    }
    if (ORDER == SORT_LOOSE && rows != TILE) {
        __syncwarp(FULL_WARP);  // the warp's rows are counted, before what is beyond the last row
#pragma unroll
        for (u32 i = 0; i < ITEMS; ++i) {
            if (local + i * 32 < rows) continue;
            slots[i] = atomicAdd(&shared.rank.counts[warp][sort_cell(sort_digit(keys[i], shift))], 1u);
        }
    }
    __syncthreads();  // the warps' counts are complete

    // Publish the tile's counts early, so that later tiles wait less; then turn them into places in
    // the tile.
    Word* state = static_cast<Word*>(p.state);
    const u32 digit = threadIdx.x, cell = sort_cell(digit);
    u32 count = 0;
    if (digit < SORT_DIGITS) {
        for (u32 w = 0; w < WARPS; ++w) {
            const u32 here = shared.rank.counts[w][cell];
            shared.rank.counts[w][cell] = count;
            count += here;
        }
        u32 real = count;
        if (digit == sort_digit(~Key(0), shift)) real -= TILE - rows;
        const Word status = tile == 0 ? Flags::PREFIX : Flags::TILE;
        store_relaxed(state + tile * SORT_DIGITS + digit, Word(status | real));
    }
    u32 total;
    const u32 begin = block_scan<THREADS, u32>(count, total);
    if (digit < SORT_DIGITS) {
        for (u32 w = 0; w < WARPS; ++w) shared.rank.counts[w][cell] += begin;
    }
    __syncthreads();  // the places are complete

    // Rank: lanes of a warp that hold the same digit find each other through a mask in shared
    // memory, or by votes. Masks load shared memory and votes the arithmetic units, so both ways
    // are used.
#pragma unroll
    for (u32 i = 0; i < ITEMS; ++i) {
        const u32 mine = sort_digit(keys[i], shift), of_mine = sort_cell(mine);
        if constexpr (ORDER == SORT_LOOSE) {
            slots[i] = sort_slot<Value>(slots[i] + shared.rank.counts[warp][of_mine]);
            continue;
        }
        const bool votes = i % SORT_VOTED == 0;
        u32* peers_of = &shared.rank.peers[warp][of_mine];
        u32 peers;
        if (votes) {
            peers = sort_peers_by_votes(mine);
        } else {
            atomicOr(peers_of, 1u << lane);
            __syncwarp(FULL_WARP);  // every lane is in its digit's mask
            peers = *peers_of;
        }
        const u32 leader = 31 - __clz(peers);
        u32 place = 0;
        if (lane == leader) {
            place = shared.rank.counts[warp][of_mine];
            shared.rank.counts[warp][of_mine] = place + __popc(peers);
        }
        place = __shfl_sync(FULL_WARP, place, leader);  // and every lane has read its mask
        slots[i] = sort_slot<Value>(place + __popc(peers & ((1u << lane) - 1)));
        if (!votes && lane == leader) *peers_of = 0;
        __syncwarp(FULL_WARP);  // the masks are empty and the counts complete for the next item
    }
    __syncthreads();  // the counts give way to the keys

#pragma unroll
    for (u32 i = 0; i < ITEMS; ++i) shared.keys[slots[i]] = keys[i];
    // Look back: one thread for each digit.
    if (digit < SORT_DIGITS) {
        Word before = 0;
        if (tile != 0) {
            // Several loads are in flight: one at a time, the pass would wait for their latency.
            u64 at = tile - 1;
            bool done = false;
            while (!done) {
                Word words[SORT_LOOK];
#pragma unroll
                for (u32 l = 0; l < SORT_LOOK; ++l) {
                    words[l] = at >= l ? load_relaxed(state + (at - l) * SORT_DIGITS + digit) : Flags::PREFIX;
                }
                u32 seen = 0;
#pragma unroll
                for (u32 l = 0; l < SORT_LOOK; ++l) {
                    if (done || seen != l || words[l] < Flags::TILE) continue;
                    before += words[l] & Flags::COUNT;
                    done = words[l] >= Flags::PREFIX;
                    seen += 1;
                }
                at -= seen;
                if (seen == 0) spin();
            }
            u32 real = count;
            if (digit == sort_digit(~Key(0), shift)) real -= TILE - rows;
            store_relaxed(state + tile * SORT_DIGITS + digit, Word(Flags::PREFIX | (before + real)));
        }
        // May wrap below zero; the sum with a place in the tile does not.
        shared.base[digit] = p.offsets[digit] + u32(before) - begin;
    }
    __syncthreads();  // keys are reordered, the bases are there

    // Store: neighbours in the reordered tile are neighbours in the output wherever their digit is
    // the same.
    u32 to[ITEMS];
    Key* keys_out = static_cast<Key*>(p.keys_out);
#pragma unroll
    for (u32 i = 0; i < ITEMS; ++i) {
        const u32 at = threadIdx.x + i * THREADS;
        const Key key = shared.keys[sort_slot_of_step<Value, THREADS>(i)];
        to[i] = shared.base[sort_digit(key, shift)] + at;
        if (at < rows) {
            if constexpr (LAST) {
                if (p.index_bits != 0) {
                    static_cast<u32*>(p.keys_out)[to[i]] = u32(key & ((Key(1) << p.index_bits) - 1));
                } else if (p.keys_out != nullptr) {
                    const u64 raw = sort_key_raw(p.key, key);
                    if (sizeof(Key) == 4 || sort_key_is_half(p.key)) static_cast<u32*>(p.keys_out)[to[i]] = u32(raw);
                    else static_cast<u64*>(p.keys_out)[to[i]] = raw;
                }
            } else {
                keys_out[to[i]] = key;
            }
        }
    }

    if constexpr (SortHasValues<Value>::YES) {
        Value values[ITEMS];
#pragma unroll
        for (u32 i = 0; i < ITEMS; ++i) {
            const u32 at = local + i * 32;
            if (at < rows) values[i] = sort_value<Value>(p, first + at);
        }
        __syncthreads();  // the keys give way to the values
#pragma unroll
        for (u32 i = 0; i < ITEMS; ++i) {
            if (local + i * 32 < rows) shared.values[slots[i]] = values[i];
        }
        __syncthreads();  // the values are reordered
        Value* values_out = static_cast<Value*>(p.values_out);
#pragma unroll
        for (u32 i = 0; i < ITEMS; ++i) {
            const u32 at = threadIdx.x + i * THREADS;
            if (at < rows) values_out[to[i]] = shared.values[sort_slot_of_step<Value, THREADS>(i)];
        }
    }
}

// ---- the order of rows whose keys are all equal ----

struct SortIdentity {
    u32* order;  // rows
    u64 rows;
};

WF_DEVICE void sort_identity_body(const SortIdentity& p) {
    const u64 stride = u64(gridDim.x) * blockDim.x;
    for (u64 at = u64(blockIdx.x) * blockDim.x + threadIdx.x; at < p.rows; at += stride) p.order[at] = u32(at);
}

}  // namespace wf

#define WF_SORT_ENTRIES                                                             \
    WF_KERNEL(sort_offsets, wf::SortOffsets) { wf::sort_offsets_body(p); }          \
    WF_KERNEL(sort_identity, wf::SortIdentity) { wf::sort_identity_body(p); }

// Counts PASSES digits of keys of a type, in COPIES copies.
#define WF_SORT_HISTOGRAM(NAME, KEY, PASSES, COPIES)                                \
    WF_KERNEL_BOUNDS(wf::SORT_HISTOGRAM_THREADS, 1, NAME, wf::SortHistogram) {      \
        wf::sort_histogram_body<KEY, PASSES, COPIES>(p);                            \
    }

// One pass over keys and values of these types, with look-back words of a type.
#define WF_SORT_PASS(NAME, KEY, VALUE, WORD, THREADS, ITEMS, FIRST, LAST, ORDER)                  \
    WF_KERNEL_BOUNDS(THREADS, 2, NAME, wf::SortPass) {                                            \
        wf::sort_pass_body<KEY, VALUE, WORD, THREADS, ITEMS, FIRST, LAST, wf::ORDER>(p);          \
    }
