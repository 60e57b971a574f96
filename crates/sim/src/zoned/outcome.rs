//! From a finished run to its result.

use onefold_ftl::FtlStats;
use onefold_nand::NullMedia;
use onefold_ssd::zns::{Zns, ZnsStats, ZoneState};
use onefold_ssd::{HostStats, Ssd};
use onefold_units::ZoneId;
use onefold_units::convert::{float, u64_from};

use crate::SimError;
use crate::gathered::Gathered;
use crate::outcome::{check_sent, common, faults, preconditioned, volume_result};
use crate::precondition::Preconditioned;
use crate::ran::Ran;
use crate::result::{ByCause, Conventional, Flash, Ftl, RunResult, Wear, Zoned};
use crate::series::{add, ratio};
use crate::setup::Setup;
use crate::volume_run::VolumeRun;

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
    pub(crate) ran: Ran<()>,
    pub(crate) preconditioned: Preconditioned,
    pub(crate) gathered: Gathered,
    /// The volume between load and device, and what it asked for in the measured part.
    pub(crate) volume: Option<(VolumeRun, HostStats)>,
}

/// Builds the result.
pub(crate) fn result(setup: &Setup, mut run: Finished) -> Result<RunResult, SimError> {
    let common = common(setup, &mut run.ran, &run.gathered, &run.host)?;
    check_laws(&run)?;
    let (zns, stats) = (&run.zns, run.stats);
    let device = run.volume.as_ref().map_or(run.host, |(_, device)| *device);
    let programs = stats.programs.total() + run.regular.as_ref().map_or(0, Regular::programs);
    let beside = run.regular.as_ref().map_or(0, |one| one.ssd.config().geometry.raw_bytes());
    Ok(RunResult {
        flash: flash(&run, &stats),
        ftl: ftl(&run),
        waf: ratio(programs.into(), run.host.write_pages.into()),
        page_ops: device.pages() + programs.saturating_sub(device.write_pages),
        device: common.device.sized(run.bytes, zns.config().geometry.raw_bytes() + beside),
        precondition: preconditioned(setup, &run.preconditioned),
        volume: run.volume.as_ref().map(|(run, device)| volume_result(run, device, programs)),
        faults: faults(stats.media_failures, stats.slow, stats.conventional.relocated, None),
        zoned: Some(zoned(&run, &stats)),
        ..common
    })
}

impl Regular {
    fn programs(&self) -> u64 {
        self.ftl.programs.total()
    }
}

/// Of both devices, if there are two; wear is that of the zoned one.
fn flash(run: &Finished, stats: &ZnsStats) -> Flash {
    let mut saved = onefold_ftl::SavedPages::default();
    let (mut programs, mut reads, mut erases) = (stats.programs, stats.reads, stats.erases);
    if let Some(Regular { ftl, .. }) = &run.regular {
        add(&mut programs, &ftl.programs);
        add(&mut reads, &ftl.reads);
        erases += ftl.erases;
        saved = ftl.saved;
    }
    let wear = || run.zns.wear().map(u64::from);
    let sets = u64_from(wear().count());
    Flash {
        program_pages: ByCause::from(&programs),
        read_pages: ByCause::from(&reads),
        saved_pages: saved.into(),
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
    let issued: u64 = run.ran.tenants.iter().map(|tenant| tenant.issued).sum();
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
