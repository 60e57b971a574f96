//! What programs are counted for: pages that the host wrote, and pages that complete a unit.

use onefold_buffer::{LRU, PolicySpec};
use onefold_nand::NullMedia;
use onefold_ssd::Ssd;
use onefold_units::{Cause, Op};

use super::common::{Rig, config, geometry};

/// Pages of 4 KiB programmed for the host, and as padding, after writes of `(offset, len)`.
fn programmed(policy: &str, unit: u32, writes: &[(u64, u64)]) -> (u64, u64) {
    let config = config(PolicySpec::parse(policy).unwrap(), geometry(unit, unit), 8);
    let mut rig = Rig::new(Ssd::new(config, NullMedia).unwrap());
    for (offset, len) in writes {
        rig.latency(Op::Write, *offset, *len);
    }
    rig.latency(Op::Flush, 0, 0);
    let programs = rig.ssd.ftl().stats().programs;
    (programs.of(Cause::User), programs.of(Cause::Padding))
}

/// A buffered unit of 16 KiB was counted as four pages of the host, whatever was written of it:
/// 100,000 random writes of 4 KiB to a drive with such units as 395,672 pages.
#[test]
fn only_dirty_pages_of_a_unit_count_for_the_host() {
    let page = |at: u64| (at * 4096, 4096);
    assert_eq!(programmed("lru", 16_384, &[page(1)]), (1, 3));
    assert_eq!(programmed("lru", 16_384, &[page(0), page(1), page(1), page(3)]), (3, 1));
    assert_eq!(programmed("lru", 16_384, &[(0, 16_384), page(4)]), (5, 3));
    assert_eq!(programmed("lru", 65_536, &[page(15)]), (1, 15));
    // Half a sector: its page.
    assert_eq!(programmed("lru", 16_384, &[(8192 - 100, 200)]), (2, 2));
    assert_eq!(programmed("lru", 4096, &[(512, 512)]), (1, 0));
}

/// Two writes to one entry before it leaves are one program; after a flush, the same page is written anew.
#[test]
fn pages_are_dirty_until_they_are_programmed() {
    let config = config(PolicySpec::new(&LRU), geometry(16_384, 16_384), 8);
    let mut rig = Rig::new(Ssd::new(config, NullMedia).unwrap());
    for (page, user, padding) in [(0, 1, 3), (1, 2, 6), (1, 3, 9)] {
        rig.latency(Op::Write, page * 4096, 4096);
        rig.latency(Op::Flush, 0, 0);
        let programs = rig.ssd.ftl().stats().programs;
        assert_eq!((programs.of(Cause::User), programs.of(Cause::Padding)), (user, padding));
    }
}

/// What a policy programs of a block beside the dirty pages is padding.
#[test]
fn pages_that_complete_a_block_are_padding() {
    let config = config(PolicySpec::parse("bplru:block=4").unwrap(), geometry(4096, 4096), 8);
    let mut rig = Rig::new(Ssd::new(config, NullMedia).unwrap());
    for block in 0..5 {
        for page in [4 * block + 1, 4 * block + 3] {
            rig.latency(Op::Write, page * 4096, 4096);
        }
    }
    let programs = rig.ssd.ftl().stats().programs;
    let tenant = rig.ssd.buffer_stats().unwrap().total();
    assert!(tenant.pages_padded > 0 && tenant.pages_programmed > 0);
    assert_eq!(programs.of(Cause::User), tenant.pages_programmed);
    assert_eq!(programs.of(Cause::Padding), tenant.pages_padded);
}
