// window.cuh: rows sorted by (partition, order): where partitions and peers begin, running
// reductions within partitions, reductions over frames, and frames bounded by values.
//
//   partition     a a a a b b      partition_of  0 0 0 0 1 1      partitions  0 4 6
//   order key     1 2 2 5 1 1      peers_of      0 1 1 2 3 3      peers       0 1 3 4 6
//   value         3 1 4 1 5 9      running sum   3 4 8 9 5 14     backward    9 6 5 1 14 9
//   frames        low 0 0 1 2 4 4    high 2 3 4 4 6 6             sum         4 8 6 5 14 14
//
// Bounds: one pass over the sort's words, the places of beginnings by the decoupled look-back of
// compact.cuh.
//
// Running reductions read values twice and write once:
//   1. window_run_tiles: what is open at each tile's end
//   2. window_run_carries: what precedes each tile, by one block
//   3. window_run_write: each tile again, behind what precedes it
//
// Reductions over frames go up a tree whose nodes join 16 each: a frame is joined of the largest
// nodes that lie in it, at most 30 of a level.
//
// Bounds by value: a binary search for each row among the keys of its partition.
//
// What is combined with what depends on the rows' positions alone: same input, same bits.
#pragma once
#include "compact.cuh"
#include "decimal.cuh"
#include "keys.cuh"
#include "reduce.cuh"

