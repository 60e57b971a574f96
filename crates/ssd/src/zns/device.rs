//! The namespace: how it is built, and what it tells.

use std::collections::{BTreeSet, VecDeque};

use onefold_format::{BlockSetState, ZoneCondition, ZoneRecord};
use onefold_nand::{At, Delay, Grant, Media, MediaError, Nand, Spare, Work};
use onefold_units::convert::{index, low32, narrow, u64_from};
use onefold_units::{Cause, Nanos, ZoneId};

use super::blocks::Sets;
use super::cache::WriteCache;
use super::config::BLOCK;
use super::state::{Opened, ZoneTable};
use super::unsynced::Unsynced;
use super::{
    ZnsConfig, ZnsConfigError, ZnsError, ZnsLayout, ZnsMedia, ZnsStats, ZoneInfo, ZoneReport,
    ZoneState,
};
use crate::{HostStats, Ssd};

/// A zoned namespace on a flash array of its own.
pub struct Zns<M> {
    pub(crate) config: ZnsConfig,
    pub(crate) layout: ZnsLayout,
    pub(crate) nand: Nand<M>,
    pub(crate) table: ZoneTable,
    pub(crate) data: Vec<ZoneData>,
    pub(crate) sets: Sets,
    pub(crate) cache: Option<WriteCache>,
    /// What lies behind the conventional zones.
    pub(crate) conventional: Option<Box<Ssd<M>>>,
    /// When the last program ends.
    pub(crate) programmed_at: Nanos,
    /// Zones with blocks that no FLUSH has covered.
    pub(crate) unflushed: BTreeSet<ZoneId>,
    /// Sets that were given back since the medium was synchronised.
    pub(crate) given_back: Unsynced<u32>,
    /// Zones that have had staged blocks in NVRAM since then, which went to flash or were reset.
    pub(crate) left_staged: Unsynced<ZoneId>,
    pub(crate) stats: ZnsStats,
    pub(crate) host: HostStats,
    /// Spare areas and bytes of a flash page.
    pub(crate) spares: Vec<Spare>,
    pub(crate) page: Vec<u8>,
}

/// Where the data of a zone is.
#[derive(Clone, Debug, Default)]
pub(crate) struct ZoneData {
    pub(crate) set: Option<u32>,
    pub(crate) resets: u32,
    pub(crate) condition: ZoneCondition,
    /// Blocks that wait for the rest of their flash page, and their bytes.
    pub(crate) staged: u32,
    pub(crate) bytes: Vec<u8>,
    /// Staged blocks that are in NVRAM.
    pub(crate) saved: u32,
    /// Blocks from the start that NVRAM says are whole.
    pub(crate) whole: u32,
    /// Flash pages that are in the cache until their programs end.
    pub(crate) in_flight: VecDeque<(u32, Nanos)>,
}

impl<M: Media> Zns<M> {
    /// A fresh namespace over an erased medium with zeroed NVRAM ([`ZnsLayout::nvram_bytes`]), and another one for conventional
    /// zones.
    ///
    /// # Errors
    /// The parts of the configuration do not fit together.
    pub fn new(config: ZnsConfig, media: ZnsMedia<M>) -> Result<Self, ZnsConfigError> {
        let ZnsMedia { sequential, conventional } = media;
        let build = |device| {
            let Some(media) = conventional else { panic!("conventional zones without a medium") };
            Ssd::new(device, media).map(Box::new)
        };
        let conventional = config.conventional.map(build).transpose()?;
        Self::assemble(&config, sequential, conventional)
    }

    /// A namespace whose sequential zones are empty.
    pub(crate) fn assemble(
        config: &ZnsConfig,
        media: M,
        conventional: Option<Box<Ssd<M>>>,
    ) -> Result<Self, ZnsConfigError> {
        let layout = ZnsLayout::new(config)?;
        let nand = Nand::new(*layout.geometry(), config.timing, config.faults, media);
        let page_bytes = layout.page() * BLOCK;
        let mut zns = Self {
            config: *config,
            layout,
            nand,
            table: ZoneTable::new(config),
            data: vec![ZoneData::default(); index(config.all_zones())],
            sets: Sets::new(layout.sets()),
            cache: (config.cache_bytes > 0).then(|| WriteCache::new(config.cache_bytes)),
            conventional,
            programmed_at: Nanos::ZERO,
            unflushed: BTreeSet::new(),
            given_back: Unsynced::default(),
            left_staged: Unsynced::default(),
            stats: ZnsStats::default(),
            host: HostStats::default(),
            spares: Vec::new(),
            page: vec![0; if M::STORES { index(page_bytes) } else { 0 }],
        };
        zns.retire_factory_bad();
        Ok(zns)
    }

