// parquet_hybrid.cuh: Parquet's hybrid of runs and packed bits, in which definition levels, codes
// of dictionaries and booleans are written.
//
//   header (7 bits a byte)   even: header / 2 times the value that follows, in whole bytes
//                            odd:  header / 2 groups of 8 packed values, the lowest bits first
//
//   5 times 4, then 1 2 3 4 5 6 7 0, of 3 bits      0a 04 | 03 d1 58 1f
//
//   walk     a warp a page: from header to header, noting the run that each tile of values begins
//            in. Writers cut packed bits into many runs of one size: so the headers after one are
//            looked at as if they were equal, 32 at once, and taken as far as they are.
//   tiles    a block a tile: one warp lists the tile's runs, all threads take values. A value finds
//            its run by its rank among the first values of runs, which are bits of a map: runs of
//            one value cost what long ones do.
//
// Walking reads the headers; tiles read a page once and write what a value becomes.

#pragma once
#include "parquet_page.cuh"

namespace wf {

// Runs that a block lists at once; values of a tile that a thread has in flight.
constexpr u32 HYBRID_RUNS = 512;
constexpr u32 HYBRID_AHEAD = 4;
// A run's word: a value where this bit is set, else where the packed bits begin. Values that need
// the bit are no codes, because no dictionary has so many entries.
constexpr u32 HYBRID_REPEATED = 0x80000000u;

struct hybrid_run {
    u32 header;  // its first byte
    u32 first;   // its first value
    u32 values;
    u32 word;
};

// Walks over headers; the whole warp has the same walk.
struct hybrid_walk {
    const u8* bytes;
    u32 size, width, count;  // of all values
    u32 at, row;             // the next header and its first value
    u32 stride, header;      // of packed bits like those before: bytes from header to header, or 0

    WF_DEVICE hybrid_walk(const u8* bytes, u32 size, u32 width, u32 count, u32 at, u32 row)
        : bytes(bytes), size(size), width(width), count(count), at(at), row(row), stride(0), header(0) {}

