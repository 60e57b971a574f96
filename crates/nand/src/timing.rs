//! How long flash operations take (ssd.md 1.3).

use onefold_units::Nanos;

/// Latency of a cell operation by page type. Row `r` of a block has page type
/// `r % types`: one entry for SLC, two for MLC (lower, upper), three for TLC, four for QLC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CellTimes {
    times: [Nanos; 4],
    types: u32,
}

impl CellTimes {
    /// Times by page type. `None` unless there are one to four.
    #[must_use]
    pub fn new(by_type: &[Nanos]) -> Option<Self> {
        let types = u32::try_from(by_type.len()).ok().filter(|n| (1..=4).contains(n))?;
        let mut times = [Nanos::ZERO; 4];
        for (slot, time) in times.iter_mut().zip(by_type) {
            *slot = *time;
        }
        Some(Self { times, types })
    }

    /// The same time for every page.
    #[must_use]
    pub const fn one(time: Nanos) -> Self {
        Self { times: [time; 4], types: 1 }
    }

    /// The time of page `row` of a block.
    #[must_use]
    #[inline]
    pub fn of_row(&self, row: u32) -> Nanos {
        if self.types == 1 {
            return self.times[0];
        }
        self.times[onefold_units::convert::index(row % self.types)]
    }

    /// The times by page type.
    pub fn iter(&self) -> impl Iterator<Item = Nanos> + '_ {
        self.times.iter().copied().take(onefold_units::convert::index(self.types))
    }
}

/// Latencies and rates of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimingSpec {
    /// Array read (tR) by page type.
    pub read: CellTimes,
    /// Program (tPROG) by page type.
    pub program: CellTimes,
    /// Block erase (tBERS).
    pub erase: Nanos,
    /// Channel rate in bytes per second; 0 = transfers take no time.
    pub channel_rate: u64,
    /// Host link rate in bytes per second, each direction; 0 = transfers take no time. The link
    /// streams while the channel does (cut-through), so it adds time only when it is the bottleneck.
    pub link_rate: u64,
    /// Controller time per command; commands queue for it.
    pub command: Nanos,
    /// Controller time per 4 KiB page of a command; pages queue for it.
    pub command_page: Nanos,
    /// Firmware latency added to each read without occupying anything.
    pub firmware_read: Nanos,
    /// Firmware latency added to each write without occupying anything.
    pub firmware_write: Nanos,
    /// DRAM time per 4 KiB page served by the buffer.
    pub dram_page: Nanos,
    /// DRAM time per look-up in a table of the buffer policy.
    pub table_lookup: Nanos,
    /// A die starts its next array read while the page before still waits for the channel.
    pub cache_read: bool,
    /// A die takes the data of its next program while the one before still runs.
    pub cache_program: bool,
    /// Planes of a die work independently, as with multi-plane commands.
    pub plane_parallel: bool,
    /// A host read overtakes queued programs, erases and collection of its die. Work that waits on
    /// a die is postponed by at most this long in all before reads queue again; zero = first come,
    /// first served.
    pub read_priority: Nanos,
}

impl TimingSpec {
    /// Controller time of a command over `pages` 4 KiB pages.
    #[must_use]
    #[inline]
    pub fn work(&self, pages: u64) -> Nanos {
        Nanos::new(self.command.get() + self.command_page.get() * pages)
    }

    /// One kind of page, read in 40 us and programmed in 200 us, erased in 2 ms, behind channels of
    /// 400 MB/s.
    pub const EXAMPLE: Self = Self {
        read: CellTimes::one(Nanos::new(40_000)),
        program: CellTimes::one(Nanos::new(200_000)),
        erase: Nanos::new(2_000_000),
        channel_rate: 400_000_000,
        link_rate: 0,
        command: Nanos::ZERO,
        command_page: Nanos::ZERO,
        firmware_read: Nanos::ZERO,
        firmware_write: Nanos::ZERO,
        dram_page: Nanos::new(1000),
        table_lookup: Nanos::new(100),
        cache_read: false,
        cache_program: false,
        plane_parallel: false,
        read_priority: Nanos::ZERO,
    };
}