    /// Takes the sets of factory-bad superblocks out of service, and the last zones if too few sets are left.
    fn retire_factory_bad(&mut self) {
        let (bad, total) =
            (self.config.faults.bad_superblocks, self.layout.geometry().superblocks());
        for n in 0..bad.min(total) {
            let at = narrow(u64::from(n) * u64::from(total) / u64::from(bad));
            if let Some(set) = self.layout.set_of(onefold_units::SuperblockId::new(at)) {
                self.sets.put(set, BlockSetState::Bad, false);
            }
        }
        let good = self.layout.sets() - self.sets.bad();
        for zone in self.table.sequential().skip(index(good)) {
            self.table.set(zone, ZoneState::Offline);
            self.data[zone.index()].condition = ZoneCondition::Offline;
        }
    }

    /// What defines the namespace.
    #[must_use]
    pub const fn config(&self) -> &ZnsConfig {
        &self.config
    }

    /// How the flash array is divided.
    #[must_use]
    pub const fn layout(&self) -> &ZnsLayout {
        &self.layout
    }

    /// Blocks of the namespace, those that cannot be written included.
    #[must_use]
    pub fn blocks(&self) -> u64 {
        u64::from(self.config.all_zones()) * u64::from(self.config.zone_blocks)
    }

    /// The flash array of the sequential zones.
    #[must_use]
    pub const fn nand(&self) -> &Nand<M> {
        &self.nand
    }

    /// The flash array, for tests.
    pub const fn nand_mut(&mut self) -> &mut Nand<M> {
        &mut self.nand
    }

    /// Whether what the device does takes virtual time. Times begin at zero again.
    pub fn set_timed(&mut self, timed: bool) {
        self.nand.set_timed(timed);
        self.programmed_at = Nanos::ZERO;
        if let Some(device) = &mut self.conventional {
            device.set_timed(timed);
        }
        if let Some(cache) = &mut self.cache {
            *cache = WriteCache::new(self.config.cache_bytes);
        }
        for data in &mut self.data {
            data.in_flight.clear();
        }
    }

    /// What the namespace did so far, that behind its conventional zones included.
    #[must_use]
    pub fn stats(&self) -> ZnsStats {
        let (erases, slow) = (self.nand.erases(), self.nand.slow());
        let own = ZnsStats { erases, slow, ..self.stats };
        let mapped = self.conventional.as_ref().map(|device| device.ftl().stats());
        mapped.map_or(own, |mapped| own.with_conventional(mapped))
    }

    /// What the host asked for so far, commands to zones aside.
    #[must_use]
    pub const fn host_stats(&self) -> &HostStats {
        &self.host
    }

    /// Open and active zones.
    #[must_use]
    pub const fn resources(&self) -> (u32, u32) {
        self.table.resources()
    }

    /// Sets of blocks that failed.
    #[must_use]
    pub const fn bad_sets(&self) -> u32 {
        self.sets.bad()
    }

