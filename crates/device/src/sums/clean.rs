//! Dirty bits: set before a region is written, cleared when it has been left alone for a while.

use std::ops::Range;
use std::sync::TryLockError;
use std::time::Duration;

use onefold_format::CacheBits;
use onefold_units::IoFailed;

use super::{State, Store, Summed, is_written, lock};

/// A region that was not written for so long, to twice as long, becomes clean. Setting a bit costs a synchronisation.
const INTERVAL: Duration = Duration::from_secs(10);

impl<S: Store> Summed<S> {
    /// Makes the dirty bits of regions durable before they are written (invariant 1).
    pub(super) fn mark(&self, regions: Range<u64>) -> Result<(), IoFailed> {
        let missing = |state: &mut State| -> Vec<u64> {
            state.recent.extend(regions.clone());
            regions.clone().filter(|region| !state.dirty.contains(region)).collect()
        };
        if missing(&mut lock(&self.state)).is_empty() {
            return Ok(());
        }
        let mut bits = lock(&self.bits);
        // Somebody else may have marked them meanwhile.
        let missing = missing(&mut lock(&self.state));
        for region in &missing {
            bits.set(*region, true);
        }
        let mut blocks: Vec<u64> = missing.iter().map(|one| CacheBits::block_of(*one)).collect();
        blocks.dedup();
        for number in blocks {
            let (at, block) = (self.header.layout.bits_at() + number, bits.encode(number));
            // What fails here is no synchronisation.
            self.store.write(at, &block)?;
            self.synced(self.store.write_durable(at, &block))?;
        }
        lock(&self.state).dirty.extend(missing);
        Ok(())
    }

    /// Notes a synchronisation that failed (invariant 5).
    fn synced(&self, result: Result<(), IoFailed>) -> Result<(), IoFailed> {
        if result.is_err() {
            lock(&self.state).failed = true;
        }
        result
    }

    /// Makes all that was written durable, and regions clean that have been left alone.
    pub(crate) fn flush(&self, now: Duration) -> Result<(), IoFailed> {
        let cleaning = match self.cleaning.try_lock() {
            Ok(cleaning) => Some(cleaning),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        };
        let is_due = cleaning.is_some() && self.due().is_some_and(|due| due <= now);
        let cold = if is_due { self.cold(now) } else { Vec::new() };
        self.clean(&cold)
    }

    /// When regions may become clean although nothing is flushed.
    pub(crate) fn due(&self) -> Option<Duration> {
        let state = lock(&self.state);
        (!state.dirty.is_empty() && !state.failed).then(|| state.looked + INTERVAL)
    }

    /// Makes all regions clean. Nothing may be under way.
    pub(crate) fn close(&self) -> Result<(), IoFailed> {
        let _cleaning = lock(&self.cleaning);
        let all: Vec<u64> = {
            let mut state = lock(&self.state);
            state.recent.clear();
            state.dirty.iter().copied().collect()
        };
        self.clean(&all)?;
        if all.is_empty() {
            return Ok(());
        }
        // So that a power cut from now on leaves them clean.
        self.synced(self.store.flush())
    }

    /// Dirty regions that were not written lately; from now on others count as such.
    fn cold(&self, now: Duration) -> Vec<u64> {
        let mut state = lock(&self.state);
        state.looked = now;
        let recent = std::mem::take(&mut state.recent);
        state.dirty.difference(&recent).copied().collect()
    }

    /// Makes all that was written durable, and these regions clean if nobody writes to them meanwhile.
    fn clean(&self, regions: &[u64]) -> Result<(), IoFailed> {
        if lock(&self.state).failed {
            return Err(IoFailed::Error);
        }
        let idle: Vec<u64> = {
            let state = lock(&self.state);
            regions.iter().copied().filter(|region| !is_written(&state.busy, *region)).collect()
        };
        // A page that the device does not take leaves its region dirty.
        let put = |region: &u64| {
            let _paging = lock(&self.paging);
            self.put(*region).is_ok()
        };
        let stored: Vec<u64> = idle.into_iter().filter(put).collect();
        self.synced(self.store.flush())?;
        let mut bits = lock(&self.bits);
        let mut state = lock(&self.state);
        let mut blocks = Vec::new();
        for region in stored {
            // Whoever began to write since is in one of both lists (invariant 2).
            if !state.recent.contains(&region) && !is_written(&state.busy, region) {
                state.dirty.remove(&region);
                bits.set(region, false);
                blocks.push(CacheBits::block_of(region));
            }
        }
        drop(state);
        blocks.dedup();
        for number in blocks {
            // Where it is not taken, or lost, the region is dirty for whoever opens the device.
            let at = self.header.layout.bits_at() + number;
            let _ = self.store.write(at, &bits.encode(number));
        }
        Ok(())
    }
}
