//! The FTL: state and queries. Operations are in `write`, `read`, `gc`, `checkpoint`, `recovery`.
//!
//! Terms: *superblock*, *slot*, *program*, *pool* as in `onefold_nand::Geometry`; a *frontier* is an
//! open superblock; a slot is *valid* while it holds the content of the logical unit mapped to it,
//! or, until the slot that replaces it is programmed, the content before.
//!
//! 1. `l2p[lpn]` names a valid slot, or nothing. The slot's `p2l` is `lpn`, or an entry of the remap
//!    log maps `lpn` to it.
//! 2. `valid` of a superblock is the number of its valid slots; `valid` of a pool the sum of those. `closed` of a
//!    pool is the number of its superblocks that are closed or collected.
//! 3. A superblock is erased only when it has no valid slot.
//! 4. A slot's content is replaced only after its successor was programmed.
//! 5. Sequence numbers grow with every mapping change of the host; collection keeps them.
//! 6. The free superblocks of a pool never fall below `stop` but for collection itself.

use std::collections::BTreeSet;

use onefold_format::checksum;
use onefold_nand::{At, FaultSpec, Geometry, Media, MediaError, Nand, NullMedia, Work};
use onefold_units::convert::{float, floor_u64, index, narrow, u32_from, u64_from};
use onefold_units::{CauseCounts, Lpn, Nanos, Ppn, SuperblockId};

use crate::contents::Contents;
use crate::dump::Checkpoints;
use crate::frontier::Frontier;
use crate::layout::{Layout, UNMAPPED};
use crate::map_cache::MapCache;
use crate::pool::Pool;
use crate::remap::{Piece, Remap, Ring};
use crate::stats::{FailedDie, FtlStats, Held, SpaceMap, Wear};
use crate::superblock::{Map, State, Superblock, ValidBits};
use crate::trim_log::TrimLog;
use crate::{ConfigError, FtlConfig, RemapStats, VictimSetup};

/// A page-mapping flash translation layer over one array.
#[derive(Clone, Debug)]
pub struct Ftl<M> {
    pub(crate) config: FtlConfig,
    pub(crate) layout: Layout,
    pub(crate) nand: Nand<M>,
    pub(crate) map: Map,
    pub(crate) valid: ValidBits,
    pub(crate) superblocks: Vec<Superblock>,
    pub(crate) pools: Vec<Pool>,
    /// Frontier `f` of pool `p` is at `p * layout.frontiers + f`.
    pub(crate) frontiers: Vec<Frontier>,
    /// Pool that takes the next host write.
    pub(crate) turn: u32,
    /// Last sequence number given out.
    pub(crate) seq: u64,
    /// Next epoch.
    pub(crate) alloc: u64,
    /// Epochs before this one may be given out: the limit in NVRAM.
    pub(crate) epoch_limit: u64,
    pub(crate) stats: FtlStats,
    pub(crate) trim_log: TrimLog,
    pub(crate) checkpoints: Checkpoints,
    pub(crate) map_cache: Option<MapCache>,
    /// Latest completion of any program: what a flush waits for.
    pub(crate) programmed_at: Nanos,
    /// One unit of scratch for collection; empty where no bytes are stored.
    pub(crate) scratch: Vec<u8>,
    /// Checksum that binds superblock headers to this geometry.
    pub(crate) geometry_id: u64,
    /// Pools that collect, or have fewer free superblocks than `start`.
    pub(crate) hungry: u32,
    /// Sharing of slots; `None` where remaps are copies.
    pub(crate) remap: Option<Box<Remap>>,
    /// What remapping counted where remaps are copies.
    pub(crate) copied: RemapStats,
    /// Where which content is stored; `None` without deduplication.
    pub(crate) contents: Option<Box<Contents>>,
    /// Numbered remap commands.
    pub(crate) ring: Ring,
    /// Units that the next flush unmaps.
    pub(crate) moving: BTreeSet<u32>,
    /// What the last remap command was decided into: memory for the next.
    pub(crate) pieces: Vec<Piece>,
}

onefold_units::keep!(Ftl<NullMedia> { nand, map, valid, superblocks, turn, seq, alloc, epoch_limit, stats, trim_log,
    checkpoints, programmed_at, hungry, copied, ring, moving } each { pools, frontiers, map_cache, remap, contents }
    but { config, layout, scratch, geometry_id, pieces });

impl<M: Media> Ftl<M> {
    /// A fresh FTL over an erased array.
    ///
    /// # Errors
    /// The configuration cannot work on this geometry.
    pub fn new(
        nand: Nand<M>,
        config: FtlConfig,
        bad_superblocks: u32,
    ) -> Result<Self, ConfigError> {
        let mut ftl = Self::blank(nand, &config)?;
        ftl.retire_factory_bad(bad_superblocks)?;
        for at in 0..u32_from(ftl.superblocks.len()) {
            ftl.release(SuperblockId::new(at));
        }
        Ok(ftl)
    }

