//! The extension in an unmodified SQLite: the bundled one, and that of Debian where `sqlite3` is installed.

mod clones;
mod common;
mod crash;
mod device;
mod full;
mod layouts;
mod model;
mod recover;
