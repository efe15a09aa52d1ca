// scan.cuh: running sums.
//
//   exclusive, counts to offsets    3 0 2 1   →   0 3 3 5 6     one more; the last is the total
//   inclusive, values               3 0 2 1   →   3 3 5 6
//
//   one pass: load a tile, scan it in the block, learn its start from the tiles before it, store.
//
// Reads and writes each row once. Tiles pass through shared memory so that global accesses are
// contiguous while each thread sums neighbours.
//
// Sums of floats must not depend on which tile was ready when, so the inclusive scan does not take
// whatever prefix it meets first. It adds in a shape that only the number of the tile decides:
//
//   tile 600 = (tiles 512 … 599 of its group) + (groups 0 and 1) + rows of tile 600
//
// Groups have 256 tiles. A tile waits for the tiles before it in its group and for the sums of
// groups, never for a chain of them. What it holds while it waits lies in shared memory: registers
// would allow too few tiles at once. Tiles in flight times bytes over the time of a tile is the
// speed.
#pragma once
#include "compact.cuh"

namespace wf {

constexpr u32 SCAN_THREADS = 256;
constexpr u32 SCAN_ITEMS = 16;
constexpr u32 SCAN_TILE = SCAN_THREADS * SCAN_ITEMS;

// One word of padding for every 16 keeps both the contiguous and the per-thread access free of bank
// conflicts.
WF_DEVICE u32 scan_padded(u32 at) { return at + at / SCAN_ITEMS; }
constexpr u32 SCAN_STAGED = SCAN_TILE + SCAN_TILE / SCAN_ITEMS;

struct ScanExclusive {
    const u32* counts;  // rows
    void* offsets;      // rows + 1
    u64 rows;
    u64* state;         // 1 + tiles, zero: the ticket, then the tiles' words
};

template <typename Out>
__device__ void scan_exclusive_body(const ScanExclusive& p) {
    WF_SHARED_ARRAY(u64, staged, SCAN_STAGED);
    const u64 tile = compact_ticket(p.state);
    const u64 first = tile * SCAN_TILE;
    Out* offsets = static_cast<Out*>(p.offsets);

    for (u32 j = 0; j < SCAN_ITEMS; ++j) {
        const u32 local = threadIdx.x + j * SCAN_THREADS;
        staged[scan_padded(local)] = first + local < p.rows ? p.counts[first + local] : 0;
    }
    __syncthreads();  // the tile is loaded

    u64 items[SCAN_ITEMS];
    u64 sum = 0;
    for (u32 j = 0; j < SCAN_ITEMS; ++j) {
        items[j] = sum;
        sum += staged[scan_padded(threadIdx.x * SCAN_ITEMS + j)];
    }
    u64 total;
    const u64 before = block_scan<SCAN_THREADS, u64>(sum, total);
    const u64 start = compact_tile_start(p.state + 1, tile, total);

    // The barriers of block_scan separate the reads above from these writes.
    for (u32 j = 0; j < SCAN_ITEMS; ++j) {
        staged[scan_padded(threadIdx.x * SCAN_ITEMS + j)] = start + before + items[j];
    }
    __syncthreads();  // the sums are staged
    for (u32 j = 0; j < SCAN_ITEMS; ++j) {
        const u32 local = threadIdx.x + j * SCAN_THREADS;
        if (first + local < p.rows) offsets[first + local] = Out(staged[scan_padded(local)]);
    }
    if (threadIdx.x == 0 && first + SCAN_TILE >= p.rows) offsets[p.rows] = Out(start + total);
}

// ---- inclusive: values of 8 bytes ----

constexpr u32 SUMS_THREADS = 512;
constexpr u32 SUMS_ITEMS = 16;
constexpr u32 SUMS_TILE = SUMS_THREADS * SUMS_ITEMS;
constexpr u32 SUMS_GROUP = 256;  // tiles
// Two words of padding for each thread's items: pairs of words stay aligned, and eight lanes reach
// different banks.
constexpr u32 SUMS_STAGED = SUMS_TILE + 2 * SUMS_THREADS;
constexpr u32 SUMS_READ = 4;       // parts in flight for a lane
constexpr u32 SUMS_GATHERERS = 4;  // warps that add up groups

WF_DEVICE u32 sums_padded(u32 at) { return at + at / SUMS_ITEMS * 2; }

struct ScanInclusive {
    const void* values;  // rows
    void* sums;          // rows
    u64 rows;
    u64* ticket;         // zero
    u128* parts;         // tiles + groups, zero: | 1 once it is there | sum |, of each tile, then of each whole group
    u64 tiles;
};

// A part and its flag are one access, which needs no order with others.
template <typename T>
WF_DEVICE void sums_publish(u128* part, T sum) {
    store_relaxed(part, make_u128(1, bit_cast<u64>(sum)));
}

// The sum of parts[first], parts[first + 1], …, parts[end − 1] in steps that lie `step` apart,
// added in an order that the bounds alone decide; every lane gets it. Waits for those that are not
// there yet.
template <typename T>
WF_DEVICE T sums_gather(const u128* parts, u64 first, u64 end, u64 step) {
    T sum = T(0);
    for (u64 base = first; base < end; base += step) {
        T read[SUMS_READ];
        bool there;
        do {
            there = true;
#pragma unroll
            for (u32 k = 0; k < SUMS_READ; ++k) {
                const u64 at = base + k * 32 + lane();
                read[k] = T(0);
                if (at < end && at < base + SUMS_READ * 32) {
                    const u128 word = load_relaxed(parts + at);
                    read[k] = bit_cast<T>(low_word(word));
                    there = there && high_word(word) != 0;
                }
            }
            there = __all_sync(FULL_WARP, there);
            if (!there) spin();
        } while (!there);
        sum += (read[0] + read[1]) + (read[2] + read[3]);
    }
    for (u32 step_ = 16; step_ != 0; step_ /= 2) sum += shuffle_xor(FULL_WARP, sum, int(step_));
    return sum;
}

template <typename T>
__device__ void scan_inclusive_body(const ScanInclusive& p) {
    constexpr u32 WARPS = SUMS_THREADS / 32;
    struct Pair {
        T one, two;
    };
    WF_DYNAMIC_SHARED(memory);
    T* const staged = reinterpret_cast<T*>(memory);
    WF_SHARED_ARRAY(T, warps, WARPS);
    WF_SHARED_ARRAY(T, before_tile, 1 + SUMS_GATHERERS);
    const T* values = static_cast<const T*>(p.values);
    T* sums = static_cast<T*>(p.sums);
    const u64 tile = compact_ticket(p.ticket);
    const u64 first = tile * SUMS_TILE;
    const u64 group = tile / SUMS_GROUP;
    const bool whole = first + SUMS_TILE <= p.rows && (reinterpret_cast<u64>(values) & 15) == 0;

    // A warp stages and scans a stretch of its own; while copies are under way they take no
    // registers.
    const u32 own = warp() * 32 * SUMS_ITEMS;
    if (whole) {
#pragma unroll
        for (u32 j = 0; j < SUMS_ITEMS / 2; ++j) {
            const u32 at = own + (j * 32 + lane()) * 2;
            copy_later(staged + sums_padded(at), values + first + at);
        }
        copies_done();
    } else {
        for (u32 j = 0; j < SUMS_ITEMS; ++j) {
            const u32 at = own + j * 32 + lane();
            staged[sums_padded(at)] = first + at < p.rows ? values[first + at] : T(0);
        }
    }
    __syncwarp(FULL_WARP);  // the stretch is staged

    Pair* const mine = reinterpret_cast<Pair*>(staged + sums_padded(threadIdx.x * SUMS_ITEMS));
    T sum = T(0);
#pragma unroll
    for (u32 j = 0; j < SUMS_ITEMS / 2; ++j) {
        const Pair pair = mine[j];
        sum += pair.one;
        sum += pair.two;
    }
    T inclusive = sum;
#pragma unroll
    for (u32 step = 1; step < 32; step *= 2) {
        const T below = shuffle_up(FULL_WARP, inclusive, step);
        if (lane() >= step) inclusive = below + inclusive;
    }
    T exclusive = shuffle_up(FULL_WARP, inclusive, 1u);
    if (lane() == 0) exclusive = T(0);
    if (lane() == 31) warps[warp()] = inclusive;
    __syncthreads();  // the warps' sums are there
    T before = T(0), total = T(0);
#pragma unroll
    for (u32 w = 0; w < WARPS; ++w) {
        if (w == warp()) before = total;
        total += warps[w];
    }

    // One warp adds up the group's tiles, and publishes the group's sum as soon as it is whole;
    // others the groups before.
    u128* const groups = p.parts + p.tiles;
    if (warp() == 0) {
        if (lane() == 0) sums_publish(p.parts + tile, total);
        const T in_group = sums_gather<T>(p.parts, group * SUMS_GROUP, tile, SUMS_READ * 32);
        if (lane() == 0) {
            before_tile[0] = in_group;
            if (tile % SUMS_GROUP == SUMS_GROUP - 1) sums_publish(groups + group, in_group + total);
        }
    } else if (warp() <= SUMS_GATHERERS) {
        const u64 from = (warp() - 1) * (SUMS_READ * 32);
        const T part = sums_gather<T>(groups, from, group, SUMS_GATHERERS * SUMS_READ * 32);
        if (lane() == 0) before_tile[warp()] = part;
    }
    __syncthreads();  // what precedes the tile is there
    T start = T(0);
#pragma unroll
    for (u32 w = SUMS_GATHERERS + 1; w-- != 0;) start += before_tile[w];

    T running = start + (before + exclusive);
#pragma unroll
    for (u32 j = 0; j < SUMS_ITEMS / 2; ++j) {
        Pair pair = mine[j];
        pair.one = running += pair.one;
        pair.two = running += pair.two;
        mine[j] = pair;
    }
    __syncwarp(FULL_WARP);  // the sums are staged
    if (whole) {
#pragma unroll
        for (u32 j = 0; j < SUMS_ITEMS / 2; ++j) {
            const u32 at = own + (j * 32 + lane()) * 2;
            store_stream(reinterpret_cast<Pair*>(sums + first + at),
                         *reinterpret_cast<const Pair*>(staged + sums_padded(at)));
        }
    } else {
        for (u32 j = 0; j < SUMS_ITEMS; ++j) {
            const u32 at = own + j * 32 + lane();
            if (first + at < p.rows) sums[first + at] = staged[sums_padded(at)];
        }
    }
}

}  // namespace wf

#define WF_SCAN_ENTRIES                                                                       \
    WF_KERNEL(scan_exclusive_u32, wf::ScanExclusive) { wf::scan_exclusive_body<wf::u32>(p); } \
    WF_KERNEL(scan_exclusive_u64, wf::ScanExclusive) { wf::scan_exclusive_body<wf::u64>(p); }

// Of a type's name, and the type that is added.
#define WF_SCAN_INCLUSIVE(NAME, T)                                                             \
    WF_KERNEL_BOUNDS(wf::SUMS_THREADS, 3, scan_inclusive_##NAME, wf::ScanInclusive) {          \
        wf::scan_inclusive_body<T>(p);                                                         \
    }
