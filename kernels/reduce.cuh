// reduce.cuh: what a reduction is, and the reduction of a whole column to one value.
//
//   values  1 2 3 4 5 6 7 8      sum 36
//
//   1. reduce_parts: a fixed number of blocks, whatever the device has; each thread adds up every
//      so-many-th row
//   2. reduce_whole: one block joins the blocks' parts
//
// What is combined with what depends on the number of rows alone: same input, same bits. Reads each
// value once.
#pragma once
#include "hash.cuh"

namespace wf {

// ---- reductions: how a value enters, what accumulates, what comes out ----

struct ReduceSumF64 {
    typedef f64 Value;
    typedef f64 Sum;
    typedef f64 Result;
    static WF_DEVICE Sum none() { return 0.0; }
    static WF_DEVICE Sum enter(Value value) { return value; }
    static WF_DEVICE Sum join(Sum a, Sum b) { return a + b; }
    static WF_DEVICE Result leave(Sum sum) { return sum; }
};

// Integer sums wrap in their type; `SUM` is unsigned so that wrapping is defined.
template <typename VALUE, typename SUM, typename RESULT>
struct ReduceSum {
    typedef VALUE Value;
    typedef SUM Sum;
    typedef RESULT Result;
    static WF_DEVICE Sum none() { return 0; }
    static WF_DEVICE Sum enter(Value value) { return Sum(RESULT(value)); }
    static WF_DEVICE Sum join(Sum a, Sum b) { return a + b; }
    static WF_DEVICE Result leave(Sum sum) { return Result(sum); }
};

template <typename VALUE>
struct ReduceMin {
    typedef VALUE Value;
    typedef VALUE Sum;
    typedef VALUE Result;
    static WF_DEVICE Sum none() { return limits<VALUE>::highest(); }
    static WF_DEVICE Sum enter(Value value) { return value; }
    static WF_DEVICE Sum join(Sum a, Sum b) { return minimum(a, b); }
    static WF_DEVICE Result leave(Sum sum) { return sum; }
};

template <typename VALUE>
struct ReduceMax {
    typedef VALUE Value;
    typedef VALUE Sum;
    typedef VALUE Result;
    static WF_DEVICE Sum none() { return limits<VALUE>::lowest(); }
    static WF_DEVICE Sum enter(Value value) { return value; }
    static WF_DEVICE Sum join(Sum a, Sum b) { return maximum(a, b); }
    static WF_DEVICE Result leave(Sum sum) { return sum; }
};

// Floats compare by their ordered bits: NaN is greatest. No NaN has all bits set or none, so both
// ends are free.
struct ReduceMinF64 {
    typedef f64 Value;
    typedef u64 Sum;
    typedef f64 Result;
    static WF_DEVICE Sum none() { return U64_MAX; }
    static WF_DEVICE Sum enter(Value value) { return order_f64(value); }
    static WF_DEVICE Sum join(Sum a, Sum b) { return minimum(a, b); }
    static WF_DEVICE Result leave(Sum sum) { return unorder_f64(sum); }
};

struct ReduceMaxF64 {
    typedef f64 Value;
    typedef u64 Sum;
    typedef f64 Result;
    static WF_DEVICE Sum none() { return 0; }
    static WF_DEVICE Sum enter(Value value) { return order_f64(value); }
    static WF_DEVICE Sum join(Sum a, Sum b) { return maximum(a, b); }
    static WF_DEVICE Result leave(Sum sum) { return unorder_f64(sum); }
};

// Bit by bit.
#define WF_REDUCE_BITS(NAME, NONE, SIGN)                                     \
    struct NAME {                                                            \
        typedef u64 Value;                                                   \
        typedef u64 Sum;                                                     \
        typedef u64 Result;                                                  \
        static WF_DEVICE Sum none() { return NONE; }                         \
        static WF_DEVICE Sum enter(Value value) { return value; }            \
        static WF_DEVICE Sum join(Sum a, Sum b) { return a SIGN b; }         \
        static WF_DEVICE Result leave(Sum sum) { return sum; }               \
    };
WF_REDUCE_BITS(ReduceAnd, U64_MAX, &)
WF_REDUCE_BITS(ReduceOr, 0, |)
WF_REDUCE_BITS(ReduceXor, 0, ^)
#undef WF_REDUCE_BITS

// Counts valid rows; there are no values.
struct ReduceCount {
    typedef u8 Value;
    typedef u64 Sum;
    typedef i64 Result;
    static WF_DEVICE Sum none() { return 0; }
    static WF_DEVICE Sum enter(Value) { return 1; }
    static WF_DEVICE Sum join(Sum a, Sum b) { return a + b; }
    static WF_DEVICE Result leave(Sum sum) { return i64(sum); }
};

// ---- one value of all rows ----

constexpr u32 REDUCE_THREADS = 256;
constexpr u32 REDUCE_BLOCKS = 2048;  // at most; a device that runs fewer at once takes them in turn
constexpr u32 REDUCE_ITEMS = 8;      // independent loads in flight

struct ReduceParts {
    const void* values;  // rows of Value; null for counts
    const u8* valid;     // rows, or null
    u64 rows;
    void* parts;         // a Sum for each block
};

// Joins the threads' sums in a fixed shape; the result is the first thread's.
template <typename Op>
WF_DEVICE typename Op::Sum reduce_block(typename Op::Sum sum) {
    constexpr u32 WARPS = REDUCE_THREADS / 32;
    WF_SHARED_ARRAY(typename Op::Sum, sums, WARPS);
    for (u32 step = 16; step != 0; step /= 2) sum = Op::join(sum, shuffle_xor(FULL_WARP, sum, int(step)));
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
    __syncthreads();  // the warps' sums are there
    sum = sums[0];
    for (u32 w = 1; w < WARPS; ++w) sum = Op::join(sum, sums[w]);
    return sum;
}

template <typename Op>
__device__ void reduce_parts_body(const ReduceParts& p) {
    typedef typename Op::Sum Sum;
    const typename Op::Value* values = static_cast<const typename Op::Value*>(p.values);
    const u64 stride = u64(global_threads());
    Sum sums[REDUCE_ITEMS];
#pragma unroll
    for (u32 j = 0; j < REDUCE_ITEMS; ++j) sums[j] = Op::none();
    for (u64 base = u64(global_thread()); base < p.rows; base += stride * REDUCE_ITEMS) {
#pragma unroll
        for (u32 j = 0; j < REDUCE_ITEMS; ++j) {
            const u64 at = base + j * stride;
            if (at < p.rows && (p.valid == nullptr || p.valid[at] != 0)) {
                sums[j] = Op::join(sums[j], Op::enter(values != nullptr ? values[at] : typename Op::Value()));
            }
        }
    }
#pragma unroll
    for (u32 width = REDUCE_ITEMS / 2; width != 0; width /= 2) {
#pragma unroll
        for (u32 j = 0; j < width; ++j) sums[j] = Op::join(sums[j], sums[j + width]);
    }
    const Sum sum = reduce_block<Op>(sums[0]);
    if (threadIdx.x == 0) static_cast<Sum*>(p.parts)[blockIdx.x] = sum;
}

struct ReduceWhole {
    const void* parts;
    u64 count;
    void* result;  // one Result
};

template <typename Op>
__device__ void reduce_whole_body(const ReduceWhole& p) {
    typedef typename Op::Sum Sum;
    Sum sum = Op::none();
    for (u64 at = threadIdx.x; at < p.count; at += REDUCE_THREADS) {
        sum = Op::join(sum, static_cast<const Sum*>(p.parts)[at]);
    }
    sum = reduce_block<Op>(sum);
    if (threadIdx.x == 0) *static_cast<typename Op::Result*>(p.result) = Op::leave(sum);
}

}  // namespace wf

#define WF_REDUCE(NAME, ...)                                                                       \
    WF_KERNEL_BOUNDS(wf::REDUCE_THREADS, 1, reduce_parts_##NAME, wf::ReduceParts) {                \
        wf::reduce_parts_body<__VA_ARGS__>(p);                                                     \
    }                                                                                              \
    WF_KERNEL_BOUNDS(wf::REDUCE_THREADS, 1, reduce_whole_##NAME, wf::ReduceWhole) {                \
        wf::reduce_whole_body<__VA_ARGS__>(p);                                                     \
    }
