//! How many rows of a thread a generated kernel unrolls: as many as registers hold and the compiler
//! has time for.
//!
//! Each unrolled row has the statements for itself. More rows keep more loads on their way; but
//! rows of long statements wait for each other less than for memory, and take twice as long to
//! compile for twice as many.

use super::statements::Code;

/// How long a row's statements take to compile, as characters of plain arithmetic: some eight
/// microseconds each on a server's core.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Effort(usize);

impl Effort {
    /// Of statements.
    pub(crate) fn of(statements: &Code) -> Self {
        Effort(statements.effort())
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
    use super::super::device_function::PAIR_FIND;
    use super::*;

    #[test]
    fn long_statements_unroll_fewer_rows() {
        let plain = Effort::characters("acc0 += in0[k];".len());
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
        let mut probe = Code::default();
        let find = probe.calls(PAIR_FIND);
        probe.constant("u64", "v1", format_args!("{find}(p.k0, p.k1, v0)"));
        let characters = "const u64 v1 = pair_find(p.k0, p.k1, v0);\n".len();
        assert_eq!(Effort::of(&probe), Effort::characters(characters + 1000));
        let mut twice = probe.clone();
        twice.append(&probe);
        assert_eq!(Effort::of(&probe) + Effort::of(&probe), Effort::of(&twice));
    }
}
