//! A stack of layers on devices, in virtual time.
//!
//! Places are numbered from the devices upwards. A request goes down from joint to layer to port
//! until it meets a device, which says at once when it will be over; that end flies until its time
//! comes, and goes up by events. A lower layer never calls an upper one.
//!
//! No bytes of blocks are kept, but those of headers and maps that a layer reads again
//! (`port.rs`).

mod command;
mod concatenated;
mod counted;
mod device;
mod fill;
mod finished;
mod joint;
pub(crate) mod layer;
mod opening;
mod outcome;
mod port;
mod queue;
mod run;
mod slots;
mod volume;
mod zoned;
mod zoned_result;

use std::any::Any;
use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, VecDeque};

use onefold_nand::Delay;
use onefold_ssd::HostStats;
use onefold_units::convert::{index, index64, u32_from};
use onefold_units::{Nanos, Op};
use onefold_volume::Range;

use crate::SimError;
use crate::request::{Owner, Request, Steps, steps_of, whole_step_of};
use crate::series::{Windowed, add};
use joint::{Joint, Progress, Settled};

pub(crate) use counted::Counted;
pub(crate) use device::Device;
use joint::Stall;
pub(crate) use layer::LowerId;
use layer::{Answer, Asked, Caps, Done, Layer, Lower, Output, Why};
pub(crate) use port::Port;
use queue::Queue;
pub(crate) use run::{simulate, simulate_on};
use slots::Slots;
pub(crate) use volume::VolumeLayer;
pub(crate) use zoned::ZonedLayer;

/// A device, or a layer above others.
pub(crate) struct Place {
    pub(crate) name: String,
    pub(crate) at: At,
}

/// Where a place is: its number among the devices, or among the layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum At {
    Device(usize),
    Layer(usize),
}

/// A layer with its joint and its ports.
pub(crate) struct Above {
    pub(crate) layer: Box<dyn Layer>,
    joint: Joint,
    pub(crate) ports: Vec<Port>,
    /// To its first place below.
    queue: Queue,
    /// What the layer can do, which stays as it is.
    caps: Caps,
}

/// A request to a device or a lower layer that ended, or will at a known time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Flight {
    at: u64,
    /// Among those that end at the same time: as the layer wants, then in order of submission.
    order: u64,
    sent: Sent,
    delay: Delay,
    failed: bool,
}

impl Ord for Flight {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at, self.order).cmp(&(other.at, other.order))
    }
}

impl PartialOrd for Flight {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// A request that was sent to a place below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sent {
    /// The layer that asked.
    layer: u32,
    /// It was in the queue of the layer, where another one may wait for it to end.
    queued: bool,
    id: LowerId,
}

/// Requests to a lower layer that end as one.
struct Group {
    left: usize,
    answer: Answer,
    sent: Sent,
}

/// A request of the load that ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ended {
    pub(crate) tenant: usize,
    pub(crate) number: u64,
    pub(crate) op: Op,
    pub(crate) issued: u64,
    pub(crate) delay: Delay,
    pub(crate) failed: bool,
}

/// Places, from the devices upwards; the last one is the top.
#[derive(Default)]
pub(crate) struct Stack {
    pub(crate) places: Vec<Place>,
    pub(crate) devices: Vec<Device>,
    /// Each above those that it asks; the last one is the top.
    pub(crate) layers: Vec<Above>,
    flights: BinaryHeap<Reverse<Flight>>,
    submitted: u64,
    groups: Slots<Group>,
    /// Time of the layers when the run began.
    pub(crate) base: u64,
    pub(crate) ended: VecDeque<Ended>,
    /// Requests of the load that had to wait, by their number.
    pub(crate) stalls: VecDeque<(u64, Stall)>,
}

impl Stack {
    /// The place of the top.
    pub(crate) fn top(&self) -> usize {
        self.places.len() - 1
    }

    /// The layer of the top.
    pub(crate) fn top_layer(&self) -> usize {
        self.layers.len() - 1
    }

    /// Adds a device. Gives its place.
    pub(crate) fn add_device(&mut self, name: &str, mut device: Device) -> usize {
        device.set_timed(false);
        self.devices.push(device);
        self.add(name, At::Device(self.devices.len() - 1))
    }

