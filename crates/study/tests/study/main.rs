//! Studies from file to results.

mod areas;
mod checks;
mod common;
mod devices;
mod grids;
mod kept;
mod latency;
mod part;
mod refusals;
mod report;
mod run;
mod warm_up;
