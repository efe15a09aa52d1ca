//! What a query was made of: the random words that its maker drew, so that a smaller query can be
//! made of fewer.
//!
//! A query that fails is shrunk as Hypothesis does it (MacIver and Donaldson 2020, "Test-case
//! reduction via test-case generation"): words are left out or made trivial, the maker makes a
//! query of what is left, and where that one fails, too, it goes on from there. What it makes is
//! typed and means something, as all its queries do.

use rand::rngs::StdRng;
use rand::{RngCore, SeedableRng};

/// Random words that are remembered, or words of an earlier time again.
pub struct Choices {
    words: Vec<u64>,
    at: usize,
    /// Where words come from when there are no more; without it they are zero.
    random: Option<StdRng>,
}

impl Choices {
    pub fn seeded(seed: u64) -> Choices {
        Choices { words: vec![], at: 0, random: Some(StdRng::seed_from_u64(seed)) }
    }

    pub fn again(words: Vec<u64>) -> Choices {
        Choices { words, at: 0, random: None }
    }

    /// The words that were drawn.
    pub fn drawn(mut self) -> Vec<u64> {
        self.words.truncate(self.at);
        self.words
    }
}

impl Choices {
    fn draw(&mut self, new: impl FnOnce(&mut StdRng) -> u64) -> u64 {
        if self.at == self.words.len() {
            self.words.push(self.random.as_mut().map_or(0, new));
        }
        self.at += 1;
        self.words[self.at - 1]
    }
}

impl RngCore for Choices {
    fn next_u32(&mut self) -> u32 {
        (self.draw(|random| u64::from(random.next_u32()) << 32) >> 32) as u32
    }

    fn next_u64(&mut self) -> u64 {
        self.draw(RngCore::next_u64)
    }

    fn fill_bytes(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&self.next_u64().to_le_bytes()[..chunk.len()]);
        }
    }
}

/// Fewer or simpler words than `words`, of which `fails` still holds. It is asked `budget` times at
/// most, and yields the words that were drawn of those it was given.
pub fn shrink(
    words: Vec<u64>,
    budget: usize,
    mut fails: impl FnMut(&[u64]) -> Option<Vec<u64>>,
) -> Vec<u64> {
    let mut least = words;
    let mut asked = 0;
    let mut length = least.len().div_ceil(2);
    while length > 0 {
        let mut at = 0;
        let mut better = false;
        while at < least.len() {
            let end = (at + length).min(least.len());
            let with = |middle: &[u64]| [&least[..at], middle, &least[end..]].concat();
            // Most choices have their simplest case at one end.
            let edits = [with(&[]), with(&vec![u64::MAX; end - at]), with(&vec![0; end - at])];
            let mut found = None;
            for edit in edits.into_iter().filter(|edit| is_simpler(edit, &least)) {
                if asked == budget {
                    return least;
                }
                asked += 1;
                found = fails(&edit).filter(|drawn| is_simpler(drawn, &least));
                if found.is_some() {
                    break;
                }
            }
            match found {
                Some(drawn) => (least, better) = (drawn, true),
                None => at = end,
            }
        }
        if !better || length > 1 {
            length /= 2;
        }
    }
    least
}

/// Whether words are fewer, or as many and more of them trivial: so that shrinking ends.
fn is_simpler(words: &[u64], than: &[u64]) -> bool {
    let weight = |words: &[u64]| {
        let trivial = |word: &u64| match *word {
            0 => 0u64,
            u64::MAX => 1,
            _ => 2,
        };
        (words.len(), words.iter().map(trivial).sum::<u64>())
    };
    weight(words) < weight(than)
}

#[test]
fn choices_shrink_to_what_fails() {
    let mut source = Choices::seeded(5);
    let words: Vec<u64> = (0..50).map(|_| source.next_u64()).collect();
    assert_eq!(source.drawn(), words);
    // Fails where the 20th word is still among them, and three more.
    let mark = words[20];
    let fails = |words: &[u64]| (words.contains(&mark) && words.len() > 3).then(|| words.to_vec());
    let least = shrink(words.clone(), 1000, fails);
    assert_eq!(least.len(), 4);
    assert!(
        least.contains(&mark) && least.iter().all(|word| [0, mark].contains(word)),
        "{least:?}"
    );
    assert_eq!(shrink(words.clone(), 0, fails), words);
}