    pub(crate) fn add_layer(
        &mut self,
        name: &str,
        layer: Box<dyn Layer>,
        ports: Vec<Port>,
    ) -> usize {
        let (joint, queue) = (Joint::default(), Queue::default());
        self.layers.push(Above { caps: layer.caps(), layer, joint, ports, queue });
        self.add(name, At::Layer(self.top_layer()))
    }

    fn add(&mut self, name: &str, at: At) -> usize {
        self.places.push(Place { name: name.to_owned(), at });
        self.top()
    }

    /// Where a place is.
    pub(crate) fn at(&self, place: usize) -> At {
        self.places[place].at
    }

    /// The layer at a place with its ports, if there is one.
    pub(crate) fn above(&self, place: usize) -> Option<&Above> {
        match self.at(place) {
            At::Layer(layer) => Some(&self.layers[layer]),
            At::Device(_) => None,
        }
    }

    /// The layer at a place, if there is one of that type.
    pub(crate) fn layer_at<L: Layer>(&self, place: usize) -> Option<&L> {
        (&*self.above(place)?.layer as &dyn Any).downcast_ref()
    }

    pub(crate) fn set_timed(&mut self, timed: bool) {
        self.devices.iter_mut().for_each(|device| device.set_timed(timed));
    }

    /// Blocks of 4 KiB at a place.
    pub(crate) fn blocks(&self, at: At) -> u64 {
        match at {
            At::Device(device) => self.devices[device].blocks(),
            At::Layer(layer) => self.layers[layer].caps.blocks,
        }
    }

    /// What the top can do.
    pub(crate) fn caps(&self) -> &Caps {
        &self.layers[self.top_layer()].caps
    }

    /// What a request to the top consists of.
    ///
    /// # Errors
    /// It is not in whole blocks, which the top takes only.
    pub(crate) fn steps(
        &self,
        request: u64,
        op: Op,
        offset: u64,
        len: u64,
    ) -> Result<Steps, SimError> {
        if self.caps().whole_blocks && !(offset | len).is_multiple_of(4096) {
            let what = format!("{} of {len} B at byte {offset}", op.name());
            return Err(SimError::ZoneAlignment { request, what });
        }
        Ok(steps_of(op, offset, len))
    }

    /// CPU time of the host for a request to the top, in ns.
    pub(crate) fn busy_ns(&self, blocks: Option<Range>) -> u64 {
        self.layers[self.top_layer()].layer.busy_ns(blocks)
    }

    const fn time(&self, now: u64) -> Nanos {
        Nanos::new(self.base + now)
    }

    /// Takes a request to a layer.
    pub(crate) fn enter(
        &mut self,
        layer: usize,
        request: Request,
        now: u64,
    ) -> Result<(), SimError> {
        let Above { joint, caps, .. } = &mut self.layers[layer];
        let tag = joint.begin(request);
        if joint.has_to_wait(tag, caps) {
            self.refuse(layer, tag, now);
        } else {
            self.try_on(layer, tag, now)?;
        }
        self.turn(layer, now)
    }

    /// Asks for what is left of a request, which waits if it is refused.
    fn try_on(&mut self, layer: usize, tag: usize, now: u64) -> Result<(), SimError> {
        if !self.go_on(layer, tag, now)? {
            self.refuse(layer, tag, now);
        }
        Ok(())
    }

    fn refuse(&mut self, layer: usize, tag: usize, now: u64) {
        let time = self.time(now);
        let Above { layer, joint, .. } = &mut self.layers[layer];
        joint.refuse(tag, time, &**layer);
    }

    /// Asks for what is left of a request. `false` if it was refused: try again later.
    fn go_on(&mut self, layer: usize, tag: usize, now: u64) -> Result<bool, SimError> {
        let time = self.time(now);
        let above = &mut self.layers[layer];
        let to = (&mut *above.layer, &above.caps);
        match above.joint.go_on(tag, time, to, &mut self.stalls) {
            Ok(Progress::Waits) => Ok(true),
            Ok(Progress::Refused) => Ok(false),
            Ok(Progress::Over) => self.end(layer, tag, now).map(|()| true),
            Err(why) => self.fail(layer, Some(tag), why, now).map(|()| true),
        }
    }

    /// Lets a layer go on after requests were submitted.
    fn turn(&mut self, layer: usize, now: u64) -> Result<(), SimError> {
        let time = self.time(now);
        self.layers[layer].layer.turn(time);
        self.follow(layer, now)
    }

