// lz4.cuh: pages compressed as raw LZ4 blocks.
//
//   | sizes | literal size, more | literal | distance, 2 bytes | copy size, more | sizes | …
//
//   The byte of sizes has the literal's in its upper 4 bits and the copy's, less 4, in its lower
//   ones. 15 says that bytes follow that add to it, and after each of 255 another one. All of this
//   is a sequence; the last one ends with its literal.
//
// A block makes a page, window after window of 8 KiB of its text. A window begins with a sequence;
// sequences that end in it are whole.
//
//   starts  the block finds where whole sequences begin (starts.cuh).
//   batch   A thread takes a sequence, whose literal and copy are tokens. Tokens of up to 8 KiB of
//           content are made at once (decompress.cuh).
//   alone   All threads make a sequence that is too long for a batch, or that begins a window and
//           is not whole in it. The last one is such, and one in which a damaged text ends.
//
// Copies reach back 64 KiB anywhere, so a page is not cut into parts. Reads the text once and what
// copies refer to, writes the content once.
#pragma once
#include "decompress.cuh"
#include "starts.cuh"

namespace wf {

constexpr u32 LZ4_THREADS = 256;
constexpr u32 LZ4_BLOCKS = 5;  // of a multiprocessor
constexpr u32 LZ4_ROWS = 4;    // bytes of a thread that are under way at once
constexpr u32 LZ4_WINDOW = LZ4_THREADS * CHUNK;
constexpr u32 LZ4_SHORTEST = 3;  // bytes of a sequence
constexpr u32 LZ4_BATCH = 8192;  // most bytes that a batch makes
constexpr u32 LZ4_MOST = 1024;   // of them, a literal's or a copy's that does not repeat

struct Lz4Decode {
    const Compressed* blocks;  // one a block of threads
    u64* places;
    u32* faults;
};

struct Lz4Batch {
    uint2 tokens[2 * LZ4_THREADS + 1];
    uint2 words[LZ4_BATCH / 32 + 1];
};

struct Lz4Sequence {
    u32 literal;         // its size
    u32 from;            // and where it is in the text
    u32 distance, copy;  // a copy of no bytes: the last sequence has none
    u32 end;             // 0: it is not whole in the window
};

struct __align__(16) Lz4Shared {
    u32 text[2][LZ4_WINDOW / 4];  // of a window, and of the next one
    u16 links[LZ4_THREADS];       // of chunks: the first that is not the same warp's
    u32 warps[LZ4_THREADS / WARP];
    u32 next;                     // where a sequence begins that is not whole, or the window's end
    u32 total;                    // bytes of a batch
    u32 size, end;                // bytes of the page, and where its text ends
    Lz4Sequence alone;
    union {
        struct {
            u8 exits[LZ4_THREADS * CHUNK_EXITS];
            u8 entries[LZ4_THREADS];
        };
        struct {
            Lz4Batch batch;
            u16 list[LZ4_WINDOW / LZ4_SHORTEST + 1];  // where whole sequences begin
        };
    };
};

// ---- sequences ----

// A size whose first part is 15: adds the bytes that follow. False where the window ends among
// them.
WF_DEVICE bool lz4_more_within(const u8* text, u32& at, u32 bound, u32& size) {
    u32 byte = 255;
    while (byte == 255) {
        if (at >= bound) return false;
        byte = text[at++];
        size += byte;
    }
    return true;
}

// The sequence at a byte of a window.
WF_DEVICE Lz4Sequence lz4_sequence(const u8* text, u32 at, u32 bound) {
    const Lz4Sequence open{0, 0, 0, 0, 0};
    const u32 sizes = text[at++];
    Lz4Sequence it{sizes / 16, 0, 0, sizes % 16, 0};
    if (it.literal == 15 && !lz4_more_within(text, at, bound, it.literal)) return open;
    if (it.literal + 2 > bound - at) return open;
    it.from = at;
    at += it.literal;
    it.distance = text[at] | u32(text[at + 1]) << 8;
    at += 2;
    if (it.copy == 15 && !lz4_more_within(text, at, bound, it.copy)) return open;
    it.copy += 4;
    it.end = at;
    return it;
}

struct Lz4Format {
    WF_DEVICE static u32 strides(u32 tags) {
        const u32 literals = tags >> 4 & 0x0f0f0f0fu, copies = tags & 0x0f0f0f0fu;
        const u32 longs = ((literals + 0x01010101u) | (copies + 0x01010101u)) & 0x10101010u;
        const u32 all = literals + 0x03030303u;
        return (all & ~(longs | (longs - (longs >> 4)))) | longs << 3;
    }

