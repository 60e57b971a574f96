//! A request while its actions are executed: what it moves, and what it waits for.

use onefold_buffer::{Programmed, Req};
use onefold_nand::{Delay, Grant};
use onefold_units::convert::index;
use onefold_units::{Lpn, Nanos, Op};

use crate::Payload;
use crate::span::{Part, Span};
use crate::times::{Times, join};

/// A request while its actions are executed.
pub(crate) struct Job<'a, 'b> {
    pub(super) times: Times,
    pub(super) req: Req,
    pub(super) span: Span,
    pub(super) stream: u32,
    pub(super) payload: &'a mut Payload<'b>,
    /// What the host waits for.
    pub(super) all: Grant,
    /// When the slots of its victims can be used again.
    pub(super) freed: Nanos,
    /// When the last of its data can move between the host and DRAM, and how many 4 KiB pages do, one
    /// after the other.
    pub(super) movable: Nanos,
    pub(super) dram_pages: u64,
    /// Parts that came from flash, and those that the pool of victims served.
    pub(super) from_flash: u32,
    pub(super) from_pool: Vec<Part>,
}

impl<'a, 'b> Job<'a, 'b> {
    pub(crate) fn new(
        times: Times,
        req: Req,
        span: Span,
        stream: u32,
        payload: &'a mut Payload<'b>,
    ) -> Self {
        Self {
            times,
            req,
            span,
            stream,
            payload,
            all: Grant { done: times.ready, delay: Delay::None },
            freed: times.ready,
            movable: times.ready,
            dram_pages: 0,
            from_flash: 0,
            from_pool: Vec::new(),
        }
    }

    pub(super) fn part(&self, lpn: Lpn) -> Option<Part> {
        let (first, count) = self.span.units();
        let unit = u64::from(lpn.raw());
        (first..first + count).contains(&unit).then(|| self.span.part(unit))
    }

    /// A part moves between the host and DRAM when the slots it needs are free.
    pub(super) fn moves(&mut self, part: Part) {
        self.movable = self.movable.max(self.freed);
        self.dram_pages += part.pages();
    }

    /// Moves the requested part of a unit to the host.
    pub(super) fn deliver(&mut self, part: Part, unit: &[u8]) {
        if let (Payload::Read(buf), Some(bytes)) =
            (&mut *self.payload, unit.get(index(part.begin)..index(part.end)))
        {
            buf[part.at..part.at + index(part.len())].copy_from_slice(bytes);
        }
    }

    /// Whether the request has to wait for a program: FLUSH for all, FUA for its own pages.
    pub(super) fn awaits(&self, entries: &[Programmed]) -> bool {
        match self.req.op {
            Op::Flush => true,
            _ => self.req.fua && entries.iter().any(|entry| self.part(entry.lpn).is_some()),
        }
    }

    pub(super) fn wait_for_slots(&mut self, ready: Nanos, delay: Delay) {
        self.freed = self.freed.max(ready);
        self.all = join(self.all, Grant { done: self.freed, delay });
    }
}
