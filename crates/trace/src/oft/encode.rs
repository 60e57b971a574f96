//! Records into OFT blocks.

use onefold_units::convert::{index64, u32_from, u64_from};

use super::{
    BLOCK_DIGESTS, BLOCK_HEADER_BYTES, BLOCK_MAGIC, BLOCK_RECORDS, DIGEST_BYTES, FLAG_DIGESTS,
    HEADER_BYTES, Header, KIND_DIGESTS, KIND_END, KIND_RECORDS, NO_LATENCY, RECORD_BYTES, pages,
};
use crate::{Digest, Record, TraceOp};

/// Encodes a recording without doing I/O: [`Encoder::header`] first, then [`Encoder::push`] for
/// every record, which appends a block to `out` whenever one is full. A driver calls
/// [`Encoder::flush`] when the oldest unwritten record is a second old, so that a kill loses
/// little, and [`Encoder::finish`] at the end.
///
/// ```
/// use onefold_trace::oft::{Encoder, Header};
/// use onefold_trace::{Format, FormatSpec, Record, TraceOp, read_all};
///
/// let mut encoder = Encoder::new(Header::unknown());
/// let mut file = encoder.header().to_vec();
/// let record = Record::new(5, TraceOp::Write, 4096, 8192);
/// encoder.push(&record, &mut file);
/// encoder.finish(&mut file);
/// let (records, _) = read_all(FormatSpec::new(Format::Oft), &file)?;
/// assert_eq!(records, [record]);
/// # Ok::<(), onefold_trace::ReadError>(())
/// ```
#[derive(Debug)]
pub struct Encoder {
    header: Header,
    records: Vec<u8>,
    count: usize,
    first_t_ns: u64,
    digests: Vec<Digest>,
    dropped: u64,
}

impl Encoder {
    /// An encoder of a recording described by `header`.
    #[must_use]
    pub fn new(header: Header) -> Self {
        Self {
            header,
            records: Vec::with_capacity(BLOCK_RECORDS * RECORD_BYTES),
            count: 0,
            first_t_ns: 0,
            digests: Vec::new(),
            dropped: 0,
        }
    }

    /// The bytes at the start of the file.
    #[must_use]
    pub fn header(&self) -> [u8; HEADER_BYTES] {
        self.header.encode()
    }

    /// Counts records the recorder had to drop; written with the next block.
    pub const fn add_dropped(&mut self, records: u64) {
        self.dropped += records;
    }

    /// Records not yet in a block.
    #[must_use]
    pub const fn pending(&self) -> usize {
        self.count
    }

    /// Takes a record; appends a block to `out` if it is full now.
    pub fn push(&mut self, record: &Record, out: &mut Vec<u8>) {
        if self.count == 0 {
            self.first_t_ns = record.t_ns;
        }
        self.records.extend_from_slice(&encode_record(record));
        self.count += 1;
        if self.header.flags & FLAG_DIGESTS != 0 && record.op == TraceOp::Write {
            self.push_digests(record);
        }
        if self.count == BLOCK_RECORDS {
            self.flush(out);
        }
    }

    /// One digest per page; zeroes where the record has too few.
    fn push_digests(&mut self, record: &Record) {
        let pages = index64(pages(record.offset, record.len));
        let known = record.digests.as_deref().unwrap_or_default();
        let zeroes = std::iter::repeat_n([0; 16], pages.saturating_sub(known.len()));
        self.digests.extend(known.iter().copied().take(pages).chain(zeroes));
    }

    /// Appends what is pending as a block of its own.
    pub fn flush(&mut self, out: &mut Vec<u8>) {
        if self.count == 0 {
            return;
        }
        let records = std::mem::take(&mut self.records);
        self.block(KIND_RECORDS, self.count, &[&records], out);
        self.records = records;
        self.records.clear();
        self.count = 0;
        let digests = std::mem::take(&mut self.digests);
        for part in digests.chunks(BLOCK_DIGESTS) {
            self.block(KIND_DIGESTS, part.len(), &[part.as_flattened()], out);
        }
        self.digests = digests;
        self.digests.clear();
    }

    /// Appends what is pending and the end mark.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        self.flush(out);
        self.block(KIND_END, 0, &[], out);
    }

    fn block(&self, kind: u16, count: usize, parts: &[&[u8]], out: &mut Vec<u8>) {
        let payload: usize = parts.iter().map(|part| part.len()).sum();
        debug_assert!(u64_from(payload) <= 65_536 && count <= BLOCK_DIGESTS, "invariant 1");
        let start = out.len();
        out.extend_from_slice(&BLOCK_MAGIC);
        out.extend_from_slice(&kind.to_le_bytes());
        // Both limits are below 2^16.
        out.extend_from_slice(&u16::try_from(count).unwrap_or(u16::MAX).to_le_bytes());
        out.extend_from_slice(&u32_from(payload).to_le_bytes());
        out.extend_from_slice(&self.first_t_ns.to_le_bytes());
        out.extend_from_slice(&self.dropped.to_le_bytes());
        let mut crc = crc32c::crc32c(out.get(start..).unwrap_or_default());
        for part in parts {
            crc = crc32c::crc32c_append(crc, part);
        }
        out.extend_from_slice(&crc.to_le_bytes());
        debug_assert_eq!(out.len() - start, BLOCK_HEADER_BYTES);
        for part in parts {
            out.extend_from_slice(part);
        }
    }
}

const _: () = assert!(BLOCK_DIGESTS * DIGEST_BYTES < 1 << 16);

fn encode_record(record: &Record) -> [u8; RECORD_BYTES] {
    let mut bytes = [0; RECORD_BYTES];
    let words = [
        record.t_ns,
        record.lat_ns.unwrap_or(NO_LATENCY),
        record.offset,
        record.len,
        record.aux,
        u64::from(record.op.code())
            | u64::from(record.flags.bits()) << 8
            | u64::from(record.status) << 16
            | u64::from(record.client) << 32
            | u64::from(record.dev) << 48,
    ];
    for (place, word) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(words) {
        *place = word.to_le_bytes();
    }
    bytes
}
