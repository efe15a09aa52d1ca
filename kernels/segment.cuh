// segment.cuh: runs of equal keys in sorted order, and their reduction in a fixed order.
//
//   sorted keys   a a a b c c        offsets  0 3 4 6        one segment for each key, none empty
//   values        1 2 3 4 5 6        sums     6 4 11
//
// Bounds: one pass over the rows in sorted order; a row begins a segment where any word of its key
// differs from the row before; survivors' places come from the decoupled look-back of compact.cuh.
// Runs are the same of a column that lies in order: every key is read once, and a bit a row written
// and read; the runs' keys come along.
//
// Reduction: work is cut by rows, never by segments, so one segment of nearly all rows costs what
// many small ones cost.
//
//   tile 0        | tile 1        | tile 2
//   a a a b b b b | b b b b b b b | b b c c d d        a, c, d lie in one tile each: stored at once
//         └ tail    └ head          └ head             b: tail of tile 0, heads of tiles 1 and 2
//
//   1. segment_reduce: each thread reduces neighbouring rows, the block joins the threads' ends by
//      a segmented scan; of runs segment_reduce_runs: where they begin the rows' bits tell
//   2. segment_finish: for each tile whose last segment goes on, its tail and the heads after it,
//      by a thread if there is one, by a warp if there are more, and by the whole block if there
//      are many
//
// What is combined with what depends on the rows' positions alone: same input, same bits. Reads
// each value once.
#pragma once
#include "pipeline.cuh"
#include "reduce.cuh"

