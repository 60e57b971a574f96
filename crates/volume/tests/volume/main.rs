//! Volumes of mode `log`: against plain arrays of blocks, and under faults and power cuts.

#![expect(clippy::print_stdout, reason = "says how many crash states were checked")]

mod crash;
mod engine;
mod harness;
mod model;
