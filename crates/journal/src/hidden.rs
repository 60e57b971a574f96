//! Layers that hide what lies in them: LVM, LUKS, RAID. Source: the signatures that libblkid knows.

use crate::blocks::{Blocks, Stop};
use crate::class::System;
use crate::fields::le32;
use crate::parsed::Parsed;
use crate::ring::Extent;

/// What hides something here, if anything does.
pub(crate) fn parse(source: &mut Blocks, place: Extent) -> Result<Option<Parsed>, Stop> {
    if place.bytes < 8192 {
        return Ok(None);
    }
    let head = source.read(place.at, 8192)?;
    let is = |at: usize, magic: &[u8]| head[at..].starts_with(magic);
    let labelled = |at: usize| is(at, b"LABELONE") && is(at + 24, b"LVM2 001");
    // An LVM label lies in one of the first four units of 512 B; RAID metadata 1.1 and 1.2 at 0 and 4 KiB.
    let raid = |at: usize| le32(&head, at) == 0xA92B_4EFC && le32(&head, at + 4) == 1;
    let why = if [0, 512, 1024, 1536].into_iter().any(labelled) {
        "it is a physical volume of LVM; writes may tell a journal, or a range that you give"
    } else if is(0, b"LUKS\xBA\xBE") {
        "it is encrypted by LUKS; nothing but a range that you give can tell a journal"
    } else if raid(0) || raid(4096) {
        "it is a member of a RAID; writes may tell a journal, or a range that you give"
    } else {
        return Ok(None);
    };
    Ok(Some(Parsed::remark(System::Hidden, why)))
}
