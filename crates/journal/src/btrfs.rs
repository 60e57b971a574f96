//! btrfs: headers at fixed places that every commit rewrites. Its log trees move, so that no range holds them.
//!
//! Source: "On-disk format" of the btrfs documents. All numbers are little-endian.

use onefold_units::PAGE_BYTES;

use crate::blocks::{Blocks, Stop, expect};
use crate::class::{Class, System};
use crate::fields::{le32, le64};
use crate::parsed::Parsed;
use crate::ring::Extent;

const MAGIC: u64 = u64::from_le_bytes(*b"_BHRfS_M");
/// The FS header and its copies.
const HEADERS: [u64; 3] = [64 << 10, 64 << 20, 256 << 30];

/// The file system, if there is one.
pub(crate) fn parse(source: &mut Blocks, place: Extent) -> Result<Option<Parsed>, Stop> {
    if place.bytes < HEADERS[0] + PAGE_BYTES {
        return Ok(None);
    }
    let header = source.read(place.at.saturating_add(HEADERS[0]), 4096)?;
    if le64(&header, 64) != MAGIC {
        return Ok(None);
    }
    expect(le64(&header, 48) == HEADERS[0], "its header belongs elsewhere")?;
    let node_bytes = le32(&header, 148);
    expect(
        node_bytes.is_power_of_two() && (4096..=65536).contains(&node_bytes),
        "its nodes have an impossible size",
    )?;
    // Bytes of this device, from the item of the device in the header; the file system may have more devices.
    let bytes = le64(&header, 0xC9 + 8);
    expect(bytes > 0 && bytes <= place.bytes, "it is larger than its place")?;
    let mut parsed = Parsed::new(System::Btrfs);
    for header in HEADERS {
        if header + PAGE_BYTES <= bytes {
            let at = place.at.saturating_add(header);
            parsed.add(Class::MetaHot, &[Extent { at, bytes: PAGE_BYTES }], "its header");
        }
    }
    parsed.remark = Some("its log trees move; only how they are written tells them");
    Ok(Some(parsed))
}
