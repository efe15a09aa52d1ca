// survey.cuh: what is to be known of a column: least and greatest value, order, power of two,
// longest string.
//
//   values  3 −7 5 5      least −7, greatest 5, it descends, two neighbours are equal
//   values  1.5 −0.75     magnitude 1.5, all are multiples of 2^−2
//
// Reads rows × width once. Blocks stay for the whole column; each leaves what it found in words of
// its own, which the host puts together: no order of blocks matters, and 128 bits need no atomics.
#pragma once
#include "string.cuh"

namespace wf {

constexpr u32 SURVEY_THREADS = 256;
// Words that a block leaves: least and greatest in two each, signs extended; flags; unit; nulls;
// one spare.
constexpr u32 SURVEY_WORDS = 8;
// Flags of what was seen.
constexpr u32 SURVEY_DESCENDS = 1, SURVEY_REPEATS = 2, SURVEY_NOT_FINITE = 4, SURVEY_VALUES = 8;
// No finite float is a multiple of a greater power of two, but 0, which is one of any.
constexpr i32 SURVEY_MOST_UNIT = 1023;

struct Survey {
    const void* values;  // rows
    const u8* valid;     // rows, or null
    u64 rows;
    u64* found;  // SURVEY_WORDS a block
};

// What is compared of a value, and in which type.
template <typename T>
WF_DEVICE T survey_measure(T value) { return value; }
WF_DEVICE f64 survey_measure(f64 value) { return double_of_bits(bits(value) & ~(u64(1) << 63)); }
WF_DEVICE f64 survey_measure(f32 value) { return survey_measure(f64(value)); }
WF_DEVICE u32 survey_measure(const view& value) { return value.length; }

// Words of a result.
WF_DEVICE u128 survey_word(f64 value) { return u128(bits(value)); }
template <typename T>
WF_DEVICE u128 survey_word(T value) { return u128(i128(value)); }

// Exponent of the lowest bit that is set in a finite float.
WF_DEVICE i32 survey_unit(f64 value) {
    const u64 word = bits(value);
    const i32 biased = i32(word >> 52 & 0x7FF);
    const u64 mantissa = (word & ((u64(1) << 52) - 1)) | u64(biased != 0) << 52;
    return mantissa == 0 ? SURVEY_MOST_UNIT : maximum(biased, 1) - 1075 + trailing_zeros(mantissa);
}

template <typename T>
__device__ void survey_body(const Survey& p) {
    using Measure = decltype(survey_measure(T()));
    constexpr bool FLOATS = sizeof(Measure) == 8 && Measure(0.5) != Measure(0);
    constexpr bool ORDERED = !FLOATS && sizeof(T) == sizeof(Measure);
    WF_SHARED_ARRAY(Measure, leasts, SURVEY_THREADS);
    WF_SHARED_ARRAY(Measure, greatests, SURVEY_THREADS);
    WF_SHARED_ARRAY(u8, saw, SURVEY_THREADS);
    WF_SHARED(u32, all_flags);
    WF_SHARED(i32, lowest_unit);
    WF_SHARED(u64, all_nulls);
    const u32 thread = threadIdx.x;
    if (thread == 0) {
        all_flags = 0;
        lowest_unit = SURVEY_MOST_UNIT;
        all_nulls = 0;
    }
    __syncthreads();  // the block's results are at their beginnings
    const T* values = static_cast<const T*>(p.values);
    Measure least{}, greatest{};
    u32 flags = 0;
    i32 unit = SURVEY_MOST_UNIT;
    u64 nulls = 0;
    const u64 stride = u64(global_threads());
#pragma unroll 4
    for (u64 at = u64(global_thread()); at < p.rows; at += stride) {
        if (p.valid != nullptr && p.valid[at] == 0) {
            nulls += 1;
            continue;
        }
        const T value = values[at];
        const Measure measure = survey_measure(value);
        if constexpr (FLOATS) {
            flags |= measure <= 1.7976931348623157e308 ? 0 : SURVEY_NOT_FINITE;
            unit = minimum(unit, survey_unit(measure));
        }
        if constexpr (ORDERED) {
            if (at + 1 < p.rows) {
                const T next = values[at + 1];
                flags |= (next < value ? SURVEY_DESCENDS : 0) | (next == value ? SURVEY_REPEATS : 0);
            }
        }
        const bool first = (flags & SURVEY_VALUES) == 0;
        least = first || measure < least ? measure : least;
        greatest = first || greatest < measure ? measure : greatest;
        flags |= SURVEY_VALUES;
    }
    const u32 warp_flags = __reduce_or_sync(FULL_WARP, flags);
    const i32 warp_unit = __reduce_min_sync(FULL_WARP, unit);
    if (lane() == 0) {
        atomicOr(&all_flags, warp_flags);
        atomicMin(&lowest_unit, warp_unit);
    }
    if (nulls != 0) atomicAdd(&all_nulls, nulls);
    // Who saw no value takes part with somebody else's.
    const bool has = (flags & SURVEY_VALUES) != 0;
    leasts[thread] = least;
    greatests[thread] = greatest;
    saw[thread] = has;
    for (u32 half = SURVEY_THREADS / 2; half != 0; half /= 2) {
        __syncthreads();  // the results of a round are there
        if (thread < half && saw[thread + half] != 0) {
            const bool alone = saw[thread] == 0;
            const Measure low = leasts[thread + half], high = greatests[thread + half];
            leasts[thread] = alone || low < leasts[thread] ? low : leasts[thread];
            greatests[thread] = alone || greatests[thread] < high ? high : greatests[thread];
            saw[thread] = 1;
        }
    }
    __syncthreads();  // the last round and the atomics are done
    if (thread == 0) {
        u64* found = p.found + u64(blockIdx.x) * SURVEY_WORDS;
        const u128 low = survey_word(leasts[0]), high = survey_word(greatests[0]);
        found[0] = low_word(low);
        found[1] = high_word(low);
        found[2] = low_word(high);
        found[3] = high_word(high);
        found[4] = all_flags;
        found[5] = u64(i64(lowest_unit));
        found[6] = all_nulls;
        found[7] = 0;
    }
}

}  // namespace wf

#define WF_SURVEY(T) \
    WF_KERNEL_BOUNDS(wf::SURVEY_THREADS, 1, survey_##T, wf::Survey) { wf::survey_body<wf::T>(p); }
#define WF_SURVEY_ENTRIES \
    WF_SURVEY(i8) WF_SURVEY(i16) WF_SURVEY(i32) WF_SURVEY(i64) WF_SURVEY(u8) WF_SURVEY(u16) WF_SURVEY(u32) \
    WF_SURVEY(u64) WF_SURVEY(i128) WF_SURVEY(f32) WF_SURVEY(f64) WF_SURVEY(view)
