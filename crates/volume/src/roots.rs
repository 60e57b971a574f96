//! Where roots are written, and which one counts.
//!
//! Without zones, or where those for roots are conventional, there are eight slots, used in turn. On other zones, roots are appended to one of two zones until that is full, then
//! to the other, which is reset before; each begins with a copy of the label.
//!
//! 1. A root is written when the one before it is durable, so the zone that is reset has older ones only.
//! 2. Of the two zones the one that was written to last is the only one with room, as the other was full when that began. So a zone
//!    with room has the newest root, whatever became of the other; a full one only if the other can be read.

use onefold_format::volume::Root;
use onefold_units::convert::{index64, low32, narrow, u64_from};
use onefold_units::{Location, LogSegmentId, ZoneId, ZoneState};

use crate::backing::{Backing, read_block};
use crate::error::MountError;
use crate::io::{IoFailed, IoKind};
use crate::layout::{Layout, ROOT_ZONES};
use crate::log::BLOCK;
use crate::pending::Purpose;
use crate::stats::Sent;
use crate::volume::Volume;
use crate::zones::ZoneReport;

/// Blocks of a zone that are looked at for a root, from its last one on. More than two that are none are damage.
const LOOK_BACK: u32 = 64;

/// Where the next root goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RootCursor {
    /// To the slot of its generation.
    Slot,
    /// To this block of a zone; to the other zone if that is full. `home` is the zone of the last root that counts.
    Zone { zone: u32, next: u32, home: u32 },
}

impl RootCursor {
    /// Where the first root goes.
    pub(crate) fn first(layout: &Layout) -> Self {
        if layout.has_root_slots() {
            Self::Slot
        } else {
            Self::Zone { zone: ROOT_ZONES[0], next: 0, home: ROOT_ZONES[0] }
        }
    }

    /// Whether roots go to a zone.
    pub(crate) fn is_in(self, of: ZoneId) -> bool {
        matches!(self, Self::Zone { zone, .. } if zone == of.raw())
    }
}

/// The newest root that can be used, and where the next one goes.
pub(crate) fn newest_root<B: Backing>(
    backing: &mut B,
    layout: &Layout,
    report: Option<&ZoneReport>,
    uuid: &[u8; 16],
) -> Result<(Root, RootCursor), MountError> {
    match report {
        Some(report) if !layout.has_root_slots() => newest_in_zones(backing, layout, report, uuid),
        _ => newest_in_slots(backing, layout.roots(), uuid).map(|root| (root, RootCursor::Slot)),
    }
}

pub(crate) fn slot_of(roots: &[u64], generation: u64) -> u64 {
    roots[index64(generation % u64_from(roots.len()))]
}

/// The newest root that can be used. The slot of the one after it has to be readable: a newer root may be there, and log
/// segments that this one points to may be in use anew.
///
/// # Errors
/// There is none, or that slot cannot be read.
pub fn newest_in_slots<B: Backing>(
    backing: &mut B,
    roots: &[u64],
    uuid: &[u8; 16],
) -> Result<Root, MountError> {
    let mut newest: Option<Root> = None;
    let mut unreadable = Vec::new();
    for at in roots {
        let Ok(block) = read_block(backing, *at) else {
            unreadable.push(*at);
            continue;
        };
        let Ok(root) = Root::decode(&block[..], uuid, *at) else { continue };
        if newest.as_ref().is_none_or(|old| old.generation < root.generation) {
            newest = Some(root);
        }
    }
    let next = newest.as_ref().map(|root| slot_of(roots, root.generation + 1));
    match (newest, unreadable.into_iter().find(|at| next.is_none_or(|next| next == *at))) {
        (_, Some(at)) => Err(MountError::Read { what: "root", at }),
        (Some(root), None) => Ok(root),
        (None, None) => Err(MountError::NoRoot { slots: roots.len() }),
    }
}

/// Invariant 2.
fn newest_in_zones<B: Backing>(
    backing: &mut B,
    layout: &Layout,
    report: &ZoneReport,
    uuid: &[u8; 16],
) -> Result<(Root, RootCursor), MountError> {
    let mut newest: Option<(Root, RootCursor)> = None;
    let mut offline = None;
    for (zone, start) in ROOT_ZONES.into_iter().zip(layout.roots()) {
        let state = report.status(zone).state;
        if state == ZoneState::Offline {
            offline = Some(*start);
            continue;
        }
        let written = written_to(backing, report, zone, *start)?;
        let Some(root) = last_root(backing, *start, written, uuid)? else { continue };
        if newest.as_ref().is_none_or(|(old, _)| old.generation < root.generation) {
            let writable = state.is_active();
            let next = if writable { written } else { layout.geometry().segment_blocks };
            newest = Some((root, RootCursor::Zone { zone, next, home: zone }));
        }
    }
    let full = layout.geometry().segment_blocks;
    let has_room = |cursor| matches!(cursor, RootCursor::Zone { next, .. } if next < full);
    match (newest, offline) {
        (Some((_, cursor)), Some(at)) if !has_room(cursor) => {
            Err(MountError::Read { what: "root", at })
        }
        (Some(found), _) => Ok(found),
        (None, Some(at)) => Err(MountError::Read { what: "root", at }),
        (None, None) => Err(MountError::NoRoot { slots: layout.roots().len() }),
    }
}

