// exchange.cuh: the hash by which DataFusion parts rows among tasks. Tasks of one job may part their
// rows on a device or on a host: rows of equal keys must meet all the same.
//
// DataFusion 55 hashes a row column by column (`create_hashes` of datafusion-common, the seed 0).
// The hash of a value is that of foldhash 0.2 (https://github.com/orlp/foldhash, its fast form with
// fixed seeds); a null leaves the hash of the columns before as it is.
#pragma once
#include "string.cuh"

namespace wf {

// Digits of pi, as foldhash has them: of a hasher, and what is mixed into its input.
constexpr u64 EXCHANGE_SEED = 0x082efa98ec4e6c89ull;
constexpr u64 EXCHANGE_MIX_0 = 0xc0ac29b7c97c50ddull;
constexpr u64 EXCHANGE_MIX_1 = 0x3f84d5b5b5470917ull;
constexpr u64 EXCHANGE_MIX_2 = 0x9216d5d98979fb1bull;
constexpr u64 EXCHANGE_MIX_3 = 0xd1310ba698dfb5acull;
constexpr u64 EXCHANGE_MIX_4 = 0x2ffd72dbd01adfb7ull;
constexpr u64 EXCHANGE_MIX_5 = 0xb8e1afed6a267e96ull;

// The two halves of the product, folded into one.
WF_DEVICE u64 exchange_fold(u64 a, u64 b) { return a * b ^ mul_high(a, b); }

WF_DEVICE u64 exchange_rotated(u64 word, u32 by) { return word >> (by & 63) | word << (-by & 63); }

// A number of up to 16 bytes, behind columns of this hash.
WF_DEVICE u64 exchange_number(u64 before, u64 low, u64 high) {
    return exchange_fold(low ^ before ^ EXCHANGE_SEED, high ^ EXCHANGE_MIX_0);
}

// A hash that was begun anew, behind columns of this hash.
WF_DEVICE u64 exchange_combined(u64 before, u64 hash) { return (17 * 37 + hash) * 37 + before; }

// Up to 16 bytes that lie in the view or in memory.
WF_DEVICE u64 exchange_short(const view& v, u64 state) {
    u64 first = state, last = EXCHANGE_MIX_1;
    if (v.length > INLINE_BYTES) {
        const u8* at = (const u8*)v.rest;
        first ^= load_u64_inside(at);
        last ^= load_u64_inside(at + v.length - 8);
    } else if (v.length >= 8) {
        const u128 all = (u128)v.rest << 32 | v.prefix;
        first ^= (u64)all;
        last ^= (u64)(all >> (8 * (v.length - 8)));
    } else if (v.length >= 4) {
        const u64 all = v.rest << 32 | v.prefix;
        first ^= v.prefix;
        last ^= (u32)(all >> (8 * (v.length - 4)));
    } else if (v.length > 0) {
        first ^= byte_at(v, 0);
        last ^= (u64)byte_at(v, v.length - 1) << 8 | byte_at(v, v.length / 2);
    }
    return exchange_fold(first, last);
}

// One step of a lane: 8 bytes from `a` and 8 from `b` on.
WF_DEVICE u64 exchange_step(u64 lane, const u8* a, const u8* b) {
    return exchange_fold(load_u64_inside(a) ^ lane, load_u64_inside(b) ^ EXCHANGE_MIX_0);
}

// More than 16 bytes: two lanes, four where they are more than 128, six where more than 256.
WF_DEVICE u64 exchange_long(const u8* at, u32 length, u64 state) {
    u64 lanes[6] = {state, state + EXCHANGE_MIX_1, 0, 0, 0, 0};
    if (length > 128) {
        lanes[2] = state + EXCHANGE_MIX_2;
        lanes[3] = state + EXCHANGE_MIX_3;
        if (length > 256) {
            lanes[4] = state + EXCHANGE_MIX_4;
            lanes[5] = state + EXCHANGE_MIX_5;
            for (; length > 256; at += 96, length -= 96)
                for (u32 i = 0; i < 6; i++) lanes[i] = exchange_step(lanes[i], at + 8 * i, at + 48 + 8 * i);
            lanes[0] ^= lanes[4];
            lanes[1] ^= lanes[5];
        }
        for (; length > 128; at += 64, length -= 64)
            for (u32 i = 0; i < 4; i++) lanes[i] = exchange_step(lanes[i], at + 8 * i, at + 32 + 8 * i);
        lanes[0] ^= lanes[2];
        lanes[1] ^= lanes[3];
    }
    // From both ends to the middle, where they overlap.
    const u8* end = at + length - 16;
    for (u32 pair = 0; pair < 4 && length >= 32 * pair; pair++) {
        lanes[0] = exchange_step(lanes[0], at + 16 * pair, end - 16 * pair);
        lanes[1] = exchange_step(lanes[1], at + 16 * pair + 8, end - 16 * pair + 8);
    }
    return lanes[0] ^ lanes[1];
}

WF_DEVICE u64 exchange_state(const view& v, u64 seed) {
    const u64 state = exchange_rotated(seed, v.length);
    return v.length <= 16 ? exchange_short(v, state) : exchange_long((const u8*)v.rest, v.length, state);
}

// Characters of Arrow's layouts with offsets, from no columns before; a byte ends them.
WF_CALLED u64 exchange_text(view v) {
    return exchange_fold(exchange_state(v, EXCHANGE_SEED) ^ 0xff, EXCHANGE_MIX_0);
}
// Bytes of these layouts: their length is hashed, too.
WF_CALLED u64 exchange_bytes(view v) {
    return exchange_fold(exchange_state(v, EXCHANGE_SEED) ^ v.length, EXCHANGE_MIX_0);
}
// Characters or bytes of Arrow's views, behind columns of this hash. Short ones are numbers.
WF_CALLED u64 exchange_view(u64 before, view v) {
    if (v.length <= INLINE_BYTES) return exchange_number(before, (u64)v.prefix << 32 | v.length, v.rest);
    return exchange_fold(exchange_state(v, before ^ EXCHANGE_SEED) ^ v.length, EXCHANGE_MIX_0);
}

}  // namespace wf
