//! The drive that is simulated: a configuration, an image's own, or a preset that stands for a drive of which little is known.

use onefold_config::Config;
use onefold_sim::halved;
use onefold_units::PAGE_BYTES;
use serde_json::{Value, json};

use crate::cmd::config::ConfigArgs;
use crate::cmd::ssd::render;
use crate::error::{CliError, Exit};

/// Largest drive that is simulated as it is: a volume on one of 4 GiB is aged and run in seconds.
const SIMULATED_BYTES: u64 = 4 << 30;

/// Largest mapping unit of a modelled drive.
const UNIT_MAX: u64 = 64 << 10;

/// A modelled drive, and where it comes from.
#[derive(Clone, Debug)]
pub(super) struct Model {
    pub(super) config: Config,
    /// Which preset, file or image, and with which keys.
    pub(super) from: String,
    /// It stands for a drive that says little of itself.
    pub(super) is_assumed: bool,
    /// Its capacity is a choice of the user's, or of the image.
    is_sized: bool,
    /// Capacity before it was made smaller.
    whole_bytes: u64,
}

impl Model {
    pub(super) fn new(config: Config, from: String) -> Result<Self, CliError> {
        refuse_layers(&config, &from)?;
        let whole_bytes = config.logical_bytes()?;
        Ok(Self { config, from, is_assumed: false, is_sized: false, whole_bytes })
    }

    /// Its capacity is not to be chosen.
    pub(super) fn sized(self) -> Self {
        Self { is_sized: true, ..self }
    }

    /// It stands for a drive that is not modelled.
    pub(super) fn standing(self) -> Self {
        Self { is_assumed: true, ..self }
    }

    /// What stands for a drive that maps this unit, or that has zones.
    pub(super) fn assumed(unit: u64, is_zoned: bool) -> Result<Self, CliError> {
        let (preset, sets) = match unit.min(UNIT_MAX) {
            _ if is_zoned => ("zns-proto", Vec::new()),
            unit if unit <= PAGE_BYTES => ("tlc", Vec::new()),
            unit => ("qlc-16k", vec![format!("ftl.indirection={unit}B")]),
        };
        let args = ConfigArgs { config: None, preset: Some(preset.to_owned()), sets };
        let from = [&format!("preset {preset}"), &*args.sets.join(", ")];
        let from: Vec<&str> = from.into_iter().filter(|part| !part.is_empty()).collect();
        Ok(Self::new(args.load()?, from.join(" with "))?.standing())
    }

    /// The same as small as can be simulated in seconds and still takes a load of so many bytes, of which the volume exports
    /// `exported`; as large as it takes, if the capacity is free to choose.
    pub(super) fn fitted(
        mut self,
        needed_bytes: u64,
        exported: impl Fn(&Config) -> Result<u64, CliError>,
    ) -> Result<Self, CliError> {
        if !self.is_sized && exported(&self.config)? < needed_bytes {
            let bytes = (needed_bytes / 2 * 3).next_multiple_of(1 << 30);
            self.config = self.config.with_logical_size(bytes)?;
            self.whole_bytes = bytes;
        }
        while self.config.logical_bytes()? > SIMULATED_BYTES {
            let Some(smaller) = halved(&self.config)? else { break };
            if exported(&smaller)? < needed_bytes {
                break;
            }
            self.config = smaller;
        }
        Ok(self)
    }

    /// Whether it is simulated quickly enough for more than what was asked.
    pub(super) fn is_small(&self) -> Result<bool, CliError> {
        Ok(self.config.logical_bytes()? <= 2 * SIMULATED_BYTES)
    }

    /// One line for people.
    pub(super) fn described(&self) -> Result<String, CliError> {
        let bytes = self.config.logical_bytes()?;
        let geometry = self.config.geometry()?;
        let assumed = if self.is_assumed { ", which is an assumption" } else { "" };
        let whole = match self.whole_bytes {
            whole if whole == bytes => String::new(),
            whole => format!(" in place of {}", render::size(whole)),
        };
        let superblock = render::size(self.superblock_bytes()?);
        let flash = match self.config.zns(0)? {
            Some(zns) => {
                format!("zones of {}", render::size(u64::from(zns.capacity_blocks) * PAGE_BYTES))
            }
            None => {
                format!(
                    "superblocks of {superblock}, maps {}",
                    render::size(geometry.unit_bytes().into())
                )
            }
        };
        Ok(format!("{}{assumed}: {}{whole}, {flash}", self.from, render::size(bytes)))
    }

    fn superblock_bytes(&self) -> Result<u64, CliError> {
        let geometry = self.config.geometry()?;
        Ok(u64::from(geometry.slots()) * u64::from(geometry.unit_bytes()))
    }

    pub(super) fn to_json(&self) -> Result<Value, CliError> {
        Ok(json!({
            "from": self.from,
            "assumed": self.is_assumed,
            "capacity_bytes": self.config.logical_bytes()?,
            "whole_capacity_bytes": self.whole_bytes,
            "superblock_bytes": self.superblock_bytes()?,
            "unit_bytes": self.config.geometry()?.unit_bytes(),
            "config_sha256": self.config.sha256(),
        }))
    }
}

/// A stack, or a volume of policy dmz, leaves no drive to be judged.
fn refuse_layers(config: &Config, from: &str) -> Result<(), CliError> {
    if config.stack(0)?.is_none() && config.zoned_volume()?.is_none() {
        return Ok(());
    }
    let text = format!("{from} describes layers on drives, expected a drive alone");
    Err(CliError::new(Exit::Usage, "volume::model", text)
        .help("judge the drive below: another --preset or --config"))
}
