//! `onefold ssd zones`: the zones of an image that nobody has open, and what is done to them.

use std::fmt::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use onefold_device::{
    Access, DeviceError, Image, Select, ZnsConfig, ZoneAction, ZoneInfo, ZoneState, ZonedDevice,
    ZonedError, inspect_zoned,
};
use onefold_units::convert::index64;
use onefold_units::{PAGE_BYTES, ZoneId};
use serde_json::{Value, json};

use super::render;
use crate::error::{CliError, Exit};
use crate::output::{Format, Global};

/// Zone type of a descriptor (NVMe ZNS, Linux): writes have to be sequential.
const SEQUENTIAL: u8 = 2;

/// The same of a conventional zone, which NVMe does not have (Linux `BLK_ZONE_TYPE_CONVENTIONAL`).
const CONVENTIONAL: u8 = 1;

/// Options of `onefold ssd zones`.
#[derive(Debug, Args)]
pub(crate) struct Zones {
    /// The image; it is not changed without --act
    #[arg(value_name = "IMAGE")]
    image: PathBuf,
    /// Only this zone (may be given several times)
    #[arg(long = "zone", value_name = "NUMBER")]
    numbers: Vec<u32>,
    /// Only zones in this state
    #[arg(long, value_enum, value_name = "STATE")]
    state: Option<State>,
    /// Do this to the zones that --zone and --state choose, and then tell about them
    #[arg(long, value_enum, value_name = "ACTION")]
    act: Option<Action>,
    /// Write what the zones that are chosen hold to a new file, with holes: each zone lies where it begins on the device. The
    /// report says how far each is written
    #[arg(long, value_name = "FILE", conflicts_with = "act")]
    export: Option<PathBuf>,
}

/// States of zones that a device at rest can have: open ones were closed when it stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum State {
    /// Conventional and in service
    NotWritePointer,
    Empty,
    Closed,
    Full,
    ReadOnly,
    Offline,
}

impl State {
    const fn of_device(self) -> ZoneState {
        match self {
            Self::NotWritePointer => ZoneState::NotWritePointer,
            Self::Empty => ZoneState::Empty,
            Self::Closed => ZoneState::Closed,
            Self::Full => ZoneState::Full,
            Self::ReadOnly => ZoneState::ReadOnly,
            Self::Offline => ZoneState::Offline,
        }
    }
}

/// What can be done to a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Action {
    /// Erase it
    Reset,
    /// Make it full
    Finish,
    /// A fault drill: it can only be read from now on
    ReadOnly,
    /// A fault drill: its data is lost, and it takes none
    Offline,
}

impl Action {
    fn apply(self, device: &ZonedDevice, zone: ZoneId) -> Result<(), ZonedError> {
        match self {
            Self::Reset => device.manage(Select::One(zone), ZoneAction::Reset),
            Self::Finish => device.manage(Select::One(zone), ZoneAction::Finish),
            Self::ReadOnly => device.fail_zone(zone, false),
            Self::Offline => device.fail_zone(zone, true),
        }
    }
}

impl Zones {
    pub(super) fn run(&self, global: &Global) -> Result<ExitCode, CliError> {
        if self.act.is_some() && self.numbers.is_empty() && self.state.is_none() {
            let error = CliError::new(Exit::Usage, "zones::which", "--act without zones to act on");
            return Err(error.help("choose them with --zone or --state"));
        }
        let opens = self.act.is_some() || self.export.is_some();
        let access = if opens { Access::Exclusive } else { Access::ReadOnly };
        let (image, config) = super::open(&self.image, access)?;
        let Some(zns) = config.zns(global.seed)? else {
            let text = format!("{} has no zones: it is a block device", self.image.display());
            let error = CliError::new(Exit::Usage, "zones::none", text);
            return Err(error.help("`onefold ssd create --preset zn540` makes an image with zones"));
        };
        let chosen = self.choose(inspect_zoned(&image, &zns)?.2)?;
        let told = match (self.act, &self.export) {
            (None, None) => chosen,
            (None, Some(file)) => {
                self.export(image, &zns, (file, global), &chosen)?;
                chosen
            }
            (Some(action), _) => self.act(image, &zns, action, &chosen)?,
        };
        let text = match global.format() {
            Format::Json => format!("{:#}\n", self.json(&told)),
            Format::Table => table(&told),
        };
        global.emit(&text)?;
        Ok(ExitCode::SUCCESS)
    }

