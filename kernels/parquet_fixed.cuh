// parquet_fixed.cuh: values of one width, and decimals of any.
//
//   PLAIN               value 0 | value 1 | …                   booleans: a bit each, the lowest first
//   BYTE_STREAM_SPLIT   byte 0 of all values | byte 1 of all | …
//
//   one pass, a block a tile of values, `FIXED_AHEAD` a thread in flight. Content has any alignment.
//
// Reads a page once, writes what its values become.

#pragma once
#include "parquet_page.cuh"

namespace wf {

constexpr u32 FIXED_AHEAD = 4;

// The values of a page, `length` bytes each.
struct fixed_source {
    const u8* at;
    u32 length;
    u32 stride;  // from a byte of a value to its next, where they are split; else 0

    WF_DEVICE u8 byte(u32 k, u32 i) const { return stride == 0 ? at[(u64)k * length + i] : at[(u64)i * stride + k]; }
    // From byte `from` on, as many as fit; the lowest is the first. Of more than the value has, the rest is anything.
    WF_DEVICE u64 word(u32 k, u32 from) const {
        if (stride == 0) return load_u64_anywhere(at + (u64)k * length + from);
        u64 word = 0;
        for (u32 i = 0; i < 8 && from + i < length; i++) word |= (u64)byte(k, from + i) << (8 * i);
        return word;
    }
    WF_DEVICE void get(u32 k, u32& value) const {
        if (stride != 0)
            value = (u32)word(k, 0);
        else
            value = load_u32_anywhere(at + (u64)k * 4);
    }
    WF_DEVICE void get(u32 k, u64& value) const {
        if (stride == 0 && ((u64)at & 7) == 0)
            value = load_stream((const u64*)at + k);
        else
            value = word(k, 0);
    }
};

// What becomes of a value: `to` makes it, and says whether it is good.
template <class From, class To> struct fixed_bits {
    fixed_source source;
    WF_DEVICE bool operator()(u32 k, To& to) const {
        typedef typename conditional<sizeof(From) == 4, i32, i64>::type Signed;
        From from;
        source.get(k, from);
        to = (To)(Signed)from;
        return true;
    }
};

WF_DEVICE bool within(i128 value, u128 bound) { return (value < 0 ? -(u128)value : (u128)value) <= bound; }
// The bound of decimals that are put into `To`.
template <class To> WF_DEVICE u128 decimal_bound(const parquet_chunk& chunk) {
    const u128 bound = make_u128(chunk.bound_high, chunk.bound_low);
    return sizeof(To) == 8 ? minimum(bound, (u128)I64_MAX) : bound;
}

template <class From, class To> struct fixed_decimal {
    fixed_source source;
    u128 bound;
    WF_DEVICE bool operator()(u32 k, To& to) const {
        typedef typename conditional<sizeof(From) == 4, i32, i64>::type Signed;
        From from;
        source.get(k, from);
        to = (To)(Signed)from;
        return within((Signed)from, bound);
    }
};

// The integer of bytes, the most significant first, which `byte` gives; false where it has more than 128 bits.
template <class Byte> WF_DEVICE bool integer_of_bytes(u32 length, const Byte& byte, i128& value) {
    if (length == 0) return false;
    const u8 sign = byte(0) & 128 ? 255 : 0;
    bool good = true;
    u128 bits = sign ? ~(u128)0 : 0;
    for (u32 i = 0; i < length; i++) {
        if (i + 16 < length) good &= byte(i) == sign;
        bits = bits << 8 | byte(i);
    }
    value = (i128)bits;
    return good && (value < 0) == (sign != 0);
}

// The most significant byte first: of up to 8 bytes in one word.
template <class To> struct fixed_decimal_bytes {
    fixed_source source;
    u128 bound;
    WF_DEVICE bool operator()(u32 k, To& to) const {
        i128 value;
        if (source.length <= 8) {
            value = (i64)swap_bytes(source.word(k, 0)) >> (64 - 8 * source.length);
        } else if (source.length <= 16) {
            const u64 high = swap_bytes(source.word(k, 0)), low = swap_bytes(source.word(k, 8));
            value = (i128)make_u128(high, low) >> (128 - 8 * source.length);
        } else if (!integer_of_bytes(source.length, [&](u32 i) { return source.byte(k, i); }, value)) {
            return false;
        }
        to = (To)value;
        return within(value, bound);
    }
};

// Nanoseconds of the day and the Julian day, in 12 bytes.
struct fixed_int96 {
    fixed_source source;
    u32 ticks;
    WF_DEVICE bool operator()(u32 k, i64& to) const {
        const i64 nanoseconds = (i64)source.word(k, 0);
        const i32 day = (i32)(u32)source.word(k, 8);
        const i64 per_day = 86400000000000ll / ticks;
        const i128 value = (i128)((i64)day - 2440588) * per_day + nanoseconds / (i64)ticks;
        to = (i64)value;
        return value == to;
    }
};

struct fixed_bool {
    const u8* at;
    WF_DEVICE bool operator()(u32 k, u8& to) const {
        to = at[k >> 3] >> (k & 7) & 1;
        return true;
    }
};

struct fixed_view {
    fixed_source source;
    WF_DEVICE bool operator()(u32 k, view& to) const {
        to = parquet_view(source.at + (u64)k * source.length, source.length);
        return true;
    }
};

// Decimals of strings that have been found.
template <class To> struct fixed_decimal_views {
    const view* views;
    u128 bound;
    WF_DEVICE bool operator()(u32 k, To& to) const {
        const view bytes = views[k];
        i128 value = 0;
        const bool good = integer_of_bytes(bytes.length, [&](u32 i) { return byte_at(bytes, i); }, value);
        to = (To)value;
        return good && within(value, bound);
    }
};

// Makes the values of a tile. Whether all are good, for this thread.
template <class To, class Make> WF_DEVICE bool fixed_tile(u64 target, u32 begin, u32 end, const Make& make) {
    bool good = true;
    To* const out = (To*)target;
    for (u32 base = begin + threadIdx.x; base < end; base += PARQUET_THREADS * FIXED_AHEAD) {
        To values[FIXED_AHEAD];
#pragma unroll
        for (u32 i = 0; i < FIXED_AHEAD; i++)
            if (base + i * PARQUET_THREADS < end) good &= make(base + i * PARQUET_THREADS, values[i]);
#pragma unroll
        for (u32 i = 0; i < FIXED_AHEAD; i++)
            if (base + i * PARQUET_THREADS < end) out[base + i * PARQUET_THREADS] = values[i];
    }
    return good;
}

template <class From>
WF_DEVICE bool fixed_bits_tile(const parquet_chunk& chunk, const fixed_source& source, u64 target, u32 begin, u32 end) {
    switch (chunk.width) {
        case 1: return fixed_tile<u8>(target, begin, end, fixed_bits<From, u8>{source});
        case 2: return fixed_tile<u16>(target, begin, end, fixed_bits<From, u16>{source});
        case 4: return fixed_tile<u32>(target, begin, end, fixed_bits<From, u32>{source});
        case 8: return fixed_tile<u64>(target, begin, end, fixed_bits<From, u64>{source});
        default: return fixed_tile<i128>(target, begin, end, fixed_bits<From, i128>{source});
    }
}
template <class To>
WF_DEVICE bool fixed_decimal_tile(const parquet_chunk& chunk, const fixed_source& source, u64 target, u32 begin,
                                  u32 end) {
    const u128 bound = decimal_bound<To>(chunk);
    if (chunk.output == PARQUET_DECIMAL_BYTES)
        return fixed_tile<To>(target, begin, end, fixed_decimal_bytes<To>{source, bound});
    if (source.length == 4) return fixed_tile<To>(target, begin, end, fixed_decimal<u32, To>{source, bound});
    return fixed_tile<To>(target, begin, end, fixed_decimal<u64, To>{source, bound});
}

WF_DEVICE void parquet_fixed_body(const ParquetCall& p) {
    const u32 index = (u32)p.list[blockIdx.x], tile = (u32)(p.list[blockIdx.x] >> 32);
    const parquet_page page = p.pages[index];
    const parquet_state state = p.states[index];
    const u32 begin = tile * PARQUET_TILE, end = minimum(begin + PARQUET_TILE, state.valid);
    if (begin >= end) return;
    const parquet_chunk chunk = p.chunks[page.chunk];
    const parquet_bytes bytes = parquet_values(p, page, state);
    const u64 needed = chunk.output == PARQUET_BOOL ? ((u64)state.valid + 7) / 8 : (u64)state.valid * chunk.length;
    if (bytes.size < needed) {
        if (threadIdx.x == 0) parquet_fault(p, page, PARQUET_TOO_SHORT);
        return;
    }
    const u64 target = parquet_target(page, state);
    const fixed_source source{bytes.at, chunk.length, page.encoding == PARQUET_SPLIT ? bytes.size / chunk.length : 0};
    bool good = true;
    switch (chunk.output) {
        case PARQUET_BITS:
            good = chunk.length == 4 ? fixed_bits_tile<u32>(chunk, source, target, begin, end)
                                     : fixed_bits_tile<u64>(chunk, source, target, begin, end);
            break;
        case PARQUET_INT96: good = fixed_tile<i64>(target, begin, end, fixed_int96{source, chunk.ticks}); break;
        case PARQUET_BOOL: good = fixed_tile<u8>(target, begin, end, fixed_bool{bytes.at}); break;
        case PARQUET_VIEW: good = fixed_tile<view>(target, begin, end, fixed_view{source}); break;
        default:
            good = chunk.width == 8 ? fixed_decimal_tile<i64>(chunk, source, target, begin, end)
                                    : fixed_decimal_tile<i128>(chunk, source, target, begin, end);
    }
    if (!good) parquet_fault(p, page, chunk.output == PARQUET_INT96 ? PARQUET_BAD_INT96 : PARQUET_BAD_DECIMAL);
}

// Decimals whose bytes are strings: a block a tile.
WF_DEVICE void parquet_decimals_body(const ParquetCall& p) {
    const u32 index = (u32)p.list[blockIdx.x], tile = (u32)(p.list[blockIdx.x] >> 32);
    const parquet_page page = p.pages[index];
    const parquet_state state = p.states[index];
    const u32 begin = tile * PARQUET_TILE, end = minimum(begin + PARQUET_TILE, state.valid);
    if (begin >= end) return;
    const parquet_chunk chunk = p.chunks[page.chunk];
    const view* const views = (const view*)page.views;
    const u64 target = parquet_target(page, state);
    const bool good =
        chunk.width == 8
            ? fixed_tile<i64>(target, begin, end, fixed_decimal_views<i64>{views, decimal_bound<i64>(chunk)})
            : fixed_tile<i128>(target, begin, end, fixed_decimal_views<i128>{views, decimal_bound<i128>(chunk)});
    if (!good) parquet_fault(p, page, PARQUET_BAD_DECIMAL);
}

}  // namespace wf

#define WF_PARQUET_FIXED_ENTRIES                                                                              \
    WF_KERNEL_BOUNDS(wf::PARQUET_THREADS, 1, parquet_fixed, wf::ParquetCall) { wf::parquet_fixed_body(p); }   \
    WF_KERNEL_BOUNDS(wf::PARQUET_THREADS, 1, parquet_decimals, wf::ParquetCall) { wf::parquet_decimals_body(p); }
