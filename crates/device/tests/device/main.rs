//! Tests of devices in real time, on files.

mod clocks;
mod common;
mod damage;
mod dmz;
mod image;
mod learnt;
mod lifetime;
mod mailbox;
mod media;
mod model;
mod stack_power;
mod stacks;
mod volume;
mod volume_remap;
mod volume_streams;
mod volume_zoned;
mod write_log;
mod zoned;
