// parquet_fixed.cuh: values of one width, and decimals of any.
//
//   PLAIN               value 0 | value 1 | …       booleans: a bit each, the lowest first
//   BYTE_STREAM_SPLIT   byte 0 of all values | byte 1 of all | …
//
//   one pass, a block a tile of values. Content has any alignment.
//
// Reads a page once, writes what its values become.

#pragma once
#include "parquet_page.cuh"

namespace wf {

// The values of a page, `length` bytes each.
struct fixed_source {
    const u8* at;
    u32 length;
    u32 stride;  // from a byte of a value to its next, where they are split; else 0

    WF_DEVICE u8 byte(u32 k, u32 i) const { return stride == 0 ? at[(u64)k * length + i] : at[(u64)i * stride + k]; }
    // 8 bytes from byte `from` on, the lowest first. Of more than the value has, the rest is
    // anything.
    WF_DEVICE u64 word(u32 k, u32 from) const {
        if (stride == 0) return load_u64_anywhere(at + (u64)k * length + from);
        u64 word = 0;
#pragma unroll 1
        for (u32 i = 0; i < 8 && from + i < length; i++) word |= (u64)byte(k, from + i) << (8 * i);
        return word;
    }
};

// What becomes of a value: `make` takes it and says whether it is good, `put` writes it. A thread
// takes `AHEAD` values before it writes them.

// A value whose bytes are copied.
template <class T> struct fixed_same {
    typedef T Value;
    static constexpr u32 AHEAD = 4;
    const u8* at;
    T* out;
    WF_DEVICE bool make(u32 k, T& value) const {
        if (((u64)at & (sizeof(T) - 1)) == 0)
            value = load_stream((const T*)at + k);
        else if (sizeof(T) == 4)
            value = (T)load_u32_anywhere(at + (u64)k * 4);
        else
            value = (T)load_u64_anywhere(at + (u64)k * 8);
        return true;
    }
    WF_DEVICE void put(u32 k, T value) const { store_stream(out + k, value); }
};

// An integer of which only some of the bits count: `shape` has how many of 64 do not, and 64 where
// it has a sign. All count where it is 0.
WF_DEVICE i64 widened(i64 value, u32 shape) {
    const u32 idle = shape & 63;
    const u64 high = (u64)value << idle;
    return (shape & 64) != 0 ? (i64)high >> idle : (i64)(high >> idle);
}

// An integer of up to 8 bytes, in any width.
struct fixed_integer {
    typedef i64 Value;
    static constexpr u32 AHEAD = 4;
    fixed_source source;
    bool reversed;  // the most significant byte first
    u64 bound;      // greatest magnitude
    u32 shape;      // see `widened`
    u64 out;
    u32 width;
    WF_DEVICE bool make(u32 k, i64& value) const {
        const u32 idle = 64 - 8 * source.length;
        const u64 word = source.word(k, 0);
        value = widened((i64)(reversed ? swap_bytes(word) : word << idle) >> idle, shape);
        return magnitude(value) <= bound;
    }
    WF_DEVICE void put(u32 k, i64 value) const { store_integer(out, k, value, width); }
};

// An integer of up to 8 bytes as a float of 8 bytes.
WF_DEVICE f64 number(i64 value, u32 shape) { return (shape & 64) != 0 ? (f64)value : (f64)(u64)value; }
struct fixed_number {
    typedef f64 Value;
    static constexpr u32 AHEAD = 4;
    fixed_integer integer;
    WF_DEVICE bool make(u32 k, f64& value) const {
        i64 read;
        integer.make(k, read);
        value = number(read, integer.shape);
        return true;
    }
    WF_DEVICE void put(u32 k, f64 value) const { ((f64*)integer.out)[k] = value; }
};

// A float of 4 bytes as one of 8.
struct fixed_double {
    typedef f64 Value;
    static constexpr u32 AHEAD = 4;
    fixed_source source;
    f64* out;
    WF_DEVICE bool make(u32 k, f64& value) const {
        value = (f64)float_of_bits((u32)source.word(k, 0));
        return true;
    }
    WF_DEVICE void put(u32 k, f64 value) const { out[k] = value; }
};

// A decimal of more than 8 bytes, or of a number of them that differs: `bytes(k)` has its bytes,
// the most significant first.
WF_DEVICE bool integer_within(i128 value, u128 bound) { return (value < 0 ? -(u128)value : (u128)value) <= bound; }
// False where it has more than 128 bits, or no bytes.
template <class Byte> WF_DEVICE bool integer_of_bytes(u32 length, const Byte& byte, i128& value) {
    value = 0;
    if (length == 0) return false;
    const u8 sign = byte(0) & 128 ? 255 : 0;
    bool good = true;
    u128 bits = sign ? ~(u128)0 : 0;
#pragma unroll 1
    for (u32 i = 0; i < length; i++) {
        const u8 next = byte(i);
        good &= i + 16 >= length || next == sign;
        bits = bits << 8 | next;
    }
    value = (i128)bits;
    return good && (value < 0) == (sign != 0);
}

struct fixed_decimal {
    typedef i128 Value;
    static constexpr u32 AHEAD = 1;
    fixed_source source;
    u128 bound;
    u64 out;
    u32 width;
    WF_DEVICE bool make(u32 k, i128& value) const {
        const u32 length = source.length;
        if (source.stride == 0 && length <= 16) {
            const u64 high = swap_bytes(source.word(k, 0)), low = swap_bytes(source.word(k, 8));
            value = (i128)make_u128(high, low) >> (128 - 8 * length);
        } else if (!integer_of_bytes(length, [&](u32 i) { return source.byte(k, i); }, value)) {
            return false;
        }
        return integer_within(value, bound);
    }
    WF_DEVICE void put(u32 k, i128 value) const {
        if (width == 8)
            ((i64*)out)[k] = (i64)value;
        else
            ((i128*)out)[k] = value;
    }
};

// Of strings that have been found.
struct fixed_decimal_view {
    typedef i128 Value;
    static constexpr u32 AHEAD = 1;
    const view* views;
    fixed_decimal decimal;
    WF_DEVICE bool make(u32 k, i128& value) const {
        const view bytes = views[k];
        const bool good = integer_of_bytes(bytes.length, [&](u32 i) { return byte_at(bytes, i); }, value);
        return good && integer_within(value, decimal.bound);
    }
    WF_DEVICE void put(u32 k, i128 value) const { decimal.put(k, value); }
};

// Nanoseconds of the day and the Julian day, in 12 bytes.
struct fixed_int96 {
    typedef i64 Value;
    static constexpr u32 AHEAD = 2;
    fixed_source source;
    i64 ticks;    // nanoseconds in a tick
    i64 per_day;  // ticks
    i64* out;
    WF_DEVICE bool make(u32 k, i64& value) const {
        const i64 nanoseconds = (i64)source.word(k, 0);
        const i32 day = (i32)load_u32_anywhere(source.at + (u64)k * 12 + 8);
        const i64 of_day = ticks == 1 ? nanoseconds : nanoseconds / ticks;
        const i128 sum = (i128)((i64)day - 2440588) * per_day + of_day;
        value = (i64)sum;
        return sum == value;
    }
    WF_DEVICE void put(u32 k, i64 value) const { out[k] = value; }
};

struct fixed_bool {
    typedef u8 Value;
    static constexpr u32 AHEAD = 4;
    const u8* at;
    u8* out;
    WF_DEVICE bool make(u32 k, u8& value) const {
        value = at[k >> 3] >> (k & 7) & 1;
        return true;
    }
    WF_DEVICE void put(u32 k, u8 value) const { out[k] = value; }
};

struct fixed_view {
    typedef view Value;
    static constexpr u32 AHEAD = 2;
    fixed_source source;
    view* out;
    WF_DEVICE bool make(u32 k, view& value) const {
        value = view_in_memory(source.at + (u64)k * source.length, source.length);
        return true;
    }
    WF_DEVICE void put(u32 k, const view& value) const { out[k] = value; }
};

// What another kind makes, in a unit of which a factor makes one of its own. It has to fit.
template <class Kind> struct fixed_scaled {
    typedef i128 Value;
    static constexpr u32 AHEAD = 1;
    Kind kind;
    i128 factor;
    u64 out;
    u32 width;
    WF_DEVICE bool make(u32 k, i128& value) const {
        typename Kind::Value read;
        const bool good = kind.make(k, read);
        value = (i128)read * factor;
        return good && fits_integer(value, width);
    }
    WF_DEVICE void put(u32 k, i128 value) const { store_wide_integer(out, k, value, width); }
};

// Makes the values of a tile. Whether all are good, for this thread.
template <class Kind> WF_DEVICE bool fixed_tile(const Kind& kind, u32 begin, u32 end) {
    bool good = true;
#pragma unroll 1
    for (u32 base = begin + threadIdx.x; base < end; base += PARQUET_THREADS * Kind::AHEAD) {
        typename Kind::Value values[Kind::AHEAD];
#pragma unroll
        for (u32 i = 0; i < Kind::AHEAD; i++)
            if (base + i * PARQUET_THREADS < end) good &= kind.make(base + i * PARQUET_THREADS, values[i]);
#pragma unroll
        for (u32 i = 0; i < Kind::AHEAD; i++)
            if (base + i * PARQUET_THREADS < end) kind.put(base + i * PARQUET_THREADS, values[i]);
    }
    return good;
}

// The bound of a chunk's decimals that have more than 64 bits in the file; they have to fit the
// output.
WF_DEVICE u128 decimal_bound(const parquet_chunk& chunk) {
    const u128 bound = make_u128(chunk.bound_high, chunk.bound_low);
    return chunk.width == 8 ? minimum(bound, (u128)I64_MAX) : bound;
}
// The bound of integers of up to 64 bits, which fit.
WF_DEVICE u64 integer_bound(const parquet_chunk& chunk) {
    const bool any = chunk.output == PARQUET_BITS || chunk.output == PARQUET_WIDENED || chunk.output == PARQUET_NUMBER;
    return any || chunk.bound_high != 0 ? U64_MAX : chunk.bound_low;
}
WF_DEVICE u32 integer_shape(const parquet_chunk& chunk) {
    return chunk.output == PARQUET_WIDENED || chunk.output == PARQUET_NUMBER ? chunk.ticks : 0;
}
WF_DEVICE i128 scaling(const parquet_chunk& chunk) { return (i128)make_u128(chunk.factor_high, chunk.factor_low); }

// Makes the values of a tile in the unit that the chunk wants them in.
template <class Kind>
WF_DEVICE bool fixed_tile_scaled(const parquet_chunk& chunk, const Kind& kind, u64 out, u32 begin, u32 end) {
    const i128 factor = scaling(chunk);
    if (factor == 1) return fixed_tile(kind, begin, end);
    return fixed_tile(fixed_scaled<Kind>{kind, factor, out, chunk.width}, begin, end);
}

// What is wrong with a value that is not good.
WF_DEVICE u32 parquet_misfit(const parquet_chunk& chunk) {
    if (chunk.output == PARQUET_INT96) return PARQUET_BAD_INT96;
    return chunk.output == PARQUET_WIDENED ? PARQUET_TOO_FAR : PARQUET_BAD_DECIMAL;
}

// A block a tile.
WF_DEVICE void parquet_fixed_body(const ParquetCall& p) {
    const u32 index = (u32)p.list[blockIdx.x], tile = (u32)(p.list[blockIdx.x] >> 32);
    const parquet_page page = p.pages[index];
    const parquet_state state = p.states[index];
    const u32 begin = tile * PARQUET_TILE, end = minimum(begin + PARQUET_TILE, state.valid);
    if (begin >= end) return;
    const parquet_chunk chunk = p.chunks[page.chunk];
    const parquet_bytes bytes = parquet_values(p, page, state);
    const u64 out = parquet_target(page, state);
    const u64 needed = chunk.output == PARQUET_BOOL ? ((u64)state.valid + 7) / 8 : (u64)state.valid * chunk.length;
    if (bytes.size < needed) {
        if (threadIdx.x == 0) parquet_fault(p, page, PARQUET_TOO_SHORT);
        return;
    }
    const bool split = page.encoding == PARQUET_SPLIT;
    const fixed_source source{bytes.at, chunk.length, split ? bytes.size / chunk.length : 0};
    bool good = true;
    if (chunk.output == PARQUET_BITS && chunk.length == chunk.width && !split) {
        good = chunk.length == 8 ? fixed_tile(fixed_same<u64>{bytes.at, (u64*)out}, begin, end)
                                 : fixed_tile(fixed_same<u32>{bytes.at, (u32*)out}, begin, end);
    } else if (chunk.output == PARQUET_BOOL) {
        good = fixed_tile(fixed_bool{bytes.at, (u8*)out}, begin, end);
    } else if (chunk.output == PARQUET_INT96) {
        const i64 ticks = chunk.ticks;
        const fixed_int96 kind{source, ticks, 86400000000000ll / ticks, (i64*)out};
        good = fixed_tile_scaled(chunk, kind, out, begin, end);
    } else if (chunk.output == PARQUET_VIEW) {
        good = fixed_tile(fixed_view{source, (view*)out}, begin, end);
    } else if (chunk.output == PARQUET_DOUBLE) {
        good = fixed_tile(fixed_double{source, (f64*)out}, begin, end);
    } else if (chunk.length <= 8) {
        const bool reversed = chunk.output == PARQUET_DECIMAL_BYTES;
        const u64 bound = integer_bound(chunk);
        const u32 shape = integer_shape(chunk);
        const fixed_integer kind{source, reversed, bound, shape, out, chunk.width};
        good = chunk.output == PARQUET_NUMBER ? fixed_tile(fixed_number{kind}, begin, end)
                                              : fixed_tile_scaled(chunk, kind, out, begin, end);
    } else {
        const fixed_decimal kind{source, decimal_bound(chunk), out, chunk.width};
        good = fixed_tile_scaled(chunk, kind, out, begin, end);
    }
    if (!good) parquet_fault(p, page, parquet_misfit(chunk));
}

// Decimals whose bytes are strings: a block a tile.
WF_DEVICE void parquet_decimals_body(const ParquetCall& p) {
    const u32 index = (u32)p.list[blockIdx.x], tile = (u32)(p.list[blockIdx.x] >> 32);
    const parquet_page page = p.pages[index];
    const parquet_state state = p.states[index];
    const u32 begin = tile * PARQUET_TILE, end = minimum(begin + PARQUET_TILE, state.valid);
    if (begin >= end) return;
    const parquet_chunk chunk = p.chunks[page.chunk];
    const u64 out = parquet_target(page, state);
    const fixed_decimal_view kind{(const view*)page.views, {{}, decimal_bound(chunk), out, chunk.width}};
    if (!fixed_tile_scaled(chunk, kind, out, begin, end)) parquet_fault(p, page, PARQUET_BAD_DECIMAL);
}

}  // namespace wf

#define WF_PARQUET_FIXED_ENTRIES                                                                              \
    WF_KERNEL_BOUNDS(wf::PARQUET_THREADS, 1, parquet_fixed, wf::ParquetCall) { wf::parquet_fixed_body(p); }   \
    WF_KERNEL_BOUNDS(wf::PARQUET_THREADS, 1, parquet_decimals, wf::ParquetCall) { wf::parquet_decimals_body(p); }
