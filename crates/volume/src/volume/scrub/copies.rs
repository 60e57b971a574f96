//! The copies of the label, and the roots.

use onefold_format::volume::Root;
use onefold_units::Location;
use onefold_units::convert::narrow;

use crate::checkpoint::roots::{RootCursor, slot_of};
use crate::findings::Finding;
use crate::io::{IoFailed, IoKind};
use crate::limits::BLOCK;
use crate::pending::Purpose;
use crate::scrub::Phase;
use crate::scrub::mend::{Mend, What};
use crate::stats::Sent;
use crate::volume::Volume;

impl Volume {
    /// Blocks with copies of the label, then those with roots; where roots are appended, the newest one.
    fn copies(&self) -> Vec<u64> {
        let mut all = self.layout.labels().to_vec();
        match self.checkpoint.roots() {
            RootCursor::Slot => all.extend(self.layout.roots()),
            RootCursor::Zone { .. } => all.extend(self.newest_root_at()),
        }
        all
    }

    /// Where the newest root lies.
    fn newest_root_at(&self) -> Option<u64> {
        match self.checkpoint.roots() {
            RootCursor::Slot => Some(slot_of(self.layout.roots(), self.checkpoint.generation())),
            // Before a root is appended it is not known behind how many blocks that are none the last one lies.
            RootCursor::Zone { .. } if self.frozen.is_some() => None,
            RootCursor::Zone { zone, next, .. } => {
                let start = self.start_of(onefold_units::LogSegmentId::new(zone));
                next.checked_sub(1).map(|last| u64::from(start.raw() + last))
            }
        }
    }

    /// Reads the next copy. `false` if that has to wait for who writes them.
    pub(super) fn step_copies(&mut self, next: usize, again: bool) -> bool {
        self.scrub.set_phase(Phase::Copies { next, again });
        if self.checkpoint.is_running() || self.is_resizing() {
            return false;
        }
        match self.copies().get(next) {
            Some(at) => self.scrub_read(Location::new(narrow(*at)), 1, None),
            None => self.scrub.set_phase(Phase::Segments { next: 0 }),
        }
        !self.scrub.is_reading()
    }

    /// A copy was read.
    pub(super) fn copy_over(&mut self, next: usize, again: bool, bytes: Option<&[u8]>) {
        let Some(at) = self.copies().get(next).copied() else {
            self.scrub.set_phase(Phase::Segments { next: 0 });
            return;
        };
        let is_label = self.layout.labels().contains(&at);
        let good = bytes.is_some_and(|bytes| {
            if is_label { bytes == &self.label.encode(at)[..] } else { self.is_root(bytes, at) }
        });
        let again = !good && !again;
        self.scrub.set_phase(Phase::Copies { next: next + usize::from(!again), again });
        if good || again {
            return;
        }
        if is_label {
            let place = self.note_damage(Finding::Label { at });
            self.mend_label(at, place);
            return;
        }
        if self.newest_root_at() == Some(at) {
            let place = self.note_damage(Finding::NewestRoot { at });
            let generation = self.checkpoint.generation();
            self.scrub.push_mend(Mend::new(place, What::Root { generation }));
        } else {
            self.note_damage(Finding::Root { at });
        }
    }

    /// Whether these are the bytes of a root, or of a slot in which none was written. The newest one is there.
    fn is_root(&self, bytes: &[u8], at: u64) -> bool {
        let newest = self.newest_root_at() == Some(at);
        match Root::decode(bytes, &self.label.uuid, at) {
            Ok(root) => !newest || root.generation == self.checkpoint.generation(),
            Err(_) => !newest && bytes.iter().all(|byte| *byte == 0),
        }
    }

    /// Writes a copy of the label anew. One in a sequential zone takes a reset before: an opening does that.
    fn mend_label(&mut self, at: u64, place: Option<usize>) {
        let location = Location::new(narrow(at));
        if self.frozen.is_some() || self.layout.is_sequential(self.layout.segment_of(location)) {
            return;
        }
        let block = self.label.encode(at);
        let id = self.ask(IoKind::Write, Purpose::ScrubLabel(place), location, 1);
        self.pending.buffer_mut(id).copy_from_slice(&block[..BLOCK]);
        self.scrub.begin_write();
        self.stats.count(Sent::Scrub, 1);
        // A flush makes it durable like all else.
        self.flushes.note_sent(1, self.now);
    }

    /// A copy of the label was written anew.
    pub(crate) fn scrub_label_over(&mut self, place: Option<usize>, result: Result<(), IoFailed>) {
        self.scrub.end_write();
        if result.is_ok() {
            self.note_mended(place);
        }
    }
}
