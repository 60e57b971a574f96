//! The DRAM buffer: a policy, the bytes of its slots, and what is between them and flash.

use onefold_buffer::{Actions, PartMask, Policy, PolicySpec, Programmed, Slot, Stats};
use onefold_nand::Media;
use onefold_units::convert::{index, u32_from};
use onefold_units::{Keep, Keeper, Nanos};

use crate::holes::Holes;
use crate::span::Part;
use crate::unit_set::UnitSet;
use crate::write_back::Pool;
use crate::{SsdConfig, Writeback};

/// A policy and the bytes of its slots.
pub(crate) struct Buffered {
    pub(crate) policy: Box<dyn Policy + Send>,
    pub(crate) actions: Actions,
    /// All slots, one after the other; empty where no bytes are stored.
    bytes: Vec<u8>,
    unit: usize,
    /// Dirty units, which the FTL may not know yet. Empty where nobody asks for them.
    pub(crate) dirty: UnitSet,
    /// Victims on their way to flash; `None` if admission waits for them.
    pub(crate) pool: Option<Pool>,
    /// What could not be loaded or programmed.
    pub(crate) holes: Holes,
    /// Reads served by the pool, by tenant.
    served: Vec<Served>,
}

impl Keep for Buffered {
    fn keep(&mut self, keeper: &mut Keeper<'_>) {
        let Self { policy, actions: _, bytes, unit: _, dirty, pool, holes, served } = self;
        policy.keep(keeper);
        bytes.keep(keeper);
        dirty.keep(keeper);
        holes.keep(keeper);
        served.keep(keeper);
        keeper.each(pool.iter_mut());
    }
}

/// Reads of one tenant that the pool served. The policy counted them as misses.
#[derive(Clone, Copy, Debug, Default)]
struct Served {
    /// Pages.
    pages: u64,
    /// Bytes in them.
    bytes: u64,
    /// Requests that became full hits by it.
    requests: u64,
}

onefold_units::keep!(Served { pages, bytes, requests });

/// Whether a policy asks about pages.
fn asks_ftl(policy: &PolicySpec) -> bool {
    policy.info().build.asks_ftl(&policy.parameters())
}

impl Buffered {
    /// The buffer in front of a device of `units` units.
    pub(crate) fn new<M: Media>(
        policy: Box<dyn Policy + Send>,
        config: &SsdConfig,
        units: u32,
    ) -> Self {
        let unit = index(config.geometry.unit_bytes());
        let stored = if M::STORES { unit } else { 0 };
        // Extents of a stored device and policies that ask the FTL need to know dirty units.
        let tracks = M::STORES || asks_ftl(&config.buffer.policy);
        let pool = match config.writeback {
            Writeback::Sync => None,
            Writeback::Async { slots } => Some(Pool::new(slots, stored)),
        };
        Self {
            actions: Actions::new(),
            bytes: vec![0; index(policy.slots()) * stored],
            unit,
            dirty: UnitSet::new(if tracks { units } else { 0 }),
            pool,
            holes: Holes::default(),
            served: Vec::new(),
            policy,
        }
    }

    pub(crate) fn slot(&self, slot: Slot) -> &[u8] {
        let start = slot.index() * self.unit;
        self.bytes.get(start..start + self.unit).unwrap_or_default()
    }

    pub(crate) fn slot_mut(&mut self, slot: Slot) -> &mut [u8] {
        let start = slot.index() * self.unit;
        self.bytes.get_mut(start..start + self.unit).unwrap_or_default()
    }

    /// Pages of 4 KiB of which these parts of a unit have some.
    #[inline]
    pub(crate) fn pages(&self, parts: PartMask) -> u64 {
        if self.unit == 4096 {
            return u64::from(parts.bits() != 0);
        }
        parts.pages(self.policy.part_bytes()).into()
    }

    /// When a victim can move out of its slot, at `ready` or later.
    pub(crate) fn wait_for_pool(&mut self, ready: Nanos) -> Nanos {
        self.pool.as_mut().map_or(ready, |pool| pool.wait(ready))
    }

    /// Moves a victim whose program ends at `end` to the pool. `false` if there is none, or if the
    /// request awaits the program: then it hides an older victim of the unit, as any newer one does.
    pub(crate) fn takes_victim(&mut self, entry: Programmed, end: Nanos, awaited: bool) -> bool {
        let Some(pool) = &mut self.pool else { return false };
        if awaited {
            pool.forget(entry.lpn, 1);
            return false;
        }
        let start = entry.slot.index() * self.unit;
        let data = self.bytes.get(start..start + self.unit).unwrap_or_default();
        pool.take(entry.lpn, end, data);
        true
    }

    /// Counts a read request of which the pool served `parts`, and flash the rest if not `all`.
    pub(crate) fn count_served(&mut self, tenant: u8, parts: &[Part], all: bool) {
        let at = usize::from(tenant);
        if self.served.len() <= at {
            self.served.resize(at + 1, Served::default());
        }
        let served = &mut self.served[at];
        served.pages += u64::from(u32_from(parts.len()));
        served.bytes += parts.iter().map(|part| u64::from(part.sectors()) * 512).sum::<u64>();
        served.requests += u64::from(all);
    }

    /// What the policy counted, with the reads that the pool served as hits.
    pub(crate) fn stats(&self) -> Stats {
        let mut stats = self.policy.stats().clone();
        for (tenant, served) in (0..=u8::MAX).zip(&self.served) {
            let counted = stats.tenant_mut(tenant);
            counted.wb_hits = served.pages;
            counted.flash_reads -= served.pages;
            counted.reads.hits += served.pages;
            counted.reads.bytes_hit += served.bytes;
            counted.reads.full_hits += served.requests;
        }
        stats
    }
}
