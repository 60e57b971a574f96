//! A request that has the device to itself: the `service` model.
//!
//! Latencies are compared, not predicted. A request takes one DRAM access per look-up in a table of the
//! policy, one per page, and the time of the flash pages it programs (victims, which it waits for) and
//! reads. Requests do not wait for one another.

use onefold_buffer::Counts;
use onefold_units::convert::index;

use super::device::{Device, Kind};
use super::{LatencyModel, Placement};

/// Batches of flash operations whose time is looked up; larger ones are computed.
const TABLE: u32 = 1024;

/// Times of requests.
#[derive(Debug)]
pub(crate) struct Service {
    device: Device,
    /// Victims that no request waits for.
    wb_slots: u32,
    reads: Batches,
    programs: Batches,
}

impl Service {
    pub(super) fn new(device: Device, model: LatencyModel) -> Self {
        let batches = |kind, placement| Batches::new(&device, kind, placement);
        let reads = batches(device.read, model.reads);
        let programs = batches(device.program, model.programs);
        Self { device, wb_slots: model.wb_slots, reads, programs }
    }

    /// Time of a request over `pages` pages.
    #[inline]
    pub(super) fn time(&self, pages: u32, counts: Counts) -> u64 {
        let mut time = self.device.dram(pages, counts.lookups);
        if counts.reads > 0 {
            time += self.reads.time(counts.reads);
        }
        // Nothing is on its way when the request comes: it waits until no more than the slots are.
        let waited_for = counts.programs.saturating_sub(self.wb_slots);
        if waited_for > 0 {
            time += self.programs.time(waited_for);
        }
        time
    }
}

/// Flash operations that start together.
#[derive(Debug)]
struct Batches {
    kind: Kind,
    channels: u32,
    ways: u32,
    table: Vec<u64>,
}

impl Batches {
    fn new(device: &Device, kind: Kind, placement: Placement) -> Self {
        let (channels, ways) = device.spread(placement);
        let mut batches = Self { kind, channels, ways, table: Vec::new() };
        batches.table = (0..TABLE).map(|count| batches.computed(count)).collect();
        batches
    }

    #[inline]
    fn time(&self, count: u32) -> u64 {
        self.table.get(index(count)).copied().unwrap_or_else(|| self.computed(count))
    }

    /// Time of `count` operations, spread over channels first and ways second. A die works, or waits
    /// for its channel, or transfers: each round of `ways` operations on one channel takes the longer
    /// of a die's whole cycle and the transfers of all dies.
    fn computed(&self, count: u32) -> u64 {
        if count == 0 {
            return 0;
        }
        let Self { kind, channels, ways, .. } = self;
        let last = count.div_ceil(*channels) - 1;
        let (rounds, place) = (u64::from(last / ways), u64::from(last % ways));
        let cycle = kind.cell + kind.transfer;
        let round = cycle.max(kind.transfer * u64::from(*ways));
        cycle + rounds * round + place * kind.transfer
    }
}

#[cfg(test)]
mod tests {
    use onefold_buffer::Counts;

    use super::super::device::{Kind, small};
    use super::{Batches, LatencyModel, Placement, Service};

    /// One operation after the other, each on the die that its number gives, reads: cell, then
    /// channel; the die is busy until its transfer ends.
    fn by_timelines(kind: Kind, (on_channels, on_ways): (u32, u32), count: u32) -> u64 {
        let mut channels = vec![0_u64; 64];
        let mut dies = vec![vec![0_u64; 64]; 64];
        for n in 0..count {
            let channel = usize::try_from(n % on_channels).unwrap();
            let way = usize::try_from(n / on_channels % on_ways).unwrap();
            let ready = dies[channel][way] + kind.cell;
            let end = ready.max(channels[channel]) + kind.transfer;
            channels[channel] = end;
            dies[channel][way] = end;
        }
        channels.into_iter().max().unwrap()
    }

    #[test]
    fn the_closed_form_is_what_timelines_give() {
        for (channels, ways) in [(1, 1), (8, 8), (8, 2), (3, 5)] {
            let device = small(channels, ways);
            let places = [(channels, ways), (1, ways), (1, 1)];
            for (placement, place) in Placement::ALL.into_iter().zip(places) {
                for kind in [device.read, device.program] {
                    let batches = Batches::new(&device, kind, placement);
                    for count in (1..400).chain([5000]) {
                        let expected = by_timelines(kind, place, count);
                        assert_eq!(batches.time(count), expected, "{place:?} {count}");
                    }
                }
            }
        }
    }

    fn time(model: LatencyModel, pages: u32, (lookups, reads, programs): (u32, u32, u32)) -> u64 {
        Service::new(small(8, 8), model).time(pages, Counts { reads, programs, lookups })
    }

    #[test]
    fn a_request_waits_for_its_victims_and_its_reads() {
        let striped = LatencyModel::default();
        assert_eq!(time(striped, 3, (2, 0, 0)), 3200);
        assert_eq!(time(striped, 1, (0, 1, 1)), 1000 + 50_000 + 210_000);
        assert_eq!(time(striped, 8, (0, 8, 0)), 8000 + 50_000);
        assert_eq!(time(striped, 9, (0, 9, 0)), 9000 + 60_000);
    }

    #[test]
    fn victims_on_one_die_follow_one_another_and_slots_hide_them() {
        let programs =
            |programs, wb_slots| LatencyModel { programs, wb_slots, ..LatencyModel::default() };
        // The victims of a virtual block: side by side, on one channel, in one flash block.
        assert_eq!(time(programs(Placement::Striped, 0), 1, (0, 1, 6)), 51_000 + 210_000);
        assert_eq!(time(programs(Placement::Channel, 0), 1, (0, 1, 6)), 51_000 + 260_000);
        assert_eq!(time(programs(Placement::Die, 0), 1, (0, 1, 6)), 51_000 + 6 * 210_000);
        assert_eq!(time(programs(Placement::Die, 6), 1, (0, 1, 6)), 51_000);
        assert_eq!(time(programs(Placement::Die, 4), 1, (0, 1, 6)), 51_000 + 2 * 210_000);
        let reads = LatencyModel { reads: Placement::Die, ..LatencyModel::default() };
        assert_eq!(time(reads, 3, (0, 3, 1)), 3000 + 150_000 + 210_000);
    }
}