    // The next runs, at least one and at most 32, one for each of the first lanes; 0 where the
    // bytes are damaged. Called while `row` is less than `count`.
    WF_DEVICE u32 step(hybrid_run& run) {
        if (stride != 0) {
            const u64 mine = (u64)at + (u64)lane() * stride;
            const bool same = mine + stride <= size && bytes[mine] == header;
            const u32 values = (header >> 1) * 8;
            const u32 others = ~__ballot_sync(FULL_WARP, same);
            const u32 runs = minimum(others != 0 ? (u32)trailing_zeros(others) : WARP, divide_up(count - row, values));
            if (runs > 0) {
                run.header = (u32)mine;
                run.first = row + lane() * values;
                run.values = run.first < count ? minimum(values, count - run.first) : 0;
                run.word = (u32)mine + 1;
                at += runs * stride;
                row = minimum((u64)row + runs * values, (u64)count);
                return runs;
            }
            stride = 0;
        }
        run.header = at;
        run.first = row;
        u32 next;
        if (!parquet_varint(bytes, size, at, next) || next == 0) return 0;
        u64 values;
        if (next & 1) {
            const u64 groups = next >> 1, packed = groups * width;
            run.word = at;
            values = groups * 8;
            if (packed <= size - at) {
                if (next < 128 && groups > 0) stride = 1 + (u32)packed, header = next;
                at += (u32)packed;
            } else {
                // Some writers leave out the end of the last group.
                values = ((u64)(size - at) * 8) / width;
                at = size;
            }
        } else {
            const u32 length = (width + 7) / 8;
            if (length > size - at) return 0;
            u32 value = 0;
            for (u32 i = 0; i < length; i++) value |= (u32)bytes[at + i] << (8 * i);
            at += length;
            values = next >> 1;
            run.word = value | HYBRID_REPEATED;
            // No code, whatever it is: so is this.
            if (value >= HYBRID_REPEATED) run.word = U32_MAX;
        }
        run.values = (u32)minimum(values, (u64)(count - row));
        row += run.values;
        return 1;
    }
};

// Walks over all runs and notes where the tiles of a page begin. False where the bytes are damaged.
WF_DEVICE bool hybrid_starts(hybrid_walk& walk, u64* starts) {
    while (walk.row < walk.count) {
        hybrid_run run;
        const u32 runs = walk.step(run);
        if (runs == 0) return false;
        if (lane() < runs) {
            const u32 end = run.first + run.values;
            for (u32 tile = divide_up(run.first, PARQUET_TILE); (u64)tile * PARQUET_TILE < end; tile++)
                starts[tile] = (u64)run.first << 32 | run.header;
        }
    }
    return true;
}

struct hybrid_shared {
    u32 first[HYBRID_RUNS];  // from the tile's first value on; of the first run, it may lie before
    u32 word[HYBRID_RUNS];
    u32 map[PARQUET_TILE / 32];   // first values of runs
    u32 rank[PARQUET_TILE / 32];  // runs that begin before a word of the map
    u32 runs, end, damaged;
};

// The value at a bit of packed ones.
WF_DEVICE u32 hybrid_unpack(const u8* bytes, u32 begin, u64 bit, u32 mask) {
    const u64 at = (u64)bytes + begin + (bit >> 3);
    const u32* words = (const u32*)(at & ~3ull);
    return __funnelshift_r(words[0], words[1], ((u32)at & 3) * 8 + ((u32)bit & 7)) & mask;
}

// Hands the values from `begin` on to `end` of a page to the sink: `HYBRID_AHEAD` a thread at once,
// or all at once where they are the same. `walk` begins at the run in which they begin. False where
// the bytes are damaged.
template <class Sink>
WF_DEVICE bool hybrid_tile(hybrid_shared& s, hybrid_walk walk, u32 begin, u32 end, Sink& sink) {
    const u32 mask = walk.width >= 32 ? U32_MAX : (1u << walk.width) - 1;
    for (u32 done = begin; done < end;) {
        static_assert(PARQUET_TILE / 32 == PARQUET_THREADS, "a thread a word of the map");
        s.map[threadIdx.x] = 0;
        __syncthreads();  // the map is empty before bits are set in it
        if (warp() == 0) {
            u32 runs = 0;
            bool damaged = false;
            while (walk.row < end && runs + WARP <= HYBRID_RUNS) {
                hybrid_run run;
                const u32 more = walk.step(run);
                if (more == 0) {
                    damaged = true;
                    break;
                }
                // Runs that end before the tile are there only if `starts` is wrong; empty ones
                // have no value.
                const u32 from = maximum(run.first, done);
                const bool wanted = lane() < more && run.first < end && run.first + run.values > from;
                const u32 kept = __ballot_sync(FULL_WARP, wanted);
                if (wanted) {
                    const u32 slot = runs + __popc(kept & lanes_below());
                    s.first[slot] = run.first - begin;
                    s.word[slot] = run.word;
                    atomicOr(&s.map[(from - begin) >> 5], 1u << ((from - begin) & 31));
                }
                runs += __popc(kept);
            }
            __syncwarp();  // all bits are set
            u32 before = 0, counts[PARQUET_TILE / 32 / WARP];
#pragma unroll
            for (u32 i = 0; i < PARQUET_TILE / 32 / WARP; i++) {
                counts[i] = before;
                before += __popc(s.map[lane() * (PARQUET_TILE / 32 / WARP) + i]);
            }
            const u32 below = warp_sum_up_to(before) - before;
#pragma unroll
            for (u32 i = 0; i < PARQUET_TILE / 32 / WARP; i++)
                s.rank[lane() * (PARQUET_TILE / 32 / WARP) + i] = below + counts[i];
            if (lane() == 0) s.runs = runs, s.end = maximum(minimum(walk.row, end), done), s.damaged = damaged;
        }
        __syncthreads();  // the list is there
        const u32 stop = s.end, runs = s.runs;
        if (s.damaged != 0) return false;
        if (runs == 1 && (s.word[0] & HYBRID_REPEATED) != 0) {
            sink.same(done, stop, s.word[0] == U32_MAX ? U32_MAX : s.word[0] & ~HYBRID_REPEATED);
        } else if (runs > 0) {
            for (u32 base = done & ~31u; base < stop; base += PARQUET_THREADS * HYBRID_AHEAD) {
                u32 codes[HYBRID_AHEAD];
#pragma unroll
                for (u32 i = 0; i < HYBRID_AHEAD; i++) {
                    const u32 at = base + i * PARQUET_THREADS + threadIdx.x;
                    codes[i] = 0;
                    if (at >= done && at < stop) {
                        const u32 k = at - begin;
                        const u32 run = s.rank[k >> 5] + __popc(s.map[k >> 5] & ((2u << (k & 31)) - 1)) - 1;
                        const u32 word = s.word[run];
                        codes[i] = (word & HYBRID_REPEATED) == 0
                                       ? hybrid_unpack(walk.bytes, word, (u64)(k - s.first[run]) * walk.width, mask)
                                   : word == U32_MAX ? U32_MAX
                                                     : word & ~HYBRID_REPEATED;
                    }
                }
                sink.some(base, done, stop, codes);
            }
        }
        done = stop;
        __syncthreads();  // the list is read before the next one is made
    }
    return true;
}

// ------------------------------------------------------------------------------------------ levels

// A warp a page: finds the levels and the values behind them.
WF_DEVICE void parquet_levels_walk_body(const ParquetCall& p) {
    const u64 job = ((u64)blockIdx.x * PARQUET_THREADS + threadIdx.x) / WARP;
    if (job >= p.count) return;
    const u32 index = (u32)p.list[job];
    const parquet_page page = p.pages[index];
    parquet_state state{0, page.rows, 0, 0};
    const u8* levels = (const u8*)page.levels;
    u32 size = page.levels_size;
    bool good = true;
    if ((page.flags & PARQUET_LEVELS_APART) == 0) {
        levels = (const u8*)p.places[page.number] + 4;
        good = page.size >= 4;
        if (good) size = load_u32_anywhere(levels - 4);
        good = good && size <= page.size - 4;
        if (good) state.begin = 4 + size;
    }
    hybrid_walk walk(levels, size, 1, page.rows, 0, 0);
    good = good && hybrid_starts(walk, p.starts + page.first_tile);
    if (lane() != 0) return;
    if (!good) parquet_fault(p, page, PARQUET_BAD_LEVELS);
    p.states[index] = good ? state : parquet_state{0, 0, 0, 0};
}

// Sets bytes, by the whole block.
WF_DEVICE void fill_bytes(u8* at, u32 count, u32 byte) {
    const u32 head = minimum((u32)(-(u64)at & 15), count), words = (count - head) / 16;
    const u32 word = byte * 0x01010101u;
    if (threadIdx.x < head) at[threadIdx.x] = (u8)byte;
    for (u32 i = threadIdx.x; i < words; i += blockDim.x) ((uint4*)(at + head))[i] = make_uint4(word, word, word, word);
    const u32 tail = head + words * 16;
    if (threadIdx.x < count - tail) at[tail + threadIdx.x] = (u8)byte;
}

// Levels to validity.
struct levels_sink {
    u8* validity;  // of the page's first row, or null
    u32 valid;     // rows that are, as this warp has seen; of `same` the first warp counts
    bool bad;

