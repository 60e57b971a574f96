//! Requests that cover a sector in part, on a device with a buffer.
//!
//! The buffer knows 512 B sectors and nothing smaller. NBD clients may send any alignment, so what
//! covers a sector in part is read, changed and written under the device's lock.

use std::ops::Range;

use onefold_ssd::{Command, Payload};
use onefold_units::convert::{index64, u64_from};
use onefold_units::{Op, Status};

use super::{Shared, State};
use crate::block::Due;

const SECTOR: u64 = 512;

/// Whether a command has to go through [`Shared::submit_in_sectors`]. Reads may have any alignment.
pub(super) fn is_partial(state: &State, command: &Command) -> bool {
    let writes = matches!(command.op, Op::Write | Op::Trim | Op::WriteZeroes);
    let partial = !(command.offset | command.len).is_multiple_of(SECTOR);
    writes && partial && state.is_buffered()
}

impl Shared {
    /// Executes a command whose range is inside the device, whatever its alignment.
    pub(super) fn submit_in_sectors(
        &self,
        state: &mut State,
        command: &Command,
        payload: &Payload<'_>,
    ) -> Result<Due, Status> {
        let stop = command.offset + command.len;
        let outer = command.offset - command.offset % SECTOR..stop.next_multiple_of(SECTOR);
        if let Payload::Write(data) = payload {
            return self.change(state, command, outer, Some(data));
        }
        let inner = command.offset.next_multiple_of(SECTOR)..stop - stop % SECTOR;
        if inner.start >= inner.end {
            return self.change(state, command, outer, None);
        }
        // Only the ends are written; the whole sectors between them go the usual way.
        let len = inner.end - inner.start;
        let whole = Command { offset: inner.start, len, ..*command };
        let mut due = self.submit_aligned(state, &whole, Payload::Zeroes)?;
        let (head, tail) = (outer.start..inner.start, inner.end..outer.end);
        for (sector, from, to) in [(head, command.offset, inner.start), (tail, inner.end, stop)] {
            if !sector.is_empty() {
                let part = Command { offset: from, len: to - from, ..*command };
                due = due.max(self.change(state, &part, sector, None)?);
            }
        }
        Ok(due)
    }

    /// Puts `data`, or zeroes, at the place of `command` into the sectors of `range`.
    fn change(
        &self,
        state: &mut State,
        command: &Command,
        range: Range<u64>,
        data: Option<&[u8]>,
    ) -> Result<Due, Status> {
        let mut sectors = vec![0; index64(range.end - range.start)];
        // All but the first and the last sector are replaced completely.
        let sector = index64(SECTOR);
        let last = sectors.len() - sector;
        for from in if last > 0 { vec![0, last] } else { vec![0] } {
            let read = Command::new(Op::Read, range.start + u64_from(from), SECTOR);
            let bytes = &mut sectors[from..from + sector];
            self.submit_aligned(state, &read, Payload::Read(bytes))?;
        }
        let from = index64(command.offset - range.start);
        let target = &mut sectors[from..from + index64(command.len)];
        match data {
            Some(data) => target.copy_from_slice(data),
            None => target.fill(0),
        }
        let len = u64_from(sectors.len());
        let write = Command { op: Op::Write, offset: range.start, len, ..*command };
        self.submit_aligned(state, &write, Payload::Write(&sectors))
    }
}
