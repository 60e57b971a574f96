//! The protocol as a state machine: bytes in, requests and replies out. No socket, no clock.
//!
//! | state | input | next |
//! |---|---|---|
//! | client flags | 4 bytes | option, or closed if a flag is unknown |
//! | option | header and data | option, transmission or closed |
//! | transmission | request and payload | transmission, discard or closed |
//! | discard | rest of the payload of a refused write | transmission |
//!
//! Invariants: 1. A request is handed out only when its whole payload is in the input (E6).
//! 2. Every request is either handed out once or refused once. 3. No field of the peer is used as
//! a length before it was compared with a limit. 4. A closed machine stays closed.

mod cursor;
mod options;
mod output;
mod reply;
mod request;
pub(crate) mod wire;

use std::ops::Range;

use thiserror::Error as ThisError;

use cursor::Cursor;
use options::{Negotiated, Next};
pub use output::{Mark, Output};
pub(crate) use reply::{
    DATA_HEAD_BYTES, HOLE_BYTES, Run, StatusChunk, data_head, error_chunk, hole_chunk, simple,
    status_bytes,
};
pub use reply::{Error, ReplyStyle};
use request::{Agreed, Decoded};
pub use request::{Command, Request};
use wire::{MAX_OPTION, handshake};
pub use wire::{MAX_PAYLOAD, REQUEST_BYTES};

/// What is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// Name of the device; it is also known by the empty name.
    pub name: String,
    /// Size in bytes.
    pub size: u64,
    /// Whether writes are refused.
    pub read_only: bool,
    /// Bytes of the control export, whose name is that of the device and `.ctl`; 0: there is none.
    pub control: u64,
}

/// Which of the two exports a connection uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Target {
    /// The device.
    #[default]
    Device,
    /// Its control export.
    Control,
}

/// What follows the name of a device in the name of its control export.
pub(crate) const CONTROL_SUFFIX: &str = ".ctl";

impl Export {
    /// The size of an export.
    const fn size_of(&self, target: Target) -> u64 {
        match target {
            Target::Device => self.size,
            Target::Control => self.control,
        }
    }

    fn transmission_flags(&self, target: Target, structured: bool) -> u16 {
        use wire::export as flag;
        let mut flags = flag::HAS_FLAGS | flag::SEND_FLUSH | flag::SEND_FUA | flag::CAN_MULTI_CONN;
        if target == Target::Device {
            flags |= flag::SEND_TRIM | flag::SEND_WRITE_ZEROES | flag::SEND_FAST_ZERO;
        }
        if self.read_only {
            flags |= flag::READ_ONLY;
        }
        if structured {
            flags |= flag::SEND_DF;
        }
        flags
    }
}

/// Why a connection has to be closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ThisError)]
#[non_exhaustive]
pub enum CloseReason {
    /// The client ended the handshake in good order.
    #[error("the client aborted the handshake")]
    Aborted,
    /// The client flags hold a bit this server does not know.
    #[error("client flags hold an unknown bit, expected only 1 and 2")]
    ClientFlags,
    /// An option does not start with `IHAVEOPT`.
    #[error("option magic is wrong, expected IHAVEOPT")]
    OptionMagic,
    /// The data of an option is over the limit.
    #[error("option data is longer than 64 KiB")]
    OptionTooLong,
    /// `NBD_OPT_EXPORT_NAME` came when the server takes no more connections.
    #[error("the server takes no more connections")]
    NotAdmitted,
    /// `NBD_OPT_EXPORT_NAME` named something that is not served.
    #[error("no export has the name the client asked for")]
    UnknownExport,
    /// A request does not start with its magic.
    #[error("request magic is wrong, expected 25609513h")]
    RequestMagic,
    /// A write's payload is over the limit, so the next request cannot be found.
    #[error("write payload is longer than 32 MiB")]
    PayloadTooLong,
}

/// What a step led to. The caller drops `consumed` bytes from the front of its input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing happens before the input holds this many bytes.
    Need(usize),
    /// Input was handled; replies, if any, are in the output.
    Consumed(usize),
    /// The client wants to end the handshake. Nothing happens before [`Machine::admit`].
    Enter,
    /// The handshake ended: requests may follow.
    Negotiated(usize),
    /// A request to be executed.
    Execute {
        /// Bytes of input it takes, payload included.
        consumed: usize,
        /// The request.
        request: Request,
        /// Where its payload is in the input.
        payload: Range<usize>,
    },
    /// The client wants to end in good order: reply to what is in flight, then close.
    Disconnect,
    /// Send what is in the output, then close.
    Close(CloseReason),
}

#[derive(Debug)]
enum State {
    ClientFlags,
    Option,
    Transmission,
    Discard { left: usize, cookie: u64, error: Error },
    Disconnected,
    Closed(CloseReason),
}

/// One connection of the NBD protocol.
///
/// Call [`Machine::step`] with all input not consumed yet until it answers [`Step::Need`],
/// [`Step::Disconnect`] or [`Step::Close`]. After [`Step::Enter`] call [`Machine::admit`] first.
#[derive(Debug)]
pub struct Machine {
    export: Export,
    target: Target,
    state: State,
    negotiated: Negotiated,
    /// Whether the client may end the handshake, or why not, if that is decided.
    admission: Option<Result<(), &'static str>>,
    allocation: bool,
    shutdown: bool,
}

impl Machine {
    /// A new connection; its greeting is put into `out`.
    #[must_use]
    pub fn new(export: Export, out: &mut Output) -> Self {
        out.put(&wire::GREETING.to_be_bytes());
        out.put(&wire::OPTION.to_be_bytes());
        out.put(&(handshake::FIXED_NEWSTYLE | handshake::NO_ZEROES).to_be_bytes());
        Self {
            export,
            target: Target::Device,
            state: State::ClientFlags,
            negotiated: Negotiated::default(),
            admission: None,
            allocation: false,
            shutdown: false,
        }
    }

