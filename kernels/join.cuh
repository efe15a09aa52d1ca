// join.cuh: equality join on one 64-bit key: a table over the build rows, and what probes need.
//
//   build keys  7 9 7 4        a slot for each key: by hash, or in a dense domain the key itself
//
//   unique keys      the slot's value is the row, or the one column of it that the probe needs
//   repeated keys    the slot's value is begin and end of the slot's rows in `rows`
//
//       slot of 4: 0 1      slot of 7: 1 3      slot of 9: 3 4           rows  3 | 0 2 | 1
//
// In a hash table slots are pairs of words, key and value: one access brings both. In a direct
// table, which has one slot for each key of the domain and no keys, values are `starts`: a u32 for
// each slot (JOIN_NO_ROW where it is empty), or two of them where keys repeat.
//
// Beside a hash table may lie a bit for each key of the domain: probes of absent keys end there.
//
// Build, optimistic: every row inserts its key and leaves its value in the slot; a second row of a
// slot flags that keys repeat. Where only the existence of a key counts, that does not matter.
// Otherwise the rows' slots are sorted (stably: each list ascends, so the output of a join is the
// same in every run) and the lists' bounds are marked where slots change. A key repeated any number
// of times is one list; nothing is chained.
#pragma once
#include "hash.cuh"

