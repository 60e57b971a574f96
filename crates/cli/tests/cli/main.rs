//! Tests of the command, as a user runs it. One binary: it is linked once.

mod advise;
mod checkpoint;
mod clocks;
mod common;
mod crash;
mod dmz;
mod exit_codes;
mod foreign_files;
mod full;
mod interrupt;
mod journals;
mod killed;
mod packaging;
mod power;
mod remap;
mod report;
mod schemas;
mod serve;
mod ssd;
mod ssd_zones;
mod stack;
mod study;
mod trace;
mod tried;
mod volume;
mod write_log;
