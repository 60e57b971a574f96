//! The joint above a layer: requests that come from above, cut into what the layer takes.
//!
//! A request is taken in parts, which a layer may refuse while it is busy. It waits then, and is
//! tried again after each event of the layer; behind a change that waits no other change is taken.

use std::collections::VecDeque;

use onefold_units::Nanos;
use onefold_units::convert::{index64, u64_from};

use super::layer::{Caps, Done, Layer, Refused, Taken, Why};
use super::slots::Slots;
use crate::request::{Owner, Request};

/// A request waited because its layer was busy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stall {
    pub(crate) ns: u64,
    /// Without the time in which the layer was short of space.
    pub(crate) paced_ns: u64,
}

/// How far a request came.
pub(crate) enum Progress {
    /// All that can be asked for now is under way.
    Waits,
    /// It was refused: try it again.
    Refused,
    Over,
}

/// What the end of a part means.
pub(crate) enum Settled {
    /// Nobody waits for it, or other parts are under way.
    Nothing,
    /// The next part can be asked for.
    GoesOn(usize),
    /// It was the last part.
    Over(usize),
}

/// Requests to one layer.
#[derive(Default)]
pub(crate) struct Joint {
    /// Requests under way; their number is the tag that the layer knows them by.
    active: Slots<Request>,
    /// Requests that were refused, in their order.
    waiting: VecDeque<Waiting>,
}

/// A request that was refused.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting {
    pub(crate) tag: usize,
    pub(crate) is_change: bool,
}

impl Joint {
    /// Takes a request in. Gives its tag.
    pub(crate) fn begin(&mut self, request: Request) -> usize {
        self.active.insert(request)
    }

    pub(crate) fn under_way(&self) -> usize {
        self.active.len()
    }

    /// Whether a request has to wait before it is tried: it is a change behind another one that
    /// waits, or the layer has as many as it takes.
    pub(crate) fn has_to_wait(&self, tag: usize, caps: &Caps) -> bool {
        let behind = self.request(tag).is_some_and(Request::is_change)
            && self.waiting.iter().any(|waiting| waiting.is_change);
        behind || self.under_way() - self.waiting.len() > caps.requests_max
    }

    pub(crate) fn refuse(&mut self, tag: usize, now: Nanos, layer: &dyn Layer) {
        let Some(request) = self.active.get_mut(tag) else { return };
        request.refused.get_or_insert_with(|| (now.get(), layer.short_ns(now)));
        self.waiting.push_back(Waiting { tag, is_change: request.is_change() });
    }

    /// How many requests wait.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Takes out the first request that waits, from a place in their order on, and gives its place.
    /// Changes are left where they are if they are not asked for.
    pub(crate) fn take_waiting(&mut self, from: usize, changes: bool) -> Option<(usize, Waiting)> {
        let is_asked_for = |waiting: &Waiting| changes || !waiting.is_change;
        let at = from + self.waiting.iter().skip(from).position(is_asked_for)?;
        self.waiting.remove(at).map(|waiting| (at, waiting))
    }

    /// Puts a request back that was refused again.
    pub(crate) fn wait_on(&mut self, at: usize, waiting: Waiting) {
        self.waiting.insert(at, waiting);
    }

    /// Whether the layer has as many requests as it takes.
    pub(crate) fn is_full(&self, caps: &Caps) -> bool {
        self.under_way() - self.waiting.len() >= caps.requests_max
    }

    /// Asks for what is left of a request, and notes if it had to wait until all was taken.
    ///
    /// # Errors
    /// The layer refuses it for good: [`Joint::fail`] says whether it is over.
    pub(crate) fn go_on(
        &mut self,
        tag: usize,
        now: Nanos,
        (layer, caps): (&mut dyn Layer, &Caps),
        stalls: &mut VecDeque<(u64, Stall)>,
    ) -> Result<Progress, Why> {
        let Some(request) = self.active.get_mut(tag) else { return Ok(Progress::Waits) };
        let mut progress = Progress::Waits;
        while let Some(work) = request.next((caps.read_max, caps.write_max)) {
            match layer.submit(now, u64_from(tag), work, request.fua) {
                Ok(Taken { blocks, later }) => {
                    request.took(blocks);
                    request.outstanding += u32::from(later);
                }
                Err(Refused::Busy) => {
                    progress = Progress::Refused;
                    break;
                }
                Err(Refused::Never(why)) => return Err(why),
            }
        }
        if let Progress::Waits = progress
            && let Some((since, short)) = request.refused.take()
        {
            request.delay = onefold_nand::Delay::Background;
            let ns = now.get() - since;
            let paced_ns = ns - (layer.short_ns(now) - short);
            if let Owner::Load { number, .. } = request.owner {
                stalls.push_back((number, Stall { ns, paced_ns }));
            }
        }
        if request.is_over() {
            progress = Progress::Over;
        }
        Ok(progress)
    }

    /// No other part of a request is asked for. Whether it is over: parts may be under way.
    pub(crate) fn fail(&mut self, tag: usize) -> bool {
        let Some(request) = self.active.get_mut(tag) else { return false };
        request.failed = true;
        request.is_over()
    }

    /// Notes that a part ended.
    ///
    /// # Errors
    /// It failed; with its tag, if there is such a request.
    pub(crate) fn settle(&mut self, done: Done) -> Result<Settled, (Option<usize>, Why)> {
        let tag = index64(done.tag);
        let Some(request) = self.active.get_mut(tag) else {
            return done.result.map(|()| Settled::Nothing).map_err(|why| (None, why));
        };
        request.outstanding -= 1;
        request.delay = request.delay.max(done.delay);
        if let Err(why) = done.result {
            return Err((Some(tag), why));
        }
        Ok(if request.is_over() {
            Settled::Over(tag)
        } else if request.outstanding > 0 || request.refused.is_some() {
            Settled::Nothing
        } else {
            Settled::GoesOn(tag)
        })
    }

    pub(crate) fn request(&self, tag: usize) -> Option<&Request> {
        self.active.get(tag)
    }

    /// A request is over.
    pub(crate) fn end(&mut self, tag: usize) -> Option<Request> {
        let request = self.active.remove(tag)?;
        if request.refused.is_some() {
            self.waiting.retain(|waiting| waiting.tag != tag);
        }
        Some(request)
    }
}
