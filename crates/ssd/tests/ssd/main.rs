//! The drive: with a DRAM buffer, and with zones.

mod buffer;
mod zns;
