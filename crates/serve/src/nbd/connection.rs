//! One connection: a thread that receives many requests at once, executes them in place, and sends
//! their replies together. Requests that wait for a drive go to threads of their own.

mod wait;

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use onefold_device::BlockDevice;
use onefold_device::edge::Edge;
use onefold_units::Op;
use rustix::io::Errno;
use rustix::net::SendFlags;

use super::execute::{Scratch, execute};
use super::input::Input;
use super::parse::{CloseReason, Command, Export, Machine, Output, Request, Step, Target};
use super::registry::{ConnectionError, Membership, Registry};
use super::timer::Delayed;
use super::workers::Workers;

/// Replies are sent at the latest when this many bytes wait.
const BATCH_BYTES: usize = 1 << 20;
/// Memory of a connection that is not charged to the shared budget.
const FREE_BYTES: usize = 4 << 20;
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
    edge: Arc<Edge<D>>,
    control: Option<Box<dyn BlockDevice>>,
    socket: Arc<OwnedFd>,
    registry: Arc<Registry>,
    /// Before the place in the table, which must not be left while they execute anything (E6).
    workers: Option<Workers<D>>,
    member: Membership,
    machine: Machine,
    input: Input,
    out: Output,
    delayed: Delayed,
    scratch: Scratch,
    /// End of the handshake or of the last words.
    deadline: Option<Instant>,
    charged: usize,
    reading: bool,
    /// Whether it may execute requests (E6).
    entered: bool,
    slack_set: bool,
}

