//! The regular device of a zoned volume, with checksums of what it holds or without.

use std::ops::Range;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use onefold_format::{CacheHeader, CacheLayout};
use onefold_units::PAGE_BYTES;
use onefold_zoned::IoFailed;

use super::DmzError;
use crate::contents::Contents;
use crate::sums::{self, CacheScan, CacheSums, Summed};
use crate::volume::{VolumeBacking, random_uuid};

/// A file or a block device whose space is the cache of a volume.
#[derive(Clone)]
pub struct DmzCache {
    backing: VolumeBacking,
    sums: Arc<OnceLock<Summed<VolumeBacking>>>,
    /// It gets checksums when a volume is made.
    is_to_have_sums: bool,
    begin: Instant,
}

impl DmzCache {
    /// A device on which a volume is to be made; with `checksums` of all that it will hold, which take a thousandth of it.
    #[must_use]
    pub fn to_make(backing: VolumeBacking, checksums: bool) -> Self {
        let (sums, begin) = (Arc::default(), Instant::now());
        Self { backing, sums, is_to_have_sums: checksums, begin }
    }

    /// The device of a volume that was made, which tells whether it has checksums. With `write` those that a crash left open are
    /// made anew.
    ///
    /// # Errors
    /// It is of a newer build, or cannot be read or written.
    pub fn open(backing: VolumeBacking, write: bool) -> Result<Self, DmzError> {
        let this = Self::to_make(backing, false);
        if let Some(found) = sums::find(&this.backing)? {
            let summed = Summed::open(this.backing.clone(), &found, write);
            let _ = this.sums.set(summed.map_err(|_| DmzError::Sums)?);
        }
        Ok(this)
    }

    /// Whether a device is that of a volume, with checksums.
    #[must_use]
    pub fn is_one(backing: &VolumeBacking) -> bool {
        backing.zones().is_ok_and(|zones| zones.is_none())
            && !matches!(sums::find(backing), Ok(None))
    }

    /// Bytes of a file with room for so many bytes of cache and their checksums.
    #[must_use]
    pub fn bytes_with_checksums(bytes: u64) -> u64 {
        CacheLayout::new(bytes / PAGE_BYTES).blocks() * PAGE_BYTES
    }

    pub(super) fn is_zoned(&self) -> bool {
        self.backing.as_zoned().is_some()
    }

    /// Blocks of cache, in zones of a size.
    pub(super) fn blocks(&self, zone_blocks: u32) -> u64 {
        let all = self.backing.blocks();
        match self.sums.get() {
            Some(sums) => sums.blocks(),
            None if self.is_to_have_sums => {
                CacheLayout::fitting(all, zone_blocks.into()).data_blocks()
            }
            None => all,
        }
    }

    /// What it holds; `written` is what is going to be overwritten of the cache, in bytes.
    pub(super) fn contents(&self, zone_blocks: u32, written: &[Range<u64>]) -> Option<Contents> {
        if !self.is_to_have_sums {
            return self.backing.contents(written);
        }
        let layout = CacheLayout::new(self.blocks(zone_blocks));
        let shift = layout.data_at() * PAGE_BYTES;
        let own = layout.bits_at() * PAGE_BYTES..layout.blocks() * PAGE_BYTES;
        let data = written.iter().map(|range| range.start + shift..range.end + shift);
        self.backing.contents(&data.chain([0..shift, own]).collect::<Vec<_>>())
    }

    /// Makes the checksums of a new volume, or takes away what is left of those of an old one.
    pub(super) fn make(&self, zone_blocks: u32) -> Result<(), DmzError> {
        if !self.is_to_have_sums {
            return sums::forget(&self.backing).map_err(|_| DmzError::Sums);
        }
        let layout = CacheLayout::new(self.blocks(zone_blocks));
        let header = CacheHeader { uuid: random_uuid()?, layout };
        let made = Summed::make(self.backing.clone(), header).map_err(|_| DmzError::Sums)?;
        let _ = self.sums.set(made);
        Ok(())
    }

    pub(super) fn read(&self, at: u64, bytes: &mut [u8]) -> Result<(), IoFailed> {
        match self.sums.get() {
            Some(sums) => sums.read(at, bytes),
            None => self.backing.read(at, bytes),
        }
    }

    /// Reads metadata, which has checksums of its own and lies twice.
    pub(super) fn read_unjudged(&self, at: u64, bytes: &mut [u8]) -> Result<(), IoFailed> {
        match self.sums.get() {
            Some(sums) => sums.read_unjudged(at, bytes),
            None => self.backing.read(at, bytes),
        }
    }

    pub(super) fn write(&self, at: u64, bytes: &[u8]) -> Result<(), IoFailed> {
        match self.sums.get() {
            Some(sums) => sums.write(at, bytes),
            None => self.backing.write(at, bytes),
        }
    }

    pub(super) fn flush(&self) -> Result<(), IoFailed> {
        match self.sums.get() {
            Some(sums) => sums.flush(self.begin.elapsed()),
            None => self.backing.flush(),
        }
    }

    /// When [`Self::tidy`] has something to do.
    pub(super) fn due(&self) -> Option<Instant> {
        Some(self.begin + self.sums.get()?.due()?)
    }

    /// Makes checksums durable that nobody asks for, if it is time: a failure is told to the next flush.
    pub(super) fn tidy(&self) {
        let is_due = |due: Duration| due <= self.begin.elapsed();
        if let Some(sums) = self.sums.get().filter(|sums| sums.due().is_some_and(is_due)) {
            let _ = sums.flush(self.begin.elapsed());
        }
    }

    /// What is known of the checksums; `None` if there are none.
    #[must_use]
    pub fn sums(&self) -> Option<CacheSums> {
        Some(self.sums.get()?.details())
    }

    /// Compares all that the cache holds with its checksums; `None` if there are none. Nothing may be written meanwhile.
    #[must_use]
    pub fn scan(&self) -> Option<CacheScan> {
        Some(self.sums.get()?.scan())
    }

    pub(super) fn close(&self) -> Result<(), DmzError> {
        if let Some(Err(_)) = self.sums.get().map(Summed::close) {
            tracing::warn!("checksums of the cache are made anew when the volume is opened again");
        }
        Ok(self.backing.close()?)
    }
}
