//! From a finished run to its result.

use onefold_config::ZonedVolume as Config;
use onefold_ftl::FtlStats;
use onefold_ssd::zns::ZnsStats;
use onefold_units::convert::{float, u64_from};
use onefold_zoned::{Action, DeviceStats, Sent, Stats, WaitReason, ZoneKind};

use super::below::add;
use super::stack::{Counted, Stack};
use crate::SimError;
use crate::events::Top;
use crate::gathered::Gathered;
use crate::outcome::common;
use crate::ran::Ran;
use crate::result::{
    ByCause, Device, Flash, Ftl, JournalZone, Precondition, Reclaims, RunResult, Waits, Wear,
    ZonedDevice, ZonedVolume,
};
use crate::series::ratio;
use crate::setup::Setup;

/// A run that ended.
pub(super) struct Finished {
    pub(super) stack: Stack,
    pub(super) ran: Ran<Counted>,
    pub(super) top: Top,
    /// CPU time of filling.
    pub(super) filled_cpu_s: f64,
    pub(super) gathered: Gathered,
}

/// What the devices did in the measured part.
struct Spent {
    stats: Stats,
    regular: FtlStats,
    zns: ZnsStats,
}

pub(super) fn result(
    setup: &Setup,
    config: &Config,
    mut run: Finished,
) -> Result<RunResult, SimError> {
    let host = run.top.host;
    let common = common(setup, &mut run.ran, &run.gathered, &host)?;
    check_laws(&run)?;
    let spent = Spent {
        stats: run.stack.volume.stats().since(&run.ran.baseline.volume),
        regular: run.stack.below.regular_stats().since(&run.ran.baseline.regular),
        zns: run.stack.below.zns.stats().since(&run.ran.baseline.zns),
    };
    let programs = spent.regular.programs.total() + spent.zns.programs.total();
    Ok(RunResult {
        flash: flash(&run, &spent),
        ftl: ftl(&run),
        waf: ratio(programs.into(), host.write_pages.into()),
        page_ops: host.pages() + programs.saturating_sub(host.write_pages),
        device: Device {
            logical_bytes: config.logical_bytes,
            raw_bytes: raw_bytes(&run),
            ..common.device
        },
        precondition: preconditioned(setup, &run),
        zoned_volume: Some(volume(config, &run, &spent.stats)),
        ..common
    })
}

/// Of all devices.
fn raw_bytes(run: &Finished) -> u64 {
    let zns = run.stack.below.zns.config().geometry.raw_bytes();
    let regular = run.stack.below.regular.as_ref();
    zns + regular.map_or(0, |regular| regular.config().geometry.raw_bytes())
}

fn volume(config: &Config, run: &Finished, stats: &Stats) -> ZonedVolume {
    let volume = &run.stack.volume;
    let layout = volume.layout();
    let cache = config.geometry.random_kind();
    let named = |device: (usize, &DeviceStats)| {
        let is_regular = device.0 == 0 && config.regular.is_some();
        let (name, stats) = (if is_regular { "regular" } else { "zoned" }, device.1);
        let sent = Sent::ALL.map(|cause| (cause.name().to_owned(), stats.sent(cause)));
        ZonedDevice {
            name: name.to_owned(),
            sent_pages: sent.into(),
            read_pages: stats.read,
            copy_read_pages: stats.read_for_copying,
            flushes: stats.flushes_sent,
            resets: stats.resets,
        }
    };
    let reclaims = Action::ALL.map(|action| {
        let found = stats.reclaims(action);
        let counts = Reclaims {
            started: found.started,
            completed: found.completed,
            aborted: found.aborted,
            failed: found.failed,
            started_weight: found.started_weight,
        };
        (action.name().to_owned(), counts)
    });
    let waits = WaitReason::ALL.map(|reason| {
        let found = stats.waits(reason);
        (reason.name().to_owned(), Waits { count: found.count, total_ns: found.ns })
    });
    ZonedVolume {
        policy: "dmz".to_owned(),
        journal: config.options.journal.name().to_owned(),
        zone_bytes: u64::from(config.geometry.zone_blocks()) * 4096,
        chunks: layout.chunks.into(),
        cache_zones: layout.data_zones(&config.geometry, cache).into(),
        free_cache_zones: volume.free_zones(cache).into(),
        free_sequential_zones: volume.free_zones(ZoneKind::Sequential).into(),
        free_reserved_zones: volume.free_reserved().into(),
        devices: stats.devices.iter().enumerate().map(named).collect(),
        reclaims: reclaims.into(),
        waits: waits.into(),
        phys_per_user: stats.write_amplification().unwrap_or(0.0),
        valid_copies: stats.valid_copies(),
        journal_copies: stats.journal_copies(),
        journal_outside_pages: stats.journal_outside,
        journal_zones: volume.journal_zones(),
        journal_merges: stats.journal_merges,
        journal_demotions: stats.journal_demotions,
        journal_moves: stats.journal_moves,
        journal_path: journal_path(run, stats),
        metadata_flushes: stats.metadata_flushes,
    }
}

