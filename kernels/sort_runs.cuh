// sort_runs.cuh: finishes a sort whose passes left out low bits of the key: rows that are equal in the bits the passes
// looked at stand together, in a run, and are put in order within it.
//
//   sorted by tens   11 17 13 | 24 | 38 31         runs of 3, 1, 2; out of order are the first and the last
//   output           11 13 17 | 24 | 31 38
//
//   One pass: a tile with a margin of rows on each side lies in shared memory. Every pair of neighbours of one run is
//   compared; the runs that have a pair out of order are listed, and a thread sorts each by insertion. The tile that holds
//   a run's first row owns it, up to the end of the margin. A longer run that is out of order raises `failed`: the caller
//   sorts by all bits instead. (The caller estimates the runs' length from a sample first: sort_sample.cuh.)
//
// Keys alone are mended where they lie: each is read once, and few are written. Packed words are read once and leave as
// row numbers.
#pragma once
#include "compact.cuh"
#include "sort_key.cuh"

namespace wf {

constexpr u32 SORT_RUNS_THREADS = 256;
constexpr u32 SORT_RUNS_TILE = 2048;
constexpr u32 SORT_RUNS_MARGIN = 128;  // rows; longest run that is mended
constexpr u32 SORT_RUNS_HELD = SORT_RUNS_TILE + 2 * SORT_RUNS_MARGIN;
constexpr u32 SORT_RUNS_EACH = SORT_RUNS_HELD / SORT_RUNS_THREADS;
static_assert(SORT_RUNS_HELD % SORT_RUNS_THREADS == 0, "each thread loads as many");

struct SortRuns {
    const u64* packed;       // rows of key and row number, sorted from `shift` upwards; or null: `key` is what is sorted
    SortKey key;             // the keys to mend; of packed words, where whole keys are read
    u64 rows;
    u64 shift;               // lowest bit that is sorted, in the words as they are
    u64 index_bits;          // of packed words, else 0
    u64 whole;               // 1: packed words hold the whole key
    u64 longest;             // run that is mended, at most SORT_RUNS_MARGIN
    const u64* const* more;  // further words of a packed key: `more_words` pointers to rows of u64
    u64 more_words;
    void* out;               // rows: of packed words their row numbers, u32; else the memory of `key`, mended in place
    void* values;            // rows of Value beside the keys, mended in place; or null
    u64* failed;             // set to 1 where a run was too long; zero before
};

struct SortNoValue {};

template <typename Value, bool PACKED>
struct SortRunsTile {
    const SortRuns& p;
    u64* words;  // held
    u64 first;   // held place h is row first + h − MARGIN

    WF_DEVICE u64 row_at(u32 h) const { return first + h - SORT_RUNS_MARGIN; }
    WF_DEVICE bool together(u32 a, u32 b) const { return (words[a] ^ words[b]) >> u32(p.shift) == 0; }
    // Equal in all bits that travelled, though not in the rest perhaps.
    WF_DEVICE bool tied(u64 x, u64 y) const { return PACKED && p.whole == 0 && (x ^ y) >> u32(p.index_bits) == 0; }
    WF_DEVICE u64 number(u64 word) const { return word & ((u64(1) << u32(p.index_bits)) - 1); }

    // Whether the row of word y, with key `right` where tied, belongs before x's. Equal keys keep the order of rows, which
    // is the order of packed words, and of places otherwise.
    WF_DEVICE bool later(u64 x, u64 y, u64 left, u64 right) const {
        if (tied(x, y)) {
            if (left != right) return left > right;
            for (u64 w = 0; w < p.more_words; ++w) {
                const u64 a = p.more[w][number(x)], b = p.more[w][number(y)];
                if (a != b) return a > b;
            }
        }
        return x > y;
    }
    WF_DEVICE u64 whole_key(u64 word) const { return sort_key(p.key, number(word)); }

    WF_DEVICE void put(u32 h, u64 word) const {
        words[h] = word;
        if constexpr (!PACKED) {
            const u64 raw = sort_key_raw(p.key, word);
            if (sort_key_is_half(p.key)) static_cast<u32*>(p.out)[row_at(h)] = u32(raw);
            else static_cast<u64*>(p.out)[row_at(h)] = raw;
        }
    }

    // Exchanges a place and the next, with the values beside them.
    WF_DEVICE void swap(u32 at) const {
        if constexpr (!is_same<Value, SortNoValue>::value) {
            Value* values = static_cast<Value*>(p.values);
            const Value value = values[row_at(at)];
            values[row_at(at)] = values[row_at(at + 1)];
            values[row_at(at + 1)] = value;
        }
        const u64 word = words[at];
        put(at, words[at + 1]);
        put(at + 1, word);
    }

