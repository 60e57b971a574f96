//! Snapshots and clones at work: how they come and go, and what they share.

mod change;
mod delete;
mod share;
mod space;