namespace wf {

constexpr u32 JOIN_NO_ROW = ~u32(0);

// ---- build ----

constexpr u32 JOIN_REPEATED = 1;  // flags: some key has several rows
constexpr u32 JOIN_FULL = 2;      // probes grew too long, or a key lies outside the domain
constexpr u32 JOIN_UNORDERED = 4; // some row's number is not its key
constexpr u32 JOIN_OUTSIDE = 8;   // a key has no bit among those of present keys

struct JoinBuild {
    const u64* keys;   // rows
    const u8* valid;   // rows, or null
    u64 rows;
    u64* slots;        // capacity + 1 slots, all 0xFF; null in a direct table
    u64 mask_or_domain;
    u32* starts;       // of a direct table, all 0xFF
    const void* payload;  // rows, what a hash table's values are, or null: the rows' numbers
    u64 width;         // bytes of a payload, 4 or 8
    u32* flags;        // zero
    u64 secret;        // of the hash
    u64 probes;        // that a row makes at most
    u32* present;      // beside a hash table: a bit for each key of the domain, all zero; or null
    u64 domain;        // of these bits
};

WF_DEVICE u64 join_value_of(const JoinBuild& p, u64 row) {
    if (p.payload == nullptr) return row;
    return p.width == 8 ? static_cast<const u64*>(p.payload)[row] : u64(static_cast<const u32*>(p.payload)[row]);
}

// Whether any row of the block saw something is known by one vote, so that a build of nothing but
// one key does not queue its rows at the flag.
template <bool DIRECT>
__device__ void join_build_body(const JoinBuild& p) {
    u32 seen = 0;
    for (u64 row = u64(global_thread()); row < p.rows; row += u64(global_threads())) {
        const bool taken = p.valid == nullptr || p.valid[row] != 0;
        const u64 key = taken ? p.keys[row] : 0;
        u64 slot = HASH_NONE;
        bool fresh = false;
        if (taken) {
            if constexpr (DIRECT) {
                slot = key < p.mask_or_domain ? key : HASH_NONE;
                if (slot != HASH_NONE) {
                    // Rows of a key already met need no atomic: reading is cheaper, and a stale
                    // read only costs one.
                    fresh = p.starts[slot] == JOIN_NO_ROW && atomicCAS(p.starts + slot, JOIN_NO_ROW, u32(row)) == JOIN_NO_ROW;
                }
            } else {
                slot = hash_insert<PAIR>(p.slots, p.mask_or_domain, key, fresh, p.secret, p.probes);
                if (fresh) {
                    p.slots[slot * PAIR + 1] = join_value_of(p, row);
                    if (p.present != nullptr && key < p.domain) atomicOr(p.present + key / 32, 1u << (key % 32));
                    if (p.present != nullptr && key >= p.domain) seen |= JOIN_OUTSIDE;
                }
            }
            if (key != row) seen |= JOIN_UNORDERED;
            if (slot == HASH_NONE) seen |= JOIN_FULL;
            if (slot != HASH_NONE && !fresh) seen |= JOIN_REPEATED;
        }
    }
    const bool repeated = __syncthreads_or((seen & JOIN_REPEATED) != 0);
    const bool full = __syncthreads_or((seen & JOIN_FULL) != 0);
    const bool unordered = __syncthreads_or((seen & JOIN_UNORDERED) != 0);
    const bool outside = __syncthreads_or((seen & JOIN_OUTSIDE) != 0);
    if (threadIdx.x == 0) {
        const u32 all = (repeated ? JOIN_REPEATED : 0) | (full ? JOIN_FULL : 0) | (unordered ? JOIN_UNORDERED : 0) |
                        (outside ? JOIN_OUTSIDE : 0);
        if (all != 0) atomicOr(p.flags, all);
    }
}

struct JoinSlots {
    const u64* keys;  // rows
    const u8* valid;  // rows, or null
    u64 rows;
    const u64* slots;
    u64 mask_or_domain;
    u64 count;        // of slots; rows that take no part get this number, and sort to the end
    u64* slot_of;     // rows
    u64 secret;
};

template <bool DIRECT>
__device__ void join_slots_body(const JoinSlots& p) {
    for (u64 row = u64(global_thread()); row < p.rows; row += u64(global_threads())) {
        u64 slot = p.count;
        if (p.valid == nullptr || p.valid[row] != 0) {
            slot = DIRECT ? p.keys[row] : pair_find(p.slots, p.mask_or_domain, p.keys[row], p.secret);
        }
        p.slot_of[row] = slot;
    }
}

struct JoinLists {
    const u64* slot_of;  // rows
    const u32* order;    // rows, by slot
    u64 rows;
    u64 slots;
    u32* bounds;         // begin and end of the first slot's rows; zero where a slot may have none
    u64 stride;          // from one slot's begin to the next
};

WF_DEVICE void join_lists_body(const JoinLists& p) {
    for (u64 at = u64(global_thread()); at < p.rows; at += u64(global_threads())) {
        const u64 slot = p.slot_of[p.order[at]];
        if (slot != p.slots) {
            const bool first = at == 0 || p.slot_of[p.order[at - 1]] != slot;
            const bool last = at + 1 == p.rows || p.slot_of[p.order[at + 1]] != slot;
            if (first) p.bounds[p.stride * slot] = u32(at);
            if (last) p.bounds[p.stride * slot + 1] = u32(at + 1);
        }
    }
}

// ---- expand: from the number of matches of each probe row to one row for each match ----
//
//   offsets 0 2 2 5   →   rows      0 0 2 2 2
//   begins  4 . 1     →   of pairs  4 5 1 2 3, or what `rows` has there
//
// A tile of outputs finds its first and last row by a search, each a warp's. Rows that lie between
// them leave their number where their outputs begin, and a running maximum carries it on:
//
//   starts  0 . 2 . .     0 0 2 2 2
//
// Where most rows have no output, a tile may span millions: there every output searches for itself,
// so that neither a row with millions of matches nor a long run of rows without any is one block's
// work.

constexpr u32 JOIN_EXPAND_THREADS = 256;
constexpr u32 JOIN_EXPAND_ITEMS = 8;
constexpr u32 JOIN_EXPAND_TILE = JOIN_EXPAND_THREADS * JOIN_EXPAND_ITEMS;
constexpr u64 JOIN_EXPAND_SPAN = 8 * JOIN_EXPAND_TILE;  // most rows between a tile's first and last that are looked at

struct JoinExpand {
    const u64* offsets;  // n + 1, ascending from 0
    u64 n;
    u64 total;           // offsets[n]
    u32* row_of;         // total
    // Of pairs only.
    const u32* begins;   // n: where a row's candidates begin, or JOIN_NO_ROW
    const u32* rows;     // the candidates by place, or null: their places are their numbers
    u32* candidate_of;   // total
};

// The greatest row in low..high whose offset is at most `at`; offsets[low] <= at.
WF_DEVICE u64 join_row_at(const u64* offsets, u64 low, u64 high, u64 at) {
    while (high - low > 1) {
        const u64 middle = low + (high - low) / 2;
        if (offsets[middle] <= at) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

// The greatest row in 0..n whose offset is at most `at`, found by a warp, which looks at 32 places
// at once.
WF_DEVICE u64 join_row_by_warp(const u64* offsets, u64 n, u64 at) {
    u64 low = 0, high = n;
    while (high - low > 1) {
        const u64 step = divide_up(high - low, u64(32));
        const u64 place = low + step * (lane() + 1);
        const bool before = place < high && offsets[place] <= at;
        low += step * u64(__popc(__ballot_sync(FULL_WARP, before)));
        high = minimum(high, low + step);
    }
    return low;
}

// A word of padding behind each thread's outputs.
WF_DEVICE u32 join_expand_padded(u32 at) { return at + at / JOIN_EXPAND_ITEMS; }

template <bool PAIRS>
__device__ void join_expand_body(const JoinExpand& p) {
    constexpr u32 WARPS = JOIN_EXPAND_THREADS / 32;
    WF_SHARED_ARRAY(u64, span, 2);
    WF_SHARED_ARRAY(u32, starts, JOIN_EXPAND_TILE + JOIN_EXPAND_THREADS);
    WF_SHARED_ARRAY(u32, greatest, WARPS);
    const u64 first = u64(blockIdx.x) * JOIN_EXPAND_TILE;
    const u64 end = minimum(first + JOIN_EXPAND_TILE, p.total);
    if (warp() < 2) {
        const u64 row = join_row_by_warp(p.offsets, p.n, warp() == 0 ? first : end - 1);
        if (lane() == 0) span[warp()] = row;
    }
#pragma unroll
    for (u32 j = 0; j < JOIN_EXPAND_ITEMS; ++j) {
        starts[join_expand_padded(threadIdx.x + j * JOIN_EXPAND_THREADS)] = 0;
    }
    __syncthreads();  // the tile's first and last row are there, and no starts
    const u64 low = span[0], last = span[1];
    const bool near = last - low <= JOIN_EXPAND_SPAN;
    if (near) {
        // Of rows that begin at one place only the last has outputs.
        for (u64 row = low + 1 + threadIdx.x; row <= last; row += JOIN_EXPAND_THREADS) {
            const u64 begin = p.offsets[row];
            if (begin < p.offsets[row + 1]) starts[join_expand_padded(u32(begin - first))] = u32(row - low);
        }
        __syncthreads();  // the starts are there
        u32* const mine = starts + threadIdx.x * (JOIN_EXPAND_ITEMS + 1);
        u32 inclusive = 0;
#pragma unroll
        for (u32 j = 0; j < JOIN_EXPAND_ITEMS; ++j) inclusive = maximum(inclusive, mine[j]);
#pragma unroll
        for (u32 step = 1; step < 32; step *= 2) {
            const u32 below = __shfl_up_sync(FULL_WARP, inclusive, step);
            if (lane() >= step) inclusive = maximum(inclusive, below);
        }
        u32 before = __shfl_up_sync(FULL_WARP, inclusive, 1);
        if (lane() == 0) before = 0;
        if (lane() == 31) greatest[warp()] = inclusive;
        __syncthreads();  // the warps' greatest are there
#pragma unroll
        for (u32 w = 0; w < WARPS; ++w) {
            if (w < warp()) before = maximum(before, greatest[w]);
        }
#pragma unroll
        for (u32 j = 0; j < JOIN_EXPAND_ITEMS; ++j) mine[j] = before = maximum(before, mine[j]);
        __syncthreads();  // every output has its row
    }
    u64 row[JOIN_EXPAND_ITEMS];
#pragma unroll
    for (u32 j = 0; j < JOIN_EXPAND_ITEMS; ++j) {
        const u32 local = threadIdx.x + j * JOIN_EXPAND_THREADS;
        row[j] = low;
        if (first + local < end) {
            row[j] = near ? low + starts[join_expand_padded(local)] : join_row_at(p.offsets, low, last + 1, first + local);
        }
    }
    u32 candidate[JOIN_EXPAND_ITEMS];
    if (PAIRS) {
#pragma unroll
        for (u32 j = 0; j < JOIN_EXPAND_ITEMS; ++j) {
            const u64 at = first + threadIdx.x + j * JOIN_EXPAND_THREADS;
            const u32 begin = p.begins[row[j]];
            candidate[j] = begin == JOIN_NO_ROW ? begin : begin + u32(at - p.offsets[row[j]]);
        }
        if (p.rows != nullptr) {
#pragma unroll
            for (u32 j = 0; j < JOIN_EXPAND_ITEMS; ++j) {
                const u64 at = first + threadIdx.x + j * JOIN_EXPAND_THREADS;
                if (at < end && candidate[j] != JOIN_NO_ROW) candidate[j] = p.rows[candidate[j]];
            }
        }
    }
#pragma unroll
    for (u32 j = 0; j < JOIN_EXPAND_ITEMS; ++j) {
        const u64 at = first + threadIdx.x + j * JOIN_EXPAND_THREADS;
        if (at < end) {
            p.row_of[at] = u32(row[j]);
            if (PAIRS) p.candidate_of[at] = candidate[j];
        }
    }
}

}  // namespace wf

#define WF_JOIN_ENTRIES                                                                                \
    WF_KERNEL(join_build_hash, wf::JoinBuild) { wf::join_build_body<false>(p); }                       \
    WF_KERNEL(join_build_direct, wf::JoinBuild) { wf::join_build_body<true>(p); }                      \
    WF_KERNEL(join_slots_hash, wf::JoinSlots) { wf::join_slots_body<false>(p); }                       \
    WF_KERNEL(join_slots_direct, wf::JoinSlots) { wf::join_slots_body<true>(p); }                      \
    WF_KERNEL(join_lists, wf::JoinLists) { wf::join_lists_body(p); }                                   \
    WF_KERNEL_BOUNDS(wf::JOIN_EXPAND_THREADS, 1, join_expand, wf::JoinExpand) {                        \
        wf::join_expand_body<false>(p);                                                                \
    }                                                                                                  \
    WF_KERNEL_BOUNDS(wf::JOIN_EXPAND_THREADS, 1, join_expand_pairs, wf::JoinExpand) {                  \
        wf::join_expand_body<true>(p);                                                                 \
    }
