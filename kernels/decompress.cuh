// decompress.cuh: what blocks of Snappy and LZ4 have in common.
//
// A block is a chain of tokens, and each token makes some bytes. A literal has them in the
// compressed text. A copy says how many they are and how far back they stand in what was made so
// far; it may reach into its own bytes, which then repeat:
//
//   literal "abc"   copy of 5 from 2 back   literal "d"      →   abc bcbcb d
//
// The bytes of many tokens, a batch, are made at once: first a thread a token, to learn where each
// begins, then a thread a byte. A copy's byte is followed from token to token until it stands in
// the text or before the batch. Of Snappy a warp makes a batch, of LZ4 a block (lz4.cuh).
#pragma once
#include "prelude.cuh"

namespace wf {

// A block as the host describes it.
struct Compressed {
    u64 source, target;
    u32 source_size, target_size;
    u32 page;        // whose content it is
    u32 in_place;    // not 0: where all is one literal it may stay where it is
    u32 first_part;  // of a block that is cut into parts: the first of them
    u32 listed;      // not 0 once it is listed to be made as a whole
    u32* map;        // and a bit for each byte of its text: there a token begins
};

// What is wrong with a block; the host has the texts.
constexpr u32 DAMAGE_LENGTH = 1;    // the block says another length than its page
constexpr u32 DAMAGE_CUT = 2;       // the text ends within a token
constexpr u32 DAMAGE_LONG = 3;      // tokens make more bytes than there should be
constexpr u32 DAMAGE_DISTANCE = 4;  // a copy from before the beginning, or from itself
constexpr u32 DAMAGE_SHORT = 5;     // tokens make fewer bytes than there should be
// Not damage: a copy reaches back behind the part of the block that the warp makes.
constexpr u32 REACHES_BACK = 255;

// A word a page: the least code of what is wrong with it.
WF_DEVICE void report_damage(u32* faults, u32 page, u32 code) { atomicMin(faults + page, code); }

// Sizes in a text may be anything: what is larger than all texts and contents is taken to be this,
// so that sums of two and a little more fit 32 bits.
constexpr u32 HUGE_SIZE = 0x7fff0000u;

// Eight bytes of global memory at any address, of aligned words: up to three bytes before and
// eleven behind it are read.
WF_DEVICE u64 load_unaligned(const u8* at) {
    const u64 address = reinterpret_cast<u64>(at);
    const u32* const words = global_at<const u32>(address & ~u64(3));
    const u32 shift = u32(address & 3) * 8;
    const u32 a = words[0], b = words[1], c = words[2];
    return u64(__funnelshift_r(b, c, shift)) << 32 | __funnelshift_r(a, b, shift);
}

WF_DEVICE uint4 load_shifted(const u32* words, u32 shift) {
    const u32 a = words[0], b = words[1], c = words[2], d = words[3], e = words[4];
    return make_uint4(__funnelshift_r(a, b, shift), __funnelshift_r(b, c, shift),
                      __funnelshift_r(c, d, shift), __funnelshift_r(d, e, shift));
}

// A warp copies bytes between addresses of any alignment that do not overlap; FLIGHT accesses of a
// lane are under way at once. Up to three bytes before the source and four behind it are read.
template <u32 FLIGHT>
WF_DEVICE void warp_copy(u8* target, const u8* source, u32 size) {
    const u32 head = minimum(size, u32(0 - reinterpret_cast<u64>(target)) & 15);
    if (lane() < head) target[lane()] = source[lane()];
    target += head;
    source += head;
    size -= head;

    const u32 whole = size / 16;
    const u32 shift = u32(reinterpret_cast<u64>(source) & 3) * 8;
    const u32* const words = global_at<const u32>(reinterpret_cast<u64>(source) & ~u64(3));
    uint4* const to = reinterpret_cast<uint4*>(target);
    u32 i = lane();
    for (; i + (FLIGHT - 1) * WARP < whole; i += FLIGHT * WARP) {
        uint4 moved[FLIGHT];
#pragma unroll
        for (u32 k = 0; k < FLIGHT; ++k) {
            moved[k] = load_shifted(words + u64(i + k * WARP) * 4, shift);
        }
#pragma unroll
        for (u32 k = 0; k < FLIGHT; ++k) to[i + k * WARP] = moved[k];
    }
    for (; i < whole; i += WARP) to[i] = load_shifted(words + u64(i) * 4, shift);
    const u32 rest = size % 16;
    if (lane() < rest) target[whole * 16 + lane()] = source[whole * 16 + lane()];
}

// The sum of the lanes' values up to and with this lane's.
WF_DEVICE u32 warp_sums(u32 value) {
#pragma unroll
    for (u32 step = 1; step < WARP; step *= 2) {
        const u32 below = __shfl_up_sync(FULL_WARP, value, step);
        if (lane() >= step) value += below;
    }
    return value;
}

// ---- batches ----

// Bytes of a token in a warp's batch, and of a copy that repeats in any; longer ones are made by
// themselves.
constexpr u32 BATCH_MOST = 128;
constexpr u32 BATCH_WORDS = WARP * BATCH_MOST / 32;
constexpr u32 BATCH_MOST_ROWS = 8;  // of 32 bytes, under way at once

struct Token {
    u32 size;      // bytes that it makes; 0: no token
    bool literal;
    u32 from;      // of a literal: where its bytes are in the text; of a copy: how far back
};

// A warp's, in shared memory.
struct Batch {
    // | reciprocal of the distance where it repeats, 16 bits | twice the first byte, 16 bits |, and
    // what is added to the number of a byte to give its source. The last entry is the end.
    uint2 tokens[WARP + 1];
    // For 32 bytes: a bit where a token begins, and which token the byte before them belongs to.
    uint2 words[BATCH_WORDS + BATCH_MOST_ROWS];
};

// Sources of bytes: less than 0 before the batch, from here on in the text, between them within the
// batch.
constexpr i32 BATCH_TEXT = 1 << 20;

WF_DEVICE bool batch_inside(i32 from) { return u32(from) < u32(BATCH_TEXT); }

WF_DEVICE u32 batch_first(uint2 token) { return (token.x & 0xffffu) / 2; }

WF_DEVICE bool batch_is_repeat(uint2 token) { return token.x > 0xffffu; }

// How often a copy's distance lies between its first byte and byte `at` of the batch: 0 where it
// does not repeat. A copy repeats where its distance is less than its size, so both its distance
// and a byte's number in it are at most 127. The quotient by the reciprocal ⌈2¹⁵ / distance⌉ is too
// large by less than 127 / 2¹⁵, and the lower half of the word, less than 2¹⁴ in a batch of 2¹³
// bytes, adds less than 254 · 2¹⁴ / 2³²: together less than the 1 / 127 that would be too much.
WF_DEVICE u32 batch_repeats(uint2 token, u32 at) {
    return mul_high(at * 2 - (token.x & 0xffffu), token.x);
}

template <class Table>
WF_DEVICE u32 batch_owner(const Table& batch, u32 at) {
    const uint2 word = batch.words[at / 32];
    return word.y + u32(__popc(word.x & ((2u << (at % 32)) - 1)));
}

// A repeating copy's source is as many distances further back.
template <bool REPEATS>
WF_DEVICE i32 batch_source(uint2 token, u32 at) {
    const u32 from = at + token.y;
    return i32(REPEATS ? from + batch_repeats(token, at) * token.y : from);
}

// Numbers are often compressed to a chain of copies, each of the one before. In a round a copy
// whose source lies within one token takes that token's source, which halves the chains. Whether
// one does whose first byte, and that of its source, lie in the batch.
template <class Table>
WF_DEVICE bool batch_skip(const Table& batch, uint2& mine, u32 first, u32 size) {
    const u32 source = first + mine.y;
    const u32 owner = batch_owner(batch, source);
    const uint2 its = batch.tokens[owner];
    if (source + size > batch_first(batch.tokens[owner + 1])) return false;
    // A repeating one will do where the bytes are of one repetition.
    const u32 repeats = batch_repeats(its, source);
    if (repeats != batch_repeats(its, source + size - 1)) return false;
    mine.y += its.y + repeats * its.y;
    return true;
}

WF_DEVICE void batch_shorten(Batch& batch, uint2 mine, u32 first, u32 size) {
    bool inside = size != 0 && !batch_is_repeat(mine) && batch_inside(i32(first + mine.y));
    u32 chained = __ballot_sync(FULL_WARP, inside);
    if (__popc(chained) < 4) return;
#pragma unroll 1
    for (u32 round = 0; round < 5 && chained != 0; ++round) {
        const bool moved = inside && batch_skip(batch, mine, first, size);
        inside = moved && batch_inside(i32(first + mine.y));
        __syncwarp();  // the table is read
        if (moved) batch.tokens[lane()] = mine;
        __syncwarp();  // the table is written
        chained = __ballot_sync(FULL_WARP, inside);
    }
}

// Makes the bytes that the tables say. ROWS bytes of a lane are under way at once.
template <u32 ROWS, bool REPEATS>
WF_DEVICE void batch_rows(const Batch& batch, u32 total, const u8* text, u8* out, u32 made) {
#pragma unroll 1
    for (u32 row = 0; row < total; row += ROWS * WARP) {
        // More than 32 r: the lane has a byte in row r.
        const i32 rest = i32(total - row) - i32(lane());
        i32 from[ROWS];
        u8 byte[ROWS];
        bool inside = false;
#pragma unroll
        for (u32 r = 0; r < ROWS; ++r) {
            const uint2 word = batch.words[row / 32 + r];
            const uint2 token = batch.tokens[word.y + u32(__popc(word.x & lanes_up_to()))];
            const i32 source = batch_source<REPEATS>(token, row + r * WARP + lane());
            from[r] = rest > i32(r * WARP) ? source : BATCH_TEXT;
            inside = inside || batch_inside(from[r]);
        }
        if (inside) {
#pragma unroll
            for (u32 r = 0; r < ROWS; ++r) {
                // A source is less than the byte that it is the source of.
                while (batch_inside(from[r])) {
                    const u32 at = u32(from[r]);
                    from[r] = batch_source<REPEATS>(batch.tokens[batch_owner(batch, at)], at);
                }
            }
        }
#pragma unroll
        for (u32 r = 0; r < ROWS; ++r) {
            byte[r] = from[r] < 0 ? out[made + u32(from[r])] : text[from[r] - BATCH_TEXT];
        }
        u8* const to = out + (made + row + lane());
#pragma unroll
        for (u32 r = 0; r < ROWS; ++r) {
            if (rest > i32(r * WARP)) to[r * WARP] = byte[r];
        }
    }
}

// Makes the bytes of the lanes' tokens, which the lowest lanes have, and adds their number to
// `made`. A copy may reach back to the beginning of `out`; `before` bytes of the block lie before
// that.
template <u32 ROWS>
WF_DEVICE u32 batch_make(Batch& batch, Token token, const u8* text, u8* out, u32& made, u32 size,
                         const u32& before) {
    static_assert(ROWS <= BATCH_MOST_ROWS, "all rows that are under way have words");
    const u32 end = warp_sums(token.size);
    const u32 first = end - token.size;
    const u32 total = __shfl_sync(FULL_WARP, end, 31);
    if (total > size - made) return DAMAGE_LONG;
    const bool copies = token.size != 0 && !token.literal;
    // A distance of 0 is as wrong as one that is too far.
    const bool far = copies && token.from - 1 >= made + first;
    if (__any_sync(FULL_WARP, far)) {
        const bool wrong = far && token.from - 1 >= before + made + first;
        return __any_sync(FULL_WARP, wrong) ? DAMAGE_DISTANCE : REACHES_BACK;
    }

    // Rows are read as a whole: what is behind the end belongs to token 0.
#pragma unroll 1
    for (u32 w = lane(); w < total / (32 * ROWS) * ROWS + ROWS; w += WARP) {
        batch.words[w] = make_uint2(0, w == 0 ? U32_MAX : 0);
    }
    const bool repeats = copies && token.from < token.size;
    uint2 mine = make_uint2(first * 2, copies ? 0 - token.from : token.from - first + BATCH_TEXT);
    if (repeats) mine.x |= (32767 + token.from) / token.from << 16;
    batch.tokens[lane()] = mine;
    if (lane() == 0) batch.tokens[WARP].x = total * 2;
    __syncwarp();  // no byte is a start
    if (token.size != 0) {
        atomicOr(&batch.words[first / 32].x, 1u << (first % 32));
#pragma unroll 1
        for (u32 w = first / 32 + 1; w <= end / 32; ++w) batch.words[w].y = lane();
    }
    __syncwarp();  // starts and tokens are there
    batch_shorten(batch, mine, first, token.size);
    if (__any_sync(FULL_WARP, repeats)) {
        batch_rows<ROWS, true>(batch, total, text, out, made);
    } else {
        batch_rows<ROWS, false>(batch, total, text, out, made);
    }
    made += total;
    __syncwarp();  // the bytes are made, and the tables read
    return 0;
}

}  // namespace wf
