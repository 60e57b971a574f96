//! Power cuts: the states of a disk afterwards are mounted and checked, and failing ones shrunk.
//!
//! A *promise* is a line that the program printed, or a mark in the log. A state *fails* if it cannot be mounted, if the check of its
//! file system finds something, or if the user's check does. A *finding* is what failing states have in common: the fewest
//! requests without which one fails, or the request that came too late.

mod bench;
mod check;
mod files;
mod promises;
mod report;
mod search;
mod shrink;

pub use bench::{Checks, Problem, ProblemKind};
pub use files::StateFiles;
pub use promises::{Promise, Promises};
pub use report::{Cause, Failing, Finding, Lost, NameOf, Report};
pub use search::{Amount, Search, Shard, explore};
