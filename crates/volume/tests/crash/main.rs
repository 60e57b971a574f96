//! Power fails anywhere: what was flushed is there afterwards, and nothing else than what was
//! written.

#![expect(clippy::print_stdout, reason = "says how many crash states were checked")]

mod counts;
mod damage;
mod exhaustive;
mod failures;
mod flaky;
mod full;
mod golden;
#[path = "../harness/mod.rs"]
mod harness;
mod journal;
mod lost_map;
mod marker;
mod offline;
mod packs;
mod random;
mod rebuild;
mod resize;
mod rotten;
mod scrub;
mod torn;
mod zoned;

/// Volumes of mode `log`, for the harness.
mod engine {
    use onefold_volume::{Backing, Engine, MountError, Options, Recovery, mount};

    pub(crate) use onefold_volume::{format, inspect};

    pub(crate) use crate::journal::set_journal;

    pub(crate) fn open<B: Backing>(
        backing: &mut B,
        blocks: u64,
        options: Options,
    ) -> Result<(Box<dyn Engine>, Recovery), MountError> {
        let (volume, recovery) = mount(backing, blocks, options)?;
        Ok((Box::new(volume), recovery))
    }
}
