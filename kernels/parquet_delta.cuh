// parquet_delta.cuh: integers as packed differences, and strings whose lengths are such integers.
//
//   DELTA_BINARY_PACKED       values in a block | miniblocks in it | values | first value | blocks
//     a block                 least difference | bits of each miniblock, a byte each | miniblocks
//     a miniblock             differences less the least one, packed, the lowest bits first;
//                             none where no value is left
//   DELTA_LENGTH_BYTE_ARRAY   lengths, so | bytes of all strings
//   DELTA_BYTE_ARRAY          how many bytes each string shares with the one before, so |
//                             the other bytes, as above
//
//   7 5 3 1 2 3 4 5           80 01 | 04 | 08 | 0e | 03 | 02 00 00 00 | c0 3f 00 00 00 00 00 00
//
//   integers  a warp a page: 128 differences at once, 4 a lane, added up by a scan over lanes.
//   lengths   the same; the strings' bytes begin where the lengths end, which a walk over the bits
//             finds first.
//   strings   a warp a page: shared and other lengths to the views, then string by string, a lane
//             for each 32nd byte. The first 64 bytes of a string stay in registers for the next
//             one.
//
// Reads a page once or twice, writes its values; for DELTA_BYTE_ARRAY all characters, too.

#pragma once
#include "parquet_fixed.cuh"

namespace wf {

constexpr u32 DELTA_EACH = 4;                   // values of a lane
constexpr u32 DELTA_PIECE = DELTA_EACH * WARP;  // of a warp at once
constexpr u64 DELTA_LARGEST_BLOCK = 1u << 31;

// A number of up to 64 bits in 7 bits a byte.
WF_DEVICE bool delta_varint(const parquet_bytes& bytes, u32& at, u64& value) {
    value = 0;
    for (u32 shift = 0; shift < 70; shift += 7) {
        if (at >= bytes.size) return false;
        const u64 byte = bytes.at[at++];
        value |= (byte & 127) << shift;
        if (byte < 128) return true;
    }
    return false;
}
WF_DEVICE u64 zigzag(u64 value) { return value >> 1 ^ -(value & 1); }

struct delta_head {
    u32 bits;        // of the integers, 32 or 64
    u32 miniblocks;  // in a block
    u32 values;      // in a miniblock
    u64 count;
    u64 first;

