//! A zoned namespace in an image file, for whoever writes to zones in the same process.
//!
//! Nothing exports it: neither NBD nor FUSE has commands for zones. A volume can lie on it.
//!
//! 1. What was acknowledged is durable after [`ZonedDevice::flush`], or with a write that asks for it. Before that, the end
//!    of the process is a power cut that takes any end of each zone, and resets and finishes may be undone.
//! 2. What the file does not take waits in memory (`FileMedia`). Meanwhile reads go on, and commands that change something or
//!    make it durable are refused with [`ZonedError::Held`] before they do anything; each tries the file again first. After
//!    a failed synchronisation that lasts until the device is opened again.
//! 3. Lifetime counters are saved before each synchronisation of a flush, and beside commands once a second.
//! 4. It takes no virtual time: latencies are a matter of the simulator.

mod check;
mod details;
mod media;

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use onefold_format::Lifetime;
use onefold_nand::Media;
use onefold_ssd::Payload;
pub use onefold_ssd::zns::{
    Select, ZnsConfig, ZnsError, ZnsRecovery, ZoneAction, ZoneInfo, ZoneLimits, ZoneState,
};
use onefold_ssd::zns::{Zns, ZnsStats, ZoneReport};
use onefold_units::convert::{index, u64_from};
use onefold_units::{Nanos, Op, PAGE_BYTES, ZoneId};
use thiserror::Error;

use crate::backing::Backing;
use crate::host_watch::HostWatch;
use crate::image::{Counting, DeviceError, FlashCounts, Image, Ledger};
use crate::media::{FileMedia, Held, HostFailures};

pub use check::{ZonedCheck, check_zoned, inspect_zoned};
pub use details::{ConventionalDetails, ZonedDetails};

/// No virtual time passes.
const NOW: Nanos = Nanos::ZERO;

/// Time between two savings of the lifetime counters without a flush.
const SAVE_COUNTS: Duration = Duration::from_secs(1);

/// Why a command to a zoned namespace failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ZonedError {
    /// The namespace refused, or a zone failed.
    #[error(transparent)]
    Zone(#[from] ZnsError),
    /// The bytes are no whole blocks of 4 KiB, or more than 2^32 of them.
    #[error("{bytes} B, expected a multiple of 4096 B below 16 TiB")]
    Length {
        /// What was given.
        bytes: usize,
    },
    /// The file takes no writes now.
    #[error("{0}")]
    Held(Held),
    /// The device was closed, or a panic left it in an unknown state.
    #[error("the zoned namespace is closed: open it again")]
    Poisoned,
}

/// What never changes about a zoned namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZonedShape {
    /// Zones of both kinds.
    pub zones: u32,
    /// Conventional ones, which come first.
    pub conventional: u32,
    /// Addresses of a zone in blocks of 4 KiB.
    pub zone_blocks: u32,
    /// Blocks of a sequential zone that can be written.
    pub capacity_blocks: u32,
    /// Open and active zones at most.
    pub limits: ZoneLimits,
}

struct State {
    /// `None` once the device is closed.
    zns: Option<Zns<FileMedia>>,
    image: Image,
    /// What people were told of the host.
    watch: HostWatch,
    counting: Counting,
    /// When the lifetime counters were saved last.
    counts_saved: Instant,
}

struct Shared {
    state: Mutex<State>,
    poisoned: AtomicBool,
    /// Held during a flush; taken before `state`.
    flushing: Mutex<Ledger>,
    backing: Arc<Backing>,
    shape: ZonedShape,
    uuid: [u8; 16],
}

/// A handle of a zoned namespace; copies are the same device.
///
/// Dropping all handles without [`ZonedDevice::close`] is a power cut.
#[derive(Clone)]
pub struct ZonedDevice {
    shared: Arc<Shared>,
}

/// A zoned namespace that was opened, and how.
pub struct ZonedOpened {
    /// The device.
    pub device: ZonedDevice,
    /// What recovery found.
    pub recovery: ZnsRecovery,
    /// The device had been shut down cleanly.
    pub was_clean: bool,
    /// The configuration says that what was acknowledged survives a power cut, which the memory of a process does not.
    pub made_volatile: bool,
}

