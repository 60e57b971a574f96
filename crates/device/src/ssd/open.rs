//! Opening the device of an image.

use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Instant;

use onefold_ftl::{OnLogDamage, RecoveryReport};
use onefold_ssd::{Ssd, SsdConfig};
use onefold_units::Nanos;

use super::{Latency, Shared, Slots, Snapshots, SsdDevice, State, Synced, Unflushed, give_up};
use crate::host_watch::HostWatch;
use crate::image::{DeviceError, Image};
use crate::media::{FileMedia, Ticket};

/// How to run the device of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OpenOptions {
    /// When requests are answered.
    pub latency: Latency,
    /// Whether a page of the remap log that cannot be read and that nothing replaces is accepted: units
    /// that it may be about are lost then, for good, and the device opens. Otherwise it does not.
    pub accept_loss: bool,
    /// Whether writes and flushes wait for room while the file system under the image is full. Otherwise they fail.
    pub waits_for_room: bool,
}

impl OpenOptions {
    /// Answers by `latency`.
    #[must_use]
    pub const fn new(latency: Latency) -> Self {
        Self { latency, accept_loss: false, waits_for_room: false }
    }

    /// The same, accepting the loss of what a damaged page of the remap log may be about.
    #[must_use]
    pub const fn accepting_loss(self) -> Self {
        Self { accept_loss: true, ..self }
    }

    /// The same, waiting for room on the host.
    #[must_use]
    pub const fn waiting_for_room(self) -> Self {
        Self { waits_for_room: true, ..self }
    }
}

/// A device that was opened, and how.
pub struct Opened {
    /// The device.
    pub device: SsdDevice,
    /// What recovery found.
    pub recovery: RecoveryReport,
    /// The device had been shut down cleanly.
    pub was_clean: bool,
    /// The configuration says that the buffer survives a power cut, which the memory of a process
    /// does not: the device was made to treat it as volatile.
    pub buffer_made_volatile: bool,
}

impl SsdDevice {
    /// Recovers the device of an image that is open for writing. `config` is the configuration of
    /// [`Image::label`].
    ///
    /// # Errors
    /// `config` is not that of the label, or the file failed.
    pub fn open(
        mut image: Image,
        config: &SsdConfig,
        options: OpenOptions,
    ) -> Result<Opened, DeviceError> {
        let mut config = *config;
        let buffer_made_volatile = config.buffer.bytes > 0 && !config.buffer.volatile;
        config.buffer.volatile = true;
        image.expect(&config)?;
        let was_clean = image.label().clean;
        let begin = Instant::now();
        let media = FileMedia::new(&image, config.geometry);
        let on_log_damage =
            if options.accept_loss { give_up(&config) } else { OnLogDamage::Refuse };
        let (mut ssd, recovery) = Ssd::recover_with(config, media, on_log_damage)
            .map_err(|source| DeviceError::Build { path: image.path().to_owned(), source })?;
        image.recall(&mut ssd);
        let (counting, ledger) = image.begin_use(&config)?;
        let snapshots = Snapshots::open(&mut ssd)
            .map_err(|source| DeviceError::Snapshots { path: image.path().to_owned(), source })?;
        let (uuid, backing) = (image.label().uuid, image.backing());
        let size = ssd.capacity();
        let unit_bytes = SsdConfig::write_unit_bytes(&config.geometry, &config.buffer);
        let watch = HostWatch::new(image.path().to_owned());
        let now = Nanos::ZERO;
        let ssd = Some(ssd);
        let mut state =
            State { ssd, image, life: 0, now, watch, counting, counts_saved: now, learnt_saved: 0 };
        state.look();
        let shared = Shared {
            synced: Mutex::new(Synced { ticket: Ticket::default(), ledger }),
            poisoned: AtomicBool::new(false),
            waits_for_room: Mutex::new(options.waits_for_room),
            wake: Condvar::new(),
            backing,
            size,
            unit_bytes,
            uuid,
            latency: options.latency,
            recovery_ns: AtomicU64::new(
                u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX),
            ),
            start: Instant::now(),
            unflushed: Unflushed::default(),
            flush_ns: AtomicU64::new(0),
            slots: Slots::default(),
            remap_watchers: Mutex::default(),
            snapshots,
            state: Mutex::new(state),
        };
        let device = Self { shared: Arc::new(shared) };
        Ok(Opened { device, recovery, was_clean, buffer_made_volatile })
    }
}