    WF_DEVICE void same(u32 begin, u32 end, u32 level) {
        bad |= level > 1;
        if (warp() == 0 && level == 1) valid += end - begin;
        if (validity != nullptr) fill_bytes(validity + begin, end - begin, level & 1);
    }
    WF_DEVICE void some(u32 base, u32 begin, u32 end, const u32 (&levels)[HYBRID_AHEAD]) {
#pragma unroll
        for (u32 i = 0; i < HYBRID_AHEAD; i++) {
            const u32 at = base + i * PARQUET_THREADS + threadIdx.x;
            const bool inside = at >= begin && at < end;
            bad |= inside && levels[i] > 1;
            valid += __popc(__ballot_sync(FULL_WARP, inside && levels[i] == 1));
            if (inside && validity != nullptr) validity[at] = levels[i] == 1;
        }
    }
};

// A block a tile.
WF_DEVICE void parquet_levels_body(const ParquetCall& p) {
    WF_SHARED(hybrid_shared, shared);
    WF_SHARED_ARRAY(u32, counts, PARQUET_THREADS / WARP);
    const u32 index = (u32)p.list[blockIdx.x], tile = (u32)(p.list[blockIdx.x] >> 32);
    const parquet_page page = p.pages[index];
    const parquet_state state = p.states[index];
    u32* const count = p.ranks + page.first_tile + tile;
    if (state.valid == 0) {
        if (threadIdx.x == 0) *count = 0;
        return;
    }
    const u8* levels = (const u8*)page.levels;
    u32 size = page.levels_size;
    if ((page.flags & PARQUET_LEVELS_APART) == 0) {
        levels = (const u8*)p.places[page.number] + 4;
        size = state.begin - 4;
    }
    const u64 start = p.starts[page.first_tile + tile];
    const u32 begin = tile * PARQUET_TILE, end = minimum(begin + PARQUET_TILE, page.rows);
    levels_sink sink{(u8*)page.validity, 0, false};
    const hybrid_walk walk(levels, size, 1, page.rows, (u32)start, (u32)(start >> 32));
    const bool good = hybrid_tile(shared, walk, begin, end, sink);
    if (lane() == 0) counts[warp()] = sink.valid;
    const bool bad = __syncthreads_or(!good || sink.bad);  // the warps' counts are there
    if (threadIdx.x != 0) return;
    if (bad) parquet_fault(p, page, PARQUET_BAD_LEVELS);
    u32 valid = 0;
    for (u32 i = 0; i < PARQUET_THREADS / WARP; i++) valid += counts[i];
    *count = valid;
}

// A warp a page: valid rows before each tile, and of the page.
WF_DEVICE void parquet_ranks_body(const ParquetCall& p) {
    const u64 job = ((u64)blockIdx.x * PARQUET_THREADS + threadIdx.x) / WARP;
    if (job >= p.count) return;
    const u32 index = (u32)p.list[job];
    const parquet_page page = p.pages[index];
    u32* const ranks = p.ranks + page.first_tile;
    const u32 tiles = divide_up(page.rows, PARQUET_TILE);
    u32 valid = 0;
    for (u32 base = 0; base < tiles; base += WARP) {
        const u32 tile = base + lane();
        const u32 count = tile < tiles ? ranks[tile] : 0, up_to = warp_sum_up_to(count);
        if (tile < tiles) ranks[tile] = valid + up_to - count;
        valid += __shfl_sync(FULL_WARP, up_to, WARP - 1);
    }
    if (lane() != 0) return;
    p.states[index].valid = valid;
    if (valid < page.rows) atomicAdd(p.nulls + p.chunks[page.chunk].number, (u64)(page.rows - valid));
}

// ------------------------------------------------------------------------------ codes and booleans

// The hybrid that a page's values are, and the values' bits; 33 where it is damaged.
struct hybrid_content {
    parquet_bytes bytes;
    u32 width;
};
WF_DEVICE hybrid_content hybrid_of(const ParquetCall& p, const parquet_page& page, const parquet_state& state) {
    hybrid_content content{parquet_values(p, page, state), 33};
    parquet_bytes& bytes = content.bytes;
    if (page.encoding == PARQUET_DICTIONARY) {
        if (bytes.size == 0) {
            // Behind the levels of nulls only some writers put nothing.
            if (state.valid == 0) content.width = 0;
            return content;
        }
        content.width = bytes.at[0];
        bytes.at += 1, bytes.size -= 1;
    } else {
        if (bytes.size < 4) return content;
        const u32 size = load_u32_anywhere(bytes.at);
        bytes.at += 4, bytes.size -= 4;
        if (size > bytes.size) return content;
        bytes.size = size;
        content.width = 1;
    }
    return content;
}

// A warp a page, of nulls only, too: its bytes may be damaged where no value is.
WF_DEVICE void parquet_codes_walk_body(const ParquetCall& p) {
    const u64 job = ((u64)blockIdx.x * PARQUET_THREADS + threadIdx.x) / WARP;
    if (job >= p.count) return;
    const u32 index = (u32)p.list[job];
    const parquet_page page = p.pages[index];
    const parquet_state state = p.states[index];
    const hybrid_content content = hybrid_of(p, page, state);
    u32 code = 0;
    if (content.width > 32) {
        code = PARQUET_BAD_RUNS;
    } else if (state.valid > 0 && page.encoding == PARQUET_DICTIONARY && p.chunks[page.chunk].entries == 0) {
        code = PARQUET_BAD_CODE;
    } else if (content.width > 0 || content.bytes.size > 0) {
        // Of codes of no bits there are runs, too; some writers leave them out.
        hybrid_walk walk(content.bytes.at, content.bytes.size, content.width, state.valid, 0, 0);
        const bool good = hybrid_starts(walk, p.starts + page.first_tile);
        // Behind them some writers leave zeros.
        const bool ends = walk.at >= walk.size || walk.bytes[walk.at] == 0;
        if (!good || !ends) code = PARQUET_BAD_RUNS;
    }
    __syncwarp();  // all lanes have read the state
    if (code == 0 || lane() != 0) return;
    parquet_fault(p, page, code);
    p.states[index].valid = 0;
}

// Codes to what they stand for.
template <class T> struct codes_sink {
    T* out;  // of the page's first value
    const T* dictionary;
    u32 entries;
    bool bad;

    WF_DEVICE T of(u32 code) {
        bad |= code >= entries;
        return load_const(dictionary + (code < entries ? code : 0));
    }
    WF_DEVICE void same(u32 begin, u32 end, u32 code) {
        const T value = of(code);
        for (u32 at = begin + threadIdx.x; at < end; at += PARQUET_THREADS) out[at] = value;
    }
    WF_DEVICE void some(u32 base, u32 begin, u32 end, const u32 (&codes)[HYBRID_AHEAD]) {
        T values[HYBRID_AHEAD];
#pragma unroll
        for (u32 i = 0; i < HYBRID_AHEAD; i++) values[i] = of(codes[i]);
#pragma unroll
        for (u32 i = 0; i < HYBRID_AHEAD; i++) {
            const u32 at = base + i * PARQUET_THREADS + threadIdx.x;
            if (at >= begin && at < end) out[at] = values[i];
        }
    }
};
// Codes as they are, of 4 bytes; booleans of 1, whose codes are less than 2.
template <class T> struct plain_codes_sink {
    T* out;
    u32 entries;
    u32 plus;  // what is added to each
    bool bad;

    WF_DEVICE void same(u32 begin, u32 end, u32 code) {
        bad |= code >= entries;
        for (u32 at = begin + threadIdx.x; at < end; at += PARQUET_THREADS) out[at] = (T)(plus + code);
    }
    WF_DEVICE void some(u32 base, u32 begin, u32 end, const u32 (&codes)[HYBRID_AHEAD]) {
#pragma unroll
        for (u32 i = 0; i < HYBRID_AHEAD; i++) {
            const u32 at = base + i * PARQUET_THREADS + threadIdx.x;
            bad |= codes[i] >= entries;
            if (at >= begin && at < end) out[at] = (T)(plus + codes[i]);
        }
    }
};

// A block a tile. The codes of one width; `width` 0 says that all of a page's codes are 0.
template <class Sink>
WF_DEVICE u32 parquet_codes_of(hybrid_shared& shared, const ParquetCall& p, const parquet_page& page,
                               const parquet_state& state, u32 tile, Sink sink) {
    const hybrid_content content = hybrid_of(p, page, state);
    const u32 begin = tile * PARQUET_TILE, end = minimum(begin + PARQUET_TILE, state.valid);
    if (content.width == 0) {
        sink.same(begin, end, 0);
        return 0;
    }
    const u64 start = p.starts[page.first_tile + tile];
    const hybrid_walk walk(content.bytes.at, content.bytes.size, content.width, state.valid, (u32)start,
                           (u32)(start >> 32));
    if (!hybrid_tile(shared, walk, begin, end, sink)) return PARQUET_BAD_RUNS;
    return sink.bad ? PARQUET_BAD_CODE : 0;
}
template <class T>
WF_DEVICE u32 parquet_codes_to(hybrid_shared& shared, const ParquetCall& p, const parquet_page& page,
                               const parquet_state& state, const parquet_chunk& chunk, u32 tile) {
    const codes_sink<T> sink{(T*)parquet_target(page, state), (const T*)chunk.dictionary, chunk.entries, false};
    return parquet_codes_of(shared, p, page, state, tile, sink);
}
WF_DEVICE void parquet_codes_body(const ParquetCall& p) {
    WF_SHARED(hybrid_shared, shared);
    const u32 index = (u32)p.list[blockIdx.x], tile = (u32)(p.list[blockIdx.x] >> 32);
    const parquet_page page = p.pages[index];
    const parquet_state state = p.states[index];
    if (tile * PARQUET_TILE >= state.valid) return;
    const parquet_chunk chunk = p.chunks[page.chunk];
    u32 code;
    if (chunk.output == PARQUET_CODE || chunk.output == PARQUET_BOOL) {
        const u64 target = parquet_target(page, state);
        if (chunk.output == PARQUET_CODE)
            code = parquet_codes_of(shared, p, page, state, tile,
                                    plain_codes_sink<u32>{(u32*)target, chunk.entries, (u32)chunk.bound_low, false});
        else
            code = parquet_codes_of(shared, p, page, state, tile, plain_codes_sink<u8>{(u8*)target, 2, 0, false});
    } else {
        code = chunk.width == 8    ? parquet_codes_to<u64>(shared, p, page, state, chunk, tile)
               : chunk.width == 4  ? parquet_codes_to<u32>(shared, p, page, state, chunk, tile)
               : chunk.width == 16 ? parquet_codes_to<u128>(shared, p, page, state, chunk, tile)
               : chunk.width == 2  ? parquet_codes_to<u16>(shared, p, page, state, chunk, tile)
                                   : parquet_codes_to<u8>(shared, p, page, state, chunk, tile);
    }
    if (code != 0) parquet_fault(p, page, code);
}

}  // namespace wf

#define WF_PARQUET_HYBRID_ENTRIES                                                                                   \
    WF_KERNEL_BOUNDS(wf::PARQUET_THREADS, 1, parquet_levels_walk, wf::ParquetCall) { wf::parquet_levels_walk_body(p); } \
    WF_KERNEL_BOUNDS(wf::PARQUET_THREADS, 8, parquet_levels, wf::ParquetCall) { wf::parquet_levels_body(p); }       \
    WF_KERNEL_BOUNDS(wf::PARQUET_THREADS, 1, parquet_ranks, wf::ParquetCall) { wf::parquet_ranks_body(p); }         \
    WF_KERNEL_BOUNDS(wf::PARQUET_THREADS, 1, parquet_codes_walk, wf::ParquetCall) { wf::parquet_codes_walk_body(p); } \
    WF_KERNEL_BOUNDS(wf::PARQUET_THREADS, 8, parquet_codes, wf::ParquetCall) { wf::parquet_codes_body(p); }