/// The namespace as a process runs it: its memory, and what the operating system has not written, are a volatile cache.
fn volatile(config: &ZnsConfig) -> ZnsConfig {
    let cache_bytes = config.cache_bytes.max(PAGE_BYTES);
    let mut conventional = config.conventional;
    if let Some(device) = &mut conventional {
        device.buffer.volatile = true;
    }
    ZnsConfig { cache_bytes, cache_volatile: true, conventional, ..*config }
}

impl ZonedDevice {
    /// Recovers the namespace of an image that is open for writing. `config` is the configuration of [`Image::label`].
    ///
    /// # Errors
    /// `config` is not that of the label, or the file failed.
    pub fn open(mut image: Image, config: &ZnsConfig) -> Result<ZonedOpened, DeviceError> {
        image.expect(config)?;
        let was_clean = image.label().clean;
        let made_volatile = config.cache_bytes == 0 || !config.cache_volatile;
        let recovered = media::parts(&image, config, |medium, _, _| Ok(medium))
            .and_then(|media| Zns::recover(volatile(config), media));
        let (mut zns, recovery) = recovered
            .map_err(|source| DeviceError::Zones { path: image.path().to_owned(), source })?;
        zns.set_timed(false);
        let (counting, ledger) = image.begin_use(config)?;
        let shape = ZonedShape {
            zones: config.all_zones(),
            conventional: config.conventional_zones(),
            zone_blocks: config.zone_blocks,
            capacity_blocks: config.capacity_blocks,
            limits: config.limits,
        };
        let (uuid, backing) = (image.label().uuid, image.backing());
        let watch = HostWatch::new(image.path().to_owned());
        let counts_saved = Instant::now();
        let state = State { zns: Some(zns), image, watch, counting, counts_saved };
        let shared = Arc::new(Shared {
            state: Mutex::new(state),
            poisoned: AtomicBool::new(false),
            flushing: Mutex::new(ledger),
            backing,
            shape,
            uuid,
        });
        Ok(ZonedOpened { device: Self { shared }, recovery, was_clean, made_volatile })
    }

    /// Identity of the device.
    #[must_use]
    pub fn uuid(&self) -> [u8; 16] {
        self.shared.uuid
    }

    /// What never changes about it.
    #[must_use]
    pub fn shape(&self) -> ZonedShape {
        self.shared.shape
    }

    /// Reads whole blocks from block `lba` on. What was not written reads as zeroes.
    ///
    /// # Errors
    /// As [`Zns::read`].
    pub fn read(&self, lba: u64, data: &mut [u8]) -> Result<(), ZonedError> {
        let blocks = blocks_of(data)?;
        self.shared.transfer(Op::Read, blocks, |zns| zns.read(NOW, lba, blocks, data).map(drop))
    }

    /// Writes whole blocks from block `lba` on, which has to be the write pointer of its zone, if that has one. With `fua` they are durable
    /// on return.
    ///
    /// # Errors
    /// As [`Zns::write`].
    pub fn write(&self, lba: u64, data: &[u8], fua: bool) -> Result<(), ZonedError> {
        let blocks = blocks_of(data)?;
        self.shared.transfer(Op::Write, blocks, |zns| {
            zns.write(NOW, lba, blocks, fua, &Payload::Write(data)).map(drop)
        })
    }

    /// Lets blocks of a conventional zone read as zeroes.
    ///
    /// # Errors
    /// As [`Zns::deallocate`].
    pub fn deallocate(&self, lba: u64, blocks: u32) -> Result<(), ZonedError> {
        self.shared.transfer(Op::Trim, blocks, |zns| zns.deallocate(NOW, lba, blocks).map(drop))
    }

    /// Makes everything durable that was acknowledged, resets and finishes included. Other commands go on meanwhile.
    ///
    /// # Errors
    /// The file does not take what was written, or failed to make it durable. Nothing may be assumed durable then.
    pub fn flush(&self) -> Result<(), ZonedError> {
        self.shared.flush()
    }

    /// Opens, closes, finishes or resets zones.
    ///
    /// # Errors
    /// As [`Zns::manage`].
    pub fn manage(&self, select: Select, action: ZoneAction) -> Result<(), ZonedError> {
        self.shared.change(|zns| zns.manage(NOW, select, action).map(drop))
    }

