// lz4.cuh: pages compressed as raw LZ4 blocks.
//
//   | sizes | literal size, more | literal | distance, 2 bytes | copy size, more | sizes | …
//
//   The byte of sizes has the literal's in its upper 4 bits and the copy's, less 4, in its lower ones.
//   15 says that bytes follow that add to it, and after each of 255 another one.
//
// A warp makes a page: all lanes read the same literals and copies one after the other, and make
// the bytes of a batch of them at once. Reads the text once and what copies refer to, writes the
// content once.
#pragma once
#include "decompress.cuh"

namespace wf {

constexpr u32 LZ4_THREADS = 128;
constexpr u32 LZ4_BLOCKS = 8;  // of a multiprocessor
constexpr u32 LZ4_ROWS = 4;

struct Lz4Decode {
    const Compressed* blocks;
    u64 block_count;
    u32* ticket;  // zero
    u64* places;
    u32* faults;
};

// A size whose first part is 15: adds the bytes that follow. False where the text ends among them.
WF_DEVICE bool lz4_more(const u8* text, u32& at, u32 end, u32& size) {
    for (;;) {
        // What is behind the end stops the search as a byte of less than 255 does.
        const u32 byte = end - at > lane() ? text[at + lane()] : 0;
        const u32 full = u32(trailing_zeros(__ballot_sync(FULL_WARP, byte != 255)));
        size = minimum(size + full * 255, HUGE_SIZE);
        if (full == WARP) {
            at += WARP;
            continue;
        }
        if (full >= end - at) return false;
        size = minimum(size + __shfl_sync(FULL_WARP, byte, int(full)), HUGE_SIZE);
        at += full + 1;
        return true;
    }
}

WF_DEVICE u32 lz4_make(Batch& batch, const u8* text, u32 end, u8* out, u32 size) {
    Token mine{0, true, 0};  // the lane's in the batch
    u32 count = 0;           // of tokens in the batch
    u32 origin = 0;          // literals' places in the batch count from here
    u32 at = 0, made = 0, sizes = 0;
    bool copies = false;     // what comes next is a copy
    if (end == 0) return DAMAGE_CUT;
    for (;;) {
        const bool ends = at == end;
        Token next{0, !copies, 0};
        if (!ends && next.literal) {
            sizes = text[at++];
            next.size = sizes / 16;
            if (next.size == 15 && !lz4_more(text, at, end, next.size)) return DAMAGE_CUT;
            if (next.size > end - at) return DAMAGE_CUT;
            next.from = at;
            at += next.size;
            copies = true;
        } else if (!ends) {
            if (end - at < 2) return DAMAGE_CUT;
            next.from = text[at] | u32(text[at + 1]) << 8;
            at += 2;
            next.size = sizes % 16;
            if (next.size == 15 && !lz4_more(text, at, end, next.size)) return DAMAGE_CUT;
            next.size += 4;
            copies = false;
        }
        if (next.size == 0 && !ends) continue;

        const bool alone = next.size > BATCH_MOST;
        if (ends || alone || count == WARP) {
            if (lane() >= count) mine.size = 0;
            const u32 damage = batch_make<LZ4_ROWS>(batch, mine, text + origin, out, made, size, 0);
            if (damage != 0) return damage;
            count = 0;
        }
        if (ends) return made == size ? 0 : DAMAGE_SHORT;
        if (alone) {
            if (next.size > size - made) return DAMAGE_LONG;
            if (next.literal) {
                warp_copy(out + made, text + next.from, next.size);
            } else {
                if (next.from == 0 || next.from > made) return DAMAGE_DISTANCE;
                warp_repeat(out + made, next.from, next.size);
            }
            __syncwarp();  // the bytes are made
            made += next.size;
            continue;
        }
        if (count == 0) origin = next.literal ? next.from : at;
        if (next.literal) next.from -= origin;
        if (lane() == count) mine = next;
        ++count;
    }
}

// The address of the content where all of it is one literal, else 0.
WF_DEVICE u64 lz4_only_literal(const Compressed& block) {
    const u8* const text = global_at<const u8>(block.source);
    if (block.source_size == 0) return 0;
    u32 at = 1, literal = text[0] / 16;
    if (literal == 15 && !lz4_more(text, at, block.source_size, literal)) return 0;
    const bool only = literal == block.target_size && literal == block.source_size - at;
    return only ? block.source + at : 0;
}

WF_DEVICE void lz4_decode_body(const Lz4Decode& p) {
    WF_SHARED_ARRAY(Batch, batches, LZ4_THREADS / WARP);
    for (;;) {
        u32 item = 0;
        if (lane() == 0) item = atomicAdd(p.ticket, 1u);
        item = __shfl_sync(FULL_WARP, item, 0);
        if (item >= p.block_count) return;
        const Compressed block = p.blocks[item];
        const u64 literal = block.in_place != 0 ? lz4_only_literal(block) : 0;
        if (lane() == 0) p.places[block.page] = literal != 0 ? literal : block.target;
        if (literal != 0 || block.target_size == 0) continue;
        const u32 damage =
            lz4_make(batches[warp()], global_at<const u8>(block.source), block.source_size,
                     global_at<u8>(block.target), block.target_size);
        __syncwarp();  // what the warp shares may be used anew
        if (lane() == 0 && damage != 0) report_damage(p.faults, block.page, damage);
    }
}

}  // namespace wf

#define WF_LZ4_ENTRIES                                                                  \
    WF_KERNEL_BOUNDS(wf::LZ4_THREADS, wf::LZ4_BLOCKS, lz4_decode, wf::Lz4Decode) {      \
        wf::lz4_decode_body(p);                                                         \
    }
