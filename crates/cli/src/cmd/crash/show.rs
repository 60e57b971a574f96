//! `onefold crash mount`, `shell`, `export` and `serve`: looking at one state.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use onefold_crash::{Disk, State};
use onefold_serve::Folder;
use onefold_try::TryError;
use onefold_try::explore::StateFiles;
use onefold_try::room::{FileSystem, Mounted, Place, keep_mounts_private};
use onefold_try::tape;

use super::list::states;
use super::{LogArgs, Opened};
use crate::error::{CliError, Exit};
use crate::interrupt::Interrupt;
use crate::output::Global;

/// Names that are listed in a folder of states. Others are found as well.
const LISTED: usize = 10_000;
/// How often is looked whether a directory is still mounted.
const LOOK: Duration = Duration::from_millis(300);

/// How a state is mounted.
#[derive(Debug, Args)]
struct How {
    /// File system: ext4, xfs, btrfs, f2fs or none [default: the one that is found]
    #[arg(long, value_name = "NAME")]
    fs: Option<FileSystem>,
    /// Options of mount [default: those of the tape]
    #[arg(long, value_name = "OPTIONS")]
    mount: Option<String>,
}

/// Options of `onefold crash mount`.
#[derive(Debug, Args)]
pub(crate) struct Mount {
    /// The tape (not with --log), the name of a state, and where to mount it
    #[arg(required = true, value_name = "TAPE STATE DIRECTORY")]
    words: Vec<String>,
    #[command(flatten)]
    log: LogArgs,
    #[command(flatten)]
    how: How,
}

/// Options of `onefold crash shell`.
#[derive(Debug, Args)]
pub(crate) struct Shell {
    /// The tape (not with --log), and the name of a state
    #[arg(required = true, value_name = "TAPE STATE")]
    words: Vec<String>,
    #[command(flatten)]
    log: LogArgs,
    #[command(flatten)]
    how: How,
    /// Run this instead of `$SHELL`
    #[arg(short = 'c', long = "command", value_name = "COMMAND")]
    command: Option<String>,
}

/// Options of `onefold crash export`.
#[derive(Debug, Args)]
pub(crate) struct Export {
    /// The tape (not with --log), and the name of a state
    #[arg(required = true, value_name = "TAPE STATE")]
    words: Vec<String>,
    #[command(flatten)]
    log: LogArgs,
}

/// Options of `onefold crash serve`.
#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// The tape
    #[arg(value_name = "TAPE", required_unless_present = "log", conflicts_with = "log")]
    tape: Option<PathBuf>,
    #[command(flatten)]
    log: LogArgs,
    /// The empty directory in which the files appear
    #[arg(long, value_name = "DIRECTORY")]
    fuse: PathBuf,
}

/// A state as a file, which keeps what is written to it while it is mounted.
struct Shown {
    mounted: Option<Mounted>,
    file: PathBuf,
    _folder: Folder,
    place: Place,
}

impl How {
    /// Shows a state: its file, mounted at a directory if it has a file system.
    fn show(
        &self,
        opened: &Opened,
        state: &State,
        directory: Option<&Path>,
    ) -> Result<Shown, CliError> {
        let fs = opened.file_system(self.fs);
        fs.expect_usable(false)?;
        if fs == FileSystem::None && directory.is_some() {
            let text = "the state has no file system that could be mounted";
            return Err(CliError::new(Exit::Usage, "crash::mount", text)
                .help("name one with --fs, or take `onefold crash export`"));
        }
        if directory.is_none() && fs != FileSystem::None {
            keep_mounts_private()?;
        }
        let name = state.name(&opened.log);
        let place = Place::new()?;
        let files = place.folder("states")?;
        let folder =
            Folder::mount(StateFiles::new(Arc::clone(&opened.log), vec![name.clone()]), &files)
                .map_err(TryError::from)?;
        let file = files.join(name);
        let options = opened.mount_options(self.mount.as_ref());
        let mounted = match (fs, directory) {
            (FileSystem::None, _) => None,
            (_, Some(directory)) => Some(Mounted::new(&file, directory, fs, &options)?),
            (_, None) => Some(Mounted::new(&file, &place.folder("mnt")?, fs, &options)?),
        };
        Ok(Shown { mounted, file, _folder: folder, place })
    }
}

