//! GPT and MBR. All numbers are little-endian.
//!
//! Source: UEFI specification 2.10, chapter 5 (GPT with its checksums, protective MBR); the chain of extended partitions as
//! Linux reads it (block/partitions/msdos.c). Differs from it: the backup GPT at the end of the device is not used, and an
//! MBR counts in units of 512 B.

use onefold_units::convert::index;

use crate::blocks::{Blocks, Stop, expect};
use crate::class::System;
use crate::fields::{byte, le16, le32, le64};
use crate::ring::Extent;

/// Most partitions that are looked at.
pub(crate) const PARTITIONS_MAX: usize = 128;
/// Most links in the chain of extended partitions.
const CHAIN_MAX: usize = 32;
/// Most bytes of a GPT's entries.
const ENTRIES_BYTES_MAX: usize = 64 * 1024;

const MBR_UNIT: u64 = 512;
const PROTECTIVE: u8 = 0xEE;
const EXTENDED: [u8; 3] = [0x05, 0x0F, 0x85];

/// A table of partitions.
#[derive(Debug)]
pub(crate) struct Partitions {
    pub(crate) system: System,
    pub(crate) places: Vec<Extent>,
}

/// The table, if there is one.
pub(crate) fn parse(source: &mut Blocks) -> Result<Option<Partitions>, Stop> {
    let device = Extent { at: 0, bytes: source.device_bytes() };
    if device.bytes < 8192 {
        return Ok(None);
    }
    let head = source.read(0, 8192)?;
    if le16(&head, 510) != 0xAA55 {
        return Ok(None);
    }
    let entries = entries_of_mbr(&head);
    if entries.iter().any(|entry| entry.kind == PROTECTIVE) {
        for unit in [512, 4096] {
            if head[unit..].starts_with(b"EFI PART") {
                let places = gpt(source, &head[unit..], unit, device)?;
                return Ok(Some(Partitions { system: System::Gpt, places }));
            }
        }
        return Err(Stop::Rejected("its header is missing"));
    }
    // Boot code of file systems ends with the same signature.
    let sound = (0..4).all(|n| matches!(byte(&head, 446 + 16 * n), 0 | 0x80))
        && entries.iter().all(|entry| entry.extent(0).end() <= device.bytes)
        && entries.iter().any(|entry| entry.kind != 0 && entry.first > 0 && entry.count > 0);
    if !sound {
        return Ok(None);
    }
    let mut places = Vec::new();
    for entry in entries.iter().filter(|entry| entry.kind != 0 && entry.first > 0) {
        if EXTENDED.contains(&entry.kind) {
            chain(source, entry.extent(0), &mut places)?;
        } else if entry.count > 0 {
            places.push(entry.extent(0));
        }
    }
    Ok(Some(Partitions { system: System::Mbr, places }))
}

/// An entry of an MBR.
struct Entry {
    kind: u8,
    first: u32,
    count: u32,
}

impl Entry {
    /// Where it lies, if it counts from byte `base` on.
    fn extent(&self, base: u64) -> Extent {
        let at = base.saturating_add(u64::from(self.first) * MBR_UNIT);
        Extent { at, bytes: u64::from(self.count) * MBR_UNIT }
    }
}

fn entries_of_mbr(head: &[u8]) -> Vec<Entry> {
    let entry = |at: usize| Entry {
        kind: byte(head, at + 4),
        first: le32(head, at + 8),
        count: le32(head, at + 12),
    };
    (0..4).map(|n| entry(446 + 16 * n)).collect()
}

/// Logical partitions: each link has one, and an entry that leads to the next link.
fn chain(source: &mut Blocks, extended: Extent, places: &mut Vec<Extent>) -> Result<(), Stop> {
    let mut at = extended.at;
    for _ in 0..CHAIN_MAX {
        let link = source.read(at, 512)?;
        expect(le16(&link, 510) == 0xAA55, "its chain of extended partitions is broken")?;
        let mut next = None;
        for entry in entries_of_mbr(&link).iter().filter(|entry| entry.count > 0) {
            if EXTENDED.contains(&entry.kind) {
                next = Some(entry.extent(extended.at).at);
            } else if entry.kind != 0 {
                let place = entry.extent(at);
                expect(place.end() <= extended.end(), "a logical partition ends outside")?;
                places.push(place);
            }
        }
        // Links may lead anywhere, but not back: a chain that does has no end.
        match next.filter(|next| *next > at && *next < extended.end()) {
            Some(next) => at = next,
            None => return Ok(()),
        }
    }
    Ok(())
}

fn gpt(
    source: &mut Blocks,
    header: &[u8],
    unit: usize,
    device: Extent,
) -> Result<Vec<Extent>, Stop> {
    let unit_bytes = onefold_units::convert::u64_from(unit);
    let header_bytes = index(le32(header, 12));
    expect((92..=512).contains(&header_bytes), "its header has an impossible length")?;
    let mut summed = header[..header_bytes].to_vec();
    summed[16..20].fill(0);
    expect(crc32(&summed) == le32(header, 16), "the checksum of its header is wrong")?;
    let (count, size) = (index(le32(header, 80)), index(le32(header, 84)));
    expect(size >= 128 && size.is_power_of_two(), "its entries have an impossible length")?;
    let bytes = count.checked_mul(size).filter(|bytes| (1..=ENTRIES_BYTES_MAX).contains(bytes));
    let Some(bytes) = bytes else {
        return Err(Stop::Rejected("it has an impossible number of entries"));
    };
    let Some(at) = le64(header, 72).checked_mul(unit_bytes) else {
        return Err(Stop::Rejected("its entries lie behind the device"));
    };
    let entries = source.read(at, bytes)?;
    expect(crc32(&entries) == le32(header, 88), "the checksum of its entries is wrong")?;
    let mut places = Vec::new();
    for entry in entries.chunks_exact(size).filter(|entry| entry[..16].iter().any(|b| *b != 0)) {
        let (first, last) = (le64(entry, 32), le64(entry, 40));
        let at = first.checked_mul(unit_bytes);
        let end = last.checked_add(1).and_then(|end| end.checked_mul(unit_bytes));
        let (Some(at), Some(end)) = (at, end) else {
            return Err(Stop::Rejected("a partition lies behind the device"));
        };
        expect(at > 0 && at < end && end <= device.bytes, "a partition lies behind the device")?;
        places.push(Extent { at, bytes: end - at });
    }
    Ok(places)
}

/// CRC-32 as in Ethernet. Tables are small, and read rarely: a bit at a time is fast enough.
pub(crate) fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0xEDB8_8320 } else { crc >> 1 };
        }
    }
    !crc
}
