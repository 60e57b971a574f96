//! Binary files of blktrace, one per CPU: 48 B and `pdu_len` bytes per event.
//!
//! magic u32 = 656174xxh (xx = version 7), seq u32, `time_ns` u64, sector u64, bytes u32, action
//! u32, pid u32, dev u32 (major << 20 | minor), cpu u32, error u16, `pdu_len` u16, in the byte order of
//! the recording machine. Source: `include/uapi/linux/blktrace_api.h` of the kernel.

use onefold_units::SECTOR_BYTES;

use crate::cursor::Cursor;
use crate::error::BinaryProblem;
use crate::formats::block::{Block, BlockRequest, key};
use crate::formats::rwbs::Rwbs;
use crate::lines::{Context, Taken};
use crate::records::RecordFormat;
use crate::{Event, Flags, Record, TraceOp};

const HEADER_BYTES: usize = 48;
const MAGIC: u32 = 0x6561_7400;
const VERSION: u32 = 7;

// Actions, low 16 bits.
const QUEUE: u32 = 1;
const REQUEUE: u32 = 6;
const ISSUE: u32 = 7;
const COMPLETE: u32 = 8;

// Categories, high 16 bits.
const WRITE: u32 = 2;
const FLUSH: u32 = 4;
const SYNC: u32 = 8;
const NOTIFY: u32 = 0x400;
const READAHEAD: u32 = 0x800;
const META: u32 = 0x1000;
const DISCARD: u32 = 0x2000;
const FUA: u32 = 0x8000;

/// `major << 20 | minor`.
const MINOR_BITS: u32 = 20;

#[derive(Debug, Default)]
pub(crate) struct Blktrace {
    block: Block,
    big_endian: bool,
}

impl Blktrace {
    fn u32_at(&self, bytes: &[u8], at: usize) -> u32 {
        let chunk = bytes.get(at..).and_then(<[u8]>::first_chunk).copied().unwrap_or_default();
        if self.big_endian { u32::from_be_bytes(chunk) } else { u32::from_le_bytes(chunk) }
    }

    fn u64_at(&self, bytes: &[u8], at: usize) -> u64 {
        let chunk = bytes.get(at..).and_then(<[u8]>::first_chunk).copied().unwrap_or_default();
        if self.big_endian { u64::from_be_bytes(chunk) } else { u64::from_le_bytes(chunk) }
    }

    fn u16_at(&self, bytes: &[u8], at: usize) -> u16 {
        let chunk = bytes.get(at..).and_then(<[u8]>::first_chunk).copied().unwrap_or_default();
        if self.big_endian { u16::from_be_bytes(chunk) } else { u16::from_le_bytes(chunk) }
    }
}

/// Whether a file starts with an event, in either byte order.
pub(crate) fn is_magic(bytes: &[u8]) -> bool {
    let Some(first) = bytes.first_chunk() else { return false };
    let little = u32::from_le_bytes(*first) & !0xFF == MAGIC;
    little || u32::from_be_bytes(*first) & !0xFF == MAGIC
}

/// Length and time of the event that starts at `bytes`, for merging the files of several CPUs;
/// `None` if there is no whole header of an event.
#[must_use]
pub fn blktrace_event(bytes: &[u8]) -> Option<(usize, u64)> {
    let mut format = Blktrace::default();
    let length = format.length(bytes).ok().flatten()?;
    Some((length, format.u64_at(bytes, 8)))
}

impl RecordFormat for Blktrace {
    fn length(&mut self, bytes: &[u8]) -> Result<Option<usize>, BinaryProblem> {
        let Some(header) = bytes.get(..HEADER_BYTES) else { return Ok(None) };
        let first = header.first_chunk().copied().unwrap_or_default();
        let little = u32::from_le_bytes(first);
        self.big_endian = little & !0xFF != MAGIC;
        let magic = self.u32_at(header, 0);
        if magic & !0xFF != MAGIC {
            return Err(BinaryProblem::Magic { found: little, expected: MAGIC | VERSION });
        }
        if magic & 0xFF != VERSION {
            return Err(BinaryProblem::Version { found: magic & 0xFF, expected: VERSION });
        }
        Ok(Some(HEADER_BYTES + usize::from(self.u16_at(header, 46))))
    }

    fn record(
        &mut self,
        bytes: &[u8],
        context: &mut Context,
        out: &mut Vec<Record>,
    ) -> Result<Taken, BinaryProblem> {
        let action = self.u32_at(bytes, 28);
        let (what, kind) = (action & 0xFFFF, action >> 16);
        let wanted = if context.event == Event::Queue { QUEUE } else { ISSUE };
        if kind & NOTIFY != 0 || ![wanted, COMPLETE, REQUEUE].contains(&what) {
            return Ok(Taken::Nothing);
        }
        let t_ns = self.u64_at(bytes, 8);
        let sector = self.u64_at(bytes, 16);
        let length = u64::from(self.u32_at(bytes, 24));
        let sectors = length / SECTOR_BYTES;
        let device = self.u32_at(bytes, 36);
        let name = format!("{},{}", device >> MINOR_BITS, device & ((1 << MINOR_BITS) - 1));
        let dev = context
            .device(name.as_bytes())
            .map_err(|_| BinaryProblem::Code { what: "device", found: u64::from(device) })?;
        match what {
            COMPLETE => self.block.complete(key(dev, sector, sectors), t_ns, out),
            REQUEUE => self.block.requeue(key(dev, sector, sectors)),
            _ => {
                let rwbs = rwbs(kind, sectors);
                let asked = BlockRequest { t_ns, dev, sector, sectors, rwbs };
                let taken = self
                    .block
                    .issue(&Cursor::new(&[]), &asked, out)
                    .map_err(|_| BinaryProblem::Range { offset: sector, len: length })?;
                if taken {
                    return Ok(Taken::Request);
                }
            }
        }
        Ok(Taken::Nothing)
    }

    fn finish(&mut self, context: &mut Context, out: &mut Vec<Record>) {
        self.block.finish(&mut context.facts, out);
    }
}

fn rwbs(kind: u32, sectors: u64) -> Rwbs {
    let flag = |bit, flag| if kind & bit != 0 { flag } else { Flags::NONE };
    let flush = kind & FLUSH != 0;
    let op = if kind & DISCARD != 0 {
        TraceOp::Trim
    } else if flush && sectors == 0 {
        TraceOp::Flush
    } else if kind & WRITE != 0 {
        TraceOp::Write
    } else if kind & 1 != 0 {
        TraceOp::Read
    } else {
        // Neither direction: a zeroing write if it has an extent.
        TraceOp::WriteZeroes
    };
    let flags = flag(SYNC, Flags::SYNC)
        .with(flag(META, Flags::META))
        .with(flag(READAHEAD, Flags::READAHEAD))
        .with(flag(FUA, Flags::FUA));
    Rwbs { op, flags, preflush: flush && op != TraceOp::Flush }
}
