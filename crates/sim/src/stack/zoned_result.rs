//! The result of a zoned volume.

use onefold_config::ZonedVolume as Config;
use onefold_ftl::FtlStats;
use onefold_nand::NullMedia;
use onefold_ssd::zns::{Zns, ZnsStats};
use onefold_units::convert::{float, u64_from};
use onefold_zoned::{Action, DeviceStats, Sent, Stats, WaitReason, ZoneKind};

use super::counted::AtPlace;
use super::finished::Finished;
use super::{Device, ZonedLayer};
use crate::SimError;
use crate::outcome::{common, preconditioned};
use crate::result::{
    ByCause, Flash, Ftl, JournalZone, Reclaims, RunResult, Waits, Wear, ZonedDevice, ZonedVolume,
};
use crate::series::{add, ratio};
use crate::setup::Setup;

/// What the devices did in the measured part.
struct Spent {
    regular: FtlStats,
    zns: ZnsStats,
}

/// Of a zoned volume at the top, on one or two devices.
pub(super) fn result(
    setup: &Setup,
    config: &Config,
    mut run: Finished,
) -> Result<RunResult, SimError> {
    let host = run.top.host;
    let common = common(setup, &mut run.ran, &run.gathered, &host)?;
    let top = run.stack.top();
    let zns = run.stack.devices.iter().find_map(Device::zns);
    let zns = zns.ok_or_else(|| SimError::Law("a zoned volume without zones".to_owned()))?;
    let regular = run.stack.devices.iter().find_map(Device::ssd);
    let before = |is_it: fn(&Device) -> bool| {
        let place = run.stack.devices.iter().position(is_it);
        place.and_then(|place| run.ran.baseline.at(place))
    };
    let empty = AtPlace::default();
    let was = before(|device| device.ssd().is_some()).unwrap_or(&empty);
    let spent = Spent {
        regular: regular
            .map_or_else(FtlStats::default, |regular| regular.ftl().stats().since(&was.device.ftl)),
        zns: zns.stats().since(&before(|device| device.zns().is_some()).unwrap_or(&empty).zns),
    };
    let programs = spent.regular.programs.total() + spent.zns.programs.total();
    Ok(RunResult {
        flash: flash(zns, &spent),
        ftl: ftl(zns),
        waf: ratio(programs.into(), host.write_pages.into()),
        page_ops: host.pages() + programs.saturating_sub(host.write_pages),
        device: common
            .device
            .sized(config.logical_bytes, run.stack.devices.iter().map(Device::raw_bytes).sum()),
        precondition: preconditioned(setup, &run.preconditioned),
        zoned_volume: volume(config, &run, top),
        ..common
    })
}

/// What the zoned volume at a place did.
pub(super) fn volume(config: &Config, run: &Finished, place: usize) -> Option<ZonedVolume> {
    let volume = &run.stack.layer_at::<ZonedLayer>(place)?.volume;
    let empty = AtPlace::default();
    let before = &run.ran.baseline.at(place).unwrap_or(&empty).zoned;
    let stats = &volume.stats().since(before);
    let layout = volume.layout();
    let cache = config.geometry.random_kind();
    let named = |device: (usize, &DeviceStats)| {
        let is_regular = device.0 == 0 && config.geometry.devices() > 1;
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
    Some(ZonedVolume {
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
        journal_path: journal_path(run, before, stats),
        metadata_flushes: stats.metadata_flushes,
    })
}

/// Counted from the start of the measured part, where the zone in use before it counts as the first.
fn journal_path(run: &Finished, earlier: &Stats, stats: &Stats) -> Vec<JournalZone> {
    let before = earlier.sent(Sent::Journal) + earlier.sent(Sent::JournalAppended);
    let zone = |entry: &onefold_zoned::JournalZone| JournalZone {
        before_pages: entry.before.saturating_sub(before),
        at_ns: entry.at.get().saturating_sub(run.stack.base + run.ran.at),
        zone: entry.zone.raw(),
    };
    stats.journal_path.iter().map(zone).collect()
}

/// Of all devices; wear is that of the sequential zones.
fn flash(zns: &Zns<NullMedia>, spent: &Spent) -> Flash {
    let (mut programs, mut reads) = (spent.regular.programs, spent.regular.reads);
    add(&mut programs, &spent.zns.programs);
    add(&mut reads, &spent.zns.reads);
    let wear = || zns.wear().map(u64::from);
    let sets = u64_from(wear().count());
    Flash {
        program_pages: ByCause::from(&programs),
        read_pages: ByCause::from(&reads),
        saved_pages: spent.regular.saved.into(),
        erases: spent.regular.erases + spent.zns.erases,
        wear: Wear {
            min: wear().min().unwrap_or(0),
            mean: float(wear().sum()) / float(sets.max(1)),
            max: wear().max().unwrap_or(0),
        },
    }
}

/// Of the zoned device, whose FTL maps zones.
fn ftl(zns: &Zns<NullMedia>) -> Ftl {
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

/// What the volume sent by cause is what each place below was asked to write.
pub(super) fn check_sent(run: &Finished, place: usize) -> Result<(), SimError> {
    let (Some(layer), Some(above)) =
        (run.stack.layer_at::<ZonedLayer>(place), run.stack.above(place))
    else {
        return Ok(());
    };
    let empty = AtPlace::default();
    let before = run.ran.baseline.at(place).unwrap_or(&empty);
    for (device, port) in above.ports.iter().enumerate() {
        let earlier = before.sent.get(device).copied().unwrap_or_default();
        let received = port.asked.since(&earlier);
        let sent = layer.volume.stats().devices[device].sent_total()
            - before.zoned.devices.get(device).map_or(0, DeviceStats::sent_total);
        if sent != received.write_pages {
            return Err(SimError::Law(format!(
                "the volume sent {sent} pages by cause to device {device}, which received {}",
                received.write_pages
            )));
        }
    }
    Ok(())
}