    /// Submits what a layer asks for, and notes what ended, until there is nothing more.
    ///
    /// What ended may let a request go on: a write below a block follows the read of that block.
    /// The layer has its turn then, as after every submission. Without it the write would wait for
    /// the next event, which can be the commit timer.
    fn follow(&mut self, layer: usize, now: u64) -> Result<(), SimError> {
        while self.follow_once(layer, now)? {
            let time = self.time(now);
            self.layers[layer].layer.turn(time);
        }
        Ok(())
    }

    /// The same until the layer says nothing. Whether a request went on meanwhile.
    fn follow_once(&mut self, layer: usize, now: u64) -> Result<bool, SimError> {
        let mut went_on = false;
        while let Some(output) = self.layers[layer].layer.poll() {
            match &output {
                Output::Lower(lower) if self.layers[layer].queue.takes(lower) => {}
                Output::Lower(lower) => self.carry_out(layer, lower, now, false)?,
                Output::Done(done) => went_on |= self.settle(layer, *done, now)?,
            }
        }
        while let Some(lower) = self.layers[layer].queue.pop() {
            self.carry_out(layer, &lower, now, true)?;
        }
        Ok(went_on)
    }

    /// Has the place below do what a layer asks for.
    fn carry_out(
        &mut self,
        layer: usize,
        lower: &Lower,
        now: u64,
        queued: bool,
    ) -> Result<(), SimError> {
        let above = &mut self.layers[layer];
        let port = &mut above.ports[lower.port];
        let sent = Sent { layer: u32_from(layer), queued, id: lower.id };
        match port.below {
            At::Device(device) => {
                let device = &mut self.devices[device];
                let answer = port.execute(now, (&mut *above.layer, lower), device);
                let answer = answer.map_err(|error| {
                    let number = number_of(&above.joint, lower.what);
                    error.of_request(number, "read of the volume".to_owned())
                })?;
                self.fly(sent, answer);
                Ok(())
            }
            At::Layer(below) => self.ask_layer(sent, lower, below, now),
        }
    }

    /// Takes what a layer asks for to the layer below.
    fn ask_layer(
        &mut self,
        sent: Sent,
        lower: &Lower,
        below: usize,
        now: u64,
    ) -> Result<(), SimError> {
        let above = &mut self.layers[index(sent.layer)];
        let port = &mut above.ports[lower.port];
        let mut parts: Vec<(Op, u64, u64)> = Vec::new();
        if port.bytes(&mut *above.layer, lower) {
            let mut ask = |op, lba: u64, blocks| parts.push((op, port.at(lba), blocks));
            match lower.what {
                Asked::Extents { .. } => {
                    let runs = above.layer.extents(lower.id).iter();
                    runs.for_each(|run| ask(Op::Read, run.at.raw().into(), run.blocks.into()));
                }
                Asked::Read(range) => ask(Op::Read, range.lba.raw(), range.blocks),
                Asked::Write(range, _) => ask(Op::Write, range.lba.raw(), range.blocks),
                Asked::Trim(range) => ask(Op::Trim, range.lba.raw(), range.blocks),
                Asked::Flush => parts.push((Op::Flush, 0, 0)),
                // A layer has no zones and does not remap.
                Asked::Remap | Asked::Reset(_) | Asked::Finish(_) | Asked::Report(_) => {}
            }
        }
        if parts.is_empty() {
            self.fly(sent, Answer::failed(now));
            return Ok(());
        }
        for (op, _, blocks) in &parts {
            port.asked.count(*op, *blocks);
        }
        let answer = Answer { at: now, delay: Delay::None, failed: false };
        let owner = Owner::Layer(self.groups.insert(Group { left: parts.len(), answer, sent }));
        for (op, at, blocks) in parts {
            let steps = whole_step_of(op, at * 4096, blocks * 4096);
            self.enter(below, Request::new(owner, now, (op, false), steps), now)?;
        }
        Ok(())
    }

    /// The end of a request to a place below is known.
    fn fly(&mut self, sent: Sent, Answer { at, delay, failed }: Answer) {
        let by_delay = self.layers[index(sent.layer)].caps.ends_by_delay;
        let rank = match delay {
            _ if !by_delay => 0,
            Delay::None => u64::from(failed),
            Delay::Host => 2 + u64::from(failed),
            Delay::Background => 4 + u64::from(failed),
        };
        self.submitted += 1;
        let order = rank << 60 | self.submitted;
        self.flights.push(Reverse(Flight { at, order, sent, delay, failed }));
    }

