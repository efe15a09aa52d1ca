// csv.cuh: the values of CSV text, found and converted.
//
//   a,"x ""y""",3      values end at 1, 11 and 13; the row begins at 0
//
//   csv_functions   a thread for 64 bytes: the automaton's state behind them, for each state before;
//                   composed with those of the threads before it in its tile
//   csv_starts      a block: the state at the begin of each tile
//   csv_count       a thread for 64 bytes: how many values and rows end there
//   csv_fields      the same again: where values end, where rows begin
//   csv_convert     a block for 256 rows of a column
//
// A quote opens a value only as its first byte, so whether a byte lies in quotes depends on all
// bytes before it. The automaton has seven states; what a stretch of text does to it is a function
// from states to states, numbers of four bits. Functions are composed as numbers are added in a
// running sum.

#pragma once
#include "parse_time.cuh"

namespace wf {

constexpr u32 CSV_THREADS = 256;
constexpr u32 CSV_SEGMENT = 64;  // bytes of a thread
constexpr u32 CSV_ROWS = 256;    // rows of a block that converts

// States. From CSV_FIELD on a row has begun. A line without a byte is no row: so the line feed
// behind a carriage return ends nothing.
enum csv_state : u32 {
    CSV_ROW = 0,      // at a row's begin
    CSV_COMMENT = 1,  // in a line that is no row
    CSV_FIELD = 2,    // at a value's begin, behind a delimiter
    CSV_PLAIN = 3,    // in a value, outside of quotes
    CSV_QUOTED = 4,   // inside of quotes
    CSV_CLOSED = 5,   // behind a quote inside of quotes: the closing one, or the first of a pair
    CSV_ESCAPED = 6,  // behind the escape byte inside of quotes
};

// A function from states to states as eight bytes, of state 0 first. Nothing is in state 7.
constexpr u64 csv_function(u64 row, u64 comment, u64 field, u64 plain, u64 quoted, u64 closed, u64 escaped) {
    return row | comment << 8 | field << 16 | plain << 24 | quoted << 32 | closed << 40 | escaped << 48 | (u64)7 << 56;
}
constexpr u64 CSV_OTHER_NEXT =
    csv_function(CSV_PLAIN, CSV_COMMENT, CSV_PLAIN, CSV_PLAIN, CSV_QUOTED, CSV_PLAIN, CSV_QUOTED);
constexpr u64 CSV_DELIMITER_NEXT =
    csv_function(CSV_FIELD, CSV_COMMENT, CSV_FIELD, CSV_FIELD, CSV_QUOTED, CSV_FIELD, CSV_QUOTED);
constexpr u64 CSV_QUOTE_NEXT =
    csv_function(CSV_QUOTED, CSV_COMMENT, CSV_QUOTED, CSV_PLAIN, CSV_CLOSED, CSV_QUOTED, CSV_QUOTED);
constexpr u64 CSV_END_NEXT = csv_function(CSV_ROW, CSV_ROW, CSV_ROW, CSV_ROW, CSV_QUOTED, CSV_ROW, CSV_QUOTED);
constexpr u64 CSV_ESCAPE_NEXT =
    csv_function(CSV_PLAIN, CSV_COMMENT, CSV_PLAIN, CSV_PLAIN, CSV_ESCAPED, CSV_PLAIN, CSV_QUOTED);
constexpr u64 CSV_COMMENT_NEXT =
    csv_function(CSV_COMMENT, CSV_COMMENT, CSV_PLAIN, CSV_PLAIN, CSV_QUOTED, CSV_PLAIN, CSV_QUOTED);
// Every state to itself, in numbers of four bits.
constexpr u32 CSV_IDENTITY = 0x76543210u;

// The bytes that mean something. One that the file does not have is a line feed here.
struct csv_marks {
    u8 delimiter, quote, escape, comment;
    bool rare;  // whether the file has the last two
    WF_DEVICE explicit csv_marks(u64 word)
        : delimiter((u8)word), quote((u8)(word >> 8)), escape((u8)(word >> 16)), comment((u8)(word >> 24)) {
        rare = escape != '\n' || comment != '\n';
    }
};

WF_DEVICE u64 csv_next(u8 byte, const csv_marks& marks) {
    if (byte == '\n' || byte == '\r') return CSV_END_NEXT;
    if (byte == marks.delimiter) return CSV_DELIMITER_NEXT;
    if (byte == marks.quote) return CSV_QUOTE_NEXT;
    if (byte == marks.escape) return CSV_ESCAPE_NEXT;
    return byte == marks.comment ? CSV_COMMENT_NEXT : CSV_OTHER_NEXT;
}

// The function that goes through `first` and then through `next`, which has a byte a state.
WF_DEVICE u32 csv_then(u32 first, u64 next) {
    u32 low = __byte_perm((u32)next, (u32)(next >> 32), first & 0xffff);
    u32 high = __byte_perm((u32)next, (u32)(next >> 32), first >> 16);
    low = (low | low >> 4) & 0x00ff00ffu;
    high = (high | high >> 4) & 0x00ff00ffu;
    return ((low | low >> 8) & 0xffff) | (high | high >> 8) << 16;
}
// Numbers of four bits to bytes.
WF_DEVICE u64 csv_bytes(u32 function) {
    u32 low = function & 0xffff, high = function >> 16;
    low = (low | low << 8) & 0x00ff00ffu;
    high = (high | high << 8) & 0x00ff00ffu;
    low = (low | low << 4) & 0x0f0f0f0fu;
    high = (high | high << 4) & 0x0f0f0f0fu;
    return low | (u64)high << 32;
}
WF_DEVICE u32 csv_compose(u32 first, u32 next) { return csv_then(first, csv_bytes(next)); }
WF_DEVICE u32 csv_apply(u32 function, u32 state) { return function >> (4 * state) & 7; }
WF_DEVICE u32 csv_apply(u64 next, u32 state) { return (u32)(next >> (8 * state)) & 7; }

// Bit 7 of each byte of `word` that is `byte`.
WF_DEVICE u32 csv_equal(u32 word, u8 byte) {
    const u32 x = word ^ (u32)byte * 0x01010101u;
    return ~(((x & 0x7f7f7f7fu) + 0x7f7f7f7fu) | x | 0x7f7f7f7fu);
}

// What finds values in a text. Of the text bytes `begin` to `end` count; `begin` lies in the first
// segment. All of the last segment can be read.
struct CsvText {
    u8* text;
    u64 begin, end;
    u64 marks;
    u64 first;         // the state at `begin`
    u64 segments;
    u32* functions;    // of each segment: from the begin of its tile to its own
    u32* tiles;        // of each tile: through all of it; then the state at its begin
    u8* states;        // at the begin of each segment
    u32* field_counts; // of each segment
    u32* row_counts;
    u64* found;        // values, rows, the state at the end, the place behind the last begin of a row
    const u32* field_offsets;
    const u32* row_offsets;
    u32* field_ends;   // of each value
    u32* row_begins;   // of each row, and of a last one that does not end
    u32* row_fields;   // of each row its first value, and one more
};

// Bits of the bytes of four words that mean something.
WF_DEVICE u32 csv_meant(const uint4& words, const csv_marks& marks) {
    const u32 of[4] = {words.x, words.y, words.z, words.w};
    u32 meant = 0;
#pragma unroll
    for (u32 j = 0; j < 4; j++) {
        u32 here = csv_equal(of[j], '\n') | csv_equal(of[j], '\r') | csv_equal(of[j], marks.delimiter);
        if (marks.quote != '\n') here |= csv_equal(of[j], marks.quote);
        if (marks.rare) here |= csv_equal(of[j], marks.escape) | csv_equal(of[j], marks.comment);
        meant |= (here * 0x204081u >> 28) << (4 * j);  // bits 7, 15, 23, 31 to 0 to 3
    }
    return meant;
}

WF_DEVICE u8 csv_byte(const uint4& words, u32 at) {
    const u32 word = at < 8 ? (at < 4 ? words.x : words.y) : (at < 12 ? words.z : words.w);
    return (u8)(word >> (8 * (at & 3)));
}

// Calls `step(next, place)` for bytes of a segment, in order: for each that means something, and
// once for a run of others in 16.
template <class Step> WF_DEVICE void csv_walk(const CsvText& p, u64 segment, Step step) {
    const csv_marks marks(p.marks);
    const uint4* const words = (const uint4*)(p.text + segment * CSV_SEGMENT);
#pragma unroll 1
    for (u32 k = 0; k < CSV_SEGMENT / 16; k++) {
        const u64 base = segment * CSV_SEGMENT + k * 16;
        if (base >= p.end) break;
        const uint4 loaded = words[k];
        u32 at = base < p.begin ? (u32)minimum(p.begin - base, (u64)16) : 0;
        const u32 end = (u32)minimum(p.end - base, (u64)16);
        u32 meant = csv_meant(loaded, marks) & (0xffffu << at) & ((1u << end) - 1);
        while (meant != 0) {
            const u32 next = (u32)trailing_zeros(meant);
            if (next > at) step(CSV_OTHER_NEXT, base + at);
            step(csv_next(csv_byte(loaded, next), marks), base + next);
            meant &= meant - 1;
            at = next + 1;
        }
        if (at < end) step(CSV_OTHER_NEXT, base + at);
    }
}

// Of each thread the composition of all before it in the block; of all in `whole`.
WF_DEVICE u32 csv_compose_before(u32 own, u32* warps, u32& whole) {
    u32 up_to = own;
#pragma unroll
    for (u32 by = 1; by < WARP; by *= 2) {
        const u32 below = __shfl_up_sync(FULL_WARP, up_to, by);
        if (lane() >= by) up_to = csv_compose(below, up_to);
    }
    if (lane() == 31) warps[warp()] = up_to;
    u32 before = __shfl_up_sync(FULL_WARP, up_to, 1);
    if (lane() == 0) before = CSV_IDENTITY;
    __syncthreads();  // all warps' functions are there
    u32 outside = CSV_IDENTITY;
    whole = CSV_IDENTITY;
    for (u32 i = 0; i < blockDim.x / WARP; i++) {
        if (i == warp()) outside = whole;
        whole = csv_compose(whole, warps[i]);
    }
    return csv_compose(outside, before);
}

WF_DEVICE void csv_functions_body(const CsvText& p) {
    WF_SHARED_ARRAY(u32, warps, CSV_THREADS / WARP);
    const u64 segment = (u64)blockIdx.x * CSV_THREADS + threadIdx.x;
    u32 own = CSV_IDENTITY, whole;
    if (segment < p.segments) csv_walk(p, segment, [&](u64 next, u64) { own = csv_then(own, next); });
    const u32 before = csv_compose_before(own, warps, whole);
    if (segment < p.segments) p.functions[segment] = before;
    if (threadIdx.x == 0) p.tiles[blockIdx.x] = whole;
}

// One block.
WF_DEVICE void csv_starts_body(const CsvText& p) {
    WF_SHARED_ARRAY(u32, warps, 1024 / WARP);
    const u64 tiles = divide_up(p.segments, (u64)CSV_THREADS);
    u32 state = (u32)p.first;
    for (u64 begin = 0; begin < tiles; begin += blockDim.x) {
        const u64 tile = begin + threadIdx.x;
        u32 whole;
        const u32 before = csv_compose_before(tile < tiles ? p.tiles[tile] : CSV_IDENTITY, warps, whole);
        if (tile < tiles) p.tiles[tile] = csv_apply(before, state);
        state = csv_apply(whole, state);
        __syncthreads();  // the warps' functions were read
    }
}

WF_DEVICE void csv_count_body(const CsvText& p) {
    WF_SHARED_ARRAY(u64, sums, 3);
    const u64 segment = (u64)blockIdx.x * CSV_THREADS + threadIdx.x;
    if (threadIdx.x < 3) sums[threadIdx.x] = 0;
    __syncthreads();  // the sums are zero
    if (segment < p.segments) {
        u32 state = csv_apply(p.functions[segment], p.tiles[blockIdx.x]), fields = 0, rows = 0;
        u64 begun = 0;
        p.states[segment] = (u8)state;
        csv_walk(p, segment, [&](u64 next, u64 place) {
            const u32 now = csv_apply(next, state);
            if (state < CSV_FIELD && now >= CSV_FIELD) begun = place + 1;
            const bool ends = state >= CSV_FIELD && now < CSV_FIELD;
            rows += ends;
            fields += ends || now == CSV_FIELD;
            state = now;
        });
        p.field_counts[segment] = fields;
        p.row_counts[segment] = rows;
        if (fields != 0) atomicAdd(sums, (u64)fields);
        if (rows != 0) atomicAdd(sums + 1, (u64)rows);
        if (begun != 0) atomicMax(sums + 2, begun);
        if (segment == p.segments - 1) p.found[2] = state;
    }
    __syncthreads();  // the sums are complete
    if (threadIdx.x < 2 && sums[threadIdx.x] != 0) atomicAdd(p.found + threadIdx.x, sums[threadIdx.x]);
    if (threadIdx.x == 2 && sums[2] != 0) atomicMax(p.found + 3, sums[2]);
}

WF_DEVICE void csv_fields_body(const CsvText& p) {
    const u64 segment = (u64)blockIdx.x * CSV_THREADS + threadIdx.x;
    if (segment >= p.segments) return;
    u32 state = p.states[segment], field = p.field_offsets[segment], row = p.row_offsets[segment];
    csv_walk(p, segment, [&](u64 next, u64 place) {
        const u32 now = csv_apply(next, state);
        if (state < CSV_FIELD && now >= CSV_FIELD) {
            p.row_begins[row] = (u32)place;
            p.row_fields[row] = field;
        }
        const bool ends = state >= CSV_FIELD && now < CSV_FIELD;
        if (ends || now == CSV_FIELD) p.field_ends[field++] = (u32)place;
        row += ends;
        state = now;
    });
    if (segment == p.segments - 1 && state < CSV_FIELD) p.row_fields[row] = field;
}

// -------------------------------------------------------------------------------------- conversion

// What becomes of a value: numbers that the host writes (kernels/src/ops/csv.rs).
enum csv_kind : u32 {
    CSV_BOOL = 0,
    CSV_SIGNED = 1,    // `width` bytes
    CSV_UNSIGNED = 2,
    CSV_FLOAT = 3,
    CSV_DECIMAL = 4,   // 8 or 16 bytes; `scale`
    CSV_DATE = 5,
    CSV_TIMESTAMP = 6, // `scale` ticks a second
    CSV_TIME = 7,      // 4 or 8 bytes; `scale` ticks a second
    CSV_TEXT = 8,
};
// Bits of a column's `rules`: the type was inferred, so that the whole text has to be of it and
// nothing may be lost; the type has a time zone.
constexpr u32 CSV_EXACT = 1, CSV_ZONED = 2;
// Bits of the call's `rules`: blanks around values outside of quotes do not count; rows may have
// fewer values.
constexpr u64 CSV_TRIM = 1, CSV_FILL = 2, CSV_QUOTED_NULLS = 4;

struct csv_column {
    u64 data;      // of row 0
    u64 validity;  // of row 0
    u64 nulls;     // a word that counts them
    u64 refused;   // a word that is lowered to the first row whose value is none of the type
    u64 bound_low, bound_high;  // of decimals: least magnitude that is none, 128 bits
    u32 field;     // its place in the row
    u32 kind;
    u32 width;
    u32 rules;
    u64 scale;
};

struct CsvConvert {
    u8* text;
    const u32* field_ends;
    const u32* row_begins;
    const u32* row_fields;
    u64 rows;
    const csv_column* columns;
    u64 column_count;
    u64 fields;       // that a row should have
    u64 marks;
    u64 rules;
    const view* nulls;  // texts that are null
    u64 null_count;
    const u64* powers;
    u64* ragged;      // lowered to the first row of another number of values
};

struct csv_value {
    view text;
    bool valid;
};

// The place of the first `one` or `other` of bytes `begin` to `end`, or `end`.
WF_DEVICE u32 csv_find(const u8* text, u32 begin, u32 end, u8 one, u8 other) {
    for (u32 at = begin; at < end; at += 4) {
        const u32 word = load_u32_anywhere(text + at);
        const u32 meant = (csv_equal(word, one) | csv_equal(word, other)) * 0x204081u >> 28;
        if (meant != 0) return minimum(end, at + (u32)trailing_zeros(meant));
    }
    return end;
}

// Takes quotes and escapes out of a value in place, from `at` on; its new end. `at` is the first
// quote or escape behind the opening quote.
WF_CALLED u32 csv_unescape(u8* text, u32 at, u32 end, u8 quote, u8 escape) {
    u32 out = at;
    bool inside = true;
    for (; at < end; at++) {
        u8 byte = text[at];
        if (inside && byte == quote) {
            inside = at + 1 < end && text[at + 1] == quote;
            if (!inside) continue;
            at++;
        } else if (inside && byte == escape && at + 1 < end) {
            byte = text[++at];
        }
        text[out++] = byte;
    }
    return out;
}

WF_DEVICE csv_value csv_value_of(const CsvConvert& p, u32 begin, u32 end) {
    const csv_marks marks(p.marks);
    if (begin < end && marks.quote != '\n' && p.text[begin] == marks.quote) {
        begin++;
        // Of a file without escapes a line feed stands for it.
        const u8 escape = marks.escape == '\n' ? marks.quote : marks.escape;
        const u32 first = csv_find(p.text, begin, end, marks.quote, escape);
        if (first + 1 == end && p.text[first] == marks.quote)
            end = first;
        else
            end = csv_unescape(p.text, first, end, marks.quote, escape);
        const view text = view_in_memory(p.text + begin, end - begin);
        if ((p.rules & CSV_QUOTED_NULLS) == 0) return csv_value{text, true};
        return csv_value{text, end > begin && !in_views(text, p.nulls, (u32)p.null_count)};
    }
    if ((p.rules & CSV_TRIM) != 0) {
        while (begin < end && (p.text[begin] == ' ' || p.text[begin] == '\t')) begin++;
        while (begin < end && (p.text[end - 1] == ' ' || p.text[end - 1] == '\t')) end--;
    }
    const view text = view_in_memory(p.text + begin, end - begin);
    return csv_value{text, end > begin && !in_views(text, p.nulls, (u32)p.null_count)};
}

// The text without spaces and tabs around it: they never matter but to text.
WF_CALLED view csv_bare(const view& v) {
    u32 begin = 0, end = v.length;
    while (begin < end && (byte_at(v, begin) == ' ' || byte_at(v, begin) == '\t')) begin++;
    while (end > begin && (byte_at(v, end - 1) == ' ' || byte_at(v, end - 1) == '\t')) end--;
    return begin == 0 && end == v.length ? v : slice(v, begin, end - begin);
}

// Of inferred types, values have the forms that inference knows (src/io/csv/values.rs): fewer than
// casts read.

// Whether a number begins and ends as the forms do: casts take a plus and white space, too. A word
// is an infinity, or not a number.
WF_DEVICE bool csv_is_number(const view& v, bool word) {
    const u8 first = byte_at(v, 0), last = byte_at(v, v.length - 1);
    if (word && is_letter(last)) return first == '-' ? lowered(byte_at(v, 1)) == 'i' : is_letter(first);
    return (is_digit(first) || first == '-' || first == '.') && (is_digit(last) || last == '.');
}

// Digits behind the point.
WF_DEVICE u32 csv_fraction(const view& v) {
    u32 at = 0;
    while (at < v.length && byte_at(v, at) != '.') at++;
    return v.length - minimum(at + 1, v.length);
}

WF_DEVICE bool csv_to_bool(const view& v, bool exact, bool8* out) {
    if (!exact) return parse_boolean(v, out);
    *out = abbreviates(v, 0x65757274ull, 4, 4);
    return *out != 0 || abbreviates(v, 0x65736c6166ull, 5, 5);
}

struct csv_moment {
    i64 seconds;  // since 1970
    u32 nanos;
    u32 digits;   // of the fraction of a second
    bool zoned;
};

// `Z`, `+01`, `+01:00`, `+0100`: seconds to the east.
WF_DEVICE bool csv_offset(const view& v, u32 at, i32* out) {
    const u32 length = v.length - at;
    *out = 0;
    if (length == 1) return byte_at(v, at) == 'Z';
    if (!(length == 3 || length == 5 || (length == 6 && has_at(v, at + 3, ':')))) return false;
    const u8 sign = byte_at(v, at);
    const u32 minutes = at + length - 2;
    const bool digits = is_digit(byte_at(v, at + 1)) && is_digit(byte_at(v, at + 2)) && is_digit(byte_at(v, minutes)) &&
                        is_digit(byte_at(v, minutes + 1));
    const i32 hour = two_digits(v, at + 1), minute = length == 3 ? 0 : two_digits(v, minutes);
    *out = (hour * 3600 + minute * 60) * (sign == '-' ? -1 : 1);
    return digits && (sign == '+' || sign == '-') && hour < 24 && minute < 60;
}

// `2024-02-29`, or a time of day behind it: ` 12:00`, `T12:00:00.123456789`, with a zone or
// without.
WF_CALLED bool csv_read_moment(const view& v, csv_moment* out) {
    *out = csv_moment{0, 0, 0, false};
    if (v.length < 10) return false;
    const u32 mask = digit_mask(v, 19);
    if ((mask & 0x3ff) != 0x36f || !has_at(v, 4, '-') || !has_at(v, 7, '-')) return false;
    const i32 year = four_digits(v, 0), month = two_digits(v, 5), day = two_digits(v, 8);
    if (!is_date(year, month, day)) return false;
    out->seconds = (i64)days_of(year, month, day) * 86400;
    if (v.length == 10) return true;
    if (!(has_at(v, 10, ' ') || has_at(v, 10, 'T')) || !has_at(v, 13, ':')) return false;
    if (v.length < 16 || (mask >> 11 & 0x1b) != 0x1b) return false;
    const i32 hour = two_digits(v, 11), minute = two_digits(v, 14);
    i32 second = 0, east = 0;
    u32 at = 16;
    if (has_at(v, 16, ':')) {
        if (v.length < 19 || (mask >> 17 & 3) != 3) return false;
        second = two_digits(v, 17);
        at = 19;
        if (has_at(v, 19, '.')) {
            u32 digits = 0;
            while (20 + digits < v.length && is_digit(byte_at(v, 20 + digits))) digits++;
            if (digits == 0 || digits > 9) return false;
            out->nanos = nanos_at(v, 20, digits);
            out->digits = digits;
            at = 20 + digits;
        }
    }
    if (hour > 23 || minute > 59 || second > 59) return false;
    out->zoned = at < v.length;
    if (out->zoned && !csv_offset(v, at, &east)) return false;
    out->seconds += hour * 3600 + minute * 60 + second - east;
    return true;
}

WF_DEVICE bool csv_to_timestamp(const view& v, const csv_column& column, i64* out) {
    if ((column.rules & CSV_EXACT) == 0) return parse_timestamp(v, (i64)column.scale, (column.rules & CSV_ZONED) == 0, out) == READ;
    csv_moment moment;
    *out = 0;
    if (!csv_read_moment(v, &moment)) return false;
    // An instant has a zone, a local time has none.
    if (moment.zoned != ((column.rules & CSV_ZONED) != 0)) return false;
    const i128 ticks = (i128)moment.seconds * (i64)column.scale + moment.nanos / (u32)(1000000000 / column.scale);
    *out = (i64)ticks;
    return ticks >= I64_MIN && ticks <= I64_MAX && (column.scale == 1000000000 || moment.digits <= 6);
}

WF_DEVICE bool csv_to_date(const view& v, bool exact, i32* out) {
    if (!exact) return parse_date(v, out) == READ;
    csv_moment moment;
    const bool read = v.length == 10 && csv_read_moment(v, &moment);
    *out = read ? (i32)(moment.seconds / 86400) : 0;
    return read;
}

WF_DEVICE bool csv_to_decimal(const view& v, const csv_column& column, i128* out) {
    *out = 0;
    if ((column.rules & CSV_EXACT) != 0 && (!csv_is_number(v, false) || csv_fraction(v) > column.scale)) return false;
    if (!parse_decimal(v, (u32)column.scale, out)) return false;
    const u128 magnitude = *out < 0 ? (u128)0 - (u128)*out : (u128)*out;
    return magnitude < make_u128(column.bound_high, column.bound_low);
}

template <class T> WF_DEVICE void csv_store(const csv_column& column, u64 row, T value) {
    ((T*)column.data)[row] = value;
}

WF_DEVICE bool csv_to_signed(const csv_column& column, u64 row, const view& v) {
    i64 value;
    const bool exact = (column.rules & CSV_EXACT) != 0;
    const bool read = parse_signed(v, &value) && (!exact || csv_is_number(v, false));
    switch (column.width) {
        case 1: csv_store(column, row, (i8)value); return read && value == (i8)value;
        case 2: csv_store(column, row, (i16)value); return read && value == (i16)value;
        case 4: csv_store(column, row, (i32)value); return read && value == (i32)value;
        default: csv_store(column, row, value); return read;
    }
}
WF_DEVICE bool csv_to_unsigned(const csv_column& column, u64 row, const view& v) {
    u64 value;
    bool read = parse_unsigned(v, &value);
    switch (column.width) {
        case 1: csv_store(column, row, (u8)value); return read && value == (u8)value;
        case 2: csv_store(column, row, (u16)value); return read && value == (u16)value;
        case 4: csv_store(column, row, (u32)value); return read && value == (u32)value;
        default: csv_store(column, row, value); return read;
    }
}

// Whether a text is an integer beyond 2^53, of which doubles hold not all.
WF_DEVICE bool csv_is_beyond_double(const view& v) {
    const u64 exact = 1ull << 53;
    u64 value = 0;
    for (u32 at = has_at(v, 0, '-') ? 1 : 0; at < v.length; at++) {
        const u8 byte = byte_at(v, at);
        if (!is_digit(byte)) return false;
        if (value <= exact) value = value * 10 + (byte - '0');
    }
    return value > exact;
}

// Writes the value of a row; whether the text is one.
WF_DEVICE bool csv_write(const CsvConvert& p, const csv_column& column, u64 row, const view& v) {
    const bool exact = (column.rules & CSV_EXACT) != 0;
    bool read = true;
    switch (column.kind) {
        case CSV_BOOL: {
            bool8 value;
            read = csv_to_bool(v, exact, &value);
            csv_store(column, row, value);
            break;
        }
        case CSV_SIGNED: return csv_to_signed(column, row, v);
        case CSV_UNSIGNED: return csv_to_unsigned(column, row, v);
        case CSV_FLOAT: {
            read = !exact || csv_is_number(v, true);
            if (column.width == 4) {
                f32 value;
                read = parse_float(v, p.powers, &value) == READ && read;
                csv_store(column, row, value);
            } else {
                f64 value;
                read = parse_float(v, p.powers, &value) == READ && read;
                // An inferred type has a wider one that holds both.
                if (exact && fabs(value) >= 9007199254740992.0 && csv_is_beyond_double(v)) read = false;
                csv_store(column, row, value);
            }
            break;
        }
        case CSV_DECIMAL: {
            i128 value;
            read = csv_to_decimal(v, column, &value);
            if (column.width == 8)
                csv_store(column, row, (i64)value);
            else
                csv_store(column, row, value);
            break;
        }
        case CSV_DATE: {
            i32 value;
            read = csv_to_date(v, exact, &value);
            csv_store(column, row, value);
            break;
        }
        case CSV_TIMESTAMP: {
            i64 value;
            read = csv_to_timestamp(v, column, &value);
            csv_store(column, row, value);
            break;
        }
        case CSV_TIME: {
            if (column.width == 4) {
                i32 value;
                read = parse_time(v, (i64)column.scale, &value);
                csv_store(column, row, value);
            } else {
                i64 value;
                read = parse_time(v, (i64)column.scale, &value);
                csv_store(column, row, value);
            }
            break;
        }
        default: {
            read = parse_utf8(v);
            csv_store(column, row, read ? v : view{0, 0, 0});
            break;
        }
    }
    return read;
}

// What lies under a null: zero, or an empty view.
WF_DEVICE void csv_write_null(const csv_column& column, u64 row) {
    switch (column.width) {
        case 1: return csv_store(column, row, (u8)0);
        case 2: return csv_store(column, row, (u16)0);
        case 4: return csv_store(column, row, (u32)0);
        case 8: return csv_store(column, row, (u64)0);
        default: return csv_store(column, row, view{0, 0, 0});
    }
}

// Blocks of the same rows follow each other: what one reads, the others find in the cache.
WF_DEVICE void csv_convert_body(const CsvConvert& p) {
    const csv_column column = p.columns[blockIdx.x % p.column_count];
    const u64 row = (u64)(blockIdx.x / p.column_count) * CSV_ROWS + threadIdx.x;
    bool valid = true, refused = false;
    if (row < p.rows) {
        const u32 first = p.row_fields[row], count = p.row_fields[row + 1] - first;
        if (count != p.fields && ((p.rules & CSV_FILL) == 0 || count > p.fields)) atomicMin(p.ragged, row);
        valid = column.field < count;
        if (valid) {
            const u32 begin = column.field == 0 ? p.row_begins[row] : p.field_ends[first + column.field - 1] + 1;
            csv_value value = csv_value_of(p, begin, p.field_ends[first + column.field]);
            if (column.kind != CSV_TEXT) {
                value.text = csv_bare(value.text);
                value.valid &= value.text.length > 0;
            }
            valid = value.valid;
            if (valid) refused = !csv_write(p, column, row, value.text);
        }
        if (!valid) csv_write_null(column, row);
        ((bool8*)column.validity)[row] = valid;
        if (refused) atomicMin((u64*)column.refused, row);
    }
    const u32 nulls = __popc(__ballot_sync(FULL_WARP, !valid));
    if (lane() == 0 && nulls != 0) atomicAdd((u64*)column.nulls, (u64)nulls);
}

}  // namespace wf

#define WF_CSV_ENTRIES                                                                                           \
    WF_KERNEL_BOUNDS(wf::CSV_THREADS, 1, csv_functions, wf::CsvText) { wf::csv_functions_body(p); }              \
    WF_KERNEL_BOUNDS(1024, 1, csv_starts, wf::CsvText) { wf::csv_starts_body(p); }                               \
    WF_KERNEL_BOUNDS(wf::CSV_THREADS, 1, csv_count, wf::CsvText) { wf::csv_count_body(p); }                      \
    WF_KERNEL_BOUNDS(wf::CSV_THREADS, 1, csv_fields, wf::CsvText) { wf::csv_fields_body(p); }                    \
    WF_KERNEL_BOUNDS(wf::CSV_ROWS, 1, csv_convert, wf::CsvConvert) { wf::csv_convert_body(p); }