    /// Whether requests may be executed now.
    #[must_use]
    pub fn in_transmission(&self) -> bool {
        matches!(self.state, State::Transmission | State::Discard { .. })
    }

    /// What the requests of the client are for, once they may be executed.
    #[must_use]
    pub const fn target(&self) -> Target {
        self.target
    }

    /// How replies are to be encoded.
    #[must_use]
    pub fn reply_style(&self) -> ReplyStyle {
        ReplyStyle { structured: self.negotiated.structured }
    }

    /// Decides whether the client may end the handshake, after [`Step::Enter`]. One that may not is told
    /// why and can try again.
    pub fn admit(&mut self, admission: Result<(), &'static str>) {
        self.admission = Some(admission);
    }

    /// From now on every request is refused with ESHUTDOWN.
    pub fn shut_down(&mut self) {
        self.shutdown = true;
    }

    /// Handles what is at the front of `input`.
    pub fn step(&mut self, input: &[u8], out: &mut Output) -> Step {
        match self.state {
            State::Transmission => self.request(input, out),
            State::Discard { left, cookie, error } => {
                self.discard(input.len(), left, cookie, error, out)
            }
            State::ClientFlags => self.client_flags(input),
            State::Option => self.option(input, out),
            State::Disconnected => Step::Disconnect,
            State::Closed(reason) => Step::Close(reason),
        }
    }

    fn close(&mut self, reason: CloseReason) -> Step {
        self.state = State::Closed(reason);
        Step::Close(reason)
    }

    fn client_flags(&mut self, input: &[u8]) -> Step {
        let Some(flags) = Cursor::new(input).u32() else { return Step::Need(4) };
        let known = u32::from(handshake::FIXED_NEWSTYLE | handshake::NO_ZEROES);
        if flags & !known != 0 {
            return self.close(CloseReason::ClientFlags);
        }
        self.negotiated.no_zeroes = flags & u32::from(handshake::NO_ZEROES) != 0;
        self.state = State::Option;
        Step::Consumed(4)
    }

    fn option(&mut self, input: &[u8], out: &mut Output) -> Step {
        let mut cursor = Cursor::new(input);
        let Some(magic) = cursor.u64() else { return Step::Need(16) };
        if magic != wire::OPTION {
            return self.close(CloseReason::OptionMagic);
        }
        let (Some(number), Some(len)) = (cursor.u32(), cursor.u32()) else {
            return Step::Need(16);
        };
        if len > MAX_OPTION {
            return self.close(CloseReason::OptionTooLong);
        }
        // At most 64 KiB, so no width of `usize` is exceeded.
        let end = 16 + usize::try_from(len).unwrap_or(0);
        let Some(data) = input.get(16..end) else { return Step::Need(end) };
        let mark = out.mark();
        match options::handle(number, data, &self.export, &mut self.negotiated, out) {
            Next::Option => Step::Consumed(end),
            Next::Transmission { .. } if self.admission != Some(Ok(())) => {
                out.truncate(mark);
                match self.admission.take() {
                    Some(Err(why)) => match options::turn_away(number, why, out) {
                        Next::Close(reason) => self.close(reason),
                        _ => Step::Consumed(end),
                    },
                    _ => Step::Enter,
                }
            }
            Next::Transmission { allocation, target } => {
                self.allocation = allocation;
                self.target = target;
                // From now on only the ranges of requests are compared with it.
                self.export.size = self.export.size_of(target);
                self.state = State::Transmission;
                Step::Negotiated(end)
            }
            Next::Close(reason) => self.close(reason),
        }
    }

    fn request(&mut self, input: &[u8], out: &mut Output) -> Step {
        let Some(header) = input.first_chunk::<REQUEST_BYTES>() else {
            return Step::Need(REQUEST_BYTES);
        };
        let agreed = Agreed { structured: self.negotiated.structured, allocation: self.allocation };
        match request::decode(header, &self.export, agreed) {
            Decoded::Request(request, payload) => {
                // At most 32 MiB: see invariant 3.
                let payload = usize::try_from(payload).unwrap_or(0);
                if self.shutdown {
                    return self.refuse(request.cookie, Error::Shutdown, payload, out);
                }
                let consumed = REQUEST_BYTES + payload;
                if input.len() < consumed {
                    return Step::Need(consumed);
                }
                Step::Execute { consumed, request, payload: REQUEST_BYTES..consumed }
            }
            Decoded::Refused { cookie, error, payload } => {
                let payload = usize::try_from(payload).unwrap_or(0);
                self.refuse(cookie, error, payload, out)
            }
            Decoded::Disconnect => {
                self.state = State::Disconnected;
                Step::Disconnect
            }
            Decoded::Close(reason) => self.close(reason),
        }
    }

    fn refuse(&mut self, cookie: u64, error: Error, payload: usize, out: &mut Output) -> Step {
        if payload == 0 {
            self.reply_style().error(out, cookie, error);
        } else {
            // A client that is still sending the payload does not expect the reply yet.
            self.state = State::Discard { left: payload, cookie, error };
        }
        Step::Consumed(REQUEST_BYTES)
    }

    fn discard(
        &mut self,
        available: usize,
        left: usize,
        cookie: u64,
        error: Error,
        out: &mut Output,
    ) -> Step {
        if available == 0 {
            return Step::Need(1);
        }
        let taken = available.min(left);
        if taken == left {
            self.state = State::Transmission;
            self.reply_style().error(out, cookie, error);
        } else {
            self.state = State::Discard { left: left - taken, cookie, error };
        }
        Step::Consumed(taken)
    }
}
