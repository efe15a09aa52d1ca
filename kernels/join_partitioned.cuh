// join_partitioned.cuh: the join of one partition of a partitioned hash join: a hash table of the
// build side's records in shared memory, in which the probe side's records look up theirs.
//
//   build records   7a 3b 9c      table   . | 2 | . | 1 | 3 | .
//   probe records   3x 8y 7z      found   2 . 1
//
// A slot holds a tag of the key and the record's number + 1.
//
// A record begins with its key: two words of a mixed key (hash_mix is a bijection, so equal mixed
// keys are equal keys), or one of a dense key, which numbers its slot by its low bits. Records stay
// where they are: those of a partition are few enough to be found in the second-level cache.
//
// Where a key has several build records, each has a slot of its own, and a probe walks on to the
// next empty one.
#pragma once
#include "partition.cuh"

namespace wf {

// Records of a partition that a slot can number.
constexpr u32 JOIN_PARTITIONED_MOST = 65535;
// Records of a key. Each walks past those before it, so that the time grows with their square.
constexpr u32 JOIN_PARTITIONED_COPIES = 32;
// What a build saw: a key has several records; a key has more than JOIN_PARTITIONED_COPIES, and not
// all are in the table.
constexpr u32 JOIN_PARTITIONED_REPEATED = 1;
constexpr u32 JOIN_PARTITIONED_TOO_MANY = 2;

struct PartitionTable {
    u32* slots;          // 0: empty; else tag << 16 | record + 1, of a dense key record + 1
    u32 count;           // slots
    const u32* records;  // the partition's build side
};

WF_DEVICE u32 join_partitioned_first(const PartitionTable& table, u32 low) { return u32(u64(low) * table.count >> 32); }
WF_DEVICE u32 join_partitioned_next(const PartitionTable& table, u32 at) { return at + 1 == table.count ? 0 : at + 1; }
WF_DEVICE bool join_partitioned_tagged(u32 slot, u32 low) { return slot >> 16 == (low & 0xFFFFu); }

// Whether the record of a slot that is not empty has this key.
template <u32 WORDS>
WF_DEVICE bool join_partitioned_same(const PartitionTable& table, u32 slot, const u32* key) {
    const u32* record = table.records + u64((slot & 0xFFFFu) - 1) * WORDS;
    if constexpr (WORDS % 2 == 0) {
        const u64 both = *reinterpret_cast<const u64*>(record);
        return both == (u64(key[1]) << 32 | key[0]);
    } else {
        return record[0] == key[0] && record[1] == key[1];
    }
}

// Puts the partition's `n` records into the table, which the whole block calls; all slots are empty
// and n < count. What this thread saw of repeated keys.
template <u32 THREADS, u32 WORDS, bool DENSE>
WF_DEVICE u32 join_partitioned_build(const PartitionTable& table, u32 n) {
    u32 saw = 0;
    for (u32 i = threadIdx.x; i < n; i += THREADS) {
        const u32* key = table.records + u64(i) * WORDS;
        if constexpr (DENSE) {
            if (atomicExch(table.slots + (key[0] & (table.count - 1)), i + 1) != 0) saw |= JOIN_PARTITIONED_REPEATED;
        } else {
            const u32 entry = (key[0] & 0xFFFFu) << 16 | (i + 1);
            u32 at = join_partitioned_first(table, key[0]);
            u32 left = table.count;
            u32 copies = 0;
            // One exit and no `continue` after the atomicCAS, as in hash_insert.
            while (left != 0) {
                const u32 seen = atomicCAS(table.slots + at, 0u, entry);
                const bool tagged = seen != 0 && join_partitioned_tagged(seen, key[0]);
                if (tagged && join_partitioned_same<WORDS>(table, seen, key)) ++copies;
                left = seen == 0 || copies > JOIN_PARTITIONED_COPIES ? 0 : left - 1;
                at = join_partitioned_next(table, at);
            }
            if (copies != 0) saw |= JOIN_PARTITIONED_REPEATED;
            if (copies > JOIN_PARTITIONED_COPIES) saw |= JOIN_PARTITIONED_TOO_MANY;
        }
    }
    return saw;
}

// The first slot from `at` on that is empty or holds the key; what it holds.
template <u32 WORDS>
WF_DEVICE u32 join_partitioned_walk(const PartitionTable& table, u32& at, const u32* key) {
    u32 slot = table.slots[at];
    while (slot != 0 && !(join_partitioned_tagged(slot, key[0]) && join_partitioned_same<WORDS>(table, slot, key))) {
        at = join_partitioned_next(table, at);
        slot = table.slots[at];
    }
    return slot;
}

// The build records of several probe records, those whose bit of `wanted` is set: number + 1, or 0.
// No key repeats. All look for their tag first and only then at keys, which lie in memory.
template <u32 COUNT, u32 BUILD, u32 PROBE, bool DENSE>
WF_DEVICE void join_partitioned_find(const PartitionTable& table, const u32 (&records)[COUNT][PROBE], u32 wanted, u32 (&found)[COUNT]) {
    if constexpr (DENSE) {
#pragma unroll
        for (u32 j = 0; j < COUNT; ++j) {
            found[j] = (wanted >> j & 1) != 0 ? table.slots[records[j][0] & (table.count - 1)] : 0;
        }
        return;
    }
    u32 at[COUNT];
#pragma unroll
    for (u32 j = 0; j < COUNT; ++j) {
        at[j] = join_partitioned_first(table, records[j][0]);
        found[j] = (wanted >> j & 1) != 0 ? table.slots[at[j]] : 0;
    }
#pragma unroll
    for (u32 j = 0; j < COUNT; ++j) {
        while (found[j] != 0 && !join_partitioned_tagged(found[j], records[j][0])) {
            at[j] = join_partitioned_next(table, at[j]);
            found[j] = table.slots[at[j]];
        }
    }
    __syncwarp();
    bool same[COUNT];
#pragma unroll
    for (u32 j = 0; j < COUNT; ++j) same[j] = found[j] == 0 || join_partitioned_same<BUILD>(table, found[j], records[j]);
#pragma unroll
    for (u32 j = 0; j < COUNT; ++j) {
        if (!same[j]) {
            at[j] = join_partitioned_next(table, at[j]);
            found[j] = join_partitioned_walk<BUILD>(table, at[j], records[j]);
        }
        found[j] &= 0xFFFFu;
    }
    __syncwarp();
}

// Of a tile of records, those that found something: where each goes, from what this returns on. The
// tile's places are taken from `cursor` together; a warp's lie together. The whole block calls,
// with a `turn` that is not that of the call before: so two barriers suffice, since nobody writes
// what the slowest still reads.
template <u32 THREADS, u32 COUNT>
WF_DEVICE u64 join_partitioned_places(const u32 (&found)[COUNT], u64* cursor, u32 turn, u32 (&rank)[COUNT]) {
    constexpr u32 WARPS = THREADS / 32;
    WF_SHARED_ARRAY(u32, counts, 2 * WARPS);
    WF_SHARED_ARRAY(u64, begins, 2);
    u32* const own = counts + (turn & 1) * WARPS;
    u32 kept = 0;
#pragma unroll
    for (u32 j = 0; j < COUNT; ++j) {
        const u32 votes = __ballot_sync(FULL_WARP, found[j] != 0);
        rank[j] = kept + u32(__popc(votes & lanes_below()));
        kept += u32(__popc(votes));
    }
    if (lane() == 0) own[warp()] = kept;
    __syncthreads();  // the warps' counts are there
    if (warp() == 0) {
        const u32 count = lane() < WARPS ? own[lane()] : 0;
        u32 sum = count;
        for (u32 step = 1; step < 32; step *= 2) {
            const u32 below = __shfl_up_sync(FULL_WARP, sum, step);
            if (lane() >= step) sum += below;
        }
        if (lane() < WARPS) own[lane()] = sum - count;
        if (lane() == 31) begins[turn & 1] = sum != 0 ? atomicAdd(cursor, u64(sum)) : 0;
    }
    __syncthreads();  // counts are starts, and the tile's begin is there
    return begins[turn & 1] + own[warp()];
}

}  // namespace wf
