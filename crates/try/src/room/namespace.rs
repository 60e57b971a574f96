//! Mounts that nobody else sees.

use std::path::Path;

use rustix::mount::{MountPropagationFlags, mount_change};
use rustix::thread::UnshareFlags;

use crate::TryError;

/// From now on mounts of this thread, and of the threads and processes that it starts, are their own: the kernel
/// unmounts them and frees their loop devices when the last of them ends, even by SIGKILL. To be called before threads are
/// started. Mounts that others make are seen.
///
/// Gives whether it is so: only root can have it.
///
/// # Errors
/// The kernel refuses what root may do, as in some containers.
pub fn keep_mounts_private() -> Result<bool, TryError> {
    if !rustix::process::geteuid().is_root() {
        return Ok(false);
    }
    let failed = |error: rustix::io::Errno| {
        TryError::io("keep mounts private below", Path::new("/"))(error.into())
    };
    #[expect(deprecated, reason = "its danger is in open files, which stay shared")]
    rustix::thread::unshare(UnshareFlags::NEWNS).map_err(failed)?;
    let downstream = MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC;
    mount_change("/", downstream).map_err(failed)?;
    Ok(true)
}
