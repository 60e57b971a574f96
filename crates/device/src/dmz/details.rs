//! What a served zoned volume tells about itself.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use onefold_journal::{Range, Remark};
use onefold_units::PAGE_BYTES;
use onefold_units::convert::float;
use onefold_zoned::{
    Action, Geometry, JournalMode, Layout, Recovery, Sent, Stats, Stream, WaitReason, ZoneKind,
};

use super::{DmzCache, DmzVolume};
use crate::observed::{DeviceSnapshot, DeviceStats, VolumeSnapshot};
use crate::sums::CacheSums;

/// Everything that is known of a zoned volume, taken at one moment.
#[derive(Clone, Debug)]
pub struct DmzDetails {
    /// Its identity.
    pub uuid: [u8; 16],
    /// Its zones.
    pub geometry: Geometry,
    /// Sizes of its metadata.
    pub layout: Layout,
    /// Chunks that have a zone.
    pub mapped_chunks: u32,
    /// Its name, zero-terminated if it is shorter.
    pub label: [u8; 32],
    /// Zones by kind and name of their use.
    pub zones: BTreeMap<(ZoneKind, &'static str), u32>,
    /// What becomes of the journal.
    pub journal: JournalMode,
    /// The chunks that are pinned.
    pub pinned: BTreeSet<u32>,
    /// Zones that are the journal's.
    pub journal_zones: u64,
    /// Sequential ones of them, for the ring and for what is rewritten at any time.
    pub set_zones: [u64; 2],
    /// Blocks of the journal that lie in those.
    pub appended_blocks: u64,
    /// What the detector found.
    pub ranges: Vec<Range>,
    /// What it found that gives no range.
    pub remarks: Vec<Remark>,
    /// What opening had to put right.
    pub recovery: Recovery,
    /// How long it took.
    pub recovery_time: Duration,
    /// Bytes of memory for map and validity.
    pub metadata_memory: u64,
    /// A device failed, so it takes no more changes.
    pub frozen: bool,
    /// What is known of the checksums of the cache; `None` if it has none.
    pub cache_sums: Option<CacheSums>,
    /// What was counted since the volume was opened.
    pub stats: Stats,
}

impl DmzVolume {
    /// Everything that is known of the volume.
    #[must_use]
    pub fn details(&self) -> DmzDetails {
        let shared = &self.driver.shared;
        let state = self.driver.state();
        let volume = &state.engine.volume;
        let detector = state.watch.as_ref().map(|watch| &watch.detector);
        DmzDetails {
            uuid: shared.uuid,
            geometry: volume.geometry().clone(),
            layout: *volume.layout(),
            mapped_chunks: volume.mapped_chunks(),
            label: *volume.label(),
            zones: volume.zones_by_use(),
            journal: volume.journal_mode(),
            pinned: volume.pinned().clone(),
            journal_zones: volume.journal_zones(),
            set_zones: [Stream::Log, Stream::Hot].map(|stream| volume.set_zones(stream)),
            appended_blocks: volume.appended_blocks(),
            ranges: detector.map_or_else(Vec::new, |detector| detector.ranges().to_vec()),
            remarks: detector.map_or_else(Vec::new, |detector| detector.remarks().to_vec()),
            recovery: shared.recovery,
            recovery_time: shared.took,
            metadata_memory: volume.metadata_memory(),
            frozen: state.over || volume.is_frozen(),
            cache_sums: shared.devices.cache.as_ref().and_then(DmzCache::sums),
            stats: volume.stats().clone(),
        }
    }
}

impl DmzDetails {
    /// Bytes sent to all devices by cause. Their sum is everything that was sent.
    pub fn sent_bytes(&self) -> impl Iterator<Item = (&'static str, u64)> {
        Sent::ALL.into_iter().map(|cause| (cause.name(), self.stats.sent(cause) * PAGE_BYTES))
    }

    /// Bytes sent / bytes the host wrote; `None` before the first write.
    #[must_use]
    pub fn write_amplification(&self) -> Option<f64> {
        let sent: u64 = self.sent_bytes().map(|(_, bytes)| bytes).sum();
        let written = self.stats.written * PAGE_BYTES;
        (written > 0).then(|| float(sent) / float(written))
    }
}

impl DeviceStats for DmzVolume {
    fn snapshot(&self) -> Option<DeviceSnapshot> {
        let details = self.details();
        let stats = &details.stats;
        let reclaims = |of: fn(&onefold_zoned::Reclaims) -> u64| -> u64 {
            Action::ALL.into_iter().map(|action| of(&stats.reclaims(action))).sum()
        };
        let reads: u64 = stats.devices.iter().map(|device| device.read_for_copying).sum();
        let waits = WaitReason::ALL.map(|reason| stats.waits(reason));
        let sums = details.cache_sums.unwrap_or_default();
        let volume = VolumeSnapshot {
            sent_bytes: details.sent_bytes().collect(),
            write_amplification: details.write_amplification(),
            clean_read_bytes: reads * PAGE_BYTES,
            map_bytes: details.metadata_memory,
            stalled: waits.iter().map(|waits| Duration::from_nanos(waits.ns)).sum(),
            read_only: details.frozen,
            events: vec![
                ("metadata_flushes", stats.metadata_flushes),
                ("reclaims_started", reclaims(|all| all.started)),
                ("reclaims_completed", reclaims(|all| all.completed)),
                ("reclaims_aborted", reclaims(|all| all.aborted)),
                ("reclaims_failed", reclaims(|all| all.failed)),
                ("journal_merges", stats.journal_merges),
                ("journal_demotions", stats.journal_demotions),
                ("cache_damaged_reads", sums.damaged_reads),
                ("waits", waits.iter().map(|waits| waits.count).sum()),
            ],
            ..VolumeSnapshot::default()
        };
        Some(DeviceSnapshot {
            volume: Some(volume),
            host_written_bytes: stats.written * PAGE_BYTES,
            recovery_ns: u64::try_from(details.recovery_time.as_nanos()).unwrap_or(u64::MAX),
            ..DeviceSnapshot::default()
        })
    }
}
