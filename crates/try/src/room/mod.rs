//! Where a program runs: file systems, mounts, and the tools of the system that both need.

mod file_system;
mod mounted;
mod namespace;
mod tool;

pub use file_system::FileSystem;
pub use mounted::Mounted;
pub use namespace::keep_mounts_private;
pub(crate) use tool::Tool;
