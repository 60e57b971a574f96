//! One module per noun of the command line.

pub(crate) mod config;
pub(crate) mod control;
pub(crate) mod crash;
pub(crate) mod frontends;
pub(crate) mod packaging;
pub(crate) mod report;
pub(crate) mod sim;
pub(crate) mod ssd;
pub(crate) mod stack;
pub(crate) mod study;
pub(crate) mod trace;
pub(crate) mod r#try;
pub(crate) mod volume;
mod written;
