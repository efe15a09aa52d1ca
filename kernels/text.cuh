// text.cuh: strings that are made, not cut out of others. Up to 12 bytes they lie in the view
// itself; longer ones take bytes of an arena that the host sized by a guess.
//
//   lower('ABC')            view: 3 "abc"
//   concat(s, ', and so')   view: length, first 4 bytes, address ──> arena: … bytes …
//
// Taking is one addition to a counter that goes on counting where the arena is full: the string is
// then empty, so that nobody follows its address, and the host, who reads the counter, runs the
// kernel again with an arena that suffices.

#pragma once
#include "string.cuh"

namespace wf {

struct text_arena {
    u8* bytes;
    u64 capacity;
    u64* used;
    u32* status;
};

// Most bytes of a string: lengths are numbers of 31 bits.
constexpr u64 LONGEST_TEXT = 0x7fffffff;

// Writes a string of a length known before, byte by byte.
struct text_writer {
    view out;
    u8* at;
    u32 next;

    WF_DEVICE text_writer(const text_arena& arena, u64 length) : out{(u32)length, 0, 0}, at(nullptr), next(0) {
        if (length <= INLINE_BYTES) return;
        if (length > LONGEST_TEXT) {
            fail(arena.status, FAIL_LENGTH);
            out = view{0, TOO_LONG, 0};
            return;
        }
        u64 begin = atomicAdd(arena.used, (u64)length);
        if (begin + length > arena.capacity) {
            out.length = 0;
            return;
        }
        at = arena.bytes + begin;
        out.rest = (u64)at;
    }

    WF_DEVICE void put(u8 byte) { set(next++, byte); }

    // The byte at place `i`, once; places in any order.
    WF_DEVICE void set(u32 i, u8 byte) {
        if (i >= out.length) return;
        if (i < 4) out.prefix |= (u32)byte << (8 * i);
        if (at != nullptr)
            at[i] = byte;
        else if (i >= 4)
            out.rest |= (u64)byte << (8 * (i - 4));
    }

    // Bytes `begin` to `end` of a view.
    WF_DEVICE void put(const view& v, u32 begin, u32 end) {
        for (u32 i = begin; i < end; i++) put(byte_at(v, i));
    }
};

// Writes a string twice: counts its bytes first, and after `begin` writes as many.
struct counting_writer {
    text_writer text;
    u64 length;
    bool writes;

    WF_DEVICE explicit counting_writer(const text_arena& arena) : text(arena, 0), length(0), writes(false) {}

    WF_DEVICE void begin(const text_arena& arena) {
        text = text_writer(arena, length);
        writes = true;
    }

    WF_DEVICE void put(u8 byte) {
        if (writes) text.put(byte);
        else length++;
    }
};

WF_CALLED view concatenated(text_arena arena, view a, view b) {
    if (b.length == 0) return a;
    if (a.length == 0) return b;
    text_writer text(arena, (u64)a.length + b.length);
    text.put(a, 0, a.length);
    text.put(b, 0, b.length);
    return text.out;
}

WF_CALLED view lower_ascii(text_arena arena, view v) {
    text_writer text(arena, v.length);
    for (u32 i = 0; i < v.length; i++) text.put(lowered(byte_at(v, i)));
    return text.out;
}

WF_CALLED view upper_ascii(text_arena arena, view v) {
    text_writer text(arena, v.length);
    for (u32 i = 0; i < v.length; i++) {
        u8 byte = byte_at(v, i);
        text.put(byte >= 'a' && byte <= 'z' ? (u8)(byte - 32) : byte);
    }
    return text.out;
}

// Character by character from the end.
WF_CALLED view reversed(text_arena arena, view v) {
    text_writer text(arena, v.length);
    for (u32 end = v.length; end > 0;) {
        u32 begin = end - 1;
        while (begin > 0 && continues(byte_at(v, begin))) begin--;
        text.put(v, begin, end);
        end = begin;
    }
    return text.out;
}

WF_CALLED view repeated(text_arena arena, view v, i64 count) {
    if (count <= 0 || v.length == 0) return view{0, 0, 0};
    // More than fit anyway, and the product must not wrap.
    u64 length = (u64)count > LONGEST_TEXT ? LONGEST_TEXT + 1 : (u64)count * v.length;
    text_writer text(arena, length);
    for (u32 i = 0; i < text.out.length; i += v.length) text.put(v, 0, v.length);
    return text.out;
}

// Every `from` replaced by `to`, from the left; an empty one occurs nowhere.
WF_CALLED view replaced(text_arena arena, view v, view from, view to) {
    if (from.length == 0) return v;
    u64 length = v.length;
    bool some = false;
    for (u32 i = find(v, from, 0); i != NOT_FOUND; i = find(v, from, i + from.length)) {
        length = length - from.length + to.length;
        some = true;
    }
    if (!some) return v;
    text_writer text(arena, length);
    u32 begin = 0;
    for (u32 i = find(v, from, 0); i != NOT_FOUND; i = find(v, from, begin)) {
        text.put(v, begin, i);
        text.put(to, 0, to.length);
        begin = i + from.length;
    }
    text.put(v, begin, v.length);
    return text.out;
}

// Filled up to `count` characters, before or behind, by those of `fill` again and again; longer
// ones are cut.
WF_CALLED view padded(text_arena arena, view v, i64 count, view fill, bool before) {
    if (count <= 0) return view{0, 0, 0};
    u32 cut = skip_characters(v, 0, (u64)count);
    u64 have = character_count(slice(v, 0, cut));
    if (have == (u64)count || fill.length == 0) return slice(v, 0, cut);
    u64 lack = (u64)count - have;
    u64 characters = character_count(fill);
    u32 rest = skip_characters(fill, 0, lack % characters);
    u64 rounds = lack / characters;
    text_writer text(arena, (rounds > LONGEST_TEXT ? LONGEST_TEXT + 1 : rounds * fill.length) + rest + v.length);
    if (!before) text.put(v, 0, v.length);
    for (u64 i = 0; i < rounds && text.next < text.out.length; i++) text.put(fill, 0, fill.length);
    text.put(fill, 0, rest);
    if (before) text.put(v, 0, v.length);
    return text.out;
}

}  // namespace wf
