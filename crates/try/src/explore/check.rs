//! The user's check: a command of the shell, with a limit of time.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};

use crate::TryError;

/// How long to wait before it is looked whether all shall end.
const LOOK: Duration = Duration::from_millis(100);
/// Bytes at the end of the output that are kept.
const KEPT_BYTES: u64 = 4096;

/// How a check ended.
#[derive(Debug)]
pub(super) struct Ended {
    /// `None`: it was killed, as its time was up or all is to end.
    pub(super) status: Option<ExitStatus>,
    /// The end of what it said.
    pub(super) output: String,
}

impl Ended {
    /// The exit code; that of a signal as in a shell.
    pub(super) fn code(&self) -> Option<i32> {
        let status = self.status?;
        status.code().or_else(|| status.signal().map(|signal| 128 + signal))
    }
}

/// Runs a command to its end, at most for so long. `output` is a file for what it says. What it has started ends with it.
pub(super) fn run(
    command: &mut Command,
    output: &Path,
    timeout: Duration,
    stop: &AtomicBool,
) -> Result<Ended, TryError> {
    let failed = TryError::io("write", output);
    let mut file = File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .open(output)
        .map_err(&failed)?;
    let [out, err] = [file.try_clone().map_err(&failed)?, file.try_clone().map_err(&failed)?];
    command.stdin(Stdio::null()).stdout(out).stderr(err).process_group(0);
    let program = command.get_program().to_owned();
    let mut child = command.spawn().map_err(TryError::io("run", program.as_ref()))?;
    let is_over = wait(&child, timeout, stop).map_err(TryError::io("wait for", program.as_ref()));
    // Its number is its own as long as nobody has asked how it ended.
    let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
    let status = child.wait().map_err(TryError::io("wait for", program.as_ref()))?;
    let status = is_over?.then_some(status);
    Ok(Ended { status, output: end_of(&mut file).map_err(&failed)? })
}

/// Waits for the end of a child; whether it came.
fn wait(child: &Child, timeout: Duration, stop: &AtomicBool) -> std::io::Result<bool> {
    let fd = pidfd_open(Pid::from_child(child), PidfdFlags::empty())?;
    let end = Instant::now() + timeout;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() || stop.load(Relaxed) {
            return Ok(false);
        }
        let look = Timespec::try_from(left.min(LOOK)).ok();
        match poll(&mut [PollFd::new(&fd, PollFlags::IN)], look.as_ref()) {
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            Ok(_) => return Ok(true),
            Err(error) => return Err(error.into()),
        }
    }
}

fn end_of(file: &mut File) -> std::io::Result<String> {
    let len = file.metadata()?.len();
    file.seek(SeekFrom::Start(len.saturating_sub(KEPT_BYTES)))?;
    let mut bytes = Vec::new();
    file.take(KEPT_BYTES).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).trim_end().to_owned())
}
