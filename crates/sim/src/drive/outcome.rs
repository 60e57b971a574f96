//! From a finished run on a block namespace to its result, and the laws it has to obey (ssd.md
//! 3.3).

use onefold_ftl::{FtlStats, RemapScheme, RemapStats, SpaceMap};
use onefold_nand::NullMedia;
use onefold_ssd::{DedupStats, HostStats, Ssd};

use crate::SimError;
use crate::gathered::Gathered;
use crate::outcome::{check_sent, common, faults, preconditioned, tenant_results, volume_result};
use crate::precondition::Preconditioned;
use crate::ran::Ran;
use crate::result::{
    Buffer, ByCause, Flash, Ftl, MapCache, Recovery, Remap, RunResult, Superblocks, VALID_BINS,
    Wear,
};
use crate::series::ratio;
use crate::setup::Setup;
use crate::volume_run::VolumeRun;

/// A run on a block namespace that ended.
pub(crate) struct Finished {
    pub(crate) ssd: Ssd<NullMedia>,
    pub(crate) ran: Ran<Counters>,
    pub(crate) preconditioned: Preconditioned,
    pub(crate) gathered: Gathered,
    /// The volume between load and device.
    pub(crate) volume: Option<VolumeRun>,
}

/// What a block namespace counts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counters {
    pub(crate) ftl: FtlStats,
    pub(crate) host: HostStats,
    pub(crate) remap: RemapStats,
    pub(crate) dedup: DedupStats,
    pub(crate) buffer: Option<onefold_buffer::Stats>,
}

onefold_units::keep!(Counters { ftl, host, remap, dedup } each { buffer });

impl Counters {
    /// So far.
    pub(crate) fn of(ssd: &Ssd<NullMedia>) -> Self {
        let ftl = ssd.ftl();
        Self {
            ftl: ftl.stats(),
            host: *ssd.host_stats(),
            remap: ftl.remap_stats(),
            dedup: ssd.dedup_stats(),
            buffer: ssd.buffer_stats(),
        }
    }
}

/// Builds the result.
pub(crate) fn result(setup: &Setup, mut run: Finished) -> Result<RunResult, SimError> {
    let device = run.ssd.host_stats().since(&run.ran.baseline.host);
    let host = run.volume.as_ref().map_or(device, |volume| volume.host);
    let common = common(setup, &mut run.ran, &run.gathered, &host)?;
    check_laws(&run)?;
    let ftl = run.ssd.ftl().stats().since(&run.ran.baseline.ftl);
    let (space, programs) = (run.ssd.ftl().space(), ftl.programs.total());
    Ok(RunResult {
        buffer: buffer_result(&run),
        flash: flash_result(&run, &ftl),
        ftl: ftl_result(&run, &space),
        waf: ratio(u128::from(programs), u128::from(host.write_pages)),
        page_ops: device.pages() + ftl.internal_pages(),
        device: common.device.sized(host_bytes(&run), run.ssd.config().geometry.raw_bytes()),
        superblocks: Superblocks {
            valid_histogram: run.ssd.ftl().valid_histogram(VALID_BINS),
            slots: u64::from(space.data_slots),
        },
        tenants: tenants(&run),
        precondition: preconditioned(setup, &run.preconditioned),
        map_cache: (ftl.map_hits + ftl.map_misses > 0)
            .then_some(MapCache { hits: ftl.map_hits, misses: ftl.map_misses }),
        faults: faults(ftl.media_failures, ftl.slow, ftl.relocated, run.ssd.ftl().failed_die()),
        remap: remap_result(&run, &host, programs),
        recovery: Some(Recovery::new(&run.ssd.ftl().recovery_cost(), &run.ssd.config().geometry)),
        volume: run.volume.as_ref().map(|one| volume_result(one, &device, programs)),
        ..common
    })
}

fn host_bytes(run: &Finished) -> u64 {
    let volume = run.volume.as_ref();
    volume.map_or_else(|| run.ssd.capacity(), |volume| volume.config.logical_bytes())
}