    /// A fault drill: from now on a zone can only be read, or not even that.
    ///
    /// # Errors
    /// As [`Zns::fail_zone`].
    pub fn fail_zone(&self, zone: ZoneId, offline: bool) -> Result<(), ZonedError> {
        self.shared.change(|zns| zns.fail_zone(zone, offline))
    }

    /// Reports zones from `first` on, those in `state` or all.
    ///
    /// # Errors
    /// As [`Zns::report`].
    pub fn report(
        &self,
        first: ZoneId,
        state: Option<ZoneState>,
    ) -> Result<ZoneReport, ZonedError> {
        let max = index(self.shared.shape.zones);
        self.shared.run(|zns| zns.report(first, state, max, true))
    }

    /// Reports one zone.
    ///
    /// # Errors
    /// As [`Zns::report`].
    pub fn zone(&self, zone: ZoneId) -> Result<ZoneInfo, ZonedError> {
        let found = self.shared.run(|zns| zns.report(zone, None, 1, true))?;
        found.zones.into_iter().next().ok_or(ZonedError::Poisoned)
    }

    /// Counters of the device's whole life, as they are now; `None` once the device is closed.
    #[must_use]
    pub fn lifetime(&self) -> Option<Lifetime> {
        let state = self.shared.state();
        Some(state.counting.total(flash_counts(state.zns.as_ref()?)))
    }

    /// Everything that is known of the device; `None` once it is closed.
    #[must_use]
    pub fn details(&self) -> Option<ZonedDetails> {
        self.shared.state().zns.as_ref().map(ZonedDetails::of)
    }

    /// Ends the device in good order: everything is written, and the next opening has nothing to recover. Open zones are
    /// closed then, as after any loss of power. Commands after that are answered with [`ZonedError::Poisoned`].
    pub fn close(&self) -> Result<(), DeviceError> {
        let mut ledger = self.shared.flushing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut state = self.shared.state();
        let Some(mut zns) = state.zns.take() else { return Ok(()) };
        let path = state.image.path().to_owned();
        if self.shared.poisoned.swap(true, Relaxed) {
            return Err(DeviceError::Poisoned { path });
        }
        let down = zns.shut_down(NOW);
        let settled = media::of(&mut zns).try_for_each(FileMedia::settle);
        settled.map_err(|held| DeviceError::Held { path: path.clone(), held })?;
        down.map_err(|source| DeviceError::CloseZones { path, source })?;
        let counters = state.counting.total(flash_counts(&zns));
        state.image.end_use(&mut ledger, &counters)
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|broken: PoisonError<_>| {
            // A panic left the device in an unknown state: as after an error of the file.
            self.poisoned.store(true, Relaxed);
            broken.into_inner()
        })
    }

    fn usable(&self) -> Result<MutexGuard<'_, State>, ZonedError> {
        let state = self.state();
        if self.poisoned.load(Relaxed) { Err(ZonedError::Poisoned) } else { Ok(state) }
    }

    /// Runs a command that changes nothing.
    fn run<T>(
        &self,
        command: impl FnOnce(&mut Zns<FileMedia>) -> Result<T, ZnsError>,
    ) -> Result<T, ZonedError> {
        self.usable()?.run(command)
    }

    /// Runs a command that changes something, if the file takes changes (invariant 2).
    fn change<T>(
        &self,
        command: impl FnOnce(&mut Zns<FileMedia>) -> Result<T, ZnsError>,
    ) -> Result<T, ZonedError> {
        let mut state = self.usable()?;
        state.drain()?;
        state.run(command)
    }

    /// Runs a command of the host that moves bytes, and counts it.
    fn transfer(
        &self,
        op: Op,
        blocks: u32,
        command: impl FnOnce(&mut Zns<FileMedia>) -> Result<(), ZnsError>,
    ) -> Result<(), ZonedError> {
        let mut state = self.usable()?;
        if op != Op::Read {
            state.drain()?;
        }
        let done = state.run(command);
        match &done {
            Ok(()) => state.counting.done(op, u64::from(blocks) * PAGE_BYTES),
            Err(ZonedError::Zone(error)) if op == Op::Read && error.is_unreadable() => {
                state.counting.host.failed_reads += 1;
            }
            Err(_) => {}
        }
        // A flush that is under way has saved the counters (invariant 3).
        if state.counts_saved.elapsed() >= SAVE_COUNTS
            && let Ok(mut ledger) = self.flushing.try_lock()
        {
            state.save_counts(&mut ledger);
        }
        done
    }

    /// Two halves with the synchronisation of the file between them, during which nobody holds the lock of the device.
    fn flush(&self) -> Result<(), ZonedError> {
        let mut ledger = self.flushing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut state = self.usable()?;
        state.drain()?;
        let begun = state.run(|zns| {
            media::of(zns).for_each(FileMedia::postpone_sync);
            let begun = zns.begin_flush(NOW);
            zns.nand_mut().media_mut().sync().map_err(ZnsError::Media)?;
            begun
        });
        let drained = state.drain();
        let zns = state.zns.as_mut().ok_or(ZonedError::Poisoned)?;
        let flushing = match (begun, drained) {
            (Ok(flushing), Ok(())) => flushing,
            (begun, drained) => {
                media::of(zns).for_each(FileMedia::sync_after_all);
                if let Ok(flushing) = &begun {
                    zns.abandon_flush(flushing);
                }
                begun?;
                return drained;
            }
        };
        // What was postponed is one synchronisation of the file.
        let tickets: Vec<_> = media::of(zns).map(FileMedia::begin_sync).collect();
        state.save_counts(&mut ledger);
        drop(state);
        let synced = self.backing.sync_for_good();
        let mut state = self.usable()?;
        let zns = state.zns.as_mut().ok_or(ZonedError::Poisoned)?;
        if let Err(error) = synced {
            let held = media::of(zns).map(|media| media.sync_failed(&error)).last();
            zns.abandon_flush(&flushing);
            state.look();
            return held.map_or(Err(ZonedError::Poisoned), |held| Err(ZonedError::Held(held)));
        }
        ledger.synced();
        for (media, (ticket, mark)) in media::of(zns).zip(tickets) {
            media.synced(ticket, mark);
        }
        state.run(|zns| zns.end_flush(&flushing))
    }
}

