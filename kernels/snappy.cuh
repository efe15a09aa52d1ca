// snappy.cuh: pages compressed by Snappy.
//
//   | length, 7 bits a byte | token | token | …
//
// The low bits of a token's first byte are its tag:
//
//   00      literal: size − 1 in 6 bits, or 60 … 63: in the next 1 … 4 bytes; then its bytes
//   01      copy: size − 4 in 3 bits, distance in 3 bits and a byte
//   10, 11  copy: size − 1 in 6 bits, distance in 2 or 4 bytes
//
//   split   a block for a page of more than 64 KiB: where tokens begin in the text (starts.cuh),
//           and each 64 KiB of content
//   decode  a warp for such a part, or for a page that is not larger
//   decode  a warp for a page that cannot be cut, of which there are few
//
// Compressors work on 64 KiB after 64 KiB, and few let copies reach further back. A page where a
// token lies across the border of parts, or a copy reaches over it, is made as a whole. Pages that
// are one literal need not be made at all.
//
// Split reads the text of large pages; decode reads text and writes content once, and reads again
// what copies refer to.
#pragma once
#include "decompress.cuh"
#include "starts.cuh"

namespace wf {

constexpr u32 SNAPPY_PART = 65536;

// From a token's first byte to the next token's; more than 61 of a literal whose size follows the
// tag.
WF_DEVICE u32 snappy_stride(u32 tag) {
    const u32 copy = __byte_perm(0x05030200u, 0, tag & 3);
    return copy != 0 ? copy : tag / 4 + 2;
}

WF_DEVICE bool snappy_is_long(u32 tag) { return (tag & 3) == 0 && tag >= 60 * 4; }

struct SnappyToken {
    bool literal;
    u32 header;    // bytes of tag, size and distance
    u32 size;      // no more than HUGE_SIZE
    u32 distance;

    WF_DEVICE u32 stride() const { return literal ? header + size : header; }
};

// From five bytes of text.
WF_DEVICE SnappyToken snappy_token(u64 text) {
    const u32 tag = u32(text) & 255, kind = tag & 3, six = tag / 4, rest = u32(text >> 8);
    SnappyToken token;
    token.literal = kind == 0;
    token.header = maximum(__byte_perm(0x05030200u, 0, kind), 1u);
    token.size = six + 1;
    token.distance = kind == 3 ? rest : rest & 0xffffu;
    if (kind == 1) {
        token.size = (six & 7) + 4;
        token.distance = tag / 32 << 8 | (rest & 255);
    }
    if (snappy_is_long(tag)) {
        const u32 bytes = six - 59;
        token.header = 1 + bytes;
        token.size = minimum(rest & (U32_MAX >> (32 - 8 * bytes)), HUGE_SIZE - 1) + 1;
    }
    return token;
}

// Reads the length at the head of a block: where tokens begin, or 0 where it is not the one
// expected.
WF_DEVICE u32 snappy_head(const Compressed& block) {
    const u8* const source = global_at<const u8>(block.source);
    u64 length = 0;
    for (u32 at = 0; at < 5 && at < block.source_size; ++at) {
        const u32 byte = source[at];
        length |= u64(byte & 127) << (7 * at);
        if (byte < 128) return length == block.target_size ? at + 1 : 0;
    }
    return 0;
}

// The address of the content where all of it is one literal after `head` bytes, else 0.
WF_DEVICE u64 snappy_only_literal(const Compressed& block, u32 head) {
    if (head >= block.source_size) return 0;
    const u8* const text = global_at<const u8>(block.source);
    const SnappyToken token = snappy_token(load_unaligned(text + head));
    const bool only = token.literal && token.size == block.target_size &&
                      head + token.stride() == block.source_size;
    return only ? block.source + head + token.header : 0;
}

// Part of a page's text. Places in a text count from the last address before it that is a multiple
// of 16.
struct SnappyPart {
    u32 block;
    u32 number;  // of the part in its block; SNAPPY_NOTHING: nothing is to do
    u32 begin, end;
};
constexpr u32 SNAPPY_NOTHING = U32_MAX;

// ---- where tokens begin ----

struct SnappyFormat {
    WF_DEVICE static u32 strides(u32 tags) {
        const u32 kinds = tags & 0x03030303u;
        const u32 selector = __byte_perm(kinds | kinds >> 4, 0, 0x4420);  // each in 4 bits
        const u32 copies = __byte_perm(0x05030200u, 0, selector);
        const u32 literals = __byte_perm(0x000000ffu, 0, selector);
        const u32 all = copies | (((tags >> 2 & 0x3f3f3f3fu) + 0x02020202u) & literals);
        const u32 longs = (all + 0x42424242u) & 0x80808080u;  // it would be 62 to 65
        return (all | longs) & ~(longs - (longs >> 7));
    }

