//! The latency of a request that has the device to itself: the `service` model.
//!
//! Jeong 2021 names neither geometry nor times, so latencies are compared, not predicted. A request
//! takes one DRAM access per look-up in a table of the policy, one per page, and the time of the
//! flash pages it programs (victims, which it waits for) and reads, which spread evenly over all
//! channels and dies. Requests do not wait for one another; `onefold sim` models that.

use onefold_config::{Config, Sources};
use onefold_units::convert::{index, u64_from};

use crate::StudyError;
use crate::file::Study;

/// Batches of flash operations whose time is looked up; larger ones are computed.
const TABLE: u32 = 1024;

/// One kind of flash operation: times in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Kind {
    cell: u64,
    transfer: u64,
}

/// Times of a device.
#[derive(Clone, Debug)]
pub(crate) struct Service {
    channels: u32,
    ways: u32,
    look_up: u64,
    dram_page: u64,
    read: Kind,
    program: Kind,
    read_table: Vec<u64>,
    program_table: Vec<u64>,
}

impl Service {
    /// The times of the study's preset, with its entries and flash pages.
    pub(crate) fn new(study: &Study) -> Result<Self, StudyError> {
        let sources = Sources { preset: Some(&study.preset), ..Sources::default() };
        let ssd = Config::load(&sources)?.ssd(0)?;
        let (geometry, timing) = (ssd.geometry.spec(), &ssd.timing);
        let mean = |times: &onefold_nand::CellTimes| {
            let all: Vec<u64> = times.iter().map(onefold_units::Nanos::get).collect();
            all.iter().sum::<u64>() / u64_from(all.len()).max(1)
        };
        let transfer = |bytes| onefold_nand::channel_time(timing, bytes).get();
        let mut service = Self {
            channels: geometry.channels,
            ways: geometry.ways,
            look_up: study.look_up_ns,
            dram_page: timing.dram_page.get(),
            read: Kind { cell: mean(&timing.read), transfer: transfer(study.entry_bytes) },
            program: Kind {
                cell: mean(&timing.program),
                transfer: transfer(study.flash_page_bytes.max(study.entry_bytes)),
            },
            read_table: Vec::new(),
            program_table: Vec::new(),
        };
        service.read_table = (0..TABLE).map(|count| service.batch(service.read, count)).collect();
        service.program_table =
            (0..TABLE).map(|count| service.batch(service.program, count)).collect();
        Ok(service)
    }

    /// What determines latencies, for the identity of a point.
    pub(crate) fn identity(&self) -> serde_json::Value {
        serde_json::json!([
            self.channels,
            self.ways,
            self.look_up,
            self.dram_page,
            self.read.cell,
            self.read.transfer,
            self.program.cell,
            self.program.transfer
        ])
    }

    /// Time of a request over `pages` pages that makes so many look-ups, flash reads and programs.
    #[inline]
    pub(crate) fn time(&self, pages: u32, look_ups: u32, reads: u32, programs: u32) -> u64 {
        let mut time = self.dram_page * u64::from(pages) + self.look_up * u64::from(look_ups);
        if reads > 0 {
            time += self.look(&self.read_table, self.read, reads);
        }
        if programs > 0 {
            time += self.look(&self.program_table, self.program, programs);
        }
        time
    }

    fn look(&self, table: &[u64], kind: Kind, count: u32) -> u64 {
        table.get(index(count)).copied().unwrap_or_else(|| self.batch(kind, count))
    }

    /// Time of `count` operations that start together, spread over channels first and ways second. A
    /// die works, or waits for its channel, or transfers: each round of `ways` operations on one
    /// channel takes the longer of a die's whole cycle and the transfers of all dies.
    fn batch(&self, kind: Kind, count: u32) -> u64 {
        if count == 0 {
            return 0;
        }
        let last = count.div_ceil(self.channels) - 1;
        let (rounds, place) = (u64::from(last / self.ways), u64::from(last % self.ways));
        let cycle = kind.cell + kind.transfer;
        let round = cycle.max(kind.transfer * u64::from(self.ways));
        cycle + rounds * round + place * kind.transfer
    }
}

#[cfg(test)]
mod tests {
    use super::{Kind, Service};

    fn service(channels: u32, ways: u32) -> Service {
        let read = Kind { cell: 40_000, transfer: 10_000 };
        let program = Kind { cell: 200_000, transfer: 10_000 };
        let (read_table, program_table) = (Vec::new(), Vec::new());
        let (look_up, dram_page) = (100, 1000);
        Service { channels, ways, look_up, dram_page, read, program, read_table, program_table }
    }

    /// One operation after the other, each on the die that its number gives, reads: cell, then
    /// channel; the die is busy until its transfer ends.
    fn by_timelines(service: &Service, kind: Kind, count: u32) -> u64 {
        let mut channels = vec![0_u64; 64];
        let mut dies = vec![vec![0_u64; 64]; 64];
        for n in 0..count {
            let channel = usize::try_from(n % service.channels).unwrap();
            let way = usize::try_from(n / service.channels % service.ways).unwrap();
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
            let service = service(channels, ways);
            for kind in [service.read, service.program] {
                for count in (1..400).chain([5000]) {
                    let found = service.batch(kind, count);
                    assert_eq!(
                        found,
                        by_timelines(&service, kind, count),
                        "{channels} {ways} {count}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_request_waits_for_its_victims_and_its_reads() {
        let service = service(8, 8);
        assert_eq!(service.time(3, 2, 0, 0), 3200);
        assert_eq!(service.time(1, 0, 1, 1), 1000 + 50_000 + 210_000);
        assert_eq!(service.time(8, 0, 8, 0), 8000 + 50_000);
        assert_eq!(service.time(9, 0, 9, 0), 9000 + 60_000);
    }
}
