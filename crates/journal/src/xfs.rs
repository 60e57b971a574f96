//! XFS: the FS header, the log inside, and devices that are a log. All numbers are big-endian.
//!
//! Source: "XFS Algorithms & Data Structures", chapters "Allocation Groups" and "Journaling Log"; zoned.md, section 7.

use onefold_units::PAGE_BYTES;

use crate::blocks::{Blocks, Stop, expect};
use crate::class::{Class, Confidence, System};
use crate::fields::{be16, be32, be64, byte};
use crate::parsed::{Journal, Parsed, Tail};
use crate::ring::{Extent, Ring};

const MAGIC: u32 = u32::from_be_bytes(*b"XFSB");
/// First word of every record of the log.
pub(crate) const LOG_MAGIC: u32 = 0xFEED_BABE;
/// Bytes of a basic block, which positions in the log count in.
const BASIC_BLOCK: u64 = 512;
/// Bytes of a record's head.
pub(crate) const RECORD_HEAD: usize = 512;

/// The file system, if there is one.
pub(crate) fn parse(source: &mut Blocks, place: Extent) -> Result<Option<Parsed>, Stop> {
    if place.bytes < PAGE_BYTES {
        return Ok(None);
    }
    let header = source.read(place.at, 512)?;
    match be32(&header, 0) {
        MAGIC => file_system(&header, place).map(Some),
        LOG_MAGIC => Ok(log_device(&header, place)),
        _ => Ok(None),
    }
}

fn file_system(header: &[u8], place: Extent) -> Result<Parsed, Stop> {
    expect(byte(header, 126) == 0, "it is being made")?;
    let block_bytes = be32(header, 4);
    expect(
        block_bytes.is_power_of_two() && (512..=65536).contains(&block_bytes),
        "its block size is impossible",
    )?;
    let bytes = be64(header, 8).checked_mul(block_bytes.into());
    expect(bytes.is_some_and(|bytes| bytes <= place.bytes), "it is larger than its place")?;
    let start = be64(header, 48);
    if start == 0 {
        return Ok(Parsed::remark(System::Xfs, "its log is on another device"));
    }
    let (group_blocks, groups, log_blocks) =
        (be32(header, 84), be32(header, 88), u64::from(be32(header, 96)));
    let shift = u32::from(byte(header, 124));
    // Block numbers hold the group above `shift` bits.
    let fits = group_blocks > 0 && shift < 32 && u64::from(group_blocks) <= 1 << shift;
    expect(fits, "its groups have an impossible size")?;
    let (group, block) = (start >> shift, start & ((1 << shift) - 1));
    let inside = group < u64::from(groups)
        && log_blocks > 0
        && block + log_blocks <= u64::from(group_blocks);
    expect(inside, "its log does not lie in one of its groups")?;
    let first = group * u64::from(group_blocks) + block;
    let log = Extent {
        at: place.at.saturating_add(first.saturating_mul(block_bytes.into())),
        bytes: log_blocks * u64::from(block_bytes),
    };
    expect(log.end() <= place.end(), "its log ends behind its place")?;
    let mut parsed = Parsed::new(System::Xfs);
    parsed.add(Class::JournalLog, &[log], "log inside of the file system");
    parsed.journal =
        Some(Journal { owner: (System::Xfs, place.at), log: Ring::of(log), tail: Tail::Xfs });
    Ok(parsed)
}

/// A device that begins with the first record of a log. How long the log is stands in the FS header on the other device.
fn log_device(header: &[u8], place: Extent) -> Option<Parsed> {
    let record = Record::parse(header)?;
    let fits =
        record.block == 0 && be16(header, 302) <= 3 && header[304..320].iter().any(|b| *b != 0);
    if !fits {
        return None;
    }
    let mut parsed = Parsed::new(System::XfsLog);
    parsed.confidence = Confidence::Medium;
    parsed.add(Class::JournalLog, &[place], "begins like the log device of an XFS");
    parsed.journal =
        Some(Journal { owner: (System::XfsLog, place.at), log: Ring::of(place), tail: Tail::Xfs });
    Some(parsed)
}

/// The head of a record of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    /// Lap of the ring.
    pub(crate) cycle: u32,
    /// Where in the log it lies, in basic blocks.
    pub(crate) block: u32,
    /// Bytes behind the head.
    pub(crate) len: u32,
    /// The oldest position that a recovery needs, in basic blocks.
    pub(crate) tail: u32,
}

impl Record {
    pub(crate) fn parse(head: &[u8]) -> Option<Self> {
        let (cycle, version, len) = (be32(head, 4), be32(head, 8), be32(head, 12));
        let sound = be32(head, 0) == LOG_MAGIC
            && (1..=2).contains(&version)
            && cycle > 0
            // The largest buffer of the log is 256 KiB.
            && len <= 256 * 1024
            && be32(head, 16) == cycle;
        sound.then(|| Self { cycle, block: be32(head, 20), len, tail: be32(head, 28) })
    }

    /// Bytes from the beginning of the log.
    pub(crate) fn position(&self) -> u64 {
        u64::from(self.block) * BASIC_BLOCK
    }

    /// Bytes from the beginning of the log to its tail.
    pub(crate) fn tail_position(&self) -> u64 {
        u64::from(self.tail) * BASIC_BLOCK
    }
}
