// sort.cuh: stable least-significant-digit radix sort, one pass over the rows for each 8-bit digit.
//
//   keys 0x21 0x12 0x11 0x22   by low digit → 0x21 0x11 0x12 0x22   by high digit → 0x11 0x12 0x21 0x22
//
//   1. sort_histogram   counts of every digit of every key, in one read of the keys
//   2. sort_offsets     counts → where each digit's rows begin
//   3. sort_pass        for each digit that is not the same everywhere: a tile ranks its rows by their digit, learns by
//                       decoupled look-back how many rows of each digit earlier tiles hold, reorders its rows in shared
//                       memory so that rows of one digit are neighbours, and stores
//   (onesweep: Adinets and Merrill, "Onesweep: A Faster Least Significant Digit Radix Sort for GPUs", 2022)
//
// Two forms. Where the key, or enough of its high bits, and the row's number fit one word together they travel as one
// (8 bytes a row and pass instead of 12):
//
//   packed   | key >> drop | row: index_bits |    made by the first pass
//
// Of so many rows that too little of a key is left beside their numbers, packed words leave out a digit, the one by which they lie
// sorted: a pass puts back the digit of the pass before, which a row's place tells, where it takes out its own.
//
//   implied  | digits but the lowest | rest of the key | row |    by the first pass
//            | …  digit 0 in the place of digit 1      | row |    by the second
//
// Row numbers by two digits leave out the first, too, where the second then fits 32 bits with the row: half the bytes.
//
// Otherwise a value (an index, or a payload) travels beside the key. The passes may leave out low bits of the key:
// sort_runs.cuh then orders the few rows that are equal in the others. Where those are not so few, and have values, the last pass
// puts in order what a warp of it meets.
//
// Bytes per row: the keys once for the histogram; then per pass keys and values read once and written once.
#pragma once
#include "compact.cuh"
#include "sort_digit.cuh"
#include "sort_key.cuh"
#include "sort_ties.cuh"

namespace wf {

// ---- histogram: all digits in one read ----

constexpr u32 SORT_HISTOGRAM_THREADS = 1024;
constexpr u32 SORT_HISTOGRAM_ITEMS = 8;

struct SortHistogram {
    SortKey key;       // rows
    u64 rows;
    u64 shift;         // lowest bit of the first digit
    u64* counts;       // PASSES × 256, zero
    u64* greatest;     // the greatest key; zero before
    u64* found;        // SORT_FOUND_…: the sums of keys of 8 bytes are wanted; or null
    SortSeeds seeds;   // of their hashes
};

// Each lane counts in a copy of its own, in a bank of its own: lanes of a warp hold different digits of the same bank mostly,
// and would wait for each other. 100M u32 keys, four digits: 32 copies 0.145 ms, one copy 0.194.
template <typename Key, u32 PASSES, u32 COPIES>
__device__ void sort_histogram_body(const SortHistogram& p) {
    constexpr u32 CELLS = PASSES * SORT_DIGITS;
    WF_DYNAMIC_SHARED(memory);
    u32* const counts = reinterpret_cast<u32*>(memory);
    for (u32 at = threadIdx.x; at < CELLS * COPIES; at += SORT_HISTOGRAM_THREADS) counts[at] = 0;
    __syncthreads();  // the counts are zero

    u32* const mine = counts + threadIdx.x % COPIES;
    Key greatest = 0;
    SortSums sums(p.seeds);
    const bool summed = sizeof(Key) == 8 && p.found != nullptr;
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
            if (summed) sums.add(keys[i], 1);
#pragma unroll
            for (u32 pass = 0; pass < PASSES; ++pass) {
                const u32 cell = pass * SORT_DIGITS + sort_digit(keys[i], u32(p.shift) + pass * 8);
                atomicAdd(mine + cell * COPIES, 1u);
            }
        }
    }
    for (u32 step = 16; step != 0; step /= 2) greatest = maximum(greatest, __shfl_xor_sync(FULL_WARP, greatest, step));
    WF_SHARED(u64, block_greatest);
    WF_SHARED_ARRAY(u64, block_sums, 2 * SORT_HISTOGRAM_THREADS / 32);
    if (threadIdx.x == 0) block_greatest = 0;
    __syncthreads();  // all keys of the block are counted, the greatest is zero
    if (lane() == 0) atomicMax(&block_greatest, u64(greatest));
    if (summed) sums.to_block(block_sums, true);
    __syncthreads();  // the greatest of all warps is there, and their sums
    if (threadIdx.x == 0) atomicMax(p.greatest, block_greatest);
    if (summed && threadIdx.x < 2) {
        atomicAdd(p.found + SORT_FOUND_SUMS + threadIdx.x, sort_sums_of<SORT_HISTOGRAM_THREADS / 32>(block_sums, threadIdx.x));
    }
    for (u32 at = threadIdx.x; at < CELLS; at += SORT_HISTOGRAM_THREADS) {
        const u32 count = sort_copies_sum(counts, at, COPIES);
        if (count != 0) atomicAdd(p.counts + at, u64(count));
    }
}

