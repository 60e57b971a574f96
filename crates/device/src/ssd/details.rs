//! What a device tells about itself.

use std::sync::atomic::Ordering::Relaxed;

use onefold_buffer::Stats;
use onefold_format::Lifetime;
use onefold_ftl::{FailedDie, FtlStats, RecoveryCost, RemapStats, RemapTables, SpaceMap, Wear};
use onefold_nand::Media;
use onefold_ssd::{HostStats, Ssd};
use onefold_units::convert::{float, u64_from};
use onefold_units::{Cause, Lpn, PAGE_BYTES};

use super::{SsdDevice, State};
use crate::observed::{DeviceSnapshot, DeviceStats, ImageSnapshot};

/// Bins of [`SsdDetails::valid_histogram`].
const BINS: usize = 20;

/// Everything that is known of a device, taken at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct SsdDetails {
    /// Bytes the host sees.
    pub logical_bytes: u64,
    /// How the flash is divided up.
    pub space: SpaceMap,
    /// Superblocks that failed or wore out since the device was made; bad ones from the factory are not among them.
    pub retired_superblocks: u32,
    /// Superblocks taken into use in the life of the drive, each as often as that happened.
    pub taken_superblocks: u64,
    /// The die that failed, and what was lost with it.
    pub failed_die: Option<FailedDie>,
    /// Erases per superblock.
    pub wear: Wear,
    /// Superblocks that are erased and free.
    pub free_superblocks: u32,
    /// 4 KiB pages of the host that are stored.
    pub mapped_pages: u64,
    /// Bytes for snapshots, beside those that the host sees.
    pub snapshot_bytes: u64,
    /// What remapping counted since the device was opened.
    pub remap: RemapStats,
    /// What recovery would read if power failed now.
    pub recovery: RecoveryCost,
    /// Bytes of a flash page, over all planes of a die.
    pub program_bytes: u64,
    /// DRAM of the tables of the remap primitive; `None` without it.
    pub remap_tables: Option<RemapTables>,
    /// Most times that a segment of the remap log was taken into use since the device was opened.
    pub segment_cycles_max: u32,
    /// Mapping units that creating, restoring and cloning snapshots remapped or copied since then.
    pub snapshot_units: u64,
    /// Closed superblocks by their share of valid slots, in equal bins from empty to full.
    pub valid_histogram: Vec<u64>,
    /// Buffer policy with its parameters; `None` without a buffer.
    pub buffer_policy: Option<String>,
    /// Bytes of the buffer; 0 without one.
    pub buffer_bytes: u64,
    /// Counters of the flash since the device was opened.
    pub ftl: FtlStats,
    /// Counters of the host since the device was opened.
    pub host: HostStats,
}

impl SsdDetails {
    pub(crate) fn of<M: Media>(ssd: &Ssd<M>) -> Self {
        let ftl = ssd.ftl();
        let mapped = (0..ftl.host_units()).filter(|unit| ftl.is_mapped(Lpn::new(*unit))).count();
        let geometry = &ssd.config().geometry;
        let unit_pages = u64::from(geometry.unit_bytes()) / PAGE_BYTES;
        let space = ftl.space();
        let remap = ftl.remap_stats();
        let asked = ssd.host_stats().remap_pages / unit_pages;
        let factory = ssd.config().faults.bad_superblocks;
        Self {
            logical_bytes: ssd.capacity(),
            space,
            retired_superblocks: space.bad_superblocks.saturating_sub(factory),
            taken_superblocks: ftl.taken_superblocks(),
            failed_die: ftl.failed_die(),
            wear: ftl.wear(),
            free_superblocks: ftl.free_superblocks(),
            mapped_pages: u64_from(mapped) * unit_pages,
            snapshot_bytes: u64::from(ssd.snapshot_units().saturating_sub(1))
                * unit_pages
                * PAGE_BYTES,
            recovery: ftl.recovery_cost(),
            program_bytes: u64::from(geometry.slots_per_program())
                * u64::from(geometry.unit_bytes()),
            remap_tables: ftl.remap_tables(),
            segment_cycles_max: ftl.segment_cycles().0,
            snapshot_units: (remap.remapped + remap.copied + remap.skipped).saturating_sub(asked),
            remap,
            valid_histogram: ftl.valid_histogram(BINS),
            buffer_policy: ssd.buffer().map(|_| ssd.config().buffer.policy.to_string()),
            buffer_bytes: ssd.config().buffer.bytes,
            ftl: ftl.stats(),
            host: *ssd.host_stats(),
        }
    }
}

