//! Power fails anywhere, in the modes of the papers: what was flushed is there afterwards, and
//! nothing else than what was written.

mod cuts;
mod flaky;
mod golden;
mod refused;
mod setups;
