//! Tests of the buffer through its public interface.

mod cases;
mod common;
mod device;
mod golden;
mod policies;
mod replacement;
