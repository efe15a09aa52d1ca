// parse_time.cuh: dates, times of day and timestamps from text, as Arrow reads them (ISO 8601, and
// some variants), and timestamps without seconds.
//
//   parse_date("2024-02-29", &d) = READ, d = 19782      also "+12024-02-29" and "20240229"
//   parse_timestamp("2024-02-29T12:00:00.5+01:00", 1000, &t) = READ, t = 1709204400500
//
// Blanks around do not count. The offset of what has no zone is dropped, as in DuckDB. What names a
// time zone is LEFT to the host, which has their tables.

#pragma once
#include "parse.cuh"
#include "time.cuh"

namespace wf {

// A byte less '0'; 0 beyond the end.
WF_DEVICE u32 digit_at(const view& v, u32 i) { return i < v.length ? (u8)(byte_at(v, i) - '0') : 0; }
// Bit i: byte i is a digit, of the first 32.
WF_DEVICE u32 digit_mask(const view& v, u32 most) {
    u32 mask = 0;
    for (u32 i = 0; i < v.length && i < most; i++) mask |= is_digit(byte_at(v, i)) ? 1u << i : 0;
    return mask;
}
WF_DEVICE bool has_at(const view& v, u32 i, u8 byte) { return i < v.length && byte_at(v, i) == byte; }
WF_DEVICE i32 two_digits(const view& v, u32 i) { return (i32)(digit_at(v, i) * 10 + digit_at(v, i + 1)); }
WF_DEVICE i32 four_digits(const view& v, u32 i) { return two_digits(v, i) * 100 + two_digits(v, i + 2); }

WF_DEVICE bool is_date(i32 year, i64 month, i64 day) {
    return month >= 1 && month <= 12 && day >= 1 && day <= days_in_month(year, (i32)month);
}

// Since midnight, in nanoseconds; the 61st second of a minute lies within its 60th, as on the host.
struct clock {
    i32 seconds;
    u32 nanos;
};

// The digits of a fraction of a second from `i` on, of which nine count.
WF_DEVICE u32 nanos_at(const view& v, u32 i, u32 digits) {
    u32 nanos = 0;
    for (u32 d = 0; d < 9; d++) nanos = nanos * 10 + (d < digits ? digit_at(v, i + d) : 0);
    return nanos;
}
WF_DEVICE bool set_clock(i32 hour, i32 minute, i32 second, u32 nanos, clock* out) {
    if (second == 60) {
        second = 59;
        nanos += 1000000000;
    }
    out->seconds = hour * 3600 + minute * 60 + second;
    out->nanos = nanos;
    return hour < 24 && minute < 60 && second < 60;
}

// "+01:00", "+0100", "+01": seconds to the east.
WF_DEVICE bool parse_offset(const view& v, u32 begin, i32* out) {
    u32 length = v.length - begin;
    if (!(length == 3 || length == 5 || (length == 6 && byte_at(v, begin + 3) == ':'))) return false;
    u8 sign = byte_at(v, begin);
    u32 minutes = begin + (length == 6 ? 4 : 3);
    for (u32 i = begin + 1; i < v.length; i++)
        if (!is_digit(byte_at(v, i)) && !(length == 6 && i == begin + 3)) return false;
    i32 seconds = two_digits(v, begin + 1) * 3600 + (length == 3 ? 0 : two_digits(v, minutes) * 60);
    *out = sign == '-' ? -seconds : seconds;
    return (sign == '+' || sign == '-') && seconds < 86400;
}

// Seconds since 1970 in universal time, or of the local time; and nanoseconds (beyond a second in a
// leap second).
WF_CALLED u32 parse_instant(const view& v, bool local, i64* seconds, u32* nanos) {
    *seconds = 0;
    *nanos = 0;
    if (v.length < 10) return REFUSED;
    u32 mask = digit_mask(v, 32);
    if ((mask & 0x3ff) != 0x36f || byte_at(v, 4) != '-' || byte_at(v, 7) != '-') return REFUSED;
    i32 year = four_digits(v, 0), month = two_digits(v, 5), day = two_digits(v, 8);
    if (!is_date(year, month, day)) return REFUSED;
    *seconds = (i64)days_of(year, month, day) * 86400;
    if (v.length == 10) return READ;
    u8 between = byte_at(v, 10);
    if (between != 'T' && between != 't' && between != ' ') return REFUSED;
    u32 shape = mask >> 11 & 0xff, end = 19;
    clock time{0, 0};
    bool valid;
    if (shape == 0xdb && has_at(v, 13, ':') && has_at(v, 16, ':')) {  // 09:26:56
        u32 fraction = 0;
        if (has_at(v, 19, '.')) {
            while (fraction < 12 && (mask >> (20 + fraction) & 1) != 0) fraction++;
            if (fraction == 0) return REFUSED;
            end = 20 + fraction;
        }
        valid = set_clock(two_digits(v, 11), two_digits(v, 14), two_digits(v, 17), nanos_at(v, 20, fraction), &time);
    } else if (shape == 0x3f) {  // 092656
        valid = set_clock(two_digits(v, 11), two_digits(v, 13), two_digits(v, 15), 0, &time);
        end = 17;
    } else if ((shape & 0x3f) == 0x1b && has_at(v, 13, ':') && !has_at(v, 16, ':')) {  // 09:26
        valid = set_clock(two_digits(v, 11), two_digits(v, 14), 0, 0, &time);
        end = 16;
    } else {
        return REFUSED;
    }
    if (!valid) return REFUSED;
    while (end >= 32 && end < v.length && is_digit(byte_at(v, end))) end++;
    *seconds += time.seconds;
    *nanos = time.nanos;
    if (end >= v.length) return READ;
    if (end == v.length - 1 && lowered(byte_at(v, end)) == 'z') return READ;
    for (u32 width = 1; end < v.length && width != 0; end += width) width = white_space_at(v, end);
    i32 offset = 0;
    if (end < v.length && parse_offset(v, end, &offset)) {
        if (!local) *seconds -= offset;
        return READ;
    }
    return end < v.length && is_letter(byte_at(v, end)) ? LEFT : REFUSED;
}

// Ticks of which a second has `per_second`.
WF_DEVICE u32 parse_timestamp(const view& v, i64 per_second, bool local, i64* out) {
    i64 seconds;
    u32 nanos;
    u32 outcome = parse_instant(without_blanks(v), local, &seconds, &nanos);
    // Whole seconds do not count those that leap.
    i64 parts = per_second == 1 ? 0 : (i64)(nanos / (u32)(1000000000 / per_second));
    i128 ticks = (i128)seconds * per_second + parts;
    *out = (i64)ticks;
    return outcome == READ && (ticks < I64_MIN || ticks > I64_MAX) ? REFUSED : outcome;
}

// A time of day without the offset behind it.
WF_DEVICE view without_offset(const view& v) {
    i32 offset = 0;
    u32 begin = 0;
    while (begin < v.length && byte_at(v, begin) != '+' && byte_at(v, begin) != '-') begin++;
    if (begin == v.length || !parse_offset(v, begin, &offset)) return v;
    return without_blanks(slice(v, 0, begin));
}

// Ticks since midnight of "9:26", "09:26:56.123", "09:26:56 PM".
WF_CALLED bool parse_clock(const view& whole, i64 per_second, i64* out) {
    *out = 0;
    if (whole.length < 4) return false;
    // Perhaps with a half of the day behind.
    u32 length = whole.length;
    bool morning = false, evening = false;
    if (byte_at(whole, length - 3) == ' ' && lowered(byte_at(whole, length - 1)) == 'm') {
        morning = lowered(byte_at(whole, length - 2)) == 'a';
        evening = lowered(byte_at(whole, length - 2)) == 'p';
    }
    view v = slice(whole, 0, morning || evening ? length - 3 : length);
    if (v.length < 4) return false;
    u32 colon = byte_at(v, 1) == ':' ? 1 : 2;
    if (byte_at(v, colon) != ':') return false;
    u32 at = colon + 1;
    if (v.length < at + 2) return false;
    u32 hour = colon == 1 ? digit_at(v, 0) : digit_at(v, 0) * 10 + digit_at(v, 1);
    bool digits = is_digit(byte_at(v, 0)) && (colon == 1 || is_digit(byte_at(v, 1)));
    digits = digits && is_digit(byte_at(v, at)) && is_digit(byte_at(v, at + 1));
    i32 minute = two_digits(v, at), second = 0;
    u32 nanos = 0;
    if (v.length > at + 2) {
        if (byte_at(v, at + 2) != ':' || v.length < at + 5) return false;
        digits = digits && is_digit(byte_at(v, at + 3)) && is_digit(byte_at(v, at + 4));
        second = two_digits(v, at + 3);
        if (v.length > at + 5) {
            u32 fraction = v.length - (at + 6);
            if (byte_at(v, at + 5) != '.' || fraction == 0) return false;
            for (u32 i = 0; i < fraction; i++) digits = digits && is_digit(byte_at(v, at + 6 + i));
            nanos = nanos_at(v, at + 6, minimum(fraction, 9u));
        }
    }
    if (!digits) return false;
    if (morning || evening) {
        if (hour < 1 || hour > 12) return false;
        hour = hour % 12 + (evening ? 12 : 0);
    }
    clock time{0, 0};
    if (!set_clock((i32)hour, minute, second, nanos, &time)) return false;
    *out = (i64)time.seconds * per_second + time.nanos / (u32)(1000000000 / per_second);
    return true;
}
template <class T> WF_DEVICE bool parse_time(const view& v, i64 per_second, T* out) {
    i64 ticks;
    bool read = parse_clock(without_offset(without_blanks(v)), per_second, &ticks);
    *out = (T)ticks;
    return read;
}

// A number from byte `begin` up to `end`, perhaps behind a plus; −1 where there is none, or one of
// more than 9 digits.
WF_DEVICE i64 parse_part(const view& v, u32 begin, u32 end) {
    if (begin < end && byte_at(v, begin) == '+') begin++;
    if (begin >= end) return -1;
    i64 value = 0;
    for (u32 i = begin; i < end; i++) {
        if (!is_digit(byte_at(v, i)) || value > 99999999) return -1;
        value = value * 10 + (byte_at(v, i) - '0');
    }
    return value;
}

// "+12024-02-29": a sign, and a year of any number of digits.
WF_CALLED bool parse_signed_date(const view& v, i32* out) {
    u32 year_end = 1;
    while (year_end < v.length && byte_at(v, year_end) != '-') year_end++;
    u32 month_end = year_end + 1;
    while (month_end < v.length && byte_at(v, month_end) != '-') month_end++;
    if (year_end < 5 || month_end >= v.length || !is_digit(byte_at(v, 1))) return false;
    i64 year = parse_part(v, 1, year_end);
    i64 month = parse_part(v, year_end + 1, month_end), day = parse_part(v, month_end + 1, v.length);
    if (year < 0 || month < 0 || day < 0) return false;
    if (byte_at(v, 0) == '-') year = -year;
    i64 era = floor_quotient<i64>(year, 400);
    i32 within = (i32)(year - era * 400);
    if (!is_date(within, month, day)) return false;
    i64 days = era * 146097 + days_of(within, (i32)month, (i32)day);
    *out = (i32)days;
    return days >= I32_MIN && days <= I32_MAX;
}

// Days since 1970.
WF_CALLED u32 parse_date(const view& padded, i32* out) {
    view v = without_blanks(padded);
    *out = 0;
    if (v.length == 0) return REFUSED;
    if (byte_at(v, 0) == '+' || byte_at(v, 0) == '-') return parse_signed_date(v, out) ? READ : REFUSED;
    if (v.length > 10) {
        i64 seconds;
        u32 nanos;
        u32 outcome = parse_instant(v, true, &seconds, &nanos);
        *out = (i32)floor_quotient<i64>(seconds, 86400);
        return outcome;
    }
    u32 mask = digit_mask(v, 10);
    i32 year = four_digits(v, 0), month, day;
    bool wide = has_at(v, 7, '-'), narrow = has_at(v, 6, '-');
    if (!has_at(v, 4, '-')) {
        if (mask != 0xff || v.length != 8) return REFUSED;
        month = two_digits(v, 4);
        day = two_digits(v, 6);
    } else if (mask == 0x36f && wide) {  // 2024-02-29
        month = two_digits(v, 5);
        day = two_digits(v, 8);
    } else if (mask == 0x16f && wide) {  // 2024-02-9
        month = two_digits(v, 5);
        day = (i32)digit_at(v, 8);
    } else if (mask == 0x1af && narrow) {  // 2024-2-29
        month = (i32)digit_at(v, 5);
        day = two_digits(v, 7);
    } else if (mask == 0xaf && narrow) {  // 2024-2-9
        month = (i32)digit_at(v, 5);
        day = (i32)digit_at(v, 7);
    } else {
        return REFUSED;
    }
    if (!is_date(year, month, day)) return REFUSED;
    *out = days_of(year, month, day);
    return READ;
}

}  // namespace wf
