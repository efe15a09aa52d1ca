// automaton.cuh: regular expressions as tables of a deterministic automaton that the host builds
// and uploads.
//
//   table, in words   0            width: transitions of a state
//                     1 .. 257     where to begin: behind byte b, and at the text's start
//                     258 .. 321   classes of bytes
//                     322 ..       transitions: width a state, the last for the text's end
//
// A transition is the next state, and what is true of it. A match is known one byte late: the state
// behind the byte that follows matches. An automaton that goes backwards finds where a match
// begins.

#pragma once
#include "text.cuh"

namespace wf {

constexpr u32 AUTOMATON_MATCH = 0x80000000u;  // a match ended before the last byte
constexpr u32 AUTOMATON_DEAD = 0x40000000u;   // nothing that follows changes what was found
constexpr u32 AUTOMATON_QUIT = 0x20000000u;   // only the host knows
constexpr u32 AUTOMATON_STATE = 0x1fffffffu;

constexpr u32 AUTOMATON_TEXT_START = 256;

struct automaton {
    const u32* table;

    WF_DEVICE u32 start(u32 behind) const { return table[1 + behind]; }
    WF_DEVICE u32 next(u32 state, u8 byte) const {
        u32 of = ((const u8*)(table + 258))[byte];
        return table[322 + (u64)(state & AUTOMATON_STATE) * table[0] + of];
    }
    WF_DEVICE u32 at_end(u32 state) const { return next_class(state, table[0] - 1); }
    WF_DEVICE u32 next_class(u32 state, u32 of) const { return table[322 + (u64)(state & AUTOMATON_STATE) * table[0] + of]; }
};

// Whether the expression matches somewhere. `lost` is set where only the host knows.
WF_CALLED bool automaton_matches(const view& v, const u32* table, bool* lost) {
    automaton machine{table};
    u32 state = machine.start(AUTOMATON_TEXT_START);
    for (u32 i = 0; i < v.length && (state & (AUTOMATON_MATCH | AUTOMATON_DEAD | AUTOMATON_QUIT)) == 0; i++)
        state = machine.next(state, byte_at(v, i));
    if ((state & (AUTOMATON_MATCH | AUTOMATON_DEAD | AUTOMATON_QUIT)) == 0) state = machine.at_end(state);
    *lost = (state & AUTOMATON_QUIT) != 0;
    return (state & AUTOMATON_MATCH) != 0;
}

struct automaton_match {
    u32 begin, end;
    bool found, lost;
};

// The first match from byte `from` on: its end by the table `ahead`, then its beginning by the
// table `back`.
WF_CALLED automaton_match automaton_find(const view& v, u32 from, const u32* ahead, const u32* back) {
    automaton forward{ahead}, backward{back};
    automaton_match out{0, 0, false, false};
    u32 state = forward.start(from == 0 ? AUTOMATON_TEXT_START : byte_at(v, from - 1));
    for (u32 i = from; i <= v.length && (state & (AUTOMATON_DEAD | AUTOMATON_QUIT)) == 0; i++) {
        state = i < v.length ? forward.next(state, byte_at(v, i)) : forward.at_end(state);
        if ((state & AUTOMATON_MATCH) != 0) {
            out.found = true;
            out.end = i;
        }
    }
    out.lost = (state & AUTOMATON_QUIT) != 0;
    out.begin = out.end;
    if (!out.found || out.lost) return out;
    state = backward.start(out.end == v.length ? AUTOMATON_TEXT_START : byte_at(v, out.end));
    for (u32 i = out.end; (state & (AUTOMATON_DEAD | AUTOMATON_QUIT)) == 0;) {
        // Before the first byte of the search lies the byte before, or the text's end as seen
        // backwards.
        state = i > 0 ? backward.next(state, byte_at(v, i - 1)) : backward.at_end(state);
        if ((state & AUTOMATON_MATCH) != 0) out.begin = i;
        if (i == from) break;
        i--;
    }
    out.lost = (state & AUTOMATON_QUIT) != 0;
    return out;
}

// The next match behind one that ended at `end`, which was `empty` or not: an empty match where
// another ended is none.
WF_CALLED automaton_match automaton_find_next(const view& v, u32 end, const u32* ahead, const u32* back) {
    automaton_match match = automaton_find(v, end, ahead, back);
    if (!match.found || match.end > end || match.lost) return match;
    u32 from = end + 1;
    while (from < v.length && continues(byte_at(v, from))) from++;
    if (from > v.length) {
        match.found = false;
        return match;
    }
    return automaton_find(v, from, ahead, back);
}

WF_CALLED i64 automaton_count(const view& v, u32 from, const u32* ahead, const u32* back, bool* lost) {
    i64 count = 0;
    automaton_match match = automaton_find(v, from, ahead, back);
    for (; match.found && !match.lost; count++) match = automaton_find_next(v, match.end, ahead, back);
    *lost = match.lost;
    return count;
}

// The 1-based character at which the first match begins, 0 where there is none.
WF_CALLED i64 automaton_position(const view& v, const u32* ahead, const u32* back, bool* lost) {
    automaton_match match = automaton_find(v, 0, ahead, back);
    *lost = match.lost;
    return match.found && !match.lost ? (i64)character_count(slice(v, 0, match.begin)) + 1 : 0;
}

// The first match, or every one, replaced by `to`.
WF_CALLED view automaton_replaced(const text_arena& arena, const view& v, const view& to, bool all, const u32* ahead,
                                  const u32* back, bool* lost) {
    u64 length = v.length;
    automaton_match match = automaton_find(v, 0, ahead, back);
    *lost = match.lost;
    if (!match.found || match.lost) return v;
    automaton_match first = match;
    while (match.found && !match.lost) {
        length = length - (match.end - match.begin) + to.length;
        if (!all) break;
        match = automaton_find_next(v, match.end, ahead, back);
    }
    *lost = match.lost;
    if (match.lost) return v;
    text_writer text(arena, length);
    u32 begin = 0;
    match = first;
    while (match.found) {
        text.put(v, begin, match.begin);
        text.put(to, 0, to.length);
        begin = match.end;
        if (!all) break;
        match = automaton_find_next(v, match.end, ahead, back);
    }
    text.put(v, begin, v.length);
    return text.out;
}

}  // namespace wf
