//! Units that options of the command line name.

use warpframe::arrow::datatypes::TimeUnit;

/// Units of time, as Parquet's tools write them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Unit {
    /// Seconds.
    S,
    /// Milliseconds.
    Ms,
    /// Microseconds.
    Us,
    /// Nanoseconds.
    Ns,
}

impl From<Unit> for TimeUnit {
    fn from(unit: Unit) -> TimeUnit {
        match unit {
            Unit::S => TimeUnit::Second,
            Unit::Ms => TimeUnit::Millisecond,
            Unit::Us => TimeUnit::Microsecond,
            Unit::Ns => TimeUnit::Nanosecond,
        }
    }
}
