//! What a recording costs, tapes, and the file systems that programs are tried on.

mod account;
mod room;
mod tape;
