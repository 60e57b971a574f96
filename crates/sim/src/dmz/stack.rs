//! A zoned volume on its devices, and what they have under way.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use onefold_config::ZonedVolume;
use onefold_ftl::FtlStats;
use onefold_nand::{Delay, NullMedia};
use onefold_ssd::zns::{Zns, ZnsConfig, ZnsMedia, ZnsStats};
use onefold_ssd::{HostStats, Ssd};
use onefold_units::convert::{index64, narrow};
use onefold_units::{Nanos, Op};
use onefold_zoned::{
    Done, Failure, Identity, Io, IoFailed, IoId, REQUESTS_MAX, Request, Stats, Volume, format,
    mount,
};

use super::below::{Below, told};
use super::queue::Queue;
use crate::SimError;
use crate::control::Control;
use crate::events::{Ended, Layers, Refused, Taken};
use crate::request::{self, Steps, Work, whole_step_of};
use crate::series::Windowed;

const BLOCK: u64 = 4096;

/// Blocks of a write that fills the volume before the run.
const FILL_BLOCKS: u64 = 256;

/// Time of the volume per block that is written before the run, as if that went at 1 GB/s.
const FILL_NS_PER_BLOCK: u64 = 4096;

/// A command on a device, ordered by the time it ends, then by submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Flight {
    at: u64,
    number: u64,
    id: IoId,
    delay: Delay,
    failed: bool,
    /// Another request waits for it to end.
    queued: bool,
}

/// What a zoned volume and its devices count.
#[derive(Default)]
pub(super) struct Counted {
    pub(super) volume: Stats,
    pub(super) regular: FtlStats,
    pub(super) zns: ZnsStats,
    /// What each device was asked for.
    pub(super) received: Vec<HostStats>,
}

/// A zoned volume on its devices.
pub(super) struct Stack {
    pub(super) volume: Volume,
    pub(super) below: Below,
    queue: Queue,
    flights: BinaryHeap<Reverse<Flight>>,
    submitted: u64,
    /// Time of the volume when the run began.
    pub(super) base: u64,
    /// What the load met last.
    delay: Delay,
    ended: VecDeque<Ended<Failure>>,
}

impl Stack {
    /// An empty volume on fresh devices.
    pub(super) fn new(config: &ZonedVolume, zns: &ZnsConfig, seed: u64) -> Result<Self, SimError> {
        let regular = match &config.regular {
            Some(regular) => Some(Ssd::new(regular.ssd(seed)?, NullMedia)?),
            None => None,
        };
        let mut below = Below::new(regular, Zns::new(*zns, ZnsMedia::NULL)?);
        let device_uuids = vec![[8; 16]; config.geometry.devices()];
        let identity = Identity { label: [0; 32], uuid: [7; 16], device_uuids };
        let failed = |what| move |source| SimError::ZonedMount { what, source };
        format(&mut below, &config.geometry, &identity).map_err(failed("made"))?;
        let options = config.options.clone();
        let opened = mount(&mut below, &config.geometry, options, Nanos::ZERO);
        let (volume, _) = opened.map_err(failed("opened"))?;
        Ok(Self {
            volume,
            below,
            queue: Queue::default(),
            flights: BinaryHeap::new(),
            submitted: 0,
            base: 0,
            delay: Delay::None,
            ended: VecDeque::new(),
        })
    }

    /// Begins the time of the run, in which only so many requests are submitted to the regular
    /// device at once.
    pub(super) fn begin(&mut self, regular_depth: Option<u64>) {
        self.below.set_timed();
        self.queue.limit(regular_depth);
    }

    /// Writes a share of the volume from its first block on, without time.
    pub(super) fn fill(&mut self, share: f64, control: &Control<'_>) -> Result<(), SimError> {
        let blocks = onefold_units::convert::float(self.volume.blocks());
        let end = onefold_units::convert::floor_u64(share * blocks + 0.5);
        let mut tag = 1 << 32;
        for lba in (0..end).step_by(index64(FILL_BLOCKS)) {
            control.go_on()?;
            let blocks = narrow(FILL_BLOCKS.min(end - lba));
            let request = Request::Write { lba, blocks, fua: false, data: Vec::new() };
            tag += 1;
            self.base += FILL_NS_PER_BLOCK * u64::from(blocks);
            let taken = self.volume.submit(Nanos::new(self.base), tag, request);
            let what = "preconditioning write";
            taken.map_err(|refusal| SimError::ZonedRefused { request: 0, what, refusal })?;
            self.follow(0);
            while self.volume.requests_under_way() > 0 || !self.flights.is_empty() {
                if self.flights.is_empty() {
                    let due = self.volume.poll_timeout().ok_or(SimError::VolumeStuck)?;
                    self.base = self.base.max(due.get());
                    self.advance(0);
                }
                self.land(0);
            }
            while let Some(ended) = self.ended.pop_front() {
                ended.result.map_err(|failure| Self::error(failure, 0, what))?;
            }
        }
        Ok(())
    }

