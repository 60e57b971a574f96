//! A stack of layers on devices, in virtual time.
//!
//! Places are numbered from the devices upwards. A request goes down from joint to layer to port
//! until it meets a device, which says at once when it will be over; that end flies until its time
//! comes, and goes up by events. A lower layer never calls an upper one.
//!
//! No bytes of blocks are kept, but those of headers and maps that a layer reads again
//! (`port.rs`).

mod both;
mod command;
mod counted;
mod device;
mod fill;
mod finished;
mod joint;
pub(crate) mod layer;
mod opening;
mod outcome;
mod port;
mod run;
mod volume;
mod zoned;
mod zoned_result;

use std::any::Any;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

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
pub(crate) use run::{simulate, simulate_on};
pub(crate) use volume::VolumeLayer;
pub(crate) use zoned::ZonedLayer;

/// A device, or a layer above others.
pub(crate) struct Place {
    pub(crate) name: String,
    pub(crate) kind: Kind,
}

/// What is at a place.
pub(crate) enum Kind {
    Device(Box<Device>),
    Layer(Above),
}

/// A layer with its joint and its ports.
pub(crate) struct Above {
    pub(crate) layer: Box<dyn Layer>,
    joint: Joint,
    pub(crate) ports: Vec<Port>,
    /// What the layer can do, which stays as it is.
    caps: Caps,
}

/// A request to a device or a lower layer that ended, or will at a known time. By time, then in
/// the order that its layer wants, then in that of submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Flight {
    at: u64,
    rank: (Delay, bool),
    number: u64,
    /// The layer that asked, and its port.
    place: u32,
    port: u32,
    id: LowerId,
    delay: Delay,
    failed: bool,
    /// Another request waits for it to end.
    queued: bool,
}

/// Requests to a lower layer that end as one.
struct Group {
    left: usize,
    answer: Answer,
    port: usize,
    queued: bool,
}

/// A request of the load that ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ended {
    pub(crate) tenant: usize,
    pub(crate) number: u64,
    pub(crate) op: Op,
    pub(crate) issued: u64,
    pub(crate) delay: Delay,
}

/// Places, from the devices upwards; the last one is the top.
#[derive(Default)]
pub(crate) struct Stack {
    pub(crate) places: Vec<Place>,
    flights: BinaryHeap<Reverse<Flight>>,
    submitted: u64,
    groups: BTreeMap<(usize, LowerId), Group>,
    /// Time of the layers when the run began.
    pub(crate) base: u64,
    pub(crate) ended: VecDeque<Ended>,
    /// Requests of the load that had to wait, by their number.
    pub(crate) stalls: VecDeque<(u64, Stall)>,
}

impl Stack {
    pub(crate) fn top(&self) -> usize {
        self.places.len() - 1
    }

    /// Adds a device. Gives its place.
    pub(crate) fn add_device(&mut self, name: &str, mut device: Device) -> usize {
        device.set_timed(false);
        self.add(name, Kind::Device(Box::new(device)))
    }

    pub(crate) fn add_layer(
        &mut self,
        name: &str,
        layer: Box<dyn Layer>,
        ports: Vec<Port>,
    ) -> usize {
        self.add(
            name,
            Kind::Layer(Above { caps: layer.caps(), layer, joint: Joint::default(), ports }),
        )
    }

    fn add(&mut self, name: &str, kind: Kind) -> usize {
        self.places.push(Place { name: name.to_owned(), kind });
        self.top()
    }

    /// The layer at a place, if there is one of that type.
    pub(crate) fn layer_at<L: Layer>(&self, place: usize) -> Option<&L> {
        let Kind::Layer(above) = &self.places[place].kind else { return None };
        (&*above.layer as &dyn Any).downcast_ref()
    }

    pub(crate) fn above(&self, place: usize) -> Option<&Above> {
        match &self.places[place].kind {
            Kind::Layer(above) => Some(above),
            Kind::Device(_) => None,
        }
    }

    fn above_mut(&mut self, place: usize) -> Option<&mut Above> {
        match &mut self.places[place].kind {
            Kind::Layer(above) => Some(above),
            Kind::Device(_) => None,
        }
    }

    /// The devices, in the order of their places.
    pub(crate) fn devices(&self) -> impl Iterator<Item = &Device> {
        self.places.iter().filter_map(|place| match &place.kind {
            Kind::Device(device) => Some(&**device),
            Kind::Layer(_) => None,
        })
    }

