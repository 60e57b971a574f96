//! An FTL without data.

use onefold_buffer::FtlView;
use onefold_units::Lpn;

/// An FTL that maps nothing.
pub(crate) struct Unmapped;

impl FtlView for Unmapped {
    fn mapped(&self, _: Lpn) -> bool {
        false
    }
}
