//! What has to happen before something becomes smaller.

use onefold_format::volume::SegmentState;
use onefold_units::convert::index64;
use onefold_units::{Lba, LogSegmentId};

use crate::layout::Layout;
use crate::log::Stream;
use crate::map::page::{PAGE_ENTRIES_U64, first_lba};
use crate::map::{Map, Ready};
use crate::range::Range;
use crate::resize::{Phase, ResizeError};
use crate::segments::Segment;
use crate::snapshots::pages_of;
use crate::volume::Volume;

impl Volume {
    /// Looks at the next blocks behind the new end, or unmaps them.
    pub(super) fn unmap_behind(
        &mut self,
        slot: usize,
        at: u64,
        discard: bool,
    ) -> Result<Phase, ResizeError> {
        let end = self.members.of(slot).blocks;
        // The counts of pages that recovery changed come first: a run that recovery made has records of the tail.
        if !self.is_counted() {
            return Ok(Phase::Clear { at, discard });
        }
        if at >= end {
            return Ok(Phase::Forget);
        }
        // Page by page, so that it is known which one cannot be read.
        let page_end = (at / PAGE_ENTRIES_U64 + 1) * PAGE_ENTRIES_U64;
        let range = Range { lba: Lba::new(at), blocks: end.min(page_end) - at };
        let key = Map::key(slot, index64(at / PAGE_ENTRIES_U64));
        if self.map.ready(key) == Ready::Damaged {
            return Err(ResizeError::Unreadable { lba: at });
        }
        let done = match self.alike(slot, range) {
            Ok((false, blocks)) => blocks,
            Ok((true, _)) if !discard => return Err(ResizeError::Mapped { lba: at }),
            Ok((true, _)) => self.trim_part(slot, range, None).unwrap_or(0),
            Err(_) => 0,
        };
        Ok(Phase::Clear { at: at + done, discard })
    }

    /// Waits until no page behind the new end has an image. The sweep passes those that cannot be read any more.
    pub(super) fn forget_behind(&mut self, slot: usize, blocks: u64) -> Result<Phase, ResizeError> {
        let first = pages_of(blocks);
        let mut keys = self.map.keys_of(slot).skip(first);
        if let Some(key) = keys.clone().find(|key| self.map.ready(*key) == Ready::Damaged) {
            return Err(ResizeError::Unreadable { lba: first_lba(Map::of_key(key).1).raw() });
        }
        if !keys.any(|key| self.map.image(key).page.is_block() || self.map.is_dirty(key)) {
            return Ok(if slot == 0 { self.after_next_checkpoint() } else { Phase::Apply });
        }
        if !self.is_settling() {
            self.checkpoint.sweep_from(first);
            self.want_checkpoint();
        }
        Ok(Phase::Forget)
    }

    pub(super) fn after_next_checkpoint(&mut self) -> Phase {
        self.send_user();
        self.want_checkpoint();
        Phase::Checkpoint { number: self.checkpoint.next_number() }
    }

    /// No stream goes on in a log segment that a smaller backing does not have, or needs for its label.
    pub(super) fn leave(&mut self, layout: &Layout) {
        let leaves = |id: LogSegmentId| {
            id.raw() >= layout.segments()
                || (layout.fixed().contains(&id.raw()) && !self.layout.fixed().contains(&id.raw()))
        };
        let list: Vec<_> =
            self.segments.iter().map(|(id, _)| id).filter(|id| leaves(*id)).collect();
        self.segments.leave(&list);
        for stream in Stream::ALL {
            let Some(segment) = self.log.stream(stream).segment else { continue };
            if self.segments.of(segment).leaving {
                self.leave_segment(stream);
            }
        }
    }

    /// Whether log segments have to become empty for a smaller backing.
    pub(crate) fn is_evacuating(&self) -> bool {
        self.resizing.phase() == Some(Phase::Evacuate)
    }

    /// Waits until the log segments that the backing loses are free. The cleaner takes them first; what checkpoints put
    /// there is written anew.
    pub(super) fn evacuate(&mut self) -> Result<Phase, ResizeError> {
        let leaving = || self.segments.iter().filter(|(_, segment)| segment.leaving);
        if let Some((id, _)) = leaving().find(|(_, one)| {
            one.live() > 0 && (one.state == SegmentState::Suspect || one.errors.holds > 0)
        }) {
            return Err(ResizeError::Stuck { segment: id.raw() });
        }
        let is_free = |segment: &Segment| {
            matches!(
                segment.state,
                SegmentState::Free | SegmentState::Fixed | SegmentState::Suspect
            )
        };
        if leaving().all(|(_, segment)| is_free(segment)) {
            return Ok(self.after_next_checkpoint());
        }
        if self.is_counted() && !self.is_settling() {
            let moved = self.move_meta();
            let empty = self.segments.iter().any(|(_, one)| one.leaving && one.is_empty_closed());
            if moved || empty {
                self.want_checkpoint();
            }
        }
        Ok(Phase::Evacuate)
    }

    /// Has the sweep write anew what checkpoints put into log segments that leave. Whether there is any.
    pub(crate) fn move_meta(&mut self) -> bool {
        if !self.segments.has_leaving_meta() {
            return false;
        }
        let leaving: Vec<LogSegmentId> =
            self.segments.iter().filter(|(_, one)| one.has_to_go()).map(|(id, _)| id).collect();
        self.write_anew(|id| leaving.contains(&id));
        true
    }
}
