//! The unit in which a backing maps what it stores: a smaller write costs as much as a whole one.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use onefold_units::PAGE_BYTES;

/// The largest unit that is taken from a device. Above are chunks of arrays, which take smaller writes for little more.
const UNIT_MAX: u64 = 64 << 10;

/// Magic number of file systems in user space (statfs(2)).
const FUSE: rustix::fs::FsWord = 0x6573_5546;

/// The unit that a block device tells (`minimum_io_size`, which is NPWG of NVMe), or the file under a loop device; 4 KiB where
/// neither tells anything that a volume could have.
pub(super) fn of_block_device((major, minor): (u32, u32)) -> u64 {
    let device = PathBuf::from(format!("/sys/dev/block/{major}:{minor}"));
    // A partition lies in the folder of its disk.
    let places = [device.clone(), device.join("..")];
    let read = |name: &str| places.iter().find_map(|at| fs::read_to_string(at.join(name)).ok());
    let told = read("queue/minimum_io_size").and_then(|told| told.trim().parse().ok());
    let file =
        read("loop/backing_file").map(|path| of_file(Path::new(path.trim_end_matches('\n'))));
    usable(told.unwrap_or(PAGE_BYTES)).max(file.unwrap_or(PAGE_BYTES))
}

/// The unit of a file of `ssd serve --fuse`, which tells it as its block size; 4 KiB of any other file: there that is what suits
/// the page cache.
pub(super) fn of_file(path: &Path) -> u64 {
    let is_fuse = rustix::fs::statfs(path).is_ok_and(|system| system.f_type == FUSE);
    let block = is_fuse.then(|| fs::metadata(path).map_or(0, |found| found.blksize()));
    usable(block.unwrap_or(PAGE_BYTES))
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
        assert_eq!(of_block_device((u32::MAX, 0)), 4096, "no such device");
        assert_eq!(of_file(Path::new("/")), 4096, "not in user space");
        assert_eq!(of_file(Path::new("/no/such/file")), 4096);
    }
}