/// Blocks of a zone of roots that were written. Where the backing does not say it, the first one that is blank tells: behind what
/// was written a zone reads as zeroes.
fn written_to<B: Backing>(
    backing: &mut B,
    report: &ZoneReport,
    zone: u32,
    start: u64,
) -> Result<u32, MountError> {
    let status = report.status(zone);
    if !matches!(status.state, ZoneState::Full | ZoneState::ReadOnly) {
        return Ok(status.written);
    }
    let (mut from, mut to) = (0, status.capacity);
    while from < to {
        let middle = u32::midpoint(from, to);
        let at = start + u64::from(middle);
        let block = read_block(backing, at).map_err(|_| MountError::Read { what: "root", at })?;
        if block.iter().any(|byte| *byte != 0) { from = middle + 1 } else { to = middle }
    }
    Ok(from)
}

/// The last root of a zone. One that cannot be read may be newer than all others.
fn last_root<B: Backing>(
    backing: &mut B,
    start: u64,
    written: u32,
    uuid: &[u8; 16],
) -> Result<Option<Root>, MountError> {
    for block in (written.saturating_sub(LOOK_BACK)..written).rev() {
        let at = start + u64::from(block);
        let block = read_block(backing, at).map_err(|_| MountError::Read { what: "root", at })?;
        if let Ok(root) = Root::decode(&block[..], uuid, at) {
            return Ok(Some(root));
        }
    }
    Ok(None)
}

impl Volume {
    /// Asks for a root to be written; `false` if that has to wait for a zone that is reset first.
    pub(crate) fn write_root(&mut self, root: &Root) -> bool {
        let capacity = self.segment_blocks();
        let (at, with_label) = match self.roots {
            RootCursor::Slot => (slot_of(self.layout.roots(), root.generation), false),
            RootCursor::Zone { zone, next, home } if next < capacity => {
                let with_label = next == 0;
                let next = next + 1 + u32::from(with_label);
                let at = self.start_of(LogSegmentId::new(zone)).raw() + next - 1;
                self.roots = RootCursor::Zone { zone, next, home };
                (at.into(), with_label)
            }
            RootCursor::Zone { zone, home, .. } => {
                let other = ROOT_ZONES.into_iter().find(|other| *other != zone).unwrap_or(zone);
                if self.is_finishing(LogSegmentId::new(other)) {
                    return false;
                }
                self.forget_finish(LogSegmentId::new(other));
                self.roots = RootCursor::Zone { zone: other, next: 0, home };
                let (at, blocks) =
                    (self.start_of(LogSegmentId::new(other)), self.layout.geometry().zone_blocks);
                self.stats.zone_resets += 1;
                self.ask(IoKind::Reset, Purpose::RootReset, at, blocks);
                return false;
            }
        };
        let block = root.encode(&self.uuid, at);
        let labels = u64::from(with_label);
        let (first, blocks) = (at - labels, low32(1 + labels));
        let id = self.ask(IoKind::Write, Purpose::Root, Location::new(narrow(first)), blocks);
        let bytes = self.pending.buffer_mut(id);
        if with_label {
            bytes[..BLOCK].copy_from_slice(&self.label.encode(first)[..]);
        }
        bytes[index64(labels) * BLOCK..].copy_from_slice(&block[..]);
        self.stats.count(Sent::Label, blocks.into());
        true
    }

    /// The zone that takes roots from now on was reset, or could not be.
    pub(crate) fn root_reset_over(&mut self, result: Result<(), IoFailed>) {
        if let Err(why) = result {
            self.root_failed(why);
        } else {
            self.root_zone_ready();
        }
    }

    /// A zone for roots that could not be finished was, or again could not be: it may be what the next root waits for.
    pub(crate) fn root_finished_again(&mut self, segment: LogSegmentId) {
        let waits = match self.roots {
            RootCursor::Slot => false,
            RootCursor::Zone { zone, next, .. } => {
                zone != segment.raw() && next >= self.segment_blocks()
            }
        };
        if waits && ROOT_ZONES.contains(&segment.raw()) {
            self.root_zone_waited();
        }
    }

    /// The zone that takes no more roots was finished, or could not be.
    pub(crate) fn root_finish_over(&mut self, result: Result<(), IoFailed>) {
        if let RootCursor::Zone { home, .. } = self.roots {
            self.note_finish(LogSegmentId::new(home), result);
        }
        self.root_zone_ready();
    }

    /// A root counts: its zone is not reset before another one does.
    pub(crate) fn root_counts(&mut self) {
        if let RootCursor::Zone { zone, home, .. } = &mut self.roots {
            *home = *zone;
        }
    }

    /// No root can be written where the last one was to go. On zones the next one goes to the start of that which does not have the last root that
    /// counts; if the other one was left half full, it is finished before. Whether that has to be waited for.
    pub(crate) fn leave_root_zone(&mut self) -> bool {
        let full = self.segment_blocks();
        let RootCursor::Zone { zone, home, .. } = self.roots else { return false };
        self.roots = RootCursor::Zone { zone: home, next: full, home };
        if zone == home {
            self.finish_zone(Purpose::RootFinish, self.start_of(LogSegmentId::new(home)));
        }
        zone == home
    }
}
