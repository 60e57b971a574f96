//! From a finished run to its result.

use onefold_ftl::FtlStats;
use onefold_nand::NullMedia;
use onefold_ssd::zns::{Zns, ZnsStats, ZoneState};
use onefold_ssd::{HostStats, Ssd};
use onefold_units::ZoneId;
use onefold_units::convert::{float, u64_from};

use crate::SimError;
use crate::dmz::add;
use crate::engine::{Gathered, Setup};
use crate::metrics::Metrics;
use crate::outcome::{
    bandwidth, check_sent, host_result, latency, littles_law, preconditioned, tenant_results,
    volume_result, workload,
};
use crate::precondition::Preconditioned;
use crate::result::{
    Buffer, ByCause, Checks, Conventional, Device, Flash, Ftl, LatencyByDelay, LatencyCcdf,
    RunResult, SCHEMA, Superblocks, Wear, Zoned,
};
use crate::series::{Recorder, ratio};
use crate::tenant::Tenant;
use crate::volume::VolumeRun;

/// A regular device beside the zones, below the same volume.
pub(crate) struct Regular {
    pub(crate) ssd: Ssd<NullMedia>,
    /// What it counted in the measured part.
    pub(crate) ftl: FtlStats,
}

/// A run that ended.
pub(crate) struct Finished {
    pub(crate) zns: Zns<NullMedia>,
    /// A regular device beside it.
    pub(crate) regular: Option<Regular>,
    /// What the device counted in the measured part.
    pub(crate) stats: ZnsStats,
    /// What the load asked for in the measured part.
    pub(crate) host: HostStats,
    /// Requests that ended, those before included.
    pub(crate) executed: u64,
    /// Bytes that the load can address.
    pub(crate) bytes: u64,
    pub(crate) tenants: Vec<Tenant>,
    pub(crate) series: Recorder,
    /// When measuring began.
    pub(crate) at: u64,
    pub(crate) partial: bool,
    pub(crate) preconditioned: Preconditioned,
    pub(crate) cpu_s: f64,
    pub(crate) gathered: Gathered,
    /// The volume between load and device, and what it asked for in the measured part.
    pub(crate) volume: Option<(VolumeRun, HostStats)>,
}

/// Builds the result.
pub(crate) fn result(setup: &Setup, mut run: Finished) -> Result<RunResult, SimError> {
    let littles_law = littles_law(&mut run.tenants)?;
    check_laws(&run)?;
    let (zns, stats, host) = (&run.zns, run.stats, run.host);
    let device = run.volume.as_ref().map_or(host, |(_, device)| *device);
    let flash = flash(&run, &stats);
    let programs = stats.programs.total() + run.regular.as_ref().map_or(0, Regular::programs);
    let mut metrics = Metrics::new();
    for tenant in &run.tenants {
        metrics.add(&tenant.metrics);
    }
    let last_done = run.tenants.iter().map(|tenant| tenant.last_done).max().unwrap_or(0);
    let virtual_ns = last_done.saturating_sub(run.at);
    let beside = run.regular.as_ref().map_or(0, |one| one.ssd.config().geometry.raw_bytes());
    let (config, raw_bytes) = (&setup.config, zns.config().geometry.raw_bytes() + beside);
    Ok(RunResult {
        schema: SCHEMA.to_owned(),
        onefold: setup.program.clone(),
        seed: setup.seed,
        partial: run.partial,
        config: config.to_json(),
        config_sha256: config.sha256(),
        trace: run.gathered.trace.clone(),
        host: host_result(&host),
        buffer: Buffer { policy: "none".to_owned(), ..Buffer::default() },
        flash,
        ftl: ftl(&run),
        waf: ratio(programs.into(), host.write_pages.into()),
        latency_ns: latency(&metrics),
        virtual_ns,
        cpu_s: run.cpu_s,
        page_ops: device.pages() + programs.saturating_sub(device.write_pages),
        workload: workload(setup),
        device: Device {
            preset: None,
            name: config.name().to_owned(),
            logical_bytes: run.bytes,
            raw_bytes,
        },
        latency_by_delay: LatencyByDelay {
            read: metrics.read.summaries(),
            write: metrics.write.summaries(),
        },
        latency_ccdf: LatencyCcdf {
            read: metrics.read.total().ccdf(),
            write: metrics.write.total().ccdf(),
        },
        series: run.series.finish(),
        superblocks: Superblocks::default(),
        checks: Checks { littles_law: Some(littles_law) },
        tenants: tenant_results(&run.tenants, "none", None),
        precondition: preconditioned(setup, &run.preconditioned),
        map_cache: None,
        remap: None,
        volume: run.volume.as_ref().map(|(run, device)| volume_result(run, device, programs)),
        zoned: Some(zoned(&run, &stats)),
        zoned_volume: None,
        bandwidth: bandwidth(&host, virtual_ns),
        warnings: run.gathered.warnings,
    })
}

