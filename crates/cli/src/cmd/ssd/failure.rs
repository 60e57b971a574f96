//! Errors of devices and servers with their codes, help and exit codes.

use std::io::ErrorKind;

use onefold_device::DeviceError;
use onefold_device::mailbox::MailboxError;
use onefold_format::ImageError;
use onefold_serve::ServeError;
use onefold_serve::nbd::ListenError;
use onefold_units::Status;

use crate::error::{CliError, Exit};

impl From<DeviceError> for CliError {
    fn from(error: DeviceError) -> Self {
        let (exit, code) = match &error {
            DeviceError::Exists { .. } => (Exit::Usage, "image::exists"),
            DeviceError::Busy { .. } => (Exit::Busy, "image::busy"),
            DeviceError::NotAFile { .. } => (Exit::Usage, "image::not_a_file"),
            DeviceError::Label { source, .. } => (Exit::Failed, label_code(source)),
            DeviceError::Labels { .. } => (Exit::Failed, "image::label_damaged"),
            DeviceError::Truncated { .. } => (Exit::Failed, "image::truncated"),
            DeviceError::Mismatch { .. } => (Exit::Failed, "image::mismatch"),
            DeviceError::LongConfig { .. } => (Exit::Infeasible, "config::too_long"),
            DeviceError::TooLarge => (Exit::Infeasible, "config::too_large"),
            DeviceError::Build { .. } | DeviceError::Zones { .. } if error.is_infeasible() => {
                (Exit::Infeasible, "config::infeasible")
            }
            DeviceError::Build { .. } | DeviceError::Zones { .. } => {
                (Exit::Failed, "device::recovery")
            }
            DeviceError::Poisoned { .. } => (Exit::Failed, "device::poisoned"),
            DeviceError::Close { .. }
            | DeviceError::CloseZones { .. }
            | DeviceError::Held { .. } => (Exit::Failed, "device::close"),
            DeviceError::Snapshots { .. } => (Exit::Failed, "device::snapshots"),
            DeviceError::Io { source, .. } if source.kind() == ErrorKind::NotFound => {
                let error = Self::new(Exit::Usage, "image::missing", &error);
                return error.help("`onefold ssd create` makes an image");
            }
            _ => (Exit::Failed, "image::io"),
        };
        Self::new(exit, code, error)
    }
}

const fn label_code(error: &ImageError) -> &'static str {
    match error {
        ImageError::NotAnImage => "image::not_an_image",
        ImageError::Version { .. } => "image::version",
        ImageError::Features { .. } => "image::features",
        _ => "image::label_damaged",
    }
}

impl From<MailboxError> for CliError {
    fn from(error: MailboxError) -> Self {
        let (exit, code) = match &error {
            MailboxError::Command(_) | MailboxError::NoMove => (Exit::Usage, "remap::command"),
            MailboxError::Refused { status: Status::InvalidField, .. } => {
                (Exit::Usage, "remap::refused")
            }
            MailboxError::Refused { status: Status::NoSpace, .. } => {
                (Exit::Failed, "remap::no_space")
            }
            MailboxError::Refused { .. } => (Exit::Failed, "remap::failed"),
            _ => (Exit::Failed, "remap::mailbox"),
        };
        Self::new(exit, code, error)
    }
}

impl From<ServeError> for CliError {
    fn from(error: ServeError) -> Self {
        let (exit, code) = match &error {
            ServeError::Listen(ListenError::InUse { .. }) => (Exit::Busy, "serve::in_use"),
            ServeError::Listen(ListenError::NotLoopback { .. }) => {
                (Exit::Usage, "serve::not_loopback")
            }
            ServeError::Listen(_) => (Exit::Failed, "serve::listen"),
            ServeError::NoFrontend => (Exit::Usage, "serve::nothing"),
            ServeError::Name { .. } => (Exit::Usage, "serve::name"),
            ServeError::Mount { source, .. }
                if matches!(
                    source.kind(),
                    ErrorKind::NotADirectory | ErrorKind::DirectoryNotEmpty
                ) =>
            {
                (Exit::Usage, "serve::mount")
            }
            ServeError::Mount { .. } | ServeError::DeadMount { .. } => {
                (Exit::Failed, "serve::mount")
            }
            ServeError::Record { .. } => (Exit::Usage, "serve::record"),
            ServeError::Recording { .. } => (Exit::Failed, "serve::recording"),
            ServeError::Flush { .. } => (Exit::Failed, "serve::flush"),
            _ => (Exit::Failed, "serve::io"),
        };
        let error = Self::new(exit, code, &error);
        match code {
            "serve::nothing" => error.help("for example --nbd unix:disk.nbd, or --fuse DIRECTORY"),
            _ => error,
        }
    }
}
