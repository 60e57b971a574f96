//! The contract between a layer and its driver, in virtual time.
//!
//! A layer takes requests from above and issues requests of its own to the places below, over
//! numbered ports. It knows no driver and no time of its own: `now` is handed in and never goes
//! back.
//!
//! **Calling order.** After any number of [`Layer::submit`] comes one [`Layer::turn`]. After that,
//! and after each [`Layer::completed`] or [`Layer::expire`], [`Layer::poll`] is called until it
//! gives nothing. Driving them is the business of `super::Stack`.

use std::any::Any;

use onefold_nand::Delay;
use onefold_units::{Nanos, ZoneId};
use onefold_volume::{Range, ReadRun, Refusal, Relocation, ZoneStatus};

use crate::SimError;
pub(crate) use crate::request::LowerId;
use crate::request::Work;

/// What a layer can do, where requests to it have to be cut, and how it is driven. All of it stays as
/// it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Caps {
    /// Blocks of 4 KiB that it exports.
    pub(crate) blocks: u64,
    /// Blocks of a read at most.
    pub(crate) read_max: u32,
    /// Blocks of a write at most.
    pub(crate) write_max: u32,
    /// Requests that may be under way.
    pub(crate) requests_max: usize,
    /// Only whole blocks are taken. If not, edges of blocks are read before they are written.
    pub(crate) whole_blocks: bool,
    /// It reads what it wrote while it runs, so that ports have to keep the bytes.
    pub(crate) reads_again: bool,
    /// Ends of requests at the same time are told in the order of what they waited for; otherwise
    /// they are in the order of submission.
    pub(crate) ends_by_delay: bool,
    /// Requests at once to its first place below while it runs; `None`: any number.
    pub(crate) depth: Option<u64>,
    /// How it is filled before a run.
    pub(crate) filling: Filling,
}

/// How a layer is filled before a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Filling {
    /// Requests of the layer that may be under way when the next write comes.
    pub(crate) in_flight: usize,
    /// It is overwritten in units of the device; otherwise it is only filled, block after block.
    pub(crate) by_units: bool,
}

impl Caps {
    /// A layer of so many whole blocks that takes all that comes, and asks for nothing special.
    pub(crate) const fn of_blocks(blocks: u64) -> Self {
        Self {
            blocks,
            read_max: u32::MAX,
            write_max: u32::MAX,
            requests_max: usize::MAX,
            whole_blocks: true,
            reads_again: false,
            ends_by_delay: false,
            depth: None,
            filling: Filling { in_flight: 0, by_units: false },
        }
    }
}

/// So many blocks of a request were taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Taken {
    pub(crate) blocks: u64,
    /// Whether [`Layer::poll`] will tell the end; if not, it is over.
    pub(crate) later: bool,
}

/// Nothing of a request was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// To be tried again when something has happened.
    Busy,
    /// For good.
    Never(Why),
}

/// Why a layer refuses a request, or could not do it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// A volume refuses.
    Volume(Refusal),
    /// A volume could not, because the place below failed.
    VolumeFailed,
    /// A zoned volume refuses.
    Zoned(onefold_zoned::Refusal),
    /// A zoned volume could not.
    ZonedFailed(onefold_zoned::Failure),
}

impl Why {
    /// Whether the layer would not, rather than could not.
    pub(crate) const fn is_refusal(self) -> bool {
        matches!(self, Self::Volume(_) | Self::Zoned(_))
    }

    /// The error of a run, for a request by its number.
    pub(crate) const fn error(self, request: u64, what: &'static str) -> SimError {
        match self {
            Self::Volume(refusal) => SimError::Volume { what, refusal },
            Self::VolumeFailed => SimError::VolumeFailed,
            Self::Zoned(refusal) => SimError::ZonedRefused { request, what, refusal },
            Self::ZonedFailed(failure) => SimError::ZonedVolume { request, what, failure },
        }
    }
}

