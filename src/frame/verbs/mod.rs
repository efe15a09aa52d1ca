//! The verbs of frames, a family a file. Each is a method of [`super::AnyFrame`], which lazy and
//! eager frames share. A new verb touches the file of its family, its test in `tests/it/`, and
//! `docs/frames.md`.

mod bins;
mod columns;
mod frame_aggregates;
mod join;
mod nulls;
mod reshape;
mod rows;
mod running;
mod select;
mod sets;
mod time;

pub use bins::Bins;
pub use join::{JoinOptions, Validate};
pub use rows::{SampleOptions, SampleSize, UniqueKeep};
pub use sets::Concat;
pub use time::{AsofOptions, AsofStrategy, DynamicWindows, Edge};
