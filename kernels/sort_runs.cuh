// sort_runs.cuh: finishes a sort whose passes left out low bits of the key. Rows that are equal in
// the sorted bits stand together, in a run; this kernel puts each run in order.
//
//   sorted by tens   11 17 13 | 24 | 38 31      the first and the last run are out of order
//   output           11 13 17 | 24 | 31 38
//
//   1. load    a tile of rows, and a margin of rows behind it, into shared memory
//   2. bits    a thread compares the neighbours of a chunk of eight rows: two bits for each pair
//   3. ties    packed words that agree in all bits they hold are compared by their whole keys
//   4. list    a thread looks at each run that begins in its chunk, and lists it if out of order
//   5. order   a thread puts a run of up to SORT_RUNS_SHORT rows in order, a warp one of up to
//              SORT_RUNS_MARGIN rows
//
//   rows   11 17 13 24 38 31 …
//   same    1  1  0  0  1  …     the pair is of one run
//   late    0  1  0  0  1  …     and its first row belongs behind its second
//
// Longer runs that are out of order are counted and left: the caller then sorts more bits.
//
// The tile that holds a run's first row owns the run. A run of up to SORT_RUNS_MARGIN rows ends
// within its owner's margin, and only its owner writes it.
//
// Keys are put in order in place, while other tiles read them: a tile's first and last rows lie in
// a neighbour's view. This is sound, because a write replaces a key by another key of the same run.
// So whatever value a tile reads of a row that it does not own, its sorted bits are right, and
// nothing else of it is used. (The bits below decide `late`. Of runs that a tile does not own it
// uses `late` only where the run is too long, and nobody writes such a run.) These loads and stores
// are relaxed atomics, which may race.
//
// Bytes per row: a key or word read once; keys of runs out of order, or all row numbers, written
// once.
#pragma once
#include "sort_key.cuh"

namespace wf {

constexpr u32 SORT_RUNS_MARGIN = 256;  // rows: the longest run that is put in order
constexpr u32 SORT_RUNS_CHUNK = 8;     // rows of a thread
constexpr u32 SORT_RUNS_SHORT = 5;     // rows: the longest run that one thread puts in order
constexpr u32 SORT_RUNS_COMPARED = 32; // rows: the longest run put in order by further words. Each
                                       // comparison reads them, and each row is compared with all

struct SortRuns {
    const u64* packed;       // rows of key and row number, sorted from `shift` upwards; or null: `key`
                             // is what is sorted
    SortKey key;             // rows: the sorted keys; of packed words the column with whole keys
    u64 rows;
    u64 shift;               // lowest sorted bit of a packed word, or of a key
    u64 index_bits;          // of packed words, else 0
    u64 whole;               // 1: packed words hold whole keys
    const u64* const* more;  // further words of a packed sort: `more_words` pointers to rows of u64
    u64 more_words;          // not 0 only where `whole` is 0
    void* out;               // rows: of packed words the row numbers, u32; else the keys' own memory
    void* values;            // rows of Value beside the keys, moved with them; or null
    u64* too_long;           // zero before: how many runs were too long and out of order, each counted
                             // by each tile that sees it out of order
};

struct SortNoValue {};

// Rows of one run, as the bits say.
struct SortRunsRun {
    u32 last;  // place of its last row
    u32 late;  // the place behind its last late pair's first row; 0: it is in order
};

// THREADS is blockDim.x. Value: what stands beside the keys; u32 of packed words, whose row numbers
// are written.
template <typename Value, bool PACKED, u32 THREADS>
struct SortRunsTile {
    static constexpr u32 CHUNK = SORT_RUNS_CHUNK;
    static constexpr u32 TILE = THREADS * CHUNK;
    static constexpr u32 HELD = TILE + SORT_RUNS_MARGIN;
    static constexpr u32 CHUNKS = HELD / CHUNK;
    static constexpr bool VALUES = !is_same<Value, SortNoValue>::value;
    static_assert(THREADS >= SORT_RUNS_MARGIN && CHUNK == 8 && CHUNKS % 4 == 0, "a bit a place, a byte a chunk");

    const SortRuns& p;
    // HELD + CHUNKS: a hole behind each chunk, so that threads that read chunks meet different
    // banks.
    u64* words;
    const u32* same_words;  // a bit for each place
    const u32* late_words;
    u64 first;              // place h is row first + h

