//! One state after the other: mounted, checked by the user's command, and by the tool of its file system.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use onefold_crash::{Log, State};
use onefold_serve::Folder;

use super::check::{self, Ended};
use super::files::StateFiles;
use super::promises::Promises;
use crate::TryError;
use crate::room::{FileSystem, MARKS_VARIABLE, Mounted, Place};

/// What is checked in each state.
#[derive(Clone, Debug)]
pub struct Checks {
    /// The file system that is mounted and checked.
    pub fs: FileSystem,
    /// More options of mount.
    pub mount: String,
    /// The user's check, a command of the shell. Exit code 0: the state is good.
    pub command: Option<String>,
    /// Time that one run of it has.
    pub timeout: Duration,
}

/// What of a state failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProblemKind {
    /// It cannot be mounted.
    Mount,
    /// The tool of the file system found something after it was mounted and unmounted.
    FileSystem,
    /// The user's check did not end with 0.
    Check,
    /// The user's check took too long.
    Timeout,
}

impl ProblemKind {
    /// Its name in results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mount => "mount",
            Self::FileSystem => "file-system",
            Self::Check => "check",
            Self::Timeout => "timeout",
        }
    }
}

/// Why a state is not good.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// What failed.
    pub kind: ProblemKind,
    /// The exit code of the user's check.
    pub code: Option<i32>,
    /// The end of what was said, at most 4 KiB.
    pub output: String,
}

impl Problem {
    /// In a few words, such as `check exited 1: record 17 is gone`.
    #[must_use]
    pub fn sentence(&self) -> String {
        let last = self.output.lines().map(str::trim).rfind(|line| !line.is_empty());
        let last = last.unwrap_or("it said nothing");
        match (self.kind, self.code) {
            (ProblemKind::Mount, _) => format!("it cannot be mounted: {last}"),
            (ProblemKind::FileSystem, _) => last.to_owned(),
            (ProblemKind::Check, Some(code)) => format!("check exited {code}: {last}"),
            (ProblemKind::Check, None) => format!("check failed: {last}"),
            (ProblemKind::Timeout, _) => format!("check took too long: {last}"),
        }
    }
}

/// What all benches share: the states as files.
pub(super) struct Workshop<'a> {
    pub(super) log: &'a Arc<Log>,
    pub(super) promises: &'a Promises,
    pub(super) checks: &'a Checks,
    pub(super) stop: &'a AtomicBool,
    /// Before the place in which it is mounted.
    folder: Folder,
    files: PathBuf,
    place: Place,
    runs: AtomicU64,
    benches: AtomicU64,
}

impl<'a> Workshop<'a> {
    pub(super) fn new(
        log: &'a Arc<Log>,
        promises: &'a Promises,
        checks: &'a Checks,
        stop: &'a AtomicBool,
    ) -> Result<Self, TryError> {
        let place = Place::new()?;
        let files = place.folder("states")?;
        let folder = Folder::mount(StateFiles::new(Arc::clone(log), Vec::new()), &files)?;
        let (runs, benches) = (AtomicU64::new(0), AtomicU64::new(0));
        Ok(Self { log, promises, checks, stop, folder, files, place, runs, benches })
    }

    /// A bench for one thread.
    pub(super) fn bench(&self) -> Result<Bench<'_>, TryError> {
        let number = self.benches.fetch_add(1, Relaxed);
        let folder = self.place.folder(&format!("bench{number}"))?;
        let mnt = self.place.folder(&format!("bench{number}/mnt"))?;
        Ok(Bench { workshop: self, mnt, written: None, folder })
    }
}

/// Where one thread tries states.
pub(super) struct Bench<'a> {
    workshop: &'a Workshop<'a>,
    /// For small files.
    folder: PathBuf,
    mnt: PathBuf,
    /// How many lines and marks are in the files for the check.
    written: Option<(usize, usize)>,
}

