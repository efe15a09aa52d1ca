//! How many rows of a thread a generated kernel unrolls: as many as registers hold and the compiler
//! has time for.
//!
//! Each unrolled row has the statements for itself. More rows keep more loads on their way; but
//! rows of long statements wait for each other less than for memory, and take twice as long to
//! compile for twice as many.

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, MatchKind};

/// How long a row's statements take to compile, as characters of plain arithmetic: some eight
/// microseconds each on a server's core.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Effort(usize);

/// What is inlined wherever it stands, and of how many characters a call of it takes the time:
/// differences between kernels of one row and of four (NVRTC 13.0, sm_90,
/// `scripts/compile-times.py`).
const INLINED: [(&str, usize); 19] = [
    ("break;", 100),
    (" / ", 350),
    (" % ", 350),
    ("quotient", 1000),
    ("remainder", 1000),
    ("divided<i128>(", 300),
    ("mul_overflows(", 700),
    ("fdiv(", 1000),
    ("pow(", 900),
    ("fixed_of_", 600),
    ("sort_f", 700),
    ("_of(", 600),
    ("views_equal(", 450),
    ("starts_with(", 700),
    ("ends_with(", 1000),
    ("hash_view(", 300),
    ("hash_i128(", 800),
    ("hash_find(", 1000),
    ("pair_find(", 1000),
];

/// Finds all names of [`INLINED`] in one pass, for texts are judged whenever a kernel is asked for,
/// compiled or not. The crate uses vector instructions for leftmost matches only.
static CALLS: LazyLock<AhoCorasick> = LazyLock::new(|| {
    let names = INLINED.map(|(name, _)| name);
    let search = AhoCorasick::builder().match_kind(MatchKind::LeftmostFirst).build(names);
    search.expect("a few short names")
});

impl Effort {
    /// Of statements whose other calls are of functions that stand in the code once.
    pub(crate) fn of(statements: &str) -> Self {
        let calls: usize = CALLS.find_iter(statements).map(|call| INLINED[call.pattern()].1).sum();
        Effort(statements.len() + calls)
    }

    /// Of so many characters of plain arithmetic.
    pub(crate) const fn characters(count: usize) -> Self {
        Effort(count)
    }
}

impl std::ops::Add for Effort {
    type Output = Effort;

    fn add(self, other: Effort) -> Effort {
        Effort(self.0 + other.0)
    }
}

/// Rows of a thread per tile, so that the eager loads of one row × rows stay in registers, and that
/// they compile in time.
pub(crate) fn items_for(eager_bytes: usize, effort: Effort) -> u32 {
    let items = match eager_bytes {
        0..=24 => 8,
        25..=72 => 4,
        73..=144 => 2,
        _ => 1,
    };
    items_in_time(items, effort)
}

/// At most so many rows of a thread per tile, fewer where they do not compile in time; two are
/// always worth it.
pub(crate) fn items_in_time(most: u32, effort: Effort) -> u32 {
    const ENOUGH: usize = 5120;
    let mut items = most;
    while items > 2 && items as usize * effort.0 > ENOUGH {
        items /= 2;
    }
    items
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_statements_unroll_fewer_rows() {
        let plain = Effort::of("acc0 += in0[k];");
        assert_eq!(items_for(8, plain), 8);
        assert_eq!(items_in_time(16, plain), 16);
        assert_eq!(items_for(8, Effort::characters(640)), 8);
        assert_eq!(items_for(8, Effort::characters(641)), 4);
        assert_eq!(items_for(8, Effort::characters(1281)), 2);
        assert_eq!(items_for(8, Effort::characters(1_000_000)), 2);
        assert_eq!(items_for(80, plain), 2);
        assert_eq!(items_for(200, plain), 1);
    }

    #[test]
    fn what_is_inlined_counts_besides_its_characters() {
        let probe = "const u64 v1 = pair_find(p.k0, p.k1, v0);";
        assert_eq!(Effort::of(probe), Effort::characters(probe.len() + 1000));
        assert_eq!(Effort::of(probe) + Effort::of(probe), Effort::of(&probe.repeat(2)));
        assert!(Effort::of("a / b") > Effort::of("a * b"));
    }

    /// A function that was renamed would count for nothing.
    #[test]
    fn inlined_functions_are_ones_of_the_kernels() {
        let texts: String = warpframe_device::HEADERS.iter().map(|(_, text)| *text).collect();
        for (name, _) in INLINED
            .iter()
            .filter(|(name, _)| name.contains(|c: char| c.is_alphabetic()) && *name != "pow(")
        {
            let name = name.split(['<', '(']).next().unwrap_or(name);
            assert!(texts.contains(name), "{name}");
        }
    }
}