    WF_DEVICE u64& word(u32 h) const { return words[h + h / CHUNK]; }
    WF_DEVICE u32 number(u64 word) const { return u32(word & ((u64(1) << u32(p.index_bits)) - 1)); }

    // Reads ITEMS keys or words, THREADS apart; of rows from p.rows on nothing is read, unless
    // WHOLE says that there are none. Keys may be written by other tiles meanwhile.
    template <bool WHOLE, u32 ITEMS>
    WF_DEVICE void load(u64 at, u64 (&keys)[ITEMS]) const {
        const auto has = [&](u32 i) { return WHOLE || at + i * THREADS < p.rows; };
        if constexpr (PACKED) {
#pragma unroll
            for (u32 i = 0; i < ITEMS; ++i) keys[i] = has(i) ? p.packed[at + i * THREADS] : 0;
            return;
        }
        if (sort_key_is_half(p.key)) {
            const u32* data = static_cast<const u32*>(p.key.data) + at;
#pragma unroll
            for (u32 i = 0; i < ITEMS; ++i) keys[i] = has(i) ? load_relaxed(data + i * THREADS) : 0;
        } else {
            const u64* data = static_cast<const u64*>(p.key.data) + at;
#pragma unroll
            for (u32 i = 0; i < ITEMS; ++i) keys[i] = has(i) ? load_relaxed(data + i * THREADS) : 0;
        }
        sort_keys_of(p.key, keys);
    }

    // Whether the row of word y belongs before that of x. Equal keys are not: where places decide,
    // the caller compares those. Packed words are never equal, and the order of their row numbers
    // is that of their places.
    WF_DEVICE bool later(u64 x, u64 y) const {
        if (PACKED && p.whole == 0 && (x ^ y) >> u32(p.index_bits) == 0) {
            u64 keys[2] = {sort_key_bits(p.key, number(x)), sort_key_bits(p.key, number(y))};
            sort_keys_of(p.key, keys);
            if (keys[0] != keys[1]) return keys[0] > keys[1];
            for (u64 w = 0; w < p.more_words; ++w) {
                const u64 a = p.more[w][number(x)], b = p.more[w][number(y)];
                if (a != b) return a > b;
            }
        }
        return x > y;
    }

    // The run of the row at a place, from there on.
    WF_DEVICE SortRunsRun run_from(u32 at) const {
        u32 late = 0;
        while (at < HELD) {
            const u32 bits = 32 - at % 32;
            const u32 pairs = u32(trailing_zeros(~(same_words[at / 32] >> at % 32)));
            const u32 wrong = late_words[at / 32] >> at % 32 & u32((u64(1) << pairs) - 1);
            if (wrong != 0) late = at + 32 - u32(leading_zeros(wrong));
            at += pairs;
            if (pairs < bits) break;
        }
        return SortRunsRun{at, late};
    }

    // Writes the row at place `h`: a key and the value beside it, or a row number.
    WF_DEVICE void write(u32 h, u64 key, const Value& value) const {
        if constexpr (PACKED) {
            static_cast<u32*>(p.out)[first + h] = value;
        } else {
            const u64 raw = sort_key_raw(p.key, key);
            if (sort_key_is_half(p.key)) store_relaxed(static_cast<u32*>(p.out) + first + h, u32(raw));
            else store_relaxed(static_cast<u64*>(p.out) + first + h, raw);
            if constexpr (VALUES) static_cast<Value*>(p.values)[first + h] = value;
        }
    }