/// A part of a request that ended. A tag that no request has is that of one nobody waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Done {
    pub(crate) tag: u64,
    /// What it waited for.
    pub(crate) delay: Delay,
    pub(crate) result: Result<(), Why>,
}

/// What a layer says when it is polled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Output {
    Lower(Lower),
    Done(Done),
}

/// A request to a place below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lower {
    pub(crate) id: LowerId,
    /// Which of the places below.
    pub(crate) port: usize,
    pub(crate) what: Asked,
}

/// What a layer asks of a place below. Ranges are in its blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// Blocks into [`Layer::buffer_mut`].
    Read(Range),
    /// The blocks of [`Layer::extents`], for a request from above.
    Extents {
        /// That of the request.
        tag: u64,
    },
    /// Blocks of [`Layer::buffer`], which belong to a write stream.
    Write(Range, u16),
    Flush,
    Trim(Range),
    /// What [`Layer::moves`] says.
    Remap,
    Reset(ZoneId),
    Finish(ZoneId),
    /// [`Layer::zone_told`] gets the answer.
    Report(ZoneId),
}

/// How a request to a place below ended, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Answer {
    /// In ns of the run.
    pub(crate) at: u64,
    pub(crate) delay: Delay,
    pub(crate) failed: bool,
}

impl Answer {
    /// It failed at once.
    pub(crate) const fn failed(at: u64) -> Self {
        Self { at, delay: Delay::None, failed: true }
    }

    /// The end of two requests of which one is a part of the other.
    pub(crate) fn joined(self, other: Self) -> Self {
        Self {
            at: self.at.max(other.at),
            delay: self.delay.max(other.delay),
            failed: self.failed || other.failed,
        }
    }
}

/// A layer above others.
pub(crate) trait Layer: Any {
    /// What it can do. Asked once.
    fn caps(&self) -> Caps;

    /// Takes a part of a request, which the layer knows as `tag`.
    ///
    /// # Errors
    /// [`Refused::Busy`] if it is to be tried again after something has happened.
    fn submit(&mut self, now: Nanos, tag: u64, work: Work, fua: bool) -> Result<Taken, Refused>;

    /// Lets everything go on that can.
    fn turn(&mut self, now: Nanos);

    /// When [`Layer::expire`] has to be called although nothing else happens.
    fn due(&self) -> Option<Nanos>;

    /// Does what was due.
    fn expire(&mut self, now: Nanos);

    /// What is to be done for it next: requests to places below come before parts that ended.
    fn poll(&mut self) -> Option<Output>;

    /// A request to a place below ended.
    fn completed(&mut self, now: Nanos, id: LowerId, delay: Delay, failed: bool);

    /// The bytes of a write that the layer reads again: empty for blocks of the host, which have
    /// no bytes in virtual time.
    fn buffer(&self, _id: LowerId) -> &[u8] {
        &[]
    }

    /// Where the bytes of a read belong; empty if nobody looks at them.
    fn buffer_mut(&mut self, _id: LowerId) -> &mut [u8] {
        &mut []
    }

    /// The blocks of [`Asked::Extents`].
    fn extents(&self, _id: LowerId) -> &[ReadRun] {
        &[]
    }

    /// The moves of [`Asked::Remap`].
    fn moves(&self, _id: LowerId) -> Vec<Relocation> {
        Vec::new()
    }

    /// The answer to [`Asked::Report`].
    fn zone_told(&mut self, _id: LowerId, _status: ZoneStatus) {}

    /// CPU time of the host for a request, in ns.
    fn busy_ns(&self, _work: Option<Range>) -> u64 {
        0
    }

    /// Time until `now` in which it could not have gone on for want of space, in ns.
    fn short_ns(&self, _now: Nanos) -> u64 {
        0
    }

    /// No request comes any more: what was made of the last ones is given out by
    /// [`Layer::poll`] without a turn, so that a run ends with all that was counted as sent.
    fn finish(&mut self) {}

    /// Preconditioning is over, and the time of the run begins.
    fn begin(&mut self, _now: Nanos) {}
}
