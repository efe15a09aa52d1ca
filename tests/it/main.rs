//! Every operator against DataFusion's CPU engine, on the device that `WARPFRAME_DEVICE` names (the simulator, where it
//! names none).

mod aggregate;
mod differential;
mod distinct;
mod filter;
mod join;
mod limit;
mod project;
mod session;
mod sort;
mod tables;
mod tpch;
mod union;
