//! SQL before it is planned: texts and their tokens, and which statement a text is.
//!
//! | file | what |
//! |---|---|
//! | `text` | [`Text`]: one statement or several, with tokens that are read at most once |
//! | `reader` | walks the words of a text |
//! | `statement` | [`Statement`]: what a text asks for, by its first words |
//! | `ast` | tools for the parser's trees |
//! | `copy` | `COPY` |
//! | `type_names` | types by the names of SQL |
//! | `names_apart` | columns of one name, told apart |
//! | `explain` | formats of `EXPLAIN` |
//! | `place` | [`Text::locate`]: where in a text an error is |
//! | `hint` | what was mistyped in a text that does not parse |
//! | `keywords` | the words of SQL |

pub(crate) mod ast;
mod copy;
mod explain;
mod hint;
#[doc(hidden)]
pub mod keywords;
mod names_apart;
mod place;
mod reader;
mod statement;
mod text;
mod type_names;

pub use copy::{CopyFrom, CopyTo, CopyValue};
pub use explain::ExplainFormat;
pub(crate) use names_apart::distinct_names_of_first;
pub use names_apart::{NamesApart, distinct_names};
pub use reader::Name;
pub use statement::{Attach, Statement};
pub(crate) use text::is_word;
pub use text::{Offsets, Text};
pub use type_names::{quoted_name, type_name};

#[cfg(test)]
mod tests;
