//! Studies from file to results.

mod checks;
mod common;
mod refusals;
mod report;
mod run;
mod warm_up;
