//! Processes that belong to a run, found by a variable of their environment, which children inherit.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

/// How long processes may take to end after they were asked to.
const GRACE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(5);

/// The processes that have a variable with this value, but for the caller.
fn with(variable: &str, value: &Path) -> Vec<Pid> {
    let mut wanted = format!("{variable}=").into_bytes();
    wanted.extend_from_slice(value.as_os_str().as_bytes());
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let is_one = |pid: &i32| {
        // A process that has ended has none.
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|entry| entry == wanted)
    };
    let own = rustix::process::getpid();
    pids.filter(is_one).filter_map(Pid::from_raw).filter(|pid| *pid != own).collect()
}

/// Takes the exit codes of children that ended.
fn reap() {
    while let Ok(Some(_)) = waitpid(None, WaitOptions::NOHANG) {}
}

/// Ends the processes of a run: asks them, and kills those that do not end. Gives how many there were.
pub(crate) fn end(variable: &str, value: &Path, grace: bool) -> usize {
    let found = with(variable, value).len();
    let deadline = Instant::now() + if grace { GRACE } else { Duration::ZERO };
    let mut is_asked = !grace;
    loop {
        reap();
        let left = with(variable, value);
        if left.is_empty() {
            return found;
        }
        let is_late = Instant::now() >= deadline;
        if is_late || !is_asked {
            let signal = if is_late { Signal::KILL } else { Signal::TERM };
            for pid in left {
                // It may have ended by now.
                let _ = kill_process(pid, signal);
            }
            is_asked = true;
        }
        if Instant::now() >= deadline + GRACE {
            // What does not even die of SIGKILL waits for a device.
            return found;
        }
        std::thread::sleep(PAUSE);
    }
}
