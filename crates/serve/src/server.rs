//! Starting and stopping the front ends of one device.

use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Instant;

use onefold_device::BlockDevice;
use onefold_device::edge::Edge;
use onefold_units::Status;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use thiserror::Error;

use crate::Limits;
use crate::nbd::parse::Export;
use crate::nbd::{self, Endpoint, ListenError, Listener, Registry, Stop};

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
            insecure_listen: false,
            limits: Limits::default(),
        }
    }
}

/// Why serving failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ServeError {
    /// A socket could not be opened.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The system refused something.
    #[error("cannot {action}: {source}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// The last flush failed: what was written since the flush before may be lost.
    #[error("the final flush failed with {status:?}; check the image before it is used again")]
    Flush {
        /// What the device said.
        status: Status,
    },
}

/// The running front ends of one device.
pub struct Server<D: BlockDevice> {
    edge: Edge<D>,
    registry: Arc<Registry>,
    stop: Arc<Stop>,
    accepting: Vec<JoinHandle<()>>,
    endpoints: Vec<Endpoint>,
    limits: Limits,
}

impl<D: BlockDevice + 'static> Server<D> {
    /// Starts the front ends. On failure none is left running.
    pub fn start(edge: Edge<D>, options: &Options) -> Result<Self, ServeError> {
        let listeners = options
            .nbd
            .iter()
            .map(|endpoint| Listener::bind(endpoint, options.insecure_listen))
            .collect::<Result<Vec<_>, _>>()?;
        let stop = Stop::new().map_err(io_error("create an event descriptor"))?;
        let mut server = Self {
            registry: Arc::new(Registry::new(options.limits.clone())),
            stop,
            accepting: Vec::new(),
            endpoints: Vec::new(),
            limits: options.limits.clone(),
            edge,
        };
        for listener in listeners {
            server.listen(listener, options)?;
        }
        Ok(server)
    }

    fn listen(&mut self, listener: Listener, options: &Options) -> Result<(), ServeError> {
        let export = Export {
            name: options.name.clone(),
            size: self.edge.size(),
            read_only: options.read_only,
        };
        self.endpoints.push(listener.endpoint().clone());
        let thread = nbd::spawn(&self.edge, export, listener, &self.registry, &self.stop)
            .map_err(io_error("start a thread"))?;
        self.accepting.push(thread);
        Ok(())
    }

    /// Where NBD clients may connect, with the ports that the system chose.
    #[must_use]
    pub fn endpoints(&self) -> &[Endpoint] {
        &self.endpoints
    }

    /// Ends all connections, then flushes the device.
    pub fn stop(mut self) -> Result<(), ServeError> {
        self.shut_down();
        self.edge.flush().map(drop).map_err(|status| ServeError::Flush { status })
    }
}

impl<D: BlockDevice> Server<D> {
    fn shut_down(&mut self) {
        let deadline = Instant::now() + self.limits.drain;
        nbd::finish(&self.registry, &self.stop, deadline);
        for thread in self.accepting.drain(..) {
            // A panic there was reported by the panic hook; the rest still has to stop.
            let _ = thread.join();
        }
    }
}

impl<D: BlockDevice> Drop for Server<D> {
    fn drop(&mut self) {
        self.shut_down();
    }
}

fn io_error(action: &'static str) -> impl Fn(io::Error) -> ServeError {
    move |source| ServeError::Io { action, source }
}

/// Serves a device until SIGTERM or SIGINT comes, then stops in good order.
pub fn run<D: BlockDevice + 'static>(edge: Edge<D>, options: &Options) -> Result<(), ServeError> {
    // Before anything can be seen of the server, so that no signal finds it unprepared.
    let mut signals = Signals::new([SIGTERM, SIGINT]).map_err(io_error("watch for signals"))?;
    let server = Server::start(edge, options)?;
    signals.forever().next();
    server.stop()
}
