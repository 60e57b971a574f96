//! One connection: a thread that receives many requests at once, executes them in place, and sends
//! their replies together. Requests that wait for a drive go to threads of their own.

mod leave;
mod wait;

use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use onefold_device::BlockDevice;
use onefold_device::observed::Observed;
use onefold_units::Op;
use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendFlags, sendmsg, sockopt};

use super::execute::{execute, reply_bytes};
use super::input::Input;
use super::outbox::Outbox;
use super::parse::{CloseReason, Command, Export, Machine, Output, Request, Step, Target};
use super::registry::{ConnectionError, Membership, Registry};
use super::timer::Delayed;
use super::workers::Workers;
use crate::memory::Account;

/// Replies are sent at the latest when this many bytes wait.
const BATCH_BYTES: usize = 256 << 10;
/// How long a closing connection tries to deliver its last words.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Why the loop goes on waiting.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Want {
    /// This many bytes of input are needed.
    Input(usize),
    /// Replies have to leave first: a limit is reached.
    Room,
    /// Memory of the shared budget.
    Budget,
    /// Nothing more is read; the connection ends when its replies are sent.
    Nothing,
}

pub(super) struct Connection<D> {
    observed: Arc<Observed<D>>,
    control: Option<Box<dyn BlockDevice>>,
    socket: Arc<OwnedFd>,
    registry: Arc<Registry>,
    workers: Option<Workers<D>>,
    machine: Machine,
    input: Input,
    out: Outbox,
    delayed: Delayed,
    /// What of the shared memory it was promised: never less than it uses.
    account: Account,
    /// When the peer last took a whole reply or sent a whole request, or was waited for in vain.
    progress: Instant,
    /// End of the handshake or of the last words.
    deadline: Option<Instant>,
    reading: bool,
    /// Whether it may execute requests (E6).
    entered: bool,
    slack_set: bool,
    /// Its place in the table. Last: nothing is executed any more when it is left (E6), and all memory is
    /// given back.
    member: Membership,
}

