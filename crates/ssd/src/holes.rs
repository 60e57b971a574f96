//! Slots of the buffer without their data, and data that could not be put together.
//!
//! A policy admits a unit before flash has answered. If flash cannot read it, the policy has an entry whose slot still has what was
//! there before, which is another unit. So the device remembers what is missing:
//!
//! 1. A *hole* is a part of a slot that the policy takes for data and that has none. It is loaded again when somebody needs it, and is
//!    never given out nor programmed. A part that is stored as a whole, or loaded, is no hole any more.
//! 2. A unit that is to be programmed and has holes that still cannot be loaded is *stranded*: what the host wrote of it stays in DRAM,
//!    beside the slots, and reads find it there. So is one whose program failed.
//! 3. A flush loads what stranded units lack and programs them. It fails while one cannot be: nothing is called durable that is not. A
//!    write that comes when [`STRANDED_MAX`] are stranded fails if none of them can be programmed.
//!
//! Without errors both are empty, and nothing is looked up.

use std::collections::BTreeMap;
use std::ops::Range;

use onefold_buffer::PartMask;
use onefold_units::Lpn;

/// Units that may be stranded before writes fail.
pub(crate) const STRANDED_MAX: usize = 64;

/// Invariants 1 and 2.
#[derive(Debug, Default)]
pub(crate) struct Holes {
    /// The parts of buffered units that have no data.
    slots: BTreeMap<Lpn, u16>,
    pub(crate) stranded: BTreeMap<Lpn, Stranded>,
}

onefold_units::keep!(Holes { slots, stranded });

/// A unit that is in no slot and not on flash.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stranded {
    pub(crate) bytes: Vec<u8>,
    /// The parts that only flash has.
    pub(crate) holes: u16,
    /// The parts that the host wrote.
    pub(crate) dirty: u16,
    /// Where it is written.
    pub(crate) stream: u32,
}

onefold_units::keep!(Stranded { bytes, holes, dirty, stream });

/// The parts of a unit that a byte range inside it touches.
pub(crate) fn touched(range: &Range<u32>, part_bytes: u32) -> PartMask {
    PartMask::new(below(range.end.div_ceil(part_bytes)) & !below(range.start / part_bytes))
}

/// The parts of a unit that a byte range inside it covers as a whole.
pub(crate) fn covered(range: &Range<u32>, part_bytes: u32) -> PartMask {
    PartMask::new(below(range.end / part_bytes) & !below(range.start.div_ceil(part_bytes)))
}

/// The first parts of a unit.
pub(crate) fn below(parts: u32) -> u16 {
    if parts >= u16::BITS { u16::MAX } else { (1 << parts) - 1 }
}

impl Holes {
    /// Whether nothing is missing.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.slots.is_empty() && self.stranded.is_empty()
    }

    /// What of these parts the slot of a unit lacks.
    pub(crate) fn within(&self, lpn: Lpn, parts: PartMask) -> PartMask {
        PartMask::new(self.slots.get(&lpn).copied().unwrap_or(0) & parts.bits())
    }

    /// These parts of a slot could not be loaded.
    pub(crate) fn open(&mut self, lpn: Lpn, parts: PartMask) {
        *self.slots.entry(lpn).or_default() |= parts.bits();
    }

    /// These parts of a slot have data now.
    pub(crate) fn close(&mut self, lpn: Lpn, parts: PartMask) {
        if let Some(holes) = self.slots.get_mut(&lpn) {
            *holes &= !parts.bits();
            if *holes == 0 {
                self.slots.remove(&lpn);
            }
        }
    }

    /// The slot of a unit is free.
    pub(crate) fn forget_slot(&mut self, lpn: Lpn) {
        self.slots.remove(&lpn);
    }

    /// Units that were trimmed are nowhere.
    pub(crate) fn forget(&mut self, first: Lpn, count: u32) {
        let inside = |lpn: &Lpn| lpn.raw().checked_sub(first.raw()).is_some_and(|at| at < count);
        self.slots.retain(|lpn, _| !inside(lpn));
        self.stranded.retain(|lpn, _| !inside(lpn));
    }

    /// A unit was programmed: what was kept of it is old.
    pub(crate) fn land(&mut self, lpn: Lpn) {
        self.stranded.remove(&lpn);
    }

    /// Whether data of a unit is kept here.
    pub(crate) fn has(&self, lpn: Lpn) -> bool {
        self.stranded.contains_key(&lpn)
    }

    /// Units of a range of which data is kept here.
    pub(crate) fn stranded_in(&self, first: Lpn, count: u32) -> impl Iterator<Item = Lpn> + '_ {
        let inside =
            move |lpn: &Lpn| lpn.raw().checked_sub(first.raw()).is_some_and(|at| at < count);
        self.stranded.keys().copied().filter(inside)
    }

    /// Copies the parts of a stranded unit that it has; says which of these have to come from flash.
    pub(crate) fn overlay(
        &self,
        lpn: Lpn,
        parts: PartMask,
        part_bytes: u32,
        unit: &mut [u8],
    ) -> PartMask {
        let Some(stranded) = self.stranded.get(&lpn) else { return parts };
        copy(PartMask::new(!stranded.holes), part_bytes, &stranded.bytes, unit);
        PartMask::new(stranded.holes & parts.bits())
    }

    /// Keeps a unit, over what was kept of it before.
    pub(crate) fn strand(&mut self, lpn: Lpn, mut unit: Stranded, part_bytes: u32) {
        if let Some(older) = self.stranded.get(&lpn) {
            let missing = PartMask::new(unit.holes & !older.holes);
            copy(missing, part_bytes, &older.bytes, &mut unit.bytes);
            unit.holes &= older.holes;
            unit.dirty |= older.dirty;
        }
        self.stranded.insert(lpn, unit);
    }
}

/// Copies parts of a unit; nothing where no bytes are stored.
fn copy(parts: PartMask, part_bytes: u32, from: &[u8], to: &mut [u8]) {
    for range in parts.ranges(part_bytes) {
        let end = range.end.min(to.len()).min(from.len());
        let range = range.start.min(end)..end;
        to[range.clone()].copy_from_slice(&from[range]);
    }
}
