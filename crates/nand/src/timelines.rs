//! When flash operations finish (ssd.md 1.3).
//!
//! Every resource is a timeline: the controller, the host link, each channel, each die. An operation
//! takes the earliest slot of each at or after its submission, so its completion is known at once
//! and no event queue is needed. The work itself (data, mapping) is done at submission; only the
//! answer carries the time.
//!
//! 1. Submission times never decrease.
//! 2. A die serves its operations in submission order, except host reads under read priority.
//! 3. Without cache commands a die is busy from the start of an array read to the end of its
//!    transfer, and from the start of a transfer to the end of its program: its one page register
//!    is taken.

use std::collections::VecDeque;

use onefold_units::Nanos;
use onefold_units::convert::index;

use crate::channel::Channel;
use crate::{Geometry, PageLocation, TimingSpec};

/// For whom a die works. Decides what may be overtaken and how waiting is explained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// A host request waits for it.
    Host,
    /// Collection, metadata, wear levelling.
    Background,
}

/// Why an operation did not start at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Delay {
    /// It did.
    None,
    /// It queued behind work of the host.
    Host,
    /// It queued behind background work.
    Background,
}

/// The outcome of scheduling an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// When it completes.
    pub done: Nanos,
    /// Why it waited.
    pub delay: Delay,
}

#[derive(Clone, Debug, Default)]
struct Die {
    /// Its channel.
    channel: u32,
    /// The array and its page register are free from here on.
    array_free: u64,
    /// The cache register is free from here on (cache commands only).
    cache_free: u64,
    /// End of the last background operation.
    background_until: u64,
    /// Queued work that host reads may overtake (read priority only).
    queue: Option<Box<Overtakable>>,
}

onefold_units::keep!(Die { array_free, cache_free, background_until } each { queue } but { channel });

/// The operations queued on a die, for read priority.
#[derive(Clone, Debug, Default)]
struct Overtakable {
    /// End of each queued operation, less `shift`, ascending.
    ends: VecDeque<u64>,
    /// What reads have added to every end so far.
    shift: u64,
    /// How long the present backlog has been postponed.
    postponed: u64,
}

onefold_units::keep!(Overtakable { ends, shift, postponed });

/// Timelines of one device.
#[derive(Clone, Debug)]
pub struct Timelines {
    spec: TimingSpec,
    planes_per_resource: u32,
    /// The usual transfer and its time: a division per operation would cost as much as the rest.
    usual_bytes: u32,
    usual_ns: u64,
    dies: Vec<Die>,
    channels: Vec<Channel>,
    link_in: u64,
    link_out: Channel,
    link_modelled: bool,
    controller: u64,
}

onefold_units::keep!(Timelines { link_in, link_out, controller } each { dies, channels } but { spec,
    planes_per_resource, usual_bytes, usual_ns, link_modelled });

/// Nanoseconds to move `bytes` at `rate` bytes per second, rounded up; 0 where the rate is 0.
#[inline(never)]
fn transfer_ns(bytes: u64, rate: u64) -> u64 {
    (bytes * 1_000_000_000)
        .checked_add(rate)
        .map_or(u64::MAX, |scaled| scaled.saturating_sub(1).checked_div(rate).unwrap_or(0))
}

impl Timelines {
    /// Idle timelines of a device.
    #[must_use]
    pub fn new(geometry: &Geometry, spec: TimingSpec) -> Self {
        let shape = geometry.spec();
        let planes = if spec.plane_parallel { shape.planes } else { 1 };
        let array_rate = spec.channel_rate * u64::from(shape.channels);
        let die = |at: u32| Die {
            channel: geometry.channel_of(at / planes),
            queue: (spec.read_priority > Nanos::ZERO).then(Box::default),
            ..Die::default()
        };
        Self {
            spec,
            planes_per_resource: planes,
            usual_bytes: shape.unit_bytes.min(shape.page_bytes),
            usual_ns: transfer_ns(
                u64::from(shape.unit_bytes.min(shape.page_bytes)),
                spec.channel_rate,
            ),
            dies: (0..geometry.dies() * planes).map(die).collect(),
            channels: vec![Channel::default(); index(shape.channels)],
            link_in: 0,
            link_out: Channel::default(),
            // A link at least as fast as all channels together streams along with them.
            link_modelled: spec.link_rate > 0 && (array_rate == 0 || spec.link_rate < array_rate),
            controller: 0,
        }
    }

