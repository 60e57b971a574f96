//! Words that every layer shares: newtypes for addresses, counts and times, the commands of a block
//! interface, the causes of flash traffic, policies by name, and the deterministic random generator.
//!
//! Nothing here does I/O, reads a clock or allocates per request.
#![forbid(unsafe_code)]
#![deny(clippy::as_conversions)]

mod addresses;
mod cause;
mod command;
pub mod convert;
mod divisor;
mod keep;
pub mod numbers;
pub mod policy;
mod quantities;
mod rng;
mod zone;

pub use addresses::{Lba, Location, LogSegmentId, Lpn, Ppn, Seq, SuperblockId, ZoneId};
pub use cause::{Cause, CauseCounts};
pub use command::{IoFailed, Op, Status};
pub use divisor::Divisor;
pub use keep::{GiveBlock, Keep, KeepError, Keeper, TakeBlock};
pub use quantities::{Bytes, Nanos, Pages};
pub use rng::Rng;
pub use zone::ZoneState;

/// Size of the host-visible block that every count called "pages" refers to, in bytes.
///
/// Requests are cut at this size, whatever the flash page or the indirection unit is, so that
/// write amplification compares like with like across devices.
pub const PAGE_BYTES: u64 = 4096;

/// Size of the smallest addressable sector of the block interfaces, in bytes.
pub const SECTOR_BYTES: u64 = 512;
