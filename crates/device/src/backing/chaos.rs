//! A host that fails: for tests.
//!
//! Accesses fail at random, and what was not synchronised may be lost, sector by sector: at a cut of the power, and when a
//! synchronisation fails.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::MutexGuard;

use onefold_units::Rng;
use onefold_units::convert::{index64, u64_from};

use super::Backing;

const SECTOR: u64 = 512;

/// How often accesses fail, in thousandths.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Faults {
    pub(crate) reads: u64,
    pub(crate) writes: u64,
    pub(crate) syncs: u64,
    /// Nothing is written where nothing was before.
    pub(crate) full: bool,
}

/// A host file, as chance has it.
#[derive(Debug)]
pub(crate) struct Chaos {
    pub(crate) faults: Faults,
    rng: Rng,
    /// By sector: what it held before each write since the last synchronisation.
    before: BTreeMap<u64, Vec<Vec<u8>>>,
}

impl Chaos {
    pub(crate) fn new(seed: u64) -> Self {
        Self { faults: Faults::default(), rng: Rng::fork(seed, 0), before: BTreeMap::new() }
    }

    fn draw(&mut self, thousandths: u64) -> bool {
        thousandths > 0 && self.rng.below(1000) < thousandths
    }
}

fn input_output() -> io::Error {
    io::Error::from_raw_os_error(5)
}

impl Backing {
    fn lock_chaos(&self) -> MutexGuard<'_, Option<Chaos>> {
        self.chaos.lock().unwrap()
    }

    /// Makes the host one that may fail; it does not yet.
    pub(crate) fn begin_chaos(&self, seed: u64) {
        *self.lock_chaos() = Some(Chaos::new(seed));
    }

    /// Lets a host fail from now on, or not any more.
    pub(crate) fn set_faults(&self, faults: Faults) {
        if let Some(chaos) = &mut *self.lock_chaos() {
            chaos.faults = faults;
        }
    }

    pub(super) fn disturb_read(&self) -> io::Result<()> {
        let mut chaos = self.lock_chaos();
        let Some(chaos) = &mut *chaos else { return Ok(()) };
        if chaos.draw(chaos.faults.reads) { Err(input_output()) } else { Ok(()) }
    }

    pub(super) fn disturb_write(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut chaos = self.lock_chaos();
        let Some(chaos) = &mut *chaos else { return Ok(()) };
        let end = offset + u64_from(bytes.len());
        let sectors = offset / SECTOR..end.div_ceil(SECTOR);
        let mut taken = bytes.len();
        let mut failed = None;
        if chaos.draw(chaos.faults.writes) {
            // Some of it may have been written.
            taken = index64(chaos.rng.below(u64_from(bytes.len()) + 1));
            failed = Some(input_output());
        } else if chaos.faults.full && bytes.iter().any(|byte| *byte != 0) {
            let empty = sectors.clone().any(|at| self.sector(at).iter().all(|byte| *byte == 0));
            if empty {
                taken = 0;
                failed = Some(io::Error::from_raw_os_error(28));
            }
        }
        for at in sectors {
            let before = self.sector(at);
            chaos.before.entry(at).or_default().push(before);
        }
        if let Some(failed) = failed {
            self.file.write_all_at(&bytes[..taken], offset)?;
            return Err(failed);
        }
        Ok(())
    }

    /// Whether that was all: the file need not reach a disk.
    pub(super) fn disturb_sync(&self) -> io::Result<bool> {
        let mut chaos = self.lock_chaos();
        let Some(chaos) = &mut *chaos else { return Ok(false) };
        if chaos.draw(chaos.faults.syncs) {
            self.drop_unsynced(chaos);
            return Err(input_output());
        }
        chaos.before.clear();
        Ok(true)
    }

    /// The power fails: of what was not synchronised, each sector keeps any prefix of what was written to it.
    pub(crate) fn cut(&self) {
        if let Some(chaos) = &mut *self.lock_chaos() {
            self.drop_unsynced(chaos);
        }
    }

    fn drop_unsynced(&self, chaos: &mut Chaos) {
        for (at, before) in std::mem::take(&mut chaos.before) {
            let kept = index64(chaos.rng.below(u64_from(before.len()) + 1));
            if let Some(content) = before.get(kept) {
                self.file.write_all_at(content, at * SECTOR).unwrap();
            }
        }
    }

    fn sector(&self, at: u64) -> Vec<u8> {
        let mut content = vec![0; index64(SECTOR)];
        self.file.read_exact_at(&mut content, at * SECTOR).unwrap();
        content
    }
}