    // Puts a run in order that is out of order: `rows` rows from place `begin` on, each behind as
    // many as belong before it. By a thread (LANES 1) or a warp (32), whose lanes have every
    // LANES-th row.
    template <u32 LANES>
    WF_DEVICE void put_in_order(u32 begin, u32 rows) const {
        constexpr u32 EACH = LANES == 1 ? SORT_RUNS_SHORT : SORT_RUNS_MARGIN / LANES;
        const u32 mine = LANES == 1 ? 0 : lane();
        Value values[EACH];
#pragma unroll
        for (u32 i = 0; i < EACH; ++i) {
            const u32 at = mine + i * LANES;
            if (at >= rows) continue;
            if constexpr (PACKED) values[i] = number(word(begin + at));
            else if constexpr (VALUES) values[i] = static_cast<const Value*>(p.values)[first + begin + at];
        }
        bool whole = !PACKED || p.whole != 0;
        if (LANES != 1) {
            if constexpr (PACKED) {
                // Whole keys take the words' places: they are read once, not for each comparison.
                if (!whole && p.more_words == 0) {
                    whole = true;
#pragma unroll
                    for (u32 i = 0; i < EACH; ++i) {
                        const u32 at = mine + i * LANES;
                        if (at < rows) word(begin + at) = sort_key(p.key, values[i]);
                    }
                }
            }
            __syncwarp(FULL_WARP);  // the values are read before any is written, whole keys are there
        }
#pragma unroll
        for (u32 i = 0; i < EACH; ++i) {
            const u32 at = mine + i * LANES;
            if (at >= rows) continue;
            const u64 key = word(begin + at);
            u32 before = 0;
            if (LANES == 1 && rows == 2) {
                before = 1 - at;
            } else {
                for (u32 other = 0; other < rows; ++other) {
                    const u64 x = word(begin + other);
                    if (whole) before += x < key || (x == key && other < at) ? 1 : 0;
                    else if (other != at) before += (other < at ? !later(x, key) : later(key, x)) ? 1 : 0;
                }
            }
            write(begin + before, key, values[i]);
        }
    }
};

template <typename Value, bool PACKED, u32 THREADS>
WF_DEVICE void sort_runs_body(const SortRuns& p) {
    using Tile = SortRunsTile<Value, PACKED, THREADS>;
    constexpr u32 CHUNK = Tile::CHUNK, CHUNKS = Tile::CHUNKS, TILE = Tile::TILE, HELD = Tile::HELD;
    // Places of pairs that tie. Then runs out of order, each as its first place and above that its
    // rows: short ones from the front, longer ones from the back.
    constexpr u32 LISTED = PACKED ? HELD : TILE / 2;
    WF_SHARED_ARRAY(u64, words, HELD + CHUNKS);
    WF_SHARED_ARRAY(u32, same_words, CHUNKS / 4);
    WF_SHARED_ARRAY(u32, late_words, CHUNKS / 4);
    WF_SHARED_ARRAY(u32, listed, LISTED);
    WF_SHARED(u32, ties);
    WF_SHARED(u32, shorts);
    WF_SHARED(u32, longs);
    WF_SHARED(u32, carried);  // 1: the tile's first row is of the run of the row before it
    u8* const same = reinterpret_cast<u8*>(same_words);
    u8* const late = reinterpret_cast<u8*>(late_words);

    const u64 first = u64(blockIdx.x) * TILE;
    const u32 high = p.rows - first < HELD ? u32(p.rows - first) : HELD;
    const u64 sorted = ~u64(0) << u32(p.shift);
    const Tile tile{p, words, same_words, late_words, first};
    const u32 behind = TILE + threadIdx.x;  // a place of the margin

    // Load.
    u64 read[CHUNK], margin[1] = {}, before[1] = {};
    if (high == HELD) tile.template load<true>(first + threadIdx.x, read);
    else tile.template load<false>(first + threadIdx.x, read);
    if (threadIdx.x < SORT_RUNS_MARGIN) tile.template load<false>(first + behind, margin);
    if (threadIdx.x == 0 && first > 0) tile.template load<true>(first - 1, before);
#pragma unroll
    for (u32 i = 0; i < CHUNK; ++i) tile.word(threadIdx.x + i * THREADS) = read[i];
    if (threadIdx.x < SORT_RUNS_MARGIN) tile.word(behind) = margin[0];
    if (threadIdx.x == 0) {
        ties = shorts = longs = 0;
        carried = first > 0 && ((before[0] ^ read[0]) & sorted) == 0 ? 1 : 0;
    }
    __syncthreads();  // the words are held

    // Bits.
    for (u32 c = threadIdx.x; c < CHUNKS; c += THREADS) {
        const u32 h = c * CHUNK;
        u32 of_one = 0, greater = 0, tied = 0;
        u64 x = tile.word(h);
#pragma unroll
        for (u32 i = 0; i < CHUNK; ++i) {
            // Behind the last chunk there is nothing to compare with.
            const u64 y = i + 1 < CHUNK ? tile.word(h + i + 1) : c + 1 < CHUNKS ? tile.word(h + CHUNK) : ~x;
            of_one |= u32(((x ^ y) & sorted) == 0) << i;
            greater |= u32(x > y) << i;
            if constexpr (PACKED) tied |= u32((x ^ y) >> u32(p.index_bits) == 0) << i;
            x = y;
        }
        if (h + CHUNK >= high) of_one &= h + 1 < high ? (1u << (high - 1 - h)) - 1 : 0u;
        greater &= of_one;
        tied &= of_one;
        if (PACKED && p.whole == 0 && tied != 0) {
            greater &= ~tied;
            u32 at = atomicAdd(&ties, u32(__popc(tied)));
            for (; tied != 0; tied &= tied - 1) listed[at++] = h + u32(trailing_zeros(tied));
        }
        same[c] = u8(of_one);
        late[c] = u8(greater);
    }
    __syncthreads();  // the bits are set, the ties listed

    // Ties. Their keys lie anywhere in the column: all threads share them out, and wait for their
    // loads together.
    if (PACKED && ties != 0) {
        for (u32 at = threadIdx.x; at < ties; at += THREADS) {
            const u32 h = listed[at];
            if (tile.later(tile.word(h), tile.word(h + 1))) atomicOr(late_words + h / 32, 1u << (h % 32));
        }
        __syncthreads();  // the ties' bits are set, the list is free
    }

    // List.
    const u32 c = threadIdx.x;
    const u32 goes_on = c == 0 ? carried : u32(same[c - 1]) >> (CHUNK - 1);
    const u32 mine = same[c], wrong = late[c];
    u32 begins = mine & ~(mine << 1 | goes_on);  // pairs that begin a run
    u32 too_long = 0;
    for (; begins != 0; begins &= begins - 1) {
        const u32 i = u32(trailing_zeros(begins)), pairs = u32(trailing_zeros(~(mine >> i)));
        // Most runs end in this chunk, and many are in order.
        if (i + pairs < CHUNK && (wrong >> i & ((1u << pairs) - 1)) == 0) continue;
        const u32 begin = c * CHUNK + i;
        const SortRunsRun run = tile.run_from(begin);
        const u32 rows = run.last - begin + 1;
        if (run.late == 0) continue;
        // A run that goes on behind the margin has more rows there than any that is put in order.
        if (rows > (PACKED && p.more_words != 0 ? SORT_RUNS_COMPARED : SORT_RUNS_MARGIN)) too_long += 1;
        else if (rows <= SORT_RUNS_SHORT) listed[atomicAdd(&shorts, 1u)] = begin | rows << 16;
        else listed[LISTED - 1 - atomicAdd(&longs, 1u)] = begin | rows << 16;
    }
    // Of a run that began in an earlier tile, the tile before this one sees the pairs up to place
    // MARGIN − 2. The run of a late pair behind those is too long: it has more than MARGIN rows in
    // this tile.
    if (c == 0 && carried != 0 && tile.run_from(0).late >= SORT_RUNS_MARGIN) too_long += 1;
    if (too_long != 0) atomicAdd(p.too_long, u64(too_long));
    if constexpr (PACKED) {
        // All numbers as they stand; those of runs out of order are written again. Of a run that
        // goes on behind this tile, the numbers in the margin are this tile's to write, not the
        // next one's.
        const u64 head = tile.word(0), tail = tile.word(TILE - 1);
#pragma unroll 4
        for (u32 i = 0; i < CHUNK; ++i) {
            const u32 h = threadIdx.x + i * THREADS;
            const u64 word = tile.word(h);
            const bool of_other = h < SORT_RUNS_MARGIN && carried != 0 && ((word ^ head) & sorted) == 0;
            if (h < high && !of_other) tile.write(h, word, tile.number(word));
        }
        const u64 word = threadIdx.x < SORT_RUNS_MARGIN ? tile.word(behind) : 0;
        const bool of_this = threadIdx.x < SORT_RUNS_MARGIN && ((word ^ tail) & sorted) == 0;
        if (behind < high && of_this) tile.write(behind, word, tile.number(word));
    }
    __syncthreads();  // the runs are listed; words may change, numbers be written again

    // Order.
    for (u32 at = threadIdx.x; at < shorts; at += THREADS) tile.template put_in_order<1>(listed[at] & 0xFFFFu, listed[at] >> 16);
    __syncwarp(FULL_WARP);  // some lanes had more runs than others
    for (u32 at = warp(); at < longs; at += THREADS / 32) {
        const u32 run = listed[LISTED - 1 - at];
        tile.template put_in_order<32>(run & 0xFFFFu, run >> 16);
    }
}

}  // namespace wf

#define WF_SORT_RUNS(NAME, VALUE, PACKED, THREADS, BLOCKS) \
    WF_KERNEL_BOUNDS(THREADS, BLOCKS, NAME, wf::SortRuns) { wf::sort_runs_body<VALUE, PACKED, THREADS>(p); }
