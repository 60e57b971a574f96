//! A scrub of a volume that nobody uses.

use onefold_format::volume::VolumeMode;
use onefold_units::Nanos;

use crate::backing::{Backing, settle, turn};
use crate::config::Options;
use crate::error::MountError;
use crate::findings::Findings;
use crate::scrub::{ScrubState, Scrubbed};
use crate::volume::Volume;
use crate::volume::recovery::{mount, mount_read_only, read_label};

/// Scrubs the volume on a backing of so many blocks. With `mend` it is opened, recovered if need be, and closed in the end; without, nothing is
/// written. `progress` is called from time to time.
///
/// # Errors
/// There is no volume of mode `log` that could be opened, or the backing failed.
pub fn scrub(
    backing: &mut dyn Backing,
    blocks: u64,
    mend: bool,
    mut progress: impl FnMut(&Scrubbed),
) -> Result<Scrubbed, MountError> {
    let label = read_label(backing, blocks)?;
    if label.mode != VolumeMode::Log {
        return Err(MountError::NoSums(label.mode));
    }
    let mut volume = if mend {
        mount(backing, blocks, Options::default())?.0
    } else {
        read_only(backing, blocks)?
    };
    let failed = |_| MountError::Backing("the scrub began");
    volume.start_scrub(Nanos::ZERO).map_err(failed)?;
    let mut now = Nanos::ZERO;
    while volume.scrubbed().state == ScrubState::Running {
        let idle = turn(&mut volume, backing, now) == 0;
        if idle && volume.scrubbed().state == ScrubState::Running {
            let stuck = MountError::Backing("it was read for the scrub");
            now = volume.poll_timeout().ok_or(stuck)?.max(now);
        }
        progress(volume.scrubbed());
    }
    let report = volume.scrubbed().clone();
    if mend {
        volume.close();
        if !settle(&mut volume, backing, now) {
            return Err(MountError::Backing("the volume was closed"));
        }
    }
    Ok(report)
}

/// A volume all of whose map is in memory, as nothing that it would write may make room.
fn read_only(backing: &mut dyn Backing, blocks: u64) -> Result<Volume, MountError> {
    let (mut volume, recovery, durable) = mount_read_only(backing, blocks, Options::default())?;
    if recovery.seq < durable {
        return Err(MountError::Lost { missing: recovery.seq + 1, last: recovery.seq });
    }
    volume.load_all(backing, &mut Findings::default());
    Ok(volume)
}