namespace wf {

constexpr u32 WINDOW_THREADS = 256;
constexpr u32 WINDOW_ITEMS = 4;
constexpr u32 WINDOW_TILE = WINDOW_THREADS * WINDOW_ITEMS;

// ---- bounds ----

struct WindowBounds {
    const u64* words;   // of each word, first the most significant: the address of its u64 × rows, and how many of its low
                        // bits are not of the partition's key
    u64 count_of_words;
    const u32* order;   // rows, or null: the rows as they come
    u64 rows;
    u64 apart;          // not 0: no two rows are peers, whatever the words say
    u32* partition_of;  // rows
    u32* partitions;    // rows + 1, as many as there are partitions, and one more
    u32* peers_of;      // rows
    u32* peers;         // rows + 1
    u64* state;         // 1 + 2 × tiles, zero
};

// Numbers the thread's positions by the beginnings among them and before, and lists the beginnings.
WF_DEVICE void window_number(u32 begins, u64 before, u64 first, u64 rows, u32* number_of, u32* offsets) {
#pragma unroll
    for (u32 j = 0; j < WINDOW_ITEMS; ++j) {
        if (first + j >= rows) break;
        if ((begins >> j & 1) != 0) offsets[before++] = u32(first + j);
        number_of[first + j] = u32(before - 1);
    }
}

WF_DEVICE void window_bounds_body(const WindowBounds& p) {
    const u64 tiles = gridDim.x;
    const u64 tile = compact_ticket(p.state);
    const u64 first = tile * WINDOW_TILE + threadIdx.x * WINDOW_ITEMS;
    // Rows at the thread's positions, and at the position before them. Beyond the last row every
    // position repeats that row, and no word differs.
    const auto row_before = [&p](u64 position) {
        const u64 at = minimum(position, p.rows) - 1;
        return p.order != nullptr ? p.order[at] : u32(at);
    };
    u32 at_row[WINDOW_ITEMS];
#pragma unroll
    for (u32 j = 0; j < WINDOW_ITEMS; ++j) at_row[j] = row_before(first + j + 1);
    // Other lanes are told by their neighbours: looking keys up costs more than all else here.
    const bool looks_back = threadIdx.x % 32 == 0 && first > 0;
    const u32 previous = looks_back ? row_before(first) : at_row[0];
    u32 partitions = first == 0 ? 1 : 0;
    u32 peers = partitions;
    for (u64 word = 0; word < p.count_of_words; ++word) {
        const u64* keys = reinterpret_cast<const u64*>(p.words[2 * word]);
        const u64 below = p.words[2 * word + 1];
        u64 key[WINDOW_ITEMS];
#pragma unroll
        for (u32 j = 0; j < WINDOW_ITEMS; ++j) key[j] = keys[at_row[j]];
        u64 before = __shfl_up_sync(FULL_WARP, key[WINDOW_ITEMS - 1], 1);
        if (threadIdx.x % 32 == 0) before = looks_back ? keys[previous] : key[0];
#pragma unroll
        for (u32 j = 0; j < WINDOW_ITEMS; ++j) {
            if (key[j] != before) peers |= 1u << j;
            if (below < 64 && (key[j] ^ before) >> below != 0) partitions |= 1u << j;
            before = key[j];
        }
    }
    if (p.apart != 0) {
#pragma unroll
        for (u32 j = 0; j < WINDOW_ITEMS; ++j) {
            if (first + j < p.rows) peers |= 1u << j;
        }
    }
    u32 count_of_partitions, count_of_peers;
    const u32 partitions_before = block_scan_u32<WINDOW_THREADS>(__popc(partitions), count_of_partitions);
    const u32 peers_before = block_scan_u32<WINDOW_THREADS>(__popc(peers), count_of_peers);
    const u64 first_partition = compact_tile_start(p.state + 1, tile, count_of_partitions);
    const u64 first_peers = compact_tile_start(p.state + 1 + tiles, tile, count_of_peers);
    window_number(partitions, first_partition + partitions_before, first, p.rows, p.partition_of, p.partitions);
    window_number(peers, first_peers + peers_before, first, p.rows, p.peers_of, p.peers);
    if (threadIdx.x == 0 && tile == tiles - 1) {
        p.partitions[first_partition + count_of_partitions] = u32(p.rows);
        p.peers[first_peers + count_of_peers] = u32(p.rows);
    }
}

// ---- reductions beside those of reduce.cuh ----

struct WindowMoments {
    f64 count;
    f64 mean;
    f64 squares;  // of deviations from the mean
};

// Joins as in Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing
// sample variances", 1979.
struct ReduceMoments {
    typedef f64 Value;
    typedef WindowMoments Sum;
    typedef f64 Result;
    static WF_DEVICE Sum none() { return Sum{0, 0, 0}; }
    static WF_DEVICE Sum enter(Value value) { return Sum{1, value, 0}; }
    static WF_DEVICE Sum join(Sum a, Sum b) {
        if (a.count == 0) return b;
        if (b.count == 0) return a;
        const f64 count = a.count + b.count;
        const f64 apart = b.mean - a.mean;
        const f64 share = b.count / count;
        return Sum{count, a.mean + apart * share, a.squares + b.squares + apart * apart * a.count * share};
    }
    static WF_DEVICE Result leave(Sum sum) { return sum.squares; }
};

struct WindowPoint {
    f64 x;
    f64 y;
};

struct WindowProducts {
    f64 count;
    f64 mean_x;
    f64 mean_y;
    f64 xx;  // sums of products of deviations from the means
    f64 xy;
    f64 yy;
};

// Reduces points to sums of products of deviations from their means. Joins as `ReduceMoments` does.
struct ReduceProducts {
    typedef WindowPoint Value;
    typedef WindowProducts Sum;
    typedef WindowProducts Result;
    static WF_DEVICE Sum none() { return Sum{0, 0, 0, 0, 0, 0}; }
    // NaN and infinities deviate by NaN, even alone, and whatever is joined with what.
    static WF_DEVICE Sum enter(Value value) {
        const f64 x = value.x - value.x, y = value.y - value.y;
        return Sum{1, value.x, value.y, x, x + y, y};
    }
    static WF_DEVICE Sum join(Sum a, Sum b) {
        if (a.count == 0) return b;
        if (b.count == 0) return a;
        const f64 count = a.count + b.count;
        const f64 x = b.mean_x - a.mean_x;
        const f64 y = b.mean_y - a.mean_y;
        const f64 share = b.count / count;
        const f64 weight = a.count * share;
        return Sum{count,
                   a.mean_x + x * share,
                   a.mean_y + y * share,
                   a.xx + b.xx + x * x * weight,
                   a.xy + b.xy + x * y * weight,
                   a.yy + b.yy + y * y * weight};
    }
    static WF_DEVICE Result leave(Sum sum) { return sum; }
};

// ---- running reductions ----

struct WindowRun {
    const void* values;       // rows of Value in the order; null for counts
    const u8* valid;          // rows, or null
    const u32* partition_of;  // rows
    u64 rows;
    u64 tiles;
    u64 backward;             // not 0: from each partition's last row to its first
    void* carries;            // tiles of Sum: what is open at each tile's end, then what precedes each tile
    u32* begun;               // tiles: whether a partition begins in the tile
    void* results;            // rows of Result
};

// Shuffles a type of any number of words.
template <typename T>
WF_DEVICE T window_shuffle_up(T value, u32 by) {
    struct Words {
        u64 word[sizeof(T) / 8];
    };
    Words words = bit_cast<Words>(value);
#pragma unroll
    for (u32 i = 0; i < sizeof(T) / 8; ++i) words.word[i] = __shfl_up_sync(FULL_WARP, words.word[i], by);
    return bit_cast<T>(words);
}

// What is open at the end of some rows, and whether a partition begins among them.
template <typename Op>
struct WindowOpen {
    typename Op::Sum sum;
    bool begun;

