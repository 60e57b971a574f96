//! A tenant whose completions are not known when its requests begin.

use std::collections::VecDeque;

use onefold_trace::workload::Request;
use onefold_units::convert::u64_from;

use crate::SimError;
use crate::tenant::{Bound, Pace, Tenant};

/// A tenant, and what it has in flight.
pub(crate) struct Load {
    pub(crate) tenant: Tenant,
    /// When places of a closed loop became free, ascending.
    ready: VecDeque<u64>,
    in_flight: u64,
    since: u64,
    integral: u128,
}

/// The next request of all tenants.
pub(crate) struct Arrival {
    /// Whose.
    pub(crate) load: usize,
    pub(crate) asked: Request,
    /// When it is issued.
    pub(crate) issued: u64,
}

/// The request whose turn it is: earliest first, then of the tenant that had least of its share. And whether any tenant has
/// more.
pub(crate) fn next_arrival(loads: &mut [Load]) -> Result<(Option<Arrival>, bool), SimError> {
    let mut best: Option<(Arrival, u64)> = None;
    let mut more = false;
    for (at, load) in loads.iter_mut().enumerate() {
        let Some(asked) = load.tenant.peek()? else { continue };
        more = true;
        let Some(issued) = load.next_time(&asked) else { continue };
        let share = load.tenant.issued / u64::from(load.tenant.weight);
        if best.as_ref().is_none_or(|(first, least)| (issued, share) < (first.issued, *least)) {
            best = Some((Arrival { load: at, asked, issued }, share));
        }
    }
    Ok((best.map(|(arrival, _)| arrival), more))
}

impl Load {
    pub(crate) fn new(tenant: Tenant) -> Self {
        let ready = match &tenant.pace {
            Pace::Closed(places) => vec![places.earliest(); places.depth()].into(),
            Pace::Open { .. } => VecDeque::new(),
        };
        Self { tenant, ready, in_flight: 0, since: 0, integral: 0 }
    }

    /// When the next request is issued; `None` while something has to end first.
    fn next_time(&mut self, request: &Request) -> Option<u64> {
        let Pace::Open { bound, .. } = &self.tenant.pace else {
            return self.ready.front().copied();
        };
        match bound.most(request).map(u64_from) {
            None => self.tenant.arrival(request),
            Some(most) if self.in_flight >= most => None,
            // One that had to wait is issued when the last one ended.
            Some(_) => self.tenant.arrival(request).map(|at| at.max(self.since)),
        }
    }

    fn count(&mut self, now: u64) {
        self.integral += u128::from(now - self.since) * u128::from(self.in_flight);
        self.since = now;
    }

    /// A request that the run calls `number` was issued, and got to the stack at `now`.
    pub(crate) fn began(&mut self, number: u64, issued: u64, now: u64) {
        self.count(now);
        self.integral += u128::from(now - issued);
        self.in_flight += 1;
        match &mut self.tenant.pace {
            Pace::Open { start, speed, bound: Bound::Dependencies(dependencies), .. } => {
                dependencies.send(Some(number), issued, (*start, *speed));
            }
            Pace::Open { .. } => {}
            Pace::Closed(_) => drop(self.ready.pop_front()),
        }
        self.tenant.began(issued);
    }

    pub(crate) fn ended(&mut self, number: u64, issued: u64, now: u64) {
        self.count(now);
        self.in_flight -= 1;
        match &mut self.tenant.pace {
            Pace::Open { bound: Bound::Dependencies(dependencies), .. } => {
                dependencies.end(number, now);
            }
            Pace::Open { .. } => {}
            Pace::Closed(_) => self.ready.push_back(now),
        }
        self.tenant.ended(issued, now);
    }

    pub(crate) fn finish(mut self) -> Tenant {
        self.tenant.counted = Some(self.integral);
        self.tenant
    }
}
