//! The FTL: its map, its space, and what is left of both after power cuts.

mod common;
mod mapping;
mod power_cut;
mod unread;
