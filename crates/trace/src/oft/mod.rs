//! OFT, Onefold's binary trace: append-only, readable after a kill, little-endian.
//!
//! **Header**, 64 B: magic `OFTRACE\0`, version u16 = 1, header bytes u16 = 64, record bytes u16 =
//! 48, flags u16 (1 digests, 2 zones, 4 behind a loop device), epoch in ns since 1970 u64, device
//! bytes u64, device UUID 16 B, bytes per LBA u32, 0 u64, CRC-32C u32 of the 60 bytes before.
//!
//! **Block**, 32 B and a payload: magic `OFTB`, kind u16 (1 records, 2 digests, 3 end), count u16,
//! payload bytes u32, first `t_ns` u64, records dropped so far u64, CRC-32C u32 of the 28 bytes
//! before and the payload.
//!
//! **Record**, 48 B: `t_ns` u64, `lat_ns` u64 (all ones: unknown), offset u64, length u64, aux u64,
//! op u8, flags u8, status u16, client u16, ns u16.
//!
//! Invariants:
//! 1. A record block holds 1 to [`BLOCK_RECORDS`] records.
//! 2. If header flag 1 is set, the digests of a record block follow it in digest blocks, before the
//!    next record block: 16 B for each 4 KiB page that each of its writes touches, in order.
//! 3. Records stand in completion order with arrival times, so readers sort.
//! 4. Only the last block may be torn; it is dropped with a warning. Damage before it is an error.

mod decode;
mod encode;

pub(crate) use decode::Decoder;
pub use encode::Encoder;

use onefold_units::PAGE_BYTES;

use crate::error::BinaryProblem;

/// The first bytes of a file.
pub const MAGIC: [u8; 8] = *b"OFTRACE\0";
/// Length of the file header.
pub const HEADER_BYTES: usize = 64;
/// Length of a record.
pub const RECORD_BYTES: usize = 48;
/// Length of a block header.
pub const BLOCK_HEADER_BYTES: usize = 32;
/// Records of a full block.
pub const BLOCK_RECORDS: usize = 1_365;

/// The version this crate reads and writes.
const VERSION: u16 = 1;
const BLOCK_MAGIC: [u8; 4] = *b"OFTB";
const KIND_RECORDS: u16 = 1;
const KIND_DIGESTS: u16 = 2;
const KIND_END: u16 = 3;
const DIGEST_BYTES: usize = 16;
/// Digests of a full block: about as long as a full block of records.
const BLOCK_DIGESTS: usize = 4_095;
/// `lat_ns` of a record without latency.
const NO_LATENCY: u64 = u64::MAX;

/// Header flag: digests follow record blocks.
pub const FLAG_DIGESTS: u16 = 1;
/// Header flag: the device has zones.
pub const FLAG_ZONES: u16 = 2;
/// Header flag: recorded behind a loop device, which turns FUA into flushes.
pub const FLAG_BEHIND_LOOP: u16 = 4;

/// What a recording says about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// [`FLAG_DIGESTS`], [`FLAG_ZONES`], [`FLAG_BEHIND_LOOP`].
    pub flags: u16,
    /// Nanoseconds since 1970 at time 0 of the records; 0 if unknown.
    pub epoch_unix_ns: u64,
    /// Size of the device; 0 if unknown.
    pub device_bytes: u64,
    /// UUID of the device; zero if unknown.
    pub device_uuid: [u8; 16],
    /// Bytes per logical block, 512 or 4,096.
    pub lba_bytes: u32,
}

impl Header {
    /// A header that knows nothing.
    #[must_use]
    pub const fn unknown() -> Self {
        Self { flags: 0, epoch_unix_ns: 0, device_bytes: 0, device_uuid: [0; 16], lba_bytes: 512 }
    }

    /// The bytes of the header.
    #[must_use]
    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        let mut at = 0;
        let mut put = |field: &[u8]| {
            for byte in field {
                if let Some(place) = bytes.get_mut(at) {
                    *place = *byte;
                }
                at += 1;
            }
        };
        put(&MAGIC);
        put(&VERSION.to_le_bytes());
        put(&64_u16.to_le_bytes());
        put(&48_u16.to_le_bytes());
        put(&self.flags.to_le_bytes());
        put(&self.epoch_unix_ns.to_le_bytes());
        put(&self.device_bytes.to_le_bytes());
        put(&self.device_uuid);
        put(&self.lba_bytes.to_le_bytes());
        put(&0_u64.to_le_bytes());
        let (body, crc) = bytes.split_at_mut(HEADER_BYTES - 4);
        crc.copy_from_slice(&crc32c::crc32c(body).to_le_bytes());
        bytes
    }

    /// Reads a header.
    pub fn decode(bytes: &[u8; HEADER_BYTES]) -> Result<Self, BinaryProblem> {
        use crate::records::{u16_at, u32_at, u64_at};
        if !bytes.starts_with(&MAGIC) {
            let expected = u32_at(&MAGIC, 0);
            return Err(BinaryProblem::Magic { found: u32_at(bytes, 0), expected });
        }
        let (body, crc) = bytes.split_at(HEADER_BYTES - 4);
        let (found, expected) = (u32_at(crc, 0), crc32c::crc32c(body));
        if found != expected {
            return Err(BinaryProblem::Checksum { found, expected });
        }
        let version = u16_at(bytes, 8);
        if version != VERSION {
            return Err(BinaryProblem::Version {
                found: u32::from(version),
                expected: u32::from(VERSION),
            });
        }
        for (what, at, expected) in [("header length", 10, 64), ("record length", 12, 48)] {
            let found = u64::from(u16_at(bytes, at));
            if found != expected {
                return Err(BinaryProblem::Size { what, found, expected });
            }
        }
        Ok(Self {
            flags: u16_at(bytes, 14),
            epoch_unix_ns: u64_at(bytes, 16),
            device_bytes: u64_at(bytes, 24),
            device_uuid: bytes.get(32..).and_then(<[u8]>::first_chunk).copied().unwrap_or_default(),
            lba_bytes: u32_at(bytes, 48),
        })
    }
}

/// Pages a write of `len` bytes at `offset` touches: its digests.
const fn pages(offset: u64, len: u64) -> u64 {
    if len == 0 {
        return 0;
    }
    (offset.saturating_add(len) - 1) / PAGE_BYTES - offset / PAGE_BYTES + 1
}
