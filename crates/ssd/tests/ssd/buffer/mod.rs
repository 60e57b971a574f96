//! The device with a DRAM buffer: bytes, power cuts, time.

mod areas;
mod causes;
mod common;
mod copies;
mod dedup;
mod holes;
mod power_cut;
mod sectors;
mod snapshot_units;
mod time;
