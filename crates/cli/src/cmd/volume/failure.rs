//! Errors of volumes with their codes, help and exit codes.

use std::io::ErrorKind;

use onefold_device::{DmzError, VolumeError};
use onefold_volume::MountError;

use crate::error::{CliError, Exit};

impl From<VolumeError> for CliError {
    fn from(error: VolumeError) -> Self {
        if let VolumeError::WriteLog(error) = error {
            return error.into();
        }
        let (exit, code) = match &error {
            VolumeError::Exists { .. } => (Exit::Usage, "volume::exists"),
            VolumeError::Busy { .. } => {
                return Self::new(Exit::Busy, "volume::busy", &error)
                    .help("if it is served with --control PATH, give the same option here");
            }
            VolumeError::Holds { .. } => (Exit::Usage, "volume::signature"),
            VolumeError::Size { .. } => (Exit::Usage, "volume::size"),
            VolumeError::Mode { .. } => (Exit::Usage, "volume::mode"),
            VolumeError::Io { source, .. } if source.kind() == ErrorKind::NotFound => {
                let error = Self::new(Exit::Usage, "volume::missing", &error);
                return error.help("`onefold volume create FILE --backing-size SIZE` makes a file");
            }
            VolumeError::Mount(mount) => return mount_error(mount),
            VolumeError::NoUring(_) => {
                return Self::new(Exit::Failed, "volume::uring", &error)
                    .help("--io threads does without, --io auto where it has to");
            }
            VolumeError::Members(_) | VolumeError::NoMembers => (Exit::Usage, "volume::family"),
            VolumeError::NoSums(_) | VolumeError::Scrub(_) => (Exit::Usage, "volume::scrub"),
            VolumeError::Failed => (Exit::Failed, "volume::failed"),
            _ => (Exit::Failed, "volume::io"),
        };
        Self::new(exit, code, error)
    }
}

impl From<MountError> for CliError {
    fn from(error: MountError) -> Self {
        mount_error(&error)
    }
}

fn mount_error(error: &MountError) -> CliError {
    let (exit, code, help) = match error {
        MountError::Geometry(_) => (Exit::Infeasible, "volume::geometry", None),
        MountError::Label(_) => {
            (Exit::Failed, "volume::label", Some("`onefold volume create` makes a volume"))
        }
        MountError::NoSums(_) => (Exit::Usage, "volume::scrub", None),
        MountError::Zones(_) => (Exit::Failed, "volume::zones", None),
        MountError::Shrunk { .. } => (Exit::Failed, "volume::shrunk", None),
        MountError::Members { .. } => (Exit::Usage, "volume::members", None),
        MountError::Lost { .. } => {
            (Exit::Failed, "volume::lost", Some("`onefold volume check` says what can be read"))
        }
        _ => (Exit::Failed, "volume::damaged", Some("`onefold volume check` says more")),
    };
    let error = CliError::new(exit, code, error);
    match help {
        Some(help) => error.help(help),
        None => error,
    }
}

impl From<DmzError> for CliError {
    fn from(error: DmzError) -> Self {
        use onefold_zoned::MountError as Mount;
        let (exit, code, help) = match error {
            DmzError::Device(error) => return error.into(),
            DmzError::NotZoned
            | DmzError::ZonedCache
            | DmzError::NoCache
            | DmzError::CacheBeside { .. } => (
                Exit::Usage,
                "volume::not_zoned",
                Some("`onefold volume create IMAGE --zoned dmz --cache FILE`"),
            ),
            DmzError::Capacity { .. }
            | DmzError::Active { .. }
            | DmzError::CacheSize { .. }
            | DmzError::Order { .. }
            | DmzError::Geometry(_)
            | DmzError::Mount(Mount::Layout(_)) => (Exit::Infeasible, "volume::zones", None),
            DmzError::Holds { .. } => (Exit::Usage, "volume::signature", None),
            DmzError::Mount(Mount::NoRoot(_) | Mount::Copy { .. }) => (
                Exit::Failed,
                "volume::label",
                Some("`onefold volume create IMAGE --zoned dmz --cache FILE` makes a volume"),
            ),
            DmzError::Mount(Mount::Lost(_)) => (
                Exit::Failed,
                "volume::zones",
                Some(
                    "`onefold volume check --repair` gives it up: what is missing reads as zeroes then",
                ),
            ),
            DmzError::Mount(_) => {
                (Exit::Failed, "volume::damaged", Some("`onefold volume check` says more"))
            }
            DmzError::Failed => (Exit::Failed, "volume::failed", None),
            _ => (Exit::Failed, "volume::io", None),
        };
        let error = Self::new(exit, code, error);
        match help {
            Some(help) => error.help(help),
            None => error,
        }
    }
}
