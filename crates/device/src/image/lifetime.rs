//! Lifetime counters of an image: two copies behind its data.
//!
//! 1. A record goes to the copy that is not known to be durable. That copy becomes the durable one when a
//!    synchronisation succeeds that began after the write.
//! 2. So a whole record is durable at any time, at least as new as the last synchronisation that the device waited for.
//! 3. A record holds what was done when it was written: what a power cut takes of the data was counted nevertheless.

use std::io;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use onefold_format::{ImageLabel, LIFETIME_BYTES, Lifetime, LifetimeRecord};
use onefold_units::{CauseCounts, Op};

use super::FileLayout;
use crate::backing::Backing;

/// Lifetime counters found in an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeptLifetime {
    /// The counters as they were saved last.
    Counters(Lifetime),
    /// None: an older Onefold made the image or used it last.
    Nothing,
    /// Neither copy is whole.
    Damaged,
}

/// What was found, and where to go on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    pub(super) kept: KeptLifetime,
    number: u64,
    /// The copy with the newest record.
    newest: usize,
}

impl Found {
    /// No record.
    pub(super) const NOTHING: Self = Self { kept: KeptLifetime::Nothing, number: 0, newest: 1 };

    /// Reads both copies.
    pub(super) fn read(
        backing: &Backing,
        layout: &FileLayout,
        label: &ImageLabel,
    ) -> io::Result<Self> {
        let mut found = Self::NOTHING;
        let mut counters = None;
        for copy in 0..2 {
            let mut bytes = [0; LIFETIME_BYTES];
            match backing.read_at(layout.lifetime_copy(copy), &mut bytes) {
                // The file of an older build ends with the data.
                Err(error) if !label.counts && error.kind() == io::ErrorKind::UnexpectedEof => {}
                read => read?,
            }
            let record = LifetimeRecord::decode(&bytes, &label.uuid);
            if let Some(record) = record.filter(|record| record.number > found.number) {
                (found.number, found.newest) = (record.number, copy);
                counters = Some(record.counters);
            }
        }
        if label.counts {
            found.kept = counters.map_or(KeptLifetime::Damaged, KeptLifetime::Counters);
        }
        Ok(found)
    }
}

/// Writes the counters of an image that is in use.
#[derive(Debug)]
pub(crate) struct Ledger {
    backing: Arc<Backing>,
    copies: [u64; 2],
    uuid: [u8; 16],
    number: u64,
    durable: usize,
    /// Whether the other copy was written whole since it became the other one.
    fresh: bool,
    saved: Option<Lifetime>,
}

impl Ledger {
    pub(super) fn new(
        backing: Arc<Backing>,
        layout: &FileLayout,
        label: &ImageLabel,
        found: Found,
    ) -> Self {
        Self {
            backing,
            copies: [0, 1].map(|copy| layout.lifetime_copy(copy)),
            uuid: label.uuid,
            number: found.number,
            durable: found.newest,
            fresh: false,
            saved: None,
        }
    }

    /// Writes counters, unless they are what was written last.
    ///
    /// # Errors
    /// The file does not take them; the durable copy is as it was.
    pub(crate) fn save(&mut self, counters: &Lifetime) -> io::Result<()> {
        if self.saved == Some(*counters) {
            return Ok(());
        }
        (self.fresh, self.saved) = (false, None);
        self.number += 1;
        let record = LifetimeRecord { uuid: self.uuid, number: self.number, counters: *counters };
        self.backing.write_at(self.copies[1 - self.durable], &record.encode())?;
        (self.fresh, self.saved) = (true, Some(*counters));
        Ok(())
    }

    /// A synchronisation succeeded that began after the last [`Ledger::save`].
    pub(crate) fn synced(&mut self) {
        if self.fresh {
            self.durable = 1 - self.durable;
            self.fresh = false;
        }
    }
}

/// Counters of flash since a device was opened.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FlashCounts {
    pub(crate) programs: CauseCounts,
    pub(crate) erases: u64,
    pub(crate) media_failures: u64,
}

/// Counters of a device in use: of its life before, and of the host since.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counting {
    before: Lifetime,
    pub(crate) host: Lifetime,
}

impl Counting {
    /// Goes on from what an image keeps, or begins now.
    pub(super) fn begin(kept: KeptLifetime, was_clean: bool) -> Self {
        let kept = match kept {
            KeptLifetime::Counters(counters) => counters,
            KeptLifetime::Nothing | KeptLifetime::Damaged => from_now(),
        };
        let opening = Lifetime {
            power_cycles: 1,
            unclean_starts: u64::from(!was_clean),
            ..Lifetime::default()
        };
        Self { before: kept.plus(&opening), host: Lifetime::default() }
    }

    /// Goes on after a power cut, given the counters of flash until then: those of the host and of flash begin anew.
    pub(crate) fn restart(&mut self, flash: FlashCounts) {
        let opening = Lifetime { power_cycles: 1, unclean_starts: 1, ..Lifetime::default() };
        *self = Self { before: self.total(flash).plus(&opening), host: Lifetime::default() };
    }

    /// Counts a request of the host that was carried out.
    pub(crate) fn done(&mut self, op: Op, bytes: u64) {
        let counter = match op {
            Op::Read => &mut self.host.host_read_bytes,
            Op::Write => &mut self.host.host_written_bytes,
            Op::Trim | Op::WriteZeroes => &mut self.host.host_discarded_bytes,
            Op::Flush => return,
        };
        *counter += bytes;
    }

    /// All counters, given those of flash.
    pub(crate) fn total(&self, flash: FlashCounts) -> Lifetime {
        let FlashCounts { programs, erases, media_failures } = flash;
        self.before.plus(&Lifetime { programs, erases, media_failures, ..self.host })
    }
}

/// Counters that begin now.
pub(super) fn from_now() -> Lifetime {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Lifetime { since: now.as_secs(), ..Lifetime::default() }
}
