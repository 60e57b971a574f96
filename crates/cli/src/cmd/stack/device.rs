//! What is at a place of a stack that is open.

use onefold_device::{DmzVolume, SsdDevice, VolumeBacking, VolumeDevice, ZonedDevice};
use onefold_units::PAGE_BYTES;
use onefold_units::convert::float;
use serde_json::{Value, json};

use crate::cmd::{ssd, volume};

/// What is at a place.
#[derive(Clone)]
pub(super) enum Device {
    /// A file or block device in the place of an emulated SSD.
    File(VolumeBacking),
    Ssd(SsdDevice),
    Zns(ZonedDevice),
    Volume(VolumeDevice),
    Dmz(DmzVolume),
}

/// Pages of 4 KiB that it was asked to write, and that it wrote: a layer to the places below, a device to flash.
#[derive(Clone, Copy, Default)]
struct Pages {
    asked: u64,
    written: u64,
}

impl Device {
    /// As the layer sees it that lies on it.
    pub(super) fn backing(&self) -> VolumeBacking {
        match self {
            Self::File(file) => file.clone(),
            Self::Ssd(device) => VolumeBacking::ssd(device.clone()),
            Self::Zns(device) => VolumeBacking::zoned(device.clone()),
            Self::Volume(volume) => VolumeBacking::layer(volume.clone()),
            Self::Dmz(volume) => VolumeBacking::layer(volume.clone()),
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.backing().blocks() * PAGE_BYTES
    }

    /// What it counted since it was opened; `None` for what does not count.
    fn pages(&self) -> Option<Pages> {
        Some(match self {
            Self::File(_) => return None,
            Self::Ssd(device) => {
                let details = device.details()?;
                Pages { asked: details.host.write_pages, written: details.ftl.programs.total() }
            }
            Self::Zns(device) => {
                let details = device.details()?;
                Pages { asked: details.host.write_pages, written: details.stats.programs.total() }
            }
            Self::Volume(volume) => {
                let stats = volume.details().stats;
                Pages { asked: stats.written, written: stats.sent_total() }
            }
            Self::Dmz(volume) => {
                let stats = volume.details().stats;
                Pages { asked: stats.written, written: stats.sent_total() }
            }
        })
    }

    /// In the words of `onefold ssd info` and `onefold volume info`.
    fn details(&self) -> Value {
        match self {
            Self::File(_) => Value::Null,
            Self::Ssd(device) => ssd::lifetime::described(device).into(),
            Self::Zns(device) => ssd::zoned::described(device).into(),
            Self::Volume(volume) => volume::control::describe(&volume.details()),
            Self::Dmz(volume) => volume::dmz::served(&volume.details()),
        }
    }

    /// A place in the words of the results of the simulator.
    pub(super) fn describe(&self, name: &str, kind: &str, on: &[String]) -> Value {
        let mut place = json!({
            "name": name,
            "kind": kind,
            "on": on,
            "logical_bytes": self.bytes(),
            "details": self.details(),
        });
        if let Some(Pages { asked, written }) = self.pages() {
            place["host"] = json!({"write_pages": asked});
            place["written_pages"] = written.into();
            place["write_ratio"] =
                if asked > 0 { float(written) / float(asked) } else { 0.0 }.into();
        }
        place
    }
}
