//! NBD server: fixed newstyle, structured replies, several connections (frontends.md, section 2).
//!
//! [`parse`] is the protocol without I/O, [`execute`](execute()) runs one request against a device,
//! and the rest moves bytes between sockets and those two: one thread per connection, and more for
//! requests that wait for a drive.

mod client;
mod connection;
mod execute;
mod input;
mod listener;
mod outbox;
pub mod parse;
mod registry;
mod timer;
mod workers;

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use onefold_device::BlockDevice;
use onefold_device::observed::{Frontend, Observed};

pub use client::{Client, ClientError};
pub use execute::execute;
pub use listener::{BadEndpoint, Endpoint, ListenError};
pub(crate) use listener::{Listener, Stop, inherited};
pub use registry::ConnectionError;
pub(crate) use registry::Registry;

use connection::Connection;
use parse::Export;

/// How long accepting rests after the system refused, for example for want of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves a device on one listener until `stop` fires.
pub(crate) fn spawn<D: BlockDevice + 'static>(
    observed: &Observed<D>,
    export: Export,
    listener: Listener,
    registry: &Arc<Registry>,
    stop: &Arc<Stop>,
) -> std::io::Result<JoinHandle<()>> {
    let (observed, registry, stop) =
        (observed.client(Frontend::Nbd), Arc::clone(registry), Arc::clone(stop));
    std::thread::Builder::new()
        .name("nbd-accept".into())
        .spawn(move || accept(&observed, &export, &listener, &registry, &stop))
}

fn accept<D: BlockDevice + 'static>(
    observed: &Observed<D>,
    export: &Export,
    listener: &Listener,
    registry: &Arc<Registry>,
    stop: &Stop,
) {
    while !registry.stopping() {
        match listener.accept(stop) {
            Ok(Some((socket, peer))) => {
                let socket = Arc::new(socket);
                let Some(member) = registry.admit(&socket, peer) else { return };
                let observed = observed.client(Frontend::Nbd);
                // A volume may have another size by now.
                let export = Export { size: observed.size(), ..export.clone() };
                start(Connection::new(observed, export, socket, Arc::clone(registry), member));
            }
            Ok(None) => return,
            Err(error) => {
                tracing::error!(%error, endpoint = %listener.endpoint(), "cannot accept");
                std::thread::sleep(ACCEPT_PAUSE);
            }
        }
    }
}

fn start<D: BlockDevice + 'static>(connection: Connection<D>) {
    let registry = connection.registry();
    let thread = std::thread::Builder::new().name("nbd".into());
    // A connection without a thread is dropped, which closes its socket.
    let started = thread.spawn(move || {
        let registry = connection.registry();
        if let Err(error) = connection.run() {
            tracing::debug!(kind = error.name(), "NBD connection ended");
            registry.count_error(error);
        }
    });
    if let Err(error) = started {
        tracing::error!(%error, "cannot start a thread for a connection");
        registry.count_error(ConnectionError::Lost);
    }
}

/// Ends all connections: they answer what they have read, at the latest by `deadline`.
pub(crate) fn finish(registry: &Registry, stop: &Stop, deadline: Instant) {
    stop.fire();
    registry.stop();
    registry.wait_until_empty(deadline);
}
