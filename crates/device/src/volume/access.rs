//! The file or block device under a volume.

use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use onefold_units::ZoneId;
use onefold_volume::{IoFailed, ZoneReport, ZoneStatus};

use super::disk_zones::DiskZones;
use super::error::VolumeError;
use super::kernel::{self, BlkZoneReport};
use super::unit::{self, Told};
use crate::backing::{Access, Backing, failure};
use crate::quiet::Quiet;

/// A process that was killed keeps its lock until the kernel is through with its last requests. That is as it should be:
/// none of them comes after those of the next one.
const LOCK_PATIENCE: Duration = Duration::from_millis(500);
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// An open and locked file.
pub(super) struct DirectFile {
    path: PathBuf,
    backing: Backing,
    bytes: AtomicU64,
    flash: Told,
    is_block_device: bool,
    /// Zones of a block device.
    zones: Option<DiskZones>,
    /// Requests until the last one that fails, for tests; 0: none does.
    fails_until: AtomicU64,
    /// How many fail.
    failures: AtomicU64,
    /// Failures that people were told of: one without room, and others.
    told: [Quiet; 2],
}

impl DirectFile {
    pub(super) fn open(path: &Path, write: bool) -> Result<Self, VolumeError> {
        let access = if write { Access::Exclusive } else { Access::ReadOnly };
        let failed = |source: io::Error| match source.kind() {
            io::ErrorKind::ResourceBusy => VolumeError::Busy { path: path.to_owned() },
            _ => VolumeError::Io { path: path.to_owned(), action: "open", source },
        };
        let backing = Backing::open(path, access).map_err(failed)?;
        let patience = Instant::now() + LOCK_PATIENCE;
        while !backing.try_lock(access).map_err(failed)? {
            if Instant::now() > patience {
                return Err(VolumeError::Busy { path: path.to_owned() });
            }
            std::thread::sleep(LOCK_PAUSE);
        }
        let bytes = backing.end().map_err(failed)?;
        Self::new(path, backing, bytes).map_err(failed)
    }

    /// Whether another process has it open to write. Cannot tell of what cannot be opened.
    pub(super) fn is_busy(path: &Path) -> bool {
        let opened = Backing::open(path, Access::ReadOnly);
        opened.is_ok_and(|backing| !backing.try_lock(Access::ReadOnly).unwrap_or(true))
    }

    /// Lets others open it, whatever the kernel still holds of it.
    pub(super) fn unlock(&self) {
        if let Err(error) = self.backing.unlock() {
            tracing::warn!(path = %self.path.display(), %error, "the lock stays until this process ends");
        }
    }

    pub(super) fn create(path: &Path, bytes: u64) -> Result<Self, VolumeError> {
        let failed = |source: io::Error| match source.kind() {
            io::ErrorKind::AlreadyExists => VolumeError::Exists { path: path.to_owned() },
            _ => VolumeError::Io { path: path.to_owned(), action: "create", source },
        };
        let backing = Backing::create_new(path).map_err(failed)?;
        backing.try_lock(Access::Exclusive).map_err(failed)?;
        backing.set_size(bytes).map_err(failed)?;
        crate::backing::sync_directory_of(path).map_err(failed)?;
        Self::new(path, backing, bytes).map_err(failed)
    }

    fn new(path: &Path, backing: Backing, bytes: u64) -> io::Result<Self> {
        let number = backing.device_number()?;
        let mut ask = |reply: &mut BlkZoneReport| kernel::report_zones(&backing, reply);
        let zones = number.map(|number| DiskZones::find(&mut ask, number)).transpose()?.flatten();
        if zones.is_some() {
            // The page cache writes in whatever order it likes.
            backing.go_direct()?;
        }
        let is_block_device = number.is_some();
        let flash = match number {
            None => unit::of_file(path),
            Some(_) if zones.is_some() => Told::NOTHING,
            Some(number) => unit::of_block_device(number),
        };
        let path = path.to_owned();
        let (bytes, fails_until, failures) =
            (AtomicU64::new(bytes), AtomicU64::new(0), AtomicU64::new(0));
        let told = Default::default();
        Ok(Self {
            path,
            backing,
            bytes,
            flash,
            is_block_device,
            zones,
            fails_until,
            failures,
            told,
        })
    }

