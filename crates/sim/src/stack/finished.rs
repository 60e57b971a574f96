//! A run of a stack that ended.

use onefold_ssd::HostStats;

use super::Stack;
use super::counted::Counted;
use crate::gathered::Gathered;
use crate::precondition::Preconditioned;
use crate::ran::Ran;
use crate::top::Top;

/// A run that ended.
pub(super) struct Finished {
    pub(super) stack: Stack,
    pub(super) ran: Ran<Counted>,
    pub(super) top: Top,
    pub(super) preconditioned: Preconditioned,
    pub(super) gathered: Gathered,
}

/// What the layer of a place asked of those below.
pub(super) fn sent_by(run: &Finished, place: usize) -> HostStats {
    let Some(above) = run.stack.above(place) else { return HostStats::default() };
    let before = run.ran.baseline.at(place);
    let mut sum = HostStats::default();
    for (number, port) in above.ports.iter().enumerate() {
        let before = before.and_then(|at| at.sent.get(number)).copied().unwrap_or_default();
        sum = sum.plus(&port.asked.since(&before));
    }
    sum
}