    fn devices_mut(&mut self) -> impl Iterator<Item = &mut Device> {
        self.places.iter_mut().filter_map(|place| match &mut place.kind {
            Kind::Device(device) => Some(&mut **device),
            Kind::Layer(_) => None,
        })
    }

    pub(crate) fn set_timed(&mut self, timed: bool) {
        self.devices_mut().for_each(|device| device.set_timed(timed));
    }

    /// Blocks of 4 KiB at a place.
    pub(crate) fn blocks(&self, place: usize) -> u64 {
        match &self.places[place].kind {
            Kind::Device(device) => device.blocks(),
            Kind::Layer(above) => above.caps.blocks,
        }
    }

    /// What the top can do.
    pub(crate) fn caps(&self) -> Caps {
        match &self.places[self.top()].kind {
            Kind::Layer(above) => above.caps,
            Kind::Device(device) => Caps {
                blocks: device.blocks(),
                read_max: u32::MAX,
                write_max: u32::MAX,
                requests_max: usize::MAX,
                whole_blocks: false,
            },
        }
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
        if !self.caps().whole_blocks {
            return Ok(steps_of(op, offset, len));
        }
        if !(offset | len).is_multiple_of(4096) {
            let what = format!("{} of {len} B at byte {offset}", op.name());
            return Err(SimError::ZoneAlignment { request, what });
        }
        Ok(whole_step_of(op, offset, len))
    }

    /// CPU time of the host for a request to the top, in ns.
    pub(crate) fn busy_ns(&self, blocks: Option<Range>) -> u64 {
        self.above(self.top()).map_or(0, |above| above.layer.busy_ns(blocks))
    }

    const fn time(&self, now: u64) -> Nanos {
        Nanos::new(self.base + now)
    }

    /// Takes a request to a layer.
    pub(crate) fn enter(
        &mut self,
        place: usize,
        request: Request,
        now: u64,
    ) -> Result<(), SimError> {
        let time = self.time(now);
        let Some(Above { layer, joint, caps, .. }) = self.above_mut(place) else { return Ok(()) };
        let tag = joint.begin(request);
        if joint.has_to_wait(tag, *caps) {
            joint.refuse(tag, time, &**layer);
        } else {
            self.try_on(place, tag, now)?;
        }
        self.turn(place, now)
    }

    /// Asks for what is left of a request, which waits if it is refused.
    fn try_on(&mut self, place: usize, tag: usize, now: u64) -> Result<(), SimError> {
        if !self.go_on(place, tag, now)? {
            let time = self.time(now);
            let Some(Above { layer, joint, .. }) = self.above_mut(place) else { return Ok(()) };
            joint.refuse(tag, time, &**layer);
        }
        Ok(())
    }

    /// Asks for what is left of a request. `false` if it was refused: try again later.
    fn go_on(&mut self, place: usize, tag: usize, now: u64) -> Result<bool, SimError> {
        let time = self.time(now);
        let Kind::Layer(Above { layer, joint, caps, .. }) = &mut self.places[place].kind else {
            return Ok(true);
        };
        let stalls = &mut self.stalls;
        let progress = joint.go_on(tag, time, (&mut **layer, *caps), |request, stall| {
            if let Owner::Load { number, .. } = request.owner {
                stalls.push_back((number, stall));
            }
        });
        let refused = match progress {
            Ok(Progress::Over) => {
                self.end(place, tag, now)?;
                false
            }
            Ok(progress) => matches!(progress, Progress::Refused),
            Err(why) => {
                self.fail(place, Some(tag), why, now)?;
                false
            }
        };
        Ok(!refused)
    }

    /// Lets a layer go on after requests were submitted.
    fn turn(&mut self, place: usize, now: u64) -> Result<(), SimError> {
        let time = self.time(now);
        if let Some(above) = self.above_mut(place) {
            above.layer.turn(time);
        }
        self.follow(place, now)
    }

    /// Submits what a layer asks for, and notes what ended.
    fn follow(&mut self, place: usize, now: u64) -> Result<(), SimError> {
        while let Some(above) = self.above_mut(place)
            && let Some(output) = above.layer.poll()
        {
            match output {
                Output::Lower(lower) => {
                    if let Some(lower) = above.ports[lower.port].queue.push(lower) {
                        self.carry_out(place, &lower, now, false)?;
                    }
                }
                Output::Done(done) => self.settle(place, done, now)?,
            }
        }
        let waits = |above: &Above| above.ports.iter().any(|port| port.queue.holds());
        if self.above(place).is_some_and(waits) { self.submit_queued(place, now) } else { Ok(()) }
    }