impl Bench<'_> {
    /// Tries a state with what was promised at a position. `None`: it is good.
    pub(super) fn run(
        &mut self,
        state: &State,
        promised: usize,
    ) -> Result<Option<Problem>, TryError> {
        let workshop = self.workshop;
        let name = state.name(workshop.log);
        // The last file of the same state may not be closed yet: a loop device closes it later.
        let file = format!("{}.{name}", workshop.runs.fetch_add(1, Relaxed));
        let path = workshop.files.join(&file);
        // What is written to it outlives the loop device.
        workshop.folder.keep(&file);
        let problem = self.try_file(&path, &name, promised);
        workshop.folder.forget(&file);
        problem
    }

    fn try_file(
        &mut self,
        path: &Path,
        name: &str,
        promised: usize,
    ) -> Result<Option<Problem>, TryError> {
        let Checks { fs, mount, .. } = self.workshop.checks;
        if *fs == FileSystem::None {
            return self.check(path, name, promised);
        }
        let mounted = match Mounted::new(path, &self.mnt, *fs, mount) {
            Ok(mounted) => mounted,
            Err(TryError::Tool { output, .. }) => {
                let output = said_by_mount(&output, &self.mnt);
                return Ok(Some(Problem { kind: ProblemKind::Mount, code: None, output }));
            }
            Err(error) => return Err(error),
        };
        let checked = self.check(path, name, promised);
        mounted.unmount()?;
        let found = fs.check(path)?;
        let broken =
            found.map(|output| Problem { kind: ProblemKind::FileSystem, code: None, output });
        Ok(checked?.or(broken))
    }

    /// Runs the user's check.
    fn check(
        &mut self,
        path: &Path,
        name: &str,
        promised: usize,
    ) -> Result<Option<Problem>, TryError> {
        let Checks { fs, command, timeout, .. } = self.workshop.checks;
        let Some(text) = command else { return Ok(None) };
        self.write_promises(promised)?;
        let mut command = Command::new("/bin/sh");
        command.args(["-c", text]).env(MARKS_VARIABLE, self.workshop.place.marks());
        command.env("ONEFOLD_STATE", name).env("ONEFOLD_DEVICE", path);
        command.env("ONEFOLD_STDOUT", self.folder.join("stdout"));
        command.env("ONEFOLD_MARKS", self.folder.join("marks"));
        command.current_dir(if *fs == FileSystem::None { &self.folder } else { &self.mnt });
        let output = self.folder.join("output");
        let ended = check::run(&mut command, &output, *timeout, self.workshop.stop)?;
        Ok(problem(ended))
    }

    /// Writes what was promised, unless it is there.
    fn write_promises(&mut self, promised: usize) -> Result<(), TryError> {
        let (lines, marks) = self.workshop.promises.at(promised);
        let counts = Some((lines.len(), marks.len()));
        if self.written == counts {
            return Ok(());
        }
        self.workshop.promises.write(promised, &self.folder)?;
        self.written = counts;
        Ok(())
    }
}

/// What `mount` said, without what differs from run to run: where, and through which loop device.
fn said_by_mount(output: &str, mnt: &Path) -> String {
    let output = output.trim_start_matches("mount: ").replace(&*mnt.to_string_lossy(), "");
    let output = output.split("; dmesg(1)").next().unwrap_or_default();
    let words = output
        .trim_start_matches(": ")
        .split(' ')
        .map(|word| if word.starts_with("/dev/loop") { "the disk," } else { word });
    words.collect::<Vec<_>>().join(" ").trim_end_matches([',', '.']).to_owned()
}

fn problem(ended: Ended) -> Option<Problem> {
    let code = ended.code();
    let kind = if code.is_none() { ProblemKind::Timeout } else { ProblemKind::Check };
    (code != Some(0)).then_some(Problem { kind, code, output: ended.output })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_mount_says_is_the_same_in_each_run() {
        let said = "mount: /tmp/x/mnt: cannot mount; probably corrupted filesystem on /dev/loop1.; dmesg(1) may have more";
        let told = said_by_mount(said, Path::new("/tmp/x/mnt"));
        assert_eq!(told, "cannot mount; probably corrupted filesystem on the disk");
    }
}
