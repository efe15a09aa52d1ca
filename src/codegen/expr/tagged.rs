//! Regular expressions with groups as tagged automata (`kernels/tagged.cuh`): deterministic ones
//! whose registers hold where groups began and ended on each way through the pattern.
//!
//! A state is the list of ways that are left, the preferred first: the state of the NFA that each
//! has reached, and the registers of its slots. Registers are numbered as they first stand in the
//! list, so that two lists of equal numbers are one state, and a loop copies nothing.
//!
//! Laurikari, "NFAs with Tagged Transitions, their Conversion to Deterministic Automata and
//! Application to Regular Expressions", 2000.

use std::collections::HashMap;

use regex_automata::nfa::thompson::{NFA, State};
use regex_automata::util::look::Look;
use regex_automata::util::primitives::StateID;

/// Most states, registers, and words of a table: what has more is left to the machine that follows
/// all ways as it reads.
const MOST_STATES: usize = 512;
const MOST_REGISTERS: usize = 48;
const MOST_WORDS: usize = 1 << 18;

/// `TAGGED_HERE` and `TAGGED_UNSET` of the kernels.
const HERE: u32 = 255;
const UNSET: u32 = 254;
/// Where transitions begin in a table.
const TRANSITIONS: usize = 68;

/// A pattern as a table.
#[derive(Debug)]
pub(super) struct TaggedAutomaton {
    pub(super) words: Vec<u32>,
    /// The pattern's groups that have slots, two each; the first is the match.
    pub(super) groups: Vec<usize>,
    pub(super) registers: usize,
}

/// Where a place in the text is noted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SlotSource {
    Unset,
    Register(u32),
    /// The place that is being looked at.
    Here,
}

/// What is known of a place in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TextPlace {
    TextStart,
    /// Behind other bytes; perhaps the text ends here.
    Within,
    TextEnd,
}

/// A way through the pattern up to a place.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct PatternWay<S> {
    /// What it waits for: a byte, or the text's end.
    state: StateID,
    /// Where its slots are noted.
    slots: Vec<S>,
    /// If it waits for the text's end, the states that ways passed at this place before it: it
    /// passes none of them again.
    passed: Vec<StateID>,
}

/// A state of the automaton: its ways with the registers of their slots.
type Ways = Vec<PatternWay<Option<u32>>>;

/// Ways that go on from a place, the preferred first, up to the one that matches.
#[derive(Default)]
struct Followed {
    ways: Vec<PatternWay<SlotSource>>,
    seen: Vec<StateID>,
    matched: Option<Vec<SlotSource>>,
}

struct TaggedBuilder<'a> {
    nfa: &'a NFA,
    groups: Vec<usize>,
    states: Vec<Ways>,
    numbers: HashMap<Ways, u32>,
    /// Words of the lists of copies.
    copies: Vec<u32>,
    lists: HashMap<Vec<u32>, u32>,
    registers: usize,
}

impl TaggedAutomaton {
    /// Of the match and the `wanted` groups. `None` of a pattern that looks at more than where the
    /// text begins and ends, or that needs more states or registers than there may be.
    pub(super) fn of(nfa: &NFA, wanted: &[usize]) -> Option<TaggedAutomaton> {
        let mut groups = vec![0];
        groups.extend(wanted.iter().filter(|group| **group != 0));
        let registers = 2 * groups.len() + 1;
        let mut builder = TaggedBuilder {
            nfa,
            groups,
            // State 0 has no ways.
            states: vec![vec![]],
            numbers: HashMap::from([(vec![], 0)]),
            copies: vec![0],
            lists: HashMap::from([(vec![], 0)]),
            registers,
        };
        let anchored = nfa.is_always_start_anchored();
        let first = if anchored { nfa.start_anchored() } else { nfa.start_unanchored() };
        let at_start = builder.begin(first, TextPlace::TextStart)?;
        let elsewhere = if anchored { 0 } else { builder.begin(first, TextPlace::Within)? };
        let classes = nfa.byte_classes();
        let of_classes: Vec<u8> = {
            let mut found: Vec<Option<u8>> = vec![];
            for byte in 0..=255u8 {
                let class = usize::from(classes.get(byte));
                found.resize(found.len().max(class + 1), None);
                found[class].get_or_insert(byte);
            }
            found.into_iter().collect::<Option<_>>()?
        };
        let width = of_classes.len() + 1;
        let mut transitions = vec![];
        let mut at = 0;
        while at < builder.states.len() {
            let ways = builder.states[at].clone();
            for byte in &of_classes {
                transitions.push(builder.step(&ways, *byte)?);
            }
            transitions.push(builder.end(&ways)?);
            at += 1;
            if at > MOST_STATES || transitions.len() + builder.copies.len() > MOST_WORDS {
                return None;
            }
        }
        let bytes: Vec<u8> = (0..=255).map(|byte| classes.get(byte)).collect();
        let mut words = vec![width as u32, at_start, elsewhere];
        words.extend(
            bytes
                .chunks_exact(4)
                .map(|four| u32::from_le_bytes([four[0], four[1], four[2], four[3]])),
        );
        words.push((TRANSITIONS + transitions.len()) as u32);
        words.extend(transitions);
        words.extend(builder.copies);
        Some(TaggedAutomaton { words, groups: builder.groups, registers: builder.registers })
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        self.words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    /// Where the slots of a group begin.
    pub(super) fn slot(&self, group: usize) -> usize {
        2 * self.groups.iter().position(|of| *of == group).unwrap_or(0)
    }

    /// The parameters of the kernels' templates.
    pub(super) fn template(&self) -> String {
        format!("{}, {}", 2 * self.groups.len(), self.registers)
    }
}

impl TaggedBuilder<'_> {
    fn slots(&self) -> usize {
        2 * self.groups.len()
    }

