//! From the text of a kernel to one that can be launched: compilers, what is kept of them in memory
//! and on disk, and what is compiled before somebody asks.

pub mod ahead;
pub(crate) mod cache;
pub(crate) mod compilers;
pub(crate) mod hex;
pub(crate) mod improve;
pub mod nvrtc;
pub mod parts;
pub mod prepare;
pub(crate) mod rehearsal;
pub mod source;
pub(crate) mod uses;
