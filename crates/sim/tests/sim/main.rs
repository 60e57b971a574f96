//! Tests of whole simulations.

mod checkpoint;
mod closed_forms;
mod common;
mod dependencies;
mod determinism;
mod dmz;
mod doubts;
mod known_bugs;
mod large;
mod latency;
mod log;
mod lookalikes;
mod papers;
mod remap;
mod repeat;
mod schemes;
mod stack;
mod volume;
mod zoned;
