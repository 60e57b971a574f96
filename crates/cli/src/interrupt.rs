//! What SIGINT and SIGTERM do, for all commands at one place.
//!
//! A command *ends* at once unless it says otherwise: nothing that Onefold writes depends on how the process ends, so the best that a
//! signal can do is to be fast, to take away what is not whole, and to say what is left. It may work *softly*: then it is asked to end,
//! and has [`GRACE`] to come to what it wants to keep. A command that *serves* ends in its own time, and only once.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use signal_hook::consts::{SIGINT, SIGTERM, SIGUSR1};
use signal_hook::iterator::Signals;

use crate::exit::Exit;

/// Time that soft work has. A person waits no more than a second.
const GRACE: Duration = Duration::from_millis(700);

/// The signals of this process, and what it does about them.
#[derive(Clone, Default)]
pub(crate) struct Interrupt(Arc<Shared>);

#[derive(Default)]
struct Shared {
    /// Set as soon as the process was asked to end.
    asked: AtomicBool,
    state: Mutex<State>,
    /// The phase changed.
    changed: Condvar,
}

#[derive(Default)]
struct State {
    phase: Phase,
    /// The first signal.
    signal: Option<i32>,
    /// What is to be said of what is left.
    left: Option<&'static str>,
    /// Files that are not whole.
    unfinished: Vec<PathBuf>,
    quiet: bool,
}

/// What a signal finds.
#[derive(Default)]
enum Phase {
    /// Work that may end anywhere.
    #[default]
    Ends,
    /// Work that looks whether it is to end.
    Soft,
    /// What was kept is being written.
    Keeps,
    /// A server, which is told.
    Serves(Sender<Told>),
}

/// What a server is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// To end.
    End,
    /// To cut the power of what it serves.
    CutPower,
}

impl fmt::Debug for Interrupt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Interrupt").field(&self.0.asked).finish()
    }
}

