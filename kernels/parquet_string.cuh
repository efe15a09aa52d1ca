// parquet_string.cuh: strings in PLAIN to views.
//
//   length (4 bytes) | bytes | length | bytes | …
//
//   strings  a block a page, by windows of 32 KiB in shared memory. Where a string begins is known
//            only from the one before it, so each thread guesses in its 128 bytes: the first place
//            from which a few lengths lead to places inside of the window. It follows the strings
//            from there to its end. Then each compares its guess with where the one before it
//            arrived, and those that are wrong follow again, until none is. The first one is right
//            from the beginning, so every round makes one more right; bytes of text are no
//            plausible lengths, so one round is the rule.
//   utf8     a block a page, for those in which some byte of a string is not ASCII. The pass before
//            counts such bytes, less those of lengths.
//
// Reads a page once (twice where it is not ASCII), writes 16 bytes a string.

#pragma once
#include "parquet_page.cuh"

namespace wf {

constexpr u32 STRING_THREADS = 256;
constexpr u32 STRING_SEGMENT = 128;  // bytes in which a thread looks for beginnings
constexpr u32 STRING_WINDOW = STRING_THREADS * STRING_SEGMENT;
// Beyond the window: a length that begins in it, and 12 bytes of characters.
constexpr u32 STRING_BEYOND = 32;
constexpr u32 STRING_HOPS = 4;  // lengths that make a guess good
constexpr u32 STRING_NONE = U32_MAX;
constexpr u32 STRING_DAMAGED = U32_MAX - 1;

struct string_shared {
    // 16 idle bytes after each segment: threads that are at the same byte of theirs read different
    // banks.
    uint4 text[(STRING_WINDOW + STRING_BEYOND) / 16 + STRING_WINDOW / STRING_SEGMENT + 1];
    u32 leave[STRING_THREADS];
    u32 has[STRING_THREADS / WARP];  // threads in whose segments strings begin
    u32 sums[STRING_THREADS / WARP];
    u32 first;    // of the threads that are wrong
    u32 damaged;  // first thread that met damage
    u32 high;
};

// Bytes of a word that are not ASCII.
WF_DEVICE u32 high_bytes(u32 word) { return __popc(word & 0x80808080u); }

// The window: places count from its beginning.
struct string_window {
    const u32* text;
    u32 limit;  // the page's end

    WF_DEVICE u32 word(u32 i) const { return text[i + i / (STRING_SEGMENT / 4) * 4]; }
    WF_DEVICE u32 at(u32 place) const {
        const u32 i = place >> 2;
        return __funnelshift_r(word(i), word(i + 1), (place & 3) * 8);
    }
    // Whether a string of such a length may begin there.
    WF_DEVICE bool fits(u32 place, u32 length) const {
        return place <= limit && limit - place >= 4 && length <= limit - place - 4;
    }

    // The best guess of where a string begins from `begin` on to `end`, a segment. Lanes look for
    // places with a plausible length, and then all of them follow where theirs leads. Longer than
    // `longest` is taken to be none: one byte before a string, the lowest byte of its length is
    // that of a great one, and now and then leads to where another string begins.
    WF_DEVICE u32 guess(u32 begin, u32 end, u32 longest) const {
        longest = minimum(longest, limit - begin);
        u32 best = STRING_NONE, proven = 0, low = word(begin / 4), next = begin, found = 0;
        for (;;) {
            // A bit for each of the 4 places before `next`.
            while (found == 0 && next < end) {
                const u32 high = word(next / 4 + 1);
#pragma unroll
                for (u32 i = 0; i < 4; i++) found |= (u32)(__funnelshift_r(low, high, 8 * i) <= longest) << i;
                low = high, next += 4;
            }
            if (found == 0) return best;
            const u32 place = next - 4 + trailing_zeros(found);
            found &= found - 1;
            u32 length = at(place), to = place, hops = 0;
            while (fits(to, length)) {
                to += 4 + length, hops++;
                if (hops > STRING_HOPS || to >= STRING_WINDOW || to == limit) break;
                length = at(to);
            }
            if (place >= end || hops == 0) continue;
            if (hops > STRING_HOPS || to == limit) return place;
            // It leads out of the window, which proves little.
            if (to >= STRING_WINDOW && hops >= proven) best = place, proven = hops;
        }
    }
};

// A thread's strings: those that begin in its segment.
struct string_part {
    u32 enter;  // where the first begins
    u32 count;
    u32 leave;  // behind the last