namespace wf {

constexpr u32 SEGMENT_THREADS = 256;
constexpr u32 SEGMENT_ITEMS = 8;
constexpr u32 SEGMENT_TILE = SEGMENT_THREADS * SEGMENT_ITEMS;

// ---- bounds ----

struct SegmentBounds {
    const u64* words;   // addresses of the words' keys, u64 × rows each
    u64 count_of_words;
    const u32* order;   // rows, or null: the rows as they come
    u64 rows;
    u32* offsets;       // rows + 1
    u64* state;         // 1 + tiles, zero; the last word ends with the number of segments
};

WF_DEVICE void segment_bounds_body(const SegmentBounds& p) {
    const u64 tile = compact_ticket(p.state);
    const u64 first = tile * SEGMENT_TILE + threadIdx.x * SEGMENT_ITEMS;
    // Row numbers of the thread's positions; slot 0 is the position before them. What precedes the
    // first row of all does not matter: that row begins a segment.
    u32 at_row[SEGMENT_ITEMS + 1];
#pragma unroll
    for (u32 j = 0; j <= SEGMENT_ITEMS; ++j) {
        const u64 at = minimum(first + j, p.rows);
        at_row[j] = at == 0 ? 0 : p.order != nullptr ? p.order[at - 1] : u32(at - 1);
    }
    u32 begins = first == 0 ? 1 : 0;
    for (u64 word = 0; word < p.count_of_words; ++word) {
        const u64* keys = reinterpret_cast<const u64*>(p.words[word]);
        u64 before = keys[at_row[0]];
#pragma unroll
        for (u32 j = 0; j < SEGMENT_ITEMS; ++j) {
            const u64 key = keys[at_row[j + 1]];
            if (key != before) begins |= 1u << j;
            before = key;
        }
    }
    // Beyond the last row every position repeats the last row, and no word differs.
    const u32 count = __popc(begins);
    u32 total;
    const u32 rank = block_scan_u32<SEGMENT_THREADS>(count, total);
    const u64 start = compact_tile_start(p.state + 1, tile, total);
    u32* to = p.offsets + start + rank;
    for (u32 j = 0; j < SEGMENT_ITEMS; ++j) {
        if ((begins >> j & 1) != 0) *to++ = u32(first + j);
    }
    if (threadIdx.x == 0 && (tile + 1) * SEGMENT_TILE >= p.rows) p.offsets[start + total] = u32(p.rows);
}

// Runs take two passes with a scan of counts between them, as a filter does: 100M keys in 10M runs
// 0.25 ms, by look-back 0.41.

constexpr u32 RUNS_THREADS = 512;
constexpr u32 RUNS_ITEMS = 16;
constexpr u32 RUNS_TILE = RUNS_THREADS * RUNS_ITEMS;

constexpr u32 RUNS_PARTS = RUNS_TILE / SEGMENT_TILE;
constexpr u32 RUNS_ROOM = RUNS_TILE / 4;  // most runs of a tile whose keys are put together: of more, nearly every sector of the column has one

struct SegmentHeads {
    const void* keys;  // rows
    u64 rows;
    u32* marks;        // tiles × RUNS_TILE / 32: a bit for each row that begins a run
    u32* counts;       // tiles × RUNS_PARTS: runs that begin in each SEGMENT_TILE rows
    void* gathered;    // tiles × RUNS_ROOM: the keys of each tile's runs, if there is room for them
};

template <typename Key>
__device__ void segment_heads_body(const SegmentHeads& p) {
    constexpr u32 WARPS = RUNS_THREADS / 32;
    WF_SHARED_ARRAY(u32, counts, WARPS);
    const Key* keys = static_cast<const Key*>(p.keys);
    // A warp holds RUNS_ITEMS × 32 neighbours; beyond the last row its key repeats.
    const u64 first = u64(blockIdx.x) * RUNS_TILE + warp() * (32 * RUNS_ITEMS);
    Key own[RUNS_ITEMS];
    if (u64(blockIdx.x + 1) * RUNS_TILE <= p.rows) {
#pragma unroll
        for (u32 j = 0; j < RUNS_ITEMS; ++j) own[j] = keys[first + j * 32 + lane()];
    } else {
#pragma unroll
        for (u32 j = 0; j < RUNS_ITEMS; ++j) own[j] = keys[minimum(first + j * 32 + lane(), p.rows - 1)];
    }
    Key last = first != 0 && first < p.rows ? keys[first - 1] : Key(0);
    u32 word = 0, count = 0;
#pragma unroll
    for (u32 j = 0; j < RUNS_ITEMS; ++j) {
        Key before = shuffle_up(FULL_WARP, own[j], 1u);
        if (lane() == 0) before = last;
        last = shuffle(FULL_WARP, own[j], 31);
        const u64 at = first + j * 32 + lane();
        const u32 begins = __ballot_sync(FULL_WARP, at < p.rows && (at == 0 || own[j] != before));
        if (lane() == j) word = begins;
        count += u32(__popc(begins));
    }
    if (lane() < RUNS_ITEMS) p.marks[first / 32 + lane()] = word;
    if (lane() == 0) counts[warp()] = count;
    __syncthreads();  // the warps' counts are there
    u32 at = 0, total = 0;
    for (u32 w = 0; w < WARPS; ++w) {
        if (w < warp()) at += counts[w];
        total += counts[w];
    }
    if (threadIdx.x < RUNS_PARTS) {
        constexpr u32 EACH = WARPS / RUNS_PARTS;
        u32 of_part = 0;
        for (u32 w = 0; w < EACH; ++w) of_part += counts[threadIdx.x * EACH + w];
        p.counts[blockIdx.x * RUNS_PARTS + threadIdx.x] = of_part;
    }
    if (total > RUNS_ROOM) return;
    Key* const gathered = static_cast<Key*>(p.gathered) + u64(blockIdx.x) * RUNS_ROOM + at;
    u32 before = 0;
#pragma unroll
    for (u32 j = 0; j < RUNS_ITEMS; ++j) {
        const u32 begins = __shfl_sync(FULL_WARP, word, j);
        if ((begins >> lane() & 1) != 0) gathered[before + u32(__popc(begins & lanes_below()))] = own[j];
        before += u32(__popc(begins));
    }
}

struct SegmentList {
    const void* keys;      // rows
    const void* gathered;  // as found
    const u32* marks;
    const u64* begins;     // tiles × RUNS_PARTS + 1: runs that begin before each SEGMENT_TILE rows
    u64 rows;
    u32* offsets;          // runs + 1
    void* of_runs;         // runs: their keys
};

template <typename Key>
__device__ void segment_list_body(const SegmentList& p) {
    constexpr u32 WORDS = RUNS_TILE / 32;
    static_assert(WORDS <= RUNS_THREADS, "one thread for each word");
    // Listed in shared memory first, so that what is written lies together.
    WF_SHARED_ARRAY(u16, places, RUNS_TILE);
    const u64 first = u64(blockIdx.x) * RUNS_TILE;
    const u32 own = threadIdx.x;
    u32 word = own < WORDS ? p.marks[first / 32 + own] : 0;
    u32 total;
    u32 at = block_scan_u32<RUNS_THREADS>(u32(__popc(word)), total);
    while (word != 0) {
        places[at++] = u16(own * 32 + u32(__ffs(int(word))) - 1);
        word &= word - 1;
    }
    __syncthreads();  // the list is complete
    const u64 start = p.begins[u64(blockIdx.x) * RUNS_PARTS];
    const Key* const keys = static_cast<const Key*>(p.keys) + first;
    const Key* const gathered = static_cast<const Key*>(p.gathered) + u64(blockIdx.x) * RUNS_ROOM;
    Key* const of_runs = static_cast<Key*>(p.of_runs) + start;
    for (u32 i = own; i < total; i += RUNS_THREADS) {
        p.offsets[start + i] = u32(first + places[i]);
        of_runs[i] = total <= RUNS_ROOM ? gathered[i] : keys[places[i]];
    }
    if (own == 0 && first + RUNS_TILE >= p.rows) p.offsets[start + total] = u32(p.rows);
}

// ---- segments that begin before each tile ----

struct SegmentTiles {
    const u32* offsets;  // count + 1
    u64 count;
    u64 tiles;
    u64* begins;         // tiles + 1; the last is count
};

WF_DEVICE void segment_tiles_body(const SegmentTiles& p) {
    const u64 tile = u64(global_thread());
    if (tile < p.tiles) {
        const u64 at = tile * SEGMENT_TILE;
        u64 low = 0, high = p.count;
        while (low < high) {
            const u64 middle = low + (high - low) / 2;
            if (p.offsets[middle] < at) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        p.begins[tile] = low;
    } else if (tile == p.tiles) {
        p.begins[tile] = p.count;
    }
}

// ---- reduction ----

struct SegmentReduce {
    const void* values;     // rows of Value; null for counts
    const u8* valid;        // rows, or null
    const u32* order;       // rows, or null
    const u32* offsets;     // count + 1
    const u32* marks;       // of runs, a bit for each row that begins one, of whole tiles; or null
    const u64* begins;      // tiles + 1: segments that begin before each
    u64 rows;
    u64 tiles;
    void* results;          // count of Result
    void* heads;            // tiles of Sum
    void* tails;            // tiles of Sum
};

// RUNS: of rows as they come, all valid, and `marks` are there.
template <typename Op, bool RUNS>
__device__ void segment_reduce_body(const SegmentReduce& p) {
    typedef typename Op::Sum Sum;
    constexpr u32 WARPS = SEGMENT_THREADS / 32;
    constexpr u32 WORDS = SEGMENT_TILE / 32;
    // Staged with one word of padding for each thread, so that neither access collides in the
    // banks.
    WF_SHARED_ARRAY(Sum, staged, SEGMENT_TILE + SEGMENT_THREADS);
    WF_SHARED_ARRAY(u32, begins, WORDS);
    WF_SHARED_ARRAY(u32, ranks, WORDS);
    WF_SHARED_ARRAY(Sum, warp_sums, WARPS);
    WF_SHARED_ARRAY(u32, warp_ends, WARPS);

    const u64 tile = blockIdx.x;
    const u64 first = tile * SEGMENT_TILE;
    const u32 rows = u32(minimum(p.rows - first, u64(SEGMENT_TILE)));
    const u32 me = threadIdx.x;
    const u64 begun = p.begins[tile];

    if (me < WORDS) begins[me] = RUNS ? p.marks[first / 32 + me] : 0;
    const typename Op::Value* values = static_cast<const typename Op::Value*>(p.values);
#pragma unroll
    for (u32 j = 0; j < SEGMENT_ITEMS; ++j) {
        const u32 at = me + j * SEGMENT_THREADS;
        Sum sum = Op::none();
        if (at < rows) {
            const u64 row = !RUNS && p.order != nullptr ? u64(p.order[first + at]) : first + at;
            if (RUNS || p.valid == nullptr || p.valid[row] != 0) {
                sum = Op::enter(values != nullptr ? values[row] : typename Op::Value());
            }
        }
        staged[at + at / SEGMENT_ITEMS] = sum;
    }
    __syncthreads();  // the tile is staged, the marks are there, or empty
    if constexpr (!RUNS) {
        const u64 end = p.begins[tile + 1];
        for (u64 segment = begun + me; segment < end; segment += SEGMENT_THREADS) {
            const u32 at = u32(p.offsets[segment] - first);
            atomicOr(begins + at / 32, 1u << (at % 32));
        }
        __syncthreads();  // the marks are there
    }

    // How many segments begin before each word of marks.
    if (me < 32) {
        u32 before = 0;
        for (u32 base = 0; base < WORDS; base += 32) {
            const u32 count = __popc(begins[base + me]);
            u32 inclusive = count;
            for (u32 step = 1; step < 32; step *= 2) {
                const u32 below = __shfl_up_sync(FULL_WARP, inclusive, step);
                if (me >= step) inclusive += below;
            }
            ranks[base + me] = before + inclusive - count;
            before += __shfl_sync(FULL_WARP, inclusive, 31);
        }
    }
    __syncthreads();  // the ranks are complete

    // The thread's rows: what precedes its first beginning, whole segments between beginnings
    // (stored at once), and what follows its last beginning. A segment's number here is how many
    // have begun when it has: one more than its place.
    const u32 mine = me * SEGMENT_ITEMS;
    const u32 marks = begins[mine / 32] >> (mine % 32) & ((1u << SEGMENT_ITEMS) - 1);
    u64 segment = begun + ranks[mine / 32] + __popc(begins[mine / 32] & ((1u << (mine % 32)) - 1));
    const u64 my_segment = segment;
    typename Op::Result* results = static_cast<typename Op::Result*>(p.results);
    Sum leading = Op::none();
    Sum open = Op::none();
#pragma unroll
    for (u32 j = 0; j < SEGMENT_ITEMS; ++j) {
        if ((marks >> j & 1) != 0) {
            if ((marks & ((1u << j) - 1)) == 0) {
                leading = open;
            } else {
                results[segment - 1] = Op::leave(open);
            }
            segment += 1;
            open = Op::none();
        }
        open = Op::join(open, staged[mine + j + me]);
    }

    // Segmented scan of what is open at the threads' ends: `carry` is what precedes this thread in
    // its segment.
    const u32 in_warp = me % 32;
    Sum inclusive = open;
    bool ended = marks != 0;
    for (u32 step = 1; step < 32; step *= 2) {
        const Sum below = shuffle_up(FULL_WARP, inclusive, step);
        const bool below_ended = shuffle_up(FULL_WARP, ended, step);
        if (in_warp >= step && !ended) {
            inclusive = Op::join(below, inclusive);
            ended = below_ended;
        }
    }
    Sum carry = shuffle_up(FULL_WARP, inclusive, 1u);
    bool carry_ended = shuffle_up(FULL_WARP, ended, 1u);
    if (in_warp == 0) {
        carry = Op::none();
        carry_ended = false;
    }
    if (in_warp == 31) {
        warp_sums[me / 32] = inclusive;
        warp_ends[me / 32] = ended ? 1 : 0;
    }
    __syncthreads();  // the warps' ends are there
    if (!carry_ended) {
        Sum before = Op::none();
        for (u32 w = 0; w < me / 32; ++w) {
            before = warp_ends[w] != 0 ? warp_sums[w] : Op::join(before, warp_sums[w]);
        }
        carry = Op::join(before, carry);
    }

    // A head is what the tile has of the segment that goes on from the tile before: nothing, where
    // its first row begins one.
    Sum* heads = static_cast<Sum*>(p.heads);
    Sum* tails = static_cast<Sum*>(p.tails);
    if (marks != 0) {
        const Sum closed = Op::join(carry, leading);
        if (my_segment != begun) {
            results[my_segment - 1] = Op::leave(closed);
        } else {
            heads[tile] = closed;
        }
    }
    // The last thread holds what is open at the tile's end.
    if (me == SEGMENT_THREADS - 1) {
        const Sum last = marks != 0 ? open : Op::join(carry, open);
        if (segment == begun) {
            heads[tile] = last;
        } else if (p.offsets[segment] <= first + rows) {
            results[segment - 1] = Op::leave(last);
        } else {
            tails[tile] = last;
        }
    }
}

// ---- finish: segments that span tiles ----

constexpr u32 SEGMENT_SPAN_OF_WARP = 256;  // tiles of a segment above which the whole block adds them up

struct SegmentFinish {
    const u32* offsets;
    const u64* begins;
    u64 rows;
    u64 tiles;
    void* results;
    const void* heads;
    const void* tails;
};

// The heads from tile `from` to `to` in a shape that only their number and the team's size decide:
// every thread of the team takes each `team`th.
template <typename Op>
WF_DEVICE typename Op::Sum segment_heads(const typename Op::Sum* heads, u64 from, u64 to, u32 rank, u32 team) {
    typename Op::Sum sum = Op::none();
    for (u64 at = from + rank; at < to; at += team) sum = Op::join(sum, heads[at]);
    for (u32 step = 16; step != 0; step /= 2) sum = Op::join(sum, shuffle_xor(FULL_WARP, sum, int(step)));
    return sum;
}

template <typename Op>
__device__ void segment_finish_body(const SegmentFinish& p) {
    typedef typename Op::Sum Sum;
    constexpr u32 WARPS = SEGMENT_THREADS / 32;
    WF_SHARED_ARRAY(Sum, sums, WARPS);
    // Tiles whose segments have several heads: those are waited for together.
    WF_SHARED_ARRAY(u64, tiles, SEGMENT_THREADS);
    WF_SHARED_ARRAY(u64, segments, SEGMENT_THREADS);
    WF_SHARED_ARRAY(u64, ends, SEGMENT_THREADS);
    WF_SHARED(u32, count);
    const Sum* heads = static_cast<const Sum*>(p.heads);
    const Sum* tails = static_cast<const Sum*>(p.tails);
    typename Op::Result* results = static_cast<typename Op::Result*>(p.results);
    if (threadIdx.x == 0) count = 0;
    __syncthreads();  // there are none yet
    const u64 own = u64(global_thread());
    if (own < p.tiles) {
        const u64 end = minimum((own + 1) * SEGMENT_TILE, p.rows);
        const u64 segment = p.begins[own + 1] - 1;  // the last that begins before the tile's end
        const u64 segment_end = p.offsets[segment + 1];
        if (segment_end > end && p.offsets[segment] >= own * SEGMENT_TILE) {
            const u64 end_tile = (segment_end + SEGMENT_TILE - 1) / SEGMENT_TILE;
            if (end_tile == own + 2) {
                results[segment] = Op::leave(Op::join(tails[own], heads[own + 1]));
            } else {
                const u32 at = atomicAdd(&count, 1u);
                tiles[at] = own;
                segments[at] = segment;
                ends[at] = end_tile;
            }
        }
    }
    __syncthreads();  // those that wait are known
    for (u32 at = warp(); at < count; at += WARPS) {
        if (ends[at] - tiles[at] > SEGMENT_SPAN_OF_WARP) continue;
        const Sum part = segment_heads<Op>(heads, tiles[at] + 1, ends[at], lane(), 32);
        if (lane() == 0) results[segments[at]] = Op::leave(Op::join(tails[tiles[at]], part));
    }
    for (u32 at = 0; at < count; ++at) {
        if (ends[at] - tiles[at] <= SEGMENT_SPAN_OF_WARP) continue;
        const Sum part = segment_heads<Op>(heads, tiles[at] + 1, ends[at], threadIdx.x, SEGMENT_THREADS);
        if (lane() == 0) sums[warp()] = part;
        __syncthreads();  // the warps' parts are there
        if (threadIdx.x == 0) {
            Sum sum = tails[tiles[at]];
            for (u32 other = 0; other < WARPS; ++other) sum = Op::join(sum, sums[other]);
            results[segments[at]] = Op::leave(sum);
        }
        __syncthreads();  // the parts have been read
    }
}

}  // namespace wf

// Two blocks that find runs share a multiprocessor, with 64 registers a thread: 0.22 ms of 100M
// keys of 8 bytes; one, with 70, took 0.31.
#define WF_SEGMENT_ENTRIES                                                                                         \
    WF_KERNEL_BOUNDS(wf::SEGMENT_THREADS, 1, segment_bounds, wf::SegmentBounds) { wf::segment_bounds_body(p); }    \
    WF_KERNEL_BOUNDS(wf::RUNS_THREADS, 2, segment_heads_u32, wf::SegmentHeads) { wf::segment_heads_body<wf::u32>(p); } \
    WF_KERNEL_BOUNDS(wf::RUNS_THREADS, 2, segment_heads_u64, wf::SegmentHeads) { wf::segment_heads_body<wf::u64>(p); } \
    WF_KERNEL_BOUNDS(wf::RUNS_THREADS, 1, segment_list_u32, wf::SegmentList) { wf::segment_list_body<wf::u32>(p); } \
    WF_KERNEL_BOUNDS(wf::RUNS_THREADS, 1, segment_list_u64, wf::SegmentList) { wf::segment_list_body<wf::u64>(p); } \
    WF_KERNEL(segment_tiles, wf::SegmentTiles) { wf::segment_tiles_body(p); }

#define WF_SEGMENT_REDUCE(NAME, ...)                                                                               \
    WF_KERNEL_BOUNDS(wf::SEGMENT_THREADS, 1, segment_reduce_##NAME, wf::SegmentReduce) {                           \
        wf::segment_reduce_body<__VA_ARGS__, false>(p);                                                            \
    }                                                                                                              \
    WF_KERNEL_BOUNDS(wf::SEGMENT_THREADS, 1, segment_finish_##NAME, wf::SegmentFinish) {                           \
        wf::segment_finish_body<__VA_ARGS__>(p);                                                                   \
    }

// Eight blocks a multiprocessor, whose 32 registers a thread are enough for sums of 8 bytes: 0.23
// ms, as many as fit without 0.26.
#define WF_SEGMENT_REDUCE_RUNS(NAME, ...)                                                                          \
    WF_KERNEL_BOUNDS(wf::SEGMENT_THREADS, 8, segment_reduce_runs_##NAME, wf::SegmentReduce) {                      \
        wf::segment_reduce_body<__VA_ARGS__, true>(p);                                                             \
    }