/// Counted from the start of the measured part, where the zone in use before it counts as the first.
fn journal_path(run: &Finished, stats: &Stats) -> Vec<JournalZone> {
    let earlier = &run.ran.baseline.volume;
    let before = earlier.sent(Sent::Journal) + earlier.sent(Sent::JournalAppended);
    let zone = |entry: &onefold_zoned::JournalZone| JournalZone {
        before_pages: entry.before.saturating_sub(before),
        at_ns: entry.at.get().saturating_sub(run.stack.base + run.ran.at),
        zone: entry.zone.raw(),
    };
    stats.journal_path.iter().map(zone).collect()
}

/// Of all devices; wear is that of the sequential zones.
fn flash(run: &Finished, spent: &Spent) -> Flash {
    let (mut programs, mut reads) = (spent.regular.programs, spent.regular.reads);
    add(&mut programs, &spent.zns.programs);
    add(&mut reads, &spent.zns.reads);
    let wear = || run.stack.below.zns.wear().map(u64::from);
    let sets = u64_from(wear().count());
    Flash {
        program_pages: ByCause::from(&programs),
        read_pages: ByCause::from(&reads),
        erases: spent.regular.erases + spent.zns.erases,
        wear: Wear {
            min: wear().min().unwrap_or(0),
            mean: float(wear().sum()) / float(sets.max(1)),
            max: wear().max().unwrap_or(0),
        },
    }
}

/// Of the zoned device, whose FTL maps zones.
fn ftl(run: &Finished) -> Ftl {
    let zns = &run.stack.below.zns;
    let pages = u64::from(zns.layout().sets()) * u64::from(zns.config().capacity_blocks);
    let logical = u64::from(zns.config().zones) * u64::from(zns.config().capacity_blocks);
    Ftl {
        rho: float(logical) / float(pages),
        usable_pages: pages,
        logical_pages: logical,
        superblocks: zns.config().geometry.superblocks().into(),
        data_slots: zns.config().geometry.slots().into(),
        victim: "none".to_owned(),
        ..Ftl::default()
    }
}

fn preconditioned(setup: &Setup, run: &Finished) -> Option<Precondition> {
    let fill = setup.config.precondition().fill;
    (fill > 0.0).then_some(Precondition {
        fill,
        cpu_s: run.filled_cpu_s,
        ..Precondition::default()
    })
}

/// Conservation: requests in = requests out, and what the volume sent by cause is what each device was asked to write.
fn check_laws(run: &Finished) -> Result<(), SimError> {
    let issued: u64 = run.ran.tenants.iter().map(|tenant| tenant.issued).sum();
    let executed = run.top.executed;
    if issued != executed {
        return Err(SimError::Law(format!("{issued} requests issued, {executed} executed")));
    }
    let (stats, before) = (run.stack.volume.stats(), &run.ran.baseline.volume);
    for (device, received) in run.stack.below.received().iter().enumerate() {
        let earlier = run.ran.baseline.received.get(device).copied().unwrap_or_default();
        let received = received.since(&earlier);
        let sent = stats.devices[device].sent_total()
            - before.devices.get(device).map_or(0, DeviceStats::sent_total);
        if sent != received.write_pages {
            return Err(SimError::Law(format!(
                "the volume sent {sent} pages by cause to device {device}, which received {}",
                received.write_pages
            )));
        }
    }
    if let Some(regular) = &run.stack.below.regular {
        regular.ftl().check().map_err(|violation| SimError::Law(violation.to_string()))?;
    }
    run.stack.below.zns.check().map_err(SimError::Law)
}
