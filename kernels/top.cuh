// top.cuh: the rows that can be among the k least, without sorting the others.
//
//   1. top_histogram   counts of an 11-bit digit of the keys that share a prefix (first of all
//      keys, by the highest bits)
//   2. the host finds the bin in which the k-th key lies, and refines it while too many rows are
//      left
//   3. top_select      the rows whose digits up to there are not greater, in their order
//
//   keys, k = 2    70 11 52 13 95     bins by tens  1 (11 13), 5, 7, 9     rows kept  1 3
//
// Reads the keys once for each refinement and once to select; for most keys that is twice. Where too
// many rows are equal to the k-th by the whole key, the rows before them are selected, and of those
// rows the first ones by the words that follow. Of many rows a sample comes first, and usually does:
//
//   1. top_threshold   the r-th least of 16384 sampled keys, four neighbours each, r a little more
//      than the k rows' share of them
//   2. top_append      the rows whose keys are not greater, in any order; the caller checks that
//      there are k, and not many
//
// which reads the keys once. Of what is left the same two make a few hundred rows, and where the
// key is all there is to the order
//
//   3. top_rank        gives each of those its place by counting how many come before it
//
// Of few rows, and of a million or so,
//
//   1. top_few_…       each block finds the k first of its rows, the last block those of all
//      blocks' k, and their order
//
// which leaves nothing to chance, nor to wait for.
#pragma once
#include "compact.cuh"
#include "hash.cuh"
#include "sort_key.cuh"

