//! OFT blocks into records.

use std::collections::VecDeque;

use onefold_units::convert::{index, index64, low8, low32, u64_from};

use super::{
    BLOCK_HEADER_BYTES, BLOCK_MAGIC, DIGEST_BYTES, FLAG_DIGESTS, HEADER_BYTES, Header,
    KIND_DIGESTS, KIND_END, KIND_RECORDS, NO_LATENCY, RECORD_BYTES, pages,
};
use crate::error::BinaryProblem;
use crate::lines::DATA_BYTES_MAX;
use crate::records::{u16_at, u32_at, u64_at};
use crate::{Digest, Flags, Format, ReadError, Record, TraceOp};

/// Longest payload: invariant 1, and about as many digests. So at most one block can be lost in a
/// torn end.
const PAYLOAD_MAX: usize = 1 << 16;

/// Zeroes that may follow the last block: a file system may extend a file before its data comes.
const ZERO_TAIL_MAX: usize = 1 << 20;

/// Digests that may wait for their records: invariant 2 bounds them by the writes of one block.
const DIGESTS_MAX: usize = 1 << 26;

/// Places that look like a block that are tried behind a damaged one.
const LATER_BLOCKS_TRIED: usize = 256;

/// Decodes a pushed byte stream.
#[derive(Debug)]
pub(crate) struct Decoder {
    header: Option<Header>,
    carry: Vec<u8>,
    byte: u64,
    blocks: u64,
    /// Records that wait for their digests.
    waiting: Vec<Record>,
    digests: VecDeque<Digest>,
    dropped: u64,
    ended: bool,
    /// The block at the start of `carry` is damaged.
    torn: bool,
    highest_dev: u16,
    any: bool,
    pub(crate) warnings: Vec<String>,
}

impl Decoder {
    pub(crate) const fn new() -> Self {
        Self {
            header: None,
            carry: Vec::new(),
            byte: 0,
            blocks: 0,
            waiting: Vec::new(),
            digests: VecDeque::new(),
            dropped: 0,
            ended: false,
            torn: false,
            highest_dev: 0,
            any: false,
            warnings: Vec::new(),
        }
    }

    pub(crate) const fn header(&self) -> Option<&Header> {
        self.header.as_ref()
    }

    /// Records the recorder dropped.
    pub(crate) const fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Names of the namespaces seen.
    pub(crate) fn devices(&self) -> Vec<String> {
        if !self.any {
            return Vec::new();
        }
        (0..=self.highest_dev).map(|number| format!("ns{number}")).collect()
    }

    pub(crate) fn push(&mut self, bytes: &[u8], out: &mut Vec<Record>) -> Result<(), ReadError> {
        if self.torn {
            self.carry.extend_from_slice(bytes);
            return self.check_carry();
        }
        let mut rest = bytes;
        // Finish the block whose start came with earlier pushes; then work in place.
        while !self.carry.is_empty() && !rest.is_empty() {
            let wanted = self.wanted(&self.carry).max(self.carry.len() + 1);
            let take = (wanted - self.carry.len()).min(rest.len());
            let (head, tail) = rest.split_at(take);
            self.carry.extend_from_slice(head);
            rest = tail;
            let carry = std::mem::take(&mut self.carry);
            let used = self.take_all(&carry, out)?;
            self.carry = carry;
            self.carry.drain(..used);
            if self.torn {
                break;
            }
        }
        let used = if self.torn { 0 } else { self.take_all(rest, out)? };
        self.carry.extend_from_slice(rest.get(used..).unwrap_or_default());
        self.check_carry()
    }

    /// Bytes needed to decode what starts at `bytes`, as far as it can tell.
    fn wanted(&self, bytes: &[u8]) -> usize {
        if self.header.is_none() {
            return HEADER_BYTES;
        }
        if bytes.len() < BLOCK_HEADER_BYTES {
            return BLOCK_HEADER_BYTES;
        }
        let payload = index(u32_at(bytes, 8));
        BLOCK_HEADER_BYTES + payload.min(PAYLOAD_MAX)
    }

