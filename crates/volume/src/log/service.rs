//! How long the backing takes for what it has to write, and how long batches are for that.
//!
//! The cleaner and checkpoints wait for what the host has under way, and the host waits for them. With batches of
//! 1 MiB these waits are as long as a slow drive takes for many of them, so a batch is sent when it has as many blocks as the
//! backing writes in [`BATCH_TIME_NS`]. Fast ones get batches of full length.

use onefold_units::Nanos;
use onefold_units::convert::{narrow, u32_from};

use crate::config::Options;
use crate::limits::BATCHES_OWN;
use crate::range::REQUEST_BLOCKS_MAX;

/// Time that the backing should take for a batch, in ns. Host, cleaner and checkpoints each wait behind several batches of the others, and
/// 100 ms is what the host may wait (volume.md, section 13).
const BATCH_TIME_NS: u64 = 6_000_000;

/// Blocks of a batch on a backing however slow: a header in 64 blocks.
const SLOW_BLOCKS: u32 = 64;

/// What is known of the speed of the backing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Service {
    /// Fewest blocks of a batch on a slow backing, a multiple of the indirection unit.
    least: u32,
    unit: u32,
    /// Blocks that are being written.
    under_way: u32,
    /// Mean time for one of them, in 1/16 ns.
    block_time: u64,
}

/// A write to the backing that is under way.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct UnderWay {
    at: Nanos,
    blocks: u32,
    /// Blocks to be written until it is over.
    ahead: u32,
}

impl Service {
    /// Nothing is known yet.
    pub(crate) fn new(options: &Options, unit: u32) -> Self {
        // The longest request has to fit the batches that the host may have.
        let batches = u32_from(options.batches).saturating_sub(u32_from(BATCHES_OWN) + 1);
        let least = SLOW_BLOCKS.max(REQUEST_BLOCKS_MAX.div_ceil(batches.max(1)) + 1);
        Self { least: least.next_multiple_of(unit), unit, under_way: 0, block_time: 0 }
    }

    /// A write begins.
    pub(crate) fn begin(&mut self, blocks: u32, now: Nanos) -> UnderWay {
        self.under_way += blocks;
        UnderWay { at: now, blocks, ahead: self.under_way }
    }

    /// It failed: how long it took says nothing.
    pub(crate) fn give_up(&mut self, sent: UnderWay) {
        self.under_way -= sent.blocks;
    }

    /// It is over.
    pub(crate) fn end(&mut self, sent: UnderWay, now: Nanos) {
        if sent.blocks == 0 {
            return;
        }
        self.under_way -= sent.blocks;
        let took = now.get().saturating_sub(sent.at.get());
        let each = took.saturating_mul(16) / u64::from(sent.ahead.max(1));
        self.block_time = (self.block_time * 7 + each) / 8;
    }

    /// Fewest blocks of a batch that may have `most`, short of those that are sent early.
    pub(crate) fn shortest(&self, most: u32) -> u32 {
        self.least.min(most)
    }

    /// Blocks of a batch that may have `most`, a multiple of the indirection unit.
    pub(crate) fn batch_blocks(&self, most: u32) -> u32 {
        let limit = u64::from(most);
        let blocks = (BATCH_TIME_NS * 16).checked_div(self.block_time).unwrap_or(limit);
        let blocks = narrow(blocks.min(limit));
        (blocks - blocks % self.unit).max(self.least).min(most)
    }
}

#[cfg(test)]
mod tests {
    use onefold_units::Nanos;

    use super::Service;
    use crate::config::Options;
    use crate::log::BATCHES_OWN;
    use crate::range::REQUEST_BLOCKS_MAX;

    /// Batches of a host that always has four under way, on a backing that takes so many ns for a block.
    fn batch_blocks(mut service: Service, most: u32, block_ns: u64) -> u32 {
        let (mut now, mut sent) = (0, std::collections::VecDeque::new());
        for _ in 0..100 {
            let blocks = service.batch_blocks(most);
            sent.push_back((service.begin(blocks, Nanos::new(now)), blocks));
            if sent.len() == 4 {
                let (first, blocks) = sent.pop_front().expect("one of four");
                now += u64::from(blocks) * block_ns;
                service.end(first, Nanos::new(now));
            }
        }
        service.batch_blocks(most)
    }

    #[test]
    fn batches_are_as_long_as_a_slow_backing_allows() {
        let service = Service::new(&Options::default(), 1);
        assert_eq!(batch_blocks(service, 256, 0), 256);
        // 400, 50 and 10 MB/s.
        assert_eq!(batch_blocks(service, 256, 10_000), 256);
        assert!((70..=80).contains(&batch_blocks(service, 256, 80_000)));
        assert_eq!(batch_blocks(service, 256, 400_000), 64);
    }

    #[test]
    fn batches_are_whole_units_and_take_the_longest_request() {
        let few = Options { batches: BATCHES_OWN + 3, ..Options::default() };
        let service = Service::new(&few, 16);
        let least = batch_blocks(service, 256, 1_000_000);
        assert!(
            least.is_multiple_of(16) && 2 * (least - 1) >= REQUEST_BLOCKS_MAX,
            "{least} blocks"
        );
        assert!(
            batch_blocks(Service::new(&Options::default(), 16), 256, 80_000).is_multiple_of(16)
        );
        let short = Options { batch_blocks: 8, batches: 100, ..Options::default() };
        assert_eq!(batch_blocks(Service::new(&short, 1), 8, 1_000_000), 8);
    }
}
