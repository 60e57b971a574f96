//! The same load on the same drive in the same state, alone and through a volume.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use onefold_config::{Config, ConfigError};
use onefold_device::VolumeSpec;
use onefold_sim::result::RunResult;
use onefold_sim::{Control, Setup, SimError, simulate};
use onefold_try::account::{BehindError, volume_keys};
use onefold_units::PAGE_BYTES;
use onefold_units::convert::{float, floor_u64};
use onefold_volume::{Geometry, Layout};

use super::load::{Load, Running, Space, WRITTEN_PAGES_MAX};
use super::verdict::{Alone, Judgement, Measured, judge};
use crate::cmd::sim::program;
use crate::error::{CliError, Exit};

/// Superblocks to be written anew at least: fewer are a matter of chance.
const SUPERBLOCKS_WANTED: u64 = 16;

/// Data begins and ends at multiples of the largest mapping unit.
const ALIGNED: u64 = 64 << 10;

/// What a volume to be made is like; what is not given is what `volume create` takes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Wanted {
    pub(super) op: Option<f64>,
    pub(super) segment_bytes: Option<u64>,
    pub(super) unit_bytes: Option<u64>,
}

/// The state in which a run begins.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct State {
    /// Share of the log that holds data. A drive alone holds as many bytes.
    pub(super) utilisation: f64,
    /// How often that data was overwritten, at random.
    pub(super) overwritten: f64,
}

/// A drive with a volume to be made.
#[derive(Clone, Debug)]
pub(super) struct Planned {
    config: Config,
    pub(super) geometry: Geometry,
    pub(super) op: f64,
    log_bytes: u64,
}

/// What both runs came to.
#[derive(Clone, Debug)]
pub(super) struct Compared {
    pub(super) state: State,
    pub(super) planned: Planned,
    pub(super) data_bytes: u64,
    pub(super) alone: Option<RunResult>,
    pub(super) with: RunResult,
    pub(super) judgement: Judgement,
    /// The drive alone, with streams; `None` where it has some already, has zones or has no room for them.
    pub(super) streams: Option<(RunResult, Judgement)>,
}

/// What docs/streams.md recommends for a drive whose host names no streams.
pub(super) const STREAMS: [&str; 3] =
    ["ftl.streams=4", "ftl.classifier=auto", "ftl.victim=cost-benefit"];

impl Planned {
    /// What `volume create` would make on the drive. A log that is to hold more than its default op leaves gets a smaller one.
    pub(super) fn new(
        config: &Config,
        wanted: &Wanted,
        utilisation: f64,
    ) -> Result<Self, CliError> {
        let op = wanted.op.unwrap_or_else(|| VolumeSpec::default().op.min(1.0 - utilisation));
        let spec = VolumeSpec {
            op,
            segment_bytes: wanted.segment_bytes,
            unit_bytes: wanted.unit_bytes,
            ..VolumeSpec::default()
        };
        let keys = volume_keys(config, &spec).map_err(|error| match error {
            BehindError::Config(error) => too_full(error),
            BehindError::Volume(error) => error.into(),
            error => CliError::new(Exit::Infeasible, "config::volume", error),
        })?;
        let layered = config.with_sets(&keys, &["volume"]).map_err(too_full)?;
        let Some(volume) = layered.volume()? else { unreachable!("volume.mode is log") };
        let geometry = volume.geometry;
        let layout = Layout::new(geometry).map_err(onefold_volume::MountError::Geometry);
        let log_bytes =
            layout.map_err(onefold_device::VolumeError::from)?.log_blocks() * PAGE_BYTES;
        Ok(Self { config: layered, geometry, op, log_bytes })
    }

    /// Bytes that the volume exports.
    pub(super) const fn exported(&self) -> u64 {
        self.geometry.logical_blocks * PAGE_BYTES
    }

    /// Bytes of data of a log that is so full.
    fn data_bytes(&self, utilisation: f64) -> Result<u64, CliError> {
        let bytes = floor_u64(utilisation * float(self.log_bytes)) / ALIGNED * ALIGNED;
        // With the default op it exports what is asked for, but for what rounding takes.
        let data =
            if utilisation + self.op <= 1.0 + 1e-9 { bytes.min(self.exported()) } else { bytes };
        let data = data / ALIGNED * ALIGNED;
        if (ALIGNED..=self.exported()).contains(&data) {
            return Ok(data);
        }
        let text = format!(
            "--utilisation {utilisation} is {data} B of data, and with --op {} the volume exports {} B",
            self.op,
            self.exported()
        );
        Err(CliError::new(Exit::Usage, "volume::utilisation", text)
            .help("say a lower --utilisation or --op"))
    }
}