impl State {
    fn run<T>(
        &mut self,
        command: impl FnOnce(&mut Zns<FileMedia>) -> Result<T, ZnsError>,
    ) -> Result<T, ZonedError> {
        let done = command(self.zns.as_mut().ok_or(ZonedError::Poisoned)?);
        self.look();
        Ok(done?)
    }

    /// Brings to the file what it did not take before.
    fn drain(&mut self) -> Result<(), ZonedError> {
        let zns = self.zns.as_mut().ok_or(ZonedError::Poisoned)?;
        let drained = media::of(zns).try_for_each(FileMedia::drain);
        if drained.is_err() {
            self.watch.refused();
        }
        self.look();
        drained.map_err(ZonedError::Held)
    }

    /// Saves the lifetime counters if the file takes changes. It tells everybody else if it does not.
    fn save_counts(&mut self, ledger: &mut Ledger) {
        let Some(zns) = &mut self.zns else { return };
        if media::of(zns).any(|media| media.held().is_some()) {
            return;
        }
        self.counts_saved = Instant::now();
        let _ = ledger.save(&self.counting.total(flash_counts(zns)));
    }

    /// Tells people when the host began or ceased to fail.
    fn look(&mut self) {
        let Some(zns) = &mut self.zns else { return };
        let held = media::of(zns).filter_map(|media| media.held()).last();
        let failures = media::of(zns).map(|media| media.store().failures());
        self.watch.look(held, failures.fold(HostFailures::default(), HostFailures::plus));
    }
}

fn flash_counts(zns: &Zns<FileMedia>) -> FlashCounts {
    let ZnsStats { programs, erases, media_failures, .. } = zns.stats();
    FlashCounts { programs, erases, media_failures }
}

fn blocks_of(bytes: &[u8]) -> Result<u32, ZonedError> {
    let len = u64_from(bytes.len());
    let whole = len.is_multiple_of(PAGE_BYTES).then(|| u32::try_from(len / PAGE_BYTES).ok());
    whole.flatten().ok_or(ZonedError::Length { bytes: bytes.len() })
}
