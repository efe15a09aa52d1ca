// sort_runs.cuh: finishes a sort whose passes left out low bits of the key: rows that are equal in the bits the passes
// looked at stand together, in a run, and are put in order within it.
//
//   sorted by tens   11 17 13 | 24 | 38 31         runs of 3, 1, 2; out of order are the first and the last
//   output           11 13 17 | 24 | 31 38
//
//   One pass: a tile, with a margin of rows behind it, lies in shared memory. A thread compares the neighbours of a chunk of
//   eight rows, and notes in a bit for each pair whether they are of one run, and whether they are out of order. Bits tell
//   where runs begin and end; those out of order are listed, pairs apart from longer runs, so that a warp does one or the
//   other: pairs are exchanged, longer runs sorted by insertion, those of more than 5 rows (or any, where ties are trusted and
//   whole keys read) by a warp each, whose lanes count the rows before theirs, and of more than 32 one after the other by the
//   whole block. The tile that holds a run's first row owns it, up to the end of the margin. Of a longer run that is out of
//   order rows are listed: sort_long_runs.cuh sorts it, if there are few. (The caller estimates the runs' length from a sample
//   first: sort_sample.cuh.)
//
//   rows            11 17 13 24 38 31 …
//   same             1  1  0  0  1  …      of one run with the next
//   late             0  1  0  0  1  …      and greater
//
// Keys alone are mended where they lie: each is read once, and few are written. Packed words are read once and leave as
// row numbers. Tiles next to one another may read what this one writes, though only its high bits matter to them, which
// are the same wherever a run's rows are put. Packed words may leave out their highest digit, which a row's place tells (sort.cuh).
#pragma once
#include "compact.cuh"
#include "sort_digit.cuh"
#include "sort_key.cuh"
#include "sort_ties.cuh"

namespace wf {

constexpr u32 SORT_RUNS_MARGIN = 256;  // rows; longest run that is mended
constexpr u32 SORT_RUNS_CHUNK = 8;     // rows of a thread
// Longest runs that one thread puts in order, and one warp: a run of 122 rows, of two values in turn, took a thread 0.17 ms.
constexpr u32 SORT_RUNS_INSERTED = 5;
constexpr u32 SORT_RUNS_RANKED = 32;
// So many runs for the whole block that it is worth a look whether they matter.
constexpr u32 SORT_RUNS_MANY = 8;

struct SortRuns {
    const u64* packed;       // rows of key and row number, sorted from `shift` upwards; or null: `key` is what is sorted
    SortKey key;             // the keys to mend; of packed words, where whole keys are read
    u64 rows;
    u64 shift;               // lowest bit that is sorted, in the words as they are
    u64 index_bits;          // of packed words, else 0
    u64 whole;               // SORT_WHOLE_…: which packed words hold the whole key
    u64 longest;             // run that is mended, at most SORT_RUNS_MARGIN
    const u64* const* more;  // further words of a packed key: `more_words` pointers to rows of u64
    u64 more_words;
    void* out;               // rows: of packed words their row numbers, u32; else the memory of `key`, mended in place
    void* values;            // rows of Value beside the keys, mended in place; or null
    u64* found;              // SORT_FOUND_…: how many rows were listed, at least one of each run out of order that is too long
    u32* listed;             // the first `room` of them
    u64 room;
    const u32* implied;      // 256: where the rows of each highest digit begin, if packed words leave it out
    u64 trusted;             // rows that tie count as equal where they stand in order, if so many digits look as if keys repeated (0: always,
                             // SORT_TRUSTED_NEVER: not at all); of packed words that hold no whole keys, without further words
    SortSeeds seeds;         // of the sums' hashes
};

constexpr u64 SORT_TRUSTED_NEVER = ~u64(0);  // more digits than there are

constexpr u64 SORT_WHOLE_NONE = 0;
constexpr u64 SORT_WHOLE_ALL = 1;

struct SortNoValue {};

// What the block shares that puts a run in order.
template <u32 WARPS>
struct SortRunsBlock {
    u64 keys[SORT_RUNS_MARGIN];
    u64 other;           // a key that is not the first row's
    u32 greater[WARPS];  // rows of each warp with the greater of those two
};

template <typename Value, bool PACKED>
struct SortRunsTile {
    const SortRuns& p;
    u64* words;  // held, with a hole behind each chunk, so that threads that read chunks meet different banks
    u64 first;   // held place h is row first + h