namespace wf {

constexpr u32 TOP_THREADS = 512;
constexpr u32 TOP_BITS = 11;
constexpr u32 TOP_BINS = 1 << TOP_BITS;

struct TopHistogram {
    SortKey key;      // rows
    u64 rows;
    u64 shift;        // lowest bit of the digit
    u64 prefix;       // counted are keys with these bits above the digit
    u64* counts;      // TOP_BINS, zero
};

WF_DEVICE void top_histogram_body(const TopHistogram& p) {
    WF_SHARED_ARRAY(u32, counts, TOP_BINS);
    for (u32 at = threadIdx.x; at < TOP_BINS; at += TOP_THREADS) counts[at] = 0;
    __syncthreads();  // the counts are zero
    for (u64 at = u64(global_thread()); at < p.rows; at += u64(global_threads())) {
        const u64 digits = sort_key(p.key, at) >> p.shift;
        if (digits >> TOP_BITS == p.prefix) atomicAdd(counts + (u32(digits) & (TOP_BINS - 1)), 1u);
    }
    __syncthreads();  // all keys of the block are counted
    for (u32 at = threadIdx.x; at < TOP_BINS; at += TOP_THREADS) {
        if (counts[at] != 0) atomicAdd(p.counts + at, u64(counts[at]));
    }
}

constexpr u32 TOP_SELECT_THREADS = 256;
constexpr u32 TOP_SELECT_ITEMS = 16;
constexpr u32 TOP_SELECT_TILE = TOP_SELECT_THREADS * TOP_SELECT_ITEMS;

struct TopSelect {
    SortKey key;      // rows
    u64 rows;
    u64 shift;
    u64 least;        // kept are rows whose key >> shift is at least this
    u64 greatest;     // and at most this
    u64* state;       // 1 + tiles, zero
    u32* out;         // as many as are kept
};

WF_DEVICE void top_select_body(const TopSelect& p) {
    constexpr u32 WARPS = TOP_SELECT_THREADS / 32;
    WF_SHARED_ARRAY(u32, starts, WARPS * TOP_SELECT_ITEMS);
    const u64 tile = compact_ticket(p.state);
    const u64 first = tile * TOP_SELECT_TILE;
    const u32 in_warp = threadIdx.x % 32;
    const u32 own = threadIdx.x / 32;
    // Item j of warp w is a run of 32 rows; runs in the order of rows are numbered j · WARPS + w.
    u32 kept = 0;
    u32 ranks[TOP_SELECT_ITEMS];
#pragma unroll
    for (u32 j = 0; j < TOP_SELECT_ITEMS; ++j) {
        const u64 at = first + j * TOP_SELECT_THREADS + threadIdx.x;
        const u64 digits = at < p.rows ? sort_key(p.key, at) >> p.shift : 0;
        const bool keep = at < p.rows && digits >= p.least && digits <= p.greatest;
        const u32 lanes = __ballot_sync(FULL_WARP, keep);
        kept |= u32(keep) << j;
        ranks[j] = __popc(lanes & ((1u << in_warp) - 1));
        if (in_warp == 0) starts[j * WARPS + own] = __popc(lanes);
    }
    __syncthreads();  // the runs' counts are there
    const u32 count = threadIdx.x < WARPS * TOP_SELECT_ITEMS ? starts[threadIdx.x] : 0;
    u32 total;
    const u32 before = block_scan_u32<TOP_SELECT_THREADS>(count, total);
    if (threadIdx.x < WARPS * TOP_SELECT_ITEMS) starts[threadIdx.x] = before;
    const u64 start = compact_tile_start(p.state + 1, tile, total);
    // The barriers of compact_tile_start separate the writes of `starts` from these reads.
#pragma unroll
    for (u32 j = 0; j < TOP_SELECT_ITEMS; ++j) {
        if ((kept >> j & 1) != 0) {
            const u64 at = first + j * TOP_SELECT_THREADS + threadIdx.x;
            p.out[start + starts[j * WARPS + own] + ranks[j]] = u32(at);
        }
    }
}

// ---- by a sample ----

constexpr u32 TOP_SAMPLE_THREADS = 1024;
constexpr u32 TOP_SAMPLE_ITEMS = 16;
constexpr u32 TOP_SAMPLES = TOP_SAMPLE_THREADS * TOP_SAMPLE_ITEMS;
constexpr u32 TOP_NEIGHBOURS = 4;

struct TopThreshold {
    SortKey key;      // rows, at least TOP_SAMPLES
    u64 rows;
    u64 rank;         // r, from 1 to TOP_SAMPLES
    u64* threshold;   // the r-th least sampled key
};

// One block. A multiprocessor fetches one sector at a time, so that samples are four neighbours
// each (0.026 ms with one each). The keys stay in registers; rounds narrow them down by a digit of
// 8 bits each, until one key is left or all bits are decided: of keys that differ that is after two
// or three.
WF_DEVICE void top_threshold_body(const TopThreshold& p) {
    WF_SHARED_ARRAY(u32, counts, 256);
    WF_SHARED(u64, prefix);
    WF_SHARED(u64, rank);
    WF_SHARED(bool, alone);
    u64 keys[TOP_SAMPLE_ITEMS];
    const u64 stretch = p.rows / TOP_SAMPLES * TOP_NEIGHBOURS;
#pragma unroll
    for (u32 i = 0; i < TOP_SAMPLE_ITEMS; ++i) {
        const u32 at = i * TOP_SAMPLE_THREADS + threadIdx.x;
        const u64 four = at / TOP_NEIGHBOURS;
        const u64 begin = mul_high(hash_mix(four), stretch - (TOP_NEIGHBOURS - 1)) / TOP_NEIGHBOURS * TOP_NEIGHBOURS;
        keys[i] = sort_key(p.key, four * stretch + begin + at % TOP_NEIGHBOURS);
    }
    if (threadIdx.x == 0) {
        prefix = 0;
        rank = p.rank;
        alone = false;
    }
    for (u32 round = 0; round < 8; ++round) {
        const u32 shift = 56 - 8 * round;
        if (threadIdx.x < 256) counts[threadIdx.x] = 0;
        __syncthreads();  // the counts are zero, prefix and rank are there
        const u64 above = prefix;
        const u32 wanted = u32(rank);
#pragma unroll
        for (u32 i = 0; i < TOP_SAMPLE_ITEMS; ++i) {
            if (round == 0 || keys[i] >> shift >> 8 == above) atomicAdd(counts + u32(keys[i] >> shift & 255), 1u);
        }
        __syncthreads();  // the digit is counted
        const u32 count = threadIdx.x < 256 ? counts[threadIdx.x] : 0;
        u32 total;
        const u32 before = block_scan_u32<TOP_SAMPLE_THREADS>(count, total);
        if (before < wanted && wanted <= before + count) {
            prefix = above << 8 | threadIdx.x;
            rank = wanted - before;
            alone = count == 1;
        }
        __syncthreads();  // the digit is found
        if (alone) {
            const u64 decided = prefix;
#pragma unroll
            for (u32 i = 0; i < TOP_SAMPLE_ITEMS; ++i) {
                if (keys[i] >> shift == decided) *p.threshold = keys[i];
            }
            return;
        }
    }
    if (threadIdx.x == 0) *p.threshold = prefix;
}

constexpr u32 TOP_APPEND_THREADS = 256;
constexpr u32 TOP_APPEND_ITEMS = 8;
constexpr u32 TOP_APPEND_HELD = 512;  // rows that a block holds back

struct TopAppend {
    SortKey key;           // rows
    u64 rows;
    const u64* threshold;
    u64 capacity;
    u64* kept;             // how many keys are not greater; zero before
    u32* out;              // the first `capacity` of them
    u64* keys;             // and their keys, or null
};

// A block's rows are counted in shared memory, and told to the others once: all blocks' atomics
// meet at the same word.
WF_DEVICE void top_append_body(const TopAppend& p) {
    constexpr u64 TILE = TOP_APPEND_THREADS * TOP_APPEND_ITEMS;
    WF_SHARED_ARRAY(u64, held, TOP_APPEND_HELD);
    WF_SHARED_ARRAY(u32, rows, TOP_APPEND_HELD);
    WF_SHARED(u32, count);
    WF_SHARED(u64, begin);
    if (threadIdx.x == 0) count = 0;
    __syncthreads();  // the count is zero
    const u64 threshold = *p.threshold;
    const auto put = [&](u64 at, u32 row, u64 key) {
        if (at >= p.capacity) return;
        p.out[at] = row;
        if (p.keys != nullptr) p.keys[at] = key;
    };
    for (u64 first = blockIdx.x * TILE; first < p.rows; first += gridDim.x * TILE) {
        u64 keys[TOP_APPEND_ITEMS];
        if (first + TILE <= p.rows) {
            sort_keys<true>(p.key, first + threadIdx.x, TOP_APPEND_THREADS, p.rows, keys);
        } else {
            sort_keys<false>(p.key, first + threadIdx.x, TOP_APPEND_THREADS, p.rows, keys);
        }
#pragma unroll
        for (u32 i = 0; i < TOP_APPEND_ITEMS; ++i) {
            const u64 row = first + i * TOP_APPEND_THREADS + threadIdx.x;
            if (row < p.rows && keys[i] <= threshold) {
                const u32 at = atomicAdd(&count, 1u);
                if (at < TOP_APPEND_HELD) {
                    held[at] = keys[i];
                    rows[at] = u32(row);
                } else {
                    put(atomicAdd(p.kept, u64(1)), u32(row), keys[i]);
                }
            }
        }
    }
    __syncthreads();  // all rows of the block are there
    const u32 own = minimum(count, TOP_APPEND_HELD);
    if (threadIdx.x == 0 && own != 0) begin = atomicAdd(p.kept, u64(own));
    __syncthreads();  // their place is known
    for (u32 at = threadIdx.x; at < own; at += TOP_APPEND_THREADS) put(begin + at, rows[at], held[at]);
}

// ---- of few rows, or few for each multiprocessor ----

// A million keys, k = 100: 0.0185 ms; blocks of 768 threads 0.0278 where 1024 took 0.0277, of 512
// hold too few (100,000 keys: 0.0192, 0.0195, 0.0201). It was 0.0277 with keys loaded one after the
// other, and again for each digit (0.0247 without), and words compared by a thread each instead of
// eight, in branches. By two kernels, the second of which takes what is not after the last of 132
// groups' first rows (692 candidates), it was 0.0231 while a thread compared each, and 2 ms where
// the first rows are all in one group. 59 registers, 9.3 KB of shared memory, no spills.
constexpr u32 TOP_FEW_THREADS = 1024;
constexpr u32 TOP_FEW_ITEMS = 16;
constexpr u32 TOP_FEW_TILE = TOP_FEW_THREADS * TOP_FEW_ITEMS;
constexpr u32 TOP_FEW_MOST = 512;

struct TopFew {
    SortKey key;     // rows
    u64 rows;
    u64 each;        // rows of a block, from k to TOP_FEW_TILE; the last block may have fewer, but k at least
    u64 k;           // from 1 to TOP_FEW_MOST, and gridDim.x · k is at most TOP_FEW_TILE
    u64* keys;       // gridDim.x · k
    u32* numbers;    // the same
    u64* ticket;     // zero
    u32* out;        // k: rows' numbers by key, of equal keys by number; or null
    void* values;    // k: what the keys stand for, of as many bytes as in the column; or null
};

// The block's `wanted`-th least word, for every thread, of those that `there` has a bit for; a word
// is the high half of what is given. Rounds narrow them down by a digit of 8 bits each, until so
// few are left that they are compared with each other, or all bits are decided.
template <u32 ITEMS>
WF_DEVICE u32 top_least(const u64 (&words)[ITEMS], u32 there, u32 wanted) {
    constexpr u32 COMPARED = TOP_FEW_THREADS / 8;
    WF_SHARED_ARRAY(u32, counts, 256);
    WF_SHARED_ARRAY(u32, left, COMPARED);
    WF_SHARED(u32, found);
    WF_SHARED(u32, rest);
    WF_SHARED(u32, many);
    WF_SHARED(u32, taken);
    u32 like = 0;
#pragma unroll 1
    for (u32 round = 0; round < 4; ++round) {
        const u32 shift = 24 - 8 * round;
        if (threadIdx.x < 256) counts[threadIdx.x] = 0;
        __syncthreads();  // the counts are zero, what the last round found was read
#pragma unroll
        for (u32 i = 0; i < ITEMS; ++i) {
            const u32 word = u32(words[i] >> 32);
            const u32 digit = (word ^ like) >> shift;
            if ((there >> i & 1) != 0 && (round == 0 || digit < 256)) atomicAdd(counts + (word >> shift & 255), 1u);
        }
        __syncthreads();  // the digit is counted
        if (threadIdx.x < 32) {
            // Eight bins a lane.
            u32 own = 0;
#pragma unroll
            for (u32 i = 0; i < 8; ++i) own += counts[threadIdx.x * 8 + i];
            u32 through = own;
            for (u32 step = 1; step < 32; step *= 2) {
                const u32 below = __shfl_up_sync(FULL_WARP, through, step);
                if (threadIdx.x >= step) through += below;
            }
            u32 before = through - own;
            if (before < wanted && wanted <= through) {
                u32 bin = threadIdx.x * 8;
                while (before + counts[bin] < wanted) before += counts[bin++];
                found = like | bin << shift;
                rest = wanted - before;
                many = counts[bin];
                taken = 0;
            }
        }
        __syncthreads();  // the digit is found
        like = found;
        wanted = rest;
        if (many <= COMPARED && shift != 0) {
#pragma unroll
            for (u32 i = 0; i < ITEMS; ++i) {
                const u32 word = u32(words[i] >> 32);
                if ((there >> i & 1) != 0 && (word ^ like) >> shift == 0) left[atomicAdd(&taken, 1u)] = word;
            }
            __syncthreads();  // those that are left are there
            // Eight lanes a word.
            const u32 at = threadIdx.x / 8;
            const u32 own = left[at];
            u32 before = 0;
#pragma unroll 4
            for (u32 other = threadIdx.x % 8; other < many; other += 8) {
                const u32 its = left[other];
                before += u32(its < own) | (u32(its == own) & u32(other < at));
            }
            for (u32 step = 4; step != 0; step /= 2) before += __shfl_xor_sync(FULL_WARP, before, int(step));
            if (at < many && before == wanted - 1) found = own;
            __syncthreads();  // the word is there
            return found;
        }
    }
    return like;
}

// What a block looks at first: rows of its own.
struct TopOwn {
    const TopFew& p;
    u64 begin;
    u32 count;