    /// An FTL with every superblock still unassigned.
    pub(crate) fn blank(nand: Nand<M>, config: &FtlConfig) -> Result<Self, ConfigError> {
        let geometry = *nand.geometry();
        let layout = Layout::new(&geometry, config)?;
        let pools = geometry.pools();
        let per_pool = geometry.superblocks_per_pool();
        let unit = index(geometry.unit_bytes());
        let make_pool = |pool: u32| {
            let setup = VictimSetup {
                parameters: config.victim.parameters(),
                superblocks: per_pool,
                seed: config.seed.wrapping_add(u64::from(pool)),
                draws: config.victim_draws,
            };
            Pool::new(&config.victim, &setup)
        };
        Ok(Self {
            config: *config,
            layout,
            map: Map::new(layout.units, &geometry),
            valid: ValidBits::new(geometry.superblocks(), geometry.slots()),
            superblocks: vec![Superblock::FREE; index(geometry.superblocks())],
            pools: (0..pools).map(make_pool).collect(),
            frontiers: vec![Frontier::default(); index(pools * layout.frontiers)],
            turn: 0,
            seq: 0,
            alloc: 1,
            epoch_limit: 0,
            stats: FtlStats::default(),
            trim_log: TrimLog::new(&layout),
            checkpoints: Checkpoints::default(),
            map_cache: config
                .map_cache_bytes
                .map(|bytes| MapCache::new(bytes, geometry.unit_bytes(), &layout)),
            programmed_at: Nanos::ZERO,
            scratch: if M::STORES { vec![0; unit] } else { Vec::new() },
            geometry_id: geometry_id(&geometry),
            hungry: 0,
            remap: Remap::new(config.remap, &geometry, &layout).map(Box::new),
            copied: RemapStats::default(),
            contents: Contents::new(
                config.dedup_scope,
                config.contents(),
                geometry.total_slots(),
                layout.host_units,
            )?,
            ring: Ring::default(),
            moving: BTreeSet::new(),
            pieces: Vec::new(),
            nand,
        })
    }

    /// Factory-bad superblocks are spread evenly, so that every pool loses about as many.
    pub(crate) fn retire_factory_bad(&mut self, bad: u32) -> Result<(), ConfigError> {
        let total = u64_from(self.superblocks.len());
        if u64::from(bad) * 2 > total {
            return Err(ConfigError::Count {
                key: "faults.bad_superblocks",
                value: u64::from(bad),
                min: 0,
                max: total / 2,
            });
        }
        for n in 0..u64::from(bad) {
            let at = narrow(n * total / u64::from(bad));
            self.superblocks[index(at)].state = State::Retired;
        }
        let space = self.space();
        if space.rho >= 1.0 {
            return Err(ConfigError::NoSpace {
                logical: space.logical_pages * 4096,
                snapshots: self.config.snapshot_units
                    * u64::from(self.nand.geometry().unit_bytes()),
                usable: space.usable_pages * 4096,
                reserve: u64::from(self.layout.start),
                superblocks: u64::from(self.nand.geometry().superblocks_per_pool()),
            });
        }
        Ok(())
    }

    /// How the flash is divided up.
    #[must_use]
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The flash array.
    #[must_use]
    pub const fn nand(&self) -> &Nand<M> {
        &self.nand
    }

    /// The flash array, for controller and link time.
    pub const fn nand_mut(&mut self) -> &mut Nand<M> {
        &mut self.nand
    }

    /// The same FTL for a simulation: nothing is stored from now on, and nothing can be read back.
    #[must_use]
    pub fn without_bytes(self) -> Ftl<NullMedia> {
        let Self {
            nand,
            scratch: _,
            config,
            layout,
            map,
            valid,
            superblocks,
            pools,
            frontiers,
            turn,
            seq,
            alloc,
            epoch_limit,
            stats,
            trim_log,
            checkpoints,
            map_cache,
            programmed_at,
            geometry_id,
            hungry,
            remap,
            copied,
            contents,
            ring,
            moving,
            pieces,
        } = self;
        let nand = nand.with_media(NullMedia);
        Ftl {
            nand,
            scratch: Vec::new(),
            config,
            layout,
            map,
            valid,
            superblocks,
            pools,
            frontiers,
            turn,
            seq,
            alloc,
            epoch_limit,
            stats,
            trim_log,
            checkpoints,
            map_cache,
            programmed_at,
            geometry_id,
            hungry,
            remap,
            copied,
            contents,
            ring,
            moving,
            pieces,
        }
    }

