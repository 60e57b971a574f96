//! The regular device of a zoned volume, with checksums of what it holds or without.

use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use onefold_format::{CacheHeader, CacheHeaderError, CacheLayout};
use onefold_units::PAGE_BYTES;
use onefold_units::convert::index64;
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
    /// The checksums that it gets when a volume is made.
    wanted: Option<Wanted>,
    begin: Instant,
}

/// How much of a device is cache once it has checksums.
#[derive(Clone, Copy)]
enum Wanted {
    /// As many zones as fit.
    Zones,
    /// So many blocks.
    Blocks(u64),
}

impl DmzCache {
    /// A device on which a volume is to be made; with `checksums` of all that it will hold, which take a thousandth of it.
    #[must_use]
    pub fn to_make(backing: VolumeBacking, checksums: bool) -> Self {
        Self::new(backing, checksums.then_some(Wanted::Zones))
    }

    /// Makes a file for a volume that is to be made, with so many bytes of cache, and with `checksums` room for these.
    ///
    /// # Errors
    /// Something is there already, or the file system refuses.
    pub fn create(path: &Path, bytes: u64, checksums: bool) -> Result<Self, DmzError> {
        let blocks = checksums.then_some(bytes / PAGE_BYTES);
        let all = blocks.map_or(bytes, |blocks| CacheLayout::new(blocks).blocks() * PAGE_BYTES);
        Ok(Self::new(VolumeBacking::create(path, all)?, blocks.map(Wanted::Blocks)))
    }

    fn new(backing: VolumeBacking, wanted: Option<Wanted>) -> Self {
        Self { backing, sums: Arc::default(), wanted, begin: Instant::now() }
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

    /// Whether a device says in its first block that it is that of a volume, with checksums.
    #[must_use]
    pub fn is_one(backing: &VolumeBacking) -> bool {
        let mut block = [0; index64(PAGE_BYTES)];
        let is_read = backing.blocks() > 0 && backing.read(0, &mut block).is_ok();
        is_read && CacheHeader::decode(&block) != Err(CacheHeaderError::None)
    }

    pub(super) fn is_zoned(&self) -> bool {
        self.backing.as_zoned().is_some()
    }

    /// Blocks of cache, in zones of a size.
    pub(super) fn blocks(&self, zone_blocks: u32) -> u64 {
        let all = self.backing.blocks();
        match (self.sums.get(), self.wanted) {
            (Some(sums), _) => sums.blocks(),
            (None, Some(Wanted::Blocks(blocks))) => blocks,
            (None, Some(Wanted::Zones)) => {
                CacheLayout::fitting(all, zone_blocks.into()).data_blocks()
            }
            // A size that was not chosen for zones: what is left of it stays free.
            (None, None) if self.backing.has_given_size() => all - all % u64::from(zone_blocks),
            (None, None) => all,
        }
    }

    /// What it holds; `written` is what is going to be overwritten of the cache, in bytes.
    pub(super) fn contents(&self, zone_blocks: u32, written: &[Range<u64>]) -> Option<Contents> {
        if self.wanted.is_none() {
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
        if self.wanted.is_none() {
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
