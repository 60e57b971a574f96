//! A load on a block namespace, in virtual time.

mod outcome;
mod run;

pub(crate) use outcome::{Counters, Finished, result};
pub(crate) use run::simulate;