    // A thread's keys, one of every TOP_FEW_THREADS. Loads first, so that they overlap.
    template <u32 ITEMS>
    WF_DEVICE void load(u64 (&to)[ITEMS]) const {
        sort_keys<false>(p.key, begin + threadIdx.x, u64(TOP_FEW_THREADS), begin + count, to);
    }
    WF_DEVICE u64 key_of(u32 at) const { return sort_key(p.key, begin + at); }
    WF_DEVICE u32 number_of(u32 at) const { return u32(begin) + at; }
};

// What the last block looks at then: what all blocks found.
struct TopFound {
    const TopFew& p;
    u32 count;

    template <u32 ITEMS>
    WF_DEVICE void load(u64 (&to)[ITEMS]) const {
#pragma unroll
        for (u32 i = 0; i < ITEMS; ++i) {
            const u32 at = i * TOP_FEW_THREADS + threadIdx.x;
            to[i] = at < count ? p.keys[at] : 0;
        }
    }
    WF_DEVICE u64 key_of(u32 at) const { return p.keys[at]; }
    WF_DEVICE u32 number_of(u32 at) const { return p.numbers[at]; }
};

// Which of a part are its `k` first, of equal keys those of the least numbers: a bit for each of a
// thread's. Words of 32 bits decide: from the highest bit on in which the part's keys differ, then
// what is left of them, then the numbers. Counted from the highest bit of all, digits of what is
// left to a top 100 would be equal, and equal ones wait for each other.
template <u32 ITEMS, typename Part>
WF_DEVICE u32 top_first(const Part& part, u32 k) {
    WF_SHARED(u32, differing);
    WF_SHARED(u32, counted);
    if (threadIdx.x == 0) differing = 1;
    __syncthreads();  // it is at least 1
    u64 words[ITEMS];
    part.load(words);
    u32 there = 0;
    u64 difference = 0;
    const u64 any = part.key_of(0);
#pragma unroll
    for (u32 i = 0; i < ITEMS; ++i) {
        if (i * TOP_FEW_THREADS + threadIdx.x < part.count) {
            difference |= words[i] ^ any;
            there |= 1u << i;
        }
    }
    u32 bits = 64 - u32(leading_zeros(difference));
    for (u32 step = 16; step != 0; step /= 2) bits = maximum(bits, __shfl_xor_sync(FULL_WARP, bits, step));
    if (lane() == 0) atomicMax(&differing, bits);
    __syncthreads();  // all bits are known
    const u32 align = 64 - differing;
#pragma unroll
    for (u32 i = 0; i < ITEMS; ++i) words[i] <<= align;

    u32 chosen = 0;
    u32 wanted = k;
#pragma unroll 1
    for (u32 stage = 0;; ++stage) {
        const u32 least = top_least(words, there, wanted);
        u32 less = 0;
        u32 equal = 0;
#pragma unroll
        for (u32 i = 0; i < ITEMS; ++i) {
            const u32 word = u32(words[i] >> 32);
            less |= u32(word < least) << i;
            equal |= u32(word == least) << i;
        }
        less &= there;
        equal &= there;
        if (threadIdx.x == 0) counted = 0;
        __syncthreads();  // nothing is counted yet
        if ((less | equal) != 0) atomicAdd(&counted, u32(__popc(less)) | u32(__popc(equal)) << 16);
        __syncthreads();  // all are counted
        const u32 total = counted;
        chosen |= less;
        wanted -= total & 0xFFFF;
        if (total >> 16 == wanted) return chosen | equal;
        // More are equal than there is room for.
        there = equal;
#pragma unroll
        for (u32 i = 0; i < ITEMS; ++i) {
            if (stage == 0) {
                words[i] <<= 32;
            } else if ((there >> i & 1) != 0) {
                words[i] = u64(part.number_of(i * TOP_FEW_THREADS + threadIdx.x)) << 32;
            }
        }
    }
}

// Puts the `k` first of a part, in any order, to `keys` and `numbers`.
template <u32 ITEMS, typename Part>
WF_DEVICE void top_take(const Part& part, u32 k, u64* keys, u32* numbers) {
    WF_SHARED(u32, taken);
    u32 chosen = top_first<ITEMS>(part, k);
    if (threadIdx.x == 0) taken = 0;
    __syncthreads();  // no place is taken
    u32 place = chosen != 0 ? atomicAdd(&taken, u32(__popc(chosen))) : 0;
    for (; chosen != 0; chosen &= chosen - 1) {
        const u32 at = (31 - u32(leading_zeros(chosen & (0u - chosen)))) * TOP_FEW_THREADS + threadIdx.x;
        keys[place] = part.key_of(at);
        numbers[place++] = part.number_of(at);
    }
}

// A thread of a block has ITEMS rows at most.
template <u32 ITEMS>
WF_DEVICE void top_few_body(const TopFew& p) {
    WF_SHARED_ARRAY(u64, first_keys, TOP_FEW_MOST);
    WF_SHARED_ARRAY(u32, first_numbers, TOP_FEW_MOST);
    const u64 begin = blockIdx.x * p.each;
    const TopOwn own = {p, begin, u32(minimum(p.each, p.rows - begin))};
    top_take<ITEMS>(own, u32(p.k), p.keys + blockIdx.x * p.k, p.numbers + blockIdx.x * p.k);
    if (!last_block(p.ticket)) return;
    top_take<TOP_FEW_ITEMS>(TopFound{p, u32(gridDim.x * p.k)}, u32(p.k), first_keys, first_numbers);
    __syncthreads();  // the first are there
    // As many lanes a row as there are.
    const u32 lanes = p.k <= TOP_FEW_THREADS / 8 ? 8 : TOP_FEW_THREADS / TOP_FEW_MOST;
    const u32 at = threadIdx.x / lanes;
    const u64 key = first_keys[at];
    const u32 number = first_numbers[at];
    u32 before = 0;
#pragma unroll 4
    for (u32 other = threadIdx.x % lanes; other < p.k; other += lanes) {
        const u64 its = first_keys[other];
        before += u32(its < key) | (u32(its == key) & u32(first_numbers[other] < number));
    }
    for (u32 step = lanes / 2; step != 0; step /= 2) before += __shfl_xor_sync(FULL_WARP, before, int(step));
    if (at < p.k && threadIdx.x % lanes == 0) {
        if (p.out != nullptr) p.out[before] = number;
        if (p.values != nullptr) {
            const u64 raw = sort_key_raw(p.key, key);
            if (sort_key_is_half(p.key)) {
                static_cast<u32*>(p.values)[before] = u32(raw);
            } else {
                static_cast<u64*>(p.values)[before] = raw;
            }
        }
    }
}

// ---- the order of few ----

constexpr u32 TOP_RANK_THREADS = 256;
constexpr u32 TOP_RANK_TILE = 2048;

struct TopRank {
    const u64* keys;     // candidates
    const u32* numbers;  // candidates: their rows' numbers; no two are the same
    const u32* listed;   // count: those that take part; null: the first `count`
    u64 count;
    u64 k;               // at most count
    u32* out;            // k: rows' numbers by key, of equal keys by number
};

WF_DEVICE u64 top_listed(const TopRank& p, u64 at) { return p.listed != nullptr ? p.listed[at] : at; }

// Every warp places one candidate; its lanes share the others, which lie in shared memory (0.014 ms
// when each warp read them for itself).
WF_DEVICE void top_rank_body(const TopRank& p) {
    WF_SHARED_ARRAY(u64, keys, TOP_RANK_TILE);
    WF_SHARED_ARRAY(u32, numbers, TOP_RANK_TILE);
    const u64 own = u64(global_thread()) / 32;
    const u64 my_place = own < p.count ? top_listed(p, own) : 0;
    const u64 key = p.keys[my_place];
    const u32 number = p.numbers[my_place];
    u32 before = 0;
    for (u64 first = 0; first < p.count; first += TOP_RANK_TILE) {
        const u32 there = u32(minimum(u64(TOP_RANK_TILE), p.count - first));
#pragma unroll
        for (u32 j = 0; j < TOP_RANK_TILE / TOP_RANK_THREADS; ++j) {
            const u32 at = j * TOP_RANK_THREADS + threadIdx.x;
            if (at < there) {
                const u64 place = top_listed(p, first + at);
                keys[at] = p.keys[place];
                numbers[at] = p.numbers[place];
            }
        }
        __syncthreads();  // the tile is there
#pragma unroll 8
        for (u32 at = lane(); at < there; at += 32) {
            before += keys[at] < key || (keys[at] == key && numbers[at] < number) ? 1 : 0;
        }
        __syncthreads();  // all have looked at the tile
    }
    for (u32 step = 16; step != 0; step /= 2) before += __shfl_xor_sync(FULL_WARP, before, step);
    if (own < p.count && lane() == 0 && before < p.k) p.out[before] = number;
}

}  // namespace wf

#define WF_TOP_ENTRIES                                                                                      \
    WF_KERNEL_BOUNDS(wf::TOP_THREADS, 1, top_histogram, wf::TopHistogram) { wf::top_histogram_body(p); }    \
    WF_KERNEL_BOUNDS(wf::TOP_SELECT_THREADS, 1, top_select, wf::TopSelect) { wf::top_select_body(p); }

#define WF_TOP_SAMPLE_ENTRIES                                                                                   \
    WF_KERNEL_BOUNDS(wf::TOP_SAMPLE_THREADS, 1, top_threshold, wf::TopThreshold) { wf::top_threshold_body(p); } \
    WF_KERNEL_BOUNDS(wf::TOP_APPEND_THREADS, 1, top_append, wf::TopAppend) { wf::top_append_body(p); }          \
    WF_KERNEL_BOUNDS(wf::TOP_RANK_THREADS, 1, top_rank, wf::TopRank) { wf::top_rank_body(p); }

#define WF_TOP_FEW_ENTRY(ITEMS) \
    WF_KERNEL_BOUNDS(wf::TOP_FEW_THREADS, 1, top_few_##ITEMS, wf::TopFew) { wf::top_few_body<ITEMS>(p); }
