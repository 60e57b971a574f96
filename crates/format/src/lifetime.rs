//! Lifetime counters of a device, 512 B: magic 4 | version 2 | 0 2 | uuid 16 | number 8 | since 8 | host bytes read 8,
//! written 8, discarded 8 | failed reads 8 | media failures 8 | erases 8 | power cycles 8 | unclean starts 8 | pages
//! programmed by cause 8 each | 0 .. | crc 4.

use onefold_units::{Cause, CauseCounts, PAGE_BYTES};

use crate::bytes::{Reader, Writer, checked_body, seal};

/// Version of the record of lifetime counters.
pub const LIFETIME_VERSION: u64 = 1;

/// Bytes of the record of lifetime counters: one sector.
pub const LIFETIME_BYTES: usize = 512;

const MAGIC: u64 = 0x464C_464F; // "OFLF"

/// No device gets there: 1 EiB, in bytes and in pages.
const COUNT_MAX: u64 = 1 << 60;
const PAGES_MAX: u64 = COUNT_MAX / PAGE_BYTES;

/// What a device counted since it was made, as SMART has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lifetime {
    /// When counting began, in seconds since 1970-01-01 UTC.
    pub since: u64,
    /// Bytes that the host read.
    pub host_read_bytes: u64,
    /// Bytes that the host wrote.
    pub host_written_bytes: u64,
    /// Bytes that the host discarded or had zeroed.
    pub host_discarded_bytes: u64,
    /// Reads of the host that failed.
    pub failed_reads: u64,
    /// Flash reads and programs that failed, for the host or not.
    pub media_failures: u64,
    /// Superblocks erased.
    pub erases: u64,
    /// Openings for use.
    pub power_cycles: u64,
    /// Openings after the device was not shut down cleanly.
    pub unclean_starts: u64,
    /// 4 KiB pages programmed, by cause.
    pub programs: CauseCounts,
}

impl Lifetime {
    /// These counters and what was counted after them.
    #[must_use]
    pub fn plus(&self, later: &Self) -> Self {
        let mut programs = self.programs;
        for (cause, pages) in later.programs.iter() {
            programs.add(cause, pages);
        }
        Self {
            since: self.since,
            host_read_bytes: self.host_read_bytes + later.host_read_bytes,
            host_written_bytes: self.host_written_bytes + later.host_written_bytes,
            host_discarded_bytes: self.host_discarded_bytes + later.host_discarded_bytes,
            failed_reads: self.failed_reads + later.failed_reads,
            media_failures: self.media_failures + later.media_failures,
            erases: self.erases + later.erases,
            power_cycles: self.power_cycles + later.power_cycles,
            unclean_starts: self.unclean_starts + later.unclean_starts,
            programs,
        }
    }
}

/// A record of the lifetime counters of one device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LifetimeRecord {
    /// Identity of the device.
    pub uuid: [u8; 16],
    /// Counts the records written; the newer of two counts.
    pub number: u64,
    /// The counters.
    pub counters: Lifetime,
}

impl LifetimeRecord {
    /// The bytes of the record.
    #[must_use]
    pub fn encode(&self) -> [u8; LIFETIME_BYTES] {
        let mut bytes = [0; LIFETIME_BYTES];
        let mut writer = Writer::new(&mut bytes);
        let counters = &self.counters;
        writer.uint(MAGIC, 4);
        writer.uint(LIFETIME_VERSION, 2);
        writer.uint(0, 2);
        writer.bytes(&self.uuid);
        for field in [
            self.number,
            counters.since,
            counters.host_read_bytes,
            counters.host_written_bytes,
            counters.host_discarded_bytes,
            counters.failed_reads,
            counters.media_failures,
            counters.erases,
            counters.power_cycles,
            counters.unclean_starts,
        ] {
            writer.uint(field, 8);
        }
        for (_, pages) in counters.programs.iter() {
            writer.uint(pages, 8);
        }
        seal(&mut bytes);
        bytes
    }

