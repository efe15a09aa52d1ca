//! What a reader of a condition makes of a truth value that is null.

/// What an unknown truth value may be taken for without a difference to the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UnknownAs {
    /// Only whether the condition is true matters, as in WHERE.
    False,
    /// Only whether it is false matters.
    True,
    /// All three values matter.
    Itself,
}

impl UnknownAs {
    /// What an unknown operand of NOT may be taken for, where NOT itself is taken as `self`.
    pub(crate) fn negated(self) -> UnknownAs {
        match self {
            UnknownAs::False => UnknownAs::True,
            UnknownAs::True => UnknownAs::False,
            UnknownAs::Itself => UnknownAs::Itself,
        }
    }
}