    /// Ends the first flight.
    fn land(&mut self, now: u64) {
        let Some(Reverse(Flight { id, delay, failed, queued, .. })) = self.flights.pop() else {
            return;
        };
        if queued {
            self.queue.ended();
        }
        let result = if failed { Err(IoFailed::Error) } else { Ok(()) };
        self.delay = delay;
        self.volume.completed(Nanos::new(self.base + now), id, result);
        self.follow(now);
    }

    /// Submits what the volume asks for, and notes what ended.
    fn follow(&mut self, now: u64) {
        while let Some(io) = self.volume.poll_io() {
            if let Some(io) = self.queue.push(io) {
                self.execute(now, &io, false);
            }
        }
        self.submit_queued(now);
        while let Some(Done { tag, result, .. }) = self.volume.poll_done() {
            self.ended.push_back(Ended { tag, delay: self.delay, result });
        }
    }

    /// Has a device do what the volume asks for.
    fn execute(&mut self, now: u64, io: &Io, queued: bool) {
        let time = Nanos::new(now);
        let (at, delay, failed) = told(self.below.execute(time, io), time);
        self.submitted += 1;
        let (at, number, id) = (at.get(), self.submitted, io.id);
        self.flights.push(Reverse(Flight { at, number, id, delay, failed, queued }));
    }

    fn submit_queued(&mut self, now: u64) {
        while let Some(io) = self.queue.pop() {
            self.execute(now, &io, true);
        }
    }
}

impl Layers for Stack {
    type Counters = Counted;
    type Failure = Failure;

    fn counters(&self) -> Counted {
        Counted {
            volume: self.volume.stats().clone(),
            regular: self.below.regular_stats(),
            zns: self.below.zns.stats(),
            received: self.below.received(),
        }
    }

    fn device(&self) -> &impl Windowed {
        &self.below
    }

    fn requests_max(&self) -> usize {
        REQUESTS_MAX
    }

    /// A zoned volume takes whole blocks.
    fn steps(&self, request: u64, op: Op, offset: u64, len: u64) -> Result<Steps, SimError> {
        if !(offset | len).is_multiple_of(BLOCK) {
            let what = format!("{} of {len} B at byte {offset}", op.name());
            return Err(SimError::ZoneAlignment { request, what });
        }
        Ok(whole_step_of(op, offset, len))
    }

    fn submit(
        &mut self,
        now: u64,
        tag: u64,
        request: &request::Request,
        work: Work,
    ) -> Result<Taken, Refused> {
        self.delay = Delay::None;
        let (asked, blocks) = in_words_of_the_volume(work, request.fua);
        match self.volume.submit(Nanos::new(self.base + now), tag, asked) {
            Ok(()) => Ok(Taken { blocks, later: true }),
            Err(refusal) => Err(Refused::Never(SimError::ZonedRefused {
                request: request.number,
                what: request.op.name(),
                refusal,
            })),
        }
    }

    fn turn(&mut self, now: u64) {
        self.follow(now);
    }

    fn next_event(&self) -> Option<u64> {
        let flight = self.flights.peek().map(|Reverse(flight)| flight.at);
        let timeout = self.volume.poll_timeout().map(|at| at.get().saturating_sub(self.base));
        flight.into_iter().chain(timeout).min()
    }

    fn advance(&mut self, now: u64) {
        match self.flights.peek() {
            Some(Reverse(flight)) if flight.at <= now => self.land(now),
            _ => {
                self.volume.handle_timeout(Nanos::new(self.base + now));
                self.follow(now);
            }
        }
    }

    fn poll_ended(&mut self) -> Option<Ended<Failure>> {
        self.ended.pop_front()
    }

    fn error(failure: Failure, request: u64, what: &'static str) -> SimError {
        SimError::ZonedVolume { request, what, failure }
    }

    /// What waits for the regular device is submitted.
    fn finish(&mut self, now: u64) {
        self.queue.limit(None);
        self.submit_queued(now);
    }
}

/// A step of a request in the words of the volume, and its blocks. Differs from the kernel target
/// only in name: write-zeroes are discards there as well.
fn in_words_of_the_volume(work: Work, fua: bool) -> (Request, u64) {
    match work {
        Work::Read(range) => {
            (Request::Read { lba: range.lba.raw(), blocks: narrow(range.blocks) }, range.blocks)
        }
        Work::Write(range) => {
            let (lba, blocks) = (range.lba.raw(), narrow(range.blocks));
            (Request::Write { lba, blocks, fua, data: Vec::new() }, range.blocks)
        }
        Work::Trim(range) => {
            (Request::Discard { lba: range.lba.raw(), blocks: narrow(range.blocks) }, range.blocks)
        }
        Work::Flush => (Request::Flush, 1),
    }
}
