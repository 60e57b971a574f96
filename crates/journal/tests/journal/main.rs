//! The journal detector on disks that are made by hand.
#![expect(clippy::cast_possible_truncation, reason = "disks of tests are small")]
mod hostile;
mod images;
mod live;
mod parse;
mod rig;
mod sniff;