    fn choose(&self, all: Vec<ZoneInfo>) -> Result<Vec<ZoneInfo>, CliError> {
        if let Some(zone) =
            self.numbers.iter().find(|zone| all.iter().all(|one| one.zone.raw() != **zone))
        {
            let text = format!("no zone {zone}, expected 0 to {}", all.len().saturating_sub(1));
            return Err(CliError::new(Exit::Usage, "zones::range", text));
        }
        let state = self.state.map(State::of_device);
        let is_chosen = |one: &ZoneInfo| {
            (self.numbers.is_empty() || self.numbers.contains(&one.zone.raw()))
                && state.is_none_or(|state| one.state == state)
        };
        Ok(all.into_iter().filter(is_chosen).collect())
    }

    /// Acts on zones one after the other, and gives what became of them. The first that refuses ends it; what was done to
    /// those before it stays.
    fn act(
        &self,
        image: Image,
        zns: &ZnsConfig,
        action: Action,
        chosen: &[ZoneInfo],
    ) -> Result<Vec<ZoneInfo>, CliError> {
        let device = ZonedDevice::open(image, zns)?.device;
        let acted = chosen.iter().try_for_each(|one| action.apply(&device, one.zone));
        let told = acted.and_then(|()| device.report(ZoneId::new(0), None));
        let closed: Result<(), DeviceError> = device.close();
        let told = told.map_err(|error| {
            let text = format!("{}: {error}", self.image.display());
            CliError::new(Exit::Failed, "zones::refused", text)
        })?;
        closed?;
        let was_chosen = |one: &ZoneInfo| chosen.iter().any(|before| before.zone == one.zone);
        Ok(told.zones.into_iter().filter(was_chosen).collect())
    }

    /// Copies what zones hold to a new file.
    fn export(
        &self,
        image: Image,
        zns: &ZnsConfig,
        (file, global): (&Path, &Global),
        chosen: &[ZoneInfo],
    ) -> Result<(), CliError> {
        let failed = |what: &dyn std::fmt::Display| {
            let text =
                format!("cannot export {} to {}: {what}", self.image.display(), file.display());
            CliError::new(Exit::Failed, "zones::export", text)
        };
        let made = std::fs::File::create_new(file).map_err(|error| failed(&error))?;
        let _unfinished = global.interrupt.unfinished(file);
        let device = ZonedDevice::open(image, zns)?.device;
        let shape = device.shape();
        let bytes = u64::from(shape.zones) * u64::from(shape.zone_blocks) * PAGE_BYTES;
        made.set_len(bytes).map_err(|error| failed(&error))?;
        let mut block = vec![0; index64(PAGE_BYTES)];
        for one in chosen.iter().filter(|one| one.state != ZoneState::Offline) {
            // Where a device tells no write pointer, what was not written reads as zeroes.
            let end = one.write_pointer.unwrap_or_else(|| one.start + u64::from(one.capacity));
            for lba in one.start..end {
                device.read(lba, &mut block).map_err(|error| failed(&error))?;
                if block.iter().any(|byte| *byte != 0) {
                    made.write_all_at(&block, lba * PAGE_BYTES).map_err(|error| failed(&error))?;
                }
            }
        }
        device.close()?;
        made.sync_all().map_err(|error| failed(&error))
    }

    fn json(&self, zones: &[ZoneInfo]) -> Value {
        let descriptor = |one: &ZoneInfo| {
            json!({
                "zone": one.zone.raw(),
                "type": if one.conventional { CONVENTIONAL } else { SEQUENTIAL },
                "state": one.state.name(),
                "state_code": one.state.code(),
                "attributes": 0,
                "start_block": one.start,
                "capacity_blocks": one.capacity,
                "write_pointer": one.write_pointer,
                "resets": one.resets,
            })
        };
        json!({
            "schema": "onefold.ssd.zones/1",
            "image": self.image.display().to_string(),
            "block_bytes": PAGE_BYTES,
            "zones": zones.iter().map(descriptor).collect::<Vec<_>>(),
        })
    }
}

fn table(zones: &[ZoneInfo]) -> String {
    let head = ["zone", "state", "start", "written", "capacity", "resets"];
    let mut text = format!(
        "{:>6} {:<17} {:>12} {:>12} {:>12} {:>7}\n",
        head[0], head[1], head[2], head[3], head[4], head[5]
    );
    for one in zones {
        let size = |blocks: u64| render::size(blocks * PAGE_BYTES);
        let written = one.write_pointer.map_or_else(|| "-".to_owned(), |at| size(at - one.start));
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{:>6} {:<17} {:>12} {written:>12} {:>12} {:>7}",
            one.zone.raw(),
            one.state.name(),
            size(one.start),
            size(one.capacity.into()),
            one.resets,
        );
    }
    text
}