impl<D: BlockDevice + 'static> Connection<D> {
    pub(super) fn new(
        edge: Edge<D>,
        export: Export,
        socket: Arc<OwnedFd>,
        registry: Arc<Registry>,
        member: Membership,
    ) -> Self {
        let mut out = Output::default();
        let machine = Machine::new(export, &mut out);
        let deadline = Instant::now().checked_add(registry.limits.handshake);
        Self {
            control: edge.control(),
            edge: Arc::new(edge),
            socket,
            registry,
            workers: None,
            member,
            machine,
            input: Input::new(),
            out,
            delayed: Delayed::default(),
            scratch: Scratch::default(),
            deadline,
            charged: 0,
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
            self.settle_budget();
            let want = self.work()?;
            self.collect()?;
            self.release();
            let sent = self.send()?;
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
            match self.machine.step(self.input.data(), &mut self.out) {
                // The rest of that request will never come.
                Step::Need(_) if !self.reading => return Ok(Want::Nothing),
                Step::Need(bytes) => return Ok(self.want_input(bytes)),
                Step::Consumed(bytes) => self.input.consume(bytes),
                Step::Negotiated(bytes) => {
                    self.input.consume(bytes);
                    self.deadline = None;
                    // The client may know at once, although its first request may have to wait.
                    return Ok(Want::Room);
                }
                Step::Execute { consumed, request, payload } => {
                    if !self.entered {
                        self.entered = true;
                        self.member.begin_transmission();
                    }
                    if self.member.abandoned() {
                        return Err(ConnectionError::Lost);
                    }
                    if let Some(want) = self.obstacle(&request) {
                        return Ok(want);
                    }
                    let alone = self.input.data().len() == consumed;
                    if !self.hand_over(&request, payload.clone(), alone) {
                        self.execute(&request, payload);
                    }
                    self.input.consume(consumed);
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
    fn obstacle(&mut self, request: &Request) -> Option<Want> {
        let limits = &self.registry.limits;
        let Command::Read { len, .. } = request.command else {
            return (self.pending() >= limits.requests).then_some(Want::Room);
        };
        let reply = onefold_units::convert::index(len);
        let waiting = self.delayed.bytes() + self.worker_bytes() + self.out.len();
        if self.pending() >= limits.requests || (waiting > 0 && waiting + reply > limits.bytes) {
            return Some(Want::Room);
        }
        // A reply may need its memory twice: in the queue and, if delayed or in pieces, beside it.
        let needed = 2 * reply;
        (needed > FREE_BYTES / 4 && !self.charge(needed)).then_some(Want::Budget)
    }

    /// Takes memory from the shared budget for what comes next.
    fn charge(&mut self, more: usize) -> bool {
        let total = (self.used() + more).saturating_sub(FREE_BYTES);
        let missing = total.saturating_sub(self.charged);
        let granted = missing == 0 || self.registry.budget.try_take(missing);
        if granted {
            self.charged += missing;
        }
        granted
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

    fn settle_budget(&mut self) {
        let surplus = self.charged.saturating_sub(self.used().saturating_sub(FREE_BYTES));
        if surplus > 0 {
            self.registry.budget.give_back(surplus);
            self.charged -= surplus;
        }
    }

    /// Lets another thread execute a request that would keep others waiting. `false`: it is to be
    /// executed in place, which is faster for one that is alone.
    fn hand_over(
        &mut self,
        request: &Request,
        payload: std::ops::Range<usize>,
        alone: bool,
    ) -> bool {
        let alone = alone && self.working() == 0;
        let waits = |op| self.edge.waits(op);
        let helps = match request.command {
            Command::Read { .. } | Command::BlockStatus { .. } => !alone && waits(Op::Read),
            Command::Flush => waits(Op::Flush),
            // It may wait for space, which a trim behind it makes.
            Command::Write { fua, .. } | Command::WriteZeroes { fua, .. } => {
                waits(Op::Write) || fua && waits(Op::Flush)
            }
            Command::Trim { fua, .. } => fua && waits(Op::Flush),
        };
        if !helps || self.machine.target() == Target::Control {
            return false;
        }
        if self.workers.is_none() {
            self.workers = Workers::new(&self.edge).ok();
        }
        let payload = &self.input.data()[payload];
        let style = self.machine.reply_style();
        self.workers.as_mut().is_some_and(|workers| workers.take(style, *request, payload))
    }

    /// Takes the replies of requests that other threads executed.
    fn collect(&mut self) -> Result<(), ConnectionError> {
        let Some(workers) = &mut self.workers else { return Ok(()) };
        let mut all = Vec::new();
        if workers.pending() > 0 && !workers.collect(&mut all) {
            return Err(ConnectionError::Lost);
        }
        for done in all {
            match (done.due, operation(&done.command)) {
                (None, _) => self.out.put(&done.reply),
                (Some(due), op) => {
                    self.delayed.push(due, op, &done.reply);
                    self.note_delay(op);
                }
            }
        }
        Ok(())
    }

    fn execute(&mut self, request: &Request, payload: std::ops::Range<usize>) {
        let mark = self.out.mark();
        let style = self.machine.reply_style();
        let payload = &self.input.data()[payload];
        let (out, scratch) = (&mut self.out, &mut self.scratch);
        let control = self.control.as_deref().filter(|_| self.machine.target() == Target::Control);
        let (due, op) = if let Some(control) = control {
            (execute(control, style, request, payload, out, scratch), None)
        } else {
            let due = execute(&*self.edge, style, request, payload, out, scratch);
            (due, operation(&request.command))
        };
        let Some(due) = due else { return };
        self.delayed.push(due, op, self.out.since(mark));
        self.out.truncate(mark);
        self.note_delay(op);
    }

    /// A reply waits for its time.
    fn note_delay(&mut self, op: Option<Op>) {
        if let Some(op) = op {
            self.edge.delayed(op);
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
            let edge = &self.edge;
            self.delayed.release(Instant::now(), &mut self.out, |op| edge.replied(op));
        }
    }

    /// Sends as much as the socket takes. Says whether that was anything.
    fn send(&mut self) -> Result<bool, ConnectionError> {
        let mut sent = false;
        while !self.out.is_empty() {
            let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
            match rustix::net::send(&*self.socket, self.out.pending(), flags) {
                Ok(count) => {
                    self.out.sent(count);
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
        if self.registry.stopping() { ConnectionError::Stopped } else { ConnectionError::Lost }
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

impl<D> Drop for Connection<D> {
    fn drop(&mut self) {
        self.registry.budget.give_back(self.charged);
    }
}
