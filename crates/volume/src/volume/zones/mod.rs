//! Zones at work: when batches may go where, and what an opening finds.

mod gate;
mod map;
mod open;
mod pointer;
