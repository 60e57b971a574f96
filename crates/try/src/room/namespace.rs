//! Mounts that nobody else sees.

use std::path::Path;

use rustix::mount::{MountPropagationFlags, mount_change};
use rustix::thread::UnshareFlags;

use crate::TryError;

/// Where mounts of this process are listed.
const MOUNTS: &str = "/proc/self/mountinfo";

/// From now on mounts of this thread, and of the threads and processes that it starts, are their own: the kernel
/// unmounts them and frees their loop devices when the last of them ends, even by SIGKILL. To be called before threads are
/// started. Mounts that others make are seen.
///
/// Gives whether it is so: only root can have it, and only where what others unmount is unmounted here too, which most containers
/// do not have. There a copy of their mounts would keep their devices busy, and the next start cleans up after SIGKILL.
///
/// # Errors
/// The kernel refuses what root may do, as in some containers.
pub fn keep_mounts_private() -> Result<bool, TryError> {
    let mounts =
        std::fs::read_to_string(MOUNTS).map_err(TryError::io("read", Path::new(MOUNTS)))?;
    if !rustix::process::geteuid().is_root() || !is_shared(&mounts) {
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

/// Whether the root of all mounts passes on what is mounted and unmounted (`proc_pid_mountinfo(5)`): the fifth field is the place, and
/// from the seventh on stand the tags, up to a dash.
fn is_shared(mounts: &str) -> bool {
    let root = mounts.lines().rfind(|line| line.split(' ').nth(4) == Some("/"));
    let tags = root.into_iter().flat_map(|line| line.split(' ').skip(6));
    tags.take_while(|tag| *tag != "-").any(|tag| tag.starts_with("shared:"))
}

#[cfg(test)]
mod tests {
    use super::is_shared;

    #[test]
    fn a_root_that_passes_mounts_on_is_known() {
        let shared = "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n\
                      30 22 0:5 / /dev rw - devtmpfs udev rw";
        assert!(is_shared(shared));
        for private in [
            "22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n30 22 0:5 / /dev rw shared:2 - devtmpfs udev rw",
            "22 1 8:1 / / rw,relatime master:1 - ext4 shared:1 rw",
            "",
        ] {
            assert!(!is_shared(private), "{private}");
        }
    }
}
