//! Where a device or a volume is served: the options that all `serve` commands share.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::Args;
use onefold_device::BlockDevice;
use onefold_device::observed::{DeviceStats, Observed, Recorded};
use onefold_serve::nbd::Endpoint;
use onefold_serve::{Options, Server};
use onefold_try::tape::{self, About};

use crate::cmd::ssd::render;
use crate::error::CliError;
use crate::interrupt::Served;
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
    /// Record every request into a new trace file
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Keep every request, and what was written, in this new folder: a tape, for `onefold crash` and `onefold sim run`
    #[arg(long, value_name = "DIRECTORY", conflicts_with = "record")]
    tape: Option<PathBuf>,
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

    /// Where every request is recorded, if it is.
    pub(crate) fn record(&self) -> Option<&Path> {
        self.record.as_deref()
    }

    /// Where every request and what was written is kept, if it is.
    pub(crate) fn tape(&self) -> Option<&Path> {
        self.tape.as_deref()
    }

    /// Serves a device until a signal comes, and keeps the recording or the tape that was asked for, which names it by `uuid`.
    pub(crate) fn run<D: BlockDevice + DeviceStats + 'static>(
        &self,
        global: &Global,
        device: D,
        uuid: [u8; 16],
        options: &Options,
        ready: impl FnOnce(&Server<D>),
    ) -> Result<(), CliError> {
        self.run_until(global, device, uuid, options, ready, |_, signals| signals.wait())
    }

    /// The same until `wait` returns, which hears of the signals.
    pub(crate) fn run_until<D: BlockDevice + DeviceStats + 'static>(
        &self,
        global: &Global,
        device: D,
        uuid: [u8; 16],
        options: &Options,
        ready: impl FnOnce(&Server<D>),
        wait: impl FnOnce(&Server<D>, &Served),
    ) -> Result<(), CliError> {
        let signals = global.interrupt.serving();
        let recorded = Recorded {
            device_bytes: device.size(),
            device_uuid: uuid,
            lba_bytes: 512,
            behind_loop: self.is_behind_loop(),
        };
        let (kept, observed) = match (&self.tape, &self.record) {
            (Some(folder), _) => {
                let mut about = About::new(device.size(), global.seed);
                about.served = Some(options.name.clone());
                let (kept, observed) = tape::keep(folder, device, &recorded, about)?;
                (Some(kept), observed)
            }
            (None, Some(path)) => {
                let requests = onefold_serve::record(path, &recorded)?;
                (None, Observed::with_recorder(device, requests))
            }
            (None, None) => (None, Observed::new(device)),
        };
        let served = onefold_serve::run(observed, options, ready, |server| wait(server, &signals));
        let ended = kept.map_or(Ok(()), |kept| kept.end().map(drop));
        served?;
        Ok(ended?)
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