    WF_DEVICE void follow(const string_window& window, u32 from, u32 end) {
        enter = from, count = 0;
        if (from == STRING_NONE) return;
        while (from < end) {
            const u32 length = window.at(from);
            if (!window.fits(from, length)) {
                from = STRING_DAMAGED;
                break;
            }
            from += 4 + length, count++;
        }
        leave = from;
    }
};

WF_DEVICE void parquet_strings_body(const ParquetCall& p) {
    WF_SHARED(string_shared, s);
    const u32 index = (u32)p.list[blockIdx.x];
    const parquet_page page = p.pages[index];
    const parquet_state state = p.states[index];
    const parquet_bytes bytes = parquet_values(p, page, state);
    view* const out = (view*)(page.views != 0 ? page.views : parquet_target(page, state));
    const bool utf8 = (page.flags & PARQUET_UTF8) != 0;
    const u32 t = threadIdx.x;
    // Few strings are so much longer than the others; where one begins, the one before it says.
    const u32 longest = state.valid == 0 ? 0 : 128 + (u32)minimum((u64)(bytes.size / state.valid) * 8, (u64)I32_MAX);
    u32 position = 0, row = 0, high = 0;
    bool damaged = false;
    while (row < state.valid && !damaged) {
        if (position >= bytes.size) {
            damaged = true;
            break;
        }
        const u64 base = ((u64)bytes.at + position) & ~15ull;
        const u32 shift = (u32)((u64)bytes.at + position - base);
        const string_window window{(const u32*)s.text, bytes.size - position + shift};
        for (u32 i = t; i < (STRING_WINDOW + STRING_BEYOND) / 16; i += STRING_THREADS)
            if (i * 16 < window.limit) copy_later(&s.text[i + i / (STRING_SEGMENT / 16)], (const u8*)base + i * 16);
        copies_done();
        __syncthreads();  // the window is there

        const u32 begin = t * STRING_SEGMENT, end = minimum(begin + STRING_SEGMENT, window.limit);
        string_part part{STRING_NONE, 0, 0};
        if (begin < end) part.follow(window, t == 0 ? shift : window.guess(begin, end, longest), end);
        u32 last = 0;  // thread in whose segment the last string begins
        for (;;) {
            s.leave[t] = part.leave;
            const u32 has = __ballot_sync(FULL_WARP, part.enter != STRING_NONE);
            if (lane() == 0) s.has[warp()] = has;
            if (t == 0) s.first = STRING_THREADS, s.damaged = STRING_THREADS;
            __syncthreads();  // what all found is there
            u32 before = 0;
            for (u32 w = 0; w < STRING_THREADS / WARP; w++) {
                const u32 others = s.has[w];
                const u32 below = w < warp() ? others : w == warp() ? others & lanes_below() : 0;
                if (below != 0) before = w * WARP + 31 - leading_zeros(below);
                if (others != 0) last = w * WARP + 31 - leading_zeros(others);
            }
            const u32 arrived = s.leave[before];
            u32 enter = part.enter;
            // Where it arrived before this segment, a thread between learns of it first.
            if (t > 0 && arrived != STRING_DAMAGED && arrived >= begin) enter = arrived < end ? arrived : STRING_NONE;
            const bool wrong = enter != part.enter;
            if (wrong) atomicMin(&s.first, t);
            if (part.enter != STRING_NONE && part.leave == STRING_DAMAGED) atomicMin(&s.damaged, t);
            if (!__syncthreads_or(wrong)) break;
            // One that arrives behind a segment may be wrong itself, except for the first.
            if (wrong && (enter != STRING_NONE || s.first == t)) part.follow(window, enter, end);
            __syncthreads();  // `s.damaged` and `s.first` are read before they are set again
        }

        const u32 wrecked = s.damaged;
        const u32 count = part.enter != STRING_NONE && t <= wrecked ? part.count : 0;
        const u32 up_to = warp_sum_up_to(count);
        if (lane() == 31) s.sums[warp()] = up_to;
        __syncthreads();  // sums are there
        u32 rank = up_to - count, total = 0;
        for (u32 w = 0; w < STRING_THREADS / WARP; w++) {
            if (w < warp()) rank += s.sums[w];
            total += s.sums[w];
        }
        const u32 wanted = state.valid - row;
        damaged = total < wanted && wrecked < STRING_THREADS;
        const u32 next = s.leave[last];

        u32 from = part.enter;
        for (u32 i = 0; i < count && rank + i < wanted; i++) {
            const u32 length = window.at(from);
            u64 rest = 0;
            if (length > 4 && length <= INLINE_BYTES)
                rest = (u64)window.at(from + 12) << 32 | window.at(from + 8);
            out[row + rank + i] = view_in_memory(base + from + 4, length, window.at(from + 4), rest);
            if (utf8) high -= high_bytes(length);
            from += 4 + length;
        }
        if (utf8 && !damaged) {
            const u32 stop = minimum(minimum(end, window.limit), wrecked < STRING_THREADS ? window.limit : next);
            for (u32 i = begin; i < stop; i += 4) {
                u32 word = window.word(i / 4);
                if (i < shift) word = i + 4 <= shift ? 0 : word & (U32_MAX << (8 * (shift - i)));
                if (stop - i < 4) word &= (1u << (8 * (stop - i))) - 1;
                high += high_bytes(word);
            }
            // The rest of a string that goes beyond the window.
            if (wrecked == STRING_THREADS)
                for (u32 i = STRING_WINDOW + t * 4; i < next; i += STRING_THREADS * 4) {
                    u32 word = load_const((const u32*)(base + i));
                    if (next - i < 4) word &= (1u << (8 * (next - i))) - 1;
                    high += high_bytes(word);
                }
        }
        row += minimum(total, wanted);
        position += next - shift;
        __syncthreads();  // the window is read before the next one is loaded
    }
    if (damaged) {
        __syncthreads();  // all have read the state
        if (t == 0) {
            parquet_fault(p, page, PARQUET_BAD_LENGTH);
            p.states[index].valid = 0;
        }
        return;
    }
    if (!utf8) return;
    if (t == 0) s.high = 0;
    __syncthreads();  // the sum is empty
    const u32 more = __reduce_add_sync(FULL_WARP, high);
    if (lane() == 0) atomicAdd(&s.high, more);
    __syncthreads();  // the sum is there
    if (t == 0) p.states[index].flag = s.high != 0;
}

// ------------------------------------------------------------------------------------------- UTF-8

WF_DEVICE bool ascii_at(const long_bytes& bytes, u32 i) { return high_bytes(load_u32_anywhere(bytes.at + i)) == 0; }
WF_DEVICE bool ascii_at(const short_bytes&, u32) { return false; }

// Whether the bytes from `begin` on to `end` may stand where they do in UTF-8. Each is looked at
// with the three before it, so a string's parts can be looked at apart.
template <class Bytes> WF_DEVICE bool utf8_part(const Bytes& bytes, u32 begin, u32 end, u32 length) {
    u32 third = begin > 2 ? bytes[begin - 3] : 0, second = begin > 1 ? bytes[begin - 2] : 0;
    u32 first = begin > 0 ? bytes[begin - 1] : 0;
    bool good = true;
    for (u32 i = begin; i < end;) {
        const bool owed = first >= 0xc0 || second >= 0xe0 || third >= 0xf0;
        if (!owed && i + 4 <= end && ascii_at(bytes, i)) {
            first = second = third = 0;
            i += 4;
            continue;
        }
        const u32 byte = bytes[i++];
        good &= ((byte & 0xc0) == 0x80) == owed && byte != 0xc0 && byte != 0xc1 && byte < 0xf5;
        // Longer than need be, surrogates, beyond the last character.
        good &= !(first == 0xe0 && byte < 0xa0) && !(first == 0xed && byte > 0x9f);
        good &= !(first == 0xf0 && byte < 0x90) && !(first == 0xf4 && byte > 0x8f);
        third = second, second = first, first = byte;
    }
    return good && !(end == length && (first >= 0xc0 || second >= 0xe0 || third >= 0xf0));
}

// A thread a string, a warp a long one.
constexpr u32 UTF8_LONG = 256, UTF8_PART = 64;

WF_DEVICE void parquet_utf8_body(const ParquetCall& p) {
    const u32 index = (u32)p.list[blockIdx.x];
    const parquet_page page = p.pages[index];
    const parquet_state state = p.states[index];
    if (state.flag == 0) return;
    const view* const views = (const view*)parquet_target(page, state);
    bool good = true;
    for (u32 base = warp() * WARP; base < state.valid; base += STRING_THREADS) {
        view mine{0, 0, 0};
        if (base + lane() < state.valid) mine = views[base + lane()];
        if (mine.length <= INLINE_BYTES)
            good &= utf8_part(short_of(mine), 0, mine.length, mine.length);
        else if (mine.length < UTF8_LONG)
            good &= utf8_part(long_of(mine), 0, mine.length, mine.length);
        for (u32 longer = __ballot_sync(FULL_WARP, mine.length >= UTF8_LONG); longer != 0; longer &= longer - 1) {
            const view all = shuffle(FULL_WARP, mine, trailing_zeros(longer));
            for (u32 begin = lane() * UTF8_PART; begin < all.length; begin += WARP * UTF8_PART)
                good &= utf8_part(long_of(all), begin, minimum(begin + UTF8_PART, all.length), all.length);
        }
    }
    if (!good) parquet_fault(p, page, PARQUET_NOT_UTF8);
}

}  // namespace wf

#define WF_PARQUET_STRING_ENTRIES                                                                             \
    WF_KERNEL_BOUNDS(wf::STRING_THREADS, 4, parquet_strings, wf::ParquetCall) { wf::parquet_strings_body(p); } \
    WF_KERNEL_BOUNDS(wf::STRING_THREADS, 1, parquet_utf8, wf::ParquetCall) { wf::parquet_utf8_body(p); }
