//! Writing roots (`crate::checkpoint::roots`).

use onefold_format::volume::Root;
use onefold_units::convert::{index64, low32, narrow};
use onefold_units::{Location, LogSegmentId};

use crate::checkpoint::roots::{RootCursor, slot_of};
use crate::io::{IoFailed, IoKind};
use crate::limits::BLOCK;
use crate::pending::Purpose;
use crate::stats::Sent;
use crate::volume::Volume;
use crate::zones::ROOT_ZONES;

impl Volume {
    /// Asks for a root to be written; `false` if that has to wait for a zone that is reset first.
    pub(crate) fn write_root(&mut self, root: &Root) -> bool {
        let capacity = self.segment_blocks();
        let (at, with_label) = match self.checkpoint.roots() {
            RootCursor::Slot => (slot_of(self.layout.roots(), root.generation), false),
            RootCursor::Zone { zone, next, home } if next < capacity => {
                let with_label = next == 0;
                let next = next + 1 + u32::from(with_label);
                let at = self.start_of(LogSegmentId::new(zone)).raw() + next - 1;
                self.checkpoint.set_roots(RootCursor::Zone { zone, next, home });
                (at.into(), with_label)
            }
            RootCursor::Zone { zone, home, .. } => {
                let other = ROOT_ZONES.into_iter().find(|other| *other != zone).unwrap_or(zone);
                if self.is_finishing(LogSegmentId::new(other)) {
                    return false;
                }
                self.forget_finish(LogSegmentId::new(other));
                self.checkpoint.set_roots(RootCursor::Zone { zone: other, next: 0, home });
                let (at, blocks) =
                    (self.start_of(LogSegmentId::new(other)), self.layout.geometry().zone_blocks);
                self.stats.zone_resets += 1;
                self.ask(IoKind::Reset, Purpose::RootReset, at, blocks);
                return false;
            }
        };
        let block = root.encode(&self.label.uuid, at);
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
        let waits = match self.checkpoint.roots() {
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
        if let RootCursor::Zone { home, .. } = self.checkpoint.roots() {
            self.note_finish(LogSegmentId::new(home), result);
        }
        self.root_zone_ready();
    }

    /// A root counts: its zone is not reset before another one does.
    pub(crate) fn root_counts(&mut self) {
        if let RootCursor::Zone { zone, next, .. } = self.checkpoint.roots() {
            self.checkpoint.set_roots(RootCursor::Zone { zone, next, home: zone });
        }
    }

    /// No root can be written where the last one was to go. On zones the next one goes to the start of that which does not have the last root that
    /// counts; if the other one was left half full, it is finished before. Whether that has to be waited for.
    pub(crate) fn leave_root_zone(&mut self) -> bool {
        let full = self.segment_blocks();
        let RootCursor::Zone { zone, home, .. } = self.checkpoint.roots() else { return false };
        self.checkpoint.set_roots(RootCursor::Zone { zone: home, next: full, home });
        if zone == home {
            self.finish_zone(Purpose::RootFinish, self.start_of(LogSegmentId::new(home)));
        }
        zone == home
    }
}
