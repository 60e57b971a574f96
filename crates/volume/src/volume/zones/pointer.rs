//! What became of a write to a sequential zone that answered an error.
//!
//! The device may have carried out a part of it, or all of it and only the answer was an error. The write pointer moved then, and the zone
//! refuses the same write for ever. So before such a write is sent again, the backing is asked for the write pointer, and the rest is sent.
//!
//! 1. Between the start of a write and the write pointer lies what the write holds: a zone has one write under way at a time
//!    (`crate::zones`, invariant 1), and its bytes do not change while it is sent again (`crate::retries`, invariant 3).
//! 2. That is read and compared before it counts. A device that failed a write may have moved the write pointer over blocks that it
//!    cannot read, and a full zone does not say how far it was written.
//! 3. Where the write pointer is anywhere else, or something else lies there, the zone *refuses* the write: no pause changes that, so it
//!    fails at once if it can go elsewhere.
//! 4. What was found to be written completes then, not before: only a flush that begins afterwards covers it.

use onefold_units::ZoneState;

use crate::io::{Buffer, Io, IoFailed, IoId, IoKind};
use crate::limits::BLOCK;
use crate::pending::Purpose;
use crate::volume::Volume;
use crate::zones::ZoneStatus;

impl Volume {
    /// What a [`IoKind::Report`] found. To be called before its completion.
    pub fn zone_reported(&mut self, id: IoId, status: ZoneStatus) {
        self.pending.tell(id, status);
    }

    /// Sends a request again that failed, or asks before what is there of it.
    pub(crate) fn send_again(&mut self, id: IoId) {
        let Io { kind, at, .. } = self.pending.io(id);
        let zone = self.layout.segment_of(at);
        if kind == IoKind::Write && self.layout.is_sequential(zone) {
            let blocks = self.layout.geometry().zone_blocks;
            self.ask(IoKind::Report, Purpose::Pointer(id), self.start_of(zone), blocks);
        } else {
            self.pending.send(id);
        }
    }

    /// The backing said where the write pointer of the zone of a write is, or could not.
    pub(crate) fn pointer_over(&mut self, write: IoId, status: Result<ZoneStatus, IoFailed>) {
        let io = self.pending.io(write);
        match status.map(|status| self.carried_out(&io, status)) {
            Ok(Some(0)) => self.pending.send(write),
            Ok(Some(blocks)) => {
                self.ask(IoKind::Read, Purpose::Compare(write), io.at, blocks);
            }
            Ok(None) => self.refuse_write(write),
            Err(why) => self.completed(self.now, write, Err(why)),
        }
    }

    /// Blocks of a write that its zone may hold already; `None` if the zone does not take the rest (invariant 3).
    fn carried_out(&self, io: &Io, status: ZoneStatus) -> Option<u32> {
        let first = io.at.raw() - self.start_of(self.layout.segment_of(io.at)).raw();
        match status.state {
            ZoneState::Full => (first + io.blocks == self.segment_blocks()).then_some(io.blocks),
            state if state.is_active() || state == ZoneState::Empty => {
                status.written.checked_sub(first).filter(|blocks| *blocks <= io.blocks)
            }
            _ => None,
        }
    }

    /// What lies before the write pointer was read (invariant 2).
    pub(crate) fn compare_over(
        &mut self,
        write: IoId,
        found: &Buffer,
        result: Result<u32, IoFailed>,
    ) {
        let blocks = match result {
            Ok(blocks) => blocks,
            Err(why) => return self.completed(self.now, write, Err(why)),
        };
        // Where blocks carry no bytes there is the header alone.
        let same = self.buffer(write).iter().zip(found.bytes()).all(|(sent, found)| sent == found);
        if !same {
            return self.refuse_write(write);
        }
        self.stats.resumed_writes += 1;
        if self.pending.skip(write, blocks) == 0 {
            self.completed(self.now, write, Ok(()));
        } else {
            self.pending.send(write);
        }
    }

    /// Invariant 3.
    fn refuse_write(&mut self, write: IoId) {
        self.retries.refuse(write);
        self.completed(self.now, write, Err(IoFailed::Error));
    }

    /// The bytes of a request from the first one on that the backing does not have.
    pub(crate) fn rest_of<'a>(&self, id: IoId, bytes: &'a [u8]) -> &'a [u8] {
        let skipped = onefold_units::convert::index(self.pending.skipped(id)) * BLOCK;
        bytes.get(skipped..).unwrap_or_default()
    }
}
