//! Requests that other threads execute: which, how they get there, and how their replies come back.

use std::ops::Range;

use onefold_device::BlockDevice;
use onefold_units::Op;

use super::super::execute::reply_bytes;
use super::super::parse::{Command, Request, Target};
use super::super::registry::ConnectionError;
use super::super::workers::{Payload, Workers};
use super::{Connection, operation};
use crate::memory::Buffer;

impl<D: BlockDevice + 'static> Connection<D> {
    /// Whether another thread is to execute a request that would keep others waiting. One that is alone
    /// is executed faster in place.
    pub(super) fn is_to_leave(&mut self, request: &Request, alone: bool) -> bool {
        let alone = alone && self.working() == 0;
        let waits = |op| self.observed.waits(op);
        let helps = match request.command {
            Command::Read { .. } | Command::BlockStatus { .. } => !alone && waits(Op::Read),
            Command::Flush => waits(Op::Flush),
            // It may wait for space, which a trim behind it makes.
            Command::Write { fua, .. } | Command::WriteZeroes { fua, .. } => {
                waits(Op::Write) || fua && waits(Op::Flush)
            }
            Command::Trim { fua, .. } => fua && waits(Op::Flush),
        };
        helps && self.machine.target() != Target::Control
    }

    /// Whether there are a thread and memory to execute a request elsewhere.
    pub(super) fn can_leave(
        &mut self,
        request: &Request,
        consumed: usize,
        payload: &Range<usize>,
    ) -> bool {
        if self.workers.is_none() {
            self.workers = Workers::new(&self.observed).ok();
        }
        let growth =
            if self.splits(payload) { self.input.split_growth(consumed) } else { payload.len() };
        self.workers.as_mut().is_some_and(Workers::are_ready)
            && self.charge(reply_bytes(&request.command) + growth)
    }

    /// Whether a payload leaves with the buffer it is in, which then is mostly the payload.
    fn splits(&self, payload: &Range<usize>) -> bool {
        payload.len() > self.input.capacity() / 2
    }

    pub(super) fn hand_over(&mut self, request: Request, consumed: usize, payload: Range<usize>) {
        let payload: Payload = if self.splits(&payload) {
            self.input.split(consumed, &payload)
        } else {
            let mut copy = Buffer::new(payload.len());
            copy.copy_from_slice(&self.input.data()[payload]);
            self.input.consume(consumed);
            let whole = 0..copy.len();
            (copy, whole)
        };
        let style = self.machine.reply_style();
        if let Some(workers) = &mut self.workers {
            workers.take(style, request, payload);
        }
    }

    /// Takes the replies of requests that other threads executed.
    pub(super) fn collect(&mut self) -> Result<(), ConnectionError> {
        let Some(workers) = &mut self.workers else { return Ok(()) };
        let mut all = Vec::new();
        if workers.pending() > 0 && !workers.collect(&mut all) {
            return Err(ConnectionError::Lost);
        }
        for done in all {
            match (done.due, operation(&done.command)) {
                (None, _) => self.out.push(done.reply),
                (Some(due), op) => {
                    self.delayed.push(due, op, done.reply);
                    self.note_delay(op);
                }
            }
        }
        Ok(())
    }
}
