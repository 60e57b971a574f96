//! Writes that cover a sector in part.

use onefold_buffer::{LRU, PolicySpec};
use onefold_nand::NullMedia;
use onefold_ssd::Ssd;
use onefold_units::Op;

use super::common::{Rig, config, geometry};

/// A write that covers a sector in part made the whole sector valid in the simulator, so a read of
/// it hit, though its other bytes were never loaded. The sector is read first.
#[test]
fn a_sector_covered_in_part_is_loaded() {
    let config = config(PolicySpec::new(&LRU), geometry(4096, 4096), 8);
    let mut rig = Rig::new(Ssd::new(config, NullMedia).unwrap());
    // Bytes 100 to 1100: sectors 0 and 2 in part, 1 as a whole.
    rig.latency(Op::Write, 100, 1000);
    let stats = rig.ssd.buffer_stats().unwrap().total();
    assert_eq!((stats.reads.requests, stats.reads.misses(), stats.flash_reads), (2, 1, 1));
    assert_eq!((stats.writes.pages, stats.writes.bytes), (1, 3 * 512));
    // The host asked for one write.
    assert_eq!(rig.ssd.host_stats().requests(), 1);
    rig.latency(Op::Read, 0, 4096);
    assert_eq!(rig.ssd.buffer_stats().unwrap().total().reads.misses(), 1);
}
