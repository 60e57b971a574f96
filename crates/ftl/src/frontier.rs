//! Write frontiers: open superblocks and what is staged for their next program.

use onefold_format::{TailMeter, TailRecord};
use onefold_nand::Spare;
use onefold_units::{Cause, Ppn, SuperblockId};

/// A slot that was given out but not programmed yet. It exists only where a flash page holds several
/// units.
#[derive(Clone, Debug, Default)]
pub(crate) struct Staged {
    pub(crate) lpn: u32,
    pub(crate) seq: u64,
    pub(crate) entry: Entry,
    /// The content this one replaces. It stays valid until the program, because power may fail
    /// before.
    pub(crate) replaces: Option<Ppn>,
    /// What it replaces was mapped by a remap, with its entry in NVRAM (false) or on flash.
    pub(crate) remapped: Option<bool>,
    /// It is a copy of what it replaces, made by collection: other referrers may follow.
    pub(crate) is_copy: bool,
}

onefold_units::keep!(Staged { lpn, seq, entry, replaces, remapped, is_copy });

/// How a slot is accounted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Entry {
    pub(crate) kind: onefold_format::SlotKind,
    pub(crate) cause: Cause,
    /// 4 KiB pages of `cause`; the rest of the unit is padding.
    pub(crate) pages: u64,
}

onefold_units::keep!(Entry { kind, cause, pages });

/// An open superblock, or none.
#[derive(Clone, Debug, Default)]
pub(crate) struct Frontier {
    pub(crate) superblock: Option<SuperblockId>,
    /// Next slot to give out.
    pub(crate) next: u32,
    /// Slots before this one are programmed.
    pub(crate) programmed: u32,
    pub(crate) staged: Vec<Staged>,
    pub(crate) staged_data: Vec<u8>,
    pub(crate) spares: Vec<Spare>,
    /// What the tail pages will say; kept only if they are written with bytes.
    pub(crate) tail: Vec<TailRecord>,
    /// What they will take; `None` if there are none.
    pub(crate) meter: Option<TailMeter>,
}

onefold_units::keep!(Frontier { superblock, next, programmed, staged, staged_data, tail, meter } but { spares });

impl Frontier {
    pub(crate) fn open(&mut self, superblock: SuperblockId, first: u32, meter: Option<TailMeter>) {
        self.superblock = Some(superblock);
        self.next = first;
        self.programmed = first;
        self.staged.clear();
        self.staged_data.clear();
        self.tail.clear();
        self.meter = meter;
    }

    /// Notes what the tail pages say about the next slot; `keeps` it if they are written with bytes.
    #[inline]
    pub(crate) fn note(&mut self, record: TailRecord, keeps: bool) {
        let Some(meter) = &mut self.meter else { return };
        meter.add(&record);
        if keeps {
            self.tail.push(record);
        }
    }
}
