//! The device with a DRAM buffer: bytes, power cuts, time.

mod common;
mod power_cut;
mod sectors;
mod time;
