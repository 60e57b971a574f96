//! Starting and stopping the front ends of one device.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Instant;

use onefold_device::BlockDevice;
use onefold_device::observed::{DeviceStats, Frontend, Observed, Recorded, Recorder};

use crate::Limits;
use crate::error::ServeError;
use crate::fuse::{self, Mount};
use crate::memory::ConnectionMemory;
use crate::metrics::{self, Live};
use crate::nbd::parse::Export;
use crate::nbd::{self, Endpoint, Listener, Registry, Stop};
use crate::notify::notify;

/// What to serve and how.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// Name of the device for clients.
    pub name: String,
    /// Refuse writes.
    pub read_only: bool,
    /// Where NBD clients may connect.
    pub nbd: Vec<Endpoint>,
    /// Serve NBD on the sockets that the service manager passed (`LISTEN_FDS`) too.
    pub inherit_sockets: bool,
    /// Directory in which the device appears as the file `disk`.
    pub fuse: Option<PathBuf>,
    /// Address of the metrics.
    pub metrics: Option<SocketAddr>,
    /// Allow addresses that other machines can reach, although clients are not authenticated.
    pub insecure_listen: bool,
    /// Limits.
    pub limits: Limits,
}

impl Options {
    /// Serves a device of this name nowhere yet.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            read_only: false,
            nbd: Vec::new(),
            inherit_sockets: false,
            fuse: None,
            metrics: None,
            insecure_listen: false,
            limits: Limits::default(),
        }
    }
}

/// Starts a recording into a new file.
pub fn record(path: &Path, device: &Recorded) -> Result<Recorder, ServeError> {
    let failed = |source| ServeError::Record { path: path.to_owned(), source };
    let file = std::fs::File::create_new(path).map_err(failed)?;
    Recorder::start(Box::new(file), device).map_err(failed)
}

/// The running front ends of one device.
pub struct Server<D: BlockDevice> {
    observed: Observed<D>,
    registry: Arc<Registry>,
    stop: Arc<Stop>,
    accepting: Vec<JoinHandle<()>>,
    endpoints: Vec<Endpoint>,
    mount: Option<Mount>,
    metrics: Option<metrics::Endpoint>,
    limits: Limits,
}

impl<D: BlockDevice + DeviceStats + 'static> Server<D> {
    /// Starts the front ends. On failure none is left running.
    pub fn start(observed: Observed<D>, options: &Options) -> Result<Self, ServeError> {
        let bytes = options.name.len();
        if !(1..=4096).contains(&bytes) {
            return Err(ServeError::Name { bytes });
        }
        // Everything that may be refused comes first, and accepting clients last.
        let listeners = listeners(options)?;
        if listeners.is_empty() && options.fuse.is_none() {
            return Err(ServeError::NoFrontend);
        }
        let registry = Arc::new(Registry::new(options.limits.clone()));
        let mut server = Self {
            metrics: start_metrics(&observed, &registry, options)?,
            mount: mount(&observed, options)?,
            registry,
            stop: Stop::new().map_err(io_error("create an event descriptor"))?,
            accepting: Vec::new(),
            endpoints: Vec::new(),
            limits: options.limits.clone(),
            observed,
        };
        for listener in listeners {
            server.listen(listener, options)?;
        }
        Ok(server)
    }

    fn listen(&mut self, listener: Listener, options: &Options) -> Result<(), ServeError> {
        let export = Export {
            name: options.name.clone(),
            size: self.observed.size(),
            read_only: options.read_only,
            control: self.observed.control().map_or(0, |control| control.size()),
        };
        self.endpoints.push(listener.endpoint().clone());
        let thread = nbd::spawn(&self.observed, export, listener, &self.registry, &self.stop)
            .map_err(io_error("start a thread"))?;
        self.accepting.push(thread);
        Ok(())
    }
}

impl<D: BlockDevice> Server<D> {
    /// Where NBD clients may connect, with the ports that the system chose.
    #[must_use]
    pub fn endpoints(&self) -> &[Endpoint] {
        &self.endpoints
    }

    /// Calls this once nothing is left to serve on, because somebody unmounted the directory and there is no endpoint of NBD.
    pub fn when_unmounted(&self, tell: impl FnOnce() + Send + 'static) {
        if let Some(mount) = self.mount.as_ref().filter(|_| self.endpoints.is_empty()) {
            mount.when_unmounted(Box::new(tell));
        }
    }

