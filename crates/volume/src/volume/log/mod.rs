//! The log at work: batches, flushes, log segments, journals.

mod append;
mod flush;
mod journal;
mod marker;
mod packs;
mod suspects;
mod tries;
mod trims;