    static WF_DEVICE WindowOpen none() { return WindowOpen{Op::none(), false}; }
    // Of rows, and of those that follow them.
    static WF_DEVICE WindowOpen join(WindowOpen a, WindowOpen b) {
        return b.begun ? b : WindowOpen{Op::join(a.sum, b.sum), a.begun};
    }
};

// What is open before each thread's rows; `total` is what is open at the end of the block's. The
// whole block calls it.
template <typename Op>
WF_DEVICE WindowOpen<Op> window_before(WindowOpen<Op> mine, WindowOpen<Op>& total) {
    typedef WindowOpen<Op> Open;
    constexpr u32 WARPS = WINDOW_THREADS / 32;
    WF_SHARED_ARRAY(typename Op::Sum, sums, WARPS);
    WF_SHARED_ARRAY(u32, begun, WARPS);
    Open inclusive = mine;
    for (u32 step = 1; step < 32; step *= 2) {
        const Open below = {window_shuffle_up(inclusive.sum, step), shuffle_up(FULL_WARP, inclusive.begun, step)};
        if (lane() >= step) inclusive = Open::join(below, inclusive);
    }
    Open before = {window_shuffle_up(inclusive.sum, 1), shuffle_up(FULL_WARP, inclusive.begun, 1u)};
    if (lane() == 0) before = Open::none();
    if (lane() == 31) {
        sums[warp()] = inclusive.sum;
        begun[warp()] = inclusive.begun ? 1 : 0;
    }
    __syncthreads();  // the warps' ends are there
    Open warps = Open::none();
    total = Open::none();
    for (u32 w = 0; w < WARPS; ++w) {
        const Open end = {sums[w], begun[w] != 0};
        if (w < warp()) warps = Open::join(warps, end);
        total = Open::join(total, end);
    }
    __syncthreads();  // all have read them before the next call
    return Open::join(warps, before);
}

// One word of padding for each thread keeps the contiguous and the per-thread access free of bank
// conflicts.
WF_DEVICE u32 window_padded(u32 at) { return at + at / WINDOW_ITEMS; }

template <typename Op, bool WRITE>
__device__ void window_run_body(const WindowRun& p) {
    typedef typename Op::Sum Sum;
    typedef WindowOpen<Op> Open;
    WF_SHARED_ARRAY(Sum, staged, WINDOW_TILE + WINDOW_THREADS);
    WF_SHARED_ARRAY(u32, partition, WINDOW_TILE + 1);  // slot 0: of the row before the tile
    const typename Op::Value* values = static_cast<const typename Op::Value*>(p.values);
    const u64 tile = blockIdx.x;
    const u64 first = tile * WINDOW_TILE;
    const u32 me = threadIdx.x;

#pragma unroll
    for (u32 j = 0; j < WINDOW_ITEMS; ++j) {
        const u32 local = me + j * WINDOW_THREADS;
        Sum sum = Op::none();
        u32 number = U32_MAX;
        if (first + local < p.rows) {
            const u64 at = p.backward != 0 ? p.rows - 1 - (first + local) : first + local;
            number = p.partition_of[at];
            if (p.valid == nullptr || p.valid[at] != 0) {
                sum = Op::enter(values != nullptr ? values[at] : typename Op::Value());
            }
        }
        staged[window_padded(local)] = sum;
        partition[local + 1] = number;
    }
    if (me == 0) {
        partition[0] = first == 0 ? U32_MAX : p.partition_of[p.backward != 0 ? p.rows - first : first - 1];
    }
    __syncthreads();  // the tile is staged

    Sum sums[WINDOW_ITEMS];
    u32 begins = 0;
    Open open = Open::none();
#pragma unroll
    for (u32 j = 0; j < WINDOW_ITEMS; ++j) {
        const u32 local = me * WINDOW_ITEMS + j;
        const bool begin = partition[local + 1] != partition[local];
        if (begin) begins |= 1u << j;
        open = Open::join(open, Open{staged[window_padded(local)], begin});
        sums[j] = open.sum;
    }
    Open total;
    const Open before = window_before<Op>(open, total);
    Sum* carries = static_cast<Sum*>(p.carries);
    if (!WRITE) {
        if (me == 0) {
            carries[tile] = total.sum;
            p.begun[tile] = total.begun ? 1 : 0;
        }
        return;
    }
    const Sum carry = before.begun ? before.sum : Op::join(carries[tile], before.sum);
#pragma unroll
    for (u32 j = 0; j < WINDOW_ITEMS; ++j) {
        if ((begins & ((2u << j) - 1)) == 0) sums[j] = Op::join(carry, sums[j]);
        // Only this thread has read the slot, before the barriers of window_before.
        staged[window_padded(me * WINDOW_ITEMS + j)] = sums[j];
    }
    __syncthreads();  // the results are staged
    typename Op::Result* results = static_cast<typename Op::Result*>(p.results);
#pragma unroll
    for (u32 j = 0; j < WINDOW_ITEMS; ++j) {
        const u32 local = me + j * WINDOW_THREADS;
        if (first + local < p.rows) {
            const u64 at = p.backward != 0 ? p.rows - 1 - (first + local) : first + local;
            results[at] = Op::leave(staged[window_padded(local)]);
        }
    }
}

// One block. Each thread takes the tiles next to each other.
template <typename Op>
__device__ void window_carries_body(const WindowRun& p) {
    typedef WindowOpen<Op> Open;
    typename Op::Sum* carries = static_cast<typename Op::Sum*>(p.carries);
    Open base = Open::none();
    for (u64 chunk = 0; chunk < p.tiles; chunk += WINDOW_TILE) {
        const u64 first = chunk + threadIdx.x * WINDOW_ITEMS;
        Open ends[WINDOW_ITEMS];
        Open mine = Open::none();
#pragma unroll
        for (u32 j = 0; j < WINDOW_ITEMS; ++j) {
            ends[j] = first + j < p.tiles ? Open{carries[first + j], p.begun[first + j] != 0} : Open::none();
            mine = Open::join(mine, ends[j]);
        }
        Open total;
        Open before = Open::join(base, window_before<Op>(mine, total));
#pragma unroll
        for (u32 j = 0; j < WINDOW_ITEMS; ++j) {
            if (first + j < p.tiles) carries[first + j] = before.sum;
            before = Open::join(before, ends[j]);
        }
        base = Open::join(base, total);
    }
}

// ---- reductions over frames ----

constexpr u64 WINDOW_FAN = 16;

struct WindowTree {
    const void* values;  // rows of Value; null for counts
    const u8* valid;     // rows, or null
    u64 rows;
    void* nodes;         // Sum: level after level, the lowest first
    u64 below;           // where the level below begins in the nodes
    u64 count_below;     // its nodes, or the rows
    u64 level;           // where this level begins
    u64 count;           // its nodes
    const u32* low;      // rows: each row's frame
    const u32* high;
    void* results;       // rows of Result; undefined where the frame is empty
};

template <typename Op>
WF_DEVICE typename Op::Sum window_leaf(const WindowTree& p, u64 at) {
    const typename Op::Value* values = static_cast<const typename Op::Value*>(p.values);
    if (p.valid != nullptr && p.valid[at] == 0) return Op::none();
    return Op::enter(values != nullptr ? values[at] : typename Op::Value());
}

template <typename Op, bool LEAVES>
__device__ void window_level_body(const WindowTree& p) {
    typedef typename Op::Sum Sum;
    Sum* nodes = static_cast<Sum*>(p.nodes);
    const u64 node = u64(global_thread());
    if (node >= p.count) return;
    const u64 end = minimum((node + 1) * WINDOW_FAN, p.count_below);
    Sum sum = Op::none();
    for (u64 at = node * WINDOW_FAN; at < end; ++at) {
        sum = Op::join(sum, LEAVES ? window_leaf<Op>(p, at) : nodes[p.below + at]);
    }
    nodes[p.level + node] = sum;
}

template <typename Op>
__device__ void window_frames_body(const WindowTree& p) {
    typedef typename Op::Sum Sum;
    const Sum* nodes = static_cast<const Sum*>(p.nodes);
    const u64 row = u64(global_thread());
    if (row >= p.rows) return;
    u64 low = p.low[row], high = p.high[row];
    Sum left = Op::none(), right = Op::none();
    for (; low < high && low % WINDOW_FAN != 0; ++low) left = Op::join(left, window_leaf<Op>(p, low));
    for (; low < high && high % WINDOW_FAN != 0; --high) right = Op::join(window_leaf<Op>(p, high - 1), right);
    u64 level = 0, count = p.rows;
    while (low < high) {
        low /= WINDOW_FAN;
        high /= WINDOW_FAN;
        count = (count + WINDOW_FAN - 1) / WINDOW_FAN;
        for (; low < high && low % WINDOW_FAN != 0; ++low) left = Op::join(left, nodes[level + low]);
        for (; low < high && high % WINDOW_FAN != 0; --high) right = Op::join(nodes[level + high - 1], right);
        level += count;
    }
    static_cast<typename Op::Result*>(p.results)[row] = Op::leave(Op::join(left, right));
}

// ---- frames bounded by values ----

constexpr u64 WINDOW_START = 1;        // the bound is a frame's first row, else the row after its last
constexpr u64 WINDOW_PRECEDING = 2;    // the bound lies before the row's value, else after it
constexpr u64 WINDOW_DESCENDING = 4;
constexpr u64 WINDOW_NULLS_FIRST = 8;

struct WindowRange {
    const void* keys;         // rows, in the order
    const u8* valid;          // rows, or null
    const u32* partition_of;  // rows
    const u32* partitions;
    const u32* peers_of;      // rows
    const u32* peers;
    u64 rows;
    u64 flags;
    const void* targets;      // rows: the values at the bounds; or null: they are found by the step
    u64 step_low;             // how far the bound is: words of an i128, or the bits of a float of the keys' type
    u64 step_high;
    u64 least_low;            // what integer keys can be
    u64 least_high;
    u64 greatest_low;
    u64 greatest_high;
    u32* out;                 // rows
};

// The value at a bound; false where it is beyond what the type holds.
template <typename T>
WF_DEVICE bool window_target(const WindowRange& p, T value, bool add, T& target) {
    const i128 step = i128(make_u128(p.step_high, p.step_low));
    i128 sum;
    const bool overflow = add ? add_overflows(i128(value), step, &sum) : sub_overflows(i128(value), step, &sum);
    if (overflow || sum < i128(make_u128(p.least_high, p.least_low)) ||
        sum > i128(make_u128(p.greatest_high, p.greatest_low))) {
        return false;
    }
    target = T(sum);
    return true;
}
// NaN stays what it is: all NaN are one value. Infinitely far from an infinity of the other sign
// lies that of the step.
WF_DEVICE bool window_target(const WindowRange& p, f64 value, bool add, f64& target) {
    const f64 step = double_of_bits(p.step_low);
    target = add ? fadd(value, step) : fsub(value, step);
    if (target != target && value == value) target = add ? step : -step;
    return true;
}
WF_DEVICE bool window_target(const WindowRange& p, f32 value, bool add, f32& target) {
    const f32 step = float_of_bits(u32(p.step_low));
    target = add ? fadd(value, step) : fsub(value, step);
    if (target != target && value == value) target = add ? step : -step;
    return true;
}

template <typename T> WF_DEVICE T window_ordered(T value) { return value; }
WF_DEVICE u64 window_ordered(f64 value) { return sort_f64(value); }
WF_DEVICE u64 window_ordered(f32 value) { return sort_f32(value); }

template <typename T>
__device__ void window_range_body(const WindowRange& p) {
    const T* keys = static_cast<const T*>(p.keys);
    const u64 row = u64(global_thread());
    if (row >= p.rows) return;
    const bool start = (p.flags & WINDOW_START) != 0;
    const bool preceding = (p.flags & WINDOW_PRECEDING) != 0;
    const bool descending = (p.flags & WINDOW_DESCENDING) != 0;
    u64 low = p.partitions[p.partition_of[row]], high = p.partitions[p.partition_of[row] + 1];
    if (p.valid != nullptr && p.valid[row] == 0) {
        // The frame of a null is all nulls.
        p.out[row] = start ? p.peers[p.peers_of[row]] : p.peers[p.peers_of[row] + 1];
        return;
    }
    // A bound beyond what the type holds lies before all values, or behind them, and never among
    // the nulls.
    const T* targets = static_cast<const T*>(p.targets);
    T value = targets != nullptr ? targets[row] : keys[row];
    const bool within = targets != nullptr || window_target(p, value, preceding == descending, value);
    const auto target = window_ordered(value);
    // The first row that is not before the bound.
    while (low < high) {
        const u64 middle = low + (high - low) / 2;
        bool before;
        if (p.valid != nullptr && p.valid[middle] == 0) {
            before = (p.flags & WINDOW_NULLS_FIRST) != 0;
        } else {
            const auto key = window_ordered(keys[middle]);
            const bool ahead = descending ? key > target : key < target;
            before = within ? ahead || (!start && key == target) : !preceding;
        }
        if (before) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    p.out[row] = u32(low);
}

}  // namespace wf

#define WF_WINDOW_ENTRIES                                                                                          \
    WF_KERNEL_BOUNDS(wf::WINDOW_THREADS, 1, window_bounds, wf::WindowBounds) { wf::window_bounds_body(p); }        \
    WF_KERNEL(window_range_i64, wf::WindowRange) { wf::window_range_body<wf::i64>(p); }                            \
    WF_KERNEL(window_range_i128, wf::WindowRange) { wf::window_range_body<wf::i128>(p); }                          \
    WF_KERNEL(window_range_f32, wf::WindowRange) { wf::window_range_body<wf::f32>(p); }                            \
    WF_KERNEL(window_range_f64, wf::WindowRange) { wf::window_range_body<wf::f64>(p); }

#define WF_WINDOW_RUN(NAME, ...)                                                                                   \
    WF_KERNEL_BOUNDS(wf::WINDOW_THREADS, 1, window_run_tiles_##NAME, wf::WindowRun) {                              \
        wf::window_run_body<__VA_ARGS__, false>(p);                                                                \
    }                                                                                                              \
    WF_KERNEL_BOUNDS(wf::WINDOW_THREADS, 1, window_run_carries_##NAME, wf::WindowRun) {                            \
        wf::window_carries_body<__VA_ARGS__>(p);                                                                   \
    }                                                                                                              \
    WF_KERNEL_BOUNDS(wf::WINDOW_THREADS, 1, window_run_write_##NAME, wf::WindowRun) {                              \
        wf::window_run_body<__VA_ARGS__, true>(p);                                                                 \
    }

#define WF_WINDOW_TREE(NAME, ...)                                                                                  \
    WF_KERNEL_BOUNDS(wf::WINDOW_THREADS, 1, window_leaves_##NAME, wf::WindowTree) {                                \
        wf::window_level_body<__VA_ARGS__, true>(p);                                                               \
    }                                                                                                              \
    WF_KERNEL_BOUNDS(wf::WINDOW_THREADS, 1, window_level_##NAME, wf::WindowTree) {                                 \
        wf::window_level_body<__VA_ARGS__, false>(p);                                                              \
    }                                                                                                              \
    WF_KERNEL_BOUNDS(wf::WINDOW_THREADS, 1, window_frames_##NAME, wf::WindowTree) {                                \
        wf::window_frames_body<__VA_ARGS__>(p);                                                                    \
    }
