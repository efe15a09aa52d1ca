// parse.cuh: numbers and truth values from text, as Arrow's cast kernel reads them.
//
//   parse_signed(" -42 ", &i) = true, i = -42   parse_decimal("1.25", 1, &m) = true, m = 13
//   parse_float("1e-3", table, &f) = READ          parse_float("one", table, &f) = REFUSED
//
// Floats are exact: up to 19 digits by one multiplication with a power of five in 128 bits (D.
// Lemire, "Number parsing at a gigabyte per second"; N. Mushtak and D. Lemire show that it never
// fails), more where the digits beyond do not matter.

#pragma once
#include "decimal.cuh"
#include "string.cuh"

namespace wf {

// What came of a text; LEFT is for the host to read.
constexpr u32 REFUSED = 0, READ = 1, LEFT = 2;

WF_DEVICE bool is_digit(u8 byte) { return (u8)(byte - '0') < 10; }
WF_DEVICE bool is_letter(u8 byte) { return (u8)(lowered(byte) - 'a') < 26; }
WF_DEVICE bool is_blank(u8 byte) { return byte == ' ' || (byte >= 9 && byte <= 13 && byte != 11); }

WF_CALLED view without_blanks(const view& v) {
    u32 begin = 0, end = v.length;
    while (begin < end && is_blank(byte_at(v, begin))) begin++;
    while (end > begin && is_blank(byte_at(v, end - 1))) end--;
    return slice(v, begin, end - begin);
}

// Bytes of the white space of Unicode that begins at `i`, 0 where none does.
WF_DEVICE u32 white_space_at(const view& v, u32 i) {
    u8 byte = byte_at(v, i);
    if (byte < 0x80) return byte == ' ' || (byte >= 9 && byte <= 13) ? 1 : 0;
    u32 left = v.length - i;
    if (byte == 0xc2 && left > 1) return byte_at(v, i + 1) == 0x85 || byte_at(v, i + 1) == 0xa0 ? 2 : 0;
    if (left < 3) return 0;
    u32 rest = (u32)byte_at(v, i + 1) << 8 | byte_at(v, i + 2);
    if (byte == 0xe1) return rest == 0x9a80 ? 3 : 0;
    if (byte == 0xe3) return rest == 0x8080 ? 3 : 0;
    if (byte != 0xe2) return 0;
    bool wide = rest >= 0x8080 && rest <= 0x808a;
    return wide || rest == 0x80a8 || rest == 0x80a9 || rest == 0x80af || rest == 0x819f ? 3 : 0;
}
WF_CALLED view without_white_space(const view& v) {
    u32 begin = 0, end = v.length;
    for (u32 width = 1; begin < end && width != 0; begin += width) {
        width = white_space_at(v, begin);
    }
    while (end > begin) {
        u32 last = end - 1;
        while (last > begin && continues(byte_at(v, last))) last--;
        if (white_space_at(v, last) != end - last) break;
        end = last;
    }
    return slice(v, begin, end - begin);
}

// Whether bytes are characters in UTF-8: the shortest form of each, no surrogates, none beyond
// U+10FFFF.
WF_CALLED bool parse_utf8(const view& v) {
    for (u32 i = 0; i < v.length;) {
        u8 lead = byte_at(v, i++);
        if (lead < 0x80) continue;
        if (lead < 0xc2 || lead > 0xf4) return false;
        u32 more = lead < 0xe0 ? 1 : lead < 0xf0 ? 2 : 3;
        if (v.length - i < more) return false;
        u8 second = byte_at(v, i);
        u8 least = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80, most = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
        if (second < least || second > most) return false;
        for (u32 k = 1; k < more; k++)
            if (!continues(byte_at(v, i + k))) return false;
        i += more;
    }
    return true;
}

// ------------------------------------------------------------------------------- bytes and texts
//
// Bytes as a text have \xHH for what is no printable character of ASCII, a quote or a backslash.

// Whether a text says the bytes that it has: it is in ASCII, and has no escapes.
WF_CALLED bool parse_as_bytes(const view& v) {
    for (u32 i = 0; i < v.length; i++)
        if (byte_at(v, i) >= 0x80 || byte_at(v, i) == '\\') return false;
    return true;
}

// Whether bytes are shown by themselves: none needs an escape.
WF_CALLED bool parse_as_shown(const view& v) {
    for (u32 i = 0; i < v.length; i++) {
        u8 byte = byte_at(v, i);
        if (byte < ' ' || byte > '~' || byte == '\\' || byte == '\'' || byte == '"') return false;
    }
    return true;
}

// -------------------------------------------------------------------------- integers, truth values

struct sign_and_magnitude {
    u64 magnitude;
    bool negative, read;
};

// Blanks, a sign, digits, blanks.
WF_CALLED sign_and_magnitude parse_integer(const view& padded) {
    view v = without_blanks(padded);
    sign_and_magnitude out{0, false, false};
    u32 i = 0;
    if (v.length > 0 && (byte_at(v, 0) == '-' || byte_at(v, 0) == '+')) out.negative = byte_at(v, i++) == '-';
    if (i == v.length) return out;
    for (; i < v.length; i++) {
        u8 digit = (u8)(byte_at(v, i) - '0');
        if (digit > 9 || mul_high(out.magnitude, (u64)10) != 0) return out;
        u64 tens = out.magnitude * 10;
        out.magnitude = tens + digit;
        if (out.magnitude < tens) return out;
    }
    out.read = true;
    return out;
}

WF_DEVICE bool parse_signed(const view& v, i64* out) {
    sign_and_magnitude parts = parse_integer(v);
    *out = (i64)(parts.negative ? (u64)0 - parts.magnitude : parts.magnitude);
    return parts.read && parts.magnitude <= (u64)I64_MAX + (parts.negative ? 1 : 0);
}
WF_DEVICE bool parse_unsigned(const view& v, u64* out) {
    sign_and_magnitude parts = parse_integer(v);
    *out = parts.magnitude;
    return parts.read && (!parts.negative || parts.magnitude == 0);
}

// Whether `v`, in any case, is the beginning of the `length` characters of `word`, `least` of them
// at least.
WF_DEVICE bool abbreviates(const view& v, u64 word, u32 length, u32 least) {
    if (v.length < least || v.length > length) return false;
    for (u32 i = 0; i < v.length; i++)
        if (lowered(byte_at(v, i)) != (u8)(word >> (8 * i))) return false;
    return true;
}

// true, yes, on, 1; false, no, off, 0; and what abbreviates them.
WF_CALLED bool parse_boolean(const view& padded, bool8* out) {
    view v = without_white_space(padded);
    *out = 0;
    if (v.length == 1 && byte_at(v, 0) == '0') return true;
    if (abbreviates(v, 0x65736c6166ull, 5, 1) || abbreviates(v, 0x6f6eull, 2, 1) || abbreviates(v, 0x66666full, 3, 2))
        return true;
    *out = 1;
    return (v.length == 1 && byte_at(v, 0) == '1') || abbreviates(v, 0x65757274ull, 4, 1) ||
           abbreviates(v, 0x736579ull, 3, 1) || abbreviates(v, 0x6e6full, 2, 2);
}

// ---------------------------------------------------------------------------------------- decimals

// Arrow reads numbers of 76 digits; more behind the point are an error there.
constexpr u32 MOST_FRACTION = 76;

// The number in units of 10^-scale, halves away from zero.
WF_CALLED bool parse_decimal(const view& padded, u32 scale, i128* out) {
    view v = without_white_space(padded);
    *out = 0;
    u32 i = 0;
    bool negative = false;
    if (v.length > 0 && (byte_at(v, 0) == '-' || byte_at(v, 0) == '+')) negative = byte_at(v, i++) == '-';
    u128 magnitude = 0;
    // A tenth of what a signed number holds: the next digit cannot overflow.
    const u128 most = (u128)I128_MAX / 10;
    bool overflow = false, half = false;
    u32 digits = 0, fraction = 0, significant = 0;
    bool behind = false;
    for (; i < v.length; i++) {
        u8 byte = byte_at(v, i);
        if (byte == '.' && !behind) {
            behind = true;
            continue;
        }
        if (!is_digit(byte)) return false;
        u32 digit = byte - '0';
        digits++;
        if (behind) {
            fraction++;
            if (significant > 0 || digit > 0) significant++;
            if (fraction > scale) {
                if (fraction == scale + 1) half = digit >= 5;
                continue;
            }
        }
        overflow |= magnitude >= most;
        magnitude = magnitude * 10 + digit;
    }
    if (digits == 0 || (fraction > scale && (significant > MOST_FRACTION || fraction - scale > MOST_FRACTION))) return false;
    for (; fraction < scale; fraction++) {
        overflow |= magnitude >= most;
        magnitude *= 10;
    }
    magnitude += half ? 1 : 0;
    if (overflow && magnitude != 0) return false;
    *out = negative ? -(i128)magnitude : (i128)magnitude;
    return true;
}

// ------------------------------------------------------------------------------------------ floats

// The table's least exponent; its entries are two words, high first: 5^q in 128 bits.
constexpr i32 FIVES_LEAST = -342;

struct double_format {
    static constexpr i32 mantissa_bits = 52, least_exponent = -1023, infinite = 0x7ff;
    static constexpr i32 least_power = -342, most_power = 308, least_even = -4, most_even = 23;
};
struct single_format {
    static constexpr i32 mantissa_bits = 23, least_exponent = -127, infinite = 0xff;
    static constexpr i32 least_power = -65, most_power = 38, least_even = -17, most_even = 10;
};

// The bits, but for the sign, of the float nearest to w × 10^q.
template <class Format> WF_CALLED u64 nearest_float(u64 w, i32 q, const u64* table) {
    const u64 infinity = (u64)Format::infinite << Format::mantissa_bits;
    if (w == 0 || q < Format::least_power) return 0;
    if (q > Format::most_power) return infinity;
    i32 zeros = leading_zeros(w);
    w <<= zeros;
    const u64* five = table + 2 * (q - FIVES_LEAST);
    u64 high = mul_high(w, five[0]), low = w * five[0];
    u64 mask = U64_MAX >> (Format::mantissa_bits + 3);
    if ((high & mask) == mask) {
        u64 more = mul_high(w, five[1]);
        low += more;
        if (low < more) high++;
    }
    i32 upper = (i32)(high >> 63), shift = upper + 64 - Format::mantissa_bits - 3;
    u64 mantissa = high >> shift;
    i32 power = ((217706 * q) >> 16) + 63 + upper - zeros - Format::least_exponent;
    if (power <= 0) {
        if (-power + 1 >= 64) return 0;
        mantissa >>= -power + 1;
        mantissa += mantissa & 1;
        mantissa >>= 1;
        // Rounding may have lifted it out of the subnormal ones, where the hidden bit becomes the
        // exponent.
        return mantissa;
    }
    // Halfway between two floats: to the even one.
    if (low <= 1 && q >= Format::least_even && q <= Format::most_even && (mantissa & 3) == 1 && mantissa << shift == high)
        mantissa &= ~(u64)1;
    mantissa += mantissa & 1;
    mantissa >>= 1;
    if (mantissa >= (u64)2 << Format::mantissa_bits) {
        mantissa = (u64)1 << Format::mantissa_bits;
        power++;
    }
    if (power >= Format::infinite) return infinity;
    return (mantissa & ~((u64)1 << Format::mantissa_bits)) | (u64)power << Format::mantissa_bits;
}

// The bits of the float that the text says.
template <class Format> WF_CALLED u32 parse_float_bits(const view& padded, const u64* table, u64* out) {
    view v = without_blanks(padded);
    *out = 0;
    u32 i = 0;
    bool negative = false;
    if (v.length > 0 && (byte_at(v, 0) == '-' || byte_at(v, 0) == '+')) negative = byte_at(v, i++) == '-';
    const i32 width = Format::mantissa_bits == 52 ? 64 : 32;
    const u64 sign = (u64)(negative ? 1 : 0) << (width - 1), infinity = (u64)Format::infinite << Format::mantissa_bits;
    if (i < v.length && is_letter(byte_at(v, i))) {
        view word = slice(v, i, v.length - i);
        *out = sign | infinity;
        if (abbreviates(word, 0x666e69ull, 3, 3) || abbreviates(word, 0x7974696e69666e69ull, 8, 8)) return READ;
        *out |= (u64)1 << (Format::mantissa_bits - 1);
        return abbreviates(word, 0x6e616eull, 3, 3) ? READ : REFUSED;
    }
    // 19 digits fit 64 bits.
    u64 w = 0;
    i32 q = 0;
    u32 digits = 0, kept = 0;
    bool behind = false, dropped = false;
    for (; i < v.length; i++) {
        u8 byte = byte_at(v, i);
        if (byte == '.' && !behind) {
            behind = true;
            continue;
        }
        if (!is_digit(byte)) break;
        digits++;
        u64 digit = (u64)(byte - '0');
        if (kept < 19) {
            w = w * 10 + digit;
            kept += w > 0 ? 1 : 0;
            q -= behind ? 1 : 0;
        } else {
            dropped |= digit != 0;
            q += behind ? 0 : 1;
        }
    }
    if (digits == 0) return REFUSED;
    if (i < v.length) {
        if (lowered(byte_at(v, i++)) != 'e') return REFUSED;
        bool down = false;
        if (i < v.length && (byte_at(v, i) == '-' || byte_at(v, i) == '+')) down = byte_at(v, i++) == '-';
        if (i == v.length) return REFUSED;
        i32 exponent = 0;
        for (; i < v.length; i++) {
            if (!is_digit(byte_at(v, i))) return REFUSED;
            // Farther than any text is long is as far.
            if (exponent < 100000000) exponent = exponent * 10 + (byte_at(v, i) - '0');
        }
        q += down ? -exponent : exponent;
    }
    u64 bits = nearest_float<Format>(w, q, table);
    // Digits beyond lie between w and w + 1.
    if (dropped && nearest_float<Format>(w + 1, q, table) != bits) return LEFT;
    *out = sign | bits;
    return READ;
}

WF_DEVICE u32 parse_float(const view& v, const u64* table, f64* out) {
    u64 raw;
    u32 outcome = parse_float_bits<double_format>(v, table, &raw);
    *out = double_of_bits(raw);
    return outcome;
}
WF_DEVICE u32 parse_float(const view& v, const u64* table, f32* out) {
    u64 raw;
    u32 outcome = parse_float_bits<single_format>(v, table, &raw);
    *out = float_of_bits((u32)raw);
    return outcome;
}

}  // namespace wf
