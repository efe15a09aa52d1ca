// words.cuh: functions of strings that look at lists, characters and distances.
//
//   words_capital('hello world') = 'Hello World'      words_translated('abc', 'ab', 'x') = 'xc'
//   words_distance('kitten', 'sitting') = 3           words_place('b', 'a,b,c') = 2

#pragma once
#include "text.cuh"

namespace wf {

// The byte behind the character that begins at `i`.
WF_DEVICE u32 character_end(const view& v, u32 i) {
    i++;
    while (i < v.length && continues(byte_at(v, i))) i++;
    return i;
}

// Letters behind letters and digits small, others capital; ASCII only.
WF_CALLED view words_capital(const text_arena& arena, const view& v) {
    text_writer text(arena, v.length);
    bool within = false;
    for (u32 i = 0; i < v.length; i++) {
        u8 byte = byte_at(v, i), small = lowered(byte);
        bool letter = small >= 'a' && small <= 'z';
        text.put(within || !letter ? small : (u8)(small - 32));
        within = letter || (byte >= '0' && byte <= '9');
    }
    return text.out;
}

// `whole`, then `between` if there was a part before, then `part`.
WF_CALLED view words_joined(const text_arena& arena, const view& whole, bool begun, const view& between, const view& part) {
    if (!begun) return part;
    text_writer text(arena, (u64)whole.length + between.length + part.length);
    text.put(whole, 0, whole.length);
    text.put(between, 0, between.length);
    text.put(part, 0, part.length);
    return text.out;
}

// Bytes of `to` that stand for the character in bytes `begin` to `end` of `v`; the character itself
// where `from` does not have it, none where `to` ends before.
struct translation {
    u32 begin, end;
    bool kept;
};
WF_DEVICE translation translation_of(const view& v, u32 begin, u32 end, const view& from, const view& to) {
    u32 at = 0, width = end - begin;
    for (u32 i = 0; i < from.length;) {
        u32 next = character_end(from, i), same = 0;
        if (next - i == width)
            while (same < width && byte_at(v, begin + same) == byte_at(from, i + same)) same++;
        if (same == width) return translation{at, at < to.length ? character_end(to, at) : at, false};
        i = next;
        if (at < to.length) at = character_end(to, at);
    }
    return translation{begin, end, true};
}
WF_CALLED view words_translated(const text_arena& arena, const view& v, const view& from, const view& to) {
    u64 length = 0;
    for (u32 i = 0, next; i < v.length; i = next) {
        next = character_end(v, i);
        translation part = translation_of(v, i, next, from, to);
        length += part.end - part.begin;
    }
    text_writer text(arena, length);
    for (u32 i = 0, next; i < v.length; i = next) {
        next = character_end(v, i);
        translation part = translation_of(v, i, next, from, to);
        text.put(part.kept ? v : to, part.begin, part.end);
    }
    return text.out;
}

// `count` characters from the 1-based `start` on replaced by `part`.
WF_CALLED view words_overlaid(const text_arena& arena, const view& v, const view& part, i64 start, i64 count) {
    i64 last = start - 1;
    last = count > 0 && last > I64_MAX - count ? I64_MAX : maximum<i64>(last + count, 0);
    u32 end = skip_characters(v, 0, (u64)(start - 1)), again = skip_characters(v, 0, (u64)last);
    text_writer text(arena, (u64)end + part.length + (v.length - again));
    text.put(v, 0, end);
    text.put(part, 0, part.length);
    text.put(v, again, v.length);
    return text.out;
}

// The character of a number; `valid` says whether it has one.
WF_DEVICE bool is_character(i64 code) { return code >= 0 && code < 0x110000 && (code < 0xd800 || code > 0xdfff); }
WF_DEVICE view words_character(i64 code) {
    u32 c = (u32)code;
    if (c < 0x80) return view{1, c, 0};
    if (c < 0x800) return view{2, (0xc0 | c >> 6) | (0x80 | (c & 0x3f)) << 8, 0};
    if (c < 0x10000) return view{3, (0xe0 | c >> 12) | (0x80 | (c >> 6 & 0x3f)) << 8 | (0x80 | (c & 0x3f)) << 16, 0};
    u32 tail = (0x80 | (c >> 6 & 0x3f)) << 16 | (0x80 | (c & 0x3f)) << 24;
    return view{4, (0xf0 | (c >> 18 & 7)) | (0x80 | (c >> 12 & 0x3f)) << 8 | tail, 0};
}

// Most characters of the shorter string in `words_distance`.
constexpr u32 LONGEST_COMPARED = 255;

// Insertions, deletions and replacements of characters that make one string of the other; `lost` is
// set where both are too long.
WF_CALLED i32 words_distance(const view& one, const view& two, bool* lost) {
    u32 count_one = character_count(one), count_two = character_count(two);
    const view& longer = count_one < count_two ? two : one;
    const view& shorter = count_one < count_two ? one : two;
    u32 width = minimum(count_one, count_two);
    *lost = width > LONGEST_COMPARED;
    if (*lost) return 0;
    // Distances of the longer one's beginning from each beginning of the shorter one. They differ
    // from its own length by no more than the other's, whatever that length is: what lies here is
    // the difference, from `middle` on.
    constexpr u32 middle = LONGEST_COMPARED + 1;
    u16 row[LONGEST_COMPARED + 1];
    u32 distance = width;
    for (u32 i = 0; i < longer.length && width == 0; i++) distance += continues(byte_at(longer, i)) ? 0 : 1;
    if (width == 0) return (i32)distance;
    for (u32 j = 0; j < width; j++) row[j] = (u16)(j + 1 + middle);
    u32 before = 0;
    for (u32 i = 0, next; i < longer.length; i = next, before++) {
        next = character_end(longer, i);
        u32 diagonal = before;
        distance = before + 1;
        for (u32 j = 0, k = 0, after; k < shorter.length; k = after, j++) {
            after = character_end(shorter, k);
            u32 same = 0, size = next - i;
            if (after - k == size)
                while (same < size && byte_at(longer, i + same) == byte_at(shorter, k + same)) same++;
            u32 replaced = diagonal + (same == size ? 0 : 1);
            diagonal = row[j] + before - middle;
            distance = minimum(distance + 1, minimum(replaced, diagonal + 1));
            row[j] = (u16)(distance + middle - (before + 1));
        }
    }
    return (i32)distance;
}

// The place of `v` among the parts of `list` between commas, from 1 on; 0 where it is none of them.
WF_CALLED i32 words_place(const view& v, const view& list) {
    i32 place = 1;
    for (u32 begin = 0;; place++) {
        u32 end = begin;
        while (end < list.length && byte_at(list, end) != ',') end++;
        if (end - begin == v.length && part_at(list, begin, v)) return place;
        if (end == list.length) return 0;
        begin = end + 1;
    }
}

// What stands before occurrence `count` of `between`, or, counted from the end, behind it; all
// where there are fewer.
WF_CALLED view words_before(const view& v, const view& between, i64 count) {
    if (count == 0 || between.length == 0) return view{0, 0, 0};
    if (count > 0) {
        u32 at = find(v, between, 0);
        for (i64 i = 1; i < count && at != NOT_FOUND; i++) at = find(v, between, at + between.length);
        return at == NOT_FOUND ? v : slice(v, 0, at);
    }
    u32 at = find_last(v, between, v.length);
    for (i64 i = -1; i > count && at != NOT_FOUND; i--) at = find_last(v, between, at);
    if (at == NOT_FOUND) return v;
    u32 begin = at + between.length;
    return slice(v, begin, v.length - begin);
}

}  // namespace wf
