// parquet_page.cuh: what the kernels that decode pages of Parquet know of a page, and how they read
// its bytes.
//
//   content of an optional page, version 1   length (4 bytes) | definition levels | values
//   of version 2, and of required ones       values; levels of version 2 lie elsewhere
//
// Levels are turned into validity, a byte a row, before values are looked at; a page's state then
// says where its values begin and how many there are. Values are decoded without gaps: to their
// rows where no row of the page is null, else to a place beside, from where `parquet_null.cuh`
// spreads them.
//
// Nothing in a page is trusted. What is wrong is noted in the page's fault word, the least code of
// all; a page at fault is left with no values, so that later kernels find nothing to do.

#pragma once
#include "string.cuh"

namespace wf {

// Values that a block decodes at once.
constexpr u32 PARQUET_TILE = 4096;
constexpr u32 PARQUET_THREADS = 128;

// How values are written, and what becomes of them: numbers that the host writes
// (kernels/src/ops/parquet/call.rs).
enum parquet_encoding : u32 {
    PARQUET_PLAIN = 0,
    PARQUET_DICTIONARY = 1,
    PARQUET_RLE = 2,
    PARQUET_SPLIT = 3,
    PARQUET_DELTA = 4,
    PARQUET_DELTA_LENGTH = 5,
    PARQUET_DELTA_STRINGS = 6,
};
enum parquet_output : u32 {
    PARQUET_BITS = 0,           // of an integer or float, truncated or with its sign repeated
    PARQUET_DECIMAL = 1,        // of an integer
    PARQUET_DECIMAL_BYTES = 2,  // of bytes, the most significant first
    PARQUET_INT96 = 3,
    PARQUET_BOOL = 4,
    PARQUET_VIEW = 5,
    PARQUET_CODE = 6,
    PARQUET_WIDENED = 7,        // of an integer of fewer bits than are written, by its own sign
    PARQUET_DOUBLE = 8,         // of a float of 4 bytes
    PARQUET_NUMBER = 9,         // a float of 8 bytes, of an integer as PARQUET_WIDENED has it
};
enum parquet_code : u32 {
    PARQUET_BAD_LEVELS = 32,
    PARQUET_BAD_RUNS = 33,
    PARQUET_BAD_CODE = 34,
    PARQUET_TOO_SHORT = 35,
    PARQUET_BAD_LENGTH = 36,
    PARQUET_NOT_UTF8 = 37,
    PARQUET_BAD_DECIMAL = 38,
    PARQUET_BAD_INT96 = 39,
    PARQUET_BAD_DELTA = 40,
    PARQUET_NO_ROOM = 41,
    PARQUET_TOO_FAR = 42,
};

// Bits of `flags`.
constexpr u32 PARQUET_OPTIONAL = 1;
constexpr u32 PARQUET_LEVELS_APART = 2;
constexpr u32 PARQUET_UTF8 = 4;

struct parquet_page {
    u64 data;      // of its first row's value
    u64 dense;     // where its values go if rows are null
    u64 validity;  // of its first row, or 0
    u64 levels;    // of a page whose levels lie apart
    u64 views;     // where strings go that decimals are made of, without gaps; else 0
    u32 levels_size;
    u32 size;
    u32 rows;
    u32 number;
    u32 chunk;
    u32 first_tile;  // of its tiles among those of all pages
    u32 encoding;
    u32 flags;
};

struct parquet_chunk {
    u64 dictionary;   // decoded values
    u64 bound_low;    // greatest magnitude of a decimal, 128 bits; of codes, what is added to each
    u64 bound_high;
    u64 characters;   // room for those of DELTA_BYTE_ARRAY
    u64 room;         // bytes of it
    u64 factor_low;   // by which decimals, INT96 and PARQUET_WIDENED are multiplied, 128 bits
    u64 factor_high;
    u32 entries;
    u32 length;       // bytes of a plain value, 0 where they differ
    u32 output;
    u32 width;        // bytes of a decoded value
    u32 ticks;        // nanoseconds in a tick of INT96; of integers by their own bits, see `widened`
    u32 number;       // of its word of nulls
};

struct parquet_state {
    u32 begin;  // of the values in the content
    u32 valid;  // values
    u32 flag;   // of strings: whether some byte is not ASCII
    u32 spare;
};

// What every kernel takes: those that go by pages have the pages' indices in `list`, those that go
// by tiles have `tile << 32 | page`.
struct ParquetCall {
    const parquet_page* pages;
    const parquet_chunk* chunks;
    parquet_state* states;
    const u64* places;
    u32* faults;  // of each page, by its number
    u64* nulls;   // of each chunk
    u64* starts;  // of each tile: the run that its first value lies in, `value << 32 | byte`
    u32* ranks;   // of each tile: valid rows in it, then before it in its page
    u64* used;    // of each chunk: bytes taken of `characters`
    const u64* list;
    u64 count;
};

WF_DEVICE void parquet_fault(const ParquetCall& p, const parquet_page& page, u32 code) {
    atomicMin(p.faults + page.number, code);
}

// The bytes of a page's values.
struct parquet_bytes {
    const u8* at;
    u32 size;
};
WF_DEVICE parquet_bytes parquet_values(const ParquetCall& p, const parquet_page& page, const parquet_state& state) {
    return parquet_bytes{(const u8*)p.places[page.number] + state.begin, page.size - state.begin};
}

// Where the values go.
WF_DEVICE u64 parquet_target(const parquet_page& page, const parquet_state& state) {
    return state.valid == page.rows ? page.data : page.dense;
}

WF_DEVICE u64 magnitude(i64 value) { return value < 0 ? -(u64)value : (u64)value; }

// An integer to a place in an array of integers of so many bytes.
WF_DEVICE void store_integer(u64 out, u32 at, i64 value, u32 width) {
    if (width == 8)
        ((i64*)out)[at] = value;
    else if (width == 4)
        ((i32*)out)[at] = (i32)value;
    else if (width == 2)
        ((i16*)out)[at] = (i16)value;
    else if (width == 1)
        ((i8*)out)[at] = (i8)value;
    else
        ((i128*)out)[at] = value;
}

// An integer of up to 16 bytes to a place in an array of integers of `width` bytes.
WF_DEVICE void store_wide_integer(u64 out, u32 at, i128 value, u32 width) {
    if (width == 16)
        ((i128*)out)[at] = value;
    else
        store_integer(out, at, (i64)value, width);
}
// Whether 4, 8 or 16 bytes have it.
WF_DEVICE bool fits_integer(i128 value, u32 width) {
    return width == 16 || value == (width == 4 ? (i64)(i32)value : (i64)value);
}

// A number of up to 32 bits in 7 bits a byte, the lowest first. False where the bytes end, or more
// bits are set.
WF_DEVICE bool parquet_varint(const u8* bytes, u32 size, u32& at, u32& value) {
    value = 0;
    for (u32 shift = 0; shift < 35; shift += 7) {
        if (at >= size) return false;
        const u32 byte = bytes[at++];
        if (shift == 28 && (byte & 0x70) != 0) return false;
        value |= (byte & 127) << shift;
        if (byte < 128) return true;
    }
    return false;
}

// --------------------------------------------------------------------------------- sums over lanes

WF_DEVICE u32 warp_sum_up_to(u32 value) {
#pragma unroll
    for (u32 by = 1; by < WARP; by *= 2) {
        const u32 below = __shfl_up_sync(FULL_WARP, value, by);
        if (lane() >= by) value += below;
    }
    return value;
}

}  // namespace wf