// ---- offsets: one block for each pass ----

struct SortOffsets {
    const u64* counts;  // passes × 256
    u32* offsets;       // passes × 256
    u64* found;         // SORT_FOUND_…: digits are counted that look as if keys repeated; or null
};

WF_DEVICE void sort_offsets_body(const SortOffsets& p) {
    const u64 at = u64(blockIdx.x) * SORT_DIGITS + threadIdx.x;
    const u64 count = p.counts[at];
    u64 rows, squares;
    p.offsets[at] = u32(block_scan<SORT_DIGITS, u64>(count, rows));
    if (p.found == nullptr) return;
    block_scan<SORT_DIGITS, u64>(count * count, squares);
    if (threadIdx.x == 0 && sort_repeats(squares, rows)) atomicAdd(p.found + SORT_FOUND_REPEATS, u64(1));
}

// ---- pass ----

constexpr u32 SORT_LOOK = 4;   // words of earlier tiles that a thread reads at once
constexpr u32 SORT_VOTED = 4;  // items of which one is ranked by votes
// Bits of a row's place in its tile, which stands below the key until the first pass of a sort with an implied digit stores it.
constexpr u32 SORT_PLACE_BITS = 13;

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
    SortKey key;          // the keys; after the first pass `data` holds rows of Key, and the rest tells how to go back
    const void* values;   // rows of Value, or null: the rows' own numbers (or `order`'s)
    union {
        const u32* order;    // first pass: read key order[i] at position i; null: i
        const u32* implied;  // later ones, of words that leave a digit out: 256, where the rows of each value of it begin
    };
    void* keys_out;       // rows of Key, or null: not wanted any more; of the last pass the column's values, or of packed
                          // words the rows' numbers, u32
    void* values_out;     // rows of Value
    u64 rows;
    u64 shift;            // lowest bit of the digit in the key as it travels; of a first pass whose digit will be implied, in
                          // the key with a place below
    u64 drop;             // first pass of a packed sort: low bits of the key that stay behind; last pass over keys of 8 bytes
                          // with values: not 0: rows that are equal but for so many low bits are put in order, if they meet
    u64 index_bits;       // of a packed sort, else 0
    const u32* offsets;   // 256: where each digit's rows begin
    void* state;          // tiles × 256 words, zero
    u64* ticket;          // zero
};

// A word of the look-back: status in the two highest bits, then a count of rows. u32 does for fewer than 2^30 rows.
template <typename Word>
struct SortState {
    static constexpr u32 BITS = sizeof(Word) * 8 - 2;
    static constexpr Word TILE = Word(1) << BITS;    // rows of the digit in this tile
    static constexpr Word PREFIX = Word(2) << BITS;  // in this tile and all before
    static constexpr Word COUNT = TILE - 1;
};

// How a pass places the rows of one digit in a tile. Any order will do for the first pass of a sort of nothing but keys:
// there is no order yet to keep, and equal keys are equal.
enum SortOrder { SORT_STABLE, SORT_LOOSE };

template <typename Key, typename Value, u32 THREADS, u32 ITEMS>
struct SortShared {
    static constexpr u32 WARPS = THREADS / 32;
    union {
        struct {
            u32 counts[WARPS][SORT_DIGITS];  // rows of each digit in each warp, then where they begin in the tile
            u32 peers[WARPS][SORT_DIGITS];   // lanes that hold the digit at this moment
        } rank;
        Key keys[THREADS * ITEMS];
        Value values[THREADS * ITEMS];
    };
    u32 base[SORT_DIGITS];  // position in the output minus position in the reordered tile
};

// Where a digit's count lies, and a place of the reordered tile. Keys that come by equal steps have digits that are multiples of
// a power of two, of equally many rows each: without this, a warp's counts, and then its rows, would lie in one bank of shared memory
// (100M u64 of 32 digits in turn 1.15 ms instead of 0.52). A place's bits above a line of banks are added to those within; the same
// again leads back.
WF_DEVICE u32 sort_cell(u32 digit) { return digit ^ digit >> 5; }

