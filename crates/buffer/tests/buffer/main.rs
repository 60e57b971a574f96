//! Tests of the buffer through its public interface.

mod cases;
mod common;
mod device;
mod golden;
mod offline;
mod policies;
mod replacement;
