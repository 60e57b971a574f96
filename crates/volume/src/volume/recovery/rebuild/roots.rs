//! Where the root that was made anew goes.
//!
//! Without zones, or where those for roots are conventional, it goes to a slot, one with which it and the next one can be read back. On other zones it is appended to the zone that
//! takes roots; where none has room, one that holds nothing but what led nowhere is reset.

use onefold_format::volume::{Root, VolumeLabel};
use onefold_units::convert::u64_from;
use onefold_units::{LogSegmentId, ZoneId, ZoneState};

use super::survey::{NUMBERS_MAX, Survey};
use crate::backing::{Backing, read_block};
use crate::checkpoint::roots::{newest_root, slot_of};
use crate::error::MountError;
use crate::io::IoFailed;
use crate::layout::Layout;
use crate::limits::BLOCK;
use crate::zones::{LABEL_ZONES, ROOT_ZONES, ZoneError, ZoneReport};

/// More than any checkpoint that was ever committed is ahead of the batches that can be found: each one takes a batch.
const GENERATIONS: u64 = 1 << 32;

/// The places of roots.
pub(super) struct Roots<'a> {
    pub(super) layout: &'a Layout,
    pub(super) label: &'a VolumeLabel,
    pub(super) zones: Option<&'a ZoneReport>,
}

impl Roots<'_> {
    /// The zones, if roots are appended to some.
    fn appended(&self) -> Option<&ZoneReport> {
        self.zones.filter(|_| !self.layout.has_root_slots())
    }

    /// A generation above all that there were; in slots one whose slot can be read, and so can the one behind it.
    pub(super) fn next_generation(
        &self,
        backing: &mut dyn Backing,
        survey: &Survey,
    ) -> Result<u64, MountError> {
        let uuid = &self.label.uuid;
        let mut above = survey.last;
        let mut note = |root: Option<Root>| {
            let root = root.filter(|root| root.generation < NUMBERS_MAX);
            above = above.max(root.map_or(0, |root| root.generation));
        };
        if let Some(report) = self.appended() {
            note(newest_root(backing, self.layout, Some(report), uuid).ok().map(|(root, _)| root));
            return Ok(above + GENERATIONS);
        }
        let slots = self.layout.roots();
        let mut readable = Vec::new();
        for at in slots {
            let block = read_block(backing, *at).ok();
            readable.extend(block.as_ref().map(|_| *at));
            note(block.and_then(|block| Root::decode(&block[..], uuid, *at).ok()));
        }
        let from = above + GENERATIONS;
        let usable = |generation: &u64| {
            [*generation, *generation + 1].iter().all(|at| readable.contains(&slot_of(slots, *at)))
        };
        let all = from..from + u64_from(slots.len());
        all.into_iter()
            .find(usable)
            .ok_or(MountError::Read { what: "root slot behind any other", at: slots[0] })
    }

    /// Writes the root and makes it durable.
    pub(super) fn write(&self, backing: &mut dyn Backing, root: &Root) -> Result<(), MountError> {
        let failed = |_| MountError::Backing("the root was written");
        match self.appended() {
            None => {
                let at = slot_of(self.layout.roots(), root.generation);
                backing.write(at, &root.encode(&self.label.uuid, at)[..]).map_err(failed)?;
            }
            Some(report) => {
                let (zone, written) = zone_with_room(report)?;
                self.append(backing, root, (zone, written)).map_err(failed)?;
            }
        }
        backing.flush().map_err(failed)
    }

    fn append(
        &self,
        backing: &mut dyn Backing,
        root: &Root,
        (zone, written): (u32, Option<u32>),
    ) -> Result<(), IoFailed> {
        // A power cut may have left more of them active than may be written.
        if let Some(zones) = self.zones {
            finish_zones(backing, zones, &[])?;
        }
        if written.is_none() {
            backing.reset(ZoneId::new(zone))?;
        }
        let written = u64::from(written.unwrap_or(0));
        let start = u64::from(zone) * u64::from(self.layout.stride());
        // A zone with roots begins with a copy of the label.
        let labels = u64::from(written == 0);
        let mut bytes = Vec::new();
        if written == 0 {
            bytes.extend_from_slice(&self.label.encode(start)[..]);
        }
        let at = start + written + labels;
        bytes.extend_from_slice(&root.encode(&self.label.uuid, at)[..]);
        backing.write(start + written, &bytes)
    }

    /// Clears the slots that hold no root, so that a check does not find them again.
    pub(super) fn clear_slots(&self, backing: &mut dyn Backing) -> Result<(), IoFailed> {
        let slots = if self.appended().is_some() { &[][..] } else { self.layout.roots() };
        for at in slots {
            let block = read_block(backing, *at).ok();
            let is_root = |block: &[u8]| Root::decode(block, &self.label.uuid, *at).is_ok();
            if !block.is_some_and(|block| is_root(&block[..])) {
                backing.write(*at, &[0; BLOCK])?;
            }
        }
        backing.flush()
    }
}

/// The zone that the root goes to, and what was written to it; `None` if it has to be reset.
fn zone_with_room(report: &ZoneReport) -> Result<(u32, Option<u32>), MountError> {
    let status = |zone: &u32| report.status(*zone);
    let has_room =
        |zone: &u32| status(zone).state.is_active() && status(zone).written < status(zone).capacity;
    let is_empty = |zone: &u32| status(zone).state == ZoneState::Empty;
    let find = |what: &dyn Fn(&u32) -> bool| ROOT_ZONES.into_iter().find(what);
    if let Some(zone) = find(&has_room).or_else(|| find(&is_empty)) {
        return Ok((zone, Some(status(&zone).written)));
    }
    let zone = find(&|zone| status(zone).is_writable());
    let zone = zone.ok_or(ZoneError::Fixed { zone: ZoneId::new(ROOT_ZONES[0]) })?;
    Ok((zone, None))
}

/// Finishes the log segments that were being written but for some: only so many zones may be written in part, and nobody goes on
/// with these.
pub(super) fn finish_zones(
    backing: &mut dyn Backing,
    zones: &ZoneReport,
    except: &[LogSegmentId],
) -> Result<(), IoFailed> {
    let is_log = |zone: u32| !LABEL_ZONES.contains(&zone) && !ROOT_ZONES.contains(&zone);
    let stays = |zone: u32| except.contains(&LogSegmentId::new(zone));
    for (zone, status) in zones.iter() {
        if status.state.is_active() && is_log(zone.raw()) && !stays(zone.raw()) {
            backing.finish(zone)?;
        }
    }
    Ok(())
}