    fn take_all(&mut self, bytes: &[u8], out: &mut Vec<Record>) -> Result<usize, ReadError> {
        let mut used = 0;
        loop {
            let rest = bytes.get(used..).unwrap_or_default();
            let wanted = self.wanted(rest);
            let Some(piece) = rest.get(..wanted) else { return Ok(used) };
            if self.header.is_none() {
                let header = piece.first_chunk().ok_or(BinaryProblem::Size {
                    what: "header length",
                    found: 0,
                    expected: 64,
                });
                let header =
                    header.and_then(Header::decode).map_err(|problem| self.bad(problem))?;
                self.header = Some(header);
            } else {
                match self.block(piece, out) {
                    Ok(()) => {}
                    // Perhaps the torn last block: the rest of the file tells.
                    Err(Damage::Torn) => {
                        self.torn = true;
                        return Ok(used);
                    }
                    Err(Damage::Bad(problem)) => return Err(self.bad(problem)),
                }
            }
            used += wanted;
            self.byte += u64_from(wanted);
        }
    }

    /// A block that stays undecodable although more than its length is there is not a torn end.
    fn check_carry(&self) -> Result<(), ReadError> {
        if !self.torn || self.carry.len() <= self.wanted(&self.carry) {
            return Ok(());
        }
        if self.carry.len() <= ZERO_TAIL_MAX && self.carry.iter().all(|byte| *byte == 0) {
            return Ok(());
        }
        Err(self.bad(self.problem(&self.carry)))
    }

    /// Why the block at `bytes` cannot be decoded.
    fn problem(&self, bytes: &[u8]) -> BinaryProblem {
        let magic = u32::from_le_bytes(BLOCK_MAGIC);
        if u32_at(bytes, 0) != magic {
            return BinaryProblem::Magic { found: u32_at(bytes, 0), expected: magic };
        }
        let piece = bytes.get(..self.wanted(bytes)).unwrap_or(bytes);
        BinaryProblem::Checksum { found: u32_at(piece, 28), expected: checksum(piece) }
    }

    fn block(&mut self, block: &[u8], out: &mut Vec<Record>) -> Result<(), Damage> {
        if !block.starts_with(&BLOCK_MAGIC) || u32_at(block, 28) != checksum(block) {
            return Err(Damage::Torn);
        }
        let payload = block.get(BLOCK_HEADER_BYTES..).unwrap_or_default();
        let kind = u16_at(block, 4);
        let size = match kind {
            KIND_RECORDS => RECORD_BYTES,
            KIND_DIGESTS => DIGEST_BYTES,
            _ => 0,
        };
        let expected = usize::from(u16_at(block, 6)) * size;
        if payload.len() != expected {
            return Err(Damage::Bad(BinaryProblem::Size {
                what: "payload length",
                found: u64_from(payload.len()),
                expected: u64_from(expected),
            }));
        }
        self.dropped = self.dropped.max(u64_at(block, 20));
        self.blocks += 1;
        match kind {
            KIND_RECORDS => self.records(payload, out),
            KIND_DIGESTS => self.add_digests(payload),
            KIND_END => {
                self.ended = true;
                Ok(())
            }
            _ => {
                Err(Damage::Bad(BinaryProblem::Code { what: "block kind", found: u64::from(kind) }))
            }
        }
    }

    fn records(&mut self, payload: &[u8], out: &mut Vec<Record>) -> Result<(), Damage> {
        self.give_out(out);
        let digests = self.header.is_some_and(|header| header.flags & FLAG_DIGESTS != 0);
        let out = if digests { &mut self.waiting } else { out };
        let (records, _) = payload.as_chunks::<RECORD_BYTES>();
        out.reserve(records.len());
        self.any |= !records.is_empty();
        let mut highest = self.highest_dev;
        for bytes in records {
            let record = decode_record(bytes).map_err(Damage::Bad)?;
            highest = highest.max(record.dev);
            out.push(record);
        }
        self.highest_dev = highest;
        Ok(())
    }

    fn add_digests(&mut self, payload: &[u8]) -> Result<(), Damage> {
        let (digests, _) = payload.as_chunks::<DIGEST_BYTES>();
        if self.digests.len() + digests.len() > DIGESTS_MAX {
            return Err(Damage::Bad(BinaryProblem::Size {
                what: "count of digests of one record block",
                found: u64_from(self.digests.len() + digests.len()),
                expected: u64_from(DIGESTS_MAX),
            }));
        }
        self.digests.extend(digests);
        Ok(())
    }

