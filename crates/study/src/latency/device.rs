//! The times of a device.

use onefold_buffer::Sizes;
use onefold_config::{Config, Sources};
use onefold_units::convert::u64_from;

use super::Placement;
use crate::StudyError;
use crate::file::Study;

/// One kind of flash operation: times in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kind {
    pub(super) cell: u64,
    pub(super) transfer: u64,
}

/// Geometry and times; nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Device {
    pub(super) channels: u32,
    pub(super) ways: u32,
    pub(super) look_up: u64,
    pub(super) dram_page: u64,
    pub(super) read: Kind,
    pub(super) program: Kind,
}

impl Device {
    /// The study's preset, with its entries and flash pages.
    pub(crate) fn new(study: &Study) -> Result<Self, StudyError> {
        let sources = Sources { preset: Some(&study.preset), ..Sources::default() };
        let ssd = Config::load(&sources)?.ssd(0)?;
        let (geometry, timing) = (ssd.geometry.spec(), &ssd.timing);
        let mean = |times: &onefold_nand::CellTimes| {
            let all: Vec<u64> = times.iter().map(onefold_units::Nanos::get).collect();
            all.iter().sum::<u64>() / u64_from(all.len()).max(1)
        };
        let transfer = |bytes| onefold_nand::channel_time(timing, bytes).get();
        Ok(Self {
            channels: geometry.channels,
            ways: geometry.ways,
            look_up: study.look_up_ns,
            dram_page: timing.dram_page.get(),
            read: Kind { cell: mean(&timing.read), transfer: transfer(study.entry_bytes) },
            program: Kind {
                cell: mean(&timing.program),
                transfer: transfer(study.flash_page_bytes.max(study.entry_bytes)),
            },
        })
    }

    /// What the buffers of the study stand in front of.
    pub(crate) const fn sizes(&self, study: &Study) -> Sizes {
        Sizes {
            entry_bytes: study.entry_bytes,
            flash_page_bytes: study.flash_page_bytes,
            device_bytes: study.device_bytes,
            channels: self.channels,
            ways: self.ways,
        }
    }

    /// All of it, for the identity of a point.
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

    /// Time of a request in DRAM: one access per page and one per look-up.
    #[inline]
    pub(super) fn dram(&self, pages: u32, look_ups: u32) -> u64 {
        self.dram_page * u64::from(pages) + self.look_up * u64::from(look_ups)
    }

    /// Channels, and dies of each, that one request uses.
    pub(super) const fn spread(&self, placement: Placement) -> (u32, u32) {
        match placement {
            Placement::Striped => (self.channels, self.ways),
            Placement::Channel => (1, self.ways),
            Placement::Die => (1, 1),
        }
    }
}

#[cfg(test)]
pub(super) const fn small(channels: u32, ways: u32) -> Device {
    let read = Kind { cell: 40_000, transfer: 10_000 };
    let program = Kind { cell: 200_000, transfer: 10_000 };
    Device { channels, ways, look_up: 100, dram_page: 1000, read, program }
}
