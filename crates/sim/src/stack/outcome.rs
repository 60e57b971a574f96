//! From a finished run of a stack to its result.

use onefold_units::CauseCounts;
use onefold_units::convert::float;
use onefold_volume::Volume;

use super::counted::AtPlace;
use super::device::Device;
use super::finished::{Finished, sent_by};
use super::{At, Port, VolumeLayer, ZonedLayer, zoned_result};
use crate::SimError;
use crate::drive;
use crate::outcome::{check_sent, common, host_result, preconditioned, volume_result};
use crate::result::{self, ByCause, Flash, RunResult, Wear};
use crate::series::{Windowed, add, ratio};
use crate::setup::Setup;
use crate::volume_run::{VolumeRun, VolumeSpace};
use crate::zoned;

/// Builds the result. A volume on one device has more to say of that device than a stack of
/// several layers has.
pub(super) fn result(setup: &Setup, run: Finished) -> Result<RunResult, SimError> {
    let top = run.stack.top();
    let on_devices = run
        .stack
        .above(top)
        .is_some_and(|above| above.ports.iter().all(|port| matches!(port.below, At::Device(_))));
    check_stack(&run)?;
    if on_devices && let Some(volume) = volume_run(&run, top) {
        return on_one_device(setup, run, volume);
    }
    if on_devices && let Some(layer) = run.stack.layer_at::<ZonedLayer>(top) {
        let config = layer.config.clone();
        return zoned_result::result(setup, &config, run);
    }
    of_places(setup, run)
}

/// What the volume of a place did.
fn volume_run(run: &Finished, place: usize) -> Option<VolumeRun> {
    let layer = run.stack.layer_at::<VolumeLayer>(place)?;
    let engine = &*layer.engine;
    let before = run.ran.baseline.at(place).map(|at| at.volume).unwrap_or_default();
    let asked = run.ran.baseline.at(place).map(|at| at.asked).unwrap_or_default();
    let is_top = place == run.stack.top();
    Some(VolumeRun {
        config: layer.config.clone(),
        stats: engine.stats().since(&before),
        host: if is_top { run.top.host } else { run.stack.asked_of(place).since(&asked) },
        stalls: run.top.stalls,
        executed: run.top.executed,
        space: VolumeSpace::of(engine),
        journal_segments: engine.as_log().map_or(0, Volume::journal_segments),
    })
}

/// Of a volume on one device.
fn on_one_device(setup: &Setup, run: Finished, volume: VolumeRun) -> Result<RunResult, SimError> {
    let Finished { mut stack, ran, top, preconditioned, gathered } = run;
    let (counted, rest) = ran.split();
    let counted = counted.places.into_iter().next().unwrap_or_default();
    let asked = stack.asked_of(0).since(&counted.device.host);
    let (zns, regular) = match stack.devices.swap_remove(0) {
        Device::Blocks(ssd) => {
            let (ssd, ran) = (*ssd, rest.with(counted.device));
            let volume = Some(volume);
            let finished = drive::Finished { ssd, ran, preconditioned, gathered, volume };
            return drive::result(setup, finished);
        }
        Device::Zones(zns) => (*zns, None),
        Device::Concatenated(both) => {
            let super::concatenated::Concatenated { regular, zns, .. } = *both;
            let ftl = regular.ftl().stats().since(&counted.device.ftl);
            (zns, Some(zoned::Regular { ssd: regular, ftl }))
        }
    };
    let finished = zoned::Finished {
        stats: zns.stats().since(&counted.zns),
        host: top.host,
        executed: top.executed,
        bytes: volume.config.logical_bytes(),
        zns,
        regular,
        ran: rest,
        preconditioned,
        gathered,
        volume: Some((volume, asked)),
    };
    zoned::result(setup, finished)
}

/// Of any stack: what each place was asked for and did, and the usual sums over all devices.
fn of_places(setup: &Setup, mut run: Finished) -> Result<RunResult, SimError> {
    let host = run.top.host;
    let common = common(setup, &mut run.ran, &run.gathered, &host)?;
    let flash = flash(&run);
    let programs: u64 = programs_since(&run).total();
    let top = run.stack.top();
    let topmost = |place: usize| volume_run(&run, place).map(|volume| (place, volume));
    let volume = (0..=top).rev().find_map(topmost).map(|(place, volume)| {
        let sent = sent_by(&run, place);
        volume_result(&volume, &sent, programs)
    });
    let zoned = (0..=top).rev().find_map(|place| {
        let config = run.stack.layer_at::<ZonedLayer>(place)?.config.clone();
        zoned_result::volume(&config, &run, place)
    });
    Ok(RunResult {
        flash,
        waf: ratio(programs.into(), host.write_pages.into()),
        page_ops: host.pages() + programs.saturating_sub(host.write_pages),
        device: common.device.sized(
            run.stack.caps().blocks * 4096,
            run.stack.devices.iter().map(Device::raw_bytes).sum(),
        ),
        precondition: preconditioned(setup, &run.preconditioned),
        volume,
        zoned_volume: zoned,
        stack: (0..=top).map(|place| place_result(&run, place)).collect(),
        ..common
    })
}

