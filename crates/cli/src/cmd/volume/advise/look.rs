//! What is found out about the file or device that a volume would lie on. It is only read unless it is to be measured.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use onefold_device::{VolumeBacking, VolumeError};
use serde_json::{Value, json};

use super::hints::Hints;
use super::probe::{self, Measured};
use crate::cmd::ssd::render;
use crate::error::{CliError, Exit};
use crate::output::Global;

/// How a drive is measured, if at all.
#[derive(Clone, Debug, Args)]
pub(super) struct Measuring {
    /// Measure with this new file, which is removed afterwards; PATH is only read
    #[arg(long, value_name = "FILE", conflicts_with = "destructive")]
    scratch: Option<PathBuf>,
    /// Size of the scratch file, or of the part of PATH that is overwritten
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = render::parse_size)]
    scratch_size: u64,
    /// Measure PATH itself, which has to read as zeroes unless --force is given
    #[arg(long)]
    destructive: bool,
    /// Seconds for each of the ten numbers that are measured
    #[arg(long, value_name = "SECONDS", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=3600))]
    seconds: u64,
}

/// A number of bytes and where it comes from.
pub(super) type Sourced = (u64, &'static str);

/// What was found out.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) hints: Hints,
    holds: Option<&'static str>,
    measured: Option<Measured>,
}

impl Measuring {
    /// Refuses to measure what is modelled.
    pub(super) fn expect_none(&self, what: &str) -> Result<(), CliError> {
        let option = match (&self.scratch, self.destructive) {
            (None, false) => return Ok(()),
            (Some(_), _) => "--scratch",
            (None, true) => "--destructive",
        };
        let text = format!("{option} measures a drive, and {what} is a model, which is simulated");
        Err(CliError::new(Exit::Usage, "volume::scratch", text).help(format!("leave out {option}")))
    }

    /// Looks at a file or device, and measures where that is allowed.
    pub(super) fn look(&self, path: &Path, global: &Global) -> Result<Seen, CliError> {
        // Held until the end: nobody else may begin to use what is overwritten.
        let backing = match VolumeBacking::open(path, self.destructive) {
            Ok(backing) => Some(backing),
            Err(VolumeError::Busy { .. }) if !self.destructive => None,
            Err(error) => return Err(error.into()),
        };
        if let Some(backing) = backing.as_ref().filter(|_| self.destructive && !global.force)
            && let Some(what) = backing.contents(&[])
        {
            return Err(VolumeError::Holds { what }.into());
        }
        let holds = backing.as_ref().and_then(VolumeBacking::looks);
        Ok(Seen { hints: Hints::of(path), holds, measured: self.measure(path, global)? })
    }

    fn measure(&self, path: &Path, global: &Global) -> Result<Option<Measured>, CliError> {
        let time = Duration::from_secs(self.seconds);
        let failed = |path: &Path, error: std::io::Error| {
            let text = format!("cannot measure {}: {error}", path.display());
            CliError::new(Exit::Failed, "volume::measure", text)
        };
        let bytes = self.scratch_size >> 20 << 20;
        if bytes == 0 {
            let text = format!("--scratch-size is {} B, expected at least 1MiB", self.scratch_size);
            return Err(CliError::new(Exit::Usage, "volume::scratch", text));
        }
        if let Some(scratch) = &self.scratch {
            probe::make(scratch, bytes).map_err(|error| failed(scratch, error))?;
            let _unfinished = global.interrupt.unfinished(scratch);
            global.say(format_args!("measuring {} with {}", path.display(), scratch.display()));
            let measured = probe::measure(scratch, bytes, time);
            // What was made here goes, whatever came of it.
            let _ = std::fs::remove_file(scratch);
            return measured.map(Some).map_err(|error| failed(scratch, error));
        }
        if !self.destructive {
            return Ok(None);
        }
        let size = probe::size_of(path).map_err(|error| failed(path, error))?;
        global.say(format_args!("overwriting {}", path.display()));
        global.interrupt.leaves("nothing was measured, and what was overwritten is lost");
        let bytes = bytes.min(size >> 20 << 20).max(1 << 20);
        probe::measure(path, bytes, time).map(Some).map_err(|error| failed(path, error))
    }
}

impl Seen {
    /// The indirection unit, as far as it is known.
    pub(super) fn unit(&self) -> Option<Sourced> {
        let told = self.hints.preferred_write();
        told.map(|bytes| (bytes, "the device says (minimum_io_size)")).or_else(|| {
            let found = self.measured.as_ref()?.unit();
            Some((
                found,
                "measured: writes of that size are slower where they begin in the middle of one",
            ))
        })
    }

    /// What speaks against a model that has no such thing.
    pub(super) fn doubts(&self) -> Vec<String> {
        let is_log = |what: &&str| ["btrfs", "F2FS"].iter().any(|log| what.contains(log));
        let log = self.holds.filter(is_log).map(|what| {
            format!(
                "it holds {what}, which is a log itself: record what that writes, and give --trace"
            )
        });
        let rotates = self.hints.is_rotational().then(|| {
            "the kernel says that it rotates, as it does of many virtual disks: what is simulated is an SSD".to_owned()
        });
        let fresh =
            self.measured.as_ref().filter(|measured| measured.passes < 1.0).map(|measured| {
                format!(
                    "measured while the space was overwritten {:.1} times: not a steady state",
                    measured.passes
                )
            });
        log.into_iter().chain(rotates).chain(fresh).collect()
    }

    /// Lines for people: a name and a value.
    pub(super) fn lines(&self) -> Vec<(String, String)> {
        let mut lines = Vec::new();
        let speed = |speed: f64| format!("{:.1} MB/s", speed / 1e6);
        if let Some(measured) = &self.measured {
            lines.push(("measured, sequential".to_owned(), speed(measured.sequential)));
            for random in &measured.random {
                let shifted = random
                    .shifted
                    .map(|shifted| format!(", from the middle of one {}", speed(shifted)));
                let text = speed(random.aligned) + &shifted.unwrap_or_default();
                lines.push((format!("  random {} KiB", random.bytes >> 10), text));
            }
        } else {
            lines.push((
                "measured".to_owned(),
                "nothing; --scratch FILE or --destructive would".to_owned(),
            ));
        }
        if let Some(name) = &self.hints.device {
            let shown: Vec<String> =
                self.hints.queue.iter().map(|(key, value)| format!("{key} {value}")).collect();
            lines.push(("device".to_owned(), format!("{name}: {}", shown.join(", "))));
        }
        lines.push(("holds".to_owned(), self.holds.unwrap_or("nothing known").to_owned()));
        lines
    }

    pub(super) fn to_json(&self) -> Value {
        json!({
            "measured": self.measured.as_ref().map(Measured::to_json),
            "name": self.hints.device,
            "queue": self.hints.queue,
            "holds": self.holds,
        })
    }
}