// Of keys alone: beside values it would spill registers, and cost 5%.
template <typename Value>
WF_DEVICE u32 sort_slot(u32 place) {
    return SortHasValues<Value>::YES ? place : place ^ (place >> 4 & 15);
}

// That of the place of thread `threadIdx.x` in step i.
template <typename Value, u32 THREADS>
WF_DEVICE u32 sort_slot_of_step(u32 i) {
    // Where steps change no bit that is added, the compiler need not keep each step's.
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

constexpr u32 SORT_SETTLED = 6;  // longest run that a warp puts in order

// How many places further a lane's row belongs, of rows that stand side by side, lane by lane, and are sorted from bit `shift`
// upwards: rows behind it, of its run, that are less, without those before it that are greater. `other` is the row behind. Zero for all
// where a run is too long; runs end where the warp does.
template <typename Key>
WF_DEVICE u32 sort_settle(Key other, Key key, u32 shift, u32 lane) {
    const u32 same = __ballot_sync(FULL_WARP, (key ^ other) >> shift == 0);
    u32 late = __ballot_sync(FULL_WARP, key > other) & same;
    u32 step = (late >> lane & 1) - (late << 1 >> lane & 1);
    // Bit l: lanes l and l + apart are of one run.
    u32 run = same & same >> 1;
    for (u32 apart = 2; run != 0; ++apart) {
        if (apart == SORT_SETTLED) return 0;
        other = __shfl_down_sync(FULL_WARP, key, apart);
        late = __ballot_sync(FULL_WARP, key > other) & run;
        step += (late >> lane & 1) - (late << apart >> lane & 1);
        run &= same >> apart;
    }
    return step;
}

// The digit that the words of a tile leave out.
struct SortImplied {
    u32 digit;  // of the first row
    u32 same;   // 1: of all rows
};

// Stored: what a first pass writes that leaves a digit out; u32 where that suffices, else Key.
template <typename Key, typename Value, typename Stored, typename Word, u32 THREADS, u32 ITEMS, bool FIRST, bool LAST, SortOrder ORDER,
          bool IMPLIED>
__device__ void sort_pass_body(const SortPass& p) {
    constexpr u32 TILE = THREADS * ITEMS;
    constexpr u32 WARPS = THREADS / 32;
    static_assert(!IMPLIED || (sizeof(Key) == 8 && !LAST && TILE <= 1u << SORT_PLACE_BITS), "a place fits its bits");
    static_assert(THREADS >= SORT_DIGITS && THREADS % 32 == 0, "one thread for each digit");
    constexpr bool SETTLES = LAST && sizeof(Key) == 8 && SortHasValues<Value>::YES;
    using Shared = SortShared<Key, Value, THREADS, ITEMS>;
    using Flags = SortState<Word>;
    WF_DYNAMIC_SHARED(memory);
    Shared& shared = *reinterpret_cast<Shared*>(memory);
    WF_SHARED(SortImplied, implied);

    const u64 tile = compact_ticket(p.ticket);
    const u64 first = tile * TILE;
    const u32 rows = p.rows - first < TILE ? u32(p.rows - first) : TILE;
    const u32 lane = threadIdx.x % 32;
    const u32 warp = threadIdx.x / 32;
    const u32 shift = u32(p.shift);

    // Load. Item i of a warp is a run of 32 rows, so items, lanes and warps in order are the rows in order. Beyond the
    // last row stand keys of all ones: their digit is the greatest, and they come last in it.
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
                if constexpr (IMPLIED) keys[i] = Key(keys[i] >> p.drop << SORT_PLACE_BITS | (local + i * 32));
                else keys[i] = Key(keys[i] >> p.drop << p.index_bits | (p.order != nullptr ? u64(p.order[row]) : row));
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
        __syncwarp(FULL_WARP);  // the warp's rows are counted: what stands beyond the last row comes behind them
#pragma unroll
        for (u32 i = 0; i < ITEMS; ++i) {
            if (local + i * 32 < rows) continue;
            slots[i] = atomicAdd(&shared.rank.counts[warp][sort_cell(sort_digit(keys[i], shift))], 1u);
        }
    }
    __syncthreads();  // the warps' counts are complete

    // Publish the tile's counts early, so that later tiles wait less; then turn them into places in the tile.
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

    // Rank: lanes of a warp that hold the same digit find each other through a mask in shared memory, or by votes. Masks
    // keep shared memory busy and votes the arithmetic units, so one item in SORT_VOTED takes the other way.
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
            // Several words in flight: one at a time, a pass waits on latency and takes a tenth longer.
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
    // Meanwhile others find the digit that the tile's words leave out.
    if constexpr (IMPLIED && !FIRST) {
        static_assert(THREADS > SORT_DIGITS, "threads beside those that look back");
        for (u32 at = threadIdx.x - SORT_DIGITS; at < SORT_DIGITS; at += THREADS - SORT_DIGITS) {
            const u64 begin = p.implied[at];
            const u64 end = at + 1 < SORT_DIGITS ? u64(p.implied[at + 1]) : p.rows;
            if (begin <= first && first < end) implied = SortImplied{at, end >= first + rows ? 1u : 0u};
        }
    }
    __syncthreads();  // keys are reordered, bases and the implied digit are there

    // Store: neighbours in the reordered tile are neighbours in the output wherever their digit is the same.
    u32 to[ITEMS];
    Key* keys_out = static_cast<Key*>(p.keys_out);
    if constexpr (IMPLIED && !FIRST) {
        if (implied.same == 0) {
            // One of few tiles whose words leave out different digits: from where they stood.
            for (u32 i = 0; i < ITEMS; ++i) {
                if (local + i * 32 >= rows) continue;
                const Key key = shared.keys[slots[i]];
                const u32 mine = sort_digit(key, shift), before = sort_digit_at(p.implied, u32(first) + local + i * 32);
                keys_out[shared.base[mine] + sort_slot<Value>(slots[i])] = key ^ Key(mine ^ before) << shift;
            }
            return;
        }
    }
#pragma unroll
    for (u32 i = 0; i < ITEMS; ++i) {
        const u32 at = threadIdx.x + i * THREADS;
        const Key key = shared.keys[sort_slot_of_step<Value, THREADS>(i)];
        to[i] = shared.base[sort_digit(key, shift)] + at;
        if constexpr (SETTLES) {
            if (p.drop != 0) to[i] += sort_settle(lane < 31 ? shared.keys[sort_slot<Value>(at + 1)] : ~key, key, u32(p.drop), lane);
        }
        if (at < rows) {
            if constexpr (LAST) {
                if (p.index_bits != 0) {
                    static_cast<u32*>(p.keys_out)[to[i]] = u32(key & ((Key(1) << p.index_bits) - 1));
                } else if (p.keys_out != nullptr) {
                    const u64 raw = sort_key_raw(p.key, key);
                    if (sizeof(Key) == 4 || sort_key_is_half(p.key)) static_cast<u32*>(p.keys_out)[to[i]] = u32(raw);
                    else static_cast<u64*>(p.keys_out)[to[i]] = raw;
                }
            } else if constexpr (IMPLIED && FIRST) {
                const u32 low = shift - SORT_PLACE_BITS;
                const Key below = key >> SORT_PLACE_BITS & ((Key(1) << low) - 1);
                const u64 row = first + (u32(key) & ((1u << SORT_PLACE_BITS) - 1));
                static_cast<Stored*>(p.keys_out)[to[i]] = Stored((key >> shift >> 8 << low | below) << p.index_bits | row);
            } else if constexpr (IMPLIED) {
                keys_out[to[i]] = key ^ Key(sort_digit(key, shift) ^ implied.digit) << shift;
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

// ---- what is left when no digit differs ----

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

// The digits of PASSES passes over keys of a type, counted in so many COPIES (known to the host).
#define WF_SORT_HISTOGRAM(NAME, KEY, PASSES, COPIES)                                \
    WF_KERNEL_BOUNDS(wf::SORT_HISTOGRAM_THREADS, 1, NAME, wf::SortHistogram) {      \
        wf::sort_histogram_body<KEY, PASSES, COPIES>(p);                            \
    }

// One pass for a key, a value, what the first pass stores, and a look-back word; THREADS and ITEMS are known to the host.
#define WF_SORT_PASS(NAME, KEY, VALUE, STORED, WORD, THREADS, ITEMS, FIRST, LAST, ORDER, IMPLIED) \
    WF_KERNEL_BOUNDS(THREADS, 2, NAME, wf::SortPass) {                                        \
        wf::sort_pass_body<KEY, VALUE, STORED, WORD, THREADS, ITEMS, FIRST, LAST, wf::ORDER, IMPLIED>(p); \
    }
