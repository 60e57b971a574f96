//! The program: started, listened to, ended.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use onefold_device::BlockDevice;
use onefold_device::observed::Observed;
use onefold_units::convert::u64_from;

use crate::TryError;
use crate::tape::Printed;

/// How often is looked whether it has ended.
const PAUSE: Duration = Duration::from_millis(2);
/// Bytes of a line: a longer one is several.
const LINE_MAX: u64 = 1 << 20;
/// Bytes that the system counts written data in.
const RUSAGE_BYTES: u64 = 512;

/// A program that runs.
pub(super) struct Running {
    child: Child,
    listeners: Vec<JoinHandle<()>>,
    began: Instant,
    /// What children had made dirty before.
    dirtied_before: u64,
}

/// What is printed, on its way to the tape and to the user.
pub(super) struct Listener<D: BlockDevice> {
    pub(super) observed: Arc<Observed<D>>,
    pub(super) printed: Printed,
    /// Whether the user sees it.
    pub(super) is_shown: bool,
}

impl<D: BlockDevice + 'static> Listener<D> {
    fn listen(mut self, pipe: impl Read + Send + 'static) -> std::io::Result<JoinHandle<()>> {
        let run = move || {
            let mut reader = BufReader::new(pipe);
            let mut line = Vec::new();
            while matches!((&mut reader).take(LINE_MAX).read_until(b'\n', &mut line), Ok(1..)) {
                let entry = self.observed.log().map_or(0, onefold_device::WriteLog::entries);
                if let Err(error) = self.printed.keep(entry, &line) {
                    tracing::warn!(%error, "what the program printed got lost");
                }
                if self.is_shown {
                    // Nobody is left to be told.
                    let _ = std::io::stderr().write_all(&line);
                }
                line.clear();
            }
        };
        std::thread::Builder::new().name("output".into()).spawn(run)
    }
}

impl Running {
    /// Starts a program. It cannot be found: [`TryError::NoProgram`].
    pub(super) fn start<D: BlockDevice + 'static>(
        command: &mut Command,
        listeners: [Listener<D>; 2],
    ) -> Result<Self, TryError> {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let program = command.get_program().to_owned();
        let dirtied_before = dirtied();
        let began = Instant::now();
        let mut child = command.spawn().map_err(|source| TryError::NoProgram {
            program: program.to_string_lossy().into_owned(),
            source,
        })?;
        let pipes: [Option<Box<dyn Read + Send>>; 2] = [
            child.stdout.take().map(|pipe| Box::new(pipe) as _),
            child.stderr.take().map(|pipe| Box::new(pipe) as _),
        ];
        let mut threads = Vec::new();
        for (pipe, listener) in pipes.into_iter().zip(listeners) {
            let Some(pipe) = pipe else { continue };
            let started = listener.listen(pipe);
            threads.push(started.map_err(TryError::io("listen to", Path::new(&program)))?);
        }
        Ok(Self { child, listeners: threads, began, dirtied_before })
    }

    /// Waits until it ends, calling `look` now and then. It is killed after `timeout`, or when `stop` is set.
    pub(super) fn wait(
        &mut self,
        timeout: Option<Duration>,
        stop: &AtomicBool,
        mut look: impl FnMut(),
    ) -> Result<(ExitStatus, bool), TryError> {
        let failed = TryError::io("wait for", Path::new("the program"));
        let mut is_late = false;
        loop {
            if let Some(status) = self.child.try_wait().map_err(&failed)? {
                return Ok((status, is_late));
            }
            if stop.load(Relaxed) || timeout.is_some_and(|timeout| self.began.elapsed() >= timeout)
            {
                is_late = !stop.load(Relaxed);
                self.child.kill().map_err(&failed)?;
            }
            look();
            std::thread::sleep(PAUSE);
        }
    }

    /// How long it has run.
    pub(super) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// Takes the rest of what was printed, once no process is left that could print more. Gives the bytes that it and its
    /// children made dirty.
    pub(super) fn finish(self) -> Option<u64> {
        for listener in self.listeners {
            // A panic there was reported by the panic hook.
            let _ = listener.join();
        }
        dirtied().checked_sub(self.dirtied_before)
    }
}

/// The exit code and the signal of a status.
pub(super) fn ended(status: ExitStatus) -> (Option<i32>, Option<i32>) {
    (status.code(), status.signal())
}

/// Bytes that children made dirty which were waited for (`ru_oublock`).
fn dirtied() -> u64 {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN);
    let blocks = usage.map_or(0, |usage| usage.block_writes());
    u64::try_from(blocks).unwrap_or(u64_from(0)) * RUSAGE_BYTES
}