impl Planned {
    /// Pages to be written until a drive in such a state shows what it collects. One that was overwritten is in the midst of that;
    /// a new one has to use up its free space before.
    fn wanted_pages(&self, drive: &Config, data_bytes: u64, state: State) -> Result<u64, CliError> {
        let flash = drive.geometry()?;
        let slots = u64::from(flash.slots()) * u64::from(flash.pools());
        let spare = (self.log_bytes - data_bytes) / PAGE_BYTES;
        let wanted = if state.overwritten > 0.0 {
            (spare / 8).max(SUPERBLOCKS_WANTED * slots * flash.pages_per_unit())
        } else {
            spare
        };
        Ok(wanted.min(WRITTEN_PAGES_MAX / 4))
    }
}

/// A volume that cannot work on the drive.
fn too_full(error: ConfigError) -> CliError {
    let is_full = matches!(error, ConfigError::VolumeGeometry { .. });
    let error = CliError::from(error);
    if is_full {
        error.help("say a lower --utilisation, a larger --op or a larger drive")
    } else {
        error
    }
}

/// Runs both, and judges.
pub(super) fn compare(
    drive: &Config,
    (wanted, load, state): (&Wanted, &Load, State),
    seed: u64,
) -> Result<Compared, CliError> {
    let planned = Planned::new(drive, wanted, state.utilisation)?;
    let data_bytes = planned.data_bytes(state.utilisation)?;
    let space = Space {
        drive_bytes: drive.logical_bytes()?,
        volume_bytes: planned.exported(),
        data_bytes,
        wanted_pages: planned.wanted_pages(drive, data_bytes, state)?,
    };
    let running = load.running(&space)?;
    let run = |config: &Config, bytes: u64, overwritten: Option<f64>| {
        let share = float(data_bytes) / float(bytes);
        let config = prepared(config, (share, overwritten), &running)?;
        let (trace_options, program) = (load.options(), program());
        simulated(&Setup { config, trace_options, seed, program }, running.requests_max)
    };
    let bare = drive.with_sets(&["volume.mode=none".to_owned()], &["volume"])?;
    // Zones alone cannot be brought into that state: they are empty.
    let overwritten = (!drive.is_zoned()).then_some(state.overwritten);
    let alone = match run(&bare, space.drive_bytes, overwritten) {
        Err(SimError::Zone { .. } | SimError::ZoneAlignment { .. }) if drive.is_zoned() => None,
        alone => Some(alone?),
    };
    let with = run(&planned.config, space.volume_bytes, Some(state.overwritten))?;
    let sides = (
        alone.as_ref().map_or(Alone::Refused, |run| Alone::Measured(measured(run))),
        measured(&with),
    );
    let judgement = judge(&sides.0, &sides.1, space.wanted_pages, "a volume");
    let streams = match with_streams(&bare).map(|it| run(&it, space.drive_bytes, overwritten)) {
        // Each stream keeps a superblock open, which a drive with few of them cannot spare.
        None | Some(Err(SimError::Build(_))) => None,
        Some(run) => {
            let run = run?;
            let judgement = judge(&sides.0, &measured(&run), space.wanted_pages, "four streams");
            Some((run, judgement))
        }
    };
    Ok(Compared { state, planned, data_bytes, alone, with, judgement, streams })
}

/// A drive with streams that it finds by itself, unless it has some or cannot have them.
fn with_streams(drive: &Config) -> Option<Config> {
    let has_one = drive.ssd(0).is_ok_and(|ssd| ssd.ftl.streams == 1);
    let sets = STREAMS.map(str::to_owned);
    (has_one && !drive.is_zoned()).then(|| drive.with_sets(&sets, &["ftl"]).ok()).flatten()
}

/// The configuration of a run that begins with a share of the capacity in use, overwritten so often; empty if it is not said.
fn prepared(
    config: &Config,
    (share, overwritten): (f64, Option<f64>),
    running: &Running,
) -> Result<Config, SimError> {
    let state = match overwritten {
        Some(times) => vec![
            "precondition.fill=1".to_owned(),
            format!("precondition.range={share}"),
            format!("precondition.overwrite={times}"),
            "precondition.until=count".to_owned(),
        ],
        None => vec!["precondition.fill=0".to_owned(), "precondition.overwrite=0".to_owned()],
    };
    let sets: Vec<String> = state.into_iter().chain(running.sets.iter().cloned()).collect();
    Ok(config.with_sets(&sets, &["precondition", "run"])?.with_load(&running.load))
}

/// Runs until the load is over or has sent so many requests. The run looks up at the same requests each time, so that both sides
/// of a comparison are cut at the same one.
fn simulated(setup: &Setup, requests_max: u64) -> Result<RunResult, SimError> {
    let enough = AtomicBool::new(false);
    let progress = |requests| enough.store(requests >= requests_max, Relaxed);
    let control =
        Control { interrupt: Some(&enough), progress: Some(&progress), ..Control::default() };
    simulate(setup, &control)
}

fn measured(run: &RunResult) -> Measured {
    Measured {
        programmed: run.waf,
        time_ns: run.virtual_ns,
        written_pages: run.host.write_pages,
        erases: run.flash.erases,
    }
}