impl Mount {
    pub(super) fn run(&self, global: &Global) -> Result<ExitCode, CliError> {
        let (opened, [state, directory]) =
            self.log.open_with(&self.words, ["STATE", "DIRECTORY"], global)?;
        let (state, directory) = (opened.state(&state)?, PathBuf::from(directory));
        let signals = global.interrupt.serving();
        let shown = self.how.show(&opened, &state, Some(&directory))?;
        global.say(format_args!(
            "{} is mounted at {}; what is written there is gone when this ends",
            state.name(&opened.log),
            directory.display()
        ));
        end_when_unmounted(&global.interrupt, &directory)?;
        signals.wait();
        if let Some(mounted) = shown.mounted.filter(|_| is_mounted(&directory)) {
            mounted.unmount()?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Whether something is mounted at a directory.
fn is_mounted(directory: &Path) -> bool {
    let device = |path: &Path| path.metadata().map(|metadata| metadata.dev()).ok();
    device(directory) != device(&directory.join(".."))
}

/// Ends the server once somebody has unmounted the directory.
fn end_when_unmounted(interrupt: &Interrupt, directory: &Path) -> Result<(), CliError> {
    let (interrupt, directory) = (interrupt.clone(), directory.to_owned());
    let watch = move || {
        while is_mounted(&directory) {
            std::thread::sleep(LOOK);
        }
        interrupt.end_serving();
    };
    let started = std::thread::Builder::new().name("watch".into()).spawn(watch);
    started.map(drop).map_err(|error| {
        CliError::new(Exit::Failed, "crash::mount", format!("cannot start a thread: {error}"))
    })
}

impl Shell {
    pub(super) fn run(&self, global: &Global) -> Result<ExitCode, CliError> {
        let (opened, [state]) = self.log.open_with(&self.words, ["STATE"], global)?;
        let state = opened.state(&state)?;
        // Signals of the terminal are for the shell.
        let _signals = global.interrupt.serving();
        let shown = self.how.show(&opened, &state, None)?;
        let shell = std::env::var_os("SHELL").filter(|_| self.command.is_none());
        let mut command = Command::new(shell.unwrap_or_else(|| "/bin/sh".into()));
        if let Some(text) = &self.command {
            command.args(["-c", text]);
        }
        let own = shown.place.path("");
        let directory = shown.mounted.as_ref().map_or(&*own, Mounted::directory);
        command.current_dir(directory).env("ONEFOLD_DEVICE", &shown.file);
        command.env("ONEFOLD_STATE", state.name(&opened.log));
        let promised = shown.place.folder("promised")?;
        opened.promises()?.write(state.at(), &promised)?;
        command.env("ONEFOLD_STDOUT", promised.join("stdout"));
        command.env("ONEFOLD_MARKS", promised.join("marks"));
        if self.command.is_none() {
            global.say("a shell in the state; what is written there is gone when it ends");
        }
        let program = PathBuf::from(command.get_program());
        let status = command.status();
        let failed = |source| TryError::Io { action: "run", path: program, source };
        let status = status.map_err(failed)?;
        if let Some(mounted) = shown.mounted {
            mounted.unmount()?;
        }
        let code = status.code().and_then(|code| u8::try_from(code).ok());
        Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
    }
}

impl Export {
    pub(super) fn run(&self, global: &Global) -> Result<ExitCode, CliError> {
        let (opened, [state]) = self.log.open_with(&self.words, ["STATE"], global)?;
        let state = opened.state(&state)?;
        let Some(image) = &global.output else {
            let text = "no image to write: name a new file, such as -o state.img";
            return Err(CliError::new(Exit::Usage, "usage::output", text));
        };
        let unfinished = (!image.exists()).then(|| global.interrupt.unfinished(image));
        tape::copy(&Disk::new(Arc::clone(&opened.log), &state), image)?;
        drop(unfinished);
        Ok(ExitCode::SUCCESS)
    }
}

impl Serve {
    pub(super) fn run(&self, global: &Global) -> Result<ExitCode, CliError> {
        let opened = self.log.open(self.tape.as_ref(), global)?;
        let (states, _) = states(&opened, LISTED)?;
        let names: Vec<_> = states.iter().map(|(state, _)| state.name(&opened.log)).collect();
        let signals = global.interrupt.serving();
        let count = names.len();
        let folder = Folder::mount(StateFiles::new(Arc::clone(&opened.log), names), &self.fuse)
            .map_err(TryError::from)?;
        let interrupt = global.interrupt.clone();
        folder.when_unmounted(move || interrupt.end_serving());
        global.say(format_args!(
            "{count} states are files in {}; others are found by name",
            self.fuse.display()
        ));
        signals.wait();
        drop(folder);
        Ok(ExitCode::SUCCESS)
    }
}
