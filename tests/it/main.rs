//! Every operator against DataFusion's CPU engine, on the device that `WARPFRAME_DEVICE` names (the simulator, where it
//! names none).

mod aggregate;
mod differential;
mod filter;
mod tables;
