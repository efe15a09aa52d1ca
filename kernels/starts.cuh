// starts.cuh: where tokens begin in a compressed text.
//
// A token alone says where the next one begins. To find many at the same time, every thread takes a
// chunk of 32 bytes of a window of the text:
//
//   note    for each byte, where tokens leave the chunk if one begins there, from the last byte to
//           the first. Then a path passes a chunk in one step.
//   guess   that a token begins with the chunk, and follow that path until it falls in with the
//           guess of a later chunk, which is its link. Wrong paths soon fall in with the right one.
//   chain   The one chunk where a token is known to begin takes that for its guess. The guesses
//           linked from there, and what lies between them, are the right path.
//   enter   Those guesses' threads follow their paths again, and tell the chunks that they pass
//           where tokens enter them.
//
// All of it is in shared memory.
#pragma once
#include "prelude.cuh"

namespace wf {

constexpr u32 CHUNK = 32;
// A chunk's exits, that of its guess, and room so that threads reach their own in different banks.
constexpr u32 CHUNK_EXITS = CHUNK + 4;
constexpr u32 NOT_ENTERED = 255;
constexpr u32 NO_LINK = 0xffff;

// The format has
//   u32 strides(u32 tags)       of four first bytes of tokens: from them to the next tokens, a byte
//                               each, 2 … 96; 128 where that is not known from the first byte
//   u32 stride(window, u32 at)  of the token at that byte of a window: so much that it leads behind
//                               the bound where the window does not tell
template <class Format>
struct Starts {
    const u8* text;  // the window, aligned to 16, and what `token` reads behind it
    u8* exits;       // CHUNK_EXITS a chunk, aligned to 4
    u8* entries;     // a byte a chunk
    u32 bound;       // where the text ends, or the window

    // Five bytes of text and more: up to 7 behind the window.
    WF_DEVICE u64 token(u32 at) const {
        const u32* const words = reinterpret_cast<const u32*>(text) + at / 4;
        return (u64(words[1]) << 32 | words[0]) >> (at % 4 * 8);
    }

    // Exits of a chunk, each a place in it: 128 and more, that of a token whose first byte does not
    // say its end; else the end of the last token. A token begins at byte `guess`, or so it is
    // guessed.
    WF_DEVICE void note(u32 chunk, u32 guess) const {
        u8* const its = exits + chunk * CHUNK_EXITS;
        const uint4* const bytes = reinterpret_cast<const uint4*>(text + chunk * CHUNK);
        const uint4 low = bytes[0], high = bytes[1];
        const u32 words[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
        for (u32 i = 0; i < 8; ++i) {
            const u32 w = 7 - i;
            const u32 nexts = Format::strides(words[w]) + (0x03020100u + w * 0x04040404u);
#pragma unroll
            for (u32 j = 0; j < 2; ++j) {
                // Of two bytes none leads to the other, so both are looked up at once.
                const u32 pair = nexts >> (16 - j * 16);
                u32 a = pair & 255, b = pair >> 8 & 255;
                if (a < CHUNK) a = its[a];
                if (b < CHUNK) b = its[b];
                *reinterpret_cast<u16*>(its + w * 4 + 2 - j * 2) = u16(b << 8 | a);
            }
        }
        const u32 rest = bound - chunk * CHUNK;
        if (rest < CHUNK) {  // what is behind the end was taken for text
            for (u32 k = rest; k-- > 0;) {
                const u32 next = (Format::strides(text[chunk * CHUNK + k]) & 255) + k;
                its[k] = next < rest ? its[next] : u8(next);
            }
        }
        its[CHUNK] = its[guess];
        entries[chunk] = u8(NOT_ENTERED);
    }

    // Where a path leaves a chunk for another one, or the text.
    WF_DEVICE u32 leave(u32 chunk, u32 exit) const {
        u32 place = chunk * CHUNK + exit % 128;
        while (exit >= 128) {
            place += Format::stride(*this, place);
            if (place / CHUNK != chunk || place >= bound) break;
            exit = exits[chunk * CHUNK_EXITS + place % CHUNK];
            place = chunk * CHUNK + exit % 128;
        }
        return place;
    }

    // Follows the path that enters a chunk at `place` until it falls in with a chunk's guess, which
    // it gives, or leaves the window.
    template <bool ENTERS>
    WF_DEVICE u32 follow(u32& place) const {
        while (place < bound) {
            const u32 chunk = place / CHUNK;
            const u8* const its = exits + chunk * CHUNK_EXITS;
            const u32 exit = its[place % CHUNK];
            if (ENTERS) entries[chunk] = u8(place % CHUNK);
            if (exit == its[CHUNK]) return chunk;
            place = leave(chunk, exit);
        }
        return NO_LINK;
    }

    // The link of a chunk's guess; `place` becomes where its path leaves the chunk.
    WF_DEVICE u32 guess(u32 chunk, u32& place) const {
        if (chunk * CHUNK >= bound) return NO_LINK;
        place = leave(chunk, exits[chunk * CHUNK_EXITS + CHUNK]);
        u32 at = place;
        return follow<false>(at);
    }
};

// Follows the links of a warp's chunks, a lane each and `first` the first of them: which are linked
// from the lane's, and it, a bit each. `link` becomes the first that is not among them.
WF_DEVICE u32 chain_links(u32 first, u32& link) {
    u32 linked = 1u << lane();
#pragma unroll
    for (u32 round = 0; round < 5; ++round) {
        const u32 from = link - first < WARP ? link - first : lane();
        const u32 its = __shfl_sync(FULL_WARP, linked, int(from));
        link = __shfl_sync(FULL_WARP, link, int(from));
        linked |= its;
    }
    return linked;
}

}  // namespace wf
