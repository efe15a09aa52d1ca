// moment.cuh: dates and times as text by a pattern that the host has taken apart.
//
//   '%d. %B %Y'    DAY width 2   literal ". "   MONTH names from 1 on   literal " "   YEAR
//   literals       ". ", "January", …
//
// An item is two words: what | pad << 8 | width << 16, and the literal that it is, or the first of
// its names. Numbers are filled up to their width, sign included, with zeros (1) or blanks (2), or
// not (0).

#pragma once
#include "text.cuh"
#include "time.cuh"

namespace wf {

constexpr u32 MOMENT_LITERAL = 0;
constexpr u32 MOMENT_YEAR = 1;
constexpr u32 MOMENT_CENTURY = 2;
constexpr u32 MOMENT_YEAR_OF_CENTURY = 3;
constexpr u32 MOMENT_ISO_YEAR = 4;
constexpr u32 MOMENT_ISO_CENTURY = 5;
constexpr u32 MOMENT_ISO_YEAR_OF_CENTURY = 6;
constexpr u32 MOMENT_QUARTER = 7;
constexpr u32 MOMENT_MONTH = 8;
constexpr u32 MOMENT_DAY = 9;
constexpr u32 MOMENT_WEEK_FROM_SUNDAY = 10;
constexpr u32 MOMENT_WEEK_FROM_MONDAY = 11;
constexpr u32 MOMENT_ISO_WEEK = 12;
constexpr u32 MOMENT_WEEKDAY_FROM_SUNDAY = 13;
constexpr u32 MOMENT_ISO_WEEKDAY = 14;
constexpr u32 MOMENT_DAY_OF_YEAR = 15;
constexpr u32 MOMENT_HOUR = 16;
constexpr u32 MOMENT_HOUR_OF_HALF = 17;
constexpr u32 MOMENT_MINUTE = 18;
constexpr u32 MOMENT_SECOND = 19;
constexpr u32 MOMENT_NANOS = 20;
constexpr u32 MOMENT_MICROS = 21;
constexpr u32 MOMENT_MILLIS = 22;
constexpr u32 MOMENT_SECONDS = 23;  // since 1970
constexpr u32 MOMENT_FRACTION = 24; // as many digits as are needed, by threes
constexpr u32 MOMENT_NAMES = 32;    // and more: names of what is counted

struct moment {
    i32 days;
    u32 seconds;
    u32 nanos;

    WF_DEVICE i64 part(u32 what) const {
        switch (what) {
            case MOMENT_YEAR: return year_of(days);
            // Two digits of 8 bits, whatever comes of years before the first.
            case MOMENT_CENTURY: return (u8)floor_quotient<i64>(year_of(days), 100);
            case MOMENT_YEAR_OF_CENTURY: return floor_remainder<i64>(year_of(days), 100);
            case MOMENT_ISO_YEAR: return iso_year(days);
            case MOMENT_ISO_CENTURY: return (u8)floor_quotient<i64>(iso_year(days), 100);
            case MOMENT_ISO_YEAR_OF_CENTURY: return floor_remainder<i64>(iso_year(days), 100);
            case MOMENT_QUARTER: return quarter_of(days);
            case MOMENT_MONTH: return month_of(days);
            case MOMENT_DAY: return day_of(days);
            case MOMENT_WEEK_FROM_SUNDAY: return (day_of_year(days) - weekday_from_sunday(days) + 6) / 7;
            case MOMENT_WEEK_FROM_MONDAY: return (day_of_year(days) - weekday_of(days) + 6) / 7;
            case MOMENT_ISO_WEEK: return iso_week(days);
            case MOMENT_WEEKDAY_FROM_SUNDAY: return weekday_from_sunday(days);
            case MOMENT_ISO_WEEKDAY: return iso_weekday(days);
            case MOMENT_DAY_OF_YEAR: return day_of_year(days);
            case MOMENT_HOUR: return seconds / 3600;
            case MOMENT_HOUR_OF_HALF: return (seconds / 3600 + 11) % 12 + 1;
            case MOMENT_MINUTE: return seconds / 60 % 60;
            case MOMENT_SECOND: return seconds % 60;
            case MOMENT_NANOS: return nanos;
            case MOMENT_MICROS: return nanos / 1000;
            case MOMENT_MILLIS: return nanos / 1000000;
            case MOMENT_SECONDS: return (i64)days * 86400 + seconds;
        }
        return 0;
    }

    // Which of the names of what is counted: of months, of weekdays, of halves of the day.
    WF_DEVICE u32 name(u32 what) const {
        if (what == MOMENT_MONTH) return (u32)month_of(days) - 1;
        return what == MOMENT_HOUR ? seconds / 43200 : (u32)weekday_from_sunday(days);
    }
};

WF_DEVICE void put_number(counting_writer& text, i64 value, u32 width, u32 pad, bool sign) {
    u64 magnitude = value < 0 ? 0 - (u64)value : (u64)value;
    u32 digits = 1;
    u64 power = 1;
    for (u64 rest = magnitude / 10; rest != 0; rest /= 10) {
        digits++;
        power *= 10;
    }
    const u32 signs = value < 0 || sign;
    if (pad == 2)
        for (u32 i = digits + signs; i < width; i++) text.put(' ');
    if (signs) text.put(value < 0 ? '-' : '+');
    if (pad == 1)
        for (u32 i = digits + signs; i < width; i++) text.put('0');
    for (; power != 0; power /= 10) text.put((u8)('0' + magnitude / power % 10));
}

// A number of 8 bits as two digits, of which the first may be more than 9.
WF_DEVICE void put_two(counting_writer& text, u8 value, u32 pad) {
    if (value >= 10 || pad == 1) text.put((u8)('0' + value / 10));
    else if (pad == 2) text.put(' ');
    text.put((u8)('0' + value % 10));
}

WF_CALLED view moment_text(const text_arena& arena, moment at, const u32* items, u32 count, const view* literals) {
    counting_writer text(arena);
    for (u32 pass = 0; pass < 2; pass++) {
        for (u32 k = 0; k < count; k++) {
            const u32 what = items[2 * k] & 255, pad = items[2 * k] >> 8 & 255, width = items[2 * k] >> 16;
            if (what == MOMENT_LITERAL || what >= MOMENT_NAMES) {
                const u32 name = what == MOMENT_LITERAL ? 0 : at.name(what - MOMENT_NAMES);
                const view literal = literals[items[2 * k + 1] + name];
                for (u32 i = 0; i < literal.length; i++) text.put(byte_at(literal, i));
            } else if (what == MOMENT_FRACTION) {
                if (at.nanos == 0) continue;
                const u32 digits = at.nanos % 1000000 == 0 ? 3 : at.nanos % 1000 == 0 ? 6 : 9;
                text.put('.');
                put_number(text, digits == 3 ? at.nanos / 1000000 : digits == 6 ? at.nanos / 1000 : at.nanos, digits, 1,
                           false);
            } else if (width == 2) {
                put_two(text, (u8)at.part(what), pad);
            } else {
                const i64 value = at.part(what);
                const bool year = what == MOMENT_YEAR || what == MOMENT_ISO_YEAR;
                const bool sign = year && (value < 0 || value > 9999);
                put_number(text, value, width + sign, pad, sign);
            }
        }
        if (pass == 0) text.begin(arena);
    }
    return text.text.out;
}

}  // namespace wf
