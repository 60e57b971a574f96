//! Flash operations, counted: the `counted` model.
//!
//! Every tenant pays for the pages it reads from flash and for the programs of the pages it wrote,
//! one after the other, whoever needed their places. A miss costs the tenant one flash operation, and
//! so latencies follow the misses, as those of Jeong 2021, sec. V, do.

use onefold_buffer::Counts;

use super::device::Device;

/// Times of requests without the programs, and of programs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counted {
    device: Device,
}

impl Counted {
    pub(super) const fn new(device: Device) -> Self {
        Self { device }
    }

    /// Time of a request over `pages` pages, without the program that each page it writes will cost.
    #[inline]
    pub(super) fn time(self, pages: u32, counts: Counts) -> u64 {
        let read = self.device.read.cell + self.device.read.transfer;
        self.device.dram(pages, counts.lookups) + read * u64::from(counts.reads)
    }

    /// Time of the programs of a tenant's pages.
    pub(super) const fn programs(self, count: u64) -> u64 {
        (self.device.program.cell + self.device.program.transfer) * count
    }
}

#[cfg(test)]
mod tests {
    use onefold_buffer::Counts;

    use super::super::device::small;
    use super::Counted;

    #[test]
    fn operations_follow_one_another_and_programs_wait_for_their_owner() {
        let counted = Counted::new(small(8, 8));
        let time = counted.time(3, Counts { reads: 2, programs: 9, lookups: 1 });
        assert_eq!(time, 3000 + 100 + 2 * 50_000);
        assert_eq!(counted.programs(9), 9 * 210_000);
    }
}
