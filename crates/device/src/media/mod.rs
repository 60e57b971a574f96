//! Flash arrays whose bytes are in an image file.

mod erases;
mod file;
mod overlay;
mod runs;

pub use file::FileMedia;
pub(crate) use file::Ticket;
pub(crate) use overlay::Overlay;
