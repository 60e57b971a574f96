//! The way to the mailbox of a device: through the NBD server at a socket, through the control socket of
//! the server that has the image open, or into the image itself.

use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use clap::Args;
use onefold_device::mailbox::{Client, Mailbox};
use onefold_device::{Access, DeviceError, Image, Latency, OpenOptions, SsdDevice};
use onefold_serve::nbd::{self, ClientError, Endpoint};

use super::control::ControlMailbox;
use crate::cmd::control;
use crate::error::{CliError, Exit};
use crate::output::Global;

/// Options that name a device.
#[derive(Debug, Args)]
pub(crate) struct Place {
    /// The image, served or not; or the NBD server of it, as a Unix socket or ADDRESS:PORT
    #[arg(value_name = "IMAGE|SOCKET")]
    place: String,
    /// Unix socket of the server that has the image open [default: IMAGE.sock]
    #[arg(long, value_name = "PATH")]
    control: Option<PathBuf>,
}

/// A device whose mailbox can be used.
pub(super) struct Reached {
    pub(super) client: Client<Box<dyn Mailbox>>,
    /// The device, if it is open in this process.
    device: Option<SsdDevice>,
}

impl Reached {
    /// Runs a command, and ends the device in good order if it is open in this process.
    pub(super) fn run<T, E: Into<CliError>>(
        mut self,
        command: impl FnOnce(&mut Client<Box<dyn Mailbox>>) -> Result<T, E>,
    ) -> Result<T, CliError> {
        let done = command(&mut self.client);
        let closed = self.device.map_or(Ok(()), |device| device.close());
        // What the command led to matters more than how the device was closed after it.
        let done = done.map_err(Into::into)?;
        closed?;
        Ok(done)
    }
}

impl Place {
    /// Finds the way.
    pub(super) fn reach(&self, global: &Global) -> Result<Reached, CliError> {
        match self.endpoint() {
            Some(endpoint) => self.connect(&endpoint),
            None => self.open(Path::new(&self.place), global),
        }
    }

    /// The NBD server, if the place names one.
    fn endpoint(&self) -> Option<Endpoint> {
        let path = Path::new(&self.place);
        if std::fs::metadata(path).is_ok_and(|found| found.file_type().is_socket()) {
            return Some(Endpoint::Unix(path.to_owned()));
        }
        self.place.parse().ok()
    }

    fn connect(&self, endpoint: &Endpoint) -> Result<Reached, CliError> {
        let client = nbd::Client::control(endpoint).map_err(|error| {
            let place = &self.place;
            let text = format!("no control export at {place}: {error}");
            let advice = match &error {
                ClientError::Export { .. } => "only `onefold ssd serve` has one",
                ClientError::Foreign { .. } => {
                    "give the image, or the socket of --nbd; PATH.sock is for --control"
                }
                _ => "is the server running? Give the image to use it without one",
            };
            CliError::new(Exit::Failed, "remap::no_server", text).help(advice)
        })?;
        Ok(Reached { client: Client::new(Box::new(client)), device: None })
    }

    fn open(&self, image: &Path, global: &Global) -> Result<Reached, CliError> {
        match Image::open(image, Access::Exclusive) {
            Err(DeviceError::Busy { .. }) => {
                let path = self.control.clone().unwrap_or_else(|| control::default_path(image));
                // Tells a missing server before a command is sent.
                control::ask(&path, "stats")?;
                let mailbox: Box<dyn Mailbox> = Box::new(ControlMailbox(path));
                Ok(Reached { client: Client::new(mailbox), device: None })
            }
            Err(error) => Err(error.into()),
            Ok(image) => {
                let config = onefold_config::Config::from_canonical(&image.label().config)?;
                let options = OpenOptions::new(Latency::None);
                let opened = SsdDevice::open(image, &config.ssd(global.seed)?, options)?;
                let mailbox: Box<dyn Mailbox> = Box::new(opened.device.clone());
                Ok(Reached { client: Client::new(mailbox), device: Some(opened.device) })
            }
        }
    }
}
