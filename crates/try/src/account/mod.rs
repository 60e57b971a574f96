//! What a program cost, hop by hop: the program, the file system, drives.

mod behind;
pub mod drives;

pub use behind::{BehindError, volume_keys};