    /// What the device tells of its flash.
    pub(super) const fn flash(&self) -> Told {
        self.flash
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Relaxed)
    }

    /// The parts of a file that are not holes.
    pub(super) fn data(&self) -> Vec<Range<u64>> {
        self.backing.data(self.bytes())
    }

    /// Whether it is a file, whose size can be set.
    pub(super) const fn is_regular(&self) -> bool {
        !self.is_block_device
    }

    pub(super) fn set_bytes(&self, bytes: u64) -> Result<(), VolumeError> {
        let path = || self.path.clone();
        let failed = |source| VolumeError::Io { path: path(), action: "resize", source };
        self.backing.set_size(bytes).map_err(failed)?;
        self.backing.sync().map_err(failed)?;
        self.bytes.store(bytes, Relaxed);
        Ok(())
    }

    pub(super) const fn is_block_device(&self) -> bool {
        self.is_block_device
    }

    /// Goes around the page cache from now on, if that is possible.
    pub(super) fn go_direct(&self) -> io::Result<()> {
        self.backing.go_direct()
    }

    pub(super) fn is_direct(&self) -> bool {
        self.backing.is_direct()
    }

    /// The `first` request from now on, counted from 1, and those after it fail without being carried out, `count` in all.
    pub(super) fn fail(&self, first: u64, count: u64) {
        self.failures.store(count, Relaxed);
        self.fails_until.store(if count == 0 { 0 } else { first + count - 1 }, Relaxed);
    }

    /// Requests that may still come before the last one that is to fail.
    pub(super) fn left_before_failure(&self) -> u64 {
        self.fails_until.load(Relaxed)
    }

    /// Whether the next request is one that is to fail.
    pub(super) fn is_to_fail(&self) -> bool {
        // Read first: the common case must not write a line that all threads share.
        self.fails_until.load(Relaxed) > 0
            && self
                .fails_until
                .fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1))
                .is_ok_and(|left| left <= self.failures.load(Relaxed))
    }

    pub(super) fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<(), IoFailed> {
        self.carry_out("read", || self.backing.read_at(offset, bytes))
    }

    pub(super) fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), IoFailed> {
        self.carry_out("write", || self.backing.write_at(offset, bytes))
    }

    /// Writes, and does not return before that is durable.
    pub(super) fn write_durable(&self, offset: u64, bytes: &[u8]) -> Result<(), IoFailed> {
        self.carry_out("write", || self.backing.write_durable_at(offset, bytes))
    }

    /// Makes a range read as zeroes.
    pub(super) fn zero(&self, offset: u64, len: u64) -> Result<(), IoFailed> {
        self.carry_out("write zeroes", || self.backing.zero(offset, len))
    }

    pub(super) fn flush(&self) -> Result<(), IoFailed> {
        self.carry_out("flush", || self.backing.sync())
    }

    /// A hint: a file system or device that cannot do it keeps the blocks.
    pub(super) fn trim(&self, offset: u64, len: u64) -> Result<(), IoFailed> {
        self.carry_out("trim", || {
            if self.is_block_device {
                kernel::discard(self, offset, len)
            } else {
                self.backing.punch(offset, len).map(drop)
            }
        })
    }

    /// Whether it is a block device with zones.
    pub(super) const fn is_zoned(&self) -> bool {
        self.zones.is_some()
    }

    /// What the kernel says of the zones now; `None` if there are none.
    pub(super) fn zones(&self) -> Result<Option<ZoneReport>, IoFailed> {
        let Some(zones) = &self.zones else { return Ok(None) };
        let mut ask = |reply: &mut BlkZoneReport| kernel::report_zones(self, reply);
        self.judge("zone report", zones.report(&mut ask)).map(Some)
    }

    /// What the kernel says of one zone now.
    pub(super) fn zone(&self, zone: ZoneId) -> Result<ZoneStatus, IoFailed> {
        let zones = self.zones.ok_or(IoFailed::Error)?;
        let mut ask = |reply: &mut BlkZoneReport| kernel::report_zones(self, reply);
        self.judge("zone report", zones.status(&mut ask, zone))
    }

    pub(super) fn reset(&self, zone: ZoneId) -> Result<(), IoFailed> {
        let (start, len) = self.zones.ok_or(IoFailed::Error)?.sectors(zone);
        self.carry_out("reset", || kernel::reset_zones(self, start, len))
    }

    pub(super) fn finish(&self, zone: ZoneId) -> Result<(), IoFailed> {
        let (start, len) = self.zones.ok_or(IoFailed::Error)?.sectors(zone);
        self.carry_out("finish", || kernel::finish_zones(self, start, len))
    }

    fn carry_out(
        &self,
        action: &str,
        what: impl FnOnce() -> io::Result<()>,
    ) -> Result<(), IoFailed> {
        if self.is_to_fail() { Err(IoFailed::Error) } else { self.judge(action, what()) }
    }

    pub(super) fn judge<T>(&self, action: &str, result: io::Result<T>) -> Result<T, IoFailed> {
        result.map_err(|error| {
            let failed = failure(&error);
            self.tell(action, failed, &error);
            failed
        })
    }

    fn tell(&self, action: &str, failed: IoFailed, error: &io::Error) {
        let path = self.path.display();
        match failed {
            IoFailed::NoSpace => {
                if let Some(times) = self.told[0].happened() {
                    tracing::error!(
                        times,
                        "{path}: the file system of the host is full, or a quota is used up: make room"
                    );
                }
            }
            IoFailed::Error => {
                if let Some(times) = self.told[1].happened() {
                    tracing::error!(%error, action, times, "{path}: the backing failed");
                }
            }
        }
    }
}

impl AsFd for DirectFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.backing.as_fd()
    }
}
