//! How the requests of a volume get to its backing.

use super::backing::VolumeBacking;
use super::error::VolumeError;
use super::kernel;
use super::options::{VolumeIo, VolumeOptions};
use crate::write_log::WriteLogError;

/// How they get there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IoMode {
    /// `uring`, `threads`, or, for an emulated SSD in the same process, `ssd` or `zoned`, and for another volume there `volume`.
    pub engine: &'static str,
    /// Whether they go around the page cache.
    pub direct: bool,
    /// Why it is not what was preferred.
    pub why: Option<String>,
}

impl std::fmt::Display for IoMode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let direct = if self.direct { "direct" } else { "through the page cache" };
        match self.engine {
            "uring" => write!(f, "io_uring, {direct}")?,
            "threads" => write!(f, "threads, {direct}")?,
            "zoned" => write!(f, "an emulated SSD with zones")?,
            "volume" => write!(f, "a volume")?,
            _ => write!(f, "an emulated SSD")?,
        }
        self.why.as_ref().map_or(Ok(()), |why| write!(f, " ({why})"))
    }
}

/// Decides how requests get to a backing.
pub(super) fn choose(
    backing: &VolumeBacking,
    options: &VolumeOptions,
) -> Result<IoMode, VolumeError> {
    let Some(file) = backing.as_file() else {
        let engine = match (backing.as_ssd(), backing.as_zoned()) {
            (Some(_), _) => "ssd",
            (_, Some(_)) => "zoned",
            _ => "volume",
        };
        return Ok(IoMode { engine, direct: false, why: None });
    };
    let mut why = Vec::new();
    if options.direct
        && let Err(error) = file.go_direct()
    {
        why.push(format!("direct access: {error}"));
    }
    if file.is_zoned() && !options.direct {
        why.push("zones are written around the page cache".to_owned());
    }
    let logs = backing.write_log().is_some();
    let engine = match (options.io, kernel::is_available()) {
        (VolumeIo::Threads, _) => "threads",
        (VolumeIo::Uring, _) if logs => {
            return Err(WriteLogError::Untold("requests through io_uring: use --io threads").into());
        }
        (VolumeIo::Auto, _) if logs => {
            why.push("a write log is kept".to_owned());
            "threads"
        }
        (_, Ok(())) => "uring",
        (VolumeIo::Uring, Err(error)) => return Err(VolumeError::NoUring(error)),
        (VolumeIo::Auto, Err(error)) => {
            why.push(format!("io_uring: {error}"));
            "threads"
        }
    };
    let why = (!why.is_empty()).then(|| why.join("; "));
    Ok(IoMode { engine, direct: file.is_direct(), why })
}
