//! Power fails anywhere: what was flushed is there afterwards, and nothing else than what was written.

#![expect(clippy::print_stdout, reason = "says how many crash states were checked")]

mod counts;
mod damage;
mod disk;
mod exhaustive;
mod failures;
mod faithful;
mod family;
mod flaky;
mod full;
mod golden;
mod image;
mod journal;
mod lost_map;
mod marker;
mod offline;
mod oracle;
mod packs;
mod random;
mod rebuild;
mod resize;
mod rig;
mod roots;
mod rotten;
mod scrub;
mod setup;
mod spoil;
mod stamp;
mod states;
mod torn;
mod weather;
mod zoned;
mod zones;