    fn submit_queued(&mut self, place: usize, now: u64) -> Result<(), SimError> {
        let ports = self.above(place).map_or(0, |above| above.ports.len());
        for port in 0..ports {
            while let Some(above) = self.above_mut(place)
                && let Some(lower) = above.ports[port].queue.pop()
            {
                self.carry_out(place, &lower, now, true)?;
            }
        }
        Ok(())
    }

    /// Has the place below do what a layer asks for.
    fn carry_out(
        &mut self,
        place: usize,
        lower: &Lower,
        now: u64,
        queued: bool,
    ) -> Result<(), SimError> {
        let (below, from) = self.places.split_at_mut(place);
        let Kind::Layer(Above { layer, ports, .. }) = &mut from[0].kind else { return Ok(()) };
        let port = &mut ports[lower.port];
        let Kind::Device(device) = &mut below[port.below].kind else {
            return self.ask_layer(place, lower, now, queued);
        };
        let answer = port.execute(now, (&mut **layer, lower), device);
        let answer = answer.map_err(|error| {
            let number = self.number_of(place, lower.what);
            error.of_request(number, "read of the volume".to_owned())
        })?;
        self.fly((place, lower.port, lower.id), answer, queued);
        Ok(())
    }

    /// The number of the request of the load that a read is for, if it is for one.
    fn number_of(&self, place: usize, what: Asked) -> u64 {
        let Asked::Extents { tag } = what else { return 0 };
        let joint = self.above(place).map(|above| &above.joint);
        match joint.and_then(|joint| joint.request(index64(tag))).map(|request| request.owner) {
            Some(Owner::Load { number, .. }) => number,
            _ => 0,
        }
    }

    /// Takes what a layer asks for to the layer below.
    fn ask_layer(
        &mut self,
        place: usize,
        lower: &Lower,
        now: u64,
        queued: bool,
    ) -> Result<(), SimError> {
        let Some(Above { layer, ports, .. }) = self.above_mut(place) else { return Ok(()) };
        let port = &mut ports[lower.port];
        let below = port.below;
        let key = (place, lower.id);
        if !port.bytes(&mut **layer, lower) {
            self.fly((place, lower.port, lower.id), Answer::failed(now), queued);
            return Ok(());
        }
        let parts: Vec<(Op, u64, u64)> = match lower.what {
            Asked::Extents { .. } => {
                let read = |run: &onefold_volume::ReadRun| {
                    (Op::Read, port.at(run.at.raw().into()), run.blocks.into())
                };
                layer.extents(lower.id).iter().map(read).collect()
            }
            Asked::Read(range) => vec![(Op::Read, port.at(range.lba.raw()), range.blocks)],
            Asked::Write(range, _) => vec![(Op::Write, port.at(range.lba.raw()), range.blocks)],
            Asked::Trim(range) => vec![(Op::Trim, port.at(range.lba.raw()), range.blocks)],
            Asked::Flush => vec![(Op::Flush, 0, 0)],
            // A layer has no zones and does not remap.
            Asked::Remap | Asked::Reset(_) | Asked::Finish(_) | Asked::Report(_) => Vec::new(),
        };
        if parts.is_empty() {
            self.fly((place, lower.port, lower.id), Answer::failed(now), queued);
            return Ok(());
        }
        for (op, _, blocks) in &parts {
            port.asked.count(*op, *blocks);
        }
        let answer = Answer { at: now, delay: Delay::None, failed: false };
        let group = Group { left: parts.len(), answer, port: lower.port, queued };
        self.groups.insert(key, group);
        let owner = Owner::Layer { place, id: lower.id };
        for (op, at, blocks) in parts {
            let steps = whole_step_of(op, at * 4096, blocks * 4096);
            self.enter(below, Request::new(owner, now, (op, false), steps), now)?;
        }
        Ok(())
    }