    /// Forgets all work, as after preconditioning.
    pub fn reset(&mut self, geometry: &Geometry) {
        *self = Self::new(geometry, self.spec);
    }

    /// What these timelines were made from.
    #[must_use]
    pub const fn spec(&self) -> &TimingSpec {
        &self.spec
    }

    /// Controller work for a command over `pages` 4 KiB pages: when it may go on.
    #[inline]
    pub fn command(&mut self, now: Nanos, pages: u64) -> Nanos {
        self.work(now, self.spec.work(pages))
    }

    /// The same for a command that takes the controller so long.
    #[inline]
    pub fn work(&mut self, now: Nanos, work: Nanos) -> Nanos {
        if work == Nanos::ZERO {
            return now;
        }
        self.controller = self.controller.max(now.get()) + work.get();
        Nanos::new(self.controller)
    }

    /// Host data of `bytes` arriving over the link: when the last byte is there.
    #[inline]
    pub fn link_in(&mut self, now: Nanos, bytes: u64) -> Nanos {
        if !self.link_modelled {
            return now;
        }
        self.link_in = self.link_in.max(now.get()) + transfer_ns(bytes, self.spec.link_rate);
        Nanos::new(self.link_in)
    }

    /// Data of `bytes` leaving over the link once it is `ready`: when the last byte is out. A link
    /// slower than the channels streams behind them, so it adds its own time only past `ready`.
    #[inline]
    pub fn link_out(&mut self, now: Nanos, ready: Nanos, bytes: u64) -> Nanos {
        if self.link_modelled { self.stream_out(now, ready, bytes) } else { ready }
    }

    #[inline(never)]
    fn stream_out(&mut self, now: Nanos, ready: Nanos, bytes: u64) -> Nanos {
        let duration = transfer_ns(bytes, self.spec.link_rate);
        let start = self.link_out.reserve(now.get(), ready.get(), duration);
        Nanos::new(start + duration)
    }

    #[inline]
    fn transfer(&self, bytes: u32) -> u64 {
        if bytes == self.usual_bytes {
            self.usual_ns
        } else {
            transfer_ns(u64::from(bytes), self.spec.channel_rate)
        }
    }

    #[inline]
    fn die_index(&self, at: PageLocation) -> usize {
        if self.planes_per_resource == 1 {
            index(at.die)
        } else {
            index(at.die * self.planes_per_resource + at.plane)
        }
    }

    /// Reads a page of the array, `ready` at the earliest, and moves `bytes` of it to the
    /// controller. The array takes `times` its usual time.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "a part of each flash operation, with its many arguments"
    )]
    pub fn read(
        &mut self,
        now: Nanos,
        ready: Nanos,
        at: PageLocation,
        bytes: u32,
        work: Work,
        times: u32,
    ) -> Grant {
        let cell = self.spec.read.of_row(at.row).get() * u64::from(times);
        let transfer = self.transfer(bytes);
        let die_index = self.die_index(at);
        let die = &mut self.dies[die_index];
        let channel = &mut self.channels[index(die.channel)];
        let earliest = ready.get();
        if work == Work::Host && die.queue.is_some() {
            let bound = self.spec.read_priority.get();
            if let Some(done) = die.overtake(channel, now.get(), earliest, cell, transfer, bound) {
                return done;
            }
        }
        let start = earliest.max(die.array_free);
        let delay = die.delay(earliest, start);
        let sensed = start + cell;
        let cached = self.spec.cache_read;
        let loaded = if cached { sensed.max(die.cache_free) } else { sensed };
        let done = channel.reserve(now.get(), loaded, transfer) + transfer;
        if cached {
            die.array_free = loaded;
            die.cache_free = done;
        } else {
            die.array_free = done;
        }
        die.finish(now.get(), die.array_free, work);
        Grant { done: Nanos::new(done), delay }
    }

    /// Moves `bytes` to a die, `ready` at the earliest, and programs a page with them.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "a part of each flash operation, with its many arguments"
    )]
    pub fn program(
        &mut self,
        now: Nanos,
        ready: Nanos,
        at: PageLocation,
        bytes: u32,
        work: Work,
        times: u32,
    ) -> Grant {
        let cell = self.spec.program.of_row(at.row).get() * u64::from(times);
        let transfer = self.transfer(bytes);
        let die_index = self.die_index(at);
        let die = &mut self.dies[die_index];
        let channel = &mut self.channels[index(die.channel)];
        let earliest = ready.get();
        let register_free = if self.spec.cache_program { die.cache_free } else { die.array_free };
        let start = earliest.max(register_free);
        let delay = die.delay(earliest, start);
        let filled = channel.reserve(now.get(), start, transfer) + transfer;
        let program = filled.max(die.array_free);
        die.cache_free = program;
        die.array_free = program + cell;
        die.finish(now.get(), die.array_free, work);
        Grant { done: Nanos::new(die.array_free), delay }
    }

    /// Erases a block of a die, `ready` at the earliest.
    pub fn erase(&mut self, now: Nanos, ready: Nanos, at: PageLocation, work: Work) -> Grant {
        let die_index = self.die_index(at);
        let die = &mut self.dies[die_index];
        let start = ready.get().max(die.array_free);
        let delay = die.delay(ready.get(), start);
        die.array_free = start + self.spec.erase.get();
        die.finish(now.get(), die.array_free, work);
        Grant { done: Nanos::new(die.array_free), delay }
    }

    /// When the device has nothing left to do.
    #[must_use]
    pub fn idle_at(&self) -> Nanos {
        let busiest = self.dies.iter().map(|die| die.array_free.max(die.cache_free)).max();
        Nanos::new(busiest.unwrap_or(0))
    }
}

