//! Why a program cannot be tried, or its power cuts cannot be explored.

use std::io;
use std::path::PathBuf;

use onefold_crash::CrashError;
use onefold_device::WriteLogError;
use onefold_serve::ServeError;
use onefold_units::Status;

/// Why a program cannot be tried, or its power cuts cannot be explored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TryError {
    /// No file system has this name.
    #[error("no file system `{found}`, expected ext4, xfs, btrfs, f2fs or none")]
    UnknownFileSystem {
        /// The name.
        found: String,
    },
    /// Only root mounts file systems.
    #[error(
        "mounting {fs} needs root: run this with sudo, or say `--fs none`, which mounts no file system"
    )]
    NotRoot {
        /// What was to be mounted.
        fs: &'static str,
    },
    /// A program of the system is missing.
    #[error("`{tool}` is missing: install the Debian package {package}, or what has it elsewhere")]
    NoTool {
        /// The program.
        tool: &'static str,
        /// The Debian package that has it.
        package: &'static str,
    },
    /// A program of the system failed.
    #[error("{action} failed, {}: {output}", ended(*.code))]
    Tool {
        /// The command.
        action: String,
        /// How it ended; `None`: by a signal.
        code: Option<i32>,
        /// The end of what it said.
        output: String,
    },
    /// The operating system refused something.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// With which file.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// The device failed.
    #[error("cannot {action} the device: {status}")]
    Device {
        /// What was tried.
        action: &'static str,
        /// What it answered.
        status: Status,
    },
    /// There is no tape.
    #[error("{} is no tape: it has no readable `tape.json`: {source}", folder.display())]
    NoTape {
        /// The folder.
        folder: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A tape says of itself what cannot be.
    #[error("{} is damaged: {problem}", path.display())]
    About {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// What a program printed cannot be read.
    #[error("line {line} of {} is damaged: expected a number of an entry, a tab and a text", path.display())]
    Printed {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
    },
    /// There is something where the tape shall be.
    #[error("{} exists; a tape is a new folder, and nothing was changed", folder.display())]
    TapeExists {
        /// The folder.
        folder: PathBuf,
    },
    /// A check that fails anyway tells nothing of power cuts.
    #[error("fix the check first: it fails without a power cut, in the state `{state}`: {problem}")]
    FailsAnyway {
        /// The name of the last state.
        state: String,
        /// What failed.
        problem: String,
    },
    /// There is no program.
    #[error("no program to run: say `-- COMMAND ARGUMENT...`")]
    NothingToRun,
    /// The program cannot be started.
    #[error("cannot run `{program}`: {source}")]
    NoProgram {
        /// Its name.
        program: String,
        /// What the system said.
        source: io::Error,
    },
    /// What was to be done before failed.
    #[error("`{command}`, which prepares the disk, failed, {}", ended(*.code))]
    Prepare {
        /// The command.
        command: String,
        /// How it ended; `None`: by a signal.
        code: Option<i32>,
    },
    /// No tape is kept of this process.
    #[error(
        "no tape is kept of this: ONEFOLD_TRY is not set, as it is for what `onefold try` runs"
    )]
    NotTried,
    /// A mark was refused.
    #[error("cannot mark: {problem}")]
    Mark {
        /// Why.
        problem: String,
    },
    /// The states cannot be had.
    #[error(transparent)]
    Crash(#[from] CrashError),
    /// The log of writes failed.
    #[error(transparent)]
    Log(#[from] WriteLogError),
    /// The disk cannot be served.
    #[error(transparent)]
    Serve(#[from] ServeError),
}

impl TryError {
    /// A function from errors of the system to this error.
    pub(crate) fn io(action: &'static str, path: &std::path::Path) -> impl Fn(io::Error) -> Self {
        move |source| Self::Io { action, path: path.to_owned(), source }
    }
}

/// How a program ended, in words.
fn ended(code: Option<i32>) -> String {
    code.map_or_else(|| "ended by a signal".to_owned(), |code| format!("exit code {code}"))
}