    /// The end of a request to a place below is known.
    fn fly(&mut self, (place, port, id): (usize, usize, LowerId), answer: Answer, queued: bool) {
        let Answer { at, delay, failed } = answer;
        let by_delay = self.above(place).is_some_and(|above| above.layer.ends_by_delay());
        let rank = if by_delay { (delay, failed) } else { (Delay::None, false) };
        self.submitted += 1;
        let number = self.submitted;
        let (place, port) = (u32_from(place), u32_from(port));
        self.flights.push(Reverse(Flight {
            at,
            rank,
            number,
            place,
            port,
            id,
            delay,
            failed,
            queued,
        }));
    }

    /// Notes that a part of a request ended.
    fn settle(&mut self, place: usize, done: Done, now: u64) -> Result<(), SimError> {
        let Some(above) = self.above_mut(place) else { return Ok(()) };
        match above.joint.settle(done) {
            Ok(Settled::Nothing) => Ok(()),
            Ok(Settled::Over(tag)) => self.end(place, tag, now),
            Ok(Settled::GoesOn(tag)) => self.try_on(place, tag, now),
            Err((tag, why)) => self.fail(place, tag, why, now),
        }
    }

    /// A part of a request failed, or of one that nobody waits for. At the top that ends the run;
    /// the layer above handles it otherwise, when all parts are over.
    fn fail(
        &mut self,
        place: usize,
        tag: Option<usize>,
        why: Why,
        now: u64,
    ) -> Result<(), SimError> {
        let is_top = place == self.top();
        let Some(above) = self.above_mut(place) else { return Ok(()) };
        let found = tag.and_then(|tag| above.joint.request(tag).map(|found| (tag, *found)));
        let Some((tag, Request { owner, op, .. })) = found else {
            return if is_top { Err(why.error(0, "write")) } else { Ok(()) };
        };
        match owner {
            Owner::Layer { .. } if above.joint.fail(tag) => self.end(place, tag, now),
            Owner::Layer { .. } => Ok(()),
            Owner::Load { number, .. } => Err(why.error(number, op.name())),
            Owner::Nobody => Err(why.error(0, "preconditioning write")),
        }
    }

    /// A request is over.
    fn end(&mut self, place: usize, tag: usize, now: u64) -> Result<(), SimError> {
        let Some(above) = self.above_mut(place) else { return Ok(()) };
        let Some(request) = above.joint.end(tag) else { return Ok(()) };
        let Request { op, issued, delay, failed, .. } = request;
        match request.owner {
            Owner::Nobody => {}
            Owner::Load { tenant, number } => {
                self.ended.push_back(Ended { tenant, number, op, issued, delay });
            }
            Owner::Layer { place, id } => {
                let twice = || SimError::Law("what a layer asked for ended twice".to_owned());
                let group = self.groups.get_mut(&(place, id)).ok_or_else(twice)?;
                group.left -= 1;
                group.answer = group.answer.joined(Answer { at: now, delay, failed });
                if group.left == 0 {
                    let Group { answer, port, queued, .. } = *group;
                    self.groups.remove(&(place, id));
                    self.fly((place, port, id), answer, queued);
                }
            }
        }
        Ok(())
    }

    /// When something happens by itself next.
    #[inline]
    pub(crate) fn next_event(&self) -> Option<u64> {
        let flight = self.flights.peek().map(|Reverse(flight)| flight.at);
        let due = self.places.iter().filter_map(|place| self.due_at(place)).min();
        flight.into_iter().chain(due).min()
    }

    fn due_at(&self, place: &Place) -> Option<u64> {
        match &place.kind {
            Kind::Layer(above) => above.layer.due().map(|due| due.get().saturating_sub(self.base)),
            Kind::Device(_) => None,
        }
    }

    /// Does what happens at `now`, the time of the next event.
    pub(crate) fn advance(&mut self, now: u64) -> Result<(), SimError> {
        if self.flights.peek().is_some_and(|Reverse(flight)| flight.at <= now) {
            return self.land(now).map(|_| ());
        }
        for place in 0..self.places.len() {
            if self.due_at(&self.places[place]).is_some_and(|due| due <= now) {
                let time = self.time(now);
                if let Some(above) = self.above_mut(place) {
                    above.layer.expire(time);
                }
                self.after_event(place, now)?;
            }
        }
        Ok(())
    }

