// sort_key.cuh: the keys of a sort, from a column's values or from words made before, and back:
// numbers whose order is that of the values.
//
//   i64 −3          xor 1 << 63                                         minus base   the key
//   f64 −1.5        all bits flipped where negative, else the sign      minus base   the key
//   descending      all bits flipped before the base is subtracted
//
// `base` is at most the least key: the difference has as many bits as the keys' range needs.
#pragma once
#include "keys.cuh"

namespace wf {

constexpr u64 SORT_WORD = 0;   // u64, or i64 by `flip`
constexpr u64 SORT_HALF = 1;   // u32, or i32 by `flip`
constexpr u64 SORT_F64 = 2;
constexpr u64 SORT_F32 = 3;

struct SortKey {
    const void* data;  // rows of 8 bytes, or of 4
    u64 kind;          // SORT_…
    u64 flip;          // exclusive or on the ordered bits: the sign of integers, all bits of a
                       // descending key
    u64 base;
};

// Inverses of sort_f64 and sort_f32. Every NaN comes back as the one NaN that sorts.
WF_DEVICE u64 sort_unbits_f64(u64 word) { return word >> 63 ? word & ~(u64(1) << 63) : ~word; }
WF_DEVICE u32 sort_unbits_f32(u32 word) { return word >> 31 ? word & ~(u32(1) << 31) : ~word; }

WF_DEVICE bool sort_key_is_half(const SortKey& k) { return (k.kind & 1) != 0; }

// Raw bits become keys. Keys of type u32 are of columns of 4 bytes. The kind is looked at once, not
// for each key.
template <typename Key, u32 ITEMS>
WF_DEVICE void sort_keys_of(const SortKey& k, Key (&keys)[ITEMS]) {
    if (k.kind == SORT_F32) {
#pragma unroll
        for (u32 i = 0; i < ITEMS; ++i) keys[i] = sort_f32(bit_cast<f32>(u32(keys[i])));
    } else if (sizeof(Key) == 8 && k.kind == SORT_F64) {
#pragma unroll
        for (u32 i = 0; i < ITEMS; ++i) keys[i] = Key(sort_f64(bit_cast<f64>(u64(keys[i]))));
    }
#pragma unroll
    for (u32 i = 0; i < ITEMS; ++i) keys[i] = Key((keys[i] ^ Key(k.flip)) - Key(k.base));
}

// The raw bits of a key.
WF_DEVICE u64 sort_key_raw(const SortKey& k, u64 key) {
    const u64 word = (key + k.base) ^ k.flip;
    if (k.kind == SORT_F64) return sort_unbits_f64(word);
    if (k.kind == SORT_F32) return sort_unbits_f32(u32(word));
    return word;
}

// The raw bits of a row.
WF_DEVICE u64 sort_key_bits(const SortKey& k, u64 at) {
    return sort_key_is_half(k) ? u64(static_cast<const u32*>(k.data)[at]) : static_cast<const u64*>(k.data)[at];
}

// The key of a row.
WF_DEVICE u64 sort_key(const SortKey& k, u64 at) {
    u64 key[1] = {sort_key_bits(k, at)};
    sort_keys_of(k, key);
    return key[0];
}

// The keys of ITEMS rows, `step` apart; of rows at `end` and beyond all ones, unless WHOLE says
// that there are none. All rows are loaded before the first is used, so that the loads overlap.
template <bool WHOLE, typename Key, u32 ITEMS>
WF_DEVICE void sort_keys(const SortKey& k, u64 first, u64 step, u64 end, Key (&keys)[ITEMS]) {
    if (sizeof(Key) == 4 || sort_key_is_half(k)) {
        const u32* data = static_cast<const u32*>(k.data) + first;
#pragma unroll
        for (u32 i = 0; i < ITEMS; ++i) keys[i] = WHOLE || first + i * step < end ? data[i * step] : 0;
    } else {
        const u64* data = static_cast<const u64*>(k.data) + first;
#pragma unroll
        for (u32 i = 0; i < ITEMS; ++i) keys[i] = WHOLE || first + i * step < end ? Key(data[i * step]) : 0;
    }
    sort_keys_of(k, keys);
#pragma unroll
    for (u32 i = 0; i < ITEMS; ++i) keys[i] = WHOLE || first + i * step < end ? keys[i] : ~Key(0);
}

}  // namespace wf
