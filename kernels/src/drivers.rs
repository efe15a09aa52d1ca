//! The driver of a device, behind one interface: CUDA's, the simulator, and one for tests.

pub(crate) mod clock;
pub(crate) mod cuda;
pub mod driver;
#[cfg(test)]
pub(crate) mod fake;
pub(crate) mod sim;