    template <class Window>
    WF_DEVICE static u32 stride(const Window& window, u32 at) {
        const u32 end = lz4_sequence(window.text, at, window.bound).end;
        return end != 0 ? end - at : HUGE_SIZE;
    }
};

using Lz4Starts = Starts<Lz4Format>;

// The sums over the block's threads up to and with this one's, and over all.
WF_DEVICE u32 lz4_sums(Lz4Shared& s, u32 value, u32& all) {
    u32 sum = warp_sums(value);
    if (lane() == 31) s.warps[warp()] = sum;
    __syncthreads();  // the warps' sums are there
    all = 0;
#pragma unroll
    for (u32 w = 0; w < LZ4_THREADS / WARP; ++w) {
        if (w < warp()) sum += s.warps[w];
        all += s.warps[w];
    }
    return sum;
}

// Lists where whole sequences begin in a window, the first at `at`, which is in its first chunk.
// How many there are.
WF_DEVICE u32 lz4_starts(Lz4Shared& s, const Lz4Starts& window, u32 at) {
    window.note(threadIdx.x, threadIdx.x == 0 ? at : 0);
    if (threadIdx.x == 0) s.next = window.bound;
    __syncthreads();  // exits are there

    u32 place = 0;
    u32 link = window.guess(threadIdx.x, place);
    const u32 linked = chain_links(warp() * WARP, link);
    s.links[threadIdx.x] = u16(link);
    __syncthreads();  // links are there

    u32 chunk = 0;  // the first on the path that is this warp's, or behind it
    while (chunk < warp() * WARP) chunk = s.links[chunk];
    const u32 right = __shfl_sync(FULL_WARP, linked, int(chunk % WARP));
    if (chunk / WARP == warp() && (right >> lane() & 1) != 0) {
        if (threadIdx.x == 0) s.entries[0] = u8(at);
        window.follow<true>(place);
    }
    __syncthreads();  // entries are there

    const u32 first = threadIdx.x * CHUNK, entry = s.entries[threadIdx.x];
    u32 starts = 0;
    if (entry < CHUNK) {
        const u32 stop = minimum(window.bound, first + CHUNK);
        for (u32 from = first + entry; from < stop;) {
            const u32 sizes = window.text[from];
            const bool known = sizes < 15 * 16 && sizes % 16 < 15;
            const u32 stride = known ? sizes / 16 + 3 : Lz4Format::stride(window, from);
            if (stride > window.bound - from) {
                s.next = from;  // one thread meets it: paths that are right are one
                break;
            }
            starts |= 1u << (from % CHUNK);
            from += stride;
        }
    }
    u32 count;
    u32 rank = lz4_sums(s, u32(__popc(starts)), count) - u32(__popc(starts));
    for (; starts != 0; ++rank) {  // entries are read, the list lies over them
        s.list[rank] = u16(first + u32(trailing_zeros(starts)));
        starts &= starts - 1;
    }
    __syncthreads();  // the list is there
    return count;
}

// ---- sequences that are made alone ----

WF_DEVICE void lz4_copy(u8* target, const u8* source, u32 size) {
    const u32 share = divide_up(size, LZ4_THREADS) * WARP;
    const u32 begin = minimum(warp() * share, size);
    warp_copy<1>(target + begin, source + begin, minimum(share, size - begin));
}

// The bytes before the copy are read only, so threads do not wait for each other.
WF_DEVICE void lz4_repeat(u8* target, u32 distance, u32 size) {
    const u8* const source = target - distance;
    if (distance >= size) {
        lz4_copy(target, source, size);
        return;
    }
    const u32 step = LZ4_THREADS % distance;
    u32 from = threadIdx.x % distance;
    for (u32 i = threadIdx.x; i < size; i += LZ4_THREADS) {
        target[i] = source[from];
        from += step;
        if (from >= distance) from -= distance;
    }
}

WF_DEVICE u32 lz4_make(const Lz4Sequence& it, const u8* text, u8* out, u32& made, u32 size) {
    if (it.literal > size - made) return DAMAGE_LONG;
    lz4_copy(out + made, text + it.from, it.literal);
    made += it.literal;
    if (it.copy == 0) return 0;
    if (it.copy > size - made) return DAMAGE_LONG;
    if (it.distance - 1 >= made) return DAMAGE_DISTANCE;
    __syncthreads();  // the literal is made
    lz4_repeat(out + made, it.distance, it.copy);
    made += it.copy;
    __syncthreads();  // the copy is made
    return 0;
}

// A size whose first part is 15, anywhere in the text, by a whole warp.
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

// The sequence at a byte of the text before its end, by a whole warp. False where the text ends in
// it.
WF_DEVICE bool lz4_read(const u8* text, u32 at, u32 end, Lz4Sequence& it) {
    const u32 sizes = text[at++];
    it = Lz4Sequence{sizes / 16, 0, 0, 0, end};
    if (it.literal == 15 && !lz4_more(text, at, end, it.literal)) return false;
    if (it.literal > end - at) return false;
    it.from = at;
    at += it.literal;
    if (at == end) return true;
    if (end - at < 2) return false;
    it.distance = text[at] | u32(text[at + 1]) << 8;
    at += 2;
    it.copy = sizes % 16;
    if (it.copy == 15 && !lz4_more(text, at, end, it.copy)) return false;
    it.copy += 4;
    it.end = at;
    return true;
}

// ---- batches ----

// Shortens chains of copies; `token` is the number of the thread's, `mine`.
WF_DEVICE void lz4_shorten(Lz4Batch& batch, u32 token, uint2 mine, u32 first, u32 size) {
    bool inside = size != 0 && !batch_is_repeat(mine) && batch_inside(i32(first + mine.y));
#pragma unroll 1
    for (u32 round = 0; round < 9; ++round) {
        if (__syncthreads_count(inside) < 16) return;  // the table is written
        const bool moved = inside && batch_skip(batch, mine, first, size);
        inside = moved && batch_inside(i32(first + mine.y));
        __syncthreads();  // the table is read
        if (moved) batch.tokens[token] = mine;
    }
    __syncthreads();  // the table is written
}

// Makes the bytes that the tables say.
WF_DEVICE void lz4_rows(const Lz4Batch& batch, u32 total, const u8* text, u8* out, u32 made) {
    static_assert(LZ4_BATCH % (LZ4_ROWS * LZ4_THREADS) == 0, "all rows under way have words");
#pragma unroll 1
    for (u32 row = threadIdx.x; row < total; row += LZ4_ROWS * LZ4_THREADS) {
        i32 from[LZ4_ROWS];
        u8 byte[LZ4_ROWS];
        bool inside = false;
#pragma unroll
        for (u32 r = 0; r < LZ4_ROWS; ++r) {
            const u32 at = row + r * LZ4_THREADS;
            const i32 source = batch_source<true>(batch.tokens[batch_owner(batch, at)], at);
            from[r] = at < total ? source : BATCH_TEXT;
            inside = inside || batch_inside(from[r]);
        }
        if (inside) {
#pragma unroll
            for (u32 r = 0; r < LZ4_ROWS; ++r) {
                // A source is less than the byte that it is the source of.
                while (batch_inside(from[r])) {
                    const u32 at = u32(from[r]);
                    from[r] = batch_source<true>(batch.tokens[batch_owner(batch, at)], at);
                }
            }
        }
#pragma unroll
        for (u32 r = 0; r < LZ4_ROWS; ++r) {
            byte[r] = from[r] < 0 ? out[made + u32(from[r])] : text[from[r] - BATCH_TEXT];
        }
#pragma unroll
        for (u32 r = 0; r < LZ4_ROWS; ++r) {
            const u32 at = row + r * LZ4_THREADS;
            if (at < total) out[made + at] = byte[r];
        }
    }
}

// Makes as many of a window's listed sequences, `count` in all and `done` of them made, as a batch
// has; where it has none, the next one is `s.alone`.
WF_DEVICE u32 lz4_batch(Lz4Shared& s, const Lz4Starts& around, u32 count, u32& done, u8* out,
                        u32& made) {
    Lz4Batch& batch = s.batch;
    const bool is = done + threadIdx.x < count;
    Lz4Sequence it{0, 0, 0, 0, 0};
    if (is) it = lz4_sequence(around.text, s.list[done + threadIdx.x], around.bound);
    const bool repeats = it.distance < it.copy;
    const bool alone = it.literal > LZ4_MOST || it.copy > (repeats ? BATCH_MOST : LZ4_MOST);
    // One that is made alone ends the batch.
    const u32 makes = alone ? LZ4_BATCH + 1 : it.literal + it.copy;
    const u32 tokens = u32(it.literal != 0) + u32(it.copy != 0);
    // Both sums at once: of bytes, less than 2²², and of tokens, at most 2⁹.
    static_assert(LZ4_THREADS * (LZ4_BATCH + 1) < 1u << 22, "room for the bytes");
    u32 all;
    const u32 sums = lz4_sums(s, tokens << 22 | makes, all);
    const u32 end = sums % (1u << 22);
    const bool taken = is && end <= LZ4_BATCH;
    batch.words[threadIdx.x] = make_uint2(0, threadIdx.x == 0 ? U32_MAX : 0);
    if (threadIdx.x == 0) s.alone = it;
    const u32 these = u32(__syncthreads_count(taken));  // no byte is a start
    if (these == 0) return 0;

    const u32 copied = end - it.copy, first = copied - it.literal;
    const bool far = taken && it.distance - 1 >= made + copied;
    const u32 token = (sums >> 22) - tokens, copy = token + u32(it.literal != 0);
    uint2 mine = make_uint2(copied * 2, 0 - it.distance);
    if (taken && !far) {
        if (it.literal != 0) {
            batch.tokens[token] = make_uint2(first * 2, it.from - first + BATCH_TEXT);
            atomicOr(&batch.words[first / 32].x, 1u << (first % 32));
#pragma unroll 1
            for (u32 w = first / 32 + 1; w <= copied / 32; ++w) batch.words[w].y = token;
        }
        if (repeats) mine.x |= (32767 + it.distance) / it.distance << 16;
        batch.tokens[copy] = mine;
        atomicOr(&batch.words[copied / 32].x, 1u << (copied % 32));
#pragma unroll 1
        for (u32 w = copied / 32 + 1; w <= end / 32; ++w) batch.words[w].y = copy;
    }
    if (threadIdx.x + 1 == these) {
        batch.tokens[sums >> 22].x = end * 2;
        s.total = end;
    }
    const bool wrong = __syncthreads_or(far);  // starts and tokens are there
    const u32 total = s.total;
    if (total > s.size - made) return DAMAGE_LONG;
    if (wrong) return DAMAGE_DISTANCE;
    lz4_shorten(batch, copy, mine, copied, taken ? it.copy : 0);
    lz4_rows(batch, total, around.text, out, made);
    made += total;
    done += these;
    __syncthreads();  // the bytes are made, and the tables read
    return 0;
}

// ---- pages ----

// Begins to load the window around a place in the text.
WF_DEVICE void lz4_load(u32* staged, const u8* text, u32 at, u32 end) {
    const u32 window = at / 16 * 16;
#pragma unroll
    for (u32 k = 0; k < LZ4_WINDOW / (LZ4_THREADS * 16); ++k) {
        const u32 place = (k * LZ4_THREADS + threadIdx.x) * 16;
        if (window + place < end) copy_later(staged + place / 4, text + window + place);
    }
}

// Makes `s.size` bytes of the sequences from `at` to `s.end`. Places in the text count from the
// last address before it that is a multiple of 16. Gives the damage, if any.
WF_DEVICE u32 lz4_page(Lz4Shared& s, const u8* text, u32 at, u8* out) {
    u32 made = 0, turn = 0;
    lz4_load(s.text[0], text, at, s.end);
    // A text does not end with a copy.
    while (at < s.end) {
        const u32 window = at / 16 * 16;
        const bool last = s.end - window <= LZ4_WINDOW;
        const Lz4Starts around{reinterpret_cast<const u8*>(s.text[turn]), s.exits, s.entries,
                               minimum(s.end - window, LZ4_WINDOW)};
        turn ^= 1;
        copies_done();
        __syncthreads();  // the text is there
        const u32 count = lz4_starts(s, around, at - window);
        at = window + s.next;
        const bool loaded = !last && count != 0;
        if (loaded) lz4_load(s.text[turn], text, at, s.end);
        for (u32 done = 0; done < count || !loaded;) {
            const bool listed = done < count;
            Lz4Sequence it{0, 0, 0, 0, 0};
            if (listed) {
                const u32 before = done;
                const u32 damage = lz4_batch(s, around, count, done, out, made);
                if (damage != 0) return damage;
                if (done != before) continue;
                it = s.alone;
                it.from += window;
                ++done;
            } else if (at == s.end || !lz4_read(text, at, s.end, it)) {
                return DAMAGE_CUT;
            }
            const u32 damage = lz4_make(it, text, out, made, s.size);
            if (damage != 0) return damage;
            if (listed) continue;
            if (it.copy == 0) return made == s.size ? 0 : DAMAGE_SHORT;
            at = it.end;
            lz4_load(s.text[turn], text, at, s.end);
            break;
        }
    }
    return DAMAGE_CUT;
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
    WF_SHARED(Lz4Shared, s);
    const Compressed block = p.blocks[blockIdx.x];
    const u64 literal = block.in_place != 0 ? lz4_only_literal(block) : 0;
    if (threadIdx.x == 0) p.places[block.page] = literal != 0 ? literal : block.target;
    if (literal != 0 || block.target_size == 0) return;
    const u32 skew = u32(block.source & 15);
    if (threadIdx.x == 0) {
        s.size = block.target_size;
        s.end = skew + block.source_size;
    }
    __syncthreads();  // they are there
    const u8* const text = global_at<const u8>(block.source - skew);
    const u32 damage = lz4_page(s, text, skew, global_at<u8>(block.target));
    copies_done();  // none comes when another block has the memory
    if (threadIdx.x == 0 && damage != 0) report_damage(p.faults, block.page, damage);
}

}  // namespace wf

#define WF_LZ4_ENTRIES                                                                  \
    WF_KERNEL_BOUNDS(wf::LZ4_THREADS, wf::LZ4_BLOCKS, lz4_decode, wf::Lz4Decode) {      \
        wf::lz4_decode_body(p);                                                         \
    }