    /// Gives the medium back, as when power is lost.
    #[must_use]
    pub fn into_media(self) -> M {
        self.nand.into_media()
    }

    /// Logical units of the host.
    #[must_use]
    pub const fn host_units(&self) -> u32 {
        self.layout.host_units
    }

    /// Snapshot units: those that come after the ones of the host.
    #[must_use]
    pub const fn snapshot_units(&self) -> u32 {
        self.layout.data_units - self.layout.host_units
    }

    /// Runs operations that may name snapshot units, too. Without this, ranges end with the units of
    /// the host, so that no command of a host gets behind them.
    pub fn with_snapshot_units<T>(&mut self, operate: impl FnOnce(&mut Self) -> T) -> T {
        let host = std::mem::replace(&mut self.layout.host_units, self.layout.data_units);
        let result = operate(self);
        self.layout.host_units = host;
        result
    }

    /// Whether a unit is mapped. Lost units count as mapped: reading them is an error.
    #[must_use]
    pub fn is_mapped(&self, lpn: Lpn) -> bool {
        self.map.l2p.get(lpn.index()) != UNMAPPED
    }

    /// Whether a unit is mapped and not lost, for the buffer (`FtlView`).
    #[must_use]
    #[inline]
    pub fn is_stored(&self, lpn: Lpn) -> bool {
        self.map.stored(lpn.raw()).is_some()
    }

    /// How many of `n` units from `first` on are mapped and not lost; those beyond the capacity of
    /// the host are not.
    #[must_use]
    pub fn stored_count(&self, first: Lpn, n: u32) -> u32 {
        let end = first.raw().saturating_add(n).min(self.layout.host_units);
        u32_from((first.raw()..end).filter(|lpn| self.map.stored(*lpn).is_some()).count())
    }

    /// The slot that holds a unit, or is about to: it may be staged.
    #[must_use]
    pub fn slot(&self, lpn: Lpn) -> Option<Ppn> {
        self.map.stored(lpn.raw())
    }

    /// Begins to load the map entry of a unit that is about to be used. Nobody waits for it.
    #[inline]
    pub fn prefetch(&self, lpn: Lpn) {
        self.map.l2p.prefetch(lpn.index());
    }

    /// Counters since the device was built.
    #[must_use]
    pub fn stats(&self) -> FtlStats {
        FtlStats { erases: self.nand.erases(), slow: self.nand.slow(), ..self.stats }
    }

    /// Bytes of memory that the index of fingerprints takes.
    #[must_use]
    pub fn fingerprint_bytes(&self) -> u64 {
        self.contents.as_ref().map_or(0, |contents| contents.bytes())
    }

    /// What remapping counted since the device was built.
    #[must_use]
    pub fn remap_stats(&self) -> RemapStats {
        self.remap.as_ref().map_or(self.copied, |remap| remap.stats)
    }

    /// Free superblocks over all pools.
    #[must_use]
    pub fn free_superblocks(&self) -> u32 {
        self.pools.iter().map(Pool::free_count).sum()
    }

    /// Whether collection is at work.
    #[must_use]
    pub fn is_collecting(&self) -> bool {
        self.hungry > 0
    }

    /// Latest completion of any program submitted so far.
    #[must_use]
    pub const fn programmed_at(&self) -> Nanos {
        self.programmed_at
    }

    /// The device's map of its flash. T counts what holds data when a victim is chosen in the steady
    /// state: all but the `start` free superblocks of each pool and half of each frontier beyond the
    /// first, which is half full on average.
    #[must_use]
    pub fn space(&self) -> SpaceMap {
        let geometry = self.nand.geometry();
        let count = |state: State| {
            u32_from(self.superblocks.iter().filter(|block| block.state == state).count())
        };
        let (bad, checkpoint) = (count(State::Retired), count(State::Checkpoint));
        let log = count(State::Log);
        let reserve = self.layout.start * geometry.pools();
        let held = f64::from(geometry.superblocks()) - f64::from(bad + checkpoint + log + reserve);
        let partial = f64::from(self.layout.frontiers - 1) * 0.5;
        let full = held - partial * f64::from(geometry.pools());
        let slots = floor_u64(full * f64::from(self.layout.data_slots()));
        let usable_pages = slots * geometry.pages_per_unit();
        let logical_pages = u64::from(self.layout.units) * geometry.pages_per_unit();
        SpaceMap {
            superblocks: geometry.superblocks(),
            bad_superblocks: bad,
            reserve_superblocks: reserve,
            checkpoint_superblocks: checkpoint,
            log_superblocks: log,
            slots: geometry.slots(),
            data_slots: self.layout.data_slots(),
            usable_pages,
            logical_pages,
            rho: float(logical_pages) / float(usable_pages.max(1)),
        }
    }

