//! What a backing tells of its flash: the unit in which it maps, as a smaller write costs as much as a whole one, and the superblock
//! that it erases.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use onefold_format::{REMAP_BLOCK_BYTES, RemapReply, ReplyContent};
use onefold_units::PAGE_BYTES;

use crate::ssd::CONTROL_BYTES;

/// The largest unit that is taken from a device. Above are chunks of arrays, which take smaller writes for little more.
const UNIT_MAX: u64 = 64 << 10;

/// Magic number of file systems in user space (statfs(2)).
const FUSE: rustix::fs::FsWord = 0x6573_5546;

/// What a backing tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Told {
    /// The unit in bytes; 4 KiB where nothing is told that a volume could have.
    pub(super) unit_bytes: u64,
    /// Bytes that are erased together.
    pub(super) superblock_bytes: Option<u64>,
}

impl Told {
    /// Nothing.
    pub(super) const NOTHING: Self = Self { unit_bytes: PAGE_BYTES, superblock_bytes: None };
}

/// What a block device tells (`minimum_io_size`, which is NPWG of NVMe), or the file under a loop device.
pub(super) fn of_block_device((major, minor): (u32, u32)) -> Told {
    let device = PathBuf::from(format!("/sys/dev/block/{major}:{minor}"));
    // A partition lies in the folder of its disk.
    let places = [device.clone(), device.join("..")];
    let read = |name: &str| places.iter().find_map(|at| fs::read_to_string(at.join(name)).ok());
    let told = read("queue/minimum_io_size").and_then(|told| told.trim().parse().ok());
    let file = read("loop/backing_file")
        .map_or(Told::NOTHING, |path| of_file(Path::new(path.trim_end_matches('\n'))));
    let unit_bytes = usable(told.unwrap_or(PAGE_BYTES)).max(file.unit_bytes);
    Told { unit_bytes, ..file }
}

/// What a file of `ssd serve --fuse` tells: the unit as its block size, the rest in the control export beside it. The block size
/// of any other file is what suits the page cache.
pub(super) fn of_file(path: &Path) -> Told {
    if !rustix::fs::statfs(path).is_ok_and(|system| system.f_type == FUSE) {
        return Told::NOTHING;
    }
    let unit_bytes = usable(fs::metadata(path).map_or(0, |found| found.blksize()));
    Told { unit_bytes, superblock_bytes: superblock_of_control(path) }
}

/// What the control export beside a served file says. Each of its slots that no command was written to has the capabilities;
/// the last is looked at first, as programs begin with the first one.
fn superblock_of_control(path: &Path) -> Option<u64> {
    let mut name = path.file_name()?.to_owned();
    name.push(".ctl");
    let path = path.with_file_name(name);
    // To open anything but a file might wait, and another file may have any size.
    fs::metadata(&path).ok().filter(|found| found.is_file() && found.len() == CONTROL_BYTES)?;
    let slots = fs::read(path).ok()?;
    let (slots, _) = slots.as_chunks::<REMAP_BLOCK_BYTES>();
    slots.iter().rev().find_map(|slot| match RemapReply::decode(slot).ok()?.content {
        ReplyContent::Caps(caps) => Some(caps.superblock_bytes).filter(|bytes| *bytes > 0),
        ReplyContent::Results(_) | ReplyContent::Refusal(_) => None,
    })
}

/// A unit, if a volume can have it, else 4 KiB.
pub(super) const fn usable(unit: u64) -> u64 {
    let fits = unit.is_power_of_two() && unit > PAGE_BYTES && unit <= UNIT_MAX;
    if fits { unit } else { PAGE_BYTES }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_of_flash_are_taken_and_chunks_of_arrays_are_not() {
        for (told, taken) in [(0, 4096), (512, 4096), (16384, 16384), (24576, 4096), (65536, 65536)]
        {
            assert_eq!(usable(told), taken);
        }
        assert_eq!(usable(512 << 10), 4096);
        assert_eq!(of_block_device((u32::MAX, 0)), Told::NOTHING, "no such device");
        assert_eq!(of_file(Path::new("/")), Told::NOTHING, "not in user space");
        assert_eq!(of_file(Path::new("/no/such/file")), Told::NOTHING);
    }
}
