//! A zoned namespace in an image file, for whoever writes to zones in the same process.
//!
//! Nothing exports it: neither NBD nor FUSE has commands for zones. A volume can lie on it.
//!
//! 1. What was acknowledged is durable after [`ZonedDevice::flush`], or with a write that asks for it. Before that, the end
//!    of the process is a power cut that takes any end of each zone, and resets and finishes may be undone.
//! 2. After a failed access to the file the device answers [`ZonedError::Poisoned`] until it is opened again.
//! 3. It takes no virtual time: latencies are a matter of the simulator.

mod check;
mod details;
mod media;

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use onefold_nand::{Media, MediaError};
use onefold_ssd::Payload;
pub use onefold_ssd::zns::{
    Select, ZnsConfig, ZnsError, ZnsRecovery, ZoneAction, ZoneInfo, ZoneLimits, ZoneState,
};
use onefold_ssd::zns::{Zns, ZoneReport};
use onefold_units::convert::{index, u64_from};
use onefold_units::{Nanos, PAGE_BYTES, ZoneId};
use thiserror::Error;

use crate::backing::Backing;
use crate::image::{DeviceError, Image};
use crate::media::FileMedia;

pub use check::{ZonedCheck, check_zoned, inspect_zoned};
pub use details::{ConventionalDetails, ZonedDetails};

/// No virtual time passes.
const NOW: Nanos = Nanos::ZERO;

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
    /// The file failed before, or the device was closed.
    #[error("the zoned namespace stopped, because its file failed or it was closed: open it again")]
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
}

struct Shared {
    state: Mutex<State>,
    poisoned: AtomicBool,
    /// Held during a flush; taken before `state`.
    flushing: Mutex<()>,
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
        image.begin_use(config)?;
        let shape = ZonedShape {
            zones: config.all_zones(),
            conventional: config.conventional_zones(),
            zone_blocks: config.zone_blocks,
            capacity_blocks: config.capacity_blocks,
            limits: config.limits,
        };
        let (uuid, backing) = (image.label().uuid, image.backing());
        let state = Mutex::new(State { zns: Some(zns), image });
        let shared = Arc::new(Shared {
            state,
            poisoned: AtomicBool::new(false),
            flushing: Mutex::default(),
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
        self.shared.run(|zns| zns.read(NOW, lba, blocks, data).map(drop))
    }

    /// Writes whole blocks from block `lba` on, which has to be the write pointer of its zone, if that has one. With `fua` they are durable
    /// on return.
    ///
    /// # Errors
    /// As [`Zns::write`].
    pub fn write(&self, lba: u64, data: &[u8], fua: bool) -> Result<(), ZonedError> {
        let blocks = blocks_of(data)?;
        self.shared.run(|zns| zns.write(NOW, lba, blocks, fua, &Payload::Write(data)).map(drop))
    }

    /// Lets blocks of a conventional zone read as zeroes.
    ///
    /// # Errors
    /// As [`Zns::deallocate`].
    pub fn deallocate(&self, lba: u64, blocks: u32) -> Result<(), ZonedError> {
        self.shared.run(|zns| zns.deallocate(NOW, lba, blocks).map(drop))
    }

    /// Makes everything durable that was acknowledged, resets and finishes included. Other commands go on meanwhile.
    ///
    /// # Errors
    /// The file failed; what is durable is unknown then, and the device stops.
    pub fn flush(&self) -> Result<(), ZonedError> {
        let result = self.shared.flush();
        if let Err(error) = &result {
            self.shared.poison(error);
        }
        result
    }

    /// Opens, closes, finishes or resets zones.
    ///
    /// # Errors
    /// As [`Zns::manage`].
    pub fn manage(&self, select: Select, action: ZoneAction) -> Result<(), ZonedError> {
        self.shared.run(|zns| zns.manage(NOW, select, action).map(drop))
    }

    /// A fault drill: from now on a zone can only be read, or not even that.
    ///
    /// # Errors
    /// As [`Zns::fail_zone`].
    pub fn fail_zone(&self, zone: ZoneId, offline: bool) -> Result<(), ZonedError> {
        self.shared.run(|zns| zns.fail_zone(zone, offline))
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

    /// Everything that is known of the device; `None` once it is closed.
    #[must_use]
    pub fn details(&self) -> Option<ZonedDetails> {
        self.shared.state().zns.as_ref().map(ZonedDetails::of)
    }

    /// Ends the device in good order: everything is written, and the next opening has nothing to recover. Open zones are
    /// closed then, as after any loss of power. Commands after that are answered with [`ZonedError::Poisoned`].
    pub fn close(&self) -> Result<(), DeviceError> {
        let mut state = self.shared.state();
        let Some(mut zns) = state.zns.take() else { return Ok(()) };
        let path = state.image.path().to_owned();
        if self.shared.poisoned.swap(true, Relaxed) {
            return Err(DeviceError::Poisoned { path });
        }
        let settle = |zns: &mut Zns<FileMedia>| {
            let settled = media::of(zns).try_for_each(FileMedia::settle);
            settled.map_err(ZnsError::Media)
        };
        let down = zns.shut_down(NOW).and_then(|()| settle(&mut zns));
        down.map_err(|source| DeviceError::CloseZones { path, source })?;
        state.image.write_label(true)
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

    fn run<T>(
        &self,
        command: impl FnOnce(&mut Zns<FileMedia>) -> Result<T, ZnsError>,
    ) -> Result<T, ZonedError> {
        let mut state = self.state();
        if self.poisoned.load(Relaxed) {
            return Err(ZonedError::Poisoned);
        }
        let zns = state.zns.as_mut().ok_or(ZonedError::Poisoned)?;
        let result = command(zns);
        if let Err(error @ ZnsError::Media(MediaError::Backing { .. })) = &result {
            self.poison(error);
        }
        Ok(result?)
    }

    /// Two halves with the synchronisation of the file between them, during which nobody holds the lock of the device.
    fn flush(&self) -> Result<(), ZonedError> {
        let _one_at_a_time = self.flushing.lock().unwrap_or_else(PoisonError::into_inner);
        let (flushing, tickets) = self.run(|zns| {
            if let (_, Some(media)) = zns.media_mut() {
                media.postpone_sync();
            }
            let begun = zns.begin_flush(NOW);
            let media = zns.nand_mut().media_mut();
            media.postpone_sync();
            let synced = media.sync().map_err(ZnsError::Media);
            // What was postponed is one synchronisation of the file.
            let tickets: Vec<_> = media::of(zns).map(FileMedia::begin_sync).collect();
            synced?;
            Ok((begun?, tickets))
        })?;
        let synced = self.backing.sync();
        self.run(|zns| {
            let ended =
                media::of(zns).zip(tickets).try_for_each(|(media, (ticket, mark))| match &synced {
                    Ok(()) => media.synced(ticket, mark),
                    Err(error) => Err(media.fail(error)),
                });
            ended.map_err(ZnsError::Media)?;
            zns.end_flush(&flushing)
        })
    }

    fn poison(&self, error: &dyn std::fmt::Display) {
        if !self.poisoned.swap(true, Relaxed) {
            tracing::error!(%error, "the image file failed; the zones stop until it is reopened");
        }
    }
}

fn blocks_of(bytes: &[u8]) -> Result<u32, ZonedError> {
    let len = u64_from(bytes.len());
    let whole = len.is_multiple_of(PAGE_BYTES).then(|| u32::try_from(len / PAGE_BYTES).ok());
    whole.flatten().ok_or(ZonedError::Length { bytes: bytes.len() })
}
