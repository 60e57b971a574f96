//! The blocks of the device that a reading has seen, and those it waits for.
//!
//! Parsers are plain functions over [`Blocks`]. One that needs a block that is not there ends with [`Stop::Missing`]; when
//! the driver has supplied it, the parser runs again from its beginning. Parsers are short and ask for all they can name at
//! once, so this costs less than a state machine per file system would.

use std::collections::BTreeMap;

use onefold_units::convert::{index64, u64_from};
use onefold_units::{Lba, PAGE_BYTES};

/// Most blocks of 4 KiB that one reading of a device takes: 4 MiB. A journal of 1 GiB in a classic block map of 4 KiB
/// blocks takes 257.
pub const READS_MAX: usize = 1024;

const BLOCK: usize = 4096;

/// Why a parser ended without a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Blocks are wanted; run it again when they are there.
    Missing,
    /// What is there makes no sense.
    Rejected(&'static str),
}

/// Rejects with `why` unless `holds`.
pub(crate) fn expect(holds: bool, why: &'static str) -> Result<(), Stop> {
    if holds { Ok(()) } else { Err(Stop::Rejected(why)) }
}

#[derive(Debug)]
enum Slot {
    Wanted,
    Asked,
    Read(Box<[u8; BLOCK]>),
    Unreadable,
}

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct Blocks {
    slots: BTreeMap<u64, Slot>,
    /// Blocks of 4 KiB of the device.
    count: u64,
}

impl Blocks {
    pub(crate) const fn new(count: u64) -> Self {
        Self { slots: BTreeMap::new(), count }
    }

    /// Bytes of the device.
    pub(crate) const fn device_bytes(&self) -> u64 {
        self.count.saturating_mul(PAGE_BYTES)
    }

    /// A block that is wanted and was not asked for yet.
    pub(crate) fn ask(&mut self) -> Option<Lba> {
        let (lba, slot) = self.slots.iter_mut().find(|(_, slot)| matches!(slot, Slot::Wanted))?;
        *slot = Slot::Asked;
        Some(Lba::new(*lba))
    }

    /// What a block that was asked for holds; `None` if it cannot be read. Anything else is ignored.
    pub(crate) fn supply(&mut self, lba: Lba, bytes: Option<&[u8; BLOCK]>) {
        if let Some(slot @ Slot::Asked) = self.slots.get_mut(&lba.raw()) {
            *slot = bytes.map_or(Slot::Unreadable, |bytes| Slot::Read(Box::new(*bytes)));
        }
    }

    /// Whether something that was asked for is not there yet.
    pub(crate) fn is_waiting(&self) -> bool {
        self.slots.values().any(|slot| matches!(slot, Slot::Wanted | Slot::Asked))
    }

    /// The blocks that were looked at, in order.
    pub(crate) fn seen(&self) -> Vec<u64> {
        self.slots.keys().copied().collect()
    }

    /// Whether one of the blocks from `first` to before `end` was looked at.
    pub(crate) fn has_seen(&self, first: Lba, end: Lba) -> bool {
        self.slots.range(first.raw()..end.raw().max(first.raw())).next().is_some()
    }

    /// Makes sure that the bytes are or will be there. Ends with [`Stop::Missing`] while they are not.
    pub(crate) fn want(&mut self, at: u64, len: usize) -> Result<(), Stop> {
        let end = at.checked_add(u64_from(len)).filter(|end| *end <= self.device_bytes());
        let Some(end) = end else { return Err(Stop::Rejected("a record ends behind the device")) };
        let mut result = Ok(());
        for lba in at / PAGE_BYTES..end.div_ceil(PAGE_BYTES) {
            match self.slots.get(&lba) {
                Some(Slot::Read(_)) => {}
                Some(Slot::Unreadable) => {
                    return Err(Stop::Rejected("a block of it cannot be read"));
                }
                Some(Slot::Wanted | Slot::Asked) => result = Err(Stop::Missing),
                None if self.slots.len() >= READS_MAX => {
                    return Err(Stop::Rejected("it takes too many reads"));
                }
                None => {
                    self.slots.insert(lba, Slot::Wanted);
                    result = Err(Stop::Missing);
                }
            }
        }
        result
    }

    /// The bytes from byte `at` of the device on.
    pub(crate) fn read(&mut self, at: u64, len: usize) -> Result<Vec<u8>, Stop> {
        self.want(at, len)?;
        let mut bytes = Vec::with_capacity(len);
        let mut lba = at / PAGE_BYTES;
        let mut skip = index64(at % PAGE_BYTES);
        while bytes.len() < len {
            let Some(Slot::Read(block)) = self.slots.get(&lba) else { return Err(Stop::Missing) };
            let end = BLOCK.min(skip + len - bytes.len());
            bytes.extend_from_slice(&block[skip..end]);
            (lba, skip) = (lba + 1, 0);
        }
        Ok(bytes)
    }
}