    /// Notes that a part of a request ended. Whether the request went on.
    fn settle(&mut self, layer: usize, done: Done, now: u64) -> Result<bool, SimError> {
        match self.layers[layer].joint.settle(done) {
            Ok(Settled::Nothing) => Ok(false),
            Ok(Settled::Over(tag)) => self.end(layer, tag, now).map(|()| false),
            Ok(Settled::GoesOn(tag)) => self.try_on(layer, tag, now).map(|()| true),
            Err((tag, why)) => self.fail(layer, tag, why, now).map(|()| false),
        }
    }

    /// A part of a request failed, or of one that nobody waits for. The request ends when all parts
    /// are over: the layer above handles it, and a load goes on. What a layer refuses to a load
    /// ends the run.
    fn fail(
        &mut self,
        layer: usize,
        tag: Option<usize>,
        why: Why,
        now: u64,
    ) -> Result<(), SimError> {
        let is_top = layer == self.top_layer();
        let joint = &mut self.layers[layer].joint;
        let found = tag.and_then(|tag| joint.request(tag).map(|found| (tag, *found)));
        let Some((tag, Request { owner, op, .. })) = found else {
            return if is_top { Err(why.error(0, "write")) } else { Ok(()) };
        };
        match owner {
            Owner::Load { number, .. } if why.is_refusal() => Err(why.error(number, op.name())),
            Owner::Layer(_) | Owner::Load { .. } if joint.fail(tag) => self.end(layer, tag, now),
            Owner::Layer(_) | Owner::Load { .. } => Ok(()),
            Owner::Nobody => Err(why.error(0, "preconditioning write")),
        }
    }

    /// A request is over.
    fn end(&mut self, layer: usize, tag: usize, now: u64) -> Result<(), SimError> {
        let Some(request) = self.layers[layer].joint.end(tag) else { return Ok(()) };
        let Request { op, issued, delay, failed, .. } = request;
        match request.owner {
            Owner::Nobody => {}
            Owner::Load { tenant, number } => {
                self.ended.push_back(Ended { tenant, number, op, issued, delay, failed });
            }
            Owner::Layer(group) => {
                let twice = || SimError::Law("what a layer asked for ended twice".to_owned());
                let Group { left, answer, sent } = self.groups.get_mut(group).ok_or_else(twice)?;
                *left -= 1;
                *answer = answer.joined(Answer { at: now, delay, failed });
                if *left == 0 {
                    let (sent, answer) = (*sent, *answer);
                    self.groups.remove(group);
                    self.fly(sent, answer);
                }
            }
        }
        Ok(())
    }

    /// When something happens by itself next.
    #[inline]
    pub(crate) fn next_event(&self) -> Option<u64> {
        let flight = self.flights.peek().map(|Reverse(flight)| flight.at);
        let due = self.layers.iter().filter_map(|above| above.layer.due()).min();
        let due = due.map(|due| due.get().saturating_sub(self.base));
        flight.into_iter().chain(due).min()
    }

    /// Does what happens at `now`, the time of the next event.
    pub(crate) fn advance(&mut self, now: u64) -> Result<(), SimError> {
        if self.flights.peek().is_some_and(|Reverse(flight)| flight.at <= now) {
            return self.land(now).map(|_| ());
        }
        for layer in 0..self.layers.len() {
            let time = self.time(now);
            if self.layers[layer].layer.due().is_some_and(|due| due <= time) {
                self.layers[layer].layer.expire(time);
                self.after_event(layer, now)?;
            }
        }
        Ok(())
    }

    /// Ends the first flight, if there is any.
    pub(crate) fn land(&mut self, now: u64) -> Result<bool, SimError> {
        let Some(Reverse(flight)) = self.flights.pop() else { return Ok(false) };
        let Flight { delay, failed, sent: Sent { layer, queued, id }, .. } = flight;
        let layer = index(layer);
        let time = self.time(now);
        let above = &mut self.layers[layer];
        if queued {
            above.queue.ended();
        }
        above.layer.completed(time, id, delay, failed);
        self.after_event(layer, now)?;
        Ok(true)
    }