    /// Address of the metrics, with the port that the system chose.
    #[must_use]
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.metrics.as_ref().map(metrics::Endpoint::address)
    }

    /// The device with its counters.
    #[must_use]
    pub fn observed(&self) -> &Observed<D> {
        &self.observed
    }

    /// Memory that the NBD connections hold.
    #[must_use]
    pub fn connection_memory(&self) -> ConnectionMemory {
        self.registry.memory()
    }

    /// Cuts the power of a device for which [`Observed::allow_cuts`] was called: no request is answered any more, and NBD clients
    /// lose their connections. `cut` then cuts the power of the device itself and brings it back, and says whether writes are gone
    /// that were answered. After that clients may connect again. Users of the FUSE file get I/O errors for requests that were in
    /// flight, and for the next flush if writes are gone.
    pub fn cut_power<T>(&self, cut: impl FnOnce(&D) -> (T, bool)) -> T {
        let done = self.observed.cut_power(|| self.registry.lose_power(), cut);
        self.registry.power_is_back();
        done
    }

    /// Ends all connections, flushes the device, and ends the recording and the log.
    pub fn stop(mut self) -> Result<(), ServeError> {
        self.shut_down();
        let flushed = self.observed.flush().map(drop);
        let recorded = self.observed.recorder().map_or(Ok(()), |r| r.finish().map(drop));
        flushed.map_err(|status| ServeError::Flush { status })?;
        recorded.map_err(|source| ServeError::Recording { source })?;
        self.observed.log().map_or(Ok(()), |log| log.finish().map(drop))?;
        Ok(())
    }

    fn shut_down(&mut self) {
        self.observed.stop_waiting();
        let deadline = Instant::now() + self.limits.drain;
        nbd::finish(&self.registry, &self.stop, deadline);
        for thread in self.accepting.drain(..) {
            // A panic there was reported by the panic hook; the rest still has to stop.
            let _ = thread.join();
        }
        if let Some(mut mount) = self.mount.take() {
            mount.finish(deadline);
        }
    }
}

impl<D: BlockDevice> Drop for Server<D> {
    fn drop(&mut self) {
        self.shut_down();
    }
}

fn listeners(options: &Options) -> Result<Vec<Listener>, ServeError> {
    let insecure = options.insecure_listen;
    let mut listeners = options
        .nbd
        .iter()
        .map(|endpoint| Listener::bind(endpoint, insecure))
        .collect::<Result<Vec<_>, _>>()?;
    if options.inherit_sockets {
        listeners.extend(nbd::inherited(insecure)?);
    }
    Ok(listeners)
}

fn mount<D: BlockDevice + 'static>(
    observed: &Observed<D>,
    options: &Options,
) -> Result<Option<Mount>, ServeError> {
    let Some(mountpoint) = &options.fuse else { return Ok(None) };
    let mounted = Mount::new(observed, mountpoint, options.read_only);
    mounted.map(Some).map_err(|source| fuse::failed(mountpoint, source))
}

fn start_metrics<D: BlockDevice + DeviceStats + 'static>(
    observed: &Observed<D>,
    registry: &Arc<Registry>,
    options: &Options,
) -> Result<Option<metrics::Endpoint>, ServeError> {
    let Some(address) = options.metrics else { return Ok(None) };
    let live = Live {
        observed: observed.client(Frontend::Local),
        registry: Arc::clone(registry),
        start: Instant::now(),
    };
    metrics::Endpoint::start(address, options.insecure_listen, Box::new(live)).map(Some)
}

fn io_error(action: &'static str) -> impl Fn(io::Error) -> ServeError {
    move |source| ServeError::Io { action, source }
}

/// Serves a device until `wait` returns, which waits for a signal, then stops in good order: replies in flight are
/// sent, connections are closed within 5 s even if clients hang, the device is flushed and the
/// recording is ended. A service manager is told when the device can be used and when it stops.
///
/// `ready` is called when the device can be used. A signal that comes before has to be kept for `wait`.
pub fn run<D: BlockDevice + DeviceStats + 'static>(
    observed: Observed<D>,
    options: &Options,
    ready: impl FnOnce(&Server<D>),
    wait: impl FnOnce(&Server<D>),
) -> Result<(), ServeError> {
    let server = Server::start(observed, options)?;
    ready(&server);
    notify("READY=1\n");
    wait(&server);
    notify("STOPPING=1\n");
    server.stop()
}