impl Regular {
    fn programs(&self) -> u64 {
        self.ftl.programs.total()
    }
}

/// Of both devices, if there are two; wear is that of the zoned one.
fn flash(run: &Finished, stats: &ZnsStats) -> Flash {
    let (mut programs, mut reads, mut erases) = (stats.programs, stats.reads, stats.erases);
    if let Some(Regular { ftl, .. }) = &run.regular {
        add(&mut programs, &ftl.programs);
        add(&mut reads, &ftl.reads);
        erases += ftl.erases;
    }
    let wear = || run.zns.wear().map(u64::from);
    let sets = u64_from(wear().count());
    Flash {
        program_pages: ByCause::from(&programs),
        read_pages: ByCause::from(&reads),
        erases,
        wear: Wear {
            min: wear().min().unwrap_or(0),
            mean: float(wear().sum()) / float(sets.max(1)),
            max: wear().max().unwrap_or(0),
        },
    }
}

/// Of an FTL that maps zones.
fn ftl(run: &Finished) -> Ftl {
    let zns = &run.zns;
    let capacity = u64::from(zns.config().zones) * u64::from(zns.config().capacity_blocks);
    let pages = u64::from(zns.layout().sets()) * u64::from(zns.config().capacity_blocks);
    Ftl {
        rho: float(capacity) / float(pages),
        usable_pages: pages,
        logical_pages: capacity,
        superblocks: zns.config().geometry.superblocks().into(),
        data_slots: zns.config().geometry.slots().into(),
        victim: "none".to_owned(),
        ..Ftl::default()
    }
}

fn zoned(run: &Finished, stats: &ZnsStats) -> Zoned {
    let (zns, config) = (&run.zns, run.zns.config());
    let in_state = |state: ZoneState| {
        let report = zns.report(ZoneId::new(0), Some(state), 0, false);
        (state.name().to_owned(), report.map_or(0, |report| u64::from(report.matching)))
    };
    Zoned {
        zone_bytes: u64::from(config.zone_blocks) * 4096,
        capacity_bytes: u64::from(config.capacity_blocks) * 4096,
        zone_dies: config.zone_dies.into(),
        max_open: config.limits.max_open.map(u64::from),
        max_active: config.limits.max_active.map(u64::from),
        zones: ZoneState::ALL.into_iter().map(in_state).collect(),
        resets: stats.resets,
        finishes: stats.finishes,
        opens: stats.opens[1],
        implicit_closes: stats.implicit_closes,
        moves: stats.moves,
        bad_sets: zns.bad_sets().into(),
        conventional: conventional(zns, stats),
    }
}

fn conventional(zns: &Zns<NullMedia>, stats: &ZnsStats) -> Option<Conventional> {
    let ftl = zns.conventional()?.ftl();
    let wear = ftl.wear();
    Some(Conventional {
        zones: zns.config().conventional_zones().into(),
        superblocks: ftl.space().superblocks.into(),
        rho: ftl.space().rho,
        program_pages: ByCause::from(&stats.conventional.programs),
        erases: stats.conventional.erases,
        wear: Wear { min: wear.min.into(), mean: wear.mean, max: wear.max.into() },
    })
}

/// Conservation: requests in = requests out, programs = sum over causes.
fn check_laws(run: &Finished) -> Result<(), SimError> {
    let issued: u64 = run.tenants.iter().map(|tenant| tenant.issued).sum();
    let executed = run.executed;
    if issued != executed {
        return Err(SimError::Law(format!("{issued} requests issued, {executed} executed")));
    }
    if let Some((volume, device)) = &run.volume {
        check_sent(&volume.stats, device)?;
    }
    if let Some(regular) = &run.regular {
        let sound = regular.ssd.ftl().check();
        sound.map_err(|violation| SimError::Law(violation.to_string()))?;
    }
    run.zns.check().map_err(SimError::Law)
}