impl<D: BlockDevice + 'static> Connection<D> {
    pub(super) fn new(
        observed: Observed<D>,
        export: Export,
        socket: Arc<OwnedFd>,
        registry: Arc<Registry>,
        member: Membership,
    ) -> Self {
        let (mut greeting, mut out) = (Output::default(), Outbox::default());
        let machine = Machine::new(export, &mut greeting);
        out.push(greeting);
        let mut account = Account::new(&registry.budget);
        // It is less than the floor.
        account.take(out.capacity());
        // A receive that waits longer than this returns: the connection is idle.
        let _ = sockopt::set_socket_timeout(
            &*socket,
            sockopt::Timeout::Recv,
            Some(registry.limits.idle),
        );
        let deadline = Instant::now().checked_add(registry.limits.handshake);
        Self {
            control: observed.control(),
            observed: Arc::new(observed),
            socket,
            registry,
            workers: None,
            member,
            machine,
            input: Input::default(),
            out,
            delayed: Delayed::default(),
            account,
            progress: Instant::now(),
            deadline,
            reading: true,
            entered: false,
            slack_set: false,
        }
    }

    /// The table that the connection is in.
    pub(super) fn registry(&self) -> Arc<Registry> {
        Arc::clone(&self.registry)
    }

    /// Serves the connection until it ends.
    pub(super) fn run(mut self) -> Result<(), ConnectionError> {
        loop {
            if self.deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                return Err(ConnectionError::Timeout);
            }
            let want = self.work()?;
            if want != Want::Budget {
                self.account.leave_queue();
            }
            self.collect()?;
            self.release();
            let sent = self.send()?;
            self.settle(want);
            if want == Want::Nothing && self.out.is_empty() && self.pending() == 0 {
                return Ok(());
            }
            // What was sent may have made the room that was wanted.
            if want != Want::Room || !sent {
                self.wait(want)?;
            }
        }
    }

    /// Handles everything that is whole in the input.
    fn work(&mut self) -> Result<Want, ConnectionError> {
        if self.registry.stopping() {
            self.machine.shut_down();
        }
        loop {
            if self.out.len() >= BATCH_BYTES {
                return Ok(Want::Room);
            }
            if !self.charge(self.out.growth()) {
                return Ok(Want::Budget);
            }
            match self.out.with_tail(|out| self.machine.step(self.input.data(), out)) {
                // The rest of that request will never come.
                Step::Need(_) if !self.reading => return Ok(Want::Nothing),
                Step::Need(bytes) => return Ok(self.want_input(bytes)),
                Step::Consumed(bytes) => self.input.consume(bytes),
                Step::Enter => {
                    let refused = |error: ConnectionError| error.refusal();
                    self.machine.admit(self.member.enter().map_err(refused));
                }
                Step::Negotiated(bytes) => {
                    self.input.consume(bytes);
                    self.deadline = None;
                    // The client may know at once, although its first request may have to wait.
                    return Ok(Want::Room);
                }
                Step::Execute { consumed, request, payload } => {
                    if let Some(want) = self.take(request, consumed, payload)? {
                        return Ok(want);
                    }
                }
                Step::Disconnect => {
                    self.reading = false;
                    return Ok(Want::Nothing);
                }
                Step::Close(CloseReason::Aborted) => return Ok(self.last_words()),
                Step::Close(reason) => {
                    tracing::warn!(%reason, "NBD connection closed");
                    self.last_words();
                    self.delayed = Delayed::default();
                    self.send()?;
                    return Err(ConnectionError::Protocol);
                }
            }
        }
    }

    /// Executes a request, unless something has to happen before.
    fn take(
        &mut self,
        request: Request,
        consumed: usize,
        payload: Range<usize>,
    ) -> Result<Option<Want>, ConnectionError> {
        if !self.entered {
            self.entered = true;
            self.member.begin_transmission();
        }
        if self.member.abandoned() {
            return Err(ConnectionError::Lost);
        }
        if let Some(want) = self.obstacle(&request, payload.len()) {
            return Ok(Some(want));
        }
        self.progress = Instant::now();
        let alone = self.input.data().len() == consumed;
        if self.is_to_leave(&request, alone) && self.can_leave(&request, consumed, &payload) {
            self.hand_over(request, consumed, payload);
        } else {
            self.execute(&request, payload);
            self.input.consume(consumed);
        }
        Ok(None)
    }

    fn want_input(&mut self, bytes: usize) -> Want {
        let growth = self.input.growth(bytes);
        if growth == 0 || self.charge(growth) { Want::Input(bytes) } else { Want::Budget }
    }

    fn last_words(&mut self) -> Want {
        if self.reading {
            self.reading = false;
            self.deadline = Instant::now().checked_add(LAST_WORDS);
        }
        Want::Nothing
    }

    /// What has to happen before `request` may be executed.
    fn obstacle(&mut self, request: &Request, payload: usize) -> Option<Want> {
        let limits = &self.registry.limits;
        let reply = reply_bytes(&request.command);
        let waiting = self.delayed.bytes() + self.worker_bytes() + self.out.len();
        let full = waiting > 0 && waiting + reply + payload > limits.bytes;
        if self.pending() >= limits.requests || full && self.pending() + self.out.len() > 0 {
            return Some(Want::Room);
        }
        // A small reply shares a buffer, unless it has to wait.
        let shared = if reply <= Outbox::SMALL { self.out.growth() } else { 0 };
        (!self.charge(shared + reply)).then_some(Want::Budget)
    }

    /// Asks for memory before it is taken.
    fn charge(&mut self, more: usize) -> bool {
        // What was promised for requests that needed less is there already.
        let missing = (self.used() + more).saturating_sub(self.account.held());
        missing == 0 || self.account.take(missing)
    }

    /// Gives back what is not needed while the connection waits.
    fn settle(&mut self, want: Want) {
        let coming = match want {
            Want::Input(bytes) => self.input.growth(bytes),
            Want::Budget => {
                // Who waits holds nothing that others may wait for.
                self.input.shrink();
                0
            }
            Want::Room | Want::Nothing => 0,
        };
        self.account.settle(self.used() + coming);
    }

    fn used(&self) -> usize {
        self.input.capacity() + self.out.capacity() + self.delayed.bytes() + self.worker_bytes()
    }

    fn worker_bytes(&self) -> usize {
        self.workers.as_ref().map_or(0, Workers::bytes)
    }

    /// Requests whose replies wait for their time, or for a drive.
    fn pending(&self) -> usize {
        self.delayed.len() + self.working()
    }

    fn working(&self) -> usize {
        self.workers.as_ref().map_or(0, Workers::pending)
    }

    fn execute(&mut self, request: &Request, payload: Range<usize>) {
        let style = self.machine.reply_style();
        let payload = &self.input.data()[payload];
        let control = self.control.as_deref().filter(|_| self.machine.target() == Target::Control);
        let op = if control.is_some() { None } else { operation(&request.command) };
        let run = |out: &mut Output| match control {
            Some(control) => execute(control, style, request, payload, out),
            None => execute(&*self.observed, style, request, payload, out),
        };
        let room = reply_bytes(&request.command);
        let late = if room <= Outbox::SMALL {
            self.out.with_tail(|out| {
                let mark = out.mark();
                let due = run(out)?;
                let mut reply = Output::with_room(out.since(mark).len());
                reply.put(out.since(mark));
                out.truncate(mark);
                Some((due, reply))
            })
        } else {
            let mut reply = Output::with_room(room);
            if let Some(due) = run(&mut reply) {
                Some((due, reply))
            } else {
                self.out.push(reply);
                None
            }
        };
        if let Some((due, reply)) = late {
            self.delayed.push(due, op, reply);
            self.note_delay(op);
        }
    }

    /// A reply waits for its time.
    fn note_delay(&mut self, op: Option<Op>) {
        if let Some(op) = op {
            self.observed.delayed(op);
        }
        if !self.slack_set {
            self.slack_set = true;
            // Without it the kernel lets sleeps end up to 50 us late. A refusal costs precision
            // only.
            let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
        }
    }

    fn release(&mut self) {
        if self.delayed.len() > 0 {
            let observed = &self.observed;
            self.delayed.release(Instant::now(), &mut self.out, |op| observed.replied(op));
        }
    }

    /// Sends as much as the socket takes. Says whether that was anything.
    fn send(&mut self) -> Result<bool, ConnectionError> {
        let mut sent = false;
        while !self.out.is_empty() {
            let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
            let (slices, count) = self.out.slices();
            let mut nothing = SendAncillaryBuffer::default();
            match sendmsg(&*self.socket, &slices[..count], &mut nothing, flags) {
                Ok(count) => {
                    if self.out.sent(count) {
                        self.progress = Instant::now();
                    }
                    sent = true;
                }
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => {}
                Err(_) => return Err(self.lost()),
            }
        }
        Ok(sent)
    }

    fn lost(&self) -> ConnectionError {
        if self.registry.stopping() {
            ConnectionError::Stopped
        } else if !self.entered && self.member.is_crowded() {
            ConnectionError::Crowded
        } else {
            ConnectionError::Lost
        }
    }
}

fn operation(command: &Command) -> Option<Op> {
    match command {
        Command::Read { .. } => Some(Op::Read),
        Command::Write { .. } => Some(Op::Write),
        Command::Flush => Some(Op::Flush),
        Command::Trim { .. } => Some(Op::Trim),
        Command::WriteZeroes { .. } => Some(Op::WriteZeroes),
        Command::BlockStatus { .. } => None,
    }
}
