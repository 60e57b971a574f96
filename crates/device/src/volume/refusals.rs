//! A kernel that is short of memory is asked again, but not for ever.

use std::time::Duration;

/// Pause where the kernel has no memory for a request.
pub(super) const PAUSE: Duration = Duration::from_millis(1);

/// Refusals in a row after which it is not asked again: with a pause after each, five seconds at least. Tests are shorter.
pub(super) const REFUSALS_MAX: u32 = if cfg!(test) { 20 } else { 5_000 };

/// How often the kernel said "not now" in a row ([`super::kernel`], invariant 3).
#[derive(Clone, Copy, Default)]
pub(super) struct Refusals(u32);

impl Refusals {
    /// Another one. Whether that was the last; if not, it is time to ask again.
    pub(super) fn are_too_many(&mut self) -> bool {
        self.0 += 1;
        let over = self.0 >= REFUSALS_MAX;
        if !over {
            std::thread::sleep(PAUSE);
        }
        over
    }
}