    // Whether a first value or a least difference is such an integer.
    WF_DEVICE bool fits(u64 value) const { return bits == 64 || (i64)value == (i32)(u32)value; }
};

WF_DEVICE bool delta_begin(const parquet_bytes& bytes, u32& at, u32 bits, delta_head& head) {
    u64 block, miniblocks;
    if (!delta_varint(bytes, at, block) || !delta_varint(bytes, at, miniblocks)) return false;
    if (!delta_varint(bytes, at, head.count) || !delta_varint(bytes, at, head.first)) return false;
    if (block == 0 || block > DELTA_LARGEST_BLOCK || block % 128 != 0) return false;
    if (miniblocks == 0 || block % miniblocks != 0) return false;
    head.bits = bits;
    head.miniblocks = (u32)miniblocks;
    head.values = (u32)(block / miniblocks);
    head.first = zigzag(head.first);
    return head.values % 32 == 0 && head.fits(head.first);
}

// Where the values end that begin at `at`. False where their bytes are damaged.
WF_DEVICE bool delta_skip(const parquet_bytes& bytes, const delta_head& head, u32& at) {
    for (u64 left = head.count > 0 ? head.count - 1 : 0; left > 0;) {
        u64 least;
        if (!delta_varint(bytes, at, least) || head.miniblocks > bytes.size - at) return false;
        const u8* const bits = bytes.at + at;
        u64 end = at + head.miniblocks;
        for (u32 i = 0; i < head.miniblocks && left > 0; i++) {
            end += (u64)bits[i] * (head.values / 8);
            left -= minimum((u64)head.values, left);
        }
        if (end > bytes.size) return false;
        at = (u32)end;
    }
    return true;
}

// `width` bits from a bit on.
WF_DEVICE u64 delta_unpack(const u8* at, u64 bit, u32 width) {
    const u8* const byte = at + (bit >> 3);
    const u32 shift = (u32)bit & 7;
    u64 value = load_u64_anywhere(byte) >> shift;
    if (shift + width > 64) value |= (u64)byte[8] << (64 - shift);
    return width >= 64 ? value : value & ((1ull << width) - 1);
}

WF_DEVICE u64 warp_sum_up_to(u64 value) {
#pragma unroll
    for (u32 by = 1; by < WARP; by *= 2) {
        const u64 below = __shfl_up_sync(FULL_WARP, value, by);
        if (lane() >= by) value += below;
    }
    return value;
}

// Hands the first `wanted` values to the sink, by the whole warp: `sink(row, values, count)`, where
// a lane has `count` values (none to 4) from `row` on. False where the bytes are damaged, for all
// lanes.
template <class Sink>
WF_DEVICE bool delta_values(const parquet_bytes& bytes, const delta_head& head, u32 at, u32 wanted, Sink& sink) {
    if (wanted > head.count) return false;
    u64 value = head.first;
    u64 values[DELTA_EACH] = {value, 0, 0, 0};
    sink(0u, values, lane() == 0 && wanted > 0 ? 1u : 0u);
    // Miniblocks that are small enough are taken together.
    const u32 together = head.values < DELTA_PIECE ? DELTA_PIECE / head.values : 1;
    for (u32 done = 1; done < wanted;) {
        u64 least;
        if (!delta_varint(bytes, at, least) || head.miniblocks > bytes.size - at) return false;
        least = zigzag(least);
        if (!head.fits(least)) return false;
        const u8* bits = bytes.at + at;
        at += head.miniblocks;
        for (u32 i = 0; i < head.miniblocks && done < wanted; i += together) {
            const u32 group = minimum(together, head.miniblocks - i);
            const u32 left = wanted - done, size = (u32)minimum((u64)group * head.values, (u64)left);
            for (u32 piece = 0; piece < size; piece += DELTA_PIECE) {
                const u32 mine = piece + lane() * DELTA_EACH;
                const u32 count = mine < size ? minimum(size - mine, DELTA_EACH) : 0;
                const u32 miniblock = group > 1 ? minimum(mine / head.values, group - 1) : 0;
                u64 begin = at;
                for (u32 k = 0; k < miniblock; k++) begin += (u64)bits[i + k] * (head.values / 8);
                const u32 width = bits[i + miniblock];
                const u64 bit = (u64)(mine - miniblock * head.values) * width;
                bool good = width <= head.bits && begin + (bit + (u64)count * width + 7) / 8 <= bytes.size;
                if (!__all_sync(FULL_WARP, good || count == 0)) return false;
                u64 sum = 0;
#pragma unroll
                for (u32 k = 0; k < DELTA_EACH; k++) {
                    if (k < count) sum += least + delta_unpack(bytes.at + begin, bit + k * width, width);
                    values[k] = sum;
                }
                const u64 up_to = warp_sum_up_to(sum), before = value + up_to - sum;
#pragma unroll
                for (u32 k = 0; k < DELTA_EACH; k++) values[k] += before;
                sink(done + mine, values, count);
                value += __shfl_sync(FULL_WARP, up_to, WARP - 1);
            }
            u64 end = at;
            for (u32 k = 0; k < group; k++) end += (u64)bits[i + k] * (head.values / 8);
            at = (u32)minimum(end, (u64)bytes.size);
            done += size;
        }
    }
    return true;
}

// ---------------------------------------------------------------------------------------- integers

// Integers to where they go, in the width of the output.
struct delta_integers {
    u64 out;
    u32 width;
    u32 shape;    // see `widened`
    bool narrow;  // 32 bits in the file
    bool real;    // whether they become floats of 8 bytes
    u64 bound;
    i128 factor;
    bool good;

    WF_DEVICE void operator()(u32 row, const u64 (&values)[DELTA_EACH], u32 count) {
#pragma unroll
        for (u32 k = 0; k < DELTA_EACH; k++) {
            if (k >= count) break;
            const i64 value = widened(narrow ? (i64)(i32)(u32)values[k] : (i64)values[k], shape);
            good &= magnitude(value) <= bound;
            if (real)
                ((f64*)out)[row + k] = number(value, shape);
            else if (factor == 1)
                store_integer(out, row + k, value, width);
            else {
                good &= fits_integer(value * factor, width);
                store_wide_integer(out, row + k, value * factor, width);
            }
        }
    }
};

// ----------------------------------------------------------------------------------------- strings

// Strings that lie one after the other, by their lengths.
struct delta_lengths {
    const u8* at;  // the first string's bytes
    u64 size;      // bytes of all
    view* out;
    u64 begin;  // of the next string
    bool good;

