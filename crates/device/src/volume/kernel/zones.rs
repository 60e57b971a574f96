//! What the kernel does with the zones of a block device: `BLKREPORTZONE`, `BLKRESETZONE` and `BLKFINISHZONE` of
//! linux/blkzoned.h. Addresses count sectors of 512 B.

use std::io;
use std::os::fd::AsFd;

use rustix::io::Errno;
use rustix::ioctl::{Opcode, Setter, Updater, ioctl, opcode};

/// Zones of one report.
pub(in crate::volume) const REPORT_ZONES: usize = 128;

/// `struct blk_zone`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::volume) struct BlkZone {
    /// First sector.
    pub(in crate::volume) start: u64,
    /// Sectors from its start to that of the next.
    pub(in crate::volume) len: u64,
    /// Sector of the next write.
    pub(in crate::volume) wp: u64,
    /// `enum blk_zone_type`.
    pub(in crate::volume) kind: u8,
    /// `enum blk_zone_cond`.
    pub(in crate::volume) cond: u8,
    pub(in crate::volume) non_seq: u8,
    pub(in crate::volume) reset: u8,
    pub(in crate::volume) resv: [u8; 4],
    /// Sectors that can be written, if the flags of the report say so.
    pub(in crate::volume) capacity: u64,
    pub(in crate::volume) reserved: [u8; 24],
}

/// `struct blk_zone_report` with its zones.
#[repr(C)]
#[derive(Clone, Debug)]
pub(in crate::volume) struct BlkZoneReport {
    /// From which sector on.
    pub(in crate::volume) sector: u64,
    /// Zones that there is room for, then zones that are there.
    pub(in crate::volume) nr_zones: u32,
    pub(in crate::volume) flags: u32,
    pub(in crate::volume) zones: [BlkZone; REPORT_ZONES],
}

const BLKREPORTZONE: Opcode = opcode::read_write::<[u64; 2]>(0x12, 130);
const BLKRESETZONE: Opcode = opcode::write::<[u64; 2]>(0x12, 131);
const BLKFINISHZONE: Opcode = opcode::write::<[u64; 2]>(0x12, 136);

/// Fills a report from its sector on. `false` where there are no zones.
pub(in crate::volume) fn report_zones(
    device: &impl AsFd,
    report: &mut BlkZoneReport,
) -> io::Result<bool> {
    report.nr_zones = onefold_units::convert::u32_from(REPORT_ZONES);
    // SAFETY: for this code the kernel reads the first 16 bytes and writes them and `nr_zones` zones behind them, for which there
    // is room.
    let request = unsafe { Updater::<BLKREPORTZONE, BlkZoneReport>::new(report) };
    // SAFETY: the request is as the code wants it; on anything but a block device it is an error.
    match unsafe { ioctl(device, request) } {
        Ok(()) => Ok(true),
        // A kernel without zones, a device without them, or no block device.
        Err(Errno::NOTTY | Errno::OPNOTSUPP | Errno::INVAL) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Empties the zones of a range of sectors.
pub(in crate::volume) fn reset_zones(device: &impl AsFd, start: u64, len: u64) -> io::Result<()> {
    // SAFETY: the kernel reads two 64-bit numbers for this code, first sector and sectors.
    let request = unsafe { Setter::<BLKRESETZONE, [u64; 2]>::new([start, len]) };
    // SAFETY: the request is as the code wants it; on anything but a block device it is an error.
    Ok(unsafe { ioctl(device, request) }?)
}

/// The zones of a range of sectors take no more until they are reset.
pub(in crate::volume) fn finish_zones(device: &impl AsFd, start: u64, len: u64) -> io::Result<()> {
    // SAFETY: the kernel reads two 64-bit numbers for this code, first sector and sectors.
    let request = unsafe { Setter::<BLKFINISHZONE, [u64; 2]>::new([start, len]) };
    // SAFETY: the request is as the code wants it; on anything but a block device it is an error.
    Ok(unsafe { ioctl(device, request) }?)
}

#[cfg(test)]
mod tests {
    use std::mem::{offset_of, size_of};

    use super::*;

    /// Numbers and offsets as linux/blkzoned.h has them for 64-bit systems.
    #[test]
    fn codes_and_structures_are_those_of_the_kernel() {
        assert_eq!(BLKREPORTZONE, 0xC010_1282);
        assert_eq!(BLKRESETZONE, 0x4010_1283);
        assert_eq!(BLKFINISHZONE, 0x4010_1288);
        assert_eq!(size_of::<BlkZone>(), 64);
        assert_eq!((offset_of!(BlkZone, kind), offset_of!(BlkZone, cond)), (24, 25));
        assert_eq!(offset_of!(BlkZone, capacity), 32);
        assert_eq!((offset_of!(BlkZoneReport, flags), offset_of!(BlkZoneReport, zones)), (12, 16));
    }

    #[test]
    fn files_have_no_zones() {
        let file = tempfile::tempfile().unwrap();
        let zones = [BlkZone::default(); REPORT_ZONES];
        let mut report = BlkZoneReport { sector: 0, nr_zones: 0, flags: 0, zones };
        assert!(!report_zones(&file, &mut report).unwrap());
        assert!(reset_zones(&file, 0, 8).is_err() && finish_zones(&file, 0, 8).is_err());
    }
}
