// list.cuh: lists as 16-byte views of rows of a child column, and what expressions ask of them.
//
//   byte      0 .. 3      4 .. 7      8 .. 15
//   list      length      first       address of the child column's slots
//
//   slot      address of values, address of validity or null where all are valid: one a buffer
//
//   lists  [7, 8] [] [9]     2 0 s   0 0 0   1 2 s     s: address of  { values ──> 7 8 9, null }
//
// A column of numbers, strings or lists has one slot; one of structs has a slot for which of them
// are valid, without values, and behind it those of its fields. Lists are copied, filtered and
// sorted as 16 bytes; elements never move. A list that is null, or empty, may have no slots: nobody
// looks behind `length`.

#pragma once
#include "text.cuh"

namespace wf {

struct list_slot {
    const void* values;
    const u8* valid;
};

// ---- reading ----

template <typename T>
WF_DEVICE T list_value(const view& list, u32 slot, u32 i) {
    return ((const T*)((const list_slot*)list.rest)[slot].values)[(u64)list.prefix + i];
}

WF_DEVICE bool list_valid(const view& list, u32 slot, u32 i) {
    const u8* valid = ((const list_slot*)list.rest)[slot].valid;
    return valid == nullptr || valid[(u64)list.prefix + i] != 0;
}

// Where the element is that SQL calls `index`: from 1 on, or backwards from −1 on. The length,
// where there is none.
WF_DEVICE u32 list_place(const view& list, i64 index) {
    if (index > 0 && index <= (i64)list.length) return (u32)(index - 1);
    if (index < 0 && index >= -(i64)list.length) return (u32)((i64)list.length + index);
    return list.length;
}

// `count` elements from `first` on, which are there.
WF_DEVICE view list_part(const view& list, u32 first, u32 count) {
    return count == 0 ? view{0, 0, 0} : view{count, list.prefix + first, list.rest};
}

// Elements `from` to `to`, as SQL counts them: from 1 on, or backwards from −1 on; both belong to
// the part.
WF_DEVICE view list_between(const view& list, i64 from, i64 to) {
    const i64 length = list.length;
    if (from == 0) from = 1;
    if (from < 0) from = from < -length ? 1 : length + from + 1;
    if (to < 0) to = to < -length ? 0 : length + to + 1;
    if (to > length) to = length;
    return from > to ? view{0, 0, 0} : list_part(list, (u32)(from - 1), (u32)(to - from + 1));
}

// How many elements lie `step` apart between two places as SQL counts them, both of which belong to
// the part, and where the first is. Nothing lies between places of which one is outside; a step of
// 0 goes on for ever, and counts as one.
WF_DEVICE u32 list_stride(const view& list, i64 from, i64 to, i64 step, u32* first) {
    const i64 length = list.length;
    if (from < 0) from = from < -length ? 0 : length + from;
    else if (from > 0) from--;
    if (to < 0) to += length;
    else to = (to < length ? to : length) - 1;
    if (from >= length || to < 0) return 0;
    *first = (u32)from;
    if (step == 0) return 1;
    if (step > 0) return from > to ? 0 : (u32)((to - from) / step) + 1;
    return from < to ? 0 : (u32)((u64)(from - to) / (0 - (u64)step)) + 1;
}

// ---- making ----

// A list that is made of elements of known width, in an arena. Its slots come first, then the
// values of each slot, and then the bytes that say which are valid:
//
//   slots | values of slot 0, filled up to 16 bytes | … of slot 1 … | validity of slot 0 | …
//
// Where the arena is full the list is empty, and puts do nothing.
template <u32... WIDTHS>
struct list_builder {
    static constexpr u32 SLOTS = sizeof...(WIDTHS);
    view out;
    u8* at;
    u64 room;

    WF_DEVICE static u64 values_at(u32 slot, u64 length) {
        const u32 widths[SLOTS] = {WIDTHS...};
        u64 at = SLOTS * sizeof(list_slot);
        for (u32 k = 0; k < slot; k++) at += (widths[k] * length + 15) / 16 * 16;
        return at;
    }

    WF_DEVICE list_builder(const text_arena& arena, u64 length) : out{0, 0, 0}, at(nullptr), room(length) {
        if (length == 0) return;
        if (length > LONGEST_TEXT) {
            fail(arena.status, FAIL_LENGTH);
            out = view{0, TOO_LONG, 0};
            return;
        }
        const u64 bytes = values_at(SLOTS, length) + SLOTS * length;
        const u64 begin = atomicAdd(arena.used, bytes + 16);
        if (begin + bytes + 16 > arena.capacity) return;
        at = (u8*)(((u64)arena.bytes + begin + 15) / 16 * 16);
        list_slot* slots = (list_slot*)at;
        for (u32 k = 0; k < SLOTS; k++) slots[k] = list_slot{at + values_at(k, length), valid_of(k)};
        out = view{(u32)length, 0, (u64)at};
    }

    WF_DEVICE u8* valid_of(u32 slot) const { return at + values_at(SLOTS, room) + slot * room; }

    template <typename T>
    WF_DEVICE void put(u32 slot, u32 i, T value, bool valid) {
        if (at == nullptr) return;
        ((T*)(at + values_at(slot, room)))[i] = value;
        valid_of(slot)[i] = valid;
    }

    // Of a slot without values.
    WF_DEVICE void put_valid(u32 slot, u32 i, bool valid) {
        if (at != nullptr) valid_of(slot)[i] = valid;
    }

