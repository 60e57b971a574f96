//! The zoned volume on strict devices, in virtual time.

mod append;
mod crash;
mod damage;
mod disk;
mod fast_commit;
mod faults;
mod fields;
mod flaky;
mod flushes;
mod golden;
mod images;
mod journal;
mod oracle;
mod rest;
mod rig;
mod rules;
mod set;
mod verify;
mod weather;
