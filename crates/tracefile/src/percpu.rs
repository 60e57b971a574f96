//! The files that blktrace writes per CPU, merged by time into one stream of events, so that a
//! completion on one CPU finds its issue on another.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::PathBuf;

use onefold_trace::blktrace_event;

use crate::error::TraceFileError;
use crate::open::Bytes;

/// Bytes read from one file at once.
const CHUNK: usize = 1 << 16;

/// One file and its next event.
#[derive(Debug)]
struct Cpu {
    bytes: Bytes,
    buffer: Vec<u8>,
    at: usize,
}

impl Cpu {
    /// Length and time of the next event; `None` at the end of the file. What is not an event is
    /// given out at once, for the reader to judge.
    fn next(&mut self) -> Result<Option<(usize, u64)>, TraceFileError> {
        loop {
            let rest = self.buffer.get(self.at..).unwrap_or_default();
            if let Some((length, time)) = blktrace_event(rest)
                && rest.len() >= length
            {
                return Ok(Some((length, time)));
            }
            self.buffer.drain(..self.at);
            self.at = 0;
            let have = self.buffer.len();
            self.buffer.resize(have + CHUNK, 0);
            let read = self.bytes.read(&mut self.buffer[have..])?;
            self.buffer.truncate(have + read);
            if read == 0 {
                return Ok((have > 0).then_some((have, 0)));
            }
        }
    }
}

/// All files of one trace.
#[derive(Debug)]
pub(crate) struct PerCpu {
    cpus: Vec<Cpu>,
    /// Time of the next event, number of the file, length of the event.
    heads: BinaryHeap<Reverse<(u64, usize, usize)>>,
}

impl PerCpu {
    /// Merges `first`, already open, with further files.
    pub(crate) fn new(first: Bytes, more: &[PathBuf]) -> Result<Self, TraceFileError> {
        let mut files = vec![first];
        for path in more {
            files.push(Bytes::open(path)?);
        }
        let cpus =
            files.into_iter().map(|bytes| Cpu { bytes, buffer: Vec::new(), at: 0 }).collect();
        let mut merged = Self { cpus, heads: BinaryHeap::new() };
        for number in 0..merged.cpus.len() {
            merged.refill(number)?;
        }
        Ok(merged)
    }

    fn refill(&mut self, number: usize) -> Result<(), TraceFileError> {
        if let Some((length, time)) = self.cpus[number].next()? {
            self.heads.push(Reverse((time, number, length)));
        }
        Ok(())
    }

    /// Appends the events of about `wanted` bytes to `out`; nothing at the end.
    pub(crate) fn read(&mut self, wanted: usize, out: &mut Vec<u8>) -> Result<(), TraceFileError> {
        while out.len() < wanted {
            let Some(Reverse((_, number, length))) = self.heads.pop() else { return Ok(()) };
            let cpu = &mut self.cpus[number];
            out.extend_from_slice(&cpu.buffer[cpu.at..cpu.at + length]);
            cpu.at += length;
            self.refill(number)?;
        }
        Ok(())
    }
}
