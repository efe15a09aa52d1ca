//! Every operator against DataFusion's CPU engine, on the device that `WARPFRAME_DEVICE` names (the simulator, where it
//! names none).

mod aggregate;
mod builder;
mod casts;
mod data;
mod differential;
mod distinct;
mod docs;
mod edges;
mod examples;
mod filter;
mod frame;
mod join;
mod join_order;
mod limit;
mod lists;
mod modules;
mod moved;
mod nested;
mod outer;
mod project;
mod random;
mod regroup;
mod rows;
mod runs;
mod semi;
mod session;
mod slt;
mod sort;
mod tables;
mod text;
mod tpch;
mod types;
mod union;
mod window;
