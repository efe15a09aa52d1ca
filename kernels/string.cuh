// string.cuh: strings as 16-byte views, and what expressions ask of them. Bytes are UTF-8.
//
//   byte      0 .. 3      4 .. 7            8 .. 15
//   short     length      bytes, zero padded ...............     length <= 12
//   long      length      first 4 bytes     address of all bytes
//
// A view made from another one (a substring) points into the same characters. Where a view is null
// it is garbage: do not read through it; generated code masks such views to empty ones before it
// calls what reads characters.

#pragma once
#include "arith.cuh"

namespace wf {

struct __align__(16) view {
    u32 length;
    u32 prefix;
    u64 rest;  // bytes 4 to 11, or the address
};

constexpr u32 INLINE_BYTES = 12;

WF_DEVICE u32 swap_bytes(u32 value) { return __byte_perm(value, 0, 0x0123); }
WF_DEVICE u64 swap_bytes(u64 value) { return ((u64)swap_bytes((u32)value) << 32) | swap_bytes((u32)(value >> 32)); }

// Functions that look at more than a view's first bytes are WF_CALLED, and take views by value,
// which stay in registers.

// Where the bytes of a view lie, one at a time: in its registers, or in memory.
struct short_bytes {
    u32 prefix;
    u64 rest;
    WF_DEVICE u8 operator[](u32 i) const { return (u8)(i < 4 ? prefix >> (8 * i) : (u32)(rest >> (8 * (i - 4)))); }
};
struct long_bytes {
    const u8* at;
    WF_DEVICE u8 operator[](u32 i) const { return at[i]; }
};
WF_DEVICE short_bytes short_of(const view& v) { return short_bytes{v.prefix, v.rest}; }
WF_DEVICE long_bytes long_of(const view& v) { return long_bytes{(const u8*)v.rest}; }
WF_DEVICE u8 byte_at(const view& v, u32 i) {
    if (i < 4) return (u8)(v.prefix >> (8 * i));
    return v.length <= INLINE_BYTES ? (u8)(v.rest >> (8 * (i - 4))) : ((const u8*)v.rest)[i];
}

WF_DEVICE view masked(const view& v, bool valid) { return valid ? v : view{0, 0, 0}; }

// The view of `length` bytes from `begin` on of the characters of `v`; both lie within `v`.
WF_DEVICE view slice_of(const view& v, u32 begin, u32 length) {
    view out{length, 0, 0};
    if (length > INLINE_BYTES) {
        // Longer than what fits inline, so `v` is long too.
        const u8* at = (const u8*)v.rest + begin;
        out.prefix = (u32)at[0] | (u32)at[1] << 8 | (u32)at[2] << 16 | (u32)at[3] << 24;
        out.rest = (u64)at;
        return out;
    }
    for (u32 i = 0; i < length; i++) {
        u64 byte = byte_at(v, begin + i);
        if (i < 4)
            out.prefix |= (u32)byte << (8 * i);
        else
            out.rest |= byte << (8 * (i - 4));
    }
    return out;
}
WF_CALLED view slice(view v, u32 begin, u32 length) { return slice_of(v, begin, length); }

// -------------------------------------------------------------------------- bytes of any alignment

// These read whole words around what they are asked for: memory of text has room for that.
WF_DEVICE u32 load_u32_anywhere(const u8* at) {
    const u32* words = (const u32*)((u64)at & ~3ull);
    return __funnelshift_r(words[0], words[1], ((u32)(u64)at & 3) * 8);
}
WF_DEVICE u64 load_u64_anywhere(const u8* at) {
    const u32* words = (const u32*)((u64)at & ~3ull);
    const u32 shift = ((u32)(u64)at & 3) * 8, middle = words[1];
    return (u64)__funnelshift_r(middle, words[2], shift) << 32 | __funnelshift_r(words[0], middle, shift);
}

// The 8 bytes may be the last of their memory: reads no word that has none of them.
WF_DEVICE u64 load_u64_inside(const u8* at) {
    const u64* words = (const u64*)((u64)at & ~7ull);
    const u32 shift = ((u32)(u64)at & 7) * 8;
    const u64 low = words[0], high = words[shift == 0 ? 0 : 1];
    return low >> shift | high << 1 << (63 - shift);
}

// The lowest bytes of a word.
WF_DEVICE u64 low_bytes(u64 word, u32 count) { return count >= 8 ? word : word & ((1ull << (8 * count)) - 1); }

// The view of bytes in memory, whose first 12 are given.
WF_DEVICE view view_in_memory(u64 address, u32 length, u32 first, u64 next) {
    view out;
    out.length = length;
    out.prefix = length >= 4 ? first : (u32)low_bytes(first, length);
    out.rest = length > INLINE_BYTES ? address : length > 4 ? low_bytes(next, length - 4) : 0;
    return out;
}
WF_DEVICE view view_in_memory(const u8* at, u32 length) {
    u32 first = 0;
    u64 next = 0;
    if (length > 0) first = load_u32_anywhere(at);
    if (length > 4 && length <= INLINE_BYTES) next = load_u64_anywhere(at + 4);
    return view_in_memory((u64)at, length, first, next);
}

// ----------------------------------------------------------------------------------------- failure

// Keeps a string for a report (`arith.cuh`).
WF_CALLED void keep_operand(u8* at, view text) {
    *(u32*)at = text.length;
    for (u32 i = 0; i < text.length && i < OPERAND_TEXT; i++) at[16 + i] = byte_at(text, i);
}

// Whether a string or list is none because it would be longer than lengths count.
constexpr u32 TOO_LONG = 1;
WF_DEVICE bool too_long(const view& made) { return made.length == 0 && made.prefix == TOO_LONG; }

// -------------------------------------------------------------------------------------- comparison

// From byte `begin` to `end`.
WF_CALLED bool bytes_equal(const u8* x, const u8* y, u32 begin, u32 end) {
    for (u32 i = begin; i < end; i++)
        if (x[i] != y[i]) return false;
    return true;
}

WF_DEVICE bool views_equal(const view& a, const view& b) {
    if (a.length != b.length || a.prefix != b.prefix) return false;
    if (a.rest == b.rest) return true;
    return a.length > INLINE_BYTES && bytes_equal((const u8*)a.rest, (const u8*)b.rest, 4, a.length);
}

// Whether `v` is one of `count` strings.
WF_CALLED bool in_views(view v, const view* list, u32 count) {
    for (u32 i = 0; i < count; i++)
        if (views_equal(v, list[i])) return true;
    return false;
}

// Bytes 4 to 11, zero padded.
WF_DEVICE u64 bytes_behind_prefix(const view& v) {
    return v.length <= INLINE_BYTES ? v.rest : load_u64_inside((const u8*)v.rest + 4);
}

// Negative, zero or positive, by bytes; a prefix comes before what continues it. Padding is zero,
// the least byte, and lengths decide where all bytes are equal.
//
//   bytes 0 .. 3, then 4 .. 11, then of two long ones    12 .. 19   20 .. 27   22 .. 29
//
// The last 8 overlap those before, which are equal: they end where the shorter text ends.
WF_CALLED i32 compare_views(view a, view b) {
    const u32 x = swap_bytes(a.prefix), y = swap_bytes(b.prefix);
    if (x != y) return x < y ? -1 : 1;
    u64 p = bytes_behind_prefix(a), q = bytes_behind_prefix(b);
    const u32 shorter = minimum(a.length, b.length);
    for (u32 i = INLINE_BYTES; p == q && i < shorter; i += 8) {
        const u32 at = minimum(i, shorter - 8);
        p = load_u64_inside((const u8*)a.rest + at);
        q = load_u64_inside((const u8*)b.rest + at);
    }
    if (p != q) return swap_bytes(p) < swap_bytes(q) ? -1 : 1;
    return a.length < b.length ? -1 : a.length > b.length ? 1 : 0;
}

// Whether the bytes of `part` lie in `v` from byte `begin` on.
WF_DEVICE bool part_at(const view& v, u32 begin, const view& part) {
    if (begin > v.length || part.length > v.length - begin) return false;
    for (u32 i = 0; i < part.length; i++)
        if (byte_at(v, begin + i) != byte_at(part, i)) return false;
    return true;
}

WF_DEVICE bool starts_with(const view& v, const view& part) {
    if (part.length > v.length) return false;
    u32 first = minimum(part.length, 4u);
    u32 mask = first == 4 ? U32_MAX : (1u << (8 * first)) - 1;
    if ((v.prefix ^ part.prefix) & mask) return false;
    return part.length <= 4 || part_at(v, 0, part);
}

WF_DEVICE bool ends_with(const view& v, const view& part) {
    return part.length <= v.length && part_at(v, v.length - part.length, part);
}

// --------------------------------------------------------------------------------------- searching

constexpr u32 NOT_FOUND = U32_MAX;

// The bytes of a view by words of 8, and one at a time. Of long ones the words are aligned, `skew`
// bytes come before the first, and only words that hold bytes of the view are read.
struct short_words {
    short_bytes bytes;
    static constexpr u32 skew = 0;
    WF_DEVICE u64 word(u32 i) const { return i == 0 ? bytes.prefix | bytes.rest << 32 : i == 1 ? bytes.rest >> 32 : 0; }
};
struct long_words {
    long_bytes bytes;
    u32 skew, count;
    WF_DEVICE u64 word(u32 i) const { return i < count ? ((const u64*)(bytes.at - skew))[i] : 0; }
};
WF_DEVICE short_words short_words_of(const view& v) { return short_words{short_of(v)}; }
WF_DEVICE long_words long_words_of(const view& v) {
    const u32 skew = (u32)v.rest & 7;
    return long_words{long_of(v), skew, (u32)(((u64)skew + v.length + 7) / 8)};
}

// The high bits of bytes that are `x` where the byte of `behind` is `y`; perhaps others above such a
// byte, but none below the first.
WF_DEVICE u32 bytes_that_are(u32 word, u32 x, u32 behind, u32 y) {
    const u32 differ = (word ^ x) | (behind ^ y);
    return (differ - 0x01010101u) & ~differ & 0x80808080u;
}

// The first place from `begin` on where `part`, of a byte or more and no longer than what is left,
// lies in words that hold `length` bytes. Eight places at a time are compared with the part's first
// two bytes, those that fit with four, and then with all.
template <class Words> WF_DEVICE u32 find_in(const Words& words, u32 length, u32 begin, const view& part) {
    const u32 first = words.skew + begin, last = words.skew + (length - part.length);
    const u32 head = part.length >= 4 ? U32_MAX : (1u << (8 * part.length)) - 1;
    const u32 shift = part.length > 1 ? 8 : 0;
    const u32 x = (part.prefix & 0xff) * 0x01010101u, y = (part.prefix >> shift & 0xff) * 0x01010101u;
    u64 word = words.word(first / 8);
    for (u32 i = first / 8; i <= last / 8; i++) {
        const u64 next = words.word(i + 1);
        const u32 low = (u32)word, high = (u32)(word >> 32), behind = (u32)next;
        u32 in_low = bytes_that_are(low, x, __funnelshift_r(low, high, shift), y);
        u32 in_high = bytes_that_are(high, x, __funnelshift_r(high, behind, shift), y);
        while ((in_low | in_high) != 0) {
            const bool is_low = in_low != 0;
            const u32 place = (u32)trailing_zeros(is_low ? in_low : in_high) & ~7u;
            const u32 four = is_low ? __funnelshift_r(low, high, place) : __funnelshift_r(high, behind, place);
            const u32 at = i * 8 + (is_low ? 0 : 4) + place / 8;
            if (is_low)
                in_low &= in_low - 1;
            else
                in_high &= in_high - 1;
            if (((four ^ part.prefix) & head) != 0 || at < first || at > last) continue;
            const u32 start = at - words.skew;
            u32 same = 4;
            while (same < part.length && words.bytes[start + same] == byte_at(part, same)) same++;
            if (same >= part.length) return start;
        }
        word = next;
    }
    return NOT_FOUND;
}

WF_CALLED u32 find(view v, view part, u32 begin) {
    if (begin > v.length || part.length > v.length - begin) return NOT_FOUND;
    if (part.length == 0) return begin;
    return v.length <= INLINE_BYTES ? find_in(short_words_of(v), v.length, begin, part)
                                    : find_in(long_words_of(v), v.length, begin, part);
}

WF_DEVICE bool contains(const view& v, const view& part) { return find(v, part, 0) != NOT_FOUND; }

// -------------------------------------------------------------------------------------- characters

// Bytes other than the first of a character.
WF_DEVICE bool continues(u8 byte) { return (byte & 0xc0) == 0x80; }

// LIKE: `%` is any characters, `_` is one, a backslash takes the next literally. Greedy: on a
// mismatch the last `%` takes one character more.
WF_CALLED bool like(view v, view pattern) {
    u32 i = 0, j = 0, retry_i = 0, retry_j = NOT_FOUND;
    while (i < v.length) {
        bool matched = false;
        if (j < pattern.length) {
            u8 want = byte_at(pattern, j);
            if (want == '%') {
                retry_i = i;
                retry_j = ++j;
                continue;
            }
            if (want == '_') {
                i++;
                while (i < v.length && continues(byte_at(v, i))) i++;
                j++;
                matched = true;
            } else {
                u32 skip = want == '\\' && j + 1 < pattern.length ? 1 : 0;
                if (byte_at(v, i) == byte_at(pattern, j + skip)) {
                    i++;
                    j += skip + 1;
                    matched = true;
                }
            }
        }
        if (matched) continue;
        if (retry_j == NOT_FOUND) return false;
        retry_i++;
        while (retry_i < v.length && continues(byte_at(v, retry_i))) retry_i++;
        i = retry_i;
        j = retry_j;
    }
    while (j < pattern.length && byte_at(pattern, j) == '%') j++;
    return j == pattern.length;
}

WF_DEVICE bool is_ascii(const view& v) {
    for (u32 i = 0; i < v.length; i++)
        if (byte_at(v, i) >= 0x80) return false;
    return true;
}

// ASCII letters made small; other bytes as they are.
WF_DEVICE u8 lowered(u8 byte) { return byte >= 'A' && byte <= 'Z' ? (u8)(byte + 32) : byte; }

// Bytes of the character at `i` if it is `want`, an ASCII character that is no capital, or becomes
// it when case is ignored; else 0. Beside the capitals, two characters outside of ASCII do: the
// sign of kelvin (k) and the long s.
WF_DEVICE u32 same_letter(const view& v, u32 i, u8 want) {
    u8 byte = byte_at(v, i);
    if (lowered(byte) == want) return 1;
    if (want == 'k' && byte == 0xe2 && byte_at(v, i + 1) == 0x84 && byte_at(v, i + 2) == 0xaa) return 3;
    if (want == 's' && byte == 0xc5 && byte_at(v, i + 1) == 0xbf) return 2;
    return 0;
}

// ILIKE, as `like`, of a pattern in ASCII.
WF_CALLED bool ilike(view v, view pattern) {
    u32 i = 0, j = 0, retry_i = 0, retry_j = NOT_FOUND;
    while (i < v.length) {
        bool matched = false;
        if (j < pattern.length) {
            u8 want = byte_at(pattern, j);
            if (want == '%') {
                retry_i = i;
                retry_j = ++j;
                continue;
            }
            if (want == '_') {
                i++;
                while (i < v.length && continues(byte_at(v, i))) i++;
                j++;
                matched = true;
            } else {
                u32 skip = want == '\\' && j + 1 < pattern.length ? 1 : 0;
                u32 bytes = same_letter(v, i, lowered(byte_at(pattern, j + skip)));
                if (bytes != 0) {
                    i += bytes;
                    j += skip + 1;
                    matched = true;
                }
            }
        }
        if (matched) continue;
        if (retry_j == NOT_FOUND) return false;
        retry_i++;
        while (retry_i < v.length && continues(byte_at(v, retry_i))) retry_i++;
        i = retry_i;
        j = retry_j;
    }
    while (j < pattern.length && byte_at(pattern, j) == '%') j++;
    return j == pattern.length;
}

WF_CALLED u32 character_count(view v) {
    u32 count = 0;
    for (u32 i = 0; i < v.length; i++) count += continues(byte_at(v, i)) ? 0 : 1;
    return count;
}

// The byte at which character `count` (from 0) begins, from byte `begin` on; the length where there
// are fewer.
WF_CALLED u32 skip_characters(view v, u32 begin, u64 count) {
    u32 i = begin;
    while (count > 0 && i < v.length) {
        i++;
        while (i < v.length && continues(byte_at(v, i))) i++;
        count--;
    }
    return i;
}

// SQL's substr: characters numbered from 1; a start before 1 eats into the count. One loop that
// calls nothing: with three calls a kernel of it took 4% longer to compile.
WF_CALLED view substring(view v, i64 start, i64 count) {
    i64 end = wrap_add<i64>(start, count);  // first character beyond
    if (count > 0 && end < start) end = I64_MAX;
    if (start < 1) start = 1;
    if (end <= start) return view{0, 0, 0};
    u32 from = v.length, to = v.length;
    i64 character = 0;
    for (u32 i = 0; i < v.length; i++) {
        if (continues(byte_at(v, i))) continue;
        character++;
        if (character == start) from = i;
        if (character == end) {
            to = i;
            break;
        }
    }
    return slice_of(v, from, to - from);
}

// The first `count` characters, or all but the last `-count`; the last ones, or all but the first.
WF_CALLED view left_part(view v, i64 count) {
    if (count < 0) count = maximum<i64>((i64)character_count(v) + count, 0);
    return slice(v, 0, skip_characters(v, 0, (u64)count));
}
WF_CALLED view right_part(view v, i64 count) {
    if (count == I64_MIN) return view{0, 0, 0};
    u64 skipped = (u64)(count < 0 ? -count : maximum<i64>((i64)character_count(v) - count, 0));
    u32 begin = skip_characters(v, 0, skipped);
    return slice(v, begin, v.length - begin);
}

// Without the spaces before and behind.
WF_CALLED view trimmed(view v, bool before, bool behind) {
    u32 begin = 0, end = v.length;
    while (before && begin < end && byte_at(v, begin) == ' ') begin++;
    while (behind && end > begin && byte_at(v, end - 1) == ' ') end--;
    return slice(v, begin, end - begin);
}

// Whether the character in bytes `begin` to `end` of `v` is one of those of `set`.
WF_DEVICE bool is_among(const view& v, u32 begin, u32 end, const view& set) {
    for (u32 i = 0; i + (end - begin) <= set.length;) {
        u32 same = 0;
        while (begin + same < end && byte_at(v, begin + same) == byte_at(set, i + same)) same++;
        if (begin + same == end) return true;
        i++;
        while (i < set.length && continues(byte_at(set, i))) i++;
    }
    return false;
}

// Without the characters of `set` before and behind.
WF_CALLED view trimmed_of(view v, view set, bool before, bool behind) {
    u32 begin = 0, end = v.length;
    while (before && begin < end) {
        u32 next = skip_characters(v, begin, 1);
        if (!is_among(v, begin, next, set)) break;
        begin = next;
    }
    while (behind && end > begin) {
        u32 last = end - 1;
        while (last > begin && continues(byte_at(v, last))) last--;
        if (!is_among(v, last, end, set)) break;
        end = last;
    }
    return slice(v, begin, end - begin);
}

// The last place before byte `end` at which `part` lies and ends.
WF_CALLED u32 find_last(view v, view part, u32 end) {
    if (part.length > end) return NOT_FOUND;
    for (u32 i = end - part.length;; i--) {
        if (part_at(v, i, part)) return i;
        if (i == 0) return NOT_FOUND;
    }
}

// Field `field` of those that `between` separates: from 1 on, or backwards from −1 on; empty where
// there is none. An empty separator separates nothing.
WF_CALLED view split_field(view v, view between, i64 field) {
    const view none{0, 0, 0};
    if (between.length == 0) return field == 1 || field == -1 ? v : none;
    if (field > 0) {
        u32 begin = 0, end = find(v, between, 0);
        for (i64 i = 1; i < field; i++) {
            if (end == NOT_FOUND) return none;
            begin = end + between.length;
            end = find(v, between, begin);
        }
        return slice(v, begin, (end == NOT_FOUND ? v.length : end) - begin);
    }
    u32 end = v.length, at = find_last(v, between, end);
    for (i64 i = -1; i > field; i--) {
        if (at == NOT_FOUND) return none;
        end = at;
        at = find_last(v, between, end);
    }
    u32 begin = at == NOT_FOUND ? 0 : at + between.length;
    return slice(v, begin, end - begin);
}

// The number of the first character, 0 where there is none.
WF_DEVICE i32 first_character(const view& v) {
    if (v.length == 0) return 0;
    u32 lead = byte_at(v, 0);
    if (lead < 0x80) return (i32)lead;
    u32 more = lead < 0xe0 ? 1 : lead < 0xf0 ? 2 : 3;
    u32 value = lead & (0x3f >> more);
    for (u32 i = 1; i <= more; i++) value = value << 6 | (byte_at(v, i) & 0x3f);
    return (i32)value;
}

// 1-based character at which `part` begins, 0 where it does not occur.
WF_CALLED i32 position(view v, view part) {
    u32 at = find(v, part, 0);
    if (at == NOT_FOUND) return 0;
    i32 count = 1;
    for (u32 i = 0; i < at; i++) count += continues(byte_at(v, i)) ? 0 : 1;
    return count;
}

}  // namespace wf