impl SsdDevice {
    /// Everything that is known of the device; `None` once it is closed. Counts the whole map, so
    /// it takes milliseconds per GiB.
    #[must_use]
    pub fn details(&self) -> Option<SsdDetails> {
        self.shared.state().ssd.as_ref().map(SsdDetails::of)
    }

    /// Counters of the device's whole life, as they are now; `None` once the device is closed.
    #[must_use]
    pub fn lifetime(&self) -> Option<Lifetime> {
        self.shared.state().lifetime()
    }

    /// How the host treats the image. Once it takes writes again, it takes the next request that changes something to
    /// notice. `None` once the device is closed.
    #[must_use]
    pub fn image(&self) -> Option<ImageSnapshot> {
        self.shared.state().image()
    }

    /// What the buffer counted since the device was opened; `None` without one, or once the device
    /// is closed.
    #[must_use]
    pub fn buffer_stats(&self) -> Option<Stats> {
        self.shared.state().ssd.as_ref()?.buffer_stats()
    }
}

impl State {
    fn image(&self) -> Option<ImageSnapshot> {
        let media = self.ssd.as_ref()?.ftl().nand().media();
        let failures = media.store().failures();
        Some(ImageSnapshot {
            held: media.held(),
            waiting_bytes: media.store().waiting_bytes(),
            refused_requests: self.watch.refused_ever(),
            failed_reads: failures.reads,
            failed_writes: failures.writes,
            failed_syncs: failures.syncs,
        })
    }
}

/// Pages programmed for any cause / pages the user wrote.
fn write_amplification(ftl: &FtlStats) -> Option<f64> {
    let user = ftl.programs.of(Cause::User);
    (user > 0).then(|| float(ftl.programs.total()) / float(user))
}

impl DeviceStats for SsdDevice {
    fn snapshot(&self) -> Option<DeviceSnapshot> {
        let shared = &*self.shared;
        let state = shared.state();
        let ssd = state.ssd.as_ref()?;
        let unit_pages = u64::from(ssd.config().geometry.unit_bytes()) / PAGE_BYTES;
        let ftl = ssd.ftl().stats();
        let counted = ssd.buffer_stats();
        let buffer = counted.as_ref().map(Stats::total).unwrap_or_default();
        let remap = ssd.ftl().remap_stats();
        Some(DeviceSnapshot {
            volume: None,
            image: state.image(),
            flash: true,
            remap_pages: [remap.remapped, remap.copied, remap.skipped]
                .map(|units| units * unit_pages),
            saved_pages: ftl.saved,
            host_written_bytes: state.counting.host.host_written_bytes,
            nand_written_pages: ftl.programs,
            write_amplification: write_amplification(&ftl),
            free_superblocks: ssd.ftl().free_superblocks().into(),
            gc_active: ssd.ftl().is_collecting(),
            erases: ftl.erases,
            buffer_policy: counted.as_ref().map(|_| ssd.config().buffer.policy.to_string()),
            buffer_areas: counted.as_ref().map(Stats::areas_by_name).unwrap_or_default(),
            buffer_read_hits: buffer.reads.hits,
            buffer_read_misses: buffer.reads.misses(),
            buffer_write_hits: buffer.writes.hits,
            buffer_write_misses: buffer.writes.misses(),
            unflushed_bytes: shared.unflushed.count().1,
            flush_ns: shared.flush_ns.load(Relaxed),
            recovery_ns: shared.recovery_ns.load(Relaxed),
        })
    }
}
