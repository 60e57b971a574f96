//! Opening the places of a stack, from the devices upwards.

use std::path::Path;

use onefold_config::{Config, Place, PlaceKind, Volume, ZonedVolume};
use onefold_device::{
    Access, DeviceError, DmzCache, DmzDevices, DmzOptions, DmzVolume, Image, Journals, Latency,
    OpenOptions, SsdDevice, VolumeBacking, VolumeDevice, VolumeOptions, ZonedDevice,
};
use onefold_format::volume::VolumeName;
use onefold_journal::Setting;
use onefold_units::PAGE_BYTES;
use onefold_volume::{Backing, CleanMove, Geometry, Options, Trim, read_label};
use serde_json::{Value, json};

use super::Chosen;
use super::device::Device;
use crate::cmd::{ssd, volume};
use crate::error::{CliError, Exit};
use crate::output::Global;

/// A place that is open.
#[derive(Clone)]
pub(super) struct Opened {
    pub(super) name: String,
    kind: &'static str,
    on: Vec<String>,
    pub(super) device: Device,
}

/// The places of a stack that are open, as the stack has them.
#[derive(Clone, Default)]
pub(super) struct OpenStack {
    pub(super) places: Vec<Opened>,
}

impl OpenStack {
    /// What a place lies on.
    pub(super) fn below(&self, place: &Place) -> Vec<VolumeBacking> {
        place.on.iter().map(|below| self.places[*below].device.backing()).collect()
    }

    /// Adds the next place.
    pub(super) fn push(&mut self, chosen: &Chosen, place: &Place, device: Device) {
        let on = chosen.on(place).map(str::to_owned).collect();
        let name = place.name.clone();
        self.places.push(Opened { name, kind: place.kind.name(), on, device });
    }

    /// All places in the words of the results of the simulator, the top first.
    pub(super) fn report(&self) -> Value {
        let places = self.places.iter().rev();
        let places = places.map(|one| one.device.describe(&one.name, one.kind, &one.on));
        json!({
            "schema": "onefold.stack.info/1",
            "served": true,
            "stack": places.collect::<Vec<_>>(),
        })
    }

    /// Ends all places in good order: those above before those below.
    pub(super) fn close(&self) -> Result<(), CliError> {
        let used = |name: &String| self.places.iter().any(|one| one.on.contains(name));
        // A layer closes what it lies on.
        let tops = self.places.iter().filter(|one| !used(&one.name));
        tops.map(|one| Ok(one.device.backing().close()?)).fold(Ok(()), Result::and)
    }
}

/// Opens the whole stack.
pub(super) fn open(
    chosen: &Chosen,
    latency: Latency,
    global: &Global,
) -> Result<OpenStack, CliError> {
    let mut stack = OpenStack::default();
    let opened = chosen.places.iter().try_for_each(|place| {
        let device = open_place(chosen, place, &stack, latency, global)?;
        stack.push(chosen, place, device);
        Ok(())
    });
    // What keeps one from being opened matters more than how the others are closed.
    opened.inspect_err(|_: &CliError| drop(stack.close()))?;
    Ok(stack)
}

/// Opens a place on those below, and says what recovery found.
pub(super) fn open_place(
    chosen: &Chosen,
    place: &Place,
    below: &OpenStack,
    latency: Latency,
    global: &Global,
) -> Result<Device, CliError> {
    let (device, found) = match &place.kind {
        PlaceKind::Ssd(_) | PlaceKind::Zns(_) => open_device(&chosen.path(place), place, latency)?,
        PlaceKind::Volume(config) => open_volume(place, config, one(below.below(place))?)?,
        PlaceKind::Zoned(config) => open_dmz(config, devices(below.below(place), true)?)?,
    };
    for line in found {
        global.say(format_args!("{}: {line}", place.name));
    }
    Ok(device)
}

type Found = (Device, Vec<String>);

/// An image of the device, or a file or block device in its place.
fn open_device(path: &Path, place: &Place, latency: Latency) -> Result<Found, CliError> {
    if path.exists() && !volume::is_ssd_image(path) {
        let file = VolumeBacking::open(path, true)?;
        fits(path, place, &file)?;
        return Ok((Device::File(file.limited_to(place.kind.bytes())), Vec::new()));
    }
    let (image, _) = image(path, Access::Exclusive)?;
    let differs = |error: DeviceError| {
        CliError::from(error).help(
            "if keys of this device were changed, change them back, or lose what is on it: \
             `onefold stack create --force` makes the image anew",
        )
    };
    Ok(match &place.kind {
        PlaceKind::Zns(zns) => {
            let opened = ZonedDevice::open(image, zns).map_err(differs)?;
            (Device::Zns(opened.device), Vec::new())
        }
        PlaceKind::Ssd(config) => {
            let options = OpenOptions::new(latency);
            let opened = SsdDevice::open(image, config, options).map_err(differs)?;
            let found = ssd::serve::found(&opened);
            (Device::Ssd(opened.device), found)
        }
        PlaceKind::Volume(_) | PlaceKind::Zoned(_) => unreachable!("a layer has no image"),
    })
}

/// Opens the image of a device of a stack.
pub(super) fn image(path: &Path, access: Access) -> Result<(Image, Config), CliError> {
    if path.exists() {
        return ssd::open(path, access);
    }
    let text = format!("there is no image {}", path.display());
    Err(CliError::new(Exit::Usage, "image::missing", text).help(
        "`onefold stack create` makes the images of a stack; give --dir and --at as it got them",
    ))
}

