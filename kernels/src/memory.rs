//! Memory: the device's, in buffers from a pool, and the host's for what leaves it.

pub mod buffer;
pub mod feed;
pub mod host_block;
pub mod pool;
pub mod room;