    WF_DEVICE void operator()(u32 row, const u64 (&values)[DELTA_EACH], u32 count) {
        u64 sum = 0;
#pragma unroll
        for (u32 k = 0; k < DELTA_EACH; k++) {
            if (k >= count) break;
            // Lengths are of 31 bits, so sums of them do not wrap.
            good &= values[k] <= I32_MAX;
            sum += good ? values[k] : 0;
        }
        const u64 up_to = warp_sum_up_to(sum);
        u64 from = begin + up_to - sum;
        good &= from + sum <= size;
#pragma unroll
        for (u32 k = 0; k < DELTA_EACH; k++) {
            if (k >= count || !good) break;
            out[row + k] = view_in_memory(at + from, (u32)values[k]);
            from += values[k];
        }
        begin += __shfl_sync(FULL_WARP, up_to, WARP - 1);
    }
};

// Lengths to a field of views, which are made later; their sum.
template <bool SHARED> struct delta_length_field {
    view* out;
    u64 sum;
    bool good;

    WF_DEVICE void operator()(u32 row, const u64 (&values)[DELTA_EACH], u32 count) {
#pragma unroll
        for (u32 k = 0; k < DELTA_EACH; k++) {
            if (k >= count) break;
            good &= values[k] <= I32_MAX;
            sum += good ? values[k] : 0;
            if (SHARED)
                out[row + k].prefix = (u32)values[k];
            else
                out[row + k].length = (u32)values[k];
        }
    }
};

WF_DEVICE u64 warp_sum(u64 value) { return __shfl_sync(FULL_WARP, warp_sum_up_to(value), WARP - 1); }

// Whether some of the bytes is not ASCII, by the whole warp.
WF_DEVICE bool warp_high(const u8* at, u64 size) {
    bool high = false;
    const u64 begin = (u64)at & ~3ull, end = (u64)at + size;
    for (u64 from = begin + lane() * 4; from < end; from += WARP * 4) {
        u32 word = load_const((const u32*)from);
        if (from < (u64)at) word &= U32_MAX << (8 * (u32)((u64)at - from));
        if (end - from < 4) word &= (1u << (8 * (u32)(end - from))) - 1;
        high |= (word & 0x80808080u) != 0;
    }
    return __any_sync(FULL_WARP, high);
}

// The others' bytes of DELTA_BYTE_ARRAY, string by string, and then views. `out` has lengths:
// shared ones in `prefix`, others in `length`. False where a string shares more bytes than the one
// before it has.
WF_DEVICE bool delta_strings(const u8* others, view* out, u32 count, u8* characters) {
    u8* before = characters;
    u32 before_length = 0;
    u32 near = 0, far = 0;  // its bytes `lane()` and 32 beyond
    view lengths{0, 0, 0};
    for (u32 row = 0; row < count; row++) {
        if ((row & 31) == 0) {
            lengths = view{0, 0, 0};
            if (row + lane() < count) lengths = out[row + lane()];
        }
        const u32 shared = __shfl_sync(FULL_WARP, lengths.prefix, row & 31);
        const u32 other = __shfl_sync(FULL_WARP, lengths.length, row & 31);
        if (shared > before_length) return false;
        const u32 length = shared + other;
        u8* const target = before + before_length;
        const auto byte = [&](u32 i, u32 kept) { return i < shared ? kept : (u32)others[i - shared]; };
        if (lane() < length) target[lane()] = (u8)(near = byte(lane(), near));
        if (lane() + WARP < length) target[lane() + WARP] = (u8)(far = byte(lane() + WARP, far));
        // A lane reads what it wrote itself.
        for (u32 i = lane() + 2 * WARP; i < length; i += WARP) target[i] = (u8)byte(i, i < shared ? before[i] : 0);
        others += other;
        if (lane() == (row & 31)) lengths = view{length, 0, (u64)target};
        if ((row & 31) == 31 || row + 1 == count) {
            __syncwarp();  // the bytes of these strings are written
            if ((row & ~31u) + lane() <= row)
                out[(row & ~31u) + lane()] = view_in_memory((const u8*)lengths.rest, lengths.length);
        }
        before = target, before_length = length;
    }
    return true;
}

// ------------------------------------------------------------------------------------------- pages

// Where strings go, and what they have to be.
struct delta_page {
    parquet_bytes bytes;
    view* out;
    u32 count;  // as many lengths there are
    bool utf8;
    u32 flag;  // whether the strings have to be looked at
};

WF_DEVICE u32 delta_length_page(delta_page& page) {
    delta_head head;
    u32 at = 0;
    if (!delta_begin(page.bytes, at, 32, head) || head.count != page.count) return PARQUET_BAD_DELTA;
    u32 end = at;
    if (!delta_skip(page.bytes, head, end)) return PARQUET_BAD_DELTA;
    delta_lengths sink{page.bytes.at + end, page.bytes.size - end, page.out, 0, true};
    if (!delta_values(page.bytes, head, at, page.count, sink)) return PARQUET_BAD_DELTA;
    if (!__all_sync(FULL_WARP, sink.good)) return PARQUET_BAD_LENGTH;
    page.flag = page.utf8 && warp_high(sink.at, sink.begin);
    return 0;
}

WF_DEVICE u32 delta_string_page(delta_page& page, const parquet_chunk& chunk, u64* used) {
    delta_head shared, other;
    u32 at = 0;
    if (!delta_begin(page.bytes, at, 32, shared) || shared.count != page.count) return PARQUET_BAD_DELTA;
    delta_length_field<true> first{page.out, 0, true};
    if (!delta_values(page.bytes, shared, at, page.count, first)) return PARQUET_BAD_DELTA;
    if (!delta_skip(page.bytes, shared, at)) return PARQUET_BAD_DELTA;
    if (!delta_begin(page.bytes, at, 32, other) || other.count != page.count) return PARQUET_BAD_DELTA;
    delta_length_field<false> second{page.out, 0, true};
    if (!delta_values(page.bytes, other, at, page.count, second)) return PARQUET_BAD_DELTA;
    if (!delta_skip(page.bytes, other, at)) return PARQUET_BAD_DELTA;
    const u64 others = warp_sum(second.sum), all = others + warp_sum(first.sum);
    if (!__all_sync(FULL_WARP, first.good && second.good) || others > page.bytes.size - at) return PARQUET_BAD_LENGTH;
    u64 begin = 0;
    if (lane() == 0) begin = atomicAdd(used, all);
    begin = __shfl_sync(FULL_WARP, begin, 0);
    if (begin > chunk.room || all > chunk.room - begin) return PARQUET_NO_ROOM;
    __syncwarp();  // lengths of all lanes are written
    u8* const characters = (u8*)chunk.characters + begin;
    if (!delta_strings(page.bytes.at + at, page.out, page.count, characters)) return PARQUET_BAD_LENGTH;
    page.flag = page.utf8 && warp_high(page.bytes.at + at, others);
    if (chunk.length == 0) return 0;
    // Values of one width are no longer or shorter.
    bool good = true;
    for (u32 row = lane(); row < page.count; row += WARP) good &= page.out[row].length == chunk.length;
    return __all_sync(FULL_WARP, good) ? 0 : (u32)PARQUET_BAD_LENGTH;
}

// A warp a page, of nulls only, too: its heads may be damaged.
WF_DEVICE void parquet_delta_body(const ParquetCall& p) {
    const u64 job = ((u64)blockIdx.x * PARQUET_THREADS + threadIdx.x) / WARP;
    if (job >= p.count) return;
    const u32 index = (u32)p.list[job];
    const parquet_page page = p.pages[index];
    const parquet_state state = p.states[index];
    const parquet_chunk chunk = p.chunks[page.chunk];
    const u64 target = page.views != 0 ? page.views : parquet_target(page, state);
    const bool utf8 = (page.flags & PARQUET_UTF8) != 0;
    delta_page strings{parquet_values(p, page, state), (view*)target, state.valid, utf8, 0};
    u32 code = 0;
    if (page.encoding == PARQUET_DELTA_LENGTH) {
        code = delta_length_page(strings);
    } else if (page.encoding == PARQUET_DELTA_STRINGS) {
        code = delta_string_page(strings, chunk, p.used + page.chunk);
    } else {
        const bool narrow = chunk.length == 4, real = chunk.output == PARQUET_NUMBER;
        const u64 bound = integer_bound(chunk);
        delta_integers sink{target, chunk.width, integer_shape(chunk), narrow, real, bound, scaling(chunk), true};
        delta_head head;
        u32 at = 0;
        const u32 bits = chunk.length == 4 ? 32 : 64;
        if (!delta_begin(strings.bytes, at, bits, head) || !delta_values(strings.bytes, head, at, state.valid, sink))
            code = PARQUET_BAD_DELTA;
        else if (!__all_sync(FULL_WARP, sink.good))
            code = parquet_misfit(chunk);
    }
    __syncwarp();  // all lanes have read the state
    if (lane() != 0) return;
    if (code != 0) parquet_fault(p, page, code);
    p.states[index].valid = code != 0 ? 0 : state.valid;
    p.states[index].flag = strings.flag;
}

}  // namespace wf

#define WF_PARQUET_DELTA_ENTRIES \
    WF_KERNEL_BOUNDS(wf::PARQUET_THREADS, 1, parquet_delta, wf::ParquetCall) { wf::parquet_delta_body(p); }