    static WF_DEVICE u32 slot(u32 h) { return h + h / SORT_RUNS_CHUNK; }
    WF_DEVICE u64& word(u32 h) const { return words[slot(h)]; }
    // Equal in all bits that travelled, though not in the rest perhaps.
    WF_DEVICE bool tied(u64 x, u64 y) const { return PACKED && p.whole != SORT_WHOLE_ALL && (x ^ y) >> u32(p.index_bits) == 0; }
    WF_DEVICE u32 number(u64 word) const { return u32(word & ((u64(1) << u32(p.index_bits)) - 1)); }

    // Whether the row of word y belongs before x's. Equal keys keep the order of rows, which is the order of packed words,
    // and of places otherwise.
    WF_DEVICE bool later(u64 x, u64 y) const {
        if (tied(x, y)) {
            const u32 rows[2] = {number(x), number(y)};
            u64 keys[2];
            sort_keys_of(p.key, rows, keys);
            if (keys[0] != keys[1]) return keys[0] > keys[1];
            for (u64 w = 0; w < p.more_words; ++w) {
                const u64 a = p.more[w][number(x)], b = p.more[w][number(y)];
                if (a != b) return a > b;
            }
        }
        return x > y;
    }

    WF_DEVICE void put(u32 h, u64 key) const {
        word(h) = key;
        if constexpr (!PACKED) {
            const u64 raw = sort_key_raw(p.key, key);
            if (sort_key_is_half(p.key)) static_cast<u32*>(p.out)[first + h] = u32(raw);
            else static_cast<u64*>(p.out)[first + h] = raw;
        }
    }

    // Exchanges a place and the next, with the values beside them.
    WF_DEVICE void swap(u32 h) const {
        if constexpr (!is_same<Value, SortNoValue>::value) {
            Value* values = static_cast<Value*>(p.values) + first;
            const Value value = values[h];
            values[h] = values[h + 1];
            values[h + 1] = value;
        }
        const u64 x = word(h);
        put(h, word(h + 1));
        put(h + 1, x);
    }

    // Sorts held places [begin, end) by insertion, with the values beside them.
    WF_DEVICE void insert(u32 begin, u32 end) const {
        for (u32 at = begin + 1; at < end; ++at) {
            const u64 key = word(at);
            u32 to = at;
            while (to > begin && later(word(to - 1), key)) to -= 1;
            if (to == at) continue;
            if constexpr (!is_same<Value, SortNoValue>::value) {
                Value* values = static_cast<Value*>(p.values) + first;
                const Value value = values[at];
                for (u32 h = at; h > to; --h) values[h] = values[h - 1];
                values[to] = value;
            }
            for (u32 h = at; h > to; --h) put(h, word(h - 1));
            put(to, key);
        }
    }

    // Sorts up to 32 rows from held place `begin` on, which no thread has changed, with the values beside them, by a warp: each row goes behind as
    // many as belong before it.
    WF_DEVICE void rank_by_warp(u32 begin, u32 rows) const {
        u64 word = 0, key = 0;
        Value value;
        if (lane() < rows) {
            key = word = this->word(begin + lane());
            if (PACKED && p.whole != SORT_WHOLE_ALL) key = sort_key(p.key, number(word));
            if constexpr (!is_same<Value, SortNoValue>::value) value = static_cast<Value*>(p.values)[first + begin + lane()];
        }
        __syncwarp(FULL_WARP);  // the rows are read
        u32 before = 0;
        for (u32 at = 0; at < rows; ++at) {
            const u64 other = __shfl_sync(FULL_WARP, key, at);
            before += other < key || (other == key && at < lane()) ? 1 : 0;
        }
        if (lane() < rows) {
            put(begin + before, word);
            if constexpr (!is_same<Value, SortNoValue>::value) static_cast<Value*>(p.values)[first + begin + before] = value;
        }
    }

