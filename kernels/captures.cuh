// captures.cuh: what the groups of a regular expression matched, by all of its ways at once.
//
// Where a match begins and ends two automata say (automaton.cuh). From there a machine follows the
// ways on which the expression may have got along, the preferred first, each with the places where
// groups began and ended; ways that meet go on as the preferred one. The host uploads its program,
// in words:
//
//   0 where it begins
//   op | number << 8, and then   RANGES count, (least | greatest << 8, next) …   a byte
//                                SPLIT count, next …        ways, the preferred first
//                                SAVE slot, next            a group begins or ends
//                                LOOK which, next           something is true of the place
//                                MATCH
//
// Ways that are more than there is room for are left to the host: `lost`.

#pragma once
#include "automaton.cuh"

namespace wf {

constexpr u32 CAPTURES_RANGES = 0;
constexpr u32 CAPTURES_SPLIT = 1;
constexpr u32 CAPTURES_SAVE = 2;
constexpr u32 CAPTURES_LOOK = 3;
constexpr u32 CAPTURES_MATCH = 4;

constexpr u32 CAPTURES_NONE = 0xffffffffu;  // a group that took no part
constexpr u32 CAPTURES_DEPTH = 64;
constexpr u32 CAPTURES_RESTORE = 0x80000000u;

// Of a piece of a replacement: a literal, not a slot.
constexpr u32 CAPTURES_LITERAL = 0x80000000u;

WF_DEVICE bool captures_word(const view& v, u32 at, bool unicode, bool* lost) {
    if (at >= v.length) return false;
    const u8 byte = byte_at(v, at);
    if (byte >= 0x80) *lost |= unicode;
    return byte == '_' || (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
}

// Whether something is true before byte `at`: 0 and 1 ask for start and end of the text, 2 and 3 of
// a line, and 4 whether words lie around it as allowed, from bit 8 on: neither before nor behind,
// behind, before, on both sides. 16: words in Unicode.
WF_DEVICE bool captures_look(const view& v, u32 at, u32 look, bool* lost) {
    switch (look & 15) {
        case 0: return at == 0;
        case 1: return at == v.length;
        case 2: return at == 0 || byte_at(v, at - 1) == '\n';
        case 3: return at == v.length || byte_at(v, at) == '\n';
    }
    const bool unicode = (look & 16) != 0;
    const bool before = at > 0 && captures_word(v, at - 1, unicode, lost);
    const bool behind = captures_word(v, at, unicode, lost);
    return (look >> (8 + 2 * before + behind) & 1) != 0;
}

template <u32 STATES, u32 SLOTS, u32 WAYS>
struct captures {
    struct ways {
        u32 count;
        u32 at[WAYS];
        u32 slots[WAYS][SLOTS];
    };

    const u32* program;
    ways lists[2];
    u32 seen[(STATES + 31) / 32];
    u32 now[SLOTS];
    bool lost;

    // Adds the ways from `first` on, at byte `at`, behind those of the list.
    WF_DEVICE void follow(ways& list, const view& v, u32 first, u32 at) {
        u32 stack[CAPTURES_DEPTH];
        u32 depth = 0;
        stack[depth++] = first;
        while (depth > 0 && !lost) {
            const u32 pc = stack[--depth];
            if ((pc & CAPTURES_RESTORE) != 0) {
                now[pc & ~CAPTURES_RESTORE] = stack[--depth];
                continue;
            }
            const u32 number = program[pc] >> 8;
            if ((seen[number / 32] >> (number % 32) & 1) != 0) continue;
            seen[number / 32] |= 1u << (number % 32);
            switch (program[pc] & 255) {
                case CAPTURES_SPLIT: {
                    const u32 count = program[pc + 1];
                    if (depth + count > CAPTURES_DEPTH) lost = true;
                    for (u32 k = count; k > 0 && !lost; k--) stack[depth++] = program[pc + 1 + k];
                    break;
                }
                case CAPTURES_SAVE: {
                    const u32 slot = program[pc + 1];
                    if (depth + 3 > CAPTURES_DEPTH) lost = true;
                    if (lost) break;
                    stack[depth++] = now[slot];
                    stack[depth++] = slot | CAPTURES_RESTORE;
                    now[slot] = at;
                    stack[depth++] = program[pc + 2];
                    break;
                }
                case CAPTURES_LOOK:
                    if (captures_look(v, at, program[pc + 1], &lost)) stack[depth++] = program[pc + 2];
                    break;
                default:
                    if (list.count == WAYS) {
                        lost = true;
                        break;
                    }
                    list.at[list.count] = pc;
                    for (u32 s = 0; s < SLOTS; s++) list.slots[list.count][s] = now[s];
                    list.count++;
            }
        }
    }

    WF_DEVICE void forget() {
        for (u32 i = 0; i < (STATES + 31) / 32; i++) seen[i] = 0;
    }

    // The slots of the match from `begin` to `end`, which there is.
    WF_DEVICE void find(const view& v, u32 begin, u32 end, u32* found) {
        lost = false;
        for (u32 s = 0; s < SLOTS; s++) found[s] = now[s] = CAPTURES_NONE;
        forget();
        lists[0].count = 0;
        follow(lists[0], v, program[0], begin);
        for (u32 at = begin; at <= end && !lost; at++) {
            ways& list = lists[(at - begin) % 2];
            ways& next = lists[(at - begin + 1) % 2];
            next.count = 0;
            forget();
            for (u32 way = 0; way < list.count; way++) {
                const u32 pc = list.at[way];
                if ((program[pc] & 255) == CAPTURES_MATCH) {
                    // Those behind it are not preferred.
                    for (u32 s = 0; s < SLOTS; s++) found[s] = list.slots[way][s];
                    break;
                }
                if (at == end) continue;
                const u32 byte = byte_at(v, at);
                for (u32 k = 0; k < program[pc + 1]; k++) {
                    const u32 range = program[pc + 2 + 2 * k];
                    if (byte < (range & 255) || byte > (range >> 8)) continue;
                    for (u32 s = 0; s < SLOTS; s++) now[s] = list.slots[way][s];
                    follow(next, v, program[pc + 3 + 2 * k], at + 1);
                    break;
                }
            }
        }
    }
};

// Finds matches by two automata, and their groups by the machine.
template <u32 STATES, u32 SLOTS, u32 WAYS>
struct captures_finder {
    const u32 *ahead, *back;
    captures<STATES, SLOTS, WAYS> machine;

    WF_DEVICE automaton_match with_slots(const view& v, automaton_match match, u32* found) {
        if (!match.found || match.lost) return match;
        machine.find(v, match.begin, match.end, found);
        match.lost = machine.lost;
        return match;
    }
    WF_DEVICE automaton_match first(const view& v, u32* found) {
        return with_slots(v, automaton_find(v, 0, ahead, back), found);
    }
    WF_DEVICE automaton_match next(const view& v, u32 end, u32* found) {
        return with_slots(v, automaton_find_next(v, end, ahead, back), found);
    }
};

// The first match that a finder finds, or every one, replaced by `count` pieces, of which each is a
// literal or a group's first slot.
template <u32 SLOTS, class Finder>
WF_DEVICE view replaced_by_groups(Finder& finder, const text_arena& arena, const view& v, const view* literals,
                                  const u32* pieces, u32 count, bool all, bool* lost) {
    u32 found[SLOTS];
    automaton_match match = finder.first(v, found);
    *lost = match.lost;
    if (!match.found || match.lost) return v;
    if (!all && count == 1 && (pieces[0] & CAPTURES_LITERAL) == 0 && match.begin == 0 && match.end == v.length) {
        const u32 slot = pieces[0];
        return found[slot] == CAPTURES_NONE ? view{0, 0, 0} : slice_of(v, found[slot], found[slot + 1] - found[slot]);
    }
    u64 length = v.length;
    text_writer text(arena, 0);
    for (u32 pass = 0; pass < 2; pass++) {
        u32 begin = 0;
        // Of a single match the slots are still there.
        if (pass == 1 && all) match = finder.first(v, found);
        while (match.found && !match.lost) {
            if (pass == 0)
                length -= match.end - match.begin;
            else
                text.put(v, begin, match.begin);
            for (u32 k = 0; k < count; k++) {
                const bool literal = (pieces[k] & CAPTURES_LITERAL) != 0;
                const u32 slot = literal ? 0 : pieces[k];
                if (!literal && found[slot] == CAPTURES_NONE) continue;
                const view from = literal ? literals[pieces[k] & ~CAPTURES_LITERAL] : v;
                const u32 first = literal ? 0 : found[slot];
                const u32 last = literal ? from.length : found[slot + 1];
                if (pass == 0)
                    length += last - first;
                else
                    text.put(from, first, last);
            }
            begin = match.end;
            if (!all) break;
            match = finder.next(v, match.end, found);
        }
        *lost = match.lost;
        if (match.lost) return v;
        if (pass == 0)
            text = text_writer(arena, length);
        else
            text.put(v, begin, v.length);
    }
    return text.out;
}

// The slots of the first match; whether there is one.
template <u32 STATES, u32 SLOTS, u32 WAYS>
WF_CALLED bool captures_first(const view& v, u32* found, const u32* ahead, const u32* back, const u32* program,
                              bool* lost) {
    captures_finder<STATES, SLOTS, WAYS> finder;
    finder.ahead = ahead;
    finder.back = back;
    finder.machine.program = program;
    const automaton_match match = finder.first(v, found);
    *lost = match.lost;
    return match.found;
}

// The first match, or every one, replaced.
template <u32 STATES, u32 SLOTS, u32 WAYS>
WF_CALLED view captures_replaced(const text_arena& arena, const view& v, const view* literals, const u32* pieces,
                                 u32 count, bool all, const u32* ahead, const u32* back, const u32* program,
                                 bool* lost) {
    captures_finder<STATES, SLOTS, WAYS> finder;
    finder.ahead = ahead;
    finder.back = back;
    finder.machine.program = program;
    return replaced_by_groups<SLOTS>(finder, arena, v, literals, pieces, count, all, lost);
}

}  // namespace wf
