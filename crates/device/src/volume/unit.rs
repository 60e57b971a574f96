//! The unit in which a backing maps what it stores: a smaller write costs as much as a whole one.

use std::path::PathBuf;

use onefold_units::PAGE_BYTES;

/// The largest unit that is taken from a device. Above are chunks of arrays, which take smaller writes for little more.
const UNIT_MAX: u64 = 64 << 10;

/// The unit that a block device tells (`minimum_io_size`, which is NPWG of NVMe); 4 KiB where it tells nothing that a volume could have.
pub(super) fn of_block_device((major, minor): (u32, u32)) -> u64 {
    let device = PathBuf::from(format!("/sys/dev/block/{major}:{minor}"));
    // A partition lies in the folder of its disk.
    let queues = [device.join("queue"), device.join("../queue")];
    let told = queues.iter().find_map(|queue| {
        std::fs::read_to_string(queue.join("minimum_io_size")).ok()?.trim().parse().ok()
    });
    usable(told.unwrap_or(PAGE_BYTES))
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
    }
}