    // Sorts `rows` rows from held place `begin` on, which no thread has changed, with the values beside them, by the whole block: each
    // row goes behind as many as belong before it.
    template <u32 WARPS>
    WF_DEVICE void rank(u32 begin, u32 rows, SortRunsBlock<WARPS>& block) const {
        const u64* const keys = block.keys;
        const bool mine = threadIdx.x < rows;
        u64 word = 0, key = 0;
        Value value;
        if (mine) {
            key = word = this->word(begin + threadIdx.x);
            if (PACKED && p.whole != SORT_WHOLE_ALL) key = sort_key(p.key, number(word));
            block.keys[threadIdx.x] = key;
            if constexpr (!is_same<Value, SortNoValue>::value) value = static_cast<Value*>(p.values)[first + begin + threadIdx.x];
        }
        __syncthreads();  // the keys are there
        u32 before = 0;
        // A run out of order has two values at least, and nearly always no more: then it is enough to count one of them (the kernel takes
        // 20.6 µs of 10,000 values of 1M rows instead of 22.5, `benches/runs/2026-11-25-h200-values/`).
        const u64 one = keys[0];
        const u32 others = __ballot_sync(FULL_WARP, mine && key != one);
        if (lane() == u32(trailing_zeros(others))) atomicExch(&block.other, key);
        __syncthreads();  // another value is there
        const u64 other = block.other;
        const u32 greater = __ballot_sync(FULL_WARP, mine && key == maximum(one, other));
        if (lane() == 0) block.greater[warp()] = u32(__popc(greater));
        if (__syncthreads_and(!mine || key == one || key == other)) {
            u32 ahead = u32(__popc(greater & ((1u << lane()) - 1))), of_all = 0;
            for (u32 w = 0; w < WARPS; ++w) {
                if (w < warp()) ahead += block.greater[w];
                of_all += block.greater[w];
            }
            before = (greater >> lane() & 1) != 0 ? rows - of_all + ahead : threadIdx.x - ahead;
        } else if (mine) {
            // Rows with the same key count that lie before it.
#pragma unroll 8
            for (u32 at = 0; at < threadIdx.x; ++at) before += keys[at] <= key ? 1 : 0;
#pragma unroll 8
            for (u32 at = threadIdx.x; at < rows; ++at) before += keys[at] < key ? 1 : 0;
        }
        __syncthreads();  // all rows know their places
        if (mine) {
            put(begin + before, word);
            if constexpr (!is_same<Value, SortNoValue>::value) static_cast<Value*>(p.values)[first + begin + before] = value;
        }
    }
};

// Rows of a run before row `first`, where it goes on, or more than `longest`.
template <bool IMPLIED>
WF_DEVICE u32 sort_runs_before(const SortRuns& p, const SortKey& held, u64 first, u32 longest) {
    const u64 key = sort_key(held, first);
    u64 low = first > longest + 1 ? first - (longest + 1) : 0, begin = first - 1;
    if constexpr (IMPLIED) low = maximum(low, u64(p.implied[sort_digit_at(p.implied, u32(first))]));
    while (low < begin) {
        const u64 middle = (low + begin) / 2;
        if ((sort_key(held, middle) ^ key) >> u32(p.shift) == 0) begin = middle;
        else low = middle + 1;
    }
    return u32(first - begin);
}

// THREADS is blockDim.x, at least SORT_RUNS_MARGIN.
template <typename Value, bool PACKED, bool IMPLIED, u32 THREADS>
WF_DEVICE void sort_runs_body(const SortRuns& p) {
    constexpr u32 CHUNK = SORT_RUNS_CHUNK;
    constexpr u32 WARPS = THREADS / 32;
    constexpr u32 TILE = THREADS * CHUNK;
    constexpr u32 HELD = TILE + SORT_RUNS_MARGIN;
    constexpr u32 CHUNKS = HELD / CHUNK;
    static_assert(THREADS >= SORT_RUNS_MARGIN && CHUNK == 8 && CHUNKS % 4 == 0, "a bit a place, a byte a chunk");
    static_assert(PACKED || !IMPLIED, "keys alone are whole");
    WF_SHARED_ARRAY(u64, words, HELD + CHUNKS);
    WF_SHARED_ARRAY(u32, same_words, CHUNKS / 4);
    WF_SHARED_ARRAY(u32, late_words, CHUNKS / 4);
    // First places of runs out of order: pairs from the front, longer ones from the back, with the number of their pairs
    // above. Before that, pairs that tie, or groups of rows that do, with the number of their rows above.
    WF_SHARED_ARRAY(u32, listed, (PACKED ? HELD : TILE / 2));
    // Runs that the whole block puts in order.
    WF_SHARED_ARRAY(u32, blocks_runs, HELD / SORT_RUNS_RANKED);
    WF_SHARED(SortRunsBlock<WARPS>, block);
    WF_SHARED(u32, blocks_count);
    WF_SHARED(u32, pairs);
    WF_SHARED(u32, longer);
    WF_SHARED(u32, ties);
    WF_SHARED_ARRAY(u64, block_sums, 2 * WARPS);
    WF_SHARED_ARRAY(u32, cuts, WARPS);  // where the group begins that goes on behind a warp's rows
    WF_SHARED(u32, carried);  // the first row goes on with the run of the row before the tile
    constexpr u32 LAST = (PACKED ? HELD : TILE / 2) - 1;
    u8* const same = reinterpret_cast<u8*>(same_words);
    u8* const late = reinterpret_cast<u8*>(late_words);

    const u64 first = u64(blockIdx.x) * TILE;
    const u32 high = p.rows - first < HELD ? u32(p.rows - first) : HELD;
    const bool trusted = PACKED && p.trusted != SORT_TRUSTED_NEVER && p.found[SORT_FOUND_REPEATS] >= p.trusted;
    const SortRunsTile<Value, PACKED> tile{p, words, first};
    const u32 behind = TILE + threadIdx.x;  // a place of the margin
    const SortKey travelling{p.packed, SORT_WORD, 0, 0};
    const SortKey& held = PACKED ? travelling : p.key;
    static_assert(SORT_DIGITS % THREADS == 0, "as many digits for each thread");
    u32 digit_begins[SORT_DIGITS / THREADS];
    if constexpr (IMPLIED) {
#pragma unroll
        for (u32 i = 0; i < SORT_DIGITS / THREADS; ++i) digit_begins[i] = p.implied[threadIdx.x + i * THREADS];
    }
    // Whether rows of different implied digits are held, or stand on both sides of the first row.
    bool parted = false;
    // The first place behind the rows of a place's implied digit.
    const auto end_from = [&](u32 h) {
        return IMPLIED && parted ? sort_digit_end(p.implied, u32(first) + h, p.rows) - first : u64(HELD);
    };
    u64 before = 0;
    if (threadIdx.x == 0) {
        pairs = longer = ties = blocks_count = 0;
        for (u32 w = 0; w < WARPS; ++w) cuts[w] = SORT_TIES_NONE;
        if (first > 0) before = sort_key(held, first - 1);
    }
    u64 read[CHUNK], margin = 0;
    if (high == HELD) sort_keys<true>(held, first + threadIdx.x, THREADS, p.rows, read);
    else sort_keys<false>(held, first + threadIdx.x, THREADS, p.rows, read);
    if (behind < high && threadIdx.x < SORT_RUNS_MARGIN) margin = sort_key(held, first + behind);
#pragma unroll
    for (u32 i = 0; i < CHUNK; ++i) tile.word(threadIdx.x + i * THREADS) = read[i];
    if (threadIdx.x < SORT_RUNS_MARGIN) tile.word(behind) = margin;
    if constexpr (IMPLIED) {
        // Their loads were on the way with the words'.
#pragma unroll
        for (u32 i = 0; i < SORT_DIGITS / THREADS; ++i) {
            parted = parted || (digit_begins[i] >= first && digit_begins[i] < first + high);
        }
        parted = __syncthreads_or(parted) != 0;  // and the words are held
    } else {
        __syncthreads();  // the words are held
    }

    // Of rows that tie: hashes of groups; and the first group of a thread, by its rows and the bits of its key, or, of the last threads, one
    // for each warp, both keys where a group is cut.
    constexpr u32 READERS = THREADS - WARPS;
    SortSums sums(p.seeds);
    u32 tied_rows = 0;
    u64 tied_bits[2] = {};

    const u64 sorted = ~u64(0) << u32(p.shift);
    const u64 travelled = ~u64(0) << u32(p.index_bits);
    if (threadIdx.x == 0) {
        carried = first > 0 && ((before ^ words[0]) & sorted) == 0 ? 1 : 0;
        if (IMPLIED && parted && first > 0 && sort_digit_end(p.implied, u32(first) - 1, p.rows) == first) carried = 0;
    }
    for (u32 c = threadIdx.x; c < CHUNKS; c += THREADS) {
        u32 of_one = 0, greater = 0, equal = 0;
        u64 x = words[c * (CHUNK + 1)];
#pragma unroll
        for (u32 i = 0; i < CHUNK; ++i) {
            // Behind the last chunk there is nothing to compare with.
            const u64 y = i + 1 < CHUNK ? words[c * (CHUNK + 1) + i + 1] : c + 1 < CHUNKS ? words[(c + 1) * (CHUNK + 1)] : ~x;
            of_one |= u32(((x ^ y) & sorted) == 0) << i;
            greater |= u32(x > y) << i;
            if constexpr (PACKED) equal |= u32(((x ^ y) & travelled) == 0) << i;
            x = y;
        }
        const u32 h = c * CHUNK;
        if (IMPLIED && parted) {
#pragma unroll 1
            for (u32 i = 0; i < CHUNK; ++i) of_one &= ~(u32(end_from(h + i) == h + i + 1) << i);
        }
        if (h + CHUNK >= high) of_one &= h + 1 < high ? (1u << (high - 1 - h)) - 1 : 0u;
        greater &= of_one;
        if constexpr (PACKED) {
            equal &= of_one;
            if (trusted && c < THREADS) {
                const u32 rows = h + CHUNK <= high ? CHUNK : h < high ? high - h : 0;
                sort_ties_groups(equal, rows, h, listed, &ties, cuts + warp());
            }
            if (!trusted && p.whole != SORT_WHOLE_ALL && equal != 0) {
                // Listed first: their keys lie anywhere, and each thread then waits for one pair's.
                greater &= ~equal;
                u32 at = atomicAdd(&ties, u32(__popc(equal)));
                for (; equal != 0; equal &= equal - 1) listed[at++] = h + u32(trailing_zeros(equal));
            }
        }
        same[c] = u8(of_one);
        late[c] = u8(greater);
    }
    __syncthreads();  // the bits are set, the list of what ties is complete
    if constexpr (PACKED) {
        if (trusted) {
            // But for a thread's first group, if they are many.
            constexpr u32 READ = 4;
            for (u32 at = threadIdx.x + READERS; threadIdx.x < READERS && at < ties; at += READERS * READ) {
                u32 rows[READ];
                u64 keys[READ];
                // Where there are fewer, the first one again.
#pragma unroll
                for (u32 i = 0; i < READ; ++i) {
                    rows[i] = tile.number(tile.word(listed[at + i * READERS < ties ? at + i * READERS : at] & 0xFFFFu));
                }
                sort_keys_of(p.key, rows, keys);
#pragma unroll
                for (u32 i = 0; i < READ; ++i) {
                    if (at + i * READERS < ties) sums.add(keys[i], listed[at + i * READERS] >> 16);
                }
            }
            // What is read now is waited for when runs are found.
            const u32 warp_cut = THREADS - 1 - threadIdx.x;
            if (warp_cut < WARPS) {
                if (cuts[warp_cut] != SORT_TIES_NONE) {
                    tied_rows = 1;
                    tied_bits[0] = sort_key_bits(p.key, tile.number(tile.word(cuts[warp_cut])));
                    tied_bits[1] = sort_key_bits(p.key, tile.number(tile.word((warp_cut + 1) * 32 * CHUNK)));
                }
            } else if (threadIdx.x < ties) {
                tied_rows = listed[threadIdx.x] >> 16;
                tied_bits[0] = sort_key_bits(p.key, tile.number(tile.word(listed[threadIdx.x] & 0xFFFFu)));
            }
            __syncthreads();  // the list is free, the words may change
        } else if (p.whole != SORT_WHOLE_ALL) {
            for (u32 at = threadIdx.x; at < ties; at += THREADS) {
                const u32 h = listed[at];
                if (tile.later(tile.word(h), tile.word(h + 1))) atomicOr(late_words + h / 32, 1u << (h % 32));
            }
            __syncthreads();  // their bits are set, the list is free
        }
    }

    const u32 c = threadIdx.x;
    const u32 longest = u32(p.longest);
    const u32 mine = same[c], wrong = late[c];
    const u32 goes_on = c == 0 ? carried : same[c - 1] >> (CHUNK - 1);
    const u32 next = c + 1 < CHUNKS ? same[c + 1] & 1u : 0u;
    // Of runs that are too long: that which goes on here, and one that begins here, by its first pair.
    bool far_on = false;
    u32 far_from = CHUNK;
    const u32 head = (mine ^ (mine + 1)) >> 1;  // pairs of the run that goes on here
    if (goes_on != 0 && (wrong & head) != 0) {
        // So far from its first row that the run's owner may not see the pair.
        u32 above = 0;  // pairs of the run before this chunk
        u32 at = c * CHUNK;
        while (at > 0 && above <= longest) {
            const u32 bits = (at - 1) % 32 + 1;
            const u32 ones = u32(leading_zeros(~(same_words[(at - 1) / 32] << (32 - bits))));
            above += ones;
            at -= ones;
            if (ones < bits) break;
        }
        if (at == 0 && carried != 0) above += sort_runs_before<IMPLIED>(p, held, first, longest);
        far_on = above + (32 - u32(leading_zeros(wrong & head))) + 1 > longest;
    }
    // Bits of pairs that begin a run; of runs of two rows.
    const u32 begins = mine & ~(mine << 1 | goes_on);
    const u32 alone = begins & ~(mine >> 1 | next << (CHUNK - 1));
    u32 left = alone & wrong;
    if constexpr (PACKED) {
        // At once: the others look at bits only, until the list is complete.
        for (; left != 0; left &= left - 1) tile.swap(c * CHUNK + u32(trailing_zeros(left)));
    } else if (left != 0) {
        u32 at = atomicAdd(&pairs, u32(__popc(left)));
        for (; left != 0; left &= left - 1) listed[at++] = c * CHUNK + u32(trailing_zeros(left));
    }
    for (left = begins & ~alone; left != 0; left &= left - 1) {
        const u32 i = u32(trailing_zeros(left));
        u32 length = u32(trailing_zeros(~(mine >> i)));  // in pairs
        bool disordered = (wrong >> i & ((1u << length) - 1)) != 0;
        if (i + length == CHUNK) {
            for (u32 at = (c + 1) * CHUNK; at < HELD && length <= longest;) {
                const u32 ones = u32(trailing_zeros(~(same_words[at / 32] >> at % 32)));
                disordered = disordered || (late_words[at / 32] >> at % 32 & ~(~u64(0) << ones)) != 0;
                const u32 bits = 32 - at % 32;
                length += ones;
                at += ones;
                if (ones < bits) break;
            }
        }
        if (!disordered) continue;
        if (length + 1 > longest) far_from = i;
        else if (length >= SORT_RUNS_RANKED && p.more_words == 0) blocks_runs[atomicAdd(&blocks_count, 1u)] = (c * CHUNK + i) | length << 16;
        else listed[LAST - atomicAdd(&longer, 1u)] = (c * CHUNK + i) | length << 16;
    }
    const auto list = [&](u32 h) {
        const u64 at = atomicAdd(p.found + SORT_FOUND_TOO_LONG, u64(1));
        if (at < p.room) p.listed[at] = u32(first) + h;
    };
    if (far_on) list(c * CHUNK);
    if (far_from < CHUNK) list(c * CHUNK + far_from);
    if constexpr (PACKED) {
        if (trusted) {
            if (tied_rows != 0) {
                const u64 key = sort_key_of(p.key, tied_bits[0]);
                if (threadIdx.x < READERS) sums.add(key, tied_rows);
                else if (key != sort_key_of(p.key, tied_bits[1])) atomicAdd(p.found + SORT_FOUND_UNEQUAL, u64(1));
            }
            __syncwarp(FULL_WARP);  // lanes listed different numbers of runs
            sums.to_block(block_sums, __ballot_sync(FULL_WARP, sums.any()) != 0);
        }
    }
    __syncthreads();  // the list is complete, and the words may change; the sums of all warps are there
    if (PACKED && trusted && threadIdx.x < 2) {
        atomicAdd(p.found + SORT_FOUND_SUMS + threadIdx.x, u64(0) - sort_sums_of<WARPS>(block_sums, threadIdx.x));
    }
    if constexpr (!PACKED) {
        for (u32 at = threadIdx.x; at < pairs; at += THREADS) tile.swap(listed[at]);
    }
    // Where rows tie one thread would read their keys one after the other.
    const u32 inserted = p.more_words != 0 ? SORT_RUNS_MARGIN : trusted ? 0 : SORT_RUNS_INSERTED;
    // By the last threads first, which have no pairs.
    for (u32 at = THREADS - 1 - threadIdx.x; at < longer; at += THREADS) {
        const u32 begin = listed[LAST - at] & 0xFFFFu, rows = (listed[LAST - at] >> 16) + 1;
        if (rows <= inserted) tile.insert(begin, begin + rows);
    }
    __syncwarp(FULL_WARP);  // some lanes inserted
    for (u32 at = warp(); at < longer; at += WARPS) {
        const u32 begin = listed[LAST - at] & 0xFFFFu, rows = (listed[LAST - at] >> 16) + 1;
        if (rows > inserted) tile.rank_by_warp(begin, rows);
    }
    // Where more rows are listed than there is room for, the sort begins anew, whatever this tile does.
    const bool many = blocks_count > SORT_RUNS_MANY;
    const bool in_vain = many && __syncthreads_or(threadIdx.x == 0 && load_relaxed(p.found + SORT_FOUND_TOO_LONG) > p.room);
    for (u32 at = 0; at < blocks_count && !in_vain; ++at) {
        tile.rank(blocks_runs[at] & 0xFFFFu, (blocks_runs[at] >> 16) + 1, block);
    }
    if constexpr (PACKED) {
        __syncthreads();  // the runs are in order
        const u64 first_end = end_from(0), last_end = end_from(TILE - 1);
        // Rows of a run that began in an earlier tile are that tile's to write, as far as its margin reaches.
        const auto write = [&](u32 h, bool own) {
            const u64 word = tile.word(h);
            const bool of_other = h < SORT_RUNS_MARGIN && carried != 0 && h < first_end && ((word ^ words[0]) & sorted) == 0;
            const bool begun_here = !own && h < last_end && ((word ^ tile.word(TILE - 1)) & sorted) == 0;
            if ((own && !of_other) || begun_here) static_cast<u32*>(p.out)[first + h] = tile.number(word);
        };
#pragma unroll
        for (u32 i = 0; i < CHUNK; ++i) {
            const u32 h = threadIdx.x + i * THREADS;
            if (h < high) write(h, true);
        }
        if (behind < high && threadIdx.x < SORT_RUNS_MARGIN) write(behind, false);
    }
}

}  // namespace wf

#define WF_SORT_RUNS(NAME, VALUE, PACKED, IMPLIED, THREADS, BLOCKS) \
    WF_KERNEL_BOUNDS(THREADS, BLOCKS, NAME, wf::SortRuns) { wf::sort_runs_body<VALUE, PACKED, IMPLIED, THREADS>(p); }
