// keys.cuh: strings as keys (hash, equality) and values of every type as bits that sort.
#pragma once
#include "prelude.cuh"
#include "hash.cuh"
#include "string.cuh"

namespace wf {

// The 8 bytes from `at` on as one number, first byte highest, zeros behind the end: numbers order
// as bytes do.
//
//   "abcdefghij"   view_word(v, 0) = 'abcdefgh'   view_word(v, 8) = 'ij' 0 0 0 0 0 0
WF_DEVICE u64 word_of_view(const view& v, u32 at) {
    u64 word = 0;
    for (u32 i = 0; i < 8; ++i) word = word << 8 | (at + i < v.length ? u64(byte_at(v, at + i)) : u64(0));
    return word;
}
WF_CALLED u64 view_word(view v, u32 at) { return word_of_view(v, at); }

// Equal strings hash alike, wherever their characters lie.
WF_CALLED u64 hash_view(u64 seed, view v) {
    u64 hash = hash_combine(seed, v.length);
    for (u32 at = 0; at < v.length; at += 8) hash = hash_combine(hash, word_of_view(v, at));
    return hash;
}

// Total order: −NaN does not occur (NaN is one value, the greatest), −0.0 comes before 0.0.
WF_DEVICE u64 sort_f64(f64 value) {
    const u64 bits = value != value ? 0x7FF8000000000000ull : bit_cast<u64>(value);
    return bits >> 63 ? ~bits : bits | u64(1) << 63;
}
WF_DEVICE u64 sort_f32(f32 value) {
    const u32 bits = value != value ? 0x7FC00000u : bit_cast<u32>(value);
    return bits >> 31 ? ~bits : bits | u32(1) << 31;
}

}  // namespace wf
