//! A zoned volume between the load and two devices, in virtual time (zoned.md, section 3).
//!
//! The volume waits for its own I/O, so a run goes from event to event (`crate::events`). Both
//! devices tell the completion time of each command at once. No bytes are kept, but those of
//! metadata until the volume is open.

mod below;
mod outcome;
mod queue;
mod run;
mod stack;

pub(crate) use below::add;
pub(crate) use run::simulate;