    template <class Window>
    WF_DEVICE static u32 stride(const Window& window, u32 at) {
        return snappy_token(window.token(at)).stride();
    }
};

using SnappyStarts = Starts<SnappyFormat>;

// From a token at byte `at` of a window: where tokens begin before `end`, which is in the same
// chunk or its end, a bit each. `makes` is how many bytes they make.
WF_DEVICE u32 snappy_chunk(const SnappyStarts& window, u32 at, u32 end, u32& makes) {
    u32 starts = 0;
    makes = 0;
    while (at < end) {
        starts |= 1u << (at % CHUNK);
        const u32 tag = window.text[at];
        if (snappy_is_long(tag)) {
            const SnappyToken token = snappy_token(window.token(at));
            at += token.stride();
            makes += token.size;
        } else {
            at += snappy_stride(tag);
            makes += (tag & 3) == 1 ? (tag / 4 & 7) + 4 : tag / 4 + 1;
        }
    }
    return starts;
}

// ---- split ----

constexpr u32 SPLIT_THREADS = 256;
constexpr u32 SPLIT_BLOCKS = 6;  // of a multiprocessor
constexpr u32 SPLIT_WINDOW = SPLIT_THREADS * CHUNK;

struct SnappySplit {
    const Compressed* blocks;  // one a block of threads, each of more than a part
    SnappyPart* parts;
    u32* whole;   // how many blocks cannot be cut, and which
    u64* places;
    u32* faults;
};

struct __align__(16) SplitShared {
    u32 text[2][SPLIT_WINDOW / 4 + 4];  // of a window, and of the next one
    u8 exits[SPLIT_THREADS * CHUNK_EXITS];
    u8 entries[SPLIT_THREADS];
    u16 links[SPLIT_THREADS];  // of chunks: the first that is not the same warp's
    u32 warps[SPLIT_THREADS / WARP];
    u32 next;                  // where the window's last token ends
    u32 across;                // not 0: a token lies across a border of parts
};

// Begins to load a window of the text, and what a token may have behind it.
WF_DEVICE void split_load(u32* staged, const u8* text, u32 window, u32 end) {
#pragma unroll
    for (u32 k = 0; k < CHUNK / 16 + 1; ++k) {
        const u32 place = (k * SPLIT_THREADS + threadIdx.x) * 16;
        if (place < SPLIT_WINDOW + 16 && window + place < end) {
            copy_later(staged + place / 4, text + window + place);
        }
    }
}

WF_DEVICE void snappy_split_body(const SnappySplit& p) {
    WF_SHARED(SplitShared, s);
    const Compressed block = p.blocks[blockIdx.x];
    const u32 count = divide_up(block.target_size, SNAPPY_PART);
    SnappyPart* const parts = p.parts + block.first_part;

    const u32 head = snappy_head(block);
    const u64 literal = head != 0 && block.in_place != 0 ? snappy_only_literal(block, head) : 0;
    if (threadIdx.x == 0) {
        p.places[block.page] = literal != 0 ? literal : block.target;
        if (head == 0) report_damage(p.faults, block.page, DAMAGE_LENGTH);
    }
    if (head == 0 || literal != 0) {
        for (u32 i = threadIdx.x; i < count; i += SPLIT_THREADS) parts[i].number = SNAPPY_NOTHING;
        return;
    }

    const u32 skew = u32(block.source & 15);
    const u8* const text = global_at<const u8>(block.source - skew);
    const u32 end = skew + block.source_size;
    const u32 first = threadIdx.x * CHUNK;
    u32 at = skew + head;  // the first token that was not seen
    u64 made = 0;          // bytes of the tokens before it
    if (threadIdx.x == 0) {
        parts[0].block = blockIdx.x;
        parts[0].number = 0;
        parts[0].begin = at;
        parts[count - 1].end = end;
        s.across = 0;
    }
    u32 window = at / SPLIT_WINDOW * SPLIT_WINDOW, turn = 0;
    bool fails = at >= end;
    if (!fails) split_load(s.text[0], text, window, end);
    while (at < end && !fails) {
        copies_done();
        // The text is there, and all of the window before is read.
        __syncthreads();
        if (s.across != 0) break;
        split_load(s.text[turn ^ 1], text, window + SPLIT_WINDOW, end);

        const u32 left = end - window;
        const SnappyStarts around{reinterpret_cast<const u8*>(s.text[turn]), s.exits, s.entries,
                                     minimum(left, SPLIT_WINDOW)};
        const u32 known = (at - window) / CHUNK;  // the chunk where a token is known to begin
        around.note(threadIdx.x, threadIdx.x == known ? at % CHUNK : 0);
        __syncthreads();  // exits are there

        u32 place = 0;
        u32 link = around.guess(threadIdx.x, place);
        const u32 linked = chain_links(warp() * WARP, link);
        s.links[threadIdx.x] = u16(link);
        __syncthreads();  // links are there

        u32 chunk = known;  // the first on the path that is this warp's, or behind it
        while (chunk < warp() * WARP) chunk = s.links[chunk];
        const u32 right = __shfl_sync(FULL_WARP, linked, int(chunk % WARP));
        if (chunk / WARP == warp() && (right >> lane() & 1) != 0) {
            if (threadIdx.x == known) s.entries[known] = u8(at % CHUNK);
            if (around.follow<true>(place) == NO_LINK) s.next = place;
        }
        __syncthreads();  // entries are there

        const u32 entry = s.entries[threadIdx.x];
        const u32 stop = minimum(left, first + CHUNK);
        u32 makes;
        u32 starts = snappy_chunk(around, entry < CHUNK ? first + entry : stop, stop, makes);
        if (first < left) block.map[(window + first) / 32] = starts;
        const u32 sum = warp_sums(makes);
        if (lane() == 31) s.warps[warp()] = sum;
        __syncthreads();  // the warps' sums are there
        u64 to = made + sum;
#pragma unroll
        for (u32 w = 0; w < SPLIT_THREADS / WARP; ++w) {
            if (w < warp()) to += s.warps[w];
            made += s.warps[w];
        }
        const u64 from = to - makes;
        if (to <= block.target_size && from / SNAPPY_PART != to / SNAPPY_PART) {
            // A border: the token that ends there is among this thread's.
            u64 border = (from / SNAPPY_PART + 1) * SNAPPY_PART, reached = from;
            while (border <= to) {
                const u32 start = first + u32(trailing_zeros(starts));
                const SnappyToken token = snappy_token(around.token(start));
                const u32 ends = window + start + token.stride();
                starts &= starts - 1;
                reached += token.size;
                if (reached > border) {
                    s.across = 1;
                    break;
                }
                if (reached == border) {
                    const u32 number = u32(border / SNAPPY_PART);
                    parts[number - 1].end = ends;
                    if (number < count) {
                        // Where it ends may be known already, to another thread.
                        parts[number].block = blockIdx.x;
                        parts[number].number = number;
                        parts[number].begin = ends;
                    }
                    border += SNAPPY_PART;
                }
            }
        }
        at = window + s.next;
        fails = made > block.target_size || at > end || (at == end && made != block.target_size);
        turn ^= 1;
        const u32 behind = window + SPLIT_WINDOW;
        window = at / SPLIT_WINDOW * SPLIT_WINDOW;
        if (window != behind && !fails && at < end) {
            // A literal leads over windows.
            copies_done();
            split_load(s.text[turn], text, window, end);
        }
    }
    copies_done();
    __syncthreads();  // the last borders are seen, and other threads' parts are written
    if (!fails && s.across == 0) return;
    for (u32 i = threadIdx.x; i < count; i += SPLIT_THREADS) parts[i].number = SNAPPY_NOTHING;
    if (threadIdx.x == 0) p.whole[1 + atomicAdd(p.whole, 1u)] = blockIdx.x;
}

// ---- decode ----

constexpr u32 DECODE_WINDOW = WARP * CHUNK;
constexpr u32 DECODE_THREADS = 128;
constexpr u32 DECODE_BLOCKS = 8;      // of a multiprocessor
constexpr u32 DECODE_ROWS = 4;
// A token in a batch that begins in the window may end here: 5 + BATCH_MOST bytes at most.
constexpr u32 DECODE_BEHIND = 144;

struct SnappyDecode {
    Compressed* blocks;
    const SnappyPart* parts;
    u64 part_count;
    u64 block_count;    // the first of which are cut into parts
    u64 first_whole;    // the first that is not
    const u32* listed;  // not null: blocks to make as a whole instead, and before them how many
    u32* ticket;        // zero
    u32* whole;         // how many blocks must be made as a whole after all, and which
    u64* places;
    u32* faults;
};

// A warp's.
struct __align__(16) DecodeShared {
    u32 text[2][(DECODE_WINDOW + DECODE_BEHIND) / 4];  // of a window, and of the next one
    u32 block;   // that is made
    u32 before;  // bytes of it before the part that is made
    u32 size;    // and in the part
    union {
        struct {
            u8 exits[WARP * CHUNK_EXITS];
            u8 entries[WARP];
        };
        struct {
            Batch batch;
            u16 list[DECODE_WINDOW / 2];  // tokens take two bytes and more
        };
    };
};

// Begins to load the window around a place in the text.
WF_DEVICE void decode_load(u32* staged, const u8* text, u32 at, u32 end) {
    const u32 window = at / DECODE_WINDOW * DECODE_WINDOW;
#pragma unroll
    for (u32 k = 0; k * WARP * 16 < DECODE_WINDOW + DECODE_BEHIND; ++k) {
        const u32 place = (k * WARP + lane()) * 16;
        if (place < DECODE_WINDOW + DECODE_BEHIND && window + place < end) {
            copy_later(staged + place / 4, text + window + place);
        }
    }
}

// Where tokens begin from `at` to `end` in its window: of the lane's bytes a bit each.
WF_DEVICE u32 decode_mapped(const u32* map, u32 at, u32 end) {
    const u32 first = at / DECODE_WINDOW * DECODE_WINDOW + lane() * 32;
    u32 starts = first < end && at < first + 32 ? map[first / 32] : 0;
    if (at > first) starts &= U32_MAX << ((at - first) % 32);
    if (end - first < 32) starts &= (1u << (end - first)) - 1;
    return starts;
}

// Makes `s.size` bytes of the tokens from `at` to `end`, whose begins are mapped where there is a
// map. Gives the damage, if any.
WF_DEVICE u32 snappy_make(DecodeShared& s, const u8* text, u32 at, u32 end, const u32* map,
                          u8* out) {
    const u32 first = lane() * CHUNK;
    u32 made = 0, turn = 0;
    decode_load(s.text[0], text, at, end);
    u32 mapped = map != nullptr ? decode_mapped(map, at, end) : 0;
    while (at < end) {
        const u32 window = at / DECODE_WINDOW * DECODE_WINDOW;
        const u32* const staged = s.text[turn];
        turn ^= 1;
        copies_done();
        __syncwarp();  // the text is there

        const u32 left = end - window;
        const SnappyStarts around{reinterpret_cast<const u8*>(staged), s.exits, s.entries,
                                     minimum(left, DECODE_WINDOW)};
        u32 starts = mapped;
        if (map != nullptr) {
            const u32 having = __ballot_sync(FULL_WARP, starts != 0);
            if (having == 0) return DAMAGE_CUT;
            const u32 last = first + 31 - u32(leading_zeros(starts));
            const u32 start = __shfl_sync(FULL_WARP, last, 31 - leading_zeros(having));
            at = window + start + SnappyFormat::stride(around, start);
        } else {
            const u32 known = (at - window) / CHUNK;
            around.note(lane(), lane() == known ? at % CHUNK : 0);
            __syncwarp();  // exits are there
            u32 place = 0;
            u32 link = around.guess(lane(), place);
            const u32 right = __shfl_sync(FULL_WARP, chain_links(0, link), int(known));
            bool last = false;
            if ((right >> lane() & 1) != 0) {
                if (lane() == known) s.entries[known] = u8(at % CHUNK);
                last = around.follow<true>(place) == NO_LINK;
            }
            const u32 from = u32(trailing_zeros(__ballot_sync(FULL_WARP, last)));
            at = window + __shfl_sync(FULL_WARP, place, int(from));
            __syncwarp();  // entries are there
            const u32 entry = s.entries[lane()], stop = minimum(left, first + CHUNK);
            u32 makes;
            starts = snappy_chunk(around, entry < CHUNK ? first + entry : stop, stop, makes);
        }
        if (at > end) return DAMAGE_CUT;
        decode_load(s.text[turn], text, at, end);
        if (map != nullptr) mapped = decode_mapped(map, at, end);
        const u32 upto = warp_sums(u32(__popc(starts)));
        const u32 tokens = __shfl_sync(FULL_WARP, upto, 31);
        __syncwarp();  // entries are read, the list lies over them
        for (u32 i = upto - u32(__popc(starts)); starts != 0; ++i) {
            s.list[i] = u16(first + u32(trailing_zeros(starts)));
            starts &= starts - 1;
        }
        __syncwarp();  // the list is there

        for (u32 done = 0; done < tokens;) {
            const u32 start = s.list[minimum(done + lane(), tokens - 1)];
            const SnappyToken it = snappy_token(around.token(start));
            const bool is = done + lane() < tokens;
            // A literal that is too long for a batch ends it.
            const u32 longs = __ballot_sync(FULL_WARP, is && it.size > BATCH_MOST);
            const u32 stop = u32(trailing_zeros(longs));
            const u32 makes = is && lane() < stop ? it.size : 0;
            const Token token{makes, it.literal, it.literal ? start + it.header : it.distance};
            const u32 damage = batch_make<DECODE_ROWS>(
                s.batch, token, reinterpret_cast<const u8*>(staged), out, made, s.size, s.before);
            if (damage != 0) return damage;
            done += WARP;
            if (longs != 0) {
                const u32 literal = __shfl_sync(FULL_WARP, it.size, int(stop));
                const u32 from = __shfl_sync(FULL_WARP, start + it.header, int(stop));
                if (literal > s.size - made) return DAMAGE_LONG;
                warp_copy<4>(out + made, text + window + from, literal);
                __syncwarp();  // the bytes are made
                made += literal;
                done += stop + 1 - WARP;
            }
        }
        __syncwarp();  // text and list are read
    }
    return made == s.size ? 0 : DAMAGE_SHORT;
}

WF_DEVICE void snappy_decode_body(const SnappyDecode& p) {
    WF_SHARED_ARRAY(DecodeShared, shared, DECODE_THREADS / WARP);
    DecodeShared& s = shared[warp()];
    const bool listed = p.listed != nullptr;
    for (;;) {
        u32 item = 0;
        if (lane() == 0) item = atomicAdd(p.ticket, 1u);
        item = __shfl_sync(FULL_WARP, item, 0);
        // Read anew each time, not kept in a register.
        const u64 items = listed ? p.listed[0] : p.part_count + p.block_count - p.first_whole;
        if (item >= items) return;

        SnappyPart part{0, 0, 0, 0};
        const bool is_part = !listed && item < p.part_count;
        if (is_part) {
            part = p.parts[item];
            if (part.number == SNAPPY_NOTHING) continue;
        } else {
            part.block = listed ? p.listed[1 + item] : u32(item - p.part_count + p.first_whole);
        }
        const Compressed block = p.blocks[part.block];
        const u32 skew = u32(block.source & 15);
        const u8* const text = global_at<const u8>(block.source - skew);
        const u32* const map = is_part ? block.map : nullptr;
        u32 size = block.target_size, before = 0, damage = 0;
        if (is_part) {
            before = part.number * SNAPPY_PART;
            size = minimum(size - before, SNAPPY_PART);
        } else {
            if (size == 0 && lane() == 0) p.places[block.page] = block.target;
            if (size == 0) continue;
            const u32 head = snappy_head(block);
            const bool may_stay = head != 0 && block.in_place != 0;
            const u64 literal = may_stay ? snappy_only_literal(block, head) : 0;
            if (lane() == 0) p.places[block.page] = literal != 0 ? literal : block.target;
            if (literal != 0) continue;
            if (head == 0) damage = DAMAGE_LENGTH;
            part.begin = skew + head;
            part.end = skew + block.source_size;
        }
        u8* const out = global_at<u8>(block.target) + before;
        if (lane() == 0) {
            s.block = part.block;
            s.before = before;
            s.size = size;
        }
        __syncwarp();  // they are there
        if (damage == 0) damage = snappy_make(s, text, part.begin, part.end, map, out);
        __syncwarp();  // what the warp shares may be used anew
        if (lane() != 0 || damage == 0) continue;
        Compressed& again = p.blocks[s.block];
        if (damage != REACHES_BACK) {
            report_damage(p.faults, again.page, damage);
        } else if (atomicExch(&again.listed, 1u) == 0) {
            p.whole[1 + atomicAdd(p.whole, 1u)] = s.block;
        }
    }
}

}  // namespace wf

#define WF_SNAPPY_ENTRIES                                                                          \
    WF_KERNEL_BOUNDS(wf::SPLIT_THREADS, wf::SPLIT_BLOCKS, snappy_split, wf::SnappySplit) {         \
        wf::snappy_split_body(p);                                                                  \
    }                                                                                              \
    WF_KERNEL_BOUNDS(wf::DECODE_THREADS, wf::DECODE_BLOCKS, snappy_decode, wf::SnappyDecode) {     \
        wf::snappy_decode_body(p);                                                                 \
    }