fn place_result(run: &Finished, place: usize) -> result::StackPlace {
    let baseline = run.ran.baseline.at(place);
    let asked = if place == run.stack.top() {
        run.top.host
    } else {
        let before = baseline.map(|at| at.asked).unwrap_or_default();
        run.stack.asked_of(place).since(&before)
    };
    let (kind, written) = match run.stack.at(place) {
        At::Device(device) => {
            let device = &run.stack.devices[device];
            let before = baseline.map_or_else(CauseCounts::default, programs_at);
            (device.name(), device.programs().since(&before).total())
        }
        At::Layer(_) => (run.stack.kind_of(place), sent_by(run, place).write_pages),
    };
    let on = run.stack.above(place).map_or_else(Vec::new, |above| {
        let below = |port: &Port| run.stack.places.iter().find(|place| place.at == port.below);
        above.ports.iter().filter_map(below).map(|below| below.name.clone()).collect()
    });
    result::StackPlace {
        name: run.stack.places[place].name.clone(),
        kind: kind.to_owned(),
        on,
        host: host_result(&asked),
        written_pages: written,
        write_ratio: ratio(written.into(), asked.write_pages.into()),
    }
}

/// Pages that a device had programmed.
fn programs_at(at: &AtPlace) -> CauseCounts {
    let mut sum = at.device.ftl.programs;
    add(&mut sum, &at.zns.programs);
    sum
}

fn programs_since(run: &Finished) -> CauseCounts {
    let mut before = CauseCounts::default();
    run.ran.baseline.places.iter().for_each(|at| add(&mut before, &programs_at(at)));
    Windowed::programs(&run.stack).since(&before)
}

/// Of all devices.
fn flash(run: &Finished) -> Flash {
    let (mut reads, mut erases) = (CauseCounts::default(), 0);
    let mut saved = onefold_ftl::SavedPages::default();
    let mut wear: Option<(u64, f64, u64, u64)> = None;
    for (place, at) in run.stack.places.iter().enumerate() {
        let At::Device(device) = at.at else { continue };
        let device = &run.stack.devices[device];
        let (now, zns) = device.counters();
        let empty = AtPlace::default();
        let before = run.ran.baseline.at(place).unwrap_or(&empty);
        add(&mut reads, &now.ftl.reads.since(&before.device.ftl.reads));
        saved = saved.plus(&now.ftl.saved.since(&before.device.ftl.saved));
        add(&mut reads, &zns.reads.since(&before.zns.reads));
        erases += now.ftl.erases - before.device.ftl.erases + zns.erases - before.zns.erases;
        for one in device.wear() {
            let all = wear.get_or_insert((u64::MAX, 0.0, 0, 0));
            *all = (all.0.min(one), all.1 + float(one), all.2.max(one), all.3 + 1);
        }
    }
    let wear = wear.unwrap_or_default();
    Flash {
        program_pages: ByCause::from(&programs_since(run)),
        read_pages: ByCause::from(&reads),
        saved_pages: saved.into(),
        erases,
        wear: Wear { min: wear.0, mean: wear.1 / float(wear.3.max(1)), max: wear.2 },
    }
}

/// Conservation: requests in = requests out; what each volume sent by cause is what the places
/// below it were asked to write; devices agree with themselves.
fn check_stack(run: &Finished) -> Result<(), SimError> {
    let issued: u64 = run.ran.tenants.iter().map(|tenant| tenant.issued).sum();
    let executed = run.top.executed;
    if issued != executed {
        return Err(SimError::Law(format!("{issued} requests issued, {executed} executed")));
    }
    for place in 0..=run.stack.top() {
        if let Some(volume) = volume_run(run, place) {
            check_sent(&volume.stats, &sent_by(run, place))?;
        }
        if run.stack.layer_at::<ZonedLayer>(place).is_some() {
            zoned_result::check_sent(run, place)?;
        }
    }
    run.stack.devices.iter().try_for_each(Device::check)
}
