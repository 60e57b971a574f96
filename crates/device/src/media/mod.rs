//! Flash arrays whose bytes are in an image file.

mod backlog;
mod erases;
mod file;
mod held;
mod overlay;
mod runs;
mod store;

pub use file::FileMedia;
pub(crate) use file::Ticket;
pub use held::Held;
pub(crate) use overlay::Overlay;
pub(crate) use store::HostFailures;
