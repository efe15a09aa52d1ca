// sort_digit.cuh: the digits of a radix sort, and how a row's place tells one of them.
//
//   rows by a digit   … 0x0A… 0x0A… | 0x0B… 0x0B… 0x0B… | 0x0D… …      offsets[0x0B] = offsets[0x0A] + 2, …
//
// Behind the pass that sorted by it, a digit need not be stored: the last of the 256 offsets that is not above a row's place is the
// digit's.
#pragma once
#include "prelude.cuh"

namespace wf {

constexpr u32 SORT_DIGITS = 256;  // values of a digit

template <typename Key>
WF_DEVICE u32 sort_digit(Key key, u32 shift) {
    return u32(key >> shift) & (SORT_DIGITS - 1);
}

// The sum of all copies of one of a block's counts, which lie side by side.
WF_DEVICE u32 sort_copies_sum(const u32* counts, u32 at, u32 copies) {
    u32 sum = 0;
    // Neighbouring threads begin in different banks.
    for (u32 copy = 0; copy < copies; ++copy) sum += counts[at * copies + (copy + at) % copies];
    return sum;
}

// The digit of the row at a place, among rows sorted by it.
WF_DEVICE u32 sort_digit_at(const u32* offsets, u32 place) {
    u32 digit = 0;
#pragma unroll 1
    for (u32 step = SORT_DIGITS / 2; step != 0; step /= 2) {
        if (offsets[digit + step] <= place) digit += step;
    }
    return digit;
}

// The first place behind the rows that have the same digit as the row at a place.
WF_DEVICE u64 sort_digit_end(const u32* offsets, u32 place, u64 rows) {
    const u32 digit = sort_digit_at(offsets, place);
    return digit + 1 < SORT_DIGITS ? u64(offsets[digit + 1]) : rows;
}

}  // namespace wf