impl Interrupt {
    /// Takes the signals of this process.
    pub(crate) fn watch(&self, quiet: bool) {
        self.state().quiet = quiet;
        let watched = Signals::new([SIGINT, SIGTERM]).and_then(|mut signals| {
            let interrupt = self.clone();
            let watch = move || {
                for signal in signals.forever() {
                    interrupt.came(signal);
                }
            };
            std::thread::Builder::new().name("signals".into()).spawn(watch)
        });
        if let (Err(error), false) = (watched, quiet) {
            eprintln!("SIGINT and SIGTERM end this command without a word: {error}");
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn came(&self, signal: i32) {
        let mut state = self.state();
        let is_first = state.signal.is_none();
        state.signal = Some(state.signal.unwrap_or(signal));
        self.0.asked.store(true, Relaxed);
        match &state.phase {
            // Whoever serves has heard of it already.
            Phase::Serves(server) => drop(server.send(Told::End)),
            Phase::Soft if is_first => {
                let still = |state: &mut State| matches!(state.phase, Phase::Soft);
                let waited = self.0.changed.wait_timeout_while(state, GRACE, still);
                let (state, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
                if timeout.timed_out() {
                    end(state);
                }
            }
            Phase::Keeps if is_first => {}
            Phase::Ends | Phase::Soft | Phase::Keeps => end(state),
        }
    }

    /// What is to be said when the command ends at once; without, that nothing was changed.
    pub(crate) fn leaves(&self, left: &'static str) {
        self.state().left = Some(left);
    }

    /// A file that a signal removes until the guard is dropped.
    pub(crate) fn unfinished(&self, path: &Path) -> Unfinished<'_> {
        self.state().unfinished.push(path.to_owned());
        Unfinished { interrupt: self, path: path.to_owned() }
    }

    /// Runs work that ends soon after the flag is set. A signal after it lets the process go on to write what is kept.
    pub(crate) fn softly<T>(&self, work: impl FnOnce(&AtomicBool) -> T) -> T {
        self.set(Phase::Soft);
        let done = work(&self.0.asked);
        self.set(Phase::Keeps);
        done
    }

    /// Writes something that is kept, within soft work. A signal waits for it, and a second one does not.
    pub(crate) fn keeping<T>(&self, work: impl FnOnce() -> T) -> T {
        self.set(Phase::Keeps);
        let done = work();
        self.set(Phase::Soft);
        done
    }

    /// From now on signals are for a server, and kept until it asks for them.
    pub(crate) fn serving(&self) -> Served {
        let (sender, receiver) = channel();
        self.set(Phase::Serves(sender));
        Served(receiver)
    }

    /// Ends a server as a signal does.
    pub(crate) fn end_serving(&self) {
        self.tell_server(Told::End);
    }

    /// Tells the server that serves, if one does.
    pub(crate) fn tell_server(&self, what: Told) {
        if let Phase::Serves(server) = &self.state().phase {
            let _ = server.send(what);
        }
    }

    /// From now on SIGUSR1 cuts the power of what is served.
    pub(crate) fn cut_power_at_signal(&self) -> std::io::Result<()> {
        let mut signals = Signals::new([SIGUSR1])?;
        let interrupt = self.clone();
        let watch = move || {
            for _ in signals.forever() {
                interrupt.tell_server(Told::CutPower);
            }
        };
        std::thread::Builder::new().name("power".into()).spawn(watch).map(drop)
    }

    fn set(&self, phase: Phase) {
        self.state().phase = phase;
        self.0.changed.notify_all();
    }

    /// Whether a signal came.
    pub(crate) fn is_asked(&self) -> bool {
        self.state().signal.is_some()
    }

    /// Ends the process in the way of the signal that came, if one did.
    pub(crate) fn end_if_asked(&self) {
        let state = self.state();
        if state.signal.is_some() {
            end(state);
        }
    }

    /// The exit code of a command that was asked to end and kept what it had.
    pub(crate) fn code(&self) -> ExitCode {
        self.state().signal.map_or(Exit::Ok, exit_by).into()
    }
}

/// Takes a file from the list of those that are not whole.
pub(crate) struct Unfinished<'a> {
    interrupt: &'a Interrupt,
    path: PathBuf,
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        self.interrupt.state().unfinished.retain(|path| *path != self.path);
    }
}

/// The signals for a server.
pub(crate) struct Served(Receiver<Told>);

impl Served {
    /// Waits until the server is to end.
    pub(crate) fn wait(&self) {
        while self.next(None) != Some(Told::End) {}
    }

    /// Waits for what the server is told next; `None` once `longest` is over.
    pub(crate) fn next(&self, longest: Option<Duration>) -> Option<Told> {
        let told = match longest {
            Some(longest) => self.0.recv_timeout(longest),
            None => self.0.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match told {
            Ok(told) => Some(told),
            Err(RecvTimeoutError::Timeout) => None,
            // The sender lives as long as the process.
            Err(RecvTimeoutError::Disconnected) => Some(Told::End),
        }
    }
}

const fn exit_by(signal: i32) -> Exit {
    if signal == SIGTERM { Exit::Terminated } else { Exit::Interrupted }
}

/// Ends the process: whoever holds the state lets nobody else change it.
#[expect(clippy::exit, reason = "a signal ends the process, whatever its threads do")]
#[expect(clippy::needless_pass_by_value, reason = "the guard is held to the end")]
fn end(state: MutexGuard<'_, State>) -> ! {
    for path in &state.unfinished {
        // What is not there needs no removal, and nobody is left to be told of another error.
        let _ = std::fs::remove_file(path);
    }
    let signal = state.signal.unwrap_or(SIGINT);
    if !state.quiet {
        let name = if signal == SIGTERM { "SIGTERM" } else { "SIGINT" };
        eprintln!("\ninterrupted by {name}: {}", state.left.unwrap_or("nothing was changed"));
    }
    std::process::exit(exit_by(signal).code().into())
}