    fn begin(&mut self, first: StateID, place: TextPlace) -> Option<u32> {
        let mut followed = Followed::default();
        self.follow(&mut followed, first, vec![SlotSource::Unset; self.slots()], place)?;
        self.transition(followed)
    }

    /// The transition from a state's ways by a byte.
    fn step(&mut self, ways: &Ways, byte: u8) -> Option<u32> {
        let mut followed = Followed::default();
        for PatternWay { state, slots, .. } in ways {
            let next = match self.nfa.state(*state) {
                State::ByteRange { trans } => trans.matches_byte(byte).then_some(trans.next),
                State::Sparse(sparse) => sparse.matches_byte(byte),
                State::Dense(dense) => dense.matches_byte(byte),
                _ => None,
            };
            if let Some(next) = next {
                self.follow(&mut followed, next, sources(slots), TextPlace::Within)?;
            }
        }
        self.transition(followed)
    }

    /// What the text's end makes of a state's ways: a transition to nowhere.
    fn end(&mut self, ways: &Ways) -> Option<u32> {
        let mut followed = Followed::default();
        for PatternWay { state, slots, passed } in ways {
            if let State::Look { look: Look::End, next } = self.nfa.state(*state) {
                followed.seen.extend(passed);
                self.follow(&mut followed, *next, sources(slots), TextPlace::TextEnd)?;
            }
        }
        followed.ways.clear();
        self.transition(followed)
    }

    /// Adds the ways from a state of the NFA on, without reading a byte. `None` where what it looks
    /// at is more than an automaton knows.
    fn follow(
        &self,
        followed: &mut Followed,
        first: StateID,
        slots: Vec<SlotSource>,
        place: TextPlace,
    ) -> Option<()> {
        let mut left = vec![(first, slots)];
        while let Some((id, mut slots)) = left.pop() {
            if followed.matched.is_some() {
                break;
            }
            if followed.seen.contains(&id) {
                continue;
            }
            followed.seen.push(id);
            match self.nfa.state(id) {
                State::ByteRange { .. } | State::Sparse(_) | State::Dense(_) => {
                    followed.ways.push(PatternWay { state: id, slots, passed: vec![] });
                }
                State::Union { alternates } => {
                    left.extend(alternates.iter().rev().map(|next| (*next, slots.clone())));
                }
                State::BinaryUnion { alt1, alt2 } => {
                    left.extend([(*alt2, slots.clone()), (*alt1, slots)]);
                }
                State::Capture { next, group_index, slot, .. } => {
                    if let Some(at) =
                        self.groups.iter().position(|of| *of == group_index.as_usize())
                    {
                        slots[2 * at + slot.as_usize() % 2] = SlotSource::Here;
                    }
                    left.push((*next, slots));
                }
                State::Look { look: Look::Start, next } => match place {
                    TextPlace::TextStart => left.push((*next, slots)),
                    TextPlace::Within => {}
                    // An empty text's start is its end, too.
                    TextPlace::TextEnd => return None,
                },
                State::Look { look: Look::End, next } => match place {
                    TextPlace::TextEnd => left.push((*next, slots)),
                    TextPlace::TextStart | TextPlace::Within => {
                        let passed = followed.seen.clone();
                        followed.ways.push(PatternWay { state: id, slots, passed });
                    }
                },
                State::Look { .. } => return None,
                State::Fail => {}
                State::Match { .. } => followed.matched = Some(slots),
            }
        }
        Some(())
    }

