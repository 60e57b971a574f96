//! Where a program runs: file systems, mounts, and the tools of the system that both need.

mod file_system;
mod mounted;
mod namespace;
mod place;
mod processes;
mod tool;

pub use file_system::FileSystem;
pub use mounted::Mounted;
pub use namespace::keep_mounts_private;
pub use place::Place;
pub(crate) use tool::SYNC;

/// The variable by which a program finds the socket for marks, and by which its processes are found.
pub(crate) const MARKS_VARIABLE: &str = "ONEFOLD_TRY";