    /// Follows an event of a layer: what it asks for, what ended, and what waited for it.
    fn after_event(&mut self, layer: usize, now: u64) -> Result<(), SimError> {
        self.follow(layer, now)?;
        if self.layers[layer].joint.waiting() == 0 { Ok(()) } else { self.retry(layer, now) }
    }

    /// Tries again what was refused, in its order: behind a change that is refused again, no other
    /// one is taken.
    fn retry(&mut self, layer: usize, now: u64) -> Result<(), SimError> {
        let (mut from, mut changes) = (0, true);
        loop {
            let Above { joint, caps, .. } = &mut self.layers[layer];
            if joint.is_full(caps) {
                break;
            }
            let Some((at, waiting)) = joint.take_waiting(from, changes) else { break };
            from = at;
            if !self.go_on(layer, waiting.tag, now)? {
                self.layers[layer].joint.wait_on(at, waiting);
                changes &= !waiting.is_change;
                from += 1;
            }
        }
        self.turn(layer, now)
    }

    /// Lets everything under way end, and begins the time of the run.
    pub(crate) fn begin(&mut self, timed: bool) -> Result<(), SimError> {
        while self.land(0)? {}
        self.ended.clear();
        self.stalls.clear();
        self.set_timed(timed);
        let now = self.time(0);
        for above in &mut self.layers {
            above.layer.begin(now);
            above.queue.limit(above.caps.depth);
            if !above.caps.reads_again {
                above.ports.iter_mut().for_each(Port::drop_bytes);
            }
        }
        Ok(())
    }

    /// No request comes any more: what waits for a layer or a device is submitted.
    pub(crate) fn finish(&mut self, now: u64) -> Result<(), SimError> {
        for layer in (0..self.layers.len()).rev() {
            let above = &mut self.layers[layer];
            above.layer.finish();
            above.queue.limit(None);
            self.follow(layer, now)?;
        }
        Ok(())
    }

    /// What a place was asked for from above: devices count it themselves.
    pub(crate) fn asked_of(&self, place: usize) -> HostStats {
        match self.at(place) {
            At::Device(device) => *self.devices[device].host_stats(),
            at @ At::Layer(_) => {
                let mut ports = self.layers.iter().flat_map(|above| &above.ports);
                let port = ports.find(|port| port.below == at);
                port.map_or_else(HostStats::default, |port| port.asked)
            }
        }
    }

    /// The block namespace, if it is all there is.
    pub(crate) fn into_drive(mut self) -> Option<onefold_ssd::Ssd<onefold_nand::NullMedia>> {
        match self.devices.pop()? {
            Device::Blocks(ssd) => Some(*ssd),
            Device::Zones(_) | Device::Concatenated(_) => None,
        }
    }

    /// Kind of the layer of a place in results.
    pub(crate) fn kind_of(&self, place: usize) -> &'static str {
        match self.layer_at::<VolumeLayer>(place) {
            Some(layer) => layer.config.mode.name(),
            None => "dmz",
        }
    }

    /// Blocks that the device of a place maps as one.
    pub(crate) fn blocks_per_unit(&self, at: At) -> u64 {
        match at {
            At::Device(device) => self.devices[device].pages_per_unit(),
            At::Layer(layer) => {
                let port = self.layers[layer].ports.first();
                port.map_or(1, |port| self.blocks_per_unit(port.below))
            }
        }
    }
}

/// The number of the request of the load that a read is for, if it is for one.
fn number_of(joint: &Joint, what: Asked) -> u64 {
    let Asked::Extents { tag } = what else { return 0 };
    match joint.request(index64(tag)).map(|request| request.owner) {
        Some(Owner::Load { number, .. }) => number,
        _ => 0,
    }
}

/// Pages of all devices; space of the last one, as zones come last.
impl Windowed for Stack {
    fn programs(&self) -> onefold_units::CauseCounts {
        let mut sum = onefold_units::CauseCounts::default();
        self.devices.iter().for_each(|device| add(&mut sum, &device.programs()));
        sum
    }

    fn erases(&self) -> u64 {
        self.devices.iter().map(Windowed::erases).sum()
    }

    fn free(&self) -> u32 {
        self.devices.last().map_or(0, Windowed::free)
    }
}
