//! Power fails anywhere: what was flushed is there afterwards, and nothing else than what was
//! written.

mod counts;
mod damage;
mod exhaustive;
mod failures;
mod flaky;
mod full;
mod golden;
mod journal;
mod lost_map;
mod marker;
mod offline;
mod packs;
mod random;
mod rebuild;
mod resize;
mod rotten;
mod scrub;
mod torn;
mod zoned;

pub(crate) use journal::set_journal;
