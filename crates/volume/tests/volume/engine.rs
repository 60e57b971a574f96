//! Volumes of mode `log`, for the harness.

use onefold_volume::{Backing, Engine, MountError, Options, Recovery, mount};

pub(crate) use onefold_volume::{format, inspect};

pub(crate) use crate::crash::set_journal;

pub(crate) fn open(
    backing: &mut dyn Backing,
    blocks: u64,
    options: Options,
) -> Result<(Box<dyn Engine>, Recovery), MountError> {
    let (volume, recovery) = mount(backing, blocks, options)?;
    Ok((Box::new(volume), recovery))
}