fn remap_result(run: &Finished, host: &HostStats, programs: u64) -> Option<Remap> {
    let scheme = run.ssd.config().ftl.remap.scheme;
    if scheme == RemapScheme::None && host.remap_requests == 0 {
        return None;
    }
    let remap = run.ssd.ftl().remap_stats().since(&run.ran.baseline.remap);
    let dedup = run.ssd.dedup_stats().since(&run.ran.baseline.dedup);
    let (cycles_max, cycles_mean) = run.ssd.ftl().segment_cycles();
    Some(Remap {
        scheme: scheme.name().to_owned(),
        remapped: remap.remapped,
        deduplicated: remap.deduplicated,
        copied: remap.copied,
        skipped: remap.skipped,
        entries: remap.entries,
        moved_entries: remap.moved_entries,
        absorbed: remap.absorbed,
        compactions: remap.compactions,
        destages: remap.destages,
        log_collections: remap.log_collections,
        log_full: remap.log_full,
        lookup_ns: remap.lookup_ns,
        hashed_pages: dedup.hashed_pages,
        hash_busy_ns: dedup.busy.get(),
        segment_cycles_max: cycles_max.into(),
        segment_cycles_mean: cycles_mean,
        tables: run.ssd.ftl().remap_tables().map(Into::into).unwrap_or_default(),
        waf_logical: ratio(programs.into(), (host.write_pages + host.remap_pages).into()),
    })
}

fn flash_result(run: &Finished, ftl: &FtlStats) -> Flash {
    Flash {
        program_pages: ByCause::from(&ftl.programs),
        read_pages: ByCause::from(&ftl.reads),
        saved_pages: ftl.saved.into(),
        erases: ftl.erases,
        wear: wear(run),
    }
}

fn ftl_result(run: &Finished, space: &SpaceMap) -> Ftl {
    Ftl {
        rho: space.rho,
        usable_pages: space.usable_pages,
        logical_pages: space.logical_pages,
        reserve_superblocks: u64::from(space.reserve_superblocks),
        metadata_slots: u64::from(space.slots - space.data_slots),
        superblocks: u64::from(space.superblocks),
        bad_superblocks: u64::from(space.bad_superblocks),
        data_slots: u64::from(space.data_slots),
        victim: run.ssd.config().ftl.victim.name().to_owned(),
    }
}

fn buffer_result(run: &Finished) -> Buffer {
    let policy = run.ssd.config().buffer.policy.to_string();
    match run.buffer_stats() {
        Some(stats) => Buffer::of_run(&policy, &stats),
        None => Buffer { policy: "none".to_owned(), ..Buffer::default() },
    }
}

impl Finished {
    /// What the buffer counted since measuring began.
    fn buffer_stats(&self) -> Option<onefold_buffer::Stats> {
        let now = self.ssd.buffer_stats()?;
        Some(match &self.ran.baseline.buffer {
            Some(before) => now.since(before),
            None => now,
        })
    }
}

fn wear(run: &Finished) -> Wear {
    let wear = run.ssd.ftl().wear();
    Wear { min: u64::from(wear.min), mean: wear.mean, max: u64::from(wear.max) }
}

fn tenants(run: &Finished) -> Vec<crate::result::Tenant> {
    let policy = run.ssd.config().buffer.policy.to_string();
    tenant_results(&run.ran.tenants, &policy, run.buffer_stats().as_ref())
}

/// Conservation: requests in = requests out, programs = sum over causes, maps inverse, counts
/// right.
fn check_laws(run: &Finished) -> Result<(), SimError> {
    let issued: u64 = run.ran.tenants.iter().map(|tenant| tenant.issued).sum();
    let executed = match &run.volume {
        Some(volume) => volume.executed,
        None => run.ssd.host_stats().requests(),
    };
    if issued != executed {
        return Err(SimError::Law(format!("{issued} requests issued, {executed} executed")));
    }
    if let Some(volume) = &run.volume {
        check_sent(&volume.stats, &run.ssd.host_stats().since(&run.ran.baseline.host))?;
    }
    run.ssd.ftl().check().map_err(|violation| SimError::Law(violation.to_string()))?;
    let ftl = run.ssd.ftl();
    let counted = ftl.programs().total();
    let programmed = ftl.nand().programmed_pages();
    if counted != programmed {
        return Err(SimError::Law(format!(
            "{counted} pages counted by cause, {programmed} programmed"
        )));
    }
    Ok(())
}
