// tagged.cuh: what the groups of a regular expression matched, by one pass over the text.
//
// A tagged automaton is a deterministic one whose transitions also copy places from register to
// register: each of its states stands for the ways on which the expression may have got along, the
// preferred first, and registers hold where groups began and ended on each. The host builds and
// uploads it (Laurikari, "NFAs with Tagged Transitions, their Conversion to Deterministic Automata
// and Application to Regular Expressions", 2000):
//
//   table, in words   0            width: transitions of a state
//                     1, 2         where to begin: at the text's start, and elsewhere
//                     3 .. 66      classes of bytes
//                     67           where copies begin
//                     68 ..        transitions: width a state, the last for the text's end
//                     then         copies: a list is its length, then to | from << 8 each
//
// A transition is the next state, 0 where nothing that follows changes what was found, and above
// its 16 bits where its list of copies begins, 0: none. The first registers are the slots of the
// groups, group 0, the match, before others: unset until there is a match.
#pragma once
#include "captures.cuh"

namespace wf {

constexpr u32 TAGGED_HERE = 255;   // what is copied is the place behind the byte
constexpr u32 TAGGED_UNSET = 254;

template <u32 SLOTS, u32 REGISTERS>
struct tagged {
    const u32* table;
    u32 registers[REGISTERS];

    WF_DEVICE void copy(u32 list, u32 here) {
        if (list == 0) return;
        const u32* copies = table + table[67] + list;
        for (u32 k = 1; k <= copies[0]; k++) {
            const u32 from = copies[k] >> 8;
            registers[copies[k] & 255] = from == TAGGED_HERE ? here : from == TAGGED_UNSET ? CAPTURES_NONE : registers[from];
        }
    }

    template <class Words> WF_DEVICE void walk(const Words& words, u32 length, u32 from) {
        const u32 width = table[0];
        const u8* classes = (const u8*)(table + 3);
        u32 step = table[from == 0 ? 1 : 2];
        copy(step >> 16, from);
        u32 at = from;
        u64 word = words.word((words.skew + at) / 8) >> (8 * ((words.skew + at) % 8));
        while (at < length && (step & 0xffff) != 0) {
            step = table[68 + (step & 0xffff) * width + classes[word & 0xff]];
            at++;
            copy(step >> 16, at);
            word = (words.skew + at) % 8 != 0 ? word >> 8 : words.word((words.skew + at) / 8);
        }
        if ((step & 0xffff) != 0) copy(table[68 + (step & 0xffff) * width + width - 1] >> 16, length);
    }

    // The first match from byte `from` on, and its slots.
    WF_DEVICE automaton_match find(const view& v, u32 from, u32* found) {
        for (u32 s = 0; s < SLOTS; s++) registers[s] = CAPTURES_NONE;
        if (v.length <= INLINE_BYTES)
            walk(short_words_of(v), v.length, from);
        else
            walk(long_words_of(v), v.length, from);
        for (u32 s = 0; s < SLOTS; s++) found[s] = registers[s];
        return automaton_match{registers[0], registers[1], registers[1] != CAPTURES_NONE, false};
    }

    WF_DEVICE automaton_match first(const view& v, u32* found) { return find(v, 0, found); }

    // The next match behind one that ended at `end`: an empty match where another ended is none.
    WF_DEVICE automaton_match next(const view& v, u32 end, u32* found) {
        const automaton_match match = find(v, end, found);
        if (!match.found || match.end > end) return match;
        u32 from = end + 1;
        while (from < v.length && continues(byte_at(v, from))) from++;
        return from <= v.length ? find(v, from, found) : automaton_match{0, 0, false, false};
    }
};

// The slots of the first match; whether there is one.
template <u32 SLOTS, u32 REGISTERS> WF_CALLED bool tagged_first(const view& v, u32* found, const u32* table) {
    tagged<SLOTS, REGISTERS> machine;
    machine.table = table;
    return machine.first(v, found).found;
}

// `captures_replaced` by a tagged automaton, to which all is known.
template <u32 SLOTS, u32 REGISTERS>
WF_CALLED view tagged_replaced(const text_arena& arena, const view& v, const view* literals, const u32* pieces,
                               u32 count, bool all, const u32* table) {
    tagged<SLOTS, REGISTERS> machine;
    machine.table = table;
    bool lost = false;
    return replaced_by_groups<SLOTS>(machine, arena, v, literals, pieces, count, all, &lost);
}

}  // namespace wf