    /// Gives the waiting records their digests (invariant 2).
    fn give_out(&mut self, out: &mut Vec<Record>) {
        for mut record in self.waiting.drain(..) {
            if record.op == TraceOp::Write {
                let count = index64(pages(record.offset, record.len));
                if count <= self.digests.len() {
                    let own: Box<[Digest]> = self.digests.drain(..count).collect();
                    // A write without any digest was written as zeroes.
                    if own.iter().any(|digest| *digest != [0; 16]) {
                        record.digests = Some(own);
                    }
                }
            }
            out.push(record);
        }
        self.digests.clear();
    }

    pub(crate) fn finish(&mut self, out: &mut Vec<Record>) -> Result<(), ReadError> {
        if self.header.is_none() {
            return Err(ReadError::Truncated {
                format: Format::Oft,
                byte: u64_from(self.carry.len()),
                missing: u64_from(HEADER_BYTES - self.carry.len()),
            });
        }
        self.give_out(out);
        if self.has_later_block() {
            return Err(self.bad(self.problem(&self.carry)));
        }
        if !self.carry.is_empty() {
            self.warnings.push(format!(
                "the last block, {} bytes at byte {}, is torn and was dropped",
                self.carry.len(),
                self.byte
            ));
        } else if !self.ended {
            self.warnings.push("the recording has no end mark: the recorder was killed".to_owned());
        }
        if self.dropped > 0 {
            self.warnings.push(format!("the recorder dropped {} records", self.dropped));
        }
        Ok(())
    }

    /// Whether a whole block follows the damaged one, which then was not the last (invariant 4): a
    /// damaged length may hide it.
    fn has_later_block(&self) -> bool {
        let magics = self.carry.windows(BLOCK_MAGIC.len()).enumerate().skip(1);
        magics
            .filter(|(_, window)| *window == BLOCK_MAGIC)
            .take(LATER_BLOCKS_TRIED)
            .filter_map(|(at, _)| self.carry.get(at..))
            .filter_map(|rest| rest.get(..self.wanted(rest)))
            .any(|block| u32_at(block, 28) == checksum(block))
    }

    const fn bad(&self, problem: BinaryProblem) -> ReadError {
        ReadError::Record { format: Format::Oft, record: self.blocks + 1, byte: self.byte, problem }
    }
}

enum Damage {
    /// Not written as a whole.
    Torn,
    /// Written, but not by a recorder of this version.
    Bad(BinaryProblem),
}

fn checksum(block: &[u8]) -> u32 {
    let crc = crc32c::crc32c(block.get(..28).unwrap_or_default());
    crc32c::crc32c_append(crc, block.get(BLOCK_HEADER_BYTES..).unwrap_or_default())
}

#[inline]
fn decode_record(bytes: &[u8; RECORD_BYTES]) -> Result<Record, BinaryProblem> {
    let word = |at: usize| u64_at(bytes, at * 8);
    let (t_ns, lat_ns, offset, len, aux, packed) =
        (word(0), word(1), word(2), word(3), word(4), word(5));
    let code = low8(packed);
    let op = TraceOp::from_code(code)
        .ok_or_else(|| BinaryProblem::Code { what: "operation", found: u64::from(code) })?;
    let low16 = |value: u64| u16::try_from(low32(value) & 0xFFFF).unwrap_or_default();
    let record = Record {
        t_ns,
        offset,
        len,
        lat_ns: if lat_ns == NO_LATENCY { None } else { Some(lat_ns) },
        aux,
        op,
        flags: Flags::from_bits(low8(packed >> 8)),
        status: low16(packed >> 16),
        client: low16(packed >> 32),
        dev: low16(packed >> 48),
        digests: None,
    };
    let wrong_len = op.is_data() && (len == 0 || len > DATA_BYTES_MAX);
    if record.overflows() || wrong_len || (op == TraceOp::Remap && len == 0) {
        // Of a remap whose source is wrong, that is what to look at.
        let inside = offset.checked_add(len).is_some();
        let offset = record.source().filter(|_| inside).unwrap_or(offset);
        return Err(BinaryProblem::Range { offset, len });
    }
    Ok(record)
}