    /// Erases of each set of blocks.
    pub fn wear(&self) -> impl Iterator<Item = u32> + '_ {
        self.sets.wear()
    }

    /// Gives the medium back, as when power is lost: everything volatile is gone.
    #[must_use]
    pub fn into_media(self) -> ZnsMedia<M> {
        ZnsMedia {
            sequential: self.nand.into_media(),
            conventional: self.conventional.map(|device| device.into_media()),
        }
    }

    /// What is known of a zone; `None` if there is no such zone.
    #[must_use]
    pub fn zone(&self, zone: ZoneId) -> Option<ZoneInfo> {
        self.has(zone).then(|| self.info(zone))
    }

    fn info(&self, zone: ZoneId) -> ZoneInfo {
        let state = self.table.state(zone);
        let start = self.start(zone);
        let pointer = state.is_active() || state == ZoneState::Empty;
        ZoneInfo {
            zone,
            state,
            start,
            conventional: self.table.is_conventional(zone),
            capacity: self.table.capacity(zone),
            write_pointer: pointer.then(|| start + u64::from(self.table.written(zone))),
            resets: self.data[zone.index()].resets,
        }
    }

    /// Block behind the last one of a zone that may hold data; its start if there is none, or no such zone.
    #[must_use]
    pub fn written_end(&self, zone: ZoneId) -> u64 {
        let written = match zone {
            _ if !self.has(zone) => 0,
            _ if self.table.is_conventional(zone) => self.table.capacity(zone),
            _ => self.table.written(zone),
        };
        self.start(zone) + u64::from(written)
    }

    pub(crate) fn has(&self, zone: ZoneId) -> bool {
        zone.raw() < self.config.all_zones()
    }

    /// Reports zones from `first` on, those in `state` or all, at most `max` of them.
    ///
    /// # Errors
    /// [`ZnsError::LbaOutOfRange`] if there is no zone `first`.
    pub fn report(
        &self,
        first: ZoneId,
        state: Option<ZoneState>,
        max: usize,
        partial: bool,
    ) -> Result<ZoneReport, ZnsError> {
        if !self.has(first) {
            let lba = u64::from(first.raw()) * u64::from(self.config.zone_blocks);
            return Err(ZnsError::LbaOutOfRange { lba, blocks: 0, capacity: self.blocks() });
        }
        let matches = |zone: &ZoneId| state.is_none_or(|state| self.table.state(*zone) == state);
        let all = || self.table.ids().skip(first.index()).filter(matches);
        let zones: Vec<_> = all().take(max).map(|zone| self.info(zone)).collect();
        let matching = if partial { zones.len() } else { all().count() };
        Ok(ZoneReport { matching: onefold_units::convert::u32_from(matching), zones })
    }

    /// First block of a zone.
    pub(crate) fn start(&self, zone: ZoneId) -> u64 {
        u64::from(zone.raw()) * u64::from(self.config.zone_blocks)
    }

    /// The zone of a range, and where in it the range begins.
    pub(crate) fn locate(&self, lba: u64, blocks: u32) -> Result<(ZoneId, u32), ZnsError> {
        let (blocks, capacity) = (u64::from(blocks), self.blocks());
        if lba >= capacity || blocks > capacity - lba {
            return Err(ZnsError::LbaOutOfRange { lba, blocks, capacity });
        }
        if blocks == 0 {
            return Err(ZnsError::InvalidField { what: "no blocks, expected at least one" });
        }
        let size = u64::from(self.config.zone_blocks);
        Ok((ZoneId::new(narrow(lba / size)), low32(lba % size)))
    }

    pub(crate) fn count_opened(&mut self, opened: Opened, by_write: bool) {
        if let Opened::Now { closed } = opened {
            self.stats.opens[usize::from(by_write)] += 1;
            self.stats.implicit_closes += u64::from(closed.is_some());
        }
    }

    /// Stores what NVRAM has to know of a zone (invariant 4).
    pub(crate) fn record_zone(&mut self, zone: ZoneId) -> Result<(), ZnsError> {
        if !M::STORES {
            return Ok(());
        }
        let data = &self.data[zone.index()];
        let record = ZoneRecord {
            zone,
            condition: data.condition,
            resets: data.resets,
            set: data.set,
            whole: data.whole,
        };
        let (at, bytes) = (self.layout.zone_record_at(zone), record.encode(self.layout.id()));
        self.nand.media_mut().nvram_write(at, &bytes).map_err(ZnsError::Media)
    }

    /// The sums of causes are what the array counted.
    ///
    /// # Errors
    /// Both sums, in words.
    pub fn check(&self) -> Result<(), String> {
        let (counted, programmed) = (self.stats.programs.total(), self.nand.programmed_pages());
        if counted != programmed {
            return Err(format!("{counted} blocks counted by cause, {programmed} programmed"));
        }
        let held = self.data.iter().filter(|data| data.set.is_some()).count();
        let known = u64_from(held) + u64::from(self.sets.erased() + self.sets.bad());
        if known < u64::from(self.layout.sets()) {
            return Err(format!("{known} sets are known, {} exist", self.layout.sets()));
        }
        let mapped = self.conventional.as_ref().map_or(Ok(()), |device| device.ftl().check());
        mapped.map_err(|violation| format!("conventional zones: {violation}"))
    }

    pub(crate) fn count_programs(&mut self, cause: Cause, blocks: u32) {
        self.stats.programs.add(cause, blocks.into());
    }
}

/// The bytes of the block at `place` among those of a flash page.
pub(crate) fn block_bytes(place: u32) -> std::ops::Range<usize> {
    index(place) * index(BLOCK)..index(place + 1) * index(BLOCK)
}

/// Work of the host that may begin at `ready`.
pub(crate) const fn host_work(now: Nanos, ready: Nanos) -> At {
    At { now, ready, work: Work::Host }
}

/// A grant for what took no time.
pub(crate) const fn at_once(ready: Nanos) -> Grant {
    Grant { done: ready, delay: Delay::None }
}

pub(crate) const fn is_failed_program(error: MediaError) -> bool {
    matches!(error, MediaError::ProgramFailed)
}