    /// What superblocks of data hold now.
    #[must_use]
    pub fn held(&self) -> Held {
        let data_slots = u64::from(self.layout.data_slots());
        let (mut valid, mut full) = (0, 0);
        for pool in &self.pools {
            valid += u64::from(pool.valid);
            full += u64::from(pool.closed) * data_slots;
        }
        let open = self.frontiers.iter().filter_map(|frontier| frontier.superblock);
        let in_open: u64 = open.map(|open| u64::from(self.superblocks[open.index()].valid)).sum();
        // Only open and full superblocks have valid slots.
        let stale = full.saturating_sub(valid.saturating_sub(in_open));
        let pages = self.nand.geometry().pages_per_unit();
        Held { valid_pages: valid * pages, stale_pages: stale * pages }
    }

    /// Erases per superblock.
    #[must_use]
    pub fn wear(&self) -> Wear {
        let erases = || self.superblocks.iter().map(|block| block.erases);
        let sum: u64 = erases().map(u64::from).sum();
        Wear {
            min: erases().min().unwrap_or(0),
            mean: float(sum) / float(u64_from(self.superblocks.len()).max(1)),
            max: erases().max().unwrap_or(0),
        }
    }

    /// How many closed superblocks have which share of valid slots, in `bins` equal bins.
    #[must_use]
    pub fn valid_histogram(&self, bins: usize) -> Vec<u64> {
        let mut histogram = vec![0; bins];
        let slots = self.layout.data_slots();
        let closed = self.superblocks.iter().filter(|block| block.state == State::Closed);
        for block in closed {
            let bin = index(block.valid) * bins / index(slots);
            if let Some(count) = histogram.get_mut(bin.min(bins.saturating_sub(1))) {
                *count += 1;
            }
        }
        histogram
    }

    /// Adds to the pages read, by cause.
    pub(crate) fn count_read(&mut self, cause: onefold_units::Cause, pages: u64) {
        self.stats.reads.add(cause, pages);
    }

    /// The die that failed, if one has ([`FaultSpec::die`]). Looks through the whole map then.
    #[must_use]
    pub fn failed_die(&self) -> Option<FailedDie> {
        let die = self.nand.failed_die()?;
        let geometry = self.nand.geometry();
        let stored = (0..self.layout.data_units).filter_map(|lpn| self.map.stored(lpn));
        let lost = stored.filter(|ppn| geometry.lies_on(*ppn, die));
        Some(FailedDie { die, lost_pages: u64_from(lost.count()) * geometry.pages_per_unit() })
    }

    /// Injects these faults from now on, in place of those before: a die may have failed already.
    pub fn set_faults(&mut self, faults: FaultSpec) {
        self.nand.set_faults(faults);
        // It says so when it is used.
        let _ = self.grow_old();
    }

    /// Superblocks taken into use in the life of the drive, the unit of [`FaultSpec::die`]: each as often as it was erased, and once more
    /// if it holds something. After a kill some erases may be forgotten.
    #[must_use]
    pub fn taken_superblocks(&self) -> u64 {
        let taken = |block: &Superblock| match block.state {
            State::Free => u64::from(block.erases) + u64::from(block.dirty),
            State::Retired => u64::from(block.erases),
            _ => u64::from(block.erases) + 1,
        };
        self.superblocks.iter().map(taken).sum()
    }

    /// A die may have failed by now.
    pub(crate) fn grow_old(&mut self) -> Result<(), MediaError> {
        if self.nand.is_to_lose_die() {
            let taken = self.taken_superblocks();
            self.nand.grow_old(taken)?;
        }
        Ok(())
    }

    /// Pages programmed so far, by cause.
    #[must_use]
    pub const fn programs(&self) -> &CauseCounts {
        &self.stats.programs
    }

    /// Switches time off (preconditioning) or on again with idle timelines.
    pub fn set_timed(&mut self, timed: bool) {
        self.nand.set_timed(timed);
        self.programmed_at = Nanos::ZERO;
        if let Some(remap) = &mut self.remap {
            remap.port.reset();
        }
    }
}

/// Background work submitted at `now`.
pub(crate) const fn background(now: Nanos) -> At {
    At { now, ready: now, work: Work::Background }
}

/// Checksum of the numbers that decide where data lies.
fn geometry_id(geometry: &Geometry) -> u64 {
    let spec = geometry.spec();
    let numbers = [
        spec.channels,
        spec.ways,
        spec.planes,
        spec.blocks,
        spec.pages,
        spec.page_bytes,
        spec.unit_bytes,
        geometry.pools(),
    ];
    let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    u64::from(checksum(&bytes))
}
