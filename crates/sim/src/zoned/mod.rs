//! A load on a zoned namespace, in virtual time.
//!
//! The load addresses what the zones take, one after the other, conventional ones first: the gap behind the capacity of a zone is left out. Its
//! requests are cut at the ends of zones, as the block layer of a kernel cuts them. Where a write begins at the start of a
//! zone that holds something, the zone is reset first, as a log does that begins again; the write waits for the reset.
//! Any other write to a sequential zone has to begin where its zone was written to, or the run fails. Trims reset the zones they cover and leave
//! the others as they are, and deallocate what they cover of conventional ones.

mod outcome;
mod run;

pub(crate) use outcome::{Finished, Regular, result};
pub(crate) use run::simulate;
