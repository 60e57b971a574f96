//! Real-time driver: block devices backed by files, their statistics and their recording.
//!
//! An [`Image`] is a file that holds an emulated SSD; [`SsdDevice`] runs it as a [`BlockDevice`];
//! [`check()`] looks at one without changing it. Remaps and snapshots go through its [`mailbox`].

// Tests that see behind the interface use the small devices of those that do not.
#[cfg(test)]
extern crate self as onefold_device;

mod at_rest;
mod backing;
mod block;
mod check;
mod contents;
mod dmz;
mod driver;
#[cfg(test)]
mod host_faults;
mod host_room;
mod host_watch;
mod image;
pub mod mailbox;
mod media;
pub mod observed;
mod quiet;
mod ssd;
mod sums;
mod volume;
mod write_log;
mod zoned;

pub use at_rest::{AtRest, at_rest};
pub use backing::Access;
pub use block::{BlockDevice, Due, Extent, RemapWatcher, RemappedRange, SizeWatcher};
pub use check::{CheckReport, LISTED_MAX, check, inspect};
pub use contents::{Contents, looks_like};
pub use dmz::{
    DmzCache, DmzChecked, DmzDetails, DmzDevices, DmzError, DmzMade, DmzOpened, DmzOptions,
    DmzVolume,
};
pub use host_room::HostRoom;
pub use image::{DeviceError, DeviceKind, Image, KeptLifetime};
pub use media::{FileMedia, Held};
pub use onefold_format::Lifetime;
pub use ssd::{
    CONTROL_BYTES, Latency, MailboxBlock, OpenOptions, Opened, PowerCut, SsdDetails, SsdDevice,
};
pub use sums::{CacheScan, CacheSums};
pub use volume::{
    IoMode, JournalDetails, Journals, Layer, LogDetails, MAP_PAGE_BYTES, OnFull, Replayed,
    VolumeBacking, VolumeDetails, VolumeDevice, VolumeError, VolumeIo, VolumeOpened, VolumeOptions,
    VolumeResize, VolumeSpec,
};
pub use write_log::{Keeps, Logged, WriteLog, WriteLogError, WriteLogReader};
pub use zoned::{
    ConventionalDetails, Select, ZnsConfig, ZnsError, ZnsRecovery, ZoneAction, ZoneInfo,
    ZoneLimits, ZoneState, ZonedCheck, ZonedDetails, ZonedDevice, ZonedError, ZonedOpened,
    ZonedShape, check_zoned, inspect_zoned,
};
