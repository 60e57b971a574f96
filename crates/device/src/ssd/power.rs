//! A power cut of a device that is used again at once.

use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use onefold_ftl::{OnLogDamage, RecoveryReport};
use onefold_ssd::Ssd;

use super::{Shared, SsdDevice, State, Synced, flash_counts, snapshots};
use crate::image::{DeviceError, io_error};
use crate::media::{FileMedia, Ticket};

/// What a power cut took, and what recovery found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PowerCut {
    /// Writes that were answered and that no flush had covered. Each may be there or not.
    pub writes: u64,
    /// Bytes of these writes.
    pub bytes: u64,
    /// Bytes that are gone: dirty units of the buffer, and programs that were not finished.
    pub gone_bytes: u64,
    /// What recovery found.
    pub recovery: RecoveryReport,
    /// How long recovery took.
    pub took: Duration,
}

impl SsdDevice {
    /// Cuts the power of the device and recovers it, as if the process had been killed and the image opened again: the content of
    /// the buffer and programs that were not finished are gone, and what a flush covered is there. Requests on other threads that
    /// are not over fail, or are executed after it.
    ///
    /// # Errors
    /// The device is closed, or the host failed. What fails during recovery leaves it closed.
    pub fn cut_power(&self) -> Result<PowerCut, DeviceError> {
        let shared = &*self.shared;
        // A command of several steps ends first.
        let mut kept = shared.snapshots.lock();
        let mut synced = shared.synced();
        let mut state = shared.state();
        let path = state.image.path().to_owned();
        let held = state.media().ok().and_then(|media| media.held());
        let ssd = match (state.ssd.take(), held) {
            (Some(ssd), Some(held)) if !held.is_over_by_itself() => {
                state.ssd = Some(ssd);
                return Err(DeviceError::Held { path, held });
            }
            (Some(ssd), _) if !shared.poisoned.load(Relaxed) => ssd,
            _ => return Err(DeviceError::Poisoned { path }),
        };
        let gone_bytes = ssd.dirty_bytes() + ssd.ftl().nand().media().waiting_bytes();
        let begin = Instant::now();
        let (mut ssd, recovery) = state.recover(ssd, &mut synced)?;
        // What recovery found stays, as flash does: it counts for the next cut, also one of the host.
        let counters = state.counting.total(flash_counts(&ssd));
        let _ = synced.ledger.save(&counters);
        shared.backing.sync_for_good().map_err(io_error(&path, "make durable"))?;
        synced.ledger.synced();
        *kept =
            snapshots::found(&mut ssd).map_err(|source| DeviceError::Snapshots { path, source })?;
        state.ssd = Some(ssd);
        let took = begin.elapsed();
        Ok(shared.begin_again(gone_bytes, recovery, took))
    }
}

impl State {
    /// The device as it comes up after its power was cut.
    fn recover(
        &mut self,
        ssd: Ssd<FileMedia>,
        synced: &mut Synced,
    ) -> Result<(Ssd<FileMedia>, RecoveryReport), DeviceError> {
        let config = *ssd.config();
        self.counting.restart(flash_counts(&ssd));
        // Before it is there a second time.
        drop(ssd);
        self.life += 1;
        let media = FileMedia::new(&self.image, config.geometry);
        // Tickets begin anew with the medium.
        synced.ticket = Ticket::default();
        let (mut ssd, recovery) = Ssd::recover_with(config, media, OnLogDamage::Refuse)
            .map_err(|source| DeviceError::Build { path: self.image.path().to_owned(), source })?;
        self.image.recall(&mut ssd);
        self.learnt_saved = 0;
        Ok((ssd, recovery))
    }
}

impl Shared {
    /// Nothing is known of what was before a power cut.
    fn begin_again(&self, gone_bytes: u64, recovery: RecoveryReport, took: Duration) -> PowerCut {
        self.slots.clear();
        self.recovery_ns.store(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX), Relaxed);
        let (writes, bytes) = self.unflushed.take();
        PowerCut { writes, bytes, gone_bytes, recovery, took }
    }
}