    // Only so many elements came.
    WF_DEVICE void shorten(u32 length) {
        if (at != nullptr) out.length = length;
    }
};

// A hash table of places in a list, in an arena; 0 is empty, and place `i` is `i + 1`. Where the
// arena is full there is none.
struct list_table {
    u32* slots;
    u64 mask;

    WF_DEVICE list_table(const text_arena& arena, u32 length) : slots(nullptr), mask(0) {
        u64 size = 2;
        while (size < 2 * (u64)length) size *= 2;
        const u64 begin = atomicAdd(arena.used, size * sizeof(u32) + 16);
        if (begin + size * sizeof(u32) + 16 > arena.capacity) return;
        slots = (u32*)(((u64)arena.bytes + begin + 15) / 16 * 16);
        mask = size - 1;
        for (u64 i = 0; i < size; i++) slots[i] = 0;
    }
};

// How many steps a series has from `start` to before `stop`, or to it; of more than 63 bits the
// greatest number of those.
WF_DEVICE u64 list_steps(i64 start, i64 stop, i64 step, bool inclusive) {
    const i128 span = step > 0 ? (i128)stop - start : (i128)start - stop;
    const i128 by = step > 0 ? (i128)step : -(i128)step;
    if (step == 0 || span < 0 || (span == 0 && !inclusive)) return 0;
    const i128 steps = (inclusive ? span : span - 1) / by + 1;
    return steps >> 63 != 0 ? ~(u64)0 >> 1 : (u64)steps;
}

// How many combinations of `n` elements a list has; where there are more than lists have elements,
// some number greater than that.
WF_DEVICE u64 list_combinations(u32 length, u32 n) {
    if (length < n) return 0;
    u64 count = 1;
    // After each step those of k elements of so many fewer: a whole number, which grows.
    for (u32 k = 1; k <= n && count <= LONGEST_TEXT; k++) count = count * (length - n + k) / k;
    return count;
}

// ---- parts of a text ----

// How many parts a text has: those that lie between `between`, or, where that is no text, its
// characters.
WF_CALLED u64 list_parts(const view& text, const view& between, bool is_text) {
    if (text.length == 0) return 0;
    u64 parts = is_text ? 1 : 0;
    if (!is_text)
        for (u32 i = 0; i < text.length; i++) parts += !continues(byte_at(text, i));
    else if (between.length != 0)
        for (u32 i = find(text, between, 0); i != NOT_FOUND; i = find(text, between, i + between.length)) parts++;
    return parts;
}

// Puts them into a list that has room for them; those equal to `null`, if that is a text, as nulls.
template <typename BUILDER>
WF_DEVICE void list_split(BUILDER& list, const view& text, const view& between, bool is_text, const view& null,
                          bool nulls) {
    u32 begin = 0;
    for (u32 i = 0; i < list.out.length; i++) {
        u32 end = is_text && between.length != 0 ? find(text, between, begin) : NOT_FOUND;
        if (!is_text) end = skip_characters(text, begin, 1);
        const view part = slice(text, begin, (end == NOT_FOUND ? text.length : end) - begin);
        const bool valid = !(nulls && views_equal(part, null));
        list.template put<view>(0, i, valid ? part : view{0, 0, 0}, valid);
        begin = is_text ? end + between.length : end;
    }
}

// ---- all elements, one after the other ----

constexpr u32 LIST_THREADS = 256;
constexpr u32 LIST_TILE = 1024;

struct ListFlatten {
    const view* lists;
    const u64* offsets;  // where each list's elements go, and the end
    const u32* row_of;   // total: the list that each element is of
    u64 total;
    u64 slot;
    void* values;        // total
    u8* valid;           // total
};

// A list shorter than its room leaves zeros, which are valid: the elements that a null has in a
// list of fixed size.
template <typename T, bool VALUES>
__device__ void list_flatten_body(const ListFlatten& p) {
    const u64 first = u64(blockIdx.x) * LIST_TILE + threadIdx.x;
#pragma unroll 4
    for (u32 j = 0; j < LIST_TILE; j += LIST_THREADS) {
        const u64 at = first + j;
        if (at >= p.total) break;
        const u32 row = p.row_of[at];
        const view list = p.lists[row];
        const u32 i = (u32)(at - p.offsets[row]);
        const bool inside = i < list.length;
        if (VALUES) ((T*)p.values)[at] = inside ? list_value<T>(list, (u32)p.slot, i) : T{};
        p.valid[at] = inside ? list_valid(list, (u32)p.slot, i) : true;
    }
}

}  // namespace wf

#define WF_LIST_FLATTEN(T, values, width)                                                                       \
    WF_KERNEL_BOUNDS(wf::LIST_THREADS, 1, list_flatten_##width, wf::ListFlatten) {                              \
        wf::list_flatten_body<T, values>(p);                                                                    \
    }

#define WF_LIST_ENTRIES                                                                                         \
    WF_LIST_FLATTEN(wf::u8, false, 0)                                                                           \
    WF_LIST_FLATTEN(wf::u8, true, 1)                                                                            \
    WF_LIST_FLATTEN(wf::u16, true, 2)                                                                           \
    WF_LIST_FLATTEN(wf::u32, true, 4)                                                                           \
    WF_LIST_FLATTEN(wf::u64, true, 8)                                                                           \
    WF_LIST_FLATTEN(wf::view, true, 16)
