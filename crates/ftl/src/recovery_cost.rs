//! What recovery would read if power failed now, and how long that takes (remap.md section 14).

use onefold_nand::Media;
use onefold_units::Nanos;
use onefold_units::convert::{u32_from, u64_from};

use crate::ftl::Ftl;
use crate::remap::{RemapScheme, RemapTables};
use crate::superblock::{State, Superblock};

/// What recovery reads. All dies read in parallel, and NVRAM, which has a port of its own, beside them:
/// where a segment counts is judged when it and the heads are there. Transfers and the work of the
/// controller take no time. Of the schemes that do not survive power loss it is what the paper's
/// recovery would read: a global log as a whole, and nothing for the log of `opt`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecoveryCost {
    /// Head pages of superblocks.
    pub head_pages: u64,
    /// Map pages of the checkpoint.
    pub map_pages: u64,
    /// Superblocks that were programmed since the checkpoint.
    pub superblocks: u32,
    /// Tail pages of those that are complete.
    pub tail_pages: u64,
    /// Pages of the others, whose spare areas are read.
    pub scanned_pages: u64,
    /// Pages of the remap log.
    pub log_pages: u64,
    /// Bytes of NVRAM.
    pub nvram_bytes: u64,
    /// How long it takes.
    pub time: Nanos,
}

impl RecoveryCost {
    /// Bytes read from flash.
    #[must_use]
    pub const fn flash_bytes(&self, page_bytes: u64) -> u64 {
        let pages = self.head_pages
            + self.map_pages
            + self.tail_pages
            + self.scanned_pages
            + self.log_pages;
        pages * page_bytes
    }
}

impl<M: Media> Ftl<M> {
    /// What recovery would cost if power failed now.
    #[must_use]
    pub fn recovery_cost(&self) -> RecoveryCost {
        let geometry = self.nand.geometry();
        let per_program = u64::from(geometry.slots_per_program());
        let label = &self.checkpoints.label;
        let mut cost = RecoveryCost {
            head_pages: u64::from(geometry.superblocks()),
            map_pages: u64::from(label.map_pages).div_ceil(per_program),
            nvram_bytes: self.layout.nvram.bytes,
            ..RecoveryCost::default()
        };
        for (at, block) in (0..).zip(&self.superblocks) {
            let programmed = u64::from(self.programmed_slots(at, block));
            match block.state {
                State::Open | State::Closed | State::Collecting if self.is_recent(at, block) => {
                    cost.superblocks += 1;
                    if self.config.metadata_pages && block.state != State::Open {
                        let tail = geometry.slots() - self.layout.data_end;
                        let units = u64::from(block.tail_units.min(tail));
                        cost.tail_pages += units.div_ceil(per_program);
                    } else {
                        cost.scanned_pages += programmed.div_ceil(per_program);
                    }
                }
                State::Log => cost.log_pages += programmed.div_ceil(per_program),
                _ => {}
            }
        }
        if let Some(remap) = &self.remap {
            match remap.config.scheme {
                RemapScheme::Gn => cost.nvram_bytes += remap.global_log_bytes(),
                RemapScheme::Gf => {
                    let page = u64::from(geometry.unit_bytes());
                    cost.log_pages += remap.global_log_bytes().div_ceil(page);
                }
                RemapScheme::None | RemapScheme::Ln | RemapScheme::Lh | RemapScheme::Opt => {}
            }
        }
        cost.time = self.recovery_time(&cost);
        cost
    }

    /// DRAM of the tables that remapping needs; `None` where remaps are copies.
    #[must_use]
    pub fn remap_tables(&self) -> Option<RemapTables> {
        let geometry = self.nand.geometry();
        let (slots, units) = (geometry.total_slots(), self.layout.units);
        self.remap.as_ref().map(|remap| remap.tables(slots, units, geometry.slots()))
    }

    /// How often a segment of NVRAM was taken into use since the device was built: most, and mean.
    #[must_use]
    pub fn segment_cycles(&self) -> (u32, f64) {
        self.remap.as_ref().map_or((0, 0.0), |remap| remap.segment_cycles())
    }

    /// Whether a superblock was programmed since the checkpoint was cut.
    fn is_recent(&self, at: u32, block: &Superblock) -> bool {
        let label = &self.checkpoints.label;
        label.generation == 0
            || block.epoch >= label.alloc
            || label.frontiers.iter().any(|cut| cut.superblock.raw() == at)
    }

    fn programmed_slots(&self, at: u32, block: &Superblock) -> u32 {
        let open = match block.state {
            State::Open => {
                let open = self.frontiers.iter();
                open.filter(|open| open.superblock.is_some_and(|open| open.raw() == at))
                    .map(|open| open.programmed)
                    .next()
            }
            State::Log => self.remap.as_ref().and_then(|remap| {
                let log = &remap.superblocks;
                let slots = self.nand.geometry().slots_per_program();
                if log.ready.iter().any(|ready| ready.raw() == at) {
                    return Some(0);
                }
                log.open.filter(|(open, _)| open.raw() == at).map(|(_, next)| next * slots)
            }),
            _ => None,
        };
        open.unwrap_or(self.layout.data_end)
    }

    fn recovery_time(&self, cost: &RecoveryCost) -> Nanos {
        let dies = u64::from(self.nand.geometry().dies());
        let read = self.nand.timelines().spec().read.iter().max().unwrap_or(Nanos::ZERO);
        let phases =
            [cost.head_pages, cost.map_pages, cost.tail_pages + cost.scanned_pages, cost.log_pages];
        let reads: u64 = phases.iter().map(|pages| pages.div_ceil(dies)).sum();
        let nvram = cost.nvram_bytes.div_ceil(64) * self.config.remap.nvram_read.get();
        Nanos::new((reads * read.get()).max(nvram))
    }

    /// Bytes of NVRAM and of flash that the remap log takes, and how many units are remapped.
    #[must_use]
    pub fn log_bytes(&self) -> (u64, u64, u32) {
        let Some(remap) = &self.remap else { return (0, 0, 0) };
        let segments: usize = remap.groups.iter().map(|group| group.segments.len()).sum();
        let pages: usize = remap.groups.iter().map(|group| group.pages.len()).sum();
        let nvram = u64::from(u32_from(segments)) * u64::from(remap.config.segment_bytes);
        let flash = u64_from(pages) * u64::from(self.nand.geometry().unit_bytes());
        (nvram, flash, remap.units.count())
    }
}
