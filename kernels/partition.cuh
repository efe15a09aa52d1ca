// partition.cuh: the radix partition of records by bits of their key, so that a partition's state
// fits shared memory.
//
//   records   7a 2b 5c 6d 3e      partition = key >> 2      0 | 2b 3e . . |      1 | 7a 5c 6d . |
//
// A record is WORDS u32; a word of it, shifted right, is its partition. Where each partition begins
// follows from a histogram: of every row, or of a sample and then with slack. A tile of rows counts
// its records by partition in shared memory, reserves that many places in each, gathers its records
// by partition, and writes each partition's in one run. Within a partition the order is not
// determined.
//
// Readers take items: stretches of at most so many records of one partition. A partition of one
// item is alone: nobody else holds records of its keys.
#pragma once
#include "compact.cuh"
#include "hash.cuh"

namespace wf {

constexpr u32 PARTITION_NONE = ~u32(0);   // place of a row that takes no part
constexpr u64 PARTITION_FULL = ~u64(0);   // base of a partition that has no room left

// ---- places: from the histogram to where each partition begins ----

struct PartitionPlaces {
    const u32* histogram;  // parts
    u64 parts;
    u64 step;              // rows for each that was counted; 1: all were
    u64* begins;           // parts + 1
    u64* cursors;          // parts
};

constexpr u32 PARTITION_PLACES_THREADS = 1024;

// Seven standard deviations above what the sample says: records beyond that are found out, not
// lost.
WF_DEVICE u64 partition_room(u64 counted, u64 step) {
    if (step == 1) return counted;
    return (counted + u64(7.0 * sqrt(f64(counted))) + 16) * step;
}

WF_DEVICE void partition_places_body(const PartitionPlaces& p) {
    u64 before = 0;
    for (u64 first = 0; first < p.parts; first += PARTITION_PLACES_THREADS) {
        const u64 part = first + threadIdx.x;
        const u64 room = part < p.parts ? divide_up(partition_room(p.histogram[part], p.step), u64(32)) * 32 : 0;
        u64 total;
        const u64 begin = before + block_scan<PARTITION_PLACES_THREADS, u64>(room, total);
        if (part < p.parts) {
            p.begins[part] = begin;
            p.cursors[part] = begin;
        }
        before += total;
    }
    if (threadIdx.x == 0) p.begins[p.parts] = before;
}

// ---- items ----

// Where a partition's records end. Cursors of partitions that had no room for all have gone on.
WF_DEVICE u64 partition_end(const u64* begins, const u64* cursors, u64 part) {
    return minimum(cursors[part], begins[part + 1]);
}

struct PartitionItems {
    const u64* begins;
    const u64* cursors;  // where the records end
    u64 parts;
    u64 most;            // records of an item
    u32* items;          // parts + 1: the first item of each partition, ascending from 0
};

WF_DEVICE void partition_items_body(const PartitionItems& p) {
    u32 before = 0;
    for (u64 first = 0; first < p.parts; first += PARTITION_PLACES_THREADS) {
        const u64 part = first + threadIdx.x;
        const u64 records = part < p.parts ? partition_end(p.begins, p.cursors, part) - p.begins[part] : 0;
        const u32 count = u32(divide_up(records, p.most));
        u32 total;
        const u32 begin = before + block_scan<PARTITION_PLACES_THREADS, u32>(count, total);
        if (part < p.parts) p.items[part] = begin;
        before += total;
    }
    if (threadIdx.x == 0) p.items[p.parts] = before;
}

// The partition of an item that is there.
WF_DEVICE u32 partition_of_item(const u32* items, u32 parts, u32 item) {
    u32 low = 0, high = parts;
    while (high - low > 1) {
        const u32 middle = low + (high - low) / 2;
        if (items[middle] <= item) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

// ---- the tile ----

// From the tile's records of each partition (`counts`) to where they begin in the tile, and to
// `bases`: where the partition's record r of the tile goes is bases[partition] + r. Returns all
// records; the whole block calls.
template <u32 THREADS>
WF_DEVICE u32 partition_reserve(u32* counts, u64* bases, u32 parts, u64* cursors, const u64* begins, bool& full) {
    const u32 each = divide_up(parts, THREADS);
    const u32 first = threadIdx.x * each;
    u32 own = 0;
#pragma unroll 1
    for (u32 i = 0; i < each; ++i) {
        if (first + i < parts) own += counts[first + i];
    }
    u32 total;
    u32 at = block_scan<THREADS, u32>(own, total);
#pragma unroll 1
    for (u32 i = 0; i < each; ++i) {
        const u32 part = first + i;
        const u32 count = part < parts ? counts[part] : 0;
        if (part < parts) counts[part] = at;
        if (count != 0) {
            const u64 place = atomicAdd(cursors + part, u64(count));
            const bool fits = place + count <= begins[part + 1];
            bases[part] = fits ? place - at : PARTITION_FULL;
            full = full || !fits;
        }
        at += count;
    }
    __syncthreads();  // starts and bases are there
    return total;
}

// The widest access that divides a record.
template <u32 WORDS>
struct PartitionUnit {
    typedef typename conditional<WORDS % 4 == 0, ulonglong2, typename conditional<WORDS % 2 == 0, u64, u32>::type>::type type;
    static constexpr u32 COUNT = WORDS * 4 / sizeof(type);
};

template <u32 WORDS>
WF_DEVICE void partition_copy(u32* to, const u32* from) {
    typedef typename PartitionUnit<WORDS>::type Unit;
    constexpr u32 EACH = sizeof(Unit) / 4;
#pragma unroll
    for (u32 u = 0; u < PartitionUnit<WORDS>::COUNT; ++u) {
        Unit unit;
        memcpy(&unit, from + u * EACH, sizeof(Unit));
        reinterpret_cast<Unit*>(to)[u] = unit;
    }
}

// Reads a record that is not read again.
template <u32 WORDS>
WF_DEVICE void partition_load(u32* to, const u32* from) {
    typedef typename PartitionUnit<WORDS>::type Unit;
    constexpr u32 EACH = sizeof(Unit) / 4;
#pragma unroll
    for (u32 u = 0; u < PartitionUnit<WORDS>::COUNT; ++u) {
        const Unit unit = load_stream(reinterpret_cast<const Unit*>(from) + u);
        memcpy(to + u * EACH, &unit, sizeof(Unit));
    }
}

// Writes the tile's records, which lie by partition, to their places. A record's word WORD tells
// its partition.
template <u32 THREADS, u32 WORDS, u32 WORD>
WF_DEVICE void partition_write(const u32* staged, u32 total, const u64* bases, u32 shift, u32* records) {
    typedef typename PartitionUnit<WORDS>::type Unit;
    constexpr u32 COUNT = PartitionUnit<WORDS>::COUNT;
    for (u32 i = threadIdx.x; i < total * COUNT; i += THREADS) {
        const u32 record = i / COUNT;
        const Unit unit = reinterpret_cast<const Unit*>(staged)[i];
        // Where the unit is the record it holds the word, too.
        u32 words[sizeof(Unit) / 4];
        memcpy(words, &unit, sizeof(Unit));
        const u32 bits = COUNT == 1 ? words[WORD] : staged[record * WORDS + WORD];
        const u64 base = bases[bits >> shift];
        if (base != PARTITION_FULL) {
            store_stream(reinterpret_cast<Unit*>(records) + (base + record) * COUNT + i % COUNT, unit);
        }
    }
    __syncthreads();  // all is written before the next tile stages
}

// The row that stands for `step` rows from `first` on: not always the same of them.
WF_DEVICE u64 partition_sampled(u64 at, u32 step) {
    return at * step + (u32(at * 0x9E3779B9u) >> 16) % step;
}

}  // namespace wf

#define WF_PARTITION_ENTRIES                                                                           \
    WF_KERNEL_BOUNDS(wf::PARTITION_PLACES_THREADS, 1, partition_places, wf::PartitionPlaces) {         \
        wf::partition_places_body(p);                                                                  \
    }                                                                                                  \
    WF_KERNEL_BOUNDS(wf::PARTITION_PLACES_THREADS, 1, partition_items, wf::PartitionItems) {           \
        wf::partition_items_body(p);                                                                   \
    }
