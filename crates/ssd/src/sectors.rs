//! Writes that cover a sector in part, in front of the buffer.
//!
//! The buffer knows sectors of 512 B and nothing smaller. What covers one in part is read, changed
//! and written as a whole. NBD clients and traces may send any alignment.

use onefold_nand::{Delay, Grant, Media};
use onefold_units::Op;
use onefold_units::convert::index64;

use crate::span::Span;
use crate::times::{Times, join};
use crate::{Command, Payload, Ssd, SsdError};

const SECTOR: u64 = 512;

impl<M: Media> Ssd<M> {
    /// Writes a range of any alignment: `payload`, or zeroes.
    pub(crate) fn write_in_sectors(
        &mut self,
        times: Times,
        span: Span,
        command: &Command,
        payload: &Payload<'_>,
    ) -> Result<Grant, SsdError> {
        let end = span.offset + span.len;
        let begin = span.offset - span.offset % SECTOR;
        let outer = Span { offset: begin, len: end.next_multiple_of(SECTOR) - begin, ..span };
        let mut sectors = vec![0; if M::STORES { index64(outer.len) } else { 0 }];
        let read = self.read_edges(times, span, outer, command, &mut sectors)?;
        let from = index64(span.offset - begin);
        if let Some(target) = sectors.get_mut(from..from + index64(span.len)) {
            match payload {
                Payload::Write(data) => target.copy_from_slice(data),
                _ => target.fill(0),
            }
        }
        let mut payload = if M::STORES { Payload::Write(&sectors) } else { Payload::None };
        let times = Times { ready: read.done, ..times };
        Ok(join(read, self.execute(times, outer, command, Op::Write, &mut payload)?))
    }

    /// Reads the sectors at the ends of `outer` that `span` covers in part.
    fn read_edges(
        &mut self,
        times: Times,
        span: Span,
        outer: Span,
        command: &Command,
        sectors: &mut [u8],
    ) -> Result<Grant, SsdError> {
        let end = span.offset + span.len;
        let (first, last) = (outer.offset, outer.offset + outer.len - SECTOR);
        let head = !span.offset.is_multiple_of(SECTOR);
        let tail = !end.is_multiple_of(SECTOR) && (first != last || !head);
        let edges = [head.then_some(first), tail.then_some(last)];
        let mut all = Grant { done: times.ready, delay: Delay::None };
        for offset in edges.into_iter().flatten() {
            let from = index64(offset - outer.offset);
            let mut payload = match sectors.get_mut(from..from + index64(SECTOR)) {
                Some(sector) => Payload::Read(sector),
                None => Payload::None,
            };
            let sector = Span { offset, len: SECTOR, ..span };
            all = join(all, self.execute(times, sector, command, Op::Read, &mut payload)?);
        }
        Ok(all)
    }
}
