//! A zoned namespace (NVMe ZNS) on the flash array (zoned.md section 2).
//!
//! Terms. A *zone* is `zone_blocks` addresses of which the first `capacity_blocks` can be written, from start to end. Its
//! data lies in a *set*: flash blocks of as many dies as a zone is wide, one or more superblocks of each. Flash pages of a
//! zone go to the superblocks side by side in turn. Blocks, here as everywhere in this module, are 4 KiB.
//!
//! 1. A zone has a set from its first write until its reset; no two zones share one. Sets are interchangeable: a zone takes
//!    the one that was erased least often, and one whose blocks fail is left for another, as long as there are spare ones.
//! 2. Block `n` of a zone lies at slot `n` of its set, and a flash page is programmed when it is full. What does not fill a
//!    page waits in RAM: it is *staged*.
//! 3. Without a volatile cache, a staged block is in NVRAM before its write completes. With one, FLUSH puts it there.
//! 4. NVRAM says which set a zone has, before anything is programmed there, and which zones are finished, read only or
//!    offline. Write pointers are not stored: recovery finds them on flash and among staged blocks.
//! 5. A set is erased after NVRAM says that no zone has it, and given to a zone after NVRAM says that it is used.
//!
//! The first zones may be conventional (`conventional.rs`). There is no zone descriptor extension and no random write area.

mod allocate;
mod blocks;
mod cache;
mod command;
mod config;
mod conventional;
mod device;
mod flush;
mod layout;
mod manage;
mod media;
mod read;
mod recover;
mod spares;
mod state;
mod stats;
mod unsynced;
mod write;

pub use command::{Select, ZnsError, ZoneAction, ZoneInfo, ZoneReport};
pub use config::{ZnsConfig, ZnsConfigError, ZoneLimits};
pub use device::Zns;
pub use flush::Flushing;
pub use layout::{ConventionalShare, ZnsLayout};
pub use media::ZnsMedia;
pub use recover::{ZnsRecoverError, ZnsRecovery};
pub use state::ZoneState;
pub use stats::ZnsStats;
pub use write::Appended;
