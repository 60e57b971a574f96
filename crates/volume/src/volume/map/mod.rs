//! The map at work: reading pages, and counting what they point at.

mod counting;
mod doubts;
mod loads;
mod preload;
