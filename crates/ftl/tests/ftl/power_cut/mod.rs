//! Power fails anywhere: what was flushed is there afterwards, and nothing else than what was written.

#![expect(clippy::print_stdout, reason = "says how many crash states were checked")]

mod cleaning;
mod damage;
mod directed;
mod exhaustive;
mod random;
mod remaps;
mod rig;
