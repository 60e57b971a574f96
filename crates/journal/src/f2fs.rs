//! F2FS: no journal, but areas that every checkpoint rewrites. All numbers are little-endian.
//!
//! Source: "Flash-Friendly File System" of the kernel's documents; `sanity_check_area_boundary` for what has to agree.

use crate::blocks::{Blocks, Stop, expect};
use crate::class::{Class, System};
use crate::fields::{le32, le64};
use crate::parsed::Parsed;
use crate::ring::Extent;

const MAGIC: u32 = 0xF2F5_2010;
/// The FS header and its copy.
const HEADERS: [u64; 2] = [1024, 5120];
const HEADER_BYTES: usize = 512;

/// The file system, if there is one.
pub(crate) fn parse(source: &mut Blocks, place: Extent) -> Result<Option<Parsed>, Stop> {
    if place.bytes < 8192 {
        return Ok(None);
    }
    source.want(place.at, 8192)?;
    let mut result = Ok(None);
    for at in HEADERS {
        let header = source.read(place.at.saturating_add(at), HEADER_BYTES)?;
        if le32(&header, 0) == MAGIC {
            match areas(&header, place) {
                Ok(parsed) => return Ok(Some(parsed)),
                Err(stop) => result = Err(stop),
            }
        }
    }
    result
}

fn areas(header: &[u8], place: Extent) -> Result<Parsed, Stop> {
    let (block_shift, group_shift) = (le32(header, 16), le32(header, 20));
    expect((12..=16).contains(&block_shift), "its block size is impossible")?;
    expect(group_shift == 9, "it does not have 512 blocks in a unit of allocation")?;
    let bytes = le64(header, 36).checked_mul(1 << block_shift);
    expect(bytes.is_some_and(|bytes| bytes <= place.bytes), "it is larger than its place")?;
    // Counts of checkpoint, SIT, NAT and SSA, each of which ends where the next begins.
    let mut parsed = Parsed::new(System::F2fs);
    let names = ["checkpoints (CP)", "table of allocation units (SIT)", "table of nodes (NAT)"];
    for (n, why) in names.into_iter().enumerate() {
        let count = u64::from(le32(header, 52 + 4 * n)) << group_shift;
        let (first, next) =
            (u64::from(le32(header, 76 + 4 * n)), u64::from(le32(header, 80 + 4 * n)));
        expect(count > 0 && first > 0 && first + count == next, "its areas do not join")?;
        let area = Extent {
            at: place.at.saturating_add(first << block_shift),
            bytes: count << block_shift,
        };
        expect(area.end() <= place.end(), "an area ends behind its place")?;
        parsed.add(Class::MetaHot, &[area], why);
    }
    Ok(parsed)
}