    // Sorts held places [begin, end) by insertion, with the values beside them.
    WF_DEVICE void insert(u32 begin, u32 end) const {
        constexpr bool VALUES = !is_same<Value, SortNoValue>::value;
        for (u32 at = begin + 1; at < end; ++at) {
            const u64 word = words[at];
            u32 to = at;
            while (to > begin) {
                const u64 above = words[to - 1];
                const bool tie = tied(above, word);
                if (!later(above, word, tie ? whole_key(above) : 0, tie ? whole_key(word) : 0)) break;
                to -= 1;
            }
            if (to == at) continue;
            if constexpr (VALUES) {
                Value* values = static_cast<Value*>(p.values);
                const Value value = values[row_at(at)];
                for (u32 h = at; h > to; --h) values[row_at(h)] = values[row_at(h - 1)];
                values[row_at(to)] = value;
            }
            for (u32 h = at; h > to; --h) put(h, words[h - 1]);
            put(to, word);
        }
    }
};

template <typename Value, bool PACKED>
WF_DEVICE void sort_runs_body(const SortRuns& p) {
    constexpr u32 MARGIN = SORT_RUNS_MARGIN;
    constexpr u32 TILE_END = MARGIN + SORT_RUNS_TILE;
    WF_SHARED_ARRAY(u64, words, SORT_RUNS_HELD);
    // First places of pairs that tie, then of runs of two rows or more, with the places behind those above.
    WF_SHARED_ARRAY(u32, listed, (PACKED ? SORT_RUNS_HELD : SORT_RUNS_TILE / 2));
    // A bit for each place: it ties with the next, and belongs behind it.
    WF_SHARED_ARRAY(u32, late, (PACKED ? SORT_RUNS_HELD / 32 : 1));
    WF_SHARED(u32, runs);
    WF_SHARED(u32, tied);

    const u64 first = u64(blockIdx.x) * SORT_RUNS_TILE;
    const u32 low = first == 0 ? MARGIN : 0;
    const u64 end = p.rows + MARGIN - first;
    const u32 high = end < SORT_RUNS_HELD ? u32(end) : SORT_RUNS_HELD;
    const SortRunsTile<Value, PACKED> tile{p, words, first};
    if (threadIdx.x == 0) runs = tied = 0;
    if constexpr (PACKED) {
#pragma unroll
        for (u32 i = 0; i < SORT_RUNS_EACH; ++i) {
            const u32 h = threadIdx.x + i * SORT_RUNS_THREADS;
            if (h >= low && h < high) words[h] = p.packed[tile.row_at(h)];
        }
    } else {
        u64 read[SORT_RUNS_EACH];
        // Below row 0 the place wraps to beyond the last row.
        sort_keys<false>(p.key, tile.row_at(threadIdx.x), SORT_RUNS_THREADS, p.rows, read);
#pragma unroll
        for (u32 i = 0; i < SORT_RUNS_EACH; ++i) words[threadIdx.x + i * SORT_RUNS_THREADS] = read[i];
    }
    __syncthreads();  // the words are held

    if constexpr (PACKED) {
        if (p.whole == 0) {
            // Listed first: their keys lie anywhere, and each thread then waits for one pair's instead of one's a round.
            if (threadIdx.x < SORT_RUNS_HELD / 32) late[threadIdx.x] = 0;
            for (u32 h = low + threadIdx.x; h + 1 < high; h += SORT_RUNS_THREADS) {
                if (tile.tied(words[h], words[h + 1])) listed[atomicAdd(&tied, 1u)] = h;
            }
            __syncthreads();  // the list of pairs that tie is complete, no bit is set
            for (u32 at = threadIdx.x; at < tied; at += SORT_RUNS_THREADS) {
                const u32 h = listed[at];
                const u64 x = words[h], y = words[h + 1];
                if (tile.later(x, y, tile.whole_key(x), tile.whole_key(y))) atomicOr(late + h / 32, 1u << (h % 32));
            }
            __syncthreads();  // the bits are set, the list is free
        }
    }

    // Pairs out of order; a run is listed by the first of them, by the tile where the run begins.
    const auto disordered = [&](u32 h) {
        const u64 x = words[h], y = words[h + 1];
        if ((x ^ y) >> u32(p.shift) != 0) return false;
        if constexpr (PACKED) {
            if (tile.tied(x, y)) return (late[h / 32] >> (h % 32) & 1) != 0;
        }
        return x > y;
    };
    bool failed = false;
    for (u32 h = low + threadIdx.x; h + 1 < high; h += SORT_RUNS_THREADS) {
        if (!disordered(h)) continue;
        u32 begin = h;
        bool leads = true;
        while (begin > low && h - begin < MARGIN && tile.together(begin - 1, begin)) {
            begin -= 1;
            leads = leads && !disordered(begin);
        }
        // So far from its first row that the run's owner may not see the pair.
        if (h - begin + 2 > MARGIN) {
            failed = true;
        } else if (leads && begin >= MARGIN && begin < TILE_END) {
            u32 stop = h + 2;
            while (stop < high && stop - begin <= MARGIN && tile.together(stop, begin)) stop += 1;
            if (stop - begin > p.longest) failed = true;
            else listed[atomicAdd(&runs, 1u)] = begin | stop << 16;
        }
    }
    __syncthreads();  // the list is complete, and the words may change
    for (u32 at = threadIdx.x; at < runs; at += SORT_RUNS_THREADS) {
        const u32 begin = listed[at] & 0xFFFFu, stop = listed[at] >> 16;
        if (stop - begin == 2) tile.swap(begin);  // listed, so out of order
        else tile.insert(begin, stop);
    }
    if (failed) atomicMax(p.failed, u64(1));

    if constexpr (PACKED) {
        __syncthreads();  // the runs are in order
        // Rows of a run that began in an earlier tile are that tile's to write, as far as its margin reaches.
        for (u32 h = MARGIN + threadIdx.x; h < high; h += SORT_RUNS_THREADS) {
            bool mine = h < TILE_END;
            if (low == 0 && h < 2 * MARGIN && tile.together(h, MARGIN - 1)) mine = false;
            if (h >= TILE_END && tile.together(h, TILE_END - 1)) mine = true;
            if (mine) static_cast<u32*>(p.out)[tile.row_at(h)] = u32(tile.number(words[h]));
        }
    }
}

}  // namespace wf

#define WF_SORT_RUNS(NAME, VALUE, PACKED) \
    WF_KERNEL_BOUNDS(wf::SORT_RUNS_THREADS, 4, NAME, wf::SortRuns) { wf::sort_runs_body<VALUE, PACKED>(p); }
