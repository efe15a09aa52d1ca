//! Why rows fail. Some failures are not errors of the query: the device cannot judge the value, as
//! with names of time zones and letters beyond ASCII. They send the query to the CPU; in strict
//! mode they are errors.

use crate::error::{Error, Fault, Operation};

/// Why a row failed; a bit of the kernel's `status` word (the constants of `kernels/arith.cuh`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failure {
    DivideByZero,
    Overflow,
    Cast,
    /// A function outside of its domain: the root of a negative number, a negative length.
    Domain,
    /// Characters beyond ASCII in a function that has only ASCII on the device. Not an error of the
    /// query.
    NotAscii,
    /// A text that only the host can judge: the name of a time zone, more digits than 64 bits hold,
    /// words beyond ASCII. Not an error of the query.
    Beyond,
    /// A subquery of one value has several rows.
    Rows,
    /// A string or a list would be longer than its length can count.
    Length,
}

impl Failure {
    /// The first of several failures is reported. Those that are not errors of the query come
    /// first: the CPU will find the errors.
    const ALL: [Failure; 8] = [
        Failure::NotAscii,
        Failure::Beyond,
        Failure::DivideByZero,
        Failure::Overflow,
        Failure::Cast,
        Failure::Domain,
        Failure::Rows,
        // Last: a value made of a string that was not made may be too long without being the cause.
        Failure::Length,
    ];

    /// The bit of the status word.
    pub(crate) fn bit(self) -> u32 {
        match self {
            Failure::DivideByZero => 1,
            Failure::Overflow => 2,
            Failure::Cast => 4,
            Failure::Domain => 8,
            Failure::NotAscii => 16,
            Failure::Beyond => 32,
            Failure::Rows => 64,
            Failure::Length => 128,
        }
    }

    /// The constant in `kernels/arith.cuh`.
    pub(super) fn device_name(self) -> &'static str {
        match self {
            Failure::DivideByZero => "DIVIDE_BY_ZERO",
            Failure::Overflow => "OVERFLOW",
            Failure::Cast => "CAST",
            Failure::Domain => "DOMAIN",
            Failure::NotAscii => "NOT_ASCII",
            Failure::Beyond => "BEYOND",
            Failure::Rows => "ROWS",
            Failure::Length => "LENGTH",
        }
    }

    /// The failure in a kernel's final status word: of several, the first in [`Failure::ALL`].
    pub(super) fn of(status: u32) -> Option<Failure> {
        Failure::ALL.into_iter().find(|f| status & f.bit() != 0)
    }

    /// The fault of the query. `None` if the CPU can compute the row.
    pub(super) fn fault(self) -> Option<Fault> {
        Some(match self {
            Failure::NotAscii | Failure::Beyond => return None,
            Failure::DivideByZero => Fault::DivideByZero,
            Failure::Overflow => Fault::Overflow,
            Failure::Cast => Fault::Cast,
            Failure::Domain => Fault::Domain,
            Failure::Rows => Fault::Rows,
            Failure::Length => Fault::Length,
        })
    }

    /// The error that only the CPU can compute a row.
    pub(super) fn beyond(self, operation: Option<Operation>) -> Error {
        let what = operation.map(|operation| operation.applied() + &operation.place());
        match self {
            Failure::NotAscii => Error::unsupported(
                what.unwrap_or_else(|| "upper, lower or initcap".into()),
                "of characters beyond ASCII is not on the device yet",
            ),
            _ => Error::unsupported(
                what.unwrap_or_else(|| "a value".into()),
                "only the CPU can read the value (the name of a time zone, a float of more than 19 digits, \
                 a word beyond ASCII, more ways to match than a thread follows)",
            ),
        }
    }
}
