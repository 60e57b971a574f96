//! The interface of a buffer: requests go in, actions come out.

use onefold_units::{Keeper, Lpn};

use crate::{Actions, Req, Stats, Violation};

/// What a policy may ask the FTL.
pub trait FtlView {
    /// Whether the entry holds data: written (to the buffer or to flash) and not trimmed since.
    fn mapped(&self, lpn: Lpn) -> bool;

    /// How many of `n` entries from `first` on hold data.
    fn mapped_count(&self, first: Lpn, n: u32) -> u32 {
        let entries = (0..n).map_while(|at| first.checked_add(at));
        entries.map(|lpn| u32::from(self.mapped(lpn))).sum()
    }
}

/// What a policy has learnt of the addresses of its device. It guides the buffer and describes no data, so any of the
/// same shape is safe, however old.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Learnt<'a> {
    /// Entries in a chunk.
    pub chunk: u32,
    /// What is known of each chunk, as the policy packs it.
    pub bits: &'a [u8],
}

/// A buffer policy: metadata only. It never blocks, reads no clock and holds no data.
///
/// Calling order: [`Policy::request`], then execute all of `out` in order, then the next request.
pub trait Policy {
    /// Decides about one request and replaces the content of `out` by what has to be done.
    ///
    /// Pages are handled in ascending order. The program or drop that frees a slot precedes the
    /// fill or store that reuses it, so a slot still holds its bytes when its program is executed.
    fn request(&mut self, r: &Req, ftl: &dyn FtlView, out: &mut Actions);

    /// Loads what a request for `lpn` will look at, into the caches of the processor: worth a call
    /// some requests ahead, where they are known. Returns a number that depends on it, so that the
    /// loads happen.
    fn touch(&self, lpn: Lpn) -> u32;

    /// Programs every dirty entry, volatile or not, and replaces the content of `out` by that: for a
    /// clean shutdown, and for the capacitors of a power-loss-protected buffer. Entries stay, clean.
    fn drain(&mut self, out: &mut Actions);

    /// What is worth keeping while the device is off; `None` for policies that only know what they hold.
    fn learnt(&self) -> Option<Learnt<'_>> {
        None
    }

    /// Goes on from what was kept. Returns whether it took that: not if it is of other chunks or another device size.
    fn learn(&mut self, _: Learnt<'_>) -> bool {
        false
    }

    /// A copy in the same state: to go on from one warm-up in several ways.
    fn boxed_clone(&self) -> Box<dyn Policy + Send>;

    /// Writes the state of the buffer, or takes one into a buffer that was built alike.
    fn keep(&mut self, keeper: &mut Keeper<'_>);

    /// What was counted so far.
    fn stats(&self) -> &Stats;

    /// Bytes per bit of a [`crate::PartMask`].
    fn part_bytes(&self) -> u32;

    /// The number of slots: every [`crate::Slot`] is below it.
    fn slots(&self) -> u32;

    /// Checks every invariant. Takes time proportional to the buffer.
    fn check(&self) -> Result<(), Violation>;
}
