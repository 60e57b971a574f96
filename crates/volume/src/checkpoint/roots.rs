//! Where roots are written, and which one counts.
//!
//! Without zones, or where those for roots are conventional, there are eight slots, used in turn. On other zones, roots are appended to one of two zones until that is full, then
//! to the other, which is reset before; each begins with a copy of the label.
//!
//! 1. A root is written when the one before it is durable, so the zone that is reset has older ones only.
//! 2. Of the two zones the one that was written to last is the only one with room, as the other was full when that began. So a zone
//!    with room has the newest root, whatever became of the other; a full one only if the other can be read.

use onefold_format::volume::Root;
use onefold_units::convert::{index64, u64_from};
use onefold_units::{ZoneId, ZoneState};

use crate::backing::{Backing, read_block};
use crate::error::MountError;
use crate::layout::Layout;
use crate::zones::{ROOT_ZONES, ZoneReport};

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
pub(crate) fn newest_root(
    backing: &mut dyn Backing,
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
pub fn newest_in_slots(
    backing: &mut dyn Backing,
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
fn newest_in_zones(
    backing: &mut dyn Backing,
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
fn written_to(
    backing: &mut dyn Backing,
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
fn last_root(
    backing: &mut dyn Backing,
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