    /// Ends the first flight, if there is any.
    pub(crate) fn land(&mut self, now: u64) -> Result<bool, SimError> {
        let Some(Reverse(flight)) = self.flights.pop() else { return Ok(false) };
        let Flight { place, port, id, delay, failed, queued, .. } = flight;
        let (place, port) = (index(place), index(port));
        let time = self.time(now);
        if let Some(above) = self.above_mut(place) {
            if queued {
                above.ports[port].queue.ended();
            }
            above.layer.completed(time, id, delay, failed);
        }
        self.after_event(place, now)?;
        Ok(true)
    }

    /// Follows an event of a layer: what it asks for, what ended, and what waited for it.
    fn after_event(&mut self, place: usize, now: u64) -> Result<(), SimError> {
        self.follow(place, now)?;
        self.retry(place, now)
    }

    /// Tries again what was refused, in its order: behind a change that is refused again, no other
    /// one is taken.
    fn retry(&mut self, place: usize, now: u64) -> Result<(), SimError> {
        let waiting = self.above(place).map_or(0, |above| above.joint.waiting());
        if waiting == 0 {
            return Ok(());
        }
        let mut refused = false;
        for _ in 0..waiting {
            let Some(Above { joint, caps, .. }) = self.above_mut(place) else { break };
            let full = joint.under_way() - joint.waiting() >= caps.requests_max;
            let Some(tag) = joint.next_waiting() else { break };
            let change = joint.is_change(tag);
            if full || (change && refused) || !self.go_on(place, tag, now)? {
                refused |= change;
                if let Some(above) = self.above_mut(place) {
                    above.joint.wait_on(tag);
                }
            }
        }
        self.turn(place, now)
    }

    /// Lets everything under way end, and begins the time of the run.
    pub(crate) fn begin(&mut self, timed: bool) -> Result<(), SimError> {
        while self.land(0)? {}
        self.ended.clear();
        self.stalls.clear();
        self.set_timed(timed);
        let now = self.time(0);
        for place in &mut self.places {
            if let Kind::Layer(above) = &mut place.kind {
                above.layer.begin(now);
                if let Some(port) = above.ports.first_mut() {
                    port.queue.limit(above.layer.depth());
                }
                if !above.layer.reads_again() {
                    above.ports.iter_mut().for_each(Port::drop_bytes);
                }
            }
        }
        Ok(())
    }

    /// No request comes any more: what waits for a layer or a device is submitted.
    pub(crate) fn finish(&mut self, now: u64) -> Result<(), SimError> {
        for place in (0..self.places.len()).rev() {
            if let Some(above) = self.above_mut(place) {
                above.layer.finish();
                above.ports.iter_mut().for_each(|port| port.queue.limit(None));
            }
            self.follow(place, now)?;
        }
        Ok(())
    }

    /// What a place was asked for from above: devices count it themselves.
    pub(crate) fn asked_of(&self, place: usize) -> HostStats {
        match &self.places[place].kind {
            Kind::Device(device) => *device.host_stats(),
            Kind::Layer(_) => {
                let ports = self.places.iter().filter_map(|place| match &place.kind {
                    Kind::Layer(above) => Some(&above.ports),
                    Kind::Device(_) => None,
                });
                let port = ports.flatten().find(|port| port.below == place);
                port.map_or_else(HostStats::default, |port| port.asked)
            }
        }
    }

    /// The block namespace, if it is all there is.
    pub(crate) fn into_drive(mut self) -> Option<onefold_ssd::Ssd<onefold_nand::NullMedia>> {
        match self.places.pop()?.kind {
            Kind::Device(device) => match *device {
                Device::Blocks(ssd) => Some(*ssd),
                Device::Zones(_) | Device::Both(_) => None,
            },
            Kind::Layer(_) => None,
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
    pub(crate) fn blocks_per_unit(&self, place: usize) -> u64 {
        match &self.places[place].kind {
            Kind::Device(device) => device.pages_per_unit(),
            Kind::Layer(above) => {
                let below = above.ports.first().map(|port| port.below);
                below.map_or(1, |below| self.blocks_per_unit(below))
            }
        }
    }
}

/// Pages of all devices; space of the last one, as zones come last.
impl Windowed for Stack {
    fn programs(&self) -> onefold_units::CauseCounts {
        let mut sum = onefold_units::CauseCounts::default();
        self.devices().for_each(|device| add(&mut sum, &device.programs()));
        sum
    }

    fn free(&self) -> u32 {
        self.devices().last().map_or(0, Windowed::free)
    }
}