/// Judges whether a file or block device can take the place of a device.
fn fits(path: &Path, place: &Place, file: &VolumeBacking) -> Result<(), CliError> {
    let (found, wanted) = (file.blocks() * PAGE_BYTES, place.kind.bytes());
    let zones = Backing::zones(&mut file.clone()).ok().flatten().map(|report| report.zone_blocks);
    let wanted_zones = match &place.kind {
        PlaceKind::Zns(zns) => Some(zns.zone_blocks),
        _ => None,
    };
    let what = match (zones, wanted_zones) {
        (found, wanted) if found != wanted => {
            let of = |zones: Option<u32>| {
                zones.map_or_else(
                    || "no zones".to_owned(),
                    |blocks| format!("zones of {} B", u64::from(blocks) * PAGE_BYTES),
                )
            };
            format!("has {}, and {} of the stack has {}", of(found), place.name, of(wanted))
        }
        // Of zones all are used, and their number is that of the stack.
        (Some(_), _) if found != wanted => {
            format!("has {found} B, and {} of the stack has {wanted} B", place.name)
        }
        _ if found < wanted => {
            format!("has {found} B, and {} of the stack has {wanted} B", place.name)
        }
        _ => return Ok(()),
    };
    let text = format!("{} {what}", path.display());
    Err(CliError::new(Exit::Usage, "stack::device", text)
        .help("give the keys of this place the sizes of the device, or use another device"))
}

/// The options of a volume: those of its configuration, with what only bytes and real time have.
fn volume_options(config: &Volume) -> VolumeOptions {
    let mut options = VolumeOptions::default();
    let served = options.engine;
    options.trim = config.options.trim != Trim::Never;
    options.remap = config.options.clean_move == CleanMove::Remap;
    options.journals = Journals::Off;
    options.engine = Options {
        verify: served.verify,
        bytes: served.bytes,
        preload: served.preload,
        ..config.options
    };
    options
}

fn open_volume(place: &Place, config: &Volume, backing: VolumeBacking) -> Result<Found, CliError> {
    expect_volume(place, config, &backing)?;
    let opened = VolumeDevice::open(backing, volume_options(config))?;
    let found = volume::serve::found(&opened);
    Ok((Device::Volume(opened.device), found))
}

/// Judges whether the volume that is there is that of the stack.
pub(super) fn expect_volume(
    place: &Place,
    config: &Volume,
    backing: &VolumeBacking,
) -> Result<(), CliError> {
    let label = read_label(&mut backing.clone(), backing.blocks())?;
    let (made, wanted) = (Geometry::of(&label), &config.geometry);
    let bytes = |blocks: u64| blocks * PAGE_BYTES;
    let pairs = [
        ("B exported", bytes(made.logical_blocks), bytes(wanted.logical_blocks)),
        (
            "B in a log segment",
            bytes(made.segment_blocks.into()),
            bytes(wanted.segment_blocks.into()),
        ),
        ("B in a unit", bytes(made.unit_blocks.into()), bytes(wanted.unit_blocks.into())),
    ];
    let differs = pairs.into_iter().find(|(_, made, wanted)| made != wanted);
    let what = match differs {
        _ if label.mode != config.mode => {
            format!(
                "was made with mode {}, and the stack says {}",
                label.mode.name(),
                config.mode.name()
            )
        }
        Some((what, made, wanted)) => {
            format!("was made with {made} {what}, and the stack says {wanted}")
        }
        None => return Ok(()),
    };
    let text = format!("the volume of {} {what}", place.name);
    Err(CliError::new(Exit::Usage, "stack::other", text).help(
        "change the stack back, or lose what is on it: `onefold stack create --force` makes it anew",
    ))
}

/// That the devices are those of the volume is judged by its root record.
fn open_dmz(config: &ZonedVolume, devices: DmzDevices) -> Result<Found, CliError> {
    let ranges = config.options.journal_ranges.iter();
    let ranges: Vec<_> =
        ranges.map(|range| (range.start * PAGE_BYTES, range.end * PAGE_BYTES)).collect();
    let options = DmzOptions {
        engine: config.options.clone(),
        ranges: if ranges.is_empty() { Setting::Off } else { Setting::Ranges(ranges) },
        ..DmzOptions::default()
    };
    let opened = DmzVolume::open(devices, options)?;
    let found = volume::dmz::found(&opened);
    Ok((Device::Dmz(opened.device), found))
}

/// The only place that a volume lies on.
pub(super) fn one(mut below: Vec<VolumeBacking>) -> Result<VolumeBacking, CliError> {
    // Another number does not get through the configuration.
    let one = below.pop().filter(|_| below.is_empty());
    one.ok_or_else(|| CliError::new(Exit::Infeasible, "stack::on", "a volume lies on one place"))
}

/// The places that a zoned volume lies on: `made` ones, or some to make one.
pub(super) fn devices(mut below: Vec<VolumeBacking>, made: bool) -> Result<DmzDevices, CliError> {
    let zoned = below
        .pop()
        .ok_or_else(|| CliError::new(Exit::Infeasible, "stack::on", "dmz lies on no place"))?;
    let cache = below.pop().map(|cache| {
        if made { DmzCache::open(cache, true) } else { Ok(DmzCache::to_make(cache, false)) }
    });
    Ok(DmzDevices { cache: cache.transpose()?, zoned })
}

/// Makes an empty volume at a layer.
pub(super) fn format(place: &Place, below: &OpenStack, force: bool) -> Result<(), CliError> {
    let name = VolumeName::new(&place.name).unwrap_or_default();
    match &place.kind {
        PlaceKind::Ssd(_) | PlaceKind::Zns(_) => {}
        PlaceKind::Volume(config) => {
            let backing = one(below.below(place))?;
            VolumeDevice::format_as(&backing, name, (config.mode, &config.geometry), force)?;
        }
        PlaceKind::Zoned(_) => {
            devices(below.below(place), false)?.format(name.as_str(), force)?;
        }
    }
    Ok(())
}