    /// The transition to where ways were followed to: its state, and the list of copies above it.
    fn transition(&mut self, followed: Followed) -> Option<u32> {
        // The register behind the slots is for cycles of copies.
        let spare = self.slots() as u32;
        let first = spare + 1;
        let mut copies = vec![];
        // Slots of the match are copied before the registers that they are copied from.
        for (slot, source) in followed.matched.iter().flatten().enumerate() {
            copies.push((slot as u32, *source));
        }
        let mut held: Vec<SlotSource> = vec![];
        let mut ways: Ways = vec![];
        for PatternWay { state, slots, passed } in followed.ways {
            let registers = slots.into_iter().map(|source| {
                if source == SlotSource::Unset {
                    return None;
                }
                let at = held.iter().position(|of| *of == source).unwrap_or_else(|| {
                    held.push(source);
                    held.len() - 1
                });
                Some(first + at as u32)
            });
            ways.push(PatternWay { state, slots: registers.collect(), passed });
        }
        self.registers = self.registers.max(first as usize + held.len());
        if self.registers > MOST_REGISTERS {
            return None;
        }
        let moves = held.iter().enumerate().map(|(at, source)| (first + at as u32, *source));
        copies.extend(in_sequence(moves.collect(), spare));
        let next = self.states.len() as u32;
        let number = *self.numbers.entry(ways.clone()).or_insert(next);
        if number == next {
            self.states.push(ways);
        }
        let words: Vec<u32> = (copies.into_iter())
            .map(|(to, source)| {
                let from = match source {
                    SlotSource::Unset => UNSET,
                    SlotSource::Register(register) => register,
                    SlotSource::Here => HERE,
                };
                to | from << 8
            })
            .collect();
        let list = match self.lists.get(&words) {
            Some(list) => *list,
            None => {
                let list = self.copies.len() as u32;
                self.copies.push(words.len() as u32);
                self.copies.extend(&words);
                self.lists.insert(words, list);
                list
            }
        };
        (number < 1 << 16 && list < 1 << 16).then_some(number | list << 16)
    }
}

fn sources(registers: &[Option<u32>]) -> Vec<SlotSource> {
    registers
        .iter()
        .map(|register| register.map_or(SlotSource::Unset, SlotSource::Register))
        .collect()
}

/// An order of copies that are meant to happen at once: no copy overwrites a register that a later
/// one reads. Where copies form a cycle, the register `spare` holds one value meanwhile.
fn in_sequence(mut moves: Vec<(u32, SlotSource)>, spare: u32) -> Vec<(u32, SlotSource)> {
    moves.retain(|(to, source)| *source != SlotSource::Register(*to));
    let mut sequence = vec![];
    while !moves.is_empty() {
        let is_read = |to: u32| moves.iter().any(|(_, source)| *source == SlotSource::Register(to));
        match moves.iter().position(|(to, _)| !is_read(*to)) {
            Some(free) => sequence.push(moves.remove(free)),
            None => {
                let held = moves[0].0;
                sequence.push((spare, SlotSource::Register(held)));
                for (_, source) in &mut moves {
                    if *source == SlotSource::Register(held) {
                        *source = SlotSource::Register(spare);
                    }
                }
            }
        }
    }
    sequence
}

#[cfg(test)]
mod tests {
    use regex_automata::nfa::thompson;

    use super::*;

