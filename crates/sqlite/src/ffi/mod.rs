//! The interface of SQLite and two system calls: the only `unsafe` of this crate.
//!
//! 1. SQLite calls a method with a file that [`vfs`] opened, until `close`; the state beside it lives exactly as long.
//! 2. SQLite uses the files of a connection in one thread at a time, and closes the WAL before the database.
//! 3. Buffers that SQLite passes are valid for their length while the call lasts.

#![expect(
    unsafe_code,
    reason = "SQLite's interface is one of C; the invariants above are kept here"
)]

mod abi;
mod api;
mod companion;
mod database;
mod entry;
mod file;
mod os;
mod real;
mod vfs;
mod wal;
