//! Front ends: NBD, FUSE, metrics.
//!
//! A front end turns a protocol into calls of [`onefold_device::BlockDevice`]. [`Server`] starts
//! the chosen ones for one device and stops them in good order.

mod error;
mod fuse;
mod limits;
mod memory;
mod metrics;
pub mod nbd;
mod notify;
mod server;

pub use error::ServeError;
pub use fuse::{Files, Folder};
pub use limits::Limits;
pub use memory::ConnectionMemory;
pub use server::{Options, Server, record, run};