impl Die {
    #[inline]
    fn delay(&self, earliest: u64, start: u64) -> Delay {
        // A table, as neither could be predicted.
        const WAITED: [[Delay; 2]; 2] =
            [[Delay::None, Delay::None], [Delay::Host, Delay::Background]];
        let behind = self.background_until > earliest;
        WAITED[usize::from(start != earliest)][usize::from(behind)]
    }

    #[inline]
    fn finish(&mut self, now: u64, end: u64, work: Work) {
        if work == Work::Background {
            self.background_until = end;
        }
        if let Some(queue) = &mut self.queue {
            queue.push(now, end);
        }
    }

    /// Schedules a host read ahead of queued work. `None` where it has to queue: nothing waits, or
    /// the backlog has been postponed up to the bound.
    #[inline(never)]
    fn overtake(
        &mut self,
        channel: &mut Channel,
        now: u64,
        earliest: u64,
        cell: u64,
        transfer: u64,
        bound: u64,
    ) -> Option<Grant> {
        let queue = self.queue.as_mut()?;
        queue.drop_past(now);
        let running_end = *queue.ends.front()? + queue.shift;
        if queue.ends.len() < 2 || queue.postponed + cell + transfer > bound {
            return None;
        }
        let start = earliest.max(running_end);
        let done = channel.reserve(now, start + cell, transfer) + transfer;
        let service = done - running_end.max(now);
        queue.insert_after_first(service);
        self.array_free += service;
        if self.background_until > running_end {
            self.background_until += service;
        }
        let delay = if self.background_until > earliest { Delay::Background } else { Delay::Host };
        Some(Grant { done: Nanos::new(done), delay })
    }
}

impl Overtakable {
    fn push(&mut self, now: u64, end: u64) {
        self.drop_past(now);
        self.ends.push_back(end - self.shift);
    }

    fn drop_past(&mut self, now: u64) {
        while self.ends.front().is_some_and(|end| end + self.shift <= now) {
            self.ends.pop_front();
        }
        if self.ends.is_empty() {
            self.shift = 0;
            self.postponed = 0;
        }
    }

    /// Puts an operation of `service` behind the running one: everything after it moves back.
    fn insert_after_first(&mut self, service: u64) {
        self.postponed += service;
        if let Some(running) = self.ends.pop_front() {
            let read_end = running + self.shift + service;
            self.shift += service;
            // The read now runs; the operation that ran before it needs no entry any more, because
            // the read ends after it.
            self.ends.push_front(read_end - self.shift);
        }
    }
}

/// Transfer time of `bytes` over a channel of this device, for closed forms in tests and docs.
#[must_use]
pub fn channel_time(spec: &TimingSpec, bytes: u32) -> Nanos {
    Nanos::new(transfer_ns(u64::from(bytes), spec.channel_rate))
}
