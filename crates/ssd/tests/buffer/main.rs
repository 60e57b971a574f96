//! The device with a DRAM buffer: bytes, power cuts, time.

mod common;
mod dedup;
mod hidden;
mod holes;
mod power_cut;
mod sectors;
mod time;