    /// Reads a record of the device `uuid`. `None` if it is none of this device and version, or damaged: no counter goes
    /// beyond 2^60, nor beyond 1 EiB of pages.
    #[must_use]
    pub fn decode(bytes: &[u8; LIFETIME_BYTES], uuid: &[u8; 16]) -> Option<Self> {
        let mut reader = Reader::new(checked_body(bytes)?);
        let known = reader.uint(4)? == MAGIC && reader.uint(2)? == LIFETIME_VERSION;
        reader.uint(2)?;
        let of_device = reader.bytes(uuid.len())? == uuid;
        let mut below = |max| reader.uint(8).filter(|count| *count <= max);
        let mut next = || below(COUNT_MAX);
        let number = next()?;
        let mut counters = Lifetime {
            since: next()?,
            host_read_bytes: next()?,
            host_written_bytes: next()?,
            host_discarded_bytes: next()?,
            failed_reads: next()?,
            media_failures: next()?,
            erases: next()?,
            power_cycles: next()?,
            unclean_starts: next()?,
            programs: CauseCounts::default(),
        };
        for cause in Cause::ALL {
            counters.programs.add(cause, below(PAGES_MAX)?);
        }
        (known && of_device).then_some(Self { uuid: *uuid, number, counters })
    }
}

#[cfg(test)]
mod tests {
    use super::{LIFETIME_BYTES, Lifetime, LifetimeRecord};
    use onefold_units::{Cause, CauseCounts};

    const UUID: [u8; 16] = [7; 16];

    fn record() -> LifetimeRecord {
        let mut programs = CauseCounts::default();
        for (pages, cause) in (20..).zip(Cause::ALL) {
            programs.add(cause, pages);
        }
        let counters = Lifetime {
            since: 11,
            host_read_bytes: 12,
            host_written_bytes: 13,
            host_discarded_bytes: 14,
            failed_reads: 15,
            media_failures: 16,
            erases: 17,
            power_cycles: 18,
            unclean_starts: 19,
            programs,
        };
        LifetimeRecord { uuid: UUID, number: 10, counters }
    }

    /// The fields are where docs/spec.md says.
    #[test]
    fn there_and_back() {
        let bytes = record().encode();
        assert_eq!(bytes[..8], *b"OFLF\x01\x00\x00\x00");
        assert_eq!(bytes[8..24], UUID);
        for (field, value) in (24..).step_by(8).zip(10..30_u64) {
            assert_eq!(bytes[field..field + 8], value.to_le_bytes(), "at {field}");
        }
        assert!(bytes[184..LIFETIME_BYTES - 4].iter().all(|byte| *byte == 0));
        assert_eq!(LifetimeRecord::decode(&bytes, &UUID), Some(record()));
    }

    #[test]
    fn what_is_damaged_or_of_another_device_is_none() {
        let bytes = record().encode();
        assert_eq!(LifetimeRecord::decode(&bytes, &[8; 16]), None);
        assert_eq!(LifetimeRecord::decode(&[0; LIFETIME_BYTES], &UUID), None);
        assert_eq!(LifetimeRecord::decode(&[0xFF; LIFETIME_BYTES], &UUID), None);
        for at in 0..LIFETIME_BYTES {
            let mut damaged = bytes;
            damaged[at] ^= 0x10;
            assert_eq!(LifetimeRecord::decode(&damaged, &UUID), None, "byte {at}");
        }
        let mut newer = bytes;
        newer[4] = 2;
        crate::bytes::seal(&mut newer);
        assert_eq!(LifetimeRecord::decode(&newer, &UUID), None);
    }

    #[test]
    fn counters_add_up_from_the_first_day() {
        let one = record().counters;
        let sum = one.plus(&Lifetime { since: 99, ..one });
        assert_eq!((sum.since, sum.host_read_bytes, sum.unclean_starts), (11, 24, 38));
        assert_eq!(sum.programs.of(Cause::Wear), 58);
    }

    /// A record with a right checksum may hold any number, and sums of them did not fit.
    #[test]
    fn counters_that_no_device_reaches_are_damage() {
        for (field, most) in [(40, 1_u64 << 60), (96, 1 << 60), (104, 1 << 48), (176, 1 << 48)] {
            for (value, fits) in [(most, true), (most + 1, false), (u64::MAX, false)] {
                let mut bytes = record().encode();
                bytes[field..field + 8].copy_from_slice(&value.to_le_bytes());
                crate::bytes::seal(&mut bytes);
                assert_eq!(LifetimeRecord::decode(&bytes, &UUID).is_some(), fits, "at {field}");
            }
        }
    }
}
