//! Where a device or a volume is served: the options that all `serve` commands share.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::Args;
use onefold_device::BlockDevice;
use onefold_device::observed::{Observed, Recorded};
use onefold_serve::nbd::Endpoint;
use onefold_serve::{Options, ServeError, Server};

use crate::cmd::ssd::render;
use crate::output::Global;

/// Front ends of a served device.
#[derive(Debug, Args)]
pub(crate) struct Frontends {
    /// Serve NBD here (may be given several times): 256 connections at a time, 16 of one client
    #[arg(long, value_name = "unix:PATH|ADDR:PORT")]
    nbd: Vec<Endpoint>,
    /// Serve NBD on the sockets passed by the service manager
    #[arg(long)]
    inherit_sockets: bool,
    /// Show the device as the file `disk` in this empty directory
    #[arg(long, value_name = "DIRECTORY")]
    fuse: Option<PathBuf>,
    /// Tell metrics here: /metrics and /api/v1/stats
    #[arg(long = "ui", alias = "metrics", value_name = "ADDR:PORT")]
    metrics: Option<SocketAddr>,
    /// Allow addresses that other machines can reach, without authentication
    #[arg(long)]
    insecure_listen: bool,
}

impl Frontends {
    /// What to serve under the name of the file at `path`.
    pub(crate) fn options(&self, path: &Path) -> Options {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        let mut options = Options::new(name.unwrap_or_default());
        options.nbd.clone_from(&self.nbd);
        options.inherit_sockets = self.inherit_sockets;
        options.fuse.clone_from(&self.fuse);
        options.metrics = self.metrics;
        options.insecure_listen = self.insecure_listen;
        options
    }

    /// The device as front ends see it. If `record` is given, every request goes into this new trace file, which names the device
    /// by `uuid`.
    pub(crate) fn observed<D: BlockDevice>(
        &self,
        device: D,
        record: Option<&Path>,
        uuid: [u8; 16],
    ) -> Result<Observed<D>, ServeError> {
        let Some(path) = record else { return Ok(Observed::new(device)) };
        let recorded = Recorded {
            device_bytes: device.size(),
            device_uuid: uuid,
            lba_bytes: 512,
            behind_loop: self.is_behind_loop(),
        };
        Ok(Observed::with_recorder(device, onefold_serve::record(path, &recorded)?))
    }

    /// Whether a loop device is the only client.
    const fn is_behind_loop(&self) -> bool {
        self.fuse.is_some() && self.nbd.is_empty()
    }

    /// Ends the server when nothing is left to serve on: a server that nobody can reach only keeps the image busy.
    pub(crate) fn end_unmounted<D: BlockDevice>(global: &Global, server: &Server<D>) {
        let interrupt = global.interrupt.clone();
        server.when_unmounted(move || {
            tracing::warn!("the directory was unmounted, and nothing else is served: ending");
            interrupt.end_serving();
        });
    }

    /// Says what is served where.
    pub(crate) fn announce<D: BlockDevice>(
        &self,
        global: &Global,
        path: &Path,
        server: &Server<D>,
    ) {
        let mut places: Vec<String> = server.endpoints().iter().map(Endpoint::to_string).collect();
        if let Some(directory) = &self.fuse {
            places.push(directory.join("disk").display().to_string());
        }
        if let Some(address) = server.metrics_address() {
            places.push(format!("http://{address}/metrics"));
        }
        global.say(format_args!(
            "serving {} ({}) on {}",
            path.display(),
            render::size(server.observed().size()),
            places.join(", "),
        ));
    }
}
