//! The protocol machine with a device behind it and no socket.

use onefold_device::BlockDevice;
use onefold_serve::nbd::execute;
use onefold_serve::nbd::parse::{CloseReason, Export, Machine, Output, Step};

/// How a session stands after what it was fed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stand {
    Open,
    Disconnected,
    Closed(CloseReason),
}

pub(crate) struct Session<D> {
    pub(crate) machine: Machine,
    pub(crate) device: D,
    input: Vec<u8>,
    out: Output,
    /// Largest input that the machine asked to be kept.
    pub(crate) most_needed: usize,
    pub(crate) stand: Stand,
}

impl<D: BlockDevice> Session<D> {
    pub(crate) fn new(device: D, read_only: bool) -> Self {
        let mut out = Output::default();
        let control = device.control().map_or(0, |control| control.size());
        let export = Export { name: "disk".into(), size: device.size(), read_only, control };
        let machine = Machine::new(export, &mut out);
        Self { machine, device, input: Vec::new(), out, most_needed: 0, stand: Stand::Open }
    }

    /// A session that is in transmission; everything it said so far is dropped.
    pub(crate) fn ready(device: D, structured: bool, allocation: bool) -> Self {
        let mut session = Self::new(device, false);
        session.feed(&super::wire::handshake(structured, allocation));
        assert!(session.machine.in_transmission());
        session.take();
        session
    }

    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Stand {
        self.input.extend_from_slice(bytes);
        while self.stand == Stand::Open {
            match self.machine.step(&self.input, &mut self.out) {
                Step::Need(bytes) => {
                    assert!(bytes > self.input.len(), "the machine has what it needs");
                    self.most_needed = self.most_needed.max(bytes);
                    break;
                }
                Step::Consumed(bytes) | Step::Negotiated(bytes) => {
                    self.input.drain(..bytes);
                }
                Step::Enter => self.machine.admit(Ok(())),
                Step::Execute { consumed, request, payload } => {
                    let style = self.machine.reply_style();
                    let payload = &self.input[payload];
                    execute(&self.device, style, &request, payload, &mut self.out);
                    self.input.drain(..consumed);
                }
                Step::Disconnect => self.stand = Stand::Disconnected,
                Step::Close(reason) => self.stand = Stand::Closed(reason),
            }
        }
        self.stand
    }

    /// What the server sent since the last call.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        let bytes = self.out.pending().to_vec();
        self.out.sent(bytes.len());
        bytes
    }
}