    /// What the kernels do: the slots of the first match from a place on.
    fn find(automaton: &TaggedAutomaton, text: &[u8], from: usize) -> Option<Vec<Option<usize>>> {
        let words = &automaton.words;
        let mut registers = vec![None; automaton.registers];
        let mut copy = |list: u32, here: usize| {
            let list = words[67] as usize + list as usize;
            let count = words[list] as usize;
            for word in &words[list + 1..list + 1 + count] {
                registers[(word & 255) as usize] = match word >> 8 {
                    HERE => Some(here),
                    UNSET => None,
                    from => registers[from as usize],
                };
            }
        };
        let class =
            |byte: u8| words[3 + usize::from(byte) / 4].to_le_bytes()[usize::from(byte) % 4];
        let width = words[0] as usize;
        let mut step = words[if from == 0 { 1 } else { 2 }];
        copy(step >> 16, from);
        for at in from..text.len() {
            let state = (step & 0xffff) as usize;
            step = words[TRANSITIONS + state * width + usize::from(class(text[at]))];
            copy(step >> 16, at + 1);
        }
        let state = (step & 0xffff) as usize;
        copy(words[TRANSITIONS + state * width + width - 1] >> 16, text.len());
        registers[1]?;
        Some(registers[..2 * automaton.groups.len()].to_vec())
    }

    #[test]
    fn groups_are_those_of_the_regex_crate() {
        let patterns = [
            "^https?://(?:www\\.)?([^/]+)/.*$",
            "(a+)(b*)",
            "(a|ab)(c|bcd)(d*)",
            "((a)|(b))*",
            "(a*?)(a*)$",
            "^(?:(a)|b)*?(c|$)",
            "(\\d+)-(\\d+)",
            "(?i)(ab?)(.)",
            "(é|.)(.)",
            "()",
            "a(b)?$|^(c)",
            "(?:(a)(b)?)+",
            "(a(b(c)?)?)+?c",
            "([^/]*)/([^/]*)$",
            "(?s)(.)(.*)(.)",
            "(aa|a)(a|)(a*)b",
            "b(?:(.|$)|.(b))+",
            "(?:(a|$)|b(a))*?$",
        ];
        let texts = [
            "",
            "a",
            "b",
            "ab",
            "abcd",
            "abc",
            "aaab",
            "abab",
            "xxaabbc",
            "12-345-6",
            "é",
            "aéb",
            "ABxaB",
            "http://www.host.example/a/b",
            "https://www/x",
            "http://w.x/",
            "http://www.",
            "cab",
            "bbac",
            "a\nb",
            "/",
            "a/b/c",
            "aaaa",
            "caabcabc",
            "日本語/é",
        ];
        for pattern in patterns {
            let nfa = NFA::compiler().build(pattern).expect("a pattern");
            let regex = regex_automata::meta::Regex::new(pattern).expect("a pattern");
            let wanted: Vec<usize> = (0..regex.captures_len()).collect();
            let automaton = TaggedAutomaton::of(&nfa, &wanted).expect(pattern);
            for text in texts {
                let places = (0..=text.len()).filter(|at| text.is_char_boundary(*at));
                for from in places {
                    let mut captures = regex.create_captures();
                    regex.search_captures(
                        &regex_automata::Input::new(text).range(from..),
                        &mut captures,
                    );
                    let expected = captures.is_match().then(|| {
                        (wanted.iter())
                            .flat_map(|group| {
                                let span = captures.get_group(*group);
                                [span.map(|of| of.start), span.map(|of| of.end)]
                            })
                            .collect::<Vec<_>>()
                    });
                    assert_eq!(
                        find(&automaton, text.as_bytes(), from),
                        expected,
                        "{pattern} {text:?} {from}"
                    );
                }
            }
        }
    }

    #[test]
    fn what_looks_around_or_blows_up_is_refused() {
        for pattern in ["\\b(a)", "(?m)^(a)", "(a)[01]*1[01]{12}(b)", "($^)?"] {
            let config = thompson::Config::new().nfa_size_limit(Some(1 << 20));
            let nfa = NFA::compiler().configure(config).build(pattern).expect("a pattern");
            assert!(TaggedAutomaton::of(&nfa, &[0, 1]).is_none(), "{pattern}");
        }
    }

    #[test]
    fn copies_at_once_become_copies_one_by_one() {
        let moves = vec![
            (4, SlotSource::Register(5)),
            (5, SlotSource::Register(6)),
            (6, SlotSource::Register(4)),
            (7, SlotSource::Here),
        ];
        let mut registers = [0, 1, 2, 3, 4, 5, 6, 7, 0];
        for (to, source) in in_sequence(moves, 8) {
            registers[to as usize] = match source {
                SlotSource::Register(from) => registers[from as usize],
                _ => 99,
            };
        }
        assert_eq!(registers[4..8], [5, 6, 4, 99]);
    }
}
