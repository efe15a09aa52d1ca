// random.cuh: random numbers of a seed and a row's number, without state: Philox-4x32-10 of Salmon,
// Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3" (SC 2011). The seed is the
// key. The counter's low half is the number, its third word counts draws. Words are the same on all
// devices.

#pragma once
#include "prelude.cuh"

namespace wf {

struct RandomWords {
    u64 low, high;
};

WF_DEVICE RandomWords random_words(i64 seed, i64 number, u32 draw) {
    u32 c0 = (u32)(u64)number, c1 = (u32)((u64)number >> 32), c2 = draw, c3 = 0;
    u32 k0 = (u32)(u64)seed, k1 = (u32)((u64)seed >> 32);
#pragma unroll
    for (u32 round = 0; round < 10; ++round) {
        const u64 a = (u64)0xD2511F53u * c0, b = (u64)0xCD9E8D57u * c2;
        const u32 d0 = (u32)(b >> 32) ^ c1 ^ k0, d2 = (u32)(a >> 32) ^ c3 ^ k1;
        c1 = (u32)b;
        c3 = (u32)a;
        c0 = d0;
        c2 = d2;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return {c0 | (u64)c1 << 32, c2 | (u64)c3 << 32};
}

// In [0, 1): 53 bits.
WF_DEVICE f64 random_unit(u64 word) { return (f64)(word >> 11) * (1.0 / 9007199254740992.0); }

WF_DEVICE f64 random_uniform(i64 seed, i64 number) { return random_unit(random_words(seed, number, 0).low); }

// Box and Muller's; the logarithm's argument is in (0, 1].
WF_DEVICE f64 random_normal(i64 seed, i64 number) {
    const RandomWords words = random_words(seed, number, 0);
    const f64 away = sqrt(-2.0 * log(1.0 - random_unit(words.low)));
    return away * cos(6.283185307179586 * random_unit(words.high));
}

// Both ends may come. The least share of numbers is too small by one in 2^64 of the range.
WF_DEVICE i64 random_integer(i64 seed, i64 number, i64 low, i64 high) {
    const u64 word = random_words(seed, number, 0).low, count = (u64)high - (u64)low + 1;
    return count == 0 ? (i64)word : (i64)((u64)low + mul_high(word, count));
}

// The mean that one draw takes: e to its negative is far from the least number.
constexpr f64 RANDOM_POISSON_MEAN = 500;

// By the sum of probabilities up to a uniform number. Of a large mean it is the sum of several.
WF_DEVICE i64 random_poisson(i64 seed, i64 number, f64 mean) {
    i64 count = 0;
    u32 draw = 0;
    while (mean > 0) {
        const f64 part = mean < RANDOM_POISSON_MEAN ? mean : RANDOM_POISSON_MEAN;
        const f64 wanted = random_unit(random_words(seed, number, draw).low);
        f64 share = exp(-part), sum = share;
        i64 events = 0;
        // Beyond ten deviations nothing is left but what rounding made.
        while (sum <= wanted && events < 1000) {
            ++events;
            share = share * part / (f64)events;
            sum += share;
        }
        count += events;
        mean -= part;
        ++draw;
    }
    return count;
}

}  // namespace wf
