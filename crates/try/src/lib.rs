//! What a program does to flash, and which power cuts it survives, from one run of it.
//!
//! | module | what |
//! |---|---|
//! | `tape` | the folder that keeps every request of a disk with its data |
//! | `room` | file systems, mounts and processes, gone afterwards whatever happens |
//! | `run` | the program on a disk that is taped |
//! | `account` | bytes by hop: program, file system, drives in virtual time |
//! | `explore` | power cuts: states mounted and checked, failing ones shrunk |
#![forbid(unsafe_code)]

pub mod account;
mod error;
pub mod explore;
pub mod junit;
pub mod room;
pub mod run;
pub mod tape;

pub use error::TryError;
